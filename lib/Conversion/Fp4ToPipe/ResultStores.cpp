//===- ResultStores.cpp - Stores of the results of a GEMM -----------------===//

#include "ResultStores.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Rows of threads, of `columns` columns.
static RankedTensorType lanesOf(int64_t columns, Type element) {
  return DistributionAttr::tensorOf(FragmentKind::Lanes, columns, element);
}

ResultStores::ResultStores(TileBuilder &builder, const Gemm &gemm, const ResultArguments &to)
    : b(builder), gemm(gemm), to(to) {
  if (gemm.results.quantizer)
    blocks.emplace(b, *gemm.results.quantizer, this->to, gemm.problem.rows);
}

BlockStores::BlockStores(TileBuilder &builder, const ResultQuantizer &quantizer,
                         const ResultArguments &to, int64_t rows)
    : b(builder), quantizer(quantizer), to(to), rows(rows) {
  if (to.quantizeAmax)
    tensorAmax = LoadEntryOp::create(b, b.getF32Type(), to.quantizeAmax);
}

/// Emits a loop over the columns. There is no loop if all columns are read before any is stored, if
/// one amax takes the maxima of all, or if sums are in registers.
void ResultStores::emitTile(const ResultPlace &place, Elements elements) {
  int64_t step = gemm.resultGroup();
  bool keepsSums = gemm.tiling.laneGroups;
  running = {};
  if (gemm.hasOneAccumulator() || gemm.results.withAmax || keepsSums) {
    for (int64_t column = 0; column < gemm.tiling.laneColumns(); column += step) {
      emitGroup(place, b.getI64IntegerAttr(column), elements);
      if (keepsSums) // codes of the first sums would need registers beside the others
        storeKept();
    }
    storeKept();
    if (running)
      FoldAmaxOp::create(b, running, to.amax);
    return;
  }
  auto loop =
      scf::ForOp::create(b, b.constant(0), b.constant(gemm.tiling.laneColumns()), b.constant(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  emitGroup(place, loop.getInductionVar(), elements);
  storeKept();
}

/// Emits the stores of a group of columns, of which `column` is the first.
void ResultStores::emitGroup(const ResultPlace &place, OpFoldResult column, Elements elements) {
  SmallVector<Value> pieces;
  for (int64_t first = 0; first < gemm.resultGroup(); first += gemm.chunk()) {
    OpFoldResult inTile = b.plus(column, first);
    Value inResult = b.add(place.column, b.valueOf(inTile));
    Value piece = elements(inTile);
    pieces.push_back(piece);
    if (to.elements)
      StoreOp::create(b, piece, to.elements, place.row, inResult, place.rows);
    if (to.amax)
      foldAmax(place, piece, inResult);
    if (to.columnCodes)
      blocks->quantizeColumn(place, piece, inResult);
  }
  if (to.codes)
    blocks->quantizeRow(place, pieces, b.add(place.column, b.valueOf(column)));
}

/// Emits a loop over the rows that exist, a chunk at a time. There is none if one amax takes the
/// maxima of all, or if sums are in registers.
void ResultStores::emitSwappedTile(const ResultPlace &place, Elements elements) {
  int64_t rows = gemm.tiling.laneColumns(), step = gemm.chunk();
  running = {};
  if (gemm.results.withAmax || gemm.tiling.laneGroups) {
    for (int64_t row = 0; row < rows; row += step)
      emitRows(place, b.getI64IntegerAttr(row), elements);
    if (running)
      FoldAmaxOp::create(b, running, to.amax);
    return;
  }
  b.loop(b.constant(0), b.constant(rows), b.constant(step),
         [&](Value row) { emitRows(place, row, elements); });
}

/// Emits the stores of a chunk of rows, of which `row` is the first.
void ResultStores::emitRows(const ResultPlace &place, OpFoldResult row, Elements elements) {
  Value piece = elements(row);
  ResultPlace ofRows = place;
  ofRows.row = b.add(place.row, b.valueOf(row));
  if (to.elements)
    StoreOp::create(b, piece, to.elements, ofRows.row, place.column, place.rows,
                    /*transposed=*/true);
  if (to.amax)
    foldAmaxOfColumn(ofRows, piece);
  if (to.codes)
    blocks->quantizeRows(ofRows, piece);
  if (to.columnCodes)
    blocks->quantizeRowsOfThread(ofRows, piece);
  storeKept();
}

void BlockStores::quantizeRowsOfThread(const ResultPlace &place, Value elements) {
  auto [codes, scales] = quantize(elements, /*columnwise=*/true);
  Value block = b.div(place.row, quantizer.block());
  kept.push_back({codes, to.columnCodes, place.column, place.row, Value(), false});
  kept.push_back({scales, to.columnScales, place.column, block, Value(), false});
}

/// The rows of `pipe.amax` are those of threads, columns of the result here.
void ResultStores::foldAmaxOfColumn(const ResultPlace &place, Value elements) {
  Value rows = place.rows ? place.rows : b.constant(gemm.problem.rows);
  Value columns = to.columns ? to.columns : b.constant(gemm.problem.columns);
  running = pipe::AmaxOp::create(b, b.getF32Type(), elements, place.column, place.row, columns,
                                 rows, running, /*transposed=*/false);
}

/// Quantizes the columns that a warp has of a chunk of rows.
void BlockStores::quantizeRows(const ResultPlace &place, Value elements) {
  auto columns = DistributionAttr::get(b.getContext(), FragmentKind::Columns);
  Type type = cast<RankedTensorType>(elements.getType()).cloneWithEncoding(columns);
  auto [codes, scales] = quantize(TransposeOp::create(b, type, elements), /*columnwise=*/false);
  kept.push_back({codes, to.codes, place.row, place.column, place.rows, true});
  keepScales(place, scales, b.div(place.column, quantizer.block()), true);
}

void BlockStores::emitSegment(const ResultPlace &place, Value elements) {
  auto type = cast<RankedTensorType>(elements.getType());
  int64_t count = type.getDimSize(1), square = 32;
  for (int64_t first = 0; to.columnCodes && first < count; first += square) {
    Value piece =
        vector::ExtractStridedSliceOp::create(b, b.toVector(elements), ArrayRef<int64_t>{first},
                                              ArrayRef<int64_t>{square}, ArrayRef<int64_t>{1});
    quantizeColumn(place, b.fromVector(lanesOf(square, type.getElementType()), piece),
                   b.add(place.column, b.constant(first)));
  }
  if (to.codes)
    quantizeRow(place, elements, place.column);
  storeKept();
}

void ResultStores::foldAmax(const ResultPlace &place, Value elements, Value column) {
  Value rows = place.rows;
  if (!rows && gemm.m() % gemm.tiling.workM()) // rows of a tile that do not exist
    rows = b.constant(gemm.m());
  running = pipe::AmaxOp::create(b, b.getF32Type(), elements, place.row, column, rows,
                           to.columns ? to.columns : b.constant(gemm.n()), running,
                           /*transposed=*/false);
}

std::pair<Value, Value> BlockStores::quantize(Value elements, bool columnwise) {
  RecipeAttr recipe = quantizer.recipe;
  auto [codes, scales] =
      QuantizeBlocksOp::resultTypes(cast<RankedTensorType>(elements.getType()), recipe);
  auto quantized = QuantizeBlocksOp::create(
      b, codes, scales, elements, tensorAmax, /*rng=*/Value(), /*row=*/Value(),
      /*column=*/Value(), /*matrix=*/DenseI64ArrayAttr(), recipe, Philox::Element, columnwise,
      /*held=*/true, /*place=*/IntegerAttr());
  return {quantized.getCodes(), quantized.getScales()};
}

Value fp4::concatenate(ImplicitLocOpBuilder &b, ArrayRef<Value> pieces) {
  if (pieces.size() == 1)
    return pieces.front();
  Value low = concatenate(b, pieces.take_front(pieces.size() / 2));
  Value high = concatenate(b, pieces.drop_front(pieces.size() / 2));
  int64_t count = 2 * cast<VectorType>(low.getType()).getNumElements();
  return vector::ShuffleOp::create(b, low, high, llvm::to_vector(llvm::seq<int64_t>(count)));
}

Value fp4::concatenateTiles(TileBuilder &b, ArrayRef<Value> pieces) {
  if (pieces.size() == 1)
    return pieces.front();
  auto type = cast<RankedTensorType>(pieces.front().getType());
  SmallVector<int64_t> shape = {type.getDimSize(0), type.getDimSize(1) * int64_t(pieces.size())};
  auto vectors = llvm::map_to_vector(pieces, [&](Value piece) { return b.toVector(piece); });
  return b.fromVector(type.clone(shape, type.getElementType()), concatenate(b, vectors));
}

void BlockStores::quantizeRow(const ResultPlace &place, ArrayRef<Value> pieces, Value column) {
  auto [codes, scales] = quantize(concatenateTiles(b, pieces), /*columnwise=*/false);
  kept.push_back({codes, to.codes, place.row, column, place.rows, false});
  int64_t block = quantizer.block();
  ResultPlace ofScales = place;
  if (cast<RankedTensorType>(codes.getType()).getDimSize(1) < block)
    ofScales.rows = rowsOfFirstPart(place, column);
  keepScales(ofScales, scales, b.div(column, block), false);
}

/// The limit of rows for the thread that has the first part of a block, and none for the others,
/// which have the same scale.
Value BlockStores::rowsOfFirstPart(const ResultPlace &place, Value column) {
  Value first =
      b.compare(arith::CmpIPredicate::eq, b.rem(column, quantizer.block()), b.constant(0));
  Value limit = place.rows ? place.rows : b.constant(rows);
  return arith::SelectOp::create(b, first, limit, b.constant(0));
}

/// Keeps scales to store. Tiled scales of a group begin behind those of the group before.
void BlockStores::keepScales(const ResultPlace &place, Value scales, Value column, bool isColumn) {
  bool isList = place.scaleShift && cast<GlobalType>(to.scales.getType()).isScales();
  Value row = isList ? b.add(place.row, place.scaleShift) : place.row;
  Value limit = isList ? b.add(place.rows, place.scaleShift) : place.rows;
  kept.push_back({scales, to.scales, row, column, limit, isColumn});
}

/// Quantizes the rows that a warp has of `column` and the next columns, which become rows of codes.
/// The first row may be negative if the upper lanes begin at the first row too.
void BlockStores::quantizeColumn(const ResultPlace &place, Value elements, Value column) {
  auto columns = DistributionAttr::get(b.getContext(), FragmentKind::Columns);
  Type type = cast<RankedTensorType>(elements.getType()).cloneWithEncoding(columns);
  Value turned = TransposeOp::create(b, type, elements);
  auto [codes, scales] = quantize(turned, /*columnwise=*/true);
  kept.push_back({codes, to.columnCodes, column, place.row, Value(), true});
  Value rowBlock = arith::ShRSIOp::create(
      b, place.row, b.constant(int64_t(llvm::Log2_64(uint64_t(quantizer.block())))));
  kept.push_back({scales, to.columnScales, column, rowBlock, Value(), true});
}

void BlockStores::storeKept() {
  for (const Store &store : std::exchange(kept, {}))
    StoreOp::create(b, store.value, store.dest, store.row, store.column, store.rows,
                    /*transposed=*/store.isColumn);
}
