//===- ElementTypes.cpp - Elements as floats and back ---------------------===//
#include "ElementwiseEmitter.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

Value fp4::extendToF32(ImplicitLocOpBuilder &b, Value value) {
  if (cast<ShapedType>(value.getType()).getElementType().isF32())
    return value;
  return arith::ExtFOp::create(b, cast<ShapedType>(value.getType()).clone(b.getF32Type()), value);
}

/// The floats of words of two elements of bf16: a bf16 is the high half of its float. ptxas makes
/// two instructions of a conversion of the high half, and one of a mask.
static Value widenBF16(ImplicitLocOpBuilder &b, Value value) {
  auto type = cast<VectorType>(value.getType());
  auto words = VectorType::get(type.getNumElements() / 2, b.getI32Type());
  Value pairs = vector::BitCastOp::create(b, words, value);
  auto all = [&](int64_t bits) -> Value {
    return arith::ConstantOp::create(b, DenseElementsAttr::get(words, APInt(32, bits)));
  };
  Value low = arith::ShLIOp::create(b, pairs, all(16));
  Value high = arith::AndIOp::create(b, pairs, all(0xffff0000));
  return vector::BitCastOp::create(b, type.clone(b.getF32Type()),
                                   vector::InterleaveOp::create(b, low, high));
}

Value fp4::widenToF32(ImplicitLocOpBuilder &b, Value value) {
  auto type = cast<ShapedType>(value.getType());
  if (type.getElementType().isF32())
    return value;
  auto vector = dyn_cast<VectorType>(type);
  if (vector && vector.getRank() == 1 && type.getElementType().isBF16() &&
      vector.getNumElements() % 2 == 0)
    return widenBF16(b, value);
  return extendToF32(b, value);
}

/// To nearest even, saturating: two elements of fp32 to a conversion.
static Value narrowToE4M3(ImplicitLocOpBuilder &b, Value value) {
  auto e4m3 = Float8E4M3FNType::get(b.getContext());
  int64_t count = cast<VectorType>(value.getType()).getNumElements();
  SmallVector<Value> bytes;
  for (int64_t i = 0; i < count; i += 2) {
    Value low = vector::ExtractOp::create(b, value, i);
    Value high = i + 1 < count ? vector::ExtractOp::create(b, value, i + 1).getResult() : low;
    bytes.push_back(packE4M3(b, low, high));
  }
  auto pairs = VectorType::get({int64_t(bytes.size())}, b.getI16Type());
  Value packed = vector::FromElementsOp::create(b, pairs, bytes);
  auto all = VectorType::get({2 * int64_t(bytes.size())}, b.getI8Type());
  packed = vector::BitCastOp::create(b, all, packed);
  if (count % 2)
    packed = vector::ExtractStridedSliceOp::create(b, packed, ArrayRef<int64_t>{0},
                                                   ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
  return vector::BitCastOp::create(b, VectorType::get(count, e4m3), packed);
}

Value fp4::narrowTo(ImplicitLocOpBuilder &b, Value value, Type element) {
  if (element.isF32())
    return value;
  if (isa<Float8E4M3FNType>(element))
    return narrowToE4M3(b, value);
  return arith::TruncFOp::create(b, cast<VectorType>(value.getType()).clone(element), value);
}

SmallVector<Value> fp4::loadScalars(ImplicitLocOpBuilder &b, ValueRange pointers, TypeRange types,
                                    int64_t count) {
  SmallVector<Value> scalars;
  for (auto [pointer, type] : llvm::zip_equal(pointers, types)) {
    Value one = load(b, type, pointer, type.getIntOrFloatBitWidth() / 8);
    Value all = vector::BroadcastOp::create(b, VectorType::get({count}, type), one);
    scalars.push_back(widenToF32(b, all));
  }
  return scalars;
}
