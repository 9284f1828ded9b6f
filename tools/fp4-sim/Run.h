//===- Run.h - fp4-sim run ------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <string>
#include <vector>

namespace fp4::tools {

struct RunOptions {
  std::vector<std::string> command; ///< program and arguments
  std::string device = "b200";
  std::string policy = "eager";
  uint64_t seed = 0;
  uint32_t threads = 0;
  std::string check = "off"; ///< off, default, strict
  std::string dumpPtx;       ///< folder for the PTX that was decoded
  bool stats = false;
  bool trace = false; ///< print every call that moves data or launches
};

/// Runs the program with our libraries in front of CUDA's. Gives the exit code: see
/// docs/Simulator.md.
Expected<int> runProgram(const RunOptions &options);

} // namespace fp4::tools
