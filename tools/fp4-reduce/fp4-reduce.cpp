//===- fp4-reduce.cpp - The smallest program that still shows a bug -------===//
//
// Takes operations away from a .mlir file for as long as a script of the user finds what is left
// interesting (docs/Tools.md). `--opt-reduction-pass` also tries passes, ours among them.
//
//===----------------------------------------------------------------------===//

#include "../Help.h"

#include "fp4/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

/// What --help shows.
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
  docs/Tools.md has an example.
)";

int main(int argc, char **argv) {
  if (fp4::printHelp(llvm::ArrayRef(argv, argc), kHelp))
    return 0;
  fp4::askForAllOptions(llvm::MutableArrayRef(argv, argc));
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  fp4::registerUpstreamDialects(registry);
  fp4::registerDialects(registry);
  mlir::registerAllPasses();
  fp4::registerPasses();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
