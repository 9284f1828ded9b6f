//===- CostModel.cpp - Costs of the tiles of a GEMM -----------------------===//

#include "CostModel.h"

#include "fp4/ISA/ClusterLimit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>

using namespace fp4;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::string_view fp4::spell(GemmBound bound) {
  switch (bound) {
  case GemmBound::TensorCore:
    return "the tensor core";
  case GemmBound::L2Feed:
    return "what the L2 cache delivers";
  case GemmBound::Epilogue:
    return "the epilogue";
  case GemmBound::Memory:
    return "device memory";
  }
  llvm_unreachable("every bound has its words");
}

/// The rates of each target. Planning asks so often that a search of the table took half of its
/// time.
static llvm::StringMap<std::array<double, hw::timingRateCount>> ratesByTarget() {
  llvm::StringMap<std::array<double, hw::timingRateCount>> rates;
  for (const hw::TargetModel &target : hw::targets())
    for (size_t i = 0; i < hw::timingRateCount; ++i) {
      const hw::Rate *own = hw::timingRate(target.name, hw::TimingRate(i));
      const hw::Rate *rate = own ? own : hw::timingRate("sm_100a", hw::TimingRate(i));
      rates[target.name][i] = rate ? double(*rate) : 0; // 0: no plan asks for it
    }
  return rates;
}

double fp4::rateOf(hw::TimingRate which, const hw::TargetModel &target) {
  static const auto rates = ratesByTarget();
  return rates.at(target.name)[size_t(which)];
}

/// Constants fitted with the rates of lib/ISA/Targets.cpp (benchmarks/analysis/fit_gemms.py): bytes that could
/// have been loaded while one byte of a result is stored, and TB/s that device memory takes of
/// results.
static constexpr double kStoreShare = 2.324, kWriteTerabytes = 4.281;

double fp4::feedBytesPerCycle(int64_t sms, const hw::TargetModel &target) {
  constexpr double ofB200 = 148; // that share the bandwidth of L2
  bool isKnown = hw::timingRate(target.name, hw::TimingRate::L2SharedTerabytes);
  double share = isKnown ? 1 : target.sms / ofB200;
  double all =
      rateOf(hw::TimingRate::L2SharedTerabytes, target) * share * 1000 / target.product->gigahertz;
  return std::min<double>(target.product->l2BytesPerCycle, all / double(sms));
}

double fp4::memoryCycles(double read, double written, const hw::TargetModel &target) {
  return read / target.product->memoryBytesPerCycle +
         written * target.product->gigahertz / (kWriteTerabytes * 1000);
}

double fp4::multiplyCycles(double operations, double operandBytes, const hw::TargetModel &target) {
  return std::max(operations / target.product->flopsPerCycle,
                  operandBytes / target.product->sharedBytesPerCycle);
}

int64_t fp4::gemmWorkers(const GemmTile &tile, const hw::TargetModel &target) {
  int64_t blocks = hw::smsOfClusters(target, tile.blocks());
  int64_t clusters = std::max<int64_t>(1, blocks / tile.blocks());
  return clusters * tile.blocks() / (tile.pair ? 2 : 1);
}

/// Scale tiles of 128 rows that the columns of a tile lie in, wherever the tile begins.
static int64_t scaleBlocksOfB(const GemmTile &tile) {
  constexpr int64_t block = 128;
  if (tile.narrow)
    return 2; // one for each half of the columns
  return ceilDiv(block - std::gcd(tile.n, block) + tile.n, block);
}

namespace {
/// The cost of one instruction.
struct StepCost {
  double issue;  ///< cycles of the tensor core
  double cycles; ///< cycles with operands from the L2 cache
  double bytes;  ///< bytes that a CTA loads for an instruction
  GemmBound bound;
};
/// The cost of one tile.
struct TileCost {
  double first;  ///< without the epilogue of another tile beside it
  double cycles; ///< behind other tiles
  GemmBound bound;
};
} // namespace

/// The cost of an instruction with `active` SMs at work.
static StepCost stepCost(const MatmulSize &size, const GemmTile &tile, int64_t active,
                         const hw::TargetModel &target) {
  constexpr double kStep = 64;
  const double stepBytes = double(size.stepBytes());
  double rows = double(tile.rowsOfA() + tile.rowsOfB() * size.products);
  double columns = double(tile.n * size.products);
  double issue =
      multiplyCycles(2.0 * double(tile.rowsOfA()) * columns * kStep, rows * stepBytes, target);
  double scaleRows = kGemmTileM + double(scaleBlocksOfB(tile) * 128 * size.products);
  double delivered =
      double(std::min(size.m, tile.rowsOfA()) + std::min(size.n, tile.rowsOfB()) * size.products);
  double bytes = delivered * stepBytes + scaleRows * (double(size.stepK) / double(size.block));
  double feed = bytes / feedBytesPerCycle(active, target);
  return {issue, std::max(issue, feed), bytes,
          issue >= feed ? GemmBound::TensorCore : GemmBound::L2Feed};
}

/// Bytes of an element in all results.
static double bytesOfElement(const MatmulSize &size) {
  return (size.epilogue.storesElements ? double(size.resultBytes) : 0) + size.epilogue.derivedBytes;
}

/// Bytes that the kernel must read, or write, at least once. A split-K range also writes its sums,
/// which are read again.
static double operandBytes(const MatmulSize &size) {
  double perRow = double(size.k * size.stepBytes()) / double(size.stepK) + double(size.k) / double(size.block);
  double rowsOfB =
      double(size.n * size.products) * double(std::max<size_t>(1, size.groups.size()));
  return (double(size.m) + rowsOfB) * perRow +
         double(size.m) * double(size.n) * size.epilogue.inputBytes;
}
static double writtenBytes(const MatmulSize &size, const GemmTile &tile) {
  double sums = size.splits > 1 && !tile.joins ? 2.0 * 4 * double(size.splits) : 0;
  return double(size.m) * double(size.n) * (bytesOfElement(size) + sums);
}

int64_t fp4::countTiles(const MatmulSize &size, int64_t rows, int64_t columns) {
  int64_t tilesM = size.groups.empty() ? ceilDiv(size.m, rows) : 0;
  for (int64_t ofGroup : size.groups)
    tilesM += ceilDiv(ofGroup, rows);
  return tilesM * ceilDiv(size.n, columns);
}

/// Tiles of the result that whole clusters take.
static int64_t countWholeTiles(const MatmulSize &size, const GemmTile &tile) {
  int64_t together = tile.joins ? 1 : tile.clusterM / (tile.pair ? 2 : 1);
  return countTiles(size, tile.rows() * together, tile.n * tile.clusterN) * together *
         tile.clusterN * size.splits;
}

/// Tiles that a worker takes one after the other.
static int64_t wavesOf(const MatmulSize &size, const GemmTile &tile,
                       const hw::TargetModel &target) {
  return ceilDiv(countWholeTiles(size, tile), gemmWorkers(tile, target));
}

/// The GEMM that the tensor core computes when operands are swapped.
static MatmulSize transposed(MatmulSize size) {
  std::swap(size.m, size.n);
  return size;
}
static GemmTile unswapped(GemmTile tile) {
  tile.transposed = false;
  return tile;
}

/// Returns true when CTAs leave sums in a workspace.
static bool leavesSums(const MatmulSize &size, const GemmTile &tile) {
  return (size.splits > 1 && !tile.joins) || size.sharers > 0;
}

static constexpr int64_t kWidestTileN = 256;

/// Returns true when tensor memory has two accumulators beside the scales.
static bool hasTwoAccumulators(const MatmulSize &size, const GemmTile &tile) {
  return tile.laneColumns() * size.products <= (size.stepK == 96 ? 128 : 192);
}

/// Columns of a thread that are code without a loop: all of them if they stay in registers.
static int64_t writtenColumns(const MatmulSize &size, const GemmTile &tile,
                              const hw::TargetModel &target) {
  const EpilogueWork &work = size.epilogue;
  bool holds = !hasTwoAccumulators(size, tile) &&
               (work.derives || size.products == 1 || wavesOf(size, tile, target) > 1);
  return holds || work.foldsAmax ? tile.laneColumns() / tile.epilogueGroups : work.group;
}

/// Cycles of a column of 32 rows. A warp alone waits for results that its next instructions need,
/// and for instructions that do not fit the nearest cache; two warps of a scheduler wait at other
/// times.
static double columnCycles(const MatmulSize &size, const GemmTile &tile,
                           const hw::TargetModel &target) {
  const SchedulerCycles &work = size.epilogue.column;
  double alone = work.alone;
  if (work.instructions * double(writtenColumns(size, tile, target)) >
      rateOf(hw::TimingRate::FetchInstructions, target))
    alone = std::max(alone, work.instructions * rateOf(hw::TimingRate::FetchInterval, target));
  return std::max(work.busy, alone / double(tile.epilogueGroups));
}

/// Cycles that the threads of an epilogue compute and wait for a tile, beyond the conversion that
/// every epilogue has: a chunk of columns loads its inputs when it has its sums. Matrices come from
/// device memory.
static double workCycles(const MatmulSize &size, const GemmTile &tile,
                         const hw::TargetModel &target) {
  const EpilogueWork &work = size.epilogue;
  auto columns = double(tile.laneColumns());
  double wait = 0;
  if (work.loadsColumns)
    wait = rateOf(hw::TimingRate::L2Latency, target);
  if (work.inputBytes > 0)
    wait = rateOf(hw::TimingRate::MemoryLatency, target);
  double stored = work.storesElements ? work.conversion.alone : 0; // storingCycles has it
  return columns * (columnCycles(size, tile, target) - stored) +
         columns / double(tile.epilogueGroups * EpilogueWork::kChunk) * wait;
}

/// Cycles by which a tile with the only accumulator delays the next tile. SERIAL is fitted to
/// kernels that store each part before they read the next. The compiler's kernels read the last
/// columns, as many as registers have room for, before they store any of these: each such column is
/// then only read, scaled and converted. If accumulators overlap, the next tile waits until their
/// common columns are read.
static double serialCycles(const MatmulSize &size, const GemmTile &tile, bool isLast,
                           const hw::TargetModel &target) {
  constexpr double registers = 128, columnBytes = 4 * 32; // of a thread; of a warp
  const double common = size.stepK == 96 ? 128 : 96;
  bool overlaps = (size.stepK != 96 || tile.n == kWidestTileN) && size.epilogue.isPlain() &&
                  tile.epilogueGroups == 1;
  if (hasTwoAccumulators(size, tile))
    return 0;
  double columns = double(tile.laneColumns() * size.products);
  double read = columnBytes / rateOf(hw::TimingRate::TmemBytes, target);
  if (!isLast && size.products == 1 && overlaps && !leavesSums(size, tile) && !tile.joins)
    return common * read;
  if (tile.joins) // all columns are read before any is added
    return columns * read;
  double resultBytes = leavesSums(size, tile) ? 4 : double(size.resultBytes);
  double held = std::min(columns, registers * 4 / resultBytes / (size.epilogue.hasBody ? 2 : 1));
  if (!size.epilogue.storesElements) // codes and scales leave when all is read
    held = columns;
  double perColumn = read + rateOf(hw::TimingRate::FmaInterval, target) +
                     rateOf(hw::TimingRate::AluInterval, target);
  double stored = target.product->epilogueCyclesPerColumn * (columns - held);
  return target.product->serialShare * stored + held * perColumn;
}

/// Cycles that each k tile waits if tensor memory has one set of scales: the scales of a k tile are
/// copied when the MMAs of the one before are done.
static double scaleCycles(const MatmulSize &size, const GemmTile &tile,
                          const hw::TargetModel &target) {
  if (size.stepK == 96 && tile.n == kWidestTileN)
    return 0; // scales are copied in parts, of which three have room
  int64_t lanes = kGemmTileM + scaleBlocksOfB(tile) * (tile.narrow ? 64 : 128) * size.products;
  int64_t columns = lanes / 32 * (size.tileSteps() * size.stepK / size.block) / 4;
  int64_t accumulators = hasTwoAccumulators(size, tile) ? 2 : 1;
  if (accumulators * tile.laneColumns() * size.products + 2 * columns <= target.tmemColumns)
    return 0;
  return rateOf(tile.pair ? hw::TimingRate::Tcgen05PairTail : hw::TimingRate::Tcgen05Tail, target) +
         rateOf(hw::TimingRate::MbarrierWake, target) +
         rateOf(hw::TimingRate::MbarrierTest, target) +
         rateOf(hw::TimingRate::ScaleCopyLatency, target);
}

static int64_t deepTiles(const MatmulSize &size) {
  return ceilDiv(ceilDiv(size.k, size.tileSteps() * size.stepK), size.splits);
}

/// Cycles from a CTA's accumulator in tensor memory to its part of the sums of all CTAs.
static double reductionCycles(const MatmulSize &size, const GemmTile &tile,
                              const hw::TargetModel &target) {
  constexpr double lanes = 128, sumBytes = 4, warp = 32;
  auto columns = double(tile.laneColumns()), others = 1 - 1 / double(size.splits);
  double read = columns * sumBytes * warp / rateOf(hw::TimingRate::TmemBytes, target);
  double sent =
      others * columns * lanes * sumBytes / rateOf(hw::TimingRate::RemoteStoreBytes, target);
  double added = columns * (lanes * sumBytes / rateOf(hw::TimingRate::SharedBytes, target) +
                            rateOf(hw::TimingRate::FmaInterval, target));
  return read + sent + added + rateOf(hw::TimingRate::RemoteArrive, target) +
         rateOf(hw::TimingRate::MbarrierWake, target) +
         rateOf(hw::TimingRate::SharedLatency, target);
}

/// Cycles of the fences that hand staged tiles over, beyond those of a plain epilogue of four
/// warps: with an epilogue region a thread stages its chunks one by one.
static double handOverCycles(const MatmulSize &size, const GemmTile &tile,
                             const hw::TargetModel &target) {
  constexpr double widest = 2 * EpilogueWork::kChunk;
  if (!size.epilogue.hasBody || size.epilogue.derives)
    return 0;
  auto columns = double(tile.laneColumns());
  double tiles = columns / double(tile.epilogueGroups * EpilogueWork::kChunk);
  return (tiles - columns / widest) * rateOf(hw::TimingRate::FenceProxyAsync, target);
}

/// Cycles in which every warp of the grid raises one number in memory.
static double foldCycles(const MatmulSize &size, const GemmTile &tile,
                         const hw::TargetModel &target) {
  if (!size.epilogue.foldsAmax)
    return 0;
  int64_t blocks = countWholeTiles(size, tile) * (tile.pair ? 2 : 1);
  auto warps = double(std::min<int64_t>(blocks, target.sms) * 4 * tile.epilogueGroups);
  return warps * rateOf(hw::TimingRate::AtomicInterval, target);
}

/// Cycles of storing, fitted to elements of 4 bytes. Codes take less in proportion to their bytes,
/// except for the sums, which are read once.
static double storingCycles(const MatmulSize &size, const GemmTile &tile,
                            const hw::TargetModel &target) {
  constexpr double columnBytes = 4 * 32, fittedBytes = 4;
  const EpilogueWork &work = size.epilogue;
  double read = columnBytes / rateOf(hw::TimingRate::TmemBytes, target);
  double stored = work.storesElements + work.derivedBytes / fittedBytes;
  double release = work.storesElements ? 0 : rateOf(hw::TimingRate::FenceProxyAsync, target);
  return release + double(tile.laneColumns() * size.products) *
                       (read + stored * (target.product->epilogueCyclesPerColumn - read));
}

double fp4::epilogueCycles(const MatmulSize &size, const GemmTile &tile,
                           const hw::TargetModel &target) {
  double all = storingCycles(size, tile, target) + workCycles(size, tile, target) +
               handOverCycles(size, tile, target);
  if (tile.joins)
    all = reductionCycles(size, tile, target) + all / double(size.splits);
  return all + foldCycles(size, tile, target);
}

/// Cycles of a tile that waits for `waited` cycles until threads have computed all results of the
/// tile before. Meanwhile loads fill the ring of stages, and no more.
static double heldCycles(const MatmulSize &size, const StepCost &step, double steps, double main,
                         double waited, const hw::TargetModel &target) {
  constexpr double stagedResults = 2 * 128 * 128;
  double kTile = double(size.tileSteps());
  double stages = (double(target.sharedBytesPerCta) - stagedResults) / (kTile * step.bytes);
  double filled = (std::floor(stages) - 1) * kTile * step.cycles;
  double multiplied = steps * step.issue + target.product->fillCycles;
  return std::max(multiplied + waited, main + std::max(0.0, waited - filled));
}

/// The cost of one tile, while `workers` have one each.
static TileCost tileCost(const MatmulSize &size, const GemmTile &tile, int64_t workers, bool isLast,
                         const hw::TargetModel &target) {
  const hw::MmaRates &rates = *target.product;
  int64_t active = std::min<int64_t>(workers * (tile.pair ? 2 : 1), target.sms);
  StepCost step = stepCost(size, tile, active, target);
  double steps = double(size.tileSteps() * deepTiles(size));
  if (size.stepK == 96) // a good part of a k tile of three panels often does not exist
    steps = double(ceilDiv(size.k, size.stepK));
  double bytes = double(std::min(size.m, tile.rowsOfA()) * std::min(size.n, tile.n)) *
                 ((leavesSums(size, tile) ? 4 : bytesOfElement(size)) * kStoreShare +
                  size.epilogue.inputBytes) /
                 double(tile.joins ? size.splits : 1);
  double main = steps * step.cycles + double(deepTiles(size)) * scaleCycles(size, tile, target) +
                rates.fillCycles + bytes / feedBytesPerCycle(active, target);
  double epilogue = epilogueCycles(size, tile, target);
  double serial = serialCycles(size, tile, isLast, target);
  double cycles = std::max(main + serial, epilogue);
  if (!isLast && !hasTwoAccumulators(size, tile) && !size.epilogue.isPlain())
    cycles = std::max(cycles, heldCycles(size, step, steps, main,
                                         serial + workCycles(size, tile, target), target));
  // The fit is for plain GEMMs, and has an epilogue beside the first tile too.
  double first = size.epilogue.isPlain() ? cycles : main + serial;
  return {first, cycles, cycles > main + serial ? GemmBound::Epilogue : step.bound};
}

GemmCost fp4::gemmCost(const MatmulSize &size, const GemmTile &tile,
                       const hw::TargetModel &target) {
  assert(target.product && "a GEMM of tiles expects tcgen05");
  if (tile.transposed)
    return gemmCost(transposed(size), unswapped(tile), target);
  int64_t tiles = countWholeTiles(size, tile), workers = gemmWorkers(tile, target);
  int64_t waves = tiles / workers, rest = tiles % workers;
  double epilogue = epilogueCycles(size, tile, target);
  TileCost whole = tileCost(size, tile, waves ? workers : rest, waves + (rest > 0) < 2, target);
  // No epilogue runs beside the first tile, and nothing else runs behind the last one.
  double busy = whole.first + double(std::max<int64_t>(waves, 1) - 1) * whole.cycles;
  if (waves && rest) // workers to which L2 delivers more
    busy += tileCost(size, tile, rest, false, target).cycles;
  double join = size.splits > 1 && !tile.joins ? double(size.splits) * epilogue
                                               : 0; // of the last CTA
  if (int64_t sharers = size.sharers; sharers > 0 && tiles % sharers) {
    double each = double(tiles) / double(sharers);
    busy = each * tileCost(size, tile, workers, false, target).cycles;
    join = 2 * target.product->fillCycles + epilogue + std::max(2.0, 1 / each) * epilogue;
  }
  busy += target.product->tailCycles + epilogue + join;
  double memory = memoryCycles(operandBytes(size), writtenBytes(size, tile), target);
  return {std::max(busy, memory) + target.product->launchCycles, busy,
          memory > busy ? GemmBound::Memory : whole.bound};
}

//===----------------------------------------------------------------------===//
// Stores of results
//===----------------------------------------------------------------------===//

double fp4::directStoreCycles(const MatmulSize &size, const GemmTile &tile,
                              const hw::TargetModel &target) {
  double bytes =
      double(std::min(size.m, tile.rowsOfA()) * std::min(size.n, tile.n) * size.resultBytes);
  return double(wavesOf(size, tile, target)) * 2 * bytes / target.product->l2BytesPerCycle;
}

double fp4::stagedStoreCycles(const MatmulSize &size, const GemmTile &tile,
                              const hw::TargetModel &target) {
  // Bytes of a staged tile that are left when somebody waits for it: half of one.
  constexpr double left = 8192;
  double handOver = rateOf(hw::TimingRate::FenceProxyAsync, target) +
                    rateOf(hw::TimingRate::MbarrierWake, target) +
                    rateOf(hw::TimingRate::StoreLatency, target) +
                    left / rateOf(hw::TimingRate::StoreBytes, target);
  return directStoreCycles(size, tile, target) / 2 + handOver;
}

int64_t fp4::stagesThatCoverLoads(const MatmulSize &size, const GemmTile &tile, int64_t tileK,
                                  int64_t stageBytes, const hw::TargetModel &target) {
  // Cycles from the release of a stage over its copies and MMAs to the next release.
  double turn =
      rateOf(hw::TimingRate::MbarrierTest, target) * 2 +
      rateOf(hw::TimingRate::MbarrierWake, target) + rateOf(hw::TimingRate::TmaIssue, target) +
      rateOf(hw::TimingRate::L2Latency, target) + rateOf(hw::TimingRate::TmaLatency, target) +
      rateOf(hw::TimingRate::Tcgen05Tail, target) +
      double(stageBytes) / rateOf(hw::TimingRate::TmaBytes, target);
  double steps = double(tileK) / double(size.stepK);
  return 1 + int64_t(std::ceil(turn / (steps * stepCost(size, tile, target.sms, target).cycles)));
}

/// The most bytes that copies of a CTA get, at a clock that is lower by a third: 1.3 GHz, at which
/// published large GEMMs ran, and 1.965 GHz, the clock of the rates. L2 then delivers more in a
/// cycle.
static double mostFeed(int64_t active, const hw::TargetModel &target) {
  constexpr double lowered = 2.0 / 3;
  double all = rateOf(hw::TimingRate::L2SharedTerabytes, target) * 1000 /
               (lowered * rateOf(hw::TimingRate::Gigahertz, target));
  return std::min(rateOf(hw::TimingRate::L2PortBytes, target), all / double(active));
}

double fp4::gainOfScaleWarp(const MatmulSize &size, const GemmTile &tile,
                            const hw::TargetModel &target) {
  if (tile.transposed)
    return gainOfScaleWarp(transposed(size), unswapped(tile), target);
  int64_t tiles = countWholeTiles(size, tile), workers = gemmWorkers(tile, target);
  double one = 0, two = 0, steps = double(size.tileSteps());
  auto addWaves = [&](int64_t waves, int64_t busy) {
    int64_t active = std::min<int64_t>(busy * (tile.pair ? 2 : 1), target.sms);
    StepCost step = stepCost(size, tile, active, target);
    double loads = steps * step.bytes / mostFeed(active, target), products = steps * step.issue;
    double last = step.issue / double(size.products); // MMA, behind which copies hide
    double bare = std::max(0.0, rateOf(hw::TimingRate::ScaleCopyLatency, target) - last);
    one += double(waves) * std::max(products + bare, loads);
    two += double(waves) * std::max(products, loads);
  };
  if (int64_t waves = tiles / workers)
    addWaves(waves, workers);
  if (int64_t rest = tiles % workers)
    addWaves(1, rest);
  return one / two - 1;
}

GemmTile fp4::cheapestTile(llvm::ArrayRef<GemmTile> candidates, const MatmulSize &size,
                           const hw::TargetModel &target) {
  auto rankOf = [&](const GemmTile &tile) {
    constexpr double leastGain = 1.01;
    GemmCost cost = gemmCost(size, tile, target);
    bool hasMore = tile.epilogueGroups > 1 || (tile.clusterN > 1 && tile.pair && !tile.joins);
    double factor = hasMore ? leastGain : 1;
    return std::pair(factor * cost.cycles,
                     factor * cost.busy); // if memory bounds several tiles, the rest decides
  };
  GemmTile best = candidates.front();
  for (const GemmTile &tile : candidates.drop_front())
    if (rankOf(tile) < rankOf(best))
      best = tile;
  return best;
}

int64_t fp4::evenPanel(double width, int64_t columns) {
  int64_t best = std::clamp<int64_t>(std::llround(width), 1, columns);
  double least = width / 4;
  auto most = std::min(columns, int64_t(std::ceil(width + least)));
  for (int64_t divisor = 1; divisor <= most; ++divisor)
    if (double off = std::abs(double(divisor) - width); columns % divisor == 0 && off <= least) {
      best = divisor;
      least = off;
    }
  return best;
}

std::optional<int64_t> fp4::choosePanel(const MatmulSize &size, const GemmTile &tile,
                                        const hw::TargetModel &target) {
  if (tile.transposed)
    return choosePanel(transposed(size), unswapped(tile), target);
  if (operandBytes(size) + writtenBytes(size, tile) <= double(target.l2Bytes))
    return std::nullopt;
  // Panels of w columns of tiles and workers / w rows at a time read w * n + workers / w * rows
  // operand rows.
  double workers = double(gemmWorkers(tile, target));
  double width = std::sqrt(workers * double(tile.rows()) / double(tile.n)) / double(tile.clusterN);
  int64_t columns = ceilDiv(size.n, tile.n * tile.clusterN);
  return evenPanel(width, columns);
}
