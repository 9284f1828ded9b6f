//===- CacheRows.cpp - Keys or values in the registers of a warp ----------===//
#include "Attention/CacheRows.h"

#include "fp4/Numerics/BlockScaledGemm.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

/// Elements that are converted together, and the most bytes of an access.
static constexpr int64_t kUnit = 8, kWidestAccess = 16;

SmallVector<Value> fp4::loadWords(ImplicitLocOpBuilder &b, Value pointer, int64_t bytes) {
  int64_t access = std::gcd(bytes, kWidestAccess);
  SmallVector<Value> words;
  for (int64_t at = 0; at < bytes; at += access) {
    Value part = load(b, VectorType::get(access / 4, b.getI32Type()), advance(b, pointer, at),
                      unsigned(access));
    llvm::append_range(words, packedWords(b, part));
  }
  return words;
}

CacheRows::CacheRows(KernelBuilder &kernel, const hw::TargetModel &target, Value codes,
                     Value scales, Type element, int64_t lanes)
    : b(kernel.body()), s(b, target), element(element), codes(kernel.input(codes)),
      scales(scales ? kernel.input(scales) : Value()), lanes(lanes) {
  auto type = cast<RankedTensorType>(codes.getType());
  elements = type.getShape().back();
  bits = type.getElementTypeBitWidth();
  Type scale = scales ? getElementTypeOrSelf(scales.getType()) : Type();
  if (isa<Float4E2M1FNType>(type.getElementType()) && isa_and_nonnull<Float8E4M3FNType>(scale))
    this->element = b.getF16Type();
  if (type.getElementType() != element)
    halves.emplace(b, target, scale, this->element, type.getElementType());
  if (scale)
    block = halves->blockSize();
}

int CacheRows::exponent() const {
  using enum numerics::BlockFormat;
  if (bits != 4)
    return 0;
  return numerics::convertedExponent(block == 16 ? NVFP4 : MXFP4);
}

void CacheRows::begin(Int32 thread) {
  if (!halves)
    return;
  halves->saveIntegers();
  halves->keepTables(thread);
}

CacheRows::Values CacheRows::load(Int32 row, Int32 lane, int64_t behind) {
  int64_t bytes = chunk() * bits / 8, rowBytes = elements * bits / 8;
  Value first = address(b, address(b, codes, row, rowBytes), lane, bytes);
  Values loaded = loadWords(b, advance(b, first, behind * rowBytes), bytes);
  if (!scales)
    return loaded;
  int64_t count = scalesOfChunk();
  Value ofRow = address(b, scales, row, elements / block);
  Value place = advance(b, address(b, ofRow, lane * chunk() / block, 1), behind * elements / block);
  Value word = fp4::load(b, b.getIntegerType(8 * count), place, unsigned(count));
  if (count < 4)
    word = arith::ExtUIOp::create(b, b.getI32Type(), word);
  loaded.push_back(word);
  return loaded;
}

/// The factor of each unit of a chunk, given those of its blocks; the units of a block share one.
CacheRows::Values CacheRows::ofUnits(ArrayRef<Value> factors) const {
  Values all;
  auto units = size_t(chunk() / kUnit);
  for (size_t unit = 0; unit < units; ++unit)
    all.push_back(factors[unit * size_t(scalesOfChunk()) / units]);
  return all;
}

CacheRows::Values CacheRows::convert(ArrayRef<Value> words) {
  if (!halves)
    return Values(words);
  Values factors(size_t(chunk() / kUnit)), pairs;
  if (scales)
    factors = ofUnits(halves->factors(words.back(), scalesOfChunk()));
  size_t wordsOfUnit = size_t(kUnit * bits / 32);
  for (auto [unit, factor] : llvm::enumerate(factors))
    for (Value pair : halves->convert(words.slice(unit * wordsOfUnit, wordsOfUnit), factor))
      pairs.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
  return pairs;
}

int64_t CacheRows::elementOf(int64_t pair, int64_t half) const {
  constexpr int64_t pairs = kUnit / 2;
  if (!halves)
    return 2 * pair + half;
  return pair / pairs * kUnit + halves->order()[size_t(2 * (pair % pairs) + half)];
}

/// Codes of 4 bits of two rows are joined before they are converted: their bytes take turns in a
/// word. Others are joined as pairs of 16-bit floats.
CacheRows::Values CacheRows::convertRows(ArrayRef<Value> first, ArrayRef<Value> second) {
  Values words;
  if (!pairsBytes()) {
    for (auto [mine, theirs] : llvm::zip_equal(convert(first), convert(second)))
      for (uint32_t halves : {0x5410, 0x7632})
        words.push_back(s.permute(mine, theirs, halves));
    return words;
  }
  Values factors = ofUnits(halves->factorsOfRows(first.back(), second.back(), scalesOfChunk()));
  for (auto [unit, factor] : llvm::enumerate(factors))
    for (uint32_t bytes : {0x5140, 0x7362}) {
      Value joined = s.permute(first[unit], second[unit], bytes);
      for (Value pair : halves->convert(joined, factor))
        words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
    }
  return words;
}

int64_t CacheRows::elementOfRows(int64_t word) const {
  if (!pairsBytes())
    return elementOf(word / 2, word % 2);
  constexpr std::array<int64_t, 4> order = {0, 2, 1, 3}; // of the codes of two bytes of a row
  constexpr auto count = int64_t(order.size());
  return word / count * count + order[size_t(word % count)];
}
