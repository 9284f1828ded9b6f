//===- fp4-lsp-server.cpp - The language server of .mlir files ------------===//
//
// An editor that speaks the Language Server Protocol starts this program and gets the errors of the
// verifiers while a file is written, the types of values under the cursor, and jumps from a use to
// its definition. The extension of MLIR for VS Code takes it as its setting `mlir.server_path`
// (docs/Tools.md).
//
//===----------------------------------------------------------------------===//

#include "fp4/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  fp4::registerUpstreamDialects(registry);
  fp4::registerDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
