//===- WeightLanePlans.cpp - Plans of floats and weights with tcgen05 -----===//
//
// A tile has 128 columns of the result, the TMEM lanes of weights, and as many rows as an
// instruction has columns. The plan has the tile whose waves take the fewest cycles. A k tile costs
// the largest of three times: of the tensor core, of its operands from the L2 cache, and of the
// role that converts weights from one k tile to the next. Beside e4m3 weights become e4m3. Threads
// add the sums of a k tile to those in their registers if rows have a power of two in each k tile.
//
//===----------------------------------------------------------------------===//

#include "GemmPlanner.h"
#include "RolePlans.h"
#include "WeightTiles.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/ISA/WeightLayout.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;

/// Columns and depth of a tile, and the rows that it can have: an instruction of kind f16 with 128
/// TMEM lanes has a multiple of 16 columns.
static constexpr int64_t kTileK = 128;
static constexpr std::array<int64_t, 5> kLaneTileMs = {16, 32, 64, 128, 256};

/// Depths of a k tile. Prepacked weights are tiles of 64 elements of K, or of 128 for e4m3; a k
/// tile has one or two of them, or the last has one.
static SmallVector<int64_t> depthsOf(BlockScaledMatmulOp product) {
  SmallVector<int64_t> depths = {kTileK};
  if (product.hasPrepackedRhs() && !takesBytes(product))
    depths.push_back(hw::weightTileColumns);
  return depths;
}

/// The depth of a k tile. The costs of a k tile besides its MMAs come half as often with the deeper
/// one. Weights of two GEMMs have four stages of the shallower depth in tensor memory, which four
/// warpgroups convert.
static int64_t depthOf(BlockScaledMatmulOp product, int64_t k) {
  bool isShallow = depthsOf(product).size() > 1 && (k == hw::weightTileColumns || product.isDual());
  return isShallow ? hw::weightTileColumns : kTileK;
}

/// Warpgroups that convert. Four warpgroups need a multiple of four stages. A tall tile has room
/// for fewer stages, and so has tensor memory if a stage has deep tiles of the weights of two
/// GEMMs. Beside four, the launch gives a thread 80 registers, too few for ptxas to read 64 sums at
/// a time that the thread promotes.
static int32_t groupsOf(BlockScaledMatmulOp product, int64_t rows, int64_t depth,
                        const MatmulSize &size) {
  constexpr int64_t smallM = 128, mostPromoted = 32;
  int64_t most = isPromoted(product) ? mostPromoted : smallM;
  return size.products * rows <= most && size.products * depth <= kTileK ? 4 : 2;
}

/// Cycles of the converting warpgroups from one k tile to the next, as the simulator predicts them
/// for scaled nvfp4.
static constexpr double kConvertCycles = 450;

/// Columns of tensor memory that the accumulators of a tile may take, beside which weights fit; and
/// sums of both GEMMs that a thread may have in registers.
static constexpr int64_t kMostColumns = 256, kMostSums = 128;

static int64_t mostRowsOfTile(const PlannedGemm &gemm) {
  return (isPromoted(gemm.op) ? kMostSums : kMostColumns) / gemm.size.products;
}

/// A warp transposes squares of elements that it quantizes.
static bool hasSquares(BlockScaledMatmulOp op, int64_t rows) {
  constexpr int64_t square = 32;
  return rows % square == 0 || !op.getQuantizeRecipe();
}

static bool mayHaveRows(const PlannedGemm &gemm, int64_t rows) {
  return rows <= mostRowsOfTile(gemm) && hasSquares(gemm.op, rows);
}

static double cyclesOf(const PlannedGemm &gemm, const MatmulSize &size, int64_t rows) {
  const hw::TargetModel &target = gemm.target;
  const hw::MmaRates &rates = *target.product;
  int64_t tiles = tilesAlongM(size, rows) * llvm::divideCeil(size.n, kTileN) * size.splits;
  auto waves = double(llvm::divideCeil(tiles, target.sms));
  // The tensor core multiplies a quarter as many elements of 16 bits as of 4 in a cycle, and half
  // as many of 8; a multiply-add is two operations.
  auto products = double(size.products), bytes = takesBytes(gemm.op) ? 1.0 : 2.0;
  double multiply = products * multiplyCycles(4.0 * bytes * double(kTileN * rows * kTileK),
                                              bytes * double(rows * kTileK), target);
  double ofWeight = bytesOfCodes(gemm.op.getFormat());
  double weightBytes = products * double(kTileN * kTileK) * ofWeight;
  double floatBytes = bytes * double(std::min(size.m, rows) * kTileK);
  int64_t active = std::min<int64_t>(tiles, target.sms);
  double feed = (weightBytes + floatBytes) / feedBytesPerCycle(active, target);
  auto deep = double(llvm::divideCeil(size.k, kTileK * size.splits));
  double cycles = deep * std::max({multiply, feed, products * kConvertCycles}) + rates.fillCycles +
                  rates.epilogueCyclesPerColumn * products * double(rows);
  int64_t weights =
      size.products * size.n * size.k * std::max<int64_t>(1, int64_t(size.groups.size()));
  double read = double(weights) * ofWeight + bytes * double(size.m * size.k);
  double memory = memoryCycles(read, double(size.m * size.n * size.resultBytes), target);
  return std::max(waves * cycles + rates.tailCycles, memory) + rates.launchCycles;
}

static std::vector<SizedTile> weightLaneTiles(const PlannedGemm &gemm) {
  std::vector<SizedTile> tiles;
  for (int64_t m :
       llvm::make_filter_range(kLaneTileMs, [&](int64_t m) { return mayHaveRows(gemm, m); }))
    tiles.push_back(
        sizedTile({m, kTileN, depthOf(gemm.op, gemm.size.k)},
                  [=, &gemm](const MatmulSize &size) { return cyclesOf(gemm, size, m); }));
  return tiles;
}

/// The best tile; of equals, the smallest.
static int64_t chooseRows(const PlannedGemm &gemm) {
  if (gemm.plan.tile[0])
    return gemm.plan.tile[0];
  return cheapest(kLaneTileMs, [&](int64_t rows) {
    return std::pair(!mayHaveRows(gemm, rows), cyclesOf(gemm, gemm.size, rows));
  });
}

/// Returns true when a cluster may reduce the split-K ranges: if shared memory fits the sums that
/// its CTAs send beside several stages, and if the clusters find as many places at a time as CTAs
/// would.
static bool mayReduce(const PlannedGemm &gemm, int64_t rows) {
  constexpr int64_t mostRows = 64;
  const KernelPlan &partial = gemm.plan;
  const MatmulSize &size = gemm.size;
  const hw::TargetModel &target = gemm.target;
  if (partial.split.reduction || partial.cluster[0] || size.splits < 2 || rows > mostRows ||
      isPromoted(gemm.op) || size.splits > int64_t(target.limits.maxClusterSize) ||
      requestsWork(partial.schedule))
    return partial.split.reduction == ReductionPlace::Cluster;
  GemmTile tile{/*pair=*/false, rows, size.splits, 1, /*transposed=*/true};
  int64_t blocks =
      int64_t(llvm::divideCeil(size.m, rows) * llvm::divideCeil(size.n, kTileN)) * size.splits;
  return llvm::divideCeil(blocks, gemmWorkers(tile, target)) <=
         llvm::divideCeil(blocks, int64_t(target.sms));
}

static KernelPlan proposeWeightLane(const PlannedGemm &gemm) {
  const MatmulSize &size = gemm.size;
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm);
  int64_t rows = chooseRows(gemm), depth = depthOf(gemm.op, size.k);
  if (llvm::is_contained(kLaneTileMs, rows)) // the check reports any other tile
    remarkOnTile(gemm, {rows, kTileN}, "one CTA", cyclesOf(gemm, size, rows));
  plan.tile = {rows, kTileN, depth};
  plan.schedule = rasterOfGemm(gemm, {/*pair=*/false, rows, 1, 1, /*transposed=*/true});
  bool inTurn = size.k > depth; // else there is one k tile
  int64_t asked = gemm.plan.tile[2] ? gemm.plan.tile[2] : depth;
  plan.roles = weightLaneRoles(gemm.context(), inTurn ? groupsOf(gemm.op, rows, asked, size) : 1);
  plan.ctasPerSm = 1;
  if (mayReduce(gemm, rows)) {
    plan.split.reduction = ReductionPlace::Cluster;
    plan.cluster = {size.splits, 1};
  }
  return plan;
}

/// Checks roles in turn: a warpgroup unpacks a k tile, and warpgroups in turn have several. The
/// roles drive all engines.
static LogicalResult checkTurns(const PlannedGemm &gemm) {
  pipe::RoleAttr convert = cast<pipe::RolePlanAttr>(gemm.plan.roles).getAuxiliary();
  int64_t depth = cast<RankedTensorType>(gemm.op.getLhs().getType()).getDimSize(1);
  StringRef must;
  if (convert.getTurns() == pipe::Turns::Stages && !ShapedType::isDynamic(depth) &&
      depth <= gemm.plan.tile[2])
    must = "convert in turn only where K has several k tiles";
  else if (gemm.op.hasPrepackedRhs() && convert.getStageThreads() != pipe::kMmaM)
    must = "convert prepacked weights with 4 warps, or with several warpgroups in turn";
  if (must.empty())
    return success();
  return gemm.misfit("roles", must, spell(gemm.plan.roles));
}

static LogicalResult checkWeightLane(const PlannedGemm &gemm) {
  auto [m, n, k] = gemm.plan.tile;
  SmallVector<int64_t> depths = depthsOf(gemm.op);
  if (m > mostRowsOfTile(gemm))
    return gemm.misfit("tile",
                       "has up to " + Twine(mostRowsOfTile(gemm)) + " rows" +
                           (isPromoted(gemm.op) ? ", whose sums threads have" : "") +
                           (gemm.op.isDual() ? " in a dual GEMM" : ""),
                       Twine(m));
  if (!llvm::is_contained(kLaneTileMs, m) || n != kTileN || !llvm::is_contained(depths, k))
    return gemm.misfitTile(Twine("is [m, 128, ") + (depths.size() > 1 ? "64 or 128" : "128") +
                           "] with m = " + spellChoice(kLaneTileMs) +
                           " for a lhs without scales on " + StringRef(gemm.target.name));
  if (!hasSquares(gemm.op, m))
    return gemm.misfit("tile",
                       "has 32, 64, 128 or 256 rows in a GEMM that quantizes its elements",
                       Twine(m));
  bool joins = gemm.plan.split.reduction == ReductionPlace::Cluster;
  if (failed(joins ? checkClusterReduction(gemm) : checkNoCluster(gemm)) ||
      failed(checkCtasPerSm(gemm)))
    return failure();
  using enum pipe::Engine;
  // Either role of threads reaches all TMEM lanes, the one that converts also as several
  // warpgroups.
  if (failed(gemm.checkTiling({Tma, Tensor, Threads},
                              {.warps = {4}, .converting = SmallVector<int64_t, 3>{4, 8, 16}})))
    return failure();
  return checkTurns(gemm);
}

constexpr GemmPlanner fp4::kWeightTmemPlanner = {route::Planner::WeightTmem, proposeWeightLane,
                                                 checkWeightLane, weightLaneTiles};
