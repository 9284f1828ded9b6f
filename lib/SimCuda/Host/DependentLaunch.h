//===- DependentLaunch.h - Launches that may run beside others ------------===//
//
// Programmatic dependent launch. All work happens in the order of the calls; here is known what has
// ended on a device when a launch begins, and what may still run: the launch before it in its
// stream, if it allows that (ProgrammaticStreamSerialization), and those whose event has said that
// they trigger (ProgrammaticEvent) or begin (LaunchCompletionEvent).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Report.h"
#include "fp4/Sim/Dependence.h"
#include <cstdint>

namespace fp4::simcuda {

struct Event;

/// The programmatic dependence that a launch asks for.
struct DependentLaunch {
  bool serialized = false; ///< permission to begin before the last launch of the stream has ended
  Event *event = nullptr;  ///< event that is recorded when the launch triggers or begins
  int eventAttribute = 0;  ///< id of the attribute that gave the event: trigger or begin
  bool driver = false;     ///< true when the attributes have the driver's names
};

/// A launch that may still run, and why that is not waited for.
struct Running {
  sim::Prerequisite launch;
  std::string by;
};

using LaunchList = std::vector<std::weak_ptr<const sim::LaunchMark>>;

/// The launches that have ended, and those that may still run, when an event has happened.
struct Moment {
  LaunchList ended;
  std::vector<Running> running;
};

enum class StreamKind : uint8_t { Legacy, Blocking, NonBlocking };

/// The order of the work of one stream.
class FP4_HOST_API StreamOrder {
public:
  explicit StreamOrder(StreamKind kind = StreamKind::Blocking) : kind(kind) {}
  /// Adds a launch as the next work.
  sim::Dependence launch(const DependentLaunch &dependent);
  /// Adds other work, which begins when all before it has ended.
  void settle();
  void wait(const Moment &moment);
  /// An event that is recorded now.
  Moment moment();
  /// An event that is recorded by the launch that was the last work.
  Moment momentOfLaunch(const DependentLaunch &dependent);

private:
  void refresh();
  void end();
  StreamKind kind;
  sim::LaunchRef last; ///< the last work, if it is a launch that may still run
  LaunchList begun;    ///< launches since the last work that waited for everything
  LaunchList ended;
  std::vector<Running> running;   ///< launches of other streams that may still run
  uint64_t others = 0, waits = 0; ///< host's counters when this stream last looked at them
};

/// Notes that the host has waited for the device, or for an event.
FP4_HOST_API void hostWaited();
FP4_HOST_API void hostWaited(const Moment &moment);

} // namespace fp4::simcuda
