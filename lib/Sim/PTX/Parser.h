//===- Parser.h - PTX 9.0 text to AST -------------------------------------===//
#pragma once

#include "Sim/PTX/Ast.h"
#include "fp4/Support/Error.h"

namespace fp4::sim::ptx {

/// `text` must outlive the module. `name` prefixes messages: "name:line:col: ...".
Expected<Module> parse(std::string_view text, std::string_view name);

/// Merges declarations and definitions of one name: `text` may be several, one after the other.
void link(Module &module);

} // namespace fp4::sim::ptx
