//===- Prologue.h - Elementwise operations that their readers compute -----===//
//
// A linalg.generic with the attribute `fp4.prologue` becomes no kernel. The kernels of its readers
// load its inputs and compute its elements, and no memory has its result. fp4-fuse writes the
// attribute; the operation keeps its meaning, so a pass that does not know it may ignore it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <string>

namespace fp4 {

/// A unit attribute of linalg.generic.
inline constexpr llvm::StringLiteral kPrologueAttr = "fp4.prologue";

/// The operation that computes `tensor` in the kernels of its readers; null where memory has it.
mlir::linalg::GenericOp prologueOf(mlir::Value tensor);

/// Why no kernel of a reader can compute `op`; empty where one can.
std::string whyNotPrologue(mlir::linalg::GenericOp op);

/// Why `reader`, which reads the result of such an operation, does not compute it; empty where it
/// does.
std::string whyNotReader(mlir::Operation *reader);

/// The first input that has an element for each of the result.
mlir::Value wholeInputOf(mlir::linalg::GenericOp op);

} // namespace fp4
