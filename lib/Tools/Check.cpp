//===- Check.cpp - The hazard checker on a command line -------------------===//

#include "fp4/Tools/Check.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fp4::tools {
namespace {

std::string ruleNames() {
  std::string names;
  for (sim::HazardRule rule : sim::hazardRules())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", stringify(rule));
  return names;
}

nlohmann::ordered_json toJson(const sim::HazardAccess &access) {
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
          {"second", toJson(report.second)}, {"missing", report.remedy}};
}

} // namespace

void addExplainOption(CLI::App &app) {
  app.add_option_function<std::string>(
         "--explain",
         [](const std::string &name) {
           auto rule = sim::parseHazardRule(name);
           if (!rule)
             throw CLI::ValidationError("--explain",
                                        "unknown rule '" + name + "', known: " + ruleNames());
           std::fputs(sim::explain(*rule).c_str(), stdout);
           throw CLI::Success();
         },
         "say what a rule of the hazard checker means: " + ruleNames())
      ->trigger_on_parse();
}

void addCheckOptions(CLI::App &app, std::string &mode) {
  app.add_option("--check", mode,
                 "look for hazards in the simulator: default accepts what practice relies on, "
                 "strict holds to the PTX text")
      ->expected(0, 1)
      ->default_str("default")
      ->check(CLI::IsMember({"default", "strict", "off"}));
  addExplainOption(app);
}

std::string hazardsToJson(const std::vector<sim::HazardReport> &hazards) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const sim::HazardReport &report : hazards)
    array.push_back(toJson(report));
  return array.dump();
}

std::optional<Error> reportHazards(const std::vector<sim::HazardReport> &hazards) {
  if (hazards.empty())
    return std::nullopt;
  for (const sim::HazardReport &report : hazards)
    std::fputs(report.text().c_str(), stderr);
  return Error{ErrorKind::Simulation,
               fmt::format("{} hazard{} found", hazards.size(), hazards.size() == 1 ? "" : "s"),
               fmt::format("--explain {} says what that means", stringify(hazards.front().rule))};
}

} // namespace fp4::tools
