//===- Tune.h - Searching for the fastest plans ---------------------------===//
#pragma once

#include "Options.h"

namespace fp4::runner {

/// What --tune does: searches the legal plans of every kernel of the program by predicted time,
/// verifies the best few in the functional simulator, measures them where there is a GPU, reports,
/// and writes what -o asks for: the program with its plans (.mlir), or a plan file for --plan @FILE.
/// Returns the exit code.
int tuneProgram(const Options &options);

/// Plans for --plan: "@FILE" stands for the lines of a plan file.
Status readPlanFiles(std::vector<std::string> &plans);

} // namespace fp4::runner
