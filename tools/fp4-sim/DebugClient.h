//===- DebugClient.h - The side of a debugger that people see -------------===//
#pragma once

#include "Run.h"
#include "fp4/Support/LineSocket.h"
#include <deque>
#include <nlohmann/json.hpp>

namespace fp4::harness {

using Json = nlohmann::ordered_json;

/// The connection to the simulator in the program.
class DebugClient : public Companion {
public:
  /// `socket` is this side's, `other` the program's.
  DebugClient(int socket, int other) : socket(socket), other(other) {}
  void inProgram() override;

protected:
  /// Leaves the other end of the socket to the program, so that its end is noticed. Comes first in
  /// beside().
  void connect();
  /// Sends a command while the program stands still, and returns the answer; null if it is gone.
  Json ask(const Json &command);
  /// Sends a command to a program that runs, whose answer nobody waits for.
  void tell(const Json &command);
  /// The next event; null when the program is gone. The answer to a command that was told is none.
  Json next();
  bool hasNext();
  /// Ends the program.
  void end(pid_t program);

  LineSocket socket;

private:
  std::optional<Json> receive();
  int other;
  std::deque<Json> events; ///< that came before an answer
};

} // namespace fp4::harness
