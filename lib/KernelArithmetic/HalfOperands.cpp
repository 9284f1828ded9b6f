//===- HalfOperands.cpp - Scaled fp4 elements as f16 or bf16 --------------===//
#include "HalfOperands.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;
using namespace fp4;

/// The factor that elements of MXFP4 have besides their scale.
static constexpr double kPowerMXFP4 = 0x1p-4;
static_assert(numerics::convertedExponent(numerics::BlockFormat::MXFP4) == -4);

HalfOperands::HalfOperands(ImplicitLocOpBuilder &b, const hw::TargetModel &target, Type scaleType,
                           Type element, Type data)
    : b(b), s(b, target), isUnscaled(!scaleType),
      isE4M3(isa_and_nonnull<Float8E4M3FNType>(scaleType)), element(element), data(data) {
  if (isa_and_nonnull<Float4E2M1FNType>(data))
    this->data = {};
  isSix = isa_and_nonnull<Float6E2M3FNType, Float6E3M2FNType>(data);
  hasConversion = target.features.hasFp4Convert && !this->data && !isUnscaled;
  if (!element)
    this->element = isE4M3 ? Type(b.getF16Type()) : Type(b.getBF16Type());
  mixesFloats = hasConversion && target.features.hasMixedFma && isE4M3 && this->element.isBF16();
}

Value HalfOperands::asPair(Value word) {
  return LLVM::BitcastOp::create(b, VectorType::get(2, elementType()), word);
}

Value HalfOperands::splat(double value) {
  auto type = VectorType::get(2, elementType());
  Attribute element = b.getFloatAttr(elementType(), value);
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, element));
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// The f16 of a scale of f8E8M0FNU times the power of two of such elements.
Value HalfOperands::halfPowerOf(Value scales, int64_t number) {
  constexpr int exponent =
      numerics::convertedExponent(numerics::BlockFormat::MXFP4, numerics::FloatType::F16);
  Value power = LLVM::BitcastOp::create(b, b.getF32Type(), s.powerBits(scales, number, 23));
  power = arith::MulFOp::create(b, power, s.constant(std::ldexp(1.0, exponent)));
  return inBothLanes(arith::TruncFOp::create(b, element, power));
}

SmallVector<Value> HalfOperands::factors(Value scales, int64_t count) {
  if (!isE4M3 && element.isF16()) {
    SmallVector<Value> result;
    for (int64_t i = 0; i < count; ++i)
      result.push_back(halfPowerOf(scales, i));
    return result;
  }
  if (isE4M3 || isSix || (!data && !hasConversion))
    return isE4M3 ? factorsE4M3(scales, count) : factorsE8M0(scales, count);
  SmallVector<Value> result;
  for (int64_t i = 0; i < count; ++i) {
    Value power = LLVM::BitcastOp::create(b, b.getF32Type(), s.powerBits(scales, i, 23));
    if (!data)
      power = arith::MulFOp::create(b, power, s.constant(kPowerMXFP4));
    result.push_back(power);
  }
  return result;
}

/// The power of two of factors beside scales of f8E4M3FN: that of converted elements, and the
/// exponent that widenToF16 and widenToBF16 leave to restore.
double HalfOperands::powerE4M3() const {
  const int widened = hasConversion ? 0 : element.isF16() ? 14 : 126;
  return std::ldexp(1.0, widened + numerics::convertedExponent(numerics::BlockFormat::NVFP4));
}

/// Two scales of f8E4M3FN, bytes `first` and one more of a word, as f16, times their power where
/// products are f16. The sign of a scale is ignored. 448 * 2^7 fits in f16.
Value HalfOperands::pairE4M3(Value scales, int64_t first) {
  auto e4m3 = TypeAttr::get(Float8E4M3FNType::get(b.getContext()));
  auto pair = VectorType::get(2, b.getF16Type());
  Value magnitudes = arith::AndIOp::create(b, scales, s.integer(0x7F7F7F7F));
  Value bytes = LLVM::BitcastOp::create(b, VectorType::get(4, b.getI8Type()), magnitudes);
  Value two = vector::ExtractStridedSliceOp::create(b, bytes, ArrayRef<int64_t>{first},
                                                    ArrayRef<int64_t>{2}, ArrayRef<int64_t>{1});
  Value halves = NVVM::ConvertF8x2ToF16x2Op::create(b, pair, two, b.getBoolAttr(false), e4m3);
  if (!element.isF16() && !mixesFloats)
    return halves;
  Attribute power = b.getFloatAttr(b.getF16Type(), powerE4M3());
  Value powers = arith::ConstantOp::create(b, DenseElementsAttr::get(pair, power));
  return arith::MulFOp::create(b, halves, powers);
}

SmallVector<Value> HalfOperands::factorsE4M3(Value scales, int64_t count) {
  SmallVector<Value> result;
  for (int64_t first = 0; first < count; first += 2) {
    Value halves = pairE4M3(scales, first);
    for (int64_t lane : {0, 1}) {
      Value half = vector::ExtractOp::create(b, halves, lane);
      if (mixesFloats) {
        result.push_back(half);
        continue;
      }
      if (!element.isF16()) {
        Value wide = arith::ExtFOp::create(b, b.getF32Type(), half);
        Value restored = arith::ConstantOp::create(b, b.getF32FloatAttr(float(powerE4M3())));
        half = arith::MulFOp::create(b, wide, restored);
        if (!hasConversion)
          half = arith::TruncFOp::create(b, element, half);
      }
      bool isSingle = hasConversion && !element.isF16();
      result.push_back(isSingle ? half : inBothLanes(half));
    }
  }
  return result;
}

Value HalfOperands::inBothLanes(Value half) {
  return vector::BroadcastOp::create(b, VectorType::get(2, elementType()), half);
}

/// Two scales of f8E8M0FNU, bytes 0 and 2 of a word of zeros, as bf16. A byte is the exponent of a
/// bf16, but for 0, a subnormal, and 255, for which the infinity that it gives becomes NaN.
Value HalfOperands::pairE8M0(Value bytes) {
  Value pair = LLVM::MaxNumOp::create(b, asPair(shifted(bytes, 7)), splat(0x1p-127));
  return LLVM::FMAOp::create(b, pair, splat(0), pair);
}

SmallVector<Value> HalfOperands::factorsE8M0(Value scales, int64_t count) {
  SmallVector<Value> result;
  for (uint32_t i = 0; i < count; ++i)
    result.push_back(pairE8M0(s.permute(scales, s.integer(0), 0x4040 + i * 0x0101)));
  return result;
}

SmallVector<Value> HalfOperands::factorsOfRows(Value first, Value second, int64_t count) {
  SmallVector<Value> result;
  for (uint32_t i = 0; i < count; ++i) {
    if (isE4M3) {
      result.push_back(pairE4M3(s.permute(first, second, 0x0040 + i * 0x0011), 0));
      continue;
    }
    Value mine = s.permute(first, second, 0x0040 + i * 0x0011);
    result.push_back(pairE8M0(s.permute(mine, s.integer(0), 0x4140)));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

Value HalfOperands::shifted(Value word, int64_t left) {
  if (left == 0)
    return word;
  if (Value power = left == 1 ? two : left == 4 ? sixteen : Value())
    return arith::MulIOp::create(b, word, power);
  if (left < 0)
    return arith::ShRUIOp::create(b, word, s.integer(-left));
  return arith::ShLIOp::create(b, word, s.integer(left));
}

/// The codes of a word whose bits come to lie in `magnitudes` and `signs` when they are moved.
Value HalfOperands::align(Value word, int64_t magnitudesLeft, uint32_t magnitudes,
                          int64_t signsLeft, uint32_t signs) {
  Value magnitude = arith::AndIOp::create(b, shifted(word, magnitudesLeft), s.integer(magnitudes));
  Value sign = arith::AndIOp::create(b, shifted(word, signsLeft), s.integer(signs));
  return arith::OrIOp::create(b, magnitude, sign);
}

/// Sign, exponent and fraction of an f16 that is a code lie in its upper byte: bytes are made of
/// the even and of the odd codes, and then joined with zero bytes.
SmallVector<Value> HalfOperands::widenToF16(Value codes) {
  constexpr uint32_t magnitudes = 0x0E0E0E0E, signs = 0x80808080;
  Value zero = s.integer(0);
  SmallVector<Value> words;
  for (Value bytes :
       {align(codes, 1, magnitudes, 4, signs), align(codes, -3, magnitudes, 0, signs)})
    for (uint32_t selector : {0x1404u, 0x3424u})
      words.push_back(s.permute(bytes, zero, selector));
  return words;
}

/// The bits of a code cross the border of the bytes of a bf16: code i and code i + 4 are moved in
/// place together. A product with two powers of two moves signs and magnitudes at once: four bits
/// moved left by 6 and by 12 do not meet.
SmallVector<Value> HalfOperands::widenToBF16(Value codes) {
  SmallVector<Value> words;
  if (multiplies) {
    Value upper = shifted(codes, -8);
    for (int64_t i : {0, 2, 1, 3}) {
      const int64_t nibble = i % 2 * 4;
      Value four = arith::AndIOp::create(b, i < 2 ? codes : upper, s.integer(0x000F000F << nibble));
      Value moved = arith::MulIOp::create(b, four, s.integer((1 << 6 | 1 << 12) >> nibble));
      words.push_back(arith::AndIOp::create(b, moved, s.integer(0x81C081C0)));
    }
    return words;
  }
  for (int64_t i : {0, 2, 1, 3})
    words.push_back(align(codes, 6 - 4 * i, 0x01C001C0, 12 - 4 * i, 0x80008000));
  return words;
}

SmallVector<Value> HalfOperands::scale(ValueRange words, Value factor) {
  SmallVector<Value> result;
  for (Value word : words) {
    Value pair = asPair(word);
    if (!isE4M3) // what widenToF16 and widenToBF16 leave to restore
      pair =
          arith::MulFOp::create(b, pair, splat(element.isF16() ? 0x1p14 : 0x1p126 * kPowerMXFP4));
    result.push_back(arith::MulFOp::create(b, pair, factor));
  }
  return result;
}

/// ptxas moves a constant to a register again for every permutation. ptxas keeps a value that it
/// cannot compute: the upper bits of a thread's index are zeros, but ptxas does not follow them
/// through a shuffle.
void HalfOperands::keepTables(Value threadIndex) {
  const bool multipliesHalves = multiplies && isE4M3 && element.isF16();
  if ((isE4M3 && !multipliesHalves) || data || hasConversion)
    return;
  Value other = valueOfPartner(b, threadIndex, 1);
  Value zero = arith::ShRUIOp::create(b, other, s.integer(12));
  auto keep = [&](uint32_t value) -> Value {
    return arith::XOrIOp::create(b, zero, s.integer(value));
  };
  if (isE4M3) {
    two = keep(2);
    sixteen = keep(16);
    return;
  }
  positives = keep(0xCCC8C4C0);
  negatives = keep(0xB4B8BCC0);
  upperByte = keep(0x41);
}

/// The lower bytes of the bf16 of 24 + value, whose upper bytes are all 0x41. A lookup takes the
/// lower three bits of four codes and gives 0xFF where the fourth is set, because all bytes of a
/// table have their highest bit.
Value HalfOperands::lookUp(Value codes) {
  auto in = [&](Value low, uint32_t high, Value selector) -> Value {
    return NVVM::PermuteOp::create(b, b.getI32Type(), low, s.integer(high), selector,
                                   NVVM::PermuteMode::DEFAULT);
  };
  Value otherSigns = arith::XOrIOp::create(b, codes, s.integer(0x88888888));
  return arith::AndIOp::create(b, in(positives, 0xF0E0D8D0, codes),
                               in(negatives, 0x90A0A8B0, otherSigns));
}

/// value * 2^-4 * scale = (24 + value) * (2^-4 * scale) - 24 * 2^-4 * scale, all of which are
/// numbers of bf16 for every scale.
SmallVector<Value> HalfOperands::convertE8M0(Value codes, Value factor) {
  Value scaled = arith::MulFOp::create(b, factor, splat(kPowerMXFP4));
  Value offset = arith::MulFOp::create(b, factor, splat(-24 * kPowerMXFP4));
  Value halves[2] = {lookUp(codes), lookUp(shifted(codes, -16))};
  SmallVector<Value> result;
  for (uint32_t odd : {0x0000u, 0x0101u})
    for (Value bytes : halves) {
      Value pair = asPair(s.permute(bytes, upperByte, 0x4240 + odd));
      result.push_back(LLVM::FMAOp::create(b, pair, scaled, offset));
    }
  return result;
}

/// The pair of codes that `selector` brings to bytes 0 and 2 of a word, out of two words. Exponent
/// and fraction of a code become the lowest bits of the exponent of a bf16 and the highest of its
/// fraction; no bit of bytes 1 and 3 comes to lie there.
Value HalfOperands::convertSix(ValueRange codes, uint32_t selector, Value factor) {
  constexpr unsigned fractionOfBF16 = 7, codeBits = 5; // without the sign
  constexpr int leastExponent = -126;                  // of bf16
  auto type = cast<FloatType>(data);
  const unsigned left = fractionOfBF16 - (type.getFPMantissaWidth() - 1);
  const int power = APFloat::semanticsMinExponent(type.getFloatSemantics()) - leastExponent;
  Value word = s.permute(codes[0], codes[1], selector);
  Value pair = asPair(align(word, left, 0x001F001Fu << left, 15 - codeBits, 0x80008000));
  pair = arith::MulFOp::create(b, pair, splat(std::ldexp(1.0, power)));
  return arith::MulFOp::create(b, pair, factor);
}

/// Four pairs of the even bytes, and then of the odd ones, of two words.
SmallVector<Value> HalfOperands::convertBytes(ValueRange codes, Value factor) {
  auto halves = VectorType::get(2, b.getF16Type());
  SmallVector<Value> result;
  for (uint32_t selector : {0x6420u, 0x7531u}) {
    Value four = LLVM::BitcastOp::create(b, VectorType::get(4, b.getI8Type()),
                                         s.permute(codes[0], codes[1], selector));
    for (int64_t first : {0, 2}) {
      Value two = vector::ExtractStridedSliceOp::create(b, four, ArrayRef<int64_t>{first},
                                                        ArrayRef<int64_t>{2}, ArrayRef<int64_t>{1});
      Value pair = NVVM::ConvertF8x2ToF16x2Op::create(b, halves, two, b.getBoolAttr(false),
                                                      TypeAttr::get(data));
      result.push_back(scaleInF32(pair, factor));
    }
  }
  return result;
}

/// A pair of f16 times an f32, rounded to the element.
Value HalfOperands::scaleInF32(Value pair, Value factor) {
  auto singles = VectorType::get(2, b.getF32Type());
  Value factors = vector::BroadcastOp::create(b, singles, factor);
  Value scaled = arith::MulFOp::create(b, arith::ExtFOp::create(b, singles, pair), factors);
  return arith::TruncFOp::create(b, VectorType::get(2, element), scaled);
}

/// Codes in the lower and in the upper bytes of pairs. Exponent and fraction become the lowest bits
/// of the exponent and the highest of the fraction; a factor then restores the exponent.
SmallVector<Value> HalfOperands::convertUnscaled(ValueRange codes) {
  const bool isHalf = element.isF16();
  const uint32_t magnitudes = isHalf ? 0x3F803F80 : 0x07F007F0, signs = 0x80008000;
  const int64_t upper = isHalf ? -1 : -4; // bits from an upper byte to its place
  Value restored = splat(isHalf ? 0x1p8 : 0x1p120);
  SmallVector<Value> pairs;
  for (int64_t left : {8, 0})
    for (Value word : codes) {
      Value pair = asPair(align(word, left + upper, magnitudes, left, signs));
      pairs.push_back(arith::MulFOp::create(b, pair, restored));
    }
  return pairs;
}

std::array<int64_t, 8> HalfOperands::order() const {
  if (hasConversion)
    return {0, 1, 2, 3, 4, 5, 6, 7};
  if (isE4M3 && element.isBF16())
    return {0, 4, 2, 6, 1, 5, 3, 7};
  return {0, 2, 4, 6, 1, 3, 5, 7};
}

SmallVector<Value> HalfOperands::convert(ValueRange codes, Value factor) {
  if (isUnscaled)
    return convertUnscaled(codes);
  if (isSix) // even codes, and then odd ones
    return {convertSix(codes, 0x2200, factor), convertSix(codes, 0x6644, factor),
            convertSix(codes, 0x3311, factor), convertSix(codes, 0x7755, factor)};
  if (data)
    return convertBytes(codes, factor);
  if (hasConversion)
    return convertInOrder(codes[0], factor, factor);
  if (isE4M3)
    return scale(element.isF16() ? widenToF16(codes[0]) : widenToBF16(codes[0]), factor);
  return convertE8M0(codes[0], factor);
}

/// The first two results of either have the even nibbles of a word: neighbours are brought there.
SmallVector<Value> HalfOperands::convertInOrder(ValueRange words, Value low, Value high) {
  if (isSix)
    return {convertSix(words, 0x1100, low), convertSix(words, 0x3322, low),
            convertSix(words, 0x5544, high), convertSix(words, 0x7766, high)};
  Value codes = words.front();
  if (mixesFloats)
    return scaleE2M1(b, codes, low, high);
  if (hasConversion) {
    SmallVector<Value> pairs = widenE2M1(b, codes);
    for (auto [i, pair] : llvm::enumerate(pairs)) {
      Value factor = i < 2 ? low : high;
      pair = element.isF16() ? arith::MulFOp::create(b, pair, factor).getResult()
                             : scaleInF32(pair, factor);
    }
    return pairs;
  }
  Value odd = arith::ShRUIOp::create(b, codes, s.integer(4));
  // Bytes of `codes`, 0 and up, and of `odd`, 4 and up, of two pairs.
  const uint32_t selector = element.isF16() ? 0x5140 : 0x5410;
  SmallVector<Value> result;
  for (auto [factor, first] : {std::pair(low, 0x0000u), std::pair(high, 0x2222u)}) {
    Value word = s.permute(codes, odd, selector + first);
    SmallVector<Value> pairs = element.isF16() ? widenToF16(word) : widenToBF16(word);
    llvm::append_range(result, scale(ArrayRef(pairs).take_front(2), factor));
  }
  return result;
}
