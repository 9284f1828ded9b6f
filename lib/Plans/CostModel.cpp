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
#include <utility>

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

static const std::array<double, hw::timingRateCount> &ratesOf(const hw::TargetModel &target) {
  static const auto rates = ratesByTarget();
  return rates.find(target.name)->second;
}

double fp4::rateOf(hw::TimingRate which, const hw::TargetModel &target) {
  return ratesOf(target)[size_t(which)];
}

/// Constants fitted with the rates of lib/ISA/Targets.cpp (benchmarks/analysis/fit_gemms.py): bytes
/// that could have been loaded while one byte of a result is stored, and TB/s that device memory
/// takes of results.
static constexpr double kStoreShare = 2.324, kWriteTerabytes = 4.281;

double fp4::feedBytesPerCycle(int64_t sms, const hw::TargetModel &target) {
  constexpr double ofB200 = 148; // that share the bandwidth of L2
  bool isKnown = hw::timingRate(target.name, hw::TimingRate::L2SharedTerabytes);
  double share = isKnown ? 1 : target.sms / ofB200;
  double all =
      rateOf(hw::TimingRate::L2SharedTerabytes, target) * share * 1000 / target.product->gigahertz;
  return std::min<double>(target.product->l2BytesPerCycle, all / double(sms));
}

double fp4::joinedTime(std::initializer_list<double> parts, double power) {
  double most = std::max(parts), sum = 0;
  for (double part : parts)
    sum += std::pow(part / most, power);
  return most * std::pow(sum, 1 / power);
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

int64_t fp4::countTiles(const MatmulSize &size, int64_t rows, int64_t columns) {
  int64_t tilesM = size.groups.empty() ? ceilDiv(size.m, rows) : 0;
  for (int64_t ofGroup : size.groups)
    tilesM += ceilDiv(ofGroup, rows);
  return tilesM * ceilDiv(size.n, columns);
}

namespace {
constexpr int64_t kWidestTileN = 256;

/// The cost of one instruction.
struct StepCost {
  double issue;  ///< cycles of the tensor core
  double cycles; ///< cycles with operands from the L2 cache
  double bytes;  ///< bytes that a CTA loads for an instruction
  GemmBound bound;
};
/// The cost of one tile.
struct TileCost {
  double first;  ///< cycles without the epilogue of another tile beside it
  double cycles; ///< cycles behind other tiles
  GemmBound bound;
};

/// A GEMM of `tile`, and what its parts take. The GEMM of swapped operands is the one that the
/// tensor core computes.
class TileModel {
  using enum hw::TimingRate;

public:
  TileModel(const MatmulSize &given, const GemmTile &ofPlan, const hw::TargetModel &target)
      : size(given), tile(ofPlan), target(target), rates(ratesOf(target)) {
    assert(target.product && "a GEMM of tiles expects tcgen05");
    if (std::exchange(tile.transposed, false))
      std::swap(size.m, size.n);
  }

  /// The cost of an instruction with `active` SMs at work.
  StepCost stepCost(int64_t active) const {
    constexpr double kStep = 64;
    const double stepBytes = double(size.stepBytes);
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
  double bytesOfElement() const {
    return (size.epilogue.storesElements ? double(size.resultBytes) : 0) +
           size.epilogue.derivedBytes;
  }

  /// Bytes that the kernel must read, or write, at least once. A split-K range also writes its
  /// sums, which are read again.
  double operandBytes() const {
    double perRow =
        double(size.k * size.stepBytes) / double(size.stepK) + double(size.k) / double(size.block);
    double rowsOfB =
        double(size.n * size.products) * double(std::max<size_t>(1, size.groups.size()));
    return (double(size.m) + rowsOfB) * perRow +
           double(size.m) * double(size.n) * size.epilogue.inputBytes;
  }
  double writtenBytes() const {
    double sums = size.splits > 1 && !tile.joins ? 2.0 * 4 * double(size.splits) : 0;
    return double(size.m) * double(size.n) * (bytesOfElement() + sums);
  }

  /// Tiles of the result that whole clusters take.
  int64_t countWholeTiles() const {
    int64_t together = tile.joins ? 1 : tile.clusterM / (tile.pair ? 2 : 1);
    return countTiles(size, tile.rows() * together, tile.n * tile.clusterN) * together *
           tile.clusterN * size.splits;
  }

  /// Tiles that a worker takes one after the other.
  int64_t waves() const { return ceilDiv(countWholeTiles(), gemmWorkers(tile, target)); }

  /// Returns true when CTAs leave sums in a workspace.
  bool leavesSums() const { return (size.splits > 1 && !tile.joins) || size.sharers > 0; }

  /// Returns true when tensor memory has two accumulators beside the scales.
  bool hasTwoAccumulators() const {
    return tile.laneColumns() * size.products <= (size.stepK == 96 ? 128 : 192);
  }

  /// Columns of a thread that are code without a loop: all of them if they stay in registers.
  int64_t writtenColumns() const {
    const EpilogueWork &work = size.epilogue;
    bool holds = !hasTwoAccumulators() && (work.derives || size.products == 1 || waves() > 1);
    return holds || work.foldsAmax ? tile.laneColumns() / tile.epilogueGroups : work.group;
  }

  /// Cycles of a column of 32 rows. A warp alone waits for results that its next instructions need,
  /// and for instructions that do not fit the nearest cache; two warps of a scheduler wait at other
  /// times.
  double columnCycles() const {
    const SchedulerCycles &work = size.epilogue.column;
    double alone = work.alone;
    if (work.instructions * double(writtenColumns()) > rate(FetchInstructions))
      alone = std::max(alone, work.instructions * rate(FetchInterval));
    return std::max(work.busy, alone / double(tile.epilogueGroups));
  }

  /// Cycles that the threads of an epilogue compute and wait for a tile, beyond the conversion that
  /// every epilogue has: a chunk of columns loads its inputs when it has its sums. Matrices come
  /// from device memory.
  double workCycles() const {
    const EpilogueWork &work = size.epilogue;
    auto columns = double(tile.laneColumns());
    double wait = 0;
    if (work.loadsColumns)
      wait = rate(L2Latency);
    if (work.inputBytes > 0)
      wait = rate(MemoryLatency);
    double stored = work.storesElements ? work.conversion.alone : 0; // storingCycles has it
    return columns * (columnCycles() - stored) +
           columns / double(tile.epilogueGroups * EpilogueWork::kChunk) * wait;
  }

  /// Cycles by which a tile with the only accumulator delays the next tile. SERIAL is fitted to
  /// kernels that store each part before they read the next. The compiler's kernels read the last
  /// columns, as many as registers have room for, before they store any of these: each such column
  /// is then only read, scaled and converted. If accumulators overlap, the next tile waits until
  /// their common columns are read.
  double serialCycles(bool isLast) const {
    constexpr double registers = 128, columnBytes = 4 * 32; // of a thread; of a warp
    const double common = size.stepK == 96 ? 128 : 96;
    bool overlaps = (size.stepK != 96 || tile.n == kWidestTileN) && size.epilogue.isPlain() &&
                    tile.epilogueGroups == 1;
    if (hasTwoAccumulators())
      return 0;
    double columns = double(tile.laneColumns() * size.products);
    double read = columnBytes / rate(TmemBytes);
    if (!isLast && size.products == 1 && overlaps && !leavesSums() && !tile.joins)
      return common * read;
    if (tile.joins) // all columns are read before any is added
      return columns * read;
    double resultBytes = leavesSums() ? 4 : double(size.resultBytes);
    double held = std::min(columns, registers * 4 / resultBytes / (size.epilogue.hasBody ? 2 : 1));
    if (!size.epilogue.storesElements) // codes and scales leave when all is read
      held = columns;
    double perColumn = read + rate(FmaInterval) + rate(AluInterval);
    double stored = target.product->epilogueCyclesPerColumn * (columns - held);
    return target.product->serialShare * stored + held * perColumn;
  }

  /// Cycles that each k tile waits if tensor memory has one set of scales: the scales of a k tile
  /// are copied when the MMAs of the one before are done.
  double scaleCycles() const {
    if (size.stepK == 96 && tile.n == kWidestTileN)
      return 0; // scales are copied in parts, of which three have room
    int64_t lanes = kGemmTileM + scaleBlocksOfB(tile) * (tile.narrow ? 64 : 128) * size.products;
    int64_t columns = lanes / 32 * (size.tileSteps() * size.stepK / size.block) / 4;
    int64_t accumulators = hasTwoAccumulators() ? 2 : 1;
    if (accumulators * tile.laneColumns() * size.products + 2 * columns <=
        target.limits.tmemColumns)
      return 0;
    return rate(tile.pair ? Tcgen05PairTail : Tcgen05Tail) + rate(MbarrierWake) +
           rate(MbarrierTest) + rate(ScaleCopyLatency);
  }

  int64_t deepTiles() const {
    return ceilDiv(ceilDiv(size.k, size.tileSteps() * size.stepK), size.splits);
  }

  /// Cycles from a CTA's accumulator in tensor memory to its part of the sums of all CTAs.
  double reductionCycles() const {
    constexpr double lanes = 128, sumBytes = 4, warp = 32;
    auto columns = double(tile.laneColumns()), others = 1 - 1 / double(size.splits);
    double read = columns * sumBytes * warp / rate(TmemBytes);
    double sent = others * columns * lanes * sumBytes / rate(RemoteStoreBytes);
    double added = columns * (lanes * sumBytes / rate(SharedBytes) + rate(FmaInterval));
    return read + sent + added + rate(RemoteArrive) + rate(MbarrierWake) + rate(SharedLatency);
  }

  /// Cycles of the fences that hand staged tiles over, beyond those of a plain epilogue of four
  /// warps: with an epilogue region a thread stages its chunks one by one.
  double handOverCycles() const {
    constexpr double widest = 2 * EpilogueWork::kChunk;
    if (!size.epilogue.hasBody || size.epilogue.derives)
      return 0;
    auto columns = double(tile.laneColumns());
    double tiles = columns / double(tile.epilogueGroups * EpilogueWork::kChunk);
    return (tiles - columns / widest) * rate(FenceProxyAsync);
  }

  /// Cycles in which every warp of the grid raises one number in memory.
  double foldCycles() const {
    if (!size.epilogue.foldsAmax)
      return 0;
    int64_t blocks = countWholeTiles() * (tile.pair ? 2 : 1);
    auto warps = double(std::min<int64_t>(blocks, target.sms) * 4 * tile.epilogueGroups);
    return warps * rate(AtomicInterval);
  }

  /// Cycles of storing, fitted to elements of 4 bytes. Codes take less in proportion to their
  /// bytes, except for the sums, which are read once.
  double storingCycles() const {
    constexpr double columnBytes = 4 * 32, fittedBytes = 4;
    const EpilogueWork &work = size.epilogue;
    double read = columnBytes / rate(TmemBytes);
    double stored = work.storesElements + work.derivedBytes / fittedBytes;
    double release = work.storesElements ? 0 : rate(FenceProxyAsync);
    return release + double(tile.laneColumns() * size.products) *
                         (read + stored * (target.product->epilogueCyclesPerColumn - read));
  }

  double epilogueCycles() const {
    double all = storingCycles() + workCycles() + handOverCycles();
    if (tile.joins)
      all = reductionCycles() + all / double(size.splits);
    return all + foldCycles();
  }

  /// Cycles of a tile that waits for `waited` cycles until threads have computed all results of the
  /// tile before. Meanwhile loads fill the ring of stages, and no more.
  double heldCycles(const StepCost &step, double steps, double main, double waited) const {
    constexpr double stagedResults = 2 * 128 * 128;
    double kTile = double(size.tileSteps());
    double stages =
        (double(target.limits.sharedBytesPerCta) - stagedResults) / (kTile * step.bytes);
    double filled = (std::floor(stages) - 1) * kTile * step.cycles;
    double multiplied = steps * step.issue + target.product->fillCycles;
    return std::max(multiplied + waited, main + std::max(0.0, waited - filled));
  }

  /// The cost of one tile, while `workers` have one each.
  TileCost tileCost(int64_t workers, bool isLast) const {
    const hw::MmaRates &rates = *target.product;
    int64_t active = std::min<int64_t>(workers * (tile.pair ? 2 : 1), target.sms);
    StepCost step = stepCost(active);
    double steps = double(size.tileSteps() * deepTiles());
    if (size.stepK == 96) // a good part of a k tile of three panels often does not exist
      steps = double(ceilDiv(size.k, size.stepK));
    double bytes =
        double(std::min(size.m, tile.rowsOfA()) * std::min(size.n, tile.n)) *
        ((leavesSums() ? 4 : bytesOfElement()) * kStoreShare + size.epilogue.inputBytes) /
        double(tile.joins ? size.splits : 1);
    double main = steps * step.cycles + double(deepTiles()) * scaleCycles() + rates.fillCycles +
                  bytes / feedBytesPerCycle(active, target);
    double epilogue = epilogueCycles();
    double serial = serialCycles(isLast);
    double cycles = std::max(main + serial, epilogue);
    if (!isLast && !hasTwoAccumulators() && !size.epilogue.isPlain())
      cycles = std::max(cycles, heldCycles(step, steps, main, serial + workCycles()));
    // The fit is for plain GEMMs, and has an epilogue beside the first tile too.
    double first = size.epilogue.isPlain() ? cycles : main + serial;
    return {first, cycles, cycles > main + serial ? GemmBound::Epilogue : step.bound};
  }

  GemmCost cost() const {
    int64_t tiles = countWholeTiles(), workers = gemmWorkers(tile, target);
    int64_t wholeWaves = tiles / workers, rest = tiles % workers;
    double epilogue = epilogueCycles();
    TileCost whole = tileCost(wholeWaves ? workers : rest, wholeWaves + (rest > 0) < 2);
    // No epilogue runs beside the first tile, and nothing else runs behind the last one.
    double busy = whole.first + double(std::max<int64_t>(wholeWaves, 1) - 1) * whole.cycles;
    if (wholeWaves && rest) // workers to which L2 delivers more
      busy += tileCost(rest, false).cycles;
    double join =
        size.splits > 1 && !tile.joins ? double(size.splits) * epilogue : 0; // of the last CTA
    if (int64_t sharers = size.sharers; sharers > 0 && tiles % sharers) {
      double each = double(tiles) / double(sharers);
      busy = each * tileCost(workers, false).cycles;
      join = 2 * target.product->fillCycles + epilogue + std::max(2.0, 1 / each) * epilogue;
    }
    busy += target.product->tailCycles + epilogue + join;
    double memory = memoryCycles(operandBytes(), writtenBytes(), target);
    return {std::max(busy, memory) + target.product->launchCycles, busy,
            memory > busy ? GemmBound::Memory : whole.bound};
  }

  //===--- Stores of results ------------------------------------------------===//

  /// Cycles that the port of an SM to the L2 cache takes for the results of all its tiles. A thread
  /// has a row and stores 16 bytes of it at a time, each of which takes a whole sector of 32 bytes.
  double directStoreCycles() const {
    double bytes =
        double(std::min(size.m, tile.rowsOfA()) * std::min(size.n, tile.n) * size.resultBytes);
    return double(waves()) * 2 * bytes / target.product->l2BytesPerCycle;
  }

  /// Cycles of the port if results leave through shared memory, in whole sectors, and of handing
  /// the last tile over: a fence of the proxy, a barrier, and a bulk store that reads its source.
  double stagedStoreCycles() const {
    // Bytes of a staged tile that are left when somebody waits for it: half of one.
    constexpr double left = 8192;
    double handOver =
        rate(FenceProxyAsync) + rate(MbarrierWake) + rate(StoreLatency) + left / rate(StoreBytes);
    return directStoreCycles() / 2 + handOver;
  }

  int64_t stagesThatCoverLoads(int64_t tileK, int64_t stageBytes) const {
    // Cycles from the release of a stage over its copies and MMAs to the next release.
    double turn = rate(MbarrierTest) * 2 + rate(MbarrierWake) + rate(TmaIssue) + rate(L2Latency) +
                  rate(TmaLatency) + rate(Tcgen05Tail) + double(stageBytes) / rate(TmaBytes);
    double steps = double(tileK) / double(size.stepK);
    return 1 + int64_t(std::ceil(turn / (steps * stepCost(target.sms).cycles)));
  }

  /// The most bytes that copies of a CTA get, at a clock that is lower by a third: 1.3 GHz, at
  /// which published large GEMMs ran, and 1.965 GHz, the clock of the rates. L2 then delivers more
  /// in a cycle.
  double mostFeed(int64_t active) const {
    constexpr double lowered = 2.0 / 3;
    double all = rate(L2SharedTerabytes) * 1000 / (lowered * rate(Gigahertz));
    return std::min(rate(L2PortBytes), all / double(active));
  }

  double gainOfScaleWarp() const {
    int64_t tiles = countWholeTiles(), workers = gemmWorkers(tile, target);
    double one = 0, two = 0, steps = double(size.tileSteps());
    auto addWaves = [&](int64_t waves, int64_t busy) {
      int64_t active = std::min<int64_t>(busy * (tile.pair ? 2 : 1), target.sms);
      StepCost step = stepCost(active);
      double loads = steps * step.bytes / mostFeed(active), products = steps * step.issue;
      double last = step.issue / double(size.products); // MMA, behind which copies hide
      double bare = std::max(0.0, rate(ScaleCopyLatency) - last);
      one += double(waves) * std::max(products + bare, loads);
      two += double(waves) * std::max(products, loads);
    };
    if (int64_t waves = tiles / workers)
      addWaves(waves, workers);
    if (int64_t rest = tiles % workers)
      addWaves(1, rest);
    return one / two - 1;
  }

  std::optional<int64_t> choosePanel() const {
    if (operandBytes() + writtenBytes() <= double(target.l2Bytes))
      return std::nullopt;
    // Panels of w columns of tiles and workers / w rows at a time read w * n + workers / w * rows
    // operand rows.
    double workers = double(gemmWorkers(tile, target));
    double width =
        std::sqrt(workers * double(tile.rows()) / double(tile.n)) / double(tile.clusterN);
    int64_t columns = ceilDiv(size.n, tile.n * tile.clusterN);
    return evenPanel(width, columns);
  }

private:
  double rate(hw::TimingRate which) const { return rates[size_t(which)]; }

  MatmulSize size;
  GemmTile tile;
  const hw::TargetModel &target;
  const std::array<double, hw::timingRateCount> &rates;
};
} // namespace

//===----------------------------------------------------------------------===//
// Questions to the model
//===----------------------------------------------------------------------===//

double fp4::epilogueCycles(const MatmulSize &size, const GemmTile &tile,
                           const hw::TargetModel &target) {
  return TileModel(size, tile, target).epilogueCycles();
}

GemmCost fp4::gemmCost(const MatmulSize &size, const GemmTile &tile,
                       const hw::TargetModel &target) {
  return TileModel(size, tile, target).cost();
}

bool fp4::isStagingFaster(const MatmulSize &size, const GemmTile &tile,
                          const hw::TargetModel &target) {
  TileModel model(size, tile, target);
  return model.stagedStoreCycles() < model.directStoreCycles();
}

int64_t fp4::stagesThatCoverLoads(const MatmulSize &size, const GemmTile &tile, int64_t tileK,
                                  int64_t stageBytes, const hw::TargetModel &target) {
  return TileModel(size, tile, target).stagesThatCoverLoads(tileK, stageBytes);
}

double fp4::gainOfScaleWarp(const MatmulSize &size, const GemmTile &tile,
                            const hw::TargetModel &target) {
  return TileModel(size, tile, target).gainOfScaleWarp();
}

std::optional<int64_t> fp4::choosePanel(const MatmulSize &size, const GemmTile &tile,
                                        const hw::TargetModel &target) {
  return TileModel(size, tile, target).choosePanel();
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
