//===- TimeCompareJson.h - A comparison of predictions as JSON ------------===//
#pragma once

#include "fp4/Harness/TimeCompare.h"

#include <nlohmann/json.hpp>

namespace fp4::harness {

nlohmann::ordered_json toJson(const TimeComparison &comparison);

} // namespace fp4::harness
