//===- Passes.h - Passes that prepare a program for the phases ------------===//
#ifndef FP4_PIPELINES_PASSES_H
#define FP4_PIPELINES_PASSES_H

#include "mlir/Pass/Pass.h"

namespace fp4 {

#define GEN_PASS_DECL
#include "fp4/Pipelines/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp4/Pipelines/Passes.h.inc"

} // namespace fp4

#endif // FP4_PIPELINES_PASSES_H
