//===- WeightLaneKernel.cpp - Products of floats and weights with tcgen05 -===//
//
// The textbook algorithm of MatmulKernel.cpp with its operands swapped: rows of weights are lanes
// of tensor memory, and the rows of the result are columns, of which a tile has as few as 16. A
// role of threads makes 16-bit floats of a k tile of weights, in tensor memory, from where the
// tensor core multiplies them with activations in shared memory. So shared memory, and the bytes
// that it delivers in a cycle, are those of codes and of activations only. What conversions
// multiplied by a power of two is undone before alpha.
//
//===----------------------------------------------------------------------===//

#include "MatmulBuilder.h"

#include "fp4/Dialect/Pipe/IR/PipeLanes.h"
#include "fp4/ISA/WeightLayout.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
class WeightLaneBuilder : public MatmulBuilder {
public:
  using MatmulBuilder::MatmulBuilder;

private:
  void buildKTile(ValueRange accs, const Tile &tile, Value k) override;
  Value loadPrepacked(const Tile &tile, Value k);
  Value convertScaled(const Tile &tile, Value k);
};
} // namespace

/// Tiles of K of the weights, of which a k tile has all that its depth has room for.
Value WeightLaneBuilder::loadPrepacked(const Tile &tile, Value k) {
  int64_t perRow = shape.k / hw::weightTileColumns, perTile = shape.tileK / hw::weightTileColumns;
  auto source = cast<GlobalType>(a.getType());
  auto type = SharedType::get({perTile, source.getShape()[1]}, source.getElementType());
  Value rowOfTiles = arith::DivUIOp::create(b, loc, tile.rowA, constant(hw::weightTileRows));
  Value index = add(mul(rowOfTiles, perRow), mul(k, perTile));
  return LoadRowsOp::create(b, loc, type, a, index, /*count=*/Value(), Value(), Value(), Value())
      .getResult();
}

Value WeightLaneBuilder::convertScaled(const Tile &tile, Value k) {
  auto [kBlock, blocks] = scaleBlocksOf(k);
  Value codes = load(a, tile.rowA, mul(k, shape.tileK), shape.partsA(), Direction::N);
  Value scales =
      loadScales(scalesA, tile.scaleRowA, tile.blockA, kBlock, blocks, shape.blockM(), 1);
  auto type = TmemType::get({shape.blockM(), shape.tileK}, shape.floatB);
  return ConvertLanesOp::create(b, loc, type, codes, scales, blocks, Value()).getResult();
}

void WeightLaneBuilder::buildKTile(ValueRange accs, const Tile &tile, Value k) {
  Value weights;
  if (shape.prepackedA) {
    auto type = TmemType::get({shape.blockM(), shape.tileK}, shape.floatB);
    weights = UnpackLanesOp::create(b, loc, type, loadPrepacked(tile, k), Value()).getResult();
  } else {
    weights = convertScaled(tile, k);
  }
  Value floats = load(bb, tile.rowB, mul(k, shape.tileK), shape.partsB(), Direction::M);
  Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, k, tile.k.begin);
  MmaLanesOp::create(b, loc, accs.front(), weights, floats, more);
}

gpu::GPUFuncOp fp4::buildWeightLaneKernel(gpu::GPUModuleOp module, const MatmulShape &shape,
                                          const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, shape.argumentTypes(), plan, loc);
  // ptxas would spill sums so that more blocks fit than have tensor memory.
  declareResident(func, *plan.resident);
  WeightLaneBuilder(func, shape, plan, loc).build();
  return func;
}
