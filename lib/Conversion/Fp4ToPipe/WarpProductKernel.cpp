//===- WarpProductKernel.cpp - Block-scaled products of mma.sync ----------===//
//
// The textbook algorithm of MatmulKernel.cpp, where warps multiply tiles as they are in shared memory
// and keep the sums in their registers.
//
//===----------------------------------------------------------------------===//

#include "WarpProductKernel.h"

#include "FragmentEpilogue.h"

#include "fp4/Conversion/KernelPlans/WarpFragment.h"
#include "fp4/Dialect/Pipe/IR/PipeWarps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
class WarpProductBuilder : FragmentEpilogue {
public:
  WarpProductBuilder(gpu::GPUFuncOp func, const MatmulShape &shape, const KernelPlan &plan,
                     Location loc)
      : FragmentEpilogue(func, shape, plan, loc) {
    int64_t warps = cast<RolePlanAttr>(plan.roles).getDriver(Engine::Tensor).getNumWarps();
    fragmentSize = *warpFragment(shape.tileM, shape.tileN, warps); // the check of the plan has it
    fragmentKind = FragmentKind::MmaSync;
  }
  void build() {
    buildTiles([&](Value m, Value n) { buildTile(m, n); });
  }

private:
  void buildTile(Value m, Value n);
  void storeTile(Value acc, Value row, Value column);
  void buildKTile(Value acc, Value row, Value column, Value k);
  Value rowInBlock(Value row, int64_t rows);

  /// Rows that mma.sync has of a fragment.
  static constexpr int64_t kWarpRows = 16;
};
} // namespace

void WarpProductBuilder::buildTile(Value m, Value n) {
  Value row = mul(m, shape.tileM), column = mul(n, shape.tileN);
  Value acc = newFragment();
  loop(constant(0), constant(shape.tilesK()), constant(1),
       [&](Value k) { buildKTile(acc, row, column, k); });
  storeTile(acc, row, column);
}

/// Of the fragment of this warp, 16 rows after the other.
void WarpProductBuilder::storeTile(Value acc, Value row, Value column) {
  auto place = WarpPlaceOp::create(b, loc, acc, shape.tileM, shape.tileN);
  row = add(row, place.getRow());
  column = add(column, place.getColumn());
  for (int64_t first = 0; first < fragmentSize[0]; first += kWarpRows)
    storeSums(
        [&](VectorType type, int64_t from) -> Value {
          return ReadWarpFragmentOp::create(b, loc, type, acc, first, from);
        },
        first ? add(row, constant(first)) : row, column, /*exponent=*/0);
}

/// Where a tile of `rows` rows begins in its block of scales; null where that is the first row.
Value WarpProductBuilder::rowInBlock(Value row, int64_t rows) {
  if (rows % kScaleBlockRows == 0)
    return {};
  return arith::RemUIOp::create(b, loc, row, constant(kScaleBlockRows));
}

void WarpProductBuilder::buildKTile(Value acc, Value row, Value column, Value k) {
  Value element = mul(k, shape.tileK);
  auto [kBlock, blocks] = scaleBlocksOf(k);
  Value aTile = load(a, row, element), bTile = load(bb, column, element);
  Value sa, rowOfA;
  if (!shape.unitScalesA) {
    sa = loadScales(scalesA, rowBlockOf(row), kBlock, blocks, shape.tileM);
    rowOfA = rowInBlock(row, shape.tileM);
  }
  Value sb = loadScales(scalesB, rowBlockOf(column), kBlock, blocks, shape.tileN);
  MmaSyncOp::create(b, loc, acc, aTile, sa, rowOfA, bTile, sb, rowInBlock(column, shape.tileN),
                    blocks);
}

gpu::GPUFuncOp fp4::buildWarpProductKernel(gpu::GPUModuleOp module, const MatmulShape &shape,
                                           const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, shape.argumentTypes(), plan, loc);
  // Without it ptxas spills so that more blocks would fit than the shared memory allows.
  declareResident(func, 1);
  WarpProductBuilder(func, shape, plan, loc).build();
  return func;
}
