//===- OperandPath.cpp - The way of operands to the tensor core -----------===//

#include "OperandPath.h"

#include "fp4/Numerics/BlockScaledGemm.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

Value OperandPath::existingOfK(Value done, int64_t count, int64_t unit) {
  if (gemm.problem.depthUnit % (count * unit) == 0) // all tiles are whole
    return {};
  if (args.depth)
    return b.min(b.sub(b.quotientUp(args.depth, unit), done), count);
  return b.existing(done, count, llvm::divideCeil(gemm.problem.depth, unit));
}

Value OperandPath::existingRows(Value map, Value row) {
  auto type = cast<TensorMapType>(map.getType());
  if (!type.getResidue())
    return {};
  Value &found = existingOfBoxes[{row, type.getRows()}];
  if (found)
    return found;
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointAfterValue(row);
  Value all = args.rows ? args.rows : b.constant(gemm.problem.rows);
  bool isOnlyBox = !args.rows && gemm.problem.rows <= type.getRows() &&
                   type.getRows() == (gemm.swapsOperands() ? gemm.tiling.tileN : gemm.tiling.tileM);
  return found = ExistingRowsOp::create(b, b.getI32Type(), all, isOnlyBox ? b.constant(0) : row,
                                        type.getRows());
}

OperandPath::ScaleBlocks OperandPath::scaleBlocksOf(Value k) {
  int64_t ofTile = gemm.tiling.tileK / gemm.problem.block / kScaleBlockColumns;
  Value first = b.mul(k, ofTile);
  return {first, existingOfK(first, ofTile, gemm.problem.block * kScaleBlockColumns)};
}

Value OperandPath::load(Value map, Value row, Value column, int64_t depth) {
  auto box = cast<TensorMapType>(map.getType());
  SmallVector<int64_t> size(box.getShape());
  if (depth)
    size.back() = depth;
  auto type = SharedType::get(size, box.getElementType(), box.getLayout());
  return LoadOp::create(b, type, map, row, column, Value(), Value(), Value(), DirectionAttr(),
                        existingRows(map, row))
      .getResult();
}

Value OperandPath::loadScales(Value from, Value rowBlock, Value kBlock, Value blocks,
                              int64_t rows) {
  auto type = SharedType::get(
      {int64_t(llvm::alignTo(rows, kScaleBlockRows)), gemm.tiling.tileK / gemm.problem.block},
      gemm.problem.scaleType, Layout::Tiled128x4);
  return LoadScalesOp::create(b, type, from, rowBlock, kBlock, blocks, Value(), Value(), Value(),
                              /*in_bounds=*/false)
      .getResult();
}

Value OperandPath::convert(Value tile, Value scales, Value blocks) {
  Type half = gemm.problem.block == 16 ? Type(b.getF16Type()) : Type(b.getBF16Type());
  auto type =
      SharedType::get(cast<SharedType>(tile.getType()).getShape(), half, Layout::Swizzle128B);
  return ConvertTileOp::create(b, type, tile, scales, blocks, Value()).getResult();
}

Value OperandPath::load(SharedType type, Value map, Value row, Value column, int64_t parts,
                        Direction direction) {
  auto multicast = parts > 1 ? DirectionAttr::get(b.getContext(), direction) : DirectionAttr();
  return LoadOp::create(b, type, map, row, column, Value(), Value(), Value(), multicast,
                        existingRows(map, row))
      .getResult();
}

Value OperandPath::loadShared(Value map, Value row, Value column, int64_t parts,
                              Direction direction) {
  auto box = cast<TensorMapType>(map.getType());
  auto type = SharedType::get({box.getRows() * parts, gemm.tiling.tileK}, box.getElementType(),
                              box.getLayout());
  return load(type, map, row, column, parts, direction);
}

Value OperandPath::loadLaneScales(Value from, Value row, Value rowBlock, Value kBlock,
                                  Value blocks) {
  bool ofA = from == args.scalesA;
  int64_t parts = ofA ? gemm.partsScalesA() : gemm.partsScalesB();
  bool isHalved = gemm.tiling.splitsColumns() && !ofA;
  auto type =
      SharedType::get({ofA ? gemm.tiling.blockM() : gemm.rowsScalesB(), gemm.scaleColumns()},
                      gemm.problem.scaleType, isHalved ? Layout::Halves128x4 : Layout::Tiled128x4);
  // One tile of unit scales is that of all tiles, in the L2 cache.
  if (ofA ? gemm.hasUnitScalesOfA() : gemm.hasUnitScalesOfB())
    row = rowBlock = kBlock = b.constant(0);
  if (isHalved || gemm.tiling.inCluster())
    return load(type, from, row, b.mul(kBlock, kScaleBlockColumns), parts,
                ofA ? Direction::N : Direction::M);
  return LoadScalesOp::create(b, type, from, rowBlock, kBlock, blocks, Value(), Value(), Value(),
                              !ofA && gemm.fillsScaleBlocksB())
      .getResult();
}

Value OperandPath::copyScales(Value from, Value blocks) {
  auto tile = cast<SharedType>(from.getType());
  auto type =
      TmemType::get(tile.getShape(), tile.getElementType(), tile.getLayout(), gemm.tiling.pair);
  return CopyScalesOp::create(b, type, from, blocks, IntegerAttr(), IntegerAttr());
}

/// Codes of 4 bits are as they are in memory or prepacked, as bytes.
static numerics::BlockFormat formatOfCodes(Type data, int64_t block) {
  using enum numerics::BlockFormat;
  if (isa<Float8E4M3FNType>(data))
    return MXFP8E4M3;
  if (isa<Float8E5M2Type>(data))
    return MXFP8E5M2;
  return block == 16 ? NVFP4 : MXFP4;
}

int OperandPath::restoringExponent() const {
  if (gemm.takesBytes()) // weights are e4m3 and have powers of their own
    return 0;
  bool hasFloats =
      gemm.floatA() && (gemm.route().lhs() != route::Operand::Pre || gemm.prepackedB());
  int ofB = numerics::convertedExponent(formatOfCodes(gemm.dataTypeB(), gemm.problem.block));
  return hasFloats
             ? -ofB
             : -ofB -
                   numerics::convertedExponent(formatOfCodes(gemm.dataTypeA(), gemm.problem.block));
}
