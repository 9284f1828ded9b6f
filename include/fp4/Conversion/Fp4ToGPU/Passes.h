//===- Passes.h - Streaming fp4 operations to GPU kernels -----------------===//
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>

namespace fp4 {

#define GEN_PASS_DECL
#include "fp4/Conversion/Fp4ToGPU/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp4/Conversion/Fp4ToGPU/Passes.h.inc"

} // namespace fp4
