//===- MachineCode.h - The machine code of a module -----------------------===//
#pragma once

#include "fp4/Sim/Program.h"

namespace fp4::sim {

/// Returns nvdisasm's listing of what ptxas makes of a module for `target` ("sm_90a"). Comments in
/// it name lines of the PTX. An error says which of the two is missing or what it complains of.
/// `ptxas`: its path, "none", or where that is empty $FP4_PTXAS or the first that is found.
Expected<std::string> listMachineCode(const Program &program, const std::string &target,
                                      const std::string &ptxas = "");

} // namespace fp4::sim
