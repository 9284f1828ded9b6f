//===- Passes.h - From tensor functions to host code ----------------------===//
#pragma once

#include "mlir/Pass/Pass.h"

namespace fp4 {

#define GEN_PASS_DECL
#include "fp4/Conversion/HostToRuntime/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp4/Conversion/HostToRuntime/Passes.h.inc"

} // namespace fp4
