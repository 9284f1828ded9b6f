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
