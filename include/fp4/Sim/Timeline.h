//===- Timeline.h - A simulation as a trace that Perfetto opens -----------===//
//
// Writes Trace Event JSON (one event per line; ui.perfetto.dev and chrome://tracing read it): a
// process for every launch, a track for every warp with its barriers and fences, and spans for
// every asynchronous operation, from issue to completion, every phase of every mbarrier, and every
// allocation of tensor memory.
//
// With the policy `timed` the time of an event is what is predicted (KernelTime.h), and the track
// of a warp is full of spans: a wait has the name of its reason (Activity), and "running" is a
// stretch of issues and of waits shorter than kShortest. Clusters that are not in the sample are
// left out. Else the time is the number of the event in the order of the simulation, shown as
// microseconds: an overlap or a wait is true of that schedule, and a length says nothing about a
// device.
//
// Arguments of metadata say what a track is: `cluster`, `cta`, `warp` and `sm` of thread_name,
// `program`, `kernel` and `unit` (ns or events) of process_name.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/Actor.h"
#include "fp4/Sim/KernelTime.h"
#include "fp4/Sim/Observer.h"
#include <map>
#include <ostream>
#include <string>
#include <unordered_map>

namespace fp4::sim {

struct Kernel;

class Timeline final : public Observer {
public:
  /// A wait of fewer nanoseconds belongs to the stretch in which a warp runs.
  static constexpr double kShortest = 20;

  /// `out` must outlive the timeline, whose destructor ends the JSON. `sms`: only clusters that
  /// begin on one of the first SMs have tracks, or without a prediction the first clusters; 0: all
  /// have.
  explicit Timeline(std::ostream &out, uint32_t sms = 0);
  ~Timeline() override;
  Timeline(const Timeline &) = delete;

  void onLaunch(const LaunchEvent &event) override;
  void onMemory(const MemoryEvent &event) override;
  void onBarrier(const BarrierEvent &event) override;
  void onFence(const FenceEvent &event) override;
  void onTicket(const TicketEvent &event) override;
  void onLife(const LifeEvent &event) override;
  void onActivity(const ActivityEvent &event) override;

private:
  /// A stretch in which a warp runs.
  struct Stretch {
    double begin = 0, end = 0;
    std::array<double, kActivities> spent{};
    uint32_t firstLine = 0, lastLine = 0;
  };
  struct Track {
    double end = 0; ///< time at which the track's last entry ends
    Stretch running;
  };

  /// Moves on; false where the event has no time, or its actor no track.
  bool tick(const Actor &actor);
  bool follows(const Actor &actor) const;
  /// A time as JSON has it, in microseconds.
  std::string stamp(double when) const;
  void write(std::string event);
  /// The track of a warp; opens it when it is new.
  uint64_t track(const Actor &actor);
  void instant(const Actor &actor, CodePoint at, std::string_view name, std::string_view more = "");
  void slice(uint64_t track, std::string_view name, double begin, double end,
             std::string_view more);
  void endRunning(uint64_t track, Stretch &running);
  void endStretches();
  void span(char phase, const Actor &actor, CodePoint at, std::string_view category,
            std::string_view name, uint64_t id);
  void mbarrier(const BarrierEvent &event);
  std::string objectOf(const BarrierEvent &event) const;
  void endTracks(uint32_t cluster);

  static uint64_t ctaOf(const Actor &actor) { return uint64_t(actor.cluster) << 8 | actor.ctaRank; }

  std::ostream &out;
  bool first = true;
  double now = 0, begin = 0; ///< present time and the launch's begin, in nanoseconds or events
  double latest = 0;         ///< begin of the next launch
  const double *clock = nullptr;
  uint64_t launches = 0;
  const Kernel *launched = nullptr; ///< kernel of the launch, whose variables have names
  uint32_t sms;
  std::map<uint64_t, Track> tracks;                         ///< tracks of this launch
  std::unordered_map<uint64_t, uint64_t> smOfCta;           ///< SM of each CTA of this launch
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> phases; ///< open phases, by cluster and address
};

} // namespace fp4::sim
