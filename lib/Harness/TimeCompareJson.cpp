//===- TimeCompareJson.cpp - Predictions and comparisons as JSON ----------===//

#include "TimeCompareJson.h"

#include "fp4/Support/InputFile.h"

#include <fmt/format.h>

namespace fp4::harness {
namespace {

using Json = nlohmann::ordered_json;

Json toJson(const std::vector<TimeDifference> &list) {
  Json array = Json::array();
  for (const TimeDifference &one : list)
    array.push_back({{"name", one.name}, {"before", one.before}, {"now", one.now}});
  return array;
}

Json toJson(const TimedProgram &program) {
  Json object = {{"label", program.label}};
  if (auto sum = program.microseconds())
    object["predicted_microseconds"] = *sum;
  for (const TimedProgram::Launch &launch : program.launches)
    if (!launch.time.missing.empty())
      object["unknown"] = launch.time.missing;
  return object;
}

sim::RoleTime readRole(const Json &json) {
  sim::RoleTime role{json.at("name"), json.at("first_warp"), json.at("last_warp"),
                     json.at("instructions")};
  for (size_t a = 0; a < sim::kActivities; ++a)
    role.share[a] = json.at("share").at(std::string(stringify(sim::Activity(a))));
  return role;
}

sim::KernelTime readTime(const Json &json) {
  sim::KernelTime time;
  time.kernel = json.at("kernel");
  time.target = json.at("target");
  time.grid = json.at("grid");
  time.block = json.at("block");
  if (!json.at("predicted")) {
    time.missing = json.at("unknown").get<std::vector<std::string>>();
    return time;
  }
  time.microseconds = json.at("microseconds");
  time.launchMicroseconds = json.at("launch_microseconds");
  time.cycles = json.at("cycles");
  time.gigahertz = json.at("gigahertz");
  time.flops = json.at("flops");
  time.memoryBytes = json.at("memory_bytes");
  time.l2Bytes = json.at("l2_bytes");
  time.ctasPerSm = json.at("ctas_per_sm");
  time.sample.simulated = json.at("simulated_sms");
  time.sample.sms = json.at("sms");
  if (json.contains("busy"))
    for (const auto &[name, busy] : json.at("busy").items())
      time.resources.push_back({name, busy});
  for (const Json &role : json.at("roles"))
    time.roles.push_back(readRole(role));
  return time;
}

} // namespace

nlohmann::ordered_json toJson(const TimeComparison &comparison) {
  Json object = {{"before", toJson(comparison.before)}, {"now", toJson(comparison.now)}};
  if (!comparison.ratio)
    return object;
  object.update({{"ratio", comparison.ratio},
                 {"kernels", toJson(comparison.kernels)},
                 {"kernel", comparison.kernel},
                 {"bound_before", comparison.boundBefore},
                 {"bound_now", comparison.boundNow},
                 {"reasons", comparison.reasons},
                 {"busy_microseconds", toJson(comparison.resources)},
                 {"role_microseconds", toJson(comparison.waits)},
                 {"amounts", toJson(comparison.amounts)}});
  return object;
}

Expected<TimedProgram> readTimes(const std::string &path) {
  FP4_ASSIGN(auto text, readText(path));
  const Json report = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto wrong = [&](std::string_view what) {
    return makeError(ErrorKind::Usage, fmt::format("'{}' must be {}", path, what),
                     "write it with --time --json");
  };
  if (report.is_discarded() || !report.is_object())
    return wrong("a JSON file");
  TimedProgram program{path, {}};
  try {
    const std::string function = report.at("function");
    const Json &times = report.at("predicted_times");
    for (size_t i = 0; i < times.size(); ++i)
      program.launches.push_back({launchName(report.at("kernels").at(i).at("module"), function),
                                  readTime(times.at(i))});
  } catch (const nlohmann::json::exception &) { // a field is missing, or of another type
    return wrong("a report with predicted times");
  }
  return program;
}

} // namespace fp4::harness
