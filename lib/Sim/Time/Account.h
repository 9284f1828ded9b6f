//===- Account.h - Activities that took the time of a timed launch --------===//
#pragma once

#include "Sim/Time/Machine.h"
#include "fp4/Sim/KernelTime.h"

namespace fp4::sim {

/// The account of one warp.
struct WarpAccount {
  std::array<double, kActivities> cycles{};
  double instructions = 0;
  uint32_t units = 0; ///< mask of the units that the warp used
};

/// The warps of all CTAs, by their place in the CTA.
class Account {
public:
  void add(uint32_t warp, const WarpAccount &one);
  /// Neighbours that used the same units are one role.
  std::vector<RoleTime> roles() const;

private:
  struct Place {
    WarpAccount sum;
    uint64_t warps = 0;
  };
  std::vector<Place> places;
};

/// Returns how busy each resource was in `cycles`, the busiest first; for SMs, those of the first
/// `processors`.
std::vector<ResourceTime> resourcesOf(const Machine &machine, double cycles, size_t processors);

} // namespace fp4::sim
