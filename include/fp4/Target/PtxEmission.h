//===- PtxEmission.h - A gpu.module becomes PTX text ----------------------===//
//
// gpu.module (llvm and nvvm dialects) -> LLVM IR -> optimized -> PTX, all in this process and with
// no CUDA toolkit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <string>

namespace fp4 {

struct PtxOptions {
  std::string chip;     ///< -arch of ptxas, for example "sm_100a"
  std::string features; ///< PTX ISA version as LLVM spells it, for example "+ptx88"
  int optLevel = 3;     ///< LLVM's -O level
};

/// The chip whose instructions LLVM chooses for a target: its own, or that of a target whose code it
/// executes where LLVM does not know it.
std::string chipOfLlvm(llvm::StringRef target);

/// The PTX text of `module`. A failure has been reported on the module's location.
mlir::FailureOr<std::string> emitPtx(mlir::gpu::GPUModuleOp module, const PtxOptions &options);

} // namespace fp4
