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
  VectorType entry = getResult().getType();
  int64_t columns = table.getRank() == 2 ? table.getShape()[1] : 1;
  if (table.getRank() < 1 || table.getElementType() != entry.getElementType() ||
      columns != entry.getNumElements() || !llvm::is_contained({1, 2, 4}, columns))
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
                    "write 'of N' or 'of %n', and not both"); // (C419)
  if (getParts() && int64_t(*getParts()) < 2)
    return withNote(emitOpError() << "parts must be at least 2, but got " << int64_t(*getParts()),
                    "one part has nothing to reduce: leave the operation out"); // (C171)
  return success();
}

int64_t ReduceFragmentOp::getPiecesOfBlock() {
  return llvm::divideCeil(getNumPieces(), int64_t(clusterOf(*this).m));
}

int64_t ReduceFragmentOp::getNumAdding() {
  return std::min(getNumPieces(), int64_t(clusterOf(*this).m));
}

int64_t ReduceFragmentOp::getPieceBytes() {
  auto region = (*this)->getParentOfType<RoleRegionOp>();
  int64_t warps = region ? getNumReducing(region.getRole().getNumWarps()) : 0;
  constexpr int64_t threadsOfWarp = 32;
  // a thread has half of the elements of a row pair
  return warps * threadsOfWarp * int64_t(getColumns()) / 2 * 4;
}

int64_t ReduceFragmentOp::getNumReducing(int64_t all) {
  constexpr int64_t rowsOfWarp = 16;
  return getRows() ? llvm::divideCeil(int64_t(*getRows()), rowsOfWarp) : all;
}

/// (C669) The rows that exist.
static LogicalResult verifyReducedRows(ReduceFragmentOp op) {
  constexpr int64_t rowsOfGroup = 64, warpsOfGroup = 4;
  auto region = op->getParentOfType<RoleRegionOp>();
  int64_t rows = op.getRows().value_or(rowsOfGroup);
  if (rows > 0 && rows <= rowsOfGroup &&
      (!op.getRows() || !region || region.getRole().getNumWarps() == warpsOfGroup))
    return success();
  return withNote(op.emitOpError()
                      << "rows must be 1 to 64, of a role of one warpgroup, but got " << rows,
                  "leave 'rows' out, and all rows are reduced"); // (C669)
}

int64_t ReduceFragmentOp::getReductionBytes() {
  int64_t fragments = (int64_t(clusterOf(*this).m) - 1) * int64_t(getAccumulators().size());
  return getPiecesOfBlock() * fragments * getPieceBytes() +
         ClusterReductionOpInterface::kReductionBarrierBytes;
}

LogicalResult ReduceFragmentOp::verify() {
  if (getAccumulators().empty() || !llvm::all_equal(getAccumulators().getTypes()))
    return withNote(
        emitOpError() << "accumulators must be one or several of one type, but got "
                      << getAccumulators().getTypes(),
        "reduce accumulators of different types with an operation for each type"); // (C260)
  FragmentType type = getFragmentType();
  if (failed(verifySums(*this, "accumulator", type))) // (C260)
    return failure();
  int64_t columns = getColumns();
  if (columns <= 0 || columns % 8 || type.getShape()[1] % columns)
    return withNote(emitOpError() << "columns must be a multiple of 8 that divides the "
                                  << type.getShape()[1] << " columns of the accumulator, but got "
                                  << columns,
                    "take fewer columns for each piece"); // (C260)
  if (failed(verifyReducedRows(*this)))
    return failure();
  if (clusterOf(*this).m < 2)
    return withNote(
        emitOpError() << "expects a cluster of at least 2 CTAs along m, but got "
                      << clusterOf(*this).m,
        "write known_cluster_size = array<i32: 2, 1, 1> at the kernel, or pipe.count_partial "
        "where CTAs share no memory"); // (C261)
  return success();
}

int64_t ReduceTmemOp::getNumReduced() {
  return int64_t(clusterOf(*this).m) / (getAccumulator().getType().getPair() ? 2 : 1);
}

int64_t ReduceTmemOp::getColumnsOfGroup() {
  return getAccumulator().getType().getColumns() / std::max<int64_t>(1, groupsOfRole(*this));
}

int64_t ReduceTmemOp::getNumAdding() {
  return std::min<int64_t>(llvm::divideCeil(getColumnsOfGroup(), getWidth()), getNumReduced());
}

int64_t ReduceTmemOp::getPieceBytes() {
  return std::max<int64_t>(1, groupsOfRole(*this)) * kMmaM * getWidth() * 4;
}

int64_t ReduceTmemOp::getReductionBytes() {
  return (getNumReduced() - 1) * getPieceBytes() +
         ClusterReductionOpInterface::kReductionBarrierBytes;
}

LogicalResult ReduceTmemOp::verify() {
  TmemType acc = getAccumulator().getType();
  if (!acc.isAccumulator() || acc.isOfHalves())
    return withNote(
        emitOpError() << "accumulator must have 128 rows of f32, or 256 of a pair, but got " << acc,
        "take an accumulator of 128 TMEM lanes for each CTA"); // (C520)
  int64_t joined = getNumReduced(), width = getWidth(), columns = getColumnsOfGroup();
  if (joined < 2)
    return withNote(emitOpError() << "expects a cluster of at least 2 "
                                  << (acc.getPair() ? "pairs" : "CTAs") << " along m, but got "
                                  << joined,
                    acc.getPair() ? "a cluster of two pairs has 4 CTAs along m"
                                  : "write known_cluster_size = array<i32: 2, 1, 1> at the kernel, "
                                    "or pipe.count_partial where CTAs share no memory"); // (C521)
  constexpr int64_t unit = 4, most = 128;
  int64_t groups = groupsOfRole(*this) ? 1 : 2; // before there are roles, they may have two
  bool areLanes = distributionOf(getSums().getType()).getKind() == FragmentKind::Lanes;
  if (areLanes && width % unit == 0 && width <= most && width * joined * groups >= columns)
    return success();
  return withNote(emitOpError() << "result must be lanes of a multiple of " << unit
                                << " columns, at most " << most << ", of which " << joined
                                << " have the " << columns << " columns of a warpgroup, but got "
                                << getSums().getType(),
                  "divide the columns among the CTAs, rounded up to 4"); // (C522)
}

LogicalResult FetchOp::verify() { // (C172)
  GlobalType source = getSource().getType();
  RankedTensorType tile = getResult().getType();
  bool areLanes = distributionOf(tile).getKind() == FragmentKind::Lanes;
  if (areLanes != bool(getColumn()) || areLanes == getFirst().has_value())
    return withNote(
        emitOpError() << "column must be a value for lanes and a number for other tiles, "
                         "but got "
                      << (getColumn() ? "a value" : "a number") << " for " << tile,
        "write '[%row, %column]' of a matrix, and '[%row, 0]' of what threads left");
  if (!areLanes)
    return verifyWorkspace(*this, source, tile, int64_t(*getFirst()));
  if (source.getRank() != 2 || source.getElementType() != tile.getElementType() ||
      source.hasDynamicColumns() || source.getShape()[1] % tile.getDimSize(1))
    return withNote(emitOpError() << "buffer must have 2 dimensions with whole segments of " << tile
                                  << " in a row, but got " << source,
                    "fetch tiles whose columns divide those of the buffer");
  return success();
}
