//===- GemmPlans.cpp - Plans of GEMMs ----------------------------------===//

#include "CostModel.h"
#include "DynamicPlans.h"
#include "GemmRoutes.h"
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
  size.stepK = product.isMXF8F6F4() ? 32 : product.usesK96() ? 96 : 64;
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

/// Columns that a tile can have. Tensor memory has the sums of both parts of a dual GEMM, and a
/// tile of quantized rows begins and ends where words of four scales do.
static SmallVector<int64_t> tileColumns(BlockScaledMatmulOp product, bool narrow) {
  SmallVector<int64_t> columns(std::begin(kGemmTileNs), std::end(kGemmTileNs));
  if (narrow)
    columns.assign(std::begin(kNarrowTileNs), std::end(kNarrowTileNs));
  if (product.usesK96())
    columns.assign(std::begin(kK96TileNs), std::end(kK96TileNs));
  int64_t unit = 1;
  if (product.quantizesRows())
    unit = pipe::kScaleBlockColumns *
           numerics::blockSizeOf(product.getQuantizeRecipe()->getDecisions().format);
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
static void addSwapped(const KernelPlan &partial, BlockScaledMatmulOp product,
                       const MatmulSize &size, const hw::TargetModel &target,
                       SmallVector<GemmTile> &tiles) {
  auto lhs = cast<RankedTensorType>(product.getLhs().getType());
  bool mayHave = mayTake(product, partial, {.orientation = route::Orientation::Swapped}, target) &&
                 !partial.tile[0] && !partial.cluster[0] && !partial.pair &&
                 partial.store != ResultStore::Tma;
  bool isSmall = !lhs.isDynamicDim(0) && !hasDynamicSizes(product) && !product.isGrouped() &&
                 size.m <= kSwappedTileNs[3] && !product.isDual() && !product.usesK96() &&
                 product.hasOnlyElements();
  if (!isTransposed(product, partial, target) && !(mayHave && isSmall))
    return;
  for (int64_t n : kSwappedTileNs)
    if (partial.tile[1] ? partial.tile[1] == n : n % kSwappedUnit == 0 || n >= size.m)
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
    plan.reduction = ReductionPlace::Cluster;
  if (tile.epilogueGroups > 1)
    plan.epilogueWarps = 8;
  return plan;
}

static bool fitsMemories(const KernelPlan &plan, const MatmulSize &size,
                         const hw::TargetModel &target);

/// Adds clusters. Two pairs side by side load the rows of A once for both. Clusters of four CTAs
/// leave some SMs out: if pairs take as many turns all the same, L2 delivers more to each. Clusters
/// are added for known sizes, and for targets whose multicasts somebody has measured.
static void addClusters(const KernelPlan &partial, BlockScaledMatmulOp product,
                        const hw::TargetModel &target, SmallVector<GemmTile> &tiles) {
  auto lhs = cast<RankedTensorType>(product.getLhs().getType());
  bool isOpen =
      !partial.cluster[0] && partial.reduction != ReductionPlace::Cluster && !product.addsRanges();
  bool isKnown = !product.isGrouped() && !lhs.isDynamicDim(0) && !hasDynamicSizes(product) &&
                 hw::timingRate(target.name, hw::TimingRate::MulticastTerabytes);
  if (!isOpen || !isKnown)
    return;
  for (GemmTile tile : llvm::to_vector(tiles))
    if (tile.pair && !tile.narrow) {
      tile.clusterN = 2;
      tiles.push_back(tile);
    }
}

/// The tiles that agree with a partial plan. A pair has rows for both CTAs, so fewer rows than one
/// CTA has are not worth a pair.
static SmallVector<GemmTile> candidates(const KernelPlan &partial, BlockScaledMatmulOp product,
                                        const MatmulSize &size, const hw::TargetModel &target) {
  bool asksForOne = !partial.pair && (partial.cluster[0] || partial.tile[0] == kGemmTileM);
  bool mayPair = target.hasCtaPairs && !asksForOne && mostRows(size) > kGemmTileM;
  bool isAsked = isTransposed(product, partial, target);
  bool mustPair = partial.pair || partial.tile[0] == 2 * kGemmTileM || product.usesK96();
  int64_t most = hw::mostClusterCtas(target); // a larger cluster is an error of the check
  bool hasCluster = partial.cluster[0] && partial.cluster[0] <= most && partial.cluster[1] <= most;
  SmallVector<GemmTile> tiles;
  for (bool pair : {false, true}) {
    if (isAsked || (pair ? !(mayPair || mustPair) : mustPair))
      continue;
    for (int64_t n : tileColumns(product, isNarrow(partial))) {
      if (partial.tile[1] && partial.tile[1] != n)
        continue;
      GemmTile tile{pair, n, pair ? 2 : 1, 1};
      tile.narrow = isNarrow(partial);
      if (hasCluster && !(pair && partial.cluster[0] % 2)) { // else the check reports the error
        tile.clusterM = partial.cluster[0];
        tile.clusterN = partial.cluster[1];
      }
      tiles.push_back(tile);
    }
  }
  addClusters(partial, product, target, tiles);
  addSwapped(partial, product, size, target, tiles);
  auto fits = [&](const GemmTile &tile) {
    return fitsMemories(planOfTile(tile, size), size, target);
  };
  addReduced(partial, size, target, fits, tiles);
  auto planOf = [&](const GemmTile &tile) { return planOfTile(tile, size); };
  addWideEpilogues(product, partial, size, target, planOf, tiles);
  if (tiles.empty()) // the check of the plan says what is wrong with the tile that was asked for
    tiles.push_back({mustPair, kGemmTileM, mustPair ? 2 : 1, 1, isAsked});
  return tiles;
}

std::vector<SizedTile> fp4::gemmTiles(BlockScaledMatmulOp product, const MatmulSize &size,
                                      const hw::TargetModel &target) {
  std::vector<SizedTile> tiles;
  KernelPlan open = planOfFamily(KernelFamily::TileGemm);
  MatmulSize whole = size;
  whole.epilogue = epilogueWorkOf(product, target);
  for (const GemmTile &tile : candidates(open, product, whole, target))
    if (KernelPlan plan = planOfTile(tile, size); fitsMemories(plan, size, target)) {
      auto cost = [=, epilogue = whole.epilogue](MatmulSize size) {
        size.epilogue = epilogue;
        return gemmCost(size, tile, target).busy;
      };
      tiles.push_back(sizedTile(plan.tile, cost));
      tiles.back().plan.pair = tile.pair;
      tiles.back().plan.epilogueWarps = plan.epilogueWarps;
    }
  return tiles;
}

pipe::WorkScheduleAttrInterface fp4::rasterOfGemm(MLIRContext *context, const MatmulSize &size,
                                                  const GemmTile &tile,
                                                  const hw::TargetModel &target) {
  std::optional<int64_t> width = choosePanel(size, tile, target);
  if (!width)
    return neighboursAlongM(context);
  return inPanels(context, *width);
}

KernelPlan fp4::partialOfStream(BlockScaledMatmulOp product, const KernelPlan &partial) {
  KernelPlan all = partial;
  if (auto stream = product.getStreamK(); stream && !partial.tile[0]) {
    all.tile[0] = (*stream)[1];
    all.tile[1] = (*stream)[2];
  }
  return all;
}

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
  int64_t bytes = (rowsOfA + rowsOfB) * k * size.stepBytes() / size.stepK + scaleRows * k / block;
  int64_t scaleLanes = narrow ? kGemmTileM + scaleRowsB / 2 : scaleRows;
  int64_t columns = products * (narrow ? n / 2 : n) + scaleLanes / 32 * k / block / 4;
  if (int64_t groups = plan.epilogueWarps == 8 ? 2 : 1; plan.reduction == ReductionPlace::Cluster)
    bytes += groups * reductionBytes(n / groups, size.splits);
  return {bytes, columns};
}

constexpr int64_t kBarrierBytes = 1024;         ///< barriers and the slot of tensor memory
constexpr int64_t kStagedBytes = 2 * 128 * 128; ///< two tiles of a result, with the widest swizzle
constexpr int64_t kMostStages = 8;

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
  return llvm::any_of(plan.tile, [&](int64_t size) { return size > target.sharedBytesPerCta; });
}

static bool fitsMemories(const KernelPlan &plan, const MatmulSize &size,
                         const hw::TargetModel &target) {
  auto [bytes, columns] = footprint(plan, size);
  return bytes + kBarrierBytes <= target.sharedBytesPerCta && columns <= target.tmemColumns;
}

/// Returns true when results should leave through shared memory: if this takes the port to the L2
/// cache less time, and if the stages that are left still cover the latency of loads.
static bool isStagingBetter(const KernelPlan &plan, const KernelPlan &partial,
                            const MatmulSize &size, const GemmTile &tile,
                            const hw::TargetModel &target) {
  if (isBeyondMemory(plan, target))
    return false; // an error of the check
  int64_t bytes = footprint(plan, size).first;
  int64_t room = target.sharedBytesPerCta - kBarrierBytes;
  auto stagesIn = [&](int64_t capacity) {
    return std::min(partial.stages.value_or(kMostStages), capacity / bytes);
  };
  int64_t stages = stagesIn(room - kStagedBytes);
  int64_t enough = stagesThatCoverLoads(size, tile, plan.tile[2], bytes, target);
  if (stages < 1 || (stages < enough && stages < stagesIn(room)))
    return false;
  return stagedStoreCycles(size, tile, target) < directStoreCycles(size, tile, target);
}

/// Chooses how results leave. The roles of a partial plan may leave no warp for staging.
static bool chooseStaging(BlockScaledMatmulOp product, const KernelPlan &plan,
                          const KernelPlan &partial, const MatmulSize &size, const GemmTile &tile,
                          const hw::TargetModel &target) {
  auto roles = dyn_cast_or_null<pipe::RolePlanAttr>(partial.roles);
  if (partial.store || tile.transposed || (roles && !roles.getDriver(pipe::Engine::BulkStore)))
    return partial.store == ResultStore::Tma;
  return whyStoresAreDirect(product).first.empty() &&
         isStagingBetter(plan, partial, size, tile, target);
}

KernelPlan fp4::proposeBlockScaled(Operation *op, const KernelPlan &partial,
                                   const MatmulSize &given, const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  MatmulSize size = given;
  size.epilogue = epilogueWorkOf(product, target);
  GemmTile tile = cheapestTile(candidates(partialOfStream(product, partial), product, size, target),
                               size, target);
  remarkOnGemm(product, partial, size, tile, target);
  KernelPlan plan = planOfTile(tile, size);
  plan.schedule = product.getStreamK() ? neighboursAlongM(op->getContext())
                                       : rasterOfGemm(op->getContext(), size, tile, target);
  bool staging = chooseStaging(product, partial.orElse(plan), partial, size, tile, target);
  if (staging)
    plan.store = ResultStore::Tma;
  bool requests = requestsWork(partial.schedule ? partial.schedule : plan.schedule);
  plan.mmaWarps = proposeMmaWarps(product, partial, size, tile, target);
  auto roles = tensorMemoryRoles(op->getContext(), plan.mmaWarps == 1 ? 1 : 2, staging, requests,
                                 4 * int32_t(tile.epilogueGroups));
  plan.roles = withEpilogueRegisters(product, tile, roles);
  plan.ctasPerSm = 1;
  return plan;
}

//===----------------------------------------------------------------------===//
// The check
//===----------------------------------------------------------------------===//

static std::string spell(const std::array<int64_t, 3> &sizes) {
  auto said = llvm::make_filter_range(sizes, [](int64_t size) { return size != 0; });
  return "[" +
         llvm::join(llvm::map_range(said, [](int64_t n) { return std::to_string(n); }), ", ") + "]";
}

/// Checks swapped operands. Columns of the tensor core are rows of the lhs. If their tiles do not
/// begin at a column of tensor memory with scales, there is one tile.
static LogicalResult checkSwapped(Operation *op, const KernelPlan &plan) {
  auto [m, n, k] = plan.tile;
  auto product = cast<BlockScaledMatmulOp>(op);
  auto lhs = cast<RankedTensorType>(product.getLhs().getType());
  if (lhs.isDynamicDim(0))
    return misfit(op, "route", "has the orientation normal for dynamic rows", plan.route.str());
  if (plan.cluster[0] && plan.reduction != ReductionPlace::Cluster)
    return misfit(op, "cluster", "is left out of swapped operands without reduction = cluster",
                  spell(plan.cluster));
  bool fits =
      llvm::is_contained(kSwappedTileNs, n) && (n % kSwappedUnit == 0 || lhs.getDimSize(0) <= n);
  int64_t depth = tileDepth(sizeOfGemm(product, plan));
  if (m == kGemmTileM && k % depth == 0 && fits)
    return success();
  return misfit(
      op, "tile",
      "is, with swapped operands, [128, n, k] with n = 8 or 16 for as many rows, 32 or 64, and k a "
      "multiple of " +
          Twine(depth),
      spell(plan.tile) + " for " + Twine(lhs.getDimSize(0)) + " rows");
}

/// Spells a choice as "64, 128 or 256".
static std::string spellChoice(ArrayRef<int64_t> numbers) {
  std::string text =
      llvm::join(llvm::map_range(numbers, [](int64_t n) { return std::to_string(n); }), ", ");
  if (size_t comma = text.rfind(", "); comma != std::string::npos)
    text.replace(comma, 2, " or ");
  return text;
}

bool fp4::isFused(BlockScaledMatmulOp product) {
  return product.isDual() || !product.hasOnlyElements();
}

LogicalResult fp4::checkStream(Operation *op, const KernelPlan &plan) {
  ArrayRef<int64_t> stream = *cast<BlockScaledMatmulOp>(op).getStreamK();
  if (plan.tile[0] != stream[1] || plan.tile[1] != stream[2])
    return misfit(op, "tile",
                  "is [" + Twine(stream[1]) + ", " + Twine(stream[2]) + ", k], as 'stream_k' says",
                  ::spell(plan.tile));
  if (plan.cluster[0] > (plan.pair ? 2 : 1) || plan.cluster[1] > 1)
    return misfit(op, "cluster", "is a pair or one CTA with 'stream_k'", ::spell(plan.cluster));
  return success();
}

/// Checks the tile. The matrix instruction has 128 rows in a CTA, or 64, and 128 bytes, which are
/// 256 elements of 4 bits, are the widest swizzle.
static LogicalResult checkTile(Operation *op, const KernelPlan &plan,
                               const hw::TargetModel &target) {
  auto [m, n, k] = plan.tile;
  auto product = cast<BlockScaledMatmulOp>(op);
  bool narrow = isNarrow(plan) && !product.usesK96();
  int64_t rows = (plan.pair || product.usesK96()) && !narrow ? 2 * kGemmTileM : kGemmTileM;
  if (product.usesK96() && !plan.pair)
    return misfit(op, "pair", "is there with arithmetic tensor_core_k96", "none");
  bool isSwapped = isTransposed(product, plan, target);
  if (failed(checkDynamicSizes(product, plan, target)) ||
      (isSwapped && failed(checkSwapped(op, plan))))
    return failure();
  SmallVector<int64_t> columns = tileColumns(product, narrow);
  MatmulSize size = sizeOfGemm(product, plan);
  int64_t depth = tileDepth(size);
  bool fits = m == rows && k % depth == 0 && llvm::is_contained(columns, n);
  std::string shape = "[" + std::to_string(rows) + ", n, k]";
  if (m != rows && !narrow && !product.usesK96()) // a pair may be proposed, not asked for
    shape = "[128, n, k], or [256, n, k] of a pair,";
  if (!isSwapped && !fits)
    return misfit(op, "tile",
                  "is " + Twine(shape) + " with n = " + spellChoice(columns) +
                      " and k a multiple of " + Twine(depth),
                  spell(plan.tile));
  if (product.getStreamK() && failed(checkStream(op, plan)))
    return failure();
  if (product.addsRanges() && k > int64_t(numerics::splitSlice))
    return misfit(op, "tile", "is at most 256 deep, which split-K ranges are multiples of",
                  spell(plan.tile));
  if (isBeyondMemory(plan, target))
    return misfit(op, "tile", "fits in the memories of an SM of " + StringRef(target.name),
                  spell(plan.tile));
  if (fitsMemories(plan, size, target))
    return success();
  auto [bytes, tmemColumns] = footprint(plan, size);
  return misfit(op, "tile", "fits in the memories of an SM of " + StringRef(target.name),
                spell(plan.tile) + ", of " + Twine(bytes) + " bytes and " + Twine(tmemColumns) +
                    " columns");
}

static LogicalResult checkCluster(Operation *op, const KernelPlan &plan,
                                  const hw::TargetModel &target) {
  auto [m, n, none] = plan.cluster;
  if (plan.reduction == ReductionPlace::Cluster)
    return checkClusterReduction(op, plan, target);
  if (plan.pair && (m == 0 || m % 2))
    return misfit(op, "cluster", "has an even number of CTAs along m, two for each pair",
                  spell(plan.cluster));
  if (m == 0)
    return success();
  int64_t most = hw::mostClusterCtas(target);
  if (!llvm::isPowerOf2_64(m) || !llvm::isPowerOf2_64(n) || m > most || n > most / m)
    return misfit(op, "cluster",
                  "has powers of two, of at most " + Twine(most) + " CTAs on " +
                      StringRef(target.name),
                  spell(plan.cluster));
  // CTAs along m load a tile of columns together, of which swizzles keep 8 in one place.
  constexpr int64_t unit = 8;
  if (int64_t columns = plan.tile[1]; !plan.pair && columns % (m * unit))
    return misfit(op, "cluster",
                  "has CTAs along m that each load a multiple of " + Twine(unit) + " of the " +
                      Twine(columns) + " columns of a tile",
                  spell(plan.cluster));
  return success();
}

/// Checks clusters of two sizes, which must consist of pairs: the number of times that threads
/// arrive at other CTAs then depends on no size (clusters.md).
static LogicalResult checkFallback(Operation *op, const KernelPlan &plan) {
  auto [m, n, none] = plan.fallback;
  if (m == 0)
    return success();
  if (!plan.pair)
    return misfit(op, "fallback", "is left out without 'pair'", ::spell(plan.fallback));
  if (isNarrow(plan)) // the scales of B lie in halves, whose parts depend on the cluster
    return misfit(op, "fallback", "is left out with pairs of 128 rows", ::spell(plan.fallback));
  if (requestsWork(plan.schedule))
    return misfit(op, "fallback", "is left out with a schedule that takes over tiles of others",
                  ::spell(plan.fallback));
  if (m % 2 || !plan.cluster[0] || plan.cluster[0] % m || plan.cluster[1] % n)
    return misfit(op, "fallback",
                  "divides 'cluster', " + ::spell(plan.cluster) +
                      ", and has an even number of CTAs along m",
                  ::spell(plan.fallback));
  return success();
}

LogicalResult fp4::checkGemmCluster(Operation *op, const KernelPlan &plan,
                                    const hw::TargetModel &target) {
  return checkCluster(op, plan, target);
}

static LogicalResult checkStore(Operation *op, const KernelPlan &plan) {
  if (plan.store != ResultStore::Tma)
    return success();
  auto [must, found] = whyStoresAreDirect(cast<BlockScaledMatmulOp>(op));
  return must.empty() ? success() : LogicalResult(misfit(op, "store", must, found));
}

/// Checks a plan. A CTA needs most of the shared memory and all accumulators of tensor memory.
LogicalResult fp4::checkBlockScaled(Operation *op, const KernelPlan &plan,
                                    const hw::TargetModel &target) {
  using enum pipe::Engine;
  if (failed(checkFallback(op, plan)) || failed(checkEpilogueWarps(op, plan)) ||
      failed(checkMmaWarps(op, plan)) || failed(checkTile(op, plan, target)) ||
      failed(checkCluster(op, plan, target)) || failed(checkStore(op, plan)))
    return failure();
  if (*plan.ctasPerSm != 1)
    return misfit(op, "ctas_per_sm", "is 1", Twine(*plan.ctasPerSm));
  SmallVector<pipe::Engine> engines = {Tma, Tensor, ScaleCopy, Threads};
  if (plan.store == ResultStore::Tma)
    engines.push_back(BulkStore);
  if (requestsWork(plan.schedule) && target.hasClusterLaunchControl)
    engines.push_back(WorkQueue);
  if (failed(checkTiling(op, plan, target, engines,
                         plan.epilogueWarps == 8 ? wideEpilogueRules : tensorMemoryRules)))
    return failure();
  return checkMmaRole(op, plan);
}
