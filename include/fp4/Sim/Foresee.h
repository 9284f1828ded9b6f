//===- Foresee.h - Limits of a device, checked early ----------------------===//
#pragma once

#include "fp4/ISA/TargetModel.h"
#include "fp4/Sim/Program.h"

namespace fp4::sim {

/// Finds the instructions of `ptx` that `target` does not have, those that the simulator refuses
/// only when they execute, and what in `program`, which is the same text, exceeds the limits of the
/// target. Returns one error for each function and kind.
std::vector<Error> foresee(std::string_view ptx, const Program &program,
                           const hw::TargetModel &target);

} // namespace fp4::sim
