//===- Process.cpp - Another program, with a time limit -------------------===//
#include "fp4/Support/Process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <poll.h>
#include <sstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fp4 {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMostOutput = 1 << 20;

/// Becomes the program, in the child, where only functions that are safe in signal handlers may be
/// called. The child leads a group of its own, so that processes it starts can be killed with it.
[[noreturn]] void become(char *const *arguments, int output, int failure) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execv(arguments[0], arguments);
  const int error = errno;
  [[maybe_unused]] ssize_t written = write(failure, &error, sizeof(error));
  _exit(127);
}

/// Reads available output, for at most a moment. False at the end of the output.
bool collect(int file, std::string &output, milliseconds moment) {
  pollfd ready{file, POLLIN, 0};
  if (poll(&ready, 1, static_cast<int>(moment.count())) <= 0)
    return true;
  std::array<char, 4096> buffer;
  ssize_t got = read(file, buffer.data(), buffer.size());
  if (got > 0)
    output.append(buffer.data(),
                  std::min<size_t>(static_cast<size_t>(got), kMostOutput - output.size()));
  return got > 0 || (got < 0 && errno == EINTR);
}

/// Waits for the child. The child may have closed its output long before, and processes that it
/// started may keep the output open for longer.
ProcessResult await(pid_t child, int output, milliseconds limit) {
  ProcessResult result;
  int status = 0;
  const Clock::time_point end = Clock::now() + limit;
  bool open = true;
  while (waitpid(child, &status, WNOHANG) == 0) {
    constexpr milliseconds kMoment{20};
    if (open)
      open = collect(output, result.output, kMoment);
    else
      usleep(1000);
    if (Clock::now() < end)
      continue;
    result.timedOut = true;
    kill(-child, SIGKILL);
    waitpid(child, &status, 0);
    break;
  }
  while (open && result.output.size() < kMostOutput) {
    const size_t before = result.output.size();
    open = collect(output, result.output, milliseconds(0)) && result.output.size() > before;
  }
  result.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { [[maybe_unused]] int made = pipe2(ends, O_CLOEXEC); }
  ~Pipe() {
    for (int end : ends)
      if (end >= 0)
        close(end);
  }
  void closeWriter() {
    close(ends[1]);
    ends[1] = -1;
  }
};

} // namespace

Expected<std::string> findProgram(const std::string &name) {
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(name);
  } else if (const char *path = std::getenv("PATH")) {
    std::stringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');)
      candidates.push_back(folder + "/" + name);
  }
  for (const std::string &candidate : candidates)
    if (access(candidate.c_str(), X_OK) == 0 && !std::filesystem::is_directory(candidate))
      return candidate;
  return makeError(ErrorKind::Usage, fmt::format("cannot execute '{}'", name),
                   "check the path; a program in this folder is ./NAME");
}

Expected<ProcessResult> runProcess(const std::vector<std::string> &command, milliseconds limit) {
  auto cannot = [&](int error) {
    return makeError(ErrorKind::Usage,
                     fmt::format("cannot run '{}': {}", command.front(), std::strerror(error)));
  };
  std::vector<char *> arguments;
  for (const std::string &word : command)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  Pipe output, failure;
  if (output.ends[0] < 0 || failure.ends[0] < 0)
    return cannot(errno);
  const pid_t child = fork();
  if (child == 0)
    become(arguments.data(), output.ends[1], failure.ends[1]);
  if (child < 0)
    return cannot(errno);
  setpgid(child, child); // parent or child, whichever comes first
  output.closeWriter();
  failure.closeWriter();
  int error = 0;
  const bool started = read(failure.ends[0], &error, sizeof(error)) != sizeof(error);
  ProcessResult result = await(child, output.ends[0], limit);
  return started ? Expected<ProcessResult>(std::move(result)) : cannot(error);
}

std::string ProcessResult::ending(milliseconds limit) const {
  if (timedOut)
    return fmt::format("has not ended after {} s", static_cast<double>(limit.count()) / 1000);
  if (code > 128 && code - 128 < NSIG) // shells report signals in this way; ptxas ends with 255
    return fmt::format("was ended by signal {} ({})", code - 128, strsignal(code - 128));
  return fmt::format("ended with code {}", code);
}

} // namespace fp4
