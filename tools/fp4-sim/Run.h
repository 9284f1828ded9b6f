//===- Run.h - fp4-sim run ------------------------------------------------===//
#pragma once

#include "fp4/Harness/Simulation.h"
#include "fp4/Support/Error.h"
#include <string>
#include <sys/types.h>
#include <vector>

namespace fp4::harness {

struct ProgramOptions : sim::SimulationOptions {
  std::vector<std::string> command; ///< program and arguments
  std::string device = "b200";
  std::string dumpPtx; ///< folder for the decoded PTX
  std::string explore; ///< file of the page; empty: none
  bool quietTimes = false; ///< times are for the page alone
  std::string ptxDir;  ///< folder with PTX of kernels that the program has as machine code alone
  bool trace = false;  ///< print every call that moves data or launches
  bool json = false;   ///< the report as one JSON object
  bool annotations = false; ///< findings as annotations of GitHub Actions, on stdout
};

/// Somebody beside a program that runs: a debugger.
class Companion {
public:
  virtual ~Companion() = default;
  /// Called in the program's process before the program begins.
  virtual void inProgram() = 0;
  /// Called in this process; returns at the end of the program, at the latest.
  virtual void beside(pid_t program) = 0;
  /// The exit code of the tool is known.
  virtual void ended(int code) {}
  /// The program was ended on request: how it ended is no finding.
  bool left = false;
};

/// Runs the program with the simulator's libraries in front of CUDA's. Returns the exit code: see
/// docs/reference/simulator.md.
Expected<int> runProgram(const ProgramOptions &options, Companion *companion = nullptr);

} // namespace fp4::harness
