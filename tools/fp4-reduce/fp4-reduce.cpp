//===- fp4-reduce.cpp - The smallest program that still shows a bug -------===//
//
// A tool that takes operations away from a .mlir file for as long as a script of the user finds the
// rest interesting (docs/guides/tools.md). `--opt-reduction-pass` also tries passes, those of fp4 among
// them.
//
//===----------------------------------------------------------------------===//

#include "../Help.h"

#include "fp4/InitAll.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

/// The text of --help.
constexpr const char *kHelp = R"(fp4-reduce takes operations away from a program for as long as a script finds the rest interesting.

  fp4-reduce FILE --reduction-tree='traversal-mode=0 test=SCRIPT'
                                    take functions and operations away
  fp4-reduce FILE --opt-reduction-pass='opt-pass=PASS test=SCRIPT'
                                    keep what the pass makes, if it is smaller
  -o FILE                           write here instead of standard output
  --allow-unregistered-dialect      accept dialects that are not linked in

  SCRIPT gets the name of a file. Its exit code is 1 for an interesting program, else 0.
  A relative name of the script begins with ./

  --help-all                        every option, and every pass with its options
  docs/guides/tools.md has an example.
)";

namespace {
/// Hides errors of programs from which operations were taken away: users without an operand, MLIR
/// blocks without an end. The reduction passes over such programs, so nobody needs to read these
/// errors. A program that was given may have the second error too, and then there is no other one.
class ErrorsOfRemains {
public:
  explicit ErrorsOfRemains(mlir::DiagnosticEngine &engine) : engine(engine) {
    handler = engine.registerHandler([this](mlir::Diagnostic &diagnostic) {
      std::string text = diagnostic.str();
      bool isOfRemains = llvm::StringRef(text).starts_with("null operand found") ||
                         llvm::StringRef(text).starts_with("block with no terminator");
      if (isOfRemains && !held)
        held.emplace(std::move(diagnostic));
      hasOthers |= !isOfRemains && diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
      return mlir::success(isOfRemains);
    });
  }
  ~ErrorsOfRemains() { engine.eraseHandler(handler); }

  /// Reports why the reduction failed, if no other error did.
  void explainFailure() {
    engine.eraseHandler(handler);
    if (!hasOthers && held)
      engine.emit(std::move(*held));
  }

private:
  mlir::DiagnosticEngine &engine;
  mlir::DiagnosticEngine::HandlerID handler;
  std::optional<mlir::Diagnostic> held; ///< first of the diagnostics
  bool hasOthers = false;
};
} // namespace

int main(int argc, char **argv) {
  if (fp4::printHelp(llvm::ArrayRef(argv, argc), kHelp))
    return 0;
  fp4::askForAllOptions(llvm::MutableArrayRef(argv, argc));
  fp4::setVersion("fp4-reduce");
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  fp4::registerUpstreamDialects(registry);
  fp4::registerDialects(registry);
  mlir::registerAllPasses();
  fp4::registerPasses();
  mlir::MLIRContext context(registry);
  ErrorsOfRemains errors(context.getDiagEngine());
  bool failed = mlir::failed(mlir::mlirReduceMain(argc, argv, context));
  if (failed)
    errors.explainFailure();
  return failed;
}
