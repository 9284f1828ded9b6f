//===- PlanFile.h - Files with a plan for each family of kernels ----------===//
#pragma once

#include "fp4/Support/Error.h"
#include "fp4/Tuning/Search.h"

namespace fp4::tuning {

/// The text of a plan file. Kernels of one family must have the same plan.
Expected<std::string> writePlanFile(const Plans &plans, const std::string &target);

/// The plans in the text of a plan file: its lines, without those that are empty or comments.
Plans parsePlanFile(const std::string &text);

/// Replaces each "@FILE" among plans of the option --plan by the plans of that file.
Status readPlanFiles(Plans &plans);

} // namespace fp4::tuning
