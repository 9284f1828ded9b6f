//===- ScaleWarps.h - Roles whose second warp copies scales ----------------===//
//
// A role that drives tensor and scale_copy has one warp, which does both, or two: the first
// multiplies, and the second copies scales before it. Channels do not see the difference: they know
// the role. A third barrier of each stage tells the first warp that the scales of this stage are
// copied (docs/rationale/engines-and-roles.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace fp4::pipe {

/// Attribute of a kernel without roles: scales have channels of their own, apart from the channels
/// of the operands that a role multiplies. The scales then come in smaller parts, and are copied
/// before the operands are there.
inline constexpr llvm::StringLiteral kSeparateScalesAttr = "pipe.separate_scales";

/// The second warp of the role copies scales.
bool hasScaleWarp(RoleAttr role);

/// All that is done with stages of the channel is to copy scales out of them.
bool hasOnlyScales(ChannelOp channel);

/// Returns true when a scale warp copies scales out of the stages of the channel.
bool feedsScaleWarp(ChannelOp channel);

/// Bytes of the barriers in shared memory: for each of the `depth` stages full, empty and, where a
/// warp of its own copies scales out of the stage, copied; after them one barrier for all copies of
/// this warp.
int64_t barrierBytes(ChannelOp channel, int64_t depth);

} // namespace fp4::pipe
