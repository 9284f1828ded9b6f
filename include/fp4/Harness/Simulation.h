//===- Simulation.h - The simulator's options on a command line -----------===//
//
// The same names and meanings in every tool that simulates: fp4-run, fp4-runner, fp4-sim run.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace fp4::harness {

struct SimulationOptions {
  std::string policy = "eager"; ///< when asynchronous operations complete
  std::string check;            ///< hazard checker: off|default|strict; empty: default in the
                                ///< simulator, and none where a GPU runs the program
  bool statistics = false;      ///< count bank conflicts and uncoalesced accesses
  std::string timeline;         ///< file for a trace of the simulation
  std::string unwritten = "error"; ///< reads of shared memory that nobody wrote: error|ignore
  uint64_t seed = 1;            ///< of the random policy, and of inputs where there are some
  unsigned hostThreads = 0;     ///< 0: all
  uint64_t spinLimit = uint64_t(1) << 32; ///< sim::SimOptions::spinLimit
  bool json = false;            ///< the report as one JSON object
};

/// Adds --policy, --check, --explain, --unwritten, --stats, --timeline, --threads and --json; and
/// --seed, of `seedOf`. `options` must outlive the parse.
void addSimulationOptions(CLI::App &app, SimulationOptions &options, const std::string &seedOf);

} // namespace fp4::harness
