//===- Unsupported.h - PTX that is not simulated, and why -----------------===//
#pragma once

#include "Sim/PTX/Ast.h"
#include "fp4/Support/Error.h"
#include <optional>
#include <string>

namespace fp4::sim {

/// Returns the error about an instruction of Unsupported.def; nothing for any other.
std::optional<Error> refusalOf(const ptx::Instruction &insn);
/// Returns the error about a special register of Unsupported.def; nothing for any other.
std::optional<Error> refusalOf(std::string_view specialRegister);

} // namespace fp4::sim
