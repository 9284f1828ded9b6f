//===- Bufferization.h - fp4 operations refuse to be bufferized -----------===//
#pragma once

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace fp4 {

/// Makes one-shot-bufferize fail at every fp4 operation; registerDialects does it.
void registerBufferization(mlir::DialectRegistry &registry);

} // namespace fp4
