//===- PlanSpace.h - The plans that an operation may have -----------------===//
#pragma once

#include "fp4/Plans/KernelPlans.h"

#include <string>
#include <vector>

namespace fp4 {

/// A legal, complete plan, and the field in which it differs from another. Fields that follow from
/// that field may differ too.
struct PlanNeighbour {
  std::string field;
  KernelPlan plan;
};

/// The plans that are one decision away from `plan`, which is complete and fits: every value of
/// every field that the checks of planOf accept, within the ranges of PlanSpace.cpp.
std::vector<PlanNeighbour> neighboursOf(mlir::Operation *op, const KernelPlan &plan,
                                        const hw::TargetModel &target);

} // namespace fp4
