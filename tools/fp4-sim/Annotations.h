//===- Annotations.h - Findings as annotations of GitHub Actions ----------===//
#pragma once

#include "fp4/Support/Error.h"
#include <nlohmann/json.hpp>
#include <string>

namespace fp4::harness {

/// "::error file=FILE,line=14,col=5,title=shared-race::MESSAGE" of a report of the hazard checker,
/// at the source where the PTX names one.
std::string annotationOf(const nlohmann::ordered_json &hazard);
/// The annotation of a kernel that failed, at the first place that the message names.
std::string annotationOf(const std::string &message);

} // namespace fp4::harness
