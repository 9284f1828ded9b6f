//===- PipeLoads.cpp - Loads of tiles into shared memory ------------------===//
//
// Verifiers of pipe.load, by the type of its source. Labels such as (C109) refer to
// PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "VerifyIteration.h"
#include "VerifyRows.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// (C110) A load returns its tile, or fills a stage of a channel.
static LogicalResult verifyDestination(LoadOp op) {
  Value result = op.getResult(), dest = op.getDest(), channel = op.getChannel();
  if (result && dest)
    return withNote(op.emitOpError() << "must return a tile or fill a destination, but does both",
                    "leave the result out where 'into %slot' is there");
  if (!result && !dest) {
    InFlightDiagnostic diag = op.emitOpError() << "must return a tile or fill a destination";
    diag.attachNote() << "add a result, or 'into %slot signals %channel'";
    return diag;
  }
  if (bool(dest) != bool(channel))
    return withNote(op.emitOpError() << "must fill a destination and signal its channel, but does "
                                     << (dest ? "not signal" : "not fill"),
                    "write 'into %slot signals %channel', or a result and neither");
  if (!channel) {
    if (op.getIteration())
      return withNote(op.emitOpError() << "iteration needs a channel to signal",
                      "leave it out, or add 'signals %channel'");
    return success();
  }
  if (!llvm::is_contained(cast<ChannelType>(channel.getType()).getPayload(), dest.getType()))
    return withNote(op.emitOpError() << "destination " << dest.getType()
                                     << " must be a tile of the channel it signals, but got "
                                     << channel.getType(),
                    "take a slot of pipe.producer_acquire of this channel");
  return verifyIteration(op, channel, op.getIteration());
}

/// (C651) A load has the operands and attributes that its source reads.
static LogicalResult verifyLoadFields(LoadOp op) {
  bool isMap = bool(op.getMapType()), isRows = op.loadsRows();
  if (bool(op.getColumn()) == isRows)
    return withNote(op.emitOpError() << "source " << op.getSource().getType() << " must have "
                                     << (isRows ? "no column" : "a column") << ", but got "
                                     << (isRows ? "one" : "none"),
                    "write '[%row]' for the rows of a linear buffer, and '[%row, %column]' for "
                    "maps and buffers of scales");
  if (op.getMulticast() && !isMap)
    return withNote(op.emitOpError() << "multicast must be of a tensor map, but got "
                                     << op.getSource().getType(),
                    "leave 'multicast' out, or load the tile through a map");
  if (op.getInBounds() && (isMap || isRows))
    return withNote(op.emitOpError() << "'in_bounds' must be of a buffer of scales, but got "
                                     << op.getSource().getType(),
                    "leave 'in_bounds' out: maps fill with zeros, and rows are counted");
  return success();
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

void LoadOp::getAsmResultNames(OpAsmSetValueNameFn name) {
  if (getResult())
    name(getResult(), getMapType() ? "tile" : loadsRows() ? "rows" : "scales");
}
Value LoadOp::getFilledTile() { return getResult(); }
Value LoadOp::getSlot() { return getDest(); }
Value LoadOp::getUnits() { return getExisting(); }
int64_t LoadOp::getUnitBytes() {
  SharedType tile = getTileType();
  if (!getExisting())
    return tile.getLoadedBytes();
  if (getMapType())
    return tile.getLoadedBytes() / tile.getRows();
  return loadsRows() ? tile.getInnerBytes() : tile.getRows() / kScaleBlockRows * kScaleBlockBytes;
}
void LoadOp::fillSlot(OpBuilder &builder, Value slot, Value channel) {
  create(builder, getLoc(), Type(), getSource(), getRow(), getColumn(), getPlane(), getBelow(),
         getExisting(), slot, channel, Value(), getMulticastAttr(), getInBounds());
}
int64_t LoadOp::getParts() {
  return getMulticast() ? clusterOf(*this).along(toHardware(*getMulticast())) : 1;
}
int64_t LoadOp::getRowParts(int64_t parts) {
  SharedType tile = getTileType();
  bool hasBlocks = tile.isScales() && !tile.isHalved();
  return hasBlocks ? rowPartsOfScales(tile.getRows(), parts) : parts;
}

//===----------------------------------------------------------------------===//
// Boxes of maps
//===----------------------------------------------------------------------===//

/// (C151) The CTAs that load a tile together.
static LogicalResult verifyParts(LoadOp op, SharedType tile) {
  if (!op.getMulticast())
    return success();
  StringRef blocks = spellBlocksAlong(*op.getMulticast());
  int64_t parts = op.getParts(), rowParts = op.getRowParts(parts), columnParts = parts / rowParts;
  if (parts < 2) {
    return withNote(op.emitOpError() << "multicast along " << stringifyDirection(*op.getMulticast())
                                     << " must be in a cluster of several " << blocks,
                    "the attribute known_cluster_size of the kernel gives the cluster");
  }
  if (columnParts > 1 && (tile.getRows() / rowParts > kScaleBlockRows ||
                          tile.getColumns() % (columnParts * kScaleBlockColumns)))
    return withNote(op.emitOpError()
                        << "each of the " << parts << ' ' << blocks
                        << " must load as many scale tiles of 128x4, side by side, but got "
                        << tile,
                    "take a smaller cluster, or a wider tile");
  int64_t rows = tile.getRows() / rowParts;
  int64_t unit = tile.isHalved()   ? tile.getRows() / 2
                 : tile.isScales() ? kScaleBlockRows
                                   : llvm::divideCeil(tile.getAlignment(),
                                                      tile.getInnerBytes() / tile.getPanels());
  if (columnParts == 1 && (tile.getRows() % parts || rows % unit))
    return withNote(op.emitOpError()
                        << "each of the " << parts << ' ' << blocks << " must load a multiple of "
                        << unit << " rows, but the tile has " << tile.getRows(),
                    "take a smaller cluster, or a higher tile");
  return success();
}

/// (C424) The halves of a tile of scales are boxes of one scale tile, which both CTAs of a pair may
/// load.
static LogicalResult verifyHalves(LoadOp op, SharedType tile) {
  TensorMapType map = op.getMapType();
  SmallVector<int64_t> box = {kScaleBlockRows, kScaleBlockColumns};
  if (op.getParts() <= 2 && map.isScales() && map.getShape() == ArrayRef(box) &&
      map.getElementType() == tile.getElementType())
    return success();
  return withNote(op.emitOpError()
                      << "tile of two halves must have a map of 128x4 scales and at most 2 "
                         "CTAs that load it, but got "
                      << map << " and " << op.getParts(),
                  "make the map of 128x4 boxes, and leave 'multicast' out beyond a pair");
}

/// (C473) The rows that a map with a residue gets, and their op.
static LogicalResult verifyResidue(LoadOp op) {
  TensorMapType map = op.getMapType();
  Value existing = op.getExisting();
  if (!map.getResidue() && !existing)
    return success();
  if (!map.getResidue())
    return withNote(op.emitOpError()
                        << "existing rows must be for a map with a residue, but got " << map,
                    "leave 'existing' out, or write 'residue' in the type of the map");
  if (op.getMulticast())
    return withNote(
        op.emitOpError("map with a residue must have tiles that one CTA loads, but got multicast"),
        "leave 'multicast' out, or 'residue' in the type of the map");
  auto rows = existing ? existing.getDefiningOp<ExistingRowsOp>() : ExistingRowsOp();
  if (rows && int64_t(rows.getBox()) == map.getRows())
    return success();
  InFlightDiagnostic diag = op.emitOpError()
                            << "map with a residue must come with rows from pipe.existing_rows of "
                            << map.getRows() << ", but got ";
  if (rows)
    diag << "those of " << int64_t(rows.getBox());
  else
    diag << (existing ? "others" : "none");
  return withNote(std::move(diag),
                  "write 'existing %n' of this map's pipe.existing_rows, or leave 'residue' out");
}

/// (C667) Operands that say where boxes are.
static LogicalResult verifyPlaces(LoadOp op) {
  TensorMapType map = op.getMapType();
  if (bool(op.getPlane()) != map.hasPlanes())
    return withNote(op.emitOpError() << "source " << map << " must have "
                                     << (map.hasPlanes() ? "a plane" : "no plane") << ", but got "
                                     << (map.hasPlanes() ? "none" : "one"),
                    "write 'plane %p' for a map of three dimensions, and only for it");
  if (op.getBelow().empty() || !(map.getResidue() || map.isScales() || op.getMulticast()))
    return success();
  return withNote(op.emitOpError() << "boxes below the first must be of a map of elements without "
                                      "residue, which one CTA loads, but got "
                                   << map << (op.getMulticast() ? " with multicast" : ""),
                  "load each box with an operation of its own");
}

/// (C671) One CTA loads the sets of rows of a tile.
static LogicalResult verifyRowSets(LoadOp op) {
  Layout layout = op.getTileType().getLayout();
  if (rowSets(layout).count() == 1 || (!op.getMulticast() && op.getBelow().empty()))
    return success();
  return withNote(op.emitOpError() << "tile of layout " << stringifyLayout(layout)
                                   << " must be boxes that one CTA loads from one row on, but got "
                                   << (op.getMulticast() ? "multicast" : "boxes below the first"),
                  "leave 'multicast' and 'below' out");
}

static LogicalResult verifyBox(LoadOp op) {
  if (failed(verifyResidue(op)) || failed(verifyPlaces(op)) || failed(verifyRowSets(op)))
    return failure();
  TensorMapType map = op.getMapType();
  SharedType tile = op.getTileType();
  int64_t panels = tile.getPanels();
  if (failed(verifyParts(op, tile)))
    return failure();
  if (tile.isHalved())
    return verifyHalves(op, tile); // (C424)
  int64_t parts = op.getParts(), rowParts = op.getRowParts(parts);
  int64_t boxes = int64_t(op.getBelow().size()) + 1;
  std::array<int64_t, 2> box = {map.getRows(), map.getColumns()};
  bool hasBox = box[0] * boxes == tile.getRows() / rowParts &&
                box[1] == tile.getColumns() / panels / (parts / rowParts);
  if (!hasBox || tile.getElementType() != map.getElementType() ||
      tile.getLayout() != map.getLayout()) // (C109)
    return withNote(
        op.emitOpError() << (parts > 1    ? "each CTA's part of the tile"
                             : panels > 1 ? "panels of the tile"
                                          : "tile")
                         << " must have the " << (boxes > 1 ? "boxes" : "box") << " of its map, "
                         << SharedType::get({box[0] * boxes, box[1]}, map.getElementType(),
                                            map.getLayout())
                         << ", but got " << tile,
        "the box of a map is a panel, as wide as the swizzle, or the part of it that one CTA "
        "loads");
  return success();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// Every place of the tile must be within the source.
static LogicalResult verifyInBounds(LoadOp op) {
  GlobalType source = op.getBufferType();
  int64_t blocks = op.getTileType().getRows() / kScaleBlockRows;
  bool isStatic = !ShapedType::isDynamic(source.getShape()[0]);
  if (op.getInBounds() && !(isStatic && source.getScaleBlockRows() % blocks == 0)) { // (C129)
    InFlightDiagnostic diag = op.emitOpError()
                              << "'in_bounds' expects static rows of whole tiles of "
                              << op.getTileType().getRows() << " rows, but got " << source;
    diag.attachNote() << "leave 'in_bounds' out: the last scale tiles then stand in for others";
    return diag;
  }
  return success();
}

static LogicalResult verifyTilesOfScales(LoadOp op) {
  GlobalType source = op.getBufferType();
  SharedType tile = op.getTileType();
  if (!tile.isScales() || tile.isHalved())
    return withNote(op.emitOpError() << "source and tile must have layout tiled_128x4, but got "
                                     << source << " and " << tile,
                    "load other tiles from a linear buffer or through a map");
  if (source.getElementType() != tile.getElementType()) // (C111)
    return withNote(op.emitOpError()
                        << "tile must have the source's element type " << source.getElementType()
                        << ", but got " << tile.getElementType(),
                    "write the source's element type in the tile");
  if (tile.getRows() % kScaleBlockRows) // (C111)
    return withNote(op.emitOpError() << "tile must have a multiple of " << kScaleBlockRows
                                     << " rows, but got " << tile.getRows(),
                    "round the tile up to whole scale tiles of 128 rows");
  if (failed(verifyColumns(op, op.getSource()))) // (C492)
    return failure();
  ViewOp matrix = matrixOf(op.getSource());
  if (tile.getRows() > kScaleBlockRows && ShapedType::isDynamic(source.getShape()[0]) &&
      !(matrix && matrix.getRows())) // (C111)
    return withNote(op.emitOpError() << "source must have known rows for a tile of "
                                     << tile.getRows() << " rows, but got " << source,
                    "take a source with static rows, or pipe.view with 'rows'");
  int64_t tileBlocks = tile.getColumns() / kScaleBlockColumns;
  bool isWhole = source.hasDynamicColumns() || source.getScaleBlockColumns() % tileBlocks == 0;
  if (!op.getExisting() && !isWhole) { // (C112)
    InFlightDiagnostic diag = op.emitOpError()
                              << "source's scale tiles of a row must be a multiple of the tile's "
                              << tileBlocks << ", but got " << source.getScaleBlockColumns();
    diag.attachNote() << "give the number of existing scale tiles with 'existing %n'";
    return diag;
  }
  return verifyInBounds(op);
}

/// (C190) Rows of a linear buffer.
static LogicalResult verifyLinearRows(LoadOp op) {
  GlobalType source = op.getBufferType();
  SharedType tile = op.getTileType();
  bool isLinear = source.getRank() == 2 && source.getLayout() == Layout::Linear &&
                  tile.getLayout() == Layout::Linear && !source.hasDynamicColumns();
  if (isLinear && source.getElementType() == tile.getElementType() &&
      tile.getElementType().getIntOrFloatBitWidth() % 8 == 0 &&
      source.getRowPitch() == tile.getInnerBytes())
    return success();
  return withNote(op.emitOpError() << "source and tile must be linear, with equal rows of elements "
                                      "of whole bytes, but got "
                                   << source << " and " << tile,
                  "pass tiles of rows that are as wide as the buffer's, or use a tensor map");
}

LogicalResult LoadOp::verify() {
  if (failed(verifyDestination(*this)) || failed(verifyLoadFields(*this)))
    return failure();
  if (getMapType())
    return verifyBox(*this);
  return loadsRows() ? verifyLinearRows(*this) : verifyTilesOfScales(*this);
}
