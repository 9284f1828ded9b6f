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

int runProgram(Compiler &compiler, const Options &options) {
  // Cubins are for GPUs and for the report of registers; a simulation does without.
  Status assembler = compiler.checkAssembler();
  if (!assembler && !options.run.json)
    std::cerr << "note: running without cubins: " << assembler.error().message << "\n";
  if (Status status = compiler.compileTo(assembler ? Phase::Cubin : Phase::Ptx); !status)
    return fail(status.error());
  std::string manifest = compiler.manifest();
  auto program = compiler.jit();
  if (!program)
    return fail(program.error());
  auto resolve = [&](const std::string &symbol) -> Expected<tools::EntryFunction> {
    auto address = (*program)->lookup(symbol);
    if (!address)
      return tl::unexpected<Error>(address.error());
    return reinterpret_cast<tools::EntryFunction>(*address);
  };
  auto engine = tools::Engine::create(manifest, resolve);
  if (!engine)
    return fail(engine.error());
  return tools::runAndReport(*engine, options.run);
}

} // namespace fp4::runner
