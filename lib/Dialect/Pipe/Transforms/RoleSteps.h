//===- RoleSteps.h - Operations of a role in the order of execution --------===//
//
// A role is interpreted for a few turns of each loop whose length is not known. Numbers that only
// the launch knows are assumed: such a loop begins at 0, and goes on by 1.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include <vector>

namespace fp4::pipe {

/// A part of memory that has one tile at a time: a stage of a tile of a channel, a set of columns
/// of scales, or a few columns of overlapping stages.
struct TilePlace {
  const void *owner; ///< the channel; null for sets of columns
  int64_t number;    ///< number of the tile in the channel, or the first column
  int64_t stage;
  auto operator<=>(const TilePlace &) const = default;
};

/// An access to a tile by an operation.
struct TileUse {
  TilePlace place;
  int64_t iteration; ///< iteration of the channel that the tile is a stage of, or is copied from
  ChannelOp channel;
  bool writes;
};

struct RoleStep {
  mlir::Operation *op;
  std::optional<int64_t> iteration; ///< iteration of an op on a channel, where it is known
  llvm::SmallVector<TileUse, 2> uses;
};

struct RoleSteps {
  std::vector<RoleStep> steps;
  bool isWhole = true; ///< false where the role goes on behind the last step
};

/// The role around `op`.
RoleAttr roleOf(mlir::Operation *op);

/// Limits of an interpretation.
struct RoleLimits {
  int64_t trips; ///< turns of a loop of unknown length
  size_t steps;
  bool isExact; ///< loops of known length have that length; else `trips`
};

/// Returns the first steps of `role`. Fails where a carried stage, or a set of columns, is not that
/// of its iteration (C627).
mlir::FailureOr<RoleSteps> stepsOf(RoleRegionOp role, const RoleLimits &limits);

} // namespace fp4::pipe
