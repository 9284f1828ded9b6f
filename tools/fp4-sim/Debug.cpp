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
  bool converse(const Json &stop);
  bool follow(const std::string &line);
  void waitForStop();

  DebugFocus focus;
  uint32_t line = 0;  ///< of the PTX, of the last stop
  std::string before; ///< the last command, which an empty line repeats
};

void Prompt::beside(pid_t program) {
  connect();
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
  while (true) {
    waitForStop();
    const Json event = next();
    if (event.is_null())
      return;
    focus.warp = event["warp"];
    focus.lane = -1;
    line = event["line"];
    fmt::print("{}", describeStop(event));
    if (!converse(event))
      return end(program);
  }
}

/// Until the program says something; a signal of the terminal stops the program.
void Prompt::waitForStop() {
  std::fflush(stdout);
  while (!hasNext()) {
    pollfd waits{socket.number(), POLLIN, 0};
    poll(&waits, 1, -1);
    if (std::exchange(interrupted, 0))
      tell({{"do", "pause"}});
  }
}

/// Follows commands until the program goes on; false: it shall end.
bool Prompt::converse(const Json &) {
  const bool echo = !isatty(STDIN_FILENO);
  while (true) {
    fmt::print("(fp4-sim) ");
    std::fflush(stdout);
    std::string text;
    if (!std::getline(std::cin, text)) {
      fmt::print("\n");
      return false;
    }
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
}

/// Returns true when the program goes on.
bool Prompt::follow(const std::string &text) {
  const Expected<Json> parsed = parseCommand(text, focus);
  if (!parsed) {
    fmt::print("{}", format(parsed.error()));
    return false;
  }
  Json command = *parsed;
  const std::string what = command["do"];
  if (what == "help") {
    fmt::print("{}", commandHelp());
    return false;
  }
  if (what == "source" && command["line"] == 0u)
    command["line"] = line;
  fmt::print("{}", describeAnswer(command, ask(command), focus));
  return what == "continue" || what == "step" || what == "next";
}

/// The descriptor of the first client of a port of this machine.
Expected<int> acceptClient(int port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int again = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
  const bool bound = bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0;
  if (!bound || listen(listener, 1) != 0)
    return makeError(ErrorKind::Usage,
                     fmt::format("cannot listen at port {}: {}", port, std::strerror(errno)));
  fmt::print(stderr, "fp4-sim: waits for a client at port {}\n", port);
  const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  close(listener);
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
