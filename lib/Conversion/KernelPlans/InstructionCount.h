//===- InstructionCount.h - Cycles of operations on the pipes of a warp ---===//
#pragma once

#include "EpilogueWork.h"

#include "mlir/IR/Block.h"

namespace fp4 {

/// What the operations of `block` take a scheduler, one lane of a vector after the other. Of a
/// branch the likely side counts.
SchedulerCycles countCycles(mlir::Block &block, const hw::TargetModel &target);

} // namespace fp4
