//===- PlanFile.cpp - Files with a plan for each family of kernels --------===//

#include "fp4/Tuning/PlanFile.h"

#include "fp4/Support/InputFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <sstream>

namespace fp4::tuning {

Expected<std::string> writePlanFile(const Plans &plans, const std::string &target) {
  std::string text =
      "// Plans for " + target + ", found by fp4-runner --tune: " + "fp4-runner --plan @FILE\n";
  Plans families, lines;
  for (const std::string &plan : plans) {
    const std::string family = llvm::StringRef(plan).split(',').first.str();
    if (llvm::is_contained(lines, plan))
      continue;
    if (llvm::is_contained(families, family))
      return makeError(ErrorKind::Usage,
                       "a plan file has one plan for each family, but kernels of " + family +
                           " have different ones",
                       "write the program instead: -o FILE.mlir");
    families.push_back(family);
    lines.push_back(plan);
    text += plan + "\n";
  }
  return text;
}

Plans parsePlanFile(const std::string &text) {
  Plans plans;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (llvm::StringRef rest = llvm::StringRef(line).trim();
        !rest.empty() && !rest.starts_with("//"))
      plans.push_back(rest.str());
  return plans;
}

Status readPlanFiles(Plans &plans) {
  Plans all;
  for (const std::string &plan : plans) {
    if (plan.empty() || plan.front() != '@') {
      all.push_back(plan);
      continue;
    }
    FP4_ASSIGN(auto text, readText(plan.substr(1)));
    llvm::append_range(all, parsePlanFile(text));
  }
  plans = std::move(all);
  return {};
}

} // namespace fp4::tuning
