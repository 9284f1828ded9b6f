//===- GroupedGemms.cpp - Grouped GEMMs and split-K --------------------===//
//
// Constraints of matmul on matrices that are stacked in its operands, and on split_k.
// Labels are those of docs/reference/semantics.md.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Numerics/BlockScaledGemm.h"

#include "llvm/Support/MathExtras.h"

#include <limits>
#include <optional>

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

/// The tiles of scales that matrices of `rows` and `blocks` columns of scales have.
static RankedTensorType tileList(ArrayRef<int64_t> rows, RankedTensorType scales) {
  int64_t tiles = 0;
  for (int64_t count : rows)
    tiles += llvm::divideCeil(count, 128) * llvm::divideCeil(scales.getDimSize(1), 4);
  return withScaleLayout(scales.clone({128 * tiles, 4}), ScaleLayout::Tiled128x4);
}

/// Rows of `groups` groups for which their scales must have a place where only the device knows
/// them: of those that need the most.
static SmallVector<int64_t> mostRows(int64_t rows, int64_t groups) {
  SmallVector<int64_t> most(groups, 128); // each ends within a tile of 128 rows
  most.push_back(rows / 128 * 128);
  return most;
}

static SmallVector<int64_t> rowsOfGroups(BlockScaledMatmulOp op) {
  if (auto groups = op.getGroups())
    return SmallVector<int64_t>(*groups);
  return mostRows(rankedType(op.getLhs()).getDimSize(0), op.getNumGroups());
}

std::optional<int64_t> verify::countGroups(std::optional<ArrayRef<int64_t>> groups, Value offsets) {
  if (groups)
    return int64_t(groups->size());
  if (!offsets)
    return std::nullopt;
  RankedTensorType type = rankedType(offsets); // any shape, which verifyOffsets reports
  if (type.getRank() == 0 || type.isDynamicDim(0))
    return 0;
  return std::max<int64_t>(0, type.getDimSize(0) - (type.getRank() == 1 ? 1 : 0));
}

RankedTensorType verify::tilesOfOffsets(RankedTensorType scales, Value offsets) {
  return tileList(mostRows(scales.getDimSize(0), *countGroups({}, offsets)), scales);
}

RankedTensorType verify::scaleListOfGroups(BlockScaledMatmulOp op, RankedTensorType scales) {
  return tileList(rowsOfGroups(op), scales);
}

static constexpr char kRowsOfOffsets[] =
    "the last of the offsets says how many of them the groups use";

static LogicalResult verifyNumbersOfOffsets(Operation *op, Value value, StringRef remedy) {
  Checked offsets = operand(op, "offsets", value);
  auto i64 = IntegerType::get(op->getContext(), 64);
  ArrayRef<int64_t> shape = offsets.type.getShape();
  bool areOffsets = shape.size() == 1 && shape[0] >= 2;
  bool areRanges = shape.size() == 2 && shape[0] >= 1 && shape[1] == 2;
  if (!(areOffsets || areRanges) || offsets.type.getElementType() != i64)
    return withNote(
        offsets.must("be a static tensor of i64 with one number more than there are groups, or "
                     "with two numbers for each group"),
        "write tensor<Gx2xi64> of the first row and the end of each group, or tensor<(G + 1)xi64> "
        "where groups follow each other");
  constexpr int64_t most = (1 << 16) + 1; // far more than a model has experts
  if (shape[0] > most)
    return withNote(offsets.must("have at most " + Twine(most) + " numbers"), remedy);
  return success();
}

/// matmul (C15): the rows of groups.
LogicalResult verify::verifyGroupRows(BlockScaledMatmulOp op, const Checked &lhs) {
  if (op.getGroups() && op.getOffsets())
    return withNote(
        op.emitOpError("expects one of 'groups' of 'work' and operand 'offsets', but got both"),
        "'groups' are rows that the program knows, 'offsets' those that only the device knows");
  if (op.getGroups())
    return verifyGroups(lhs, op.getGroups());
  if (failed(verifyNumbersOfOffsets(op, op.getOffsets(),
                                    "multiply so many groups with several matmuls")))
    return failure();
  bool takesAny = !op.getLhsScales() || op.hasF32Scales();
  if (!lhs.type.isDynamicDim(0) || (takesAny && op.hasOnlyElements()))
    return success();
  return withNote(lhs.must("have static rows beside 'offsets'"),
                  Twine(kRowsOfOffsets) +
                      "; a lhs without scales, or of fp8_block128, may have dynamic rows where the "
                      "elements are the only result");
}

LogicalResult verify::verifyOffsets(const Checked &rows, Value value, StringRef remedy) {
  if (failed(verifyNumbersOfOffsets(rows.op, value, remedy)))
    return failure();
  if (!rows.type.isDynamicDim(0))
    return success();
  return withNote(rows.must("have static rows beside 'offsets'"), kRowsOfOffsets);
}

/// matmul (C353): what plans are told of groups.
LogicalResult verify::verifyExpectedRows(BlockScaledMatmulOp op, const Checked &lhs) {
  if (!op.getExpectedRows())
    return success();
  int64_t rows = *op.getExpectedRows();
  int64_t most =
      lhs.type.isDynamicDim(0) ? std::numeric_limits<int32_t>::max() : lhs.type.getDimSize(0);
  if (!op.getOffsets())
    return withNote(
        op.emitOpError("expects 'expected_rows' of 'work' with operand 'offsets' alone"),
        "leave it out: without offsets the rows are known");
  if (rows < 1 || rows > most)
    return withNote(op.emitOpError("'expected_rows' of 'work' must be 1 to ")
                        << most << ", the rows of lhs, but got " << rows,
                    "leave it out, and groups are expected to use all rows");
  return success();
}

/// matmul (C460): rows that the matmul does not write.
LogicalResult verify::verifyUnspecifiedRows(BlockScaledMatmulOp op) {
  if (!op.getUnspecifiedRows() || op.getOffsets())
    return success();
  auto diag = op.emitOpError("expects 'unspecified_rows' of 'work' with operand 'offsets' alone");
  diag.attachNote() << "without 'offsets' every row of the result is of the matmul, or of a group";
  return diag;
}

LogicalResult verify::verifyGroupColumns(BlockScaledMatmulOp op, const Checked &rhs) {
  int64_t groups = op.getNumGroups();
  if (!rhs.type.isDynamicDim(0) && rhs.type.getDimSize(0) % groups == 0)
    return success();
  if (op.hasPrepackedRhs())
    return withNote(
        rhs.must("have as many rows of tiles for each of the " + Twine(groups) + " groups"),
        "fp4.prepack gives each of 'groups' = " + Twine(groups) +
            " stacked matrices rows of tiles of its own");
  return withNote(rhs.must("have as many rows for each of the " + Twine(groups) + " groups"),
                  "the weights of the groups are stacked along dimension 0 of rhs; pad those that "
                  "are smaller with zeros");
}

LogicalResult verify::verifyGroupAlpha(BlockScaledMatmulOp op) {
  if (!op.getAlpha() || rankedType(op.getAlpha()).getRank() == 0)
    return success();
  if (!op.getLhsScales() && rankedType(op.getAlpha()).getRank() == 2)
    return verifyType(operand(op, "alpha", op.getAlpha()),
                      RankedTensorType::get({rankedType(op.getLhs()).getDimSize(0), 1},
                                            Float32Type::get(op.getContext())),
                      "beside a lhs without scales groups may have a factor for each row, M x 1");
  return verifyType(operand(op, "alpha", op.getAlpha()),
                    RankedTensorType::get({op.getNumGroups()}, Float32Type::get(op.getContext())),
                    "a grouped matmul has one alpha, or one for each group");
}

/// matmul (C16): operands and alpha of groups.
LogicalResult verify::verifyGroupOperands(BlockScaledMatmulOp op, const Checked &lhs,
                                          const Checked &rhs) {
  if (failed(verifyGroupColumns(op, rhs)))
    return failure();
  int64_t groups = op.getNumGroups();
  auto verifyList = [&](StringRef name, Value value, const Checked &data, ArrayRef<int64_t> rows) {
    Checked scales = operand(op, name, value);
    return verifyType(scales, tileList(rows, scalesOf(data.type, op.getFormat())),
                      op.getOffsets() && name == "lhs_scales"
                          ? "the list of tiles has room for any groups; fp4.quantize and "
                            "fp4.swizzle_scales with the same 'offsets' write it"
                          : "the list has the tiles of all groups, each padded to 128 rows and 4 "
                            "blocks, as fp4.quantize with 'groups' writes them");
  };
  if (op.getLhsScales() &&
      failed(verifyList("lhs_scales", op.getLhsScales(), lhs, rowsOfGroups(op))))
    return failure();
  SmallVector<int64_t> columns(groups, rhs.type.getDimSize(0) / groups);
  if (!op.hasPrepackedRhs() && failed(verifyList("rhs_scales", op.getRhsScales(), rhs, columns)))
    return failure();
  return verifyGroupAlpha(op);
}

/// The shares of `stream`; none where it does not say whose tiles these are.
static std::optional<numerics::StreamShares> sharesOf(ArrayRef<int64_t> stream, int64_t m,
                                                      int64_t n, int64_t slices) {
  constexpr int64_t kMostWorkers = 1 << 16, kMostRows = 1 << 20, kMostColumns = 256;
  constexpr auto kUnit = int64_t(numerics::streamUnit);
  if (stream.size() != 3 || stream[0] < 1 || stream[0] > kMostWorkers || stream[1] < 1 ||
      stream[1] > kMostRows || stream[1] % kUnit || stream[2] < 1 || stream[2] > kMostColumns ||
      stream[2] % kUnit)
    return std::nullopt;
  numerics::StreamK shares = {uint64_t(stream[0]), uint64_t(stream[1]), uint64_t(stream[2])};
  return numerics::StreamShares(shares, uint64_t(m), uint64_t(n), uint64_t(slices));
}

/// Kernels number the rows of a workspace with 31 bits.
static constexpr int64_t kMostWorkspaceRows = std::numeric_limits<int32_t>::max();

static LogicalResult verifyWorkspace(BlockScaledMatmulOp op, StringRef attribute, int64_t rows,
                                     StringRef remedy) {
  if (rows <= kMostWorkspaceRows)
    return success();
  auto diag = op.emitOpError("'") << attribute << "' of 'work' must leave at most "
                                  << kMostWorkspaceRows
                                  << " rows of sums in a workspace, but leaves " << rows; // (C456)
  diag.attachNote() << remedy;
  return diag;
}

/// matmul (C456): the sums that the parts of shared tiles leave, four to a row.
static LogicalResult verifySharedSums(BlockScaledMatmulOp op,
                                      const numerics::StreamShares &shares) {
  uint64_t parts = 0;
  for (uint64_t tile = 0; tile < shares.shared; ++tile)
    if (uint64_t ofTile = shares.parts(tile); ofTile > 1)
      parts += ofTile;
  return verifyWorkspace(op, "stream_k",
                         int64_t(parts * (shares.stream.rows * shares.stream.columns / 4)),
                         "take fewer workers or a smaller tile");
}

/// matmul (C420), (C421): shares of workers.
static LogicalResult verifyStream(BlockScaledMatmulOp op, const Checked &lhs) {
  if (!op.getStreamK())
    return success();
  if (op.getOffsets() || op.isDual() || lhs.type.isDynamicDim(0))
    return withNote(
        op.emitOpError("expects static rows, and no 'offsets' or 'rhs2' beside 'stream_k'"),
        "leave 'stream_k' out; tiles are shared where these are not given"); // (C420)
  int64_t slices = llvm::divideCeil(lhs.type.getDimSize(1), int64_t(numerics::splitSlice));
  auto shares = sharesOf(*op.getStreamK(), lhs.type.getDimSize(0), op.getColumns(), slices);
  if (!shares)
    return withNote(
        op.emitOpError("'stream_k' of 'work' must be workers, and rows and columns of a tile in "
                       "multiples of 16, the columns up to 256, but got ")
            << "[" << *op.getStreamK() << "]",
        "such as stream_k = [132, 128, 128]"); // (C421)
  if (auto parts = int64_t(shares->mostParts()); parts > BlockScaledMatmulOp::kMaxSplits)
    return withNote(op.emitOpError("'stream_k' of 'work' must have at most ")
                        << BlockScaledMatmulOp::kMaxSplits << " workers for each tile, but got "
                        << parts,
                    "take fewer workers or a smaller tile"); // (C421)
  return verifySharedSums(op, *shares);
}

/// matmul (C14): split-K.
LogicalResult verify::verifySplit(BlockScaledMatmulOp op, const Checked &lhs) {
  if (failed(verifyStream(op, lhs)))
    return failure();
  int64_t splits = op.getMostSplits();
  if (splits == 1)
    return success();
  int64_t slices = llvm::divideCeil(lhs.type.getDimSize(1), int64_t(numerics::splitSlice));
  int64_t most = std::min<int64_t>(slices, BlockScaledMatmulOp::kMaxSplits);
  if (splits > most)
    return withNote(
        op.emitOpError("'split_k' of 'work' must be 1 to ")
            << most << " for K = " << lhs.type.getDimSize(1) << ", but got " << splits,
        "a part has at least one slice of 256 elements of K; leave 'split_k' out for one part");
  if (op.isGrouped()) // one CTA has all parts: no sums are left in a workspace
    return success();
  int64_t ofRows = lhs.type.isDynamicDim(0) ? 1 : op.splitsOfRows(lhs.type.getDimSize(0));
  if (ofRows == 1)
    return success();
  constexpr int64_t kMostTileRows = 512; // (C456): every split-K part has whole tiles
  return verifyWorkspace(op, "split_k",
                         ofRows * llvm::alignTo(lhs.type.getDimSize(0), kMostTileRows),
                         "take fewer split-K parts, or cut the rows into several matmuls");
}
