//===- Tune.h - Searching for the fastest plans ---------------------------===//
#pragma once

#include "Options.h"

namespace fp4::runner {

/// Runs --tune: searches the legal plans of every kernel of the program by predicted time, verifies
/// the best few in the functional simulator, measures them if there is a GPU, and reports. Writes
/// the output of -o: the program with its plans (.mlir), or a plan file for --plan @FILE. Returns
/// the exit code.
int tuneProgram(const Options &options);

/// Reads plan files of --plan: "@FILE" stands for the lines of a plan file.
Status readPlanFiles(std::vector<std::string> &plans);

} // namespace fp4::runner
