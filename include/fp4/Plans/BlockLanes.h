//===- BlockLanes.h - Lanes that have a scale block together --------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

namespace fp4 {

/// Lanes that have a scale block of `quantize` together in a stream_blocks kernel with `plan`:
/// those of the plan (KernelPlan.cpp has them beside items of a thread), or as few as store whole
/// sectors.
int64_t lanesOfBlock(QuantizeOp quantize, const KernelPlan &plan);

} // namespace fp4
