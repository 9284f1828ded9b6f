// GEMMs by instructions of K = 96: the model against the chain of its instructions, and within the bound
// of the reference.
#include "fp4/Numerics/BlockScaledGemm.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace fp4;
using namespace fp4::numerics;

namespace {

struct Operands {
  std::vector<uint8_t> a, b, scalesA, scalesB;
  GemmProblem problem;

  Operands(BlockFormat format, uint64_t m, uint64_t n, uint64_t depth, uint32_t seed) {
    std::mt19937 rng(seed);
    const bool power = isMX(format);
    const auto fill = [&](std::vector<uint8_t> &to, uint64_t count, bool scales) {
      for (uint64_t i = 0; i < count; ++i)
        to.push_back(uint8_t(!scales ? rng() : power ? 110 + rng() % 30 : 8 + rng() % 112));
    };
    fill(a, m * depth / 2, false);
    fill(b, n * depth / 2, false);
    fill(scalesA, m * depth / blockSizeOf(format), true);
    fill(scalesB, n * depth / blockSizeOf(format), true);
    problem.format = format;
    problem.a = {a.data(), scalesA.data(), m, 0, 0};
    problem.b = {b.data(), scalesB.data(), n, 0, 0};
    problem.depth = depth;
    problem.k96 = true;
    problem.threads = 1;
  }
};

TEST(K96Gemm, IsAChainOfInstructions) {
  Operands o(BlockFormat::NVFP4, 3, 5, 192, 1);
  const auto model = gemmMmaModel(o.problem);
  ASSERT_TRUE(model);
  for (unsigned i = 0; i < 3; ++i)
    for (unsigned j = 0; j < 5; ++j) {
      float c = 0;
      for (unsigned s = 0; s < 2; ++s)
        c = fp4MmaElement(hw::ScaleType::UE4M3, hw::ScaleVector::X4, &o.a[i * 96 + 48 * s],
                          &o.scalesA[i * 12 + 6 * s], &o.b[j * 96 + 48 * s], &o.scalesB[j * 12 + 6 * s],
                          c, 96);
      EXPECT_EQ((*model)[i * 5 + j], c);
    }
}

// Six groups of 16 products of 1 * 1 under scales of 1; a scale of 32 elements is that of two groups.
TEST(K96Gemm, KnownValues) {
  const std::vector<uint8_t> ones(48, 0x22), e4m3(6, 0x38), powers = {127, 128, 129};
  EXPECT_EQ(fp4MmaElement(hw::ScaleType::UE4M3, hw::ScaleVector::X4, ones.data(), e4m3.data(), ones.data(),
                          e4m3.data(), 0.5f, 96),
            96.5f);
  EXPECT_EQ(fp4MmaElement(hw::ScaleType::UE8M0, hw::ScaleVector::X2, ones.data(), powers.data(),
                          ones.data(), powers.data(), 0, 96),
            32 * (1 + 4 + 16.f));
}

// K ends within an instruction; the sums differ in bits from those of K = 64, and lie within the bound.
TEST(K96Gemm, StaysWithinTheBound) {
  for (auto [format, depth] : {std::pair(BlockFormat::NVFP4, 2000u), {BlockFormat::MXFP4, 1568u}}) {
    Operands o(format, 40, 24, depth, depth);
    const auto model = gemmMmaModel(o.problem);
    const auto reference = gemmReference(o.problem);
    ASSERT_TRUE(model && reference);
    for (size_t i = 0; i < model->size(); ++i)
      EXPECT_LE(std::fabs((*model)[i] - reference->values[i]), reference->bounds[i]) << i;
    o.problem.k96 = false;
    const auto shorter = gemmMmaModel(o.problem);
    ASSERT_TRUE(shorter);
    EXPECT_NE(std::memcmp(model->data(), shorter->data(), 4 * model->size()), 0);
  }
}

TEST(K96Gemm, RefusesWhatNoInstructionHas) {
  Operands o(BlockFormat::NVFP4, 2, 8, 512, 3);
  o.problem.splits = 2;
  EXPECT_FALSE(gemmMmaModel(o.problem));
  o.problem.splits = 1;
  EXPECT_TRUE(gemmMmaModel(o.problem));
  o.problem.core = TensorCore::Converted;
  EXPECT_FALSE(gemmMmaModel(o.problem));
}

} // namespace
