//===- Passes.h - From tensor functions to host code ----------------------===//
#ifndef FP4_CONVERSION_HOSTTORUNTIME_PASSES_H
#define FP4_CONVERSION_HOSTTORUNTIME_PASSES_H

#include "mlir/Pass/Pass.h"

namespace fp4 {

#define GEN_PASS_DECL
#include "fp4/Conversion/HostToRuntime/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp4/Conversion/HostToRuntime/Passes.h.inc"

} // namespace fp4

#endif // FP4_CONVERSION_HOSTTORUNTIME_PASSES_H
