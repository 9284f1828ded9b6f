//===- fp4-reduce.cpp - The smallest program that still shows a bug -------===//
//
// Takes operations away from a .mlir file for as long as a script of the user finds what is left
// interesting (docs/Tools.md). `--opt-reduction-pass` also tries passes, ours among them.
//
//===----------------------------------------------------------------------===//

#include "fp4/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
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
