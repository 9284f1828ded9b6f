//===- DebugAdapter.h - The Debug Adapter Protocol ------------------------===//
//
// microsoft.github.io/debug-adapter-protocol: messages of JSON behind a header with their length.
// Threads are warps. `next` goes to another line, and `stepIn` executes one instruction.
// Breakpoints of functions are kernels, opcodes ("mbarrier.try_wait"), or "barriers". A file whose
// name ends in .ptx is the PTX that runs. The console of the editor evaluates commands of the
// prompt.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "DebugClient.h"
#include "DebugConsole.h"

namespace fp4::harness {

class DebugAdapter final : public DebugClient {
public:
  /// Reads requests from `in` and writes to `out`.
  DebugAdapter(int socket, int other, int in, int out);
  void inProgram() override;
  void beside(pid_t program) override;
  void ended(int code) override;

private:
  void readRequests();
  bool takeMessage(Json &message);
  void handle(const Json &request);
  static void refuse(Json &response, const std::string &why);
  void follow(const std::string &command);
  Json answer(const std::string &command, const Json &arguments);
  void meetEvent(const Json &event);
  void passOutput();
  void begin();
  void install(const Json &breakpoint);
  Json valueOf(const Json &command);

  Json setBreakpoints(const Json &arguments);
  Json setFunctionBreakpoints(const Json &arguments);
  Json threads();
  Json stackTrace(const Json &arguments);
  Json scopes(const Json &arguments) const;
  Json variables(const Json &arguments);
  Json evaluate(const Json &arguments);
  Json sourceOf(const Json &place) const;
  Json go(const std::string &what, const Json &arguments);

  void write(Json message);
  void event(const std::string &name, Json body);

  const int in, out;
  int outputs[2] = {-1, -1}; ///< a pipe from the program's stdout and stderr
  std::string buffer;
  int sequence = 0;
  pid_t program = 0;
  bool configured = false, launched = false, stands = false, open = true;
  bool stopAtBegin = false;
  bool answering = false;                  ///< a request waits for its response
  Json late = Json::array();               ///< events that come behind that response
  Json waitingBreakpoints = Json::array(); ///< commands, until the program first stands still
  std::string ptxPath;                     ///< the file that a client calls the PTX
  std::string programName;
  DebugFocus focus;
};

} // namespace fp4::harness
