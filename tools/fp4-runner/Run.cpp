//===- Run.cpp - Compiling and executing in this process ------------------===//

#include "Options.h"

#include <iostream>

namespace fp4::runner {
namespace {

int fail(const Error &error) {
  std::cerr << format(error);
  return exitCode(error);
}

} // namespace

Expected<bool> hasAssembler(const Compiler &compiler, const char *without) {
  Status found = compiler.checkAssembler();
  if (!found && compiler.namesAssembler())
    return tl::unexpected<Error>(std::move(found.error()));
  if (!found && *without)
    std::cerr << without << ": " << found.error().message << "\n";
  return found.has_value();
}

int runProgram(Compiler &compiler, const Options &options) {
  // Cubins are for GPUs and for the report of registers; a simulation does without.
  auto assembler = hasAssembler(compiler, options.run.json ? "" : "note: running without cubins");
  if (!assembler)
    return fail(assembler.error());
  if (Status status = compiler.compileTo(*assembler ? Phase::Cubin : Phase::Ptx); !status)
    return fail(status.error());
  std::string manifest = compiler.manifest();
  auto program = compiler.jit();
  if (!program)
    return fail(program.error());
  auto resolve = [&](const std::string &symbol) -> Expected<harness::EntryFunction> {
    FP4_ASSIGN(auto address, (*program)->lookup(symbol));
    return reinterpret_cast<harness::EntryFunction>(address);
  };
  auto runner = harness::Runner::create(manifest, resolve);
  if (!runner)
    return fail(runner.error());
  return harness::runAndReport(*runner, options.run);
}

} // namespace fp4::runner
