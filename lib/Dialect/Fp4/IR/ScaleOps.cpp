//===- ScaleOps.cpp - Scales and shards: verifiers, types, folds ----------===//
//
// The labels (C1), (C2), ... are those of Fp4Constraints.td and test/Dialect/Fp4/invalid-*.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

//===----------------------------------------------------------------------===//
// swizzle_scales, unswizzle_scales
//===----------------------------------------------------------------------===//

LogicalResult SwizzleScalesOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                                Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType input = rankedType(adaptor.getInput());
  bool legal = isScaleElementType(input.getElementType()) && input.getRank() == 2;
  bool isList = legal && adaptor.getOffsets() && input.hasStaticShape();
  types.push_back(isList  ? tilesOfOffsets(input, adaptor.getOffsets())
                  : legal ? withScaleLayout(input, ScaleLayout::Tiled128x4)
                          : input);
  return success();
}

bool SwizzleScalesOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

/// Scale factors of 8 bits.
static LogicalResult verifyFactors(const Checked &value) {
  if (isScaleElementType(value.type.getElementType()))
    return success();
  return withNote(value.must("have elements of type f8E4M3FN or f8E8M0FNU"),
                  "fp4.quantize gives scales of these types");
}

LogicalResult SwizzleScalesOp::verify() {
  Checked input = operand(*this, "input", getInput());
  if (failed(verifyFactors(input))) // swizzle_scales (C1)
    return failure();
  if (failed(verifyMatrix(input, /*takesColumns=*/true))) // swizzle_scales (C2)
    return failure();
  if (failed(verifyRowMajor(input))) // swizzle_scales (C3)
    return failure();
  Checked tiled = result(*this, "result", getResult());
  if (!getOffsets())
    return verifyType(tiled, // swizzle_scales (C4)
                      withScaleLayout(input.type, ScaleLayout::Tiled128x4));
  if (failed(verifyOffsets(input, getOffsets(), // swizzle_scales (C610)
                           "swizzle the scales of so many groups with several operations")))
    return failure();
  if (failed(verifyColumnsBeside(input, "operand 'offsets'"))) // swizzle_scales (C496)
    return failure();
  return verifyType(tiled, tilesOfOffsets(input.type, getOffsets()), // swizzle_scales (C4)
                    "the list of tiles has room for any groups");
}

/// Constant scales with another layout. The elements of a constant are logical, and stay.
static Attribute withType(Attribute constant, Type type) {
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(constant))
    return dense.reshape(cast<ShapedType>(type));
  if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(constant))
    return DenseResourceElementsAttr::get(cast<ShapedType>(type), resource.getRawHandle());
  return {};
}

OpFoldResult SwizzleScalesOp::fold(FoldAdaptor adaptor) {
  if (getOffsets()) // the places of rows are known to the device
    return {};
  if (Attribute constant = withType(adaptor.getInput(), getType()))
    return constant;
  if (auto inverse = getInput().getDefiningOp<UnswizzleScalesOp>())
    if (inverse.getInput().getType() == getType())
      return inverse.getInput();
  return {};
}

LogicalResult UnswizzleScalesOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                                  Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(withScaleLayout(rankedType(adaptor.getInput()), std::nullopt));
  return success();
}

bool UnswizzleScalesOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

LogicalResult UnswizzleScalesOp::verify() {
  Checked input = operand(*this, "input", getInput());
  if (failed(verifyFactors(input))) // unswizzle_scales (C1)
    return failure();
  if (failed(verifyMatrix(input))) // unswizzle_scales (C2)
    return failure();
  if (failed(verifyTiled(input))) // unswizzle_scales (C3)
    return failure();
  return verifyType(result(*this, "result", getResult()), // unswizzle_scales (C4)
                    withScaleLayout(input.type, std::nullopt));
}

OpFoldResult UnswizzleScalesOp::fold(FoldAdaptor adaptor) {
  if (Attribute constant = withType(adaptor.getInput(), getType()))
    return constant;
  if (auto inverse = getInput().getDefiningOp<SwizzleScalesOp>(); inverse && !inverse.getOffsets())
    if (inverse.getInput().getType() == getType())
      return inverse.getInput();
  return {};
}

//===----------------------------------------------------------------------===//
// stack_scales, interleave_shards
//===----------------------------------------------------------------------===//

/// `extent` more, or dynamic.
static int64_t plus(int64_t extent, int64_t more) {
  bool isStatic = !ShapedType::isDynamic(extent) && !ShapedType::isDynamic(more);
  int64_t sum = 0;
  return isStatic && !llvm::AddOverflow(extent, more, sum) ? sum : ShapedType::kDynamic;
}

/// A matrix all of whose extents are static.
static LogicalResult verifyStaticMatrix(const Checked &value) {
  if (failed(verifyMatrix(value)))
    return failure();
  if (!value.type.isDynamicDim(0))
    return success();
  return withNote(value.must("have a static shape"),
                  "give each shard the static size that its rank has");
}

static constexpr StringLiteral kNoShards = "leave the operation out";

LogicalResult StackScalesOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                              Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (adaptor.getShards().empty() && location)
    return withNote(mlir::emitError(*location) << "expects at least one shard, but got none",
                    kNoShards);
  if (adaptor.getShards().empty())
    return failure();
  RankedTensorType type = rankedType(adaptor.getShards().front());
  if (type.getRank() == 2) {
    int64_t rows = 0;
    for (Value shard : adaptor.getShards())
      rows = plus(rows, rankedType(shard).getRank() == 2 ? rankedType(shard).getDimSize(0) : 0);
    type = type.clone({rows, type.getDimSize(1)});
  }
  types.push_back(type);
  return success();
}

bool StackScalesOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

LogicalResult StackScalesOp::verify() {
  if (getShards().empty()) // stack_scales (C1)
    return withNote(emitOpError("expects at least one shard, but got none"), kNoShards);
  RankedTensorType first = rankedType(getShards().front());
  int64_t rows = 0;
  for (auto [index, shard] : llvm::enumerate(getShards())) {
    Checked checked = operand(*this, "shards[" + std::to_string(index) + "]", shard);
    if (failed(verifyFactors(checked))) // stack_scales (C2)
      return failure();
    if (failed(verifyStaticMatrix(checked))) // stack_scales (C2)
      return failure();
    if (failed(verifyType(checked, first.clone({checked.type.getDimSize(0), // stack_scales (C3)
                                                first.getDimSize(1)}))))
      return failure();
    rows += checked.type.getDimSize(0);
  }
  return verifyType(result(*this, "result", getResult()), // stack_scales (C4)
                    first.clone({rows, first.getDimSize(1)}));
}

OpFoldResult StackScalesOp::fold(FoldAdaptor) {
  return getShards().size() == 1 ? OpFoldResult(getShards().front()) : OpFoldResult();
}

LogicalResult InterleaveShardsOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                                   Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType type = rankedType(adaptor.getInput());
  int64_t shards = adaptor.getShards(), columns = 0;
  if (type.hasStaticShape() && type.getRank() == 2 && shards > 0 &&
      !llvm::MulOverflow(type.getDimSize(1), shards, columns))
    type = type.clone({type.getDimSize(0) / shards, columns});
  types.push_back(type);
  return success();
}

bool InterleaveShardsOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

LogicalResult InterleaveShardsOp::verify() {
  Checked input = operand(*this, "input", getInput());
  bool isData = isa<Float4E2M1FNType>(input.type.getElementType());
  if (!isData && !isScaleElementType(input.type.getElementType())) // interleave_shards (C1)
    return withNote(input.must("have elements of type f4E2M1FN, f8E4M3FN or f8E8M0FNU"),
                    "shards are of the codes and scales that fp4.quantize gives");
  if (failed(verifyStaticMatrix(input)) || failed(verifyRowMajor(input))) // interleave_shards (C2)
    return failure();
  int64_t shards = getShards(), columns = 0;
  if (shards < 1 || llvm::MulOverflow(input.type.getDimSize(1), shards, columns))
    return withNote(
        emitOpError("attribute 'shards' must be at least 1 and leave the columns countable, "
                    "but got ") // interleave_shards (C3)
            << shards,
        "write the number of ranks whose shards are stacked in the input");
  if (failed(verifyMultiple(input, 0, shards, // interleave_shards (C3)
                            "every shard has as many rows: they are those of one matrix")))
    return failure();
  if (isData && failed(verifyMultiple(input, 1, 2, // interleave_shards (C4)
                                      "two elements share a byte, and bytes are moved")))
    return failure();
  return verifyType(result(*this, "result", getResult()), // interleave_shards (C5)
                    input.type.clone({input.type.getDimSize(0) / shards, columns}));
}

OpFoldResult InterleaveShardsOp::fold(FoldAdaptor) {
  return getShards() == 1 ? OpFoldResult(getInput()) : OpFoldResult();
}
