//===- Passes.h - Pipe kernels to NVVM ------------------------------------===//
#pragma once

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace fp4 {

#define GEN_PASS_DECL
#include "fp4/Conversion/PipeToNVVM/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp4/Conversion/PipeToNVVM/Passes.h.inc"

} // namespace fp4
