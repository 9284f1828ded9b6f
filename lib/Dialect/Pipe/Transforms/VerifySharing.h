//===- VerifySharing.h - Channels shared by several CTAs ------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace fp4::pipe {

struct ChannelEnds;

/// (C152) to (C155): how the CTAs of a cluster share `channel`; `pairs` as usesPairs(kernel) says.
mlir::LogicalResult verifySharing(ChannelOp channel, const ChannelEnds &ends, bool pairs);

} // namespace fp4::pipe
