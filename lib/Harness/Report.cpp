//===- Report.cpp - The report of a run -----------------------------------===//

#include "TimeCompareJson.h"

#include "fp4/Harness/Check.h"
#include "fp4/Harness/Runner.h"
#include "fp4/Sim/ReportJson.h"
#include "fp4/Support/JsonText.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fp4::harness {
namespace {

using sim::toJson; // of hazards and accesses, beside those of this file

std::string duration(double milliseconds) {
  if (milliseconds < 1)
    return fmt::format("{:.1f} us", milliseconds * 1e3);
  if (milliseconds < 1000)
    return fmt::format("{:.1f} ms", milliseconds);
  return fmt::format("{:.2f} s", milliseconds / 1e3);
}

std::string dims(const rt::Dim3 &dim) {
  if (dim.z != 1)
    return fmt::format("{}x{}x{}", dim.x, dim.y, dim.z);
  return dim.y != 1 ? fmt::format("{}x{}", dim.x, dim.y) : std::to_string(dim.x);
}

std::string verdictText(const Verdict &verdict) {
  if (verdict.passed && verdict.hasBound)
    return fmt::format("equals {}; largest error {:.3g}, {:.2f} of its bound", verdict.method,
                       verdict.maxError, verdict.maxErrorOfBound);
  if (verdict.passed)
    return fmt::format("equals {}", verdict.method);
  std::string text = fmt::format("differs from {}: {} of {} elements", verdict.method,
                                 verdict.mismatches, verdict.elements);
  if (verdict.hasBound)
    text += fmt::format(" differ, {} lie beyond their bound", verdict.outside);
  return text;
}

std::string indent(const std::string &text) {
  std::string result;
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(text.find('\n', start), text.size());
    result += "      " + text.substr(start, end - start) + "\n";
    start = end + 1;
  }
  return result;
}

std::string kernelText(const RunReport::Kernel &kernel) {
  std::string text =
      fmt::format("{} CTA{} of {} threads", dims(kernel.shape.grid),
                  kernel.shape.grid.count() == 1 ? "" : "s", dims(kernel.shape.block));
  if (kernel.registers)
    text += fmt::format(", {} registers", kernel.registers);
  if (kernel.spillBytes)
    text += fmt::format(", {} bytes spilled", kernel.spillBytes);
  if (kernel.sharedBytes)
    text += fmt::format(", {} bytes shared", kernel.sharedBytes);
  return kernel.milliseconds > 0 ? text + ", " + duration(kernel.milliseconds) : text;
}

nlohmann::ordered_json toJson(const rt::Dim3 &dim) { return {dim.x, dim.y, dim.z}; }

nlohmann::ordered_json toJson(const RunReport::Operand &operand) {
  return {{"name", operand.name}, {"type", operand.type.str()}, {"source", operand.source}};
}

nlohmann::ordered_json toJson(const RunReport::Kernel &kernel) {
  nlohmann::ordered_json object = {{"module", kernel.module},
                                   {"name", kernel.name},
                                   {"grid", toJson(kernel.shape.grid)},
                                   {"block", toJson(kernel.shape.block)},
                                   {"registers", kernel.registers},
                                   {"spill_bytes", kernel.spillBytes},
                                   {"shared_bytes", kernel.sharedBytes},
                                   {"milliseconds", kernel.milliseconds}};
  if (kernel.counts)
    object["counts"] = {{"warp_instructions", kernel.counts->warpInstructions},
                        {"mmas", kernel.counts->mmas},
                        {"tickets", kernel.counts->tickets}};
  return object;
}

nlohmann::ordered_json toJson(const Timing &timing) {
  nlohmann::ordered_json object = {{"median_ms", timing.median},
                                   {"p20_ms", timing.p20},
                                   {"p80_ms", timing.p80},
                                   {"relative_error", timing.relativeError},
                                   {"settled", timing.settled},
                                   {"method", timing.graph ? "graph" : "rows"},
                                   {"runs_per_sample", timing.runsPerSample},
                                   {"samples_ms", timing.samples}};
  if (timing.clockMax) {
    object["sm_clock_mhz"] = {timing.clockMin, timing.clockMax};
    object["watts"] = timing.watts;
    object["throttle_reasons"] = timing.throttleReasons;
  }
  if (timing.trueClock > 0)
    object["true_clock_mhz"] = timing.trueClock;
  return object;
}

nlohmann::ordered_json toJson(const Comparison &comparison) {
  return {{"name", comparison.name},
          {"verdict", comparison.verdict},
          {"ratio", comparison.ratio},
          {"error", comparison.error}};
}

nlohmann::ordered_json toJson(const BenchmarkReport::Entry &entry) {
  nlohmann::ordered_json object = {{"name", entry.name},
                                   {"bytes", entry.traffic.bytes},
                                   {"flops", entry.traffic.flops},
                                   {"bytes_per_second", entry.bytesPerSecond()},
                                   {"flops_per_second", entry.flopsPerSecond()},
                                   {"timing", toJson(entry.timing)}};
  if (entry.copy) {
    object["of_copy"] = entry.ofCopy();
    object["copy"] = toJson(*entry.copy);
  }
  if (entry.twin) {
    object["of_twin"] = entry.ofTwin();
    object["twin"] = toJson(*entry.twin);
  }
  return object;
}

nlohmann::ordered_json toJson(const Verdict &verdict) {
  nlohmann::ordered_json object = {{"name", verdict.name},
                                   {"passed", verdict.passed},
                                   {"method", verdict.method},
                                   {"elements", verdict.elements},
                                   {"mismatches", verdict.mismatches}};
  if (verdict.hasBound) {
    object["max_error"] = verdict.maxError;
    object["max_error_of_bound"] = verdict.maxErrorOfBound;
    object["outside_bound"] = verdict.outside;
  }
  if (!verdict.details.empty())
    object["details"] = verdict.details;
  return object;
}

template <typename List> nlohmann::ordered_json listToJson(const List &list) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const auto &item : list)
    array.push_back(toJson(item));
  return array;
}

/// The counts of a simulation. Times of a simulation say nothing about a GPU, which the text
/// states.
std::string countsText(const RunReport &report) {
  std::string text =
      fmt::format("  benchmark: counts of the simulator and times of this host, check {}; these "
                  "are not GPU times\n",
                  report.simulation.check);
  size_t width = 6;
  for (const RunReport::Kernel &kernel : report.kernels)
    width = std::max(width, kernel.module.size());
  text += fmt::format("  {:<{}}  {:>17}  {:>8}  {:>8}  {:>12}\n", "", width, "warp instructions",
                      "MMAs", "tickets", "host time");
  for (const RunReport::Kernel &kernel : report.kernels) {
    rt::LaunchCounts counts = kernel.counts.value_or(rt::LaunchCounts{});
    text += fmt::format("  {:<{}}  {:>17}  {:>8}  {:>8}  {:>12}\n", kernel.module, width,
                        counts.warpInstructions, counts.mmas, counts.tickets,
                        duration(kernel.milliseconds));
  }
  return text;
}

/// The benchmark of schema 1. On a simulator only the kernels' counts are numbers of the benchmark.
nlohmann::ordered_json benchmarkToJson(const RunReport &report) {
  nlohmann::ordered_json object = {{"schema", 1},
                                   {"compiler", report.compiler},
                                   {"gpu_times", report.measured.benchmark.has_value()}};
  if (!report.measured.benchmark)
    return object;
  const BenchmarkReport &benchmark = *report.measured.benchmark;
  object["environment"] = {{"device", report.device},       {"target", report.target},
                           {"driver", benchmark.driver},    {"sms", benchmark.sms},
                           {"l2_bytes", benchmark.l2Bytes}, {"time", benchmark.time}};
  object["seed"] = report.seed;
  object["sets"] = benchmark.sets;
  object["set_bytes"] = benchmark.setBytes;
  object["cold"] = benchmark.cold;
  object["entries"] = listToJson(benchmark.entries);
  for (size_t i = 0; i < benchmark.entries.size() && benchmark.roof; ++i) {
    const BenchmarkReport::OfRoof of = benchmark.ofRoof(benchmark.entries[i]);
    object["entries"][i]["of_roof"] = {
        {"memory", of.memory}, {"products", of.products}, {"mmas_at_clock", of.mmasAtClock}};
  }
  if (!report.measured.comparisons.empty())
    object["comparisons"] = listToJson(report.measured.comparisons);
  return object;
}

/// The report for people: a verdict, then a line for each thing, their names in one column.
class ReportText {
public:
  explicit ReportText(const RunReport &report) : report(report) {
    for (const RunReport::Operand &operand : report.arguments)
      width = std::max(width, operand.name.size());
    for (const RunReport::Operand &operand : report.results)
      width = std::max(width, operand.name.size());
    for (const RunReport::Kernel &kernel : report.kernels)
      width = std::max(width, launchName(kernel.module, report.function).size());
  }

  std::string print() {
    text = fmt::format("{}: {}\n", report.function,
                       !report.passed()  ? "FAILED"
                       : report.verified ? "passed"
                                         : "ran, not verified");
    printOperandsAndKernels();
    printResults();
    printChecks();
    printTimes();
    for (const std::string &note : report.notes)
      text += "note: " + note + "\n";
    return text;
  }

private:
  void line(const std::string &name, const std::string &what) {
    text += fmt::format("  {:<{}}  {}\n", name, width, what);
  }

  void printOperandsAndKernels();
  void printResults();
  void printChecks();
  void printTimes();

  const RunReport &report;
  size_t width = 7;
  std::string text;
};

void ReportText::printOperandsAndKernels() {
  line("device", report.hardware ? fmt::format("{} ({}, {})", report.device, report.deviceSelector,
                                               report.target)
                                 : fmt::format("{} of {}, policy {}", report.device, report.target,
                                               report.simulation.policy));
  for (const RunReport::Operand &operand : report.arguments)
    line(operand.name, fmt::format("{}, {}", operand.type.str(), operand.source));
  for (const RunReport::Kernel &kernel : report.kernels)
    line(launchName(kernel.module, report.function), kernelText(kernel));
  line("kernels", fmt::format("{} launched", report.kernels.size()));
}

void ReportText::printResults() {
  for (size_t i = 0; i < report.results.size(); ++i) {
    const RunReport::Operand &result = report.results[i];
    std::string what = result.type.str();
    if (i < report.verdicts.size())
      what += " " + verdictText(report.verdicts[i]);
    if (!result.source.empty())
      what += "; written to " + result.source;
    line(result.name, what);
    if (i < report.verdicts.size())
      text += indent(report.verdicts[i].details);
  }
}

void ReportText::printChecks() {
  const size_t hazards = report.simulation.hazards.size();
  if (report.simulation.check == "off")
    line("hazards", "not looked for (check off)");
  else if (!report.simulation.check.empty())
    line("hazards", hazards ? fmt::format("{} ({} check)", hazards, report.simulation.check)
                            : fmt::format("none ({} check)", report.simulation.check));
  if (report.simulation.counted)
    line("accesses", sim::textOf(report.simulation.wasteful));
  for (const sim::OrderReport &orders : report.simulation.orders)
    line("orders", fmt::format("{}: {}", orders.kernel, sim::summaryOf(orders)));
  if (report.simulation.timeComparison) {
    text += report.simulation.timeComparison->text();
    return;
  }
  const TimedProgram program = report.timed("");
  for (size_t i = 0; i < program.launches.size(); ++i) {
    sim::KernelTime time = program.launches[i].time;
    time.kernel = program.launches[i].name;
    text += sim::text(time);
    if (i < report.simulation.instructionMixes.size() && time.missing.empty())
      text += fmt::format("  instructions   {}\n", report.simulation.instructionMixes[i]);
  }
}

void ReportText::printTimes() {
  std::string time = fmt::format("{} {}", report.hardware ? "run" : "simulation",
                                 duration(report.runMilliseconds));
  if (report.verified)
    time += ", reference " + duration(report.referenceMilliseconds);
  if (report.runMilliseconds > 0)
    line("time", time);
  if (report.measured.benchmarked)
    text += report.measured.benchmark ? report.measured.benchmark->text() : countsText(report);
  for (const Comparison &comparison : report.measured.comparisons)
    text += fmt::format("  {:<{}}  {:<9}  {:+.2f} % +- {:.2f}\n", comparison.name, width,
                        comparison.verdict, (comparison.ratio - 1) * 100, comparison.error * 100);
}

} // namespace

void RunReport::forgetHostTimes() {
  runMilliseconds = referenceMilliseconds = 0;
  for (Kernel &kernel : kernels)
    kernel.milliseconds = 0;
}

bool RunReport::passed() const {
  return simulation.hazards.empty() &&
         std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict &v) { return v.passed; });
}

TimedProgram RunReport::timed(std::string label) const {
  TimedProgram program{std::move(label), {}};
  // A module of fp4 has one kernel, after which it is named.
  for (size_t i = 0; i < simulation.times.size(); ++i)
    program.launches.push_back(
        {i < kernels.size() ? launchName(kernels[i].module, function) : simulation.times[i].kernel,
         simulation.times[i]});
  return program;
}

std::string RunReport::text() const { return ReportText(*this).print(); }

std::string RunReport::json() const {
  nlohmann::ordered_json object = {{"function", function},
                                   {"device",
                                    {{"name", device},
                                     {"selector", deviceSelector},
                                     {"target", target},
                                     {"hardware", hardware}}},
                                   {"seed", seed},
                                   {"verified", verified},
                                   {"passed", verified && passed()},
                                   {"arguments", listToJson(arguments)},
                                   {"results", listToJson(results)},
                                   {"kernels", listToJson(kernels)},
                                   {"launches", kernels.size()},
                                   {"verdicts", listToJson(verdicts)},
                                   {"run_milliseconds", runMilliseconds},
                                   {"reference_milliseconds", referenceMilliseconds},
                                   {"notes", notes}};
  if (!hardware)
    object["device"]["policy"] = simulation.policy;
  if (simulation.counted)
    object["wasteful_accesses"] = listToJson(simulation.wasteful);
  if (!simulation.times.empty())
    object["predicted_times"] = listToJson(simulation.times);
  if (!simulation.orders.empty())
    object["orders"] = listToJson(simulation.orders);
  for (size_t i = 0; i < simulation.times.size() && i < simulation.instructionMixes.size(); ++i)
    object["predicted_times"][i]["instructions"] = simulation.instructionMixes[i];
  if (simulation.timeComparison)
    object["comparison"] = toJson(*simulation.timeComparison);
  if (!simulation.check.empty()) {
    object["check"] = simulation.check;
    object["hazards"] = listToJson(simulation.hazards);
  }
  if (measured.benchmarked)
    object["benchmark"] = benchmarkToJson(*this);
  return jsonText(object, 2) + "\n";
}

} // namespace fp4::harness
