//===- Tune.h - Searching for the fastest plans of a program --------------===//
//
// Plans are found by predicted time (Search.h). The best few are verified in the functional
// simulator, and measured if there is a GPU. A cache remembers what was found (TuneCache.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Harness/Runner.h"
#include "fp4/Tuning/Search.h"

namespace fp4::tuning {

/// Trials that are verified, and measured if there is a GPU.
inline constexpr size_t kFinalists = 3;

struct TuneOptions {
  std::string input; ///< file of the program
  CompilerOptions compiler;
  harness::RunOptions run;
  uint64_t limit = 128; ///< most predictions
  bool retune = false;  ///< ignore what the cache knows
  Progress progress;    ///< display of the search's progress; null: none
};

struct TuneReport {
  std::vector<PlannedKernel> kernels; ///< kernels with the plans of the compiler
  Plans own;                          ///< the plans of the compiler
  std::vector<Trial> trials;          ///< trials by predicted time; the finalists are first
  size_t best = 0;                    ///< number of the best trial
  uint64_t predictions = 0;
  bool fromCache = false;
  std::string device; ///< device that measured; empty: none
  std::vector<std::string> notes;
};

/// Searches, verifies and measures. A program whose kernels have no predictions is a Usage error,
/// and one of whose plans none computes the result of the reference a Mismatch.
Expected<TuneReport> tune(const TuneOptions &options);

/// The text of the program with these plans.
Expected<std::string> tunedProgram(const TuneOptions &options, const Plans &plans);

} // namespace fp4::tuning
