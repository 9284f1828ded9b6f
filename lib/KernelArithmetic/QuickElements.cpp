//===- QuickElements.cpp - Exponentials and quotients without detours -----===//
#include "QuickElements.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace fp4;

namespace {

/// Exponents up to kOfDivisor give divisors below 2^60, and those up to kMost normal numbers.
constexpr float kOfDivisor = 41, kMost = 86;
/// Dividends between these need no test beside divisors from 1 to 2^60.
constexpr double kTiny = 0x1p-60, kLarge = 0x1p60;
/// Magnitudes below which 1 + exp(y) is 2.
constexpr double kVanishing = 0x1p-26;

/// Bounds of a magnitude. A NaN is in none, and fails every test of an exponential.
struct Magnitudes {
  double least = 0, most = std::numeric_limits<double>::infinity();
};

/// The steps between these bounds round a little.
Magnitudes rounded(double least, double most) {
  constexpr double slack = 0x1p-20, subnormal = 0x1p-100;
  return {least < subnormal ? 0 : least * (1 - slack), most * (1 + slack) + subnormal};
}

/// Bounds of `value` where those of `known` are given.
Magnitudes magnitudesOf(Value value, Value known, Magnitudes given) {
  if (value == known)
    return given;
  APFloat number(0.f);
  if (matchPattern(value, m_ConstantFloat(&number))) {
    double magnitude = std::abs(number.convertToDouble());
    return {magnitude, magnitude};
  }
  Operation *op = value.getDefiningOp();
  auto of = [&](unsigned i) { return magnitudesOf(op->getOperand(i), known, given); };
  if (isa_and_present<arith::NegFOp, arith::ExtFOp, math::AbsFOp>(op))
    return of(0);
  if (isa_and_present<arith::MulFOp>(op)) {
    Magnitudes x = of(0), y = of(1);
    double most = x.most * y.most;
    return rounded(x.least * y.least, std::isnan(most) ? Magnitudes().most : most);
  }
  if (isa_and_present<arith::AddFOp, arith::SubFOp>(op)) {
    Magnitudes x = of(0), y = of(1);
    double least = std::max(x.least - y.most, y.least - x.most);
    return rounded(std::isnan(least) ? 0 : std::max(least, 0.), x.most + y.most);
  }
  return {};
}

/// The exponential of a divisor 1 + exp(y).
math::ExpOp exponentialOf(Value divisor) {
  auto sum = divisor.getDefiningOp<arith::AddFOp>();
  for (unsigned i = 0; sum && i < 2; ++i)
    if (matchPattern(sum->getOperand(i), m_OneFloat()))
      return sum->getOperand(1 - i).getDefiningOp<math::ExpOp>();
  return {};
}

bool isQuick(Value dividend, math::ExpOp exponential) {
  if (matchPattern(dividend, m_OneFloat()))
    return true;
  auto ofExponent = [&](double least, double most) {
    return magnitudesOf(exponential.getOperand(), dividend, {least, most});
  };
  return ofExponent(0, kTiny).most < kVanishing &&
         ofExponent(kLarge, Magnitudes().most).least > kOfDivisor;
}

/// Returns true when only products are between `value` and results of bf16, which `end` or the
/// terminator alone reads.
bool leadsToBF16(Value value, ValueRange results, Operation *end) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isa<arith::MulFOp>(user))
      return leadsToBF16(user->getResult(0), results, end);
    if (!isa<arith::TruncFOp>(user) || !llvm::is_contained(results, user->getResult(0)))
      return false;
    return user->getResult(0).getType().isBF16() &&
           llvm::all_of(user->getResult(0).getUsers(), [&](Operation *reader) {
             return reader == end || reader->hasTrait<OpTrait::IsTerminator>();
           });
  });
}

} // namespace

QuickElements::QuickElements(Block &body, Operation *end, ValueRange results) {
  for (Operation &op : body) {
    if (&op == end)
      return;
    if (isa<math::ExpOp>(op) && op.getResult(0).getType().isF32() && !isApproximateExp(&op))
      limits[&op] = kMost;
    auto quotient = dyn_cast<arith::DivFOp>(op);
    math::ExpOp exponential = quotient ? exponentialOf(quotient.getRhs()) : math::ExpOp();
    if (!exponential || !limits.contains(exponential) || !isQuick(quotient.getLhs(), exponential))
      continue;
    limits[exponential] = kOfDivisor;
    quotients.insert(&op);
    Value divisor = quotient.getRhs();
    bool isAlone = bounded.empty() && exponential->hasOneUse() && divisor.hasOneUse();
    if (isAlone && leadsToBF16(quotient, results, end)) {
      bounded[&op] = exponential;
      inside.insert(exponential);
      inside.insert(divisor.getDefiningOp());
    }
  }
}
