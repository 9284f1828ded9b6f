//===- StreamTable.h - Works of a stream-K GEMM ---------------------------===//
#pragma once

#include "MatmulKernel.h"

namespace fp4 {

/// Sets what `shape`, of which the tile is known, says of the works of `stream`.
void setStream(MatmulShape &shape, const numerics::StreamK &stream);

/// The table of works as an argument of the kernel, a constant.
mlir::Value tableOfStream(mlir::OpBuilder &builder, mlir::Location loc, const MatmulShape &shape);

} // namespace fp4
