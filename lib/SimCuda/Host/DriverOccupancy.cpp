//===- DriverOccupancy.cpp - CTAs that an SM has room for -----------------===//
#include "EntryPoint.h"
#include "HostImage.h"
#include <algorithm>

using namespace fp4;
using namespace fp4::simcuda;

FP4_ENTRY int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, Function *function,
                                                                   int threads, size_t shared,
                                                                   unsigned) {
  FP4_REQUIRE(blocks && function);
  FP4_REQUIRE_LIVE(function);
  return residentCtasPerSm(__func__, *function, threads, shared, *blocks);
}

FP4_ENTRY int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Function *function,
                                                          int threads, size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

FP4_ENTRY int cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, Function *function, int blocks,
                                                      int) {
  FP4_REQUIRE(bytes && function && blocks > 0);
  FP4_REQUIRE_LIVE(function);
  return availableShared(__func__, *function, blocks, *bytes);
}

using SharedOfBlock = size_t (*)(int threads); // CUoccupancyB2DSize

/// The CTA size that puts most threads on an SM, the largest of several.
FP4_ENTRY int cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, Function *function,
                                                        SharedOfBlock sharedOf, size_t shared,
                                                        int limit, unsigned) {
  FP4_REQUIRE(grid && block && function);
  FP4_REQUIRE_LIVE(function);
  const auto info = context().kernelOf(__func__, *function);
  if (!info)
    return info.error();
  const hw::TargetModel &m = context().chip().model();
  const int most = static_cast<int>(m.limits.maxThreadsPerCta);
  int bestCtasPerSm = 0;
  *block = 0;
  for (int threads = limit > 0 ? std::min(limit, most) : most; threads > 0;
       threads = (threads - 1) / 32 * 32) {
    const int resident =
        context().residentCtasPerSm(**info, threads, sharedOf ? sharedOf(threads) : shared);
    if (resident * threads > bestCtasPerSm * *block) {
      bestCtasPerSm = resident;
      *block = threads;
    }
  }
  *grid = bestCtasPerSm * static_cast<int>(m.sms);
  return Success;
}

FP4_ENTRY int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, Function *function,
                                               SharedOfBlock sharedOf, size_t shared, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, sharedOf, shared, limit,
                                                   0);
}

FP4_ENTRY int cuOccupancyMaxActiveClusters(int *clusters, Function *function,
                                           const DriverLaunchConfig *config) {
  FP4_REQUIRE(function && config);
  FP4_REQUIRE_LIVE(function);
  LaunchRequest request;
  const Code code = requestOf(__func__, *config, request);
  return code == Success ? activeClusters(__func__, *function, request, *clusters) : code;
}

FP4_ENTRY int cuOccupancyMaxPotentialClusterSize(int *size, Function *function,
                                                 const DriverLaunchConfig *) {
  FP4_REQUIRE(size && function);
  FP4_REQUIRE_LIVE(function);
  *size = largestCluster(*function);
  return Success;
}
