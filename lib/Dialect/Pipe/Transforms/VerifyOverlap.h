//===- VerifyOverlap.h - Stages that have columns in common ---------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace fp4::pipe {

/// (C157) The role holds the stage that `partial` releases in part, and reads from then on only
/// columns that no other stage has.
mlir::LogicalResult verifyOverlap(ConsumerReleaseOp partial);

} // namespace fp4::pipe
