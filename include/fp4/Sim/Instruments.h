//===- Instruments.h - Observers of a simulation --------------------------===//
//
// From SimulationOptions to a simulator, the only way in which tools and libraries assemble one:
//
//   auto settings = settingsOf(options);
//   auto instruments = Instruments::create(options, *settings);
//   Simulator simulator(*settings);
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/AccessStatistics.h"
#include "fp4/Sim/HazardChecker.h"
#include "fp4/Sim/KernelTime.h"
#include "fp4/Sim/ObserverList.h"
#include "fp4/Sim/SimulationOptions.h"
#include "fp4/Sim/Simulator.h"
#include "fp4/Sim/Timeline.h"
#include "fp4/Support/OutputFile.h"

namespace fp4::sim {

/// Settings without instruments; a wrong value is a Usage error that names the option.
Expected<SimOptions> settingsOf(const SimulationOptions &options);

/// The hazard checker, the counters and the timeline that were asked for. The object outlives the
/// simulator.
class Instruments {
public:
  /// Puts the instruments into `settings`, and the rules that go with the checker's mode. Without
  /// instruments nothing observes, which is faster.
  static Expected<std::unique_ptr<Instruments>> create(const SimulationOptions &options,
                                                       SimOptions &settings);

  /// Findings of the checker in all launches so far.
  std::vector<HazardReport> hazards() const;
  /// Number of findings of the checker (HazardChecker::found).
  uint64_t hazardCount() const;
  void clearHazards();
  bool counts() const { return statistics != nullptr; }
  /// The accesses that cost more than they must, the worst first.
  std::vector<AccessCount> wasteful() const;

  /// The predicted times of all launches so far, with the option `time`.
  const std::vector<KernelTime> &times() const { return predicted; }
  /// The source of each launch's machine instructions (Predictor::receive).
  const std::vector<std::string> &instructionMixes() const { return mixes; }

  /// The orders of all launches so far, with the policy exhaustive.
  const std::vector<OrderReport> &orders() const { return explored; }

  bool hasTimeline() const { return timeline != nullptr; }
  /// The name that the timeline has until finish(); empty for a device or a pipe.
  std::string timelineDraft() const;
  /// The last launch was that: the timeline gets its end, and its name.
  Status finish();
  /// Leaves the timeline to the process that this one was forked from.
  void abandonTimeline();

private:
  Instruments() = default;
  Status receiveTimes(const SimulationOptions &options, SimOptions &settings);

  std::unique_ptr<HazardChecker> checker;
  std::unique_ptr<AccessStatistics> statistics;
  std::unique_ptr<OutputFile> timelineFile;
  std::unique_ptr<Timeline> timeline; ///< writes to timelineFile
  ObserverList observers;             ///< the existing ones
  std::vector<KernelTime> predicted;
  std::vector<OrderReport> explored;
  std::vector<std::string> mixes;
};

} // namespace fp4::sim
