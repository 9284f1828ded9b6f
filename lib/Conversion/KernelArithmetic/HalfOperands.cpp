//===- HalfOperands.cpp - Scaled fp4 elements as f16 or bf16 --------------===//
#include "HalfOperands.h"

#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;
using namespace fp4;

HalfOperands::HalfOperands(ImplicitLocOpBuilder &b, const hw::TargetModel &target, Type scaleType,
                           Type element)
    : b(b), s(b, target), isE4M3(isa<Float8E4M3FNType>(scaleType)), element(element) {
  if (!element)
    this->element = isE4M3 ? Type(b.getF16Type()) : Type(b.getBF16Type());
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
  // What widenToF16 and widenToBF16 leave to restore.
  const int widened = element.isF16() ? 14 : 126;
  auto e4m3 = TypeAttr::get(Float8E4M3FNType::get(b.getContext()));
  auto pair = VectorType::get(2, b.getF16Type());
  Value magnitudes = arith::AndIOp::create(b, scales, s.integer(0x7F7F7F7F));
  Value bytes = LLVM::BitcastOp::create(b, VectorType::get(4, b.getI8Type()), magnitudes);
  const double power =
      std::ldexp(1.0, widened + numerics::convertedExponent(numerics::BlockFormat::NVFP4));
  SmallVector<Value> result;
  for (int64_t first = 0; first < count; first += 2) {
    Value two = vector::ExtractStridedSliceOp::create(b, bytes, ArrayRef<int64_t>{first},
                                                      ArrayRef<int64_t>{2}, ArrayRef<int64_t>{1});
    Value halves = NVVM::ConvertF8x2ToF16x2Op::create(b, pair, two, b.getBoolAttr(false), e4m3);
    if (element.isF16())
      halves = arith::MulFOp::create(b, halves, splat(power));
    for (int64_t lane : {0, 1}) {
      Value half = vector::ExtractOp::create(b, halves, lane);
      if (!element.isF16()) {
        Value wide = arith::ExtFOp::create(b, b.getF32Type(), half);
        Value restored = arith::ConstantOp::create(b, b.getF32FloatAttr(float(power)));
        half = arith::TruncFOp::create(b, element, arith::MulFOp::create(b, wide, restored));
      }
      result.push_back(inBothLanes(half));
    }
  }
  return result;
}

Value HalfOperands::inBothLanes(Value half) {
  return vector::BroadcastOp::create(b, VectorType::get(2, elementType()), half);
}

SmallVector<Value> HalfOperands::factorsE8M0(Value scales, int64_t count) {
  SmallVector<Value> result;
  for (int64_t i = 0; i < count; ++i) {
    Value power = s.powerBits(scales, i, 7);
    result.push_back(asPair(s.permute(power, power, 0x1010)));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

Value HalfOperands::shifted(Value word, int64_t left) {
  if (left == 0)
    return word;
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
/// place together.
SmallVector<Value> HalfOperands::widenToBF16(Value codes) {
  SmallVector<Value> words;
  for (int64_t i : {0, 2, 1, 3})
    words.push_back(align(codes, 6 - 4 * i, 0x01C001C0, 12 - 4 * i, 0x80008000));
  return words;
}

SmallVector<Value> HalfOperands::convert(Value codes, Value factor) {
  SmallVector<Value> result;
  for (Value word : element.isF16() ? widenToF16(codes) : widenToBF16(codes)) {
    Value pair = asPair(word);
    if (!isE4M3)
      pair = arith::MulFOp::create(b, pair, splat(0x1p126));
    result.push_back(arith::MulFOp::create(b, pair, factor));
  }
  return result;
}

/// The first two results of convert() have the even nibbles of a word: neighbours are brought there.
SmallVector<Value> HalfOperands::convertInOrder(Value codes, Value low, Value high) {
  Value odd = arith::ShRUIOp::create(b, codes, s.integer(4));
  // Bytes of `codes`, 0 and up, and of `odd`, 4 and up, of two pairs.
  const uint32_t selector = element.isF16() ? 0x5140 : 0x5410;
  SmallVector<Value> result;
  for (auto [factor, first] : {std::pair(low, 0x0000u), std::pair(high, 0x2222u)}) {
    Value word = s.permute(codes, odd, selector + first);
    llvm::append_range(result, ArrayRef(convert(word, factor)).take_front(2));
  }
  return result;
}
