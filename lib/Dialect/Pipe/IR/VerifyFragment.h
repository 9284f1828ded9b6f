//===- VerifyFragment.h - What ops on fragments check ---------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace fp4::pipe {

/// Sums that a warpgroup has in registers, and no held weights: f32 in the rows of one instruction.
bool isAccumulatorOfWgmma(FragmentType type);

} // namespace fp4::pipe
