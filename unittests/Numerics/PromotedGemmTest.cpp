// GEMMs of FP8 with f32 scales: the model against single instructions and fp32 operations, in plain
// loops, and the bound.
#include "TestData.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/DenseMma.h"
#include "fp4/Numerics/E4M3.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;

namespace {

struct Problem {
  unsigned m, n, k, blocks;
  std::vector<uint8_t> a, b;
  std::vector<float> sa, sb;
  TensorCore core = TensorCore::Converted;

  Problem(unsigned m, unsigned n, unsigned k, uint64_t seed)
      : m(m), n(n), k(k), blocks((k + 127) / 128), a(m * k), b(n * k), sa(m * blocks),
        sb((n + 127) / 128 * blocks) {
    test::Random random(seed);
    for (auto *codes : {&a, &b})
      for (uint8_t &code : *codes)
        code = uint8_t(random.below(2) << 7 | random.below(127)); // no NaN
    for (auto *scales : {&sa, &sb})
      for (float &scale : *scales)
        scale = std::ldexp(1.f + float(random.below(1 << 20)) * 0x1p-20f, int(random.below(9)) - 4);
  }

  GemmProblem gemm() const {
    GemmProblem p;
    p.format = BlockFormat::FP8Block128;
    p.a = {a.data(), reinterpret_cast<const uint8_t *>(sa.data()), m, 0, 0};
    p.b = {b.data(), reinterpret_cast<const uint8_t *>(sb.data()), n, 0, 0};
    p.depth = k;
    p.core = core;
    return p;
  }

  /// 32 codes from `first` on, zeros behind K.
  FactorRow factors(const std::vector<uint8_t> &codes, unsigned row, unsigned first) const {
    uint8_t bytes[32] = {};
    for (unsigned i = 0; i < 32 && first + i < k; ++i)
      bytes[i] = codes[row * k + first + i];
    FactorRow out;
    decodeFactors(hw::MmaType::E4M3, bytes, false, false, out);
    return out;
  }

  float element(unsigned row, unsigned column) const { return element(row, column, 0, blocks); }
  /// The sum of the blocks of K in [begin, end).
  float element(unsigned row, unsigned column, unsigned begin, unsigned end) const {
    float acc = 0;
    for (unsigned block = begin; block < end; ++block) {
      uint32_t sum = 0;
      for (unsigned first = block * 128; first < block * 128 + 128; first += 32) {
        const FactorRow x = factors(a, row, first), y = factors(b, column, first);
        sum = denseElement(x, y, 6, 0, hw::AccumulatorType::F32, sum,
                           core == TensorCore::Converted ? hopperFP8 : DensePrecision{});
      }
      const float scale = sa[row * blocks + block] * sb[column / 128 * blocks + block];
      acc = std::fma(floatOf(sum), scale, acc);
    }
    return acc;
  }
};

TEST(PromotedGemm, ModelIsTheChainOfInstructionsAndPromotions) {
  for (auto [core, k] : {std::pair(TensorCore::Converted, 128u),
                         {TensorCore::Converted, 400u},
                         {TensorCore::BlockScaled, 128u},
                         {TensorCore::BlockScaled, 400u}}) {
    Problem problem(5, 300, k, 7); // 400 ends within an instruction
    problem.core = core;
    const auto model = gemmMmaModel(problem.gemm());
    ASSERT_TRUE(model);
    for (unsigned i = 0; i < problem.m; ++i)
      for (unsigned j = 0; j < problem.n; ++j)
        ASSERT_EQ(bitsOf((*model)[i * problem.n + j]), bitsOf(problem.element(i, j)))
            << i << " " << j;
  }
}

class PromotedGemmOf : public testing::TestWithParam<TensorCore> {};

TEST_P(PromotedGemmOf, ModelLiesWithinTheBoundAndUsesIt) {
  Problem problem(16, 48, 1024, 11);
  problem.core = GetParam();
  const auto model = gemmMmaModel(problem.gemm());
  const auto reference = gemmReference(problem.gemm());
  ASSERT_TRUE(model && reference);
  double used = 0;
  for (size_t i = 0; i < model->size(); ++i) {
    const double error = std::fabs((*model)[i] - reference->values[i]);
    EXPECT_LE(error, reference->bounds[i]) << i;
    used = std::max(used, error / reference->bounds[i]);
  }
  EXPECT_GT(used, 0.01);
}

TEST_P(PromotedGemmOf, SubnormalFactorsAreWithinTheBound) {
  Problem problem(16, 16, 256, 13);
  problem.core = GetParam();
  for (auto *codes : {&problem.a, &problem.b})
    for (uint8_t &code : *codes)
      code &= 0x87;
  const auto model = gemmMmaModel(problem.gemm());
  const auto reference = gemmReference(problem.gemm());
  ASSERT_TRUE(model && reference);
  for (size_t i = 0; i < model->size(); ++i)
    EXPECT_LE(std::fabs((*model)[i] - reference->values[i]), reference->bounds[i]) << i;
}

TEST_P(PromotedGemmOf, OneWrongScaleBreaksTheBound) {
  Problem problem(4, 8, 512, 17);
  problem.core = GetParam();
  const auto model = gemmMmaModel(problem.gemm());
  problem.sb[2] *= 1.5f;
  const auto reference = gemmReference(problem.gemm());
  ASSERT_TRUE(model && reference);
  unsigned outside = 0;
  for (size_t i = 0; i < model->size(); ++i)
    outside += std::fabs((*model)[i] - reference->values[i]) > reference->bounds[i];
  EXPECT_GT(outside, 0u);
}

INSTANTIATE_TEST_SUITE_P(TensorCores, PromotedGemmOf,
                         testing::Values(TensorCore::Converted, TensorCore::BlockScaled),
                         [](const auto &info) {
                           return info.param == TensorCore::Converted ? "wgmma" : "tcgen05";
                         });

/// A term 2^-16 of the largest one counts in kind f8f6f4 and is cut by wgmma.
TEST(PromotedGemm, OnlyWgmmaCutsSmallTerms) {
  Problem problem(1, 1, 128, 1);
  std::fill(problem.a.begin(), problem.a.end(), 0);
  std::fill(problem.b.begin(), problem.b.end(), 0);
  problem.a[0] = problem.b[0] = 0x78;       // 256
  problem.a[1] = 0x38, problem.b[1] = 0x38; // 1
  problem.sa[0] = problem.sb[0] = 1;
  EXPECT_EQ((*gemmMmaModel(problem.gemm()))[0], 65536.f);
  problem.core = TensorCore::BlockScaled;
  EXPECT_EQ((*gemmMmaModel(problem.gemm()))[0], 65537.f);
}

TEST(PromotedGemm, LargeScalesMayOverflow) {
  Problem problem(1, 1, 128, 1);
  problem.sa[0] = 0x1p100f;
  problem.sb[0] = 0x1p27f;
  const auto reference = gemmReference(problem.gemm());
  ASSERT_TRUE(reference);
  EXPECT_TRUE(reference->mayOverflow[0]);
  problem.sb[0] = 1;
  EXPECT_FALSE(gemmReference(problem.gemm())->mayOverflow[0]);
}

TEST(PromotedGemm, RangesOfKAreAddedInOrder) {
  const Problem problem(3, 5, 512, 1);
  GemmProblem p = problem.gemm();
  p.splits = 2;
  const auto model = gemmMmaModel(p);
  ASSERT_TRUE(model);
  for (unsigned i = 0; i < problem.m; ++i)
    for (unsigned j = 0; j < problem.n; ++j)
      ASSERT_EQ(bitsOf((*model)[i * problem.n + j]),
                bitsOf(problem.element(i, j, 0, 2) + problem.element(i, j, 2, 4)));
}

} // namespace
