// The decisions of a recipe as operations. Each expression here is the formula of its enumerator in
// Recipe.h; nothing else in the project spells them.
#include "fp4/Numerics/RecipeProgram.h"
#include "ProgramBuilder.h"
#include <cfloat>

namespace fp4::numerics {
namespace {

constexpr float oneSixth = 0x1.555556p-3f; // fp32(1/6), 0x3E2AAAAB
constexpr uint32_t infinityBits = 0x7F800000, nanBits = 0x7FFFFFFF, mantissaBits = 0x007FFFFF;

class RecipeWriter {
public:
  explicit RecipeWriter(const Recipe &recipe) : recipe(recipe) {}
  RecipeProgram write();

private:
  void globalScale();
  Value guardedEncodeScale(Value full, Value amax);
  Value scaleBeforeCast();
  Value scaleByte();
  Value factorSpelling(Value f);
  Value guardedFactor(Value f);
  Value exponentBeforeClamp(Value &isBad);
  Value exponentByte(Value &isBad);
  Value exponentFactor(Value byte, Value isBad);
  Value encodedElement(Value factor);
  void candidates(Value f);

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

void RecipeWriter::globalScale() {
  const float range = 6.f * recipe.e4m3Max;
  const Value full = b.constant(range), one = b.constant(1.f);
  switch (recipe.global) {
  case GlobalRule::One:
    g = d = one;
    return;
  case GlobalRule::GuardedDivide:
    g = guardedEncodeScale(full, tensorAmax());
    break;
  case GlobalRule::Divide:
    g = b.divide(full, tensorAmax());
    break;
  case GlobalRule::Reciprocal:
    g = b.multiply(full, b.divide(one, tensorAmax()));
    break;
  case GlobalRule::Supplied:
    g = tensorAmax();
    break;
  case GlobalRule::DecodeDivide:
    d = b.divide(tensorAmax(), full);
    return;
  case GlobalRule::DecodeMultiply:
    d = b.multiply(tensorAmax(), b.constant(static_cast<float>(1.0 / double(range))));
    return;
  }
  d = b.divide(one, g);
}

//===--- NVFP4 scale and factor ------------------------------------------===//

Value RecipeWriter::scaleBeforeCast() {
  const Value a = blockAmax(), six = b.constant(6.f), r6 = b.constant(oneSixth);
  switch (recipe.scale) {
  case ScaleSpelling::MultiplyFolded:
    return b.multiply(a, b.multiply(g, r6));
  case ScaleSpelling::DivideThenMultiply:
    return b.multiply(b.divide(a, six), g);
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
  }
  return noValue;
}

/// The cast to e4m3. The non-saturating cast gives NaN above 464, and NaN 0x7F, whose sign is the
/// platform's elsewhere. The recipes that use it clamp first; ModelOpt does not.
Value RecipeWriter::scaleByte() {
  Value s = scaleBeforeCast();
  const Value most = b.constant(448.f);
  if (recipe.adaptive != Adaptive::Off) {
    s = b(Op::MinDropNaN, b.multiply(s, b.input(Op::Stretch, Stage::Block)), most);
    return b(Op::ToE4M3, s);
  }
  if (recipe.scaleFloor > 0)
    s = b(Op::MaxKeepNaN, s, b.constant(recipe.scaleFloor));
  if (!recipe.saturatingScaleCast) {
    if (recipe.scale == ScaleSpelling::DivideByProduct)
      s = b.select(b(Op::FloatGreater, s, b.constant(464.f)), b.constant(floatOf(nanBits)), s);
    else
      s = b(Op::MinKeepNaN, s, most);
  }
  return b(Op::ToE4M3, s);
}

/// What elements are multiplied by (DivideByProduct: divided by).
Value RecipeWriter::factorSpelling(Value f) {
  const Value one = b.constant(1.f);
  switch (recipe.encode) {
  case EncodeSpelling::ReciprocalOfProduct:
    return b.divide(one, b.multiply(f, d));
  case EncodeSpelling::GlobalOverScale:
    return b.divide(g, f);
  case EncodeSpelling::ReciprocalOverScale:
    return b.divide(b.divide(one, d), f);
  case EncodeSpelling::GlobalTimesReciprocal:
    return b.multiply(g, b.divide(one, f));
  case EncodeSpelling::DivideByProduct:
    return b.multiply(d, f);
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
  switch (recipe.guard) {
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

//===--- MXFP4 -----------------------------------------------------------===//

/// The exponent rule before its clamp to 0..254; `isBad` where it gives no number.
Value RecipeWriter::exponentBeforeClamp(Value &isBad) {
  Value u = b(Op::BitsOf, blockAmax());
  const Value infinity = b.integer(infinityBits);
  isBad = b(Op::IntAtLeast, u, infinity);
  switch (recipe.exponent) {
  case ExponentRule::Floor:
    break;
  case ExponentRule::Ceil:
    u = b(Op::Add, u, b.integer(mantissaBits));
    break;
  case ExponentRule::Even:
    u = b(Op::Add, u, b.integer(1u << 21));
    isBad = b(Op::IntAtLeast, u, infinity);
    break;
  case ExponentRule::EvenDown:
    u = b(Op::Add, u, b.integer((1u << 21) - 1));
    break;
  case ExponentRule::RoundUp:
    return b(Op::ToUE8M0Up, b.multiply(blockAmax(), b.constant(oneSixth)));
  case ExponentRule::RoundUpDivide:
    return b(Op::ToUE8M0Up, b.divide(blockAmax(), b.constant(6.f)));
  }
  return b(Op::SubtractInt, b(Op::ShiftRight, u, b.integer(23)), b.integer(2));
}

Value RecipeWriter::exponentByte(Value &isBad) {
  Value byte = exponentBeforeClamp(isBad);
  byte = b(Op::MinSigned, b(Op::MaxSigned, byte, b.integer(0)), b.integer(254));
  return recipe.nonFiniteIsNaN ? b.select(isBad, b.integer(255), byte) : byte;
}

/// 2^(127 - byte): the fp32 with exponent field 254 - byte, whose last value is subnormal.
Value RecipeWriter::exponentFactor(Value byte, Value isBad) {
  const Value zero = b.integer(0);
  const Value exponent = b(Op::SubtractInt, b.integer(254), byte);
  Value bits = b(Op::ShiftLeft, exponent, b.integer(23));
  bits = b.select(b(Op::IntEqual, exponent, zero), b.integer(0x00400000), bits);
  if (recipe.nonFiniteIsNaN)
    bits = b.select(isBad, b.integer(nanBits), bits);
  const Value factor = b(Op::FloatOf, bits);
  if (recipe.zeroByte == ZeroByteFactor::Exact)
    return factor;
  const float replaced = recipe.zeroByte == ZeroByteFactor::One ? 1.f : 0.f;
  return b.select(b(Op::IntEqual, byte, zero), b.constant(replaced), factor);
}

//===--- Elements --------------------------------------------------------===//

Value RecipeWriter::encodedElement(Value factor) {
  const Value x = element(), zero = b.constant(0.f);
  const bool nvfp4 = recipe.format == BlockFormat::NVFP4;
  const bool divides = nvfp4 && recipe.encode == EncodeSpelling::DivideByProduct;
  Value y = divides ? b.divide(x, factor) : b.multiply(x, factor);
  if (nvfp4 && recipe.encode == EncodeSpelling::BF16GlobalOverScale)
    y = b(Op::RoundBF16, y);
  if (!recipe.keepNegativeZero)
    y = b.select(b(Op::FloatEqual, y, zero), zero, y);
  if (recipe.nanElementIsZero)
    y = b.select(b(Op::IsNaN, y), zero, y);
  return y;
}

/// Four-over-six: amax maps to 6, or, stretched, to 4. The distance is what TransformerEngine
/// computes: |((q * f) * a_t) / D - x|.
void RecipeWriter::candidates(Value f) {
  const Value range = b.constant(6.f * recipe.e4m3Max);
  const Value q = b.input(Op::Decoded, Stage::Error);
  const Value back = b.divide(b.multiply(b.multiply(q, f), tensorAmax()), range);
  const Value distance = b(Op::Absolute, b(Op::Subtract, back, element()));
  program.candidates = {1.f, 1.5f};
  program.errorIsLargest = recipe.adaptive == Adaptive::FourOverSixLargest;
  program.error =
      recipe.adaptive == Adaptive::FourOverSixSquared ? b.multiply(distance, distance) : distance;
}

RecipeProgram RecipeWriter::write() {
  program.amaxNaN = recipe.amaxNaN;
  Value factor = noValue;
  if (recipe.format == BlockFormat::MXFP4) {
    Value isBad = noValue;
    program.scaleByte = exponentByte(isBad);
    factor = exponentFactor(program.scaleByte, isBad);
  } else {
    globalScale();
    program.encodeScale = g;
    program.decodeScale = d;
    program.scaleByte = scaleByte();
    const Value f = b(Op::FromE4M3, program.scaleByte);
    factor = guardedFactor(f);
    if (recipe.adaptive != Adaptive::Off)
      candidates(f);
  }
  program.element = encodedElement(factor);
  b.finish(program);
  return std::move(program);
}

} // namespace

RecipeProgram makeProgram(const Recipe &recipe) { return RecipeWriter(recipe).write(); }

namespace {

/// What a code's value is multiplied by.
Value decodeFactor(ProgramBuilder &b, const Recipe &recipe) {
  const Value byte = b.input(Op::ScaleByte, Stage::Block);
  if (recipe.format == BlockFormat::MXFP4) {
    const Value bits = b(Op::ShiftLeft, byte, b.integer(23));
    const Value isLeast = b(Op::IntEqual, byte, b.integer(0));
    const Value finite = b.select(isLeast, b.integer(0x00400000), bits);
    const Value isBad = b(Op::IntEqual, byte, b.integer(255));
    return b(Op::FloatOf, b.select(isBad, b.integer(nanBits), finite));
  }
  const Value f = b(Op::FromE4M3, byte);
  if (recipe.global == GlobalRule::One)
    return f;
  const Value amax = b.input(Op::TensorAmax, Stage::Tensor);
  if (recipe.global == GlobalRule::Supplied)
    return b.multiply(f, b.divide(b.constant(1.f), amax));
  const double range = 6.0 * static_cast<double>(recipe.e4m3Max);
  return b.multiply(b.multiply(f, amax), b.constant(static_cast<float>(1.0 / range)));
}

} // namespace

RecipeProgram makeDequantizer(const Recipe &recipe) {
  RecipeProgram program;
  ProgramBuilder b;
  const Value factor = decodeFactor(b, recipe);
  program.element = b.multiply(b.input(Op::Element, Stage::Element), factor);
  b.finish(program);
  return program;
}

RecipeProgram makeDequantizer(BlockFormat format, float e4m3Max) {
  Recipe recipe;
  recipe.format = format;
  recipe.e4m3Max = e4m3Max;
  return makeDequantizer(recipe);
}

} // namespace fp4::numerics
