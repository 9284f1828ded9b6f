//===- BufferTypes.cpp - Device buffers of logical tensors ----------------===//
#include "fp4/Dialect/Utils/BufferTypes.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/ISA/BufferShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace hw = fp4::hw;

static constexpr int64_t kTileRows = hw::scaleBlockRows, kTileBlocks = hw::scaleBlockColumns;

/// The type of packed rows of a dynamic length, which are the first bytes of each row of a buffer.
static MemRefType packedView(RankedTensorType type) {
  auto layout = StridedLayoutAttr::get(type.getContext(), 0, {ShapedType::kDynamic, 1});
  return MemRefType::get(type.getShape(), IntegerType::get(type.getContext(), 8), layout);
}

static MemRefType bufferType(RankedTensorType type, hw::RowPitch pitch) {
  Type byte = IntegerType::get(type.getContext(), 8);
  Type element = type.getElementType();
  bool dynamicColumns =
      type.getRank() > 0 && llvm::is_contained(type.getShape().drop_front(), ShapedType::kDynamic);
  bool areTiles = isa_and_present<fp4::WeightLayoutAttr>(type.getEncoding());
  if (dynamicColumns && type.getRank() != 2 && !areTiles)
    return {};
  if (fp4::scaleLayout(type))
    return MemRefType::get(hw::bufferShape({type.getShape(), 8, /*tiledScales=*/true}, pitch),
                           byte);
  if (isa<Float4E2M1FNType>(element)) {
    if (type.getRank() < 2)
      return {};
    if (dynamicColumns)
      return packedView(type);
    int64_t columns = type.getShape().back();
    // Only matrices are copied from one pitch to another.
    if (type.getRank() > 2 && hw::denseRowBytes(columns) != hw::paddedRowBytes(columns))
      return {};
    return MemRefType::get(hw::bufferShape({type.getShape(), 4}, pitch), byte);
  }
  bool isByte = fp4::isScaleElementType(element) || fp4::isByteElementType(element) || areTiles;
  if (isByte)
    return MemRefType::get(type.getShape(), byte);
  bool isKnown = element.isBF16() || element.isF16() || element.isF32() || element.isInteger(32) ||
                 element.isInteger(64);
  if (type.getEncoding() || !isKnown)
    return {};
  return MemRefType::get(type.getShape(), element);
}

MemRefType fp4::deviceBufferType(RankedTensorType type) {
  return bufferType(type, hw::RowPitch::Padded);
}

MemRefType fp4::userBufferType(RankedTensorType type) {
  return bufferType(type, hw::RowPitch::Dense);
}

SmallVector<Value> fp4::bufferDynamicSizes(OpBuilder &builder, Location loc, RankedTensorType type,
                                           Value rows, Value columns) {
  auto quotient = [&](Value size, int64_t n) -> Value {
    if (n == 1)
      return size;
    return arith::CeilDivUIOp::create(builder, loc, size,
                                      arith::ConstantIndexOp::create(builder, loc, n));
  };
  SmallVector<Value> sizes;
  bool tiled = scaleLayout(type).has_value();
  if (type.getRank() > 0 && type.isDynamicDim(0))
    sizes.push_back(quotient(rows, tiled ? kTileRows : 1));
  bool packed = isa<Float4E2M1FNType>(type.getElementType());
  if (type.getRank() > 1 && type.isDynamicDim(1))
    sizes.push_back(quotient(columns, tiled ? kTileBlocks : packed ? 2 : 1));
  return sizes;
}

Value fp4::allocateBuffer(OpBuilder &builder, Location loc, RankedTensorType type, Value rows,
                          Value columns) {
  MemRefType buffer = deviceBufferType(type);
  SmallVector<Value> sizes = bufferDynamicSizes(builder, loc, type, rows, columns);
  auto allocate = [&](MemRefType memory, ValueRange sizes) {
    return gpu::AllocOp::create(builder, loc, memory, /*asyncToken=*/Type(), ValueRange(), sizes,
                                ValueRange())
        .getMemref();
  };
  if (buffer.getLayout().isIdentity())
    return allocate(buffer, sizes);
  Value pitch = arith::ConstantIndexOp::create(builder, loc, hw::pitchUnitBytes);
  Value bytes = sizes.back();
  sizes.back() = arith::MulIOp::create(
      builder, loc, arith::CeilDivUIOp::create(builder, loc, bytes, pitch), pitch);
  Value memory = allocate(MemRefType::get(buffer.getShape(), buffer.getElementType()), sizes);
  SmallVector<OpFoldResult> offsets(2, builder.getIndexAttr(0)),
      strides(2, builder.getIndexAttr(1));
  SmallVector<OpFoldResult> shape = {memref::getMixedSize(builder, loc, memory, 0), bytes};
  return memref::SubViewOp::create(builder, loc, buffer, memory, offsets, shape, strides);
}

Value fp4::allocateCounters(OpBuilder &builder, Location loc, MemRefType type, ValueRange sizes) {
  auto alloc = gpu::AllocOp::create(builder, loc, type, /*asyncToken=*/Type(), ValueRange(), sizes,
                                    ValueRange());
  alloc->setAttr(kCountersAttr, builder.getUnitAttr());
  return alloc.getMemref();
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
