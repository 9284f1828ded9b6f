// Weights in the order of a tensor core's registers: the form of scales, the place of every code,
// and the model of their GEMM with 16-bit floats.
#include "fp4/Numerics/PackedWeights.h"
#include "TestData.h"
#include "fp4/ISA/WeightLayout.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <set>

using namespace fp4;
using namespace fp4::numerics;

namespace {

constexpr uint64_t rows = 256, columns = 192;

struct Weights {
  std::vector<uint8_t> codes, scales;
  explicit Weights(BlockFormat format)
      : codes(rows * columns / 2), scales(rows * columns / blockSizeOf(format)) {
    test::Random random(7);
    for (uint8_t &byte : codes)
      byte = uint8_t(random.word());
    for (uint8_t &byte : scales)
      byte = uint8_t(isMX(format) ? random.word() : 1 + random.word() % 127);
  }
};

TEST(PackedWeights, SmallPowersAreToldInEveryPlace) {
  for (unsigned place = 0; place < 4; ++place)
    for (uint32_t other : {0x04040404u, 0x83838383u, 0x04830483u})
      for (uint32_t byte = 0; byte < 256; ++byte) {
        const uint32_t scales = (other & ~(0xFFu << 8 * place)) | byte << 8 * place;
        const uint32_t word = std::rotl(scales, int(hw::weightScaleRotation(32)));
        EXPECT_EQ(hw::powersThatAreNotSmall(word) == 0, byte >= 4 && byte <= 131) << scales;
      }
}

TEST(PackedWeights, EveryScaleComesBack) {
  for (unsigned scale = 0; scale < 128; ++scale) {
    const uint8_t wide = widenScale(uint8_t(scale));
    EXPECT_EQ(narrowScale(wide), scale);
    EXPECT_EQ(widenScale(uint8_t(scale | 0x80)), wide) << "the sign is ignored";
  }
}

TEST(PackedWeights, AScaleIsTheLowerBitsOfItself) {
  for (unsigned scale = 1; scale < 127; ++scale) {
    const uint16_t wide = widenScale(uint8_t(scale));
    const double exact = decodeUE4M3(uint8_t(scale));
    EXPECT_EQ(double(decodeBF16(uint16_t(0x7000 | wide << 4))), std::ldexp(exact, 119));
    EXPECT_EQ(double(decodeF16(uint16_t(wide << 7))), std::ldexp(exact, 7));
  }
  EXPECT_TRUE(std::isnan(decodeBF16(uint16_t(0x7000 | widenScale(0x7F) << 4))));
  EXPECT_TRUE(std::isnan(decodeF16(uint16_t(widenScale(0x7F) << 7))));
}

TEST(PackedWeights, TheBitsOfTwoWordsAreAllTaken) {
  std::set<unsigned> bits;
  unsigned taken = 0;
  for (const auto &pairs : hw::weightParts)
    for (const auto &parts : pairs) {
      uint32_t mask = 0;
      for (const hw::WeightPart &part : parts) {
        mask |= part.mask;
        for (unsigned bit = 0; bit < 32; ++bit)
          if (part.mask >> bit & 1) {
            bits.insert(part.word * 32 + (bit + 32 - part.rotation) % 32);
            ++taken;
          }
      }
      EXPECT_EQ(mask, hw::weightPairMask);
    }
  EXPECT_EQ(bits.size(), 64u);
  EXPECT_EQ(taken, 64u);
}

/// Computes prmt of two words.
uint32_t permute(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t both = uint64_t(high) << 32 | low;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= uint32_t(both >> (selector >> 4 * i & 7) * 8 & 0xFF) << 8 * i;
  return result;
}

/// One product of bf16 takes a pair of elements from two words
/// (lib/KernelArithmetic/PackedHalves.cpp).
TEST(PackedWeights, OneMaskTakesAPair) {
  const Weights weights(BlockFormat::MXFP4);
  const auto tiles = packWeights(BlockFormat::MXFP4, weights.codes, weights.scales, rows, columns);
  ASSERT_TRUE(tiles);
  for (unsigned i = 0; i < hw::weightWords; i += 2) {
    uint32_t word[2];
    std::memcpy(word, tiles->data() + hw::weightWord(i).byte, sizeof(word));
    const auto [x, y] = word;
    const uint32_t ofX = std::rotl(x, 2), ofY = y << 4;
    const uint32_t moved[] = {x, x << 6, std::rotl(x, 12), ofX ^ ofY,
                              y, y << 6, std::rotl(y, 10), permute(ofX, ofY, 0x2705)};
    for (unsigned j = 0; j < 8; ++j) {
      const hw::WeightWord at = hw::weightWord(i + j / 4);
      const uint64_t row = at.row + j % 2 * 8, column = at.column + j % 4 / 2 * 8;
      const uint8_t byte = weights.codes[(row * columns + column) / 2];
      const auto half = [](uint32_t code) { return (code & 7) << 6 | (code & 8) << 12; };
      EXPECT_EQ(moved[j] & hw::weightPairMask, half(byte & 15) | half(byte >> 4) << 16);
    }
  }
}

TEST(PackedWeights, UnpackIsTheInverse) {
  for (BlockFormat format : {BlockFormat::NVFP4, BlockFormat::MXFP4}) {
    const Weights weights(format);
    auto tiles = packWeights(format, weights.codes, weights.scales, rows, columns);
    ASSERT_TRUE(tiles);
    EXPECT_EQ(tiles->size(), 2u * 3 * hw::weightTileBytes(blockSizeOf(format)));
    auto back = unpackWeights(format, *tiles, rows, columns);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->codes, weights.codes);
    EXPECT_EQ(back->scales, weights.scales);
  }
}

TEST(PackedWeights, AZeroScaleMakesZeros) {
  Weights weights(BlockFormat::NVFP4);
  weights.scales[5] = 0;
  const auto tiles = packWeights(BlockFormat::NVFP4, weights.codes, weights.scales, rows, columns);
  const auto back = unpackWeights(BlockFormat::NVFP4, *tiles, rows, columns);
  std::memset(&weights.codes[5 * 8], 0, 8);
  EXPECT_EQ(back->codes, weights.codes);
  EXPECT_EQ(back->scales, weights.scales);
}

/// `weights` with zeros behind the first `n` rows and `k` columns, and the scales of such zeros.
Weights endingWithin(const Weights &weights, BlockFormat format, uint64_t n, uint64_t k) {
  Weights result = weights;
  const unsigned block = blockSizeOf(format);
  for (uint64_t i = 0; i < rows * columns; ++i)
    if (i / columns >= n || i % columns >= k) {
      result.codes[i / 2] = 0;
      result.scales[i / block] = hw::weightPaddingScale(block);
    }
  return result;
}

TEST(PackedWeights, ZerosFillTheLastTiles) {
  for (BlockFormat format : {BlockFormat::NVFP4, BlockFormat::MXFP4}) {
    const uint64_t n = 201, k = 160, block = blockSizeOf(format);
    const Weights weights = endingWithin(Weights(format), format, n, k);
    std::vector<uint8_t> codes, scales;
    for (uint64_t row = 0; row < n; ++row) {
      const auto ofCodes = weights.codes.begin() + int64_t(row * columns / 2);
      const auto ofScales = weights.scales.begin() + int64_t(row * columns / block);
      codes.insert(codes.end(), ofCodes, ofCodes + int64_t(k / 2));
      scales.insert(scales.end(), ofScales, ofScales + int64_t(k / block));
    }
    const auto tiles = packWeights(format, codes, scales, n, k);
    ASSERT_TRUE(tiles);
    EXPECT_EQ(*tiles, *packWeights(format, weights.codes, weights.scales, rows, columns));
    const auto back = unpackWeights(format, *tiles, n, k);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->codes, codes);
    EXPECT_EQ(back->scales, scales);
  }
}

TEST(PackedWeights, TheScaleBehindWeightsIsSmall) {
  const uint32_t word = hw::weightPaddingScale(32) * 0x01010101u;
  EXPECT_EQ(hw::powersThatAreNotSmall(std::rotl(word, int(hw::weightScaleRotation(32)))), 0u);
}

TEST(PackedWeights, PartsOfABlockAreAnError) {
  const std::vector<uint8_t> codes(64 * 72 / 2), scales(64 * 4);
  auto tiles = packWeights(BlockFormat::NVFP4, codes, scales, 64, 72);
  ASSERT_FALSE(tiles);
  EXPECT_EQ(tiles.error().message, "prepacked weights must have 4 bits and whole scale blocks, "
                                   "with their tiles, but got 64 x 72 of nvfp4");
}

/// Floats of 16 bits times n x k codes with scales; both stay the caller's.
GemmProblem problemOf(const std::vector<uint16_t> &x, FloatType type,
                      const std::vector<uint8_t> &codes, const std::vector<uint8_t> &scales,
                      uint64_t n, uint64_t k) {
  GemmProblem p;
  p.a = {reinterpret_cast<const uint8_t *>(x.data()), nullptr, x.size() / k, 0, 0};
  p.b = {codes.data(), scales.data(), n, 0, 0};
  p.depth = k;
  p.core = TensorCore::Converted;
  p.floatA = type;
  return p;
}

/// A GEMM whose sums are exact: the model gives them, with any number of splits.
TEST(FloatGemm, ExactSumsAreExact) {
  const uint64_t m = 3, n = 5, k = 576;
  test::Random random(3);
  std::vector<uint16_t> x(m * k);
  for (uint16_t &bits : x)
    bits = encodeBF16(float(int(random.word() % 9) - 4));
  std::vector<uint8_t> codes(n * k / 2), scales(n * k / 16, 0x38);
  for (uint8_t &byte : codes)
    byte = uint8_t(random.word());
  GemmProblem p = problemOf(x, FloatType::BF16, codes, scales, n, k);
  for (uint64_t splits : {1, 2, 3}) {
    p.splits = splits;
    const auto model = gemmMmaModel(p);
    const auto reference = gemmReference(p);
    ASSERT_TRUE(model && reference);
    for (uint64_t i = 0; i < m * n; ++i) {
      double sum = 0;
      for (uint64_t at = 0; at < k; ++at) {
        const uint64_t b = i % n * k + at;
        sum += double(decodeBF16(x[i / n * k + at])) * decodeE2M1(codes[b / 2] >> (b % 2 * 4) & 15);
      }
      EXPECT_EQ((*model)[i], sum);
      EXPECT_EQ(reference->values[i], sum);
    }
  }
}

/// Weights of 6 * 2^127, which bf16 does not hold, have finite products.
TEST(FloatGemm, TheLargestScalesAreFinite) {
  const std::vector<uint16_t> x(64, encodeBF16(0x1p-100f));
  const std::vector<uint8_t> codes(32, 0x77), scales(2, 254);
  GemmProblem p = problemOf(x, FloatType::BF16, codes, scales, 1, 64);
  p.format = BlockFormat::MXFP4;
  const auto model = gemmMmaModel(p);
  const auto reference = gemmReference(p);
  ASSERT_TRUE(model && reference);
  EXPECT_EQ(model->front(), 64 * 6 * 0x1p27f);
  EXPECT_EQ(reference->values.front(), 64 * 6 * 0x1p27);
  EXPECT_FALSE(reference->mayOverflow.front());
}

/// -2^-94 in the last place of K beside 2^-60, which is 2^-64 as a factor: a sum below the smallest
/// number. Behind prepacked weights no zeros are multiplied, which would take its sign.
TEST(FloatGemm, PrepackedWeightsEndWithK) {
  std::vector<uint16_t> x(64);
  x.back() = encodeBF16(-0x1p-94f);
  std::vector<uint8_t> codes(32, 0x22), scales(2, 127 - 60);
  GemmProblem p = problemOf(x, FloatType::BF16, codes, scales, 1, 64);
  p.format = BlockFormat::MXFP4;
  for (const auto [filled, sign] :
       {std::pair(0, false), std::pair(64, true), std::pair(128, false)}) {
    p.filledK = filled;
    const auto model = gemmMmaModel(p);
    ASSERT_TRUE(model);
    EXPECT_EQ(model->front(), 0);
    EXPECT_EQ(std::signbit(model->front()), sign) << filled;
  }
}

/// The model stays within the bound, also where sums cancel and factors are subnormal.
TEST(FloatGemm, TheModelIsWithinTheBound) {
  const uint64_t m = 4, n = 6, k = 1024;
  for (FloatType type : {FloatType::BF16, FloatType::F16}) {
    test::Random random(11);
    std::vector<uint16_t> x(m * k);
    for (uint16_t &bits : x) {
      const float value =
          std::ldexp(float(int(random.word() % 2001) - 1000), -10 - int(random.word() % 16));
      bits = type == FloatType::BF16 ? encodeBF16(value) : encodeF16(value);
    }
    const Weights weights(BlockFormat::NVFP4);
    std::vector<uint8_t> codes(n * k / 2), scales(n * k / 16);
    std::copy_n(weights.codes.begin(), codes.size(), codes.begin());
    for (size_t i = 0; i < scales.size(); ++i)
      scales[i] = uint8_t(weights.scales[i % weights.scales.size()] % 127);
    GemmProblem p = problemOf(x, type, codes, scales, n, k);
    p.splits = 2;
    const auto model = gemmMmaModel(p);
    const auto reference = gemmReference(p);
    ASSERT_TRUE(model && reference);
    for (uint64_t i = 0; i < m * n; ++i)
      EXPECT_LE(std::fabs((*model)[i] - reference->values[i]), reference->bounds[i]);
  }
}

/// Workers share tiles of 16 x 16, whose ranges are added as those of split_k are.
TEST(FloatGemm, WorkersShareTiles) {
  const uint64_t m = 20, n = 24, k = 1024;
  test::Random random(5);
  std::vector<uint16_t> x(m * k);
  for (uint16_t &bits : x)
    bits = encodeBF16(float(int(random.word() % 2001) - 1000));
  std::vector<uint8_t> codes(n * k / 2), scales(n * k / 16);
  for (uint8_t &byte : codes)
    byte = uint8_t(random.word());
  for (uint8_t &scale : scales)
    scale = uint8_t(0x28 + random.word() % 32);
  GemmProblem p = problemOf(x, FloatType::BF16, codes, scales, n, k);
  const auto bitsOf = [&](uint64_t splits, std::optional<StreamK> stream) {
    p.splits = splits;
    p.streamK = stream;
    const auto values = gemmMmaModel(p);
    const auto reference = gemmReference(p);
    EXPECT_TRUE(values && reference);
    for (uint64_t i = 0; i < m * n; ++i)
      EXPECT_LE(std::fabs((*values)[i] - reference->values[i]), reference->bounds[i]);
    return *values;
  };
  const std::vector<float> one = bitsOf(1, {}), two = bitsOf(2, {});
  EXPECT_NE(one, two);
  EXPECT_EQ(bitsOf(1, StreamK{8, 16, 16}), two); // two workers for each of four tiles
  EXPECT_EQ(bitsOf(1, StreamK{4, 16, 16}), one);
  // Sixteen slices for three workers: the second tile has a range of one and one of three, the
  // third two of two, and the others are whole.
  const std::vector<float> shared = bitsOf(1, StreamK{3, 16, 16});
  for (uint64_t i = 0; i < m * n; ++i)
    if (const uint64_t tile = i / n / 16 + i % n / 16 * 2; tile != 1)
      ASSERT_EQ(shared[i], (tile == 2 ? two : one)[i]) << i;
  p.floatA.reset(); // and where both operands are converted nothing is shared
  p.streamK = StreamK{3, 16, 16};
  EXPECT_FALSE(gemmMmaModel(p));
}

TEST(FloatGemm, WhatNoTensorCoreMultipliesIsAnError) {
  GemmProblem p;
  p.floatA = FloatType::F16;
  p.format = BlockFormat::MXFP6E2M3;
  p.core = TensorCore::Converted;
  p.depth = 32;
  const auto result = gemmMmaModel(p);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "a without scales must be bf16 beside elements of 4 or 6 bits, "
                                    "or f16 beside those of 4, of a tensor core of 16-bit floats");
  p.floatA = FloatType::BF16;
  p.format = BlockFormat::MXFP8E5M2;
  EXPECT_FALSE(gemmMmaModel(p));
  p.format = BlockFormat::MXFP6E3M2;
  const std::vector<uint8_t> a(64), codes(32, 0x1F), scales(1, 127); // 32 times 28
  p.a = {a.data(), nullptr, 1};
  p.b = {codes.data(), scales.data(), 1};
  EXPECT_TRUE(gemmMmaModel(p));
}

} // namespace
