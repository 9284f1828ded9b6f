//===- ClusterLimit.h - Limit of the CTAs of a cluster --------------------===//
#pragma once

#include "fp4/ISA/Cluster.h"
#include "fp4/ISA/TimingRates.h"

#include <algorithm>
#include <cmath>

namespace fp4::hw {

/// The most CTAs of a cluster that `target` runs. More than maxClusterSize are not portable: a
/// launch asks for them (cudaFuncAttributeNonPortableClusterSizeAllowed), and a GPC has fewer
/// places for them. Hopper and datacenter Blackwell run such clusters.
constexpr uint32_t mostClusterCtas(const TargetModel &target) {
  return target.features.hasWgmma || target.features.hasTcgen05 ? maxClusterCtas
                                                                : target.limits.maxClusterSize;
}

/// Returns true when the SMs on which clusters of four CTAs and more find room are measured, or
/// assumed to be those of a measured product.
constexpr bool knowsSmsOfClusters(const TargetModel &target) {
  return target.product || timingRate(target.name, TimingRate::ClustersOfFour);
}

/// SMs on which clusters of so many CTAs find room at a time: those of four and more leave some of
/// them idle. A cluster that finds none begins when others have ended.
inline int64_t smsOfClusters(const TargetModel &target, int64_t blocks) {
  if (blocks < 4 || !target.product)
    return target.sms;
  return std::llround(double(target.sms) * target.product->clusteredShare);
}

/// Clusters of so many CTAs, of which an SM has one, that run at a time on every device of
/// `target`. GPCs have 16 SMs or a few more, one of them has fewer, and some SMs are in none. On an
/// H200 there were 39, 30, 22, 17, 15 and 7 clusters of 3, 4, 5, 6, 8 and 16 CTAs.
inline int64_t clustersAtATime(const TargetModel &target, int64_t ctas) {
  constexpr int64_t gpc = 16, part = 8;
  if (ctas < 3)
    return int64_t(target.sms) / ctas;
  int64_t reached = std::min<int64_t>(smsOfClusters(target, ctas), int64_t(target.sms) - part);
  return reached / gpc * (gpc / ctas) + (reached % gpc >= part ? part / ctas : 0);
}

} // namespace fp4::hw
