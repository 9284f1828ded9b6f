//===- GemmPlans.cpp - Plans of GEMMs ----------------------------------===//

#include "GemmPlanner.h"
#include "RolePlans.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/ISA/ClusterLimit.h"
#include "fp4/Numerics/BlockScaledGemm.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;

//===----------------------------------------------------------------------===//
// The proposal
//===----------------------------------------------------------------------===//

/// Elements of K in a k tile of one panel of the widest swizzle, or of three.
static int64_t tileDepth(const MatmulSize &size) { return size.tileSteps() * size.stepK; }

MatmulSize fp4::sizeOfGemm(BlockScaledMatmulOp product, const KernelPlan &plan) {
  auto lhs = cast<RankedTensorType>(product.getLhs().getType());
  int64_t most = mostRowsOf(product, plan);
  int64_t several = product.getOffsets() ? product.getNumGroups() : 1;
  int64_t rows = ShapedType::isDynamic(most) ? kAssumedRows * several : most;
  int64_t columns = hasDynamicColumns(product) ? kAssumedColumns : product.getColumns();
  int64_t depth = hasDynamicDepth(product)
                      ? int64_t(llvm::alignTo(kAssumedDepth, plan.guard.kUnit.value_or(1)))
                      : lhs.getDimSize(1);
  MatmulSize size = {rows, columns, depth, blockSize(product.getFormat()),
                     product.getElementType().getIntOrFloatBitWidth() / 8};
  auto kind = product.isMXF8F6F4() ? hw::MmaKind::MXF8F6F4 : hw::MmaKind::MXF4NVF4;
  size.stepK = hw::mmaK(kind, /*sparse=*/false, product.getMmaDepth());
  size.stepBytes = uint8_t(hw::mmaRowBytesOf(product.getMmaDepth()));
  size.splits = splitsOf(product, plan);
  size.products = product.isDual() ? 2 : 1;
  if (auto stream = product.getStreamK())
    size.sharers = (*stream)[0];
  if (product.getGroups())
    llvm::append_range(size.groups, *product.getGroups());
  if (product.getOffsets()) { // only the device knows
    auto all = int64_t(llvm::divideCeil(rows, product.getNumGroups()));
    size.groups.assign(product.getNumGroups(), int64_t(product.getExpectedRows().value_or(all)));
    size.expectsGroups = true;
  }
  return size;
}

/// Returns true for instructions of another K, of which every tile is a pair's. An instruction may
/// read scales behind those that exist: maps, which loads of a cluster have, fill them with zeros.
static bool isOfPairs(BlockScaledMatmulOp product) {
  return product.getMmaDepth() != hw::MmaDepth::Single;
}

/// Columns that a tile can have. Tensor memory has the sums of both parts of a dual GEMM, and a
/// tile of quantized rows begins and ends where words of four scales do.
static SmallVector<int64_t> tileColumns(BlockScaledMatmulOp product, bool narrow) {
  SmallVector<int64_t> columns(std::begin(kGemmTileNs), std::end(kGemmTileNs));
  if (narrow)
    columns.assign(std::begin(kNarrowTileNs), std::end(kNarrowTileNs));
  if (isOfPairs(product))
    columns.assign(std::begin(kLongTileNs), std::end(kLongTileNs));
  int64_t unit = 1;
  if (product.quantizesRows())
    unit = numerics::elementsOfScaleWord(product.getQuantizeRecipe()->getDecisions().format);
  llvm::erase_if(columns, [&](int64_t n) {
    int64_t ofLane = narrow ? n / 2 : n;
    return ofLane % unit != 0 || (product.isDual() && 2 * ofLane > kGemmTileNs[4]);
  });
  return columns;
}

/// Rows of the largest matrix of rows.
static int64_t mostRows(const MatmulSize &size) {
  return size.groups.empty() ? size.m : *llvm::max_element(size.groups);
}

/// Adds tiles with swapped operands: few rows of the lhs are columns of the tensor core, which then
/// computes nothing for rows that do not exist. A tile of 8 or 16 rows has all of them.
static void addSwapped(const PlannedGemm &gemm, SmallVector<GemmTile> &tiles) {
  const KernelPlan &partial = gemm.plan;
  BlockScaledMatmulOp product = gemm.op;
  auto lhs = cast<RankedTensorType>(product.getLhs().getType());
  bool mayHave = gemm.mayTake({.orientation = route::Orientation::Swapped}) && !partial.tile[0] &&
                 !partial.cluster[0] && !partial.pair && partial.store != ResultStore::Tma;
  bool isSmall = !lhs.isDynamicDim(0) && !gemm.hasDynamicSizes() && !product.isGrouped() &&
                 gemm.size.m <= kSwappedTileNs[3] && !product.usesK96() && !isFused(product);
  if (!gemm.isTransposed() && !(mayHave && isSmall))
    return;
  for (int64_t n : kSwappedTileNs)
    if (partial.tile[1] ? partial.tile[1] == n : n % kSwappedUnit == 0 || n >= gemm.size.m)
      tiles.push_back({/*pair=*/false, n, 1, 1, /*transposed=*/true});
}

/// Returns true for a pair whose CTAs have 64 rows each. Only a program that asks for such a pair
/// gets one: the model of time knows no measurement of it.
static bool isNarrow(const KernelPlan &plan) { return plan.pair && plan.tile[0] == kGemmTileM; }

static KernelPlan planOfTile(const GemmTile &tile, const MatmulSize &size) {
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm);
  plan.tile = {tile.rows(), tile.n, tileDepth(size)};
  plan.pair = tile.pair;
  plan.route.orientation =
      tile.transposed ? route::Orientation::Swapped : route::Orientation::Normal;
  if (tile.blocks() > 1)
    plan.cluster = {tile.clusterM, tile.clusterN};
  if (tile.joins)
    plan.split.reduction = ReductionPlace::Cluster;
  if (tile.epilogueGroups > 1)
    plan.pipeline.epilogueWarps = 8;
  return plan;
}

static bool fitsMemories(const KernelPlan &plan, const MatmulSize &size,
                         const hw::TargetModel &target);

/// Bytes of shared memory and columns of tensor memory that one stage and one accumulator take. A
/// tile that begins within a scale tile loads more, which is included.
static std::pair<int64_t, int64_t> footprint(const KernelPlan &plan, const MatmulSize &size) {
  auto [m, n, k] = plan.tile;
  int64_t block = size.block, products = size.products;
  bool narrow = isNarrow(plan); // a scale tile for each half of the columns, in other TMEM lanes
  int64_t rowsOfA = narrow ? kGemmTileM / 2 : kGemmTileM;
  int64_t rowsOfB = products * (plan.pair ? n / 2 : n);
  int64_t scaleRowsB = products * (narrow ? 256 : int64_t(llvm::alignTo(n + 96, 128)));
  int64_t scaleRows = kGemmTileM + scaleRowsB;
  int64_t bytes = (rowsOfA + rowsOfB) * k * size.stepBytes / size.stepK + scaleRows * k / block;
  int64_t scaleLanes = narrow ? kGemmTileM + scaleRowsB / 2 : scaleRows;
  int64_t columns = products * (narrow ? n / 2 : n) + scaleLanes / 32 * k / block / 4;
  if (int64_t groups = plan.pipeline.epilogueWarps == 8 ? 2 : 1;
      plan.split.reduction == ReductionPlace::Cluster)
    bytes += groups * reductionBytes(n / groups, size.splits);
  return {bytes, columns};
}

constexpr int64_t kBarrierBytes = 1024;         ///< barriers and the slot of tensor memory
constexpr int64_t kStagedBytes = 2 * 128 * 128; ///< two tiles of a result, with the widest swizzle
constexpr int64_t kMostStages = 8;

static bool fitsMemories(const KernelPlan &plan, const MatmulSize &size,
                         const hw::TargetModel &target) {
  auto [bytes, columns] = footprint(plan, size);
  return bytes + kBarrierBytes <= target.limits.sharedBytesPerCta &&
         columns <= target.limits.tmemColumns;
}

/// Adds clusters. Two pairs side by side load the rows of A once for both. Clusters of four CTAs
/// leave some SMs out: if pairs take as many turns all the same, L2 delivers more to each. Clusters
/// are added for known sizes, and for targets whose multicasts somebody has measured.
static void addClusters(const PlannedGemm &gemm, SmallVector<GemmTile> &tiles) {
  BlockScaledMatmulOp product = gemm.op;
  auto lhs = cast<RankedTensorType>(product.getLhs().getType());
  bool isOpen = !gemm.plan.cluster[0] && gemm.plan.split.reduction != ReductionPlace::Cluster &&
                !product.addsRanges();
  bool isKnown = !product.isGrouped() && !lhs.isDynamicDim(0) && !gemm.hasDynamicSizes() &&
                 hw::timingRate(gemm.target.name, hw::TimingRate::MulticastTerabytes);
  if (!isOpen || !isKnown)
    return;
  for (GemmTile tile : llvm::to_vector(tiles))
    if (tile.pair && !tile.narrow) {
      tile.clusterN = 2;
      tiles.push_back(tile);
    }
}

bool fp4::mayHaveCluster(const PlannedGemm &gemm) {
  auto [m, n, none] = gemm.plan.cluster;
  int64_t most = hw::mostClusterCtas(gemm.target);
  return m && m <= most && n <= most;
}

/// The tiles that agree with a partial plan. A pair has rows for both CTAs, so fewer rows than one
/// CTA has are not worth a pair.
static SmallVector<GemmTile> candidates(const PlannedGemm &gemm) {
  const KernelPlan &partial = gemm.plan;
  bool asksForOne = !partial.pair && (partial.cluster[0] || partial.tile[0] == kGemmTileM);
  bool mayPair =
      gemm.target.features.hasCtaPairs && !asksForOne && mostRows(gemm.size) > kGemmTileM;
  bool isAsked = gemm.isTransposed();
  bool mustPair = partial.pair || partial.tile[0] == 2 * kGemmTileM || isOfPairs(gemm.op);
  SmallVector<GemmTile> tiles;
  for (bool pair : {false, true}) {
    if (isAsked || (pair ? !(mayPair || mustPair) : mustPair))
      continue;
    for (int64_t n : tileColumns(gemm.op, isNarrow(partial))) {
      if (partial.tile[1] && partial.tile[1] != n)
        continue;
      GemmTile tile{pair, n, pair ? 2 : 1, 1};
      tile.narrow = isNarrow(partial);
      if (mayHaveCluster(gemm) && !(pair && partial.cluster[0] % 2)) { // else the check reports it
        tile.clusterM = partial.cluster[0];
        tile.clusterN = partial.cluster[1];
      }
      tiles.push_back(tile);
    }
  }
  addClusters(gemm, tiles);
  addSwapped(gemm, tiles);
  auto planOf = [&](const GemmTile &tile) { return planOfTile(tile, gemm.size); };
  auto fits = [&](const GemmTile &tile) {
    return fitsMemories(planOf(tile), gemm.size, gemm.target);
  };
  addReduced(partial, gemm.size, gemm.target, fits, tiles);
  addWideEpilogues(gemm, planOf, tiles);
  if (tiles.empty()) // the check of the plan says what is wrong with the tile that was asked for
    tiles.push_back({mustPair, kGemmTileM, mustPair ? 2 : 1, 1, isAsked});
  return tiles;
}

static std::vector<SizedTile> gemmTiles(const PlannedGemm &given) {
  std::vector<SizedTile> tiles;
  PlannedGemm gemm = given;
  gemm.size.epilogue = epilogueWorkOf(gemm.op, gemm.target);
  for (const GemmTile &tile : candidates(gemm))
    if (KernelPlan plan = planOfTile(tile, gemm.size); fitsMemories(plan, gemm.size, gemm.target)) {
      auto cost = [tile, epilogue = gemm.size.epilogue, &target = gemm.target](MatmulSize size) {
        size.epilogue = epilogue;
        return gemmCost(size, tile, target).busy;
      };
      tiles.push_back(sizedTile(plan.tile, cost));
      tiles.back().plan.pair = tile.pair;
      tiles.back().plan.pipeline.epilogueWarps = plan.pipeline.epilogueWarps;
    }
  return tiles;
}

pipe::WorkScheduleAttrInterface fp4::rasterOfGemm(const PlannedGemm &gemm, const GemmTile &tile) {
  std::optional<int64_t> width = choosePanel(gemm.size, tile, gemm.target);
  return width ? inPanels(gemm.context(), *width) : neighboursAlongM(gemm.context());
}

KernelPlan fp4::partialOfStream(const PlannedGemm &gemm) {
  KernelPlan all = gemm.plan;
  if (auto stream = gemm.op.getStreamK(); stream && !all.tile[0]) {
    all.tile[0] = (*stream)[1];
    all.tile[1] = (*stream)[2];
  }
  return all;
}

/// A tensor map has rows of whole 16 bytes.
std::pair<StringRef, std::string> fp4::whyStoresAreDirect(BlockScaledMatmulOp product,
                                                          bool ofGroups) {
  if ((product.isGrouped() && !ofGroups) || product.addsRanges())
    return {"is direct for grouped GEMMs and for split-K", "tma"};
  if (!product.hasOnlyElements())
    return {"is direct where more than the elements is a result", "tma"};
  if (hasDynamicColumns(product)) // the program checks that rows are multiples of 16 bytes
    return {};
  int64_t bytes = product.getColumns() * product.getElementType().getIntOrFloatBitWidth() / 8;
  if (bytes % 16 == 0)
    return {};
  return {"is direct for rows of a result that are no multiple of 16 bytes",
          "tma for " + std::to_string(bytes) + " bytes"};
}

/// Returns true for a tile so large that no memory has it, and that its bytes may overflow.
static bool isBeyondMemory(const KernelPlan &plan, const hw::TargetModel &target) {
  return llvm::any_of(plan.tile,
                      [&](int64_t size) { return size > target.limits.sharedBytesPerCta; });
}

/// Returns true when results should leave through shared memory: if this takes the port to the L2
/// cache less time, and if the stages that are left still cover the latency of loads.
static bool isStagingBetter(const PlannedGemm &gemm, const KernelPlan &plan, const GemmTile &tile) {
  const hw::TargetModel &target = gemm.target;
  if (isBeyondMemory(plan, target))
    return false; // an error of the check
  int64_t bytes = footprint(plan, gemm.size).first;
  int64_t room = target.limits.sharedBytesPerCta - kBarrierBytes;
  auto stagesIn = [&](int64_t capacity) {
    return std::min(gemm.plan.pipeline.stages.value_or(kMostStages), capacity / bytes);
  };
  int64_t stages = stagesIn(room - kStagedBytes);
  int64_t enough = stagesThatCoverLoads(gemm.size, tile, plan.tile[2], bytes, target);
  if (stages < 1 || (stages < enough && stages < stagesIn(room)))
    return false;
  return isStagingFaster(gemm.size, tile, target);
}

/// Chooses how results leave. The roles of a partial plan may leave no warp for staging.
static bool chooseStaging(const PlannedGemm &gemm, const KernelPlan &plan, const GemmTile &tile) {
  auto roles = dyn_cast_or_null<pipe::RolePlanAttr>(gemm.plan.roles);
  if (gemm.plan.store || tile.transposed || (roles && !roles.getDriver(pipe::Engine::BulkStore)))
    return gemm.plan.store == ResultStore::Tma;
  return whyStoresAreDirect(gemm.op).first.empty() &&
         isStagingBetter(gemm, gemm.plan.orElse(plan), tile);
}

static KernelPlan proposeBlockScaled(const PlannedGemm &given) {
  KernelPlan partial = partialOfStream(given);
  PlannedGemm gemm = given.with(partial);
  gemm.size.epilogue = epilogueWorkOf(gemm.op, gemm.target);
  GemmTile tile = cheapestTile(candidates(gemm), gemm.size, gemm.target);
  remarkOnGemm(gemm, tile);
  KernelPlan plan = planOfTile(tile, gemm.size);
  plan.schedule =
      gemm.op.getStreamK() ? neighboursAlongM(gemm.context()) : rasterOfGemm(gemm, tile);
  bool staging = chooseStaging(gemm, plan, tile);
  if (staging)
    plan.store = ResultStore::Tma;
  bool requests = requestsWork(partial.schedule ? partial.schedule : plan.schedule);
  plan.pipeline.mmaWarps = proposeMmaWarps(gemm, tile);
  auto roles = tensorMemoryRoles(gemm.context(), plan.pipeline.mmaWarps == 1 ? 1 : 2, staging,
                                 requests, 4 * int32_t(tile.epilogueGroups));
  plan.roles = withEpilogueRegisters(gemm.op, tile, roles);
  plan.ctasPerSm = 1;
  return plan;
}

//===----------------------------------------------------------------------===//
// The check
//===----------------------------------------------------------------------===//

/// Checks swapped operands. Columns of the tensor core are rows of the lhs. If their tiles do not
/// begin at a column of tensor memory with scales, there is one tile.
static LogicalResult checkSwapped(const PlannedGemm &gemm) {
  const KernelPlan &plan = gemm.plan;
  auto [m, n, k] = plan.tile;
  auto lhs = cast<RankedTensorType>(gemm.op.getLhs().getType());
  if (lhs.isDynamicDim(0))
    return gemm.misfit("route", "has the orientation normal for dynamic rows", plan.route.str());
  if (plan.cluster[0] && plan.split.reduction != ReductionPlace::Cluster)
    return gemm.misfit("cluster", "is left out of swapped operands without reduction = cluster",
                       spell(plan.cluster));
  bool fits =
      llvm::is_contained(kSwappedTileNs, n) && (n % kSwappedUnit == 0 || lhs.getDimSize(0) <= n);
  int64_t depth = tileDepth(gemm.size);
  if (m == kGemmTileM && k % depth == 0 && fits)
    return success();
  return gemm.misfit("tile",
                     "is, with swapped operands, [128, n, k] with n = 8 or 16 for as many rows, 32 "
                     "or 64, and k a multiple of " +
                         Twine(depth),
                     spell(plan.tile) + " for " + Twine(lhs.getDimSize(0)) + " rows");
}

bool fp4::isFused(BlockScaledMatmulOp product) {
  return product.isDual() || !product.hasOnlyElements();
}

LogicalResult fp4::checkStream(const PlannedGemm &gemm) {
  ArrayRef<int64_t> stream = *gemm.op.getStreamK();
  const KernelPlan &plan = gemm.plan;
  if (plan.tile[0] != stream[1] || plan.tile[1] != stream[2])
    return gemm.misfitTile("is [" + Twine(stream[1]) + ", " + Twine(stream[2]) +
                           ", k], as 'stream_k' says");
  if (plan.cluster[0] > (plan.pair ? 2 : 1) || plan.cluster[1] > 1)
    return gemm.misfit("cluster", "is a pair or one CTA with 'stream_k'", spell(plan.cluster));
  return success();
}

/// Checks a tile that is not swapped. The matrix instruction has 128 rows in a CTA, or 64, and 128
/// bytes, which are 256 elements of 4 bits, are the widest swizzle.
static LogicalResult checkShape(const PlannedGemm &gemm) {
  auto [m, n, k] = gemm.plan.tile;
  bool mustPair = isOfPairs(gemm.op), narrow = isNarrow(gemm.plan) && !mustPair;
  int64_t rows = (gemm.plan.pair || mustPair) && !narrow ? 2 * kGemmTileM : kGemmTileM;
  SmallVector<int64_t> columns = tileColumns(gemm.op, narrow);
  int64_t depth = tileDepth(gemm.size);
  if (m == rows && k % depth == 0 && llvm::is_contained(columns, n))
    return success();
  std::string shape = "[" + std::to_string(rows) + ", n, k]";
  if (m != rows && !narrow && !mustPair) // a pair may be proposed, not asked for
    shape = "[128, n, k], or [256, n, k] of a pair,";
  return gemm.misfitTile("is " + Twine(shape) + " with n = " + spellChoice(columns) +
                         " and k a multiple of " + Twine(depth));
}

static LogicalResult checkTile(const PlannedGemm &gemm) {
  const KernelPlan &plan = gemm.plan;
  if (isOfPairs(gemm.op) && !plan.pair)
    return gemm.misfit(
        "pair", "is there with arithmetic " + stringifyMatmulArithmetic(*gemm.op.getArithmetic()),
        "none");
  if (failed(checkDynamicSizes(gemm)) ||
      failed(gemm.isTransposed() ? checkSwapped(gemm) : checkShape(gemm)) ||
      (gemm.op.getStreamK() && failed(checkStream(gemm))))
    return failure();
  if (gemm.op.addsRanges() && plan.tile[2] > int64_t(numerics::splitSlice))
    return gemm.misfitTile("is at most 256 deep, which split-K ranges are multiples of");
  std::string must = ("fits in the memories of an SM of " + StringRef(gemm.target.name)).str();
  if (isBeyondMemory(plan, gemm.target))
    return gemm.misfitTile(must);
  if (fitsMemories(plan, gemm.size, gemm.target))
    return success();
  auto [bytes, columns] = footprint(plan, gemm.size);
  return gemm.misfit("tile", must,
                     spell(plan.tile) + ", of " + Twine(bytes) + " bytes and " + Twine(columns) +
                         " columns");
}

LogicalResult fp4::checkGemmCluster(const PlannedGemm &gemm) {
  const KernelPlan &plan = gemm.plan;
  auto [m, n, none] = plan.cluster;
  if (plan.split.reduction == ReductionPlace::Cluster)
    return checkClusterReduction(gemm);
  auto misfit = [&](const Twine &must) {
    return gemm.misfit("cluster", must, spell(plan.cluster));
  };
  if (plan.pair && (m == 0 || m % 2))
    return misfit("has an even number of CTAs along m, two for each pair");
  if (m == 0)
    return success();
  int64_t most = hw::mostClusterCtas(gemm.target);
  if (!llvm::isPowerOf2_64(m) || !llvm::isPowerOf2_64(n) || m > most || n > most / m)
    return misfit("has powers of two, of at most " + Twine(most) + " CTAs on " +
                  StringRef(gemm.target.name));
  // CTAs along m load a tile of columns together, of which swizzles keep 8 in one place.
  constexpr int64_t unit = 8;
  if (int64_t columns = plan.tile[1]; !plan.pair && columns % (m * unit))
    return misfit("has CTAs along m that each load a multiple of " + Twine(unit) + " of the " +
                  Twine(columns) + " columns of a tile");
  return success();
}

/// Checks clusters of two sizes, which must consist of pairs: the number of times that threads
/// arrive at other CTAs then depends on no size (clusters.md).
static LogicalResult checkFallback(const PlannedGemm &gemm) {
  const KernelPlan &plan = gemm.plan;
  auto [m, n, none] = plan.fallback;
  if (m == 0)
    return success();
  auto misfit = [&](const Twine &must) {
    return gemm.misfit("fallback", must, spell(plan.fallback));
  };
  if (!plan.pair)
    return misfit("is left out without 'pair'");
  if (isNarrow(plan)) // the scales of B lie in halves, whose parts depend on the cluster
    return misfit("is left out with pairs of 128 rows");
  if (requestsWork(plan.schedule))
    return misfit("is left out with a schedule that takes over tiles of others");
  if (m % 2 || !plan.cluster[0] || plan.cluster[0] % m || plan.cluster[1] % n)
    return misfit("divides 'cluster', " + spell(plan.cluster) +
                  ", and has an even number of CTAs along m");
  return success();
}

static LogicalResult checkStore(const PlannedGemm &gemm) {
  if (gemm.plan.store != ResultStore::Tma)
    return success();
  auto [must, found] = whyStoresAreDirect(gemm.op);
  return must.empty() ? success() : LogicalResult(gemm.misfit("store", must, found));
}

/// Checks a plan. A CTA needs most of the shared memory and all accumulators of tensor memory.
static LogicalResult checkBlockScaled(const PlannedGemm &gemm) {
  using enum pipe::Engine;
  const KernelPlan &plan = gemm.plan;
  if (failed(checkFallback(gemm)) || failed(checkEpilogueWarps(gemm)) ||
      failed(checkMmaWarps(gemm)) || failed(checkTile(gemm)) || failed(checkGemmCluster(gemm)) ||
      failed(checkStore(gemm)) || failed(checkCtasPerSm(gemm)))
    return failure();
  SmallVector<pipe::Engine> engines = {Tma, Tensor, ScaleCopy, Threads};
  if (plan.store == ResultStore::Tma)
    engines.push_back(BulkStore);
  if (requestsWork(plan.schedule) && gemm.target.features.hasClusterLaunchControl)
    engines.push_back(WorkQueue);
  RoleRules rules = RoleRules::ofLanes();
  if (plan.pipeline.epilogueWarps == 8)
    rules = {.warps = {8}, .why = ", as 'epilogue_warps' says"};
  if (failed(gemm.checkTiling(engines, rules)))
    return failure();
  return checkMmaRole(gemm);
}

constexpr GemmPlanner fp4::kBlockScaledPlanner = {route::Planner::BlockScaled, proposeBlockScaled,
                                                  checkBlockScaled, gemmTiles};
