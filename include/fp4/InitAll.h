//===- InitAll.h - Registration of everything fp4 has ---------------------===//
//
// Tools, the plugin and programs that embed the compiler call these functions to register the fp4
// and pipe dialects, their passes and the named pipelines with MLIR.
//
//===----------------------------------------------------------------------===//

#pragma once

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace fp4 {

/// Adds the fp4 and pipe dialects to `registry`.
void registerDialects(mlir::DialectRegistry &registry);

/// Registers every pass of the project, and nothing of upstream.
void registerPasses();

/// Adds to `registry` the upstream dialects that fp4 programs are written in and lowered to, with
/// the interfaces (LLVM translations, NVVM target) that the lowering to PTX needs.
void registerUpstreamDialects(mlir::DialectRegistry &registry);

} // namespace fp4
