//===- HadamardKernelTest.cpp - Emitted transforms against lib/Numerics ---===//
//
// Every size, dimension and target, bit for bit, on data with what goes wrong in a transform:
// zeros of either sign, sums that round to bf16 from a tie, subnormals, overflow, infinity, NaN.
//
//===----------------------------------------------------------------------===//
#include "../Numerics/TestData.h"
#include "KernelRun.h"

#include "fp4/Numerics/Hadamard.h"
#include "fp4/Numerics/Quantize.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

using namespace fp4;
using fp4::numerics::FloatType;
using fp4::numerics::HadamardOptions;
using fp4::test::Buffer;
using fp4::test::KernelRun;

namespace {

constexpr const char *kTargets[] = {"sm_100a", "sm_90a"};

struct Case {
  uint64_t rows, columns;
  unsigned size = 16;
  unsigned dimension = 1;
  uint16_t mask = 0xD7E8;
  bool exact = false;

  std::string text() const {
    return fmt::format("{}x{} size {} dimension {} mask {:x} exact {}", rows, columns, size,
                       dimension, mask, exact);
  }
  HadamardOptions options() const {
    return {.blockSize = size,
            .signMask = mask,
            .arithmetic = exact ? numerics::HadamardArithmetic::ExactSum
                                : numerics::HadamardArithmetic::Butterfly};
  }
  std::string attributes() const {
    return fmt::format("{{size = {} : i64, dimension = {} : i64, sign_mask = {} : i64, arithmetic "
                       "= #fp4.hadamard_arithmetic<{}>}}",
                       size, dimension, mask, exact ? "tensor_core" : "butterfly");
  }
  std::string type() const { return fmt::format("tensor<{}x{}xbf16>", rows, columns); }
  /// The pieces of work of threads: 16 elements, times the columns of an access down the columns.
  int32_t pieces() const {
    uint64_t width = dimension == 1 ? 1 : std::gcd(columns, uint64_t(8));
    return static_cast<int32_t>(rows * columns / 16 / width);
  }
};

std::vector<float> transposed(const std::vector<float> &values, uint64_t rows, uint64_t columns) {
  std::vector<float> out(values.size());
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t c = 0; c < columns; ++c)
      out[c * rows + r] = values[r * columns + c];
  return out;
}

std::vector<float> reference(const Case &c, std::vector<float> values) {
  if (c.dimension == 1) {
    EXPECT_TRUE(numerics::hadamardRows(values, c.rows, c.columns, c.options()));
    return values;
  }
  values = transposed(values, c.rows, c.columns);
  EXPECT_TRUE(numerics::hadamardRows(values, c.columns, c.rows, c.options()));
  return transposed(values, c.columns, c.rows);
}

/// The bytes that the kernel makes of values that are exact in bf16.
std::vector<std::byte> transform(const Case &c, const std::vector<float> &values,
                                 const std::string &target) {
  KernelRun kernel(fmt::format("func.func @f(%x: {0}) -> {0} {{\n"
                               "  %0 = fp4.hadamard %x {1} : {0} -> {0}\n"
                               "  return %0 : {0}\n}}\n",
                               c.type(), c.attributes()),
                   target);
  Buffer x = kernel.upload(numerics::encodeFloats(FloatType::BF16, values));
  Buffer y = kernel.allocate(x.bytes);
  kernel.launch("f_hadamard_0", static_cast<uint32_t>(c.pieces() + 255) / 256, x, y, c.pieces());
  return kernel.download<std::byte>(y);
}

/// Blocks of 16 along the rows of many kinds.
std::vector<float> mixedValues(const Case &c) {
  test::Random random(c.rows + c.columns + c.size);
  std::vector<float> values(c.rows * c.columns);
  const float special[] = {0.f, -0.f, 3.3895314e38f, -3.3895314e38f, 1e-40f, -1e-40f, 258.f};
  for (uint64_t i = 0; i < values.size(); ++i) {
    const uint64_t kind = i / 16 % 8;
    float value = random.gaussian();
    if (kind == 1)
      value = random.below(2) ? 256.f : -258.f;
    else if (kind == 2)
      value = -0.f;
    else if (kind == 3)
      value = special[random.below(7)];
    else if (kind == 4)
      value = std::ldexp(value, int(random.below(60)) - 30);
    values[i] = numerics::roundTo(FloatType::BF16, value);
  }
  if (values.size() > 4000) {
    values[1000] = std::numeric_limits<float>::infinity();
    values[2000] = -std::numeric_limits<float>::quiet_NaN();
  }
  return values;
}

void expectTransform(const Case &c) {
  std::vector<float> values = mixedValues(c);
  auto expected = numerics::encodeFloats(FloatType::BF16, reference(c, values));
  for (const char *target : kTargets) {
    SCOPED_TRACE(c.text() + " " + target);
    EXPECT_EQ(transform(c, values, target), expected);
  }
}

using Amaxes = std::array<uint32_t, 2>;
Amaxes bitsOf(const numerics::HadamardAmax &amax) {
  return {std::bit_cast<uint32_t>(amax.before), std::bit_cast<uint32_t>(amax.after)};
}

/// The bits of the amax before and after the transform of each input, on both targets, are what
/// lib/Numerics says.
void expectAmaxes(const Case &c, numerics::NanPolicy policy,
                  const std::vector<std::vector<float>> &inputs) {
  std::string attributes = c.attributes();
  attributes.back() = ',';
  attributes += fmt::format(" nan = #fp4.nan_policy<{}>}}",
                            policy == numerics::NanPolicy::Drop ? "drop" : "propagate");
  for (const char *target : kTargets) {
    KernelRun kernel(
        fmt::format("func.func @f(%x: {0}) -> (tensor<f32>, tensor<f32>) {{\n"
                    "  %0, %1 = fp4.hadamard_amax %x {1} : {0} -> tensor<f32>, tensor<f32>\n"
                    "  return %0, %1 : tensor<f32>, tensor<f32>\n}}\n",
                    c.type(), attributes),
        target);
    Buffer words = kernel.allocate(16, 0); // of all launches, each of which leaves them zero
    for (const std::vector<float> &values : inputs) {
      Buffer x = kernel.upload(numerics::encodeFloats(FloatType::BF16, values));
      Buffer before = kernel.allocate(4), after = kernel.allocate(4);
      kernel.launch("f_hadamard_amax_0", c.pieces() > 600 ? 2 : 1, x, before, after, c.pieces(),
                    words);
      EXPECT_EQ(kernel.download<uint32_t>(words), std::vector<uint32_t>(4, 0));
      Amaxes got = {kernel.download<uint32_t>(before)[0], kernel.download<uint32_t>(after)[0]};
      auto expected =
          numerics::hadamardAmax(values, c.rows, c.columns, c.dimension == 0, c.options(), policy);
      ASSERT_TRUE(expected);
      EXPECT_EQ(got, bitsOf(*expected)) << c.text() << " " << target;
    }
  }
}

} // namespace

TEST(HadamardKernel, SizesAndDimensions) {
  for (unsigned size : {16u, 32u, 64u, 128u}) {
    expectTransform({.rows = 37, .columns = 3 * size, .size = size});
    expectTransform({.rows = 3 * size, .columns = 24, .size = size, .dimension = 0});
  }
}

/// The sums of a tensor core, without one: stages in fp64, across lanes for blocks of more than 16.
TEST(HadamardKernel, ExactSums) {
  for (unsigned size : {16u, 32u, 64u, 128u})
    for (unsigned dimension : {0u, 1u})
      expectTransform(
          {.rows = 128, .columns = 128, .size = size, .dimension = dimension, .exact = true});
}

TEST(HadamardKernel, ManyPiecesPerThread) {
  expectTransform({.rows = 130, .columns = 256, .size = 16});
  expectTransform({.rows = 130, .columns = 256, .size = 128});
  expectTransform({.rows = 256, .columns = 200, .size = 64, .dimension = 0});
}

TEST(HadamardKernel, ColumnsOfAnyNumber) {
  for (uint64_t columns : {1, 2, 3, 4, 6, 9, 20})
    expectTransform({.rows = 48, .columns = columns, .size = 16, .dimension = 0});
}

/// Sums of eight and more of these overflow, most of the transforms do not.
TEST(HadamardKernel, NearTheLargestNumbers) {
  test::Random random(9);
  for (unsigned size : {16u, 128u}) {
    Case c{.rows = 8, .columns = 256, .size = size};
    std::vector<float> values(c.rows * c.columns);
    for (float &value : values)
      value = numerics::roundTo(FloatType::BF16, std::ldexp(random.gaussian(), 125));
    std::vector<float> transformed = reference(c, values);
    EXPECT_LT(std::ranges::count_if(transformed, [](float y) { return !std::isfinite(y); }), 900);
    for (const char *target : kTargets)
      EXPECT_EQ(transform(c, values, target), numerics::encodeFloats(FloatType::BF16, transformed));
  }
}

TEST(HadamardKernel, SignMasks) {
  for (uint16_t mask : {0x0000, 0xFFFF, 0x0001, 0x8000, 0x1234}) {
    expectTransform({.rows = 9, .columns = 32, .size = 16, .mask = mask});
    expectTransform({.rows = 64, .columns = 16, .size = 64, .dimension = 0, .mask = mask});
  }
}

/// Sums of zeros have the sign that IEEE addition gives them, also where all inputs are -0.
TEST(HadamardKernel, SignsOfZeros) {
  const Case plain{.rows = 1, .columns = 16, .mask = 0};
  std::vector<float> values(16, -0.f), expected(16, 0.f);
  expected[0] = -0.f;
  for (const char *target : kTargets)
    EXPECT_EQ(transform(plain, values, target), numerics::encodeFloats(FloatType::BF16, expected));
  for (unsigned size : {16u, 128u})
    for (unsigned dimension : {0u, 1u}) {
      Case c{.rows = 128, .columns = 128, .size = size, .dimension = dimension};
      std::vector<float> zeros(c.rows * c.columns, -0.f);
      EXPECT_EQ(transform(c, zeros, "sm_100a"),
                numerics::encodeFloats(FloatType::BF16, reference(c, zeros)))
          << c.text();
    }
}

/// TransformerEngine's vectors, without lib/Numerics: unit vectors, ones, a ramp, the signs, and
/// 258 among 256, whose sum 1024.5 bf16 does not have.
TEST(HadamardKernel, GoldenVectors) {
  std::vector<float> rows(6 * 16), expected(6 * 16);
  auto in = [&](int row) { return rows.begin() + row * 16; };
  auto out = [&](int row) { return expected.begin() + row * 16; };
  const float ones[] = {-1, 0, 1, 0, 1, 0, -1, 0, 1, 2, 1, 0, 1, 0, 1, -2};
  const float ramp[] = {-15.5f, -7.5f, 7.5f, -.5f, 7.5f, -.5f,  -15.5f, 8.5f,
                        8.5f,   16.5f, 1.5f, 1.5f, 1.5f, -2.5f, 10.5f,  -17.5f};
  in(0)[0] = in(1)[3] = 1;
  for (int i = 0; i < 16; ++i) {
    const float sign = 0xD7E8 >> i & 1 ? -1.f : 1.f;
    in(2)[i] = 1;
    in(3)[i] = static_cast<float>(i + 1);
    in(4)[i] = sign;
    in(5)[i] = sign * (i == 0 ? 258.f : 256.f);
    out(0)[i] = .25f;
    out(1)[i] = i % 4 == 1 || i % 4 == 2 ? .25f : -.25f;
    out(2)[i] = ones[i];
    out(3)[i] = ramp[i];
    out(5)[i] = i ? .5f : 1024.f;
  }
  out(4)[0] = 4;
  for (const char *target : kTargets)
    EXPECT_EQ(numerics::decodeFloats(FloatType::BF16,
                                     transform({.rows = 6, .columns = 16}, rows, target)),
              expected)
        << target;
}

//===----------------------------------------------------------------------===//
// hadamard_amax
//===----------------------------------------------------------------------===//

TEST(HadamardAmaxKernel, SizesAndDimensions) {
  test::Random random(5);
  for (unsigned size : {16u, 32u, 64u, 128u})
    for (unsigned dimension : {0u, 1u}) {
      Case c{.rows = 128, .columns = 128, .size = size, .dimension = dimension};
      std::vector<float> values(c.rows * c.columns);
      for (float &value : values)
        value = numerics::roundTo(FloatType::BF16, random.gaussian());
      std::vector<std::vector<float>> inputs = {mixedValues(c), values};
      values[777] = std::numeric_limits<float>::quiet_NaN();
      inputs.push_back(values);
      values[1234] = -std::numeric_limits<float>::infinity();
      inputs.push_back(values);
      expectAmaxes(c, size < 64 ? numerics::NanPolicy::Drop : numerics::NanPolicy::Propagate,
                   inputs);
    }
}

TEST(HadamardAmaxKernel, ExactSums) {
  for (unsigned size : {16u, 64u}) {
    Case c{.rows = 128, .columns = 128, .size = size, .dimension = size == 16, .exact = true};
    expectAmaxes(c, numerics::NanPolicy::Drop, {mixedValues(c)});
  }
}

/// Threads behind the last piece see whole blocks: 8 of 32 lanes have one of their own.
TEST(HadamardAmaxKernel, RaggedWarps) {
  test::Random random(6);
  Case c{.rows = 5, .columns = 128, .size = 128};
  std::vector<float> values(c.rows * c.columns);
  for (float &value : values)
    value = numerics::roundTo(FloatType::BF16, random.gaussian());
  for (int i = 0; i < 16; ++i)
    values[values.size() - 16 + i] = 0xD7E8 >> i & 1 ? -3.f : 3.f; // repeated, a sum of 24 * 16
  expectAmaxes(c, numerics::NanPolicy::Drop, {values});
}

/// A block of the signs times a constant has all its weight in one sum: the amax grows by the root
/// of the size, where bf16 and fp32 may overflow. A transform of zeros has amax +0.
TEST(HadamardAmaxKernel, GrowthAndZeros) {
  Case c{.rows = 16, .columns = 16};
  std::vector<float> zeros(256, -0.f), signs = zeros, large(256, 3.3895314e38f);
  for (int i = 0; i < 16; ++i)
    signs[32 + i] = 0xD7E8 >> i & 1 ? -3.f : 3.f;
  std::vector<float> overflowing = signs;
  for (float &value : overflowing)
    value *= 0x1p125f;
  auto expected = numerics::hadamardAmax(signs, 16, 16, false);
  ASSERT_TRUE(expected);
  EXPECT_EQ(expected->before, 3.f);
  EXPECT_EQ(expected->after, 12.f);
  expectAmaxes(c, numerics::NanPolicy::Drop, {zeros, signs, large, overflowing});
  expectAmaxes(c, numerics::NanPolicy::Propagate, {zeros, signs, large, overflowing});
}
