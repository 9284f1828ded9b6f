//===- SmallBuilders.cpp - Constants, addresses, loads and stores ---------===//
#include "SmallBuilders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

Value fp4::constI32(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value fp4::constI64(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
}

Value fp4::constF32(ImplicitLocOpBuilder &b, float value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

Value fp4::constIndex(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

static Value bytePointer(ImplicitLocOpBuilder &b, Value base, LLVM::GEPArg offset) {
  return LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{offset},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value fp4::address(ImplicitLocOpBuilder &b, Value base, Value index, int64_t stride) {
  Value wide = arith::ExtUIOp::create(b, b.getI64Type(), index);
  return bytePointer(b, base, arith::MulIOp::create(b, wide, constI64(b, stride)).getResult());
}

Value fp4::address(ImplicitLocOpBuilder &b, Value base, Value index, Value pitch) {
  Value wide = arith::ExtUIOp::create(b, b.getI64Type(), index);
  return bytePointer(b, base, arith::MulIOp::create(b, wide, pitch).getResult());
}

Value fp4::advance(ImplicitLocOpBuilder &b, Value base, int64_t bytes) {
  return bytes == 0 ? base : bytePointer(b, base, static_cast<int32_t>(bytes));
}

SmallVector<Value> fp4::scalarsOf(ImplicitLocOpBuilder &b, Value vector) {
  SmallVector<Value> scalars;
  for (int64_t i = 0; i < cast<VectorType>(vector.getType()).getNumElements(); ++i)
    scalars.push_back(vector::ExtractOp::create(b, vector, i));
  return scalars;
}

SmallVector<Value> fp4::packedWords(ImplicitLocOpBuilder &b, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  int64_t count = type.getNumElements() * type.getElementTypeBitWidth() / 32;
  return scalarsOf(b, vector::BitCastOp::create(b, VectorType::get(count, b.getI32Type()), vector));
}

void fp4::emitWhen(ImplicitLocOpBuilder &b, Value condition, function_ref<void()> then,
                   function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/bool(otherwise));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  then();
  if (!otherwise)
    return;
  b.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

SmallVector<Value> fp4::chooseValues(ImplicitLocOpBuilder &b, TypeRange types, Value condition,
                                     ValuesBody then, ValuesBody otherwise) {
  auto branch = scf::IfOp::create(b, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, then());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, otherwise());
  return SmallVector<Value>(branch.getResults());
}

Value fp4::chooseValue(ImplicitLocOpBuilder &b, Type type, Value condition,
                       function_ref<Value()> then, function_ref<Value()> otherwise) {
  using Values = SmallVector<Value>;
  return chooseValues(
             b, type, condition, [&] { return Values{then()}; },
             [&] { return Values{otherwise()}; })
      .front();
}

static Value shuffle(ImplicitLocOpBuilder &b, Value value, Value lane, NVVM::ShflKind kind) {
  constexpr int64_t last = 31;
  return NVVM::ShflOp::create(b, value.getType(), constI32(b, -1), value, lane, constI32(b, last),
                              kind, /*return_value_and_is_valid=*/UnitAttr());
}

Value fp4::valueOfPartner(ImplicitLocOpBuilder &b, Value value, int64_t distance) {
  return shuffle(b, value, constI32(b, distance), NVVM::ShflKind::bfly);
}

Value fp4::valueOfLane(ImplicitLocOpBuilder &b, Value value, Value lane) {
  return shuffle(b, value, lane, NVVM::ShflKind::idx);
}

Value fp4::load(ImplicitLocOpBuilder &b, Type type, Value pointer, unsigned alignment) {
  return LLVM::LoadOp::create(b, type, pointer, alignment, /*isVolatile=*/false,
                              /*isNonTemporal=*/false, /*isInvariant=*/true);
}

void fp4::store(ImplicitLocOpBuilder &b, Value value, Value pointer, unsigned alignment) {
  LLVM::StoreOp::create(b, value, pointer, alignment);
}
