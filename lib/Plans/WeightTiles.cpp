//===- WeightTiles.cpp - Times of tiles of weights ------------------------===//
#include "WeightTiles.h"

#include "GemmPlanner.h"

using namespace mlir;
using namespace fp4;

bool fp4::takesBytes(Operation *op) {
  auto lhs = cast<RankedTensorType>(cast<BlockScaledMatmulOp>(op).getLhs().getType());
  return isa<Float8E4M3FNType>(lhs.getElementType());
}

bool fp4::isPromoted(Operation *op) {
  return takesBytes(op) && !cast<BlockScaledMatmulOp>(op).accumulatesFast();
}

bool fp4::isQuantized(Operation *op) {
  return bool(cast<BlockScaledMatmulOp>(op).getQuantizeRecipe());
}

bool fp4::haveWholeBlocks(Operation *op, int64_t rows) {
  constexpr int64_t ofThreads = 128, ofWarp = 32;
  auto product = cast<BlockScaledMatmulOp>(op);
  if (!isQuantized(op))
    return true;
  int64_t all = cast<RankedTensorType>(product.getLhs().getType()).getDimSize(0);
  bool hasColumns = !product.quantizesColumns() || rows >= std::min(ofWarp, all);
  return hasColumns && rows <= ofThreads && llvm::isPowerOf2_64(uint64_t(rows));
}

bool fp4::mayHaveUnevenRows(Operation *op, const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  return product.hasPrepackedRhs() && !product.isDual() && !product.isGrouped() &&
         route::hasCore(target, route::Core::Wgmma);
}

bool fp4::mayHaveThreeGroups(Operation *op, int64_t rows, const hw::TargetModel &target) {
  constexpr int64_t few = 8, ofRegisters = 192, ofPromoted = 80; // mma.sync, a thread's registers
  auto product = cast<BlockScaledMatmulOp>(op);
  int64_t most = isPromoted(op) ? ofPromoted : ofRegisters;
  return mayHaveUnevenRows(op, target) && product.getMostSplits() == 1 &&
         product.hasOnlyElements() && !hasDynamicSizes(product) && !product.getStreamK() &&
         rows > few && rows <= most && rows % kRowStep == 0;
}

int64_t fp4::tilesOfRows(const MatmulSize &size, int64_t rows) {
  int64_t tiles = tilesAlongM(size, rows);
  return size.expectsGroups ? std::min(std::max(int64_t(size.groups.size()), tiles), size.m)
                            : tiles;
}

int64_t fp4::timeOfTiles(const MatmulSize &size, int64_t rows, int64_t columns,
                         const hw::TargetModel &target) {
  int64_t tiles = tilesOfRows(size, rows) * llvm::divideCeil(size.n, columns);
  return int64_t(llvm::divideCeil(tiles * size.splits, target.sms)) * rows * columns;
}

/// Rows whose time a tile takes beside its MMAs, in which weights are loaded and converted. If
/// warps multiply, 8192 x 8192 weights and 64 rows on sm_120a are predicted to take 107 us with 64
/// rows and 60 with 32, which leave fewer SMs idle (notebook/time.md). With wgmma, half of these
/// weights took 11.2 us with 8, 16.8 with 64 and 24.1 with 128 rows of an H200
/// (notebook/weight-limits.md).
static int64_t otherRows(const hw::TargetModel &target) {
  return route::hasCore(target, route::Core::Wgmma) ? 80 : 16;
}

int64_t fp4::timeOfRows(const MatmulSize &size, int64_t rows, const hw::TargetModel &target) {
  return timeOfTiles(size, rows, kTileN, target) / rows * (rows + otherRows(target));
}

int64_t fp4::fastestRows(ArrayRef<int64_t> tiles, int64_t most, const MatmulSize &size,
                         const hw::TargetModel &target) {
  int64_t best = most;
  auto time = [&](int64_t rows) { return timeOfRows(size, rows, target); };
  for (int64_t rows : llvm::reverse(tiles))
    if (rows <= most && time(rows) < time(best))
      best = rows;
  return best;
}

/// Without wgmma, shared memory has no room for stages of both weights beside 128 rows.
int64_t fp4::fastestQuantizedRows(Operation *op, const MatmulSize &size,
                                  const hw::TargetModel &target) {
  auto rows = llvm::filter_to_vector(kTileMs, [&](int64_t m) { return haveWholeBlocks(op, m); });
  bool hasLittleRoom = !route::hasCore(target, route::Core::Wgmma);
  return fastestRows(rows, rows.back() / (hasLittleRoom ? size.products : 1), size, target);
}

int64_t fp4::mostResident(int64_t rows, int64_t columns) {
  return rows <= 32 && columns == kTileN ? 2 : 1;
}

/// CTAs per SM of a tile. One CTA has the registers of an SM if its k slices have warpgroups of
/// their own.
static int64_t residentOf(const MatmulSize &size, std::array<int64_t, 2> tile) {
  return size.sliced > 1 ? 1 : mostResident(tile[0], tile[1]);
}

/// Time of the k tiles of `slices` k slices with warpgroups of their own, by that of one. With
/// mma.sync, warps wait part of the time for results of their own, and other warps go on. Beside
/// wgmma the pipes that convert weights are busy (an H200, docs/performance/gemm-weights.md).
static double timeOfSlices(int64_t slices, int64_t rows, const hw::WeightRates &rates) {
  constexpr int64_t rowsOfWarpMmas = 8;
  constexpr double besideWgmma = 1.05;
  return 1 + (rows <= rowsOfWarpMmas ? rates.slice : besideWgmma) * double(slices - 1);
}

/// Time of the MMAs of three warpgroups, by that of two for as many columns: more warps wait for
/// each other less (an H200, notebook/gemm-weights.md).
static constexpr double kMultiplyOfThree = 0.96;

/// Cycles of a k tile in all of `ctas` CTAs that run together: those of the slowest SM and of the
/// weights from memory, `bytesOfTile` for each 128 columns, which wait for each other where both
/// take nearly as long. One curve of CTAs and bytes has them (notebook/gemm-weights.md). MMAs that
/// go on between k tiles hide that wait, where they leave time beside the conversion. `paired` is
/// the part of the CTAs that share their SM with another.
static double cyclesOfKTile(int64_t ctas, double paired, std::array<int64_t, 2> tile,
                            int64_t slices, double bytesOfTile, const hw::WeightRates &rates) {
  constexpr double power = 4;
  constexpr int64_t fewestAhead = 32, mostAhead = 48;
  auto rows = double(tile[0]), columns = double(tile[1]) / kTileN;
  bool hasThree = tile[1] == kUnevenTileN;
  double wide = hasThree ? rates.three : columns > 1 ? rates.wide : 1;
  double cycles = std::max(columns * wide * (rates.convert + rates.convertRow * rows) *
                               timeOfSlices(slices, tile[0], rates),
                           double(slices) * columns * rates.multiplyRow * rows *
                               (hasThree ? kMultiplyOfThree : 1));
  double memory = double(ctas * slices) * bytesOfTile * columns / rates.memoryBytes;
  if (paired == 0 && rates.ahead && tile[0] >= fewestAhead && tile[0] <= mostAhead &&
      tile[1] == kTileN && slices == 1)
    return std::max(rates.ahead * cycles, memory);
  return joinedTime({(1 + (rates.shared - 1) * paired) * cycles, memory}, power);
}

/// Cycles of a tile because of its k slices: more channels that fill before the first k tile, and
/// their sums, for which the first slice waits (an H200). Threads store and load a word of shared
/// memory for each sum, 128 bytes in a cycle.
static double cyclesOfSlices(int64_t slices, int64_t rows) {
  constexpr double wait = 1000, ofRow = 2 * 4 * double(kTileN) / 128;
  return slices > 1 ? wait + ofRow * double((slices - 1) * rows) : 0;
}

/// Returns true where a cluster reduces the ranges of split-K.
static bool reduceInClusters(const MatmulSize &size, std::array<int64_t, 2> tile, int64_t ctas,
                             int64_t places, const hw::WeightRates &rates) {
  int64_t ranges = size.splits / size.sliced;
  return ranges > 1 && tile[0] <= hw::mostReducedRows(rates.kind) && tile[1] == kTileN &&
         haveRoomForClusters(ranges, ctas, places);
}

/// Time of a k tile of a cluster by that of a CTA alone. Beside the sums of the tallest tiles three
/// stages have room in place of five, which do not hide loads of weights that no other tile along m
/// has brought to L2 (256 x 7168 x 16384 of e4m3: 92 thousand cycles of an H200 in place of 82).
static double timeOfClusters(const MatmulSize &size, int64_t rows) {
  constexpr int64_t mostStagedRows = 240;
  constexpr double ofFewStages = 1.14;
  return rows > mostStagedRows && tilesOfRows(size, rows) == 1 ? ofFewStages : 1;
}

/// Cycles of the reduction of split-K, where a cluster has the ranges or a workspace. Clusters wait
/// longer for those of k slices (an H200: 1024 x 4096 to 6144 x 4096 of one row).
static double cyclesOfReduction(const MatmulSize &size, std::array<int64_t, 2> tile,
                                bool inClusters, const hw::WeightRates &rates) {
  constexpr double ofSlices = 1500;
  auto [rows, columns] = tile;
  int64_t ranges = size.splits / size.sliced;
  if (ranges == 1)
    return 0;
  if (inClusters)
    return rates.cluster.once + rates.cluster.row * double(rows * size.sliced) +
           rates.clusterRange * double(ranges - 2) + (size.sliced > 1 ? ofSlices : 0);
  return rates.workspace.once +
         rates.workspace.row * double(rows * columns / kTileN) * double(size.splits);
}

static int64_t countCtas(const MatmulSize &size, std::array<int64_t, 2> tile) {
  return tilesOfRows(size, tile[0]) * int64_t(llvm::divideCeil(size.n, tile[1])) * size.splits /
         size.sliced;
}

/// Cycles of tiles that CTAs share: each CTA has an equal part of all k tiles, and leaves sums.
static double cyclesOfShares(const MatmulSize &size, std::array<int64_t, 2> tile,
                             double cyclesOfTile, const hw::WeightRates &rates) {
  auto rows = double(tile[0] * tile[1] / kTileN);
  return rates.launch +
         double(countCtas(size, tile)) / double(size.sharers) *
             (cyclesOfTile + rates.epilogueRow * rows) +
         rates.share.once + rates.share.row * rows;
}

double fp4::cyclesOfWeights(const MatmulSize &size, std::array<int64_t, 2> tile,
                            const hw::WeightRates &rates, const hw::TargetModel &target) {
  constexpr int64_t depth = 128;
  auto [rows, columns] = tile;
  int64_t ctas = countCtas(size, tile);
  int64_t places = target.sms * (ctas > int64_t(target.sms) ? residentOf(size, tile) : 1);
  int64_t waves = llvm::divideCeil(ctas, places), last = ctas - (waves - 1) * places;
  // Tiles along m of a group have the same weights.
  int64_t groups = std::max<int64_t>(1, int64_t(size.groups.size()));
  double alongM = std::max(1.0, double(tilesOfRows(size, rows)) / double(groups));
  double bytes = double(kTileN * depth / 2 + kTileN * depth / size.block) / alongM;
  double kTiles = double(size.k) / double(depth * size.splits);
  // CTAs of a last wave begin where others end, so that more of many share an SM.
  bool mayPair = places > int64_t(target.sms) && !size.sharers;
  auto ofWave = [&](int64_t count) {
    double filled = mayPair ? std::min(1.0, double(count) / double(target.sms)) : 0;
    return cyclesOfKTile(count, filled * filled, tile, size.sliced, bytes, rates);
  };
  if (size.sharers)
    return cyclesOfShares(size, tile, kTiles * ofWave(size.sharers), rates);
  double ofWaves = double(waves - 1) * ofWave(places) + ofWave(last);
  // The next kernel begins on SMs of its own beside a half of them.
  double launch = rates.launch - (2 * ctas <= int64_t(target.sms) ? rates.overlapped : 0);
  bool inClusters = reduceInClusters(size, tile, ctas, places, rates);
  double ofTile = rates.epilogueRow * double(rows * columns / kTileN) +
                  cyclesOfSlices(size.sliced, rows) +
                  cyclesOfReduction(size, tile, inClusters, rates);
  kTiles *= inClusters ? timeOfClusters(size, rows) : 1;
  return launch + kTiles * ofWaves + double(waves) * ofTile;
}

/// Time of a tile of three warpgroups by its cycles, beside one of two, where power limits the
/// clock. Three load two tiles of weights for one and a half, and convert them more often the fewer
/// rows a tile has: 128 rows get 0.96 of the clock of 128 x 256, and 192 rows all of it (an H200,
/// benchmarks/results/gemm_power_h200_2026-12-01.json). Few rows leave tensor cores idle, and no
/// tile of theirs has a lower clock (16 x 43008 x 5376 and 32 x 51200 x 5120).
static double powerOfThree(int64_t rows) {
  constexpr int64_t few = 32;
  if (rows <= few)
    return 1;
  constexpr double ofColumns = 0.01, ofRows = 0.07, loaded = 4.0 / 3;
  return 1 + ofColumns + ofRows * (loaded * double(kTileN) / double(rows) - 1);
}

std::array<int64_t, 2> fp4::fastestTile(const MatmulSize &size, const hw::WeightRates &rates,
                                        const hw::TargetModel &target,
                                        function_ref<bool(int64_t, int64_t)> isLegal) {
  int64_t most = std::min(kMostWeightRows, int64_t(llvm::alignTo(size.m, kRowStep)));
  // A narrow tile loads activations twice as often, which takes power. Power limits the clock of
  // longer GEMMs: 1.75 GHz up to 57 thousand cycles and 1.62 from 68 on (an H200).
  constexpr double gainOfNarrow = 0.03, mostAtFullClock = 62e3;
  // Three warpgroups must save what the model errs: it has two in several waves 4 % too slow.
  constexpr double gainOfThree = 0.04;
  std::array<int64_t, 2> best = {};
  double least = INFINITY;
  for (int64_t columns : {2 * kTileN, kTileN, kUnevenTileN}) {
    if (columns == kTileN && least > mostAtFullClock)
      least *= 1 - gainOfNarrow;
    if (columns == kUnevenTileN && best[0])
      least = (1 - gainOfThree) * cyclesOfWeights(size, best, rates, target);
    for (int64_t rows = most; rows > 0; rows -= kRowStep) {
      if (!isLegal(rows, columns))
        continue;
      double time = cyclesOfWeights(size, {rows, columns}, rates, target);
      if (columns == kUnevenTileN && time > mostAtFullClock)
        time *= powerOfThree(rows);
      if (time < least) {
        best = {rows, columns};
        least = time;
      }
    }
  }
  return best;
}
