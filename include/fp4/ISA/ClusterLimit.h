//===- ClusterLimit.h - How many blocks a cluster may have -----------------===//
#pragma once

#include "fp4/ISA/Cluster.h"

namespace fp4::hw {

/// The most blocks of a cluster that `target` runs. More than maxClusterSize are not portable: a
/// launch asks for them (cudaFuncAttributeNonPortableClusterSizeAllowed), and a GPC has fewer
/// places for them. They were seen on Hopper and on datacenter Blackwell.
constexpr uint32_t mostClusterBlocks(const TargetModel &target) {
  return target.hasWgmma || target.hasTcgen05 ? maxClusterBlocks : target.maxClusterSize;
}

} // namespace fp4::hw
