//===- HalfDots.cpp - Dot products of fp4 codes in f16 --------------------===//
//
// A conversion makes two f16 of a byte of codes, and the even and the odd ones are summed apart.
// Each half of such a sum has eight products of at most 36. The two halves, and those of the two
// sums of a block of 32, are added in f32.
//
//===----------------------------------------------------------------------===//
#include "DotOperands.h"
#include "InlinePtx.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp4;

/// Pairs of products that a sum of f16 holds exactly.
static constexpr size_t kExactPairs = 8;

namespace {

class HalfDots : public DotOperands {
public:
  HalfDots(ImplicitLocOpBuilder &builder, Scalars &scalars, bool isE4M3)
      : DotOperands(builder, scalars, isE4M3) {}

  LhsBlock lhsBlock(ArrayRef<Value> words) override { return {rhsBlock(words), Value()}; }
  SmallVector<Value> rhsBlock(ArrayRef<Value> words) override;
  Value sum(const LhsBlock &lhs, ValueRange rhs) override;
  float sumFactor() const override { return 1; }
};

} // namespace

SmallVector<Value> HalfDots::rhsBlock(ArrayRef<Value> words) {
  SmallVector<Value> pairs;
  for (Value word : words)
    llvm::append_range(pairs, widenE2M1(b, word));
  return pairs;
}

Value HalfDots::sum(const LhsBlock &lhs, ValueRange rhs) {
  Value total;
  for (size_t first = 0; first < rhs.size(); first += kExactPairs) {
    Value halves;
    for (size_t i = first; i < first + kExactPairs; ++i)
      halves = halves ? LLVM::FMAOp::create(b, halves.getType(), lhs.parts[i], rhs[i], halves)
                      : arith::MulFOp::create(b, lhs.parts[i], rhs[i]).getResult();
    for (int64_t lane : {0, 1}) {
      Value half = s.extend(halves, lane);
      total = total ? s.add(total, half) : half;
    }
  }
  return total;
}

std::unique_ptr<DotOperands> fp4::createHalfDots(ImplicitLocOpBuilder &builder, Scalars &scalars,
                                                 bool isE4M3) {
  return std::make_unique<HalfDots>(builder, scalars, isE4M3);
}
