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
  /// Returns true when next() has an event, or the program is gone. Drops the answers to commands
  /// that were told. Never waits: requests and output of the program come in meanwhile.
  bool hasNext();
  /// The event that hasNext() saw; null when the program is gone.
  Json next();
  /// Ends the program.
  void end(pid_t program);

  LineSocket socket;

private:
  std::optional<Json> receive();
  int other;
  std::deque<Json> events; ///< events that nobody has taken yet
  bool gone = false;       ///< the program has closed its end
};

} // namespace fp4::harness
