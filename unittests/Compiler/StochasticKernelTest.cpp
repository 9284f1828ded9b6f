//===- StochasticKernelTest.cpp - Random bits and what they round ---------===//
//
// Emitted stochastic rounding against lib/Numerics, against known answers of Philox, and against
// its expectation; with the instruction (sm_100a) and without (sm_90a).
//
//===----------------------------------------------------------------------===//
#include "../Numerics/TestData.h"
#include "KernelRun.h"

#include "fp4/Numerics/Quantize.h"
#include "fp4/Numerics/QuantizeMatrix.h"

#include <fmt/format.h>
#include <limits>

using namespace fp4;
using fp4::numerics::BlockFormat;
using fp4::numerics::FloatType;
using fp4::test::Buffer;
using fp4::test::KernelRun;

namespace {

constexpr const char *kTargets[] = {"sm_100a", "sm_90a"};

/// A row-wise quantizer of fp32 matrices with `columns` columns, a multiple of 32.
class Quantizer {
public:
  Quantizer(const std::string &recipe, uint64_t columns, const std::string &target,
            const std::string &attributes = "")
      : recipe(*numerics::lookupRecipe(recipe)), columns(columns),
        kernel(text(attributes), target) {}

  struct Output {
    std::vector<uint8_t> codes; ///< one per element
    std::vector<uint8_t> scales;
  };

  Output run(const std::vector<float> &values, float amax, uint64_t seed, uint64_t offset) {
    const uint64_t rows = values.size() / columns, blocks = values.size() / blockSize();
    Buffer x = kernel.upload(values), rng = kernel.upload(std::vector{seed, offset});
    Buffer data = kernel.allocate(values.size() / 2), scales = kernel.allocate(blocks);
    const uint32_t grid = static_cast<uint32_t>((blocks + 255) / 256);
    const int32_t count = static_cast<int32_t>(rows);
    if (isNVFP4())
      kernel.launch("f_quantize_0", grid, x, kernel.upload(std::vector{amax}), rng, data, scales,
                    count);
    else
      kernel.launch("f_quantize_0", grid, x, rng, data, scales, count);
    Output out{std::vector<uint8_t>(values.size()), kernel.download<uint8_t>(scales)};
    numerics::unpackE2M1(kernel.download<uint8_t>(data), out.codes);
    return out;
  }

  Output reference(const std::vector<float> &values, float amax,
                   const numerics::StochasticRounding &rounding) const {
    numerics::QuantizeOptions options;
    options.rowwise->stochastic = rounding;
    if (isNVFP4())
      options.rowwise->amax = amax;
    auto pair = numerics::quantizeMatrix(recipe, values, values.size() / columns, columns, options);
    EXPECT_TRUE(pair);
    Output out{std::vector<uint8_t>(values.size()), pair->rowwise->scales};
    numerics::unpackE2M1(pair->rowwise->data, out.codes);
    return out;
  }

private:
  bool isNVFP4() const { return recipe.format == BlockFormat::NVFP4; }
  uint64_t blockSize() const { return isNVFP4() ? 16 : 32; }

  std::string text(const std::string &attributes) const {
    std::string q = fmt::format("tensor<?x{}xf4E2M1FN>", columns);
    std::string s =
        fmt::format("tensor<?x{}x{}>", columns / blockSize(), isNVFP4() ? "f8E4M3FN" : "f8E8M0FNU");
    std::string x = fmt::format("tensor<?x{}xf32>", columns);
    return fmt::format(
        "func.func @f(%x: {0}, %a: tensor<f32>, %r: tensor<2xi64>) -> ({1}, {2}) {{\n"
        "  %q, %s = fp4.quantize %x {3} rng %r {{format = #fp4.format<{4}>, "
        "recipe = #fp4.recipe<{5}>, rounding = #fp4.rounding<stochastic>{6}}}\n"
        "      : ({0}{7}, tensor<2xi64>) -> ({1}, {2})\n"
        "  return %q, %s : {1}, {2}\n}}\n",
        x, q, s, isNVFP4() ? "amax %a" : "", isNVFP4() ? "nvfp4" : "mxfp4", recipe.name, attributes,
        isNVFP4() ? ", tensor<f32>" : "");
  }

  const numerics::Recipe &recipe;
  uint64_t columns;
  KernelRun kernel;
};

/// fp32 values around every boundary of E2M1, for blocks whose scale is 1: grid points and the
/// numbers beside them, 1/256 positions and the numbers beside them, overflow, zeros, NaN.
std::vector<float> boundaries() {
  std::vector<float> values;
  auto add = [&](float x) {
    for (float near : {x, std::nextafter(x, 0.f), std::nextafter(x, 100.f)})
      values.insert(values.end(), {near, -near});
  };
  const float grid[] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
  for (int i = 0; i < 7; ++i)
    for (int k = 0; k < 256; k += i == 0 ? 1 : 5)
      add(grid[i] + (grid[i + 1] - grid[i]) * static_cast<float>(k) / 256.f);
  for (float x : {6.f, 7.f, 7.99f, 1e-30f, 1e-44f, std::numeric_limits<float>::quiet_NaN()})
    add(x);
  return values;
}

} // namespace

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

/// The random byte of each element, found by bisection: with scale 1, an element at k / 256 between
/// 0 and 0.5 becomes 0.5 where k + byte >= 256. The words are the known answers of cuRAND and
/// Triton (docs/reference/numerics.md), without lib/Numerics.
TEST(Stochastic, DrawsTheKnownAnswersOfPhilox) {
  const struct {
    uint64_t seed, offset;
    std::array<uint32_t, 4> words; ///< of subsequence 0
  } known[] = {{0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
               {42, 0, {0x9ceaf053, 0x77f5493b, 0x12bf50ad, 0x5742b3d7}},
               {42, 1, {0xfcdb2127, 0x53ba6cfd, 0x838f5a6e, 0x744e06fb}}};
  auto reversed = [](uint32_t byte) {
    uint32_t result = 0;
    for (int i = 0; i < 8; ++i)
      result |= (byte >> i & 1) << (7 - i);
    return result;
  };
  for (const char *target : kTargets) {
    Quantizer quantizer("ocp_floor", 32, target);
    for (const auto &[seed, offset, words] : known) {
      std::array<uint32_t, 16> bytes{};
      for (uint32_t bit = 128; bit > 0; bit /= 2) {
        // Is the byte at least bytes + bit? One large element gives the block scale 1.
        std::vector<float> values(32);
        values[31] = 4;
        for (int i = 0; i < 16; ++i)
          values[i] = static_cast<float>(256 - (bytes[i] + bit)) / 512.f;
        auto out = quantizer.run(values, 0, seed, offset);
        ASSERT_EQ(out.scales[0], 127);
        for (int i = 0; i < 16; ++i)
          bytes[i] += out.codes[i] ? bit : 0;
      }
      for (int i = 0; i < 16; ++i) {
        const uint32_t word = words[i / 4];
        const uint32_t expected[] = {word >> 16 & 255, reversed(word & 255), word >> 24,
                                     reversed(word >> 8 & 255)};
        EXPECT_EQ(bytes[i], expected[i % 4]) << target << " seed " << seed << " element " << i;
      }
    }
  }
}

TEST(Stochastic, EqualsTheReferenceAtEveryBoundary) {
  std::vector<float> special = boundaries(), values;
  for (size_t i = 0; i < special.size(); ++i) {
    if (values.size() % 32 == 0)
      values.push_back(4); // the scale
    values.push_back(special[i]);
  }
  values.resize((values.size() + 31) / 32 * 32);
  for (const char *target : kTargets) {
    Quantizer quantizer("ocp_floor", 32, target);
    for (uint64_t seed : {1ull, 0x123456789ABCDEFull}) {
      const uint64_t offset = seed << 40 | 7;
      auto got = quantizer.run(values, 0, seed, offset);
      auto expected = quantizer.reference(values, 0, {.seed = seed, .offset = offset});
      EXPECT_EQ(got.scales, expected.scales) << target;
      EXPECT_EQ(got.codes, expected.codes) << target;
    }
  }
}

TEST(Stochastic, EqualsTheReferenceForRecipesAndMappings) {
  test::Random random(11);
  std::vector<float> values(200 * 160);
  for (float &value : values)
    value = random.gaussian();
  const float amax = numerics::amax(values);
  using Mapping = numerics::PhiloxMapping;
  for (const char *target : kTargets)
    for (auto [recipe, mapping] :
         {std::pair("transformer_engine", Mapping::Element),
          std::pair("transformer_engine", Mapping::TransformerEngineBlockwise),
          std::pair("torchao", Mapping::Element), std::pair("ocp_rceil", Mapping::Element)}) {
      SCOPED_TRACE(fmt::format("{} {}", target, recipe));
      Quantizer quantizer(
          recipe, 160, target,
          mapping == Mapping::Element ? "" : ", philox = #fp4.philox<transformer_engine>");
      auto got = quantizer.run(values, amax, 99, ~0ull - 1); // draws wrap around 2^64
      auto expected =
          quantizer.reference(values, amax, {.seed = 99, .offset = ~0ull - 1, .mapping = mapping});
      EXPECT_EQ(got.scales, expected.scales);
      EXPECT_EQ(got.codes, expected.codes);
    }
}

//===----------------------------------------------------------------------===//
// Expectation
//===----------------------------------------------------------------------===//

/// 2^20 draws of each of eight values whose position p between its neighbours is a multiple of
/// 1/256, so that the mean is the value. The number of draws that go up is binomial; with z = 5
/// standard deviations, unbiased draws fail one of the 16 comparisons with probability 16 * 5.7e-7
/// = 9e-6 (and the seed is fixed: this one does not). One standard deviation is at most 2^-11 of
/// the step, so a bias of one random byte in 256 (2^-8 of the step, eight of them) passes with
/// probability below 0.2 %.
TEST(Stochastic, MeanIsTheValue) {
  const struct {
    float value, low, step;
  } cases[] = {{.125f, 0, .5f},    {-.25f, 0, .5f}, {.625f, .5f, .5f}, {-1.375f, 1, .5f},
               {1.75f, 1.5f, .5f}, {2.25f, 2, 1},   {-3.5f, 3, 1},     {4.5f, 4, 2}};
  constexpr size_t draws = size_t(1) << 20, perRow = 31;
  for (const char *target : kTargets) {
    Quantizer quantizer("ocp_floor", 32, target);
    // Element 31 of a block gives it scale 1; the others cycle through the cases.
    std::vector<float> values((draws * 8 / perRow + 32) * 32);
    for (size_t i = 0, at = 0; i < values.size(); ++i)
      values[i] = i % 32 == 31 ? 4.f : cases[at++ % 8].value;
    auto codes = quantizer.run(values, 0, 2026, 3).codes;
    std::array<double, 8> up{}, count{};
    for (size_t i = 0, at = 0; i < codes.size(); ++i) {
      if (i % 32 == 31)
        continue;
      const auto &c = cases[at % 8];
      const float code = numerics::decodeE2M1(codes[i]);
      ASSERT_EQ(std::signbit(code), std::signbit(c.value));
      const float magnitude = std::fabs(code);
      ASSERT_TRUE(magnitude == c.low || magnitude == c.low + c.step) << magnitude;
      up[at % 8] += magnitude > c.low;
      ++count[at++ % 8];
    }
    for (int i = 0; i < 8; ++i) {
      ASSERT_GE(count[i], draws);
      const double p = (std::fabs(cases[i].value) - cases[i].low) / cases[i].step;
      const double deviation = std::sqrt(count[i] * p * (1 - p));
      EXPECT_LT(std::fabs(up[i] - count[i] * p) / deviation, 5.0) << target << " " << i;
    }
  }
}
