//===- BenchmarkCompare.cpp - Two benchmarks, one verdict -----------------===//

#include "fp4/Benchmark/Benchmark.h"

#include "fp4/Support/InputFile.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fp4::harness {
namespace {

constexpr double kSame = 0.01;
constexpr double kStandardErrors = 2.6;

Comparison compareEntry(const BenchmarkReport::Entry &now, const Baseline &baseline) {
  Comparison comparison{now.name, 0, 0, "UNDECIDED"};
  auto then = baseline.entries.find(now.name);
  if (then == baseline.entries.end() || then->second.bytes != now.traffic.bytes ||
      then->second.flops != now.traffic.flops || then->second.median <= 0)
    return comparison;
  comparison.ratio = now.timing.median / then->second.median;
  comparison.error = kStandardErrors * comparison.ratio *
                     std::hypot(now.timing.relativeError, then->second.relativeError);
  const double low = comparison.ratio - comparison.error,
               high = comparison.ratio + comparison.error;
  if (high < 1 - kSame)
    comparison.verdict = "FASTER";
  else if (low > 1 + kSame)
    comparison.verdict = "SLOWER";
  else if (low >= 1 - kSame && high <= 1 + kSame)
    comparison.verdict = "SAME";
  return comparison;
}

} // namespace

Expected<Baseline> readBaseline(const std::string &path) {
  FP4_ASSIGN(auto text, readText(path));
  auto report = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  auto wrong = [&](std::string_view what) {
    return makeError(ErrorKind::Usage, fmt::format("'{}' must be {}", path, what),
                     "write it with --benchmark --json on a GPU");
  };
  if (report.is_discarded() || !report.is_object())
    return wrong("a JSON file");
  Baseline baseline;
  try {
    const auto &benchmark = report.at("benchmark");
    baseline.device = benchmark.at("environment").at("device");
    for (const auto &entry : benchmark.at("entries"))
      baseline.entries[entry.at("name")] = {entry.at("timing").at("median_ms"),
                                            entry.at("timing").at("relative_error"),
                                            entry.at("bytes"), entry.at("flops")};
  } catch (const nlohmann::json::exception &) { // a field is missing, or of another type
    return wrong("the report of a benchmark");
  }
  return baseline;
}

Expected<std::vector<Comparison>> compare(const BenchmarkReport &report, const std::string &device,
                                          const Baseline &baseline) {
  if (device != baseline.device)
    return makeError(
        ErrorKind::Usage,
        fmt::format("--compare expects numbers of this device, {}, but got those of {}", device,
                    baseline.device));
  std::vector<Comparison> comparisons;
  for (const BenchmarkReport::Entry &entry : report.entries)
    comparisons.push_back(compareEntry(entry, baseline));
  return comparisons;
}

} // namespace fp4::harness
