//===- SimulationOptions.h - Options of a simulation ----------------------===//
//
// The one set of options of everything that simulates, with the same names and meanings: fp4-run,
// fp4-runner and fp4-sim run on a command line, the simulator as a device, the stand-ins for CUDA's
// libraries, and tests. Instruments.h makes a simulator of it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fp4::sim {

struct HazardReport;

struct SimulationOptions {
  std::string target = "sm_100a"; ///< target of the code
  std::string policy = "eager";   ///< eager | lazy | random | delay | timed | exhaustive
  /// Cluster sizes of launches with a preferred cluster size: mixed | preferred | fallback
  /// (ClusterSizes).
  std::string clusters = "mixed";
  bool time = false;               ///< true for policy timed with a report of its predictions
  bool timesOnly = false;          ///< Predictor::timesOnly, with `time`
  std::string mix = "ptx";         ///< Predictor::mix, with `time`: ptx | cubin | auto
  double clock = 0;                ///< Predictor::gigahertz, with `time`
  std::string gpu;                 ///< Predictor::gpu, with `time`
  uint64_t sampleAfter = 6u << 20; ///< Predictor::sampleAfter, with `time`
  uint64_t seed = 1;               ///< seed of the random policy and of mixed clusters
  uint64_t maxOrders = 0;         ///< limit of the policy exhaustive, for each launch; 0: no limit
  /// Order that a report named, or the name of a file that holds one: it alone runs.
  std::string replay;
  /// The hazard checker: off | default | strict; empty: default, where a simulator runs the
  /// program. The rules of a program follow from the mode: with off and default they are those on
  /// which practice relies, with strict the letter of the PTX text.
  std::string check;
  bool statistics = false;                ///< count bank conflicts and uncoalesced accesses
  std::string timeline;                   ///< file for a trace (Timeline.h); empty: none
  uint32_t timelineSms = 0;               ///< SMs in the trace; 0: all
  std::string unwritten = "error";        ///< reads of shared memory nobody wrote: error | ignore
  unsigned hostThreads = 0;               ///< 0: as many as the machine has
  uint64_t spinLimit = uint64_t(1) << 32; ///< SimOptions::spinLimit
  std::function<void(const HazardReport &)> noticed = {}; ///< HazardOptions::noticed
};

} // namespace fp4::sim
