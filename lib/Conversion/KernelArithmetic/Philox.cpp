//===- Philox.cpp - Random words inside a kernel --------------------------===//
#include "Philox.h"

#include "SmallBuilders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp4;

namespace {

/// i32 expressions without the noise of their builders. All are unsigned.
class Words {
public:
  explicit Words(ImplicitLocOpBuilder &b) : b(b) {}

  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value add(Value x, uint32_t y) { return add(x, constI32(b, y)); }
  Value multiply(Value x, Value y) { return arith::MulIOp::create(b, x, y); }
  Value multiply(Value x, uint32_t y) { return multiply(x, constI32(b, y)); }
  Value divide(Value x, Value y) { return arith::DivUIOp::create(b, x, y); }
  Value divide(Value x, uint32_t y) { return divide(x, constI32(b, y)); }
  Value remainder(Value x, Value y) { return arith::RemUIOp::create(b, x, y); }
  Value remainder(Value x, uint32_t y) { return remainder(x, constI32(b, y)); }
  Value exclusiveOr(Value x, Value y) { return arith::XOrIOp::create(b, x, y); }

  Value wide(Value x) { return arith::ExtUIOp::create(b, b.getI64Type(), x); }
  Value low(Value x) { return arith::TruncIOp::create(b, b.getI32Type(), x); }
  Value high(Value x) { return low(arith::ShRUIOp::create(b, x, constI64(b, 32))); }

private:
  ImplicitLocOpBuilder &b;
};

} // namespace

PhiloxStream::PhiloxStream(ImplicitLocOpBuilder &builder, Value rng) : b(builder) {
  seed = load(b, b.getI64Type(), rng, 8);
  offset = load(b, b.getI64Type(), advance(b, rng, 8), 8);
}

RandomWords PhiloxStream::words(Value subsequence, Value draw) {
  constexpr unsigned rounds = 10;
  constexpr uint32_t multipliers[] = {0xD2511F53, 0xCD9E8D57}, weyl[] = {0x9E3779B9, 0xBB67AE85};
  Words w(b);
  Value counter = draw ? arith::AddIOp::create(b, offset, draw) : offset;
  RandomWords c = {w.low(counter), w.high(counter), w.low(subsequence), w.high(subsequence)};
  Value keys[] = {w.low(seed), w.high(seed)};
  for (uint32_t round = 0; round < rounds; ++round) {
    // One key addition per round from the seed itself, not from the key before: short chains.
    auto key = [&](int i) { return round ? w.add(keys[i], round * weyl[i]) : keys[i]; };
    auto product = [&](Value x, int i) -> Value {
      return arith::MulIOp::create(b, w.wide(x), constI64(b, multipliers[i]));
    };
    Value p0 = product(c[0], 0), p1 = product(c[2], 1);
    c = {w.exclusiveOr(w.exclusiveOr(w.high(p1), c[1]), key(0)), w.low(p1),
         w.exclusiveOr(w.exclusiveOr(w.high(p0), c[3]), key(1)), w.low(p0)};
  }
  return c;
}

SmallVector<Value> GroupRandom::words(Value row, Value block, int64_t blockSize) {
  Words w(b);
  SmallVector<Value> all;
  uint32_t groups = static_cast<uint32_t>(blockSize / 16);
  for (uint32_t i = 0; i < groups; ++i)
    llvm::append_range(all, groupWords(row, w.add(w.multiply(block, groups), i)));
  return all;
}

SmallVector<Value> GroupRandom::words(Value index, int64_t blockSize) {
  Words w(b);
  SmallVector<Value> all;
  uint32_t groups = static_cast<uint32_t>(blockSize / 16);
  for (uint32_t i = 0; i < groups; ++i)
    llvm::append_range(all, groupWords(w.add(w.multiply(index, groups), i)));
  return all;
}

RandomWords GroupRandom::groupWords(Value row, Value group) {
  if (side.mapping != numerics::PhiloxMapping::Element)
    return blockwiseWords(row, group);
  Words w(b);
  return groupWords(w.add(w.multiply(row, side.groupsPerRow), group));
}

RandomWords GroupRandom::groupWords(Value index) {
  Words w(b);
  if (side.mapping != numerics::PhiloxMapping::Element)
    return blockwiseWords(w.divide(index, side.groupsPerRow),
                          w.remainder(index, side.groupsPerRow));
  Value subsequence = w.wide(index);
  if (side.firstGroup)
    subsequence = arith::AddIOp::create(b, subsequence, side.firstGroup);
  if (side.columnwise)
    subsequence = arith::OrIOp::create(b, subsequence, constI64(b, int64_t(1) << 63));
  return philox.words(subsequence);
}

/// TransformerEngine's: 256 threads serve a tile of 128 x 128, 8 in a row of it.
RandomWords GroupRandom::blockwiseWords(Value row, Value group) {
  Words w(b);
  Value x = w.divide(group, 8), y = w.divide(row, 128), inTile = w.remainder(row, 128);
  Value slot = w.remainder(row, 32), draw = w.divide(inTile, 32);
  if (side.columnwise) {
    std::swap(x, y);
    slot = w.remainder(w.divide(row, 2), 32);
    draw = w.add(w.multiply(w.divide(inTile, 64), 2), w.remainder(row, 2));
    draw = w.add(draw, side.afterRowwise ? 4 : 0);
  }
  uint32_t tilesX = llvm::divideCeil(side.inputColumns, 128);
  Value thread = w.add(w.multiply(slot, 8), w.remainder(group, 8));
  Value tile = w.add(x, w.multiply(y, tilesX));
  return philox.words(w.wide(w.add(thread, w.multiply(tile, 256))), w.wide(draw));
}
