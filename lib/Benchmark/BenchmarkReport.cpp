//===- BenchmarkReport.cpp - The table of a benchmark ---------------------===//

#include "fp4/Benchmark/Benchmark.h"

#include <fmt/format.h>

namespace fp4::harness {
namespace {

std::string clockText(const Timing &timing) {
  if (timing.trueClock > 0)
    return fmt::format("{:.0f}", timing.trueClock);
  if (!timing.clockMax)
    return "-";
  return timing.clockMin == timing.clockMax
             ? std::to_string(timing.clockMax)
             : fmt::format("{}-{}", timing.clockMin, timing.clockMax);
}

/// The text for the roof that is nearer.
std::string roofText(const BenchmarkReport::OfRoof &of) {
  if (of.products > of.memory)
    return fmt::format("{:.1f}% FP4, {:.1f}% at clock", of.products * 100, of.mmasAtClock * 100);
  return of.memory > 0 ? fmt::format("{:.1f}% memory", of.memory * 100) : "-";
}

std::string rowText(const BenchmarkReport &report, const BenchmarkReport::Entry &entry,
                    size_t width) {
  const Timing &t = entry.timing;
  auto orDash = [](double value, const char *form) {
    return value > 0 ? fmt::format(fmt::runtime(form), value) : std::string("-");
  };
  return fmt::format(
      "  {:<{}}  {:>9.2f}  {:>8.2f}  {:>8.2f}  {:>5.2f}%{} {:>6}  {:>7}  {:>7}  {:>7}  "
      "{:>9}{} {:>5}  {:>6}  {}\n",
      entry.name, width, t.median * 1e3, t.p20 * 1e3, t.p80 * 1e3, t.relativeError * 100,
      t.settled ? " " : "*", orDash(entry.bytesPerSecond() / 1e12, "{:.3f}"),
      orDash(entry.copy ? double(entry.traffic.bytes) / entry.copy->median / 1e9 : 0, "{:.3f}"),
      orDash(entry.ofCopy() * 100, "{:.1f}%"), orDash(entry.flopsPerSecond() / 1e12, "{:.1f}"),
      clockText(t), throttleText(t.throttleReasons).empty() ? " " : "!", orDash(t.watts, "{:.0f}"),
      t.graph ? "graph" : "rows", roofText(report.ofRoof(entry)));
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

double BenchmarkReport::Entry::ofTwin() const {
  return twin && timing.median > 0 ? twin->median / timing.median : 0;
}

std::string BenchmarkReport::text() const {
  size_t width = 7;
  bool unsettled = false;
  uint64_t throttled = 0;
  for (const Entry &entry : entries) {
    width = std::max(width, entry.name.size());
    unsettled |= !entry.timing.settled;
    throttled |= entry.timing.throttleReasons;
  }
  std::string text =
      fmt::format("  benchmark: {} operand set{} of {:.1f} MB in turn, L2 {:.1f} MB: "
                  "{}; results unchanged\n",
                  sets, sets == 1 ? "" : "s", double(setBytes) / 1e6, double(l2Bytes) / 1e6,
                  cold ? "cold" : "NOT cold");
  text += fmt::format(
      "  {:<{}}  {:>9}  {:>8}  {:>8}  {:>6}  {:>6}  {:>7}  {:>7}  {:>7}  {:>9}  {:>5}  {:>6}  {}\n",
      "", width, "median us", "p20", "p80", "error", "TB/s", "copy", "of copy", "TFLOP/s", "SM MHz",
      "W", "by", "of the roof");
  for (const Entry &entry : entries)
    text += rowText(*this, entry, width);
  for (const Entry &entry : entries)
    if (entry.twin)
      text +=
          fmt::format("  {:<{}}  {:>9.2f}  without arithmetic, same loads and stores: {:.1f}% of "
                      "its rate\n",
                      entry.name, width, entry.twin->median * 1e3, entry.ofTwin() * 100);
  if (unsettled)
    text += "  * stopped at the limit of samples or time before the error was small\n";
  if (std::string reasons = throttleText(throttled); !reasons.empty())
    text += "  ! clocks were held down: " + reasons + "\n";
  return text;
}

//===----------------------------------------------------------------------===//
// The roof
//===----------------------------------------------------------------------===//

std::optional<Roof> roofOf(std::string_view deviceName) {
  // Roofs from vendor's data sheets; B200 as docs/performance/README.md says.
  constexpr std::pair<std::string_view, Roof> roofs[] = {
      {"B200", {7.67e12, 32768, 1965}},
      {"H200", {4.8e12, 0, 1980}},
      {"H100", {3.35e12, 0, 1980}},
  };
  for (const auto &[name, roof] : roofs)
    if (deviceName.find(name) != deviceName.npos)
      return roof;
  return std::nullopt;
}

BenchmarkReport::OfRoof BenchmarkReport::ofRoof(const Entry &entry) const {
  OfRoof of;
  if (!roof)
    return of;
  of.memory = entry.bytesPerSecond() / roof->bytesPerSecond;
  const double flopsPerMegahertz = roof->flopsPerClock * sms * 1e6;
  if (flopsPerMegahertz > 0)
    of.products = entry.flopsPerSecond() / (flopsPerMegahertz * roof->clockMhz);
  const double clock = entry.timing.trueClock > 0 ? entry.timing.trueClock : entry.timing.clockMax;
  if (flopsPerMegahertz > 0 && clock > 0)
    of.mmasAtClock = entry.flopsPerSecond() / (flopsPerMegahertz * clock);
  return of;
}

std::string throttleText(uint64_t reasons) {
  // NVML's bits, except idle (1), a clock the user set (2) and the display's (0x100).
  constexpr std::pair<uint64_t, std::string_view> known[] = {
      {0x4, "power cap"}, {0x8, "hardware slowdown"}, {0x10, "sync boost"},
      {0x20, "thermal"},  {0x40, "hardware thermal"}, {0x80, "power brake"},
  };
  std::string text;
  for (const auto &[bit, name] : known)
    if (reasons & bit)
      text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

} // namespace fp4::harness
