// GEMMs whose operands are converted to 16-bit floats: the conversion code by code, the model
// against the definition of one instruction, and the bound.
#include "TestData.h"
#include "fp4/ISA/FragmentLayout.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/DenseMma.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/UE8M0.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;

namespace {

TEST(ConvertElement, NVFP4IsExactInF16) {
  for (unsigned code = 0; code < 16; ++code)
    for (unsigned scale = 0; scale < 127; ++scale) {
      const double exact = double(decodeE2M1(uint8_t(code))) * decodeUE4M3(uint8_t(scale));
      const double half =
          decodeF16(convertElement(BlockFormat::NVFP4, uint8_t(code), uint8_t(scale)));
      EXPECT_EQ(std::ldexp(half, 7), exact) << code << " " << scale;
    }
}

TEST(ConvertElement, SignOfAScaleIsIgnored) {
  EXPECT_EQ(convertElement(BlockFormat::NVFP4, 3, 0xB8),
            convertElement(BlockFormat::NVFP4, 3, 0x38));
}

TEST(ConvertElement, MXFP4IsExactInBF16ForEveryScale) {
  for (unsigned code = 0; code < 16; ++code)
    for (unsigned scale = 0; scale < 255; ++scale) {
      const double exact = std::ldexp(double(decodeE2M1(uint8_t(code))), int(scale) - 127);
      const double converted =
          decodeBF16(convertElement(BlockFormat::MXFP4, uint8_t(code), uint8_t(scale)));
      EXPECT_EQ(std::ldexp(converted, 4), exact) << code << " " << scale;
    }
}

TEST(ConvertElement, F16HasSomeScalesOfMXFP4) {
  const auto element = [](unsigned code, int exponent) -> double {
    const auto scale = uint8_t(127 + exponent);
    return decodeF16(convertElement(BlockFormat::MXFP4, FloatType::F16, uint8_t(code), scale));
  };
  for (unsigned code = 0; code < 16; ++code)
    for (int exponent = -30; exponent <= 6; ++exponent)
      EXPECT_EQ(element(code, exponent),
                std::ldexp(decodeE2M1(uint8_t(code)),
                           exponent + convertedExponent(BlockFormat::MXFP4, FloatType::F16)));
  EXPECT_EQ(element(7, -32), 0);
  EXPECT_EQ(element(7, -31), 6 * 0x1p-24);
  EXPECT_TRUE(std::isinf(element(1, 9)));
  EXPECT_TRUE(std::isnan(element(0, 9)));
  EXPECT_TRUE(std::isnan(element(0, 128)));
}

TEST(ConvertElement, BF16HoldsWhatIsBesideFloats) {
  for (unsigned code = 0; code < 16; ++code)
    for (unsigned scale = 0; scale < 255; ++scale) {
      const auto converted = [&](BlockFormat format) {
        return double(
            decodeBF16(convertElement(format, FloatType::BF16, uint8_t(code), uint8_t(scale))));
      };
      const double value = decodeE2M1(uint8_t(code));
      EXPECT_EQ(std::ldexp(converted(BlockFormat::MXFP4), 4), std::ldexp(value, int(scale) - 127))
          << code << " " << scale;
      if (scale < 127) {
        EXPECT_EQ(std::ldexp(converted(BlockFormat::NVFP4), 7), value * decodeUE4M3(uint8_t(scale)))
            << code << " " << scale;
      }
    }
}

/// The fused multiply-adds of bf16 of a thread: all operands are numbers of bf16.
TEST(ConvertElement, MXFP4IsOneFusedMultiplyAdd) {
  const auto isBF16 = [](double x) { return decodeBF16(encodeBF16(float(x))) == x; };
  for (unsigned scale = 0; scale < 255; ++scale) {
    const double factor = std::ldexp(1, int(scale) - 127 - 4);
    EXPECT_TRUE(isBF16(factor) && isBF16(-24 * factor)) << scale;
    for (unsigned code = 0; code < 16; ++code) {
      const double value = decodeE2M1(uint8_t(code));
      EXPECT_TRUE(isBF16(24 + value));
      EXPECT_EQ((24 + value) * factor - 24 * factor,
                decodeBF16(convertElement(BlockFormat::MXFP4, uint8_t(code), uint8_t(scale))));
    }
  }
}

TEST(ConvertElement, NaNScalesMakeNaN) {
  for (BlockFormat format : {BlockFormat::NVFP4, BlockFormat::MXFP4}) {
    const uint8_t nan = isMX(format) ? 0xFF : 0x7F;
    const uint16_t bits = convertElement(format, 0, nan);
    EXPECT_TRUE(std::isnan(isMX(format) ? decodeBF16(bits) : decodeF16(bits)));
  }
}

struct Problem {
  BlockFormat format;
  unsigned m, n, k;
  std::vector<uint8_t> a, b, sa, sb;

  Problem(BlockFormat format, unsigned m, unsigned n, unsigned k, uint64_t seed)
      : format(format), m(m), n(n), k(k), a(m * k / 2), b(n * k / 2),
        sa(m * k / blockSizeOf(format)), sb(n * k / blockSizeOf(format)) {
    test::Random random(seed);
    for (auto *data : {&a, &b})
      for (uint8_t &byte : *data)
        byte = random.byte();
    for (auto *scales : {&sa, &sb})
      for (uint8_t &scale : *scales)
        scale = uint8_t(isMX(format) ? 117 + random.below(20) : random.below(127));
  }

  GemmProblem gemm() const {
    GemmProblem p;
    p.format = format;
    p.a = {a.data(), sa.data(), m, 0, 0};
    p.b = {b.data(), sb.data(), n, 0, 0};
    p.depth = k;
    p.core = TensorCore::Converted;
    return p;
  }

  /// The 16 elements of a row that instruction `i` of the k tile from `first` on multiplies.
  FactorRow factors(const std::vector<uint8_t> &data, const std::vector<uint8_t> &scales,
                    unsigned row, unsigned first, unsigned instruction) const {
    uint16_t codes[16] = {};
    for (unsigned i = 0; i < 16; ++i) {
      const unsigned inRow = first + hw::convertedElementOf(instruction, i);
      if (inRow >= k)
        continue;
      const unsigned at = row * k + inRow;
      codes[i] = convertElement(format, data[at / 2] >> (at % 2 * 4) & 15,
                                scales[at / blockSizeOf(format)]);
    }
    FactorRow out;
    decodeFactors(isMX(format) ? hw::MmaType::BF16 : hw::MmaType::F16,
                  reinterpret_cast<const uint8_t *>(codes), false, false, out);
    return out;
  }

  float element(unsigned row, unsigned column) const {
    const unsigned bits = isMX(format) ? 14 : 20;
    uint32_t sum = 0;
    for (unsigned first = 0; first < k; first += hw::convertedTileK)
      for (unsigned i = 0; i < hw::convertedTileK / 16; ++i) {
        const FactorRow x = factors(a, sa, row, first, i), y = factors(b, sb, column, first, i);
        sum = denseElement({x.data(), 16}, {y.data(), 16}, bits, 0, hw::AccumulatorType::F32, sum);
      }
    return std::ldexp(floatOf(sum), isMX(format) ? 8 : 14);
  }
};

class ConvertedGemm : public testing::TestWithParam<BlockFormat> {};

TEST_P(ConvertedGemm, ModelIsTheChainOfInstructions) {
  const Problem problem(GetParam(), 5, 300, 160, 7);
  const auto model = gemmMmaModel(problem.gemm());
  ASSERT_TRUE(model);
  for (unsigned i = 0; i < problem.m; ++i)
    for (unsigned j = 0; j < problem.n; ++j)
      ASSERT_EQ(bitsOf((*model)[i * problem.n + j]), bitsOf(problem.element(i, j)))
          << i << " " << j;
}

TEST_P(ConvertedGemm, ModelLiesWithinTheBound) {
  const Problem problem(GetParam(), 32, 64, 1024, 11);
  const auto model = gemmMmaModel(problem.gemm());
  const auto reference = gemmReference(problem.gemm());
  ASSERT_TRUE(model && reference);
  bool differs = false;
  for (size_t i = 0; i < model->size(); ++i) {
    const double error = std::fabs((*model)[i] - reference->values[i]);
    EXPECT_LE(error, reference->bounds[i]) << i;
    differs |= error != 0;
  }
  EXPECT_TRUE(differs); // the sums are not so small that nothing is cut
}

TEST_P(ConvertedGemm, SubnormalFactorsAreWithinTheBound) {
  Problem problem(GetParam(), 16, 16, 256, 13);
  for (uint8_t &scale : problem.sa)
    scale = uint8_t(scale % 3);
  const auto model = gemmMmaModel(problem.gemm());
  const auto reference = gemmReference(problem.gemm());
  ASSERT_TRUE(model && reference);
  for (size_t i = 0; i < model->size(); ++i)
    EXPECT_LE(std::fabs((*model)[i] - reference->values[i]), reference->bounds[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Formats, ConvertedGemm,
                         testing::Values(BlockFormat::NVFP4, BlockFormat::MXFP4));

TEST(ConvertedGemm, TheLargestAndTheSmallestScaleMakeFiniteProducts) {
  Problem problem(BlockFormat::MXFP4, 1, 1, 32, 1);
  problem.sa[0] = 254;
  problem.sb[0] = 0;
  const auto model = gemmMmaModel(problem.gemm());
  const auto reference = gemmReference(problem.gemm());
  ASSERT_TRUE(model && reference);
  EXPECT_FALSE(reference->mayOverflow[0]);
  EXPECT_LE(std::fabs((*model)[0] - reference->values[0]), reference->bounds[0]);
}

/// 6 * 2^124 times 6 * 2^4 with either sign: whether a sum of theirs overflows depends on the order.
TEST(ConvertedGemm, SumsThatOverflowInTheOrderOfInstructionsAreForeseen) {
  Problem problem(BlockFormat::MXFP4, 1, 1, 128, 1);
  for (unsigned i = 0; i < 64; ++i) {
    problem.a[i] = i % 32 < 16 ? 0x77 : 0xFF;
    problem.b[i] = 0x77;
  }
  for (unsigned i = 0; i < 4; ++i) {
    problem.sa[i] = 127 + 124;
    problem.sb[i] = 127 + 4;
  }
  const auto reference = gemmReference(problem.gemm());
  ASSERT_TRUE(reference);
  EXPECT_EQ(reference->values[0], 0);
  EXPECT_TRUE(reference->mayOverflow[0]);
}

} // namespace
