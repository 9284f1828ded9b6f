//===- Target.h - The target of a module ----------------------------------===//
#pragma once

#include "fp4/ISA/TargetModel.h"

#include "mlir/Support/LLVM.h"

#include <optional>

namespace mlir {
class Operation;
} // namespace mlir

namespace fp4 {

/// The target of the module around `op`, or none where no module has the attribute `fp4.target`.
std::optional<hw::TargetModel> findTarget(mlir::Operation *op);

/// The target of the module around `op`, with the number of SMs that the module asks for. Fails,
/// with an error at `op`, where no module has the attribute `fp4.target`.
llvm::FailureOr<hw::TargetModel> targetOf(mlir::Operation *op);

} // namespace fp4
