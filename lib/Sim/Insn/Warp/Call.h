//===- Call.h - Handlers of calls, and the functions we provide -----------===//
#pragma once

#include "Sim/Insn/ExecContext.h"

namespace fp4::sim {

/// Insn::u is the index of the call site.
Outcome callFunction(ExecContext &cx, const Insn &insn);
/// ... with op[0] the pointer.
Outcome callPointer(ExecContext &cx, const Insn &insn);
Outcome callBuiltin(ExecContext &cx, const Insn &insn);
/// Insn::u is the index of the function.
Outcome returnFromFunction(ExecContext &cx, const Insn &insn);
/// brx.idx: Insn::u is the first of the targets, op[1].imm their number, op[0] the index.
Outcome branchByIndex(ExecContext &cx, const Insn &insn);

/// vprintf, __assertfail; null when we do not have the function.
Builtin findBuiltin(std::string_view name);
std::string builtinNames();

/// An argument of a call in lane `lane`, zero-extended.
uint64_t argumentValue(ExecContext &cx, const ArgumentPlace &place, int lane);
void setArgument(ExecContext &cx, const ArgumentPlace &place, int lane, uint64_t value);

} // namespace fp4::sim
