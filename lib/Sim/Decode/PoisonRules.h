//===- PoisonRules.h - Effects of poisoned sources ------------------------===//
#pragma once

#include "Sim/Decode/OpcodeTable.h"

namespace fp4::sim {

/// Sets Insn::poison and its argument of an instruction that is bound.
void setPoisonRule(const OpcodeRow &row, const Match &match, Insn &insn);

} // namespace fp4::sim
