//===- SizePlans.cpp - Plans of one GEMM by its sizes ---------------------===//
//
// No tile is good for all sizes if N or K is dynamic: a wide one leaves SMs idle in the last wave,
// or in the only one, and a narrow one loads its operands more often. A GEMM gets the few tiles
// that together come closest to the best tile of each of a list of common sizes. Each is a kernel,
// and host code launches the one whose waves are predicted to cost the least:
//
//   once + waves * (wave + k tiles * k_tile)
//
// The three numbers of a plan, its `wave_cost`, are read off the model of its family at sizes that
// are whole waves. The numbers are predictions, as the model is.
//
//===----------------------------------------------------------------------===//

#include "DispatchPlans.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace fp4;

/// The most kernels of a GEMM, for any sizes and for some, and the part of the cost that one more
/// kernel must gain on average. Two or three of the kernels for some sizes are small-M tiles.
static constexpr size_t kMostPlans = 5, kMostPlansOfSome = 7;
static constexpr double kLeastGain = 0.005;

/// Numbers of tokens, and sizes of layers of language models. Powers of two alone would never fill
/// a wave of tiles whose columns are no power of two.
static constexpr int64_t kRows[] = {16,   64,   128,  256,  384,  512, 768,
                                    1024, 1536, 2048, 3072, 4096, 8192};
static constexpr int64_t kColumns[] = {512,  1024, 1536, 2048,  3072, 4096,
                                       6144, 7168, 8192, 14336, 28672};
static constexpr int64_t kDepths[] = {1024, 1536, 2048, 4096, 7168, 8192, 14336};

SizedTile fp4::sizedTile(std::array<int64_t, 3> tile,
                         std::function<double(const MatmulSize &)> cost) {
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm);
  plan.tile = tile;
  return {plan, std::move(cost)};
}

//===----------------------------------------------------------------------===//
// The cost of a wave
//===----------------------------------------------------------------------===//

namespace {
/// A tile with its cost in doubles, before all of them get one unit.
struct Candidate {
  KernelPlan plan;
  int64_t rows, columns; ///< rows and columns of the result in a tile
  int64_t workers;
  double once, wave, kTile;

  bool holdsForAll() const { return plan.guard.isAll(); }
  double costOf(const MatmulSize &size) const {
    if (!plan.guard.m.has(size.m) || size.k % plan.guard.kUnit.value_or(1) != 0)
      return INFINITY;
    auto tiles = int64_t(llvm::divideCeil(size.m, rows) * llvm::divideCeil(size.n, columns));
    auto waves = double(llvm::divideCeil(tiles, workers));
    return once + waves * (wave + double(llvm::divideCeil(size.k, plan.tile[2])) * kTile);
  }
};
} // namespace

/// The size of `waves` waves of tiles that are nearly full, and about square, so that memory is not
/// the bound. Small-M tiles have all rows.
static MatmulSize wavesOf(const MatmulSize &base, const Candidate &tile, int64_t waves, int64_t k) {
  int64_t along = tile.plan.guard.m.most
                      ? int64_t(llvm::divideCeil(*tile.plan.guard.m.most, tile.rows))
                      : int64_t(std::sqrt(double(tile.workers)));
  MatmulSize size = base;
  size.m = along * tile.rows;
  size.n = tile.workers / along * waves * tile.columns;
  size.k = k;
  return size;
}

static Candidate candidateOf(const SizedTile &tile, const PlannedGemm &gemm) {
  constexpr int64_t deep = 4096;
  auto [m, n, depth] = tile.plan.tile;
  bool transposed = gemm.with(tile.plan).isTransposed();
  int64_t workers = std::max<int64_t>(1, gemm.target.sms / (tile.plan.pair ? 2 : 1));
  Candidate candidate{tile.plan, transposed ? n : m, transposed ? m : n, workers, 0, 0, 0};
  auto cost = [&](int64_t waves, int64_t k) {
    return tile.cost(wavesOf(gemm.size, candidate, waves, k));
  };
  double two = cost(2, deep), wave = cost(3, deep) - two;
  double deeper = cost(3, 2 * deep) - cost(2, 2 * deep);
  auto kTiles = double(deep / depth);
  candidate.kTile = (deeper - wave) / kTiles;
  candidate.wave = wave - candidate.kTile * kTiles;
  candidate.once = two - 2 * wave;
  return candidate;
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// Common sizes of `op`; known sizes stay as they are.
static std::vector<MatmulSize> commonSizes(BlockScaledMatmulOp op, const MatmulSize &base) {
  auto orKnown = [](ArrayRef<int64_t> common, bool isDynamic, int64_t known) {
    return isDynamic ? SmallVector<int64_t>(common) : SmallVector<int64_t>{known};
  };
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  std::vector<MatmulSize> sizes;
  for (int64_t m : orKnown(kRows, lhs.isDynamicDim(0), base.m))
    for (int64_t n : orKnown(kColumns, hasDynamicColumns(op), base.n))
      for (int64_t k : orKnown(kDepths, hasDynamicDepth(op), base.k)) {
        MatmulSize size = base;
        size.m = m;
        size.n = n;
        size.k = k;
        sizes.push_back(size);
      }
  return sizes;
}

/// The average ratio of the cost of the best of `chosen` and `more` to the cost of the best of all.
static double regretOf(ArrayRef<size_t> chosen, size_t more, ArrayRef<std::vector<double>> costs) {
  double sum = 0;
  for (size_t size = 0; size < costs.front().size(); ++size) {
    auto costOf = [&](size_t number) { return costs[number][size]; };
    double best = costOf(0), least = costOf(more);
    for (size_t number = 1; number < costs.size(); ++number)
      best = std::min(best, costOf(number));
    for (size_t number : chosen)
      least = std::min(least, costOf(number));
    sum += least / best;
  }
  return sum / double(costs.front().size());
}

/// Chooses tiles: of those for any sizes, the best one alone, then those that gain the most beside
/// the ones before; and then tiles for some sizes in the same way.
static std::vector<Candidate> chooseFew(ArrayRef<Candidate> all, ArrayRef<MatmulSize> sizes) {
  std::vector<std::vector<double>> costs;
  for (const Candidate &candidate : all) {
    std::vector<double> &ofTile = costs.emplace_back();
    for (const MatmulSize &size : sizes)
      ofTile.push_back(candidate.costOf(size));
  }
  SmallVector<size_t> numbers;
  double before = INFINITY;
  for (bool areForAll : {true, false}) {
    for (size_t count = 0; count < (areForAll ? kMostPlans : kMostPlansOfSome); ++count) {
      std::pair best(double(INFINITY), size_t(0));
      for (size_t number = 0; number < all.size(); ++number)
        if (all[number].holdsForAll() == areForAll)
          best = std::min(best, std::pair(regretOf(numbers, number, costs), number));
      if (!(before - best.first >= kLeastGain))
        break;
      before = best.first;
      numbers.push_back(best.second);
    }
  }
  std::vector<Candidate> chosen;
  for (size_t number : numbers)
    chosen.push_back(all[number]);
  return chosen;
}

/// Sets costs in whole numbers of one unit, of which the smallest k tile has many.
static void setCosts(std::vector<Candidate> &chosen) {
  constexpr double ofKTile = 1000;
  double least = INFINITY;
  for (const Candidate &candidate : chosen)
    least = std::min(least, candidate.kTile);
  auto whole = [&](double cost) {
    return std::max<int64_t>(1, std::llround(cost * ofKTile / least));
  };
  for (Candidate &candidate : chosen)
    candidate.plan.waveCost = {whole(candidate.once), whole(candidate.wave),
                               whole(candidate.kTile)};
}

std::vector<KernelPlan> fp4::proposeSizes(BlockScaledMatmulOp op, const hw::TargetModel &target) {
  KernelPlan open = planOfFamily(KernelFamily::TileGemm);
  PlannedGemm gemm(op, open, target);
  std::vector<Candidate> all;
  for (const SizedTile &tile : plannerOf(op, target).tiles(gemm))
    all.push_back(candidateOf(tile, gemm));
  if (all.empty())
    return {};
  std::vector<Candidate> chosen = chooseFew(all, commonSizes(op, gemm.size));
  if (chosen.size() < 2)
    return {};
  setCosts(chosen);
  std::vector<KernelPlan> plans;
  for (const Candidate &candidate : ArrayRef(chosen).drop_front())
    plans.push_back(candidate.plan);
  plans.push_back(chosen.front().plan); // the best one alone, which holds for all sizes
  return plans;
}
