//===- Softmax.h - Softmax of rows in plain operations -------------------===//
#pragma once

namespace mlir {
class Operation;
} // namespace mlir

namespace fp4 {

/// Replaces each linalg.softmax of f32 along its last dimension below `root` by the reductions and
/// elementwise operations that upstream defines it with. Returns false where there is none.
bool decomposeSoftmaxes(mlir::Operation *root);

} // namespace fp4
