//===- CostModel.cpp - Columns of an output tile --------------------------===//

#include "CostModel.h"

#include <algorithm>

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

double fp4::matmulCycles(int64_t m, int64_t n, int64_t k, int64_t block, int64_t tileN,
                         unsigned multiprocessors) {
  const double l2BytesPerCycle = 72, fill = 1020, epiloguePerColumn = 18.5, serialShare = 0.77,
               tail = 1700;
  double issue = 4 * std::max(tileN / 2.0, (128 + tileN) * 32 / 128.0);
  int64_t scaleRows = 128 + ceilDiv(tileN, 128) * 128;
  double bytes = (128 + tileN) * 128.0 + double(scaleRows) * (256 / block);
  double main = ceilDiv(k, 256) * std::max(issue, bytes / l2BytesPerCycle) + fill;
  double epilogue = epiloguePerColumn * tileN;
  bool overlapped = tileN <= 192;
  double tile = std::max(overlapped ? main : main + serialShare * epilogue, epilogue);
  double waves = ceilDiv(ceilDiv(m, 128) * ceilDiv(n, tileN), multiprocessors);
  return waves * tile + tail + epilogue;
}

int64_t fp4::chooseTileN(int64_t m, int64_t n, int64_t k, int64_t block,
                         unsigned multiprocessors) {
  int64_t best = 64;
  for (int64_t tileN : {128, 192, 256})
    if (matmulCycles(m, n, k, block, tileN, multiprocessors) <
        matmulCycles(m, n, k, block, best, multiprocessors))
      best = tileN;
  return best;
}
