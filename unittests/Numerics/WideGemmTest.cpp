// GEMMs of elements of 8 bits, or of 8 and 4: the model against single instructions on rows as they
// are in shared memory, and the bound.
#include "TestData.h"
#include "fp4/ISA/FragmentLayout.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/Compare.h"
#include "fp4/Numerics/DenseMma.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;

namespace {

hw::MmaType typeOf(BlockFormat format) {
  return format == BlockFormat::MXFP8E4M3   ? hw::MmaType::E4M3
         : format == BlockFormat::MXFP8E5M2 ? hw::MmaType::E5M2
                                            : hw::MmaType::E2M1;
}

/// Rows of codes without NaN and infinity, with scales of 2^-6 to 2^6.
struct Side {
  BlockFormat format;
  unsigned rows, k;
  std::vector<uint8_t> codes, scales;

  Side(BlockFormat format, unsigned rows, unsigned k, test::Random &random)
      : format(format), rows(rows), k(k), codes(rows * k * (isPacked(format) ? 4 : 8) / 8),
        scales(rows * k / 32) {
    for (uint8_t &code : codes)
      code = isPacked(format) ? uint8_t(random.below(256))
                              : uint8_t(random.below(2) << 7 | random.below(0x7C));
    for (uint8_t &scale : scales)
      scale = uint8_t(121 + random.below(13));
  }

  GemmOperand operand() const { return {codes.data(), scales.data(), rows, 0, 0}; }

  /// 32 elements from `first` on; 16 of 4 bits take 16 bytes, of which 8 are padding.
  FactorRow factors(unsigned row, unsigned first) const {
    uint8_t bytes[32] = {};
    const unsigned run = isPacked(format) ? 8 : 16;
    const uint8_t *from = &codes[(row * k + first) * (isPacked(format) ? 4 : 8) / 8];
    for (unsigned i = 0; i < 32; ++i)
      bytes[i] = i % 16 < run ? from[i / 16 * run + i % 16] : uint8_t(0xEE);
    FactorRow out;
    decodeFactors(typeOf(format), bytes, false, false, out);
    return out;
  }
};

struct Problem {
  Side a, b;

  Problem(BlockFormat lhs, BlockFormat rhs, unsigned m, unsigned n, unsigned k, uint64_t seed)
      : Problem(lhs, rhs, m, n, k, test::Random(seed)) {}

  GemmProblem gemm() const {
    GemmProblem p;
    p.format = a.format;
    if (b.format != a.format)
      p.rhsFormat = b.format;
    p.a = a.operand();
    p.b = b.operand();
    p.depth = a.k;
    return p;
  }

  float range(unsigned row, unsigned column, unsigned first, unsigned end) const {
    uint32_t sum = 0;
    const unsigned bits = fractionBits(typeOf(a.format)) + fractionBits(typeOf(b.format));
    for (unsigned k = first; k < end; k += 32) {
      const FactorRow x = a.factors(row, k), y = b.factors(column, k);
      const int scale = a.scales[(row * a.k + k) / 32] + b.scales[(column * b.k + k) / 32] - 254;
      sum = denseElement(x, y, bits, scale, hw::AccumulatorType::F32, sum);
    }
    return floatOf(sum);
  }

private:
  Problem(BlockFormat lhs, BlockFormat rhs, unsigned m, unsigned n, unsigned k,
          test::Random random)
      : a(lhs, m, k, random), b(rhs, n, k, random) {}
};

constexpr std::pair<BlockFormat, BlockFormat> pairs[] = {
    {BlockFormat::MXFP8E4M3, BlockFormat::MXFP8E4M3},
    {BlockFormat::MXFP8E5M2, BlockFormat::MXFP8E4M3},
    {BlockFormat::MXFP8E4M3, BlockFormat::MXFP4},
    {BlockFormat::MXFP4, BlockFormat::MXFP8E5M2}};

TEST(WideGemm, ModelIsTheChainOfInstructions) {
  for (auto [lhs, rhs] : pairs)
    for (unsigned k : {128, 352}) { // 352 ends within a step of 64
      const Problem problem(lhs, rhs, 5, 260, k, 7);
      const auto model = gemmMmaModel(problem.gemm());
      ASSERT_TRUE(model);
      for (unsigned i = 0; i < problem.a.rows; ++i)
        for (unsigned j = 0; j < problem.b.rows; ++j)
          ASSERT_EQ(bitsOf((*model)[i * problem.b.rows + j]), bitsOf(problem.range(i, j, 0, k)))
              << stringify(lhs) << " " << stringify(rhs) << " " << i << " " << j;
    }
}

TEST(WideGemm, RangesOfKHaveSumsOfTheirOwn) {
  const Problem problem(BlockFormat::MXFP8E4M3, BlockFormat::MXFP4, 3, 8, 608, 5);
  GemmProblem p = problem.gemm();
  p.splits = 2; // of three slices of 256, of which the last has 96
  const auto model = gemmMmaModel(p);
  ASSERT_TRUE(model);
  for (unsigned i = 0; i < 3; ++i)
    for (unsigned j = 0; j < 8; ++j)
      EXPECT_EQ(bitsOf((*model)[i * 8 + j]),
                bitsOf(problem.range(i, j, 0, 256) + problem.range(i, j, 256, 608)));
}

TEST(WideGemm, WorkersShareTiles) {
  const Problem problem(BlockFormat::MXFP8E4M3, BlockFormat::MXFP4, 3, 40, 512, 5);
  GemmProblem p = problem.gemm();
  p.streamK = StreamK{2, 16, 16}; // three tiles of two slices: the second has a slice of either
  const auto model = gemmMmaModel(p);
  const auto reference = gemmReference(p);
  ASSERT_TRUE(model && reference);
  for (unsigned i = 0; i < 3; ++i)
    for (unsigned j = 0; j < 40; ++j)
      EXPECT_EQ(bitsOf((*model)[i * 40 + j]),
                bitsOf(j / 16 == 1 ? problem.range(i, j, 0, 256) + problem.range(i, j, 256, 512)
                                   : problem.range(i, j, 0, 512)));
  EXPECT_TRUE(compareWithin(*model, reference->values, reference->bounds, reference->mayOverflow,
                            {.columns = 40})
                  .ok());
}

/// -1 in the last place of K, times 2^-152: a sum below the smallest number.
TEST(WideGemm, ZerosBehindKTakeTheSignOfAZero) {
  Problem problem(BlockFormat::MXFP8E4M3, BlockFormat::MXFP8E4M3, 1, 1, 96, 3);
  std::ranges::fill(problem.a.codes, 0);
  std::ranges::fill(problem.a.scales, 127 - 76);
  problem.b = problem.a;
  problem.a.codes.back() = 0x38;
  problem.b.codes.back() = 0xB8;
  GemmProblem p = problem.gemm();
  for (const auto [filled, sign] :
       {std::pair(0, true), std::pair(96, true), std::pair(128, false)}) {
    p.filledK = filled;
    const auto model = gemmMmaModel(p);
    ASSERT_TRUE(model);
    EXPECT_EQ(model->front(), 0);
    EXPECT_EQ(std::signbit(model->front()), sign) << filled;
  }
}

TEST(WideGemm, ModelLiesWithinTheBoundAndUsesIt) {
  for (auto [lhs, rhs] : pairs) {
    const Problem problem(lhs, rhs, 16, 48, 1024, 11);
    const auto model = gemmMmaModel(problem.gemm());
    const auto reference = gemmReference(problem.gemm());
    ASSERT_TRUE(model && reference);
    double used = 0;
    for (size_t i = 0; i < model->size(); ++i) {
      const double error = std::fabs((*model)[i] - reference->values[i]);
      EXPECT_LE(error, reference->bounds[i]) << i;
      EXPECT_FALSE(reference->mayOverflow[i]);
      used = std::max(used, error / reference->bounds[i]);
    }
    EXPECT_GT(used, 0.01) << stringify(lhs) << " " << stringify(rhs);
  }
}

TEST(WideGemm, SubnormalFactorsAreWithinTheBound) {
  for (auto [lhs, rhs] : pairs) {
    Problem problem(lhs, rhs, 16, 16, 256, 13);
    for (Side *side : {&problem.a, &problem.b})
      for (uint8_t &code : side->codes)
        code &= isPacked(side->format) ? 0x99 : 0x83;
    const auto model = gemmMmaModel(problem.gemm());
    const auto reference = gemmReference(problem.gemm());
    ASSERT_TRUE(model && reference);
    for (size_t i = 0; i < model->size(); ++i)
      EXPECT_LE(std::fabs((*model)[i] - reference->values[i]), reference->bounds[i]) << i;
  }
}

TEST(WideGemm, OneWrongScaleBreaksTheBound) {
  Problem problem(BlockFormat::MXFP8E4M3, BlockFormat::MXFP8E4M3, 4, 8, 512, 17);
  const auto model = gemmMmaModel(problem.gemm());
  ++problem.b.scales[3];
  const auto reference = gemmReference(problem.gemm());
  ASSERT_TRUE(model && reference);
  unsigned outside[2] = {}; // of other columns, and of column 0, which the scale belongs to
  for (size_t i = 0; i < model->size(); ++i)
    outside[i % 8 == 0] +=
        std::fabs((*model)[i] - reference->values[i]) > reference->bounds[i];
  EXPECT_EQ(outside[0], 0u);
  EXPECT_GT(outside[1], 0u);
}

TEST(WideGemm, NaNOfAScaleOrAnElementMakesNaN) {
  Problem problem(BlockFormat::MXFP8E5M2, BlockFormat::MXFP8E4M3, 2, 3, 64, 19);
  problem.a.scales[1] = 0xFF; // row 0
  problem.b.codes[64] = 0x7F; // column 1
  const auto model = gemmMmaModel(problem.gemm());
  const auto reference = gemmReference(problem.gemm());
  ASSERT_TRUE(model && reference);
  for (unsigned i = 0; i < 6; ++i) {
    const bool isNaN = i / 3 == 0 || i % 3 == 1;
    EXPECT_EQ(std::isnan((*model)[i]), isNaN) << i;
    EXPECT_EQ(reference->mayOverflow[i], isNaN) << i;
  }
}

//===--- Converted to bf16 -----------------------------------------------===//

/// Returns the factors of a row that instruction `i` of the k tile from `first` on multiplies.
FactorRow convertedFactors(const Side &side, unsigned row, unsigned first, unsigned i) {
  uint16_t elements[16] = {};
  for (unsigned n = 0; n < 16; ++n) {
    const unsigned k = first + hw::convertedElementOf(i, n), at = row * side.k + k;
    if (k >= side.k)
      continue;
    const uint8_t code = isPacked(side.format) ? side.codes[at / 2] >> (at % 2 * 4) & 15 : side.codes[at];
    elements[n] = convertElement(side.format, code, side.scales[at / 32]);
  }
  FactorRow out;
  decodeFactors(hw::MmaType::BF16, reinterpret_cast<const uint8_t *>(elements), false, false, out);
  return out;
}

TEST(ConvertedWideGemm, ModelIsTheChainOfInstructions) {
  for (auto [lhs, rhs] : pairs) {
    const Problem problem(lhs, rhs, 3, 70, 352, 23);
    GemmProblem p = problem.gemm();
    p.core = TensorCore::Converted;
    const auto model = gemmMmaModel(p);
    ASSERT_TRUE(model);
    for (unsigned i = 0; i < 3; ++i)
      for (unsigned j = 0; j < 70; ++j) {
        uint32_t sum = 0;
        for (unsigned first = 0; first < 352; first += hw::convertedTileK)
          for (unsigned n = 0; n < hw::convertedTileK / 16; ++n) {
            const FactorRow x = convertedFactors(problem.a, i, first, n),
                            y = convertedFactors(problem.b, j, first, n);
            sum = denseElement({x.data(), 16}, {y.data(), 16}, 14, 0, hw::AccumulatorType::F32, sum);
          }
        const int power = 4 * (isPacked(lhs) + isPacked(rhs));
        ASSERT_EQ(bitsOf((*model)[i * 70 + j]), bitsOf(std::ldexp(floatOf(sum), power))) << i << " " << j;
      }
  }
}

TEST(ConvertedWideGemm, ModelLiesWithinTheBoundForEveryScale) {
  for (auto [lhs, rhs] : pairs)
    for (unsigned scale : {0, 1, 60, 127, 190, 254}) {
      Problem problem(lhs, rhs, 8, 16, 288, 29);
      for (unsigned i = 0; i < problem.a.scales.size(); ++i) // the product stays within fp32
        problem.a.scales[i] = uint8_t(std::min(254u, scale + i % 3));
      for (uint8_t &other : problem.b.scales)
        other = uint8_t(254 - scale);
      GemmProblem p = problem.gemm();
      p.core = TensorCore::Converted;
      const auto model = gemmMmaModel(p);
      const auto reference = gemmReference(p);
      ASSERT_TRUE(model && reference);
      for (size_t i = 0; i < model->size(); ++i)
        if (std::isfinite((*model)[i]) || !reference->mayOverflow[i]) {
          EXPECT_LE(std::fabs((*model)[i] - reference->values[i]), reference->bounds[i])
              << stringify(lhs) << " " << stringify(rhs) << " " << scale << " " << i;
        }
    }
}

TEST(ConvertElement, MXFP8IsExactWithinTheRangeOfBF16) {
  EXPECT_EQ(convertElement(BlockFormat::MXFP8E4M3, 0x7E, 127), encodeBF16(448));
  EXPECT_EQ(convertElement(BlockFormat::MXFP8E5M2, 0xC1, 127), encodeBF16(-2.5));
  EXPECT_EQ(convertElement(BlockFormat::MXFP8E4M3, 0x01, 127), encodeBF16(0x1p-9f));
  EXPECT_EQ(convertElement(BlockFormat::MXFP8E4M3, 0x38, 254), encodeBF16(0x1p127f));
  EXPECT_EQ(convertElement(BlockFormat::MXFP8E4M3, 0x40, 254), 0x7F80); // 2 * 2^127
  EXPECT_EQ(convertElement(BlockFormat::MXFP8E4M3, 0x01, 0), 0);        // 2^-136
  EXPECT_EQ(convertElement(BlockFormat::MXFP8E4M3, 0x0B, 4), 0x0016);   // 22 * 2^-133
  EXPECT_EQ(convertElement(BlockFormat::MXFP8E4M3, 0x0B, 0), 0x0001);   // 1.375 * 2^-133
  EXPECT_EQ(convertElement(BlockFormat::MXFP8E4M3, 0x0C, 0), 0x0002);   // 1.5 * 2^-133
  for (uint8_t nan : {0x7D, 0x7E, 0x7F})
    EXPECT_TRUE(std::isnan(decodeBF16(convertElement(BlockFormat::MXFP8E5M2, nan, 127))));
  EXPECT_TRUE(std::isnan(decodeBF16(convertElement(BlockFormat::MXFP8E4M3, 0xFF, 127))));
  EXPECT_TRUE(std::isnan(decodeBF16(convertElement(BlockFormat::MXFP8E4M3, 0, 255))));
}

TEST(WideGemm, RefusesWhatNoInstructionServes) {
  const Problem problem(BlockFormat::MXFP8E4M3, BlockFormat::MXFP4, 1, 1, 64, 1);
  GemmProblem p = problem.gemm();
  p.rhsFormat = BlockFormat::NVFP4;
  EXPECT_EQ(gemmMmaModel(p).error().message,
            "operands of two formats must both have scales of f8E8M0FNU, but got mxfp8_e4m3 and nvfp4");
  p.rhsFormat = BlockFormat::MXFP4;
  p.core = TensorCore::None;
  EXPECT_EQ(gemmMmaModel(p).error().message, "elements of 8 bits must have a tensor core");
  p.core = TensorCore::BlockScaled;
  p.b.dataPitch = 16;
  EXPECT_EQ(gemmReference(p).error().message, "row pitch of operand b must be at least K / 2 bytes");
}

} // namespace
