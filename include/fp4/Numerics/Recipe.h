//===- Recipe.h - The decisions of a block quantizer, and named recipes ---===//
//
// Libraries agree on what a block scale is and disagree on its last bit: the order of the fp32
// operations, the guards around zero, infinity and NaN, and the cast of the scale differ. A Recipe
// spells out every such decision; a named recipe reproduces one library bit for bit.
//
// With a_b the amax of a block, a_t that of the tensor, f = float(scale byte), all operations IEEE
// fp32, nearest even, subnormals kept, never contracted:
//
// Recipes.def has the decisions and the named recipes.
//
//   nvfp4: g = encode scale of the tensor (about 2688 / a_t), d = its decode scale
//          byte = e4m3(scale spelling of a_b and g or d)
//          code = e2m1(encode spelling of x, f and g or d)
//   mx:    byte = exponent rule of a_b
//          code = e2m1(x * 2^(127 - byte)), or to wider elements: mxfp6, mxfp8
//          u = bits(a_b), E its exponent field and M its mantissa; L is the largest element, l its
//          exponent and m the bits of its mantissa (mxfp4: 6, 2 and 1)
//   f32:   scale s of a_b, code = e4m3(x * (1 / s))
//
// RecipeProgram.h turns the decisions into a list of scalar operations. The reference and the
// kernels are made from this list. docs/reference/recipes.md has every formula and its source.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Formats.h"
#include "fp4/Support/Error.h"
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fp4::numerics {

// The enumerations, which Recipes.def describes.
#define FP4_VALUE(Enumerator, name) Enumerator,
#define FP4_DECISION(Type, member, name, family, initial, ...)                                     \
  enum class Type : uint8_t { __VA_ARGS__ };
#include "fp4/Numerics/Recipes.def"
#undef FP4_VALUE

std::string_view stringify(AlphaRule rule); ///< "amax_product", ...

struct Recipe {
  std::string_view name;
  std::string_view summary;
  BlockFormat format = BlockFormat::NVFP4;
#define FP4_DECISION(Type, member, name, family, initial, ...) Type member = Type::initial;
#define FP4_NUMBER(member, name, family, initial) float member = initial;
#include "fp4/Numerics/Recipes.def"
};

/// All named recipes. The first of each format is its default: transformer_engine, ocp_floor,
/// mxfp8_e4m3_floor, ...
std::span<const Recipe> recipes();
const Recipe &defaultRecipe(BlockFormat format);
const Recipe *lookupRecipe(std::string_view name);
/// Does the same as lookupRecipe; the error lists the names.
Expected<const Recipe *> requireRecipe(std::string_view name);

/// Returns true when a tensor stage reads an amax (or a supplied scale): NVFP4, except one-level
/// recipes.
constexpr bool hasTensorScale(const Recipe &recipe) {
  return hasE4M3Scales(recipe.format) && recipe.global != GlobalRule::One;
}

/// Returns true when the caller gives the tensor's encode or decode scale in place of an amax.
constexpr bool isSupplied(const Recipe &recipe) {
  return recipe.global == GlobalRule::Supplied || recipe.global == GlobalRule::SuppliedDecode;
}

/// Returns true when elements cannot be rounded stochastically: a recipe defines how halfway values
/// are rounded, compares rounding errors, or has elements of more than 4 bits.
constexpr bool roundsToNearestOnly(const Recipe &recipe) {
  return recipe.adaptive != Adaptive::Off || recipe.ties != Ties::Even ||
         recipe.negativeZero == NegativeZero::Never || !isPacked(recipe.format);
}

/// The text of a recipe: a name, then the decisions in which it differs from the recipe of that
/// name: "transformer_engine, scale_floor = 0.015625, guard = none". Decisions are the members
/// above, in snake case, their values the enumerators; reference/recipes.md lists them. Dialect
/// attributes, manifests and command lines write recipes in this way.
Expected<Recipe> parseRecipe(std::string_view text);
/// The inverse, canonical: equal recipes have equal texts.
std::string spell(const Recipe &recipe);
/// Returns the decisions under the name of the recipe that differs in the fewest of them, the first
/// of several. The name in the text is forgotten: `ocp_floor, exponent = ceil` becomes `ocp_ceil`.
Recipe canonical(const Recipe &recipe);

/// A decision of Recipes.def as text: its name, the formats that have it, and its values in the
/// order of their enumerators (none: a number).
enum class DecisionFamily : uint8_t { NVFP4, MX, F32, All };
struct DecisionText {
  std::string_view name;
  DecisionFamily family;
  std::span<const std::string_view> values;
};
std::span<const DecisionText> decisionTexts();

/// Returns true when all decisions of their format are equal, whatever the names.
bool operator==(const Recipe &left, const Recipe &right);
/// One decision of a recipe from its text. Fails on a decision the recipe's format does not have.
Status setDecision(Recipe &recipe, std::string_view name, std::string_view value);
/// Fails if decisions contradict each other, so that no program can be made of them.
Status checkRecipe(const Recipe &recipe);

} // namespace fp4::numerics
