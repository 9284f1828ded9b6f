//===- Scalars.cpp - fp32 arithmetic and casts inside a kernel ------------===//
#include "Scalars.h"
#include "InlinePtx.h"

#include "E2M1Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace fp4;

//===----------------------------------------------------------------------===//
// fp32
//===----------------------------------------------------------------------===//

Value Scalars::constant(float value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

Value Scalars::constantBits(uint32_t bits) { return constant(llvm::bit_cast<float>(bits)); }

Value Scalars::integer(int64_t value) {
  return arith::ConstantOp::create(b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value Scalars::multiply(Value x, Value y) { return arith::MulFOp::create(b, x, y); }

Value Scalars::divide(Value x, Value y) {
  return quick ? quickDivide(x, y) : Value(arith::DivFOp::create(b, x, y));
}

Value Scalars::add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }

Value Scalars::subtract(Value x, Value y) { return arith::SubFOp::create(b, x, y); }

Value Scalars::roundToBF16(Value x) {
  Value half = arith::TruncFOp::create(b, b.getBF16Type(), x);
  return arith::ExtFOp::create(b, b.getF32Type(), half);
}

Value Scalars::packBF16(Value low, Value high) {
  auto type = VectorType::get(2, b.getBF16Type());
  Value pair = NVVM::ConvertF32x2ToBF16x2Op::create(b, type, high, low, /*random_bits=*/Value(),
                                                    NVVM::FPRoundingMode::RN,
                                                    NVVM::SaturationMode::NONE, /*relu=*/false);
  return LLVM::BitcastOp::create(b, b.getI32Type(), pair);
}

// The functions below emit LLVM's intrinsics from the start: on the way through arith and math,
// MLIR's lowering to NVVM would turn them into calls of a device library.
Value Scalars::absolute(Value x) { return LLVM::FAbsOp::create(b, x.getType(), x); }

Value Scalars::minimumNumber(Value x, Value y) {
  return LLVM::MinNumOp::create(b, x.getType(), x, y);
}

Value Scalars::minimumOrNaN(Value x, Value y) {
  return LLVM::MinimumOp::create(b, x.getType(), x, y);
}

Value Scalars::maximumNumber(Value x, Value y) {
  return LLVM::MaxNumOp::create(b, x.getType(), x, y);
}

Value Scalars::maximumOrNaN(Value x, Value y) {
  return LLVM::MaximumOp::create(b, x.getType(), x, y);
}

Value Scalars::bits(Value x) { return arith::BitcastOp::create(b, b.getI32Type(), x); }

Value Scalars::fromBits(Value x) { return arith::BitcastOp::create(b, b.getF32Type(), x); }

Value Scalars::callIntrinsic(StringRef name, Type result, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, result, b.getStringAttr(name), operands).getResult(0);
}

Value Scalars::permute(Value low, Value high, uint32_t selector) {
  return NVVM::PermuteOp::create(b, b.getI32Type(), low, high, integer(selector),
                                 NVVM::PermuteMode::DEFAULT);
}

Value Scalars::bitSelect(uint32_t mask, Value ones, Value zeros) {
  return lop3Select(b, integer(mask), ones, zeros);
}

/// One lane of a vector of halves as fp32.
Value Scalars::extend(Value vector, int64_t lane) {
  Value half = vector::ExtractOp::create(b, vector, lane);
  return arith::ExtFOp::create(b, b.getF32Type(), half);
}

/// A balanced tree: short chains, and a maximum is the same in any order.
Value Scalars::reduce(ArrayRef<Value> values, bool keepNaN) {
  if (values.size() == 1)
    return values.front();
  size_t half = values.size() / 2;
  Value low = reduce(values.take_front(half), keepNaN);
  Value high = reduce(values.drop_front(half), keepNaN);
  return keepNaN ? maximumOrNaN(low, high) : maximumNumber(low, high);
}

Value Scalars::amax(ArrayRef<Value> elements, bool keepNaN) {
  SmallVector<Value> magnitudes =
      llvm::map_to_vector(elements, [&](Value x) { return absolute(x); });
  // Elements that are all NaN leave a NaN, which the zero then replaces.
  if (!keepNaN)
    return maximumNumber(reduce(magnitudes, keepNaN), constant(0));
  return reduce(magnitudes, keepNaN);
}

/// Two magnitudes at once, whatever their signs; a lane that is NaN in all words stays NaN.
Value Scalars::reducePacked(ArrayRef<Value> words, Type element, bool keepNaN) {
  std::string name = "llvm.nvvm.fmax";
  name += keepNaN ? ".nan.xorsign.abs." : ".xorsign.abs.";
  name += element.isBF16() ? "bf16x2" : "f16x2";
  auto pair = VectorType::get(2, element);
  SmallVector<Value> level = llvm::map_to_vector(
      words, [&](Value word) -> Value { return LLVM::BitcastOp::create(b, pair, word); });
  while (level.size() > 1) {
    for (size_t i = 0; i < level.size() / 2; ++i)
      level[i] = callIntrinsic(name, pair, {level[2 * i], level[2 * i + 1]});
    if (level.size() % 2)
      level[level.size() / 2] = level.back();
    level.resize((level.size() + 1) / 2);
  }
  return LLVM::BitcastOp::create(b, b.getI32Type(), level.front());
}

Value Scalars::amax(ArrayRef<Value> words, Type element, bool keepNaN) {
  if (element.isF32())
    return amax(widen(words, element), keepNaN);
  return amax(widen(reducePacked(words, element, keepNaN), element), keepNaN);
}

Value Scalars::laneAmax(Value packed, Type element, unsigned lane, bool keepNaN) {
  return amax({widenHalf(packed, element, lane)}, keepNaN);
}

Value Scalars::widenHalf(Value word, Type element, unsigned half) {
  if (!element.isBF16())
    return extend(LLVM::BitcastOp::create(b, VectorType::get(2, element), word), half);
  return fromBits(half ? Value(arith::AndIOp::create(b, word, integer(0xFFFF0000)))
                       : shiftLeft(word, 16));
}

/// ptxas makes a shift of a multiplication by a power of two that it knows: here it comes with the
/// block's z, which is 0.
Value Scalars::shiftLeft(Value x, unsigned count) {
  if (target.features.hasFp4Convert || savesRegisters)
    return arith::ShLIOp::create(b, x, integer(count));
  Value z = NVVM::BlockIdZOp::create(b, b.getI32Type());
  return arith::MulIOp::create(b, x, arith::OrIOp::create(b, z, integer(int64_t(1) << count)));
}

/// The high half times one, minus zero, and the low half times zero, plus zero: the sign of a zero
/// stays above and goes below. ptxas makes the pair of zeros anew for every use, in three
/// instructions, if it knows them: here they come with the block's z, which is 0.
Value Scalars::widenHighOfFinite(Value word) {
  auto type = VectorType::get(2, b.getBF16Type());
  auto pair = [&](Value bits) { return LLVM::BitcastOp::create(b, type, bits).getResult(); };
  Value z = NVVM::BlockIdZOp::create(b, b.getI32Type());
  Value zeros = arith::OrIOp::create(b, z, integer(0x80000000));
  Value high = callIntrinsic("llvm.nvvm.fma.rn.bf16x2", type,
                             {pair(word), pair(integer(0x3F800000)), pair(zeros)});
  return LLVM::BitcastOp::create(b, b.getF32Type(), high);
}

SmallVector<Value> Scalars::widen(ArrayRef<Value> words, Type element) {
  SmallVector<Value> values;
  for (Value word : words) {
    if (element.isF32()) {
      values.push_back(fromBits(word));
      continue;
    }
    for (unsigned half : {0, 1})
      values.push_back(widenHalf(word, element, half));
  }
  return values;
}

//===----------------------------------------------------------------------===//
// E2M1
//===----------------------------------------------------------------------===//

/// Two codes in the low byte of an i32, by the instruction.
Value Scalars::pairE2M1(Value high, Value low) {
  auto e2m1 = TypeAttr::get(Float4E2M1FNType::get(b.getContext()));
  Value byte = NVVM::ConvertF32x2ToF4x2Op::create(b, b.getI8Type(), high, low,
                                                  /*relu=*/b.getBoolAttr(false), e2m1);
  return arith::ExtUIOp::create(b, b.getI32Type(), byte);
}

/// y with its halfway values moved to where half is rounded up; see E2M1Steps.h, here and below.
static Value moveTie(Scalars &s, ImplicitLocOpBuilder &b, Value y, float stepDown) {
  Value z = LLVM::FMAOp::create(b, y, s.constant(e2m1::kTieShift), y);
  return s.callIntrinsic("llvm.nvvm.mul.rz.f", z.getType(), {z, s.constant(stepDown)});
}

Value Scalars::moveTieE2M1(Value aligned) { return moveTie(*this, b, aligned, e2m1::kStepDown); }

/// Two f16 in an i32, cut.
static Value cutToHalves(ImplicitLocOpBuilder &b, Value high, Value low) {
  auto halves = VectorType::get(2, b.getF16Type());
  return NVVM::ConvertF32x2ToF16x2Op::create(b, halves, high, low, /*random_bits=*/Value(),
                                             NVVM::FPRoundingMode::RZ);
}

/// Two values as f16 whose high bytes hold their codes.
Value Scalars::halvesE2M1(Value high, Value low) {
  constexpr float down = e2m1::kStepDown * e2m1::kAlign;
  Value lower = moveTie(*this, b, low, down), upper = moveTie(*this, b, high, down);
  Value pair = cutToHalves(b, upper, lower);
  Value largest = LLVM::BitcastOp::create(b, pair.getType(), integer(e2m1::kLargest));
  pair = callIntrinsic("llvm.nvvm.fmin.xorsign.abs.f16x2", pair.getType(), {pair, largest});
  return LLVM::BitcastOp::create(b, b.getI32Type(), pair);
}

/// The codes of two pairs of halves, in the high nibbles of an i32's bytes.
Value Scalars::nibblesE2M1(Value low, Value high) {
  Value bytes = permute(low, high, e2m1::kHighBytes);
  Value rounded = arith::AddIOp::create(b, shiftLeft(bytes, 3), integer(e2m1::kRound));
  return bitSelect(e2m1::kSigns, bytes, rounded);
}

Value Scalars::mergeNibbles(Value even, Value odd) {
  return bitSelect(e2m1::kHighNibbles, odd, arith::ShRUIOp::create(b, even, integer(4)));
}

Value Scalars::packAlignedE2M1(ArrayRef<Value> values) {
  auto nibbles = [&](int first) {
    SmallVector<Value> halves;
    for (int i : {first, first + 4})
      halves.push_back(
          LLVM::BitcastOp::create(b, b.getI32Type(), cutToHalves(b, values[i + 2], values[i])));
    return nibblesE2M1(halves[0], halves[1]);
  };
  Value even = nibbles(0), odd = nibbles(1);
  return mergeNibbles(even, odd);
}

Value Scalars::packE2M1(ArrayRef<Value> values) {
  if (!target.features.hasFp4Convert) {
    auto nibbles = [&](int first) {
      Value low = halvesE2M1(values[first + 2], values[first]);
      return nibblesE2M1(low, halvesE2M1(values[first + 6], values[first + 4]));
    };
    Value even = nibbles(0), odd = nibbles(1);
    return mergeNibbles(even, odd);
  }
  Value word;
  for (int pair = 0; pair < 4; ++pair) {
    Value byte = pairE2M1(values[2 * pair + 1], values[2 * pair]);
    if (!word) {
      word = byte;
      continue;
    }
    byte = arith::ShLIOp::create(b, byte, integer(8 * pair));
    word = arith::OrIOp::create(b, word, byte);
  }
  return word;
}

/// The value of a code (i32, 4 bits). As an fp32 pattern, sign, exponent and mantissa bits of E2M1
/// at bits 31, 24:23 and 22 are the value times 2^-126, subnormals included.
Value Scalars::valueE2M1(Value code) {
  Value sign = arith::ShLIOp::create(b, arith::AndIOp::create(b, code, integer(8)), integer(28));
  Value rest = arith::ShLIOp::create(b, arith::AndIOp::create(b, code, integer(7)), integer(22));
  Value scaled = fromBits(arith::OrIOp::create(b, sign, rest));
  return multiply(scaled, constantBits(0x7E800000)); // 2^126
}

SmallVector<Value> Scalars::unpackE2M1(Value word) {
  SmallVector<Value> values;
  if (!target.features.hasFp4Convert) {
    for (int nibble = 0; nibble < 8; ++nibble)
      values.push_back(valueE2M1(arith::ShRUIOp::create(b, word, integer(4 * nibble))));
    return values;
  }
  for (Value pair : widenE2M1(b, word))
    for (int64_t lane : {0, 1})
      values.push_back(extend(pair, lane));
  return values;
}

//===----------------------------------------------------------------------===//
// E4M3, E8M0
//===----------------------------------------------------------------------===//

/// Byte (i32) of the low result of a conversion of two fp32 to `type`.
Value Scalars::toFP8(Value x, Type type, NVVM::FPRoundingMode rounding) {
  Value pair = NVVM::ConvertF32x2ToF8x2Op::create(
      b, b.getIntegerType(16), constant(0), x,
      NVVM::FPRoundingModeAttr::get(b.getContext(), rounding),
      NVVM::SaturationModeAttr::get(b.getContext(), NVVM::SaturationMode::SATFINITE),
      b.getBoolAttr(false), TypeAttr::get(type));
  // The high byte is the conversion of zero, which is zero in both formats.
  return arith::ExtUIOp::create(b, b.getI32Type(), pair);
}

Value Scalars::toE4M3(Value x) {
  return toFP8(x, Float8E4M3FNType::get(b.getContext()), NVVM::FPRoundingMode::RN);
}

Value Scalars::fromE4M3(Value byte) { return pairFromE4M3(byte).front(); }

SmallVector<Value, 2> Scalars::pairFromE4M3(Value bytes) {
  auto e4m3 = TypeAttr::get(Float8E4M3FNType::get(b.getContext()));
  Value low = arith::TruncIOp::create(b, b.getIntegerType(16), bytes);
  Value pair = LLVM::BitcastOp::create(b, VectorType::get(2, b.getI8Type()), low);
  Value halves = NVVM::ConvertF8x2ToF16x2Op::create(b, VectorType::get(2, b.getF16Type()), pair,
                                                    b.getBoolAttr(false), e4m3);
  return {extend(halves, 0), extend(halves, 1)};
}

/// 2^(code - 127) has the code as its exponent field, except for 0 and 255.
Value Scalars::powerBits(Value scales, int64_t number, unsigned fractionBits) {
  Value code = arith::AndIOp::create(b, arith::ShRUIOp::create(b, scales, integer(8 * number)),
                                     integer(0xFF));
  auto is = [&](int64_t value) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, code, integer(value));
  };
  int64_t subnormal = int64_t(1) << (fractionBits - 1), nan = (int64_t(256) << fractionBits) - 1;
  Value power = arith::ShLIOp::create(b, code, integer(fractionBits));
  power = arith::SelectOp::create(b, is(0), integer(subnormal), power);
  return arith::SelectOp::create(b, is(255), integer(nan), power);
}

/// Without the instruction: the exponent of the pattern plus almost one. fp32 subnormals up to
/// 2^-127 give 0, infinity the largest power.
Value Scalars::toUE8M0Up(Value x) {
  if (target.features.hasFp4Convert)
    return toFP8(x, Float8E8M0FNUType::get(b.getContext()), NVVM::FPRoundingMode::RP);
  constexpr int64_t mantissa = 0x007FFFFF;
  Value pattern = bits(absolute(x));
  auto isAbove = [&](int64_t bound) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, pattern, integer(bound));
  };
  Value almostOne =
      arith::SelectOp::create(b, isAbove(mantissa), integer(mantissa), integer(mantissa >> 1));
  Value rounded = arith::AddIOp::create(b, pattern, almostOne);
  Value byte = arith::ShRUIOp::create(b, rounded, integer(23));
  byte = arith::MinUIOp::create(b, byte, integer(254));
  return arith::SelectOp::create(b, isAbove(0x7F800000), integer(255), byte);
}
