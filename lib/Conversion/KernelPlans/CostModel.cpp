//===- CostModel.cpp - Columns of an output tile --------------------------===//

#include "CostModel.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cassert>

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

double fp4::matmulCycles(const MatmulSize &size, int64_t tileN, const hw::TargetModel &target) {
  assert(target.product && "a product of tiles expects tcgen05");
  const hw::ProductRates &rates = *target.product;
  auto [m, n, k, block] = size;
  double issue = 4 * std::max(2.0 * 128 * 64 * tileN / rates.flopsPerCycle,
                              (128 + tileN) * 32 / rates.sharedBytesPerCycle);
  int64_t scaleRows = 128 + ceilDiv(tileN, 128) * 128;
  double bytes = (128 + tileN) * 128.0 + double(scaleRows) * (256 / block);
  double main = ceilDiv(k, 256) * std::max(issue, bytes / rates.l2BytesPerCycle) + rates.fillCycles;
  double epilogue = rates.epilogueCyclesPerColumn * tileN;
  bool overlapped = tileN <= 192;
  double tile = std::max(overlapped ? main : main + rates.serialShare * epilogue, epilogue);
  double waves = ceilDiv(ceilDiv(m, 128) * ceilDiv(n, tileN), target.multiprocessors);
  return waves * tile + rates.tailCycles + epilogue;
}

int64_t fp4::chooseTileN(const MatmulSize &size, const hw::TargetModel &target) {
  int64_t best = kProductTileNs[0];
  for (int64_t tileN : llvm::drop_begin(kProductTileNs))
    if (matmulCycles(size, tileN, target) < matmulCycles(size, best, target))
      best = tileN;
  return best;
}
