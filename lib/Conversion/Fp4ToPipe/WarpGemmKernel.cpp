//===- WarpGemmKernel.cpp - Block-scaled GEMMs of mma.sync -------------===//
//
// The textbook algorithm of MatmulKernel.cpp, where warps multiply tiles as they are in shared
// memory and keep the sums in their registers. Split-K parts are tiles of their own: every thread
// leaves its sums in a workspace, and the last CTA to arrive adds them, 16 rows of a fragment after
// the other.
//
//===----------------------------------------------------------------------===//

#include "MatmulKernel.h"

#include "FragmentEpilogue.h"

#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/Plans/WarpFragment.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
class WarpGemmBuilder : FragmentEpilogue {
public:
  WarpGemmBuilder(gpu::GPUFuncOp func, const Gemm &gemm, const KernelPlan &plan, Location loc)
      : FragmentEpilogue(func, gemm, plan, loc) {
    int64_t warps = cast<RolePlanAttr>(plan.roles).getDriver(Engine::Tensor).getNumWarps();
    fragmentSize =
        *warpFragment(gemm.tiling.tileM, gemm.tiling.tileN, warps); // the check of the plan has it
    fragmentKind = FragmentKind::MmaSync;
  }
  void build() {
    buildTiles([&](Value m, Value n) { buildTile(m, n); });
  }

private:
  struct Tile : PlacedTile {
    Range k;
    Value part, index; ///< the part, and the tile among those of the result; null without split-K
  };

  Tile findTile(Value m, Value n);
  void buildTile(Value m, Value n);
  void storeTile(Value acc, Value second, const Tile &tile);
  void buildKTile(Value acc, Value second, const Tile &tile, Value k);
  Value rowInBlock(Value row, int64_t rows);
};
} // namespace

WarpGemmBuilder::Tile WarpGemmBuilder::findTile(Value m, Value n) {
  Tile tile;
  tile.k = {b.constant(0), countTilesK()};
  if (gemm.work.hasWorkspace()) {
    tile.part = b.div(n, gemm.tilesN());
    n = b.rem(n, gemm.tilesN());
    tile.index = b.add(b.mul(m, gemm.tilesN()), n);
    tile.k = rangeOf(tile.part);
  }
  static_cast<PlacedTile &>(tile) = placeTile(m, n);
  return tile;
}

void WarpGemmBuilder::buildTile(Value m, Value n) {
  Tile tile = findTile(m, n);
  Value acc = newFragment(), second = gemm.problem.dual ? newFragment() : Value();
  b.loop(tile.k.begin, tile.k.end, b.constant(1),
         [&](Value k) { buildKTile(acc, second, tile, k); });
  storeTile(acc, second, tile);
}

/// Stores the fragment of this warp, 16 rows after the other; with split-K, the sums of all parts.
void WarpGemmBuilder::storeTile(Value acc, Value second, const Tile &tile) {
  auto place = WarpPlaceOp::create(b, acc, gemm.tiling.tileM, gemm.tiling.tileN);
  Value rowOfWarp = b.add(tile.row, place.getRow());
  Value columnOfWarp = b.add(tile.column, place.getColumn());
  auto parts = size_t(fragmentSize[0] / kWarpRows);
  auto store = [&](size_t number, SumsFrom sums, SumsFrom more) {
    Value first = number ? b.add(rowOfWarp, b.constant(int64_t(number) * kWarpRows)) : rowOfWarp;
    storeSums(sums, first, columnOfWarp, /*restoring=*/{}, tile.group, {}, more);
  };
  if (tile.part)
    return reduceSums(SmallVector<Value>(parts, acc), tile.index, tile.part,
                      [&](size_t number, SumsFrom sums) { store(number, sums, {}); });
  for (size_t number = 0; number < parts; ++number) {
    auto sums = [&](VectorType type, int64_t first) { return readPart(acc, number, type, first); };
    auto more = [&](VectorType type, int64_t first) {
      return readPart(second, number, type, first);
    };
    store(number, sums, second ? SumsFrom(more) : SumsFrom());
  }
  quantizeElements(tile.row, tile.column, {place.getRow(), place.getColumn()}, tile.group);
  finishTile();
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
  auto [kBlock, blocks] = scaleBlocksOf(k);
  Value aTile = load(a, tile.row, element), bTile = load(bb, tile.rowB, element);
  Value b2Tile = second ? load(b2, tile.rowB, element) : Value();
  Value sa, rowOfA;
  if (!gemm.unitScalesA()) {
    sa = loadScales(scalesA, rowBlockOf(tile.scaleRowA), kBlock, blocks, gemm.tiling.tileM);
    rowOfA = rowInBlock(tile.scaleRowA, gemm.tiling.tileM);
  }
  auto scalesOf = [&](Value from) {
    return loadScales(from, rowBlockOf(tile.scaleRowB), kBlock, blocks, gemm.tiling.tileN);
  };
  Value sb = scalesOf(scalesB), sb2 = second ? scalesOf(scalesB2) : Value();
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
  WarpGemmBuilder(func, gemm, plan, loc).build();
  return func;
}
