//===- StreamTable.h - Works of a stream-K GEMM ---------------------------===//
#pragma once

#include "Gemm.h"

namespace fp4 {

/// Sets what `gemm`, of which the tile is known, says of the works of `stream`.
void setStream(Gemm &gemm, const numerics::StreamK &stream);

/// The table of works as an argument of the kernel, a constant.
mlir::Value tableOfStream(mlir::OpBuilder &builder, mlir::Location loc, const Gemm &gemm);

} // namespace fp4
