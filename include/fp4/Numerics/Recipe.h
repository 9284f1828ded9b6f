//===- Recipe.h - The decisions of a block quantizer, and named recipes ---===//
//
// Libraries agree on what a block scale is and disagree on its last bit: the order of the fp32
// operations, the guards around zero, infinity and NaN, and the cast of the scale differ. A Recipe
// spells out every such decision; a named recipe reproduces one library bit for bit.
//
// With a_b the amax of a block, a_t that of the tensor, f = float(scale byte), all operations IEEE
// fp32, nearest even, subnormals kept, never contracted:
//
//   nvfp4: g = encode scale of the tensor (about 2688 / a_t), d = its decode scale
//          byte = e4m3(scale spelling of a_b and g or d)
//          code = e2m1(encode spelling of x, f and g or d)
//   mx:    byte = exponent rule of a_b
//          code = e2m1(x * 2^(127 - byte)), or to wider elements: mxfp6, mxfp8
//
// RecipeProgram.h turns the decisions into a list of scalar operations. The reference and the
// kernels are made from this list. docs/Numerics.md has every formula and its source.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fp4::numerics {

/// How a maximum of magnitudes treats NaN.
enum class NanPolicy : uint8_t {
  Drop,     ///< as fmaxf and max.xorsign: NaN only counts as 0
  Propagate ///< any NaN makes the result NaN
};

enum class BlockFormat : uint8_t { NVFP4, MXFP4, MXFP6E2M3, MXFP6E3M2, MXFP8E4M3, MXFP8E5M2 };

std::string_view stringify(BlockFormat format); ///< "nvfp4", "mxfp4", "mxfp6_e2m3", ...
std::optional<BlockFormat> parseBlockFormat(std::string_view text);
/// The formats of OCP MX: blocks of 32 under a power of two.
constexpr bool isMX(BlockFormat format) { return format != BlockFormat::NVFP4; }
constexpr unsigned blockSizeOf(BlockFormat format) { return isMX(format) ? 32 : 16; }

/// The numbers of a format's elements.
struct ElementFormat {
  unsigned bits;
  unsigned mantissa;    ///< bits
  int bias;             ///< of the exponent
  float largest;        ///< finite
  int largestExponent;  ///< floor(log2(largest))
};
constexpr ElementFormat elementOf(BlockFormat format) {
  switch (format) {
  case BlockFormat::NVFP4:
  case BlockFormat::MXFP4:
    return {4, 1, 1, 6.f, 2};
  case BlockFormat::MXFP6E2M3:
    return {6, 3, 1, 7.5f, 2};
  case BlockFormat::MXFP6E3M2:
    return {6, 2, 3, 28.f, 4};
  case BlockFormat::MXFP8E4M3:
    return {8, 3, 7, 448.f, 8};
  case BlockFormat::MXFP8E5M2:
    return {8, 2, 15, 57344.f, 15};
  }
  return {};
}
/// Two codes per byte, or one code in the low bits of each byte.
constexpr bool isPacked(BlockFormat format) { return elementOf(format).bits == 4; }

/// The tensor's encode scale g and decode scale d from its amax, with D = 6 * e4m3Max.
enum class GlobalRule : uint8_t {
  One,              ///< g = d = 1 (one-level recipes)
  GuardedDivide,    ///< g = min(D / a_t, FLT_MAX), 1 if a_t or g is 0; d = 1 / g
  PositiveDivide,   ///< g = min(D / a_t, FLT_MAX) if a_t > 0, else 1; d = 1 / g
  Divide,           ///< g = D / a_t, unguarded; d = 1 / g
  DivideUnlessZero, ///< g = D / a_t, 1 if a_t is 0; d = 1 / g
  Reciprocal,       ///< g = D * (1 / a_t), what `D / tensor` is in PyTorch; d = 1 / g
  DecodeDivide,     ///< d = a_t / D; g is not used
  DecodeMultiply,   ///< d = a_t * fp32(1 / D), what `tensor / D` is in PyTorch on CUDA
  Supplied,         ///< g is the number given in place of a_t; d = 1 / g
  /// g = D * (1 / max(a_t, 2^-126)), 1 where that is infinite or NaN; d = 1 / g. See AmaxArithmetic
  ReciprocalOrOne
};

/// The type to which a_b / 6 and the result of ReciprocalOrOne are rounded: PyTorch computes them
/// in the type of the tensor.
enum class AmaxArithmetic : uint8_t { F32, BF16 };

/// The block scale before its cast to e4m3. r6 = fp32(1/6).
enum class ScaleSpelling : uint8_t {
  MultiplyFolded,       ///< a_b * (g * r6)
  DivideThenMultiply,   ///< (a_b / 6) * g
  MultiplyThenMultiply, ///< g * (a_b * r6)
  DivideTwice,          ///< (a_b / 6) / d
  MultiplyThenDivide,   ///< (a_b * r6) / d, what DivideTwice is in PyTorch on CUDA
  DivideByProduct,      ///< a_b / (6 * d), with 0 replaced by 1
  RatioOfMaxima         ///< ((a_b / 6, with 0 replaced by 1) * e4m3Max) / (a_t / 6)
};

/// The scale's cast to e4m3.
enum class ScaleCast : uint8_t {
  NonSaturating, ///< nearest even, NaN above 464
  Saturating,    ///< nearest even, at most 448; NaN stays
  HalfUp         ///< ggml: halves go up, 240 < s gives 448, 7.5 * 2^-9 <= s < 2^-6 gives 7 * 2^-9
};

/// How an element is divided by its scale.
enum class EncodeSpelling : uint8_t {
  ReciprocalOfProduct,   ///< x * (1 / (f * d))
  GlobalOverScale,       ///< x * (g / f)
  ReciprocalOverScale,   ///< x * ((1 / d) / f)
  GlobalTimesReciprocal, ///< x * (g * (1 / f))
  DivideByProduct,       ///< x / (d * f)
  DivideByQuotient,      ///< x / (f / g)
  BF16GlobalOverScale    ///< bf16(x * bf16(min(g / f, bf16 max)))
};

/// The reciprocals of ReciprocalOfProduct.
enum class Reciprocals : uint8_t {
  Exact,
  ApproximateFactor, ///< that of f * d is rcp.approx.ftz.f32 (Reciprocal.h)
  Approximate        ///< d, the reciprocal of g, too
};

/// The bound of the encode factor. It matters for a zero scale with nonzero elements.
enum class FactorGuard : uint8_t {
  ClampDropNaN,        ///< min(factor, FLT_MAX), NaN gives FLT_MAX: nonzero elements saturate
  ClampKeepNaN,        ///< min(factor, FLT_MAX), NaN stays
  ZeroIfAmaxZero,      ///< 0 where a_b is 0, else unbounded
  ZeroIfAmaxZeroClamp, ///< 0 where a_b is 0, else as ClampDropNaN
  ZeroBlockIfAmaxZero, ///< where a_b is 0 the scale and all codes are 0, else as ClampDropNaN
  ZeroIfScaleZero,     ///< 0 where f is 0, else unbounded; of a division, its quotient is 0
  EpsilonScale,        ///< f replaced by max(f, 1e-12)
  None
};

/// Two candidate scales per block, of which the one with the smaller error is stored.
enum class Adaptive : uint8_t {
  Off,
  FourOverSixAbsolute, ///< amax to 6 or to 4, by the sum of absolute errors
  FourOverSixSquared,  ///< by the sum of squared errors
  FourOverSixLargest   ///< by the largest absolute error
};

/// The factor of a code's value q, f being the value of its scale byte. One-level recipes use f.
enum class DequantizeRule : uint8_t {
  AmaxTimesInverse, ///< (f * a_t) * fp32(1 / D); of a supplied g as DecodeScale
  DecodeScale,      ///< f * d
  OverEncodeScale   ///< f / g
};

/// The value that the error of a candidate compares with an element.
enum class CandidateValue : uint8_t {
  AmaxOverRange, ///< ((q * f) * a_t) / D
  DecodeScale    ///< (q * f) * d
};

/// The byte of an MX block from u = bits(a_b), E its exponent field and M its mantissa. L is the
/// largest element, l its exponent and m the bits of its mantissa; MXFP4: 6, 2 and 1.
enum class ExponentRule : uint8_t {
  Floor,         ///< E - l (OCP MX v1.0)
  Ceil,          ///< E - l + (M != 0)
  Even,          ///< ((u + 2^(22 - m)) >> 23) - l; a sum that reaches infinity gives 255
  EvenDown,      ///< ((u + 2^(22 - m) - 1) >> 23) - l
  RoundUp,       ///< ue8m0 round-up of a_b * fp32(1 / L)
  RoundUpDivide, ///< ue8m0 round-up of a_b / L
  RoundUpBits,   ///< of a_b / L: E + (M != 0), for subnormals too
  RoundUpLog2,   ///< ceil(log2(a_b / L)) + 127, the logarithm rounded to fp32
  FloorDivide    ///< the exponent field of a_b / L
};

/// The byte of an MX block whose amax is not finite.
enum class NonFinite : uint8_t {
  Largest,  ///< that of the rule, at most 254; for amaxes that drop NaN
  NaN,      ///< 255, for what the rule rounds to infinity too
  NaNAlone, ///< NaN 255, infinity that of the rule, at most 254
  Wrap      ///< infinity 255, NaN 0: an exponent field plus one, kept in 8 bits
};

/// The factor of an MXFP4 block whose byte is 0.
enum class ZeroByteFactor : uint8_t {
  Exact, ///< 2^127
  One,
  Zero,
  LeastNormal ///< 2^126, as if the scale were the least normal number
};

/// The factor of an MXFP4 block whose byte is 255.
enum class NaNByteFactor : uint8_t {
  NaN,
  Zero ///< as 1 / infinity: finite elements become zeros
};

/// How the dequantizer reads a byte of an MXFP4 scale.
enum class ScaleDecode : uint8_t {
  Exact,  ///< 2^(byte - 127), 255 NaN
  Shifted ///< the fp32 with that exponent field: byte 0 is 0, 255 infinity
};

/// The sign of elements that become zero.
enum class NegativeZero : uint8_t {
  Drop,  ///< -0 gives code 0; small negatives keep their sign (code 8)
  Keep,  ///< -0 and small negatives keep their sign, as the hardware has it
  Never, ///< -0 and small negatives give code 0
  Always ///< 0 and -0 give code 8
};

/// How values halfway between two codes are rounded.
enum class Ties : uint8_t { Even, TowardZero };

struct Recipe {
  std::string_view name;
  std::string_view summary;
  BlockFormat format = BlockFormat::NVFP4;
  NanPolicy amaxNaN = NanPolicy::Drop; ///< of block and tensor amax
  NegativeZero negativeZero = NegativeZero::Keep;
  Ties ties = Ties::Even;
  bool nanElementIsZero = false;       ///< a NaN gives code 0, else 7 as the hardware has it

  // nvfp4
  GlobalRule global = GlobalRule::GuardedDivide;
  ScaleSpelling scale = ScaleSpelling::MultiplyFolded;
  EncodeSpelling encode = EncodeSpelling::ReciprocalOfProduct;
  Reciprocals reciprocals = Reciprocals::Exact;
  FactorGuard guard = FactorGuard::ClampDropNaN;
  float e4m3Max = 448.f;           ///< 256 leaves the headroom four-over-six wants
  float scaleFloor = 0.f;          ///< lower bound of the scale before its cast
  ScaleCast scaleCast = ScaleCast::Saturating;
  float zeroScale = 0.f; ///< stored in place of a scale that is 0 after its cast
  AmaxArithmetic amaxArithmetic = AmaxArithmetic::F32;
  Adaptive adaptive = Adaptive::Off;
  DequantizeRule dequantize = DequantizeRule::AmaxTimesInverse;
  CandidateValue candidateValue = CandidateValue::AmaxOverRange;

  // mx
  ExponentRule exponent = ExponentRule::Floor;
  NonFinite nonFinite = NonFinite::NaN;
  ZeroByteFactor zeroByte = ZeroByteFactor::Exact;
  NaNByteFactor nanByte = NaNByteFactor::NaN;
  ScaleDecode scaleDecode = ScaleDecode::Exact;
};

/// All named recipes. The first of each format is its default: transformer_engine, ocp_floor,
/// mxfp8_e4m3_floor, ...
std::span<const Recipe> recipes();
const Recipe &defaultRecipe(BlockFormat format);
const Recipe *lookupRecipe(std::string_view name);
/// Does the same as lookupRecipe; the error lists the names.
Expected<const Recipe *> requireRecipe(std::string_view name);

/// Whether a tensor stage reads an amax (or a supplied g): NVFP4, except one-level recipes.
constexpr bool hasTensorScale(const Recipe &recipe) {
  return recipe.format == BlockFormat::NVFP4 && recipe.global != GlobalRule::One;
}

/// Whether elements can be rounded stochastically. They cannot if a recipe defines how halfway
/// values are rounded, compares rounding errors, or has elements of more than 4 bits.
constexpr bool roundsToNearestOnly(const Recipe &recipe) {
  return recipe.adaptive != Adaptive::Off || recipe.ties != Ties::Even ||
         recipe.negativeZero == NegativeZero::Never || !isPacked(recipe.format);
}

/// The text of a recipe: a name, then the decisions in which it differs from the recipe of that
/// name: "transformer_engine, scale_floor = 0.015625, guard = none". Decisions are the members
/// above, in snake case, their values the enumerators; docs/Numerics.md lists them. Dialect
/// attributes, manifests and command lines write recipes in this way.
Expected<Recipe> parseRecipe(std::string_view text);
/// The inverse, canonical: equal recipes have equal texts.
std::string spell(const Recipe &recipe);
/// The same decisions under the name of the recipe that differs in the fewest of them, the first of
/// several. The name in the text is forgotten: `ocp_floor, exponent = ceil` becomes `ocp_ceil`.
Recipe canonical(const Recipe &recipe);
/// Whether all decisions of their format are equal, whatever the names.
bool operator==(const Recipe &left, const Recipe &right);
/// One decision of a recipe from its text. Fails on a decision the recipe's format does not have.
Status setDecision(Recipe &recipe, std::string_view name, std::string_view value);
/// Fails if decisions contradict each other, so that no program can be made of them.
Status checkRecipe(const Recipe &recipe);

} // namespace fp4::numerics
