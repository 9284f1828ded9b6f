//===- WeightGemmPlans.cpp - Plans of GEMMs of floats and weights ------===//

#include "GemmPlanner.h"
#include "RolePlans.h"
#include "WeightSlices.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/ISA/WeightLayout.h"
#include "fp4/Numerics/BlockScaledGemm.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fp4;

/// Columns of a tile of prepacked weights that has those of two accumulators.
static constexpr int64_t kWideTileN = 256;
/// Shares of the 128 registers of each of 512 threads, for three warpgroups and one beside them.
static constexpr RegisterShares kUnevenShares = {160, 32};
/// Elements of K of weights that are not prepacked: those of the widest swizzle.
static constexpr int64_t kTileK = 128;
/// Rows of a tile of a group whose sums are promoted, so that registers have them beside the
/// accumulators.
static constexpr int64_t kPromotedTileMs[] = {8, 16, 32, 64, 96, 128};
static constexpr int64_t kMostPromotedRows = 128, kMostRowsOfWideTile = 64;
/// Rows of a tile of a dual GEMM whose sums are promoted: a thread has those of a k tile, and those
/// of both GEMMs.
static constexpr int64_t kMostPromotedDualRows = 64;
/// The tile whose weights are converted a k tile ahead and stay in registers.
static constexpr int64_t kResidentTileM = 256;
/// Rows of a tile that are no power of two, in eights up to 192. With pre-dequantized weights and
/// transposed tiles, a thread has the sums of so many rows beside as many accumulators, or two
/// parts of 128 rows; other tiles of 192 rows have room for two deep stages.
static constexpr int64_t kFewestPartRows = 128, kMostPartRows = 192, kPartStep = 8,
                         kTwoPartRows = 256;
/// The depth of tiles of pre-dequantized weights.
static constexpr int64_t kPreDequantizedDepth = 128;
/// Cycles of a k tile for each row and besides, and of a tile besides, at the clock in MHz that
/// power allowed (notebook/gemm-weights.md).
static constexpr int64_t kCyclesOfRow = 4, kKTileCycles = 60, kPreDequantizedTileCycles = 4000;
static constexpr double kPreDequantizedClock = 1500;
/// A wide tile beside 16-bit floats has so many rows, of which a thread has 128 sums.
static constexpr int64_t kMostWideRows = 128;
/// A tile of which a fifth stage takes 2 % more cycles if workers share tiles
/// (notebook/gemm-weights.md).
static constexpr std::array<int64_t, 3> kSharedTile = {128, 128, 128};
static constexpr int64_t kSharedStages = 4;
/// Limits where warps multiply: the most rows that are chosen, beside which two stages of either
/// weights fit in 99 KB, and stages without which no load is in flight. The depth leaves room for
/// them twice.
static constexpr int64_t kWarpRows = 128, kWarpTileK = 128, kFewestStages = 2;
/// Bytes of barriers and of the alignment of tiles, and of the elements that threads exchange
/// before they store those of a tile of so many rows.
static constexpr int64_t kOtherSharedBytes = 2048, kStagedBytes = 8192, kFewestStagedRows = 64;
/// Sums of the threads that fit beside all other values in the registers that nine warps have at
/// most.
static constexpr int64_t kMostSums = 128 * kTileN;

/// Returns true for the rows of a tile of one part.
static bool isOnePart(int64_t rows) {
  return rows >= kFewestPartRows && rows <= kMostPartRows && rows % kPartStep == 0;
}

static bool isPrepacked(Operation *op) { return cast<BlockScaledMatmulOp>(op).hasPrepackedRhs(); }

/// The number of weights whose columns a tile has: both of a dual GEMM.
static int64_t gemmsOf(Operation *op) { return cast<BlockScaledMatmulOp>(op).isDual() ? 2 : 1; }

/// Returns true on targets without wgmma, where warps multiply the fragments of warpgroups with
/// mma.sync.
static bool multipliesByWarps(const hw::TargetModel &target) {
  return !route::hasCore(target, route::Core::Wgmma);
}

static hw::WeightGemm kindOf(Operation *op) {
  using enum hw::WeightGemm;
  return isPromoted(op) ? PromotedBytes : takesBytes(op) ? Bytes : Halves;
}

/// Returns true for a gated unit of a decoder: a dual GEMM of one matrix.
static bool isUnit(Operation *op) {
  auto product = cast<BlockScaledMatmulOp>(op);
  return product.isDual() && !product.isGrouped();
}

/// The depth of a tile: as deep as leaves room for several stages. Beside e4m3 whose sums stay in
/// the tensor core, two k tiles to a stage pay up to 176 rows, but not beyond 128 with
/// split-K: 19.0 us instead of 21.6 for 160 rows and three ranges. Wide tiles gain 5 % from them
/// (benchmarks/results/gemm_weight_tiles_h200_2026-11-29.json). A range of K of one or two such
/// stages has twice as many: MMAs begin with the first (12 x 32768 x 512: 4.4 us in place of 4.9).
static int64_t depthOf(Operation *op, int64_t rows, int64_t columns, int64_t splits = 1) {
  constexpr int64_t mostDeepRows = 176, mostSplitRows = 128, mostDeepHalves = 64, smallM = 8,
                    fewStages = 2;
  if (!isPrepacked(op) || (isPromoted(op) && rows == kResidentTileM))
    return kTileK;
  if (isPromoted(op))
    return kPrepackedTileK;
  int64_t k =
      cast<RankedTensorType>(cast<BlockScaledMatmulOp>(op).getLhs().getType()).getDimSize(1);
  bool isShort = !ShapedType::isDynamic(k) && k <= fewStages * kPrepackedTileK * splits;
  if (isShort || (isUnit(op) && rows <= smallM)) // stages of both weights are twice as large
    return kTileK;
  if (takesBytes(op))
    return rows <= (splits == 1 ? mostDeepRows : mostSplitRows) ? kPrepackedTileK : kTileK;
  return rows * columns <= mostDeepHalves * kTileN ? kPrepackedTileK : kTileK;
}

/// The elements of K of a tile of prepacked weights.
static int64_t leastDepth(Operation *op) {
  return takesBytes(op) ? hw::byteTileColumns : hw::weightTileColumns;
}

/// The depth of each of `ranges` k slices in a stage. With few rows, twice as many elements leave
/// room too.
static int64_t depthOfRange(Operation *op, std::array<int64_t, 2> tile, int64_t ranges,
                            int64_t splits) {
  constexpr int64_t smallM = 16;
  auto [rows, columns] = tile;
  int64_t depth = depthOf(op, rows, columns, splits / ranges);
  int64_t least = takesBytes(op) ? leastDepth(op) : 1;
  if (ranges == 1)
    return depth;
  return std::max<int64_t>(rows <= smallM ? std::min(depth, 2 * depth / ranges) : depth / ranges,
                           least);
}

/// Returns true when a CTA may have several k slices.
static bool mayHaveRanges(Operation *op, const hw::TargetModel &target) {
  return isPrepacked(op) && !isPromoted(op) && isPlannedAs(op, target, route::Planner::Weight);
}

/// The most rows of a tile that warps multiply and that is chosen: shared memory has two stages of
/// as many bytes, of the weights of both GEMMs, or of a byte for each weight.
static int64_t mostWarpRows(BlockScaledMatmulOp op) {
  return kWarpRows / (gemmsOf(op) * (hasPackedData(op.getFormat()) ? 1 : 2));
}

static std::vector<SizedTile> weightTiles(const PlannedGemm &gemm) {
  std::vector<SizedTile> tiles;
  if (!multipliesByWarps(gemm.target))
    return tiles;
  for (int64_t m : kTileMs)
    if (m <= mostWarpRows(gemm.op) && haveWholeBlocks(gemm.op, m))
      tiles.push_back(sizedTile({m, kTileN, kWarpTileK}, [=, &gemm](const MatmulSize &size) {
        return double(timeOfRows(size, m, gemm.target)) * double(size.k);
      }));
  return tiles;
}

/// Returns true when a tile may have twice as many columns, which leaves registers for so many
/// rows.
static bool mayBeWide(Operation *op, int64_t rows, const MatmulSize &size,
                      const hw::TargetModel &target) {
  return isPrepacked(op) && rows == kMostWideRows && size.n % kWideTileN == 0 &&
         !hasDynamicColumns(cast<BlockScaledMatmulOp>(op)) && !multipliesByWarps(target) &&
         size.products == 1 && !isQuantized(op);
}

/// The rows of a tile: of the smallest tile that has all rows. Otherwise they are 128 for prepacked
/// weights. Other weights get the widest tile, for which weights are converted for the most rows,
/// unless tiles of half as many rows leave fewer SMs idle.
static int64_t chooseRows(Operation *op, const MatmulSize &size, const hw::TargetModel &target) {
  if (isQuantized(op))
    return fastestQuantizedRows(op, size, target);
  if (multipliesByWarps(target))
    return fastestRows(kTileMs, mostWarpRows(cast<BlockScaledMatmulOp>(op)), size, target);
  if (size.products > 1)
    return fastestRows(kTileMs, isPromoted(op) ? kMostPromotedDualRows : kMostWideRows, size,
                       target);
  if (!size.groups.empty() && takesBytes(op))
    return isPromoted(op) ? fastestRows(kPromotedTileMs, kMostPromotedRows, size, target)
                          : fastestRows(kTileMs, kMostWeightRows, size, target);
  if (!size.groups.empty())
    return fastestRows(kTileMs, mayBeWide(op, kMostWideRows, size, target) ? 128 : 256, size,
                       target);
  for (int64_t rows : kTileMs)
    if (size.m <= rows && (rows <= kMostWideRows || !isPrepacked(op)))
      return rows;
  auto time = [&](int64_t rows) { return timeOfTiles(size, rows, kTileN, target); };
  return isPrepacked(op) || time(128) * 10 < time(256) * 9 ? 128 : 256;
}

/// Returns true when a tile may have so many rows and columns.
static bool hasShape(Operation *op, int64_t rows, int64_t columns, const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  if (columns == kUnevenTileN)
    return mayHaveThreeGroups(op, rows, target);
  bool isWide =
      columns == kWideTileN && !hasDynamicColumns(product) && product.getColumns() % columns == 0;
  int64_t ofWide = isPromoted(op) || isQuantized(op) ? kMostRowsOfWideTile : kMostWideRows;
  int64_t most = isWide ? ofWide : isPromoted(op) ? kMostPromotedRows : kMostWeightRows;
  bool isEven =
      llvm::is_contained(isPromoted(op) ? ArrayRef(kPromotedTileMs) : ArrayRef(kTileMs), rows);
  bool hasRows = isEven || (mayHaveUnevenRows(op, target) && rows > 0 && rows % kRowStep == 0);
  bool isResident = isPromoted(op) && rows == kResidentTileM && columns == kTileN &&
                    gemmsOf(op) == 1 && !multipliesByWarps(target);
  return (columns == kTileN || (isWide && isPrepacked(op))) && haveWholeBlocks(op, rows) &&
         ((hasRows && rows <= most) || isResident);
}

static hw::WeightRates ratesOf(Operation *op, const hw::TargetModel &target) {
  return *hw::weightRates(target, kindOf(op));
}

/// The tile that takes the fewest cycles, or zeros where rates say nothing: of dual GEMMs, groups
/// and shared tiles. A tile for any number of rows has a power of two of them.
static std::array<int64_t, 2> chooseShape(Operation *op, const KernelPlan &partial,
                                          const MatmulSize &size, const hw::TargetModel &target) {
  bool isKnown = !ShapedType::isDynamic(mostRowsOf(cast<BlockScaledMatmulOp>(op), partial));
  if (!mayHaveUnevenRows(op, target) || size.sharers)
    return {};
  bool isNarrow =
      partial.cluster[0] > 1 || partial.split.kSlices.value_or(1) > 1 || size.sliced > 1;
  int64_t most = partial.cluster[0] > 1 ? hw::mostReducedRows(kindOf(op)) : kMostWeightRows;
  return fastestTile(size, ratesOf(op, target), target, [&](int64_t rows, int64_t columns) {
    return (partial.tile[0] ? partial.tile[0] == rows : isKnown || llvm::isPowerOf2_64(rows)) &&
           (partial.tile[1]
                ? partial.tile[1] == columns
                : columns == kTileN || (!isNarrow && (isKnown || columns == kWideTileN))) &&
           rows <= most && mayBeSliced(size.sliced, rows) && hasShape(op, rows, columns, target);
  });
}

bool fp4::hasWeightRates(BlockScaledMatmulOp product, const hw::TargetModel &target) {
  return isPrepacked(product) && !product.isDual() && !multipliesByWarps(target) &&
         (!product.isGrouped() || mayHaveRanges(product, target));
}

double fp4::weightCycles(BlockScaledMatmulOp product, const MatmulSize &size,
                         const hw::TargetModel &target) {
  hw::WeightRates rates = ratesOf(product, target);
  bool haveSlices = mayHaveRanges(product, target);
  double least = INFINITY;
  MatmulSize sliced = size;
  for (int64_t slices :
       haveSlices ? countsOfSlices(product, size.splits) : SmallVector<int64_t>{1}) {
    sliced.sliced = slices;
    auto tile = fastestTile(sliced, rates, target, [&](int64_t rows, int64_t columns) {
      return hasShape(product, rows, columns, target) && mayBeSliced(slices, rows) &&
             (slices == 1 || columns == kTileN) && (size.splits == 1 || columns != kUnevenTileN);
    });
    if (tile[0])
      least = std::min(least, cyclesOfWeights(sliced, tile, rates, target));
  }
  return least;
}

SharedTile fp4::fastestSharedTile(BlockScaledMatmulOp product, MatmulSize size,
                                  const hw::TargetModel &target) {
  constexpr int64_t mostSharers = 3; // of a tile: with more, or few rows, parts take longer
  hw::WeightRates rates = ratesOf(product, target);
  size.sharers = target.sms;
  auto tile = fastestTile(size, rates, target, [&](int64_t rows, int64_t columns) {
    return columns != kUnevenTileN && rows % int64_t(numerics::streamUnit) == 0 &&
           mostResident(rows, kTileN) == 1 &&
           mostSharers * tilesOfRows(size, rows) * (size.n / columns) >= size.sharers &&
           hasShape(product, rows, columns, target);
  });
  return {tile, tile[0] ? cyclesOfWeights(size, tile, rates, target) : INFINITY};
}

/// The rows of a tile of so many k slices: those of `chooseRows`, or the most that such a tile may
/// have beside the sums of all slices.
static int64_t chooseRowsOfSlices(Operation *op, const KernelPlan &partial, const MatmulSize &size,
                                  const hw::TargetModel &target) {
  int64_t most = mostRowsOfSlices(partial.split.kSlices.value_or(1), partial.split.slicedK);
  int64_t rows = chooseRows(op, size, target);
  return rows <= most || mayHaveUnevenRows(op, target) ? std::min(rows, most)
                                                       : int64_t(llvm::bit_floor(uint64_t(most)));
}

/// The columns of a tile. Wide tiles load activations once for twice as many weights, if they leave
/// no more SMs idle.
static int64_t chooseColumns(Operation *op, int64_t rows, const MatmulSize &size,
                             const hw::TargetModel &target) {
  auto time = [&](int64_t columns) { return timeOfTiles(size, rows, columns, target); };
  bool isWide = mayBeWide(op, rows, size, target) && hasShape(op, rows, kWideTileN, target) &&
                time(kWideTileN) <= time(kTileN);
  return isWide ? kWideTileN : kTileN;
}

static std::array<int64_t, 3> chooseTile(Operation *op, const KernelPlan &partial,
                                         const MatmulSize &size, const hw::TargetModel &target) {
  int64_t ranges = partial.split.kSlices.value_or(1);
  if (auto [rows, columns] = chooseShape(op, partial, size, target); rows)
    return {rows, columns,
            partial.split.slicedK ? depthOfSliced(cast<BlockScaledMatmulOp>(op), rows)
                                  : depthOfRange(op, {rows, columns}, ranges, size.splits)};
  int64_t rows = partial.tile[0] ? partial.tile[0] : chooseRowsOfSlices(op, partial, size, target);
  int64_t columns = partial.tile[1] ? partial.tile[1] : chooseColumns(op, rows, size, target);
  if (partial.split.slicedK)
    return {rows, columns, depthOfSliced(cast<BlockScaledMatmulOp>(op), rows)};
  int64_t ofWarps = std::max(kWarpTileK / ranges, leastDepth(op));
  return {rows, columns,
          multipliesByWarps(target) ? ofWarps
                                    : depthOfRange(op, {rows, columns}, ranges, size.splits)};
}

/// The order of tiles. Each group has weights of its own, and tiles of all groups are neighbours
/// along m.
static pipe::WorkScheduleAttrInterface scheduleOf(const PlannedGemm &gemm, const KernelPlan &plan) {
  const MatmulSize &size = gemm.size;
  if (!size.groups.empty())
    return rasterOfTiles(gemm, plan.tile);
  if (size.sharers || size.splits > 1 || multipliesByWarps(gemm.target) || gemm.hasDynamicSizes())
    return neighboursAlongM(gemm.context());
  return rasterOfOperands(
      gemm, {tilesAlongM(size, plan.tile[0]), int64_t(llvm::divideCeil(size.n, plan.tile[1])),
             (takesBytes(gemm.op) ? 1.0 : 2.0) * double(plan.tile[0]),
             bytesOfCodes(gemm.op.getFormat()) * double(plan.tile[1] * size.products)});
}

/// Cycles of the waves of tiles of so many rows of pre-dequantized weights.
static int64_t cyclesAhead(const MatmulSize &size, int64_t rows, const hw::TargetModel &target) {
  int64_t waves = timeOfTiles(size, rows, kTileN, target) / (rows * kTileN);
  int64_t ofKTile = kCyclesOfRow * rows + kKTileCycles;
  int64_t kTiles = llvm::divideCeil(size.k, kPreDequantizedDepth * size.splits);
  return waves * (kTiles * ofKTile + kPreDequantizedTileCycles);
}

/// The rows of the tile whose waves take the fewest cycles; of equals, the most.
static int64_t choosePreDequantizedRows(const MatmulSize &size, const hw::TargetModel &target) {
  int64_t best = kTwoPartRows;
  for (int64_t rows = kMostPartRows; rows >= kFewestPartRows; rows -= kPartStep)
    if (cyclesAhead(size, rows, target) < cyclesAhead(size, best, target))
      best = rows;
  return best;
}

/// Returns true when pre-dequantized weights are faster than those of a tile in registers. The
/// conversion moves its bytes at the speed of a copy, and is one more launch.
static bool isFasterPreDequantized(Operation *op, const MatmulSize &size,
                                   const std::array<int64_t, 3> &tile,
                                   const hw::TargetModel &target) {
  constexpr double launch = 1.5, bytesPerMicrosecond = 3.5e6;
  double bytes = double(size.n) * double(size.k) * (0.5 + 1.0);
  auto pre = double(cyclesAhead(size, choosePreDequantizedRows(size, target), target));
  double inRegisters = cyclesOfWeights(size, {tile[0], tile[1]}, ratesOf(op, target), target);
  return size.m > kFewestPartRows &&
         pre / kPreDequantizedClock + launch + bytes / bytesPerMicrosecond <
             inRegisters / kPreDequantizedClock;
}

static bool isPreDequantized(const PlannedGemm &gemm, const std::array<int64_t, 3> &tile) {
  if (!gemm.mayTake({.a = route::Operand::Pre}))
    return false;
  auto [m, n, k] = gemm.plan.tile;
  bool isFree =
      !m && !n && !k && !gemm.plan.cluster[0] && !gemm.plan.ctasPerSm && !gemm.hasDynamicSizes();
  return gemm.isTransposed() || (isFree && gemm.size.groups.empty() &&
                                 isFasterPreDequantized(gemm.op, gemm.size, tile, gemm.target));
}

static KernelPlan proposePreDequantizedWeights(const PlannedGemm &gemm) {
  const MatmulSize &size = gemm.size;
  int64_t rows =
      gemm.plan.tile[1] ? gemm.plan.tile[1] : choosePreDequantizedRows(size, gemm.target);
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm);
  plan.route.a = route::Operand::Pre;
  plan.tile = {kTileN, rows, kPreDequantizedDepth};
  TileGrid grid = {int64_t(llvm::divideCeil(size.m, rows)),
                   int64_t(llvm::divideCeil(size.n, kTileN)), double(rows), double(kTileN)};
  plan.schedule = size.splits > 1 ? neighboursAlongM(gemm.context()) : rasterOfOperands(gemm, grid);
  plan.roles = fragmentRoles(gemm.context(), /*groups=*/2, kFewBeside);
  plan.ctasPerSm = 1;
  plan.pdl = LaunchDependents::BeforeWait;
  return plan;
}

/// Bytes of a stage: activations, weights and their scales, of all k slices.
static int64_t stageBytes(Operation *op, const KernelPlan &plan) {
  auto [m, n, k] = plan.tile;
  Format format = cast<BlockScaledMatmulOp>(op).getFormat();
  int64_t ofCodes = n * k / (hasPackedData(format) ? 2 : 1);
  int64_t ofWeights = gemmsOf(op) * (ofCodes + n * k / blockSize(format));
  return plan.split.kSlices.value_or(1) * ((takesBytes(op) ? 1 : 2) * m * k + ofWeights);
}

/// Bytes of shared memory for each of `resident` CTAs per SM.
static int64_t sharedBytesOf(int64_t resident, const hw::TargetModel &target) {
  return std::min<int64_t>(target.limits.sharedBytesPerCta,
                           target.limits.sharedBytesPerSM / resident -
                               target.limits.sharedReservedPerCta);
}

/// Returns true when the stages fit that the tile of `plan` needs, if warps multiply and shared
/// memory is small.
static bool hasStages(Operation *op, const KernelPlan &plan, int64_t resident,
                      const hw::TargetModel &target) {
  int64_t other = kOtherSharedBytes + (plan.tile[0] >= kFewestStagedRows ? kStagedBytes : 0);
  return kFewestStages * stageBytes(op, plan) + other <= sharedBytesOf(resident, target);
}

/// The number of CTAs per SM.
static int64_t chooseCtasPerSm(Operation *op, const KernelPlan &plan, bool isFull,
                               const hw::TargetModel &target) {
  // With more than 8 rows ptxas waits for each instruction of two GEMMs, and two CTAs per SM are
  // faster for groups all the same (notebook/gemm-weights.md).
  constexpr int64_t smallM = 8;
  bool mayBeTwo = isFull && (gemmsOf(op) == 1 || plan.tile[0] <= smallM ||
                             cast<BlockScaledMatmulOp>(op).isGrouped());
  int64_t most = mayBeTwo ? mostResident(plan.tile[0], plan.tile[1]) : 1;
  return multipliesByWarps(target) && !hasStages(op, plan, most, target) ? 1 : most;
}

/// Returns true when an SM should have room for a CTA of the next launch beside one of this launch.
/// With 8 rows, the CTAs of one wave have so many k tiles that the next launch begins where this
/// one ends: 11.3 us instead of 12.3 for one row of 8192 x 8192. With fewer k tiles, kernels that
/// let the next one begin early are faster (notebook/weight-limits.md). CTAs of a conversion take
/// places between two launches, and two CTAs of the next one then share an SM while others have
/// none: 17.2 us instead of 12.8 for four rows of NVFP4.
static bool leavesRoom(Operation *op, const KernelPlan &plan, const MatmulSize &size,
                       int64_t blocks, const hw::TargetModel &target) {
  constexpr int64_t smallM = 8, fewestKTiles = 12;
  bool isWave = 4 * blocks >= 3 * target.sms && blocks <= target.sms;
  bool isTile = plan.tile[0] == smallM && plan.tile[1] == kTileN &&
                !cast<BlockScaledMatmulOp>(op).getLhsScales();
  return mayHaveRanges(op, target) && !multipliesByWarps(target) && isWave && isTile &&
         plan.split.kSlices.value_or(1) == 1 && size.splits <= 2 &&
         size.k / size.splits >= fewestKTiles * plan.tile[2];
}

/// The PDL of a plan. If CTAs of one launch leave places free, those of the next one take some, and
/// two of one launch then share an SM while other SMs have none. A conversion of the lhs that
/// begins beside more than 16 rows takes more time than it saves (notebook/gemm-fp4.md). A norm is
/// before a gated unit, and leaves all SMs free; a matmul behind it begins early
/// (notebook/models.md).
static LaunchDependents pdlOf(BlockScaledMatmulOp product, const KernelPlan &plan, int64_t blocks,
                              const hw::TargetModel &target) {
  constexpr int64_t smallM = 16;
  bool takesAll = *plan.ctasPerSm == 1 || blocks > target.sms || isUnit(product);
  bool isConvertedBeside = product.getLhsScales() && plan.tile[0] > smallM;
  return takesAll && !isConvertedBeside ? LaunchDependents::BeforeWait : LaunchDependents::AtEnd;
}

/// Returns true when warps must release registers, as the widest accumulators need. If warps
/// multiply, those of 128 rows need them: ptxas loads all steps of plain weights ahead, and keeps 4
/// bytes in memory beside f16 with a bias or a residual; 512 x 4096 x 7168 with prepacked MXFP4 is
/// predicted to be 5 % faster. Prepacked weights with 256 rows have no place for the values that
/// ptxas would then load ahead.
static bool needsRegisters(Operation *op, const std::array<int64_t, 3> &tile,
                           const hw::TargetModel &target) {
  if (multipliesByWarps(target))
    return tile[0] == kWarpRows || (tile[0] > kWarpRows && !isPrepacked(op));
  return tile[0] > kMostSums / tile[1] / (gemmsOf(op) + isPromoted(op));
}

/// Takes the k slices of a plan: in `partial` and in `plan`, which is proposed.
static void takeSlices(PlannedGemm &gemm, KernelPlan &partial, KernelPlan &plan) {
  if (!mayHaveRanges(gemm.op, gemm.target))
    return;
  auto cycles = [&](int64_t slices) {
    MatmulSize size = gemm.size;
    size.sliced = slices;
    auto tile = chooseShape(gemm.op, partial, size, gemm.target);
    return tile[0] ? cyclesOfWeights(size, tile, ratesOf(gemm.op, gemm.target), gemm.target)
                   : INFINITY;
  };
  WeightSlices slices = chooseSlices(gemm, cycles);
  partial.split.kSlices = plan.split.kSlices = slices.count;
  partial.split.slicedK = plan.split.slicedK = slices.haveWarpgroups;
  gemm.size.sliced = slices.haveWarpgroups ? *slices.count : 1;
}

static pipe::RolePlanAttr rolesOf(const PlannedGemm &gemm, const KernelPlan &partial,
                                  const KernelPlan &plan) {
  if (partial.split.slicedK)
    return slicedRoles(gemm.context(), int32_t(*partial.split.kSlices));
  if (plan.tile[1] == kUnevenTileN)
    return fragmentRoles(gemm.context(), /*groups=*/3, kUnevenShares);
  bool isTall = needsRegisters(gemm.op, plan.tile, gemm.target);
  return fragmentRoles(gemm.context(), /*groups=*/2, isTall ? kFewBeside : RegisterShares());
}

static KernelPlan proposeWeight(const PlannedGemm &given) {
  BlockScaledMatmulOp op = given.op;
  const hw::TargetModel &target = given.target;
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm), partial = partialOfStream(given);
  PlannedGemm gemm = given.with(partial);
  takeSlices(gemm, partial, plan);
  const MatmulSize &size = gemm.size;
  plan.tile = chooseTile(op, partial, size, target);
  if (isPromoted(op) && isPreDequantized(gemm, plan.tile))
    return proposePreDequantizedWeights(gemm);
  if (isPromoted(op))
    plan.route.a = route::Operand::Registers;
  plan.schedule = scheduleOf(gemm, plan);
  plan.roles = rolesOf(gemm, partial, plan);
  int64_t columns = llvm::divideCeil(size.n, plan.tile[1]);
  int64_t items = tilesOfRows(size, plan.tile[0]) * columns;
  int64_t blocks =
      size.sharers ? size.sharers : items * size.splits / partial.split.kSlices.value_or(1);
  bool isFull = blocks > target.sms, isKnown = gemm.hasKnownRows();
  plan.ctasPerSm =
      plan.split.slicedK ? 1 : chooseCtasPerSm(op, partial.orElse(plan), isFull, target);
  if (size.sharers && plan.tile == kSharedTile && !multipliesByWarps(target))
    plan.pipeline.stages = kSharedStages;
  if (isKnown && !size.sharers && leavesRoom(op, partial.orElse(plan), size, blocks, target))
    plan.ctasPerSm = 2;
  int64_t tilesM = tilesAlongM(size, plan.tile[0]);
  if (isPrepacked(op))
    plan.pdl = pdlOf(op, partial.orElse(plan), isKnown ? blocks : blocks / tilesM, target);
  if (plan.tile[1] != kTileN || multipliesByWarps(target)) {
    plan.cluster = partial.cluster;
    return plan;
  }
  plan.cluster = proposeReduction(gemm, {plan.tile[0], hw::mostReducedRows(kindOf(op))},
                                  (isKnown ? tilesM : 1) * llvm::divideCeil(size.n, kTileN),
                                  partial.ctasPerSm.value_or(*plan.ctasPerSm));
  return plan;
}

/// Checks the tile of a dual GEMM, of which registers have the sums of both.
static LogicalResult checkDualTile(const PlannedGemm &gemm) {
  int64_t most = isPromoted(gemm.op) ? kMostPromotedDualRows : kMostWideRows;
  auto [m, n, k] = gemm.plan.tile;
  if (gemmsOf(gemm.op) == 1 || (n == kTileN && m <= most))
    return success();
  return gemm.misfitTile("is [m, 128, k] with m up to " + Twine(most) + " for a dual GEMM");
}

/// Checks a tile beside floats. Prepacked weights may have 64, 128 or 256 elements of K, and twice
/// as many columns if the weights have whole tiles of these.
static LogicalResult checkFloatTile(Operation *op, const KernelPlan &plan,
                                    const hw::TargetModel &target) {
  auto [m, n, k] = plan.tile;
  if (!haveWholeBlocks(op, m) || (isQuantized(op) && n == kWideTileN && m > kMostRowsOfWideTile))
    return misfitTile(
        op, plan,
        "is [m, n, k] with m = 8, 16, 32, 64 or 128, at most 64 beside n = 256 and at "
        "least 32 for quantized columns, of a GEMM that quantizes its elements");
  int64_t least = leastDepth(op);
  bool isPacked = (n == kTileN || plan.cluster[0] <= 1) && k >= least && kPrepackedTileK % k == 0;
  if (hasShape(op, m, n, target) && (isPrepacked(op) ? isPacked : k == kTileK))
    return success();
  if (!isPrepacked(op))
    return misfitTile(
        op, plan, "is [m, 128, 128] with m = 8, 16, 32, 64, 128 or 256 for a lhs without scales");
  StringRef depths = takesBytes(op) ? "128 or 256" : "64, 128 or 256";
  StringRef rows = mayHaveUnevenRows(op, target) ? "a multiple of 8 up to 256"
                   : isPromoted(op)              ? "= 8, 16, 32, 64, 96 or 128"
                                                 : "= 8, 16, 32, 64, 128 or 256";
  return misfitTile(op, plan,
                    "is [m, n, k] with m " + rows +
                        ", n = 128, or, without a cluster, 256 for m up to 128 and a multiple of "
                        "256 columns, or 192 for m up to 192, and k = " +
                        depths + " for a prepacked rhs");
}

static LogicalResult checkTile(const PlannedGemm &gemm) {
  BlockScaledMatmulOp op = gemm.op;
  if (failed(checkDualTile(gemm)))
    return failure();
  if (!isPromoted(op) || multipliesByWarps(gemm.target))
    return checkFloatTile(op, gemm.plan, gemm.target);
  auto [m, n, k] = gemm.plan.tile;
  if (hasShape(op, m, n, gemm.target) && k == depthOf(op, m, n) &&
      (n == kTileN || !gemm.plan.cluster[0]))
    return success();
  StringRef rows = mayHaveUnevenRows(op, gemm.target) ? "a multiple of 8 up to 128"
                                                      : "= 8, 16, 32, 64, 96 or 128";
  return gemm.misfitTile("is [m, 128, 256] with m " + rows +
                         " for a lhs of f8E4M3FN without scales, [256, 128, 128], or, without a "
                         "cluster, [m, 256, 256] with m up to 64 for a multiple of 256 columns, or "
                         "[m, 192, 256] with m from 16 to 80");
}

static LogicalResult checkStages(const PlannedGemm &gemm) {
  int64_t ctas = *gemm.plan.ctasPerSm;
  if (!multipliesByWarps(gemm.target) || hasStages(gemm.op, gemm.plan, ctas, gemm.target))
    return success();
  return misfitStages(gemm, sharedBytesOf(ctas, gemm.target), stageBytes(gemm.op, gemm.plan));
}

static LogicalResult checkPreDequantizedWeights(const PlannedGemm &gemm) {
  if (gemm.hasDynamicSizes())
    return gemm.misfit("route", "has a = registers for dynamic N and K", gemm.plan.route.str());
  auto [m, n, k] = gemm.plan.tile;
  if (m == kTileN && (isOnePart(n) || n == kTwoPartRows) && k == kPreDequantizedDepth)
    return checkPreDequantizedTiling(gemm);
  return gemm.misfitTile("is, with pre-dequantized weights, [128, n, 128] with n a multiple of 8 "
                         "from 128 to 192, or [128, 256, 128]");
}

static LogicalResult checkWeight(const PlannedGemm &gemm) {
  if (gemm.plan.route.a == route::Operand::Pre)
    return checkPreDequantizedWeights(gemm);
  auto [m, n, k] = gemm.plan.tile;
  if ((gemm.op.getStreamK() && failed(checkStream(gemm))) || failed(checkSlices(gemm)) ||
      failed(checkTile(gemm)) ||
      failed(checkReductionPlace(gemm, {m, hw::mostReducedRows(kindOf(gemm.op))})) ||
      failed(checkCtasPerSm(gemm, mostResident(m, n))) || failed(checkStages(gemm)))
    return failure();
  using enum pipe::Engine;
  return gemm.checkTiling({Tma, Tensor, Threads},
                          RoleRules::ofFragments(n == kUnevenTileN ? 3 : 2));
}

constexpr GemmPlanner fp4::kWeightPlanner = {route::Planner::Weight, proposeWeight, checkWeight,
                                             weightTiles};
