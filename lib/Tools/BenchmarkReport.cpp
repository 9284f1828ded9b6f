//===- BenchmarkReport.cpp - The table of a benchmark ---------------------===//

#include "fp4/Tools/Benchmark.h"

#include <fmt/format.h>

namespace fp4::tools {
namespace {

std::string clockText(const Timing &timing) {
  if (!timing.clockMax)
    return "-";
  return timing.clockMin == timing.clockMax
             ? std::to_string(timing.clockMax)
             : fmt::format("{}-{}", timing.clockMin, timing.clockMax);
}

std::string rowText(const BenchmarkReport::Entry &entry, size_t width) {
  const Timing &t = entry.timing;
  auto orDash = [](double value, const char *form) {
    return value > 0 ? fmt::format(fmt::runtime(form), value) : std::string("-");
  };
  return fmt::format(
      "  {:<{}}  {:>9.2f}  {:>8.2f}  {:>8.2f}  {:>5.2f}%{} {:>6}  {:>7}  {:>7}  {:>7}  "
      "{:>9}  {}\n",
      entry.name, width, t.median * 1e3, t.p20 * 1e3, t.p80 * 1e3, t.relativeError * 100,
      t.settled ? " " : "*", orDash(entry.bytesPerSecond() / 1e12, "{:.3f}"),
      orDash(entry.copy ? double(entry.traffic.bytes) / entry.copy->median / 1e9 : 0, "{:.3f}"),
      orDash(entry.ofCopy() * 100, "{:.1f}%"), orDash(entry.flopsPerSecond() / 1e12, "{:.1f}"),
      clockText(t), t.graph ? "graph" : "events");
}

} // namespace

double BenchmarkReport::Entry::bytesPerSecond() const {
  return timing.median > 0 ? double(traffic.bytes) / (timing.median * 1e-3) : 0;
}

double BenchmarkReport::Entry::flopsPerSecond() const {
  return timing.median > 0 ? double(traffic.flops) / (timing.median * 1e-3) : 0;
}

double BenchmarkReport::Entry::ofCopy() const {
  return copy && timing.median > 0 ? copy->median / timing.median : 0;
}

std::string BenchmarkReport::text() const {
  size_t width = 7;
  bool unsettled = false;
  for (const Entry &entry : entries) {
    width = std::max(width, entry.name.size());
    unsettled |= !entry.timing.settled;
  }
  std::string text =
      fmt::format("  benchmark: {} operand set{} of {:.1f} MB in turn, L2 {:.1f} MB: "
                  "{}; results unchanged\n",
                  sets, sets == 1 ? "" : "s", double(setBytes) / 1e6, double(l2Bytes) / 1e6,
                  cold ? "cold" : "NOT cold");
  text += fmt::format(
      "  {:<{}}  {:>9}  {:>8}  {:>8}  {:>6}  {:>6}  {:>7}  {:>7}  {:>7}  {:>9}  {}\n", "", width,
      "median us", "p20", "p80", "error", "TB/s", "copy", "of copy", "TFLOP/s", "SM MHz", "by");
  for (const Entry &entry : entries)
    text += rowText(entry, width);
  if (unsettled)
    text += "  * stopped at the limit of samples or time before the error was small\n";
  return text;
}

} // namespace fp4::tools
