//===- Passes.h - From the pipelined to the scheduled form ------------------===//
#pragma once

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace fp4::pipe {

#define GEN_PASS_DECL
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"

/// Adds the passes from the pipelined to the scheduled form, in their order.
void addSchedulePasses(mlir::OpPassManager &manager);

/// Registers the pipeline `pipe-schedule` of these passes.
void registerSchedulePipeline();

} // namespace fp4::pipe
