//===- Stochastic.cpp - Stochastic rounding to E2M1 inside a kernel -------===//
//
// Scalars::packE2M1Stochastic. With cvt.rs on the target, the function takes one instruction for
// four elements. Elsewhere the same codes come from integers (E2M1Steps.h has the format's part of
// it):
//
//   * As an f16 pattern, a value times 2^-14 has E2M1's code in bits 11:9 and, below, the position
//     between that code and the next, subnormals included. Bits 8:1 are floor(256 * position), so a
//     random byte added there carries into the code exactly where cvt.rs rounds away from zero.
//     cvt.rz.f16x2 makes two patterns and cuts what is below.
//   * Clamping the magnitude to 6 * 2^-14 saturates, and makes +6 of NaN. The position of 6 is 0:
//     no carry. Magnitudes below 7 * 2^-14 need no clamp: they carry to 8 * 2^-14 at most, which
//     is a bit above the code that is clear otherwise, and then the code is 0 and seven times that
//     bit is added.
//
//===----------------------------------------------------------------------===//
#include "E2M1Steps.h"
#include "Scalars.h"
#include "SmallBuilders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

/// The operands are {x3, x2, x1, x0}: the first value becomes the low nibble.
static Value convertFour(ImplicitLocOpBuilder &b, ArrayRef<Value> values, Value random) {
  SmallVector<Value> operands(llvm::reverse(values));
  Value vector = vector::FromElementsOp::create(b, VectorType::get(4, b.getF32Type()), operands);
  Value codes = NVVM::ConvertF32x4ToF4x4Op::create(
      b, b.getI16Type(), vector, random, /*relu=*/b.getBoolAttr(false),
      TypeAttr::get(Float4E2M1FNType::get(b.getContext())));
  return arith::ExtUIOp::create(b, b.getI32Type(), codes);
}

/// Two aligned values as f16 patterns plus the bytes 0 and 2 of `random`: codes in bits 3:1 and
/// signs in bit 7 of the high bytes.
static Value roundPair(Scalars &s, ImplicitLocOpBuilder &b, Value low, Value high, Value random,
                       bool belowSeven) {
  auto halves = VectorType::get(2, b.getF16Type());
  Value pair = NVVM::ConvertF32x2ToF16x2Op::create(b, halves, high, low, /*random_bits=*/Value(),
                                                   NVVM::FPRoundingMode::RZ);
  Value largest = LLVM::BitcastOp::create(b, halves, s.integer(e2m1::kLargest));
  if (!belowSeven)
    pair = s.callIntrinsic("llvm.nvvm.fmin.xorsign.abs.f16x2", halves, {pair, largest});
  Value patterns = LLVM::BitcastOp::create(b, b.getI32Type(), pair);
  return arith::AddIOp::create(b, patterns, s.shiftLeft(random, 1));
}

/// The codes of the even and of the odd ones of eight values, in high nibbles. Each word of random
/// bits serves four values: byte 2 the first, byte 3 the third, bytes 0 and 1, each with its bits
/// reversed, the second and fourth; so does the instruction (E2M1.h).
static std::pair<Value, Value> emulateEight(Scalars &s, ImplicitLocOpBuilder &b,
                                            ArrayRef<Value> values, ArrayRef<Value> random,
                                            bool belowSeven) {
  constexpr uint32_t even = 0x4342, odd = 0x4243; // bytes 2 and 3; 3 and 2; 4 is zero
  SmallVector<Value> evens, odds;
  for (auto [i, word] : llvm::enumerate(random)) {
    ArrayRef<Value> x = values.slice(4 * i, 4);
    Value reversed = LLVM::BitReverseOp::create(b, word.getType(), word);
    evens.push_back(roundPair(s, b, x[0], x[2], s.permute(word, s.integer(0), even), belowSeven));
    odds.push_back(roundPair(s, b, x[1], x[3], s.permute(reversed, s.integer(0), odd), belowSeven));
  }
  auto nibbles = [&](ArrayRef<Value> pairs) {
    Value bytes = s.permute(pairs[0], pairs[1], e2m1::kHighBytes);
    Value codes = s.shiftLeft(bytes, 3);
    if (belowSeven) {
      Value carried = arith::AndIOp::create(b, bytes, s.integer(e2m1::kCarried));
      codes = arith::AddIOp::create(b, codes, arith::MulIOp::create(b, carried, s.integer(7)));
    }
    return s.bitSelect(e2m1::kSigns, bytes, codes);
  };
  return {nibbles(evens), nibbles(odds)};
}

Value Scalars::packAlignedE2M1Stochastic(ArrayRef<Value> values, ArrayRef<Value> random,
                                         bool belowSeven) {
  auto [even, odd] = emulateEight(*this, b, values, random, belowSeven && !clampsRandom);
  return mergeNibbles(even, odd);
}

Value Scalars::packE2M1Stochastic(ArrayRef<Value> values, ArrayRef<Value> random) {
  if (!target.features.hasStochasticConvert)
    return packAlignedE2M1Stochastic(
        llvm::map_to_vector(values, [&](Value x) { return multiply(x, constant(e2m1::kAlign)); }),
        random, /*belowSeven=*/false);
  Value low = convertFour(b, values.take_front(4), random[0]);
  Value high = convertFour(b, values.drop_front(4), random[1]);
  return arith::OrIOp::create(b, low, arith::ShLIOp::create(b, high, integer(16)));
}
