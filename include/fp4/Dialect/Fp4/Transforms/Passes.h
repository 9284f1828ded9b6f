//===- Passes.h - Passes on fp4 operations --------------------------------===//
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace fp4 {

#define GEN_PASS_DECL
#include "fp4/Dialect/Fp4/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp4/Dialect/Fp4/Transforms/Passes.h.inc"

} // namespace fp4
