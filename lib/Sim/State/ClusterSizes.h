//===- ClusterSizes.h - CTAs of a launch that form a cluster --------------===//
#pragma once

#include "fp4/Sim/Simulator.h"

namespace fp4::hw {
struct TargetModel;
}

namespace fp4::sim {

/// Returns "(x,y,z)".
std::string textOf(const std::array<uint32_t, 3> &shape);

struct Launch;
using Extent3 = std::array<uint32_t, 3>;

/// One cluster of a launch with clusters of two sizes.
struct ClusterPlace {
  Extent3 index{};        ///< %clusterid: counted as if all clusters had its size
  bool preferred = false; ///< true when the size is LaunchConfig::preferredCluster
  uint64_t firstCta = 0;  ///< CTAs of the clusters before it
};

inline uint64_t volume(const Extent3 &shape) { return uint64_t(shape[0]) * shape[1] * shape[2]; }

/// The place with the x-fastest index `linear`.
inline Extent3 unravel(uint64_t linear, const Extent3 &shape) {
  return {static_cast<uint32_t>(linear % shape[0]),
          static_cast<uint32_t>(linear / shape[0] % shape[1]),
          static_cast<uint32_t>(linear / shape[0] / shape[1])};
}

/// Fills in `launch.config.cluster`, and leaves a preferred size there only if the launch shall
/// have clusters of both sizes. Fails with what the driver would refuse.
Status chooseClusters(Launch &launch, const hw::TargetModel &target);

/// Divides the grid, which is a multiple of its clusters.
void divideGrid(Launch &launch);

} // namespace fp4::sim
