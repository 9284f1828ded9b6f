// GEMMs without a tensor core: the order of sums of docs/reference/numerics.md against examples whose bits
// depend on it, and the bound.
#include "TestData.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/UE8M0.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;

namespace {

constexpr uint8_t codeOfOne = 2, e4m3One = 0x38;

/// One row times one row, all codes zero at first.
struct Dot {
  BlockFormat format;
  unsigned k;
  std::vector<uint8_t> a, b, sa, sb;

  Dot(BlockFormat format, unsigned k)
      : format(format), k(k), a(k / 2), b(k / 2), sa(k / blockSizeOf(format), unit()), sb(sa) {}
  uint8_t unit() const { return isMX(format) ? 127 : e4m3One; }

  /// The block that has element `at` gets one product of two ones, with these scales.
  void setOne(unsigned at, uint8_t scaleA, uint8_t scaleB) {
    a[at / 2] = b[at / 2] = codeOfOne;
    sa[at / blockSizeOf(format)] = scaleA;
    sb[at / blockSizeOf(format)] = scaleB;
  }

  GemmProblem gemm() const {
    GemmProblem p;
    p.format = format;
    p.a = {a.data(), sa.data(), 1, 0, 0};
    p.b = {b.data(), sb.data(), 1, 0, 0};
    p.depth = k;
    p.core = TensorCore::None;
    return p;
  }
  float model() const { return gemmMmaModel(gemm())->front(); }
};

TEST(FmaGemm, ChunksOfOneLaneAreAddedInTheirOrder) {
  // Lane 0 has chunks 0, 32 and 64: (2^24 + 1) - 2^24 loses the one, in this order only.
  Dot dot(BlockFormat::MXFP4, 3 * 32 * 32);
  dot.setOne(0, 127 + 24, 127);
  dot.setOne(32 * 32, 127, 127);
  dot.setOne(64 * 32, 127 + 24, 127);
  dot.b[64 * 16] |= 8; // the third is negative
  EXPECT_EQ(dot.model(), 0);
}

TEST(FmaGemm, LanesAreAddedInPairsSixteenApart) {
  // Lanes 0 and 16 cancel before lane 1 comes; lanes 0 and 1 first would lose the one.
  Dot apart(BlockFormat::MXFP4, 32 * 32);
  apart.setOne(0, 127 + 24, 127);
  apart.setOne(32, 127, 127);
  apart.setOne(16 * 32, 127 + 24, 127);
  apart.b[16 * 16] |= 8;
  EXPECT_EQ(apart.model(), 1);
  // Lanes 0 and 8 meet after lanes 8 and 24: what lane 24 has is lost there.
  Dot later(BlockFormat::MXFP4, 32 * 32);
  later.setOne(0, 127 + 24, 127);
  later.setOne(24 * 32, 127, 127);
  later.setOne(8 * 32, 127 + 24, 127);
  later.b[0] |= 8;
  EXPECT_EQ(later.model(), 0);
}

TEST(FmaGemm, ABlockIsRoundedOnce) {
  // One after the other, two ones would be lost beside 2^24.
  Dot dot(BlockFormat::MXFP4, 33 * 32);
  dot.setOne(0, 127 + 24, 127);
  dot.setOne(32 * 32, 127, 127);
  dot.setOne(32 * 32 + 2, 127, 127);
  EXPECT_EQ(dot.model(), 0x1p24f + 2);
}

TEST(FmaGemm, TheSignOfAScaleIsIgnoredAndNaNIsNot) {
  Dot dot(BlockFormat::NVFP4, 64);
  dot.setOne(3, e4m3One | 0x80, e4m3One);
  EXPECT_EQ(dot.model(), 1);
  dot.sa[3] = 0x7F;
  EXPECT_TRUE(std::isnan(dot.model()));
}

TEST(FmaGemm, ABlockThatOverflowsWithOneScaleIsForeseen) {
  Dot dot(BlockFormat::MXFP4, 32);
  dot.setOne(0, 254, 0);
  dot.a[0] = dot.b[0] = 0x77;
  EXPECT_TRUE(std::isinf(dot.model()));
  EXPECT_TRUE(gemmReference(dot.gemm())->mayOverflow.front());
}

class FmaBound : public testing::TestWithParam<BlockFormat> {};

TEST_P(FmaBound, HoldsAndIsNotIdle) {
  test::Random random(5);
  bool differs = false;
  for (unsigned trial = 0; trial < 200; ++trial) {
    Dot dot(GetParam(), 4096 + 32 * trial);
    for (auto *data : {&dot.a, &dot.b})
      for (uint8_t &byte : *data)
        byte = random.byte();
    for (auto *scales : {&dot.sa, &dot.sb})
      for (uint8_t &scale : *scales)
        scale = uint8_t(isMX(GetParam()) ? 117 + random.below(20) : random.below(127));
    const GemmReference reference = *gemmReference(dot.gemm());
    const double error = std::fabs(dot.model() - reference.values.front());
    EXPECT_LE(error, reference.bounds.front()) << trial;
    differs |= error != 0;
  }
  EXPECT_TRUE(differs);
}

INSTANTIATE_TEST_SUITE_P(Formats, FmaBound,
                         testing::Values(BlockFormat::NVFP4, BlockFormat::MXFP4));

} // namespace
