//===- ReportJson.h - What the instruments found, as JSON -----------------===//
#pragma once

#include "fp4/Sim/AccessStatistics.h"
#include "fp4/Sim/HazardChecker.h"
#include <nlohmann/json.hpp>

namespace fp4::sim {

nlohmann::ordered_json toJson(const HazardReport &report);
nlohmann::ordered_json toJson(const AccessCount &count);

} // namespace fp4::sim
