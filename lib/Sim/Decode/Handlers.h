//===- Handlers.h - Handlers that the decoder installs without a row ------===//
//
// The table names the bind functions of all other instructions. lib/Sim/Insn/Warp defines these.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/ProgramImpl.h"

namespace fp4::sim {

/// The instruction that the decoder appends to every body.
Handler exitHandler();

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

} // namespace fp4::sim
