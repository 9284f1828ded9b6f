//===- DotOperands.h - Blocks of fp4 codes for dot products of threads ----===//
//
// The products of a block are summed exactly, whatever they are computed with:
//
//   integers   Twice an E2M1 value is an integer of at most 12, and dp4a adds four products
//              (IntegerDots.cpp).
//   halves     Where the target converts codes to f16, an fma adds two products. A sum of eight is
//   a
//              multiple of 1/4 of at most 288, which f16 holds (HalfDots.cpp).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Scalars.h"

#include <memory>

namespace fp4 {

class DotOperands {
public:
  /// Values that are computed once for a block of the lhs and serve all rows of the rhs.
  struct LhsBlock {
    llvm::SmallVector<mlir::Value> parts;
    mlir::Value start; ///< start of a sum; null where there is none
  };

  /// The cheaper ones of the target, for scales of f8E4M3FN or f8E8M0FNU.
  static std::unique_ptr<DotOperands> create(mlir::ImplicitLocOpBuilder &builder, Scalars &scalars,
                                             bool isE4M3);
  virtual ~DotOperands() = default;

  /// fp32 factors of the `count` low scale bytes of an i32, two at least if they are f8E4M3FN.
  llvm::SmallVector<mlir::Value> factors(mlir::Value scales, int64_t count);

  /// The codes of a block, of 16 or 32 in words (i32) of eight.
  virtual LhsBlock lhsBlock(llvm::ArrayRef<mlir::Value> words) = 0;
  virtual llvm::SmallVector<mlir::Value> rhsBlock(llvm::ArrayRef<mlir::Value> words) = 0;
  /// The sum of the products of two blocks (f32), times sumFactor(): a power of two.
  virtual mlir::Value sum(const LhsBlock &lhs, mlir::ValueRange rhs) = 0;
  virtual float sumFactor() const = 0;

protected:
  DotOperands(mlir::ImplicitLocOpBuilder &builder, Scalars &scalars, bool isE4M3)
      : b(builder), s(scalars), isE4M3(isE4M3) {}

  mlir::ImplicitLocOpBuilder &b;
  Scalars &s;

private:
  bool isE4M3;
};

std::unique_ptr<DotOperands> createIntegerDots(mlir::ImplicitLocOpBuilder &, Scalars &,
                                               bool isE4M3);
std::unique_ptr<DotOperands> createHalfDots(mlir::ImplicitLocOpBuilder &, Scalars &, bool isE4M3);

} // namespace fp4
