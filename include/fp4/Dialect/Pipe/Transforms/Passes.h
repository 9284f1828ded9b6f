//===- Passes.h - From sequential to pipelined kernels --------------------===//
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace fp4::pipe {

#define GEN_PASS_DECL
#include "fp4/Dialect/Pipe/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp4/Dialect/Pipe/Transforms/Passes.h.inc"

} // namespace fp4::pipe
