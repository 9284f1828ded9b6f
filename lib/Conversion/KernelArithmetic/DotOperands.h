//===- DotOperands.h - Blocks of fp4 codes for integer dot products -------===//
//
// Twice an E2M1 value is an integer of at most 12, so dp4a sums the products of a block exactly. A
// permutation looks up the bytes of four codes. It gives zero for a code with its sign bit set, so
// one looks up the codes and one the codes with the signs inverted. Bytes of one operand have an
// offset of 12, which makes them positive; the sum over the other operand takes it away again.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Scalars.h"

namespace fp4 {

class DotOperands {
public:
  /// For scales of f8E4M3FN or f8E8M0FNU.
  DotOperands(mlir::ImplicitLocOpBuilder &builder, Scalars &scalars, bool isE4M3)
      : b(builder), s(scalars), isE4M3(isE4M3) {}

  /// fp32 factors of the `count` scale bytes of an i32 from byte `first` on.
  llvm::SmallVector<mlir::Value> factors(mlir::Value scales, int64_t first, int64_t count);

  /// The bytes of 8 codes (i32), twice their values plus 12, in order in two i32.
  llvm::SmallVector<mlir::Value> offsetBytes(mlir::Value codes);
  /// The same without the offset, as signed bytes.
  llvm::SmallVector<mlir::Value> signedBytes(mlir::Value codes);

  /// What a block of products with `bytes`, signed ones, starts from, and what it ends with: four
  /// times the exact sum as fp32.
  mlir::Value start(mlir::ValueRange bytes);
  mlir::Value finish(mlir::Value sum);
  /// `sum` with the products of four bytes with an offset and four signed ones.
  mlir::Value add(mlir::Value offset, mlir::Value bytes, mlir::Value sum);

private:
  mlir::ImplicitLocOpBuilder &b;
  Scalars &s;
  bool isE4M3;
};

} // namespace fp4
