//===- Run.cpp - Compiling and executing in this process ------------------===//

#include "Options.h"

#include "fp4/Tuning/LoadedProgram.h"
#include "fp4/Tuning/PlanFile.h"

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

int runProgram(Compiler &compiler, const Options &options) {
  if (Status status = compiler.keepFunction(options.run.function); !status)
    return fail(status.error());
  // Cubins are for GPUs and for the report of registers; a simulation does without them.
  auto assembler = hasAssembler(compiler, options.run.json ? "" : "note: running without cubins");
  if (!assembler)
    return fail(assembler.error());
  auto program = tuning::loadProgram(compiler, *assembler ? Phase::Cubin : Phase::Ptx);
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
    FP4_TRY(tuning::readPlanFiles(other.compiler.plans));
  }
  other.run.compare.clear();
  other.run.outputs.clear();
  Compiler compiler(other.compiler);
  FP4_TRY(tuning::loadInput(compiler, other.input, other.run));
  FP4_TRY(compiler.keepFunction(other.run.function));
  FP4_ASSIGN(auto program, tuning::loadProgram(compiler, Phase::Ptx));
  FP4_ASSIGN(auto report, program.runner.run(other.run));
  if (!report.passed())
    return makeError(ErrorKind::Mismatch, "the result of '" + what + "' differs from the reference",
                     "without --compare, --plan and the program show where");
  options.run.before = report.timed(isPlanFile(what) ? describePlans(other.compiler.plans) : what);
  options.run.compare.clear();
  options.run.label = isProgram(what) ? options.input : describePlans(options.compiler.plans);
  return {};
}

} // namespace fp4::runner
