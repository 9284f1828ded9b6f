//===- Search.cpp - A descent to the plans of the shortest prediction -----===//

#include "fp4/Tuning/Search.h"

#include <algorithm>
#include <numeric>

namespace fp4::tuning {

/// The ratio above which a better prediction is not worth a step.
static constexpr double kWorthwhile = 0.995;

std::string describePlans(const Plans &plans, const Plans &own) {
  std::string text;
  for (size_t i = 0; i < plans.size(); ++i)
    if (i >= own.size() || plans[i] != own[i])
      text += (text.empty() ? "" : "; ") +
              (plans.size() > 1 ? "kernel " + std::to_string(i) + ": " + plans[i] : plans[i]);
  return text.empty() ? "the plans of the compiler" : text;
}

Expected<bool> Search::predict(const Plans &plans) {
  if (std::find(tried.begin(), tried.end(), plans) != tried.end())
    return false;
  tried.push_back(plans);
  Expected<harness::TimedProgram> timed = predictor.predict(plans);
  if (!timed && trials.empty())
    return tl::unexpected<Error>(std::move(timed.error()));
  if (!timed) {
    if (timed.error().kind != ErrorKind::Compile)
      notes.push_back("a plan was passed over: " + describePlans(plans, tried.front()) + ": " +
                      timed.error().message);
    return false;
  }
  ++predictions;
  const double microseconds = timed->microseconds().value_or(0);
  trials.push_back({plans, std::move(*timed), microseconds});
  if (progress)
    progress(std::min(predictions, limit - 1), limit);
  return microseconds < trials[best].microseconds * kWorthwhile;
}

/// Tries the fields of one kernel, in turn. Returns true when a trial was better.
Expected<bool> Search::descendAlong(size_t kernel) {
  bool moved = false;
  Plans from = trials[best].plans;
  std::vector<PlanChange> changes = predictor.changesOf(from, kernel);
  std::vector<std::string> fields;
  for (const PlanChange &change : changes)
    if (std::find(fields.begin(), fields.end(), change.field) == fields.end())
      fields.push_back(change.field);
  for (const std::string &field : fields) {
    // Changes are those of other plans: the whole program is planned again for them.
    if (from != trials[best].plans && predictions < limit) {
      from = trials[best].plans;
      changes = predictor.changesOf(from, kernel);
    }
    for (const PlanChange &change : changes) {
      if (change.field != field || predictions >= limit)
        continue;
      Plans plans = from;
      plans[kernel] = change.plan;
      FP4_ASSIGN(bool better, predict(plans));
      if (better)
        best = trials.size() - 1;
      moved |= better;
    }
  }
  return moved;
}

/// Kernels in order of their time, the longest first, if launches and kernels are as many.
std::vector<size_t> Search::kernelsByTime() const {
  std::vector<size_t> order(trials.front().plans.size());
  std::iota(order.begin(), order.end(), size_t(0));
  const auto &launches = trials.front().timed.launches;
  if (launches.size() == order.size())
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return launches[a].time.microseconds > launches[b].time.microseconds;
    });
  return order;
}

Status Search::descend(Progress shown) {
  progress = std::move(shown);
  bool moved = true;
  while (moved && predictions < limit) {
    moved = false;
    for (size_t kernel : kernelsByTime()) {
      FP4_ASSIGN(bool better, descendAlong(kernel));
      moved |= better;
    }
  }
  if (progress)
    progress(limit, limit);
  return {};
}

} // namespace fp4::tuning
