//===- HalfOperands.cpp - Scaled fp4 elements as f16 or bf16 --------------===//
#include "HalfOperands.h"

#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;
using namespace fp4;

HalfOperands::HalfOperands(ImplicitLocOpBuilder &b, const hw::TargetModel &target, Type scaleType)
    : b(b), s(b, target), isE4M3(isa<Float8E4M3FNType>(scaleType)) {}

Type HalfOperands::elementType() const {
  return isE4M3 ? Type(b.getF16Type()) : Type(b.getBF16Type());
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

SmallVector<Value> HalfOperands::factors(Value scales, int64_t count) {
  return isE4M3 ? factorsE4M3(scales, count) : factorsE8M0(scales, count);
}

/// The sign of a scale is ignored. 448 * 2^7 fits in f16.
SmallVector<Value> HalfOperands::factorsE4M3(Value scales, int64_t count) {
  constexpr int widened = 14; // what widenToF16 leaves to restore
  auto e4m3 = TypeAttr::get(Float8E4M3FNType::get(b.getContext()));
  auto pair = VectorType::get(2, b.getF16Type());
  Value magnitudes = arith::AndIOp::create(b, scales, s.integer(0x7F7F7F7F));
  Value bytes = LLVM::BitcastOp::create(b, VectorType::get(4, b.getI8Type()), magnitudes);
  Value power = splat(std::ldexp(1.0, widened + numerics::convertedExponent(
                                                    numerics::BlockFormat::NVFP4)));
  SmallVector<Value> result;
  for (int64_t first = 0; first < count; first += 2) {
    Value two = vector::ExtractStridedSliceOp::create(b, bytes, ArrayRef<int64_t>{first},
                                                      ArrayRef<int64_t>{2}, ArrayRef<int64_t>{1});
    Value halves = NVVM::ConvertF8x2ToF16x2Op::create(b, pair, two, b.getBoolAttr(false), e4m3);
    Value scaled = arith::MulFOp::create(b, halves, power);
    for (int64_t lane : {0, 1})
      result.push_back(
          vector::BroadcastOp::create(b, pair, vector::ExtractOp::create(b, scaled, lane)));
  }
  return result;
}

/// 2^(code - 127) has the code as its exponent field, except for 0, a subnormal, and 255, NaN.
SmallVector<Value> HalfOperands::factorsE8M0(Value scales, int64_t count) {
  constexpr int64_t subnormal = 0x0040, nan = 0x7FFF, fraction = 7;
  SmallVector<Value> result;
  for (int64_t i = 0; i < count; ++i) {
    Value code = arith::AndIOp::create(
        b, arith::ShRUIOp::create(b, scales, s.integer(8 * i)), s.integer(0xFF));
    auto is = [&](int64_t value) -> Value {
      return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, code, s.integer(value));
    };
    Value power = arith::ShLIOp::create(b, code, s.integer(fraction));
    power = arith::SelectOp::create(b, is(0), s.integer(subnormal), power);
    power = arith::SelectOp::create(b, is(255), s.integer(nan), power);
    result.push_back(asPair(s.permute(power, power, 0x1010)));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// The bits `signs` of `word`, and its bits moved down by `shift` where `magnitudes` has ones.
Value HalfOperands::alignSigns(Value word, int64_t shift, uint32_t magnitudes, uint32_t signs) {
  Value moved = arith::ShRUIOp::create(b, word, s.integer(shift));
  moved = arith::AndIOp::create(b, moved, s.integer(magnitudes));
  return s.bitSelect(signs, word, moved);
}

/// Sign, exponent and fraction of an f16 that is a code lie in its upper byte: bytes are made of
/// the codes in the low and in the high nibbles, and then joined with zero bytes.
SmallVector<Value> HalfOperands::widenToF16(Value codes) {
  Value low = arith::ShLIOp::create(b, codes, s.integer(4));
  Value lowBytes = alignSigns(low, 3, 0x0E0E0E0E, 0x80808080);
  Value highBytes = alignSigns(codes, 3, 0x0E0E0E0E, 0x80808080);
  Value zero = s.integer(0);
  SmallVector<Value> words;
  for (uint32_t selector : {0x5140u, 0x7362u}) { // bytes of two pairs, each the even code first
    Value pairs = s.permute(lowBytes, highBytes, selector);
    words.push_back(s.permute(pairs, zero, 0x1404));
    words.push_back(s.permute(pairs, zero, 0x3424));
  }
  return words;
}

/// The bits of a code cross the border of the bytes of a bf16: they are moved in place there.
SmallVector<Value> HalfOperands::widenToBF16(Value codes) {
  Value low = arith::ShLIOp::create(b, codes, s.integer(4));
  SmallVector<Value> words;
  for (uint32_t i = 0; i < 4; ++i) {
    Value pair = s.permute(low, codes, (4 + i) << 12 | i << 4);
    words.push_back(alignSigns(pair, 6, 0x01C001C0, 0x80008000));
  }
  return words;
}

SmallVector<Value> HalfOperands::convert(Value codes, Value factor) {
  return convert(codes, factor, factor);
}

SmallVector<Value> HalfOperands::convert(Value codes, Value low, Value high) {
  SmallVector<Value> result;
  for (auto [i, word] : llvm::enumerate(isE4M3 ? widenToF16(codes) : widenToBF16(codes))) {
    Value pair = asPair(word);
    if (!isE4M3)
      pair = arith::MulFOp::create(b, pair, splat(0x1p126));
    result.push_back(arith::MulFOp::create(b, pair, i < 2 ? low : high));
  }
  return result;
}
