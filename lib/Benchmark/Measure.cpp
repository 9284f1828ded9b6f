//===- Measure.cpp - Times of work on a device, with their statistics -----===//

#include "fp4/Benchmark/Measure.h"
#include "SmClock.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace fp4::harness {
namespace {

constexpr double kGraphBelowMs = 0.05;
constexpr size_t kMinNodes = 10;
/// The length of one sample, long enough that neither the gap between two graphs nor the events
/// around a row count.
constexpr double kSampleMs = 2;
constexpr size_t kMaxRunsPerSample = 1000;
/// Runs issued before the host waits: enough to keep the device busy.
constexpr size_t kBatch = 10;

double quantile(const std::vector<double> &sorted, double fraction) {
  double position = fraction * double(sorted.size() - 1);
  size_t below = size_t(position);
  size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - double(below)) * (sorted[above] - sorted[below]);
}

class Measurement {
public:
  Measurement(rt::Device &device, size_t sets, const std::function<Status(size_t)> &issue,
              const MeasureOptions &options)
      : device_(device), sets_(sets), issue_(issue), options_(options), clock_(device) {}

  Expected<Timing> run() {
    FP4_TRY(warmUp());
    FP4_TRY(heat());
    while (!done())
      FP4_TRY(batch([this] { return once(); }, timing_.runsPerSample));
    if (!clocks_.empty())
      timing_.trueClock = std::reduce(clocks_.begin(), clocks_.end()) / double(clocks_.size());
    return std::move(timing_);
  }

private:
  Status warmUp();
  Status heat();
  Status captureGraph(double millisecondsPerRun);
  Status batch(const std::function<Status()> &work, size_t runs);
  bool done();
  void sampleCondition();
  /// Issues the work of one sample.
  Status once();
  Status next() { return issue_(set_++ % sets_); }
  /// Runs that take about kSampleMs.
  static size_t runsOf(double millisecondsPerRun, size_t atLeast) {
    double wanted = std::ceil(kSampleMs / std::max(millisecondsPerRun, 1e-6));
    return size_t(std::clamp(wanted, double(atLeast), double(kMaxRunsPerSample)));
  }

  rt::Device &device_;
  size_t sets_;
  const std::function<Status(size_t)> &issue_;
  const MeasureOptions &options_;
  SmClock clock_;
  std::vector<double> clocks_; ///< MHz, of each batch
  size_t set_ = 0;
  uint32_t graph_ = 0;
  Timing timing_;
};

/// Loads the code and raises the clock; its times only choose the method.
Status Measurement::warmUp() {
  for (size_t i = 0; i < std::max(sets_, kBatch); ++i)
    FP4_TRY(next());
  FP4_TRY(batch([this] { return next(); }, 1));
  summarize(timing_, options_.tolerance);
  const double estimate = timing_.median;
  timing_ = {};
  clocks_.clear();
  if (options_.graphs && estimate < kGraphBelowMs)
    return captureGraph(estimate);
  timing_.runsPerSample = runsOf(estimate, 1);
  return {};
}

/// Does the work for the time that is asked for, and forgets its samples.
Status Measurement::heat() {
  for (double spent = 0; spent < options_.warmMilliseconds;) {
    const size_t before = timing_.samples.size();
    FP4_TRY(batch([this] { return once(); }, timing_.runsPerSample));
    for (size_t i = before; i < timing_.samples.size(); ++i)
      spent += std::max(timing_.samples[i] * double(timing_.runsPerSample), 1e-3);
  }
  timing_.samples.clear();
  clocks_.clear();
  return {};
}

Status Measurement::once() {
  if (timing_.graph)
    return device_.replay(graph_);
  for (size_t i = 0; i < timing_.runsPerSample; ++i)
    FP4_TRY(next());
  return {};
}

Status Measurement::captureGraph(double millisecondsPerRun) {
  // A graph repeats the same sets, each equally often.
  const size_t runs = (runsOf(millisecondsPerRun, kMinNodes) + sets_ - 1) / sets_ * sets_;
  auto graph = device_.capture([&]() -> Status {
    for (size_t i = 0; i < runs; ++i)
      FP4_TRY(next());
    return {};
  });
  if (!graph)
    return tl::unexpected<Error>(graph.error());
  if (graph->nodes < std::max(kMinNodes, runs))
    return makeError(ErrorKind::Internal,
                     fmt::format("a graph of {} runs must have at least {} nodes, but has {}", runs,
                                 std::max(kMinNodes, runs), graph->nodes),
                     "the work was not captured; there is nothing to time");
  timing_.graph = true;
  timing_.runsPerSample = runs;
  graph_ = graph->id;
  return device_.replay(graph_);
}

Status Measurement::batch(const std::function<Status()> &work, size_t runs) {
  std::vector<std::pair<uint32_t, uint32_t>> marks;
  FP4_TRY(clock_.note(/*behind=*/false));
  for (size_t i = 0; i < kBatch; ++i) {
    FP4_ASSIGN(auto begin, device_.recordEvent());
    FP4_TRY(work());
    FP4_ASSIGN(auto end, device_.recordEvent());
    marks.emplace_back(begin, end);
  }
  FP4_TRY(clock_.note(/*behind=*/true));
  sampleCondition();
  for (auto [begin, end] : marks) {
    FP4_ASSIGN(auto elapsed, device_.elapsedMs(begin, end));
    timing_.samples.push_back(elapsed / double(runs));
  }
  FP4_ASSIGN(const double megahertz, clock_.megahertz());
  if (megahertz > 0)
    clocks_.push_back(megahertz);
  return {};
}

/// Samples the state of the device while it works on a batch.
void Measurement::sampleCondition() {
  auto now = device_.condition();
  if (!now)
    return;
  const uint32_t clock = now->smClockMhz;
  timing_.clockMin = timing_.clockMin ? std::min(timing_.clockMin, clock) : clock;
  timing_.clockMax = std::max(timing_.clockMax, clock);
  timing_.watts = std::max(timing_.watts, now->watts);
  timing_.throttleReasons |= now->throttleReasons;
}

bool Measurement::done() {
  if (timing_.samples.size() < options_.minSamples)
    return false;
  summarize(timing_, options_.tolerance);
  double spent = timing_.median * double(timing_.samples.size() * timing_.runsPerSample);
  return timing_.settled || timing_.samples.size() >= options_.maxSamples ||
         spent >= options_.maxMilliseconds;
}

} // namespace

void summarize(Timing &timing, double tolerance) {
  std::vector<double> sorted = timing.samples;
  std::sort(sorted.begin(), sorted.end());
  timing.p20 = quantile(sorted, 0.2);
  timing.median = quantile(sorted, 0.5);
  timing.p80 = quantile(sorted, 0.8);
  // A normal distribution has its 20th and 80th percentile 1.683 deviations apart, and the median
  // of n samples a standard error of sqrt(pi/2) deviations over sqrt(n).
  double deviation = (timing.p80 - timing.p20) / 1.683;
  double error = 1.2533 * deviation / std::sqrt(double(sorted.size()));
  timing.relativeError = timing.median > 0 ? error / timing.median : 0;
  timing.settled = timing.relativeError <= tolerance;
}

Expected<Timing> measure(rt::Device &device, size_t sets,
                         const std::function<Status(size_t set)> &issue,
                         const MeasureOptions &options) {
  return Measurement(device, sets, issue, options).run();
}

} // namespace fp4::harness
