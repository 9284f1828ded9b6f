//===- DebugClient.cpp - The side of a debugger that people see -----------===//
#include "DebugClient.h"
#include "Child.h"
#include "fp4/Support/JsonText.h"
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

using namespace fp4;
using namespace fp4::harness;

/// Hands the socket down, and no terminal.
void DebugClient::inProgram() {
  if (const int file = handDown(other); file >= 0)
    setenv("FP4_SIM_DEBUG", std::to_string(file).c_str(), 1);
  if (const int nothing = open("/dev/null", O_RDONLY); nothing >= 0) {
    dup2(nothing, STDIN_FILENO);
    close(nothing);
  }
}

void DebugClient::connect() {
  close(other);
  other = -1;
}

std::optional<Json> DebugClient::receive() {
  const std::optional<std::string> line = socket.receive();
  return line ? std::optional(Json::parse(*line, nullptr, false)) : std::nullopt;
}

Json DebugClient::ask(const Json &command) {
  tell(command);
  while (std::optional<Json> message = receive()) {
    if (message->contains("reply") && (*message)["reply"] == command["do"])
      return *message;
    if (message->contains("event"))
      events.push_back(std::move(*message));
  }
  return {};
}

void DebugClient::tell(const Json &command) { socket.send(jsonText(command)); }

bool DebugClient::hasNext() {
  while (events.empty() && !gone && socket.pending()) {
    std::optional<Json> message = receive();
    gone = !message;
    if (message && message->contains("event"))
      events.push_back(std::move(*message));
  }
  return gone || !events.empty();
}

Json DebugClient::next() {
  if (events.empty())
    return {};
  Json first = std::move(events.front());
  events.pop_front();
  return first;
}

void DebugClient::end(pid_t program) {
  left = true;
  kill(-program, SIGKILL);
}
