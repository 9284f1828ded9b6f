//===- Selection.h - Guards that choose between values --------------------===//
#pragma once

#include "Sim/Decode/Insn.h"
#include <optional>

namespace fp4::sim {

struct Kernel;

/// Instructions between a guard and the place where all ways meet again, which do nothing but
/// compute registers. The guard chooses the values of the results, as that of a selp does.
struct Selection {
  uint32_t join = 0; ///< pc where the ways meet
  std::vector<Operand> results;
  bool carry = false; ///< CC.CF is among the results
};

/// Returns the selection that the guard of the instruction at `pc` makes. There is one for a
/// forward branch without a loop behind it, and for an instruction that only computes.
std::optional<Selection> findSelection(const Kernel &kernel, uint32_t pc);

} // namespace fp4::sim
