//===- Philox.cpp - Random words inside a kernel --------------------------===//
#include "Philox.h"

#include "Int32.h"
#include "SmallBuilders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;

static Value wide(ImplicitLocOpBuilder &b, Value x) {
  return arith::ExtUIOp::create(b, b.getI64Type(), x);
}

static Value low(ImplicitLocOpBuilder &b, Value x) {
  return arith::TruncIOp::create(b, b.getI32Type(), x);
}

static Value high(ImplicitLocOpBuilder &b, Value x) {
  return low(b, arith::ShRUIOp::create(b, x, constI64(b, 32)));
}

PhiloxStream::PhiloxStream(ImplicitLocOpBuilder &builder, Value rng) : b(builder) {
  seed = load(b, b.getI64Type(), rng, 8);
  offset = load(b, b.getI64Type(), advance(b, rng, 8), 8);
}

RandomWords PhiloxStream::words(Value subsequence, Value draw) {
  constexpr unsigned rounds = 10;
  constexpr uint32_t multipliers[] = {0xD2511F53, 0xCD9E8D57}, weyl[] = {0x9E3779B9, 0xBB67AE85};
  Value counter = draw ? arith::AddIOp::create(b, offset, draw) : offset;
  RandomWords c = {low(b, counter), high(b, counter), low(b, subsequence), high(b, subsequence)};
  const Int32 keys[] = {Int32(b, low(b, seed)), Int32(b, high(b, seed))};
  for (uint32_t round = 0; round < rounds; ++round) {
    // Each key from the seed itself and not from the key before: short chains.
    auto mix = [&](Value product, Value word, int i) -> Value {
      uint32_t step = round * weyl[i];
      return Int32(b, high(b, product)) ^ Int32(b, word) ^ (keys[i] + static_cast<int64_t>(step));
    };
    auto product = [&](Value x, int i) -> Value {
      return arith::MulIOp::create(b, wide(b, x), constI64(b, multipliers[i]));
    };
    Value p0 = product(c[0], 0), p1 = product(c[2], 1);
    c = {mix(p1, c[1], 0), low(b, p1), mix(p0, c[3], 1), low(b, p0)};
  }
  return c;
}

SmallVector<Value> GroupRandom::words(Value row, Value block, int64_t blockSize) {
  SmallVector<Value> all;
  Int32 first = Int32(b, block) * (blockSize / 16);
  for (int64_t i = 0; i < blockSize / 16; ++i)
    llvm::append_range(all, groupWords(row, first + i));
  return all;
}

SmallVector<Value> GroupRandom::words(Value index, int64_t blockSize) {
  SmallVector<Value> all;
  Int32 first = Int32(b, index) * (blockSize / 16);
  for (int64_t i = 0; i < blockSize / 16; ++i)
    llvm::append_range(all, groupWords(first + i));
  return all;
}

RandomWords GroupRandom::groupWords(Value row, Value group) {
  if (side.mapping != numerics::PhiloxMapping::Element)
    return blockwiseWords(row, group);
  return groupWords(Int32(b, row) * Int32(b, side.groupsPerRow) + Int32(b, group));
}

RandomWords GroupRandom::groupWords(Value index) {
  if (side.mapping != numerics::PhiloxMapping::Element) {
    Int32 all(b, index), perRow(b, side.groupsPerRow);
    return blockwiseWords(all / perRow, all % perRow);
  }
  Value subsequence = wide(b, index);
  if (side.firstGroup)
    subsequence = arith::AddIOp::create(b, subsequence, side.firstGroup);
  if (side.columnwise)
    subsequence = arith::OrIOp::create(b, subsequence, constI64(b, int64_t(1) << 63));
  return philox.words(subsequence);
}

/// TransformerEngine's: 256 threads serve a tile of 128 x 128, 8 in a row of it.
RandomWords GroupRandom::blockwiseWords(Value rowValue, Value groupValue) {
  Int32 row(b, rowValue), group(b, groupValue);
  Int32 x = group / 8, y = row / 128, slot = row % 32, draw = row % 128 / 32;
  if (side.columnwise) {
    std::swap(x, y);
    slot = row / 2 % 32;
    draw = row % 128 / 64 * 2 + row % 2 + (side.afterRowwise ? 4 : 0);
  }
  Int32 thread = slot * 8 + group % 8;
  Int32 tile = x + y * llvm::divideCeil(side.inputColumns, 128);
  return philox.words(wide(b, thread + tile * 256), wide(b, draw));
}
