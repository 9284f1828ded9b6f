//===- WarpTransform.h - Hadamard transforms of a tile by mma.sync --------===//
//
// Transforms the columns of a tile in shared memory where a transform is to be on the tensor core
// and the target has no tcgen05. A warp takes 16 columns. From 16 x 16 elements X the warp computes
// X^T H, where H has the signs of the transform and 1/4: ldmatrix.trans reads X^T as operand A, a
// thread makes its words of H once, and two mma.sync.m16n8k16 have one sum for each of 16 columns
// and 16 results. Rounded to bf16 they take the place of X, transposed: row c has the block of
// column c, so a thread reads a block as two chunks of 16 bytes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "TileQuantize/TileQuantize.h"

namespace fp4 {

/// Elements of a transform, and columns that a warp takes.
inline constexpr int64_t kWarpTransform = 16;

/// Transforms all columns of `elements`, which it holds as they were loaded, behind a barrier of
/// the CTA. Afterwards the lanes of a warp may read the blocks of its columns: those from 16 *
/// (thread / 32).
void emitWarpTransform(Scalars &scalars, mlir::ImplicitLocOpBuilder &b, ElementTile &elements,
                       Int32 thread, uint16_t signMask);

} // namespace fp4
