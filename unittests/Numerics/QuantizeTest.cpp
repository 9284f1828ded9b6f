// Whole-matrix quantizing, dequantizing and scale layout.
//
// Sources: data/quantize_golden.json (oracles/quantize_golden.py: the numpy models over bf16 tensors
// with amaxes that are no powers of two, where the recipes differ), and the structural vectors of
// torchao's to_blocked.
#include "fp4/Numerics/Quantize.h"
#include "TestData.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/QuantizeMatrix.h"
#include "fp4/Numerics/E4M3.h"
#include <bit>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>

using namespace fp4;
using namespace fp4::numerics;

namespace {

constexpr uint64_t rows = 16, columns = 512;

/// The tensor of oracles/quantize_golden.py.
std::vector<float> goldenTensor(uint32_t seed) {
  std::vector<float> out;
  for (uint64_t i = 0; i < rows * columns; ++i) {
    const uint32_t w = philox4x32(seed, 0, i / 4)[i % 4];
    const int zeros = (w & 0xFF) == 0 ? 8 : std::countr_zero(w);
    const uint64_t block = i / 32;
    const uint32_t exponent = 127 - zeros - static_cast<uint32_t>((block * 2654435761u >> 8) % 9);
    out.push_back(floatOf((w >> 31) << 31 | exponent << 23 | (w >> 16 & 0x7F) << 16));
  }
  out[5] = floatOf(128u << 23 | ((37 * seed + 5) & 0x7F) << 16);
  return out;
}

std::string hashOf(const std::vector<uint8_t> &bytes) {
  uint64_t hash = test::fnvBasis;
  for (uint8_t b : bytes)
    test::fnv(hash, b);
  return fmt::format("{:016x}", hash);
}

TEST(QuantizeRows, equalsTheModelsOnBf16Tensors) {
  const auto golden = test::readJson("quantize_golden.json");
  ASSERT_EQ(golden.size(), 8u);
  for (const auto &entry : golden) {
    const auto x = goldenTensor(entry.at("seed"));
    ASSERT_EQ(fmt::format("{:08x}", bitsOf(amax(x))), entry.at("amax").get<std::string>());
    for (const auto &[model, hashes] : entry.at("recipes").items()) {
      const Recipe *recipe = &test::recipeOf(model);
      const auto pair = quantizeMatrix(*recipe, x, rows, columns);
      ASSERT_TRUE(pair) << format(pair.error());
      const QuantizedSide &q = *pair->rowwise;
      EXPECT_EQ(hashOf(q.scales), hashes[0].get<std::string>()) << "scales of " << recipe->name;
      EXPECT_EQ(hashOf(q.data), hashes[1].get<std::string>()) << "codes of " << recipe->name;
      if (!isPacked(recipe->format))
        continue;
      const auto rowsOnly = quantizeRows(*recipe, x, rows, columns);
      ASSERT_TRUE(rowsOnly) << format(rowsOnly.error());
      EXPECT_EQ(rowsOnly->scales, q.scales);
      EXPECT_EQ(rowsOnly->data, q.data);
    }
  }
}

TEST(QuantizeRows, staleAmaxIsTheCallers) {
  std::vector<float> x(16, 1.f);
  x[0] = 10.f;
  const auto q = quantizeRows(*lookupRecipe("transformer_engine"), x, 1, 16, 1.f);
  ASSERT_TRUE(q);
  EXPECT_EQ(q->tensorAmax, 1.f);
  EXPECT_EQ(q->scales[0], 0x7E); // saturated
}

TEST(QuantizeRows, rejectsWrongSizes) {
  const Recipe &nv = *lookupRecipe("transformer_engine"), &mx = *lookupRecipe("ocp_floor");
  const std::vector<float> x(96);
  EXPECT_EQ(quantizeRows(nv, x, 4, 24).error().message,
            "columns must be a multiple of 16 for nvfp4, but got 24");
  EXPECT_EQ(quantizeRows(mx, x, 2, 48).error().message,
            "columns must be a multiple of 32 for mxfp4, but got 48");
  EXPECT_TRUE(quantizeRows(nv, x, 2, 48));
  EXPECT_EQ(quantizeRows(nv, x, 3, 48).error().message,
            "values must have 144 elements, but got 96");
}

TEST(Amax, nanPolicies) {
  const float nan = floatOf(0x7FC00000);
  const std::vector<float> x = {1.f, nan, -3.f}, none = {nan, nan};
  EXPECT_EQ(amax(x, NanPolicy::Drop), 3.f);
  EXPECT_TRUE(std::isnan(amax(x, NanPolicy::Propagate)));
  EXPECT_EQ(amax(none, NanPolicy::Drop), 0.f);
  EXPECT_EQ(amax({}, NanPolicy::Propagate), 0.f);
  EXPECT_EQ(amax(std::vector<float>{-INFINITY, 1.f}), INFINITY);
  EXPECT_EQ(amax(std::vector<float>{-1e-45f}), 1e-45f);
}

TEST(GlobalScale, guards) { // TransformerEngine's rule
  const Recipe &te = *lookupRecipe("transformer_engine");
  EXPECT_EQ(globalScale(te, 2688.f).encode, 1.f);
  EXPECT_EQ(globalScale(te, 0.f).encode, 1.f);
  EXPECT_EQ(globalScale(te, INFINITY).encode, 1.f);
  EXPECT_EQ(globalScale(te, 1e-38f).encode, 0x1.FFFFFEp127f);
  EXPECT_EQ(bitsOf(globalScale(te, 1e-38f).decode), bitsOf(1.f / 0x1.FFFFFEp127f)); // subnormal
  EXPECT_NE(globalScale(te, 1e-38f).decode, 0.f);
  // PyTorch's hidden reciprocal differs from a division for some amaxes.
  int differ = 0;
  for (int m = 0; m < 128; ++m) {
    const float a = 1.f + static_cast<float>(m) / 128;
    differ += globalScale(*lookupRecipe("pytorch_eager"), a).encode != globalScale(te, a).encode;
  }
  EXPECT_EQ(differ, 30);
}

TEST(Dequantize, returnsGridPoints) {
  test::Random random(7);
  std::vector<float> x(4 * 64);
  for (float &v : x)
    v = roundTo(FloatType::BF16, random.gaussian());
  for (const char *name : {"transformer_engine", "ocp_rceil"}) {
    const Recipe &recipe = *lookupRecipe(name);
    const auto q = quantizeRows(recipe, x, 4, 64);
    ASSERT_TRUE(q);
    const auto back = dequantizeRows(recipe, q->data, q->scales, 4, 64, q->tensorAmax);
    ASSERT_TRUE(back);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR((*back)[i], x[i], 0.35 * std::fabs(x[i]) + 0.2) << name;
  }
  // One exact block: scale 1.0, amax 2688.
  const std::vector<uint8_t> data = {0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE};
  const std::vector<uint8_t> scale = {0x38};
  const Recipe &nv = *lookupRecipe("transformer_engine"), &mx = *lookupRecipe("ocp_floor");
  const auto exact = dequantizeRows(nv, data, scale, 1, 16);
  ASSERT_TRUE(exact);
  for (unsigned i = 0; i < 16; ++i)
    EXPECT_EQ(bitsOf((*exact)[i]), bitsOf(decodeE2M1(i)));
  EXPECT_FALSE(dequantizeRows(nv, data, {}, 1, 16));
  EXPECT_FALSE(dequantizeRows(mx, data, scale, 1, 16));
}

TEST(Dequantize, hasTheFormulaOfTheLibrary) {
  using Formula = std::function<float(float f, float a)>;
  const float r = static_cast<float>(1.0 / 2688.0);
  const std::map<std::string, Formula> formulas = {
      {"transformer_engine", [=](float f, float a) { return (f * a) * r; }},
      {"torchao", [](float f, float a) { return f * (a / 2688.f); }},
      {"torchao_cuda", [=](float f, float a) { return f * (a * r); }},
      {"torchao_1level", [](float f, float) { return f; }},
      {"modelopt", [](float f, float a) { return f * (a / 2688.f); }},
      {"flashinfer", [](float f, float a) { return f * (1.f / (2688.f * (1.f / a))); }},
      {"flashinfer, reciprocals = approximate",
       [](float f, float a) { return f * (1.f / (2688.f * (1.f / a))); }},
      {"vllm", [](float f, float a) { return f / (2688.f * (1.f / a)); }},
      {"mslk", [](float f, float a) { return f / (2688.f / a); }},
      {"transformer_engine, tensor_scale = supplied",
       [](float f, float g) { return f * (1.f / g); }},
      {"torchao, tensor_scale = supplied_decode", [](float f, float d) { return f * d; }}};
  std::vector<uint8_t> bytes(127), data(127 * 8, 0x73);
  std::iota(bytes.begin(), bytes.end(), uint8_t(0));
  for (const auto &[text, formula] : formulas)
    for (float amax : {3.7f, 1.09375f, 1e-3f, 448.1f}) {
      const auto values = dequantizeRows(*parseRecipe(text), data, bytes, 127, 16, amax);
      ASSERT_TRUE(values);
      for (uint8_t byte : bytes)
        for (unsigned i : {0, 1})
          EXPECT_EQ((*values)[byte * 16 + i], (i ? 6.f : 1.5f) * formula(decodeE4M3(byte), amax))
              << text << ", scale " << int(byte) << ", amax " << amax;
    }
}

/// torchao's caller divides the amax by 2688 and passes the quotient.
TEST(Quantize, aSuppliedDecodeScaleIsTheOneThatTheAmaxGives) {
  std::vector<float> x(256);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = roundTo(FloatType::BF16, std::sin(static_cast<float>(i)) * (i % 7 ? 0.3f : 5.f));
  for (float amax : {5.f, 1.015625f, 3e-3f}) {
    const auto given = quantizeRows(*parseRecipe("torchao, tensor_scale = supplied_decode"), x, 4,
                                    64, amax / 2688.f);
    const auto derived = quantizeRows(*lookupRecipe("torchao"), x, 4, 64, amax);
    ASSERT_TRUE(given && derived);
    EXPECT_EQ(given->data, derived->data);
    EXPECT_EQ(given->scales, derived->scales);
  }
}

TEST(Dequantize, readsTheEndsOfExponentsAsTheLibraryDoes) {
  const std::vector<uint8_t> bytes = {0, 255};
  const auto first = [&](const char *recipe, size_t row) {
    std::vector<uint8_t> rows(32, 0x22);
    return (*dequantizeRows(*lookupRecipe(recipe), rows, bytes, 2, 32))[row * 32];
  };
  EXPECT_EQ(first("ocp_floor", 0), 0x1p-127f);
  EXPECT_TRUE(std::isnan(first("ocp_floor", 1)));
  EXPECT_EQ(first("mxfp4_flashinfer", 0), 0.f);
  EXPECT_EQ(first("mxfp4_flashinfer", 1), INFINITY);
}

TEST(SwizzleScales, roundTripsAndPadsWithZero) {
  for (auto [r, b] : {std::pair<uint64_t, uint64_t>{1, 1}, {128, 4}, {130, 6}, {300, 22}}) {
    std::vector<uint8_t> scales(r * b);
    for (size_t i = 0; i < scales.size(); ++i)
      scales[i] = static_cast<uint8_t>(1 + i % 255);
    const auto tiled = swizzleScales(scales, r, b);
    ASSERT_TRUE(tiled);
    EXPECT_EQ(tiled->size(), (r + 127) / 128 * 128 * ((b + 3) / 4 * 4));
    EXPECT_EQ(std::count(tiled->begin(), tiled->end(), 0), long(tiled->size() - scales.size()));
    EXPECT_EQ(*unswizzleScales(*tiled, r, b), scales);
  }
  EXPECT_EQ(swizzleScales({}, 1, 1).error().message, "scales must have 1 elements, but got 0");
  EXPECT_FALSE(unswizzleScales(std::vector<uint8_t>(511), 1, 1));
}

} // namespace
