//===- TransformKernel.cpp - Hadamard transform and quantization in one ---===//
//
// Per tile of 64 rows (m) and 128 columns (k) of X: load, multiply the transpose of every 16 rows
// by the Hadamard matrix, and quantize. The accumulator has a row per column of X and four blocks
// of 16 consecutive m in it, so that an epilogue thread has whole blocks of a row of Q: no
// exchange, 32 contiguous bytes of codes and four scales. CTAs of the grid take strips of tiles
// along m, so that what a CTA writes next follows what it wrote.
//
// Rows and columns beyond X load as zero; their results are not stored, or are padding.
//
//===----------------------------------------------------------------------===//

#include "TransformKernel.h"

#include "TileBuilder.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static MLIRContext *contextOf(const TransformShape &shape) { return shape.recipe.getContext(); }

TensorMapType TransformShape::mapX() const {
  // As wide as the swizzle; a tile is two of these boxes.
  return TensorMapType::get({tileM, tileK / 2}, BFloat16Type::get(contextOf(*this)),
                            Layout::Swizzle128B);
}
GlobalType TransformShape::amax() const {
  return GlobalType::get({}, Float32Type::get(contextOf(*this)));
}
GlobalType TransformShape::rng() const {
  return GlobalType::get({2}, IntegerType::get(contextOf(*this), 64));
}
GlobalType TransformShape::codes() const {
  return GlobalType::get({k, m}, Float4E2M1FNType::get(contextOf(*this)));
}
GlobalType TransformShape::scales() const {
  return GlobalType::get({k, m / kBlock}, scaleType, // whole scale blocks are transformed
                         tiledScales ? Layout::Tiled128x4 : Layout::Linear);
}

SmallVector<Type> TransformShape::argumentTypes() const {
  SmallVector<Type> types = {mapX()};
  if (hasAmax)
    types.push_back(amax());
  if (stochastic)
    types.push_back(rng());
  types.append({codes(), scales()});
  return types;
}

//===----------------------------------------------------------------------===//
// Body
//===----------------------------------------------------------------------===//

namespace {
class TransformBuilder {
public:
  TransformBuilder(gpu::GPUFuncOp func, const TransformShape &shape, const KernelPlan &plan,
                   Location loc);
  void build();

private:
  void buildStrip(Value tileK, Value strip);
  void buildTile(Value row, Value column);
  void buildEpilogue(Value acc, Value row, Value column);

  TileBuilder b;
  TransformShape shape;
  Value x, amax, rng, codes, scales;
  Value amaxValue, hadamard;
};
} // namespace

TransformBuilder::TransformBuilder(gpu::GPUFuncOp func, const TransformShape &shape,
                                   const KernelPlan &plan, Location loc)
    : b(func, plan, loc), shape(shape) {
  auto arguments = func.getArguments().begin();
  x = *arguments++;
  if (shape.hasAmax)
    amax = *arguments++;
  if (shape.stochastic)
    rng = *arguments++;
  codes = *arguments++;
  scales = *arguments++;
}

void TransformBuilder::build() {
  if (amax)
    amaxValue = LoadScalarOp::create(b, b.getF32Type(), amax);
  auto type = SharedType::get({kDenseMmaK, kDenseMmaK}, b.getBF16Type(), Layout::Swizzle32B);
  hadamard =
      HadamardMatrixOp::create(b, type, b.getI64IntegerAttr(shape.signs), Value()).getResult();
  // Consecutive strips, which run at the same time, read the same rows of X.
  b.forEachWork(b.constant(shape.tilesK()), b.constant(shape.strips() / shape.tilesK()),
                [&](Value tileK, Value strip) { buildStrip(tileK, strip); });
  gpu::ReturnOp::create(b);
}

void TransformBuilder::buildStrip(Value tileK, Value strip) {
  Value column = b.mul(tileK, shape.tileK), first = b.mul(strip, shape.stripTiles);
  Value count = b.existing(first, shape.stripTiles, shape.tilesM());
  if (!count)
    count = b.constant(shape.stripTiles);
  b.loop(b.constant(0), count, b.constant(1),
         [&](Value i) { buildTile(b.mul(b.add(first, i), shape.tileM), column); });
}

void TransformBuilder::buildTile(Value row, Value column) {
  auto tileType = SharedType::get({shape.tileM, shape.tileK}, b.getBF16Type(), Layout::Swizzle128B);
  Value tile = LoadOp::create(b, tileType, x, row, column, Value(), Value(), Value()).getResult();
  auto accType = TmemType::get({kMmaM, shape.tileM}, b.getF32Type());
  Value acc = AccumulatorOp::create(b, accType);
  MmaBlockwiseOp::create(b, acc, tile, hadamard);
  buildEpilogue(acc, row, column);
}

void TransformBuilder::buildEpilogue(Value acc, Value row, Value column) {
  Value sums = ReadOp::create(b, VectorType::get(shape.tileM, b.getF32Type()), acc, b.constant(0));
  auto rounded = VectorType::get(shape.tileM, b.getBF16Type());
  Value values = arith::TruncFOp::create(b, rounded, sums);
  auto codesType = VectorType::get(shape.tileM, Float4E2M1FNType::get(b.getContext()));
  auto scalesType = VectorType::get(shape.tileM / shape.kBlock, shape.scaleType);
  // Row and column of Q are column and row of X.
  Value q = rng ? column : Value(), p = rng ? row : Value();
  DenseI64ArrayAttr matrix;
  if (rng)
    matrix = b.getDenseI64ArrayAttr({shape.k, shape.m});
  auto quantized = QuantizeBlocksOp::create(b, codesType, scalesType, values, amaxValue, rng, q, p,
                                            matrix, shape.recipe, shape.philox,
                                            /*columnwise=*/true);
  StoreOp::create(b, quantized.getCodes(), codes, column, row, Value());
  Value block = arith::ShRUIOp::create(b, row, b.constant(4));
  StoreOp::create(b, quantized.getScales(), scales, column, block, Value());
}

gpu::GPUFuncOp fp4::buildTransformKernel(gpu::GPUModuleOp module, const TransformShape &shape,
                                         const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, shape.argumentTypes(), plan, loc);
  declareCtasPerSm(func, shape.resident);
  TransformBuilder(func, shape, plan, loc).build();
  return func;
}
