//===- Check.h - The hazard checker on a command line ---------------------===//
//
// The options and the output of every tool with a simulator: --check[=default|strict], --explain
// RULE, reports as text on stderr or as JSON, and exit code 6 for a hazard.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/HazardChecker.h"
#include "fp4/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fp4::harness {

/// Adds --explain, which prints a rule and ends the parse, as --help does.
void addExplainOption(CLI::App &app);

/// Prints the reports to stderr. Returns the error that ends a tool if there are any.
std::optional<Error> reportHazards(const std::vector<sim::HazardReport> &hazards);

} // namespace fp4::harness
