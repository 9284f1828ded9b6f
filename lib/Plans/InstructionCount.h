//===- InstructionCount.h - Cycles of operations on the pipes of a warp ---===//
#pragma once

#include "EpilogueWork.h"

#include "mlir/IR/Block.h"

namespace fp4 {

/// Cycles that the operations of `block` take a scheduler, one lane of a vector after the other.
/// The likely side of a branch counts.
SchedulerCycles countCycles(mlir::Block &block, const hw::TargetModel &target);

} // namespace fp4
