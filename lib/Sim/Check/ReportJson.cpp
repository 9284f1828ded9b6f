//===- ReportJson.cpp - What the instruments found, as JSON ---------------===//
#include "fp4/Sim/ReportJson.h"

namespace fp4::sim {

static nlohmann::ordered_json toJson(const HazardAccess &access) {
  nlohmann::ordered_json object = {{"line", access.line},
                                   {"column", access.column},
                                   {"what", access.what},
                                   {"source", access.source}};
  if (!access.origin.empty())
    object["origin"] = access.origin;
  return object;
}

nlohmann::ordered_json toJson(const HazardReport &report) {
  return {{"rule", stringify(report.rule)},
          {"program", report.program},
          {"kernel", report.kernel},
          {"message", report.message},
          {"place", report.place},
          {"first", toJson(report.first)},
          {"second", toJson(report.second)},
          {"missing", report.remedy},
          {"count", report.count}};
}

nlohmann::ordered_json toJson(const AccessCount &count) {
  return {{"program", count.program},   {"kernel", count.kernel},
          {"line", count.line},         {"column", count.column},
          {"source", count.source},     {"memory", count.shared ? "shared" : "global"},
          {"accesses", count.accesses}, {"cost", count.cost},
          {"least", count.least}};
}

} // namespace fp4::sim
