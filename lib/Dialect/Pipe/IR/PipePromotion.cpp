//===- PipePromotion.cpp - MMAs whose sums are promoted to fp32 -----------===//
//
// Verifiers. Labels such as (C220) refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "VerifyFragment.h"
#include "VerifyRows.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"
#include "fp4/Dialect/Pipe/IR/PromotedColumns.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Columns of the smallest fragment, and the largest.
static constexpr int64_t kFewestColumns = 8, kMostColumns = 256;

int64_t fp4::pipe::promotedBlocks(int64_t columns) {
  return promotedBlocksAt(columns, columns - 1).second + 1;
}

std::pair<int64_t, int64_t> fp4::pipe::promotedBlocksAt(int64_t columns, int64_t column) {
  int64_t lastFirst = kPromotedBlock - promotedStep(columns);
  return {column / kPromotedBlock, (lastFirst + column) / kPromotedBlock};
}

LogicalResult fp4::pipe::verifySums(Operation *op, StringRef name, FragmentType type) {
  if (type.getKind() == FragmentKind::Wgmma && type.getShape()[0] == kFragmentRows &&
      type.getElementType().isF32())
    return success();
  return withNote(op->emitOpError() << name << " must be an f32 fragment of wgmma with "
                                    << kFragmentRows << " rows, but got " << type,
                  "write a !pipe.fragment<64xNxf32, wgmma> for each 64 rows");
}

LogicalResult fp4::pipe::requireLanes(Operation *op, FragmentType fragment) {
  if (fragment.getKind() == FragmentKind::Lanes)
    return success();
  return withNote(op->emitOpError()
                      << "accumulator must be a fragment of lanes, but got " << fragment,
                  "write !pipe.fragment<128xNxf32, lanes>");
}

int64_t fp4::pipe::groupsOfRole(Operation *op) {
  auto region = op->getParentOfType<RoleRegionOp>();
  return region ? region.getRole().getNumThreads() / kGroupThreads : 0;
}

/// A scale for each scale block of k in either.
static LogicalResult verifySameBlocks(Operation *op, Type a, Type b, bool areEqual) {
  if (areEqual)
    return success();
  return withNote(op->emitOpError()
                      << "a and b must have as many columns, a scale for each block of k, "
                      << "but got " << a << " and " << b,
                  "both operands have a scale for each 128 elements of k");
}

LogicalResult fp4::pipe::verifyScaleBuffers(Operation *op, Value bufferA, Value bufferB,
                                            bool hasRows) {
  auto a = cast<GlobalType>(bufferA.getType()), b = cast<GlobalType>(bufferB.getType());
  for (auto [name, type] : {std::pair("a", a), {"b", b}})
    if (type.getRank() != 2 || !type.getElementType().isF32())
      return withNote(op->emitOpError()
                          << name << " must have 2 dimensions of f32, but got " << type,
                      "pass the scales as an f32 matrix, a column for each block of k");
  if (failed(verifySameBlocks(op, a, b, a.getShape()[1] == b.getShape()[1])) ||
      failed(verifyColumns(op, bufferA)) || failed(verifyColumns(op, bufferB))) // (C492)
    return failure();
  ViewOp matrix = matrixOf(bufferB);
  if (ShapedType::isDynamic(b.getShape()[0]) && !(matrix && matrix.getRows()))
    return withNote(op->emitOpError() << "b must have known rows, but got " << b,
                    "take a buffer with static rows, or pipe.view with 'rows'");
  if (ShapedType::isDynamic(a.getShape()[0]) == hasRows)
    return success();
  return withNote(
      op->emitOpError() << "expects "
                        << (hasRows ? "no operand 'rows' for static rows"
                                    : "operand 'rows' for dynamic rows")
                        << ", but got " << (hasRows ? "one" : "none"),
      "='rows' is the number of rows that exist, which only a dynamic buffer leaves open");
}

LogicalResult fp4::pipe::verifyScaleTiles(Operation *op, SharedType a, SharedType b) {
  for (auto [name, tile] : {std::pair("a", a), {"b", b}})
    if (!tile.getElementType().isF32() || swizzleWidth(tile.getLayout()))
      return withNote(op->emitOpError()
                          << name << " must be f32 without a swizzle, but got " << tile,
                      "write !pipe.shared<ROWSxCOLUMNSxf32>");
  return verifySameBlocks(op, a, b, a.getColumns() == b.getColumns());
}

bool fp4::pipe::hasRowsOfRole(Operation *op, int64_t row, int64_t rows) {
  int64_t most = std::max(groupsOfRole(op), int64_t(1)) * kFragmentRows;
  return row >= 0 && row % kFragmentRows == 0 && rows - row >= most;
}

/// The vector of scales that go with `columns` columns.
static LogicalResult verifyScales(Operation *op, Type type, int64_t columns) {
  int64_t expected = 2 + promotedBlocks(columns);
  if (cast<VectorType>(type).getNumElements() == expected)
    return success();
  return withNote(
      op->emitOpError() << "scales must be " << expected << " numbers for " << columns
                        << " columns, but got " << type,
      "a vector has the scales of two rows of a and those of the blocks of columns of b");
}

/// Scales in global memory.
static LogicalResult verifyBuffers(ScalesOp op) {
  if (failed(verifyScaleBuffers(op, op.getA(), op.getB(), bool(op.getRows())))) // (C221)
    return failure();
  int64_t columns = *op.getColumns();
  if (!op.isOfFragment() && (columns < 1 || kPromotedBlock % columns))
    return withNote(
        op.emitOpError() << "columns must divide " << kPromotedBlock << ", but got " << columns,
        "a segment of columns has one scale of b: take a power of two up to 128"); // (C375)
  if (!op.isOfFragment())
    return success();
  if (columns < kFewestColumns || columns > kMostColumns || columns % kFewestColumns)
    return withNote(op.emitOpError() << "columns must be a multiple of " << kFewestColumns
                                     << " up to " << kMostColumns << ", but got " << columns,
                    "multiply wider tiles with several operations"); // (C221)
  return verifyScales(op, op.getResult().getType(), columns);        // (C221)
}

/// (C376) Scales of TMEM lanes.
static LogicalResult verifyTilesOfLanes(ScalesOp op) {
  SharedType a = op.getTileA(), b = op.getTileB();
  if (a.getRows() != kMmaM || *op.getFirst())
    return withNote(op.emitOpError() << "a must have " << kMmaM << " rows from 0 on, but got " << a
                                     << " from " << int64_t(*op.getFirst()) << " on",
                    "load the scales of all 128 rows"); // (C376)
  for (auto [name, tile] : {std::pair("a", a), {"b", b}})
    if (tile.getLayout() != Layout::Linear)
      return withNote(op.emitOpError() << name << " must have rows that follow one another beside "
                                       << "a number, but got " << tile,
                      "leave the layout out"); // (C324)
  int64_t groups = groupsOfRole(op);
  if (b.getRows() == 1 || groups == 0 || b.getRows() == groups)
    return success();
  return withNote(op.emitOpError() << "b must have one row, or one for each of the " << groups
                                   << " warpgroups of its role, but got " << b,
                  "load one row of scales for all columns, or a row for each warpgroup"); // (C376)
}

/// (C324) Rows in sets, of which threads know the first one.
static LogicalResult verifyRowSets(ScalesOp op) {
  Layout a = op.getTileA().getLayout(), b = op.getTileB().getLayout();
  bool areInSets = rowSets(a).count() > 1;
  if (a == b && areInSets == bool(op.getFromA()))
    return success();
  return withNote(op.emitOpError()
                      << "a and b must be of one layout, with 'from' for rows_P_mod_4, " // (C324)
                      << "but got " << op.getTileA() << " and " << op.getTileB()
                      << (op.getFromA() ? " with 'from'" : " without 'from'"),
                  "write 'from %row, %band, %block' for layout rows_P_mod_4, and only for it");
}

/// Scales in shared memory.
static LogicalResult verifyTiles(ScalesOp op) {
  SharedType a = op.getTileA(), b = op.getTileB();
  if (failed(verifyScaleTiles(op, a, b)) || failed(verifyRowSets(op))) // (C324)
    return failure();
  if (!op.isOfFragment())
    return verifyTilesOfLanes(op);
  int64_t row = *op.getFirst(), expected = 2 + b.getRows();
  if (!hasRowsOfRole(op, row, a.getRows()))
    return withNote(op.emitOpError() << "a must have " << kFragmentRows
                                     << " rows for each warpgroup of its role, "
                                     << "from a multiple of " << kFragmentRows << " on, but got "
                                     << a.getRows() << " rows, from " << row << " on",
                    "load a higher tile, or begin at another multiple of 64 rows"); // (C324)
  int64_t found = cast<VectorType>(op.getResult().getType()).getNumElements();
  bool isInSets = rowSets(b.getLayout()).count() > 1; // has rows that nobody reads
  if (isInSets ? found < 3 || found > expected : found != expected)
    return withNote(op.emitOpError() << "scales must be " << (isInSets ? "3 to " : "") << expected
                                     << " numbers, two and one for each row of b, "
                                     << "but got " << op.getResult().getType(),
                    "a vector has the scales of two rows of a and of every row of b"); // (C324)
  return success();
}

/// (C341) Powers of rows, beside which columns have scales of 1.
static LogicalResult verifyPowers(ScalesOp op) {
  SharedType powers = op.getTileA();
  if (!powers.getElementType().isF32() || powers.getLayout() != Layout::Linear || op.getFromA() ||
      !hasRowsOfRole(op, *op.getFirst(), powers.getColumns()))
    return withNote(op.emitOpError()
                        << "powers must be f32 without a swizzle, with at least " << kFragmentRows
                        << " columns for each warpgroup of its role, but got " << powers,
                    "load the powers of all rows of the role"); // (C341)
  auto vector = dyn_cast<VectorType>(op.getResult().getType());
  if (vector && vector.getNumElements() == 3)
    return success();
  return withNote(op.emitOpError()
                      << "scales must be 3 numbers, but got " << op.getResult().getType(),
                  "write vector<3xf32>"); // (C341)
}

/// (C324) The numbers behind 'from' come together.
static LogicalResult verifyFrom(ScalesOp op) {
  int64_t given = bool(op.getFromA()) + bool(op.getFromB()) + bool(op.getFromBlock());
  if (given == 0 || given == 3)
    return success();
  return withNote(op.emitOpError()
                      << "from must have a row, a band and a block, but got " << given << " of 3",
                  "write 'from %row, %band, %block', or nothing of it");
}

LogicalResult ScalesOp::verify() {
  if (failed(verifyFrom(*this))) // (C324)
    return failure();
  bool ofBuffers = getRow() && getColumn() && getColumns() && !getFirst() && !getFromA() &&
                   getB() && isa<GlobalType>(getB().getType());
  bool ofTiles = !getRow() && !getColumn() && !getColumns() && !getRows() && getFirst() &&
                 !(getB() && isa<GlobalType>(getB().getType()));
  if (!(isOfTiles() ? ofTiles : ofBuffers))
    return withNote(
        emitOpError() << "expects two buffers with a row and a column that are values, or tiles "
                         "with a row that is a number, but got other operands with "
                      << getA().getType(), // (C221), (C324)
        "write '%a[%row], %b[%column of 128]' of buffers, and '%a[0], %b' of tiles");
  if (!isOfTiles())
    return verifyBuffers(*this);
  return getB() ? verifyTiles(*this) : verifyPowers(*this);
}

void ScalesOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (isOfTiles()) // nobody writes buffers of scales while the kernel runs
    effects.emplace_back(MemoryEffects::Read::get());
}

Speculation::Speculatability ScalesOp::getSpeculatability() {
  return isOfTiles() ? Speculation::NotSpeculatable : Speculation::Speculatable;
}

/// (C377) Sums in tensor memory, of which each warpgroup adds a part of the columns.
static LogicalResult verifyLanePromotion(PromoteOp op) {
  FragmentType acc = op.getAccumulator().getType();
  if (failed(requireLanes(op, acc))) // (C377)
    return failure();
  auto sums = dyn_cast<TmemType>(op.getSums().getType());
  int64_t groups = groupsOfRole(op), columns = acc.getShape()[1];
  bool isOfLanes = sums && sums.isAccumulator() && !op.getColumn();
  if (isOfLanes &&
      (groups ? sums.getColumns() == groups * columns : sums.getColumns() % columns == 0))
    return success();
  return withNote(
      op.emitOpError() << "sums must be in tensor memory and have the " << columns
                       << " columns of the accumulator for each warpgroup of the role, but got "
                       << op.getSums().getType(),
      "let the sums have the columns of all warpgroups side by side, and leave 'at' out"); // (C377)
}

LogicalResult PromoteOp::verify() {
  if (!isOfFragment())
    return verifyLanePromotion(*this);
  FragmentType acc = getAccumulator().getType();
  if (getSums().getType() != acc || !getColumn())
    return withNote(emitOpError() << "sums must be " << acc << " with a column, but got "
                                  << getSums().getType() << (getColumn() ? "" : " without one"),
                    "write 'at %column', and sums of the type of the accumulator"); // (C222)
  if (failed(verifySums(*this, "sums", acc)))                                       // (C222)
    return failure();
  return verifyScales(*this, getScales().getType(), acc.getShape()[1]); // (C222)
}
