//===- Turns.h - Warpgroups that have the stages of a role in turn --------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace fp4::pipe {

/// Returns the number of stages of `channel` that `region` takes in each iteration of its loop,
/// such as two where each has the weights of one of two GEMMs. For roles in turn the stages are
/// those of one warpgroup.
int64_t stagesOfIteration(ChannelOp channel, RoleRegionOp region);

} // namespace fp4::pipe
