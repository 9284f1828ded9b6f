//===- ClusterLimit.h - Limit of the CTAs of a cluster --------------------===//
#pragma once

#include "fp4/ISA/Cluster.h"

#include <cmath>

namespace fp4::hw {

/// The most CTAs of a cluster that `target` runs. More than maxClusterSize are not portable: a
/// launch asks for them (cudaFuncAttributeNonPortableClusterSizeAllowed), and a GPC has fewer
/// places for them. Hopper and datacenter Blackwell run such clusters.
constexpr uint32_t mostClusterCtas(const TargetModel &target) {
  return target.hasWgmma || target.hasTcgen05 ? maxClusterCtas : target.maxClusterSize;
}

/// SMs on which clusters of so many CTAs find room at a time: those of four and more leave some of
/// them idle. A cluster that finds none begins when others have ended.
inline int64_t smsOfClusters(const TargetModel &target, int64_t blocks) {
  if (blocks < 4 || !target.product)
    return target.sms;
  return std::llround(double(target.sms) * target.product->clusteredShare);
}

} // namespace fp4::hw
