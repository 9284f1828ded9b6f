//===- fp4-runner.cpp - Compile, execute and check an fp4 program ---------===//
//
// The compiler, followed by the runner of fp4-run. See --help.
//
//===----------------------------------------------------------------------===//

#include "Explore.h"
#include "Tune.h"

#include "fp4/Routes/Routes.h"
#include "fp4/Tuning/LoadedProgram.h"
#include "fp4/Tuning/PlanFile.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"

#include <cstdlib>
#include <iomanip>
#include <iostream>

using namespace fp4;

/// Reports a fatal error of LLVM, which calls this before it would abort: one line instead of a
/// stack trace.
static void reportFatal(void *, const char *reason, bool) {
  std::cerr << "error: LLVM gave up: " << reason << "\n"
            << "note: this is a mistake of the compiler; please report it with the program\n";
  std::_Exit(static_cast<int>(ErrorKind::Internal));
}

static int finish(const Status &status) {
  if (status)
    return 0;
  std::cerr << format(status.error());
  return exitCode(status.error());
}

static void printTimes(const Compiler &compiler) {
  double total = 0;
  for (const StepTime &time : compiler.times()) {
    std::cerr << std::fixed << std::setprecision(1) << std::setw(9) << time.milliseconds << " ms  "
              << time.step << "\n";
    total += time.milliseconds;
  }
  std::cerr << std::setw(9) << total << " ms  compiling in all\n";
}

int main(int argc, char **argv) {
  llvm::install_fatal_error_handler(reportFatal);
  runner::Options options;
  if (std::optional<int> code = runner::parseCommandLine(argc, argv, options))
    return *code;
  if (options.layout) {
    options.question.format = options.scales;
    auto text = hw::explainScale(options.question);
    return text ? harness::print(*text, "layout") : finish(tl::unexpected<Error>(text.error()));
  }
  if (options.routes) {
    auto target = hw::requireTarget(options.compiler.target);
    return target ? harness::print(route::listRoutes(**target), "list")
                  : finish(tl::unexpected<Error>(target.error()));
  }
  if (options.quantize.verb != harness::QuantizeCommand::Verb::None) {
    auto text = harness::runQuantizeCommand(options.quantize);
    return text ? harness::print(*text, "report") : finish(tl::unexpected<Error>(text.error()));
  }
  if (int code = finish(tuning::readPlanFiles(options.compiler.plans)))
    return code;
  if (options.tune)
    return runner::tuneProgram(options);
  if (int code = finish(runner::predictOther(options)))
    return code;
  Compiler compiler(options.compiler);
  int code = finish(tuning::loadInput(compiler, options.input, options.run));
  if (code == 0 && !options.explore.empty())
    code = runner::exploreProgram(compiler, options);
  else if (code == 0)
    code = options.emit.empty() ? runner::runProgram(compiler, options)
                                : finish(runner::emitProgram(compiler, options));
  if (options.timePhases)
    printTimes(compiler);
  return code;
}
