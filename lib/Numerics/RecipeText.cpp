// Recipes as text. A table row per decision has its name, its format, and how its value is written.
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/Recipe.h"
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <type_traits>
#include <vector>

namespace fp4::numerics {
namespace {

using Names = std::span<const std::string_view>;

/// Values are enumerators (`names`, in the order of the enumeration) or, without names, numbers.
struct Decision {
  std::string_view name;
  DecisionFamily family;
  Names names;
  std::function<float(const Recipe &)> get; ///< the number, or the index of the enumerator
  std::function<void(Recipe &, float)> set;
};

// The names of each enumeration, in the order of its enumerators.
#define FP4_VALUE(Enumerator, name) std::string_view(#name),
#define FP4_DECISION(Type, member, name, family, initial, ...)                                     \
  constexpr std::array member##Names = {__VA_ARGS__};
#include "fp4/Numerics/Recipes.def"
#undef FP4_VALUE

template <auto Member>
Decision decision(std::string_view name, DecisionFamily family, Names names) {
  using Value = std::remove_cvref_t<decltype(std::declval<Recipe>().*Member)>;
  return {name, family, names,
          [](const Recipe &recipe) { return static_cast<float>(recipe.*Member); },
          [](Recipe &recipe, float value) {
            if constexpr (std::is_enum_v<Value>)
              recipe.*Member = static_cast<Value>(static_cast<int>(value));
            else
              recipe.*Member = static_cast<Value>(value);
          }};
}

std::span<const Decision> decisions() {
  static const std::array table = {
#define FP4_DECISION(Type, member, name, family, initial, ...)                                     \
  decision<&Recipe::member>(#name, DecisionFamily::family, member##Names),
#define FP4_NUMBER(member, name, family, initial)                                                  \
  decision<&Recipe::member>(#name, DecisionFamily::family, {}),
#include "fp4/Numerics/Recipes.def"
  };
  return table;
}

bool applies(const Decision &decision, const Recipe &recipe) {
  const DecisionFamily own = isMX(recipe.format)           ? DecisionFamily::MX
                             : hasF32Scales(recipe.format) ? DecisionFamily::F32
                                                           : DecisionFamily::NVFP4;
  return decision.family == DecisionFamily::All || decision.family == own;
}

/// The decisions in which two recipes of one format differ.
std::vector<const Decision *> differences(const Recipe &recipe, const Recipe &other) {
  std::vector<const Decision *> result;
  for (const Decision &decision : decisions())
    if (applies(decision, recipe) && decision.get(recipe) != decision.get(other))
      result.push_back(&decision);
  return result;
}

/// The recipe that a canonical text starts with: see canonical().
const Recipe &nearestNamed(const Recipe &recipe) {
  const Recipe *nearest = nullptr;
  size_t fewest = SIZE_MAX;
  for (const Recipe &named : recipes()) {
    if (named.format != recipe.format)
      continue;
    const size_t count = differences(recipe, named).size();
    if (count >= fewest)
      continue;
    nearest = &named;
    fewest = count;
  }
  return *nearest; // every format has recipes
}

tl::unexpected<Error> usage(std::string message, std::string note = "") {
  return makeError(ErrorKind::Usage, std::move(message), std::move(note));
}

std::string listed(auto &&names) {
  std::string text;
  for (std::string_view name : names)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

std::string decisionNames(const Recipe &recipe) {
  std::vector<std::string_view> names;
  for (const Decision &decision : decisions())
    if (applies(decision, recipe))
      names.push_back(decision.name);
  return listed(names);
}

/// The shortest decimal that is `value`; with a point where it has an exponent, as MLIR wants it.
std::string spellNumber(float value) {
  std::string text = fmt::format("{}", value);
  const size_t exponent = text.find('e');
  if (exponent != std::string::npos && text.find('.') == std::string::npos)
    text.insert(exponent, ".0");
  return text;
}

std::string spellValue(const Decision &decision, const Recipe &recipe) {
  const float value = decision.get(recipe);
  return decision.names.empty() ? spellNumber(value)
                                : std::string(decision.names[static_cast<size_t>(value)]);
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

/// Splits at the first `separator`: returns what is before it, and leaves what follows in `text`.
std::string_view takeUntil(std::string_view &text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view head = trimmed(text.substr(0, end));
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return head;
}

/// Returns true for spellings that read g, which rules of the decode scale do not have.
bool readsEncodeScale(const Recipe &recipe) {
  if (recipe.dequantize == DequantizeRule::OverEncodeScale ||
      recipe.alpha == AlphaRule::OverEncodeScales)
    return true;
  switch (recipe.scale) {
  case ScaleSpelling::MultiplyFolded:
  case ScaleSpelling::DivideThenMultiply:
  case ScaleSpelling::MultiplyThenMultiply:
    return true;
  default:
    return recipe.encode == EncodeSpelling::GlobalOverScale ||
           recipe.encode == EncodeSpelling::GlobalTimesReciprocal ||
           recipe.encode == EncodeSpelling::DivideByQuotient ||
           recipe.encode == EncodeSpelling::BF16GlobalOverScale;
  }
}

bool inRange(float value, float least) {
  return std::isfinite(value) && value >= least && value <= 448.f;
}

Status checkAdaptive(const Recipe &recipe) {
  if (recipe.adaptive == Adaptive::Off)
    return {};
  if (recipe.global == GlobalRule::One || isSupplied(recipe))
    return usage("an adaptive recipe expects a tensor scale that derives from an amax",
                 "the error of a candidate is measured with it");
  if (recipe.scaleFloor != 0.f || recipe.scaleCast != ScaleCast::Saturating)
    return usage("an adaptive recipe expects scale_floor = 0 and scale_cast = saturating",
                 "candidate scales are clamped to 448 and have no floor");
  return {};
}

Status checkNumbers(const Recipe &recipe) {
  if (!inRange(recipe.e4m3Max, 0x1p-9f))
    return usage("decision 'e4m3_max' must be a number from 2^-9 to 448, but got " +
                 spellNumber(recipe.e4m3Max));
  if (!inRange(recipe.scaleFloor, 0.f))
    return usage("decision 'scale_floor' must be a number from 0 to 448, but got " +
                 spellNumber(recipe.scaleFloor));
  if (!inRange(recipe.zeroScale, 0.f) ||
      decodeE4M3(encodeE4M3(recipe.zeroScale)) != recipe.zeroScale)
    return usage("decision 'zero_scale' must be a number of e4m3 from 0 to 448, but got " +
                 spellNumber(recipe.zeroScale));
  return {};
}

/// Checks that each spelling has the values that it reads.
Status checkSpellings(const Recipe &recipe) {
  const bool decodeOnly = recipe.global == GlobalRule::DecodeDivide ||
                          recipe.global == GlobalRule::DecodeMultiply ||
                          recipe.global == GlobalRule::SuppliedDecode;
  if (decodeOnly && readsEncodeScale(recipe))
    return usage("tensor_scale decode_divide, decode_multiply and supplied_decode have no encode "
                 "scale, but the spellings of scale, encode, dequantize or alpha read it",
                 "spellings of the decode scale are scale = divide_twice, multiply_then_divide, "
                 "divide_by_product, encode = reciprocal_of_product, reciprocal_over_scale, "
                 "divide_by_product, dequantize = amax_times_inverse, decode_scale and alpha = "
                 "amax_product, decode_scales");
  if (recipe.reciprocals != Reciprocals::Exact &&
      recipe.encode != EncodeSpelling::ReciprocalOfProduct)
    return usage(
        fmt::format("approximate reciprocals expect encode reciprocal_of_product, but got {}",
                    encodeNames[static_cast<size_t>(recipe.encode)]));
  const bool derives = recipe.global != GlobalRule::One && !isSupplied(recipe);
  if (recipe.scale == ScaleSpelling::RatioOfMaxima && !derives)
    return usage("scale ratio_of_maxima expects a tensor scale that derives from an amax");
  const bool bounded = recipe.guard != FactorGuard::None &&
                       recipe.guard != FactorGuard::EpsilonScale &&
                       recipe.guard != FactorGuard::ZeroIfScaleZero;
  const bool divides = recipe.encode == EncodeSpelling::DivideByProduct ||
                       recipe.encode == EncodeSpelling::DivideByQuotient;
  if (divides && bounded)
    return usage(fmt::format("encode {} has no factor that a guard could bound",
                             encodeNames[static_cast<size_t>(recipe.encode)]),
                 "remove the guard: guard = none, epsilon_scale or zero_if_scale_zero");
  return {};
}

Status checkF32(const Recipe &recipe) {
  if (recipe.amaxFloor >= 0 && std::isfinite(recipe.amaxFloor))
    return {};
  return usage(fmt::format("decision 'amax_floor' must be a finite number from 0 on, but got {}",
                           recipe.amaxFloor));
}

} // namespace

std::string_view stringify(AlphaRule rule) { return alphaNames[static_cast<size_t>(rule)]; }

Status checkRecipe(const Recipe &recipe) {
  const bool asHardware = recipe.ties == Ties::Even && recipe.negativeZero == NegativeZero::Keep;
  if (!isPacked(recipe.format) && !asHardware)
    return usage(fmt::format("elements of format {} expect ties = even and negative_zero = keep",
                             stringify(recipe.format)));
  if (hasF32Scales(recipe.format))
    return checkF32(recipe);
  if (isMX(recipe.format))
    return {};
  FP4_TRY(checkNumbers(recipe));
  FP4_TRY(checkSpellings(recipe));
  return checkAdaptive(recipe);
}

Status setDecision(Recipe &recipe, std::string_view name, std::string_view value) {
  for (const Decision &decision : decisions()) {
    if (decision.name != name || !applies(decision, recipe))
      continue;
    for (size_t i = 0; i < decision.names.size(); ++i)
      if (decision.names[i] == value) {
        decision.set(recipe, static_cast<float>(i));
        return {};
      }
    float number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (decision.names.empty() && error == std::errc() && end == value.data() + value.size()) {
      decision.set(recipe, number);
      return {};
    }
    const std::string expected =
        decision.names.empty() ? "a number" : "one of " + listed(decision.names);
    return usage(fmt::format("decision '{}' must be {}, but got '{}'", name, expected, value));
  }
  return usage(fmt::format("recipe '{}' of format {} has no decision '{}'", recipe.name,
                           stringify(recipe.format), name),
               "its decisions are " + decisionNames(recipe));
}

std::span<const DecisionText> decisionTexts() {
  static const std::vector<DecisionText> texts = [] {
    std::vector<DecisionText> all;
    for (const Decision &decision : decisions())
      all.push_back({decision.name, decision.family, decision.names});
    return all;
  }();
  return texts;
}

Expected<Recipe> parseRecipe(std::string_view text) {
  FP4_ASSIGN(auto named, requireRecipe(takeUntil(text, ',')));
  Recipe recipe = *named;
  while (!text.empty()) {
    std::string_view value = takeUntil(text, ',');
    const std::string_view item = value, name = takeUntil(value, '=');
    if (name.size() == item.size())
      return usage(fmt::format("a decision of recipe '{}' must be written NAME = VALUE, but got "
                               "'{}'",
                               recipe.name, item));
    FP4_TRY(setDecision(recipe, name, trimmed(value)));
  }
  FP4_TRY(checkRecipe(recipe));
  return recipe;
}

Recipe canonical(const Recipe &recipe) {
  const Recipe &named = nearestNamed(recipe);
  Recipe result = named;
  for (const Decision *decision : differences(recipe, named))
    decision->set(result, decision->get(recipe));
  return result;
}

bool operator==(const Recipe &left, const Recipe &right) {
  return left.format == right.format && differences(left, right).empty();
}

std::string spell(const Recipe &recipe) {
  const Recipe &named = nearestNamed(recipe);
  std::string text(named.name);
  for (const Decision *decision : differences(recipe, named))
    text += fmt::format(", {} = {}", decision->name, spellValue(*decision, recipe));
  return text;
}

} // namespace fp4::numerics
