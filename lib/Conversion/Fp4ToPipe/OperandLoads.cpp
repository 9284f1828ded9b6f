//===- OperandLoads.cpp - Loads of k tiles --------------------------------===//

#include "OperandLoads.h"

#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/ISA/WeightLayout.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

Value OperandLoads::existingOfK(Value done, int64_t count, int64_t unit) {
  if (gemm.problem.depthUnit % (count * unit) == 0) // all tiles are whole
    return {};
  if (args.depth)
    return b.min(b.sub(b.quotientUp(args.depth, unit), done), count);
  return b.existing(done, count, llvm::divideCeil(gemm.problem.depth, unit));
}

/// The existing rows of a box of `map` from `row` of the result on; null where the map has no
/// residue. The count is computed where `row` is.
Value OperandLoads::existingRows(Value map, Value row) {
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

KTile OperandLoads::kTileOf(Value k) {
  KTile tile{k, {}, {}, {}};
  if (!gemm.hasScaleTiles())
    return tile;
  if (!gemm.transposes() && !gemm.floatB()) // others keep the order of their instructions
    tile.element = b.mul(k, gemm.tiling.tileK);
  int64_t ofTile = gemm.tiling.tileK / gemm.problem.block / kScaleBlockColumns;
  tile.block = b.mul(k, ofTile);
  tile.blocks = existingOfK(tile.block, ofTile, gemm.problem.block * kScaleBlockColumns);
  return tile;
}

Value OperandLoads::load(SharedType type, Value map, Value row, Value column, int64_t parts,
                         Direction direction) {
  auto multicast = parts > 1 ? DirectionAttr::get(b.getContext(), direction) : DirectionAttr();
  return LoadOp::create(b, type, map, row, column, existingRows(map, row), multicast).getResult();
}

Value OperandLoads::loadBox(Value map, Value row, Value column) {
  auto box = cast<TensorMapType>(map.getType());
  auto type = SharedType::get(box.getShape(), box.getElementType(), box.getLayout());
  return load(type, map, row, column, /*parts=*/1, Direction::N);
}

Value OperandLoads::loadTile(Value map, Value row, const KTile &k, int64_t parts,
                             Direction direction) {
  auto box = cast<TensorMapType>(map.getType());
  auto type = SharedType::get({box.getRows() * parts, gemm.tiling.tileK}, box.getElementType(),
                              box.getLayout());
  Value element = k.element ? k.element : b.mul(k.number, gemm.tiling.tileK);
  return load(type, map, row, element, parts, direction);
}

Value OperandLoads::loadRows(Value from, Value index, int64_t count, Value existing) {
  auto source = cast<GlobalType>(from.getType());
  auto type = SharedType::get({count, source.getShape()[1]}, source.getElementType());
  return LoadOp::create(b, type, from, index, /*column=*/Value(), existing).getResult();
}

Value OperandLoads::firstPacked(Value row) {
  Value tile = b.div(row, hw::weightTileRows);
  return args.depth ? b.mul(tile, dynamicTilesOfK()) : b.mul(tile, gemm.packedTilesOfK());
}

/// Tiles of prepacked weights along a dynamic K.
Value OperandLoads::dynamicTilesOfK() {
  return b.quotientUp(args.depth, hw::weightColumnsOf(gemm.packedBytes()));
}

/// The last k tile may have fewer tiles of K than its depth has room for.
OperandLoads::Packed OperandLoads::loadPacked(Value from, Value row, Value k) {
  int64_t perTile = gemm.tiling.tileK / hw::weightColumnsOf(gemm.packedBytes());
  Value first = b.mul(k, perTile);
  Value count; // a k tile of one tile has all of it
  if (perTile > 1)
    count = existingOfK(first, perTile, hw::weightColumnsOf(gemm.packedBytes()));
  Value index = b.add(firstPacked(row), first);
  return {loadRows(from, index, perTile, count), count};
}

Value OperandLoads::loadScales(Value from, Value rowBlock, const KTile &k, int64_t rows) {
  auto type = SharedType::get(
      {int64_t(llvm::alignTo(rows, kScaleBlockRows)), gemm.tiling.tileK / gemm.problem.block},
      gemm.problem.scaleType, Layout::Tiled128x4);
  return LoadOp::create(b, type, from, rowBlock, k.block, k.blocks).getResult();
}

Value OperandLoads::loadLaneScales(bool ofA, Value from, const Tile &tile, const KTile &k) {
  Value block = k.block;
  Value row = ofA ? tile.scaleRowA : tile.scaleRowB, rowBlock = ofA ? tile.blockA : tile.blockB;
  int64_t parts = ofA ? gemm.partsScalesA() : gemm.partsScalesB();
  bool isHalved = gemm.tiling.splitsColumns() && !ofA;
  auto type =
      SharedType::get({ofA ? gemm.tiling.blockM() : gemm.rowsScalesB(), gemm.scaleColumns()},
                      gemm.problem.scaleType, isHalved ? Layout::Halves128x4 : Layout::Tiled128x4);
  // One tile of unit scales is that of all tiles, in the L2 cache.
  if (ofA ? gemm.hasUnitScalesOfA() : gemm.hasUnitScalesOfB())
    row = rowBlock = block = b.constant(0);
  if (isHalved || gemm.tiling.inCluster())
    return load(type, from, row, b.mul(block, kScaleBlockColumns), parts,
                ofA ? Direction::N : Direction::M);
  bool isInBounds = !ofA && gemm.fillsScaleBlocksB();
  return LoadOp::create(b, type, from, rowBlock, block, k.blocks, DirectionAttr(), isInBounds)
      .getResult();
}
