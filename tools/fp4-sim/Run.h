//===- Run.h - fp4-sim run ------------------------------------------------===//
#pragma once

#include "fp4/Harness/Simulation.h"
#include "fp4/Support/Error.h"
#include <string>
#include <vector>

namespace fp4::harness {

struct ProgramOptions : sim::SimulationOptions {
  std::vector<std::string> command; ///< program and arguments
  std::string device = "b200";
  std::string dumpPtx; ///< folder for the decoded PTX
  std::string ptxDir;  ///< folder with PTX of kernels that the program has as machine code alone
  bool trace = false;  ///< print every call that moves data or launches
  bool json = false;   ///< the report as one JSON object
};

/// Runs the program with the simulator's libraries in front of CUDA's. Returns the exit code: see
/// docs/reference/simulator.md.
Expected<int> runProgram(const ProgramOptions &options);

} // namespace fp4::harness
