//===- ClusterSizes.cpp - CTAs of a launch that form a cluster ------------===//
//
// A launch may prefer clusters that are larger than those it asks for. The device groups CTAs into
// preferred clusters as far as it can, and into regular ones elsewhere; it promises neither. Here
// the grid is divided into places of the preferred size, and each is one preferred cluster or as
// many regular ones as fit. Each size is enumerated as if all clusters had it, so that two clusters
// may have the same %clusterid. CUDA driver API, "CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION".
//
//===----------------------------------------------------------------------===//
#include "Sim/State/ClusterSizes.h"
#include "Sim/State/Launch.h"
#include "fp4/ISA/Cluster.h"
#include <algorithm>
#include <fmt/format.h>

namespace fp4::sim {

std::string textOf(const Extent3 &shape) {
  return fmt::format("({},{},{})", shape[0], shape[1], shape[2]);
}

namespace {

void atLeastOne(Extent3 &shape) {
  for (uint32_t &extent : shape)
    extent = std::max(extent, 1u);
}

bool divides(const Extent3 &shape, const Extent3 &whole) {
  return whole[0] % shape[0] == 0 && whole[1] % shape[1] == 0 && whole[2] % shape[2] == 0;
}

/// Checks the rules for clusters of either size.
Status checkSize(const KernelInfo &kernel, const Extent3 &shape) {
  constexpr uint32_t architecture = 16;
  const uint32_t most =
      kernel.maximumCluster ? std::min(kernel.maximumCluster, architecture) : architecture;
  if (volume(shape) <= most)
    return {};
  return makeError(ErrorKind::Usage,
                   fmt::format("launch of '{}': a cluster must have at most {} CTAs{}, but got {}",
                               kernel.name, most, most < architecture ? " (.maxclusterrank)" : "",
                               textOf(shape)));
}

Status chooseRegular(const KernelInfo &kernel, LaunchConfig &config, bool &explicitly) {
  const Extent3 wanted = kernel.requiredCluster;
  explicitly = wanted[0] != 0 || config.cluster[0] != 0;
  if (config.cluster[0] == 0)
    config.cluster = wanted[0] ? wanted : Extent3{1, 1, 1};
  atLeastOne(config.cluster);
  if (wanted[0] && wanted != config.cluster)
    return makeError(ErrorKind::Usage,
                     fmt::format("launch of '{}': the kernel requires clusters of {}, but got {}",
                                 kernel.name, textOf(wanted), textOf(config.cluster)));
  return checkSize(kernel, config.cluster);
}

/// `.reqnctapercluster` allows no second size.
Status checkPreferred(const KernelInfo &kernel, const LaunchConfig &config,
                      const hw::TargetModel &target) {
  const Extent3 &preferred = config.preferredCluster, &regular = config.cluster;
  auto refuse = [&](std::string message, std::string note) {
    return makeError(ErrorKind::Usage, fmt::format("launch of '{}': {}", kernel.name, message),
                     std::move(note));
  };
  if (Status has = hw::requirePreferredClusters(target); !has)
    return refuse(has.error().message, "launch with the attribute of the cluster size alone");
  if (kernel.requiredCluster[0] && kernel.requiredCluster != preferred)
    return refuse(
        fmt::format("the kernel requires clusters of {} (.reqnctapercluster), but got the "
                    "preferred size {}",
                    textOf(kernel.requiredCluster), textOf(preferred)),
        "a kernel for clusters of two sizes must not say its cluster");
  if (!divides(regular, preferred) || preferred[2] != regular[2])
    return refuse(
        fmt::format("the preferred cluster must be a multiple of the cluster {} along x and "
                    "y and equal along z, but got {}",
                    textOf(regular), textOf(preferred)),
        "");
  if (!divides(preferred, config.grid))
    return refuse(fmt::format("the grid {} must be a multiple of the preferred cluster {}",
                              textOf(config.grid), textOf(preferred)),
                  "");
  return checkSize(kernel, preferred);
}

/// Returns true when the clusters of a place are one of the preferred size. The first two places
/// have one of each, so that every launch with two places has both.
bool isPreferred(uint64_t place, uint64_t seed) {
  auto mixed = [&](uint64_t at) {
    uint64_t z = seed * 0xD1342543DE82EF95ull + (at + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    return bool((z ^ z >> 31) & 1);
  };
  return place == 1 ? !mixed(0) : mixed(place);
}

/// The clusters of one place of the preferred size, in the order in which they start.
void appendPlace(Launch &launch, uint64_t place, uint64_t &firstCta) {
  const LaunchConfig &config = launch.config;
  Extent3 places, ratio;
  for (size_t i = 0; i < 3; ++i) {
    places[i] = config.grid[i] / config.preferredCluster[i];
    ratio[i] = config.preferredCluster[i] / config.cluster[i];
  }
  const Extent3 at = unravel(place, places);
  if (isPreferred(place, launch.options->seed)) {
    launch.places.push_back({at, true, firstCta});
    firstCta += volume(config.preferredCluster);
    return;
  }
  for (uint64_t part = 0; part < volume(ratio); ++part) {
    const Extent3 within = unravel(part, ratio);
    launch.places.push_back(
        {{at[0] * ratio[0] + within[0], at[1] * ratio[1] + within[1], at[2] * ratio[2] + within[2]},
         false,
         firstCta});
    firstCta += volume(config.cluster);
  }
}

} // namespace

Expected<ClusterSizes> parseClusterSizes(std::string_view text) {
  if (text == "mixed")
    return ClusterSizes::Mixed;
  if (text == "preferred")
    return ClusterSizes::Preferred;
  if (text == "fallback")
    return ClusterSizes::Fallback;
  return makeError(ErrorKind::Usage, fmt::format("unknown choice '{}' of --clusters", text),
                   "choose mixed, preferred or fallback");
}

Status chooseClusters(Launch &launch, const hw::TargetModel &target) {
  LaunchConfig &config = launch.config;
  const KernelInfo &kernel = launch.kernel->info;
  FP4_TRY(chooseRegular(kernel, config, launch.explicitCluster));
  if (!config.preferredCluster[0] || !launch.explicitCluster) {
    config.preferredCluster = {};
    return {};
  }
  atLeastOne(config.preferredCluster);
  FP4_TRY(checkPreferred(kernel, config, target));
  const bool allOfOneSize =
      launch.options->policy == CompletionPolicy::Timed; // a prediction's slots
  ClusterSizes sizes = launch.options->clusters;
  if (sizes == ClusterSizes::Mixed && allOfOneSize)
    sizes = ClusterSizes::Preferred;
  launch.fallsBack = sizes == ClusterSizes::Preferred;
  if (launch.fallsBack)
    config.cluster = config.preferredCluster;
  if (sizes != ClusterSizes::Mixed || config.cluster == config.preferredCluster)
    config.preferredCluster = {};
  return {};
}

void divideGrid(Launch &launch) {
  const LaunchConfig &config = launch.config;
  if (!config.preferredCluster[0]) {
    launch.queue.totalClusters = volume(launch.clustersOf(config.cluster));
    return;
  }
  const uint64_t places = volume(launch.clustersOf(config.preferredCluster));
  uint64_t firstCta = 0;
  for (uint64_t place = 0; place < places; ++place)
    appendPlace(launch, place, firstCta);
  launch.queue.totalClusters = launch.places.size();
}

Extent3 Launch::clustersOf(const Extent3 &shape) const {
  return {config.grid[0] / shape[0], config.grid[1] / shape[1], config.grid[2] / shape[2]};
}

ClusterPlace Launch::placeOf(uint64_t cluster) const {
  if (!places.empty())
    return places[cluster];
  return {unravel(cluster, clustersOf(config.cluster)), false, cluster * volume(config.cluster)};
}

bool Launch::cancelNextCluster(const Extent3 &shape, Extent3 &firstCta) {
  std::lock_guard<std::mutex> guard(lock);
  if (!findNext())
    return false;
  const ClusterPlace place = placeOf(queue.nextCluster);
  if (shapeOf(place) != shape)
    return false;
  ++queue.nextCluster;
  ++queue.canceledClusters;
  queue.canceledCtas += volume(shape);
  for (size_t i = 0; i < 3; ++i)
    firstCta[i] = place.index[i] * shape[i];
  return true;
}

} // namespace fp4::sim
