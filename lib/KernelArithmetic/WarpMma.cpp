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

static Value multiplyHalves(ImplicitLocOpBuilder &builder, Type sumsOfLane, Type element,
                            ArrayRef<Value> a, ArrayRef<Value> b, ValueRange sums) {
  NVVM::MMATypes kind = element.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  return NVVM::MmaOp::create(
      builder, sumsOfLane, operandsOf(builder, element, a), operandsOf(builder, element, b), sums,
      ArrayRef<int64_t>{kWarpRows, kWarpColumns, kWarpDepth}, std::nullopt, std::nullopt,
      std::array{kind, kind}, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
}

static Value multiplyBytes(ImplicitLocOpBuilder &builder, Type sumsOfLane, ArrayRef<Value> a,
                           ArrayRef<Value> b, ValueRange sums) {
  constexpr int32_t unitScales = 0x7F7F7F7F; // of f8E8M0FNU
  Value unit = arith::ConstantOp::create(builder, builder.getI32IntegerAttr(unitScales));
  Value none = arith::ConstantOp::create(builder, builder.getI16IntegerAttr(0));
  const int64_t shape[] = {kWarpRows, kWarpColumns, 2 * kWarpDepth};
  return NVVM::MmaBlockScaleOp::create(
      builder, sumsOfLane, a, b, sums, unit, none, none, unit, none, none, shape,
      std::array{NVVM::MMATypes::e4m3, NVVM::MMATypes::e4m3}, NVVM::ScaleVecSize::X1,
      NVVM::BlockScaleFormat::UE8M0, NVVM::MMABlockScaleKind::MXF8F6F4);
}

void fp4::multiplyWarp(ImplicitLocOpBuilder &builder, Type element, ArrayRef<Value> a,
                       ArrayRef<Value> b, MutableArrayRef<Value> sums) {
  SmallVector<Type> floats(kWarpSums, builder.getF32Type());
  Type type = LLVM::LLVMStructType::getLiteral(builder.getContext(), floats);
  ValueRange added(ArrayRef<Value>{sums});
  Value result = isa<Float8E4M3FNType>(element)
                     ? multiplyBytes(builder, type, a, b, added)
                     : multiplyHalves(builder, type, element, a, b, added);
  for (int64_t i = 0; i < kWarpSums; ++i)
    sums[size_t(i)] = LLVM::ExtractValueOp::create(builder, result, i);
}
