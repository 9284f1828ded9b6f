//===- PipeReduction.cpp - Tables of tiles, and reductions ---------------------===//

#include "VerifyFragment.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

LogicalResult LoadEntryOp::verify() { // (C170)
  GlobalType table = getTable().getType();
  if (bool isScalar = table.getRank() == 0; isScalar || !getIndex()) {
    if (isScalar && !getIndex() && !getOfWarp() && getType() == table.getElementType())
      return success();
    return withNote(emitOpError() << "of a number must have a buffer of no dimensions with its "
                                     "element type and no index, but got "
                                  << table << " for " << getType(),
                    "pass a !pipe.global<T>, or write '[%index]' for a row of a table");
  }
  auto entry = dyn_cast<VectorType>(getType());
  if (!entry)
    return withNote(emitOpError() << "of a row must give a vector, but got " << getType(),
                    "extract the number from the vector of the row");
  int64_t columns = table.getRank() == 2 ? table.getShape()[1] : 1;
  if (table.getElementType() != entry.getElementType() || columns != entry.getNumElements() ||
      !llvm::is_contained({1, 2, 4}, columns))
    return withNote(emitOpError() << "table must have rows of 1, 2 or 4 elements like " << entry
                                  << ", but got " << table,
                    "let the vector have as many elements as a row, of the same type");
  return success();
}

LogicalResult CountPartialOp::verify() {
  GlobalType counters = getCounters().getType();
  if (counters.getRank() != 2 || !llvm::is_contained({4, 8}, counters.getShape()[1]) ||
      !counters.getElementType().isInteger(32))
    return withNote(
        emitOpError() << "counters must be a buffer of i32 with 4 or 8 columns, but got "
                      << counters,
        "allocate rows of 4 x i32, or of 8 for roles of 8 warps"); // (C171)
  if (getParts().has_value() == static_cast<bool>(getDynamicParts()))
    return withNote(emitOpError() << "parts must be a constant or a value, but got "
                                  << (getParts() ? "both" : "neither"),
                    "write 'of N' or 'of %n', and not both"); // (C171)
  if (getParts() && int64_t(*getParts()) < 2)
    return withNote(emitOpError() << "parts must be at least 2, but got " << int64_t(*getParts()),
                    "one part has nothing to reduce: leave the operation out"); // (C171)
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions in a cluster
//===----------------------------------------------------------------------===//

int64_t ReduceOp::getNumReduced() {
  return int64_t(clusterOf(*this).m) / (isOfTmem() && getTmemType().getPair() ? 2 : 1);
}

int64_t ReduceOp::getPiecesOfBlock() { return llvm::divideCeil(getNumPieces(), getNumReduced()); }

int64_t ReduceOp::getColumnsOfGroup() {
  return getTmemType().getColumns() / std::max<int64_t>(1, groupsOfRole(*this));
}

int64_t ReduceOp::getNumAdding() {
  int64_t parts =
      isOfTmem() ? int64_t(llvm::divideCeil(getColumnsOfGroup(), getWidth())) : getNumPieces();
  return std::min(parts, getNumReduced());
}

int64_t ReduceOp::getPieceBytes() {
  if (isOfTmem())
    return std::max<int64_t>(1, groupsOfRole(*this)) * kMmaM * getWidth() * 4;
  auto region = (*this)->getParentOfType<RoleRegionOp>();
  int64_t warps = region ? getNumReducing(region.getRole().getNumWarps()) : 0;
  constexpr int64_t threadsOfWarp = 32;
  // a thread has half of the elements of a row pair
  return warps * threadsOfWarp * int64_t(*getColumns()) / 2 * 4;
}

int64_t ReduceOp::getNumReducing(int64_t all) {
  constexpr int64_t rowsOfWarp = 16;
  return getRows() ? llvm::divideCeil(int64_t(*getRows()), rowsOfWarp) : all;
}

int64_t ReduceOp::getReductionBytes() {
  int64_t pieces = isOfTmem() ? 1 : getPiecesOfBlock() * int64_t(getAccumulators().size());
  return (getNumReduced() - 1) * pieces * getPieceBytes() +
         ClusterReductionOpInterface::kReductionBarrierBytes;
}

/// (C669) The rows that exist.
static LogicalResult verifyReducedRows(ReduceOp op) {
  constexpr int64_t rowsOfGroup = 64;
  auto region = op->getParentOfType<RoleRegionOp>();
  int64_t rows = op.getRows().value_or(rowsOfGroup);
  if (rows > 0 && rows <= rowsOfGroup &&
      (!op.getRows() || !region || region.getRole().isOneWarpgroup()))
    return success();
  return withNote(op.emitOpError()
                      << "rows must be 1 to 64, of a role of one warpgroup, but got " << rows,
                  "leave 'rows' out, and all rows are reduced"); // (C669)
}

/// Accumulators in registers, which get the sums.
static LogicalResult verifyReducedFragments(ReduceOp op) {
  if (!op.getColumns() || op.getSums())
    return withNote(op.emitOpError("of fragments must have columns and no result"), // (C260)
                    "write 'by 8': a CTA adds so many columns at a time, where they are");
  FragmentType type = op.getFragmentType();
  if (failed(verifySums(op, "accumulator", type))) // (C260)
    return failure();
  int64_t columns = *op.getColumns();
  if (columns <= 0 || columns % 8 || type.getShape()[1] % columns)
    return withNote(op.emitOpError()
                        << "columns must be a multiple of 8 that divides the " << type.getShape()[1]
                        << " columns of the accumulator, but got " << columns,
                    "take fewer columns for each piece"); // (C260)
  return verifyReducedRows(op);
}

/// An accumulator in tensor memory, whose sums are a result.
static LogicalResult verifyReducedTmem(ReduceOp op) {
  TmemType acc = op.getTmemType();
  if (!acc.isAccumulator() || acc.isOfHalves())
    return withNote(op.emitOpError()
                        << "accumulator must have 128 rows of f32, or 256 of a pair, but got "
                        << acc,
                    "take an accumulator of 128 TMEM lanes for each CTA"); // (C520)
  if (op.getSums() && op.getAccumulators().size() == 1 && !op.getColumns() && !op.getMaximum() &&
      !op.getRows())
    return success();
  return withNote(op.emitOpError("of tensor memory must have one accumulator and a result, and "
                                 "neither 'by', 'maximum' nor 'rows'"), // (C520)
                  "the columns of the result are those that a CTA adds");
}

/// (C522) The columns that a CTA adds.
static LogicalResult verifyWidth(ReduceOp op) {
  constexpr int64_t unit = 4, most = 128;
  int64_t groups = groupsOfRole(op) ? 1 : 2; // before there are roles, they may have two
  int64_t joined = op.getNumReduced(), width = op.getWidth(), columns = op.getColumnsOfGroup();
  bool areLanes = distributionOf(op.getSums().getType()).getKind() == FragmentKind::Lanes;
  if (areLanes && width % unit == 0 && width <= most && width * joined * groups >= columns)
    return success();
  return withNote(op.emitOpError()
                      << "result must be lanes of a multiple of " << unit << " columns, at most "
                      << most << ", of which " << joined << " have the " << columns
                      << " columns of a warpgroup, but got " << op.getSums().getType(),
                  "divide the columns among the CTAs, rounded up to 4"); // (C522)
}

LogicalResult ReduceOp::verify() {
  if (getAccumulators().empty() || !llvm::all_equal(getAccumulators().getTypes()))
    return withNote(
        emitOpError() << "accumulators must be one or several of one type, but got "
                      << getAccumulators().getTypes(),
        "reduce accumulators of different types with an operation for each type"); // (C260)
  if (failed(isOfTmem() ? verifyReducedTmem(*this) : verifyReducedFragments(*this)))
    return failure();
  bool ofPair = isOfTmem() && getTmemType().getPair();
  if (getNumReduced() < 2)
    return withNote(emitOpError() << "expects a cluster of at least 2 "
                                  << (ofPair ? "pairs" : "CTAs") << " along m, but got "
                                  << getNumReduced(),
                    ofPair ? "a cluster of two pairs has 4 CTAs along m"
                           : "write known_cluster_size = array<i32: 2, 1, 1> at the kernel, "
                             "or pipe.count_partial where CTAs share no memory"); // (C261)
  return isOfTmem() ? verifyWidth(*this) : success();
}
