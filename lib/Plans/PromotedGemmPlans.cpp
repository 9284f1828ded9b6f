//===- PromotedGemmPlans.cpp - GEMMs of FP8 with f32 scales ------------===//
//
// A warpgroup has 64 rows of a tile, or 128 in two parts, with the accumulators and the sums of one
// part in its registers. The plan has the fitting tile whose waves take the fewest cycles by rates
// that are fitted to measured kernels (fp4/ISA/PromotedRates.h). A k tile costs the largest of four
// times: of the warpgroups from one k tile to the next, the tensor core, L2, and memory. Clusters
// reduce split-K ranges of tiles of one part as in other GEMMs.
//
// A tile of a dual GEMM has the accumulators of both, and the sums of one at a time, as a tall tile
// has them of two parts. Threads that quantize elements have 128 rows, and whole blocks.
//
// A warpgroup that has all 64 rows of a tile may have two scale blocks in a stage: it waits once
// for both, and adds the sums of the first while the second is multiplied. Two warpgroups hide each
// other's waits, and have a stage sooner if it has one scale block.
//
//===----------------------------------------------------------------------===//

#include "GemmPlanner.h"
#include "RolePlans.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/PromotedColumns.h"
#include "fp4/ISA/PromotedRates.h"
#include "fp4/Plans/StagedScales.h"
#include "fp4/Plans/WarpFragment.h"
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
/// Columns of tiles whose rows threads quantize.
static constexpr std::array<int64_t, 2> kQuantizedColumns = {64, 128};
/// Registers of a thread for accumulators and sums; 48 more are for everything else.
static constexpr int64_t kFragmentRegisters = 192;

/// Multiply-adds of fp8 per cycle of an SM.
static constexpr int64_t kMultiplyAdds = 4096;
/// Cycles that a tall tile gains if its results leave through shared memory, and that a k tile
/// takes longer with three stages than with four; and columns of the narrowest box.
static constexpr int64_t kStoreCycles = 1200, kThirdStageCycles = 40, kStoredColumns = 32;
/// Tiles of a CTA from which on a wide tile of groups gains by such stores; panels of so many tall
/// tiles write longer pieces of rows at a time.
static constexpr int64_t kFewestStoredTiles = 4, kStoredPanel = 8;
/// Cycles that a k tile of a part takes longer if threads load its scales from global memory
/// (predicted by simulation, for 128 x 32 and 256 x 128).
static constexpr int64_t kScaleLoadCycles = 170;

/// Cycles of a wave behind the first in which tensor maps load rows of scales in sets: 24 rows of
/// 8192 x 5376 in two waves took 3337 and 1166 more than the rates say with two scale blocks in a
/// stage and with one, and in one wave 543 and 1313 (an H200, 30 November 2026).
static constexpr int64_t kSetCycles = 1400;
/// The part of the cycles by which rates cannot tell tiles apart.
static constexpr double kSameTime = 0.005;

/// Rows, columns and depth of a tile.
using Tile = std::array<int64_t, 3>;

/// Parts of 128 rows of a tile, or one of 64.
static int64_t partsOf(int64_t rows) { return llvm::divideCeil(rows, kMostPartRows); }

/// Accumulators of each part of each GEMM, and sums of one part, or of each of two scale blocks.
static int64_t fragmentsOf(const MatmulSize &size, int64_t rows, int64_t depth) {
  return partsOf(rows) * size.products + depth / kTileK;
}

static int64_t mostColumns(const MatmulSize &size, int64_t rows, int64_t depth) {
  return kFragmentRegisters * 2 / fragmentsOf(size, rows, depth) / kColumnStep * kColumnStep;
}

/// Returns true when whole split-K ranges, a multiple of `unit`, consist of two scale blocks each.
static bool mayHaveTwoScaleBlocks(const MatmulSize &size, int64_t rows, int64_t unit) {
  return partsOf(rows) * size.products == 1 && unit % kTwoTileK == 0;
}

/// Returns true when threads can quantize rows of such a tile: two warpgroups exchange the elements
/// of 128 rows, each has segments of 32 or 64 columns, and a CTA has whole blocks.
static bool hasWholeSegments(BlockScaledMatmulOp product, int64_t rows, int64_t columns) {
  std::optional<RecipeAttr> recipe = product.getQuantizeRecipe();
  if (!recipe)
    return true;
  int64_t block = numerics::blockSizeOf(recipe->getDecisions().format);
  return rows >= kGatheredRows && llvm::is_contained(kQuantizedColumns, columns) &&
         columns % block == 0;
}

/// Bytes of shared memory in which warps exchange the elements of a tile that threads quantize.
static int64_t gatheredBytes(const PlannedGemm &gemm, const Tile &tile) {
  constexpr int64_t threads = 256, bytesOfLine = 128;
  if (!gemm.op.getQuantizeRecipe())
    return 0;
  return kGatheredRows *
         int64_t(
             llvm::alignTo(gatheredColumns(tile[1], threads) * gemm.size.resultBytes, bytesOfLine));
}

/// Returns true when two warpgroups have a tile of a GEMM of more rows than one part has, with its
/// scales in shared memory.
static bool hasMany(const MatmulSize &size, const Tile &tile, bool loadsScales) {
  bool isMany = !size.groups.empty() || size.m > kMostPartRows;
  return isMany && tile[0] > kTileMs.front() && tile[1] % kStoredColumns == 0 && size.splits == 1 &&
         !loadsScales;
}

/// Returns true when TMA loads rows of scales in sets, by several tensor maps for each operand.
static bool loadsRowSets(const MatmulSize &size) {
  auto blocks = int64_t(llvm::divideCeil(size.k, kTileK));
  return size.splits == 1 && hw::RowSets{blocks % hw::RowSets::unit}.count() > 1;
}

/// Returns true when threads have registers for results beside the elements, and sums of the other
/// part of a tall tile: where sizes are known, and threads that quantize read nothing else
/// (validation/spills.py: up to 240 bytes otherwise).
static bool mayDeriveTall(const PlannedGemm &gemm) {
  BlockScaledMatmulOp product = gemm.op;
  bool readsMatrix = llvm::any_of(product.getEpilogueInputs(), [](Value input) {
    return cast<RankedTensorType>(input.getType()).getRank() > 0;
  });
  bool isKnown = product.getLhs().getType().hasStaticShape() && !gemm.hasDynamicSizes();
  if (product.getQuantizeRecipe())
    return isKnown && !readsMatrix && !product.isGrouped() && !loadsRowSets(gemm.size);
  return product.hasOnlyElements() || !gemm.hasDynamicSizes();
}

/// Returns true when registers have the sums of such a tile, and threads what its results need.
static bool fitsThreads(const PlannedGemm &gemm, int64_t rows, int64_t columns, int64_t depth) {
  bool mayBeTall = gemm.size.products == 1 && mayDeriveTall(gemm);
  return (rows <= kMostPartRows || mayBeTall) && columns <= mostColumns(gemm.size, rows, depth) &&
         hasWholeSegments(gemm.op, rows, columns);
}

/// Returns true when results of a tile of many rows leave through shared memory, in GEMMs that may
/// have such stores.
static bool isStored(const MatmulSize &size, int64_t m, int64_t n, const hw::TargetModel &target) {
  int64_t tiles = tilesAlongM(size, m) * llvm::divideCeil(size.n, n);
  int64_t lost = llvm::divideCeil(size.k, kTileK) * kThirdStageCycles;
  if (m > kMostPartRows)
    return tiles > target.sms && lost < kStoreCycles;
  int64_t fewest = size.groups.empty() ? 1 : kFewestStoredTiles;
  return m == kMostPartRows && n > kMostPartRows && tiles > fewest * target.sms;
}

//===----------------------------------------------------------------------===//
// The cost of a tile
//===----------------------------------------------------------------------===//

/// Selections of one of two scales by the threads of a tile, one for each step of its columns that
/// lies in either of two scale blocks (Promotion.cpp).
static int64_t selectionsOf(int64_t columns) {
  int64_t count = 0, step = pipe::promotedStep(columns);
  for (int64_t column = 0; column < columns; column += step) {
    auto [first, last] = pipe::promotedBlocksAt(columns, column);
    count += first != last;
  }
  return count;
}

/// Cycles of the warpgroups of a tile from one scale block of K to the next. Both GEMMs of a dual
/// one take as long as two parts.
static double warpgroupCycles(const MatmulSize &size, const Tile &tile, bool loadsScales,
                              const hw::PromotedRates &rates) {
  auto [m, n, depth] = tile;
  bool isMany = hasMany(size, tile, loadsScales);
  int64_t parts = partsOf(m) * size.products;
  const hw::WarpgroupRates &deep = depth == kTwoTileK ? rates.deep : rates.alone,
                           &tall = isMany ? rates.manyTall : rates.tall,
                           &beside = isMany ? rates.many : rates.beside,
                           &of = m == kTileMs[0] ? deep : (parts > 1 ? tall : beside);
  double select = isMany ? rates.manySelect : rates.select,
         columns = double(m == kTileMs[0] ? n * size.products : n); // rates of one part of 64 rows
  return of.wait + of.column * columns + select * double(parts * selectionsOf(n));
}

/// Cycles of a scale block of K in each of `running` tiles: of the warpgroups, the tensor core, L2,
/// or memory. Tiles along M run at a time and share columns. Memory is slower if few SMs ask, and
/// beside loads of the lhs by split-K ranges, which have no element of it in common.
static double cyclesOfBlock(const MatmulSize &size, const Tile &tile, bool loadsScales,
                            int64_t running, const hw::PromotedRates &rates, int64_t sms) {
  constexpr double power = 6;
  auto [m, n, depth] = tile;
  int64_t groups = std::max<int64_t>(1, int64_t(size.groups.size()));
  int64_t along = std::max<int64_t>(1, tilesAlongM(size, m) / groups);
  int64_t rows = std::min(running, along * size.splits) * std::min(m, size.m),
          columns = std::min(int64_t(llvm::divideCeil(running, along)) * n, size.n * size.splits) *
                    size.products;
  double memory = double((rows + columns) * kTileK) / rates.memory.bytes *
                  (1 + rates.memory.idle * (1 - double(running) / double(sms)));
  if (size.splits > 1)
    memory += double(running * std::min(m, size.m) * kTileK) / rates.memory.rangeBytes;
  int64_t width = n * size.products;
  return std::max(double(m * width * kTileK) / kMultiplyAdds,
                  joinedTime({warpgroupCycles(size, tile, loadsScales, rates),
                              double((m + width) * kTileK) / rates.feedBytes, memory},
                             power));
}

/// Cycles of the reduction of the split-K ranges of a tile, in a cluster or in a workspace.
static double cyclesOfReduction(const MatmulSize &size, const Tile &tile,
                                const hw::PromotedRates &rates) {
  auto m = double(tile[0]), n = double(tile[1]);
  if (size.splits == 1)
    return 0;
  if (size.splits == 2 && tile[0] <= kMostPartRows)
    return rates.cluster.once + rates.cluster.column * n;
  return rates.workspace.once +
         rates.workspace.column * n * double(size.splits) * m / kMostPartRows;
}

static double cyclesOf(const MatmulSize &size, const Tile &tile, bool loadsScales,
                       const hw::PromotedRates &rates, int64_t sms) {
  auto [m, n, depth] = tile;
  int64_t tiles = tilesAlongM(size, m) * int64_t(llvm::divideCeil(size.n, n)) * size.splits;
  int64_t waves = llvm::divideCeil(tiles, sms), last = tiles - (waves - 1) * sms;
  double whole = double(size.k) / kTileK, slice = double(numerics::splitSlice) / kTileK;
  double blocks =
      std::min(slice * double(llvm::divideCeil(size.slices(), size.splits)), whole); // of a range
  bool isMany = hasMany(size, tile, loadsScales);
  double ofTile = isMany ? rates.manyTile : rates.tile.once + rates.tile.column * double(n);
  double ofLoads = loadsScales ? blocks * double(partsOf(m) * kScaleLoadCycles) : 0;
  double ofReduction = cyclesOfReduction(size, tile, rates);
  double ofSets = loadsRowSets(size) && !loadsScales ? double((waves - 1) * kSetCycles) : 0;
  return ofSets + (waves == 1 ? rates.launch : rates.overlapped) +
         double(waves) * (ofTile + ofLoads + ofReduction) +
         blocks * (double(waves - 1) * cyclesOfBlock(size, tile, loadsScales, sms, rates, sms) +
                   cyclesOfBlock(size, tile, loadsScales, last, rates, sms));
}

//===----------------------------------------------------------------------===//
// The choice of a tile
//===----------------------------------------------------------------------===//

/// Returns true when threads load scales from global memory, as they may for any K. Tiles of scales
/// in shared memory need whole ones, or a K that the compiler knows, of one range.
static bool loadsScales(const PlannedGemm &gemm, int64_t unit, int64_t splits) {
  return unit % (kBlocksOfScales * kTileK) != 0 && (hasDynamicDepth(gemm.op) || splits > 1);
}

/// Tiles of a K that is a multiple of `unit`, whose columns are multiples of `step`, from the
/// widest. Stages of 64 rows have one scale block or two; where N or K is dynamic, two are for few
/// rows. If K is one tile of scale blocks, its stages are written out (Unroll.cpp), for which ptxas
/// has too few registers in the widest tile of two.
static std::vector<SizedTile> tilesOf(const PlannedGemm &gemm, int64_t step, int64_t unit) {
  std::vector<SizedTile> tiles;
  const hw::PromotedRates rates = *hw::promotedRates(gemm.target);
  auto sms = int64_t(gemm.target.sms);
  bool mayLoad = loadsScales(gemm, unit, /*splits=*/2),
       alwaysLoads = loadsScales(gemm, unit, /*splits=*/1);
  bool isShort = cast<RankedTensorType>(gemm.op.getLhs().getType()).getDimSize(1) ==
                 kBlocksOfScales * kTileK;
  for (int64_t m : kTileMs)
    for (int64_t k : {kTwoTileK, kTileK}) {
      bool mayBeDeep = gemm.size.groups.empty() && mayHaveTwoScaleBlocks(gemm.size, m, unit);
      if (k == kTwoTileK && (m > kTileMs[0] || !mayBeDeep))
        continue;
      int64_t most =
          mostColumns(gemm.size, m, k) - (k == kTwoTileK && isShort ? kStoredColumns : 0);
      for (int64_t n = most / step * step; n >= step; n -= step) {
        if (!fitsThreads(gemm, m, n, k))
          continue;
        tiles.push_back(sizedTile({m, n, k}, [=](const MatmulSize &size) {
          return cyclesOf(size, {m, n, k}, size.splits > 1 ? mayLoad : alwaysLoads, rates, sms);
        }));
        if (k == kTwoTileK && gemm.hasDynamicSizes())
          tiles.back().plan.guard.m.most = 2 * m;
      }
    }
  return tiles;
}

static std::vector<SizedTile> promotedTiles(const PlannedGemm &gemm) {
  constexpr int64_t unit = kBlocksOfScales * kTileK;
  // Factors of split-K, which dynamic N and K have none of, must not depend on whether M is static.
  int64_t step = gemm.hasDynamicSizes() ? kStoredColumns : kColumnStep;
  if (!hasDynamicDepth(gemm.op))
    return tilesOf(gemm, step, knownUnitOfDepth(gemm.op, {}));
  std::vector<SizedTile> loading = tilesOf(gemm, step, kTileK), staging = tilesOf(gemm, step, unit);
  for (SizedTile &tile : staging)
    tile.plan.guard.kUnit = unit;
  llvm::append_range(loading, staging);
  return loading;
}

/// The tile with the rows and the depth of the fastest one that gives an SM the least work, of
/// those that take as good as the same time.
static Tile leastWork(const PlannedGemm &gemm, ArrayRef<SizedTile> tiles) {
  const MatmulSize &size = gemm.size;
  auto time = [&](const SizedTile &tile) { return tile.cost(size); };
  SizedTile best = cheapest(tiles, time);
  const Tile fastest = best.plan.tile;
  const double most = (1 + kSameTime) * time(best);
  auto work = [&](const Tile &tile) {
    int64_t count = tilesAlongM(size, tile[0]) * int64_t(llvm::divideCeil(size.n, tile[1]));
    return int64_t(llvm::divideCeil(count * size.splits, gemm.target.sms)) * tile[1];
  };
  for (const SizedTile &other : tiles) {
    const Tile &tile = other.plan.tile;
    bool isAlike = tile[0] == fastest[0] && tile[2] == fastest[2];
    if (isAlike && time(other) <= most && work(tile) < work(best.plan.tile))
      best = other;
  }
  return best.plan.tile;
}

/// The best tile; of equals, the one with the fewest rows and then the most columns. Tiles of which
/// no row of a half exists are only for plans that ask for them, and for groups. A plan may ask for
/// tiles that are never the best (checkPromoted).
static Tile chooseTile(const PlannedGemm &gemm) {
  const KernelPlan &partial = gemm.plan;
  const MatmulSize &size = gemm.size;
  // A plan with two scale blocks in a stage holds for no other K, whatever is assumed.
  int64_t unit = partial.tile[2] == kTwoTileK ? size.k / kTwoTileK * kTwoTileK : size.k;
  auto isCandidate = [&](const Tile &tile) {
    int64_t fewest = gemm.op.getQuantizeRecipe() ? kGatheredRows : kTileMs[0];
    if (partial.tile[0] ? tile[0] != partial.tile[0]
                        : size.groups.empty() && tile[0] > fewest && tile[0] >= 2 * size.m)
      return false;
    return (!partial.tile[1] || tile[1] == partial.tile[1]) &&
           (!partial.tile[2] || tile[2] == partial.tile[2]);
  };
  std::vector<SizedTile> tiles = tilesOf(gemm, kColumnStep, unit);
  llvm::erase_if(tiles, [&](const SizedTile &tile) { return !isCandidate(tile.plan.tile); });
  if (tiles.empty()) {
    Tile asked = partial.tile;
    for (auto [size, usual] : llvm::zip_equal(asked, Tile{kMostPartRows, kMostPartRows, kTileK}))
      size = size ? size : usual;
    return asked;
  }
  return leastWork(gemm, tiles);
}

/// Stages that fit, as a power of two: the stage of a k tile is then its lower bits, which a
/// warpgroup has sooner than the remainder of a division. Tiles that `takeAll` gain more from more
/// stages (notebook/gemm-fp8.md).
static int64_t chooseStages(const PlannedGemm &gemm, const Tile &tile, int64_t otherBytes,
                            bool takeAll) {
  constexpr int64_t most = 16, ofBarriers = 1024, rowsOfLine = 8;
  int64_t room = gemm.target.limits.sharedBytesPerCta - ofBarriers - otherBytes;
  int64_t blocks = hasDynamicDepth(gemm.op) ? 0 : int64_t(llvm::divideCeil(gemm.size.k, kTileK));
  int64_t ofRow = 4 * stagedScales(blocks, tile[2] / kTileK).columns,
          rowsOfB = rowsOfLine * hw::RowSets{blocks % hw::RowSets::unit}.count();
  int64_t products = gemm.size.products;
  int64_t bytes = (tile[0] + products * tile[1]) * tile[2] + (tile[0] + products * rowsOfB) * ofRow;
  int64_t stages = std::clamp<int64_t>(room / bytes, 1, most);
  return takeAll ? stages : int64_t(llvm::bit_floor(uint64_t(stages)));
}

/// The field because of which the result cannot leave the kernel in tiles, and the reason; else
/// empty. Matrices of 8 x 8 elements of 16 bits go to shared memory, as many as fill the rows of a
/// swizzle.
static std::pair<StringRef, std::string> whyNotStaged(BlockScaledMatmulOp product,
                                                      const Tile &tile) {
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
/// longer.
static bool isStagingBetter(const PlannedGemm &gemm, const Tile &tile) {
  auto roles = dyn_cast_or_null<pipe::RolePlanAttr>(gemm.plan.roles);
  if (gemm.plan.store || (roles && !roles.getDriver(pipe::Engine::BulkStore)))
    return gemm.plan.store == ResultStore::Tma;
  return isStored(gemm.size, tile[0], tile[1], gemm.target) &&
         whyNotStaged(gemm.op, tile).first.empty();
}

/// The PDL of a plan. GEMMs whose CTAs have one tile each may lose if the next launch begins early
/// (notebook/gemm-fp8.md). With offsets every group may end within a tile.
static std::optional<LaunchDependents> pdlOf(const PlannedGemm &gemm, const KernelPlan &plan) {
  if (gemm.hasDynamicSizes()) // without N nobody knows how many tiles a CTA has
    return LaunchDependents::AtEnd;
  if (!gemm.hasKnownRows())
    return {};
  const MatmulSize &size = gemm.size;
  int64_t tilesM = gemm.op.getOffsets() ? size.m / plan.tile[0] + gemm.op.getNumGroups()
                                        : tilesAlongM(size, plan.tile[0]);
  int64_t blocksOfTile = std::max<int64_t>(1, plan.cluster[0]);
  int64_t ranges = blocksOfTile > 1 ? 1 : size.splits;
  int64_t works = tilesM * int64_t(llvm::divideCeil(size.n, plan.tile[1])) * ranges;
  int64_t most = *plan.ctasPerSm * gemm.target.sms / blocksOfTile;
  return works > most ? LaunchDependents::BeforeWait : LaunchDependents::AtEnd;
}

/// Registers of the roles. Loads of two GEMMs, or beside results that threads quantize, take
/// more where they are in sets of rows or of groups. The largest tiles leave the loading warp no
/// registers of theirs if they load scales, too. With 24 registers, a warp that loads rows in sets
/// spills (validation/spills.py, forms of 42 and 43 blocks).
static const RegisterShares &sharesOf(const PlannedGemm &gemm, const KernelPlan &plan) {
  auto [m, n, k] = plan.tile;
  int64_t unit = knownUnitOfDepth(gemm.op, plan);
  bool isFull = loadsScales(gemm, unit, gemm.size.splits) &&
                fragmentsOf(gemm.size, m, k) * n == kFragmentRegisters * 2;
  bool isKnown = gemm.op.getLhs().getType().hasStaticShape() && !gemm.hasDynamicSizes();
  bool isFused = gemm.op.isDual() || gemm.op.getQuantizeRecipe();
  if (isFused && loadsRowSets(gemm.size))
    return gemm.op.getOffsets() ? kMostBeside : kManyBeside;
  if (isFused && gemm.op.isGrouped())
    return kMoreBeside;
  return (isKnown && !loadsRowSets(gemm.size)) || isFull ? kFewBeside : kMoreBeside;
}

/// The order of tiles. With tall tiles whose results leave in boxes, panels of kStoredPanel were
/// the fastest.
static pipe::WorkScheduleAttrInterface scheduleOf(const PlannedGemm &gemm, const Tile &tile,
                                                  bool isTallBeside) {
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
  int64_t otherBytes = m * columns * 4 + gatheredBytes(gemm, plan.tile);
  if (isStagingBetter(gemm, plan.tile)) {
    plan.store = ResultStore::Tma;
    otherBytes += m * n * size.resultBytes;
  }
  bool isTallBeside = plan.store && m > kMostPartRows;
  plan.pipeline.stages =
      chooseStages(gemm, plan.tile, otherBytes, /*takeAll=*/areBeside || isTallBeside);
  plan.schedule = scheduleOf(gemm, plan.tile, isTallBeside);
  // A warpgroup alone has enough registers, but the request for more tells ptxas that its warps are
  // converged.
  plan.roles = fragmentRoles(gemm.context(), m > 64 ? 2 : 1, sharesOf(gemm, gemm.plan.orElse(plan)),
                             plan.store == ResultStore::Tma);
  plan.ctasPerSm = 1;
  plan.pdl = pdlOf(gemm, gemm.plan.orElse(plan));
  return plan;
}

/// The tiles that a GEMM may have, in the words of an error.
static std::string tilesInWords(const PlannedGemm &gemm) {
  bool isDual = gemm.op.isDual();
  if (std::optional<RecipeAttr> recipe = gemm.op.getQuantizeRecipe())
    return std::string("is [m, n, 128] with m = 128") +
           (!isDual && mayDeriveTall(gemm) ? " or 256" : "") + " and n = " +
           (numerics::hasF32Scales(recipe->getDecisions().format) ? "128" : "64 or 128") +
           ", whose rows threads quantize";
  if (isDual)
    return "is [m, n, 128] with m = 64 or 128 and n a multiple of 8 up to 128 for a dual GEMM";
  return "is [m, n, 128] with m = 64 or 128 and n a multiple of 8 up to 192, or m = 256 "
         "and n up to 128; or, for K a multiple of 256, [m, n, 256] with m = 64 or 128 and "
         "n up to 128";
}

static LogicalResult checkPromoted(const PlannedGemm &gemm) {
  const KernelPlan &plan = gemm.plan;
  auto [m, n, k] = plan.tile;
  int64_t unit = knownUnitOfDepth(gemm.op, plan);
  bool hasDepth = k == kTileK || (k == kTwoTileK && mayHaveTwoScaleBlocks(gemm.size, m, unit));
  if (!llvm::is_contained(kTileMs, m) || !hasDepth || n < kColumnStep || n % kColumnStep ||
      !fitsThreads(gemm, m, n, k))
    return gemm.misfitTile(tilesInWords(gemm));
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

constexpr GemmPlanner fp4::kPromotedPlanner = {route::Planner::Promoted, proposePromoted,
                                               checkPromoted, promotedTiles};
