//===- SimulationJson.h - What a simulation found, as JSON ----------------===//
#pragma once

#include "fp4/Sim/AccessStatistics.h"
#include "fp4/Sim/HazardChecker.h"
#include <nlohmann/json.hpp>

namespace fp4::harness {

nlohmann::ordered_json toJson(const sim::HazardReport &report);
nlohmann::ordered_json toJson(const sim::AccessCount &count);

} // namespace fp4::harness
