//===- Passes.h - Block-scaled GEMMs of stablehlo to fp4 ------------------===//
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace fp4 {

#define GEN_PASS_DECL
#include "fp4/Conversion/StablehloToFp4/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp4/Conversion/StablehloToFp4/Passes.h.inc"

} // namespace fp4
