//===- QuickElements.h - Exponentials and quotients without detours -------===//
//
// The exponential of a number up to 86 in magnitude is normal, so that a sum of exponents
// multiplies by its power of two. A quotient x / (1 + exp(y)) of |y| up to 41 needs none of the
// tests of QuickDivisions.cpp where x has a part in y: a large |x| makes |y| large, too, and a tiny
// one makes the divisor 2. An activation then takes two thirds of the instructions.
//
// A quotient x / (1 + exp(y)) that only products lead to results of bf16 needs no last bits: two
// bounds of it are enough where both give the same results, because rounding is monotone. The
// bounds are x times those of 1 / (1 + exp(y)), which come from ex2.approx and rcp.approx. For y up
// to 11 the approximate divisor differs from the reference's by 13 u at most, u = 2^-24 of it: by
// 8.9 u for the rounding of y * log2(e), the constant's, and the reference's steps
// (unittests/Numerics/ElementwiseTest.cpp), and by 4 u, two last places, for ex2.approx. The
// product with 1 + kBoundMargin rounds by 1 u, and rcp.approx has 2 u, one last place: so 16 u make
// a lower bound of the reciprocal, and kBoundFactor, 34 u, an upper one of it. About one result in
// 2700 differs between bounds, and one of ten groups of 8 elements and 32 lanes has some.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace fp4 {

/// The operations of a region that have quick steps, and for what numbers.
class QuickElements {
public:
  /// Looks at the operations before `end`, of which `results` are wanted.
  QuickElements(mlir::Block &body, mlir::Operation *end, mlir::ValueRange results);

  bool empty() const { return limits.empty(); }
  /// The largest magnitude of which the exponential is quick.
  float limitOf(mlir::Operation *exponential) const { return limits.lookup(exponential); }
  bool isQuickQuotient(mlir::Operation *op) const { return quotients.contains(op); }
  /// The exponential of the divisor of a quotient that bounds stand for, or null.
  mlir::math::ExpOp exponentialOfBounded(mlir::Operation *op) const { return bounded.lookup(op); }
  /// Returns true when `op` is in the divisor of such a quotient alone.
  bool isInBounded(mlir::Operation *op) const { return inside.contains(op); }

  bool hasBounds() const { return !bounded.empty(); }

  /// Divisors up to this are of exponents below 11.
  static constexpr float kMostDivisor = 59000;
  static constexpr float kBoundMargin = 0x10p-24f, kBoundFactor = 1 + 0x22p-24f;

private:
  llvm::DenseMap<mlir::Operation *, float> limits;
  llvm::DenseSet<mlir::Operation *> quotients, inside;
  llvm::DenseMap<mlir::Operation *, mlir::math::ExpOp> bounded;
};

} // namespace fp4
