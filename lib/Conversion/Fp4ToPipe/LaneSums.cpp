//===- LaneSums.cpp - Sums in tensor memory -------------------------------===//
//
// Split-K: each CTA has a part of K, and leaves its sums in a workspace. The sums of a part are a
// matrix of whole tiles behind that of the part before. The last CTA of a tile adds them from the
// first part to the last, and finishes the tile. If the number of columns is not known, each tile
// of columns has such a workspace of its own behind the one before it.
//
// Or the CTAs of a cluster have the split-K parts of a tile. Each adds some of its columns, and
// finishes them.
//
// Or workers share tiles, as a table says (StreamTable.cpp).
//
//===----------------------------------------------------------------------===//

#include "LaneSums.h"

#include "InlinePtx.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Threads of the two halves of the TMEM lanes have the same rows and different columns, and so
/// have warpgroups. Warpgroups that add up sums of k tiles have parts of the columns, in their
/// registers.
void LaneSums::take(ValueRange accumulators, const Tile &ofCta) {
  accs.assign(accumulators.begin(), accumulators.end());
  tile = ofCta;
  laneColumn = columnOfGroup = {};
  if (gemm.tiling.laneGroups > 1)
    tile.column = b.add(tile.column, PlaceOp::create(b, accs.front()).getColumn());
  laneRow = tile.row;
  if (gemm.tiling.epilogueGroups > 1)
    laneColumn = columnOfGroup = PlaceOp::create(b, accs.front()).getColumn();
  if (!gemm.tiling.splitsColumns())
    return;
  auto place = PlaceOp::create(b, accs.front());
  laneRow = b.add(tile.row, place.getRow());
  laneColumn = place.getColumn();
}

void LaneSums::complete(Conversion convert, Storing store) {
  if (gemm.work.stream)
    return share(convert, store);
  if (gemm.work.reducesInCluster)
    return reduceInCluster(convert, store);
  if (gemm.work.splits > 1)
    return reduce(convert, store);
  readTile(convert, store);
}

void LaneSums::readTile(Conversion convert, Storing store) {
  if (gemm.tiling.laneGroups)
    readRegisters(convert, store);
  else
    readAccumulators(convert, store);
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

Value LaneSums::ofThread(Value column) { return laneColumn ? b.add(column, laneColumn) : column; }

Value LaneSums::ofThreadOrLast(Value column) {
  return laneColumn ? orLast(ofThread(column)) : column;
}

/// Runs `body` for the columns of the tile that exist, of the first `most`, a chunk at a time.
void LaneSums::forColumns(int64_t most, TileBuilder::LoopBody body) {
  if (most == 0)
    return;
  Value columns = b.constant(most);
  if (gemm.hasRaggedColumns())
    columns = b.min(b.sub(works.endOfColumns(tile), tile.column), most);
  b.loop(b.constant(0), columns, b.constant(gemm.chunk()), body);
}

/// A chunk of the sums of each GEMM.
SmallVector<Value> LaneSums::read(OpFoldResult column) {
  auto readAll = [&](auto... from) {
    return llvm::map_to_vector(
        accs, [&](Value acc) -> Value { return ReadOp::create(b, chunkType(), acc, from...); });
  };
  if (gemm.tiling.laneGroups)
    return readAll(*getConstantIntValue(column), /*row=*/int64_t(0));
  Value first = b.valueOf(column);
  return readAll(columnOfGroup ? b.add(first, columnOfGroup) : first);
}

/// The registers of a chunk that is converted here and not where it is stored.
SmallVector<Value> LaneSums::registersOf(Value chunk) {
  VectorType type = vectorOfThread(chunk.getType());
  int64_t bits = type.getElementTypeBitWidth(), count = type.getNumElements() * bits / 32;
  Value words = b.toVector(chunk);
  if (bits != 32)
    words = vector::BitCastOp::create(b, VectorType::get({count}, b.getI32Type()), words);
  SmallVector<Value> registers = scalarsOf(b, words);
  return bits == 32 ? registers : computeHere(b, b.getLoc(), registers);
}

/// The chunk, or chunks side by side, that registers have.
Value LaneSums::chunkOf(ValueRange registers, Type element) {
  int64_t count = registers.size(), perWord = 32 / element.getIntOrFloatBitWidth();
  auto words = VectorType::get({count}, registers.front().getType());
  Value packed = vector::FromElementsOp::create(b, words, registers);
  if (perWord > 1)
    packed = vector::BitCastOp::create(b, VectorType::get({count * perWord}, element), packed);
  return b.fromVector(lanesType(count * perWord).clone(element), packed);
}

Value LaneSums::hold(Value chunk) {
  return chunkOf(registersOf(chunk), getElementTypeOrSelf(chunk.getType()));
}

/// The column that is read or stored in the place of `column`.
Value LaneSums::inTurn(int64_t column) {
  return tile.flip ? arith::XOrIOp::create(b, tile.flip, b.constant(column)).getResult()
                   : b.constant(column);
}

/// Reads the accumulator, converts and stores it. If the next tile waits for the accumulator, the
/// last columns stay in registers until all of it is read, and it is given back before they are
/// stored. Each chunk is on its way while the chunk before it is converted; a store may take
/// several chunks. A half for which the next tile waits is read before any of it is converted.
void LaneSums::readAccumulators(Conversion convert, Storing store) {
  int64_t most = gemm.tiling.laneColumns(), chunk = gemm.chunk();
  int64_t streamed = tile.flip ? 0 : most - gemm.heldColumns();
  auto stream = [&](Value column) {
    SmallVector<Value> sums = read(column);
    Value place = b.add(tile.column, column);
    store(convert(sums, orLast(place)), place);
  };
  if (gemm.results.storesTiles && streamed < most) // written out, to share stages
    for (int64_t column = 0; column < streamed; column += chunk)
      stream(b.constant(column));
  else
    forColumns(streamed, stream);
  SmallVector<SmallVector<Value>> chunks;
  auto readUpTo = [&](int64_t end) {
    for (int64_t column; (column = streamed + int64_t(chunks.size()) * chunk) < end;)
      chunks.push_back(read(inTurn(column)));
  };
  if (tile.flip)
    readUpTo(most / 2);
  SmallVector<Value> held;
  Type element;
  int64_t piece = gemm.storedColumns(), size = 0, stored = streamed;
  auto storeUpTo = [&](int64_t end) {
    for (; stored < end; stored += piece, held.erase(held.begin(), held.begin() + size))
      store(chunkOf(ArrayRef(held).take_front(size), element), b.add(tile.column, inTurn(stored)));
  };
  for (int64_t column = streamed; column < most; column += chunk) {
    readUpTo(std::min(column + 2 * chunk, most));
    Value place = b.add(tile.column, inTurn(column));
    Value converted = convert(chunks[(column - streamed) / chunk], orLast(place));
    element = getElementTypeOrSelf(converted.getType());
    SmallVector<Value> registers = registersOf(converted);
    size = registers.size() * piece / chunk;
    llvm::append_range(held, registers);
    if (tile.flip)
      storeUpTo((column + chunk) / piece * piece);
  }
  storeUpTo(most);
}

/// Registers have constant numbers, so the chunks are written out; a store knows what of them
/// exists.
void LaneSums::readRegisters(Conversion convert, Storing store) {
  for (int64_t column = 0; column < gemm.tiling.laneColumns(); column += gemm.chunk()) {
    SmallVector<Value> sums = read(b.getI64IntegerAttr(column));
    Value place = b.add(tile.column, b.constant(column));
    store(convert(sums, orLast(place)), place);
  }
}

/// Columns that do not exist take what goes with the last that do. Rows of groups are clamped where
/// their numbers are loaded.
Value LaneSums::orLast(Value column) {
  if (!gemm.hasRaggedColumns() || (gemm.swapsOperands() && gemm.problem.groups))
    return column;
  Value all = works.givenN();
  if (!all)
    return b.min(column, (llvm::divideCeil(gemm.n(), gemm.chunk()) - 1) * gemm.chunk());
  Value chunks = b.sub(b.quotientUp(all, gemm.chunk()), b.constant(1));
  return arith::MinSIOp::create(b, column, b.mul(chunks, gemm.chunk()));
}

//===----------------------------------------------------------------------===//
// Partial sums
//===----------------------------------------------------------------------===//

/// Index of the counter of this CTA's tile: rows of CTAs, then columns.
Value LaneSums::counterIndex() {
  Value column = b.div(tile.column, gemm.tiling.tileN);
  Value row = b.div(tile.row, gemm.tiling.blockM());
  if (gemm.dynamicColumns())
    return b.add(b.mul(column, gemm.tilesM() * gemm.tiling.clusterM), row);
  return b.add(b.mul(row, gemm.tilesN() * gemm.tiling.clusterN), column);
}

/// Returns the row of the workspace at which the sums of the first split-K part begin, and the row
/// behind those of the last. An unknown number of columns counts tiles, each with rows of its own.
LaneSums::RowsOfSums LaneSums::rowsOfSums() {
  Value rowsOfPart = b.mul(works.numM, gemm.tiling.workM()),
        all = b.mul(rowsOfPart, gemm.work.splits);
  if (!gemm.dynamicColumns())
    return {laneRow, rowsOfPart, all};
  Value number = b.div(tile.column, gemm.tiling.tileN);
  Value before = b.mul(number, all);
  return {b.add(before, laneRow), rowsOfPart, b.add(before, all)};
}

/// The column of the workspace in which the sums of `column` of the result are.
Value LaneSums::columnOfSums(Value column) {
  return gemm.dynamicColumns() ? b.sub(column, tile.column) : column;
}

/// The parts of a chunk, added from the first to the last.
Value LaneSums::sumOfParts(Value column) {
  auto [row, rowsOfPart, end] = rowsOfSums();
  column = columnOfSums(column);
  Value sum;
  for (int64_t part = 0; part < gemm.work.splits; ++part) {
    Value next = FetchOp::create(b, chunkType(), args.workspace, row, column, IntegerAttr());
    sum = sum ? arith::AddFOp::create(b, sum, next).getResult() : next;
    row = b.add(row, rowsOfPart);
  }
  return sum;
}

/// Every CTA leaves the sums of its part; the last one of a tile finishes it.
void LaneSums::reduce(Conversion convert, Storing store) {
  RowsOfSums rows = rowsOfSums();
  Value row = b.add(rows.first, b.mul(tile.part, rows.ofPart));
  readTile([](ValueRange sums, Value) { return sums.front(); },
           [&](Value sums, Value column) {
             Value place = columnOfSums(ofThread(column));
             StoreOp::create(b, sums, args.workspace, row, place, rows.end);
           });
  Value last = CountPartialOp::create(b, args.counters, counterIndex(), gemm.work.splits);
  b.when(last, [&] {
    forColumns(gemm.tiling.laneColumns(), [&](Value column) {
      Value place = b.add(tile.column, column), sums = sumOfParts(ofThread(place));
      store(convert({sums}, place), place);
    });
  });
}

/// Columns behind the tile, which the last CTA has where CTAs have no equal parts, are skipped.
void LaneSums::reduceInCluster(Conversion convert, Storing store) {
  int64_t width = gemm.reducedColumns(), chunk = gemm.chunk();
  auto reduce =
      ReduceOp::create(b, lanesType(width), accs.front(), /*columns=*/IntegerAttr(),
                       /*maximum=*/false, /*rows=*/IntegerAttr(), /*place=*/IntegerAttr());
  Value sums = b.toVector(reduce.getSums());
  Value first = b.mul(tile.part, width), all = b.constant(gemm.tiling.laneColumns());
  if (gemm.hasRaggedColumns()) {
    Value existing = works.endOfColumns(tile);
    Value before = ofThread(tile.column);
    all = b.min(b.sub(existing, before), gemm.tiling.laneColumns());
  }
  bool isWhole = !gemm.hasRaggedColumns() && gemm.tiling.laneColumns() % width == 0 &&
                 gemm.tiling.laneColumns() / width == gemm.work.reducedCtas();
  for (int64_t column = 0; column < width; column += chunk) {
    Value inTile = b.add(first, b.constant(column)), place = b.add(tile.column, inTile);
    auto finish = [&] {
      Value part = vector::ExtractStridedSliceOp::create(b, sums, ArrayRef(column), ArrayRef(chunk),
                                                         ArrayRef<int64_t>(1));
      store(convert({b.fromVector(chunkType(), part)}, place), place);
    };
    if (isWhole)
      finish();
    else
      b.when(b.compare(arith::CmpIPredicate::slt, inTile, all), finish);
  }
}

//===----------------------------------------------------------------------===//
// Tiles that workers share
//===----------------------------------------------------------------------===//

/// Returns the row of the workspace at which the sums begin that `part` of its tile leaves of this
/// CTA's rows.
Value LaneSums::rowOfSums(Value part) {
  Value share = b.add(tile.share.firstSums, part);
  if (works.placeM)
    share = b.add(b.mul(share, gemm.tiling.clusterM), works.placeM);
  return b.mul(share, gemm.rowsOfShare());
}

/// The rows of columns that a thread has side by side follow each other: those of all TMEM lanes,
/// then those of the next columns.
static int64_t linesOfColumns(int64_t columns) { return columns / Gemm::kShareColumns * kMmaM; }

void LaneSums::leaveShare(Value chunk, Value row, Value column) {
  constexpr int64_t count = Gemm::kShareColumns;
  row = b.add(row, b.mul(b.div(column, count), kMmaM));
  Value elements = b.toVector(chunk);
  for (int64_t first = 0; first < gemm.storedColumns(); first += count) {
    SmallVector<Value> sums;
    for (int64_t i = 0; i < count; ++i)
      sums.push_back(vector::ExtractOp::create(b, elements, first + i));
    auto type = VectorType::get({count}, b.getF32Type());
    Value part = b.fromVector(lanesType(count), vector::FromElementsOp::create(b, type, sums));
    StoreOp::create(b, part, args.workspace, b.add(row, b.constant(linesOfColumns(first))),
                    b.constant(0), Value());
  }
}

Value LaneSums::fetchShare(Value row, Value column) {
  constexpr int64_t count = Gemm::kShareColumns;
  row = b.add(row, b.mul(b.div(column, count), kMmaM));
  SmallVector<Value> sums;
  for (int64_t first = 0; first < gemm.chunk(); first += count) {
    Value part = b.toVector(FetchOp::create(b, lanesType(count), args.workspace,
                                            b.add(row, b.constant(linesOfColumns(first))),
                                            b.constant(0), IntegerAttr()));
    llvm::append_range(sums, scalarsOf(b, part));
  }
  auto all = VectorType::get({gemm.chunk()}, b.getF32Type());
  return b.fromVector(chunkType(), vector::FromElementsOp::create(b, all, sums));
}

/// The sums of all split-K parts of a tile, from the first to the last. The first two, which every
/// shared tile has, are on their way together.
Value LaneSums::sumOfShares(Value column) {
  Value first = fetchShare(rowOfSums(b.constant(0)), column);
  Value second = fetchShare(rowOfSums(b.constant(1)), column);
  Value both = arith::AddFOp::create(b, first, second);
  auto parts =
      scf::ForOp::create(b, b.constant(2), tile.share.parts, b.constant(1), ValueRange{both});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(parts.getBody());
  Value next = fetchShare(rowOfSums(parts.getInductionVar()), column);
  Value sum = arith::AddFOp::create(b, parts.getRegionIterArg(0), next);
  scf::YieldOp::create(b, sum);
  return parts.getResult(0);
}

void LaneSums::finishShared(Conversion convert, Storing store) {
  forColumns(gemm.tiling.laneColumns(), [&](Value column) {
    Value place = b.add(tile.column, column), sums = sumOfShares(column);
    store(convert({sums}, place), place);
  });
}

/// Stores a tile, or leaves its sums. The CTA that has all of a tile stores it. Every CTA of a
/// shared tile leaves its sums, and the last to come adds all of them.
void LaneSums::share(Conversion convert, Storing store) {
  Value isShared = b.compare(arith::CmpIPredicate::sgt, tile.share.parts, b.constant(1));
  Value row = rowOfSums(tile.share.part);
  readTile([](ValueRange sums, Value) { return sums.front(); },
           [&](Value sums, Value column) {
             b.when(
                 isShared, [&] { leaveShare(sums, row, b.sub(column, tile.column)); },
                 [&] { store(convert({sums}, orLast(column)), column); });
           });
  b.when(isShared, [&] {
    Value counter = works.placeM
                        ? b.add(b.mul(tile.share.counter, gemm.tiling.clusterM), works.placeM)
                        : tile.share.counter;
    Value last = CountPartialOp::create(b, args.counters, counter, tile.share.parts, IntegerAttr());
    b.when(last, [&] { finishShared(convert, store); });
  });
}
