//===- Convert.h - Functions that both halves of cvt need -----------------===//
#pragma once

#include "Sim/Decode/Decode.h"

namespace fp4::sim {

inline uint64_t lowBits(uint64_t value, unsigned bits) {
  return bits == 64 ? value : value & ((1ull << bits) - 1);
}

/// Fills and returns the ConvertModifiers.
const ConvertModifiers &describeConversion(BindContext &cx);
/// "no conversion from .x to .y with these modifiers"
Status refuseConversion(BindContext &cx);

} // namespace fp4::sim
