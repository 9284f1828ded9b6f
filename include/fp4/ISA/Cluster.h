//===- Cluster.h - CTAs of a cluster: ranks, masks, pairs -----------------===//
//
// A cluster has m CTAs along x, which share columns of the result's tiles, and n along y. CTA (x,
// y) has the rank x + y * m. A multicast names the CTAs that it reaches by a mask with one bit per
// rank. Two CTAs whose ranks differ in bit 0 only are a pair; the even one leads it.
//
// Functions that kernels need too are templates over the integer: uint32_t on the host; in a kernel
// Int32 (KernelArithmetic), whose operators emit the arithmetic.
//
// Sources: PTX ISA, "%cluster_ctarank", "cp.async.bulk.tensor" (ctaMask), "CTA pair".
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/TargetModel.h"

#include <algorithm>

namespace fp4::hw {

/// Fails unless one launch may have clusters of two sizes on `target`. Compute capability 10.0
/// brought such launches, with cluster launch control.
inline Status requirePreferredClusters(const TargetModel &target) {
  return requireFeature(target, &TargetFeatures::hasClusterLaunchControl,
                        "clusters of a preferred size");
}

/// Direction in which the CTAs of a cluster are counted; Pairs: those along m that have the same
/// place in their pairs.
enum class ClusterDirection : uint8_t { M, N, Pairs };

/// The most CTAs that the 16 bits of a mask can name.
inline constexpr uint32_t maxClusterCtas = 16;

/// Mask of the CTAs with even ranks, which lead pairs.
inline constexpr uint32_t evenBlocks = 0x5555;

struct ClusterShape {
  uint32_t m = 1, n = 1;

  constexpr bool operator==(const ClusterShape &) const = default;
  constexpr uint32_t size() const { return m * n; }
  constexpr uint32_t along(ClusterDirection direction) const {
    return direction == ClusterDirection::M   ? m
           : direction == ClusterDirection::N ? n
                                              : std::max(m / 2, 1u);
  }
};

/// The place of CTA `rank` along `direction`.
template <typename Int>
constexpr Int placeAlong(Int rank, ClusterShape shape, ClusterDirection direction) {
  if (direction == ClusterDirection::N)
    return rank / shape.m;
  const Int place = rank % shape.m;
  return direction == ClusterDirection::M ? place : place / 2;
}

/// The leader of the pair of CTA `rank`.
template <typename Int> constexpr Int pairLeader(Int rank) { return rank - rank % 2; }

/// The CTA `rank` alone.
template <typename Int> constexpr Int maskOfBlock(Int rank) { return 1u << rank; }

/// Mask of the two CTAs of the pair of `rank`.
template <typename Int> constexpr Int maskOfPair(Int rank) { return 3u << pairLeader(rank); }

/// The CTAs that differ from `rank` in their place along `direction` only, and itself. Along n
/// among `pairs`, those of the whole pair of `rank`.
template <typename Int>
constexpr Int maskAlong(Int rank, ClusterShape shape, ClusterDirection direction,
                        bool pairs = false) {
  if (direction == ClusterDirection::M)
    return ((1u << shape.m) - 1) << (rank - rank % shape.m);
  if (direction == ClusterDirection::Pairs)
    return (((1u << shape.m) - 1) & evenBlocks) << (rank - rank % shape.m + rank % 2);
  uint32_t column = 0;
  for (uint32_t y = 0; y < shape.n; ++y)
    column |= (pairs ? 3u : 1u) << (y * shape.m);
  const Int x = pairs ? pairLeader(rank % shape.m) : rank % shape.m;
  return column << x;
}

} // namespace fp4::hw
