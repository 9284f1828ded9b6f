//===- OperandPath.cpp - The way of an operand to the tensor core ---------===//

#include "OperandPath.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/ISA/WeightLayout.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

OperandPath::OperandPath(GemmKernel &kernel, OperandLoads &loads, bool isA)
    : b(kernel.b), gemm(kernel.gemm), args(kernel.args), loads(loads),
      way(isA ? *gemm.route().a : *gemm.route().b), isA(isA), isArgumentA(isA != gemm.transposes()),
      isPrepacked(way == route::Operand::Registers && gemm.prepackedB()) {
  if (isArgumentA)
    sources.push_back({args.a, args.scalesA});
  else
    sources.push_back({args.bb, args.scalesB});
  if (gemm.problem.dual && isA == gemm.record->isSwapped()) // weights
    sources.push_back({args.b2, args.scalesB2});
}

int64_t OperandPath::rowsOfPart() const {
  if (isA)
    return gemm.transposes() ? gemm.partColumns() : gemm.partRows();
  return gemm.transposes() ? gemm.tiling.tileM : gemm.tiling.tileN;
}

OperandTiles OperandPath::load(const Tile &tile, const KTile &k) {
  switch (way) {
  case route::Operand::AsIs:
  case route::Operand::UnitScales:
  case route::Operand::Pre:
    return loadAsIs(tile, k);
  case route::Operand::Registers:
  case route::Operand::Shared:
    return isPrepacked ? loadPrepacked(tile, k) : loadScaled(tile, k);
  case route::Operand::Tmem:
    return loadToTmem(tile, k);
  }
  llvm_unreachable("every way has its loads");
}

//===----------------------------------------------------------------------===//
// As it is
//===----------------------------------------------------------------------===//

/// The parts of the last k tile that exist, which the core counts: matrix steps, or scale tiles. A
/// block of 4 scales is one step of 64 when 16 elements share a scale.
Value OperandPath::countOfK(const KTile &k) {
  if (!gemm.takesScales())
    return {};
  bool isSingle = gemm.problem.mmaDepth == hw::MmaDepth::Single;
  if (gemm.route().core == route::Core::MmaSync || (gemm.problem.block == 16 && isSingle))
    return k.blocks;
  int64_t steps = gemm.tiling.tileK / gemm.stepK();
  return loads.existingOfK(b.mul(k.number, steps), steps, gemm.stepK());
}

/// Elements as memory has them, or as a kernel before has left them. The core takes them from
/// shared memory, and scales, if it takes any, from tensor memory or from registers.
OperandTiles OperandPath::loadAsIs(const Tile &tile, const KTile &k) {
  OperandTiles tiles;
  Value count = countOfK(k);
  auto [parts, direction] = isA ? std::pair(gemm.tiling.partsA(), Direction::N)
                                : std::pair(gemm.tiling.partsB(), gemm.tiling.directionB());
  SmallVector<Value> rows = {row(tile)};
  if (!isA && gemm.transposes()) // a tile has several parts beside weights converted before
    rows = tile.rows;
  for (const Source &from : sources)
    for (Value row : rows)
      tiles.push_back(
          {.data = loads.loadTile(from.data, row, k, parts, direction), .count = count});
  return tiles;
}

void OperandPath::takeScales(OperandTiles &tiles, const Tile &tile, const KTile &k, int64_t part) {
  using enum route::Operand;
  if (!gemm.takesScales() || !llvm::is_contained({AsIs, UnitScales, Pre}, way))
    return;
  KTile ofPart = k;
  if (gemm.problem.mmaDepth != hw::MmaDepth::Single)
    ofPart.blocks = {}; // the last step reads scales behind those that exist, which are zero
  if (gemm.scaleParts() > 1)
    ofPart.block = b.add(k.block, b.constant(part * gemm.scaleColumns() / kScaleBlockColumns));
  for (auto [operand, from] : llvm::zip_equal(tiles, sources))
    if (gemm.route().core == route::Core::Tcgen05)
      takeLaneScales(operand, from.scales, tile, ofPart);
    else if (from.scales)
      takeSharedScales(operand, from.scales, tile, k);
}

/// Scales of mma.sync stay in shared memory. Tiles begin at a row of a scale tile there.
void OperandPath::takeSharedScales(OperandTile &operand, Value from, const Tile &tile,
                                   const KTile &k) {
  Value row = scaleRow(tile);
  int64_t rows = rowsOfPart();
  operand.scales = loads.loadScales(from, loads.rowBlockOf(row), k, rows);
  operand.row = rows % kScaleBlockRows ? b.rem(row, kScaleBlockRows) : Value();
}

/// Copies scales to tensor memory.
void OperandPath::takeLaneScales(OperandTile &operand, Value from, const Tile &tile,
                                 const KTile &k) {
  Value scales = loads.loadLaneScales(isA, from, tile, k);
  auto type = cast<SharedType>(scales.getType());
  auto ofLanes =
      TmemType::get(type.getShape(), type.getElementType(), type.getLayout(), gemm.tiling.pair);
  operand.scales = CopyScalesOp::create(b, ofLanes, scales, k.blocks, IntegerAttr(), IntegerAttr(),
                                         IntegerAttr());
  operand.row = isA ? Value() : tile.bScaleRow;
}

//===----------------------------------------------------------------------===//
// Converted from shared memory
//===----------------------------------------------------------------------===//

/// The row of scale tiles that part `part` has. Rows of A behind the first part of a tile may not
/// exist. Then they take the scales of the last scale tile.
Value OperandPath::rowBlockOf(const Tile &tile, int64_t part) {
  if (hasUnitScales() || (!isA && gemm.transposes())) // the plan has one tile along m
    return b.constant(0);
  Value rowBlock = loads.rowBlockOf(ofPart(scaleRow(tile), part));
  if (!part)
    return rowBlock;
  Value all = gemm.transposes() ? args.columns : args.rows;
  if (!all && gemm.transposes())
    return rowBlock;
  Value last = all ? loads.rowBlockOf(b.sub(all, b.constant(1)))
                   : b.constant((gemm.scaleRowsA() - 1) / kScaleBlockRows);
  return arith::MinUIOp::create(b, rowBlock, last);
}

/// Rows of the result are computed before the first load, which counts those that exist. Kernels of
/// swapped operands keep the order of their instructions, with the scale tile before the elements.
OperandTiles OperandPath::loadScaled(const Tile &tile, const KTile &k) {
  OperandTiles tiles;
  KTile ofScales = k;
  if (hasUnitScales())
    ofScales.block = b.constant(0);
  bool areOfResult = !gemm.transposes();
  SmallVector<Value> rows;
  for (int64_t part = 0; areOfResult && part < parts(); ++part)
    rows.push_back(ofPart(row(tile), part));
  for (const Source &from : sources)
    for (int64_t part = 0; part < parts(); ++part) {
      Value rowBlock = areOfResult ? Value() : rowBlockOf(tile, part);
      Value first = areOfResult ? rows[part] : ofPart(row(tile), part);
      Value data = loads.loadTile(from.data, first, k);
      if (!rowBlock)
        rowBlock = rowBlockOf(tile, part);
      Value scales = loads.loadScales(from.scales, rowBlock, ofScales, rowsOfPart());
      tiles.push_back({.data = data, .scales = scales, .count = k.blocks});
    }
  return tiles;
}

//===----------------------------------------------------------------------===//
// Prepacked
//===----------------------------------------------------------------------===//

/// Takes the powers of the rows of weights, which have the same in all tiles: of the rows of each
/// fragment, or of the TMEM lanes.
void OperandPath::takePowers(Tile &tile) {
  bool isTmem = way == route::Operand::Tmem;
  if (gemm.hasUnevenWeights())
    return takeUnevenPowers(tile);
  auto type = isTmem ? DistributionAttr::tensorOf(FragmentKind::Lanes, gemm.chunk(), b.getF32Type())
                     : DistributionAttr::tensorOf(FragmentKind::Wgmma, 8, b.getF32Type());
  for (const Source &from : sources)
    for (int64_t part = 0; part < (isTmem ? 1 : parts()); ++part) {
      Value first = isTmem ? tile.rowA : ofPart(tile.rowB, part);
      tile.powers.push_back(FetchOp::create(b, type, from.data, loads.firstPacked(first)));
    }
}

/// Takes the powers of the rows of three warpgroups, which two tiles have.
void OperandPath::takeUnevenPowers(Tile &tile) {
  auto type = DistributionAttr::tensorOf(FragmentKind::Wgmma, 8, b.getF32Type());
  Value row = tile.rowB;
  tile.powers.push_back(FetchOp::create(b, type, sources.front().data, loads.firstPacked(row),
                                        rowInTile(row), loads.firstPacked(tileBehind(row)),
                                        /*transposed=*/false, /*one_row=*/false));
}

/// Before the k tiles, threads take the powers of the rows of weights where sums of all k tiles are
/// multiplied by them. Or they convert the first k tile: register-resident weights are loaded one k
/// tile early, in the stage of the activations before, so that a warpgroup converts them as soon as
/// these are multiplied.
void OperandPath::begin(Tile &tile) {
  bool isTmem = way == route::Operand::Tmem;
  if ((isPrepacked || isTmem) && gemm.route().accumulate == route::Accumulate::Fast)
    takePowers(tile);
  if (!isPrepacked || !gemm.holdsWeights())
    return;
  auto type = FragmentType::get(b.getContext(), {Gemm::kWarpgroupRows, hw::byteTileColumns},
                                b.getType<Float8E4M3FNType>(), FragmentKind::Wgmma);
  Value first = loads.loadPacked(sources.front().data, tile.rowB, tile.k.begin).rows;
  resident = DequantizeTileOp::create(b, type, first, /*scales=*/Value(), /*existing=*/Value())
                 .getResult();
  last = b.sub(tile.k.end, b.constant(1));
}

/// The first of the rows of three warpgroups in its tile: 0 or 64.
Value OperandPath::rowInTile(Value row) {
  constexpr int64_t half = Gemm::kWarpgroupRows;
  return b.mul(b.rem(b.div(row, half), hw::weightTileRows / half), half);
}

/// A row of the tile behind that of `row`. Behind the last tile of the weights it is loaded again.
Value OperandPath::tileBehind(Value row) {
  int64_t last = (hw::weightTilesOfRows(gemm.problem.columns) - 1) * hw::weightTileRows;
  return b.min(b.add(row, b.constant(hw::weightTileRows)), last);
}

/// The weights of three warpgroups: two tiles of 128 rows, of which theirs begin with the first or
/// in the middle of it.
OperandTile OperandPath::loadUneven(Value data, Value row, Value k) {
  auto [rows, count] = loads.loadPacked(data, row, k);
  return {.data = rows,
          .row = rowInTile(row),
          .count = count,
          .behind = loads.loadPacked(data, tileBehind(row), k).rows};
}

OperandTiles OperandPath::loadPrepacked(const Tile &tile, const KTile &k) {
  if (gemm.hasUnevenWeights())
    return {loadUneven(sources.front().data, tile.rowB, k.number)};
  Value number = k.number;
  if (resident) // behind the last k tile, that one is loaded again
    number = arith::MinSIOp::create(b, b.add(number, b.constant(1)), last);
  OperandTiles tiles;
  for (const Source &from : sources)
    for (int64_t part = 0; part < parts(); ++part) {
      auto [rows, count] = loads.loadPacked(from.data, ofPart(tile.rowB, part), number);
      tiles.push_back({.data = rows, .count = count, .resident = resident});
    }
  return tiles;
}

//===----------------------------------------------------------------------===//
// In tensor memory
//===----------------------------------------------------------------------===//

/// Weights that a role of threads makes 16-bit floats of, or e4m3.
OperandTiles OperandPath::loadToTmem(const Tile &tile, const KTile &k) {
  auto type = TmemType::get({gemm.tiling.blockM(), gemm.tiling.tileK}, gemm.floatB());
  OperandTiles tiles;
  for (const Source &from : sources)
    if (gemm.prepackedA()) {
      auto [rows, count] = loads.loadPacked(from.data, tile.rowA, k.number);
      auto floats =
          gemm.byAuxiliary(DequantizeTileOp::create(b, type, rows, /*scales=*/Value(), count));
      tiles.push_back({.data = floats.getResult(), .count = count});
    } else {
      Value codes = loads.loadTile(from.data, tile.rowA, k, gemm.tiling.partsA());
      Value scales = loads.loadLaneScales(/*ofA=*/true, from.scales, tile, k);
      auto floats = gemm.byAuxiliary(DequantizeTileOp::create(b, type, codes, scales, k.blocks));
      tiles.push_back({.data = floats.getResult()});
    }
  return tiles;
}
