//===- Tiling.cpp - Operations on a range of rows -------------------------===//
//
// TilingInterface for operations whose rows do not need each other: a host compiler cuts them into
// loops over rows, or fuses them into a loop of its own. The iteration domain is the rows.
//
// Tiling an operation of these classes that an attribute ties to the whole (a transform along the
// columns, random numbers by place, square blocks, groups, tiled scales) is an error that names the
// attribute. docs/guides/embed.md says why the other operations are not tiled.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Fp4/Transforms/Tiling.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Interfaces/TilingInterface.h"

using namespace mlir;

namespace {

/// Returns the reason why the rows of an operation depend on each other; empty if they do not.
StringRef obstacle(fp4::AmaxOp op) { return op.getPerRow() ? "" : "one amax is of all rows"; }

StringRef obstacle(fp4::HadamardOp op) {
  return op.getDimension() == 1 ? "" : "the transform along dimension 0 needs other rows";
}

StringRef obstacle(fp4::DequantizeOp) { return ""; }

StringRef obstacle(fp4::QuantizeOp op) {
  if (op.hasColumnwise())
    return "columnwise outputs have blocks of several rows";
  if (op.hasSquareBlocks())
    return "square blocks have several rows";
  if (op.isGrouped())
    return "groups are ranges of rows themselves";
  if (op.getRounding() == fp4::Rounding::Stochastic)
    return "random numbers belong to the place of an element in the whole";
  auto scales = cast<RankedTensorType>(op.getScales().getType());
  return fp4::scaleLayout(scales) ? "tiled scales have tiles of 128 rows" : "";
}

/// Data, scales and amaxes of rows have a row for each row; scalars do not.
bool hasRows(Value value) { return cast<RankedTensorType>(value.getType()).getRank() > 0; }

/// All of `value` but its rows, which are `offset` to `offset + size`.
void rowsOf(OpBuilder &builder, Location loc, Value value, OpFoldResult offset, OpFoldResult size,
            SmallVector<OpFoldResult> &offsets, SmallVector<OpFoldResult> &sizes) {
  offsets.assign(cast<RankedTensorType>(value.getType()).getRank(), builder.getIndexAttr(0));
  sizes = tensor::getMixedSizes(builder, loc, value);
  offsets[0] = offset;
  sizes[0] = size;
}

FailureOr<TilingResult> tileRows(Operation *op, OpBuilder &builder, OpFoldResult offset,
                                 OpFoldResult size) {
  Location loc = op->getLoc();
  SmallVector<Value> operands;
  TilingResult tiling;
  for (Value operand : op->getOperands()) {
    operands.push_back(operand);
    if (!hasRows(operand))
      continue;
    SmallVector<OpFoldResult> offsets, sizes;
    rowsOf(builder, loc, operand, offset, size, offsets, sizes);
    SmallVector<OpFoldResult> strides(offsets.size(), builder.getIndexAttr(1));
    auto slice = tensor::ExtractSliceOp::create(builder, loc, operand, offsets, sizes, strides);
    tiling.generatedSlices.push_back(slice);
    operands.back() = slice;
  }
  SmallVector<Type> types;
  if (failed(fp4::inferResultTypes(op, operands, types)))
    return failure();
  Operation *tile = clone(builder, op, types, operands);
  tiling.tiledOps.push_back(tile);
  tiling.tiledValues.append(tile->result_begin(), tile->result_end());
  return tiling;
}

/// Only whole rows of a result have a tile.
bool isWholeRows(OpResult result, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  auto type = cast<RankedTensorType>(result.getType());
  for (int64_t dimension = 1; dimension < type.getRank(); ++dimension)
    if (!isConstantIntValue(offsets[dimension], 0) ||
        !isConstantIntValue(sizes[dimension], type.getDimSize(dimension)))
      return false;
  return true;
}

template <typename OpT> struct RowTiling : TilingInterface::ExternalModel<RowTiling<OpT>, OpT> {
  SmallVector<utils::IteratorType> getLoopIteratorTypes(Operation *) const {
    return {utils::IteratorType::parallel};
  }

  SmallVector<Range> getIterationDomain(Operation *op, OpBuilder &builder) const {
    OpFoldResult rows = tensor::getMixedSize(builder, op->getLoc(), op->getOperand(0), 0);
    return {Range{builder.getIndexAttr(0), rows, builder.getIndexAttr(1)}};
  }

  FailureOr<TilingResult> getTiledImplementation(Operation *op, OpBuilder &builder,
                                                 ArrayRef<OpFoldResult> offsets,
                                                 ArrayRef<OpFoldResult> sizes) const {
    if (StringRef why = obstacle(cast<OpT>(op)); !why.empty()) {
      op->emitOpError("must not be tiled along its rows").attachNote() << why;
      return failure();
    }
    return tileRows(op, builder, offsets[0], sizes[0]);
  }

  LogicalResult getResultTilePosition(Operation *op, OpBuilder &builder, unsigned number,
                                      ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                                      SmallVector<OpFoldResult> &resultOffsets,
                                      SmallVector<OpFoldResult> &resultSizes) const {
    auto type = cast<RankedTensorType>(op->getResult(number).getType());
    for (int64_t size : type.getShape()) {
      resultOffsets.push_back(builder.getIndexAttr(0));
      resultSizes.push_back(builder.getIndexAttr(size));
    }
    if (type.getRank() > 0) {
      resultOffsets[0] = offsets[0];
      resultSizes[0] = sizes[0];
    }
    return success();
  }

  LogicalResult
  getIterationDomainTileFromResultTile(Operation *op, OpBuilder &, unsigned number,
                                       ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                                       SmallVectorImpl<OpFoldResult> &domainOffsets,
                                       SmallVectorImpl<OpFoldResult> &domainSizes) const {
    if (!isWholeRows(op->getResult(number), offsets, sizes))
      return failure();
    domainOffsets.assign({offsets[0]});
    domainSizes.assign({sizes[0]});
    return success();
  }

  FailureOr<TilingResult> generateResultTileValue(Operation *op, OpBuilder &builder,
                                                  unsigned number, ArrayRef<OpFoldResult> offsets,
                                                  ArrayRef<OpFoldResult> sizes) const {
    if (!obstacle(cast<OpT>(op)).empty() || !isWholeRows(op->getResult(number), offsets, sizes))
      return failure();
    FailureOr<TilingResult> tiling = tileRows(op, builder, offsets[0], sizes[0]);
    if (succeeded(tiling))
      tiling->tiledValues = {tiling->tiledValues[number]};
    return tiling;
  }
};

} // namespace

void fp4::registerTiling(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, Fp4Dialect *) {
    AmaxOp::attachInterface<RowTiling<AmaxOp>>(*context);
    HadamardOp::attachInterface<RowTiling<HadamardOp>>(*context);
    QuantizeOp::attachInterface<RowTiling<QuantizeOp>>(*context);
    DequantizeOp::attachInterface<RowTiling<DequantizeOp>>(*context);
  });
}
