// GEMMs of whole matrices: the model of tensor cores beside the exact reference and its bound.
#include "TestData.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/Compare.h"
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;
using hw::ScaleType;
using hw::ScaleVector;

namespace {

struct Product {
  QuantizedMatrix a, b;
  GemmProblem problem;

  Product(const char *recipeName, uint64_t m, uint64_t n, uint64_t k, uint64_t seed,
          float spread = 0.f) {
    const Recipe &recipe = *lookupRecipe(recipeName);
    test::Random random(seed);
    const auto matrix = [&](uint64_t rows) {
      std::vector<float> x(rows * k);
      for (uint64_t r = 0; r < rows; ++r) {
        for (uint64_t i = 0; i < k; ++i) {
          const float size = std::exp2(std::round(spread * random.gaussian()));
          x[r * k + i] = roundTo(FloatType::BF16, size * random.gaussian());
        }
      }
      return *quantizeRows(recipe, x, rows, k);
    };
    a = matrix(m);
    b = matrix(n);
    problem.format = recipe.format;
    problem.a = {a.data.data(), a.scales.data(), m};
    problem.b = {b.data.data(), b.scales.data(), n};
    problem.depth = k;
  }
};

TEST(Gemm, modelIsTheChainOfElementSteps) {
  for (const char *recipe : {"transformer_engine", "ocp_floor"})
    for (uint64_t k : {32ull, 64ull, 96ull, 272ull, 320ull}) {
      if (k % 32 && std::string_view(recipe) == "ocp_floor")
        continue;
      const Product p(recipe, 5, 37, k, k, 2.f);
      const auto got = gemmMmaModel(p.problem);
      ASSERT_TRUE(got) << format(got.error());
      const bool nv = p.problem.format == BlockFormat::NVFP4;
      const uint64_t perStep = nv ? 4 : 2, perRow = k / (nv ? 16 : 32);
      for (uint64_t i = 0; i < 5; ++i)
        for (uint64_t j = 0; j < 37; ++j) {
          float c = 0.f;
          for (uint64_t s = 0; s * 64 < k; ++s) {
            uint8_t a[32] = {}, b[32] = {}, sa[4] = {}, sb[4] = {};
            const uint64_t bytes = std::min<uint64_t>(32, k / 2 - s * 32);
            const uint64_t scales = std::min(perStep, perRow - s * perStep);
            std::copy_n(&p.a.data[i * k / 2 + s * 32], bytes, a);
            std::copy_n(&p.b.data[j * k / 2 + s * 32], bytes, b);
            std::copy_n(&p.a.scales[i * perRow + s * perStep], scales, sa);
            std::copy_n(&p.b.scales[j * perRow + s * perStep], scales, sb);
            c = fp4MmaElement(nv ? ScaleType::UE4M3 : ScaleType::UE8M0,
                              nv ? ScaleVector::X4 : ScaleVector::X2, a, sa, b, sb, c);
          }
          ASSERT_EQ(bitsOf((*got)[i * 37 + j]), bitsOf(c)) << recipe << " K " << k;
        }
    }
}

TEST(Gemm, exactSumsAreExactInEveryForm) {
  // Scales are powers of two close together: every partial sum fits 24 bits.
  Product p("ocp_floor", 33, 65, 256, 11);
  const auto model = gemmMmaModel(p.problem);
  const auto reference = gemmReference(p.problem);
  ASSERT_TRUE(model && reference);
  for (size_t i = 0; i < model->size(); ++i)
    EXPECT_EQ(double((*model)[i]), reference->values[i]);
}

/// The largest share of the bound that the model uses, of both formats and two spreads of scales.
double shareOfBound(FloatType output) {
  double worst = 0;
  for (const char *recipe : {"transformer_engine", "ocp_floor"})
    for (float spread : {0.f, 3.f}) {
      Product p(recipe, 32, 48, 1024, 5, spread);
      p.problem.output = output;
      if (p.problem.format == BlockFormat::NVFP4)
        p.problem.alpha = matmulAlpha(p.a.tensorAmax, p.b.tensorAmax);
      const auto model = gemmMmaModel(p.problem);
      const auto reference = gemmReference(p.problem);
      EXPECT_TRUE(model && reference);
      const CompareReport report =
          compareWithin(*model, reference->values, reference->bounds, reference->mayOverflow,
                        {.type = output, .columns = 48});
      EXPECT_TRUE(report.ok()) << recipe << "\n" << report.text();
      worst = std::max(worst, report.maxErrorOfBound);
    }
  return worst;
}

// The bound is no empty promise, of no output type.
TEST(Gemm, modelLiesWithinTheBound) {
  EXPECT_GT(shareOfBound(FloatType::F32), 0.1);
  EXPECT_GT(shareOfBound(FloatType::BF16), 0.9);
  EXPECT_GT(shareOfBound(FloatType::F16), 0.9);
}

/// One element against one column in two steps of MXFP4: 1 beside a zero block of scale 2^10, then
/// 2. The bound is that of docs/reference/numerics.md, spelled again.
struct BoundedSum {
  std::vector<uint8_t> codes = std::vector<uint8_t>(64), ones = std::vector<uint8_t>(64),
                       scales = {127, 137, 127, 127};
  GemmProblem problem{.format = BlockFormat::MXFP4, .a = {}, .b = {}, .depth = 128};

  BoundedSum() {
    codes[0] = ones[0] = ones[32] = 0x02;
    codes[32] = 0x04;
    problem.a = {codes.data(), scales.data(), 1};
    problem.b = {ones.data(), scales.data(), 1};
  }
  static double step(double error, double magnitude, double power) {
    const double most = magnitude + error;
    return error + 0x1p-23 * most + 5 * 0x1p-35 * std::max(power, most) + 0x1p-148;
  }
  static double beforeOutput(double alpha) {
    const double error = alpha * (step(step(0, 1, 0x1p20), 3, 1) + 128 * 0x1p-52 * 3);
    return alpha == 1 ? error : error + 0x1p-24 * (alpha * 3 + error) + 0x1p-150;
  }
};

TEST(Gemm, boundIsTheDocumentedOne) {
  for (double alpha : {1.0, 0.5})
    for (auto [output, unit, smallest] : {std::tuple(FloatType::F32, 0.0, 0.0),
                                          {FloatType::BF16, 0x1p-8, 0x1p-134},
                                          {FloatType::F16, 0x1p-11, 0x1p-25}}) {
      BoundedSum sum;
      sum.problem.output = output;
      if (alpha != 1)
        sum.problem.alpha = static_cast<float>(alpha);
      const auto reference = gemmReference(sum.problem);
      ASSERT_TRUE(reference);
      const double error = BoundedSum::beforeOutput(alpha);
      EXPECT_EQ(reference->values[0], 3 * alpha);
      EXPECT_DOUBLE_EQ(reference->bounds[0], error + unit * (3 * alpha + error) + smallest)
          << stringify(output) << ", alpha " << alpha;
    }
}

// Infinity is right where the output type ends, and not before.
TEST(Gemm, outputsMayOverflowAtTheEndOfTheirType) {
  std::vector<uint8_t> code(16), scale(1), one = {127};
  code[0] = 0x02;
  for (auto [output, exponent] : {std::pair(FloatType::F16, 16), {FloatType::BF16, 128}}) {
    for (int e : {exponent - 2, exponent}) {
      GemmProblem p{.format = BlockFormat::MXFP4, .a = {}, .b = {}, .depth = 32, .output = output};
      std::vector<uint8_t> half = {static_cast<uint8_t>(127 + e / 2)};
      p.a = {code.data(), half.data(), 1};
      p.b = {code.data(), half.data(), 1};
      const auto reference = gemmReference(p);
      ASSERT_TRUE(reference);
      EXPECT_EQ(reference->values[0], std::ldexp(1.0, e));
      EXPECT_EQ(bool(reference->mayOverflow[0]), e == exponent) << stringify(output) << " " << e;
    }
  }
}

/// One row against one column, two steps of MXFP4 with one element each: 4 * 2^(2 * exponent) and
/// its negative.
GemmProblem twoSteps(std::vector<uint8_t> &a, std::vector<uint8_t> &b, std::vector<uint8_t> &scales,
                     int exponent) {
  a.assign(64, 0);
  b.assign(64, 0);
  a[0] = a[32] = b[0] = 0x04; // 2
  b[32] = 0x0C;               // -2
  scales.assign(4, static_cast<uint8_t>(127 + exponent));
  return {.format = BlockFormat::MXFP4,
          .a = {a.data(), scales.data(), 1},
          .b = {b.data(), scales.data(), 1},
          .depth = 128};
}

TEST(Gemm, partialSumsMayOverflow) {
  std::vector<uint8_t> a, b, scales;
  const GemmProblem over = twoSteps(a, b, scales, 63); // the first step gives 2^128
  const auto model = gemmMmaModel(over);
  const auto reference = gemmReference(over);
  ASSERT_TRUE(model && reference);
  EXPECT_EQ((*model)[0], INFINITY);
  EXPECT_EQ(reference->values[0], 0);
  EXPECT_TRUE(
      compareWithin(*model, reference->values, reference->bounds, reference->mayOverflow, {}).ok());
  // A finite result is judged by the bound all the same.
  const CompareReport wrong = compareWithin(std::vector{1e38f}, reference->values,
                                            reference->bounds, reference->mayOverflow, {});
  EXPECT_EQ(wrong.mismatches, 1u);
}

TEST(Gemm, infinityIsWrongWherePartialSumsFit) {
  std::vector<uint8_t> a, b, scales;
  const GemmProblem fits = twoSteps(a, b, scales, 62);
  const auto model = gemmMmaModel(fits);
  const auto reference = gemmReference(fits);
  ASSERT_TRUE(model && reference);
  EXPECT_EQ((*model)[0], 0);
  EXPECT_FALSE(reference->mayOverflow[0]);
  EXPECT_FALSE(compareWithin(std::vector{INFINITY}, reference->values, reference->bounds,
                             reference->mayOverflow, {})
                   .ok());
}

/// The columns [begin, end) of K of `operand`, of NVFP4 with rows of `k`.
GemmOperand columnsOf(const GemmOperand &operand, uint64_t k, uint64_t begin) {
  return {operand.data + begin / 2, operand.scales + begin / 16, operand.rows, k / 2, k / 16};
}

TEST(Gemm, rangesOfKHaveSumsOfTheirOwn) {
  constexpr uint64_t k = 784; // slices of 256, 256, 256 and 16, of which the last range has two
  Product p("transformer_engine", 5, 37, k, 3, 3.f);
  p.problem.splits = 3;
  const auto got = gemmMmaModel(p.problem);
  const auto reference = gemmReference(p.problem);
  ASSERT_TRUE(got && reference) << format(got.error());
  std::vector<float> sums;
  for (auto [begin, end] : {std::pair(0ull, 256ull), {256ull, 512ull}, {512ull, 784ull}}) {
    GemmProblem part = p.problem;
    part.splits = 1;
    part.depth = end - begin;
    part.a = columnsOf(p.problem.a, k, begin);
    part.b = columnsOf(p.problem.b, k, begin);
    const auto values = gemmMmaModel(part);
    ASSERT_TRUE(values) << format(values.error());
    for (size_t i = 0; i < values->size(); ++i)
      if (begin == 0)
        sums.push_back((*values)[i]);
      else
        sums[i] += (*values)[i];
  }
  EXPECT_EQ(*got, sums);
  EXPECT_TRUE(compareWithin(*got, reference->values, reference->bounds, reference->mayOverflow,
                            {.columns = 37})
                  .ok());
  p.problem.splits = 1;
  EXPECT_NE(*gemmMmaModel(p.problem), sums); // the order decides bits
  p.problem.splits = 5;
  ASSERT_FALSE(gemmMmaModel(p.problem));
  EXPECT_EQ(gemmMmaModel(p.problem).error().message, "split-K ranges must be 1 to 4, but got 5");
}

TEST(StreamK, workersHaveEqualPartsOfTheSharedTiles) {
  for (const uint64_t workers : {1, 2, 5, 7, 12, 13, 40})
    for (const uint64_t slices : {1, 3, 8}) {
      const StreamShares shares({workers, 32, 16}, 100, 40, slices); // 4 x 3 tiles
      EXPECT_EQ(shares.shared, 12 % workers ? std::min<uint64_t>(12, workers + 12 % workers) : 0u);
      std::vector<uint64_t> mine(workers);
      uint64_t last = 0;
      for (uint64_t tile = 0; tile < 12; ++tile) {
        uint64_t next = 0;
        shares.forRanges(tile, [&](uint64_t begin, uint64_t end, uint64_t worker) {
          EXPECT_EQ(begin, next);
          EXPECT_LT(begin, end);
          next = end;
          if (tile >= shares.shared)
            return;
          EXPECT_GE(worker, last); // in the order of workers
          last = worker;
          mine[worker] += end - begin;
        });
        EXPECT_EQ(next, slices);
      }
      const auto [least, most] = std::minmax_element(mine.begin(), mine.end());
      EXPECT_LE(*most - *least, 1u);
    }
}

TEST(Gemm, workersShareTiles) {
  constexpr uint64_t k = 784;
  Product p("transformer_engine", 40, 37, k, 3, 3.f);
  const auto bitsOf = [&](uint64_t splits, std::optional<StreamK> stream) {
    p.problem.splits = splits;
    p.problem.streamK = stream;
    const auto values = gemmMmaModel(p.problem);
    const auto reference = gemmReference(p.problem);
    EXPECT_TRUE(values && reference);
    EXPECT_TRUE(compareWithin(*values, reference->values, reference->bounds, reference->mayOverflow,
                              {.columns = 37})
                    .ok());
    return *values;
  };
  // Tiles of 32 x 16: 2 x 3, of 4 slices. Two workers for each have two ranges of two.
  EXPECT_EQ(bitsOf(1, StreamK{12, 32, 16}), bitsOf(2, {}));
  EXPECT_EQ(bitsOf(1, StreamK{6, 32, 16}), bitsOf(1, {})); // nothing is shared
  // Four workers have all of six tiles, 6 slices each: tiles 1 and 4 have two ranges of two, the
  // others one.
  const std::vector<float> shared = bitsOf(1, StreamK{4, 32, 16}), one = bitsOf(1, {}),
                           two = bitsOf(2, {});
  for (uint64_t i = 0; i < 40 * 37; ++i) {
    const uint64_t tile = i / 37 / 32 + i % 37 / 16 * 2;
    ASSERT_EQ(shared[i], (tile == 1 || tile == 4 ? two : one)[i]) << i;
  }
}

TEST(Gemm, boundCatchesOneWrongStep) {
  Product p("transformer_engine", 16, 16, 256, 9);
  const auto reference = gemmReference(p.problem);
  p.b.data[3] ^= 0x77; // one byte of one column
  const auto wrong = gemmMmaModel(p.problem);
  ASSERT_TRUE(reference && wrong);
  const CompareReport r = compareWithin(*wrong, reference->values, reference->bounds,
                                        reference->mayOverflow, {.columns = 16});
  EXPECT_GT(r.mismatches, 10u);
  for (const Mismatch &m : r.first)
    EXPECT_EQ(m.column, 0u);
}

TEST(Gemm, alphaAndOneRounding) { // fused alpha, against the double rounding of torchao's path
  std::vector<uint8_t> a(16), b(16), scale = {127};
  a[0] = b[0] = 0x22; // two elements 1.0
  GemmProblem p{.a = {a.data(), scale.data(), 1}, .b = {b.data(), scale.data(), 1}, .depth = 32};
  p.format = BlockFormat::MXFP4;
  EXPECT_EQ((*gemmMmaModel(p))[0], 2.f);
  p.alpha = 1.5f;
  EXPECT_EQ((*gemmMmaModel(p))[0], 3.f);
  p.output = FloatType::BF16;
  p.alpha = 1.00390625f; // 1 + 2^-8: 2 * alpha is a tie of bf16
  EXPECT_EQ((*gemmMmaModel(p))[0], 2.f);
}

/// The element where the rows or columns have an alpha each is that of a GEMM with this alpha.
TEST(Gemm, alphasOfRowsAndColumns) {
  Product p("transformer_engine", 5, 19, 128, 9, 1.f);
  p.problem.output = FloatType::BF16;
  std::vector<float> rows, columns;
  for (int i = 0; i < 19; ++i)
    columns.push_back(0.3f + 0.7f * static_cast<float>(i));
  rows.assign(columns.begin(), columns.begin() + 5);
  for (bool ofRows : {true, false}) {
    GemmProblem lines = p.problem;
    (ofRows ? lines.rowAlpha : lines.columnAlpha) = ofRows ? rows : columns;
    const auto model = gemmMmaModel(lines);
    const auto reference = gemmReference(lines);
    ASSERT_TRUE(model && reference);
    for (size_t i = 0; i < 5 * 19; ++i) {
      GemmProblem one = p.problem;
      one.alpha = ofRows ? rows[i / 19] : columns[i % 19];
      EXPECT_EQ((*model)[i], (*gemmMmaModel(one))[i]) << i;
      EXPECT_EQ(reference->values[i], gemmReference(one)->values[i]) << i;
      EXPECT_EQ(reference->bounds[i], gemmReference(one)->bounds[i]) << i;
    }
  }
  p.problem.rowAlpha = columns;
  EXPECT_EQ(gemmMmaModel(p.problem).error().message,
            "alphas of rows must be 5 numbers, but got 19");
  p.problem.rowAlpha = {};
  p.problem.columnAlpha = rows;
  EXPECT_EQ(gemmReference(p.problem).error().message,
            "alphas of columns must be 19 numbers, but got 5");
}

/// The formulas of the recipes' consumers, spelled again.
TEST(Gemm, alphaIsTheRecipesDecision) {
  const auto alpha = [](const char *recipe, std::vector<float> a, float b) {
    return matmulAlpha(*parseRecipe(recipe), a, *parseRecipe(recipe), {&b, 1});
  };
  const float a = 3.f, b = 0.7f;
  EXPECT_EQ(alpha("cutlass", {a}, b), std::vector{matmulAlpha(a, b)});
  EXPECT_EQ(alpha("modelopt", {a}, b), std::vector{(a / 2688.f) * (b / 2688.f)});
  EXPECT_EQ(alpha("vllm", {a, 5.f}, b),
            (std::vector{1.f / ((2688.f * (1.f / a)) * (2688.f * (1.f / b))),
                         1.f / ((2688.f * (1.f / 5.f)) * (2688.f * (1.f / b)))}));
  // g of bf16 weights is a bf16 number: 2688 * bf16(1 / 5) = 538.125 becomes 540.
  const auto g = [](float amax) {
    const auto bf16 = [](float x) { return decodeBF16(encodeBF16(x)); };
    return bf16(2688.f * bf16(1.f / amax));
  };
  EXPECT_EQ(g(5.f), 540.f);
  EXPECT_EQ(alpha("compressed_tensors", {5.f}, b), std::vector{1.f / (g(5.f) * g(b))});
  EXPECT_NE(alpha("compressed_tensors", {5.f}, b), alpha("compressed_tensors_f32", {5.f}, b));
  const float supplied = 20.f;
  EXPECT_EQ(alpha("vllm, tensor_scale = supplied", {supplied}, supplied),
            std::vector{1.f / (supplied * supplied)});
}

TEST(Gemm, matmulAlphaIsTheKernelsArithmetic) {
  EXPECT_EQ(bitsOf(matmulAlpha(1.f, 1.f)), bitsOf(static_cast<float>(1.0 / 7225344.0)));
  EXPECT_EQ(matmulAlpha(3.f, 0.7f), 3.f * 0.7f * static_cast<float>(1.0 / 7225344.0));
  EXPECT_EQ(alphaFactor(256.f, 448.f), static_cast<float>(1.0 / (1536.0 * 2688.0)));
  EXPECT_EQ(matmulAlpha(3.f, 0.7f, alphaFactor(256.f, 256.f)), 3.f * 0.7f * 0x1.c71c72p-22f);
  int differ = 0; // from a division, for a good part of amax pairs
  test::Random random(2);
  for (int i = 0; i < 1000; ++i) {
    const float a = roundTo(FloatType::BF16, 1.f + random.uniform());
    const float b = roundTo(FloatType::BF16, 1.f + random.uniform());
    differ += matmulAlpha(a, b) != a * b / 7225344.f;
  }
  EXPECT_GT(differ, 100);
}

TEST(Gemm, pitchesAndThreadsDoNotMatter) {
  const Product p("transformer_engine", 130, 70, 272, 21);
  GemmProblem padded = p.problem;
  std::vector<uint8_t> data(130 * 144), scales(130 * 20, 0x55);
  for (uint64_t r = 0; r < 130; ++r) {
    std::copy_n(&p.a.data[r * 136], 136, &data[r * 144]);
    std::copy_n(&p.a.scales[r * 17], 17, &scales[r * 20]);
  }
  padded.a = {data.data(), scales.data(), 130, 144, 20};
  padded.threads = 3;
  EXPECT_EQ(*gemmMmaModel(padded), *gemmMmaModel(p.problem));
  EXPECT_EQ(gemmReference(padded)->values, gemmReference(p.problem)->values);
}

TEST(Gemm, rejectsBadProblems) {
  const Product p("transformer_engine", 2, 2, 64, 1);
  GemmProblem bad = p.problem;
  bad.depth = 40;
  EXPECT_EQ(gemmMmaModel(bad).error().message,
            "K must be a positive multiple of 16 for nvfp4, but got 40");
  bad = p.problem;
  bad.a.scales = nullptr;
  EXPECT_EQ(gemmReference(bad).error().message, "matmul expects data and scales of both operands");
  bad = p.problem;
  bad.b.dataPitch = 16;
  EXPECT_EQ(gemmMmaModel(bad).error().message,
            "row pitch of operand b must be at least K / 2 bytes");
  EXPECT_TRUE(gemmMmaModel(p.problem));
}

} // namespace
