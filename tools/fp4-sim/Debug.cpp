//===- Debug.cpp - fp4-sim debug ------------------------------------------===//
#include "Debug.h"
#include "DebugAdapter.h"
#include "DebugClient.h"
#include "DebugConsole.h"
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <iostream>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace fp4;
using namespace fp4::harness;

namespace {

volatile std::sig_atomic_t interrupted = 0;

/// A person at a prompt. The commands come from a terminal or from a file, whose commands are
/// printed too.
class Prompt final : public DebugClient {
public:
  using DebugClient::DebugClient;
  void beside(pid_t program) override;

private:
  bool converse();
  bool readLine(std::string &line);
  bool follow(const std::string &line);
  bool waitForStop();

  DebugFocus focus;
  std::string before; ///< the last command, which an empty line repeats
};

void Prompt::beside(pid_t program) {
  connect();
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
  while (true) {
    if (!waitForStop())
      return end(program);
    const Json event = next();
    if (event.is_null())
      return;
    focus.warp = event["warp"];
    focus.lane = -1;
    fmt::print("{}", describeStop(event));
    if (!converse())
      return end(program);
  }
}

/// Waits until the program says something. An interrupt of the terminal stops the program at its
/// next instruction. A second one ends a program that executes none; false: it shall end.
bool Prompt::waitForStop() {
  std::fflush(stdout);
  sigset_t interrupt, before; // heard in ppoll alone: none falls between a look and the wait
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  sigprocmask(SIG_BLOCK, &interrupt, &before);
  int asked = 0;
  while (asked < 2 && !hasNext()) {
    pollfd waits{socket.number(), POLLIN, 0};
    ppoll(&waits, 1, nullptr, &before);
    if (!std::exchange(interrupted, 0) || ++asked > 1)
      continue;
    tell({{"do", "pause"}});
    fmt::print(stderr, "fp4-sim: interrupt again to end the program\n");
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return asked < 2;
}

/// Reads a command; false at the end of the commands. An interrupt drops what was typed.
bool Prompt::readLine(std::string &text) {
  while (true) {
    fmt::print("(fp4-sim) ");
    std::fflush(stdout);
    const bool read = bool(std::getline(std::cin, text));
    const bool dropped = std::exchange(interrupted, 0) && !read;
    if (read)
      return true;
    fmt::print("\n");
    if (!dropped)
      return false;
    std::clearerr(stdin);
    std::cin.clear();
  }
}

/// Follows commands until the program goes on; false: it shall end.
bool Prompt::converse() {
  const bool echo = !isatty(STDIN_FILENO);
  for (std::string text; readLine(text);) {
    if (echo)
      fmt::print("{}\n", text);
    std::fflush(stdout); // before what the program prints
    if (text.empty())
      text = before;
    before = text;
    if (text.empty() || text.starts_with('#'))
      continue;
    if (text == "q" || text == "quit")
      return false;
    if (follow(text))
      return true;
  }
  return false;
}

/// Returns true when the program goes on.
bool Prompt::follow(const std::string &text) {
  const Expected<Json> parsed = parseCommand(text, focus);
  if (!parsed) {
    fmt::print("{}", format(parsed.error()));
    return false;
  }
  const Json &command = *parsed;
  const std::string what = command["do"];
  if (what == "help") {
    fmt::print("{}", commandHelp());
    return false;
  }
  fmt::print("{}", describeAnswer(command, ask(command), focus));
  return what == "continue" || what == "step" || what == "next";
}

/// A descriptor that hears clients of a port of this machine.
Expected<int> listenAt(int port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int again = 1;
  const auto *own = reinterpret_cast<const sockaddr *>(&address);
  if (listener >= 0 && setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &again, sizeof again) == 0 &&
      bind(listener, own, sizeof address) == 0 && listen(listener, 1) == 0)
    return listener;
  const int failure = errno;
  close(listener);
  return makeError(ErrorKind::Usage,
                   fmt::format("cannot listen at port {}: {}", port, std::strerror(failure)));
}

/// The descriptor of the first client of a port of this machine.
Expected<int> acceptClient(int port) {
  FP4_ASSIGN(const int listener, listenAt(port));
  fmt::print(stderr, "fp4-sim: waits for a client at port {}\n", port);
  int client;
  do
    client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  while (client < 0 && (errno == EINTR || errno == ECONNABORTED));
  const int failure = errno;
  close(listener);
  if (client < 0)
    return makeError(ErrorKind::Usage, fmt::format("cannot accept a client at port {}: {}", port,
                                                   std::strerror(failure)));
  return client;
}

} // namespace

Expected<int> harness::debugProgram(const DebugOptions &options) {
  if (options.time || !options.replay.empty())
    return makeError(ErrorKind::Usage, "fp4-sim debug predicts no times and replays no orders",
                     "leave out --time and --replay");
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return makeError(ErrorKind::Usage, fmt::format("cannot connect: {}", std::strerror(errno)));
  if (!options.dap && !options.port) {
    Prompt prompt(ends[0], ends[1]);
    return runProgram(options, &prompt);
  }
  int in = STDIN_FILENO, out = STDOUT_FILENO;
  if (options.port) {
    FP4_ASSIGN(in, acceptClient(options.port));
    out = in;
  }
  DebugAdapter adapter(ends[0], ends[1], in, out);
  return runProgram(options, &adapter);
}
