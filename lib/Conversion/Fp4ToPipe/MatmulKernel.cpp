//===- MatmulKernel.cpp - The sequential kernel of a matrix multiplication ===//
//
// The textbook algorithm on tiles: for every output tile of this block, accumulate over k tiles,
// then read the accumulator in column chunks, scale, convert and store. Counters and coordinates
// are i32. Where K or N is not a multiple of a tile, the numbers of scale blocks, matrix steps and
// columns that exist are computed per tile; where it is, they are left out and every count is
// static.
//
//===----------------------------------------------------------------------===//

#include "MatmulKernel.h"

#include "ElementwiseEmitter.h"
#include "TileBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static Type fp4Type(const MatmulShape &shape) {
  return Float4E2M1FNType::get(shape.scaleType.getContext());
}

/// A tile begins at a multiple of what its columns and a block have in common.
int64_t MatmulShape::rowsScalesB() const {
  int64_t first =
      splitsScaleBlocks() ? kScaleBlockRows - std::gcd(tileN, kScaleBlockRows) : 0;
  return llvm::alignTo(first + tileN, kScaleBlockRows);
}

TensorMapType MatmulShape::mapA() const {
  return TensorMapType::get({blockM() / partsA(), kPanel}, fp4Type(*this), Layout::Swizzle128B);
}
TensorMapType MatmulShape::mapB() const {
  return TensorMapType::get({blockN() / partsB(), kPanel}, fp4Type(*this), Layout::Swizzle128B);
}
Type MatmulShape::scalesA() const {
  if (inCluster())
    return TensorMapType::get({blockM(), tileK / block}, scaleType, Layout::Tiled128x4);
  return GlobalType::get({m, k / block}, scaleType, Layout::Tiled128x4);
}
Type MatmulShape::scalesB() const {
  if (inCluster())
    return TensorMapType::get({rowsScalesB() / partsScalesB(), tileK / block}, scaleType,
                              Layout::Tiled128x4);
  return GlobalType::get({n, k / block}, scaleType, Layout::Tiled128x4);
}
GlobalType MatmulShape::alphas() const {
  SmallVector<int64_t> size;
  if (alpha == Alpha::Rows)
    size = {m, 1};
  else if (alpha == Alpha::Columns)
    size = {1, n};
  return GlobalType::get(size, Float32Type::get(scaleType.getContext()));
}
Layout MatmulShape::stagedLayout() const {
  bool isWidest = chunk() * resultType.getIntOrFloatBitWidth() == 128 * 8;
  return isWidest ? Layout::Swizzle128B : Layout::Swizzle64B;
}
Type MatmulShape::result() const {
  if (storesTiles)
    return TensorMapType::get({blockM(), chunk()}, resultType, stagedLayout());
  return GlobalType::get({m, n}, resultType);
}

SmallVector<Type> MatmulShape::argumentTypes() const {
  SmallVector<Type> types = {mapA(), mapB(), scalesA(), scalesB()};
  if (alpha != Alpha::None)
    types.push_back(alphas());
  llvm::append_range(types, inputs);
  types.push_back(result());
  if (dynamicRows())
    types.push_back(IntegerType::get(scaleType.getContext(), 32));
  return types;
}

//===----------------------------------------------------------------------===//
// Body
//===----------------------------------------------------------------------===//

namespace {
/// Emits the body; one method per part, in the order of the code.
class MatmulBuilder : TileBuilder {
public:
  MatmulBuilder(gpu::GPUFuncOp func, const MatmulShape &shape, const KernelPlan &plan,
                Location loc);
  void build();

private:
  /// The part of a tile that this block has.
  struct Tile {
    Value row, column;      ///< first row and first column of Y
    Value rowB;             ///< first row of B
    Value mScales, nScales; ///< first 128-row blocks of scales of A and B
    Value nScaleRow;        ///< row of `column` within nScales; null when always 0
  };

  Tile findTile(Value m, Value n);
  Value place(gpu::Dimension dimension, int64_t blocks);
  Value load(Value map, Value row, Value column, int64_t parts, Direction direction);
  Value loadScales(Value from, Value row, Value rowBlock, Value kBlock, Value blocks,
                   int64_t rows, int64_t parts);
  void buildTile(Value m, Value n);
  void buildAccumulation(Value acc, const Tile &tile);
  void buildKTile(Value acc, const Tile &tile, Value k);
  Value emitStep(numerics::EpilogueOp step, Value chunk, Value factor);
  void buildEpilogue(Value acc, const Tile &tile);
  Value loadInput(Value input, const Tile &tile, Value column);
  Value emitBody(Value chunk, const Tile &tile, Value column);
  void store(Value chunk, Value row, Value column);
  Value factors(const Tile &tile, Value column);

  MatmulShape shape;
  Value a, bb, scalesA, scalesB, alpha, result, rows;
  SmallVector<Value> inputs; ///< of the body
  Value numM;
  Value placeM, placeN; ///< of this block in its cluster; null where it is alone
  Value alphaVector;    ///< alpha in every lane; null where there is none or not one
};
} // namespace

MatmulBuilder::MatmulBuilder(gpu::GPUFuncOp func, const MatmulShape &shape, const KernelPlan &plan,
                             Location loc)
    : TileBuilder(func, plan, loc), shape(shape) {
  auto arguments = func.getArguments().begin();
  a = *arguments++;
  bb = *arguments++;
  scalesA = *arguments++;
  scalesB = *arguments++;
  if (shape.alpha != MatmulShape::Alpha::None)
    alpha = *arguments++;
  for (size_t i = 0; i < shape.inputs.size(); ++i)
    inputs.push_back(*arguments++);
  result = *arguments++;
  if (shape.dynamicRows())
    rows = *arguments++;
}

void MatmulBuilder::build() {
  if (rows) {
    Value padded = add(rows, constant(shape.workM() - 1));
    numM = arith::DivUIOp::create(b, loc, padded, constant(shape.workM()));
  } else {
    numM = constant(shape.tilesM());
  }
  if (shape.alpha == MatmulShape::Alpha::One) {
    Value scalar = LoadScalarOp::create(b, loc, b.getF32Type(), alpha);
    auto type = VectorType::get({shape.chunk()}, b.getF32Type());
    alphaVector = vector::BroadcastOp::create(b, loc, type, scalar);
  }
  placeM = place(gpu::Dimension::x, shape.clusterM);
  placeN = place(gpu::Dimension::y, shape.clusterN);
  forEachWork(numM, constant(shape.tilesN()), [&](Value m, Value n) { buildTile(m, n); });
  gpu::ReturnOp::create(b, loc);
}

/// The place of this block in its cluster along m or n; null where there is one block.
Value MatmulBuilder::place(gpu::Dimension dimension, int64_t blocks) {
  if (blocks == 1)
    return {};
  return arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                    gpu::ClusterBlockIdOp::create(b, loc, dimension));
}

MatmulBuilder::Tile MatmulBuilder::findTile(Value m, Value n) {
  auto shifted = [&](Value first, Value place, int64_t size) {
    return place ? add(first, mul(place, size)) : first;
  };
  Tile tile;
  tile.row = shifted(mul(m, shape.workM()), placeM, shape.blockM());
  tile.column = shifted(mul(n, shape.workN()), placeN, shape.tileN);
  tile.rowB = shape.pair ? shifted(tile.column, placeM, shape.blockN()) : tile.column;
  tile.mScales = m;
  Value scaleRows = constant(kScaleBlockRows);
  tile.nScales = arith::DivUIOp::create(b, loc, tile.column, scaleRows);
  // The tiles of 64, 96 and 192 columns often begin in the middle of a block of scale rows.
  if (shape.splitsScaleBlocks())
    tile.nScaleRow = arith::RemUIOp::create(b, loc, tile.column, scaleRows);
  return tile;
}

void MatmulBuilder::buildTile(Value m, Value n) {
  Tile tile = findTile(m, n);
  auto accType =
      TmemType::get({shape.tileM, shape.tileN}, b.getF32Type(), Layout::Linear, shape.pair);
  Value acc = AccumulatorOp::create(b, loc, accType);
  buildAccumulation(acc, tile);
  buildEpilogue(acc, tile);
}

void MatmulBuilder::buildAccumulation(Value acc, const Tile &tile) {
  loop(constant(0), constant(shape.tilesK()), constant(1),
       [&](Value k) { buildKTile(acc, tile, k); });
}

/// A tile of which each of `parts` blocks along `direction` loads as much as the box of `map`.
Value MatmulBuilder::load(Value map, Value row, Value column, int64_t parts, Direction direction) {
  auto box = cast<TensorMapType>(map.getType());
  int64_t columns = box.getLayout() == Layout::Tiled128x4 ? box.getColumns() : shape.tileK;
  auto type = SharedType::get({box.getRows() * parts, columns}, box.getElementType(),
                              box.getLayout());
  DirectionAttr multicast;
  if (parts > 1)
    multicast = DirectionAttr::get(b.getContext(), direction);
  return LoadOp::create(b, loc, type, map, row, column, Value(), Value(), Value(), multicast)
      .getResult();
}

Value MatmulBuilder::loadScales(Value from, Value row, Value rowBlock, Value kBlock, Value blocks,
                                int64_t rows, int64_t parts) {
  if (shape.inCluster())
    return load(from, row, mul(kBlock, kScaleBlockColumns), parts, Direction::M);
  auto type = SharedType::get({rows, shape.tileK / shape.block}, shape.scaleType,
                              Layout::Tiled128x4);
  return LoadScalesOp::create(b, loc, type, from, rowBlock, kBlock, blocks, Value(), Value(),
                              Value())
      .getResult();
}

void MatmulBuilder::buildKTile(Value acc, const Tile &tile, Value k) {
  Value kElement = mul(k, shape.tileK);
  int64_t tileBlocks = shape.tileK / shape.block / kScaleBlockColumns;
  Value kBlock = mul(k, tileBlocks);
  int64_t columnBlocks = llvm::divideCeil(shape.k / shape.block, kScaleBlockColumns);
  Value blocks = existing(kBlock, tileBlocks, columnBlocks);
  Value steps = blocks; // a block of 4 scales is one step of 64 when 16 elements share a scale
  if (int64_t tileSteps = shape.tileK / kMmaK; tileSteps != tileBlocks)
    steps = existing(mul(k, tileSteps), tileSteps, llvm::divideCeil(shape.k, kMmaK));

  auto copyScales = [&](Value from) {
    auto tileType = cast<SharedType>(from.getType());
    auto type = TmemType::get(tileType.getShape(), tileType.getElementType(), Layout::Tiled128x4,
                              shape.pair);
    return CopyScalesOp::create(b, loc, type, from, blocks, IntegerAttr(), IntegerAttr());
  };
  Value aTile = load(a, tile.row, kElement, shape.partsA(), Direction::N);
  Value bTile = load(bb, tile.rowB, kElement, shape.partsB(), Direction::M);
  Value sa = loadScales(scalesA, tile.row, tile.mScales, kBlock, blocks, shape.blockM(), 1);
  Value sb = loadScales(scalesB, tile.column, tile.nScales, kBlock, blocks, shape.rowsScalesB(),
                        shape.partsScalesB());
  Value ta = copyScales(sa), tb = copyScales(sb);
  Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, k, constant(0));
  MmaOp::create(b, loc, acc, aTile, ta, bTile, tb, tile.nScaleRow, more, steps);
}

/// The factors of the accumulator from `column` of the result on.
Value MatmulBuilder::factors(const Tile &tile, Value column) {
  auto type = VectorType::get({shape.chunk()}, b.getF32Type());
  Value limit = shape.alpha == MatmulShape::Alpha::Rows ? rows : Value();
  return LoadFactorsOp::create(b, loc, type, alpha, tile.row, column, limit);
}

/// A step on a chunk of a row; `factor` is its alpha.
Value MatmulBuilder::emitStep(numerics::EpilogueOp step, Value chunk, Value factor) {
  switch (step) {
  case numerics::EpilogueOp::Scale:
    return arith::MulFOp::create(b, loc, chunk, factor);
  case numerics::EpilogueOp::Relu:
    return arith::MaximumFOp::create(
        b, loc, chunk, arith::ConstantOp::create(b, loc, b.getZeroAttr(chunk.getType())));
  case numerics::EpilogueOp::Round:
    if (shape.resultType.isF32())
      return chunk;
    return arith::TruncFOp::create(b, loc, VectorType::get({shape.chunk()}, shape.resultType),
                                   chunk);
  }
  llvm_unreachable("every step has its operation");
}

/// What the body reads of an input for the chunk from `column` of the tile on, in fp32.
Value MatmulBuilder::loadInput(Value input, const Tile &tile, Value column) {
  ImplicitLocOpBuilder at(loc, b);
  auto global = cast<GlobalType>(input.getType());
  auto type = VectorType::get({shape.chunk()}, global.getElementType());
  if (global.getRank() == 0) {
    Value scalar = LoadScalarOp::create(b, loc, global.getElementType(), input);
    return widenToF32(at, vector::BroadcastOp::create(b, loc, type, scalar));
  }
  Value limit = ShapedType::isDynamic(global.getShape()[0]) ? rows : Value();
  Value first = add(tile.column, column);
  return widenToF32(at, LoadFactorsOp::create(b, loc, type, input, tile.row, first, limit));
}

Value MatmulBuilder::emitBody(Value chunk, const Tile &tile, Value column) {
  SmallVector<Value> arguments = {chunk};
  for (Value input : inputs)
    arguments.push_back(loadInput(input, tile, column));
  ImplicitLocOpBuilder at(loc, b);
  Value element = emitElementwise(at, shape.body->front(), arguments).front();
  return narrowTo(at, element, shape.resultType);
}

void MatmulBuilder::buildEpilogue(Value acc, const Tile &tile) {
  Value columns = constant(shape.tileN);
  if (shape.n % shape.workN())
    columns = min(arith::SubIOp::create(b, loc, constant(shape.n), tile.column), shape.tileN);
  auto wide = VectorType::get({shape.chunk()}, b.getF32Type());
  Value factor = alphaVector;
  if (shape.alpha == MatmulShape::Alpha::Rows)
    factor = factors(tile, tile.column);
  auto steps = numerics::epilogueSteps(shape.alpha != MatmulShape::Alpha::None, shape.epilogue);
  loop(constant(0), columns, constant(shape.chunk()), [&](Value column) {
    Value v = ReadOp::create(b, loc, wide, acc, column);
    if (shape.alpha == MatmulShape::Alpha::Columns)
      factor = factors(tile, add(tile.column, column));
    for (numerics::EpilogueOp step : steps)
      if (!shape.body || step != numerics::EpilogueOp::Round) // a body rounds by itself
        v = emitStep(step, v, factor);
    if (shape.body)
      v = emitBody(v, tile, column);
    store(v, tile.row, add(tile.column, column));
  });
}

/// The rows of this block from `row` on, in the columns of a chunk.
void MatmulBuilder::store(Value chunk, Value row, Value column) {
  if (!shape.storesTiles) {
    StoreOp::create(b, loc, chunk, result, row, column, rows);
    return;
  }
  auto box = cast<TensorMapType>(result.getType());
  auto type = SharedType::get(box.getShape(), box.getElementType(), box.getLayout());
  Value staged = StageOp::create(b, loc, type, chunk, Value()).getResult();
  StoreTileOp::create(b, loc, staged, result, row, column);
}

gpu::GPUFuncOp fp4::buildMatmulKernel(gpu::GPUModuleOp module, const MatmulShape &shape,
                                      const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, shape.argumentTypes(), plan, loc);
  MatmulBuilder(func, shape, plan, loc).build();
  return func;
}
