//===- WarpGemmKernel.cpp - Block-scaled GEMMs of mma.sync -------------===//
//
// The textbook algorithm of MatmulKernel.cpp, where warps multiply tiles as they are in shared
// memory and keep the sums in their registers. Split-K parts are tiles of their own: every thread
// leaves its sums in a workspace, and the last CTA to arrive adds them, 16 rows of a fragment after
// the other.
//
//===----------------------------------------------------------------------===//

#include "MatmulKernel.h"
#include "OperandPath.h"

#include "FragmentEpilogue.h"

#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/Plans/WarpFragment.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
class WarpGemmBuilder {
public:
  WarpGemmBuilder(GemmKernel &kernel, const KernelPlan &plan)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), operands(kernel), loop(kernel, plan) {
    int64_t warps = cast<RolePlanAttr>(plan.roles).getDriver(Engine::Tensor).getNumWarps();
    loop.fragments.size =
        *warpFragment(gemm.tiling.tileM, gemm.tiling.tileN, warps); // the check of the plan has it
    loop.fragments.kind = FragmentKind::MmaSync;
  }
  void build() {
    loop.forEachTile([&](Value m, Value n) { buildTile(m, n); });
  }

private:
  using Tile = WorkLoop::Tile;
  void buildTile(Value m, Value n);
  void storeTile(Value acc, Value second, const Tile &tile);
  void buildKTile(Value acc, Value second, const Tile &tile, Value k);
  Value rowInBlock(Value row, int64_t rows);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  OperandPath operands;
  FragmentLoop loop;
};
} // namespace

void WarpGemmBuilder::buildTile(Value m, Value n) {
  Tile tile = loop.works.findTile(m, n);
  Value acc = loop.fragments.create(),
        second = gemm.problem.dual ? loop.fragments.create() : Value();
  b.loop(tile.k.begin, tile.k.end, b.constant(1),
         [&](Value k) { buildKTile(acc, second, tile, k); });
  storeTile(acc, second, tile);
}

/// Stores the fragment of this warp, 16 rows after the other; with split-K, the sums of all parts.
void WarpGemmBuilder::storeTile(Value acc, Value second, const Tile &tile) {
  auto place = WarpPlaceOp::create(b, acc, gemm.tiling.tileM, gemm.tiling.tileN);
  Value rowOfWarp = b.add(tile.row, place.getRow());
  Value columnOfWarp = b.add(tile.column, place.getColumn());
  auto parts = size_t(loop.fragments.size[0] / FragmentSums::kWarpRows);
  auto store = [&](size_t number, FragmentSums::From sums, FragmentSums::From more) {
    Value first = number ? b.add(rowOfWarp, b.constant(int64_t(number) * FragmentSums::kWarpRows))
                         : rowOfWarp;
    loop.epilogue.storeSums(sums, first, columnOfWarp, /*restoring=*/{}, tile.group, {}, more);
  };
  if (tile.part)
    return loop.fragments.reduce(
        SmallVector<Value>(parts, acc), tile.index, tile.part,
        [&](size_t number, FragmentSums::From sums) { store(number, sums, {}); });
  for (size_t number = 0; number < parts; ++number) {
    auto sums = [&](VectorType type, int64_t first) {
      return loop.fragments.readPart(acc, number, type, first);
    };
    auto more = [&](VectorType type, int64_t first) {
      return loop.fragments.readPart(second, number, type, first);
    };
    store(number, sums, second ? FragmentSums::From(more) : FragmentSums::From());
  }
  loop.epilogue.quantizeElements(tile.row, tile.column, {place.getRow(), place.getColumn()},
                                 tile.group);
  loop.epilogue.finishTile();
}

/// Returns the row in its scale tile at which a tile of `rows` rows begins; null where that is the
/// first row.
Value WarpGemmBuilder::rowInBlock(Value row, int64_t rows) {
  if (rows % kScaleBlockRows == 0)
    return {};
  return b.rem(row, kScaleBlockRows);
}

void WarpGemmBuilder::buildKTile(Value acc, Value second, const Tile &tile, Value k) {
  Value element = b.mul(k, gemm.tiling.tileK);
  auto [kBlock, blocks] = operands.scaleBlocksOf(k);
  Value aTile = operands.load(args.a, tile.row, element),
        bTile = operands.load(args.bb, tile.rowB, element);
  Value b2Tile = second ? operands.load(args.b2, tile.rowB, element) : Value();
  Value sa, rowOfA;
  if (!gemm.unitScalesA()) {
    sa = operands.loadScales(args.scalesA, operands.rowBlockOf(tile.scaleRowA), kBlock, blocks,
                             gemm.tiling.tileM);
    rowOfA = rowInBlock(tile.scaleRowA, gemm.tiling.tileM);
  }
  auto scalesOf = [&](Value from) {
    return operands.loadScales(from, operands.rowBlockOf(tile.scaleRowB), kBlock, blocks,
                               gemm.tiling.tileN);
  };
  Value sb = scalesOf(args.scalesB), sb2 = second ? scalesOf(args.scalesB2) : Value();
  Value rowOfB = rowInBlock(tile.scaleRowB, gemm.tiling.tileN);
  MmaSyncOp::create(b, acc, aTile, sa, rowOfA, bTile, sb, rowOfB, blocks);
  if (second)
    MmaSyncOp::create(b, second, aTile, sa, rowOfA, b2Tile, sb2, rowOfB, blocks);
}

gpu::GPUFuncOp fp4::buildWarpGemmKernel(gpu::GPUModuleOp module, const Gemm &gemm,
                                        const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, gemm.argumentTypes(), plan, loc);
  // Without a declared number of CTAs per SM, ptxas spills so that more CTAs would fit than the
  // shared memory allows.
  declareCtasPerSm(func, 1);
  GemmKernel kernel(func, gemm, plan, loc);
  WarpGemmBuilder(kernel, plan).build();
  return func;
}
