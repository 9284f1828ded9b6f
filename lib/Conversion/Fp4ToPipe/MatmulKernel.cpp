//===- MatmulKernel.cpp - The sequential kernel of a matrix multiplication ===//
//
// The textbook algorithm on tiles: for every output tile of this CTA, accumulate over k tiles, then
// read the accumulator in column chunks, scale, convert and store. Counters and coordinates are
// i32. If K or N is not a multiple of a tile, the numbers of scale blocks, matrix steps and columns
// that exist are computed per tile; otherwise every count is static.
//
//===----------------------------------------------------------------------===//

#include "MatmulKernel.h"
#include "MatmulBuilder.h"

#include "InlinePtx.h"

#include "fp4/Dialect/Pipe/IR/PipeLanes.h"
#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

//===----------------------------------------------------------------------===//
// Body
//===----------------------------------------------------------------------===//

void MatmulBuilder::build() {
  if (gemm.results.clearsRows)
    works.clearRows();
  if (gemm.problem.groups && !gemm.route.swapsOperands()) {
    numM = works.countTilesOfGroups();
  } else if (Value ofM = gemm.route.swapsOperands() ? args.columns : args.rows) {
    numM = b.quotientUp(ofM, gemm.tiling.workM());
  } else if (gemm.work.stream) {
    numM = b.constant(gemm.work.streamWorks);
  } else {
    numM = b.constant(gemm.tilesM());
  }
  auto scalar = [&](Value from) -> Value {
    return from ? broadcast(LoadScalarOp::create(b, b.getF32Type(), from)) : Value();
  };
  if (gemm.results.alpha == Results::Alpha::One) {
    alphaVector = scalar(args.alpha);
    alpha2Vector = scalar(args.alpha2);
  }
  if (gemm.results.derives())
    results.emplace(b, gemm, args.derived);
  findPlaces();
  Value ofN = givenN();
  numTilesN = gemm.problem.groups && gemm.route.swapsOperands() ? works.countTilesOfGroups()
              : ofN ? b.quotientUp(ofN, gemm.tiling.workN())
                    : b.constant(gemm.tilesN());
  Value numN = gemm.work.stream ? b.constant(1) : b.mul(numTilesN, gemm.work.worksOfTile());
  if (gemm.tiling.alternates)
    b.forEachTurn(numM, numN, [&](Value m, Value n, Value turn) {
      flip = flipOf(turn);
      buildTile(m, n);
    });
  else
    b.forEachWork(numM, numN, [&](Value m, Value n) { buildTile(m, n); });
  gpu::ReturnOp::create(b);
}

Value MatmulBuilder::broadcast(Value scalar) {
  auto type = VectorType::get({gemm.chunk()}, b.getF32Type());
  return vector::BroadcastOp::create(b, type, scalar);
}

/// Finds the places of this CTA. For a reduction in the cluster, CTAs that share loads, or are a
/// pair, are neighbours, one split-K part behind the other.
void MatmulBuilder::findPlaces() {
  placeM = place(gpu::Dimension::x, gemm.clusterCtasM());
  placeN = place(gpu::Dimension::y, gemm.tiling.clusterN);
  if (!gemm.work.reducesInCluster)
    return;
  Value together = b.constant(gemm.tiling.clusterM), place = placeM;
  placeOfRange = arith::DivUIOp::create(b, place, together);
  placeM = {};
  if (gemm.tiling.clusterM > 1)
    placeM = arith::RemUIOp::create(b, place, together);
}

/// The place of this CTA in its cluster along m or n; null where there is one CTA.
Value MatmulBuilder::place(gpu::Dimension dimension, int64_t blocks) {
  if (blocks == 1)
    return {};
  return arith::IndexCastOp::create(b, b.getI32Type(), gpu::ClusterBlockIdOp::create(b, dimension));
}

/// The rows of the result that a tile of groups has, which with `swap` are columns of the GEMM, and
/// the group.
void MatmulBuilder::findGroup(Tile &tile, Value work) {
  (gemm.route.swapsOperands() ? tile.column : tile.row) = works.entry(args.table, work, 0);
  tile.rowLimit = works.entry(args.table, work, 1);
  (gemm.route.swapsOperands() ? tile.scaleRowB : tile.scaleRowA) = works.entry(args.table, work, 3);
  tile.group = works.entry(args.table, work, 2);
}

/// The weights of a group, their scales and its alphas lie behind those of the groups before.
void MatmulBuilder::moveToGroup(Tile &tile) {
  Value &row = gemm.route.swapsOperands() ? tile.rowA : tile.rowB;
  Value &scaleRow = gemm.route.swapsOperands() ? tile.scaleRowA : tile.scaleRowB;
  row = b.add(row, b.mul(tile.group, gemm.problem.columns));
  scaleRow = b.add(scaleRow, b.mul(tile.group, gemm.scaleRowsOfGroup()));
  if (Value own = works.alphaOfGroup(args.alpha, tile.group))
    tile.alpha = broadcast(own);
  if (Value own = works.alphaOfGroup(args.alpha2, tile.group))
    tile.alpha2 = broadcast(own);
}

/// The k tiles of a tile, or those of this CTA's split-K part.
void MatmulBuilder::findRange(Tile &tile, Value &n) {
  tile.k = works.allOfK();
  if (gemm.work.reducesInCluster) {
    tile.part = placeOfRange;
    tile.k = works.rangeOf(tile.part);
  } else if (gemm.work.splits > 1) {
    tile.part = arith::DivUIOp::create(b, n, numTilesN);
    tile.k = works.rangeOf(tile.part);
    n = arith::RemUIOp::create(b, n, numTilesN);
  }
}

MatmulBuilder::Tile MatmulBuilder::findTile(Value m, Value n) {
  auto shifted = [&](Value first, Value place, int64_t size) {
    return place ? b.add(first, b.mul(place, size)) : first;
  };
  Tile tile;
  findRange(tile, n);
  if (gemm.work.stream)
    tile.share = works.findShare(m, n, tile.k);
  if (gemm.problem.groups)
    findGroup(tile, gemm.route.swapsOperands() ? n : m);
  tile.row =
      shifted(tile.row ? tile.row : b.mul(m, gemm.tiling.workM()), placeM, gemm.tiling.blockM());
  tile.rowA = tile.row;
  tile.scaleRowA =
      tile.scaleRowA ? shifted(tile.scaleRowA, placeM, gemm.tiling.blockM()) : tile.row;
  tile.column =
      shifted(tile.column ? tile.column : b.mul(n, gemm.tiling.workN()), placeN, gemm.tiling.tileN);
  Value half = placeM; // half of B, that a CTA of a pair has
  if (gemm.tiling.pair && gemm.tiling.clusterM > 2)
    half = b.rem(placeM, 2);
  tile.rowB = gemm.tiling.pair ? shifted(tile.column, half, gemm.tiling.blockN()) : tile.column;
  tile.scaleRowB = tile.scaleRowB ? tile.scaleRowB : tile.column;
  tile.alpha = alphaVector;
  tile.alpha2 = alpha2Vector;
  if (gemm.problem.groups)
    moveToGroup(tile);
  tile.blockA =
      gemm.problem.groups || gemm.tiling.inCluster() ? operands.rowBlockOf(tile.scaleRowA) : m;
  tile.blockB = operands.rowBlockOf(tile.scaleRowB);
  // The tiles of 64, 96 and 192 columns often begin in the middle of the rows of a scale tile.
  if (gemm.splitsScaleBlocks())
    tile.bScaleRow = arith::RemUIOp::create(
        b, gemm.route.swapsOperands() ? tile.scaleRowB : tile.column, b.constant(kScaleBlockRows));
  return tile;
}

void MatmulBuilder::buildTile(Value m, Value n) {
  Tile tile = findTile(m, n);
  auto accType = TmemType::get({gemm.tiling.tileM, gemm.tiling.tileN}, b.getF32Type(),
                               Layout::Linear, gemm.tiling.pair);
  SmallVector<Value> accs;
  for (int64_t i = 0; i < (gemm.problem.dual ? 2 : 1); ++i)
    accs.push_back(AccumulatorOp::create(b, accType));
  buildAccumulation(accs, tile);
  buildEpilogue(accs, tile);
}

void MatmulBuilder::buildAccumulation(ValueRange accs, const Tile &tile) {
  b.loop(tile.k.begin, tile.k.end, b.constant(1), [&](Value k) { buildKTile(accs, tile, k); });
}

/// A tile of which each of `parts` CTAs along `direction` loads as much as the box of `map`.
Value MatmulBuilder::load(Value map, Value row, Value column, int64_t parts, Direction direction) {
  auto box = cast<TensorMapType>(map.getType());
  auto type = SharedType::get({box.getRows() * parts, gemm.tiling.tileK}, box.getElementType(),
                              box.getLayout());
  return operands.load(type, map, row, column, parts, direction);
}

bool MatmulBuilder::areUnitScales(Value from) {
  return (gemm.hasUnitScalesOfA() && from == args.scalesA) ||
         (gemm.hasUnitScalesOfB() && from == args.scalesB);
}

Value MatmulBuilder::loadScales(Value from, Value row, Value rowBlock, Value kBlock, Value blocks) {
  bool ofA = from == args.scalesA;
  int64_t parts = ofA ? gemm.partsScalesA() : gemm.partsScalesB();
  bool isHalved = gemm.tiling.splitsColumns() && !ofA;
  auto type =
      SharedType::get({ofA ? gemm.tiling.blockM() : gemm.rowsScalesB(), gemm.scaleColumns()},
                      gemm.problem.scaleType, isHalved ? Layout::Halves128x4 : Layout::Tiled128x4);
  if (areUnitScales(from)) // one tile of them is that of all tiles, in the L2 cache
    row = rowBlock = kBlock = b.constant(0);
  if (isHalved || gemm.tiling.inCluster())
    return operands.load(type, from, row, b.mul(kBlock, kScaleBlockColumns), parts,
                         ofA ? Direction::N : Direction::M);
  return LoadScalesOp::create(b, type, from, rowBlock, kBlock, blocks, Value(), Value(), Value(),
                              !ofA && gemm.fillsScaleBlocksB())
      .getResult();
}

void MatmulBuilder::buildKTile(ValueRange accs, const Tile &tile, Value k) {
  Value kElement = b.mul(k, gemm.tiling.tileK);
  auto [kBlock, blocks] = operands.scaleBlocksOf(k);
  Value steps = blocks; // a block of 4 scales is one step of 64 when 16 elements share a scale
  if (int64_t tileSteps = gemm.tiling.tileK / gemm.stepK();
      gemm.problem.block != 16 || gemm.problem.k96)
    steps = operands.existingOfK(b.mul(k, tileSteps), tileSteps, gemm.stepK());

  if (gemm.problem
          .k96) // the last step reads scales behind those that exist, which TMA has made zero
    blocks = Value();
  SmallVector<Value> bTiles, bScales;
  Value aTile = load(args.a, tile.rowA, kElement, gemm.tiling.partsA(), Direction::N);
  auto loadB = [&](Value map) {
    bTiles.push_back(
        load(map, tile.rowB, kElement, gemm.tiling.partsB(), gemm.tiling.directionB()));
  };
  auto loadScalesB = [&](Value from) {
    bScales.push_back(loadScales(from, tile.scaleRowB, tile.blockB, kBlock, blocks));
  };
  loadB(args.bb);
  if (gemm.problem.dual)
    loadB(args.b2);
  auto isMore = [&] { return b.compare(arith::CmpIPredicate::sgt, k, tile.k.begin); };
  if (gemm.scaleParts() > 1)
    return multiplyParts({accs.front(), aTile, bTiles.front(), isMore(), steps}, tile, kBlock);
  Value sa = loadScales(args.scalesA, tile.scaleRowA, tile.blockA, kBlock, blocks);
  loadScalesB(args.scalesB);
  if (gemm.problem.dual)
    loadScalesB(args.scalesB2);
  Value ta = copyScales(sa, blocks);
  SmallVector<Value> tbs =
      llvm::map_to_vector(bScales, [&](Value s) -> Value { return copyScales(s, blocks); });
  Value more = isMore();
  for (auto [acc, bTile, tb] : llvm::zip_equal(accs, bTiles, tbs))
    MmaOp::create(b, acc, aTile, ta, bTile, tb, tile.bScaleRow, more, steps, gemm.problem.k96,
                  DenseI64ArrayAttr());
}

/// The numbers of `global` that go with the chunk of a row from `column` of the tile's GEMM on.
Value MatmulBuilder::numbers(const Tile &tile, Value column, VectorType type, Value global,
                             Value limit, bool ofGroup) {
  Value row = gemm.route.swapsOperands() ? column : tile.laneRow,
        first = gemm.route.swapsOperands() ? tile.row : column;
  return LoadFactorsOp::create(b, type, global, ofGroup ? tile.group : row, first, limit,
                               /*transposed=*/gemm.route.swapsOperands(), /*one_row=*/ofGroup);
}

Value MatmulBuilder::factors(const Tile &tile, Value alphas, Value column) {
  return conversion.loadAlphas(gemm.chunk(), alphas,
                               [&](VectorType type, Value global, Value limit, bool ofGroup) {
                                 return numbers(tile, column, type, global, limit, ofGroup);
                               });
}

/// Runs `body` for the columns of the tile that exist, of the first `most`, a chunk at a time.
void MatmulBuilder::forColumns(const Tile &tile, int64_t most, TileBuilder::LoopBody body) {
  if (most == 0)
    return;
  Value columns = b.constant(most);
  if (gemm.hasRaggedColumns()) {
    columns = b.min(b.sub(endOfColumns(tile), tile.column), most);
  }
  b.loop(b.constant(0), columns, b.constant(gemm.chunk()), body);
}

/// The registers of a chunk that is converted here and not where it is stored.
SmallVector<Value> MatmulBuilder::registersOf(Value chunk) {
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
Value MatmulBuilder::chunkOf(ValueRange registers, Type element) {
  int64_t count = registers.size();
  auto words = VectorType::get({count}, registers.front().getType());
  Value packed = vector::FromElementsOp::create(b, words, registers);
  int64_t perWord = 32 / element.getIntOrFloatBitWidth();
  if (perWord == 1)
    return packed;
  return vector::BitCastOp::create(b, VectorType::get({count * perWord}, element), packed);
}

Value MatmulBuilder::hold(Value chunk) {
  return chunkOf(registersOf(chunk), cast<VectorType>(chunk.getType()).getElementType());
}

/// A chunk of the sums of each GEMM.
SmallVector<Value> MatmulBuilder::read(ValueRange accs, Value column) {
  auto wide = VectorType::get({gemm.chunk()}, b.getF32Type());
  if (columnOfGroup)
    column = b.add(column, columnOfGroup);
  return llvm::map_to_vector(
      accs, [&](Value acc) -> Value { return ReadOp::create(b, wide, acc, column); });
}

/// The last chunk of a tile comes first in even turns, and the first one in odd ones: what an
/// accumulator has in common with the next one, which lies behind it or before it.
Value MatmulBuilder::flipOf(Value turn) {
  Value odd = arith::AndIOp::create(b, turn, b.constant(1));
  Value even = arith::XOrIOp::create(b, odd, b.constant(1));
  return b.mul(even, gemm.tiling.tileN - gemm.chunk());
}

/// The column that is read or stored in the place of `column`.
Value MatmulBuilder::inTurn(int64_t column) {
  return flip ? arith::XOrIOp::create(b, flip, b.constant(column)).getResult() : b.constant(column);
}

/// Reads the accumulator, converts and stores it. If the next tile waits for the accumulator, the
/// last columns stay in registers until all of it is read, and it is given back before they are
/// stored. Each chunk is on its way while the chunk before it is converted; a store may take
/// several chunks. A half for which the next tile waits is read before any of it is converted.
void MatmulBuilder::drain(ValueRange accs, const Tile &tile, Conversion convert, Storing store) {
  int64_t most = gemm.tiling.laneColumns(), chunk = gemm.chunk();
  int64_t streamed = flip ? 0 : most - gemm.heldColumns();
  auto stream = [&](Value column) {
    SmallVector<Value> sums = read(accs, column);
    Value place = b.add(tile.column, column);
    store(convert(sums, orLast(place)), place);
  };
  if (gemm.results.storesTiles && streamed < most) // written out, to share stages with those held
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

/// Columns that do not exist take what goes with the last that do. Rows of groups are clamped where
/// their numbers are loaded.
Value MatmulBuilder::orLast(Value column) {
  if (!gemm.hasRaggedColumns() || (gemm.route.swapsOperands() && gemm.problem.groups))
    return column;
  Value all = givenN();
  if (!all)
    return b.min(column, (llvm::divideCeil(gemm.n(), gemm.chunk()) - 1) * gemm.chunk());
  Value chunks = b.sub(b.quotientUp(all, gemm.chunk()), b.constant(1));
  return arith::MinSIOp::create(b, column, b.mul(chunks, gemm.chunk()));
}

/// Converts a chunk of sums of each GEMM.
Value MatmulBuilder::convert(ValueRange chunks, const Tile &tile, Value column) {
  bool ofColumns = gemm.hasAlphaOfColumns();
  SmallVector<SumConversion::Sums> sums;
  auto restored = [&](Value chunk) {
    return conversion.timesPower(chunk, gemm.restoringExponent());
  };
  sums.push_back({restored(chunks[0]), ofColumns ? factors(tile, args.alpha, column) : tile.alpha});
  if (gemm.problem.dual)
    sums.push_back(
        {restored(chunks[1]), ofColumns ? factors(tile, args.alpha2, column) : tile.alpha2});
  return conversion.convertSums(sums,
                                [&](VectorType type, Value global, Value limit, bool ofGroup) {
                                  return numbers(tile, column, type, global, limit, ofGroup);
                                });
}

void MatmulBuilder::store(Value chunk, const Tile &tile, Value column) {
  if (gemm.route.swapsOperands()) {
    StoreOp::create(b, chunk, args.result, column, tile.row,
                    tile.rowLimit ? tile.rowLimit : args.rows,
                    /*transposed=*/true);
    return;
  }
  if (!gemm.results.storesTiles) {
    StoreOp::create(b, chunk, args.result, tile.laneRow, column,
                    tile.rowLimit ? tile.rowLimit : args.rows);
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
MatmulBuilder::Tile MatmulBuilder::partOfThread(Tile tile, Value acc) {
  tile.laneRow = tile.row;
  if (gemm.tiling.epilogueGroups > 1)
    tile.laneColumn = columnOfGroup = LaneColumnOp::create(b, b.getI32Type(), acc);
  if (!gemm.tiling.splitsColumns())
    return tile;
  Value half = LaneHalfOp::create(b, b.getI32Type());
  tile.laneRow = b.sub(tile.row, b.mul(half, gemm.tiling.blockM()));
  tile.laneColumn = b.mul(half, gemm.tiling.laneColumns());
  return tile;
}

/// The column of a thread that reads what goes with `column` in the first lanes.
Value MatmulBuilder::ofThread(const Tile &part, Value column) {
  return part.laneColumn ? b.add(column, part.laneColumn) : column;
}

/// The column of ofThread, or the last that exists: a half of the columns may end behind the
/// result.
Value MatmulBuilder::ofThreadOrLast(const Tile &part, Value column) {
  return part.laneColumn ? orLast(ofThread(part, column)) : column;
}

void MatmulBuilder::buildEpilogue(ValueRange accs, const Tile &found) {
  Tile tile = partOfThread(found, accs.front());
  if (gemm.hasAlphaOfThread()) {
    tile.alpha = factors(tile, args.alpha, tile.column);
    if (gemm.problem.dual)
      tile.alpha2 = factors(tile, args.alpha2, tile.column);
  }
  if (gemm.work.stream)
    return buildShare(accs, tile);
  if (gemm.work.reducesInCluster)
    return reduceInCluster(accs.front(), tile);
  if (gemm.work.splits > 1)
    return buildReduction(accs, tile);
  if (results) {
    Value first = ofThread(tile, tile.column);
    ResultPlace place{tile.laneRow, first, tile.rowLimit ? tile.rowLimit : args.rows, Value()};
    if (tile.group)
      place.scaleShift = b.sub(tile.scaleRowA, tile.row);
    return results->emitTile(place, [&](Value column) {
      return hold(convert(read(accs, column), tile, orLast(b.add(first, column))));
    });
  }
  drain(
      accs, tile,
      [&](ValueRange sums, Value column) {
        return convert(sums, tile, ofThreadOrLast(tile, column));
      },
      [&](Value chunk, Value column) { // a tile that leaves is that of all threads
        store(chunk, tile, gemm.results.storesTiles ? column : ofThread(tile, column));
      });
}

gpu::GPUFuncOp fp4::buildMatmulKernel(gpu::GPUModuleOp module, const Gemm &gemm,
                                      const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, gemm.argumentTypes(), plan, loc);
  // Without a declared number of CTAs per SM, ptxas spills registers of derived results, so that
  // more CTAs would fit than the shared memory allows. With the declaration, plain results have too
  // many loads on their way.
  if (gemm.problem.dual || gemm.results.withAmax || gemm.results.quantizer ||
      gemm.work.reducesInCluster || gemm.results.region)
    declareCtasPerSm(func, 1);
  if (gemm.scaleParts() > 1)
    func->setAttr(pipe::kSeparateScalesAttr, UnitAttr::get(func.getContext()));
  GemmKernel kernel(func, gemm, plan, loc);
  MatmulBuilder(kernel).build();
  return func;
}
