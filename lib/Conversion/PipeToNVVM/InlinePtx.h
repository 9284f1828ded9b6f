//===- InlinePtx.h - The PTX that no NVVM op can express ------------------===//
#pragma once

#include "mlir/IR/Builders.h"

namespace fp4 {

/// tcgen05.wait::ld through which `registers` (i32 each) flow, so that nothing reads what a
/// tcgen05.ld loaded before the wait. Returns the registers to use from here on.
llvm::SmallVector<mlir::Value> waitForLoaded(mlir::OpBuilder &, mlir::Location,
                                             mlir::ValueRange registers);

} // namespace fp4
