//===- Debug.h - fp4-sim debug --------------------------------------------===//
//
// The program runs as with `fp4-sim run`, and the simulator in it takes commands from this process
// (lib/Sim/Debug/DebugServer.h). A person gives them at a prompt, or an editor in the Debug Adapter
// Protocol.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Run.h"

namespace fp4::harness {

struct DebugOptions : ProgramOptions {
  bool dap = false; ///< the Debug Adapter Protocol on stdin and stdout
  int port = 0;     ///< port of the machine itself for one client, in place of stdin and stdout
};

Expected<int> debugProgram(const DebugOptions &options);

} // namespace fp4::harness
