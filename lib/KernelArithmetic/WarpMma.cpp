//===- WarpMma.cpp - mma.sync of 16-bit floats ----------------------------===//
#include "WarpMma.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp4;

/// Operands of an instruction: bf16 comes in words, f16 in pairs.
static SmallVector<Value> operandsOf(ImplicitLocOpBuilder &b, Type element, ArrayRef<Value> words) {
  SmallVector<Value> operands(words);
  if (element.isF16())
    for (Value &word : operands)
      word = LLVM::BitcastOp::create(b, VectorType::get(2, element), word);
  return operands;
}

void fp4::multiplyWarp(ImplicitLocOpBuilder &builder, Type element, ArrayRef<Value> a,
                       ArrayRef<Value> b, MutableArrayRef<Value> sums) {
  SmallVector<Type> floats(kWarpSums, builder.getF32Type());
  NVVM::MMATypes kind = element.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  Value result = NVVM::MmaOp::create(
      builder, LLVM::LLVMStructType::getLiteral(builder.getContext(), floats),
      operandsOf(builder, element, a), operandsOf(builder, element, b),
      ValueRange(ArrayRef<Value>(sums)), ArrayRef<int64_t>{kWarpRows, kWarpColumns, kWarpDepth},
      std::nullopt, std::nullopt, std::array{kind, kind},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (int64_t i = 0; i < kWarpSums; ++i)
    sums[size_t(i)] = LLVM::ExtractValueOp::create(builder, result, i);
}
