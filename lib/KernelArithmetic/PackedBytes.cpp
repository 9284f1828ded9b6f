//===- PackedBytes.cpp - Prepacked weights as e4m3 ------------------------===//
#include "PackedBytes.h"

#include "fp4/ISA/WeightLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp4;

static constexpr uint32_t kSelectors = 0x77777777, kSigns = 0x80808080;

Value PackedBytes::constant(uint32_t value) {
  return arith::ConstantOp::create(b, b.getI32IntegerAttr(int32_t(value)));
}

Value PackedBytes::call(StringRef intrinsic, ValueRange arguments) {
  return LLVM::CallIntrinsicOp::create(b, b.getI32Type(), b.getStringAttr(intrinsic), arguments)
      .getResult(0);
}

/// The exponent of block `step`, a nibble of the word of its row.
Value PackedBytes::exponentOf(Value row, int64_t step) {
  constexpr int64_t ofNibble = 4, ofByte = 8;
  constexpr uint32_t lowest = 0xF, lowerOfBytes = 0x0F0F;
  auto shiftedBy = [&](int64_t bits) -> Value {
    return bits ? Value(arith::ShRUIOp::create(b, row, constant(uint32_t(bits)))) : row;
  };
  if (fields == Fields::Shifted)
    return arith::AndIOp::create(b, shiftedBy(ofNibble * step), constant(lowest));
  // Two blocks have their nibbles in the lower halves of bytes, of which the product takes one.
  Value nibbles =
      arith::AndIOp::create(b, shiftedBy(ofNibble * (step % 2)), constant(lowerOfBytes));
  return call("llvm.nvvm.idp4a.u.u", {nibbles, constant(1U << (ofByte * (step / 2))), constant(0)});
}

Value PackedBytes::upperHalfOf(Value word, int64_t step) {
  if (fields == Fields::Shifted || (fields == Fields::Mixed && step > 0))
    return arith::ShRUIOp::create(b, word, constant(16));
  // Bytes 0 and 1 of the second operand are the factors of both halves of the first.
  constexpr uint32_t upper = 0x0100;
  Value lowerBytes = arith::ConstantOp::create(b, b.getBoolAttr(false));
  return call("llvm.nvvm.idp2a.u.u", {word, constant(upper), lowerBytes, constant(0)});
}

/// Elements 0 to 3 of a word, and elements 4 to 7.
std::pair<Value, Value> PackedBytes::convertWord(Value codes, Value row, int64_t step) {
  Value exponent = exponentOf(row, step);
  SmallVector<Value> table;
  for (unsigned i : {0u, 1u})
    table.push_back(arith::AddIOp::create(
        b, arith::MulIOp::create(b, exponent, constant(hw::byteExponentSteps[i])),
        constant(hw::byteMagnitudes[i])));
  Value selectors = arith::AndIOp::create(b, codes, constant(kSelectors));
  auto pick = [&](Value selector, Value signs) -> Value {
    Value magnitudes = NVVM::PermuteOp::create(b, b.getI32Type(), table[0], table[1], selector,
                                               NVVM::PermuteMode::DEFAULT);
    return arith::OrIOp::create(b, magnitudes, arith::AndIOp::create(b, signs, constant(kSigns)));
  };
  return {pick(selectors, codes),
          pick(upperHalfOf(selectors, step), arith::ShLIOp::create(b, codes, constant(4)))};
}

SmallVector<Value> PackedBytes::convertTile(ValueRange codes, ValueRange rows) {
  return convertSteps(codes, rows, 0, hw::byteSteps);
}

SmallVector<Value> PackedBytes::convertSteps(ValueRange codes, ValueRange rows, int64_t first,
                                             int64_t count) {
  SmallVector<Value> registers;
  for (int64_t step = first; step < first + count; ++step) {
    auto upper = convertWord(codes[2 * step], rows[0], step);
    auto lower = convertWord(codes[2 * step + 1], rows[1], step);
    llvm::append_values(registers, upper.first, lower.first, upper.second, lower.second);
  }
  return registers;
}

Value PackedBytes::powerOf(Value row) {
  return LLVM::BitcastOp::create(b, b.getF32Type(),
                                 arith::AndIOp::create(b, row, constant(hw::bytePowerMask)));
}
