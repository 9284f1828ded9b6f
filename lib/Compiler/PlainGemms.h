//===- PlainGemms.h - Fused GEMMs as several operations ----------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace fp4 {

/// Replaces every matmul with an epilogue region by the operations from which fp4-fuse would make
/// it: one or two matmuls in f32, an elementwise operation, a quantizer and an amax. Attention with
/// such a region likewise becomes one of f32. The
/// replacement has references, and the same bits. Grouped matmuls stay: no operation on whole
/// tensors knows the group of a row.
void makeGemmsPlain(mlir::ModuleOp module);

} // namespace fp4
