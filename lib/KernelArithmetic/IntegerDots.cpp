//===- IntegerDots.cpp - Dot products of fp4 codes as integers ------------===//
//
// A permutation looks up the bytes of four codes. A permutation gives zero for a code with its sign
// bit set, so one looks up the codes and one the codes with the signs inverted. Bytes of the rhs
// have an offset of 12, which makes them positive; the sum over the lhs takes it away again.
//
//===----------------------------------------------------------------------===//
#include "DotOperands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp4;

/// A sum is kept in the fraction of an fp32 number, 1.5 * 2^23 plus the sum.
static constexpr uint32_t kSumBits = 0x4B400000;
static constexpr float kSumStart = 0x1.8p23f;

namespace {

class IntegerDots : public DotOperands {
public:
  IntegerDots(ImplicitLocOpBuilder &builder, Scalars &scalars, bool isE4M3)
      : DotOperands(builder, scalars, isE4M3) {}

  LhsBlock lhsBlock(ArrayRef<Value> words) override;
  SmallVector<Value> rhsBlock(ArrayRef<Value> words) override;
  Value sum(const LhsBlock &lhs, ValueRange rhs) override;
  float sumFactor() const override { return 4; }

private:
  SmallVector<Value> offsetBytes(Value codes);
  Value withoutOffset(Value bytes);
};

} // namespace

/// Twice the values of 8 codes plus 12, in order, in two words. Selectors are the four low nibbles
/// of a word: the sign bit of a code replicates the sign of the byte that the others choose, and no
/// byte of the tables has one.
SmallVector<Value> IntegerDots::offsetBytes(Value codes) {
  constexpr int64_t signs = 0x88888888;
  Value inverted = arith::XOrIOp::create(b, codes, s.integer(signs));
  auto lookUp = [&](int64_t low, int64_t high, Value selector) {
    return s.callIntrinsic("llvm.nvvm.prmt", b.getI32Type(),
                           {s.integer(low), s.integer(high), selector});
  };
  SmallVector<Value> result;
  for (int64_t shift : {0, 16}) {
    auto moved = [&](Value word) -> Value {
      return shift ? arith::ShRUIOp::create(b, word, s.integer(shift)).getResult() : word;
    };
    Value positive = lookUp(0x0F0E0D0C, 0x18141210, moved(codes));
    Value negative = lookUp(0x090A0B0C, 0x00040608, moved(inverted));
    result.push_back(arith::OrIOp::create(b, positive, negative));
  }
  return result;
}

/// Bytes from 0 to 24 become 116 to 140 and, with the sign inverted, -12 to 12: nothing is carried.
Value IntegerDots::withoutOffset(Value bytes) {
  Value moved = arith::AddIOp::create(b, bytes, s.integer(0x74747474));
  return arith::XOrIOp::create(b, moved, s.integer(0x80808080));
}

SmallVector<Value> IntegerDots::rhsBlock(ArrayRef<Value> words) {
  SmallVector<Value> bytes;
  for (Value word : words)
    llvm::append_range(bytes, offsetBytes(word));
  return bytes;
}

DotOperands::LhsBlock IntegerDots::lhsBlock(ArrayRef<Value> words) {
  constexpr int64_t minusOffset = 0xF4F4F4F4; // -12 in each byte
  LhsBlock block = {rhsBlock(words), s.integer(kSumBits)};
  for (Value &bytes : block.parts) {
    bytes = withoutOffset(bytes);
    block.start = s.callIntrinsic("llvm.nvvm.idp4a.s.s", b.getI32Type(),
                                  {s.integer(minusOffset), bytes, block.start});
  }
  return block;
}

Value IntegerDots::sum(const LhsBlock &lhs, ValueRange rhs) {
  Value sum = lhs.start;
  for (auto [offset, bytes] : llvm::zip_equal(rhs, lhs.parts))
    sum = s.callIntrinsic("llvm.nvvm.idp4a.u.s", b.getI32Type(), {offset, bytes, sum});
  return s.subtract(s.fromBits(sum), s.constant(kSumStart));
}

std::unique_ptr<DotOperands> fp4::createIntegerDots(ImplicitLocOpBuilder &builder, Scalars &scalars,
                                                    bool isE4M3) {
  return std::make_unique<IntegerDots>(builder, scalars, isE4M3);
}
