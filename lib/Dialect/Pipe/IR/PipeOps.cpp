//===- PipeOps.cpp - Host ops and tile ops --------------------------------===//
//
// Verifiers of the ops that make kernel arguments and that move and multiply tiles. Labels such as
// (C114) refer to docs/Pipe.md.
//
//===----------------------------------------------------------------------===//

#include "VerifyIteration.h"
#include "VerifyRows.h"

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
// Host
//===----------------------------------------------------------------------===//

/// A kernel that gets the strides of the buffer as numbers knows only the elements.
static bool isViewOfRows(BaseMemRefType actual, GlobalType type) {
  auto buffer = dyn_cast<MemRefType>(actual);
  return buffer && type.getRank() == 2 && !type.isScales() &&
         getBufferType(type).getElementType() == buffer.getElementType() &&
         llvm::all_of(type.getShape(), ShapedType::isDynamic) &&
         isa<StridedLayoutAttr>(buffer.getLayout()) && buffer.getRank() >= 2;
}

LogicalResult GlobalViewOp::verify() {
  MemRefType expected = getBufferType(getType());
  auto actual = cast<BaseMemRefType>(getBuffer().getType());
  if (actual != expected && !isViewOfRows(actual, getType())) // (C107)
    return emitOpError() << "buffer of " << getType() << " must be " << expected << ", but got "
                         << actual;
  return success();
}

LogicalResult ExpectSizeOp::canonicalize(ExpectSizeOp op, PatternRewriter &rewriter) {
  if (op.getFound() != op.getExpected())
    return rewriter.notifyMatchFailure(op, "two different values");
  rewriter.eraseOp(op);
  return success();
}

/// Bytes of a dense buffer; nothing where a size is dynamic.
static std::optional<int64_t> bufferBytes(MemRefType type) {
  if (!type.hasStaticShape())
    return std::nullopt;
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

LogicalResult DeviceConstantOp::verify() { // (C139)
  auto elements = dyn_cast<RankedTensorType>(getBytes().getType());
  auto buffer = cast<MemRefType>(getBuffer().getType());
  if (!elements || !elements.getElementType().isInteger(8))
    return emitOpError() << "bytes must be a tensor of i8, but got " << getBytes().getType();
  if (!buffer.getElementType().isIntOrFloat() ||
      elements.getNumElements() != bufferBytes(buffer))
    return emitOpError() << "bytes must be as many as " << buffer << " has, but got "
                         << elements.getNumElements();
  return success();
}

LogicalResult BufferViewOp::verify() { // (C128)
  auto source = dyn_cast<MemRefType>(getSource().getType());
  auto result = dyn_cast<MemRefType>(getResult().getType());
  for (MemRefType type : {source, result})
    if (!type || !type.getLayout().isIdentity() || !type.getElementType().isIntOrFloat())
      return emitOpError() << "source and result must be row-major memrefs of numbers, but got "
                           << getSource().getType() << " and " << getResult().getType();
  int64_t offset = getOffset();
  if (offset < 0 || offset % 32)
    return emitOpError() << "offset must be a multiple of 32, but got " << offset;
  if (result.getNumDynamicDims() != (getRows() ? 1 : 0))
    return emitOpError() << "rows must be there for a result with one dynamic dimension, but got "
                         << result;
  std::optional<int64_t> has = bufferBytes(source), needs = bufferBytes(result);
  if (has && needs && (*needs > *has || offset > *has - *needs))
    return emitOpError() << "result must end within the " << *has << " bytes of the source, but has "
                         << *needs << " from " << offset << " on";
  return success();
}

//===----------------------------------------------------------------------===//
// Any role
//===----------------------------------------------------------------------===//

LogicalResult ExistingRowsOp::verify() { // (C472)
  int64_t box = getBox();
  if (box < 1)
    return emitOpError() << "box must be positive, but got " << box;
  auto argument = dyn_cast<BlockArgument>(getRows());
  bool isOfKernel = argument && isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  if (isOfKernel || matchPattern(getRows(), m_Constant()))
    return success();
  return emitOpError("rows must be an argument of the kernel or a constant, but got another value");
}

/// Called by the parser, before the types of operands are verified.
LogicalResult LoadScalarOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                             Adaptor adaptor, SmallVectorImpl<Type> &inferred) {
  const Type type = adaptor.getGlobal().getType();
  auto global = dyn_cast<GlobalType>(type);
  if (!global)
    return emitOptionalError(location, "global must be of type !pipe.global, but got ", type);
  inferred.push_back(global.getElementType());
  return success();
}

LogicalResult LoadScalarOp::verify() {
  if (int64_t rank = getGlobal().getType().getRank())
    return emitOpError() << "buffer must be a scalar, but got rank " << rank;
  return success();
}

LogicalResult pipe::verifyRows(Operation *op, GlobalType buffer, Value rows) {
  if (ShapedType::isDynamic(buffer.getShape()[0]) == bool(rows))
    return success();
  return op->emitOpError() << "expects "
                           << (rows ? "no operand 'rows' for static rows"
                                    : "operand 'rows' for dynamic rows")
                           << ", but got " << (rows ? "one" : "none");
}

LogicalResult LoadFactorsOp::verify() {
  GlobalType global = getGlobal().getType();
  Type element = getResult().getType().getElementType();
  if (global.getRank() != 2 || global.getElementType() != element)
    return emitOpError() << "buffer must have 2 dimensions of " << element << ", but got "
                         << global; // (C144)
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
    return op->emitOpError() << "must return a tile or fill a destination, but does both";
  if (!result && !dest) {
    InFlightDiagnostic diag = op->emitOpError() << "must return a tile or fill a destination";
    diag.attachNote() << "add a result, or 'into %slot signals %channel'";
    return diag;
  }
  if (!channel) {
    if (iteration)
      return op->emitOpError() << "iteration needs a channel to signal";
    return success();
  }
  if (!llvm::is_contained(cast<ChannelType>(channel.getType()).getPayload(), dest.getType()))
    return op->emitOpError() << "destination " << dest.getType()
                             << " must be a tile of the channel it signals, but got "
                             << channel.getType();
  return verifyIteration(op, channel, iteration);
}

/// The same of a load.
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

/// (C151) The blocks that load a tile together.
static LogicalResult verifyParts(LoadOp op, SharedType tile) {
  if (!op.getMulticast())
    return success();
  StringRef direction = stringifyDirection(*op.getMulticast());
  int64_t parts = op.getParts();
  if (parts < 2) {
    InFlightDiagnostic diag = op.emitOpError()
                              << "multicast along " << direction
                              << " must be in a cluster of several blocks along " << direction;
    diag.attachNote() << "the attribute known_cluster_size of the kernel gives the cluster";
    return diag;
  }
  int64_t rows = tile.getRows() / parts;
  int64_t unit = tile.isHalved()   ? tile.getRows() / 2
                 : tile.isScales() ? kScaleBlockRows
                                   : llvm::divideCeil(tile.getAlignment(),
                                                      tile.getInnerBytes() / tile.getPanels());
  if (tile.getRows() % parts || rows % unit)
    return op.emitOpError() << "each of the " << parts << " blocks along " << direction
                            << " must load a multiple of " << unit << " rows, but the tile has "
                            << tile.getRows();
  return success();
}

/// (C424) The halves of a tile of scales are boxes of one block, which both blocks of a pair may
/// load.
static LogicalResult verifyHalves(LoadOp op, SharedType tile) {
  TensorMapType map = op.getMap().getType();
  SmallVector<int64_t> box = {kScaleBlockRows, kScaleBlockColumns};
  if (op.getParts() <= 2 && map.isScales() && map.getShape() == ArrayRef(box) &&
      map.getElementType() == tile.getElementType())
    return success();
  return op.emitOpError() << "tile of two halves must have a map of 128x4 scales and at most 2 "
                             "blocks that load it, but got "
                          << map << " and " << op.getParts();
}

/// (C473) What a map with a tail is told, and by whom.
static LogicalResult verifyTail(LoadOp op) {
  TensorMapType map = op.getMap().getType();
  if (!map.getTail() && !op.getRows())
    return success();
  if (!map.getTail())
    return op.emitOpError() << "rows must be for a map with a tail, but got " << map;
  if (op.getMulticast())
    return op.emitOpError(
        "map with a tail must have tiles that one block loads, but got multicast");
  auto rows = op.getRows() ? op.getRows().getDefiningOp<ExistingRowsOp>() : ExistingRowsOp();
  if (rows && int64_t(rows.getBox()) == map.getRows())
    return success();
  InFlightDiagnostic diag = op.emitOpError()
                            << "map with a tail must come with rows from pipe.existing_rows of "
                            << map.getRows() << ", but got ";
  if (rows)
    diag << "those of " << int64_t(rows.getBox());
  else
    diag << (op.getRows() ? "others" : "none");
  return diag;
}

LogicalResult LoadOp::verify() {
  if (failed(verifyEnd(*this)) || failed(verifyTail(*this)))
    return failure();
  TensorMapType map = getMap().getType();
  SharedType tile = getTileType();
  int64_t panels = tile.getPanels();
  if (failed(verifyParts(*this, tile)))
    return failure();
  if (tile.isHalved())
    return verifyHalves(*this, tile); // (C424)
  SmallVector<int64_t> box = {tile.getRows() / getParts(), tile.getColumns() / panels};
  if (map.getShape() != ArrayRef(box) || tile.getElementType() != map.getElementType() ||
      tile.getLayout() != map.getLayout()) // (C109)
    return emitOpError() << (getParts() > 1 ? "each block's part of the tile"
                             : panels > 1   ? "panels of the tile"
                                            : "tile")
                         << " must have the box of its map, "
                         << SharedType::get(map.getShape(), map.getElementType(), map.getLayout())
                         << ", but got " << tile;
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
    diag.attachNote() << "leave 'in_bounds' out: the last row of blocks then stands in for others";
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
    return emitOpError() << "source and tile must have layout tiled_128x4, but got " << source
                         << " and " << tile;
  if (source.getElementType() != tile.getElementType()) // (C111)
    return emitOpError() << "tile must have the source's element type " << source.getElementType()
                         << ", but got " << tile.getElementType();
  if (tile.getRows() % kScaleBlockRows) // (C111)
    return emitOpError() << "tile must have a multiple of " << kScaleBlockRows << " rows, but got "
                         << tile.getRows();
  if (failed(verifyColumns(*this, getSource()))) // (C492)
    return failure();
  MatrixOp matrix = matrixOf(getSource());
  if (tile.getRows() > kScaleBlockRows && ShapedType::isDynamic(source.getShape()[0]) &&
      !(matrix && matrix.getRows())) // (C111)
    return emitOpError() << "source must have known rows for a tile of " << tile.getRows()
                         << " rows, but got " << source;
  int64_t tileBlocks = tile.getColumns() / kScaleBlockColumns;
  bool isWhole = !source.hasDynamicColumns() && source.getScaleBlockColumns() % tileBlocks == 0;
  if (!getBlocks() && !isWhole) { // (C112)
    InFlightDiagnostic diag = emitOpError()
                              << "source's blocks of columns must be a multiple of the tile's "
                              << tileBlocks << ", but got ";
    source.hasDynamicColumns() ? diag << source : diag << source.getScaleBlockColumns();
    diag.attachNote() << "give the number of existing blocks with 'blocks %n'";
    return diag;
  }
  return verifyInBounds(*this);
}

//===----------------------------------------------------------------------===//
// Engines tensor and scale_copy
//===----------------------------------------------------------------------===//

LogicalResult AccumulatorOp::verify() {
  if (getType().isScales())
    return emitOpError() << "accumulator must be a tile of f32, but got " << getType();
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

LogicalResult CopyScalesOp::verify() {
  SharedType source = getSource().getType();
  TmemType tile = getType();
  if (!source.isScales() || source.getShape() != tile.getShape() ||
      source.getElementType() != tile.getElementType() ||
      source.getLayout() != tile.getLayout()) // (C113)
    return emitOpError() << "tensor memory tile must be the scale tile of its source " << source
                         << ", but got " << tile;
  if (getSets() && (*getSets() < 1 || !getTmemColumn())) // (C113)
    return emitOpError() << "sets must be positive and have a first column, but got " << *getSets()
                         << (getTmemColumn() ? "" : " without 'at'");
  return success();
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
    return op->emitOpError() << "must either return a tile or fill a destination";
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
    return emitOpError() << "tile must be 16x16 of bf16 with layout swizzle_32B, but got " << tile;
  if (getSigns() > 0xFFFF)
    return emitOpError() << "signs must have 16 bits, but got " << getSigns();
  return success();
}

LogicalResult ReadOp::verify() {
  TmemType acc = getAccumulator().getType();
  auto vector = cast<VectorType>(getType());
  int64_t n = vector.getNumElements();
  if (!acc.isAccumulator() || vector.getElementType() != acc.getElementType())
    return emitOpError() << "vector must have the accumulator's element type, but got " << vector
                         << " from " << acc;
  int64_t columns = acc.getTmemColumns();                // of a lane
  if (!llvm::isPowerOf2_64(n) || n > 128 || columns % n) // (C117)
    return emitOpError() << "vector must have a power of two of at most 128 elements that divides "
                            "the accumulator's "
                         << columns << " columns, but got " << n;
  return success();
}

/// (C127) Random words belong to places of one output.
static LogicalResult verifyRandom(QuantizeBlocksOp op, const numerics::Recipe &recipe) {
  bool random = bool(op.getRng());
  if (bool(op.getRow()) != random || bool(op.getColumn()) != random ||
      bool(op.getMatrix()) != random)
    return op.emitOpError() << "random must come with row, column and matrix";
  if (!random)
    return success();
  GlobalType rng = op.getRng().getType();
  if (rng.getRank() != 1 || rng.getShape()[0] != 2 || !rng.getElementType().isInteger(64))
    return op.emitOpError() << "random must be the seed and offset, a buffer of 2xi64, but got "
                            << rng;
  if (op.getMatrix()->size() != 2)
    return op.emitOpError() << "matrix must be rows and columns, but got " << op.getMatrix()->size()
                            << " numbers";
  if (numerics::roundsToNearestOnly(recipe))
    return op.emitOpError() << "random must not come with a recipe that compares rounding errors";
  return success();
}

int64_t QuantizeBlocksOp::getBlockSize() {
  return numerics::blockSizeOf(getRecipe().getDecisions().format);
}

LogicalResult QuantizeBlocksOp::verify() { // (C127)
  numerics::Recipe recipe = getRecipe().getDecisions();
  if (!numerics::isPacked(recipe.format))
    return emitOpError() << "recipe must have elements of 4 bits, but got format "
                         << numerics::stringify(recipe.format);
  int64_t count = cast<VectorType>(getValue().getType()).getNumElements(), block = getBlockSize();
  if (count % block)
    return emitOpError() << "value must be blocks of " << block << " elements, but got " << count;
  auto codes = VectorType::get(count, Float4E2M1FNType::get(getContext()));
  auto scales = VectorType::get(count / block, scaleType(getContext(), formatOf(recipe.format)));
  if (getCodes().getType() != codes || getScales().getType() != scales)
    return emitOpError() << "results must be " << codes << " and " << scales << ", but got "
                         << getCodes().getType() << " and " << getScales().getType();
  bool expected = numerics::hasTensorScale(recipe);
  if (expected != bool(getAmax()))
    return emitOpError() << "recipe expects " << (expected ? "an" : "no") << " amax";
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
  if (hasRows && tile.getShape() == ArrayRef(shape) && tile.getElementType() == vector.getElementType() &&
      !tile.isScales() && tile.getInnerBytes() == swizzleWidth(tile.getLayout()))
    return success();
  return emitOpError() << "tile must be " << kMmaM
                       << " rows for each warpgroup of the role, one or two, of " << vector
                       << ", as wide as its swizzle, but got " << tile;
}

LogicalResult StoreOp::verify() {
  GlobalType dest = getDest().getType();
  auto vector = cast<VectorType>(getValue().getType());
  int64_t count = vector.getNumElements();
  if (dest.getRank() != 2 || dest.getElementType() != vector.getElementType()) // (C118)
    return emitOpError() << "destination must be a buffer of " << vector.getElementType()
                         << " and rank 2, but got " << dest;
  if (failed(verifyColumns(*this, getDest()))) // (C492)
    return failure();
  if (!llvm::isPowerOf2_64(count)) // (C118)
    return emitOpError() << "vector must have a power of two of elements, but got " << count;
  if (isa<Float4E2M1FNType>(vector.getElementType()) && count < 32) // (C118)
    return emitOpError() << "vector of f4E2M1FN must have at least 32 elements, 16 bytes, but got "
                         << count;
  if (dest.isScales() && count != kScaleBlockColumns) // (C118)
    return emitOpError() << "vector must have the " << kScaleBlockColumns
                         << " columns of a block of scales, but got " << count;
  if (getTransposed() && // (C200)
      (dest.isScales() || vector.getElementTypeBitWidth() < 8))
    return emitOpError() << "transposed must be elements of 8, 16 or 32 bits of a linear buffer, "
                            "but got "
                         << dest;
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
      return emitOpError() << "halves must be a positive multiple of 16 bytes apart, but got "
                           << *halves << " elements";
  }
  SmallVector<int64_t> shape = {boxes * map.getRows(), map.getColumns()};
  if (map.isScales() || ArrayRef(shape) != tile.getShape() || // (C441)
      tile.getElementType() != map.getElementType() ||
      tile.getLayout() != map.getLayout()) // (C161)
    return emitOpError() << "tile must have " << (boxes > 1 ? "twice " : "")
                         << "the box of its map, "
                         << SharedType::get(map.getShape(), map.getElementType(), map.getLayout())
                         << ", but got " << tile;
  return verifyStoringRole(*this);
}
