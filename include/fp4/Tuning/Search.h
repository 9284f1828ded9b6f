//===- Search.h - A descent to the plans of the shortest prediction -------===//
//
// Field by field, every legal value is predicted, and the best is kept, until a whole round changes
// nothing or the predictions are used up.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Compiler/Compiler.h"
#include "fp4/Harness/TimeCompare.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fp4::tuning {

/// Plans of each kernel, in the order of the program.
using Plans = std::vector<std::string>;

/// The plans that differ from `own`, those of the compiler, as text.
std::string describePlans(const Plans &plans, const Plans &own);

/// A program with plans, and its time.
struct Trial {
  Plans plans;
  harness::TimedProgram timed;                   ///< predicted
  double microseconds = 0;                       ///< predicted
  bool verified = false;                         ///< equal to the reference in the simulator
  std::optional<double> measured = std::nullopt; ///< microseconds on a GPU
};

/// The program that a search is about. The compiler says which plans are legal.
class Predictor {
public:
  virtual ~Predictor() = default;
  /// The launches with their predicted times, each of which has one.
  virtual Expected<harness::TimedProgram> predict(const Plans &plans) = 0;
  /// The legal plans that are one decision away from that of kernel `kernel`.
  virtual std::vector<PlanChange> changesOf(const Plans &plans, size_t kernel) = 0;
};

/// Is told how many plans were predicted, and how many there are.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

class Search {
public:
  /// `limit` is the most predictions.
  Search(Predictor &predictor, uint64_t limit) : predictor(predictor), limit(limit) {}

  /// Adds a trial, unless these plans were tried or do not compile; an error of the first plans is
  /// one of the search. Returns true when the trial is better than the best one.
  Expected<bool> predict(const Plans &plans);
  /// Descends from the best trial.
  Status descend(Progress progress = nullptr);

  std::vector<Trial> trials;
  std::vector<std::string> notes; ///< plans that were passed over, and why
  size_t best = 0;                ///< number of the best trial
  uint64_t predictions = 0;

private:
  Expected<bool> descendAlong(size_t kernel);
  std::vector<size_t> kernelsByTime() const;

  Predictor &predictor;
  uint64_t limit;
  std::vector<Plans> tried;
  Progress progress;
};

} // namespace fp4::tuning
