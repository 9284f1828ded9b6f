//===- LaneTranspose.h - The rows of a warp as columns --------------------===//
//
// Each of 32 lanes has a row of as many elements in registers, and gets the column of its number.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Scalars.h"

namespace fp4 {

/// The column of this lane, of rows that are vectors of 32 elements of 16 or 32 bits. The low bits
/// of `thread` (i32) are the lane.
mlir::Value transposeLanes(mlir::ImplicitLocOpBuilder &b, Scalars &s, mlir::Value row,
                           mlir::Value thread);

} // namespace fp4
