//===- Timeline.h - A simulation as a trace that Perfetto opens -----------===//
//
// Writes Trace Event JSON (one event per line; ui.perfetto.dev and chrome://tracing read it): a
// process for every launch, a track for every warp with its barriers and fences, and spans for
// every asynchronous operation, from issue to completion, every phase of every mbarrier, and every
// allocation of tensor memory.
//
// With the policy `timed` the time of an event is what is predicted (KernelTime.h); clusters that
// are not in the sample are left out. Else it is the number of the event in the order of the
// simulation, shown as microseconds: an overlap or a wait is true of that schedule, and a length
// says nothing about a device.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/Actor.h"
#include "fp4/Sim/Observer.h"
#include <map>
#include <ostream>
#include <string>

namespace fp4::sim {

class Timeline final : public Observer {
public:
  /// `out` must outlive the timeline, whose destructor ends the JSON.
  explicit Timeline(std::ostream &out);
  ~Timeline() override;
  Timeline(const Timeline &) = delete;

  void onLaunch(const LaunchEvent &event) override;
  void onMemory(const MemoryEvent &) override { tick(); }
  void onBarrier(const BarrierEvent &event) override;
  void onFence(const FenceEvent &event) override;
  void onTicket(const TicketEvent &event) override;
  void onLife(const LifeEvent &event) override;

private:
  /// Moves on; false where the event has no time.
  bool tick();
  /// A time as JSON has it, in microseconds.
  std::string stamp(double when) const;
  void write(std::string event);
  /// The track of a warp; opens it when it is new.
  uint64_t track(const Actor &actor);
  void instant(const Actor &actor, CodePoint at, std::string_view name);
  void span(char phase, const Actor &actor, CodePoint at, std::string_view category,
            std::string_view name, uint64_t id);
  void mbarrier(const BarrierEvent &event);
  void endTracks(uint32_t cluster);

  std::ostream &out;
  bool first = true;
  double now = 0, begin = 0; ///< events, or nanoseconds; of the launch
  const double *clock = nullptr;
  uint64_t launches = 0;
  std::map<uint64_t, double> tracks; ///< last exit of each warp in this launch
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> phases; ///< open ones, by cluster and address
};

} // namespace fp4::sim
