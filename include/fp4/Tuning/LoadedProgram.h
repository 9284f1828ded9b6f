//===- LoadedProgram.h - A program that was compiled into this process ----===//
#pragma once

#include "fp4/Compiler/Compiler.h"
#include "fp4/Harness/Runner.h"

#include <memory>
#include <string>

namespace fp4::tuning {

/// A compiled program in this process.
struct LoadedProgram {
  std::unique_ptr<JitProgram> code;
  harness::Runner runner;
};

/// Loads the program of a file with the sizes that `run` gives to its dimensions: `run.shape` has
/// M, N and K, and `run.dims` has NAME=SIZE. Values that name an argument, or are malformed, are
/// left to the binding of arguments.
Status loadInput(Compiler &compiler, const std::string &path, const harness::RunOptions &run);

/// Compiles to `phase`, Ptx or Cubin, and loads the host code.
Expected<LoadedProgram> loadProgram(Compiler &compiler, Phase phase);

} // namespace fp4::tuning
