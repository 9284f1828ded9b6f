//===- Cluster.h - CTAs of a cluster that share channels ------------------===//
//
// The cluster that runs a kernel, and the CTAs of it that arrive at each barrier of a channel. The
// verifiers ask for the CTAs of every rank; the lowering emits the same masks.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/ISA/Cluster.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace fp4::pipe {

/// CTAs along m and n of the clusters that may run in the place of one of known_cluster_size, on
/// the gpu.func; optional.
inline constexpr llvm::StringLiteral kFallbackClusterAttr = "pipe.fallback_cluster";

/// The cluster that runs the kernel around `op`, or the kernel `op`: `known_cluster_size` of its
/// gpu.func, without that attribute one CTA.
hw::ClusterShape clusterOf(mlir::Operation *op);

/// The smaller clusters that may run the kernel around `op`, or the kernel `op`, instead:
/// `pipe.fallback_cluster` of its gpu.func.
std::optional<hw::ClusterShape> fallbackOf(mlir::Operation *op);

/// Returns true when a result of `op` is a tile of tensor memory that a pair of CTAs has.
bool makesTileOfPair(mlir::Operation *op);

/// The tensor memory of `kernel` belongs to pairs: one of its tiles says so.
bool usesPairs(mlir::Operation *kernel);

/// The role runs on the leaders of pairs alone: it issues for the tensor cores of both CTAs.
bool runsOnLeaders(RoleAttr role, bool pairs);

hw::ClusterDirection toHardware(Direction direction);

/// "CTAs along m", as messages name those that load a tile together.
llvm::StringRef spellBlocksAlong(Direction direction);

/// Returns how many of the `parts` CTAs that load a tile with `rows` rows of scales together lie
/// along the rows. The others split the scale tiles of one row.
inline int64_t rowPartsOfScales(int64_t rows, int64_t parts) {
  return std::gcd(parts, int64_t(llvm::divideCeil(rows, kScaleBlockRows)));
}

/// Sharing of one channel among the CTAs of a cluster.
struct ChannelSharing {
  hw::ClusterShape cluster;
  bool pairFills = false, pairUses = false; ///< true where this end is the tensor core of a pair
  /// Loads along this direction fill the stages.
  bool multicastM = false, multicastN = false, multicastPairs = false;

  /// Returns this sharing for clusters of another shape.
  ChannelSharing in(hw::ClusterShape shape) const {
    ChannelSharing other = *this;
    other.cluster = shape;
    return other;
  }

  /// CTAs share barriers: the channel's scope must be the cluster.
  bool isShared() const { return pairFills || pairUses || isMulticast(); }
  bool isMulticast() const { return multicastM || multicastN || multicastPairs; }

  /// The CTAs that fill the stages of the consumer of CTA `rank`, whose producers wait until it
  /// releases them.
  template <typename Int> Int producersOf(Int rank) const {
    Int mask = pairFills  ? hw::maskOfBlock(hw::pairLeader(rank))
               : pairUses ? hw::maskOfPair(rank)
                          : hw::maskOfBlock(rank);
    if (multicastM || multicastPairs) // a stage of a pair serves both its CTAs
      mask = mask | hw::maskAlong(rank, cluster, hw::ClusterDirection::M);
    if (multicastN)
      mask = mask | hw::maskAlong(rank, cluster, hw::ClusterDirection::N, pairUses);
    return mask;
  }
  /// The CTA has a consumer: any, or of a pair whose tensor core consumes, the leader.
  bool consumes(uint32_t rank) const { return !pairUses || rank % 2 == 0; }
  bool produces(uint32_t rank) const { return !pairFills || rank % 2 == 0; }
  /// CTAs that release the stages of one producer.
  int32_t getNumReleasing() const;
};

/// Returns how `channel` is shared; `pairs` is the result of usesPairs(kernel).
ChannelSharing sharingOf(ChannelOp channel, bool pairs);

} // namespace fp4::pipe
