//===- Simulation.h - The simulator's options on a command line -----------===//
//
// One set of names and meanings for every tool that simulates: fp4-run, fp4-runner, fp4-sim run.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/SimulationOptions.h"

namespace CLI {
class App;
}

namespace fp4::harness {

/// Adds --policy, --check, --explain, --unwritten, --stats, --timeline, --threads and --limit; and
/// --seed, of `seedOf`. `options` must outlive the parse.
void addSimulationOptions(CLI::App &app, sim::SimulationOptions &options,
                          const std::string &seedOf);

/// Adds --json.
void addJsonOption(CLI::App &app, bool &json);

} // namespace fp4::harness
