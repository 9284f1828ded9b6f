//===- SimulationJson.cpp - What a simulation found, as JSON --------------===//
#include "SimulationJson.h"
#include "fp4/Harness/Check.h"
#include <algorithm>
#include <fmt/format.h>

namespace fp4::harness {

static nlohmann::ordered_json toJson(const sim::HazardAccess &access) {
  nlohmann::ordered_json object = {{"line", access.line},
                                   {"column", access.column},
                                   {"what", access.what},
                                   {"source", access.source}};
  if (!access.origin.empty())
    object["origin"] = access.origin;
  return object;
}

nlohmann::ordered_json toJson(const sim::HazardReport &report) {
  return {{"rule", stringify(report.rule)},  {"program", report.program},
          {"kernel", report.kernel},         {"message", report.message},
          {"place", report.place},           {"first", toJson(report.first)},
          {"second", toJson(report.second)}, {"missing", report.remedy},
          {"count", report.count}};
}

nlohmann::ordered_json toJson(const sim::AccessCount &count) {
  return {{"program", count.program},   {"kernel", count.kernel},
          {"line", count.line},         {"column", count.column},
          {"source", count.source},     {"memory", count.shared ? "shared" : "global"},
          {"accesses", count.accesses}, {"cost", count.cost},
          {"least", count.least}};
}

std::string accessToJson(const sim::AccessCount &count) { return toJson(count).dump(); }

std::string accessText(const std::vector<sim::AccessCount> &wasteful) {
  constexpr size_t shown = 10;
  if (wasteful.empty())
    return "no bank conflicts, all accesses coalesced";
  std::string text = fmt::format("{} instructions cost more than they must", wasteful.size());
  for (size_t i = 0; i < std::min(shown, wasteful.size()); ++i)
    text += "\n    " + wasteful[i].text();
  return text;
}

std::string hazardToJson(const sim::HazardReport &report) { return toJson(report).dump(); }

std::string hazardsToJson(const std::vector<sim::HazardReport> &hazards) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const sim::HazardReport &report : hazards)
    array.push_back(toJson(report));
  return array.dump();
}

} // namespace fp4::harness
