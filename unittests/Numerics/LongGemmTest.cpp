// GEMMs by instructions of K = 96 and of the double K: the model against the chain of its
// instructions, and within the bound of the reference.
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/DenseMma.h"
#include "fp4/Numerics/UE5M3.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace fp4;
using namespace fp4::numerics;
using hw::MmaDepth;

namespace {

struct Operands {
  std::vector<uint8_t> a, b, scalesA, scalesB;
  GemmProblem problem;

  Operands(BlockFormat format, uint64_t m, uint64_t n, uint64_t depth, uint32_t seed,
           MmaDepth mmaDepth = MmaDepth::K96) {
    std::mt19937 rng(seed);
    const bool power = isMX(format);
    const auto fill = [&](std::vector<uint8_t> &to, uint64_t count, bool scales) {
      for (uint64_t i = 0; i < count; ++i)
        to.push_back(uint8_t(scales             ? power ? 110 + rng() % 30 : 8 + rng() % 112
                             : isPacked(format) ? rng()
                                                : rng() % 2 * 128 + rng() % 0x78));
    };
    const unsigned perByte = isPacked(format) ? 2 : 1;
    fill(a, m * depth / perByte, false);
    fill(b, n * depth / perByte, false);
    fill(scalesA, m * depth / blockSizeOf(format), true);
    fill(scalesB, n * depth / blockSizeOf(format), true);
    problem.format = format;
    problem.a = {a.data(), scalesA.data(), m, 0, 0};
    problem.b = {b.data(), scalesB.data(), n, 0, 0};
    problem.depth = depth;
    problem.mmaDepth = mmaDepth;
    problem.threads = 1;
  }
};

TEST(LongGemm, IsAChainOfInstructions) {
  for (const unsigned k : {96u, 128u}) {
    Operands o(BlockFormat::NVFP4, 3, 5, 2 * k, 1, k == 96 ? MmaDepth::K96 : MmaDepth::Double);
    const auto model = gemmMmaModel(o.problem);
    ASSERT_TRUE(model);
    for (unsigned i = 0; i < 3; ++i)
      for (unsigned j = 0; j < 5; ++j) {
        float c = 0;
        for (unsigned s = 0; s < 2; ++s)
          c = fp4MmaElement(hw::ScaleType::UE4M3, hw::ScaleVector::X4, &o.a[(2 * i + s) * k / 2],
                            &o.scalesA[(2 * i + s) * k / 16], &o.b[(2 * j + s) * k / 2],
                            &o.scalesB[(2 * j + s) * k / 16], c, k);
        EXPECT_EQ((*model)[i * 5 + j], c);
      }
  }
}

// Groups of 16 products of 1 * 1 under scales of 1; a scale of 32 elements is that of two groups.
TEST(LongGemm, KnownValues) {
  const std::vector<uint8_t> ones(64, 0x22), e4m3(8, 0x38), powers = {127, 128, 129, 130};
  const auto element = [&](hw::ScaleType type, hw::ScaleVector vector,
                           const std::vector<uint8_t> &scales, float c, unsigned k) {
    return fp4MmaElement(type, vector, ones.data(), scales.data(), ones.data(), scales.data(), c,
                         k);
  };
  using enum hw::ScaleType;
  using enum hw::ScaleVector;
  EXPECT_EQ(element(UE4M3, X4, e4m3, 0.5f, 96), 96.5f);
  EXPECT_EQ(element(UE8M0, X2, powers, 0, 96), 32 * (1 + 4 + 16.f));
  EXPECT_EQ(element(UE4M3, X4, e4m3, 0.5f, 128), 128.5f);
  EXPECT_EQ(element(UE8M0, X2, powers, 0, 128), 32 * (1 + 4 + 16 + 64.f));
  // 1.0, 2^-17 (subnormal), 114688 and NaN of ue5m3.
  EXPECT_EQ(element(UE5M3, X4, std::vector<uint8_t>(8, 0x78), 0.5f, 128), 128.5f);
  EXPECT_EQ(element(UE5M3, X4, std::vector<uint8_t>(8, 0x01), 0, 128), 128 * 0x1p-34f);
  EXPECT_EQ(element(UE5M3, X4, std::vector<uint8_t>(8, 0xFE), 0, 64), 64 * 114688.f * 114688.f);
  EXPECT_TRUE(std::isnan(element(UE5M3, X4, std::vector<uint8_t>(8, 0xFF), 0, 64)));
  EXPECT_EQ(decodeUE5M3(0x01), 0x1p-17f);
  EXPECT_EQ(decodeUE5M3(0x08), 0x1p-14f);
  EXPECT_EQ(decodeUE5M3(0xFE), 114688.f);
  EXPECT_TRUE(std::isnan(decodeUE5M3(0xFF)));
}

// An instruction of two scale blocks of bytes is the definition of 64 factors, scales included: a
// sum that cancels within it keeps what two instructions of K = 32 lose.
TEST(LongGemm, BytesAreSumsOf64Products) {
  Operands o(BlockFormat::MXFP8E4M3, 7, 24, 192, 5, MmaDepth::Double);
  const auto model = gemmMmaModel(o.problem);
  ASSERT_TRUE(model);
  const auto factors = [](const std::vector<uint8_t> &codes, const std::vector<uint8_t> &scales,
                          unsigned row, unsigned k, std::vector<Factor> &out) {
    for (unsigned block = k / 32; block < k / 32 + 2; ++block) {
      FactorRow decoded;
      decodeFactors(hw::MmaType::E4M3, &codes[row * 192 + 32 * block], true, false, decoded);
      for (Factor f : decoded) {
        f.exponent = int16_t(f.exponent + scales[row * 6 + block] - 127);
        out.push_back(f);
      }
    }
  };
  for (unsigned i = 0; i < 7; ++i)
    for (unsigned j = 0; j < 24; ++j) {
      uint32_t c = 0;
      for (unsigned k = 0; k < 192; k += 64) {
        std::vector<Factor> a, b;
        factors(o.a, o.scalesA, i, k, a);
        factors(o.b, o.scalesB, j, k, b);
        c = denseElement(a, b, 2 * fractionBits(hw::MmaType::E4M3), 0, hw::AccumulatorType::F32, c);
      }
      EXPECT_EQ(std::bit_cast<uint32_t>((*model)[i * 24 + j]), c) << i << ", " << j;
    }
}

// K ends within an instruction; the sums differ in bits from those of usual instructions, and lie
// within the bound.
TEST(LongGemm, StaysWithinTheBound) {
  const struct {
    BlockFormat format;
    unsigned depth;
    MmaDepth mmaDepth;
  } cases[] = {{BlockFormat::NVFP4, 2000, MmaDepth::K96},
               {BlockFormat::MXFP4, 1568, MmaDepth::K96},
               {BlockFormat::NVFP4, 2000, MmaDepth::Double},
               {BlockFormat::MXFP4, 1568, MmaDepth::Double},
               {BlockFormat::MXFP8E4M3, 1568, MmaDepth::Double}};
  for (const auto &c : cases) {
    Operands o(c.format, 40, 24, c.depth, c.depth, c.mmaDepth);
    const auto model = gemmMmaModel(o.problem);
    const auto reference = gemmReference(o.problem);
    ASSERT_TRUE(model && reference);
    for (size_t i = 0; i < model->size(); ++i)
      EXPECT_LE(std::fabs((*model)[i] - reference->values[i]), reference->bounds[i]) << i;
    o.problem.mmaDepth = MmaDepth::Single;
    const auto shorter = gemmMmaModel(o.problem);
    ASSERT_TRUE(shorter);
    EXPECT_NE(std::memcmp(model->data(), shorter->data(), 4 * model->size()), 0);
  }
}

// Ranges of split-K are whole slices of 256, and so whole instructions of the double K.
TEST(LongGemm, RangesOfTheDoubleK) {
  for (BlockFormat format : {BlockFormat::NVFP4, BlockFormat::MXFP8E4M3}) {
    Operands o(format, 3, 8, 512, 7, MmaDepth::Double);
    o.problem.splits = 2;
    const auto together = gemmMmaModel(o.problem);
    ASSERT_TRUE(together);
    const unsigned perByte = isPacked(format) ? 2 : 1, block = blockSizeOf(format);
    std::vector<float> sum(3 * 8);
    for (unsigned half = 0; half < 2; ++half) {
      GemmProblem part = o.problem;
      part.splits = 1;
      part.depth = 256;
      part.a = {&o.a[half * 256 / perByte], &o.scalesA[half * 256 / block], 3, 512 / perByte,
                512 / block};
      part.b = {&o.b[half * 256 / perByte], &o.scalesB[half * 256 / block], 8, 512 / perByte,
                512 / block};
      const auto sums = gemmMmaModel(part);
      ASSERT_TRUE(sums);
      for (size_t i = 0; i < sum.size(); ++i)
        sum[i] = half ? sum[i] + (*sums)[i] : (*sums)[i];
    }
    EXPECT_EQ(*together, sum);
  }
}

TEST(LongGemm, RefusesWhatNoInstructionHas) {
  Operands o(BlockFormat::NVFP4, 2, 8, 512, 3);
  o.problem.splits = 2;
  EXPECT_FALSE(gemmMmaModel(o.problem));
  o.problem.splits = 1;
  EXPECT_TRUE(gemmMmaModel(o.problem));
  o.problem.core = TensorCore::Converted;
  EXPECT_FALSE(gemmMmaModel(o.problem));
  o.problem.mmaDepth = MmaDepth::Double;
  EXPECT_FALSE(gemmMmaModel(o.problem));
  o.problem.core = TensorCore::BlockScaled;
  EXPECT_TRUE(gemmMmaModel(o.problem));
  Operands mixed(BlockFormat::MXFP8E4M3, 2, 8, 64, 4, MmaDepth::Double);
  EXPECT_TRUE(gemmMmaModel(mixed.problem));
  mixed.problem.rhsFormat = BlockFormat::MXFP4;
  EXPECT_FALSE(gemmMmaModel(mixed.problem));
}

} // namespace
