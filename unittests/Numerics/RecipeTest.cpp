// Every recipe against the golden vectors (data/numerics_vectors.json, and vectors_golden.json for
// models that came later). Sources of the expectations, per vector:
//   "model"     oracles/quantizers, an independent numpy model;
//   "observed"  what TransformerEngine's Python reference, torchao and a plain PyTorch quantizer
//               printed when they were run.
#include "TestData.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/Quantize.h"
#include <array>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

using namespace fp4;
using namespace fp4::numerics;
using nlohmann::json;

namespace {

std::vector<float> parseHex(const json &list) {
  std::vector<float> out;
  for (const json &word : list)
    out.push_back(floatOf(static_cast<uint32_t>(std::stoul(word.get<std::string>(), nullptr, 16))));
  return out;
}

/// "38:0123 7e:4567": scale byte and codes of each block.
std::string quantizeToText(const Recipe &recipe, const std::vector<std::vector<float>> &blocks,
                           std::optional<float> tensorAmax) {
  std::vector<float> all;
  for (const auto &block : blocks)
    all.insert(all.end(), block.begin(), block.end());
  const GlobalScale g = globalScale(recipe, tensorAmax ? *tensorAmax : amax(all, recipe.amaxNaN));
  std::string text;
  const unsigned size = blockSizeOf(recipe.format);
  for (size_t at = 0; at < all.size(); at += size) {
    std::vector<uint8_t> codes(size);
    const uint8_t scale = quantizeBlock(recipe, g, std::span(all).subspan(at, size), codes);
    text += fmt::format("{}{:02x}:", text.empty() ? "" : " ", scale);
    for (uint8_t c : codes)
      text += fmt::format("{:0{}x}", c, isPacked(recipe.format) ? 1 : 2);
  }
  return text;
}

/// A code of NaN is 7 here (cvt.rn.satfinite.e2m1). A vector that was made on a platform or by a
/// library with another one says so: 'N' is any of a library's NaN codes, `nanAs` the one code that
/// stands for NaN in blocks whose scale is NaN (0xff).
std::string withOurNaN(std::string expected, bool mxfp4) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (expected[i] == 'N')
      expected[i] = '7';
  if (mxfp4 && expected.substr(0, 3) == "ff:")
    return "ff:" + std::string(expected.size() - 3, '7');
  return expected;
}

const Recipe &recipe(const std::string &model) { return test::recipeOf(model); }

TEST(RecipeVectors, everyRecipeEqualsEveryNvfp4Vector) {
  const json data = test::readJson("numerics_vectors.json");
  for (const json &vector : data.at("nv")) {
    std::vector<std::vector<float>> blocks;
    for (const json &block : vector.at("x_fp32_hex"))
      blocks.push_back(parseHex(block));
    std::optional<float> tensorAmax;
    if (!vector.at("tensor_amax_override").is_null())
      tensorAmax = vector.at("tensor_amax_override").get<float>();
    for (const auto &[model, expected] : vector.at("model").items()) {
      EXPECT_EQ(quantizeToText(recipe(model), blocks, tensorAmax),
                withOurNaN(expected.get<std::string>(), false))
          << vector.at("name") << " with " << recipe(model).name;
    }
  }
}

TEST(RecipeVectors, everyRecipeEqualsEveryMxfp4Vector) {
  const json data = test::readJson("numerics_vectors.json");
  for (const json &vector : data.at("mx")) {
    const std::vector<std::vector<float>> block = {parseHex(vector.at("x_fp32_hex"))};
    for (const auto &[model, expected] : vector.at("model").items())
      EXPECT_EQ(quantizeToText(recipe(model), block, std::nullopt),
                withOurNaN(expected.get<std::string>(), true))
          << vector.at("name") << " with " << recipe(model).name;
  }
}

/// The models that came later: data/vectors_golden.json, made by oracles/quantize_golden.py.
TEST(RecipeVectors, laterRecipesEqualTheirModels) {
  const json data = test::readJson("numerics_vectors.json");
  const json golden = test::readJson("vectors_golden.json");
  std::set<std::string> checked;
  for (const char *list : {"nv", "mx"})
    for (const json &vector : data.at(list)) {
      const json &x = vector.at("x_fp32_hex");
      const bool mx = x[0].is_string();
      std::vector<std::vector<float>> blocks;
      for (const json &block : mx ? json::array({x}) : x)
        blocks.push_back(parseHex(block));
      std::optional<float> tensorAmax;
      if (!mx && !vector.at("tensor_amax_override").is_null())
        tensorAmax = vector.at("tensor_amax_override").get<float>();
      const json &models = golden.at(vector.at("name").get<std::string>());
      for (const auto &[model, expected] : models.items()) {
        EXPECT_EQ(quantizeToText(recipe(model), blocks, tensorAmax),
                  withOurNaN(expected.get<std::string>(), false))
            << vector.at("name") << " with " << recipe(model).name;
        checked.emplace(recipe(model).name);
      }
    }
  for (const char *list : {"nv", "mx"})
    for (const auto &[model, expected] : data.at(list)[0].at("model").items())
      checked.emplace(recipe(model).name);
  for (const Recipe &r : recipes())
    if (!hasF32Scales(r.format)) // F32BlocksTest.cpp
      EXPECT_TRUE(checked.contains(std::string(r.name))) << r.name << " has no vectors";
}

TEST(Recipes, torchaoDividesDifferentlyOnCuda) {
  // As PyTorch: a / 6.0 on CUDA is a * fp32(1/6), and amax / 2688.0 is amax * fp32(1/2688).
  unsigned differ = 0;
  for (int m = 0; m < 128; ++m) {
    const float amax = 1.f + static_cast<float>(m) / 128;
    const float cpu = globalScale(recipe("ao2"), amax).decode;
    differ += cpu != globalScale(recipe("ao2_cuda"), amax).decode;
  }
  EXPECT_EQ(differ, 28u); // as numpy counts
}

TEST(Recipes, everyOneHasItsRowInTheDocument) {
  std::ifstream file(FP4_SOURCE_DIR "/docs/reference/recipes.md");
  std::map<std::string, std::string> rows; // name to format
  std::smatch match;
  const std::regex row(R"(\| (\w+) \| (nvfp4|mxfp\w+|fp8\w+) \|.*\|.*\|.*\|)");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    inside = (inside || line == "<!-- recipes -->") && line != "<!-- end -->";
    if (inside && std::regex_match(line, match, row))
      EXPECT_TRUE(rows.emplace(match[1], match[2]).second) << line;
  }
  for (const Recipe &r : recipes())
    EXPECT_EQ(rows[std::string(r.name)], stringify(r.format)) << r.name;
  EXPECT_EQ(rows.size(), recipes().size());
}

/// `| name | format | values |`, all values among the last cell's words; a number has none.
TEST(Recipes, everyDecisionHasItsRowInTheDocument) {
  std::ifstream file(FP4_SOURCE_DIR "/docs/reference/recipes.md");
  std::map<std::string, std::pair<std::string, std::string>> rows; // name to format and values
  std::smatch match;
  const std::regex row(R"(\| (\w+) \| (nvfp4|mx|f32|all) \| (.*) \|)");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    inside = (inside || line == "<!-- decisions -->") && line != "<!-- end -->";
    if (inside && std::regex_match(line, match, row))
      EXPECT_TRUE(rows.emplace(match[1], std::pair(match[2], match[3])).second) << line;
  }
  constexpr std::array families = {"nvfp4", "mx", "f32", "all"};
  for (const DecisionText &decision : decisionTexts()) {
    const auto &[format, values] = rows[std::string(decision.name)];
    EXPECT_EQ(format, families[static_cast<size_t>(decision.family)]) << decision.name;
    for (std::string_view value : decision.values)
      EXPECT_TRUE(std::regex_search(values, std::regex("\\b" + std::string(value) + "\\b")))
          << decision.name << " = " << value;
  }
  EXPECT_EQ(rows.size(), decisionTexts().size());
}

TEST(Recipes, everyNameIsFoundAndEveryVectorModelIsARecipe) {
  for (const Recipe &r : recipes())
    EXPECT_EQ(lookupRecipe(r.name), &r);
  EXPECT_EQ(lookupRecipe("no_such"), nullptr);
  const auto missing = requireRecipe("no_such");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "unknown recipe 'no_such'");
  EXPECT_NE(missing.error().note.find("transformer_engine, "), std::string::npos);
}

} // namespace
