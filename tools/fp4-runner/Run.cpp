//===- Run.cpp - Compiling and executing in this process ------------------===//

#include "Options.h"

#include "Tune.h"

#include "llvm/ADT/StringRef.h"

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
  // An assembler that was named or asked for must work; one that is just there need not.
  if (!found && (compiler.namesAssembler() || found.error().kind == ErrorKind::Usage))
    return tl::unexpected<Error>(std::move(found.error()));
  if (!found && *without)
    std::cerr << without << ": " << found.error().message << "\n";
  return found.has_value();
}

/// Loads the input. --shape M,N,K and --dim NAME=SIZE give the dimensions of that name their size,
/// if the program names them. Values that name an argument, or are malformed, are left to the
/// binding of arguments.
Status loadInput(Compiler &compiler, const Options &options) {
  FP4_TRY(compiler.loadFile(options.input));
  std::map<std::string, int64_t> sizes;
  constexpr const char *names[] = {"M", "N", "K"};
  for (const std::string &dim : compiler.dimNames())
    for (size_t i = 0; i < options.run.shape.size() && i < 3; ++i)
      if (dim == names[i] && options.run.shape[i])
        sizes[dim] = options.run.shape[i];
  for (const std::string &dim : compiler.dimNames())
    for (const std::string &text : options.run.dims)
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
  auto resolve = [program = code.get()](const std::string &symbol)
      -> Expected<harness::EntryFunction> {
    FP4_ASSIGN(auto address, program->lookup(symbol));
    return reinterpret_cast<harness::EntryFunction>(address);
  };
  FP4_ASSIGN(auto runner, harness::Runner::create(manifest, resolve));
  return LoadedProgram{std::move(code), std::move(runner)};
}

int runProgram(Compiler &compiler, const Options &options) {
  // Cubins are for GPUs and for the report of registers; a simulation does without them.
  auto assembler = hasAssembler(compiler, options.run.json ? "" : "note: running without cubins");
  if (!assembler)
    return fail(assembler.error());
  auto program = loadProgram(compiler, *assembler ? Phase::Cubin : Phase::Ptx);
  if (!program)
    return fail(program.error());
  return harness::runAndReport(program->runner, options.run);
}

//===----------------------------------------------------------------------===//
// --time --compare
//===----------------------------------------------------------------------===//

namespace {

std::string describePlans(const std::vector<std::string> &plans) {
  std::string text;
  for (const std::string &plan : plans)
    text += (text.empty() ? "" : "; ") + plan;
  return text.empty() ? "the plans of the compiler" : text;
}

bool isPlanFile(llvm::StringRef text) { return text.starts_with("@"); }

bool isReport(llvm::StringRef text) { return text.ends_with(".json") && !isPlanFile(text); }

bool isProgram(llvm::StringRef text) {
  return (text.ends_with(".mlir") || text.ends_with(".mlirbc")) && !isPlanFile(text);
}

} // namespace

Status predictOther(Options &options) {
  const std::string what = options.run.compare;
  if (!options.run.time || what.empty() || isReport(what))
    return {};
  Options other = options;
  if (isProgram(what)) {
    other.input = what;
  } else {
    other.compiler.plans = {what};
    FP4_TRY(readPlanFiles(other.compiler.plans));
  }
  other.run.compare.clear();
  other.run.outputs.clear();
  Compiler compiler(other.compiler);
  FP4_TRY(loadInput(compiler, other));
  FP4_ASSIGN(auto program, loadProgram(compiler, Phase::Ptx));
  FP4_ASSIGN(auto report, program.runner.run(other.run));
  if (!report.passed())
    return makeError(ErrorKind::Mismatch, "the result of '" + what + "' differs from the reference",
                     "without --compare, --plan and the program show where");
  options.run.before = report.timed(isPlanFile(what) ? describePlans(other.compiler.plans) : what);
  options.run.compare.clear();
  options.run.label =
      isProgram(what) ? options.input : describePlans(options.compiler.plans);
  return {};
}

} // namespace fp4::runner
