//===- QuickDivisions.cpp - Quotients without detours ---------------------===//
//
// Scalars::QuickDivisions. A correctly rounded quotient is an approximate reciprocal r of the
// divisor y, refined once by fused operations, and the product with the dividend, corrected by its
// remainder. ptxas emits the same instructions for rcp.rn and div.rn on sm_90 and sm_100, and they
// round right whatever the significands are. Before them ptxas tests whether a step overflows or is
// subnormal, and then calls a subroutine. Here the test is a condition for a whole block.
//
//   1 / y    r' = r + r * (1 - y * r)                    y in [2^-126, 2^126)
//   x / y    q = x * r', q + r' * (x - y * q)            both in [2^-60, 2^60]
//
// The reciprocal of a constant is known; unittests/Compiler/QuickBlockTest.cpp divides every
// significand by those that recipes have.
//
//===----------------------------------------------------------------------===//
#include "Scalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace fp4;

Value Scalars::reciprocalApprox(Value x) {
  return callIntrinsic("llvm.nvvm.rcp.approx.ftz.f", x.getType(), {x});
}

Value Scalars::QuickDivisions::end() {
  s.quick = nullptr;
  return holds;
}

/// Negative numbers and NaN fail too: their patterns are above those of positive numbers.
void Scalars::QuickDivisions::expectBetween(Value x, float least, float most) {
  llvm::APFloat known(0.f);
  if (matchPattern(x, m_ConstantFloat(&known))) {
    float value = known.convertToFloat();
    if (least <= value && value <= most)
      return;
  }
  const auto low = llvm::bit_cast<int32_t>(least), high = llvm::bit_cast<int32_t>(most);
  Value above = arith::SubIOp::create(s.b, s.bits(x), s.integer(low));
  Value isInside =
      arith::CmpIOp::create(s.b, arith::CmpIPredicate::ule, above, s.integer(high - low));
  holds = holds ? Value(arith::AndIOp::create(s.b, holds, isInside)) : isInside;
}

Value Scalars::quickDivide(Value x, Value y) {
  auto fma = [&](Value p, Value q, Value r) -> Value { return LLVM::FMAOp::create(b, p, q, r); };
  llvm::APFloat known(0.f);
  Value negative = arith::NegFOp::create(b, y), inverse;
  if (matchPattern(y, m_ConstantFloat(&known))) {
    inverse = constant(1 / known.convertToFloat());
  } else {
    Value approximate = reciprocalApprox(y);
    inverse = fma(approximate, fma(negative, approximate, constant(1)), approximate);
    bool isReciprocal = matchPattern(x, m_OneFloat());
    quick->expectBetween(y, isReciprocal ? 0x1p-126f : 0x1p-60f, isReciprocal ? 0x1p125f : 0x1p60f);
    if (isReciprocal)
      return inverse;
  }
  if (!quick->trusted)
    quick->expectBetween(x, 0x1p-60f, 0x1p60f);
  Value quotient = multiply(x, inverse);
  return fma(inverse, fma(negative, quotient, x), quotient);
}
