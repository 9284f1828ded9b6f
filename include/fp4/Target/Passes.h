//===- Passes.h - Kernel emission pass ------------------------------------===//
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace fp4 {

#define GEN_PASS_DECL
#include "fp4/Target/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp4/Target/Passes.h.inc"

/// Registers what translating GPU modules to LLVM IR needs (builtin, LLVM, NVVM dialects). The
/// emission pass depends on it; call it once per registry.
void registerKernelEmissionTranslations(mlir::DialectRegistry &registry);

} // namespace fp4
