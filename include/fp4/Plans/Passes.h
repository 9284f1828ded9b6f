//===- Passes.h - Plans that turn operations into kernels -----------------===//
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace fp4 {

#define GEN_PASS_DECL
#include "fp4/Plans/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp4/Plans/Passes.h.inc"

} // namespace fp4
