//===- Tune.h - The option --tune -----------------------------------------===//
#pragma once

#include "Options.h"

namespace fp4::runner {

/// Runs --tune (fp4/Tuning/Tune.h) and reports. Writes the output of -o: the program with its plans
/// (.mlir), or a plan file for --plan @FILE. Returns the exit code.
int tuneProgram(const Options &options);

} // namespace fp4::runner
