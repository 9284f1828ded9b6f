//===- Recipe.cpp - Block scales and encode factors of the recipes --------===//
#include "Recipe.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp4;

/// fp32(1/6).
static constexpr uint32_t kSixthBits = 0x3E2AAAAB;
/// 448 * 6, the largest E4M3 scale times the largest E2M1 element.
static constexpr float kEncodeRange = 2688.0f;
/// fp32 bit patterns.
static constexpr int64_t kInfinity = 0x7F800000, kNaN = 0x7FFFFFFF, kMantissa = 0x007FFFFF;
/// Exponent of the largest power of two in E2M1, 4.
static constexpr int64_t kElementExponent = 2;

RecipeDecisions fp4::decisions(Recipe recipe) {
  switch (recipe) {
  case Recipe::TransformerEngine:
    return {BlockScale::AmaxTimesSixthOfS, /*tensorScale=*/true, /*keepNaN=*/false};
  case Recipe::TransformerEngine213:
    return {BlockScale::SixthOfAmaxTimesS, /*tensorScale=*/true, /*keepNaN=*/false};
  case Recipe::OcpFloor:
    return {BlockScale::ExponentFloor, /*tensorScale=*/false, /*keepNaN=*/true};
  case Recipe::OcpCeil:
    return {BlockScale::ExponentCeil, /*tensorScale=*/false, /*keepNaN=*/true};
  case Recipe::OcpEven:
    return {BlockScale::ExponentEven, /*tensorScale=*/false, /*keepNaN=*/true};
  case Recipe::OcpRceil:
    return {BlockScale::SixthRoundedUp, /*tensorScale=*/false, /*keepNaN=*/true};
  }
  llvm_unreachable("a recipe outside of its enumeration");
}

void RecipeEmitter::prepare(Value amax) {
  if (!recipe.tensorScale)
    return;
  Value zero = s.constant(0);
  Value scale = s.minimumNumber(s.divide(s.constant(kEncodeRange), amax),
                                s.constantBits(kFloatMaxBits));
  // amax = 0 and amax = infinity leave the elements as they are.
  Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, amax, zero);
  Value isHuge = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, scale, zero);
  Value isGuarded = arith::OrIOp::create(b, isEmpty, isHuge);
  encodeScale = arith::SelectOp::create(b, isGuarded, s.constant(1), scale);
  decodeScale = s.divide(s.constant(1), encodeScale);
  if (recipe.blockScale == BlockScale::AmaxTimesSixthOfS)
    sixthOfEncodeScale = s.multiply(encodeScale, s.constantBits(kSixthBits));
}

ScaledBlock RecipeEmitter::block(Value blockAmax) {
  return recipe.tensorScale ? floatScale(blockAmax) : exponentScale(blockAmax);
}

ScaledBlock RecipeEmitter::floatScale(Value blockAmax) {
  Value scale = recipe.blockScale == BlockScale::AmaxTimesSixthOfS
                    ? s.multiply(blockAmax, sixthOfEncodeScale)
                    : s.multiply(s.divide(blockAmax, s.constant(6)), encodeScale);
  Value byte = s.toE4M3(s.minimumNumber(scale, s.constantBits(kFloatMaxBits)));
  // A scale of zero gives an infinite quotient, and then the largest finite factor: zeros stay
  // zeros and everything else saturates.
  Value quotient = s.divide(s.constant(1), s.multiply(s.fromE4M3(byte), decodeScale));
  return {byte, s.minimumNumber(quotient, s.constantBits(kFloatMaxBits))};
}

/// The exponent of `x` rounded up to a power of two, biased, at most 254. fp32 subnormals up to
/// 2^-127 give 0.
Value RecipeEmitter::roundedUpByte(Value x) {
  Value pattern = s.bits(x);
  Value isNormal =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, pattern, s.integer(kMantissa));
  Value almostOne =
      arith::SelectOp::create(b, isNormal, s.integer(kMantissa), s.integer(kMantissa >> 1));
  Value rounded = arith::AddIOp::create(b, pattern, almostOne);
  return arith::ShRUIOp::create(b, rounded, s.integer(23));
}

/// The scale's byte as an i32 before it is clamped; `isBad` where the scale is NaN.
Value RecipeEmitter::exponentByte(Value blockAmax, Value &isBad) {
  Value pattern = s.bits(blockAmax);
  auto isAtLeastInfinity = [&](Value x) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::uge, x, s.integer(kInfinity));
  };
  isBad = isAtLeastInfinity(pattern);
  if (recipe.blockScale == BlockScale::SixthRoundedUp)
    return roundedUpByte(s.multiply(blockAmax, s.constantBits(kSixthBits)));
  if (recipe.blockScale == BlockScale::ExponentCeil)
    pattern = arith::AddIOp::create(b, pattern, s.integer(kMantissa));
  if (recipe.blockScale == BlockScale::ExponentEven) {
    pattern = arith::AddIOp::create(b, pattern, s.integer(1 << 21));
    isBad = isAtLeastInfinity(pattern);
  }
  Value exponent = arith::ShRUIOp::create(b, pattern, s.integer(23));
  return arith::SubIOp::create(b, exponent, s.integer(kElementExponent));
}

ScaledBlock RecipeEmitter::exponentScale(Value blockAmax) {
  Value isBad;
  Value byte = exponentByte(blockAmax, isBad);
  byte = arith::MaxSIOp::create(b, byte, s.integer(0));
  byte = arith::MinSIOp::create(b, byte, s.integer(254));
  // The factor is 2^(127 - byte), the fp32 with exponent field 254 - byte; its last value is
  // subnormal.
  Value exponent = arith::SubIOp::create(b, s.integer(254), byte);
  Value factor = arith::ShLIOp::create(b, exponent, s.integer(23));
  Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, exponent, s.integer(0));
  factor = arith::SelectOp::create(b, isLast, s.integer(0x00400000), factor);
  factor = arith::SelectOp::create(b, isBad, s.integer(kNaN), factor);
  byte = arith::SelectOp::create(b, isBad, s.integer(255), byte);
  return {arith::TruncIOp::create(b, b.getI8Type(), byte), s.fromBits(factor)};
}
