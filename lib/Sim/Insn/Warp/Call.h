//===- Call.h - Arguments of calls ----------------------------------------===//
#pragma once

#include "Sim/Decode/Handlers.h"
#include "Sim/State/ExecContext.h"

namespace fp4::sim {

/// Returns an argument of a call in lane `lane`, zero-extended.
uint64_t argumentValue(ExecContext &cx, const ArgumentPlace &place, int lane);
void setArgument(ExecContext &cx, const ArgumentPlace &place, int lane, uint64_t value);

} // namespace fp4::sim
