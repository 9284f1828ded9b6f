// The decisions of a recipe as operations. Each expression here is the formula of its enumerator in
// Recipe.h; nothing else in the project spells them.
#include "fp4/Numerics/RecipeProgram.h"
#include "ProgramBuilder.h"
#include "fp4/Numerics/E4M3.h"
#include <array>
#include <cfloat>
#include <cmath>

namespace fp4::numerics {
namespace {

constexpr float oneSixth = 0x1.555556p-3f; // fp32(1/6), 0x3E2AAAAB
constexpr unsigned floatMantissa = 23, floatBias = 127;
constexpr uint32_t infinityBits = 0x7F800000, nanBits = 0x7FFFFFFF, mantissaBits = 0x007FFFFF;

class RecipeWriter {
public:
  explicit RecipeWriter(const Recipe &recipe) : recipe(recipe) {}
  RecipeProgram write();
  RecipeProgram writeDequantizer();
  RecipeProgram writeAlphaTerm();

private:
  void globalScale();
  Value guardedEncodeScale(Value full, Value amax);
  Value reciprocalOrOne(Value full);
  Value decodeScaleAlone(Value full);
  Value rounded(Value x);
  Value scaleBeforeCast();
  Value scaleByte();
  Value cast(Value s);
  Value halfUp(Value s);
  Value factorSpelling(Value f);
  Value guardedFactor(Value f);
  Value roundUpLog2(Value quotient);
  Value exponentBeforeClamp(Value &isNaN);
  Value exponentByte(Value &isNaN);
  Value exponentFactor(Value byte, Value isNaN);
  Value floatScale();
  Value encodedElement(Value factor, Value f);
  Value withTies(Value y);
  Value withSign(Value y);
  void candidates(Value f);
  Value decodeFactor();
  Value signOf(Value code, unsigned bits);
  Value toWideCode(Value y);
  Value fromWideCode(Value code);

  Value blockAmax() { return b.input(Op::BlockAmax, Stage::Block); }
  Value element() { return b.input(Op::Element, Stage::Element); }
  Value tensorAmax() { return b.input(Op::TensorAmax, Stage::Tensor); }

  const Recipe &recipe;
  ProgramBuilder b;
  RecipeProgram program;
  Value g = noValue, d = noValue; ///< encode and decode scale
};

//===--- Tensor ----------------------------------------------------------===//

Value RecipeWriter::guardedEncodeScale(Value full, Value amax) {
  const Value quotient = b(Op::MinDropNaN, b.divide(full, amax), b.constant(FLT_MAX));
  const Value zero = b.constant(0.f), one = b.constant(1.f);
  const Value finite = b.select(b(Op::FloatEqual, quotient, zero), one, quotient);
  return b.select(b(Op::FloatEqual, amax, zero), one, finite);
}

/// Rounds to the type that PyTorch computes amaxes in.
Value RecipeWriter::rounded(Value x) {
  return recipe.amaxArithmetic == AmaxArithmetic::BF16 ? b(Op::RoundBF16, x) : x;
}

Value RecipeWriter::reciprocalOrOne(Value full) {
  const Value one = b.constant(1.f), least = b.constant(FLT_MIN);
  const Value inverse = rounded(b.divide(one, b(Op::MaxKeepNaN, tensorAmax(), least)));
  const Value quotient = rounded(b.multiply(full, inverse));
  const Value isNumber = b(Op::FloatGreater, b.constant(floatOf(infinityBits)), quotient);
  return b.select(isNumber, quotient, one);
}

/// The decode scale d of the rules that have no g.
Value RecipeWriter::decodeScaleAlone(Value full) {
  if (recipe.global == GlobalRule::SuppliedDecode)
    return tensorAmax();
  if (recipe.global == GlobalRule::DecodeDivide)
    return b.divide(tensorAmax(), full);
  const double range = 6.f * recipe.e4m3Max;
  return b.multiply(tensorAmax(), b.constant(static_cast<float>(1.0 / range)));
}

void RecipeWriter::globalScale() {
  const Value full = b.constant(6.f * recipe.e4m3Max), one = b.constant(1.f);
  switch (recipe.global) {
  case GlobalRule::One:
    g = d = one;
    return;
  case GlobalRule::GuardedDivide:
    g = guardedEncodeScale(full, tensorAmax());
    break;
  case GlobalRule::PositiveDivide:
    g = b(Op::MinKeepNaN, b.divide(full, tensorAmax()), b.constant(FLT_MAX));
    g = b.select(b(Op::FloatGreater, tensorAmax(), b.constant(0.f)), g, one);
    break;
  case GlobalRule::Divide:
    g = b.divide(full, tensorAmax());
    break;
  case GlobalRule::DivideUnlessZero:
    g = b.select(b(Op::FloatEqual, tensorAmax(), b.constant(0.f)), one,
                 b.divide(full, tensorAmax()));
    break;
  case GlobalRule::Reciprocal:
    g = b.multiply(full, b.divide(one, tensorAmax()));
    break;
  case GlobalRule::Supplied:
    g = tensorAmax();
    break;
  case GlobalRule::ReciprocalOrOne:
    g = reciprocalOrOne(full);
    break;
  case GlobalRule::DecodeDivide:
  case GlobalRule::DecodeMultiply:
  case GlobalRule::SuppliedDecode:
    d = decodeScaleAlone(full);
    return;
  }
  const bool isExact = recipe.reciprocals != Reciprocals::Approximate;
  d = isExact ? b.divide(one, g) : b(Op::ReciprocalApprox, g);
}

//===--- NVFP4 scale and factor ------------------------------------------===//

Value RecipeWriter::scaleBeforeCast() {
  const Value a = blockAmax(), six = b.constant(6.f), r6 = b.constant(oneSixth);
  switch (recipe.scale) {
  case ScaleSpelling::MultiplyFolded:
    return b.multiply(a, b.multiply(g, r6));
  case ScaleSpelling::DivideThenMultiply:
    return b.multiply(rounded(b.divide(a, six)), g);
  case ScaleSpelling::MultiplyThenMultiply:
    return b.multiply(g, b.multiply(a, r6));
  case ScaleSpelling::DivideTwice:
    return b.divide(b.divide(a, six), d);
  case ScaleSpelling::MultiplyThenDivide:
    return b.divide(b.multiply(a, r6), d);
  case ScaleSpelling::DivideByProduct: {
    const Value s = b.divide(a, b.multiply(six, d));
    return b.select(b(Op::FloatEqual, s, b.constant(0.f)), b.constant(1.f), s);
  }
  case ScaleSpelling::RatioOfMaxima: {
    const Value s = b.divide(a, six);
    const Value nonzero = b.select(b(Op::FloatEqual, s, b.constant(0.f)), b.constant(1.f), s);
    return b.divide(b.multiply(nonzero, b.constant(recipe.e4m3Max)), b.divide(tensorAmax(), six));
  }
  }
  return noValue;
}

/// ggml's own conversion of s >= 0. For normal numbers, half a last place is added to the pattern,
/// and exponents that would be 15 give 0x7E. A subnormal is s * 2^9 plus a half, cut, at most 7.
Value RecipeWriter::halfUp(Value s) {
  const Value u = b(Op::BitsOf, s), places = b.multiply(s, b.constant(512.f));
  const Value cut = b(Op::Truncate, b(Op::Subtract, places, b.constant(-0.5f)));
  const Value subnormal = b(Op::MinSigned, cut, b.integer(7));
  const Value pattern = b(Op::ShiftRight, b(Op::Add, u, b.integer(1u << 19)), b.integer(20));
  const Value code = b(Op::SubtractInt, pattern, b.integer((127 - 7) << 3));
  const Value isLarge = b(Op::IntAtLeast, code, b.integer(15 << 3));
  const Value normal = b.select(isLarge, b.integer(0x7E), code);
  return b.select(b(Op::IntAtLeast, u, b.integer((127 - 6) << 23)), normal, subnormal);
}

/// The non-saturating cast gives NaN above 464, and NaN 0x7F, whose sign is the platform's
/// elsewhere. The saturating cast clamps to 448 first.
Value RecipeWriter::cast(Value s) {
  if (recipe.scaleCast == ScaleCast::HalfUp)
    return halfUp(s);
  if (recipe.scaleCast == ScaleCast::NonSaturating)
    s = b.select(b(Op::FloatGreater, s, b.constant(464.f)), b.constant(floatOf(nanBits)), s);
  return b(Op::ToE4M3, s);
}

Value RecipeWriter::scaleByte() {
  Value s = scaleBeforeCast();
  if (recipe.adaptive != Adaptive::Off)
    s = b.multiply(s, b.input(Op::Stretch, Stage::Block));
  if (recipe.scaleFloor > 0)
    s = b(Op::MaxKeepNaN, s, b.constant(recipe.scaleFloor));
  if (recipe.guard == FactorGuard::ZeroBlockIfAmaxZero)
    s = b.select(b(Op::FloatEqual, blockAmax(), b.constant(0.f)), b.constant(0.f), s);
  const Value byte = cast(s);
  if (recipe.zeroScale == 0)
    return byte;
  const Value isZero = b(Op::IntEqual, byte, b.integer(0));
  return b.select(isZero, b.integer(encodeE4M3(recipe.zeroScale)), byte);
}

bool dividesElements(const Recipe &recipe) {
  return hasE4M3Scales(recipe.format) &&
         (recipe.encode == EncodeSpelling::DivideByProduct ||
          recipe.encode == EncodeSpelling::DivideByQuotient);
}

/// The factor of all elements, or their divisor (dividesElements).
Value RecipeWriter::factorSpelling(Value f) {
  const Value one = b.constant(1.f);
  switch (recipe.encode) {
  case EncodeSpelling::ReciprocalOfProduct:
    if (recipe.reciprocals != Reciprocals::Exact)
      return b(Op::ReciprocalApprox, b.multiply(f, d));
    return b.divide(one, b.multiply(f, d));
  case EncodeSpelling::GlobalOverScale:
    return b.divide(g, f);
  case EncodeSpelling::ReciprocalOverScale:
    return b.divide(b.divide(one, d), f);
  case EncodeSpelling::GlobalTimesReciprocal:
    return b.multiply(g, b.divide(one, f));
  case EncodeSpelling::DivideByProduct:
    return b.multiply(d, f);
  case EncodeSpelling::DivideByQuotient:
    return b.divide(f, g);
  case EncodeSpelling::BF16GlobalOverScale:
    return b(Op::RoundBF16, b(Op::MinDropNaN, b.divide(g, f), b.constant(decodeBF16(0x7F7F))));
  }
  return noValue;
}

Value RecipeWriter::guardedFactor(Value f) {
  const Value zero = b.constant(0.f), most = b.constant(FLT_MAX);
  if (recipe.guard == FactorGuard::EpsilonScale)
    f = b(Op::MaxKeepNaN, f, b.constant(1e-12f));
  const Value factor = factorSpelling(f);
  if (dividesElements(recipe))
    return factor;
  switch (recipe.guard) {
  case FactorGuard::ZeroBlockIfAmaxZero:
  case FactorGuard::ClampDropNaN:
    return b(Op::MinDropNaN, factor, most);
  case FactorGuard::ClampKeepNaN:
    return b(Op::MinKeepNaN, factor, most);
  case FactorGuard::ZeroIfAmaxZero:
    return b.select(b(Op::FloatEqual, blockAmax(), zero), zero, factor);
  case FactorGuard::ZeroIfAmaxZeroClamp:
    return b.select(b(Op::FloatEqual, blockAmax(), zero), zero, b(Op::MinDropNaN, factor, most));
  case FactorGuard::ZeroIfScaleZero:
    return b.select(b(Op::FloatEqual, f, zero), zero, factor);
  case FactorGuard::EpsilonScale:
  case FactorGuard::None:
    break;
  }
  return factor;
}

//===--- MX --------------------------------------------------------------===//

/// ceil(log2(q)) + 127 with the logarithm rounded to nearest in fp32, which gives k for values that
/// lie less than half a place of k above 2^k: the first 0.34 * 2^n mantissas of a binade in which
/// the magnitude of the logarithm is from 2^n to 2^(n+1), from the integer k on, away from zero.
Value RecipeWriter::roundUpLog2(Value quotient) {
  const Value bits = b(Op::BitsOf, quotient), shift = b.integer(23), zero = b.integer(0);
  const Value exponent = b(Op::ShiftRight, bits, shift);
  const Value mantissa = b(Op::SubtractInt, bits, b(Op::ShiftLeft, exponent, shift));
  const Value magnitude = b(Op::MaxSigned, b(Op::SubtractInt, exponent, b.integer(127)),
                            b(Op::SubtractInt, b.integer(126), exponent));
  constexpr std::array<std::pair<uint32_t, uint32_t>, 5> least = {
      {{4, 2}, {8, 3}, {16, 6}, {32, 12}, {64, 23}}};
  Value up = b.integer(1);
  for (auto [from, mantissas] : least)
    up = b.select(b(Op::IntAtLeast, magnitude, b.integer(from)), b.integer(mantissas), up);
  // The limit for subnormals: 2^-127, and twelve of its places, which are two of those above.
  up = b.select(b(Op::IntEqual, exponent, zero), b.integer(0x40000C), up);
  return b(Op::Add, exponent, b.select(b(Op::IntAtLeast, mantissa, up), b.integer(1), zero));
}

/// The result of the exponent rule before its clamp to 0..254; `isNaN` is set where it gives no
/// number.
Value RecipeWriter::exponentBeforeClamp(Value &isNaN) {
  const ElementFormat type = elementOf(recipe.format);
  const uint32_t half = 1u << (floatMantissa - 1 - type.mantissa);
  Value u = b(Op::BitsOf, blockAmax());
  const Value infinity = b.integer(infinityBits);
  isNaN = b(Op::IntAtLeast, u, infinity);
  switch (recipe.exponent) {
  case ExponentRule::Floor:
    break;
  case ExponentRule::Ceil:
    u = b(Op::Add, u, b.integer(mantissaBits));
    break;
  case ExponentRule::Even:
    u = b(Op::Add, u, b.integer(half));
    isNaN = b(Op::IntAtLeast, u, infinity);
    break;
  case ExponentRule::EvenDown:
    u = b(Op::Add, u, b.integer(half - 1));
    break;
  case ExponentRule::RoundUp:
    return b(Op::ToUE8M0Up, b.multiply(blockAmax(), b.constant(1.f / type.largest)));
  case ExponentRule::RoundUpDivide:
    return b(Op::ToUE8M0Up, b.divide(blockAmax(), b.constant(type.largest)));
  case ExponentRule::RoundUpBits:
    u = b(Op::BitsOf, b.divide(blockAmax(), b.constant(type.largest)));
    return b(Op::ShiftRight, b(Op::Add, u, b.integer(mantissaBits)), b.integer(23));
  case ExponentRule::FloorDivide:
    u = b(Op::BitsOf, b.divide(blockAmax(), b.constant(type.largest)));
    return b(Op::ShiftRight, u, b.integer(floatMantissa));
  case ExponentRule::RoundUpLog2:
    return roundUpLog2(b.divide(blockAmax(), b.constant(type.largest)));
  }
  const Value exponent = b(Op::ShiftRight, u, b.integer(floatMantissa));
  return b(Op::SubtractInt, exponent, b.integer(static_cast<uint32_t>(type.largestExponent)));
}

/// The scale byte; `isNaN` is set where the byte is 255.
Value RecipeWriter::exponentByte(Value &isNaN) {
  Value byte = exponentBeforeClamp(isNaN);
  byte = b(Op::MinSigned, b(Op::MaxSigned, byte, b.integer(0)), b.integer(254));
  switch (recipe.nonFinite) {
  case NonFinite::Largest:
    isNaN = noValue;
    return byte;
  case NonFinite::NaN:
    break;
  case NonFinite::NaNAlone:
    isNaN = b(Op::IsNaN, blockAmax());
    break;
  case NonFinite::Wrap:
    byte = b.select(b(Op::IsNaN, blockAmax()), b.integer(0), byte);
    isNaN = b(Op::IntEqual, b(Op::BitsOf, blockAmax()), b.integer(infinityBits));
    break;
  }
  return b.select(isNaN, b.integer(255), byte);
}

/// 2^(127 - byte): the fp32 with exponent field 254 - byte, whose last value is subnormal.
Value RecipeWriter::exponentFactor(Value byte, Value isNaN) {
  const Value zero = b.integer(0);
  const Value exponent = b(Op::SubtractInt, b.integer(254), byte);
  Value bits = b(Op::ShiftLeft, exponent, b.integer(23));
  bits = b.select(b(Op::IntEqual, exponent, zero), b.integer(0x00400000), bits);
  if (isNaN != noValue)
    bits = b.select(isNaN, b.integer(recipe.nanByte == NaNByteFactor::NaN ? nanBits : 0), bits);
  const Value factor = b(Op::FloatOf, bits);
  if (recipe.zeroByte == ZeroByteFactor::Exact)
    return factor;
  constexpr std::array<float, 4> replaced = {0x1p127f, 1.f, 0.f, 0x1p126f};
  return b.select(b(Op::IntEqual, byte, zero),
                  b.constant(replaced[static_cast<unsigned>(recipe.zeroByte)]), factor);
}

//===--- Scales in f32 ---------------------------------------------------===//

/// The f32 scale, rounded up by its bits, as ceil_to_ue8m0 does: the exponent field, one more where
/// the mantissa is not 0, from 1 to 254.
Value RecipeWriter::floatScale() {
  Value amax = blockAmax();
  if (recipe.amaxFloor > 0)
    amax = b(Op::MaxKeepNaN, amax, b.constant(recipe.amaxFloor));
  const Value scale = b.divide(amax, b.constant(elementOf(recipe.format).largest));
  if (recipe.powerOfTwo == PowerOfTwo::Off)
    return scale;
  const Value shift = b.integer(floatMantissa);
  const Value above = b(Op::Add, b(Op::BitsOf, scale), b.integer(mantissaBits));
  const Value exponent = b(Op::MaxSigned, b(Op::ShiftRight, above, shift), b.integer(1));
  return b(Op::FloatOf, b(Op::ShiftLeft, b(Op::MinSigned, exponent, b.integer(254)), shift));
}

//===--- Elements --------------------------------------------------------===//

/// The conversion that follows rounds halfway values to the even code: 0.75, 1.75 and 3.5 up.
/// Recipes that round ties down replace such a value by the number before it.
Value RecipeWriter::withTies(Value y) {
  if (recipe.ties == Ties::Even)
    return y;
  const Value magnitude = b(Op::Absolute, y), before = b.multiply(y, b.constant(0x1.FFFFFEp-1f));
  for (float tie : {0.75f, 1.75f, 3.5f})
    y = b.select(b(Op::FloatEqual, magnitude, b.constant(tie)), before, y);
  return y;
}

Value RecipeWriter::withSign(Value y) {
  const Value zero = b.constant(0.f);
  switch (recipe.negativeZero) {
  case NegativeZero::Keep:
    break;
  case NegativeZero::Drop:
    return b.select(b(Op::FloatEqual, y, zero), zero, y);
  case NegativeZero::Never: { // up to 0.25 the code is zero; a NaN stays
    const Value above = b.constant(0x1.000002p-2f);
    return b.select(b(Op::FloatGreater, above, b(Op::Absolute, y)), zero, y);
  }
  case NegativeZero::Always:
    return b.select(b(Op::FloatEqual, y, zero), b.constant(-0.f), y);
  }
  return y;
}

/// `f`: the value of the scale (NVFP4).
Value RecipeWriter::encodedElement(Value factor, Value f) {
  const Value x = element(), zero = b.constant(0.f);
  Value y = dividesElements(recipe) ? b.divide(x, factor) : b.multiply(x, factor);
  if (dividesElements(recipe) && recipe.guard == FactorGuard::ZeroIfScaleZero)
    y = b.select(b(Op::FloatEqual, f, zero), zero, y);
  if (hasE4M3Scales(recipe.format) && recipe.guard == FactorGuard::ZeroBlockIfAmaxZero)
    y = b.select(b(Op::FloatEqual, blockAmax(), zero), zero, y);
  if (hasE4M3Scales(recipe.format) && recipe.encode == EncodeSpelling::BF16GlobalOverScale)
    y = b(Op::RoundBF16, y);
  y = withSign(withTies(y));
  if (recipe.nanElement == NanElement::Zero)
    y = b.select(b(Op::IsNaN, y), zero, y);
  return y;
}

/// Four-over-six: amax maps to 6, or, stretched, to 4. The distance is what TransformerEngine
/// computes, |((q * f) * a_t) / D - x|, or FlashInfer, |(q * f) * d - x|.
void RecipeWriter::candidates(Value f) {
  const Value range = b.constant(6.f * recipe.e4m3Max);
  const Value scaled = b.multiply(b.input(Op::Decoded, Stage::Error), f);
  const Value back = recipe.candidateValue == CandidateValue::AmaxOverRange
                         ? b.divide(b.multiply(scaled, tensorAmax()), range)
                         : b.multiply(scaled, d);
  const Value distance = b(Op::Absolute, b(Op::Subtract, back, element()));
  program.candidates = {1.f, 1.5f};
  program.errorIsLargest = recipe.adaptive == Adaptive::FourOverSixLargest;
  program.error =
      recipe.adaptive == Adaptive::FourOverSixSquared ? b.multiply(distance, distance) : distance;
}

RecipeProgram RecipeWriter::write() {
  program.amaxNaN = recipe.amaxNaN;
  Value factor = noValue, f = noValue;
  if (isMX(recipe.format)) {
    Value isNaN = noValue;
    program.scaleByte = exponentByte(isNaN);
    factor = exponentFactor(program.scaleByte, isNaN);
  } else if (hasF32Scales(recipe.format)) {
    const Value scale = floatScale();
    program.scaleByte = b(Op::BitsOf, scale);
    factor = b.divide(b.constant(1.f), scale);
  } else {
    globalScale();
    program.encodeScale = g;
    program.decodeScale = d;
    program.scaleByte = scaleByte();
    f = b(Op::FromE4M3, program.scaleByte);
    factor = guardedFactor(f);
    if (recipe.adaptive != Adaptive::Off)
      candidates(f);
  }
  program.element = encodedElement(factor, f);
  if (!isPacked(recipe.format))
    program.elementCode = toWideCode(program.element);
  b.finish(program);
  return std::move(program);
}

//===--- Elements of 6 and 8 bits ----------------------------------------===//

/// The top bit of `bits`, as bit 0.
Value RecipeWriter::signOf(Value code, unsigned bits) {
  return b(Op::ShiftRight, code, b.integer(bits - 1));
}

/// Rounds y to the nearest code, ties to even, saturating. |y| is rounded by adding and subtracting
/// the power of two whose last place is a step of the format at y. Times 2^(bias - 127), the
/// pattern of |y| has exponent and mantissa of the code at its top. NaN becomes 0x7F in formats of
/// 8 bits, else the largest code.
Value RecipeWriter::toWideCode(Value y) {
  const ElementFormat type = elementOf(recipe.format);
  if (type.largest == elements::F8E4M3FN.largest)
    return b(Op::ToE4M3, y);
  const Value m = b(Op::MinDropNaN, b(Op::Absolute, y), b.constant(type.largest));
  const Value shift = b.integer(floatMantissa);
  const Value normal = b.integer(floatBias + 1 - static_cast<uint32_t>(type.bias));
  const Value exponent = b(Op::MaxSigned, b(Op::ShiftRight, b(Op::BitsOf, m), shift), normal);
  const Value place = b(Op::Add, exponent, b.integer(floatMantissa - type.mantissa));
  const Value power = b(Op::ShiftLeft, place, shift);
  const Value negative = b(Op::FloatOf, b(Op::Add, power, b.integer(0x80000000)));
  const Value sum = b(Op::Subtract, m, negative);
  const Value rounded = b(Op::Subtract, sum, b(Op::FloatOf, power));
  const Value aligned = b.multiply(rounded, b.constant(std::ldexp(1.f, type.bias - 127)));
  const Value magnitude =
      b(Op::ShiftRight, b(Op::BitsOf, aligned), b.integer(floatMantissa - type.mantissa));
  const Value sign =
      b(Op::ShiftLeft, signOf(b(Op::BitsOf, y), 32), b.integer(type.bits - 1));
  const Value nan = b.integer(type.bits == 8 ? 0x7F : 0x1F);
  return b.select(b(Op::IsNaN, y), nan, b(Op::Add, magnitude, sign));
}

/// The value of a code. Among the wide formats only E5M2 has infinities and NaN here.
Value RecipeWriter::fromWideCode(Value code) {
  const ElementFormat type = elementOf(recipe.format);
  if (type.largest == elements::F8E4M3FN.largest)
    return b(Op::FromE4M3, code);
  const Value top = b.integer(type.bits - 1), sign = signOf(code, type.bits);
  const Value magnitude = b(Op::SubtractInt, code, b(Op::ShiftLeft, sign, top));
  const Value pattern = b(Op::ShiftLeft, magnitude, b.integer(floatMantissa - type.mantissa));
  const Value negative = b(Op::ShiftLeft, sign, b.integer(31));
  const Value bits = b(Op::Add, pattern, negative);
  const Value unit = b.constant(std::ldexp(1.f, 127 - type.bias));
  const Value value = b.multiply(b(Op::FloatOf, bits), unit);
  if (type.largest != elements::F8E5M2.largest)
    return value;
  const Value infinity = b(Op::FloatOf, b(Op::Add, negative, b.integer(infinityBits)));
  const Value finite = b.select(b(Op::IntEqual, magnitude, b.integer(0x7C)), infinity, value);
  return b.select(b(Op::IntAtLeast, magnitude, b.integer(0x7D)), b.constant(floatOf(nanBits)),
                  finite);
}

//===--- Dequantizing ----------------------------------------------------===//

/// The factor of a code's value.
Value RecipeWriter::decodeFactor() {
  const Value byte = b.input(Op::ScaleByte, Stage::Block);
  if (hasF32Scales(recipe.format))
    return b(Op::FloatOf, byte);
  if (isMX(recipe.format)) {
    const Value bits = b(Op::ShiftLeft, byte, b.integer(23));
    if (recipe.scaleDecode == ScaleDecode::Shifted)
      return b(Op::FloatOf, bits);
    const Value isLeast = b(Op::IntEqual, byte, b.integer(0));
    const Value finite = b.select(isLeast, b.integer(0x00400000), bits);
    if (recipe.scaleDecode == ScaleDecode::Power)
      return b(Op::FloatOf, finite);
    const Value isBad = b(Op::IntEqual, byte, b.integer(255));
    return b(Op::FloatOf, b.select(isBad, b.integer(nanBits), finite));
  }
  const Value f = b(Op::FromE4M3, byte);
  if (recipe.global == GlobalRule::One)
    return f;
  globalScale();
  if (recipe.dequantize == DequantizeRule::OverEncodeScale)
    return b.divide(f, g);
  const Value decode = g == noValue ? d : b.divide(b.constant(1.f), g);
  if (recipe.dequantize == DequantizeRule::DecodeScale || isSupplied(recipe))
    return b.multiply(f, decode);
  const double range = 6.0 * static_cast<double>(recipe.e4m3Max);
  return b.multiply(b.multiply(f, tensorAmax()), b.constant(static_cast<float>(1.0 / range)));
}

RecipeProgram RecipeWriter::writeDequantizer() {
  const Value factor = decodeFactor();
  const Value value =
      isPacked(recipe.format) ? element() : fromWideCode(b.input(Op::Code, Stage::Element));
  program.element = b.multiply(value, factor);
  b.finish(program);
  return std::move(program);
}

//===--- Alpha terms -----------------------------------------------------===//

RecipeProgram RecipeWriter::writeAlphaTerm() {
  if (recipe.alpha != AlphaRule::AmaxProduct)
    globalScale();
  switch (recipe.alpha) {
  case AlphaRule::AmaxProduct:
    program.element = tensorAmax();
    break;
  case AlphaRule::DecodeScales:
    program.element = d;
    break;
  case AlphaRule::OverEncodeScales:
    program.element = g;
    break;
  }
  b.finish(program);
  return std::move(program);
}

} // namespace

RecipeProgram makeProgram(const Recipe &recipe) { return RecipeWriter(recipe).write(); }

RecipeProgram makeAlphaTerm(const Recipe &recipe) { return RecipeWriter(recipe).writeAlphaTerm(); }

RecipeProgram makeDequantizer(const Recipe &recipe) {
  return RecipeWriter(recipe).writeDequantizer();
}

} // namespace fp4::numerics
