//===- Options.h - The command line of fp4-runner -------------------------===//
#pragma once

#include "fp4/Compiler/Compiler.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/Harness/Runner.h"
#include "fp4/Harness/QuantizeCommand.h"

namespace fp4::runner {

struct Options {
  std::string input; ///< the .mlir file; "-" is standard input
  CompilerOptions compiler;
  harness::RunOptions run;
  std::string emit;            ///< mlir | ptx | cubin | so; empty: run the program
  std::string phase = "fused"; ///< phase of --emit=mlir
  std::string output;          ///< output of --emit; empty: standard output
  std::string kernel;          ///< the gpu.module to emit; empty: all
  std::string explore;         ///< file of the page; empty: none
  bool timePhases = false;
  bool tune = false;
  bool retune = false;      ///< ignore entries of the cache of --tune
  uint64_t tuneLimit = 128; ///< predictions

  bool layout = false; ///< fp4-runner layout
  bool routes = false; ///< fp4-runner routes
  hw::ScaleQuestion question;
  std::string scales = "nvfp4"; ///< format that question.format looks at
  harness::QuantizeCommand quantize; ///< fp4-runner quantize, dequantize
};

/// Parses the command line into `options`. Returns an exit code when the program ends here: 0 after
/// --help, 2 after a command line that cannot be understood, which has been explained on stderr.
std::optional<int> parseCommandLine(int argc, char **argv, Options &options);

/// Returns true when kernels are to become cubins: false if no ptxas was found and none was named.
Expected<bool> hasAssembler(const Compiler &compiler, const char *without);

/// Writes the output of --emit.
Status emitProgram(Compiler &compiler, const Options &options);

/// Compiles, executes and checks; returns the exit code.
int runProgram(Compiler &compiler, const Options &options);

/// With --time, --compare may name a plan or a program: predicts its time first, and leaves it in
/// `options` for runProgram to compare with.
Status predictOther(Options &options);

} // namespace fp4::runner
