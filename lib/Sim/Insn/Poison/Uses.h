//===- Uses.h - Uses of poisoned values, and stores of them ---------------===//
#pragma once

#include "Sim/State/ExecContext.h"

namespace fp4::sim {

/// "lane 3 DOES a value of shared byte 0x410 ('tile+16'), which was never written".
Outcome failPoisoned(ExecContext &cx, std::string_view does, const PoisonOrigin &origin, int lane);

/// Fails, and returns false, when a register has poison in one of `lanes`.
bool expectClean(ExecContext &cx, const Operand &o, uint32_t lanes, std::string_view does);

/// A lane has stored a value with these poisoned bits. Memory of threads and of CTAs keeps them; to
/// store one to global memory is a use: false after cx.fail.
bool storePoison(ExecContext &cx, Space space, uint64_t address, std::span<const std::byte> bits,
                 const PoisonOrigin &origin, int lane);

/// The active lanes have copied an argument of a call, and the poison of it comes along.
void copyPoison(ExecContext &cx, const ArgumentPlace &to, const ArgumentPlace &from);

} // namespace fp4::sim
