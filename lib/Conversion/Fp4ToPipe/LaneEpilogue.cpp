//===- LaneEpilogue.cpp - Results of GEMMs with sums in tensor memory -----===//

#include "LaneEpilogue.h"

#include "InlinePtx.h"

#include "fp4/Dialect/Pipe/IR/PipeLanes.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

void LaneEpilogue::begin() {
  auto scalar = [&](Value from) -> Value {
    return from ? broadcast(LoadScalarOp::create(b, b.getF32Type(), from)) : Value();
  };
  if (gemm.results.alpha == Results::Alpha::One) {
    alphaVector = scalar(args.alpha);
    alpha2Vector = scalar(args.alpha2);
  }
  if (gemm.results.derives())
    results.emplace(b, gemm, args.derived);
}

Value LaneEpilogue::broadcast(Value scalar) {
  auto type = VectorType::get({gemm.chunk()}, b.getF32Type());
  return vector::BroadcastOp::create(b, type, scalar);
}

/// The numbers of `global` that go with the chunk of a row from `column` of the tile's GEMM on.
Value LaneEpilogue::numbers(const Part &tile, Value column, VectorType type, Value global,
                            Value limit, bool ofGroup) {
  Value row = gemm.swapsOperands() ? column : tile.laneRow,
        first = gemm.swapsOperands() ? tile.row : column;
  return LoadFactorsOp::create(b, type, global, ofGroup ? tile.group.group : row, first, limit,
                               /*transposed=*/gemm.swapsOperands(), /*one_row=*/ofGroup);
}

Value LaneEpilogue::factors(const Part &tile, Value alphas, Value column) {
  return conversion.loadAlphas(gemm.chunk(), alphas,
                               [&](VectorType type, Value global, Value limit, bool ofGroup) {
                                 return numbers(tile, column, type, global, limit, ofGroup);
                               });
}

/// Runs `body` for the columns of the tile that exist, of the first `most`, a chunk at a time.
void LaneEpilogue::forColumns(const Part &tile, int64_t most, TileBuilder::LoopBody body) {
  if (most == 0)
    return;
  Value columns = b.constant(most);
  if (gemm.hasRaggedColumns())
    columns = b.min(b.sub(works.endOfColumns(tile), tile.column), most);
  b.loop(b.constant(0), columns, b.constant(gemm.chunk()), body);
}

/// The registers of a chunk that is converted here and not where it is stored.
SmallVector<Value> LaneEpilogue::registersOf(Value chunk) {
  auto type = cast<VectorType>(chunk.getType());
  int64_t bits = type.getElementTypeBitWidth(), count = type.getNumElements() * bits / 32;
  if (bits != 32)
    chunk = vector::BitCastOp::create(b, VectorType::get({count}, b.getI32Type()), chunk);
  SmallVector<Value> registers;
  for (int64_t i = 0; i < count; ++i)
    registers.push_back(vector::ExtractOp::create(b, chunk, i));
  return bits == 32 ? registers : computeHere(b, b.getLoc(), registers);
}

/// The chunk, or chunks side by side, that registers have.
Value LaneEpilogue::chunkOf(ValueRange registers, Type element) {
  int64_t count = registers.size();
  auto words = VectorType::get({count}, registers.front().getType());
  Value packed = vector::FromElementsOp::create(b, words, registers);
  int64_t perWord = 32 / element.getIntOrFloatBitWidth();
  if (perWord == 1)
    return packed;
  return vector::BitCastOp::create(b, VectorType::get({count * perWord}, element), packed);
}

Value LaneEpilogue::hold(Value chunk) {
  return chunkOf(registersOf(chunk), cast<VectorType>(chunk.getType()).getElementType());
}

/// A chunk of the sums of each GEMM.
SmallVector<Value> LaneEpilogue::read(ValueRange accs, Value column) {
  auto wide = VectorType::get({gemm.chunk()}, b.getF32Type());
  if (columnOfGroup)
    column = b.add(column, columnOfGroup);
  return llvm::map_to_vector(
      accs, [&](Value acc) -> Value { return ReadOp::create(b, wide, acc, column); });
}

/// The column that is read or stored in the place of `column`.
Value LaneEpilogue::inTurn(int64_t column) {
  return flip ? arith::XOrIOp::create(b, flip, b.constant(column)).getResult() : b.constant(column);
}

/// Reads the accumulator, converts and stores it. If the next tile waits for the accumulator, the
/// last columns stay in registers until all of it is read, and it is given back before they are
/// stored. Each chunk is on its way while the chunk before it is converted; a store may take
/// several chunks. A half for which the next tile waits is read before any of it is converted.
void LaneEpilogue::drain(ValueRange accs, const Part &tile, Conversion convert, Storing store) {
  int64_t most = gemm.tiling.laneColumns(), chunk = gemm.chunk();
  int64_t streamed = flip ? 0 : most - gemm.heldColumns();
  auto stream = [&](Value column) {
    SmallVector<Value> sums = read(accs, column);
    Value place = b.add(tile.column, column);
    store(convert(sums, orLast(place)), place);
  };
  if (gemm.results.storesTiles && streamed < most) // written out, to share stages
    for (int64_t column = 0; column < streamed; column += chunk)
      stream(b.constant(column));
  else
    forColumns(tile, streamed, stream);
  SmallVector<SmallVector<Value>> chunks;
  auto readUpTo = [&](int64_t end) {
    for (int64_t column; (column = streamed + int64_t(chunks.size()) * chunk) < end;)
      chunks.push_back(read(accs, inTurn(column)));
  };
  if (flip)
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
    element = cast<VectorType>(converted.getType()).getElementType();
    SmallVector<Value> registers = registersOf(converted);
    size = registers.size() * piece / chunk;
    llvm::append_range(held, registers);
    if (flip)
      storeUpTo((column + chunk) / piece * piece);
  }
  storeUpTo(most);
}

/// Registers have constant numbers, so the chunks are written out; a store knows what of them
/// exists.
void LaneEpilogue::drainRegisters(Value acc, const Part &tile, Conversion convert, Storing store) {
  auto type = VectorType::get({gemm.chunk()}, b.getF32Type());
  int64_t columns = gemm.tiling.tileN / gemm.tiling.laneGroups;
  for (int64_t column = 0; column < columns; column += gemm.chunk()) {
    Value sums = ReadLanesOp::create(b, type, acc, b.getI64IntegerAttr(column));
    Value place = b.add(tile.column, b.constant(column));
    store(convert(sums, orLast(place)), place);
  }
}

/// Columns that do not exist take what goes with the last that do. Rows of groups are clamped where
/// their numbers are loaded.
Value LaneEpilogue::orLast(Value column) {
  if (!gemm.hasRaggedColumns() || (gemm.swapsOperands() && gemm.problem.groups))
    return column;
  Value all = works.givenN();
  if (!all)
    return b.min(column, (llvm::divideCeil(gemm.n(), gemm.chunk()) - 1) * gemm.chunk());
  Value chunks = b.sub(b.quotientUp(all, gemm.chunk()), b.constant(1));
  return arith::MinSIOp::create(b, column, b.mul(chunks, gemm.chunk()));
}

/// Converts a chunk of sums of each GEMM.
Value LaneEpilogue::convert(ValueRange chunks, const Part &tile, Value column) {
  bool ofColumns = gemm.hasAlphaOfColumns();
  SmallVector<SumConversion::Sums> sums;
  auto restored = [&](Value chunk) {
    return conversion.timesPower(chunk, gemm.restoringExponent());
  };
  sums.push_back(
      {restored(chunks[0]), ofColumns ? factors(tile, args.alpha, column) : tile.factor});
  if (gemm.problem.dual)
    sums.push_back(
        {restored(chunks[1]), ofColumns ? factors(tile, args.alpha2, column) : tile.factor2});
  return conversion.convertSums(sums,
                                [&](VectorType type, Value global, Value limit, bool ofGroup) {
                                  return numbers(tile, column, type, global, limit, ofGroup);
                                });
}

void LaneEpilogue::store(Value chunk, const Part &tile, Value column) {
  if (gemm.swapsOperands()) {
    StoreOp::create(b, chunk, args.result, column, tile.row,
                    tile.group.rowLimit ? tile.group.rowLimit : args.rows,
                    /*transposed=*/true);
    return;
  }
  if (!gemm.results.storesTiles) {
    StoreOp::create(b, chunk, args.result, tile.laneRow, column,
                    tile.group.rowLimit ? tile.group.rowLimit : args.rows);
    return;
  }
  auto box = cast<TensorMapType>(args.result.getType());
  bool isOfTwo = gemm.tiling.splitsColumns() || gemm.tiling.epilogueGroups > 1;
  IntegerAttr halves = isOfTwo ? b.getI64IntegerAttr(gemm.tiling.laneColumns()) : nullptr;
  SmallVector<int64_t> rowsAndColumns = {kMmaM * gemm.tiling.epilogueGroups, box.getColumns()};
  auto type = SharedType::get(rowsAndColumns, box.getElementType(), box.getLayout());
  Value staged = StageOp::create(b, type, chunk, Value()).getResult();
  StoreTileOp::create(b, staged, args.result, tile.row, column, halves);
}

/// Returns the part of the tile that a thread has. Threads of the two halves of the TMEM lanes have
/// the same rows and different columns, and so have warpgroups.
LaneEpilogue::Part LaneEpilogue::partOfThread(const Tile &tile, Value acc) {
  Part part{tile, tile.row, {}, alphaVector, alpha2Vector};
  if (tile.group.alpha)
    part.factor = broadcast(tile.group.alpha);
  if (tile.group.alpha2)
    part.factor2 = broadcast(tile.group.alpha2);
  if (gemm.tiling.epilogueGroups > 1)
    part.laneColumn = columnOfGroup = LaneColumnOp::create(b, b.getI32Type(), acc);
  if (gemm.tiling.splitsColumns()) {
    Value half = LaneHalfOp::create(b, b.getI32Type());
    part.laneRow = b.sub(tile.row, b.mul(half, gemm.tiling.blockM()));
    part.laneColumn = b.mul(half, gemm.tiling.laneColumns());
  }
  if (gemm.hasAlphaOfThread()) {
    part.factor = factors(part, args.alpha, tile.column);
    if (gemm.problem.dual)
      part.factor2 = factors(part, args.alpha2, tile.column);
  }
  return part;
}

/// The column of a thread that reads what goes with `column` in the first lanes.
Value LaneEpilogue::ofThread(const Part &part, Value column) {
  return part.laneColumn ? b.add(column, part.laneColumn) : column;
}

/// The column of ofThread, or the last that exists: a half of the columns may end behind the
/// result.
Value LaneEpilogue::ofThreadOrLast(const Part &part, Value column) {
  return part.laneColumn ? orLast(ofThread(part, column)) : column;
}

/// Warpgroups that add up sums of k tiles have parts of the columns, in their registers.
void LaneEpilogue::finish(ValueRange accs, const Tile &tile) {
  Tile ofThreads = tile;
  flip = tile.flip;
  if (gemm.tiling.laneGroups > 1)
    ofThreads.column = b.add(tile.column, LaneColumnOp::create(b, b.getI32Type(), accs.front()));
  Part part = partOfThread(ofThreads, accs.front());
  finish(accs, part, [&](Conversion convert, Storing store) {
    if (gemm.tiling.laneGroups)
      drainRegisters(accs.front(), part, convert, store);
    else
      drain(accs, part, convert, store);
  });
}

void LaneEpilogue::finish(ValueRange accs, const Part &tile, Drain drain) {
  if (gemm.work.stream)
    return buildShare(tile, drain);
  if (gemm.work.reducesInCluster)
    return reduceInCluster(accs.front(), tile);
  if (gemm.work.splits > 1)
    return buildReduction(tile, drain);
  if (results) {
    Value first = ofThread(tile, tile.column);
    ResultPlace place{tile.laneRow, first, tile.group.rowLimit ? tile.group.rowLimit : args.rows,
                      tile.group.scaleShift};
    return results->emitTile(place, [&](Value column) {
      return hold(convert(read(accs, column), tile, orLast(b.add(first, column))));
    });
  }
  drain([&](ValueRange sums,
            Value column) { return convert(sums, tile, ofThreadOrLast(tile, column)); },
        [&](Value chunk, Value column) { // a tile that leaves is that of all threads
          store(chunk, tile, gemm.results.storesTiles ? column : ofThread(tile, column));
        });
}
