//===- LaneTranspose.cpp - The rows of a warp as columns ------------------===//
//
// Bits of the lane and of the number of an element change places, one of each at a time. Two
// threads whose lanes differ in that bit exchange the registers whose numbers do. With elements
// half as wide as registers, the last bit is that of the half.
//
//===----------------------------------------------------------------------===//
#include "LaneTranspose.h"
#include "SmallBuilders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

static constexpr int64_t kWarp = 32;

static Value hasBit(ImplicitLocOpBuilder &b, Value thread, int64_t bit) {
  Value found = arith::AndIOp::create(b, thread, constI32(b, bit));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, found, constI32(b, 0));
}

/// Bit `bit` of the lane changes places with bit `step` of the number of a word.
static void exchangeWords(ImplicitLocOpBuilder &b, SmallVector<Value> &words, Value thread,
                          int64_t bit, int64_t step) {
  Value isUpper = hasBit(b, thread, bit);
  auto choose = [&](Value x, Value y) { return arith::SelectOp::create(b, isUpper, x, y); };
  for (size_t i = 0; i < words.size(); ++i) {
    if (i & size_t(step))
      continue;
    Value &low = words[i], &high = words[i + size_t(step)];
    Value got = valueOfPartner(b, choose(low, high), bit);
    Value newLow = choose(got, low), newHigh = choose(high, got);
    low = newLow;
    high = newHigh;
  }
}

/// Bit 0 of the lane changes places with the half of a word.
static void exchangeHalves(ImplicitLocOpBuilder &b, Scalars &s, SmallVector<Value> &words,
                           Value thread) {
  Value isUpper = hasBit(b, thread, 1);
  for (Value &word : words) {
    Value got = valueOfPartner(b, word, 1);
    Value even = s.permute(word, got, 0x5410), odd = s.permute(got, word, 0x7632);
    word = arith::SelectOp::create(b, isUpper, odd, even);
  }
}

Value fp4::transposeLanes(ImplicitLocOpBuilder &b, Scalars &s, Value row, Value thread) {
  auto type = cast<VectorType>(row.getType());
  SmallVector<Value> words = packedWords(b, row);
  bool isPacked = type.getElementTypeBitWidth() == 16;
  auto count = int64_t(words.size());
  for (int64_t lane = kWarp / 2; lane > (isPacked ? 1 : 0); lane /= 2)
    exchangeWords(b, words, thread, lane, lane * count / kWarp);
  if (isPacked)
    exchangeHalves(b, s, words, thread);
  Value all = vector::FromElementsOp::create(b, VectorType::get(count, b.getI32Type()), words);
  return vector::BitCastOp::create(b, type, all);
}
