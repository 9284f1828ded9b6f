//===- PipeOps.cpp - Tile ops ---------------------------------------------===//
//
// Verifiers of the ops that move tiles and store what threads made of them. Labels such as (C114)
// refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "VerifyFragment.h"
#include "VerifyIteration.h"
#include "VerifyRows.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"
#include "fp4/ISA/StagedSums.h"
#include "fp4/ISA/WeightLayout.h"

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

/// (C144) `op` has the operand `rows` exactly when the rows of `buffer` are dynamic.
static LogicalResult verifyRows(Operation *op, GlobalType buffer, Value rows) {
  if (ShapedType::isDynamic(buffer.getShape()[0]) == bool(rows))
    return success();
  return withNote(
      op->emitOpError() << "expects "
                        << (rows ? "no operand 'rows' for static rows"
                                 : "operand 'rows' for dynamic rows")
                        << ", but got " << (rows ? "one" : "none"),
      "='rows' is the number of rows that exist, which only a dynamic buffer leaves open");
}

/// (C605) Powers of the rows of prepacked weights.
static LogicalResult verifyPowers(FetchOp op) {
  GlobalType weights = op.getGlobal().getType();
  bool areTiles = weights.getRank() == 2 && weights.getElementType().isInteger(8) &&
                  weights.getLayout() == Layout::Linear &&
                  weights.getShape()[1] == hw::byteTileBytes;
  if (!areTiles)
    return withNote(op.emitOpError() << "weights must be i8 in linear rows of " << hw::byteTileBytes
                                     << " bytes, but got " << weights,
                    "fp4.prepack makes such weights for e4m3, a row for each tile"); // (C605)
  constexpr int64_t uneven = 192; // of three warpgroups, whose tiles are two
  bool areUneven = op.getColumn() && op.getRows() && hasWarpgroups(op, uneven);
  if ((!areUneven && (op.getColumn() || op.getRows())) || op.getTransposed() || op.getOneRow())
    return withNote(
        op.emitOpError("of a tile of weights must have neither 'transposed' nor 'one_row', nor a "
                       "column and 'rows' outside of three warpgroups"),
        "write '[%tile]' alone: its rows are those of the fragments; three warpgroups may have "
        "'[%tile, %first] rows %behind'"); // (C605)
  FragmentKind kind = distributionOf(op.getResult().getType()).getKind();
  if (kind == FragmentKind::Wgmma || kind == FragmentKind::Lanes)
    return success();
  return withNote(op.emitOpError()
                      << "result must be of wgmma or lanes, but got " << op.getResult().getType(),
                  "write #pipe.distribution<wgmma>, or <lanes> of tensor memory"); // (C605)
}

void FetchOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (isOfKernel()) // nobody writes the others while the kernel runs
    effects.emplace_back(MemoryEffects::Read::get());
}

Speculation::Speculatability FetchOp::getSpeculatability() {
  return isOfKernel() ? Speculation::NotSpeculatable : Speculation::Speculatable;
}

/// (C172) Numbers that the kernel stores.
static LogicalResult verifyWritten(FetchOp op) {
  GlobalType global = op.getGlobal().getType();
  RankedTensorType tile = op.getResult().getType();
  bool areLanes = distributionOf(tile).getKind() == FragmentKind::Lanes;
  if (areLanes != bool(op.getColumn()) || areLanes == op.getFirst().has_value() ||
      areLanes != op.getWritten() || op.getRows() || op.getTransposed() || op.getOneRow())
    return withNote(op.emitOpError()
                        << "of what the kernel stores must have a column and 'written' "
                           "for lanes, 'first' for other tiles, and no other field, "
                           "but got "
                        << tile,
                    "write '[%row, %column] written' of a matrix, and '[%row] first 0' of what "
                    "threads left");
  if (!areLanes)
    return verifyWorkspace(op, global, tile, int64_t(*op.getFirst()));
  if (global.getRank() == 2 && global.getElementType() == tile.getElementType() &&
      !global.hasDynamicColumns() && global.getShape()[1] % tile.getDimSize(1) == 0)
    return success();
  return withNote(op.emitOpError() << "buffer must have 2 dimensions with whole segments of "
                                   << tile << " in a row, but got " << global,
                  "fetch tiles whose columns divide those of the buffer");
}

/// (C144) Numbers that may lie out of bounds are those of a matrix that the kernel does not store.
static LogicalResult verifyInBounds(FetchOp op) {
  bool areAnywhere =
      op.getColumn() && !op.getGlobal().getType().getElementType().isInteger(8) && !op.isOfKernel();
  if (!op.getInBounds() || areAnywhere)
    return success();
  return withNote(op.emitOpError("of powers of weights, or of what the kernel stores, must have no "
                                 "'in_bounds'"),
                  "leave 'in_bounds' out: such numbers exist");
}

LogicalResult FetchOp::verify() {
  if (failed(verifyInBounds(*this)))
    return failure();
  if (isOfKernel())
    return verifyWritten(*this);
  GlobalType global = getGlobal().getType();
  if (!getColumn() || global.getElementType().isInteger(8))
    return verifyPowers(*this);
  Type element = getResult().getType().getElementType();
  if (distributionOf(getResult().getType()).getKind() == FragmentKind::Columns) // (C144)
    return withNote(emitOpError() << "result must be of wgmma, mma_sync or lanes, but got "
                                  << getResult().getType(),
                    "load the numbers before pipe.transpose");
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

Engine AccumulatorOp::getEngine() { return getFragmentType() ? Engine::Threads : Engine::Tensor; }

LogicalResult AccumulatorOp::verify() { // (C313)
  FragmentType fragment = getFragmentType();
  if (fragment ? fragment.getElementType().isF32() : cast<TmemType>(getType()).isAccumulator())
    return success();
  return withNote(emitOpError() << "accumulator must have elements of f32, but got " << getType(),
                  fragment ? "e4m3 fragments hold weights, which pipe.dequantize makes"
                           : "tiles of scales come from pipe.copy_scales");
}

Value CopyScalesOp::getTmemTile() { return getResult(); }
Value CopyScalesOp::getStageTile() { return getSource(); }
std::optional<int64_t> CopyScalesOp::getFirstColumn() { return getTmemColumn(); }
bool CopyScalesOp::fillsTile() { return !getCopied(); }
Engine CopyScalesOp::getEngine() { return getCopied() ? Engine::Tensor : Engine::ScaleCopy; }
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

/// (C117) Columns of tensor memory.
static LogicalResult verifyTmemRead(ReadOp op, TmemType acc) {
  RankedTensorType tile = op.getResult().getType();
  if (!op.getColumn() || op.getFirst() || op.getRow())
    return withNote(op.emitOpError("column of tensor memory must be a value, without a row"),
                    "write '[%column]', where %column is an i32"); // (C117)
  if (!acc.isAccumulator() || distributionOf(tile).getKind() != FragmentKind::Lanes)
    return withNote(op.emitOpError() << "result must be lanes of an accumulator of f32, but got "
                                     << tile << " from " << acc,
                    "write tensor<128xNxf32, #pipe.distribution<lanes>>"); // (C117)
  int64_t n = tile.getDimSize(1), columns = acc.getTmemColumns();          // of a TMEM lane
  if (llvm::isPowerOf2_64(n) && n <= 128 && columns % n == 0)
    return success();
  return withNote(op.emitOpError()
                      << "result must have a power of two of at most 128 columns that divides "
                         "the accumulator's "
                      << columns << ", but got " << n,
                  "read the columns with several operations"); // (C117)
}

/// (C182) Columns of a fragment, and of mma_sync 16 rows.
static LogicalResult verifyFragmentRead(ReadOp op, FragmentType acc) {
  RankedTensorType tile = op.getResult().getType();
  if (op.getColumn() || !op.getFirst())
    return withNote(op.emitOpError() << "column of a fragment must be a number, but got "
                                     << (op.getColumn() ? "a value" : "none"),
                    "write '[32]': registers have constant numbers"); // (C182)
  if (!acc.getElementType().isF32() || distributionOf(tile).getKind() != acc.getKind())
    return withNote(op.emitOpError() << "result must have the distribution of its accumulator of "
                                        "f32, but got "
                                     << tile << " from " << acc,
                    "write the kind of the fragment in the #pipe.distribution"); // (C182)
  int64_t first = *op.getFirst(), columns = tile.getDimSize(1);
  int64_t row = op.getRow(), rows = tile.getDimSize(0), unit = 8;
  if (first >= 0 && first % unit == 0 && first <= acc.getShape()[1] - columns && row >= 0 &&
      row % rows == 0 && row <= acc.getShape()[0] - rows)
    return success();
  return withNote(op.emitOpError()
                      << "tile must be within the " << acc.getShape()[0] << "x" << acc.getShape()[1]
                      << " of the accumulator, from a multiple of " << rows << " rows and " << unit
                      << " columns on, but got " << rows << "x" << columns << " from [" << row
                      << ", " << first << "] on",
                  "read fewer columns, or from an earlier one on"); // (C182)
}

/// (C672) Sums in shared memory, which the threads of another role have staged.
static LogicalResult verifySumsTile(Operation *op, SharedType tile, uint64_t columns) {
  constexpr int64_t ofAccess = hw::sumsOfAccess, ofRow = hw::columnsOfSums;
  auto region = op->getParentOfType<RoleRegionOp>();
  int64_t threads = region ? region.getRole().getNumThreads() : tile.getColumns() / ofAccess;
  bool isOfThreads = tile.getColumns() == ofAccess * threads && threads % kMmaM == 0;
  if (tile.getElementType().isF32() && tile.getLayout() == Layout::Linear && isOfThreads &&
      columns % ofRow == 0 && columns <= uint64_t(ofRow * tile.getRows()))
    return success();
  return withNote(op->emitOpError() << "tile of sums must be linear f32 with a row for 8 columns "
                                       "and 4 elements for each thread, but got "
                                    << tile << " for " << columns << " columns",
                  "write !pipe.shared<2x1024xf32> for 16 columns and 256 threads");
}

/// (C672) Columns of sums in shared memory.
static LogicalResult verifySumsRead(ReadOp op, SharedType tile) {
  RankedTensorType value = op.getResult().getType();
  bool isNumber = !op.getColumn() && op.getFirst() && !op.getRow();
  int64_t first = isNumber ? int64_t(*op.getFirst()) : 0;
  if (isNumber && first >= 0 && first % hw::columnsOfSums == 0 &&
      distributionOf(value).getKind() == FragmentKind::Wgmma)
    return verifySumsTile(op, tile, uint64_t(first) + uint64_t(value.getDimSize(1)));
  return withNote(op.emitOpError()
                      << "column of sums in shared memory must be a number, a multiple of "
                      << hw::columnsOfSums << " from 0 on, of a result of wgmma, but got "
                      << (isNumber ? std::to_string(first) : "a value") << " of " << value,
                  "write '[8]' and tensor<64xNxf32, #pipe.distribution<wgmma>>");
}

LogicalResult ReadOp::verify() {
  if (auto tile = dyn_cast<SharedType>(getAccumulator().getType()))
    return verifySumsRead(*this, tile);
  if (auto tmem = dyn_cast<TmemType>(getAccumulator().getType()))
    return verifyTmemRead(*this, tmem);
  return verifyFragmentRead(*this, cast<FragmentType>(getAccumulator().getType()));
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

int64_t QuantizeBlocksOp::getBlockThreads() {
  int64_t elements = vectorOfThread(getValue().getType()).getNumElements();
  return std::max<int64_t>(1, getBlockSize() / elements);
}

int64_t QuantizeBlocksOp::getThreadStride() {
  constexpr int64_t warp = 32, warpgroup = 128;
  bool areColumns = distributionOf(getValue().getType()).getKind() == FragmentKind::Columns;
  return areColumns ? warp : warpgroup;
}

int64_t QuantizeBlocksOp::getStagedBytes() {
  constexpr int64_t ofMaximum = 4;
  auto region = (*this)->getParentOfType<RoleRegionOp>();
  if (!region || getBlockThreads() == 1)
    return 0;
  return region.getRole().getNumThreads() * ofMaximum;
}

/// A scale stands for a block, or for the part that a thread has of one, of the dimension along
/// which the thread has elements.
std::pair<RankedTensorType, RankedTensorType> QuantizeBlocksOp::resultTypes(RankedTensorType value,
                                                                            RecipeAttr recipe) {
  numerics::BlockFormat format = recipe.getDecisions().format;
  MLIRContext *context = value.getContext();
  bool areColumns = distributionOf(value).getKind() == FragmentKind::Columns;
  SmallVector<int64_t> blocks(value.getShape());
  blocks[areColumns ? 0 : 1] /=
      std::min<int64_t>(numerics::blockSizeOf(format), vectorOfThread(value).getNumElements());
  return {value.clone(dataType(context, formatOf(format))),
          value.clone(blocks, scaleType(context, formatOf(format)))};
}

/// (C127) Whole blocks of a thread, or the parts of one block of 128 that threads share.
static LogicalResult verifyBlocks(QuantizeBlocksOp op) {
  constexpr int64_t ofLanes = 64, ofColumns = 32, warpgroups = 2;
  RankedTensorType tile = op.getValue().getType();
  FragmentKind kind = distributionOf(tile).getKind();
  int64_t count = vectorOfThread(tile).getNumElements(), block = op.getBlockSize();
  bool isPart = numerics::hasF32Scales(op.getRecipe().getDecisions().format) &&
                count == (kind == FragmentKind::Columns ? ofColumns : ofLanes);
  if (distributionOf(tile).isFragment() || (count % block && !isPart))
    return withNote(op.emitOpError() << "value must be lanes or columns, blocks of " << block
                                     << " elements in a thread, but got " << tile,
                    "make rows of threads with pipe.gather_rows, of whole blocks");
  auto region = op->getParentOfType<RoleRegionOp>();
  if (!isPart || !region)
    return success();
  int64_t unit = op.getBlockThreads() * op.getThreadStride(),
          threads = region.getRole().getNumThreads();
  if (threads % unit == 0 && (kind == FragmentKind::Columns || unit == warpgroups * kMmaM))
    return success();
  return withNote(op.emitOpError()
                      << "role must have a multiple of " << unit
                      << " threads, which share blocks of " << block << ", but has " << threads,
                  "quantize whole blocks in a thread, or give the role more warps");
}

LogicalResult QuantizeBlocksOp::verify() { // (C127)
  numerics::Recipe recipe = getRecipe().getDecisions();
  if (failed(verifyBlocks(*this)))
    return failure();
  auto [codes, scales] = resultTypes(getValue().getType(), getRecipe());
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

/// (C672) All columns of a fragment of wgmma.
static LogicalResult verifyStagedSums(StageOp op, SharedType tile, RankedTensorType value) {
  if (distributionOf(value).getKind() == FragmentKind::Wgmma &&
      value.getDimSize(1) == hw::columnsOfSums * tile.getRows())
    return verifySumsTile(op, tile, value.getDimSize(1));
  return withNote(op.emitOpError()
                      << "tile of sums must have a row for 8 columns of wgmma, but got " << tile
                      << " and " << value,
                  "write !pipe.shared<2x1024xf32> for 16 columns and 256 threads");
}

LogicalResult StageOp::verify() {
  FailureOr<SharedType> filled = verifyFilled(*this, getResult(), getDest()); // (C160)
  if (failed(filled))
    return failure();
  SharedType tile = *filled;
  RankedTensorType value = getValue().getType();
  if (isOfSums())
    return verifyStagedSums(*this, tile, value);
  FragmentKind kind = distributionOf(value).getKind();
  if (tile.getLayout() == Layout::Tiled128x4 && kind == FragmentKind::Lanes &&
      tile.getShape() == value.getShape() && tile.getElementType() == value.getElementType())
    return success(); // scales that pipe.copy_scales takes
  bool fits =
      kind == FragmentKind::Lanes ||
      (kind == FragmentKind::Wgmma && (value.getElementTypeBitWidth() == 16 || isRoundedA(value)));
  int64_t rows = value.getDimSize(0), groups = tile.getRows() / rows;
  int64_t most = kind == FragmentKind::Lanes ? 2 : groups;
  auto region = (*this)->getParentOfType<RoleRegionOp>();
  int64_t threads = region ? region.getRole().getNumThreads() : kMmaM * groups;
  bool hasRows =
      tile.getRows() % rows == 0 && groups > 0 && groups <= most && threads == kMmaM * groups;
  constexpr int64_t unit = 16; // bytes of one access of lanes
  bool isWide = tile.getLayout() == Layout::Linear
                    ? kind == FragmentKind::Lanes && tile.getInnerBytes() % unit == 0
                    : tile.getInnerBytes() == swizzleWidth(tile.getLayout());
  if (fits && hasRows && tile.getColumns() == value.getDimSize(1) &&
      tile.getElementType() == value.getElementType() && !tile.isScales() && isWide)
    return success();
  return withNote(
      emitOpError()
          << "tile must be the rows of each warpgroup of the role of lanes, or of wgmma "
             "of 8 or 16 bits, as wide as its swizzle or of lanes a multiple of 16 bytes, "
             "but got "
          << tile << " and " << value,
      "write 128 rows of lanes or 64 of wgmma for each warpgroup, and their columns"); // (C325)
}
