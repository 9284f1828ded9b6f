//===- Contraction.h - Block-scaled operations in linalg.generic ----------===//
//
// A linalg.generic in the terms of fp4: a matmul of two sides, of which one or both have scales, or
// the dequantization of one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace fp4 {

/// An input and its loops. The last loop of scales may be divided by the elements of a scale block.
struct LoopedInput {
  unsigned number;
  llvm::SmallVector<unsigned> loops;
  int64_t block = 1;

  /// The loops in front of the last `count`.
  llvm::ArrayRef<unsigned> before(unsigned count) const {
    return llvm::ArrayRef(loops).drop_back(count);
  }
};

/// The data of an operand and the scales of its scale blocks; 16-bit floats have no scales.
struct LoopedSide {
  LoopedInput data;
  std::optional<LoopedInput> scales;
  unsigned ownLoops = 0; ///< rows that the other side has not, between the batches and K
};

struct Contraction {
  LoopedSide lhs, rhs;
  unsigned batchLoops = 0; ///< loops that both sides begin with
  unsigned depthLoops = 1; ///< loops of K: (k), or (ko, kb)
};

/// The contraction that `op` is; otherwise a report at `op` why it is none.
mlir::FailureOr<Contraction> matchContraction(mlir::linalg::GenericOp op);

/// Returns true when every loop of `op` is parallel: no contraction, but a cast.
bool isElementwise(mlir::linalg::GenericOp op);
/// The side that an elementwise operation dequantizes, or a report at `op`.
mlir::FailureOr<LoopedSide> matchDequantization(mlir::linalg::GenericOp op);

} // namespace fp4
