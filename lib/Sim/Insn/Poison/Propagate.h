//===- Propagate.h - Executing instructions of warps that have poison -----===//
#pragma once

#include "Sim/State/ExecContext.h"

namespace fp4::sim {

/// Prepares an instruction of a warp that has poison for `lanes`. Returns false after cx.fail: the
/// guard has poison, and decides more than the values of registers.
bool beginPoisoned(ExecContext &cx, const Insn &insn, uint32_t lanes);

/// Executes an instruction in a warp that has poison: a use of it is an error, else it goes on into
/// the results (PoisonRule).
Outcome executePoisoned(ExecContext &cx, const Insn &insn);

/// mma.sync: D of a product whose operands have poison, in shadows. A row of A and a column of B
/// reach the elements that they make, and C its own.
void multiplyPoison(ExecContext &cx, const Insn &insn);

} // namespace fp4::sim
