//===- ReportJson.h - Findings of the instruments, as JSON ----------------===//
#pragma once

#include "fp4/Sim/AccessStatistics.h"
#include "fp4/Sim/HazardChecker.h"
#include "fp4/Sim/KernelTime.h"
#include "fp4/Sim/Orders.h"
#include <nlohmann/json.hpp>

namespace fp4::sim {

nlohmann::ordered_json toJson(const HazardReport &report);
nlohmann::ordered_json toJson(const AccessCount &count);
nlohmann::ordered_json toJson(const OrderReport &report);
/// Every number is a prediction, as the key "predicted" says; without one it has the reasons.
nlohmann::ordered_json toJson(const KernelTime &time);

} // namespace fp4::sim
