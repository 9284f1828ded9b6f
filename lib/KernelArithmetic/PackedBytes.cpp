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

/// Elements 0 to 3 of a word, and elements 4 to 7.
std::pair<Value, Value> PackedBytes::convertWord(Value codes, Value row, int64_t step) {
  Value exponent = row;
  if (step)
    exponent = arith::ShRUIOp::create(b, exponent, constant(uint32_t(4 * step)));
  exponent = arith::AndIOp::create(b, exponent, constant(15));
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
  return {pick(selectors, codes), pick(arith::ShRUIOp::create(b, selectors, constant(16)),
                                       arith::ShLIOp::create(b, codes, constant(4)))};
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
