//===- Report.cpp - What a run says about itself --------------------------===//

#include "fp4/Tools/Engine.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fp4::tools {
namespace {

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
  return fmt::format("differs from {}: {} of {} elements", verdict.method, verdict.mismatches,
                     verdict.elements);
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
      fmt::format("{} block{} of {} threads", dims(kernel.shape.grid),
                  kernel.shape.grid.count() == 1 ? "" : "s", dims(kernel.shape.block));
  if (kernel.registers)
    text += fmt::format(", {} registers", kernel.registers);
  if (kernel.spillBytes)
    text += fmt::format(", {} bytes spilled", kernel.spillBytes);
  if (kernel.sharedBytes)
    text += fmt::format(", {} bytes shared", kernel.sharedBytes);
  return text + ", " + duration(kernel.milliseconds);
}

nlohmann::ordered_json toJson(const rt::Dim3 &dim) { return {dim.x, dim.y, dim.z}; }

nlohmann::ordered_json toJson(const RunReport::Operand &operand) {
  return {{"name", operand.name}, {"type", operand.type.str()}, {"source", operand.source}};
}

nlohmann::ordered_json toJson(const RunReport::Kernel &kernel) {
  return {{"module", kernel.module},
          {"name", kernel.name},
          {"grid", toJson(kernel.shape.grid)},
          {"block", toJson(kernel.shape.block)},
          {"registers", kernel.registers},
          {"spill_bytes", kernel.spillBytes},
          {"shared_bytes", kernel.sharedBytes},
          {"milliseconds", kernel.milliseconds}};
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

/// Modules are named after their function; in its report the rest of the name says enough.
std::string shortName(const std::string &module, const std::string &function) {
  bool prefixed = module.size() > function.size() + 1 && module.starts_with(function + "_");
  return prefixed ? module.substr(function.size() + 1) : module;
}

} // namespace

bool RunReport::passed() const {
  return std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict &v) { return v.passed; });
}

std::string RunReport::text() const {
  std::string text = fmt::format("{}: {}\n", function,
                                 !verified  ? "ran, not verified"
                                 : passed() ? "passed"
                                            : "FAILED");
  size_t width = 6;
  auto widen = [&](size_t size) { width = std::max(width, size); };
  for (const Operand &operand : arguments)
    widen(operand.name.size());
  for (const Operand &operand : results)
    widen(operand.name.size());
  for (const Kernel &kernel : kernels)
    widen(shortName(kernel.module, function).size());
  auto line = [&](const std::string &name, const std::string &what) {
    text += fmt::format("  {:<{}}  {}\n", name, width, what);
  };
  line("device", hardware ? fmt::format("{} ({}, {})", device, deviceSelector, target)
                          : fmt::format("{} of {}, policy {}", device, target, simPolicy));
  for (const Operand &operand : arguments)
    line(operand.name, fmt::format("{}, {}", operand.type.str(), operand.source));
  for (const Kernel &kernel : kernels)
    line(shortName(kernel.module, function), kernelText(kernel));
  for (size_t i = 0; i < results.size(); ++i) {
    std::string what = results[i].type.str();
    if (i < verdicts.size())
      what += " " + verdictText(verdicts[i]);
    if (!results[i].source.empty())
      what += "; written to " + results[i].source;
    line(results[i].name, what);
    if (i < verdicts.size())
      text += indent(verdicts[i].details);
  }
  std::string time =
      fmt::format("{} {}", hardware ? "run" : "simulation", duration(runMilliseconds));
  if (verified)
    time += ", reference " + duration(referenceMilliseconds);
  line("time", time);
  for (const std::string &note : notes)
    text += "note: " + note + "\n";
  return text;
}

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
                                   {"verdicts", listToJson(verdicts)},
                                   {"run_milliseconds", runMilliseconds},
                                   {"reference_milliseconds", referenceMilliseconds},
                                   {"notes", notes}};
  if (!hardware)
    object["device"]["policy"] = simPolicy;
  return object.dump(2) + "\n";
}

} // namespace fp4::tools
