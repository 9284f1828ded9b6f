// Hadamard transform, Philox, comparisons.
//
// Sources: Hadamard: TransformerEngine's Python reference (golden vectors of its default signs) and
// the definition H_ij = (-1)^popcount(i & j) summed in fp64. Philox: the known-answer vectors of
// Random123 (Salmon et al.), and values drawn from cuRAND and Triton.
#include "TestData.h"
#include "fp4/Numerics/Compare.h"
#include "fp4/Numerics/Hadamard.h"
#include <bit>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;

namespace {

std::vector<float> transformed(std::vector<float> x, const HadamardOptions &options = {}) {
  EXPECT_TRUE(hadamard(x, options));
  return x;
}

TEST(Hadamard, goldenVectorsOfTheDefaultSigns) {
  std::vector<float> e0(16), e3(16), ones(16, 1.f), ramp(16), signs(16);
  e0[0] = e3[3] = 1.f;
  for (int i = 0; i < 16; ++i) {
    ramp[i] = static_cast<float>(i + 1);
    signs[i] = 0xD7E8 >> i & 1 ? -1.f : 1.f;
  }
  EXPECT_EQ(transformed(e0), std::vector<float>(16, 0.25f));
  const std::vector<float> fourth = {-.25f, .25f, .25f, -.25f, -.25f, .25f, .25f, -.25f,
                                     -.25f, .25f, .25f, -.25f, -.25f, .25f, .25f, -.25f};
  EXPECT_EQ(transformed(e3), fourth);
  EXPECT_EQ(transformed(ones),
            (std::vector<float>{-1, 0, 1, 0, 1, 0, -1, 0, 1, 2, 1, 0, 1, 0, 1, -2}));
  EXPECT_EQ(transformed(ramp),
            (std::vector<float>{-15.5f, -7.5f, 7.5f, -.5f, 7.5f, -.5f, -15.5f, 8.5f, 8.5f, 16.5f,
                                1.5f, 1.5f, 1.5f, -2.5f, 10.5f, -17.5f}));
  std::vector<float> first(16);
  first[0] = 4.f;
  EXPECT_EQ(transformed(signs), first);
}

TEST(Hadamard, roundsToBf16UnlessAsked) {
  std::vector<float> x(16, 256.f);
  for (int i = 0; i < 16; ++i)
    x[i] = (0xD7E8 >> i & 1 ? -1.f : 1.f) * (i == 1 ? 257.f : 256.f);
  EXPECT_EQ(transformed(x)[0], 1024.f); // 1024.25
  EXPECT_EQ(transformed(x)[1], -0.25f);
  EXPECT_EQ(transformed(x, {.roundToBF16 = false})[0], 1024.25f);
}

/// As on a tensor core, whose matrix has the scale in it: eight of these numbers add up to more
/// than the largest fp32, and the transform is 4 * 5e37 in one place and zero in the others.
TEST(Hadamard, overflowsOnlyWhereTheResultDoes) {
  for (unsigned n : {16u, 32u, 64u, 128u}) {
    const float most = std::sqrt(static_cast<float>(n));
    std::vector<float> x(n, 0x1p127f / most), y(n);
    std::fill(x.begin() + n / 2, x.end(), -0x1p127f / most);
    y[n / 2] = 0x1p127f;
    for (auto order : {ButterflyOrder::Ascending, ButterflyOrder::Descending})
      for (auto arithmetic : {HadamardArithmetic::Butterfly, HadamardArithmetic::ExactSum}) {
        auto got = transformed(
            x, {.blockSize = n, .signMask = 0, .order = order, .arithmetic = arithmetic});
        EXPECT_EQ(got, y) << n;
      }
  }
  const std::vector<float> x(16, 0x1p126f);
  EXPECT_EQ(transformed(x, {.signMask = 0})[0], INFINITY);
}

TEST(Hadamard, equalsTheDefinitionAndIsItsOwnInverse) {
  test::Random random(3);
  for (unsigned n : {16u, 32u, 64u, 128u}) {
    std::vector<float> x(2 * n);
    for (float &v : x)
      v = static_cast<float>(int(random.below(33)) - 16);
    const HadamardOptions options{.blockSize = n, .signMask = 0, .roundToBF16 = false};
    const std::vector<float> y = transformed(x, options);
    for (unsigned block = 0; block < 2; ++block)
      for (unsigned j = 0; j < n; ++j) {
        double sum = 0;
        for (unsigned i = 0; i < n; ++i)
          sum += (std::popcount(i & j) % 2 ? -1.0 : 1.0) * x[block * n + i];
        const float scale = static_cast<float>(1 / std::sqrt(double(n)));
        EXPECT_EQ(y[block * n + j], static_cast<float>(sum) * scale);
      }
    EXPECT_EQ(transformed(x, {.blockSize = n,
                              .signMask = 0,
                              .order = ButterflyOrder::Descending,
                              .roundToBF16 = false}),
              y); // sums of small integers are exact in either order
    if (n == 16 || n == 64)
      EXPECT_EQ(transformed(y, options), x);
  }
}

TEST(Hadamard, orderIsPartOfTheContractForFp32) {
  test::Random random(4);
  std::vector<float> x(16 * 64);
  for (float &v : x)
    v = random.gaussian();
  const auto up = transformed(x, {.roundToBF16 = false});
  const auto down = transformed(x, {.order = ButterflyOrder::Descending, .roundToBF16 = false});
  EXPECT_NE(up, down);
  // 2^24 + 1 + 1: the first stage adds what lies one apart, or half a block apart.
  std::vector<float> few(16);
  few[0] = 0x1p24f;
  few[1] = few[2] = 1.f;
  const HadamardOptions plain{.signMask = 0, .roundToBF16 = false};
  EXPECT_EQ(transformed(few, plain)[0], 0x1p22f); // (2^24 + 1) + 1
  few[1] = few[9] = 1.f;
  few[2] = 0.f;
  EXPECT_EQ(transformed(few, plain)[0], 0x1p22f); // (2^24 + 1) + 1
  HadamardOptions halves = plain;
  halves.order = ButterflyOrder::Descending;
  EXPECT_EQ(transformed(few, halves)[0], 0x1p22f + 0.5f); // 2^24 + (1 + 1)
  // bf16 inputs: after rounding to bf16 the orders agree.
  for (float &v : x)
    v = roundTo(FloatType::BF16, v);
  EXPECT_EQ(transformed(x), transformed(x, {.order = ButterflyOrder::Descending}));
}

TEST(Hadamard, rejectsOtherSizes) {
  std::vector<float> x(24);
  EXPECT_EQ(hadamard(x, {.blockSize = 8}).error().message,
            "hadamard block size must be 16, 32, 64 or 128, but got 8");
  EXPECT_EQ(hadamard(x).error().message, "hadamard expects a multiple of 16 values, but got 24");
}

TEST(Philox, knownAnswers) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32(0, 0, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32(~0ull, ~0ull, ~0ull), // Random123 kat_vectors
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32(42, 0, 0), (Block{0x9ceaf053, 0x77f5493b, 0x12bf50ad, 0x5742b3d7}));
  EXPECT_EQ(philox4x32(42, 1, 0), (Block{0x02933769, 0x2051e913, 0x3b68b038, 0xb62c409c}));
  EXPECT_EQ(philox4x32(42, 0, 1), (Block{0xfcdb2127, 0x53ba6cfd, 0x838f5a6e, 0x744e06fb}));
  EXPECT_EQ(philox4x32(12345, 7, 0), (Block{0xe6f940bb, 0x8f703033, 0x680c7f25, 0x5e9ad4d4}));
}

TEST(Compare, bits) {
  const std::vector<float> a = {1.f, 2.f, -0.f, 4.f}, b = {1.f, 2.f, -0.f, 4.f};
  const CompareReport same = compareBits(a, b, {.columns = 2});
  EXPECT_TRUE(same.ok());
  EXPECT_EQ(same.text(), "all 4 elements equal");
  const std::vector<float> c = {1.f, 2.0078125f * 0 + 2.015625f, 0.f, 4.f};
  const CompareReport r = compareBits(c, b, {.type = FloatType::BF16, .columns = 2});
  EXPECT_EQ(r.mismatches, 2u);
  EXPECT_EQ(r.maxUlps, 1u);
  ASSERT_EQ(r.first.size(), 2u);
  EXPECT_EQ(r.first[0].row, 0u);
  EXPECT_EQ(r.first[0].column, 1u);
  EXPECT_EQ(r.first[1].row, 1u);
  EXPECT_EQ(r.text(), "2 of 4 elements differ, largest distance 1 ulp\n"
                      "  [0, 1] got 2.015625, expected 2 (1 ulp)\n"
                      "  [1, 0] got 0, expected -0 (1 ulp)\n");
}

TEST(Compare, sizesAndNaN) {
  const float nan = floatOf(0x7FC00000), other = floatOf(0x7FFFFFFF);
  EXPECT_TRUE(compareBits(std::vector{nan}, std::vector{other}, {}).ok());
  EXPECT_FALSE(compareBits(std::vector{nan}, std::vector{other}, {.nanEqual = false}).ok());
  EXPECT_FALSE(compareBits(std::vector{nan}, std::vector{1.f}, {}).ok());
  const CompareReport shorter = compareBits(std::vector{1.f}, std::vector{1.f, 2.f}, {});
  EXPECT_EQ(shorter.mismatches, 1u);
  EXPECT_EQ(compareBytes(std::vector<uint8_t>{1, 9}, std::vector<uint8_t>{1, 4}, {}).maxUlps, 5u);
}

TEST(Compare, within) {
  const std::vector<double> expected = {1.0, 2.0, INFINITY}, bound = {0.01, 0.01, INFINITY};
  EXPECT_TRUE(compareWithin(std::vector{1.005f, 2.f, INFINITY}, expected, bound, {}, {}).ok());
  const CompareReport r =
      compareWithin(std::vector{1.005f, 2.5f, INFINITY}, expected, bound, {}, {});
  EXPECT_EQ(r.mismatches, 1u);
  EXPECT_NEAR(r.maxErrorOfBound, 50, 1e-6);
  const float nan = floatOf(0x7FC00000);
  EXPECT_FALSE(compareWithin(std::vector{nan, 2.f, INFINITY}, expected, bound, {}, {}).ok());
}

} // namespace
