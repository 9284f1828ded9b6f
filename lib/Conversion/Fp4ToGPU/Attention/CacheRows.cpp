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
    : b(kernel.body()), codes(kernel.input(codes)), scales(scales ? kernel.input(scales) : Value()),
      lanes(lanes) {
  auto type = cast<RankedTensorType>(codes.getType());
  elements = type.getShape().back();
  bits = type.getElementTypeBitWidth();
  Type scale = scales ? getElementTypeOrSelf(scales.getType()) : Type();
  if (type.getElementType() != element)
    halves.emplace(b, target, scale, element, type.getElementType());
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
  halves->keepTables(thread);
  halves->saveIntegers();
}

CacheRows::Values CacheRows::load(Int32 row, Int32 lane, int64_t behind) {
  int64_t bytes = chunk() * bits / 8, rowBytes = elements * bits / 8;
  Value first = address(b, address(b, codes, row, rowBytes), lane, bytes);
  Values loaded = loadWords(b, advance(b, first, behind * rowBytes), bytes);
  if (!scales)
    return loaded;
  int64_t count = std::max<int64_t>(1, chunk() / block);
  Value ofRow = address(b, scales, row, elements / block);
  Value place = advance(b, address(b, ofRow, lane * chunk() / block, 1), behind * elements / block);
  Value word = fp4::load(b, b.getIntegerType(8 * count), place, unsigned(count));
  if (count < 4)
    word = arith::ExtUIOp::create(b, b.getI32Type(), word);
  loaded.push_back(word);
  return loaded;
}

/// The factor of each unit of a chunk; the units of a block share one.
CacheRows::Values CacheRows::scaleFactors(Value word) {
  int64_t units = chunk() / kUnit, ofBlock = std::max<int64_t>(1, std::min(block, chunk()) / kUnit);
  Values factors = halves->factors(word, units / ofBlock), all;
  for (int64_t unit = 0; unit < units; ++unit)
    all.push_back(factors[size_t(unit / ofBlock)]);
  return all;
}

CacheRows::Values CacheRows::convert(ArrayRef<Value> words) {
  if (!halves)
    return Values(words);
  Values factors(size_t(chunk() / kUnit)), pairs;
  if (scales)
    factors = scaleFactors(words.back());
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
