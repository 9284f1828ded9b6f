//===- BufferTypes.cpp - Device buffers of logical tensors ----------------===//
#include "fp4/Conversion/BufferTypes.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

/// TMA's unit of pitch.
static constexpr int64_t kPitchBytes = 16;

static constexpr int64_t kTileRows = 128;
static constexpr int64_t kTileBlocks = 4;

int64_t fp4::denseRowBytes(int64_t columns) { return llvm::divideCeil(columns, 2); }

int64_t fp4::paddedRowBytes(int64_t columns) {
  return llvm::alignTo(denseRowBytes(columns), kPitchBytes);
}

static int64_t rowTiles(int64_t rows) {
  if (ShapedType::isDynamic(rows))
    return rows;
  return llvm::divideCeil(rows, kTileRows);
}

static MemRefType bufferType(RankedTensorType type, int64_t (*rowBytes)(int64_t)) {
  Type byte = IntegerType::get(type.getContext(), 8);
  Type element = type.getElementType();
  if (type.getRank() > 0 && llvm::is_contained(type.getShape().drop_front(), ShapedType::kDynamic))
    return {};
  if (fp4::scaleLayout(type)) {
    int64_t blockTiles = llvm::divideCeil(type.getDimSize(1), kTileBlocks);
    return MemRefType::get({rowTiles(type.getDimSize(0)), blockTiles, kTileRows * kTileBlocks},
                           byte);
  }
  if (isa<Float4E2M1FNType>(element)) {
    if (type.getRank() != 2)
      return {};
    return MemRefType::get({type.getDimSize(0), rowBytes(type.getDimSize(1))}, byte);
  }
  if (fp4::isScaleElementType(element))
    return MemRefType::get(type.getShape(), byte);
  if (type.getEncoding() || !element.isIntOrFloat() || element.getIntOrFloatBitWidth() % 8 != 0)
    return {};
  return MemRefType::get(type.getShape(), element);
}

MemRefType fp4::deviceBufferType(RankedTensorType type) { return bufferType(type, paddedRowBytes); }

MemRefType fp4::userBufferType(RankedTensorType type) { return bufferType(type, denseRowBytes); }

SmallVector<Value> fp4::bufferDynamicSizes(OpBuilder &builder, Location loc, RankedTensorType type,
                                           Value rows) {
  if (type.getRank() == 0 || !type.isDynamicDim(0))
    return {};
  if (!scaleLayout(type))
    return {rows};
  Value tile = arith::ConstantIndexOp::create(builder, loc, kTileRows);
  return {arith::CeilDivUIOp::create(builder, loc, rows, tile)};
}

Value fp4::logicalRows(OpBuilder &builder, Location loc, RankedTensorType type, Value buffer) {
  if (!type.isDynamicDim(0))
    return arith::ConstantIndexOp::create(builder, loc, type.getDimSize(0));
  assert(!scaleLayout(type) && "the rows of dynamic tiled scales are not recorded in their buffer");
  return memref::DimOp::create(builder, loc, buffer, 0);
}

static Value materialize(OpBuilder &builder, Type type, ValueRange inputs, Location loc) {
  return UnrealizedConversionCastOp::create(builder, loc, type, inputs).getResult(0);
}

fp4::BufferTypeConverter::BufferTypeConverter() {
  addConversion([](Type type) { return type; });
  addConversion([](RankedTensorType type) -> std::optional<Type> {
    if (MemRefType buffer = deviceBufferType(type))
      return buffer;
    return std::nullopt;
  });
  addSourceMaterialization(materialize);
  addTargetMaterialization([](OpBuilder &builder, Type type, ValueRange inputs, Location loc) {
    return materialize(builder, type, inputs, loc);
  });
}
