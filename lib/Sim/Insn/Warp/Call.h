//===- Call.h - Handlers of calls, and the functions we provide -----------===//
#pragma once

#include "Sim/Insn/ExecContext.h"

namespace fp4::sim {

/// Calls a function. The instruction has CallModifiers, here and in the next two.
Outcome callFunction(ExecContext &cx, const Insn &insn);
/// Calls through the pointer of the call site.
Outcome callPointer(ExecContext &cx, const Insn &insn);
Outcome callBuiltin(ExecContext &cx, const Insn &insn);
/// Returns from the function of the ReturnModifiers.
Outcome returnFromFunction(ExecContext &cx, const Insn &insn);
/// Executes brx.idx: BranchTableModifiers name the first target, op[1].imm is the number of
/// targets, op[0] the index.
Outcome branchByIndex(ExecContext &cx, const Insn &insn);

/// Returns vprintf or __assertfail, and null for any other function.
Builtin findBuiltin(std::string_view name);
std::string builtinNames();

/// Returns an argument of a call in lane `lane`, zero-extended.
uint64_t argumentValue(ExecContext &cx, const ArgumentPlace &place, int lane);
void setArgument(ExecContext &cx, const ArgumentPlace &place, int lane, uint64_t value);

} // namespace fp4::sim
