//===- Inputs.cpp - Seeded input tensors ----------------------------------===//

#include "AdversarialBlocks.h"
#include "Random.h"

#include "fp4/Harness/Inputs.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/WeightLayout.h"
#include "fp4/Numerics/ByteWeights.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/PackedWeights.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <numeric>

namespace fp4::harness {

const std::vector<std::string> kDistributions = {"gaussian", "layer",       "large", "uniform",
                                                 "bf16",     "adversarial", "exact", "ones",
                                                 "zeros",    "arange"};
namespace {

constexpr unsigned kBlock = 16;
constexpr float kMagnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

/// Element i of a row-major tensor whose rows have `columns` elements.
using Generator = std::function<float(uint64_t i)>;

/// The random numbers of argument `index`.
Random streamOf(uint64_t seed, unsigned index) {
  return Random(seed * 0x2545f4914f6cdd1d + index);
}

/// Values that quantize exactly. One element of each scale block of 16 is +-6 (hence of each scale
/// block of 32 too), so that the block scale is 6/6 times the tensor's and every code stands for
/// its own value.
Generator exactValues(Random &random, uint64_t columns) {
  auto peak = std::make_shared<uint64_t>(0);
  return [&random, columns, peak](uint64_t i) {
    uint64_t column = i % columns;
    if (column % kBlock == 0)
      *peak = column + random.below(uint32_t(std::min<uint64_t>(kBlock, columns - column)));
    uint32_t bits = random.below(16);
    float magnitude = column == *peak ? 6 : kMagnitudes[bits & 7];
    return bits & 8 ? -magnitude : magnitude;
  };
}

/// Values of eight significant bits, scale blocks over nine binades, and the largest magnitude, no
/// power of two, in front. Quantizers that spell their arithmetic differently differ in such data,
/// and hardly in random numbers of 24 bits.
Generator bf16Values(Random &random) {
  return [&random, exponent = 0](uint64_t i) mutable {
    const double normal = random.normal();
    if (i == 0)
      return float(8 * (1 + double(2 * random.below(64) + 1) / 128));
    if (i % kBlock == 0)
      exponent = -int(random.below(9));
    return numerics::roundTo(numerics::FloatType::BF16, float(std::ldexp(normal, exponent)));
  };
}

/// Returns true for floats that are normal(0, 1); the scales of some are larger or smaller than of
/// others.
bool isGaussian(std::string_view distribution) {
  return distribution == "gaussian" || distribution == "layer" || distribution == "large";
}

Generator floatGenerator(std::string_view distribution, Random &random, const Type &type,
                         uint64_t seed) {
  const uint64_t columns = type.shape.empty() ? 1 : std::max<uint64_t>(1, type.shape.back());
  if (distribution == "bf16")
    return bf16Values(random);
  if (distribution == "adversarial")
    return [values = adversarialMatrix(random, seed, type.elements() / columns, columns)](
               uint64_t i) { return values[i]; };
  if (isGaussian(distribution))
    return [&](uint64_t) { return float(random.normal()); };
  if (distribution == "uniform")
    return [&](uint64_t) { return float(2 * random.unit() - 1); };
  if (distribution == "exact")
    return exactValues(random, columns);
  if (distribution == "arange")
    return [](uint64_t i) { return float(i % 256); };
  return [value = distribution == "ones" ? 1.0f : 0.0f](uint64_t) { return value; };
}

void fillFloats(Tensor &tensor, const Generator &generate) {
  uint64_t count = tensor.type.elements();
  for (uint64_t i = 0; i < count; ++i) {
    float value = generate(i);
    if (tensor.type.element == ElementType::F32)
      tensor.as<float>()[i] = value;
    else
      tensor.as<uint16_t>()[i] = tensor.type.element == ElementType::BF16
                                     ? numerics::encodeBF16(value)
                                     : numerics::encodeF16(value);
  }
}

/// Encodes an E5M2, which is the upper byte of an f16: rounded to nearest even, infinities
/// excepted.
uint8_t encodeE5M2(float value) {
  constexpr uint16_t largest = 0x7B;
  const uint16_t half = numerics::encodeF16(value);
  const auto rounded = uint16_t((half & 0x7FFF) + 0x7F + (half >> 8 & 1));
  return uint8_t(half >> 15 << 7 | std::min<uint16_t>(rounded >> 8, largest));
}

bool isFloat8(ElementType type) {
  return type == ElementType::F8E4M3FN || type == ElementType::F8E5M2;
}

void fillFloat8(Tensor &tensor, const Generator &generate) {
  const bool isE4M3 = tensor.type.element == ElementType::F8E4M3FN;
  uint64_t i = 0;
  for (uint8_t &code : tensor.as<uint8_t>()) {
    const float value = generate(i++);
    code = isE4M3 ? numerics::encodeE4M3(value) : encodeE5M2(value);
  }
}

void fillCodes(Tensor &tensor, std::string_view distribution, Random &random) {
  uint64_t position = 0;
  for (uint8_t &pair : tensor.as<uint8_t>()) {
    uint64_t low = position++, high = position++;
    if (distribution == "zeros")
      pair = 0;
    else if (distribution == "ones")
      pair = 0x22; // code 2 is 1.0
    else if (distribution == "arange")
      pair = uint8_t((low & 15) | (high & 15) << 4);
    else
      pair = uint8_t(random.next() >> 56);
  }
}

/// Fills elements of a byte each: any codes of six bits, which all formats have and none is
/// infinite.
void fillWideCodes(Tensor &tensor, std::string_view distribution, Random &random) {
  uint8_t counter = 0;
  for (uint8_t &byte : tensor.as<uint8_t>())
    byte = distribution == "zeros"    ? uint8_t(0)
           : distribution == "arange" ? uint8_t(counter++ & 63)
                                      : uint8_t(random.below(64));
}

/// The byte of 2^exponent.
uint8_t scaleByte(ElementType type, int exponent) {
  return type == ElementType::F8E8M0FNU ? uint8_t(127 + exponent)
                                        : numerics::encodeE4M3(std::ldexp(1.0f, exponent));
}

/// Fills scales. Scales that vary are around a power of two; prepacked weights of a layer have
/// small ones.
void fillScales(Tensor &tensor, std::string_view distribution, Random &random,
                bool arePrepacked = false) {
  bool varied = isGaussian(distribution) || distribution == "uniform" || distribution == "bf16";
  constexpr int small = -6; // from 2^-9, the least number of E4M3, to 1/8
  constexpr int large = 5;  // to 2^8, the largest power of two of E4M3
  const int middle = distribution == "large"                   ? large
                     : distribution == "layer" && arePrepacked ? small
                                                               : 0;
  uint8_t zero = 0; // E8M0 has no zero: its byte 0 is 2^-127, the nearest there is
  for (uint8_t &byte : tensor.as<uint8_t>())
    byte = distribution == "adversarial"
               ? uint8_t(random.below(tensor.type.element == ElementType::F8E8M0FNU ? 256 : 128))
           : distribution == "zeros"
               ? zero
               : scaleByte(tensor.type.element, varied ? middle + int(random.below(7)) - 3 : 0);
}

/// Clears the padding of a tiled scale buffer.
void clearPadding(Tensor &tensor) {
  if (tensor.type.layout != Layout::Tiled128x4)
    return;
  auto bytes = tensor.as<uint8_t>();
  uint64_t rows = uint64_t(tensor.type.shape[0]), blocks = uint64_t(tensor.type.shape[1]);
  for (uint64_t i = 0; i < bytes.size(); ++i) {
    hw::ScalePosition position = hw::tiled128x4Position(i, blocks);
    if (position.row >= rows || position.block >= blocks)
      bytes[i] = 0;
  }
}

/// Makes prepacked weights, whose format the size of a tile tells.
Expected<Tensor> makeWeights(Tensor &tensor, std::string_view distribution, Random &random) {
  const std::vector<int64_t> &shape = tensor.type.shape;
  const bool isNV = shape.size() == 3 && shape.back() == hw::weightTileBytes(16);
  const bool isForBytes = shape.size() == 3 && shape.back() == hw::byteTileBytes;
  if (shape.size() != 3 || (!isNV && !isForBytes && shape.back() != hw::weightTileBytes(32)))
    return makeError(ErrorKind::Usage,
                     fmt::format("no input is made for {}", tensor.type.str()),
                     "tensors of i8 are prepacked weights, N/128 x K/64 tiles");
  const int64_t rows = shape[0] * hw::weightTileRows, columns = shape[1] * hw::weightColumnsOf(shape[2]);
  Tensor codes(Type{{rows, columns}, ElementType::F4E2M1FN});
  Tensor scales(isNV ? Type{{rows, columns / 16}, ElementType::F8E4M3FN}
                     : Type{{rows, columns / 32}, ElementType::F8E8M0FNU});
  fillCodes(codes, distribution, random);
  fillScales(scales, distribution, random, /*arePrepacked=*/true);
  const auto format = isNV ? numerics::BlockFormat::NVFP4 : numerics::BlockFormat::MXFP4;
  const auto powers = tensor.type.layout == Layout::WgmmaRows ? numerics::PowersOf::Rows
                                                              : numerics::PowersOf::Tiles;
  const std::span<const uint8_t> codeBytes = codes.as<uint8_t>(), scaleBytes = scales.as<uint8_t>();
  FP4_ASSIGN(auto packed, isForBytes
                              ? numerics::packByteWeights(codeBytes, scaleBytes, uint64_t(rows),
                                                          uint64_t(columns), powers)
                              : numerics::packWeights(format, codeBytes, scaleBytes, uint64_t(rows),
                                                      uint64_t(columns)));
  std::ranges::copy(packed, tensor.as<uint8_t>().begin());
  return std::move(tensor);
}

} // namespace

void clearTilePadding(Tensor &tensor, uint64_t blocks) {
  auto bytes = tensor.as<uint8_t>();
  for (uint64_t i = 0; i < bytes.size(); ++i)
    if (hw::tiled128x4Position(i, blocks).block >= blocks)
      bytes[i] = 0;
}

Tensor makeRowNumbers(const Type &type, int64_t rows, uint64_t seed, unsigned index) {
  Random random = streamOf(seed, index);
  Tensor tensor(type);
  for (int64_t &row : tensor.as<int64_t>())
    row = int64_t(random.below(uint32_t(std::max<int64_t>(rows, 1))));
  return tensor;
}

Tensor makeSlots(const Type &type, int64_t rows, uint64_t seed, unsigned index) {
  Random random = streamOf(seed, index);
  std::vector<int64_t> free(static_cast<size_t>(rows));
  std::iota(free.begin(), free.end(), 0);
  Tensor tensor(type);
  size_t number = 0;
  for (int64_t &slot : tensor.as<int64_t>()) {
    slot = -1;
    if (++number % 7 == 0 || free.empty())
      continue;
    std::swap(free[random.below(uint32_t(free.size()))], free.back());
    slot = free.back();
    free.pop_back();
  }
  return tensor;
}

Tensor makeOffsets(const Type &type, int64_t rows, uint64_t seed, unsigned index) {
  Random random = streamOf(seed, index);
  Tensor tensor(type);
  const std::span<int64_t> offsets = tensor.as<int64_t>();
  for (int64_t &offset : offsets)
    offset = int64_t(random.below(uint32_t(rows) + 1));
  std::ranges::sort(offsets);
  return tensor;
}

/// Makes the state of a random number generator: seed, offset.
static void fillState(Tensor &tensor, uint64_t seed, uint64_t offset) {
  const std::span<uint64_t> words = tensor.as<uint64_t>();
  std::ranges::fill(words, offset);
  words[0] = seed;
}

/// Fills a tensor with ids from -1, which is none, to 63.
static void fillIds(Tensor &tensor, Random &random) {
  constexpr uint32_t count = 65;
  for (int32_t &id : tensor.as<int32_t>())
    id = int32_t(random.below(count)) - 1;
}

Expected<Tensor> makeInput(const Type &type, std::string_view distribution, uint64_t seed,
                           unsigned index, bool isFactor) {
  if (std::find(kDistributions.begin(), kDistributions.end(), distribution) == kDistributions.end())
    return makeError(ErrorKind::Usage, fmt::format("unknown distribution '{}'", distribution),
                     fmt::format("choose one of {}", fmt::join(kDistributions, ", ")));
  Random random = streamOf(seed, index);
  Tensor tensor(type);
  if (isFactor && isFloat8(type.element)) {
    fillFloat8(tensor, floatGenerator(distribution, random, type, seed + index));
    return tensor;
  }
  switch (type.element) {
  case ElementType::I64:
    fillState(tensor, seed, index);
    break;
  case ElementType::I32:
    fillIds(tensor, random);
    break;
  case ElementType::F4E2M1FN:
    fillCodes(tensor, distribution, random);
    break;
  case ElementType::F6E2M3FN:
  case ElementType::F6E3M2FN:
  case ElementType::F8E5M2:
    fillWideCodes(tensor, distribution, random);
    break;
  case ElementType::I8:
    return makeWeights(tensor, distribution, random);
  case ElementType::F8E4M3FN:
  case ElementType::F8E8M0FNU:
    fillScales(tensor, distribution, random);
    clearPadding(tensor);
    break;
  default:
    if (type.shape.empty() && distribution != "zeros" && distribution != "adversarial")
      distribution = "ones";
    fillFloats(tensor, floatGenerator(distribution, random, type, seed + index));
  }
  return tensor;
}

} // namespace fp4::harness
