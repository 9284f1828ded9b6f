//===- PromotedGemmPlans.cpp - GEMMs of FP8 with f32 scales ------------===//
//
// A warpgroup has 64 rows of a tile, or 128 in two parts, with the accumulators and the sums of one
// part in its registers. The plan has the fitting tile whose waves take the fewest cycles. A k tile
// costs the largest of three times: of the tensor core, of its operands from the L2 cache, and of a
// warpgroup from one k tile to the next (notebook/gemm-fp8.md). Clusters reduce split-K ranges of
// tiles of one part as in other GEMMs.
//
// If one warpgroup has all rows, its time from one k tile to the next is the bound. A tile is then
// two scale blocks deep: the warpgroup waits once for both, and adds the sums of the first while
// the second is multiplied. Two warpgroups hide each other's waits, and have a stage sooner if it
// has one scale block.
//
//===----------------------------------------------------------------------===//

#include "GemmPlanner.h"
#include "RolePlans.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;

/// The depth of a tile: one scale block, or two.
static constexpr int64_t kTileK = 128, kTwoTileK = 256;
static constexpr std::array<int64_t, 3> kTileMs = {64, 128, 256};
/// Rows of the tiles whose sums fit in shared memory beside four stages.
static constexpr int64_t kMostPartRows = 128;
/// Scale blocks of K whose scales are a tile in shared memory.
static constexpr int64_t kBlocksOfScales = 4;
/// Columns are those of one instruction.
static constexpr int64_t kColumnStep = 8;
/// Registers of a thread for accumulators and sums; 48 more are for everything else.
static constexpr int64_t kFragmentRegisters = 192;

/// Multiply-adds of fp8 per cycle, and bytes that the L2 cache delivers per cycle, of an SM of an
/// H200; cycles of a tile beside its k tiles.
static constexpr int64_t kMultiplyAdds = 4096, kFeedBytes = 48, kTileCycles = 1500;
/// Cycles that a tall tile gains if its results leave through shared memory, and that a k tile
/// takes longer with three stages than with four; and columns of the narrowest box.
static constexpr int64_t kStoreCycles = 1200, kThirdStageCycles = 40, kStoredColumns = 32;
/// Tiles of a CTA from which on a wide tile gains more by such stores than by a fifth stage, and
/// the cycles that it then takes beside its k tiles. A tall tile takes fewer, and more for each k
/// tile; panels of so many tiles write longer pieces of rows at a time.
static constexpr int64_t kFewestStoredTiles = 4, kStoredTileCycles = 1300,
                         kStoredTallTileCycles = 900, kStoredTallCycles = 1230, kStoredPanel = 8;

/// Bytes and cycles of tiles of many rows, whose scales are in shared memory. Two warpgroups hide
/// each other's waits, and sums of whole boxes select few scales. The last two are a k tile of a
/// tall tile, alone and in groups.
static constexpr int64_t kManyFeedBytes = 52, kManyTileCycles = 2500, kTallCycles = 1100,
                         kGroupedTallCycles = 1150;

/// Cycles that a k tile of a part takes longer if threads load its scales from global memory
/// (predicted by simulation, for 128 x 32 and 256 x 128).
static constexpr int64_t kScaleLoadCycles = 170;

/// Cycles that a warpgroup with two scale blocks in a stage takes for one of them, and for each
/// column of its rows, if their scales are in shared memory (predicted by simulation, for 32 and 64
/// columns).
static constexpr int64_t kTwoScaleBlocksWait = 265, kTwoScaleBlocksColumn = 1;

/// Cycles of a warpgroup from one k tile to the next: of waiting, and for two columns of its rows.
/// Two warpgroups hide most of the latter, but take so many fourths of the tensor core's time.
struct WarpgroupRates {
  int64_t wait, columnPair, fourths;
};
static constexpr WarpgroupRates kAlone = {500, 6, 0}, kBeside = {500, 2, 5};
/// Rates of tiles that begin anywhere in a scale block: each 8 columns select one of two scales.
static constexpr WarpgroupRates kAloneSelects = {500, 9, 0}, kBesideSelects = {500, 5, 7};

/// Parts of 128 rows of a tile, or one of 64.
static int64_t partsOf(int64_t rows) { return llvm::divideCeil(rows, kMostPartRows); }

/// Accumulators of each part, and sums of one part, or of each of two scale blocks.
static int64_t fragmentsOf(int64_t rows, int64_t depth) { return partsOf(rows) + depth / kTileK; }

static int64_t mostColumns(int64_t rows, int64_t depth) {
  return kFragmentRegisters * 2 / fragmentsOf(rows, depth) / kColumnStep * kColumnStep;
}

/// Returns true when whole split-K ranges, a multiple of `unit`, consist of two scale blocks each.
static bool mayHaveTwoScaleBlocks(int64_t rows, int64_t unit) {
  return partsOf(rows) == 1 && unit % kTwoTileK == 0;
}

/// The depth of a tile. A warpgroup alone waits for k tiles longer than it multiplies them. Two
/// tiles of few rows side by side are faster than one of twice as many; split-K gains nothing
/// there.
static int64_t depthOf(const KernelPlan &partial, int64_t rows, const MatmulSize &size) {
  if (partial.tile[2])
    return partial.tile[2];
  int64_t most = size.splits == 1 ? 2 * rows : rows;
  bool isAlone = size.groups.empty() && rows == kTileMs[0] && size.m <= most;
  return isAlone && mayHaveTwoScaleBlocks(rows, size.k) ? kTwoTileK : kTileK;
}

static int64_t waitOf(int64_t m, int64_t n, int64_t depth, int64_t multiply) {
  constexpr int64_t half = pipe::kPromotedBlock / 2;
  bool selects = n % half != 0 && pipe::kPromotedBlock % n != 0;
  const WarpgroupRates &rates =
      m == kTileMs[0] ? (selects ? kAloneSelects : kAlone) : (selects ? kBesideSelects : kBeside);
  return std::max(rates.wait * kTileK / depth + partsOf(m) * rates.columnPair * n / 2,
                  multiply * rates.fourths / 4);
}

/// Returns true when two warpgroups have a tile of many rows each, with its scales in shared
/// memory.
static bool hasMany(const MatmulSize &size, int64_t m, int64_t n) {
  bool isMany = !size.groups.empty() || size.m > kTileMs.back();
  return isMany && m > kTileMs.front() && n % kStoredColumns == 0 && size.splits == 1 &&
         size.k % (pipe::kPromotedBlock * kBlocksOfScales) == 0;
}

/// Returns true when results of a tile of many rows leave through shared memory, in GEMMs that may
/// have such stores.
static bool isStored(const MatmulSize &size, int64_t m, int64_t n, const hw::TargetModel &target) {
  int64_t tiles = tilesAlongM(size, m) * llvm::divideCeil(size.n, n);
  int64_t lost = llvm::divideCeil(size.k, kTileK) * kThirdStageCycles;
  if (m > kMostPartRows)
    return tiles > target.sms && lost < kStoreCycles;
  return m == kMostPartRows && n > kMostPartRows && tiles > kFewestStoredTiles * target.sms;
}

/// Cycles of a tile of many rows. Tiles that begin in the midst of half a scale block gain nothing
/// by their stores: every 8 columns select one of two scales.
static int64_t cyclesOfMany(const MatmulSize &size, int64_t m, int64_t n,
                            const hw::TargetModel &target) {
  int64_t multiply = m * n * kTileK / kMultiplyAdds, feed = (m + n) * kTileK / kManyFeedBytes;
  int64_t tall = size.groups.empty() ? kTallCycles : kGroupedTallCycles;
  if (m > kMostPartRows)
    multiply = multiply * tall / (m * kMostPartRows * kTileK / kMultiplyAdds);
  int64_t kTiles = llvm::divideCeil(size.k, kTileK), ofKTile = std::max(multiply, feed);
  int64_t cycles = kTiles * ofKTile + kManyTileCycles;
  if (n % (pipe::kPromotedBlock / 2) || !isStored(size, m, n, target))
    return cycles;
  bool isTall = m > kMostPartRows;
  return std::min(cycles, isTall ? kTiles * kStoredTallCycles + kStoredTallTileCycles
                                 : kTiles * ofKTile + kStoredTileCycles);
}

static int64_t wavesOf(const MatmulSize &size, int64_t m, int64_t n,
                       const hw::TargetModel &target) {
  int64_t tiles = tilesAlongM(size, m) * llvm::divideCeil(size.n, n) * size.splits;
  return int64_t(llvm::divideCeil(tiles, target.sms));
}

static int64_t cyclesOf(const MatmulSize &size, int64_t m, int64_t n, int64_t depth,
                        const hw::TargetModel &target) {
  int64_t waves = wavesOf(size, m, n, target);
  if (hasMany(size, m, n))
    return waves * cyclesOfMany(size, m, n, target);
  int64_t multiply = m * n * kTileK / kMultiplyAdds, feed = (m + n) * kTileK / kFeedBytes;
  int64_t wait = waitOf(m, n, depth, multiply);
  int64_t deep = llvm::divideCeil(size.k, kTileK * size.splits);
  return waves * (deep * std::max({multiply, feed, wait}) + kTileCycles);
}

/// Tiles for any K, whose threads load scales from global memory, or for multiples of the scale
/// blocks whose scales are a tile.
static std::vector<SizedTile> tilesOfOneBlock(const hw::TargetModel &target, bool loadsScales) {
  std::vector<SizedTile> tiles;
  for (int64_t m : kTileMs)
    for (int64_t n = kStoredColumns; n <= mostColumns(m, kTileK); n += kStoredColumns)
      tiles.push_back(sizedTile({m, n, kTileK}, [=, &target](const MatmulSize &size) {
        int64_t ofLoads = llvm::divideCeil(size.k, kTileK) * partsOf(m) * kScaleLoadCycles;
        return double(cyclesOf(size, m, n, kTileK, target) +
                      (loadsScales ? wavesOf(size, m, n, target) * ofLoads : 0));
      }));
  return tiles;
}

/// Adds tiles of few rows with two scale blocks in a stage. If K is one tile of scale blocks, its
/// stages are written out (Unroll.cpp), for which ptxas has too few registers in the widest tile.
static void addTwoBlocks(const PlannedGemm &gemm, std::vector<SizedTile> &tiles) {
  int64_t m = kTileMs[0], most = mostColumns(m, kTwoTileK);
  if (cast<RankedTensorType>(gemm.op.getLhs().getType()).getDimSize(1) == kBlocksOfScales * kTileK)
    most -= kStoredColumns;
  for (int64_t n = kStoredColumns; n <= most; n += kStoredColumns) {
    int64_t ofBlock =
        std::max(kTwoScaleBlocksWait + n * kTwoScaleBlocksColumn, (m + n) * kTileK / kFeedBytes);
    tiles.push_back(sizedTile({m, n, kTwoTileK}, [=, &gemm](const MatmulSize &size) {
      int64_t cycles = llvm::divideCeil(size.k, kTileK) * ofBlock + kTileCycles;
      return double(wavesOf(size, m, n, gemm.target) * cycles);
    }));
    tiles.back().plan.guard.m.most = 2 * m;
  }
}

static std::vector<SizedTile> promotedTiles(const PlannedGemm &gemm) {
  constexpr int64_t unit = kBlocksOfScales * kTileK;
  std::vector<SizedTile> loading = tilesOfOneBlock(gemm.target, /*loadsScales=*/true),
                         staging = tilesOfOneBlock(gemm.target, /*loadsScales=*/false);
  addTwoBlocks(gemm, staging);
  if (!hasDynamicDepth(gemm.op))
    return knownUnitOfDepth(gemm.op, {}) % unit ? loading : staging;
  for (SizedTile &tile : staging)
    tile.plan.guard.kUnit = unit;
  llvm::append_range(loading, staging);
  return loading;
}

/// The best tile; of equals, the one with the most columns. Tiles of one step of columns are only
/// for plans that ask for them.
static std::array<int64_t, 3> chooseTile(const PlannedGemm &gemm) {
  auto isAsked = [&](size_t axis, int64_t size) {
    return !gemm.plan.tile[axis] || gemm.plan.tile[axis] == size;
  };
  SmallVector<std::array<int64_t, 3>> tiles;
  int64_t fewest = gemm.plan.tile[1] ? kColumnStep : 2 * kColumnStep;
  for (int64_t m : kTileMs)
    for (int64_t depth = depthOf(gemm.plan, m, gemm.size), n = mostColumns(m, depth); n >= fewest;
         n -= kColumnStep)
      if (isAsked(0, m) && isAsked(1, n))
        tiles.push_back({m, n, depth});
  if (tiles.empty()) // an error of the check
    return {128, 128, kTileK};
  return cheapest(tiles, [&](const auto &tile) {
    return cyclesOf(gemm.size, tile[0], tile[1], tile[2], gemm.target);
  });
}

/// Stages that fit, as a power of two: the stage of a k tile is then its lower bits, which a
/// warpgroup has sooner than the remainder of a division. Tiles that `takeAll` gain more from more
/// stages (notebook/gemm-fp8.md).
static int64_t chooseStages(const std::array<int64_t, 3> &tile, int64_t otherBytes, bool takeAll,
                            const hw::TargetModel &target) {
  constexpr int64_t most = 16, ofBarriers = 1024, ofScales = 16; // of a row, and of 8 for B
  int64_t room = target.sharedBytesPerCta - ofBarriers - otherBytes;
  int64_t bytes = (tile[0] + tile[1]) * tile[2] + (tile[0] + 8) * ofScales;
  int64_t stages = std::clamp<int64_t>(room / bytes, 1, most);
  return takeAll ? stages : int64_t(llvm::bit_floor(uint64_t(stages)));
}

/// The field because of which the result cannot leave the kernel in tiles, and the reason; else
/// empty. Matrices of 8 x 8 elements of 16 bits go to shared memory, as many as fill the rows of a
/// swizzle.
static std::pair<StringRef, std::string> whyNotStaged(BlockScaledMatmulOp product,
                                                      const std::array<int64_t, 3> &tile) {
  auto why = whyStoresAreDirect(product, /*ofGroups=*/true);
  if (!why.first.empty() ||
      (product.getElementType().getIntOrFloatBitWidth() == 16 && tile[1] % kStoredColumns == 0))
    return why;
  return {"is direct for elements of other than 16 bits and for tiles whose columns are no "
          "multiple of 32",
          "tma"};
}

/// Returns true when staging pays. Results that leave through shared memory do so while the next
/// tile is multiplied. But tall tiles have only three stages beside them, and their k tiles take
/// longer. Wide tiles have four of five, which are enough if a CTA has several tiles
/// (notebook/gemm-fp8.md).
static bool isStagingBetter(const PlannedGemm &gemm, const std::array<int64_t, 3> &tile) {
  auto roles = dyn_cast_or_null<pipe::RolePlanAttr>(gemm.plan.roles);
  if (gemm.plan.store || (roles && !roles.getDriver(pipe::Engine::BulkStore)))
    return gemm.plan.store == ResultStore::Tma;
  return isStored(gemm.size, tile[0], tile[1], gemm.target) &&
         whyNotStaged(gemm.op, tile).first.empty();
}

/// The PDL of a plan. GEMMs whose CTAs have one tile each may lose if the next launch begins early
/// (notebook/gemm-fp8.md). With offsets every group may end within a tile.
static std::optional<PdlMode> pdlOf(const PlannedGemm &gemm, const KernelPlan &plan) {
  if (gemm.hasDynamicSizes()) // without N nobody knows how many tiles a CTA has
    return PdlMode::Waits;
  if (!gemm.hasKnownRows())
    return {};
  const MatmulSize &size = gemm.size;
  int64_t tilesM = gemm.op.getOffsets() ? size.m / plan.tile[0] + gemm.op.getNumGroups()
                                        : tilesAlongM(size, plan.tile[0]);
  int64_t blocksOfTile = std::max<int64_t>(1, plan.cluster[0]);
  int64_t ranges = blocksOfTile > 1 ? 1 : size.splits;
  int64_t works = tilesM * int64_t(llvm::divideCeil(size.n, plan.tile[1])) * ranges;
  int64_t most = *plan.ctasPerSm * gemm.target.sms / blocksOfTile;
  return works > most ? PdlMode::Both : PdlMode::Waits;
}

/// Registers of the roles. The largest tiles leave the loading warp no registers of theirs if they
/// load scales, too.
static const RegisterShares &sharesOf(const PlannedGemm &gemm, const KernelPlan &plan) {
  auto [m, n, k] = plan.tile;
  bool loadsScales = knownUnitOfDepth(gemm.op, plan) % (kBlocksOfScales * kTileK) != 0;
  bool isFull = loadsScales && fragmentsOf(m, k) * n == kFragmentRegisters * 2;
  bool isKnown = gemm.op.getLhs().getType().hasStaticShape() && !gemm.hasDynamicSizes();
  return isKnown || isFull ? kFewBeside : kMoreBeside;
}

/// The order of tiles. With tall tiles whose results leave in boxes, panels of kStoredPanel were
/// the fastest.
static pipe::WorkScheduleAttrInterface
scheduleOf(const PlannedGemm &gemm, const std::array<int64_t, 3> &tile, bool isTallBeside) {
  const MatmulSize &size = gemm.size;
  auto tilesN = int64_t(llvm::divideCeil(size.n, tile[1]));
  if (isTallBeside && size.groups.empty())
    return inPanels(gemm.context(), std::min(kStoredPanel, tilesN));
  if (!size.groups.empty() || size.splits > 1 || gemm.hasDynamicSizes())
    return rasterOfTiles(gemm, tile);
  return rasterOfOperands(gemm,
                          {tilesAlongM(size, tile[0]), tilesN, double(tile[0]), double(tile[1])});
}

static KernelPlan proposePromoted(const PlannedGemm &gemm) {
  const MatmulSize &size = gemm.size;
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm);
  auto [m, n, k] = plan.tile = chooseTile(gemm);
  int64_t tiles = llvm::divideCeil(size.m, m) * llvm::divideCeil(size.n, n);
  plan.cluster = proposeReduction(gemm, {m, kMostPartRows}, tiles);
  // CTAs add pieces of up to 32 columns, and each has room for as many as the others.
  bool joins = plan.cluster[0] > 1;
  int64_t columns = joins ? int64_t(llvm::alignTo(n, 32 * size.splits)) : 0;
  bool areBeside = k == kTwoTileK && size.splits == 1 && size.m > m && size.m <= 2 * m;
  int64_t otherBytes = m * columns * 4;
  if (isStagingBetter(gemm, plan.tile)) {
    plan.store = ResultStore::Tma;
    otherBytes += m * n * size.resultBytes;
  }
  bool isTallBeside = plan.store && m > kMostPartRows;
  // Wide tiles wait for their loads, but those of groups also search for their rows.
  bool isWide = m == kMostPartRows && n > kMostPartRows;
  bool takeAll = areBeside || isTallBeside || (isWide && size.groups.empty());
  plan.stages = chooseStages(plan.tile, otherBytes, takeAll, gemm.target);
  plan.schedule = scheduleOf(gemm, plan.tile, isTallBeside);
  // A warpgroup alone has enough registers, but the request for more tells ptxas that its warps are
  // converged.
  plan.roles = fragmentRoles(gemm.context(), m > 64 ? 2 : 1, sharesOf(gemm, gemm.plan.orElse(plan)),
                             plan.store == ResultStore::Tma);
  plan.ctasPerSm = 1;
  plan.pdl = pdlOf(gemm, gemm.plan.orElse(plan));
  return plan;
}

static LogicalResult checkPromoted(const PlannedGemm &gemm) {
  const KernelPlan &plan = gemm.plan;
  auto [m, n, k] = plan.tile;
  int64_t unit = knownUnitOfDepth(gemm.op, plan);
  bool hasDepth = k == kTileK || (k == kTwoTileK && mayHaveTwoScaleBlocks(m, unit));
  if (!llvm::is_contained(kTileMs, m) || !hasDepth || n < kColumnStep || n % kColumnStep ||
      n > mostColumns(m, k))
    return gemm.misfitTile(
        "is [m, n, 128] with m = 64 or 128 and n a multiple of 8 up to 192, or m = 256 "
        "and n up to 128; or, for K a multiple of 256, [m, n, 256] with m = 64 or 128 and "
        "n up to 128");
  if (failed(checkReductionPlace(gemm, {m, kMostPartRows})) || failed(checkCtasPerSm(gemm)))
    return failure();
  using enum pipe::Engine;
  SmallVector<pipe::Engine> engines = {Tma, Tensor, Threads};
  if (plan.store == ResultStore::Tma) {
    auto [must, found] = whyNotStaged(gemm.op, plan.tile);
    if (!must.empty())
      return gemm.misfit("store", must, found);
    engines.push_back(BulkStore);
  }
  // One warpgroup for each 64 rows of a part.
  return gemm.checkTiling(engines, {.areOneRole = true, .warps = {m == 64 ? 4 : 8}});
}

constexpr GemmPlanner fp4::kPromotedPlanner = {route::Kernel::Promoted, proposePromoted,
                                               checkPromoted, promotedTiles};
