// The named recipes of Recipes.def: one row per library and version whose bits differ.
#include "fp4/Numerics/Recipe.h"
#include <algorithm>
#include <array>
#include <string>

namespace fp4::numerics {
namespace {

constexpr std::array allRecipes = {
#define FP4_RECIPE(name_, format_, summary_, ...)                                                  \
  Recipe{.name = #name_,                                                                           \
         .summary = summary_,                                                                      \
         .format = BlockFormat::format_ __VA_OPT__(, ) __VA_ARGS__},
#include "fp4/Numerics/Recipes.def"
};

} // namespace

std::span<const Recipe> recipes() { return allRecipes; }

const Recipe *lookupRecipe(std::string_view name) {
  for (const Recipe &recipe : allRecipes)
    if (recipe.name == name)
      return &recipe;
  return nullptr;
}

const Recipe &defaultRecipe(BlockFormat format) {
  return *std::ranges::find(allRecipes, format, &Recipe::format);
}

Expected<const Recipe *> requireRecipe(std::string_view name) {
  if (const Recipe *recipe = lookupRecipe(name))
    return recipe;
  std::string known;
  for (const Recipe &recipe : allRecipes)
    known += (known.empty() ? "" : ", ") + std::string(recipe.name);
  return makeError(ErrorKind::Usage, "unknown recipe '" + std::string(name) + "'",
                   "known recipes: " + known);
}

std::optional<BlockFormat> parseBlockFormat(std::string_view text) {
  const auto found = std::ranges::find(formatTable, text, &FormatFacts::name);
  if (found == formatTable.end())
    return std::nullopt;
  return static_cast<BlockFormat>(found - formatTable.begin());
}

} // namespace fp4::numerics
