//===- Passes.h - Passes that prepare a program for the phases ------------===//
#pragma once

#include "mlir/Pass/Pass.h"

namespace fp4 {

#define GEN_PASS_DECL
#include "fp4/Pipelines/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp4/Pipelines/Passes.h.inc"

} // namespace fp4
