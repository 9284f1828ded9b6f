// Results of published packages for numbered blocks (data/packages_golden.json, captured by
// integration_test/foreign/numerics/compare.py) against the recipes that are named after them.
#include "TestData.h"
#include "fp4/Numerics/Quantize.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sstream>

using namespace fp4;
using namespace fp4::numerics;
using nlohmann::json;

namespace {

std::vector<float> parseWords(const json &text) {
  std::istringstream words(text.get<std::string>());
  std::vector<float> out;
  for (std::string word; words >> word;)
    out.push_back(floatOf(static_cast<uint32_t>(std::stoul(word, nullptr, 16))));
  return out;
}

/// "7e:0123..."; 'N' where `expected` has it: the code of a NaN is the machine's.
std::string quantized(const Recipe &recipe, const std::vector<float> &x, float amax,
                      const std::string &expected) {
  std::vector<uint8_t> codes(x.size());
  std::string text = fmt::format("{:02x}:", quantizeBlock(recipe, {.amax = amax}, x, codes));
  for (uint8_t code : codes)
    text += expected[text.size()] == 'N' ? "N" : fmt::format("{:x}", code);
  return text;
}

void expectValues(const Recipe &recipe, const json &blocks, const json &expected) {
  const unsigned size = blockSizeOf(recipe.format);
  std::vector<uint8_t> ramp;
  for (unsigned i = 0; i < size; i += 2)
    ramp.push_back(static_cast<uint8_t>(i % 16 | (i + 1) % 16 << 4));
  const float amax = parseWords(blocks.at("dequantize_amax"))[0];
  for (size_t b = 0; b < expected.size(); ++b) {
    const uint8_t byte = blocks.at("bytes")[b];
    const auto got = dequantizeRows(recipe, ramp, {&byte, 1}, 1, size, amax);
    ASSERT_TRUE(got);
    const std::vector<float> want = parseWords(expected[b]);
    for (unsigned i = 0; i < want.size(); ++i)
      EXPECT_TRUE((*got)[i] == want[i] || (std::isnan((*got)[i]) && std::isnan(want[i])))
          << "code " << i << " under scale " << int(byte) << ": " << (*got)[i] << ", expected "
          << want[i];
  }
}

TEST(Packages, recipesGiveTheirBytes) {
  const json golden = test::readJson("packages_golden.json");
  EXPECT_GE(golden.at("packages").size(), 26u);
  for (const auto &[package, results] : golden.at("packages").items()) {
    SCOPED_TRACE(package);
    const auto recipe = parseRecipe(results.at("recipe").get<std::string>());
    ASSERT_TRUE(recipe) << format(recipe.error());
    // A package that does not take all of its format's blocks has its own.
    const json &blocks =
        results.contains("x") ? results : golden.at(std::string(stringify(recipe->format)));
    ASSERT_EQ(results.at("results").size(), blocks.at("x").size());
    for (size_t i = 0; i < blocks.at("x").size(); ++i) {
      const std::string expected = results.at("results")[i];
      const float amax = parseWords(blocks.at("amax")[i])[0];
      EXPECT_EQ(quantized(*recipe, parseWords(blocks.at("x")[i]), amax, expected), expected)
          << "block " << i;
    }
    expectValues(*recipe, blocks, results.at("dequantized"));
  }
}

} // namespace
