//===- FloatNearest.h - The vectorised paths of f32 and of halves ---------===//
#pragma once

#include "Sim/Decode/Insn.h"

namespace fp4::sim {

/// A handler that computes all lanes at once, or null: then the general path serves. `sources` is
/// the number of operands.
Handler nearestHandler(const Insn &insn, FloatOp op, unsigned sources);

/// A handler of sums, differences and products of f16, bf16 and pairs of them (HalfNearest.cpp), or
/// null.
Handler halfHandler(const Insn &insn, FloatOp op);

} // namespace fp4::sim
