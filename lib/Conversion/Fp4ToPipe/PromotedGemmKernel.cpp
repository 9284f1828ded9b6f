//===- PromotedGemmKernel.cpp - GEMMs of FP8 with f32 scales -----------===//
//
// The textbook algorithm of MatmulKernel.cpp, where a k tile is one scale block: the tensor core
// sums its products in registers, and the sums times their scales are added in fp32. A tile of more
// rows than the warpgroups have at a time consists of parts, each with an accumulator of its own.
// All parts have their sums in one fragment, one part after the other. Or a tile of one part has
// two scale blocks at a time, each with sums of its own.
//
// Groups have their tiles in a table (GroupTable.cpp), and the scales of rhs begin anew with each
// of them. Split-K parts are those of the CTAs of a cluster, or tiles of their own.
//
// Tiles in shared memory have the scales of four blocks if every split-K part has whole fours of
// blocks; else threads take the scales from global memory.
//
//===----------------------------------------------------------------------===//

#include "FragmentEpilogue.h"
#include "MatmulKernel.h"
#include "OperandPath.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
class PromotedGemmBuilder {
public:
  PromotedGemmBuilder(GemmKernel &kernel, const KernelPlan &plan)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), operands(kernel), loop(kernel, plan) {
    loop.works.partRows = std::min(gemm.tiling.tileM, kMostPartRows);
  }
  void build() {
    if (gemm.work.searchedOffsets)
      loop.works.checkGroups();
    if (gemm.results.clearsRows)
      loop.works.clearRows();
    loop.forEachTile([&](Value m, Value n) { buildTile(m, n); });
  }

private:
  /// Rows of two warpgroups.
  static constexpr int64_t kMostPartRows = 128;

  using Tile = WorkLoop::Tile;
  void buildTile(Value m, Value n);
  void buildKTiles(ArrayRef<Value> accumulators, const Tile &tile, Value first);
  /// The scales of a part of the tile, and of scale block `next` behind the first of a stage.
  using ScalesOf = llvm::function_ref<Value(size_t part, int64_t next)>;
  void buildStage(ArrayRef<Value> accumulators, const Tile &tile, Value k, ScalesOf scalesOf);
  void buildKTile(ArrayRef<Value> accumulators, const Tile &tile, Value k, ScalesOf scalesOf);
  void buildTwo(Value acc, const Tile &tile, Value k, ScalesOf scalesOf);
  Value scalesOf(const Tile &tile, size_t part, Value k);
  Value behind(Value k, int64_t next) { return next ? b.add(k, b.constant(next)) : k; }

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  OperandPath operands;
  FragmentLoop loop;
};
} // namespace

void PromotedGemmBuilder::buildTile(Value m, Value n) {
  Tile tile = loop.works.findTile(m, n);
  SmallVector<Value> accumulators;
  for (size_t part = 0; part < tile.rows.size(); ++part)
    accumulators.push_back(loop.fragments.create());
  int64_t step = gemm.stagesScales() ? Gemm::kStagedBlocks : gemm.tiling.blocksOfTileK;
  b.loop(tile.k.begin, tile.k.end, b.constant(step), [&](Value k) {
    if (gemm.stagesScales())
      return buildKTiles(accumulators, tile, k);
    buildStage(accumulators, tile, k,
               [&](size_t part, int64_t next) { return scalesOf(tile, part, behind(k, next)); });
  });
  auto store = [&](size_t part, auto sums) {
    loop.epilogue.storeSums(sums, tile.rows[part], tile.column, /*restoring=*/{}, tile.group);
  };
  if (gemm.work.reducesInCluster) {
    loop.fragments.reduceInCluster(accumulators);
    return loop.epilogue.storeSums(
        accumulators.front(), tile.row, tile.column, /*restoring=*/{}, {},
        [&](int64_t first) { return loop.fragments.hasColumns(tile.part, first); });
  }
  if (gemm.work.splits > 1)
    return loop.fragments.reduce(accumulators, tile.index, tile.part,
                                 [&](size_t part, FragmentSums::From sums) { store(part, sums); });
  for (auto [part, acc] : llvm::enumerate(accumulators))
    store(part, acc);
}

Value PromotedGemmBuilder::scalesOf(const Tile &tile, size_t part, Value k) {
  auto type = VectorType::get({2 + promotedBlocks(gemm.tiling.tileN)}, b.getF32Type());
  return BlockScalesOp::create(b, type, args.scalesA, tile.rows[part], args.scalesB, tile.scaleRowB,
                               b.getI64IntegerAttr(gemm.tiling.tileN), k, args.rows);
}

/// Scale blocks `k` and the next one, whose tiles a stage has: both MMAs can run at a time.
void PromotedGemmBuilder::buildTwo(Value acc, const Tile &tile, Value k, ScalesOf scalesOf) {
  Value blocks[] = {k, b.add(k, b.constant(1))},
        sums[] = {loop.fragments.create(), loop.fragments.create()};
  SmallVector<std::pair<Value, Value>> tiles;
  for (Value block : blocks) {
    Value element = b.mul(block, gemm.tiling.tileK),
          aTile = operands.load(args.a, tile.rows.front(), element);
    tiles.push_back({aTile, operands.load(args.bb, tile.rowB, element)});
  }
  SmallVector<Value> scales;
  for (int64_t i = 0; gemm.stagesScales() && i < 2; ++i)
    scales.push_back(scalesOf(0, i));
  for (size_t i : {0, 1}) {
    MmaFragmentOp::create(b, sums[i], tiles[i].first, b.getI64IntegerAttr(0), tiles[i].second);
    if (scales.size() == i)
      scales.push_back(scalesOf(0, int64_t(i)));
    PromoteOp::create(b, acc, sums[i], scales[i], tile.scaleRowB);
  }
}

/// Scale blocks from `first` on, whose scales a tile of each operand has.
void PromotedGemmBuilder::buildKTiles(ArrayRef<Value> accumulators, const Tile &tile, Value first) {
  Value block = b.div(tile.scaleRowB, kPromotedBlock);
  Value ofA = operands.load(args.scalesA, tile.rows.front(), first),
        ofB = operands.load(args.scalesB, block, first);
  auto type = VectorType::get({2 + promotedBlocks(gemm.tiling.tileN)}, b.getF32Type());
  Value step = b.constant(gemm.tiling.blocksOfTileK);
  b.loop(b.constant(0), b.constant(Gemm::kStagedBlocks), step, [&](Value place) {
    buildStage(accumulators, tile, b.add(first, place), [&](size_t part, int64_t next) -> Value {
      return TileScalesOp::create(b, type, ofA,
                                  b.getI64IntegerAttr(int64_t(part) * loop.works.partRows), ofB,
                                  behind(place, next));
    });
  });
}

void PromotedGemmBuilder::buildStage(ArrayRef<Value> accumulators, const Tile &tile, Value k,
                                     ScalesOf scalesOf) {
  if (gemm.tiling.blocksOfTileK == 1)
    buildKTile(accumulators, tile, k, scalesOf);
  else
    buildTwo(accumulators.front(), tile, k, scalesOf);
}

/// Scales from global memory are taken behind the MMA, so that a tile whose first ones are late
/// begins all the same. A thread with two parts takes them before, while the stage is loaded, and
/// tiles of scales are there.
void PromotedGemmBuilder::buildKTile(ArrayRef<Value> accumulators, const Tile &tile, Value k,
                                     ScalesOf scalesOf) {
  SmallVector<Value> scales;
  bool before = accumulators.size() > 1 || gemm.stagesScales();
  for (size_t part = 0; before && part < accumulators.size(); ++part)
    scales.push_back(scalesOf(part, 0));
  Value element = b.mul(k, gemm.tiling.tileK);
  Value aTile = operands.load(args.a, tile.rows.front(), element),
        bTile = operands.load(args.bb, tile.rowB, element);
  Value sums = loop.fragments.create();
  for (auto [part, acc] : llvm::enumerate(accumulators)) {
    MmaFragmentOp::create(b, sums, aTile, b.getI64IntegerAttr(int64_t(part) * loop.works.partRows),
                          bTile);
    if (scales.size() == part)
      scales.push_back(scalesOf(part, 0));
    PromoteOp::create(b, acc, sums, scales[part], tile.scaleRowB);
  }
}

gpu::GPUFuncOp fp4::buildPromotedGemmKernel(gpu::GPUModuleOp module, const Gemm &gemm,
                                            const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, gemm.argumentTypes(), plan, loc);
  GemmKernel kernel(func, gemm, plan, loc);
  PromotedGemmBuilder(kernel, plan).build();
  return func;
}
