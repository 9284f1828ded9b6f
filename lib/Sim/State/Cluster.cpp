//===- Cluster.cpp - Building the state of a cluster ----------------------===//
#include "Sim/State/Cluster.h"
#include "Sim/State/Launch.h"
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

using namespace fp4::sim;

/// Lane masks of %lanemask_*.
static uint32_t laneMask(Special which, uint32_t lane) {
  uint32_t eq = 1u << lane, lt = eq - 1;
  switch (which) {
  case Special::LanemaskEq:
    return eq;
  case Special::LanemaskLe:
    return lt | eq;
  case Special::LanemaskLt:
    return lt;
  case Special::LanemaskGe:
    return ~lt;
  default:
    return ~(lt | eq);
  }
}

/// Special registers with an x, a y and a z: the one of `which`, or nothing.
static std::optional<uint64_t> axisValue(Special which, const Warp &warp, uint32_t lane) {
  const Cta &cta = *warp.cta;
  const Cluster &cluster = *cta.cluster;
  const Launch &launch = *cluster.launch;
  const LaunchConfig &config = launch.config;
  const std::pair<Special, std::array<uint32_t, 3>> families[] = {
      {Special::TidX, unravel(warp.index * 32 + lane, config.block)},
      {Special::NtidX, config.block},
      {Special::CtaidX, cta.index},
      {Special::NctaidX, config.grid},
      {Special::ClusteridX, cluster.place.index},
      {Special::NclusteridX, launch.clustersOf(cluster.shape)},
      {Special::ClusterCtaidX, unravel(cta.rank, cluster.shape)},
      {Special::ClusterNctaidX, cluster.shape},
  };
  for (const auto &[x, values] : families)
    if (which >= x && size_t(which) - size_t(x) < 3)
      return values[size_t(which) - size_t(x)];
  return std::nullopt;
}

static uint64_t specialValue(Special which, const Warp &warp, uint32_t lane) {
  const Cta &cta = *warp.cta;
  const Cluster &cluster = *cta.cluster;
  const Launch &launch = *cluster.launch;
  if (const auto value = axisValue(which, warp, lane))
    return *value;
  switch (which) {
  case Special::ClusterCtarank:
    return cta.rank;
  case Special::ClusterNctarank:
    return cluster.ctas.size();
  case Special::IsExplicitCluster:
    return launch.explicitCluster;
  case Special::Laneid:
    return lane;
  case Special::Warpid:
    return warp.index;
  case Special::Nwarpid:
    return 64;
  case Special::Smid:
    return (cluster.place.firstCta + cta.rank) % launch.sms;
  case Special::Nsmid:
    return launch.sms;
  case Special::Gridid:
    return 1;
  case Special::CurrentGraphExec:
    return 0; // launched by the host
  case Special::Envreg1:
    return launch.config.gridWorkspace >> 32;
  case Special::Envreg2:
    return launch.config.gridWorkspace & 0xFFFFFFFF;
  case Special::DynamicSmemSize:
    return launch.config.dynamicSharedBytes;
  case Special::TotalSmemSize:
  case Special::AggrSmemSize:
    return cta.shared.end();
  default:
    return laneMask(which, lane);
  }
}

static void fillSpecials(Warp &warp, const Kernel &kernel) {
  for (const SpecialUse &use : kernel.specials) {
    std::byte *slot = warp.registers + use.offset;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint64_t value = specialValue(use.which, warp, lane);
      if (use.width == 0) {
        uint32_t mask = value ? ~0u : 0u;
        std::memcpy(slot, &mask, 4);
      } else {
        std::memcpy(slot + lane * use.width, &value, use.width);
      }
    }
  }
}

static void startWarp(Warp &warp, Cta &cta, uint32_t index, std::byte *registers) {
  const Launch &launch = *cta.cluster->launch;
  const Kernel &kernel = *launch.kernel;
  uint32_t lanes = std::min(32u, cta.threads - index * 32);
  warp.cta = &cta;
  warp.index = index;
  warp.present = warp.live = lanes == 32 ? kAllLanes : (1u << lanes) - 1;
  warp.registers = registers;
  warp.constants = launch.constantsByRank[cta.rank].bytes();
  warp.local.assign(size_t(kernel.info.localBytes) * 32, std::byte{0});
  warp.groups.clear();
  warp.groups.push_back(LaneGroup{0, warp.live, nullptr, false, 0, false});
  fillSpecials(warp, kernel);
}

/// Registers per thread at the launch: what the kernel says, or what ptxas 13.0 gives a kernel with
/// setmaxnreg that says its number of threads and of CTAs. 0 if it does not: ptxas ignores
/// setmaxnreg then. No more than the largest increase, and warps count by fours.
static uint32_t launchRegisters(const KernelInfo &kernel) {
  constexpr uint64_t perSm = 65536, most = 256, granularity = 8;
  if (kernel.maximumRegisters)
    return kernel.maximumRegisters;
  const auto &block = kernel.requiredCta[0] ? kernel.requiredCta : kernel.maximumCta;
  const uint64_t threads = volume(block) * kernel.minimumCtasPerSm;
  if (threads == 0)
    return 0;
  const uint64_t share = perSm / threadsWithRegisters(threads),
                 wanted = kernel.largestIncrease ? kernel.largestIncrease : most;
  return uint32_t(std::min({share, wanted, most}) / granularity * granularity);
}

static std::unique_ptr<Cta> startCta(Cluster &cluster, uint32_t rank) {
  Launch &launch = *cluster.launch;
  const Kernel &kernel = *launch.kernel;
  auto cta = std::make_unique<Cta>();
  cta->cluster = &cluster;
  cta->rank = rank;
  const Extent3 within = unravel(rank, cluster.shape);
  for (size_t i = 0; i < 3; ++i)
    cta->index[i] = cluster.place.index[i] * cluster.shape[i] + within[i];
  const auto &grid = launch.config.grid;
  cta->linear =
      cta->index[0] + uint64_t(grid[0]) * (cta->index[1] + uint64_t(grid[1]) * cta->index[2]);
  cta->threads = launch.config.block[0] * launch.config.block[1] * launch.config.block[2];
  uint32_t shared = launch.config.dynamicSharedBytes
                        ? kernel.dynamicSharedOffset + launch.config.dynamicSharedBytes
                        : kernel.sharedBytes;
  cta->shared.reset(shared);
  uint32_t warps = (cta->threads + 31) / 32;
  cta->warps = std::vector<Warp>(warps);
  cta->liveWarps = warps;
  const uint32_t registers = launchRegisters(kernel.info);
  for (Warp &warp : cta->warps)
    warp.maxRegisters = registers;
  cta->registers = launch.sm.registers.take(size_t(warps) * kernel.registerBytes);
  return cta;
}

Cluster::Cluster(Launch &owner, uint64_t linearIndex) : launch(&owner), index(linearIndex) {
  place = owner.placeOf(linearIndex);
  shape = owner.shapeOf(place);
  policy = makePolicy(*owner.options, linearIndex);
  for (uint32_t rank = 0; rank < volume(shape); ++rank)
    ctas.push_back(startCta(*this, rank));
  for (auto &cta : ctas) {
    for (uint32_t w = 0; w < cta->warps.size(); ++w)
      startWarp(cta->warps[w], *cta, w,
                cta->registers.bytes() + size_t(w) * owner.kernel->registerBytes);
    liveThreads += cta->threads;
  }
  if (owner.sm.columns)
    columnsPlace = owner.sm.columns->enter(index);
  async = makeAsyncWork(*this);
}

Cluster::~Cluster() {
  if (launch->sm.columns)
    launch->sm.columns->leave(index, columnsPlace);
  for (auto &cta : ctas)
    launch->sm.registers.give(std::move(cta->registers),
                              cta->warps.size() * launch->kernel->registerBytes);
}
