//===- fp4-lsp-server.cpp - The language server of .mlir files ------------===//
//
// An editor that speaks the Language Server Protocol starts this program and gets the errors of the
// verifiers while a file is written, the types of values under the cursor, and jumps from a use to
// its definition. The extension of MLIR for VS Code takes it as its setting `mlir.server_path`
// (docs/guides/tools.md).
//
//===----------------------------------------------------------------------===//

#include "../Help.h"

#include "fp4/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

/// The text of --help.
constexpr const char *kHelp = R"(fp4-lsp-server speaks the Language Server Protocol on standard input and output, for .mlir files.

An editor starts it without arguments; the extension MLIR of VS Code takes it as its setting
mlir.server_path.

  --log=error|info|verbose          messages on standard error
  --pretty                          write JSON on several lines
  --lit-test                        read messages that are separated by lines of // -----

  --help-all                        every option
  docs/guides/tools.md says how to set up an editor.
)";

int main(int argc, char **argv) {
  if (fp4::printHelp(llvm::ArrayRef(argv, argc), kHelp))
    return 0;
  fp4::askForAllOptions(llvm::MutableArrayRef(argv, argc));
  fp4::setVersion("fp4-lsp-server");
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  fp4::registerUpstreamDialects(registry);
  fp4::registerDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
