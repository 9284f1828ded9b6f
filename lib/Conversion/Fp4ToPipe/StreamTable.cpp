//===- StreamTable.cpp - Works of a stream-K GEMM -------------------------===//
//
// A work is a range of the k tiles of one tile. CTAs take works in turns, work i on CTA i mod W, so
// the order of the table assigns the works. First come the parts of shared tiles, of every worker
// the first, then of every worker the second: workers that have more come before those that have
// fewer, so that no turn but the last is short. Whole tiles follow, under which the last sums of
// shared ones are added. Whole tiles are taken in panels, so that tiles that run at a time share
// most of their operands.
//
//===----------------------------------------------------------------------===//

#include "WorkTables.h"

#include "fp4/Numerics/BlockScaledGemm.h"

#include <cmath>

using namespace mlir;
using namespace fp4;

namespace {
struct Work {
  uint64_t tile, begin, end; ///< slices of K
  uint64_t part, parts;
};
} // namespace

static numerics::StreamShares sharesOf(const Gemm &gemm) {
  uint64_t slices = llvm::divideCeil(uint64_t(gemm.problem.depth), numerics::splitSlice);
  return {*gemm.work.stream, uint64_t(gemm.m()), uint64_t(gemm.n()), slices};
}

/// The parts of shared tiles, in turns of all workers.
static std::vector<Work> sharedWorks(const numerics::StreamShares &shares) {
  std::vector<std::vector<Work>> ofWorker(shares.stream.workers);
  for (uint64_t tile = 0; tile < shares.shared; ++tile) {
    uint64_t part = 0, parts = shares.parts(tile);
    shares.forRanges(tile, [&](uint64_t begin, uint64_t end, uint64_t worker) {
      ofWorker[worker].push_back({tile, begin, end, part++, parts});
    });
  }
  llvm::stable_sort(ofWorker, [](auto &x, auto &y) { return x.size() > y.size(); });
  std::vector<Work> works;
  for (size_t turn = 0; turn < ofWorker.front().size(); ++turn)
    for (const std::vector<Work> &mine : ofWorker)
      if (turn < mine.size())
        works.push_back(mine[turn]);
  return works;
}

/// Whole tiles, in panels that are as square as the tiles that run at a time can be.
static std::vector<Work> wholeTiles(const numerics::StreamShares &shares) {
  const numerics::StreamK &stream = shares.stream;
  double square = std::sqrt(double(stream.workers * stream.rows) / double(stream.columns));
  auto width = std::max<uint64_t>(1, uint64_t(std::llround(square)));
  std::vector<Work> works;
  for (uint64_t tile = shares.shared; tile < shares.tiles; ++tile)
    works.push_back({tile, 0, shares.slices, 0, 1});
  llvm::stable_sort(works, [&](const Work &x, const Work &y) {
    auto place = [&](const Work &work) {
      uint64_t m = work.tile % shares.tilesM, n = work.tile / shares.tilesM;
      return std::tuple(n / width, m, n);
    };
    return place(x) < place(y);
  });
  return works;
}

static std::vector<Work> worksOf(const numerics::StreamShares &shares) {
  std::vector<Work> works = sharedWorks(shares);
  llvm::append_range(works, wholeTiles(shares));
  return works;
}

void fp4::setStream(Gemm &gemm, const numerics::StreamK &stream) {
  gemm.work.stream = stream;
  numerics::StreamShares shares = sharesOf(gemm);
  if (shares.mostParts() == 1) { // every tile has one sum, in any order
    gemm.work.stream.reset();
    return;
  }
  gemm.work.streamWorks = int64_t(worksOf(shares).size());
  for (uint64_t tile = 0; tile < shares.shared; ++tile)
    if (uint64_t parts = shares.parts(tile); parts > 1) {
      ++gemm.work.streamReductions;
      gemm.work.streamParts += int64_t(parts);
    }
}

/// For each work two rows: the tile, along m and n, and its k tiles; the first of the sums that the
/// parts of the tile leave, the part, how many there are, and the counter of their reduction.
static SmallVector<int32_t> wordsOf(const Gemm &gemm) {
  numerics::StreamShares shares = sharesOf(gemm);
  SmallVector<int64_t> firstSums, counters;
  int64_t sums = 0, joins = 0;
  for (uint64_t tile = 0; tile < shares.shared; ++tile) {
    int64_t parts = int64_t(shares.parts(tile)), left = parts > 1 ? parts : 0;
    firstSums.push_back(sums);
    counters.push_back(joins);
    sums += left;
    joins += left ? 1 : 0;
  }
  int64_t perSlice = int64_t(numerics::splitSlice) / gemm.tiling.tileK;
  SmallVector<int32_t> words;
  for (const Work &work : worksOf(shares)) {
    bool isShared = work.parts > 1;
    llvm::append_values(words, int32_t(work.tile % shares.tilesM),
                        int32_t(work.tile / shares.tilesM), int32_t(int64_t(work.begin) * perSlice),
                        int32_t(std::min(int64_t(work.end) * perSlice, gemm.tilesK())),
                        isShared ? int32_t(firstSums[work.tile]) : 0, int32_t(work.part),
                        int32_t(work.parts), isShared ? int32_t(counters[work.tile]) : 0);
  }
  return words;
}

Value fp4::tableOfStream(OpBuilder &builder, Location loc, const Gemm &gemm) {
  return pipe::ViewOp::create(builder, loc, gemm.table(),
                              constantTable(builder, loc, wordsOf(gemm), gemm));
}
