//===- PipeOps.cpp - Tile ops ---------------------------------------------===//
//
// Verifiers of the ops that move tiles and store what threads made of them. Labels such as (C114)
// refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "VerifyIteration.h"
#include "VerifyRows.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

//===----------------------------------------------------------------------===//
// Any role
//===----------------------------------------------------------------------===//

LogicalResult ExistingRowsOp::verify() { // (C472)
  int64_t box = getBox();
  if (box < 1)
    return withNote(emitOpError() << "box must be positive, but got " << box,
                    "write the rows of the box of the map that it is for");
  auto argument = dyn_cast<BlockArgument>(getRows());
  bool isOfKernel = argument && isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  if (isOfKernel || matchPattern(getRows(), m_Constant()))
    return success();
  return withNote(
      emitOpError("rows must be an argument of the kernel or a constant, but got another value"),
      "compute the number on the host, and pass it as an argument");
}

/// Called by the parser, before the types of operands are verified.
LogicalResult LoadScalarOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                             Adaptor adaptor, SmallVectorImpl<Type> &inferred) {
  const Type type = adaptor.getGlobal().getType();
  auto global = dyn_cast<GlobalType>(type);
  if (!global && location)
    return withNote(mlir::emitError(*location)
                        << "global must be of type !pipe.global, but got " << type,
                    "pass a buffer of the kernel");
  if (!global)
    return failure();
  inferred.push_back(global.getElementType());
  return success();
}

LogicalResult LoadScalarOp::verify() {
  if (int64_t rank = getGlobal().getType().getRank())
    return withNote(emitOpError() << "buffer must be a scalar, but got rank " << rank,
                    "pass a buffer of no dimensions, !pipe.global<T>");
  return success();
}

LogicalResult pipe::verifyRows(Operation *op, GlobalType buffer, Value rows) {
  if (ShapedType::isDynamic(buffer.getShape()[0]) == bool(rows))
    return success();
  return withNote(
      op->emitOpError() << "expects "
                        << (rows ? "no operand 'rows' for static rows"
                                 : "operand 'rows' for dynamic rows")
                        << ", but got " << (rows ? "one" : "none"),
      "='rows' is the number of rows that exist, which only a dynamic buffer leaves open");
}

LogicalResult LoadFactorsOp::verify() {
  GlobalType global = getGlobal().getType();
  Type element = getResult().getType().getElementType();
  if (global.getRank() != 2 || global.getElementType() != element)
    return withNote(emitOpError() << "buffer must have 2 dimensions of " << element << ", but got "
                                  << global,
                    "pass a buffer of that element type, in rows and columns"); // (C144)
  return failure(failed(verifyColumns(*this, getGlobal())) ||   // (C492)
                 failed(verifyRows(*this, global, getRows()))); // (C144)
}

//===----------------------------------------------------------------------===//
// Names of results
//===----------------------------------------------------------------------===//

void LoadOp::getAsmResultNames(OpAsmSetValueNameFn name) {
  if (getResult())
    name(getResult(), "tile");
}
void LoadScalesOp::getAsmResultNames(OpAsmSetValueNameFn name) {
  if (getResult())
    name(getResult(), "scales");
}
void HadamardMatrixOp::getAsmResultNames(OpAsmSetValueNameFn name) {
  if (getResult())
    name(getResult(), "hadamard");
}
void StageOp::getAsmResultNames(OpAsmSetValueNameFn name) {
  if (getResult())
    name(getResult(), "staged");
}
void AccumulatorOp::getAsmResultNames(OpAsmSetValueNameFn name) { name(getResult(), "acc"); }
void CopyScalesOp::getAsmResultNames(OpAsmSetValueNameFn name) { name(getResult(), "tscales"); }
void ChannelOp::getAsmResultNames(OpAsmSetValueNameFn name) {
  name(getResult(), getType().isShared() ? "tiles" : "accs");
}

/// `%tile`, `%scales` or `%acc`, by the kind of the slot.
static void nameSlots(ValueRange slots, OpAsmSetValueNameFn name) {
  for (Value slot : slots) {
    auto shared = dyn_cast<SharedType>(slot.getType());
    name(slot, !shared ? "acc" : shared.isScales() ? "scales" : "tile");
  }
}
void ProducerAcquireOp::getAsmResultNames(OpAsmSetValueNameFn name) { nameSlots(getSlots(), name); }
void ConsumerWaitOp::getAsmResultNames(OpAsmSetValueNameFn name) { nameSlots(getSlots(), name); }

//===----------------------------------------------------------------------===//
// Engine tma
//===----------------------------------------------------------------------===//

/// (C110) A load returns its tile, or fills a stage of a channel.
LogicalResult fp4::pipe::verifyDestination(Operation *op, Value result, Value dest, Value channel,
                                           Value iteration) {
  if (result && dest)
    return withNote(op->emitOpError() << "must return a tile or fill a destination, but does both",
                    "leave the result out where 'into %slot' is there");
  if (!result && !dest) {
    InFlightDiagnostic diag = op->emitOpError() << "must return a tile or fill a destination";
    diag.attachNote() << "add a result, or 'into %slot signals %channel'";
    return diag;
  }
  if (!channel) {
    if (iteration)
      return withNote(op->emitOpError() << "iteration needs a channel to signal",
                      "leave it out, or add 'signals %channel'");
    return success();
  }
  if (!llvm::is_contained(cast<ChannelType>(channel.getType()).getPayload(), dest.getType()))
    return withNote(op->emitOpError() << "destination " << dest.getType()
                                      << " must be a tile of the channel it signals, but got "
                                      << channel.getType(),
                    "take a slot of pipe.producer_acquire of this channel");
  return verifyIteration(op, channel, iteration);
}

/// Checks the end of a load.
template <typename LoadLike> static LogicalResult verifyEnd(LoadLike op) {
  return verifyDestination(op, op.getResult(), op.getDest(), op.getChannel(), op.getIteration());
}

Value LoadOp::getFilledTile() { return getResult(); }
Value LoadOp::getSlot() { return getDest(); }
int64_t LoadOp::getUnitBytes() {
  SharedType tile = getTileType();
  return getRows() ? tile.getLoadedBytes() / tile.getRows() : tile.getLoadedBytes();
}
Value LoadOp::getUnits() { return getRows(); }
void LoadOp::fillSlot(OpBuilder &builder, Value slot, Value channel) {
  create(builder, getLoc(), Type(), getMap(), getRow(), getColumn(), slot, channel, Value(),
         getMulticastAttr(), getRows());
}
int64_t LoadOp::getParts() {
  return getMulticast() ? clusterOf(*this).along(toHardware(*getMulticast())) : 1;
}
int64_t LoadOp::getRowParts(int64_t parts) {
  SharedType tile = getTileType();
  bool hasBlocks = tile.isScales() && !tile.isHalved();
  return hasBlocks ? rowPartsOfScales(tile.getRows(), parts) : parts;
}

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
  TensorMapType map = op.getMap().getType();
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
  TensorMapType map = op.getMap().getType();
  if (!map.getResidue() && !op.getRows())
    return success();
  if (!map.getResidue())
    return withNote(op.emitOpError() << "rows must be for a map with a residue, but got " << map,
                    "leave the rows out, or write 'residue' in the type of the map");
  if (op.getMulticast())
    return withNote(
        op.emitOpError("map with a residue must have tiles that one CTA loads, but got multicast"),
        "leave 'multicast' out, or 'residue' in the type of the map");
  auto rows = op.getRows() ? op.getRows().getDefiningOp<ExistingRowsOp>() : ExistingRowsOp();
  if (rows && int64_t(rows.getBox()) == map.getRows())
    return success();
  InFlightDiagnostic diag = op.emitOpError()
                            << "map with a residue must come with rows from pipe.existing_rows of "
                            << map.getRows() << ", but got ";
  if (rows)
    diag << "those of " << int64_t(rows.getBox());
  else
    diag << (op.getRows() ? "others" : "none");
  return withNote(std::move(diag),
                  "write 'rows %n' with the pipe.existing_rows of this map, or leave 'residue' out");
}

LogicalResult LoadOp::verify() {
  if (failed(verifyEnd(*this)) || failed(verifyResidue(*this)))
    return failure();
  TensorMapType map = getMap().getType();
  SharedType tile = getTileType();
  int64_t panels = tile.getPanels();
  if (failed(verifyParts(*this, tile)))
    return failure();
  if (tile.isHalved())
    return verifyHalves(*this, tile); // (C424)
  int64_t parts = getParts(), rowParts = getRowParts(parts);
  SmallVector<int64_t> box = {tile.getRows() / rowParts,
                              tile.getColumns() / panels / (parts / rowParts)};
  if (map.getShape() != ArrayRef(box) || tile.getElementType() != map.getElementType() ||
      tile.getLayout() != map.getLayout()) // (C109)
    return withNote(
        emitOpError() << (parts > 1    ? "each CTA's part of the tile"
                          : panels > 1 ? "panels of the tile"
                                       : "tile")
                      << " must have the box of its map, "
                      << SharedType::get(map.getShape(), map.getElementType(), map.getLayout())
                      << ", but got " << tile,
        "the box of a map is a panel, as wide as the swizzle, or the part of it that one CTA "
        "loads");
  return success();
}

Value LoadScalesOp::getFilledTile() { return getResult(); }
Value LoadScalesOp::getSlot() { return getDest(); }
Value LoadScalesOp::getUnits() { return getBlocks(); }
int64_t LoadScalesOp::getUnitBytes() {
  return getBlocks() ? getTileType().getRows() / kScaleBlockRows * kScaleBlockBytes
                     : getTileType().getBytes();
}
void LoadScalesOp::fillSlot(OpBuilder &builder, Value slot, Value channel) {
  create(builder, getLoc(), Type(), getSource(), getRowBlock(), getColumnBlock(), getBlocks(), slot,
         channel, Value(), getInBounds());
}

/// Every place of the tile must be within the source.
static LogicalResult verifyInBounds(LoadScalesOp op) {
  GlobalType source = op.getSource().getType();
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

LogicalResult LoadScalesOp::verify() {
  if (failed(verifyEnd(*this)))
    return failure();
  GlobalType source = getSource().getType();
  SharedType tile = getTileType();
  if (!source.isScales() || !tile.isScales() || tile.isHalved())
    return withNote(emitOpError() << "source and tile must have layout tiled_128x4, but got "
                                  << source << " and " << tile,
                    "fp4.swizzle_scales makes such a buffer; pipe.load copies other tiles");
  if (source.getElementType() != tile.getElementType()) // (C111)
    return withNote(emitOpError() << "tile must have the source's element type "
                                  << source.getElementType() << ", but got "
                                  << tile.getElementType(),
                    "write the source's element type in the tile");
  if (tile.getRows() % kScaleBlockRows) // (C111)
    return withNote(emitOpError() << "tile must have a multiple of " << kScaleBlockRows
                                  << " rows, but got " << tile.getRows(),
                    "round the tile up to whole scale tiles of 128 rows");
  if (failed(verifyColumns(*this, getSource()))) // (C492)
    return failure();
  MatrixOp matrix = matrixOf(getSource());
  if (tile.getRows() > kScaleBlockRows && ShapedType::isDynamic(source.getShape()[0]) &&
      !(matrix && matrix.getRows())) // (C111)
    return withNote(emitOpError() << "source must have known rows for a tile of " << tile.getRows()
                                  << " rows, but got " << source,
                    "take a source with static rows, or pipe.matrix with 'rows'");
  int64_t tileBlocks = tile.getColumns() / kScaleBlockColumns;
  bool isWhole = source.hasDynamicColumns() || source.getScaleBlockColumns() % tileBlocks == 0;
  if (!getBlocks() && !isWhole) { // (C112)
    InFlightDiagnostic diag = emitOpError()
                              << "source's scale tiles of a row must be a multiple of the tile's "
                              << tileBlocks << ", but got " << source.getScaleBlockColumns();
    diag.attachNote() << "give the number of existing scale tiles with 'blocks %n'";
    return diag;
  }
  return verifyInBounds(*this);
}

//===----------------------------------------------------------------------===//
// Engines tensor and scale_copy
//===----------------------------------------------------------------------===//

LogicalResult AccumulatorOp::verify() {
  if (getType().isScales())
    return withNote(emitOpError() << "accumulator must be a tile of f32, but got " << getType(),
                    "tiles of scales come from pipe.copy_scales");
  return success();
}

Value CopyScalesOp::getTmemTile() { return getResult(); }
Value CopyScalesOp::getStageTile() { return getSource(); }
std::optional<int64_t> CopyScalesOp::getFirstColumn() { return getTmemColumn(); }
int64_t CopyScalesOp::getNumSets() { return getSets().value_or(1); }
void CopyScalesOp::setPlace(int64_t column, int64_t sets) {
  setTmemColumn(column);
  if (sets > 1)
    setSets(sets);
}

//===----------------------------------------------------------------------===//
// Engine threads
//===----------------------------------------------------------------------===//

Value HadamardMatrixOp::getFilledTile() { return getResult(); }
Value HadamardMatrixOp::getSlot() { return getDest(); }
int64_t HadamardMatrixOp::getUnitBytes() { return 0; }
Value HadamardMatrixOp::getUnits() { return {}; }
void HadamardMatrixOp::fillSlot(OpBuilder &builder, Value slot, Value) {
  create(builder, getLoc(), Type(), getSignsAttr(), slot);
}

FailureOr<SharedType> fp4::pipe::verifyFilled(Operation *op, Value result, Value dest) {
  if (bool(dest) == bool(result))
    return withNote(op->emitOpError() << "must either return a tile or fill a destination",
                    "write a result, or 'into %slot', and not both");
  return cast<SharedType>((dest ? dest : result).getType());
}

LogicalResult HadamardMatrixOp::verify() { // (C126)
  FailureOr<SharedType> filled = verifyFilled(*this, getResult(), getDest());
  if (failed(filled))
    return failure();
  SharedType tile = *filled;
  SmallVector<int64_t> shape = {kDenseMmaK, kDenseMmaK};
  if (tile.getShape() != ArrayRef(shape) || !tile.getElementType().isBF16() ||
      tile.getLayout() != Layout::Swizzle32B)
    return withNote(emitOpError() << "tile must be 16x16 of bf16 with layout swizzle_32B, but got "
                                  << tile,
                    "write !pipe.shared<16x16xbf16, swizzle_32B>");
  if (getSigns() > 0xFFFF)
    return withNote(emitOpError() << "signs must have 16 bits, but got " << getSigns(),
                    "the bits are the signs of the 16 elements of a group");
  return success();
}

LogicalResult ReadOp::verify() {
  TmemType acc = getAccumulator().getType();
  auto vector = cast<VectorType>(getType());
  int64_t n = vector.getNumElements();
  if (!acc.isAccumulator() || vector.getElementType() != acc.getElementType())
    return withNote(emitOpError() << "vector must have the accumulator's element type, but got "
                                  << vector << " from " << acc,
                    "write f32 vectors of an accumulator of !pipe.tmem<...xf32>");
  int64_t columns = acc.getTmemColumns();                // columns of a TMEM lane
  if (!llvm::isPowerOf2_64(n) || n > 128 || columns % n) // (C117)
    return withNote(
        emitOpError() << "vector must have a power of two of at most 128 elements that divides "
                         "the accumulator's "
                      << columns << " columns, but got " << n,
        "read the columns with several operations");
  return success();
}

/// (C127) Random words belong to places of one output.
static LogicalResult verifyRandom(QuantizeBlocksOp op, const numerics::Recipe &recipe) {
  bool random = bool(op.getRng());
  if (bool(op.getRow()) != random || bool(op.getColumn()) != random ||
      bool(op.getMatrix()) != random)
    return withNote(op.emitOpError() << "random must come with row, column and matrix",
                    "write 'random %rng[%row, %column] of [ROWS, COLUMNS]', or nothing of it");
  if (!random)
    return success();
  GlobalType rng = op.getRng().getType();
  if (rng.getRank() != 1 || rng.getShape()[0] != 2 || !rng.getElementType().isInteger(64))
    return withNote(op.emitOpError()
                        << "random must be the seed and offset, a buffer of 2xi64, but got " << rng,
                    "pass a buffer of type !pipe.global<2xi64>");
  if (op.getMatrix()->size() != 2)
    return withNote(op.emitOpError() << "matrix must be rows and columns, but got "
                                     << op.getMatrix()->size() << " numbers",
                    "write 'of [ROWS, COLUMNS]', the sizes of the whole output");
  if (numerics::roundsToNearestOnly(recipe))
    return withNote(op.emitOpError()
                        << "random must not come with a recipe that compares rounding errors",
                    "take a recipe with one rounding, or leave 'random' out");
  return success();
}

int64_t QuantizeBlocksOp::getBlockSize() {
  return numerics::blockSizeOf(getRecipe().getDecisions().format);
}

LogicalResult QuantizeBlocksOp::verify() { // (C127)
  numerics::Recipe recipe = getRecipe().getDecisions();
  if (!numerics::isPacked(recipe.format))
    return withNote(emitOpError() << "recipe must have elements of 4 bits, but got format "
                                  << numerics::stringify(recipe.format),
                    "write a recipe of format nvfp4 or mxfp4");
  int64_t count = cast<VectorType>(getValue().getType()).getNumElements(), block = getBlockSize();
  if (count % block)
    return withNote(emitOpError() << "value must be blocks of " << block << " elements, but got "
                                  << count,
                    "pad the vector with zeros to whole blocks");
  auto codes = VectorType::get(count, Float4E2M1FNType::get(getContext()));
  auto scales = VectorType::get(count / block, scaleType(getContext(), formatOf(recipe.format)));
  if (getCodes().getType() != codes || getScales().getType() != scales)
    return withNote(emitOpError() << "results must be " << codes << " and " << scales
                                  << ", but got " << getCodes().getType() << " and "
                                  << getScales().getType(),
                    "write a code for each element and a scale for each block");
  bool expected = numerics::hasTensorScale(recipe);
  if (expected != bool(getAmax()))
    return withNote(emitOpError() << "recipe expects " << (expected ? "an" : "no") << " amax",
                    expected
                        ? "add 'amax %a', the maximum that the recipe's tensor scale follows from"
                        : "leave it out: the recipe has no tensor scale");
  return verifyRandom(*this, recipe);
}

Value StageOp::getFilledTile() { return getResult(); }
Value StageOp::getSlot() { return getDest(); }
int64_t StageOp::getUnitBytes() { return 0; }
Value StageOp::getUnits() { return {}; }
void StageOp::fillSlot(OpBuilder &builder, Value slot, Value) {
  create(builder, getLoc(), Type(), getValue(), slot);
}

LogicalResult StageOp::verify() { // (C160)
  FailureOr<SharedType> filled = verifyFilled(*this, getResult(), getDest());
  if (failed(filled))
    return failure();
  SharedType tile = *filled;
  auto vector = cast<VectorType>(getValue().getType());
  int64_t groups = tile.getRows() / kMmaM;
  SmallVector<int64_t> shape = {kMmaM * groups, vector.getNumElements()};
  auto region = (*this)->getParentOfType<RoleRegionOp>();
  int64_t threads = region ? region.getRole().getNumThreads() : kMmaM * groups;
  bool hasRows = (groups == 1 || groups == 2) && threads == kMmaM * groups;
  if (hasRows && tile.getShape() == ArrayRef(shape) &&
      tile.getElementType() == vector.getElementType() && !tile.isScales() &&
      tile.getInnerBytes() == swizzleWidth(tile.getLayout()))
    return success();
  return withNote(
      emitOpError() << "tile must be " << kMmaM
                    << " rows for each warpgroup of the role, one or two, of " << vector
                    << ", as wide as its swizzle, but got " << tile,
      "write a row for each thread, and the columns of the vector as wide as a swizzle");
}

LogicalResult StoreOp::verify() {
  GlobalType dest = getDest().getType();
  auto vector = cast<VectorType>(getValue().getType());
  int64_t count = vector.getNumElements();
  if (dest.getRank() != 2 || dest.getElementType() != vector.getElementType()) // (C118)
    return withNote(emitOpError() << "destination must be a buffer of " << vector.getElementType()
                                  << " and rank 2, but got " << dest,
                    "convert the vector to the elements of the buffer first");
  if (failed(verifyColumns(*this, getDest()))) // (C492)
    return failure();
  if (!llvm::isPowerOf2_64(count)) // (C118)
    return withNote(emitOpError() << "vector must have a power of two of elements, but got "
                                  << count,
                    "store the rest with operations of their own");
  if (isa<Float4E2M1FNType>(vector.getElementType()) && count < 32) // (C118)
    return withNote(
        emitOpError() << "vector of f4E2M1FN must have at least 32 elements, 16 bytes, but got "
                      << count,
        "store at least 16 bytes at a time: codes of smaller vectors share them");
  if (dest.isScales() && count != kScaleBlockColumns) // (C118)
    return withNote(emitOpError() << "vector must have the " << kScaleBlockColumns
                                  << " columns of a scale tile, but got " << count,
                    "gather the scales of four blocks of a row first");
  if (getTransposed() && // (C200)
      (dest.isScales() || vector.getElementTypeBitWidth() < 8))
    return withNote(
        emitOpError() << "transposed must be elements of 8, 16 or 32 bits of a linear buffer, "
                         "but got "
                      << dest,
        "leave 'transposed' out for codes and scales");
  if (!getRows() && ShapedType::isDynamic(dest.getShape()[0])) { // (C118)
    InFlightDiagnostic diag = emitOpError()
                              << "must bound the rows of a destination with dynamic rows";
    diag.attachNote() << "add 'rows %m'";
    return diag;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Engine bulk_store
//===----------------------------------------------------------------------===//

/// (C162) The role hands the stage back when its copies have read it.
static LogicalResult verifyStoringRole(StoreTileOp op) {
  auto region = op->getParentOfType<RoleRegionOp>();
  bool waits = isa_and_nonnull<ConsumerWaitOp>(op.getTile().getDefiningOp());
  if (!region || (waits && !region.getRole().drives(Engine::Threads)))
    return success();
  InFlightDiagnostic diag = op.emitOpError()
                            << "tile must come from a channel to a role without threads, but the "
                            << (waits ? "role " : "tile is made by role ")
                            << region.getRole().getName() << (waits ? " drives threads" : "");
  diag.attachNote(region.getLoc()) << "let a role of its own drive bulk_store, such as store warps "
                                      "6 to 7 drives [bulk_store]";
  return diag;
}

LogicalResult StoreTileOp::verify() {
  TensorMapType map = getMap().getType();
  SharedType tile = getTile().getType();
  int64_t boxes = 1, bits = map.getElementType().getIntOrFloatBitWidth();
  if (std::optional<int64_t> halves = getHalves()) {
    boxes = 2;
    if (*halves < 1 || *halves * bits % 128) // (C441)
      return withNote(emitOpError()
                          << "halves must be a positive multiple of 16 bytes apart, but got "
                          << *halves << " elements",
                      "write the distance in elements, a multiple of 16 bytes");
  }
  SmallVector<int64_t> shape = {boxes * map.getRows(), map.getColumns()};
  if (map.isScales() || ArrayRef(shape) != tile.getShape() || // (C441)
      tile.getElementType() != map.getElementType() ||
      tile.getLayout() != map.getLayout()) // (C161)
    return withNote(
        emitOpError() << "tile must have " << (boxes > 1 ? "twice " : "") << "the box of its map, "
                      << SharedType::get(map.getShape(), map.getElementType(), map.getLayout())
                      << ", but got " << tile,
        "stage the tile in the box, element type and layout of the map");
  return verifyStoringRole(*this);
}
