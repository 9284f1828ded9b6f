//===- OperandPath.cpp - The way of an operand to the tensor core ---------===//

#include "OperandPath.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/ISA/WeightLayout.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
/// An operand of an instruction: its arguments of the kernel, and the rows that a tile has of it.
class Side {
public:
  Side(GemmKernel &kernel, bool isA)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), isA(isA),
        isArgumentA(isA != gemm.transposes()) {
    if (isArgumentA)
      sources.push_back({args.a, args.scalesA});
    else
      sources.push_back({args.bb, args.scalesB});
    if (gemm.problem.dual && isA == gemm.record->isSwapped()) // weights
      sources.push_back({args.b2, args.scalesB2});
  }

  Value row(const Tile &tile) const { return isArgumentA ? tile.rowA : tile.rowB; }
  Value scaleRow(const Tile &tile) const { return isArgumentA ? tile.scaleRowA : tile.scaleRowB; }
  /// Rows, of the lhs or of weights, of a part that has a fragment of its own.
  int64_t rowsOfPart() const {
    if (isA)
      return gemm.transposes() ? gemm.partColumns() : gemm.partRows();
    return gemm.transposes() ? gemm.tiling.tileM : gemm.tiling.tileN;
  }
  int64_t parts() const { return isA ? gemm.partsOfTile() : 1; }
  /// The first of such rows, where `first` is that of part 0.
  Value ofPart(Value first, int64_t part) const {
    return part ? b.add(first, b.constant(part * rowsOfPart())) : first;
  }

  struct Source {
    Value data, scales;
  };
  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  bool isA, isArgumentA;
  SmallVector<Source, 2> sources; ///< those of each GEMM
};

/// Elements as memory has them, or as a kernel before has left them. The core takes them from
/// shared memory, and scales, if it takes any, from tensor memory or from registers.
class TilePath : public OperandPath {
public:
  TilePath(const Side &side, OperandLoads &loads)
      : side(side), loads(loads), b(side.b), gemm(side.gemm) {}
  OperandTiles load(const Tile &tile, const KTile &k) override;
  void takeScales(OperandTiles &tiles, const Tile &tile, const KTile &k, int64_t part) override;

private:
  Value countOfK(const KTile &k);
  void takeLaneScales(OperandTile &operand, Value from, const Tile &tile, const KTile &k);
  void takeSharedScales(OperandTile &operand, Value from, const Tile &tile, const KTile &k);

  Side side;
  OperandLoads &loads;
  TileBuilder &b;
  const Gemm &gemm;
};

/// Elements and scales that warps convert, from shared memory to registers or to shared memory.
class ScaledPath : public OperandPath {
public:
  ScaledPath(const Side &side, OperandLoads &loads)
      : side(side), loads(loads), b(side.b), gemm(side.gemm), args(side.args) {}
  OperandTiles load(const Tile &tile, const KTile &k) override;

private:
  Value rowBlockOf(const Tile &tile, int64_t part);

  Side side;
  OperandLoads &loads;
  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
};

/// Prepacked weights, which warps convert on their way to the tensor core.
class PrepackedPath : public OperandPath {
public:
  PrepackedPath(const Side &side, OperandLoads &loads)
      : side(side), loads(loads), b(side.b), gemm(side.gemm) {}
  void begin(Tile &tile) override;
  OperandTiles load(const Tile &tile, const KTile &k) override;

private:
  Side side;
  OperandLoads &loads;
  TileBuilder &b;
  const Gemm &gemm;
  Value resident, last; ///< register-resident weights, and the last k tile; else null
};

/// Weights that a role of threads makes 16-bit floats of, in tensor memory.
class TmemPath : public OperandPath {
public:
  TmemPath(const Side &side, OperandLoads &loads)
      : side(side), loads(loads), b(side.b), gemm(side.gemm) {}
  OperandTiles load(const Tile &tile, const KTile &k) override;

private:
  Side side;
  OperandLoads &loads;
  TileBuilder &b;
  const Gemm &gemm;
};
} // namespace

//===----------------------------------------------------------------------===//
// As it is
//===----------------------------------------------------------------------===//

/// The parts of the last k tile that exist, which the core counts: matrix steps, or scale tiles. A
/// block of 4 scales is one step of 64 when 16 elements share a scale.
Value TilePath::countOfK(const KTile &k) {
  if (!gemm.takesScales())
    return {};
  if (gemm.route().core == route::Core::MmaSync || (gemm.problem.block == 16 && !gemm.problem.k96))
    return k.blocks;
  int64_t steps = gemm.tiling.tileK / gemm.stepK();
  return loads.existingOfK(b.mul(k.number, steps), steps, gemm.stepK());
}

OperandTiles TilePath::load(const Tile &tile, const KTile &k) {
  OperandTiles tiles;
  Value count = countOfK(k);
  auto [parts, direction] = side.isA ? std::pair(gemm.tiling.partsA(), Direction::N)
                                     : std::pair(gemm.tiling.partsB(), gemm.tiling.directionB());
  SmallVector<Value> rows = {side.row(tile)};
  if (!side.isA && gemm.transposes()) // a tile has several parts beside weights converted before
    rows = tile.rows;
  for (const Side::Source &from : side.sources)
    for (Value row : rows)
      tiles.push_back(
          {.data = loads.loadTile(from.data, row, k, parts, direction), .count = count});
  return tiles;
}

void TilePath::takeScales(OperandTiles &tiles, const Tile &tile, const KTile &k, int64_t part) {
  if (!gemm.takesScales())
    return;
  KTile ofPart = k;
  if (gemm.problem.k96) // the last step reads scales behind those that exist, which are zero
    ofPart.blocks = {};
  if (gemm.scaleParts() > 1)
    ofPart.block = b.add(k.block, b.constant(part * gemm.scaleColumns() / kScaleBlockColumns));
  for (auto [operand, from] : llvm::zip_equal(tiles, side.sources))
    if (gemm.route().core == route::Core::Tcgen05)
      takeLaneScales(operand, from.scales, tile, ofPart);
    else if (from.scales)
      takeSharedScales(operand, from.scales, tile, k);
}

/// Scales of mma.sync stay in shared memory. Tiles begin at a row of a scale tile there.
void TilePath::takeSharedScales(OperandTile &operand, Value from, const Tile &tile,
                                const KTile &k) {
  Value row = side.scaleRow(tile);
  int64_t rows = side.rowsOfPart();
  operand.scales = loads.loadScales(from, loads.rowBlockOf(row), k, rows);
  operand.row = rows % kScaleBlockRows ? b.rem(row, kScaleBlockRows) : Value();
}

/// Copies scales to tensor memory.
void TilePath::takeLaneScales(OperandTile &operand, Value from, const Tile &tile, const KTile &k) {
  Value scales = loads.loadLaneScales(side.isA, from, tile, k);
  auto type = cast<SharedType>(scales.getType());
  auto ofLanes =
      TmemType::get(type.getShape(), type.getElementType(), type.getLayout(), gemm.tiling.pair);
  operand.scales = CopyScalesOp::create(b, ofLanes, scales, k.blocks, IntegerAttr(), IntegerAttr(),
                                         IntegerAttr());
  operand.row = side.isA ? Value() : tile.bScaleRow;
}

//===----------------------------------------------------------------------===//
// Converted from shared memory
//===----------------------------------------------------------------------===//

/// The row of scale tiles that part `part` has. Rows of A behind the first part of a tile may not
/// exist. Then they take the scales of the last scale tile.
Value ScaledPath::rowBlockOf(const Tile &tile, int64_t part) {
  if (!side.isA && gemm.transposes()) // the plan has one tile along m
    return b.constant(0);
  Value rowBlock = loads.rowBlockOf(side.ofPart(side.scaleRow(tile), part));
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
OperandTiles ScaledPath::load(const Tile &tile, const KTile &k) {
  OperandTiles tiles;
  bool areOfResult = !gemm.transposes();
  SmallVector<Value> rows;
  for (int64_t part = 0; areOfResult && part < side.parts(); ++part)
    rows.push_back(side.ofPart(side.row(tile), part));
  for (const Side::Source &from : side.sources)
    for (int64_t part = 0; part < side.parts(); ++part) {
      Value rowBlock = areOfResult ? Value() : rowBlockOf(tile, part);
      Value row = areOfResult ? rows[part] : side.ofPart(side.row(tile), part);
      Value data = loads.loadTile(from.data, row, k);
      if (!rowBlock)
        rowBlock = rowBlockOf(tile, part);
      Value scales = loads.loadScales(from.scales, rowBlock, k, side.rowsOfPart());
      tiles.push_back({.data = data, .scales = scales, .count = k.blocks});
    }
  return tiles;
}

//===----------------------------------------------------------------------===//
// Prepacked
//===----------------------------------------------------------------------===//

/// Before the k tiles, threads take the powers of the rows of weights, which have the same in all
/// tiles. Or they convert the first k tile: register-resident weights are loaded one k tile early,
/// in the stage of the activations before, so that a warpgroup converts them as soon as these are
/// multiplied.
void PrepackedPath::begin(Tile &tile) {
  if (gemm.route().accumulate == route::Accumulate::Fast) {
    auto ofRows = DistributionAttr::tensorOf(FragmentKind::Wgmma, 8, b.getF32Type());
    for (int64_t part = 0; part < side.parts(); ++part)
      tile.powers.push_back(LoadFactorsOp::create(b, ofRows, side.sources.front().data,
                                                  loads.firstPacked(side.ofPart(tile.rowB, part))));
  }
  if (!gemm.holdsWeights())
    return;
  auto type = FragmentType::get(b.getContext(), {Gemm::kWarpgroupRows, hw::byteTileColumns},
                                b.getType<Float8E4M3FNType>(), FragmentKind::Wgmma);
  Value first = loads.loadPacked(side.sources.front().data, tile.rowB, tile.k.begin).rows;
  resident = DequantizeTileOp::create(b, type, first, /*scales=*/Value(), /*existing=*/Value())
                 .getResult();
  last = b.sub(tile.k.end, b.constant(1));
}

OperandTiles PrepackedPath::load(const Tile &tile, const KTile &k) {
  Value number = k.number;
  if (resident) // behind the last k tile, that one is loaded again
    number = arith::MinSIOp::create(b, b.add(number, b.constant(1)), last);
  OperandTiles tiles;
  for (const Side::Source &from : side.sources)
    for (int64_t part = 0; part < side.parts(); ++part) {
      auto [rows, count] = loads.loadPacked(from.data, side.ofPart(tile.rowB, part), number);
      tiles.push_back({.data = rows, .count = count, .resident = resident});
    }
  return tiles;
}

//===----------------------------------------------------------------------===//
// In tensor memory
//===----------------------------------------------------------------------===//

OperandTiles TmemPath::load(const Tile &tile, const KTile &k) {
  auto type = TmemType::get({gemm.tiling.blockM(), gemm.tiling.tileK}, gemm.floatB());
  OperandTiles tiles;
  for (const Side::Source &from : side.sources)
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

static std::unique_ptr<OperandPath> makePath(route::Operand way, const Side &side,
                                             OperandLoads &loads) {
  switch (way) {
  case route::Operand::AsIs:
  case route::Operand::UnitScales:
  case route::Operand::Pre:
    return std::make_unique<TilePath>(side, loads);
  case route::Operand::Registers:
    if (side.gemm.prepackedB())
      return std::make_unique<PrepackedPath>(side, loads);
    return std::make_unique<ScaledPath>(side, loads);
  case route::Operand::Shared:
    return std::make_unique<ScaledPath>(side, loads);
  case route::Operand::Tmem:
    return std::make_unique<TmemPath>(side, loads);
  }
  llvm_unreachable("every way has its path");
}

std::unique_ptr<OperandPath> fp4::makePathOfA(GemmKernel &kernel, OperandLoads &loads) {
  return makePath(*kernel.gemm.route().a, Side(kernel, /*isA=*/true), loads);
}

std::unique_ptr<OperandPath> fp4::makePathOfB(GemmKernel &kernel, OperandLoads &loads) {
  return makePath(*kernel.gemm.route().b, Side(kernel, /*isA=*/false), loads);
}
