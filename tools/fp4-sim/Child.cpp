//===- Child.cpp - The program that fp4-sim runs --------------------------===//
#include "Child.h"
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fp4;

namespace {

constexpr int kForwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

volatile pid_t theChild = 0;
volatile bool ownGroup = false;

/// Forwards a signal. The terminal signals the whole process group: a program in that group has the
/// signal already.
void forward(int signal, siginfo_t *info, void *) {
  if (ownGroup)
    kill(-theChild, signal);
  else if (info->si_code <= 0)
    kill(theChild, signal);
}

sigset_t forwardedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : kForwarded)
    sigaddset(&set, signal);
  return set;
}

using Actions = std::array<struct sigaction, std::size(kForwarded)>;

/// Handles signals, and returns what was done about them before. Signals that are ignored (nohup)
/// stay so, here and in the program.
Actions handleSignals() {
  Actions before = {};
  for (size_t i = 0; i < before.size(); ++i) {
    const int signal = kForwarded[i];
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &before[i]) != 0 || before[i].sa_handler == SIG_IGN)
      continue;
    action.sa_sigaction = forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
  return before;
}

[[noreturn]] void become(const std::string &program, const std::vector<std::string> &command,
                         pid_t parent, const sigset_t &signals) {
  if (ownGroup)
    setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(static_cast<int>(ErrorKind::Usage));
  std::vector<char *> arguments;
  for (const std::string &argument : command)
    arguments.push_back(const_cast<char *>(argument.c_str()));
  arguments.push_back(nullptr);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execv(program.c_str(), arguments.data());
  fmt::print(stderr, "error: cannot execute '{}': {}\n", program, std::strerror(errno));
  _exit(static_cast<int>(ErrorKind::Usage));
}

} // namespace

int harness::handDown(int file) {
  constexpr int beyondTheProgram = 500;
  const int high = fcntl(file, F_DUPFD, beyondTheProgram);
  return high >= 0 ? high : fcntl(file, F_DUPFD, STDERR_FILENO + 1);
}

Expected<int> harness::runChild(const std::string &program, const std::vector<std::string> &command,
                                const std::function<void()> &prepare,
                                const std::function<void(pid_t)> &beside) {
  std::fflush(nullptr);
  // A program of another group could not read from the terminal.
  ownGroup = beside || !isatty(STDIN_FILENO);
  const pid_t parent = getpid();
  const sigset_t forwarded = forwardedSignals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &forwarded, &before);
  const pid_t child = fork();
  if (child == 0) {
    prepare();
    become(program, command, parent, before);
  }
  if (child < 0)
    return makeError(ErrorKind::Usage,
                     fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (ownGroup)
    setpgid(child, child);
  theChild = child;
  const Actions actions = handleSignals();
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (beside)
    beside(child);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // The number may be another process's from here on: signals are for this process alone.
  sigprocmask(SIG_BLOCK, &forwarded, nullptr);
  for (size_t i = 0; i < actions.size(); ++i)
    sigaction(kForwarded[i], &actions[i], nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return status;
}
