//===- Convert.h - Functions that both halves of cvt need -----------------===//
#pragma once

#include "Sim/Decode/Decode.h"

namespace fp4::sim {

/// Insn::m of cvt. kRound is a Round; kIntegral says that it is a rounding to integers (.rni, ...).
enum ConvertField : unsigned { kRound, kIntegral, kFtz, kSat, kRelu, kSource, kDestination };

inline Type sourceOf(const Insn &insn) { return static_cast<Type>(insn.m[kSource]); }
inline Type destinationOf(const Insn &insn) { return static_cast<Type>(insn.m[kDestination]); }

inline uint64_t lowBits(uint64_t value, unsigned bits) {
  return bits == 64 ? value : value & ((1ull << bits) - 1);
}

/// Fills Insn::m from the modifiers.
void describeConversion(BindContext &cx);
/// "no conversion from .x to .y with these modifiers"
Status refuseConversion(BindContext &cx);

} // namespace fp4::sim
