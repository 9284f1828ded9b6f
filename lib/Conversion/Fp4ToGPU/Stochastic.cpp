//===- Stochastic.cpp - Stochastic rounding to E2M1 inside a kernel -------===//
//
// Scalars::packE2M1Stochastic. Where the target has cvt.rs, it is one instruction for four
// elements. Elsewhere the same codes come from integers:
//
//   * As an f16 pattern, a value times 2^-14 has E2M1's code in bits 11:9 and, below, the position
//     between that code and the next, subnormals included: f16's begin where E2M1's do. Bits 8:1
//     are floor(256 * position), so adding a random byte there carries into the code exactly where
//     cvt.rs rounds away from zero. cvt.rz.f16x2 makes two patterns and cuts what is below.
//   * Clamping to +-6 * 2^-14 saturates, and makes +6 of NaN. At 6 the position is 0: no carry.
//   * Elements j and j + 4 share a register, so that eight codes merge by shifts of whole
//     registers. Which byte serves which element is that of the instruction (E2M1.h).
//
//===----------------------------------------------------------------------===//
#include "KernelBuilder.h"
#include "Scalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

/// The operands are {x3, x2, x1, x0}: the first result is the low nibble.
static Value convertFour(ImplicitLocOpBuilder &b, ArrayRef<Value> values, Value random) {
  SmallVector<Value> operands(llvm::reverse(values));
  Value vector = vector::FromElementsOp::create(b, VectorType::get(4, b.getF32Type()), operands);
  Value codes = NVVM::ConvertF32x4ToF4x4Op::create(
      b, b.getI16Type(), vector, random, /*relu=*/b.getBoolAttr(false),
      TypeAttr::get(Float4E2M1FNType::get(b.getContext())));
  return arith::ExtUIOp::create(b, b.getI32Type(), codes);
}

namespace {

/// Eight elements without the instruction.
class Emulation {
public:
  Emulation(Scalars &s, ImplicitLocOpBuilder &b) : s(s), b(b) {}

  Value pack(ArrayRef<Value> values, ArrayRef<Value> random) {
    // Bytes 2 and 3 of both words in order; bytes 0 and 1 with their bits reversed.
    Value straight = permute(random[0], random[1], 0x7632);
    Value reversed =
        LLVM::BitReverseOp::create(b, permute(random[0], random[1], 0x0145)).getResult();
    Value word;
    for (int j = 0; j < 4; ++j) {
      Value bytes = shiftRight(j % 2 ? reversed : straight, j < 2 ? 0 : 8);
      Value sum = roundPair(values[j], values[j + 4], bytes);
      Value code = mask(shiftRight(sum, 9), 0x00070007),
            sign = mask(shiftRight(sum, 12), 0x00080008);
      Value nibbles = shiftLeft(arith::OrIOp::create(b, code, sign), 4 * j);
      word = word ? arith::OrIOp::create(b, word, nibbles).getResult() : nibbles;
    }
    return word;
  }

private:
  /// Two f16 patterns plus the bytes 0 and 2 of `bytes`, aligned to their positions.
  Value roundPair(Value low, Value high, Value bytes) {
    auto pair = VectorType::get(2, b.getF16Type());
    auto scaled = [&](Value x) { return s.multiply(x, s.constant(0x1p-14f)); };
    Value halves = NVVM::ConvertF32x2ToF16x2Op::create(
        b, pair, scaled(high), scaled(low), /*random_bits=*/Value(), NVVM::FPRoundingMode::RZ,
        NVVM::SaturationMode::NONE, /*relu=*/false);
    auto bound = [&](float value) -> Value {
      auto half = b.getFloatAttr(b.getF16Type(), value);
      return arith::ConstantOp::create(b, DenseElementsAttr::get(pair, half.getValue()));
    };
    halves = LLVM::MinNumOp::create(b, pair, halves, bound(6 * 0x1p-14f));
    halves = LLVM::MaxNumOp::create(b, pair, halves, bound(-6 * 0x1p-14f));
    Value patterns = LLVM::BitcastOp::create(b, b.getI32Type(), halves);
    return arith::AddIOp::create(b, patterns, shiftLeft(mask(bytes, 0x00FF00FF), 1));
  }

  Value permute(Value x, Value y, int64_t selector) {
    return NVVM::PermuteOp::create(b, b.getI32Type(), x, y, s.integer(selector),
                                   NVVM::PermuteMode::DEFAULT);
  }
  Value mask(Value x, int64_t bits) { return arith::AndIOp::create(b, x, s.integer(bits)); }
  Value shiftLeft(Value x, int64_t count) {
    return count ? arith::ShLIOp::create(b, x, s.integer(count)).getResult() : x;
  }
  Value shiftRight(Value x, int64_t count) {
    return count ? arith::ShRUIOp::create(b, x, s.integer(count)).getResult() : x;
  }

  Scalars &s;
  ImplicitLocOpBuilder &b;
};

} // namespace

Value Scalars::packE2M1Stochastic(ArrayRef<Value> values, ArrayRef<Value> random) {
  if (!target.hasStochasticConvert)
    return Emulation(*this, b).pack(values, random);
  Value low = convertFour(b, values.take_front(4), random[0]);
  Value high = convertFour(b, values.drop_front(4), random[1]);
  return arith::OrIOp::create(b, low, arith::ShLIOp::create(b, high, integer(16)));
}
