//===- WeightLaneKernel.cpp - GEMMs of floats and weights on tcgen05 ------===//
//
// The textbook algorithm of MatmulKernel.cpp with its operands swapped: rows of weights are TMEM
// lanes, and the rows of the result are columns, of which a tile has as few as 16. A role of
// threads makes 16-bit floats of a k tile of weights, in tensor memory, from where the tensor core
// multiplies them with activations in shared memory. Shared memory, and the bytes that it delivers
// in a cycle, therefore have codes and activations only. The powers of two of the conversions are
// undone before alpha.
//
//===----------------------------------------------------------------------===//

#include "LaneEpilogue.h"
#include "MatmulKernel.h"
#include "OperandPath.h"

#include "fp4/Dialect/Pipe/IR/PipeLanes.h"
#include "fp4/ISA/WeightLayout.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
class WeightLaneBuilder {
public:
  explicit WeightLaneBuilder(GemmKernel &kernel)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), operands(kernel), works(kernel) {}
  void build() {
    works.accumulate(
        [&](ValueRange accs, const LaneTile &tile, Value k) { buildKTile(accs, tile, k); });
  }

private:
  void buildKTile(ValueRange accs, const LaneTile &tile, Value k);
  /// Weights of a k tile as 16-bit floats, and its tiles of K that exist; null where all do.
  struct Weights {
    Value floats, tiles;
  };
  Weights unpack(Value from, const LaneTile &tile, Value k);
  Value convertScaled(const LaneTile &tile, Value k);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  OperandPath operands;
  LaneLoop works;
};
} // namespace

/// The last k tile may have fewer tiles of K than its depth has room for.
WeightLaneBuilder::Weights WeightLaneBuilder::unpack(Value from, const LaneTile &tile, Value k) {
  int64_t perRow = gemm.problem.depth / hw::weightTileColumns,
          perTile = gemm.tiling.tileK / hw::weightTileColumns;
  auto source = cast<GlobalType>(from.getType());
  auto ofRows = SharedType::get({perTile, source.getShape()[1]}, source.getElementType());
  Value rowOfTiles = b.div(tile.rowA, hw::weightTileRows);
  Value first = b.mul(k, perTile), index = b.add(b.mul(rowOfTiles, perRow), first);
  Value tiles = b.existing(first, perTile, perRow);
  Value rows =
      LoadRowsOp::create(b, ofRows, from, index, tiles, Value(), Value(), Value()).getResult();
  auto type = TmemType::get({gemm.tiling.blockM(), gemm.tiling.tileK}, gemm.floatB());
  return {UnpackLanesOp::create(b, type, rows, tiles, Value()).getResult(), tiles};
}

Value WeightLaneBuilder::convertScaled(const LaneTile &tile, Value k) {
  auto [kBlock, blocks] = operands.scaleBlocksOf(k);
  Value codes = operands.loadShared(args.a, tile.rowA, b.mul(k, gemm.tiling.tileK),
                                    gemm.tiling.partsA(), Direction::N);
  Value scales = operands.loadLaneScales(args.scalesA, tile.scaleRowA, tile.blockA, kBlock, blocks);
  auto type = TmemType::get({gemm.tiling.blockM(), gemm.tiling.tileK}, gemm.floatB());
  return ConvertLanesOp::create(b, type, codes, scales, blocks, Value()).getResult();
}

void WeightLaneBuilder::buildKTile(ValueRange accs, const LaneTile &tile, Value k) {
  SmallVector<Weights> weights = {gemm.prepackedA() ? unpack(args.a, tile, k)
                                                    : Weights{convertScaled(tile, k), {}}};
  if (gemm.problem.dual)
    weights.push_back(unpack(args.b2, tile, k));
  Value floats = operands.loadShared(args.bb, tile.rowB, b.mul(k, gemm.tiling.tileK),
                                     gemm.tiling.partsB(), gemm.tiling.directionB());
  Value more = b.compare(arith::CmpIPredicate::sgt, k, tile.k.begin);
  for (auto [acc, ofGemm] : llvm::zip_equal(accs, weights))
    MmaLanesOp::create(b, acc, ofGemm.floats, floats, more, ofGemm.tiles);
}

gpu::GPUFuncOp fp4::buildWeightLaneKernel(gpu::GPUModuleOp module, const Gemm &gemm,
                                          const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, gemm.argumentTypes(), plan, loc);
  // ptxas would spill sums so that more CTAs fit than have tensor memory.
  declareCtasPerSm(func, *plan.ctasPerSm);
  GemmKernel kernel(func, gemm, plan, loc);
  WeightLaneBuilder(kernel).build();
  return func;
}
