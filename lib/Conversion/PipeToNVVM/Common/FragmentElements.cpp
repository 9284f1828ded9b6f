//===- FragmentElements.cpp - Elements of fragments, and where they go ----===//
//
// Reads of fragments, their factors, and their stores. The rows of a fragment are those of the
// result, or, transposed, its columns.
//
//===----------------------------------------------------------------------===//
#include "Common/BufferLines.h"
#include "Common/TileLines.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/ISA/FragmentLayout.h"
#include "fp4/ISA/StagedSums.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Elements of a tile follow one another in the array of the fragment; below them are those of the
/// rows of the next instruction.
struct LowerReadFragment : PipePattern<pipe::ReadOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ReadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto fragment = dyn_cast<pipe::FragmentType>(op.getAccumulator().getType());
    if (!fragment)
      return rewriter.notifyMatchFailure(op, "reads tensor memory");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType tile = op.getResult().getType();
    VectorType type = pipe::vectorOfThread(tile);
    int64_t ofColumn = tile.getDimSize(1) / type.getNumElements(); // columns of an element
    int64_t instruction = int64_t(op.getRow()) / tile.getDimSize(0);
    int64_t first = (instruction * fragment.getShape()[1] + int64_t(*op.getFirst())) / ofColumn;
    rewriter.replaceOp(op, loadVector(b, adaptor.getAccumulator(), first, type));
    return success();
  }
};

/// Reads sums that the thread of the same place in another role has staged.
struct LowerReadSums : PipePattern<pipe::ReadOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ReadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto tile = dyn_cast<pipe::SharedType>(op.getAccumulator().getType());
    if (!tile)
      return rewriter.notifyMatchFailure(op, "reads tensor memory or a fragment");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    VectorType type = pipe::vectorOfThread(op.getResult().getType());
    auto piece = VectorType::get(hw::sumsOfAccess, b.getF32Type());
    Value own = placeOfSums(b, op, state, adaptor.getAccumulator());
    int64_t row = int64_t(*op.getFirst()) / hw::fragmentTileColumns;
    SmallVector<Value> sums;
    for (; int64_t(sums.size()) < type.getNumElements(); ++row) {
      Value place = offsetPointer(b, b.getLoc(), own, row * tile.getInnerBytes());
      llvm::append_range(sums,
                         scalarsOf(b, LLVM::LoadOp::create(b, piece, place, 4 * hw::sumsOfAccess)));
    }
    rewriter.replaceOp(op, vector::FromElementsOp::create(b, type, sums).getResult());
    return success();
  }
};

/// The places of a thread's elements in the result. The rows of a transposed fragment are columns
/// of the result.
struct ElementPlaces {
  ImplicitLocOpBuilder &b;
  Int32 line, place; ///< row and column of the fragment, of element 0, in the result
  bool transposed;
  std::optional<Int32> shift; ///< columns in front of the head that a row is (`heads`)

  ElementPlaces(ImplicitLocOpBuilder &b, Operation *op, const KernelState &state, Value firstRow,
                Value firstColumn, bool transposed)
      : b(b), line(b, transposed ? firstColumn : firstRow),
        place(b, transposed ? firstRow : firstColumn), transposed(transposed) {
    Int32 thread = threadOfRole(b, op, state);
    // LLVM would keep values that follow from the place while the tile is multiplied
    if (state.facts.hidesPlaces)
      thread = Int32(b, computeHere(b, b.getLoc(), Value(thread)).front());
    line = line + rowOfThread(thread);
    place = place + thread % 4 * 2;
  }
  static int64_t lineBehind(int64_t element) { return element / 2 % 2 * 8; }
  Int32 lineOf(int64_t element) const { return line + lineBehind(element); }
  /// The distance from the place of element 0 to that of `element`.
  static int64_t behind(int64_t element) {
    return element / 4 * hw::fragmentTileColumns + element % 2;
  }
  Int32 placeOf(int64_t element) const { return place + behind(element); }
  Int32 rowOf(int64_t element) const { return transposed ? placeOf(element) : lineOf(element); }
  Int32 columnOf(int64_t element) const {
    return transposed ? lineOf(element) : inHead(placeOf(element));
  }
  Int32 inHead(Int32 column) const { return shift ? column + *shift : column; }
};

/// The place of two neighbours of a row that a thread has of an 8 x 8 of a transposed fragment,
/// before or after the 8 x 8 is transposed.
struct MatrixPlaces {
  Int32 row, column; ///< place of the elements 0 and 1

  MatrixPlaces(ImplicitLocOpBuilder &b, Int32 thread, Value firstRow, Value firstColumn)
      : row(Int32(b, firstRow) + thread % 32 / 4),
        column(Int32(b, firstColumn) + thread / kGroupThreads * kGroupRows +
               thread % kGroupThreads / 32 * 16 + thread % 4 * 2) {}
  Int32 rowOf(int64_t element) const { return row + element / 4 * hw::fragmentTileColumns; }
  static int64_t columnBehind(int64_t element) { return element / 2 % 2 * 8; }
  Int32 columnOf(int64_t element) const { return column + columnBehind(element); }
};

Value rowLimit(OpBuilder &b, Location loc, pipe::GlobalType type, Value rows) {
  return rows ? rows : constantI32(b, loc, type.getShape()[0]);
}

struct LowerFragmentFactors : PipePattern<pipe::FetchOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::FetchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    bool arePowers = op.getGlobal().getType().getElementType().isInteger(8);
    if (!pipe::distributionOf(op.getResult().getType()).isFragment() || !op.getColumn() ||
        arePowers)
      return rewriter.notifyMatchFailure(op, "loads the factors of rows of threads, or powers");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    if (comesInMatrices(op)) {
      rewriter.replaceOp(op, loadMatrices(b, op, adaptor));
      return success();
    }
    ElementPlaces places(b, op, state, adaptor.getRow(), adaptor.getColumn(), op.getTransposed());
    VectorType type = pipe::vectorOfThread(op.getResult().getType());
    SmallVector<Value> elements;
    for (int64_t i = 0; i < type.getNumElements(); i = int64_t(elements.size())) {
      if (int64_t first = firstLike(i, op); first < i)
        elements.push_back(elements[first]);
      else if (hasPairsOfColumns(op))
        llvm::append_range(elements, loadColumns(b, op, adaptor, places, i));
      else if (hasPairsOfRows(op))
        llvm::append_range(elements, loadRows(b, adaptor.getGlobal(), op, places.rowOf(i)));
      else
        elements.push_back(loadElement(b, op, adaptor, places, i));
    }
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, elements);
    return success();
  }

private:
  /// The first element that has the same number as element i: one of the same row, or column, if
  /// only that counts.
  static int64_t firstLike(int64_t i, pipe::FetchOp op) {
    ArrayRef<int64_t> shape = op.getGlobal().getType().getShape();
    bool everyLine = shape[0] == 1 || op.getOneRow(), everyPlace = shape[1] == 1;
    if (op.getTransposed())
      std::swap(everyLine, everyPlace);
    if (everyPlace)
      return everyLine ? 0 : i & 2;
    return everyLine ? i & ~2 : i;
  }

  static bool isMatrix(pipe::FetchOp op) {
    ArrayRef<int64_t> shape = op.getGlobal().getType().getShape();
    return !op.getOneRow() && shape[0] != 1 && shape[1] != 1;
  }

  /// Returns true when two neighbours of a row of 16 bits both exist, or do not, and warps can
  /// transpose them.
  static bool comesInMatrices(pipe::FetchOp op) {
    pipe::GlobalType global = op.getGlobal().getType();
    return op.getTransposed() && isMatrix(op) && hasMultipleColumns(global, 2) &&
           global.getElementType().getIntOrFloatBitWidth() == 16;
  }

  /// Loads elements of a thread that are in different rows. A thread loads two neighbours of a row
  /// instead, and warps transpose every 8 x 8, as they do to store such elements.
  Value loadMatrices(ImplicitLocOpBuilder &b, pipe::FetchOp op, OpAdaptor adaptor) const {
    VectorType type = pipe::vectorOfThread(op.getResult().getType());
    Location loc = op.getLoc();
    Int32 rows(b, rowLimit(b, loc, op.getGlobal().getType(), adaptor.getRows())),
        columns(b, columnsOfBuffer(b, loc, op.getGlobal()));
    MatrixPlaces places(b, threadOfRole(b, op, state), adaptor.getRow(), adaptor.getColumn());
    Value line = lineOfBuffer(b, loc, op.getGlobal(), adaptor.getGlobal(), places.row);
    Value pointer = stridedPointer(b, loc, line, places.column, 2);
    SmallVector<Value> words;
    for (int64_t i = 0; i < type.getNumElements(); i += 2) {
      if (i > 0 && i % 4 == 0)
        pointer = laterLine(b, loc, op.getGlobal(), pointer, hw::fragmentTileColumns);
      Value exists = arith::AndIOp::create(b, places.rowOf(i) < rows, places.columnOf(i) < columns);
      Value place = offsetPointer(b, loc, pointer, 2 * MatrixPlaces::columnBehind(i));
      words.push_back(loadWordWhen(b, exists, place, b.getI32Type()));
    }
    for (Value &word : words) // when all are on their way
      word = transposeMatrix(b, word);
    auto all = VectorType::get({int64_t(words.size())}, b.getI32Type());
    return LLVM::BitcastOp::create(b, type, vector::FromElementsOp::create(b, all, words));
  }

  /// Returns true when every two elements are of two columns that both exist, or do not.
  static bool hasPairsOfColumns(pipe::FetchOp op) {
    pipe::GlobalType global = op.getGlobal().getType();
    return !op.getTransposed() && global.getShape()[1] != 1 && hasMultipleColumns(global, 2);
  }

  static SmallVector<Value> loadColumns(ImplicitLocOpBuilder &b, pipe::FetchOp op,
                                        OpAdaptor adaptor, const ElementPlaces &places, int64_t i) {
    Type element = op.getGlobal().getType().getElementType();
    unsigned bits = element.getIntOrFloatBitWidth();
    Int32 columns(b, columnsOfBuffer(b, op.getLoc(), op.getGlobal()));
    Value first = stridedPointer(b, op.getLoc(), lineOf(b, op, adaptor, places.rowOf(i)),
                                 places.columnOf(0), bits / 8);
    Value pointer = offsetPointer(b, op.getLoc(), first, ElementPlaces::behind(i) * bits / 8);
    IntegerType both = b.getIntegerType(2 * bits);
    Value word = op.getInBounds() ? loadWordHere(b, pointer, both)
                                  : loadWordWhen(b, places.columnOf(i) < columns, pointer, both);
    Value pair = LLVM::BitcastOp::create(b, VectorType::get(2, element), word);
    return {vector::ExtractOp::create(b, pair, 0), vector::ExtractOp::create(b, pair, 1)};
  }

  /// Returns true when every two elements have the numbers of two neighbouring rows that both
  /// exist, or do not.
  static bool hasPairsOfRows(pipe::FetchOp op) {
    pipe::GlobalType global = op.getGlobal().getType();
    bool isOfRows = op.getTransposed() && !op.getOneRow() && global.getShape()[1] == 1;
    return isOfRows && global.getElementType().isF32() && !op.getRows() &&
           global.getShape()[0] % 2 == 0 && isMultiple(op.getRow(), 2);
  }

  /// Loads the numbers of `row` and the next one with one access. If these rows do not exist, the
  /// last two are loaded, for elements that nobody stores.
  static SmallVector<Value> loadRows(ImplicitLocOpBuilder &b, Value buffer, pipe::FetchOp op,
                                     Int32 row) {
    int64_t rows = op.getGlobal().getType().getShape()[0];
    Value pointer = stridedPointer(b, op.getLoc(), buffer, minimum(row, Int32(b, rows - 2)), 4);
    Value pair = load(b, VectorType::get(2, b.getF32Type()), pointer, 8);
    return {vector::ExtractOp::create(b, pair, 0), vector::ExtractOp::create(b, pair, 1)};
  }

  static Value loadElement(ImplicitLocOpBuilder &b, pipe::FetchOp op, OpAdaptor adaptor,
                           const ElementPlaces &places, int64_t i) {
    pipe::GlobalType global = op.getGlobal().getType();
    int64_t bytes = global.getElementType().getIntOrFloatBitWidth() / 8;
    Int32 columns(b, columnsOfBuffer(b, op.getLoc(), op.getGlobal()));
    Value place = lineOf(b, op, adaptor, places.rowOf(i));
    if (global.getShape()[1] != 1)
      place =
          stridedPointer(b, op.getLoc(), place, minimum(places.columnOf(i), columns - 1), bytes);
    return load(b, global.getElementType(), place, bytes);
  }

  /// The address of `row`, or of the last row, or of the one row that all elements read.
  static Value lineOf(ImplicitLocOpBuilder &b, pipe::FetchOp op, OpAdaptor adaptor, Int32 row) {
    pipe::GlobalType global = op.getGlobal().getType();
    if (op.getOneRow())
      return lineOfBuffer(b, op.getLoc(), op.getGlobal(), adaptor.getGlobal(), adaptor.getRow());
    if (global.getShape()[0] == 1)
      return adaptor.getGlobal();
    Int32 rows(b, rowLimit(b, op.getLoc(), global, adaptor.getRows()));
    return lineOfBuffer(b, op.getLoc(), op.getGlobal(), adaptor.getGlobal(),
                        op.getInBounds() ? row : minimum(row, rows - 1));
  }
};

/// Stores a fragment. Elements of 16 bits, or 8, leave 16 bytes at a time: the four threads of a
/// row exchange their words of four tiles of 8 columns, or pairs of these, until each has the row
/// of one.
struct LowerStoreFragment : PipePattern<pipe::StoreOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::StoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.isOfFragment())
      return rewriter.notifyMatchFailure(op, "stores no fragment");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    ElementPlaces places(b, op, state, adaptor.getRow(), adaptor.getColumn(), op.getTransposed());
    Int32 rows(b, rowLimit(b, op.getLoc(), op.getBufferType(), adaptor.getRows()));
    if (op.getTransposed())
      storeTransposed(b, op, adaptor, places, rows);
    else if (pipe::areRowNumbers(op.getValue().getType()))
      storeNumbers(b, op, adaptor, places, rows);
    else
      storeRows(b, op, adaptor, places, rows);
    NVVM::SyncWarpOp::create(b, op.getLoc(), constantI32(b, op.getLoc(), -1));
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void storeRows(ImplicitLocOpBuilder &b, pipe::StoreOp op, OpAdaptor adaptor,
                        const ElementPlaces &places, Int32 rows) {
    bool together = exchanges(op);
    SmallVector<SmallVector<Value>> words;
    if (together)
      for (int64_t half : {0, 2})
        words.push_back(rowsOfTiles(b, op, adaptor, half));
    for (int64_t half : {0, 2}) { // elements of one row
      ElementPlaces ofRow = places;
      Value exists = moveToRow(op, adaptor, half, rows, ofRow);
      auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(branch.thenBlock());
      if (together)
        storeTiles(b, op, adaptor, ofRow, half, words[half / 2]);
      else
        storePairs(b, op, adaptor, ofRow, half);
    }
  }

  /// Stores the number of each row, by the first of its four threads.
  static void storeNumbers(ImplicitLocOpBuilder &b, pipe::StoreOp op, OpAdaptor adaptor,
                           const ElementPlaces &places, Int32 rows) {
    Int32 column(b, adaptor.getColumn());
    Value isFirst = Int32(b, NVVM::LaneIdOp::create(b, b.getI32Type())) % 4 < 1;
    for (int64_t half : {0, 2}) {
      ElementPlaces ofRow = places;
      Value exists = moveToRow(op, adaptor, half, rows, ofRow);
      auto branch = scf::IfOp::create(b, arith::AndIOp::create(b, exists, isFirst),
                                      /*withElseRegion=*/false);
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(branch.thenBlock());
      Value number = vector::ExtractOp::create(b, adaptor.getValue(), half / 2);
      LLVM::StoreOp::create(b, number,
                            pointerTo(b, op, adaptor, ofRow.rowOf(half), ofRow.inHead(column)),
                            op.getBufferType().getElementType().getIntOrFloatBitWidth() / 8);
    }
  }

  /// Moves the places of row `half` where it is a head; returns true where the row exists.
  static Value moveToRow(pipe::StoreOp op, OpAdaptor adaptor, int64_t half, Int32 rows,
                         ElementPlaces &places) {
    if (op.getHeads())
      return moveToHead(op, half, Int32(places.b, adaptor.getRow()), rows, places);
    return places.rowOf(half) < rows;
  }

  /// Moves the places of row `half` to the head and the token that it is; returns true where both
  /// exist.
  static Value moveToHead(pipe::StoreOp op, int64_t half, Int32 firstRow, Int32 rows,
                          ElementPlaces &places) {
    ImplicitLocOpBuilder &b = places.b;
    ArrayRef<int64_t> sizes = *op.getHeads();
    int64_t heads = sizes[0], existing = sizes[1], elements = sizes[2];
    Int32 number = places.rowOf(half) - firstRow, head = number % heads;
    Int32 row = firstRow + number / heads;
    places.line = row - ElementPlaces::lineBehind(half);
    places.shift = head * elements;
    Value exists = row < rows;
    return heads == existing ? exists : arith::AndIOp::create(b, exists, head < existing);
  }

  /// Words that four threads exchange, and the elements of a row that a thread then has.
  static constexpr int64_t kTiles = 4;
  static int64_t columnsOfThread(pipe::StoreOp op) {
    return 128 / int64_t(op.getThreadType().getElementTypeBitWidth());
  }

  static bool exchanges(pipe::StoreOp op) {
    int64_t bits = op.getThreadType().getElementTypeBitWidth(), columns = columnsOfThread(op);
    return (bits == 16 || bits == 8) && op.getThreadType().getNumElements() % (2 * columns) == 0 &&
           hasMultipleColumns(op.getBufferType(), columns);
  }

  /// The words of row `half` that a thread has: of a tile of 16 bits, or of two neighbours of 8.
  static SmallVector<Value> wordsOfRow(ImplicitLocOpBuilder &b, pipe::StoreOp op, OpAdaptor adaptor,
                                       int64_t half) {
    int64_t count = op.getThreadType().getNumElements();
    bool areBytes = op.getThreadType().getElementTypeBitWidth() == 8;
    auto pairs = VectorType::get(count / 2, b.getIntegerType(areBytes ? 16 : 32));
    Value all = LLVM::BitcastOp::create(b, pairs, adaptor.getValue());
    SmallVector<Value> words;
    for (int64_t i = half / 2; i < count / 2; i += areBytes ? 4 : 2) {
      Value word = vector::ExtractOp::create(b, all, i);
      if (areBytes) {
        auto both = VectorType::get(2, b.getIntegerType(16));
        Value other = vector::ExtractOp::create(b, all, i + 2);
        word = LLVM::BitcastOp::create(
            b, b.getI32Type(), vector::FromElementsOp::create(b, both, ValueRange{word, other}));
      }
      words.push_back(word);
    }
    return words;
  }

  /// The words of row `half` of each four tiles, after their exchange.
  static SmallVector<Value> rowsOfTiles(ImplicitLocOpBuilder &b, pipe::StoreOp op,
                                        OpAdaptor adaptor, int64_t half) {
    SmallVector<Value> words = wordsOfRow(b, op, adaptor, half);
    Int32 lane(b, NVVM::LaneIdOp::create(b, b.getI32Type()));
    for (size_t first = 0; first < words.size(); first += kTiles)
      transpose(b, lane, MutableArrayRef(words).slice(first, kTiles));
    return words;
  }

  /// Exchanges words among four lanes: word j of lane i becomes word i of lane j.
  static void transpose(ImplicitLocOpBuilder &b, Int32 lane, MutableArrayRef<Value> words) {
    for (int64_t distance : {1, 2}) {
      Value upper =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ne, lane & distance, Int32(b, int64_t(0)));
      for (int64_t i = 0; i < kTiles; ++i) {
        if (i & distance)
          continue;
        Value &low = words[i], &high = words[i | distance];
        Value given = arith::SelectOp::create(b, upper, low, high);
        Value taken = valueOfPartner(b, given, distance);
        low = arith::SelectOp::create(b, upper, taken, low);
        high = arith::SelectOp::create(b, upper, high, taken);
      }
    }
  }

  /// Stores rows of tiles: lane l has the row of tile l % 4 of four.
  static void storeTiles(ImplicitLocOpBuilder &b, pipe::StoreOp op, OpAdaptor adaptor,
                         const ElementPlaces &places, int64_t half, ArrayRef<Value> words) {
    Int32 columns(b, columnsOfBuffer(b, op.getLoc(), op.getDest()));
    int64_t unit = columnsOfThread(op);
    Int32 mine = Int32(b, adaptor.getColumn()) +
                 Int32(b, NVVM::LaneIdOp::create(b, b.getI32Type())) % kTiles * unit;
    for (size_t first = 0; first < words.size(); first += kTiles) {
      Int32 column = places.inHead(mine + int64_t(first) * unit);
      auto branch = scf::IfOp::create(b, column < columns, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(branch.thenBlock());
      auto type = VectorType::get(kTiles, b.getI32Type());
      Value value = vector::FromElementsOp::create(b, type, words.slice(first, kTiles));
      if (op.getThreadType().getElementTypeBitWidth() == 8) { // the first tile of each, the second
        auto pairs = VectorType::get(2 * kTiles, b.getIntegerType(16));
        Value halves = LLVM::BitcastOp::create(b, pairs, value);
        halves =
            vector::ShuffleOp::create(b, halves, halves, ArrayRef<int64_t>{0, 2, 4, 6, 1, 3, 5, 7});
        value = LLVM::BitcastOp::create(b, type, halves);
      }
      LLVM::StoreOp::create(b, value, pointerTo(b, op, adaptor, places.rowOf(half), column), 16);
    }
  }

  /// Stores elements of 16 bits: every 8 x 8 is transposed between the threads of a warp, so that a
  /// thread has two neighbours of a row of the result, and four threads 16 bytes of the row.
  void storeMatrices(ImplicitLocOpBuilder &b, pipe::StoreOp op, OpAdaptor adaptor,
                     Int32 rows) const {
    int64_t count = op.getThreadType().getNumElements();
    Int32 columns(b, columnsOfBuffer(b, op.getLoc(), op.getDest()));
    MatrixPlaces places(b, threadOfRole(b, op, state), adaptor.getRow(), adaptor.getColumn());
    SmallVector<Value> words;
    for (int64_t i = 0; i < count; i += 2) {
      auto pair = vector::ExtractStridedSliceOp::create(b, adaptor.getValue(), ArrayRef<int64_t>{i},
                                                        ArrayRef<int64_t>{2}, ArrayRef<int64_t>{1});
      words.push_back(transposeMatrix(b, LLVM::BitcastOp::create(b, b.getI32Type(), pair)));
    }
    for (int64_t i = 0; i < count; i += 2) {
      Int32 row = places.rowOf(i), column = places.columnOf(i);
      Value exists = arith::AndIOp::create(b, row < rows, column < columns);
      auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(branch.thenBlock());
      Value line = lineOfBuffer(b, op.getLoc(), op.getDest(), adaptor.getDest(), row);
      LLVM::StoreOp::create(b, words[i / 2], stridedPointer(b, op.getLoc(), line, column, 2), 4);
    }
  }

  /// Stores through shared memory: a warpgroup exchanges its elements in lines of the result's rows
  /// with 64 columns each, so that eight threads store a line of 128 bytes.
  void storeStaged(ImplicitLocOpBuilder &b, pipe::StoreOp op, OpAdaptor adaptor, Int32 rows) const {
    Int32 group = groupOfThread(b, op, state), thread = threadOfRole(b, op, state) % kGroupThreads;
    int64_t bytes = kGroupThreads * op.getThreadType().getNumElements() * 2;
    Value space = stridedPointer(b, op.getLoc(),
                                 offsetPointer(b, op.getLoc(), state.sharedBase, *op.getPlace()),
                                 group, bytes);
    synchronizeGroup(b, group); // earlier reads of this memory
    stageMatrices(b, op, adaptor, space, thread);
    synchronizeGroup(b, group);
    constexpr int64_t chunks = kLineBytes / 16, columnsOfChunk = 8;
    int64_t lines = kGroupThreads / chunks;
    Int32 chunk = thread % chunks, own = thread / chunks,
          columns(b, columnsOfBuffer(b, op.getLoc(), op.getDest()));
    Int32 column = Int32(b, adaptor.getColumn()) + group * kGroupRows + chunk * columnsOfChunk;
    for (int64_t first = 0; first < bytes / kLineBytes; first += lines) {
      Int32 row = Int32(b, adaptor.getRow()) + own + first;
      Value exists = arith::AndIOp::create(b, row < rows, column < columns);
      auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(branch.thenBlock());
      TileLine line(space, pipe::Layout::Swizzle128B, own + first);
      auto type = VectorType::get(4, b.getI32Type());
      Value words = LLVM::LoadOp::create(b, type, line.at(chunk * 16), 16);
      LLVM::StoreOp::create(b, words, pointerTo(b, op, adaptor, row, column), 16);
    }
  }

  /// stmatrix.x4: 16 columns of the fragment, which are lines here, of this warp's 16 rows.
  static void stageMatrices(ImplicitLocOpBuilder &b, pipe::StoreOp op, OpAdaptor adaptor,
                            Value space, Int32 thread) {
    constexpr int64_t matrix = hw::fragmentTileColumns, together = 8;
    Int32 lane = thread % 32, number = lane / matrix;
    Int32 byte = thread / 32 * 32 + number % 2 * 16;
    auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), matrix, matrix);
    for (int64_t i = 0; i < op.getThreadType().getNumElements(); i += together) {
      Int32 row = number / 2 * matrix + lane % matrix + i / together * 2 * matrix;
      SmallVector<Value> words;
      for (int64_t j = i; j < i + together; j += 2) {
        auto pair =
            vector::ExtractStridedSliceOp::create(b, adaptor.getValue(), ArrayRef<int64_t>{j},
                                                  ArrayRef<int64_t>{2}, ArrayRef<int64_t>{1});
        words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
      }
      NVVM::StMatrixOp::create(b, TileLine(space, pipe::Layout::Swizzle128B, row).at(byte), words,
                               NVVM::MMALayout::col, shape, NVVM::LdStMatrixEltType::B16);
    }
  }

  /// A barrier of the threads of warpgroup `group` of the role; barrier 0 is the CTA's.
  static void synchronizeGroup(ImplicitLocOpBuilder &b, Int32 group) {
    NVVM::BarrierOp::create(b, TypeRange(), group + 1, Int32(b, kGroupThreads),
                            NVVM::BarrierReductionAttr(), Value());
  }

  /// Stores single elements: those of one row are columns of the result 8 apart, and those of
  /// neighbouring lanes lie between them.
  void storeTransposed(ImplicitLocOpBuilder &b, pipe::StoreOp op, OpAdaptor adaptor,
                       const ElementPlaces &places, Int32 rows) const {
    int64_t count = op.getThreadType().getNumElements();
    pipe::GlobalType dest = op.getBufferType();
    if (op.getStaged())
      return storeStaged(b, op, adaptor, rows);
    if (dest.getElementType().getIntOrFloatBitWidth() == 16 && hasMultipleColumns(dest, 2))
      return storeMatrices(b, op, adaptor, rows);
    Int32 columns(b, columnsOfBuffer(b, op.getLoc(), op.getDest()));
    for (int64_t i = 0; i < count; ++i) {
      Value exists = arith::AndIOp::create(b, places.rowOf(i) < rows, places.columnOf(i) < columns);
      auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(branch.thenBlock());
      storeElements(b, op, adaptor, places, i, 1);
    }
  }

  /// Stores pairs of columns where the number of columns is even.
  static void storePairs(ImplicitLocOpBuilder &b, pipe::StoreOp op, OpAdaptor adaptor,
                         const ElementPlaces &places, int64_t half) {
    int64_t together = hasMultipleColumns(op.getBufferType(), 2) ? 2 : 1;
    Int32 columns(b, columnsOfBuffer(b, op.getLoc(), op.getDest()));
    for (int64_t i = half; i < op.getThreadType().getNumElements(); i += 4)
      for (int64_t j = i; j < i + 2; j += together) {
        auto branch = scf::IfOp::create(b, places.columnOf(j) < columns, /*withElseRegion=*/false);
        OpBuilder::InsertionGuard restore(b);
        b.setInsertionPointToStart(branch.thenBlock());
        storeElements(b, op, adaptor, places, j, together);
      }
  }

  static Value pointerTo(ImplicitLocOpBuilder &b, pipe::StoreOp op, OpAdaptor adaptor, Int32 row,
                         Int32 column) {
    pipe::GlobalType dest = op.getBufferType();
    Value line = lineOfBuffer(b, op.getLoc(), op.getDest(), adaptor.getDest(), row);
    return stridedPointer(b, op.getLoc(), line, column,
                          dest.getElementType().getIntOrFloatBitWidth() / 8);
  }

  static void storeElements(ImplicitLocOpBuilder &b, pipe::StoreOp op, OpAdaptor adaptor,
                            const ElementPlaces &places, int64_t first, int64_t count) {
    Type element = op.getBufferType().getElementType();
    SmallVector<Value> elements;
    for (int64_t i = first; i < first + count; ++i)
      elements.push_back(vector::ExtractOp::create(b, adaptor.getValue(), i));
    Value value = count == 1 ? elements.front()
                             : vector::FromElementsOp::create(
                                   b, VectorType::get(count, elements.front().getType()), elements);
    LLVM::StoreOp::create(b, value,
                          pointerTo(b, op, adaptor, places.rowOf(first), places.columnOf(first)),
                          unsigned(element.getIntOrFloatBitWidth() / 8 * count));
  }
};

} // namespace

void fp4::populateElementPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                  const KernelState &state) {
  patterns.add<LowerReadFragment, LowerReadSums, LowerFragmentFactors, LowerStoreFragment>(
      converter, patterns.getContext(), state);
}
