//===- PipeResults.cpp - Results that epilogues derive --------------------===//
//
// Verifiers of the ops of PipeResultOps.td. Labels such as (C211) refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "VerifyFragment.h"
#include "VerifyRows.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Threads of a warp: rows, and columns, of the square that it transposes.
static constexpr int64_t kWarp = 32;

LogicalResult FoldAmaxOp::verify() { // (C211)
  GlobalType dest = getDest().getType();
  if (dest.getRank() == 0 && dest.getElementType().isF32())
    return success();
  return withNote(emitOpError() << "destination must be a scalar f32, but got " << dest,
                  "pass a buffer of type !pipe.global<f32>, which is zero before the kernel");
}

LogicalResult pipe::AmaxOp::verify() { // (C570)
  DistributionAttr distribution = distributionOf(getValue().getType());
  if (distribution.isFragment() ||
      (distribution.getKind() == FragmentKind::Lanes && !getTransposed()))
    return success();
  return withNote(emitOpError() << "value must be lanes, or of wgmma or mma_sync where it is "
                                   "transposed, but got "
                                << getValue().getType(),
                  "take the maximum of what the threads read, in their own rows");
}

LogicalResult TransposeOp::verify() { // (C212)
  RankedTensorType tile = getValue().getType();
  auto columns = DistributionAttr::get(getContext(), FragmentKind::Columns);
  if (distributionOf(tile).getKind() == FragmentKind::Lanes && tile.getDimSize(1) == kWarp &&
      getResult().getType() == tile.cloneWithEncoding(columns))
    return success();
  return withNote(
      emitOpError()
          << "value must be lanes with a column for each of the 32 threads of a warp, and "
             "the result its columns, but got "
          << tile << " and " << getResult().getType(),
      "read 32 columns of the accumulator");
}

//===----------------------------------------------------------------------===//
// Registers of a thread
//===----------------------------------------------------------------------===//

LogicalResult ElementsOp::verify() {
  Type source = getSource().getType();
  bool takesTile = isa<RankedTensorType>(source);
  auto tile = dyn_cast<RankedTensorType>(takesTile ? source : getType());
  Type vector = takesTile ? getType() : source;
  if (tile && (vector == vectorOfThread(tile) ||
               (isRoundedA(tile) && vector == wordsOfThread(tile)))) // takeVectors
    return success();
  if (!tile)
    return withNote(emitOpError() << "expects a tile and a vector, but got " << source << " and "
                                  << getType(), // (C654)
                    "write a tensor with a #pipe.distribution on one side");
  return withNote(emitOpError() << "vector must be " << vectorOfThread(tile)
                                << ", the elements of a thread of " << tile << ", but got "
                                << vector,
                  "divide the elements of the tile by the threads of its distribution"); // (C654)
}

OpFoldResult ElementsOp::fold(FoldAdaptor) {
  auto other = getSource().getDefiningOp<ElementsOp>();
  return other && other.getSource().getType() == getType() ? other.getSource() : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

bool StoreOp::isOfPartialWord() {
  return isOf(FragmentKind::Lanes) && getBufferType().isScales() &&
         getThreadType().getNumElements() < kScaleBlockColumns;
}

int64_t StoreOp::getStagedBytes() {
  auto region = (*this)->getParentOfType<RoleRegionOp>();
  if (!getStaged() || !region)
    return 0;
  return region.getRole().getNumThreads() * getThreadType().getNumElements() * 2;
}

/// Each warp reduces by itself, so that not all of a warpgroup may be the last.
static bool isOfLastToReduce(Operation *op) {
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (llvm::any_of(parent->getOperands(),
                     [](Value value) { return value.getDefiningOp<CountPartialOp>(); }))
      return true;
  return false;
}

/// (C333)
static LogicalResult verifyStaged(StoreOp op) {
  if (isOfLastToReduce(op))
    return withNote(
        op.emitOpError("staged must be executed by whole warpgroups, but is by the warps that "
                       "are the last to arrive"),
        "leave 'staged' out where reduced results are stored"); // (C333)
  constexpr int64_t warpgroup = 128, together = 8;
  RankedTensorType type = op.getElementsType();
  auto region = op->getParentOfType<RoleRegionOp>();
  bool hasGroups = !region || (region.getRole().getNumThreads() % warpgroup == 0 &&
                               region.getRole().getFirstWarp() % 4 == 0);
  if (op.getTransposed() && op.isOf(FragmentKind::Wgmma) && hasGroups &&
      type.getElementTypeBitWidth() == 16 && type.getDimSize(1) % (2 * together) == 0 &&
      op.getBufferType().getShape()[1] % together == 0)
    return success();
  return withNote(op.emitOpError()
                      << "staged must be transposed, in whole warpgroups, of wgmma, a multiple of "
                      << 2 * together << " columns of 16 bits and of a buffer with a multiple of "
                      << together << " columns, but got " << type << " and " << op.getBufferType(),
                  "leave 'staged' out, and each thread stores what it has"); // (C333)
}

/// Rows of threads, which go to as many columns.
static LogicalResult verifyLanes(StoreOp op) {
  GlobalType dest = op.getBufferType();
  Type element = dest.getElementType();
  if (!isa<Float32Type, BFloat16Type, Float16Type, Float8E8M0FNUType, Float4E2M1FNType>(element) &&
      !isByteElementType(element)) // (C118)
    return withNote(op.emitOpError() << "value must have elements of f32, bf16, f16, f8E8M0FNU or "
                                        "the elements of a format, but got "
                                     << element,
                    "convert the elements before they are stored");
  int64_t count = op.getThreadType().getNumElements();
  if (!llvm::isPowerOf2_64(count)) // (C118)
    return withNote(op.emitOpError()
                        << "value must have a power of two of columns, but got " << count,
                    "store the rest with operations of their own");
  if (isa<Float4E2M1FNType>(element) && count < kWarp) // (C118)
    return withNote(op.emitOpError()
                        << "value of f4E2M1FN must have at least 32 columns, 16 bytes, but got "
                        << count,
                    "store at least 16 bytes at a time: codes of narrower tiles share them");
  if (dest.isScales() && count > kScaleBlockColumns) // (C118)
    return withNote(op.emitOpError() << "value must have at most the " << kScaleBlockColumns
                                     << " columns of a scale tile, but got " << count,
                    "store the columns of each scale tile with an operation of its own");
  if (op.getTransposed() && // (C200)
      (dest.isScales() || element.getIntOrFloatBitWidth() < 8))
    return withNote(op.emitOpError()
                        << "transposed must be elements of 8, 16 or 32 bits of a linear buffer, "
                           "but got "
                        << dest,
                    "leave 'transposed' out for codes and scales");
  return success();
}

/// (C213) Codes or scales that a thread made of its column.
static LogicalResult verifyColumnsOfThreads(StoreOp op) {
  GlobalType dest = op.getBufferType();
  VectorType vector = op.getThreadType();
  int64_t count = vector.getNumElements(), bits = vector.getElementTypeBitWidth();
  bool isCodes = bits <= 8 && count == kWarp, isScales = bits == 8 && count <= 2,
       isShared = vector.getElementType().isF32() && count == 1;
  if (!op.getTransposed() || (!isCodes && !isScales && !isShared))
    return withNote(op.emitOpError() << "value of columns must be transposed, 32 codes, 1 or 2 "
                                        "scales of a thread or an f32, but got "
                                     << op.getElementsType(),
                    "quantize 32 elements of a column at a time"); // (C213)
  ViewOp matrix = matrixOf(op.getDest());
  bool knowsRows = !ShapedType::isDynamic(dest.getShape().front()) || (matrix && matrix.getRows());
  if ((knowsRows || op.getRows()) && !dest.hasDynamicColumns())
    return success();
  return withNote(op.emitOpError() << "destination must have static columns, and rows that are "
                                      "static, of a pipe.view or said, but got "
                                   << dest,
                  "say the rows with pipe.view, or add 'rows %m'"); // (C213)
}

/// (C184) Parts of an accumulator of an instruction.
static LogicalResult verifyFragment(StoreOp op) {
  GlobalType dest = op.getBufferType();
  if (areRowNumbers(op.getValue().getType()) && op.getTransposed())
    return withNote(op.emitOpError() << "value of one column must not be transposed, but is: "
                                     << op.getValue().getType(),
                    "leave 'transposed' out: each row has one number"); // (C184)
  if (!dest.isScales() &&
      isa<Float32Type, BFloat16Type, Float16Type, Float8E4M3FNType>(dest.getElementType()))
    return success();
  return withNote(op.emitOpError() << "buffer must be linear, of f32, bf16, f16 or f8E4M3FN, for a "
                                      "tile of wgmma or mma_sync, but got "
                                   << dest,
                  "make rows of threads with pipe.gather_rows, and quantize these"); // (C184)
}

/// (C668) Rows that are heads of tokens.
static LogicalResult verifyHeads(StoreOp op) {
  ArrayRef<int64_t> heads = op.getHeads().value_or(ArrayRef<int64_t>());
  constexpr int64_t rowsOfGroup = 64;
  bool areLanes = op.isOf(FragmentKind::Lanes);
  int64_t together = areLanes                                 ? op.getElementsType().getDimSize(1)
                     : areRowNumbers(op.getValue().getType()) ? 1
                                                              : 8;
  if (heads.size() == 3 && (areLanes || op.isOf(FragmentKind::Wgmma)) && !op.getTransposed() &&
      llvm::isPowerOf2_64(uint64_t(heads[0])) && heads[0] <= rowsOfGroup && heads[1] > 0 &&
      heads[1] <= heads[0] && heads[2] > 0 && heads[2] % together == 0)
    return success();
  return withNote(op.emitOpError()
                      << "heads must be [T, H, E] of a tile of wgmma or lanes that is not "
                         "transposed, T a power of two up to 64, 1 <= H <= T and E a "
                         "multiple of "
                      << together << ", but got [" << heads << "] and " << op.getValue().getType(),
                  "round T up, and say in H how many heads exist"); // (C668)
}

/// (C162) The role hands the stage back when its copies have read it.
static LogicalResult verifyStoringRole(StoreOp op) {
  auto region = op->getParentOfType<RoleRegionOp>();
  bool waits = isa_and_nonnull<ConsumerWaitOp>(op.getValue().getDefiningOp());
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

/// (C161) A tile of shared memory, which TMA stores.
static LogicalResult verifyTile(StoreOp op) {
  auto map = dyn_cast<TensorMapType>(op.getDest().getType());
  SharedType tile = op.getTileType();
  if (!map || !op.getColumn() || op.getRows() || op.getHeads() || op.getTransposed() ||
      op.getStaged())
    return withNote(
        op.emitOpError("of a tile in shared memory must have a map, a row and a column"),
        "leave out what threads say of their elements"); // (C161)
  int64_t boxes = 1, bits = map.getElementType().getIntOrFloatBitWidth();
  if (std::optional<int64_t> halves = op.getHalves()) {
    boxes = 2;
    if (*halves < 1 || *halves * bits % 128) // (C441)
      return withNote(op.emitOpError()
                          << "halves must be a positive multiple of 16 bytes apart, but got "
                          << *halves << " elements",
                      "write the distance in elements, a multiple of 16 bytes");
  }
  SmallVector<int64_t> shape = {boxes * map.getRows(), map.getColumns()};
  if (map.isScales() || ArrayRef(shape) != tile.getShape() || // (C441)
      tile.getElementType() != map.getElementType() ||
      tile.getLayout() != map.getLayout()) // (C161)
    return withNote(op.emitOpError()
                        << "tile must have " << (boxes > 1 ? "twice " : "")
                        << "the box of its map, "
                        << SharedType::get(map.getShape(), map.getElementType(), map.getLayout())
                        << ", but got " << tile,
                    "stage the tile in the box, element type and layout of the map");
  return verifyStoringRole(op);
}

Engine StoreOp::getEngine() { return getTileType() ? Engine::BulkStore : Engine::Threads; }

bool StoreOp::isOfFragment() { return isOf(FragmentKind::Wgmma) || isOf(FragmentKind::MmaSync); }

bool StoreOp::isOfLines() { return isOf(FragmentKind::Lanes) || isOf(FragmentKind::Columns); }

/// (C118) Elements of threads in a matrix.
static LogicalResult verifyElements(StoreOp op) {
  GlobalType dest = op.getBufferType();
  Type element = op.getElementsType().getElementType();
  if (dest.getRank() != 2 || dest.getElementType() != element) // (C118)
    return withNote(op.emitOpError() << "destination must be a buffer of " << element
                                     << " and rank 2, but got " << dest,
                    "convert the value to the elements of the buffer first");
  if (op.getStaged() && failed(verifyStaged(op)))
    return failure();
  if (op.getHeads() && failed(verifyHeads(op)))
    return failure();
  if (op.isOf(FragmentKind::Columns))
    return verifyColumnsOfThreads(op);
  if (failed(verifyColumns(op, op.getDest()))) // (C492)
    return failure();
  if (failed(op.isOfFragment() ? verifyFragment(op) : verifyLanes(op)))
    return failure();
  if (op.getRows() || !ShapedType::isDynamic(dest.getShape()[0]))
    return success();
  InFlightDiagnostic diag = op.emitOpError()
                            << "must bound the rows of a destination with dynamic rows"; // (C118)
  diag.attachNote() << "add 'rows %m'";
  return diag;
}

LogicalResult StoreOp::verify() {
  if (getTileType())
    return verifyTile(*this);
  auto buffer = dyn_cast<GlobalType>(getDest().getType());
  if (!buffer || getHalves() || bool(getColumn()) == getFirst().has_value())
    return withNote(emitOpError("of threads must have a buffer, and a column that is a value or a "
                                "number"), // (C118)
                    "stage the elements in shared memory, and store the tile with a map");
  if (!getFirst())
    return verifyElements(*this);
  if (getRows() || getHeads() || getTransposed() || getStaged())
    return withNote(emitOpError("to a workspace must have a row and a column alone"), // (C192)
                    "write '[%row, 0]': only threads of other CTAs fetch the elements");
  return verifyWorkspace(*this, buffer, getElementsType(), int64_t(*getFirst()));
}
