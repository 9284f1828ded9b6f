//===- Handlers.h - The few handlers others must know ---------------------===//
#pragma once

#include "Sim/Decode/Insn.h"

namespace fp4::sim {

/// The instruction that the decoder appends to every body.
Handler exitHandler();

/// Returns true when a handler is that of wgmma.mma_async.
bool isWgmma(Handler handler);

/// Returns true when a handler is that of bra.
bool isBranch(Handler handler);

/// Returns true when a handler reads the time: %clock, %globaltimer and friends.
bool readsClock(Handler handler);

/// The use that an instruction makes of the carry of each lane (CC.CF), which is no operand.
struct CarryUse {
  bool reads = false, writes = false;
};
CarryUse carryUse(const Insn &insn);

/// Returns true when a handler is that of nanosleep.
bool isSleep(Handler handler);

/// Index of a special register that changes while a warp runs, -1 when the name is none.
int clockRegister(std::string_view name);

} // namespace fp4::sim
