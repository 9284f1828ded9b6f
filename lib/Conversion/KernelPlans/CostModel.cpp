//===- CostModel.cpp - What the tiles of a product cost -------------------===//

#include "CostModel.h"

#include "fp4/ISA/TimingRates.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

using namespace fp4;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::string_view fp4::spell(ProductBound bound) {
  switch (bound) {
  case ProductBound::TensorCore:
    return "the tensor core";
  case ProductBound::L2Feed:
    return "what the L2 cache delivers";
  case ProductBound::Epilogue:
    return "the epilogue";
  case ProductBound::Memory:
    return "device memory";
  }
  llvm_unreachable("every bound has its words");
}

/// A rate of the target, or of B200 where nobody published one.
static double cyclesOf(hw::TimingRate which, const hw::TargetModel &target) {
  const hw::Rate *rate = hw::timingRate(target.name, which);
  return *(rate ? rate : hw::timingRate("sm_100a", which));
}

/// Fitted with the rates of lib/ISA/Targets.cpp (utils/fit_products.py): bytes that could have been
/// loaded while one byte of a result is stored, and TB/s that device memory takes of results.
static constexpr double kStoreShare = 2.324, kWriteTerabytes = 4.281;

double fp4::feedBytesPerCycle(int64_t multiprocessors, const hw::TargetModel &target) {
  constexpr double ofB200 = 148; // share what it delivers
  bool isKnown = hw::timingRate(target.name, hw::TimingRate::L2SharedTerabytes);
  double share = isKnown ? 1 : target.multiprocessors / ofB200;
  double all = cyclesOf(hw::TimingRate::L2SharedTerabytes, target) * share * 1000 /
               target.product->gigahertz;
  return std::min<double>(target.product->l2BytesPerCycle, all / double(multiprocessors));
}

double fp4::memoryCycles(double read, double written, const hw::TargetModel &target) {
  return read / target.product->memoryBytesPerCycle +
         written * target.product->gigahertz / (kWriteTerabytes * 1000);
}

double fp4::multiplyCycles(double operations, double operandBytes, const hw::TargetModel &target) {
  return std::max(operations / target.product->flopsPerCycle,
                  operandBytes / target.product->sharedBytesPerCycle);
}

int64_t fp4::productWorkers(const ProductTile &tile, const hw::TargetModel &target) {
  int64_t blocks = target.multiprocessors;
  if (tile.blocks() >= 4)
    blocks = std::llround(double(blocks) * target.product->clusteredShare);
  int64_t clusters = std::max<int64_t>(1, blocks / tile.blocks());
  return clusters * tile.blocks() / (tile.pair ? 2 : 1);
}

/// Blocks of 128 rows of scales that the columns of a tile lie in, wherever it begins.
static int64_t scaleBlocksOfB(const ProductTile &tile) {
  constexpr int64_t block = 128;
  if (tile.narrow)
    return 2; // one for each half of the columns
  return ceilDiv(block - std::gcd(tile.n, block) + tile.n, block);
}

/// Cycles of one instruction, and what takes them, with `active` multiprocessors at work.
static ProductCost stepCost(const MatmulSize &size, const ProductTile &tile, int64_t active,
                            const hw::TargetModel &target) {
  constexpr double kStep = 64;
  const double stepBytes = double(size.stepBytes());
  double rows = double(tile.rowsOfA() + tile.rowsOfB() * size.products);
  double columns = double(tile.n * size.products);
  double issue =
      multiplyCycles(2.0 * double(tile.rowsOfA()) * columns * kStep, rows * stepBytes, target);
  double scaleRows = kProductTileM + double(scaleBlocksOfB(tile) * 128 * size.products);
  double delivered =
      double(std::min(size.m, tile.rowsOfA()) + std::min(size.n, tile.rowsOfB()) * size.products);
  double bytes = delivered * stepBytes + scaleRows * (double(size.stepK) / double(size.block));
  double feed = bytes / feedBytesPerCycle(active, target);
  return {std::max(issue, feed), 0,
          issue >= feed ? ProductBound::TensorCore : ProductBound::L2Feed};
}

/// Bytes that the kernel must read, or write, at least once; a range of K besides writes its sums,
/// which are read again.
static double operandBytes(const MatmulSize &size) {
  double perRow = double(size.k * size.stepBytes()) / double(size.stepK) + double(size.k) / double(size.block);
  double rowsOfB =
      double(size.n * size.products) * double(std::max<size_t>(1, size.groups.size()));
  return (double(size.m) + rowsOfB) * perRow;
}
static double writtenBytes(const MatmulSize &size, const ProductTile &tile) {
  double sums = size.splits > 1 && !tile.joins ? 2.0 * 4 * double(size.splits) : 0;
  return double(size.m) * double(size.n) * (double(size.resultBytes) + sums);
}

int64_t fp4::countTiles(const MatmulSize &size, int64_t rows, int64_t columns) {
  int64_t tilesM = size.groups.empty() ? ceilDiv(size.m, rows) : 0;
  for (int64_t ofGroup : size.groups)
    tilesM += ceilDiv(ofGroup, rows);
  return tilesM * ceilDiv(size.n, columns);
}

/// Tiles of the result, of clusters that are whole.
static int64_t countWholeTiles(const MatmulSize &size, const ProductTile &tile) {
  int64_t together = tile.joins ? 1 : tile.clusterM / (tile.pair ? 2 : 1);
  return countTiles(size, tile.rows() * together, tile.n * tile.clusterN) * together *
         tile.clusterN * size.splits;
}

/// Tiles that a worker takes one after the other.
static int64_t wavesOf(const MatmulSize &size, const ProductTile &tile,
                       const hw::TargetModel &target) {
  return ceilDiv(countWholeTiles(size, tile), productWorkers(tile, target));
}

/// What the tensor core computes where operands are swapped.
static MatmulSize transposed(MatmulSize size) {
  std::swap(size.m, size.n);
  return size;
}
static ProductTile unswapped(ProductTile tile) {
  tile.swap = false;
  return tile;
}

/// Blocks leave sums in a workspace.
static bool leavesSums(const MatmulSize &size, const ProductTile &tile) {
  return (size.splits > 1 && !tile.joins) || size.sharers > 0;
}

static constexpr int64_t kWidestTileN = 256;

/// Tensor memory has two accumulators beside the scales.
static bool hasTwoAccumulators(const MatmulSize &size, const ProductTile &tile) {
  return tile.laneColumns() * size.products <= (size.stepK == 96 ? 128 : 192);
}

/// What a tile whose accumulator is the only one keeps from the next tile. SERIAL is of kernels
/// that store each part before they read the next. Ours read the last columns, as many as registers
/// hold results of, before they store any of these: each is then only read, scaled and converted.
/// Where accumulators overlap, the next tile waits until what they have in common is read.
static double serialCycles(const MatmulSize &size, const ProductTile &tile, bool isLast,
                           const hw::TargetModel &target) {
  constexpr double registers = 128, columnBytes = 4 * 32; // of a thread; of a warp
  const double common = size.stepK == 96 ? 128 : 96;
  bool overlaps = size.stepK != 96 || tile.n == kWidestTileN;
  if (hasTwoAccumulators(size, tile))
    return 0;
  double columns = double(tile.laneColumns() * size.products);
  double read = columnBytes / cyclesOf(hw::TimingRate::TmemBytes, target);
  if (!isLast && size.products == 1 && overlaps && !leavesSums(size, tile) && !tile.joins)
    return common * read;
  if (tile.joins) // all of it is read before any of it is added
    return columns * read;
  double resultBytes = leavesSums(size, tile) ? 4 : double(size.resultBytes);
  double held = std::min(columns, registers * 4 / resultBytes);
  double perColumn = read + cyclesOf(hw::TimingRate::FmaInterval, target) +
                     cyclesOf(hw::TimingRate::AluInterval, target);
  double stored = target.product->epilogueCyclesPerColumn * (columns - held);
  return target.product->serialShare * stored + held * perColumn;
}

/// What each k tile waits for where tensor memory has one set of scales: its scales are copied when
/// the products of the one before are done.
static double scaleCycles(const MatmulSize &size, const ProductTile &tile,
                          const hw::TargetModel &target) {
  if (size.stepK == 96 && tile.n == kWidestTileN)
    return 0; // they are copied in parts, of which three have room
  int64_t lanes = kProductTileM + scaleBlocksOfB(tile) * (tile.narrow ? 64 : 128) * size.products;
  int64_t columns = lanes / 32 * (size.tileSteps() * size.stepK / size.block) / 4;
  int64_t accumulators = hasTwoAccumulators(size, tile) ? 2 : 1;
  if (accumulators * tile.laneColumns() * size.products + 2 * columns <= target.tmemColumns)
    return 0;
  return cyclesOf(tile.pair ? hw::TimingRate::Tcgen05PairTail : hw::TimingRate::Tcgen05Tail,
                  target) +
         cyclesOf(hw::TimingRate::MbarrierWake, target) +
         cyclesOf(hw::TimingRate::MbarrierTest, target) +
         cyclesOf(hw::TimingRate::ScaleCopyLatency, target);
}

static int64_t deepTiles(const MatmulSize &size) {
  return ceilDiv(ceilDiv(size.k, size.tileSteps() * size.stepK), size.splits);
}

/// From a block's accumulator in tensor memory to its part of the sums of all.
static double joinCycles(const MatmulSize &size, const ProductTile &tile,
                         const hw::TargetModel &target) {
  constexpr double lanes = 128, sumBytes = 4, warp = 32;
  auto columns = double(tile.laneColumns()), others = 1 - 1 / double(size.splits);
  double read = columns * sumBytes * warp / cyclesOf(hw::TimingRate::TmemBytes, target);
  double sent =
      others * columns * lanes * sumBytes / cyclesOf(hw::TimingRate::RemoteStoreBytes, target);
  double added =
      columns * (lanes * sumBytes / cyclesOf(hw::TimingRate::SharedBytes, target) +
                 cyclesOf(hw::TimingRate::FmaInterval, target));
  return read + sent + added + cyclesOf(hw::TimingRate::RemoteArrive, target) +
         cyclesOf(hw::TimingRate::MbarrierWake, target) +
         cyclesOf(hw::TimingRate::SharedLatency, target);
}

static double epilogueCycles(const MatmulSize &size, const ProductTile &tile,
                             const hw::TargetModel &target) {
  double all =
      target.product->epilogueCyclesPerColumn * double(tile.laneColumns() * size.products);
  return tile.joins ? joinCycles(size, tile, target) + all / double(size.splits) : all;
}

/// Of one tile, while `workers` have one each.
static ProductCost tileCost(const MatmulSize &size, const ProductTile &tile, int64_t workers,
                            bool isLast, const hw::TargetModel &target) {
  const hw::ProductRates &rates = *target.product;
  int64_t active = std::min<int64_t>(workers * (tile.pair ? 2 : 1), target.multiprocessors);
  ProductCost step = stepCost(size, tile, active, target);
  double steps = double(size.tileSteps() * deepTiles(size));
  if (size.stepK == 96) // of a k tile of three panels often a good part does not exist
    steps = double(ceilDiv(size.k, size.stepK));
  double bytes = double(std::min(size.m, tile.rowsOfA()) * std::min(size.n, tile.n)) *
                 double(leavesSums(size, tile) ? 4 : size.resultBytes) /
                 double(tile.joins ? size.splits : 1);
  double main = steps * step.cycles + double(deepTiles(size)) * scaleCycles(size, tile, target) +
                rates.fillCycles + kStoreShare * bytes / feedBytesPerCycle(active, target);
  double epilogue = epilogueCycles(size, tile, target);
  double cycles = std::max(main + serialCycles(size, tile, isLast, target), epilogue);
  return {cycles, 0, cycles > epilogue ? step.bound : ProductBound::Epilogue};
}

ProductCost fp4::productCost(const MatmulSize &size, const ProductTile &tile,
                             const hw::TargetModel &target) {
  assert(target.product && "a product of tiles expects tcgen05");
  if (tile.swap)
    return productCost(transposed(size), unswapped(tile), target);
  int64_t tiles = countWholeTiles(size, tile), workers = productWorkers(tile, target);
  int64_t waves = tiles / workers, rest = tiles % workers;
  double epilogue = epilogueCycles(size, tile, target);
  ProductCost whole = tileCost(size, tile, waves ? workers : rest, waves + (rest > 0) < 2, target);
  double busy = double(std::max<int64_t>(waves, 1)) * whole.cycles;
  if (waves && rest) // which L2 delivers more to
    busy += tileCost(size, tile, rest, false, target).cycles;
  double join = size.splits > 1 && !tile.joins ? double(size.splits) * epilogue
                                               : 0; // of the last block
  if (int64_t sharers = size.sharers; sharers > 0 && tiles % sharers) {
    double each = double(tiles) / double(sharers);
    busy = each * tileCost(size, tile, workers, false, target).cycles;
    join = 2 * target.product->fillCycles + epilogue + std::max(2.0, 1 / each) * epilogue;
  }
  busy += target.product->tailCycles + epilogue + join;
  double memory = memoryCycles(operandBytes(size), writtenBytes(size, tile), target);
  return {std::max(busy, memory) + target.product->launchCycles, busy,
          memory > busy ? ProductBound::Memory : whole.bound};
}

//===----------------------------------------------------------------------===//
// How results leave
//===----------------------------------------------------------------------===//

double fp4::directStoreCycles(const MatmulSize &size, const ProductTile &tile,
                              const hw::TargetModel &target) {
  double bytes =
      double(std::min(size.m, tile.rowsOfA()) * std::min(size.n, tile.n) * size.resultBytes);
  return double(wavesOf(size, tile, target)) * 2 * bytes / target.product->l2BytesPerCycle;
}

double fp4::stagedStoreCycles(const MatmulSize &size, const ProductTile &tile,
                              const hw::TargetModel &target) {
  constexpr double left = 8192; // of a staged tile, when somebody waits for it: half of one
  double handOver = cyclesOf(hw::TimingRate::FenceProxyAsync, target) +
                    cyclesOf(hw::TimingRate::MbarrierWake, target) +
                    cyclesOf(hw::TimingRate::StoreLatency, target) +
                    left / cyclesOf(hw::TimingRate::StoreBytes, target);
  return directStoreCycles(size, tile, target) / 2 + handOver;
}

int64_t fp4::stagesThatCoverLoads(const MatmulSize &size, const ProductTile &tile, int64_t tileK,
                                  int64_t stageBytes, const hw::TargetModel &target) {
  // from the release of a stage over its copies and products to the next release
  double turn = cyclesOf(hw::TimingRate::MbarrierTest, target) * 2 +
                cyclesOf(hw::TimingRate::MbarrierWake, target) +
                cyclesOf(hw::TimingRate::TmaIssue, target) +
                cyclesOf(hw::TimingRate::L2Latency, target) +
                cyclesOf(hw::TimingRate::TmaLatency, target) +
                cyclesOf(hw::TimingRate::Tcgen05Tail, target) +
                double(stageBytes) / cyclesOf(hw::TimingRate::TmaBytes, target);
  double steps = double(tileK) / double(size.stepK);
  return 1 + int64_t(std::ceil(
                 turn / (steps * stepCost(size, tile, target.multiprocessors, target).cycles)));
}

ProductTile fp4::cheapestTile(llvm::ArrayRef<ProductTile> candidates, const MatmulSize &size,
                              const hw::TargetModel &target) {
  auto rankOf = [&](const ProductTile &tile) {
    ProductCost cost = productCost(size, tile, target);
    return std::pair(cost.cycles, cost.busy); // where memory bounds several, the rest decides
  };
  ProductTile best = candidates.front();
  for (const ProductTile &tile : candidates.drop_front())
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

std::optional<int64_t> fp4::choosePanel(const MatmulSize &size, const ProductTile &tile,
                                        const hw::TargetModel &target) {
  if (tile.swap)
    return choosePanel(transposed(size), unswapped(tile), target);
  if (operandBytes(size) + writtenBytes(size, tile) <= double(target.l2Bytes))
    return std::nullopt;
  // w columns of tiles and workers / w rows at a time read w * n + workers / w * rows operand rows.
  double workers = double(productWorkers(tile, target));
  double width = std::sqrt(workers * double(tile.rows()) / double(tile.n)) / double(tile.clusterN);
  int64_t columns = ceilDiv(size.n, tile.n * tile.clusterN);
  return evenPanel(width, columns);
}
