//===- WarpColumns.h - Converted weights times the rows of a tile ---------===//
#pragma once

#include "Common/TileLines.h"
#include "WarpMma.h"

namespace fp4 {

/// mma.sync of converted weights. A wgmma of a warpgroup has the fragments of four instructions
/// with 16 rows each, so that code that makes its operand A or reads its sums sees no difference.
/// Sums are those of wgmma (fp4/Numerics/DenseMma.h).
///
/// Operand B has rows of a tile of 16-bit floats, or of e4m3, under a swizzle of 128, which
/// ldmatrix reads.
class WarpColumns {
public:
  WarpColumns(mlir::ImplicitLocOpBuilder &b, mlir::Value tile, pipe::SharedType type);

  /// The registers of columns 8 i .. 8 i + 7 for steps 2 `pair` and 2 `pair` + 1 of K, two each.
  llvm::SmallVector<mlir::Value> load(int64_t i, int64_t pair) const;
  /// Multiplies all columns in steps `first`, an even number, and up: as many as `weights` have
  /// words for, which is an even number too.
  void multiplyAll(llvm::ArrayRef<mlir::Value> weights, int64_t first,
                   llvm::MutableArrayRef<mlir::Value> sums) const;

private:
  mlir::ImplicitLocOpBuilder &b;
  mlir::Type element;
  int64_t rows;
  Int32 lane;
  TileLine line;
};

} // namespace fp4
