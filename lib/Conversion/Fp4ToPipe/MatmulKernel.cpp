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

#include "TileBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static Type fp4Type(const MatmulShape &shape) {
  return Float4E2M1FNType::get(shape.scaleType.getContext());
}

TensorMapType MatmulShape::mapA() const {
  return TensorMapType::get({tileM, tileK}, fp4Type(*this), Layout::Swizzle128B);
}
TensorMapType MatmulShape::mapB() const {
  return TensorMapType::get({tileN, tileK}, fp4Type(*this), Layout::Swizzle128B);
}
GlobalType MatmulShape::scalesA() const {
  return GlobalType::get({m, k / block}, scaleType, Layout::Tiled128x4);
}
GlobalType MatmulShape::scalesB() const {
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
GlobalType MatmulShape::result() const { return GlobalType::get({m, n}, resultType); }

SmallVector<Type> MatmulShape::argumentTypes() const {
  SmallVector<Type> types = {mapA(), mapB(), scalesA(), scalesB()};
  if (alpha != Alpha::None)
    types.push_back(alphas());
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
  struct Tile {
    Value row, column;      ///< first row and first column of Y
    Value mScales, nScales; ///< first 128-row blocks of scales of A and B
    Value nScaleRow;        ///< row of `column` within nScales; null when always 0
  };

  void buildTile(Value m, Value n);
  void buildAccumulation(Value acc, const Tile &tile);
  void buildKTile(Value acc, const Tile &tile, Value k);
  Value emitStep(numerics::EpilogueOp step, Value chunk, Value factor);
  void buildEpilogue(Value acc, const Tile &tile);
  Value factors(const Tile &tile, Value column);

  SharedType scaleTile(int64_t rows) {
    int64_t padded = llvm::alignTo(rows, kScaleBlockRows);
    return SharedType::get({padded, shape.tileK / shape.block}, shape.scaleType,
                           Layout::Tiled128x4);
  }
  SharedType dataTile(TensorMapType map) {
    return SharedType::get(map.getShape(), map.getElementType(), map.getLayout());
  }

  MatmulShape shape;
  Value a, bb, scalesA, scalesB, alpha, result, rows;
  Value numM;
  Value alphaVector; ///< alpha in every lane; null where there is none or not one
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
  result = *arguments++;
  if (shape.dynamicRows())
    rows = *arguments++;
}

void MatmulBuilder::build() {
  if (rows) {
    Value padded = add(rows, constant(shape.tileM - 1));
    numM = arith::DivUIOp::create(b, loc, padded, constant(shape.tileM));
  } else {
    numM = constant(shape.tilesM());
  }
  if (shape.alpha == MatmulShape::Alpha::One) {
    Value scalar = LoadScalarOp::create(b, loc, b.getF32Type(), alpha);
    auto type = VectorType::get({shape.kChunk}, b.getF32Type());
    alphaVector = vector::BroadcastOp::create(b, loc, type, scalar);
  }
  forEachWork(numM, constant(shape.tilesN()), [&](Value m, Value n) { buildTile(m, n); });
  gpu::ReturnOp::create(b, loc);
}

void MatmulBuilder::buildTile(Value m, Value n) {
  Tile tile{mul(m, shape.tileM), mul(n, shape.tileN), m, {}, {}};
  Value scaleRows = constant(kScaleBlockRows);
  tile.nScales = arith::DivUIOp::create(b, loc, tile.column, scaleRows);
  // The tiles of 64 and 192 columns begin in the middle of a block of scale rows every other time.
  if (shape.tileN % kScaleBlockRows && shape.tilesN() > 1)
    tile.nScaleRow = arith::RemUIOp::create(b, loc, tile.column, scaleRows);
  auto accType = TmemType::get({shape.tileM, shape.tileN}, b.getF32Type());
  Value acc = AccumulatorOp::create(b, loc, accType);
  buildAccumulation(acc, tile);
  buildEpilogue(acc, tile);
}

void MatmulBuilder::buildAccumulation(Value acc, const Tile &tile) {
  loop(constant(0), constant(shape.tilesK()), constant(1),
       [&](Value k) { buildKTile(acc, tile, k); });
}

void MatmulBuilder::buildKTile(Value acc, const Tile &tile, Value k) {
  Value kElement = mul(k, shape.tileK);
  int64_t tileBlocks = shape.tileK / shape.block / kScaleBlockColumns;
  Value kBlock = mul(k, tileBlocks);
  auto source = cast<GlobalType>(scalesA.getType());
  Value blocks = existing(kBlock, tileBlocks, source.getScaleBlockColumns());
  Value steps = blocks; // a block of 4 scales is one step of 64 when 16 elements share a scale
  if (int64_t tileSteps = shape.tileK / kMmaK; tileSteps != tileBlocks)
    steps = existing(mul(k, tileSteps), tileSteps, llvm::divideCeil(shape.k, kMmaK));

  auto load = [&](Value map, Value row) {
    return LoadOp::create(b, loc, dataTile(cast<TensorMapType>(map.getType())), map, row, kElement,
                          Value(), Value(), Value())
        .getResult();
  };
  auto loadScales = [&](Value from, Value rowBlock, int64_t tileRows) {
    return LoadScalesOp::create(b, loc, scaleTile(tileRows), from, rowBlock, kBlock, blocks,
                                Value(), Value(), Value())
        .getResult();
  };
  auto copyScales = [&](Value from) {
    auto tileType = cast<SharedType>(from.getType());
    auto type = TmemType::get(tileType.getShape(), tileType.getElementType(), Layout::Tiled128x4);
    return CopyScalesOp::create(b, loc, type, from, blocks, IntegerAttr(), IntegerAttr());
  };
  Value aTile = load(a, tile.row), bTile = load(bb, tile.column);
  Value sa = loadScales(scalesA, tile.mScales, shape.tileM);
  Value sb = loadScales(scalesB, tile.nScales, shape.tileN);
  Value ta = copyScales(sa), tb = copyScales(sb);
  Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, k, constant(0));
  MmaOp::create(b, loc, acc, aTile, ta, bTile, tb, tile.nScaleRow, more, steps);
}

/// The factors of the accumulator from `column` of the result on.
Value MatmulBuilder::factors(const Tile &tile, Value column) {
  auto type = VectorType::get({shape.kChunk}, b.getF32Type());
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
    return arith::TruncFOp::create(b, loc, VectorType::get({shape.kChunk}, shape.resultType),
                                   chunk);
  }
  llvm_unreachable("every step has its operation");
}

void MatmulBuilder::buildEpilogue(Value acc, const Tile &tile) {
  Value columns = constant(shape.tileN);
  if (shape.n % shape.tileN)
    columns = min(arith::SubIOp::create(b, loc, constant(shape.n), tile.column), shape.tileN);
  auto wide = VectorType::get({shape.kChunk}, b.getF32Type());
  Value factor = alphaVector;
  if (shape.alpha == MatmulShape::Alpha::Rows)
    factor = factors(tile, tile.column);
  auto steps = numerics::epilogueSteps(shape.alpha != MatmulShape::Alpha::None, shape.epilogue);
  loop(constant(0), columns, constant(shape.kChunk), [&](Value column) {
    Value v = ReadOp::create(b, loc, wide, acc, column);
    if (shape.alpha == MatmulShape::Alpha::Columns)
      factor = factors(tile, add(tile.column, column));
    for (numerics::EpilogueOp step : steps)
      v = emitStep(step, v, factor);
    StoreOp::create(b, loc, v, result, tile.row, add(tile.column, column), rows);
  });
}

gpu::GPUFuncOp fp4::buildMatmulKernel(gpu::GPUModuleOp module, const MatmulShape &shape,
                                      const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, shape.argumentTypes(), plan, loc);
  MatmulBuilder(func, shape, plan, loc).build();
  return func;
}
