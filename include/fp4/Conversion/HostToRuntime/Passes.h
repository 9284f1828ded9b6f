//===- Passes.h - From tensor functions to host code ----------------------===//
#pragma once

#include "mlir/Pass/Pass.h"

namespace fp4 {

/// On a gpu.alloc, an i32: the memory is result number N of the function. finalize-host-buffers
/// writes it, and convert-host-to-runtime makes an fp4rt_alloc_result of it.
inline constexpr llvm::StringLiteral kResultAttr = "fp4.result";

#define GEN_PASS_DECL
#include "fp4/Conversion/HostToRuntime/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp4/Conversion/HostToRuntime/Passes.h.inc"

} // namespace fp4
