//===- Arrivals.h - Arrivals at barriers, for reports ---------------------===//
#pragma once

#include "fp4/Sim/Actor.h"
#include <string>
#include <vector>

namespace fp4::sim {

struct Launch;

/// One arrival.
struct ArrivalEvent {
  Actor actor;
  CodePoint at;
};
using ArrivalEvents = std::vector<ArrivalEvent>;

/// Arrivals that are remembered for each phase.
inline constexpr size_t kMostArrivals = 2048;

/// "warps 1, 2 of CTA rank 0 (line 20; each x32), tcgen05.commit of warp 3 of CTA rank 0 (line
/// 30)"; "nobody". `launch` names operations and places in the source, where it is not null.
std::string listArrivals(const ArrivalEvents &events, const Launch *launch = nullptr);

/// The first arrivals of each actor in `before` that `now` does not have.
ArrivalEvents missingArrivals(const ArrivalEvents &before, const ArrivalEvents &now);

/// "0, 4-7".
std::string listNumbers(const std::vector<uint32_t> &sorted);

/// "line 20", with the place in the source if it is known: "line 20, tcgen05_bugs.cu:31".
std::string describePoint(const Launch *launch, CodePoint at);

/// The arrivals at one barrier of a CTA (bar, barrier.cta).
class BarrierArrivals {
public:
  void add(const ArrivalEvent &event, uint64_t generation);
  /// Arrivals of the phase in progress, and of the phase before.
  const ArrivalEvents &now(uint64_t generation) const {
    return phase == generation ? latest : none;
  }
  const ArrivalEvents &before(uint64_t generation) const {
    return phase == generation ? earlier : latest;
  }

private:
  uint64_t phase = 0; ///< phase of `latest`
  ArrivalEvents latest, earlier, none;
};

} // namespace fp4::sim
