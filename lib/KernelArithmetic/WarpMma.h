//===- WarpMma.h - mma.sync of 16-bit floats and e4m3 ---------------------===//
//
// mma.sync.m16n8k16 with sums of f32, or m16n8k32 of e4m3, kind mxf8f6f4 with unit scales, whose
// words have four elements in the place of two. Lane l of a warp, with g = l / 4 and t = l % 4, has
// of
//
//   A   rows g and g + 8: words of columns 2t and 2t + 8, of row g first in each pair
//   B   column g: words of rows 2t and 2t + 8
//   C   row g, columns 2t and 2t + 1, and the same of row g + 8
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fp4 {

/// Rows of A, columns of B, and elements of K of an instruction.
inline constexpr int64_t kWarpRows = 16, kWarpColumns = 8, kWarpDepth = 16;
/// Sums of a thread, and its words of operands.
inline constexpr int64_t kWarpSums = 4, kWarpRegistersA = 4, kWarpRegistersB = 2;

/// Adds the product of `a` and `b`, words (i32) of two elements (f16 or bf16) or of four (e4m3), to
/// `sums` (f32).
void multiplyWarp(mlir::ImplicitLocOpBuilder &builder, mlir::Type element,
                  llvm::ArrayRef<mlir::Value> a, llvm::ArrayRef<mlir::Value> b,
                  llvm::MutableArrayRef<mlir::Value> sums);

/// Words of scales (fp4/ISA/WarpOperands.h), the place of the first one in them, and the thread id
/// of those of A; that of B is 0.
struct WarpScales {
  mlir::Value a, b;
  int64_t byte = 0, threadOfA = 0;
};
/// Adds the product of words that have scales: of eight elements e2m1, kind mxf4nvf4 with scales
/// ue4m3 of 16, or of four e4m3, kind mxf8f6f4 with scales ue8m0 of 32.
void multiplyScaledWarp(mlir::ImplicitLocOpBuilder &builder, mlir::Type element,
                        llvm::ArrayRef<mlir::Value> a, llvm::ArrayRef<mlir::Value> b,
                        const WarpScales &scales, llvm::MutableArrayRef<mlir::Value> sums);

} // namespace fp4
