//===- LaneGemmKernel.cpp - FP8 with f32 scales in tensor memory -------===//
//
// The textbook algorithm of MatmulKernel.cpp, for k tiles that are one scale block: the tensor core
// sums its products in tensor memory, each k tile in an accumulator of its own, and threads add the
// sums times their scales to what they have in registers. There is thus an epilogue for each k
// tile, which drains an accumulator while the tensor core fills the next ones, and one for the
// tile, which stores the sums.
//
// Tiles in shared memory have the scales of four blocks if every split-K part has whole fours of
// blocks; else threads take the scales from global memory.
//
//===----------------------------------------------------------------------===//

#include "LaneEpilogue.h"
#include "MatmulKernel.h"
#include "OperandPath.h"

#include "fp4/Dialect/Pipe/IR/PipeLanes.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
class LaneGemmBuilder {
public:
  explicit LaneGemmBuilder(GemmKernel &kernel)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), operands(kernel), works(kernel),
        columns(gemm.tiling.tileN / gemm.tiling.laneGroups) {}
  void build() {
    works.forEachTile([&](const LaneTile &tile) { buildTile(tile); });
  }

private:
  void buildTile(LaneTile tile);
  void drain(Value acc, const LaneTile &tile, LaneEpilogue::Conversion convert,
             LaneEpilogue::Storing store);
  void buildSums(Value acc, const LaneTile &tile);
  void buildStagedBlocks(Value acc, const LaneTile &tile, Value first);
  void buildBlock(Value acc, const LaneTile &tile, Value k, Value scale);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  OperandPath operands;
  LaneLoop works;
  int64_t columns; ///< columns of a warpgroup
};
} // namespace

void LaneGemmBuilder::buildTile(LaneTile tile) {
  auto type =
      FragmentType::get(b.getContext(), {kMmaM, columns}, b.getF32Type(), FragmentKind::Lanes);
  Value acc = FragmentOp::create(b, type);
  buildSums(acc, tile);
  if (gemm.tiling.laneGroups > 1)
    tile.column = b.add(tile.column, LaneColumnOp::create(b, b.getI32Type(), acc));
  works.epilogue.finish(acc, tile,
                        [&](LaneEpilogue::Conversion convert, LaneEpilogue::Storing store) {
                          drain(acc, tile, convert, store);
                        });
}

void LaneGemmBuilder::buildSums(Value acc, const LaneTile &tile) {
  if (gemm.stagesScales()) {
    b.loop(tile.k.begin, tile.k.end, b.constant(Gemm::kStagedBlocks),
           [&](Value first) { buildStagedBlocks(acc, tile, first); });
    return;
  }
  b.loop(tile.k.begin, tile.k.end, b.constant(1), [&](Value k) {
    Value scale = LaneScaleOp::create(b, b.getF32Type(), args.scalesA, tile.row, args.scalesB,
                                      tile.scaleRowB, b.getI64IntegerAttr(columns), k, args.rows);
    buildBlock(acc, tile, k, scale);
  });
}

/// Scale blocks from `first` on, whose scales a tile of each operand has.
void LaneGemmBuilder::buildStagedBlocks(Value acc, const LaneTile &tile, Value first) {
  Value band = b.div(tile.scaleRowB, kPromotedBlock);
  Value ofA = operands.load(args.scalesA, tile.row, first),
        ofB = operands.load(args.scalesB, band, first);
  b.loop(b.constant(0), b.constant(Gemm::kStagedBlocks), b.constant(1), [&](Value place) {
    Value scale = LaneTileScaleOp::create(b, b.getF32Type(), ofA, ofB, place);
    buildBlock(acc, tile, b.add(first, place), scale);
  });
}

void LaneGemmBuilder::buildBlock(Value acc, const LaneTile &tile, Value k, Value scale) {
  Value element = b.mul(k, gemm.tiling.tileK);
  Value aTile = operands.loadShared(args.a, tile.rowA, element, gemm.tiling.partsA(), Direction::N);
  Value bTile = operands.loadShared(args.bb, tile.rowB, element, gemm.tiling.partsB(),
                                    gemm.tiling.directionB());
  Value sums = AccumulatorOp::create(b, works.accumulatorType());
  MmaDenseOp::create(b, sums, aTile, bTile);
  PromoteLanesOp::create(b, acc, sums, scale);
}

/// Registers have constant numbers, so the chunks are written out; a store knows what of them
/// exists.
void LaneGemmBuilder::drain(Value acc, const LaneTile &tile, LaneEpilogue::Conversion convert,
                            LaneEpilogue::Storing store) {
  auto type = VectorType::get({gemm.chunk()}, b.getF32Type());
  for (int64_t column = 0; column < columns; column += gemm.chunk()) {
    Value sums = ReadLanesOp::create(b, type, acc, b.getI64IntegerAttr(column));
    Value place = b.add(tile.column, b.constant(column));
    store(convert(sums, works.epilogue.orLast(place)), place);
  }
}

gpu::GPUFuncOp fp4::buildLaneGemmKernel(gpu::GPUModuleOp module, const Gemm &gemm,
                                        const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, gemm.argumentTypes(), plan, loc);
  // As in buildMatmulKernel, ptxas would spill, so that more CTAs would fit.
  if (gemm.results.region)
    declareCtasPerSm(func, 1);
  GemmKernel kernel(func, gemm, plan, loc);
  LaneGemmBuilder(kernel).build();
  return func;
}
