//===- LoadedProgram.cpp - A program that was compiled into this process --===//

#include "fp4/Tuning/LoadedProgram.h"

#include "llvm/ADT/StringRef.h"

#include <map>

namespace fp4::tuning {

Status loadInput(Compiler &compiler, const std::string &path, const harness::RunOptions &run) {
  FP4_TRY(compiler.loadFile(path));
  std::map<std::string, int64_t> sizes;
  constexpr const char *names[] = {"M", "N", "K"};
  for (const std::string &dim : compiler.dimNames())
    for (size_t i = 0; i < run.shape.size() && i < 3; ++i)
      if (dim == names[i] && run.shape[i])
        sizes[dim] = run.shape[i];
  for (const std::string &dim : compiler.dimNames())
    for (const std::string &text : run.dims)
      if (size_t size = 0; text.starts_with(dim + "=") &&
                           !llvm::StringRef(text).substr(dim.size() + 1).getAsInteger(10, size) &&
                           size >= 1 && size <= INT32_MAX)
        sizes[dim] = int64_t(size);
  return sizes.empty() ? Status() : compiler.specialize(sizes);
}

Expected<LoadedProgram> loadProgram(Compiler &compiler, Phase phase) {
  FP4_TRY(compiler.compileTo(phase));
  const std::string manifest = compiler.manifest();
  FP4_ASSIGN(auto code, compiler.jit());
  auto resolve = [program =
                      code.get()](const std::string &symbol) -> Expected<harness::EntryFunction> {
    FP4_ASSIGN(auto address, program->lookup(symbol));
    return reinterpret_cast<harness::EntryFunction>(address);
  };
  FP4_ASSIGN(auto runner, harness::Runner::create(manifest, resolve));
  return LoadedProgram{std::move(code), std::move(runner)};
}

} // namespace fp4::tuning
