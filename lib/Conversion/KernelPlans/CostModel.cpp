//===- CostModel.cpp - What the tiles of a product cost -------------------===//

#include "CostModel.h"

#include "fp4/ISA/TimingRates.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <cassert>
#include <cmath>

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

int64_t fp4::productWorkers(const ProductTile &tile, const hw::TargetModel &target) {
  int64_t blocks = target.multiprocessors;
  if (tile.blocks() >= 4)
    blocks = int64_t(blocks * target.product->clusteredShare);
  int64_t clusters = std::max<int64_t>(1, blocks / tile.blocks());
  return clusters * tile.blocks() / (tile.pair ? 2 : 1);
}

/// Cycles of one instruction, and what takes them.
static ProductCost stepCost(const MatmulSize &size, const ProductTile &tile,
                            const hw::ProductRates &rates) {
  constexpr double kStep = 64;
  const double stepBytes = double(size.stepBytes());
  double rows = double(tile.rowsOfA() + tile.rowsOfB() * size.products);
  double columns = double(tile.n * size.products);
  double issue = std::max(2.0 * double(tile.rowsOfA()) * columns * kStep / rates.flopsPerCycle,
                          rows * stepBytes / rates.sharedBytesPerCycle);
  int64_t blocksOfB = tile.narrow ? 2 : ceilDiv(tile.n, 128); // one for each half of the columns
  double scaleRows = kProductTileM + double(blocksOfB * 128 * size.products);
  double delivered =
      double(std::min(size.m, tile.rowsOfA()) + std::min(size.n, tile.rowsOfB()) * size.products);
  double bytes = delivered * stepBytes + scaleRows * (double(size.stepK) / double(size.block));
  double feed = bytes / rates.l2BytesPerCycle;
  return {std::max(issue, feed),
          issue >= feed ? ProductBound::TensorCore : ProductBound::L2Feed};
}

/// Bytes that the kernel must read and write at least once; a range of K besides writes its sums,
/// which are read again.
static double compulsoryBytes(const MatmulSize &size) {
  double perRow = double(size.k * size.stepBytes()) / double(size.stepK) + double(size.k) / double(size.block);
  double rowsOfB =
      double(size.n * size.products) * double(std::max<size_t>(1, size.groups.size()));
  double sums = size.splits > 1 ? 2.0 * 4 * double(size.splits) : 0;
  return (double(size.m) + rowsOfB) * perRow +
         double(size.m) * double(size.n) * (double(size.resultBytes) + sums);
}

/// Tiles of the result, of clusters that are whole.
static int64_t countTiles(const MatmulSize &size, const ProductTile &tile) {
  int64_t together = tile.clusterM / (tile.pair ? 2 : 1), tilesM = 0;
  auto addRows = [&](int64_t rows) {
    tilesM += ceilDiv(rows, tile.rows() * together) * together;
  };
  if (size.groups.empty())
    addRows(size.m);
  llvm::for_each(size.groups, addRows);
  return tilesM * ceilDiv(size.n, tile.n * tile.clusterN) * tile.clusterN * size.splits;
}

/// Tiles that a worker takes one after the other.
static int64_t wavesOf(const MatmulSize &size, const ProductTile &tile,
                       const hw::TargetModel &target) {
  return ceilDiv(countTiles(size, tile), productWorkers(tile, target));
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

/// A rate of the target, or of B200 where nobody published one.
static double cyclesOf(hw::TimingRate which, const hw::TargetModel &target) {
  const hw::Rate *rate = hw::timingRate(target.name, which);
  return *(rate ? rate : hw::timingRate("sm_100a", which));
}

/// What a tile whose accumulator is the only one keeps from the next tile. SERIAL is of kernels
/// that store each part before they read the next. Ours read the last columns, as many as registers
/// hold results of, before they store any of these: each is then only read, scaled and converted.
static double serialCycles(const MatmulSize &size, const ProductTile &tile, double epilogue,
                           const hw::TargetModel &target) {
  constexpr double registers = 128, columnBytes = 4 * 32; // of a thread; of a warp
  double columns = double(tile.laneColumns() * size.products);
  bool addsRanges = size.splits > 1 || size.sharers > 0;
  double resultBytes = addsRanges ? 4 : double(size.resultBytes);
  double held = std::min(columns, registers * 4 / resultBytes);
  double perColumn = columnBytes / cyclesOf(hw::TimingRate::TmemBytes, target) +
                     cyclesOf(hw::TimingRate::FmaInterval, target) +
                     cyclesOf(hw::TimingRate::AluInterval, target);
  return target.product->serialShare * epilogue * (1 - held / columns) + held * perColumn;
}

ProductCost fp4::productCost(const MatmulSize &size, const ProductTile &tile,
                             const hw::TargetModel &target) {
  assert(target.product && "a product of tiles expects tcgen05");
  if (tile.swap)
    return productCost(transposed(size), unswapped(tile), target);
  const hw::ProductRates &rates = *target.product;
  ProductCost step = stepCost(size, tile, rates);
  int64_t tileSteps = size.tileSteps(), tiles = ceilDiv(size.k, tileSteps * size.stepK);
  int64_t steps = tileSteps * ceilDiv(tiles, size.splits);
  if (size.stepK == 96) // of a k tile of three panels often a good part does not exist
    steps = ceilDiv(size.k, size.stepK);
  double main = double(steps) * step.cycles + rates.fillCycles;
  double epilogue = rates.epilogueCyclesPerColumn * double(tile.laneColumns() * size.products);
  bool overlapped = tile.laneColumns() * size.products <= (size.stepK == 96 ? 128 : 192);
  double serial = overlapped ? 0 : serialCycles(size, tile, epilogue, target);
  double cycles = std::max(main + serial, epilogue);
  ProductBound bound = cycles > epilogue ? step.bound : ProductBound::Epilogue;
  double waves = double(wavesOf(size, tile, target));
  double join = size.splits > 1 ? double(size.splits) * epilogue : 0; // of the last block
  if (double tiles = double(countTiles(size, tile)), sharers = double(size.sharers);
      sharers > 0 && std::fmod(tiles, sharers) > 0) {
    waves = tiles / sharers;
    join = 2 * rates.fillCycles + epilogue + std::max(2.0, sharers / tiles) * epilogue;
  }
  double busy = waves * cycles + rates.tailCycles + epilogue + join;
  double memory = compulsoryBytes(size) / rates.memoryBytesPerCycle;
  if (memory > busy)
    bound = ProductBound::Memory;
  return {std::max(busy, memory) + rates.launchCycles, bound};
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
  return 1 + int64_t(std::ceil(turn / (steps * stepCost(size, tile, *target.product).cycles)));
}

ProductTile fp4::cheapestTile(llvm::ArrayRef<ProductTile> candidates, const MatmulSize &size,
                              const hw::TargetModel &target) {
  ProductTile best = candidates.front();
  for (const ProductTile &tile : candidates.drop_front())
    if (productCost(size, tile, target).cycles < productCost(size, best, target).cycles)
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
  if (compulsoryBytes(size) <= double(target.l2Bytes))
    return std::nullopt;
  // w columns of tiles and workers / w rows at a time read w * n + workers / w * rows operand rows.
  double workers = double(productWorkers(tile, target));
  double width = std::sqrt(workers * double(tile.rows()) / double(tile.n)) / double(tile.clusterN);
  int64_t columns = ceilDiv(size.n, tile.n * tile.clusterN);
  return evenPanel(width, columns);
}
