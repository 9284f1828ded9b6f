//===- WarpMma.cpp - mma.sync of 16-bit floats and e4m3 -------------------===//
#include "WarpMma.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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

static Type typeOfSums(ImplicitLocOpBuilder &builder) {
  SmallVector<Type> floats(kWarpSums, builder.getF32Type());
  return LLVM::LLVMStructType::getLiteral(builder.getContext(), floats);
}

static void takeSums(ImplicitLocOpBuilder &builder, Value result, MutableArrayRef<Value> sums) {
  for (int64_t i = 0; i < kWarpSums; ++i)
    sums[size_t(i)] = LLVM::ExtractValueOp::create(builder, result, i);
}

void fp4::multiplyScaledWarp(ImplicitLocOpBuilder &builder, Type element, ArrayRef<Value> a,
                             ArrayRef<Value> b, const WarpScales &scales,
                             MutableArrayRef<Value> sums) {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, builder.getI16IntegerAttr(int16_t(value)));
  };
  Value byte = number(scales.byte), thread = number(scales.threadOfA);
  bool isPacked = isa<Float4E2M1FNType>(element);
  const int64_t shape[] = {kWarpRows, kWarpColumns, (isPacked ? 4 : 2) * kWarpDepth};
  NVVM::MMATypes type = isPacked ? NVVM::MMATypes::e2m1 : NVVM::MMATypes::e4m3;
  Value result = NVVM::MmaBlockScaleOp::create(
      builder, typeOfSums(builder), a, b, ValueRange(ArrayRef<Value>(sums)), scales.a, byte, thread,
      scales.b, byte, number(0), shape, std::array{type, type},
      isPacked ? NVVM::ScaleVecSize::X4 : NVVM::ScaleVecSize::X1,
      isPacked ? NVVM::BlockScaleFormat::UE4M3 : NVVM::BlockScaleFormat::UE8M0,
      isPacked ? NVVM::MMABlockScaleKind::MXF4NVF4 : NVVM::MMABlockScaleKind::MXF8F6F4);
  takeSums(builder, result, sums);
}

void fp4::multiplyWarp(ImplicitLocOpBuilder &builder, Type element, ArrayRef<Value> a,
                       ArrayRef<Value> b, MutableArrayRef<Value> sums) {
  if (isa<Float8E4M3FNType>(element)) {
    constexpr int32_t unitScales = 0x7F7F7F7F; // of f8E8M0FNU
    Value unit = arith::ConstantOp::create(builder, builder.getI32IntegerAttr(unitScales));
    return multiplyScaledWarp(builder, element, a, b, {unit, unit}, sums);
  }
  NVVM::MMATypes kind = element.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  Value result = NVVM::MmaOp::create(
      builder, typeOfSums(builder), operandsOf(builder, element, a),
      operandsOf(builder, element, b), ValueRange(ArrayRef<Value>(sums)),
      ArrayRef<int64_t>{kWarpRows, kWarpColumns, kWarpDepth}, std::nullopt, std::nullopt,
      std::array{kind, kind}, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  takeSums(builder, result, sums);
}
