//===- QuickElements.h - Exponentials and quotients without detours -------===//
//
// The exponential of a number up to 86 in magnitude is normal, so that a sum of exponents
// multiplies by its power of two. A quotient x / (1 + exp(y)) of |y| up to 41 needs none of the
// tests of QuickDivisions.cpp where x has a part in y: a large |x| makes |y| large, too, and a tiny
// one makes the divisor 2. An activation then takes two thirds of the instructions.
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
  /// Looks at the operations before `end`.
  QuickElements(mlir::Block &body, mlir::Operation *end);

  bool empty() const { return limits.empty(); }
  /// The largest magnitude of which the exponential is quick.
  float limitOf(mlir::Operation *exponential) const { return limits.lookup(exponential); }
  bool isQuickQuotient(mlir::Operation *op) const { return quotients.contains(op); }

private:
  llvm::DenseMap<mlir::Operation *, float> limits;
  llvm::DenseSet<mlir::Operation *> quotients;
};

} // namespace fp4
