//===- Apart.cpp - Clusters that are checked at the same time -------------===//
#include "Apart.h"

#include <limits>

namespace fp4::sim {

using namespace check;

thread_local std::unique_ptr<HazardChecker::Impl> HazardChecker::Impl::Apart::mine;

HazardChecker::Impl &HazardChecker::Impl::told() { return apart ? Apart::ofThread() : *this; }

/// Begins to check a cluster of the launch that another checker was told of.
void HazardChecker::Impl::checkOneOf(const Impl &launch) {
  kernelNumber = launch.kernelNumber;
  program = launch.program;
  kernel = launch.kernel;
  memory = launch.memory;
  ctasPerCluster = launch.ctasPerCluster;
  warpsPerCta = launch.warpsPerCta;
  forgetAccesses();
}

void HazardChecker::Impl::Apart::begin() {
  {
    std::lock_guard guard(lock);
    if (!idle.empty()) {
      mine = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (!mine) {
    mine = std::make_unique<Impl>();
    // The room for a report is known when those of earlier clusters are.
    mine->options.maxReports = std::numeric_limits<size_t>::max();
  }
  mine->checkOneOf(whole);
}

bool HazardChecker::Impl::Apart::end(uint32_t cluster) {
  UsedBytes now;
  now.add(mine->global.shadow, mine->global.readers);
  std::lock_guard guard(lock);
  const std::unique_ptr<Impl> &part = idle.emplace_back(std::move(mine));
  if (used.meets(now))
    return false;
  used.add(now);
  if (part->findings.found)
    findings.emplace(cluster, std::exchange(part->findings, {}));
  return true;
}

void HazardChecker::Impl::Apart::close(Impl &to) {
  for (auto &[cluster, found] : findings)
    to.findings.add(std::move(found), to.options.maxReports);
  to.grids.usedApart = std::move(used);
}

bool HazardChecker::beginApart() {
  if (impl->options.strict || impl->options.noticed || impl->grids.dependent ||
      impl->orderedKernels.contains(impl->kernelNumber))
    return false;
  impl->apart = std::make_unique<Impl::Apart>(*impl);
  return true;
}

void HazardChecker::beginCluster() { impl->apart->begin(); }

bool HazardChecker::endCluster(uint32_t cluster) { return impl->apart->end(cluster); }

void HazardChecker::endApart(bool count) {
  if (count)
    impl->apart->close(*impl);
  else
    impl->orderedKernels.insert(impl->kernelNumber);
  impl->apart = nullptr;
}

} // namespace fp4::sim
