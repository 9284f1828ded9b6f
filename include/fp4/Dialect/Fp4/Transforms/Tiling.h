//===- Tiling.h - Operations on a range of rows ---------------------------===//
#pragma once

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace fp4 {

/// Gives fp4.amax, fp4.hadamard, fp4.quantize and fp4.dequantize the TilingInterface of their rows;
/// registerDialects does it.
void registerTiling(mlir::DialectRegistry &registry);

} // namespace fp4
