//===- Builders.cpp - Types and small builders of the conversion ----------===//
#include "Common/Lowering.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

fp4::PipeTypeConverter::PipeTypeConverter() {
  addConversion([](Type type) { return type; });
  addConversion([](pipe::GlobalType type) {
    return LLVM::LLVMPointerType::get(type.getContext(), kGlobalSpace);
  });
  addConversion(
      [](pipe::TensorMapType type) { return LLVM::LLVMPointerType::get(type.getContext()); });
  addConversion([](pipe::SharedType type) {
    return LLVM::LLVMPointerType::get(type.getContext(), kSharedSpace);
  });
  addConversion([](pipe::TmemType type) { return IntegerType::get(type.getContext(), 32); });
  addConversion(
      [](pipe::FragmentType type) { return LLVM::LLVMPointerType::get(type.getContext()); });
  addConversion([](pipe::ChannelType type) {
    return LLVM::LLVMPointerType::get(type.getContext(), kSharedSpace);
  });
  // A vector becomes what a store takes: words of eight packed fp4, or bytes of codes and scales.
  addConversion([](VectorType type) -> Type {
    if (type.getRank() == 1 && isa<Float4E2M1FNType>(type.getElementType()))
      return VectorType::get(type.getNumElements() / 8, IntegerType::get(type.getContext(), 32));
    Type element = type.getElementType();
    if (type.getRank() == 1 && (isScaleElementType(element) || isByteElementType(element)))
      return VectorType::get(type.getShape(), IntegerType::get(type.getContext(), 8));
    return type;
  });
  addConversion([this](RankedTensorType type) -> Type {
    VectorType ofThread = pipe::vectorOfThread(type);
    return ofThread ? convertType(ofThread) : Type(type);
  });
  // The prologue names tensor maps before the signature is converted; its casts fold with these
  // materializations.
  addSourceMaterialization([](OpBuilder &b, Type type, ValueRange inputs, Location loc) -> Value {
    return UnrealizedConversionCastOp::create(b, loc, type, inputs).getResult(0);
  });
}

Value fp4::constantI32(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32);
}

Value fp4::constantI64(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}

Value fp4::offsetPointer(OpBuilder &b, Location loc, Value base, int64_t bytes) {
  if (bytes == 0)
    return base;
  LLVM::GEPArg offset = static_cast<int32_t>(bytes);
  if (!llvm::isInt<32>(bytes)) // the rows of a wide result
    offset = constantI64(b, loc, bytes);
  return LLVM::GEPOp::create(b, loc, base.getType(), b.getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{offset}, LLVM::GEPNoWrapFlags::inbounds);
}

Value fp4::stridedPointer(OpBuilder &b, Location loc, Value base, Value index, int64_t stride) {
  Type row = LLVM::LLVMArrayType::get(b.getI8Type(), stride);
  return LLVM::GEPOp::create(b, loc, base.getType(), row, base, ArrayRef<LLVM::GEPArg>{index},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value fp4::tmemPointer(OpBuilder &b, Location loc, Value address) {
  Type type = LLVM::LLVMPointerType::get(b.getContext(), kTmemSpace);
  return LLVM::IntToPtrOp::create(b, loc, type, address);
}

void fp4::storePiece(OpBuilder &b, Location loc, Value value, int64_t first, int64_t count,
                     Value pointer) {
  int64_t bytes = cast<VectorType>(value.getType()).getElementTypeBitWidth() / 8;
  SmallVector<int32_t> lanes(count);
  std::iota(lanes.begin(), lanes.end(), static_cast<int32_t>(first));
  Value part = count == 1
                   ? LLVM::ExtractElementOp::create(b, loc, value, constantI32(b, loc, first))
                         .getResult()
                   : LLVM::ShuffleVectorOp::create(b, loc, value, value, lanes).getResult();
  LLVM::StoreOp::create(b, loc, part, pointer, static_cast<unsigned>(count * bytes));
}

void fp4::emitIf(OpBuilder &b, Location loc, Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

void fp4::emitGuarded(OpBuilder &b, Location loc, int64_t index, Value bound,
                      llvm::function_ref<void()> body) {
  if (!bound || index == 0)
    return body();
  Value exists =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, bound, constantI32(b, loc, index));
  emitIf(b, loc, exists, body);
}
