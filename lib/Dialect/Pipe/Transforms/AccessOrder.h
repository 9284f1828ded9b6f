//===- AccessOrder.h - Order of accesses to tiles ---------------------------===//
//
// Vector clocks of the roles of all CTAs of a cluster. Work of a thread, and of the engines for it,
// reaches another thread through a barrier only: an arrival leaves the clock of its role there, and
// a wait takes it. Two accesses to a tile, of which one writes, are a race
// where the clock of the second does not contain the first.
//
// The components of an agent, a role in a CTA:
//   Issued     what the role has executed
//   Fenced     what the role had executed when it last fenced its accesses to shared memory
//   Tensor     what its tensor core has completed; a commit says so
//   channel c  what TMA has completed in the stages that it fills, or that bulk stores read
//
//===----------------------------------------------------------------------===//
#pragma once

#include "RoleSteps.h"

#include <map>

namespace fp4::pipe {

using Clock = std::vector<uint32_t>;

class AccessOrder {
public:
  AccessOrder(size_t numAgents, llvm::ArrayRef<ChannelOp> channels);

  /// Begins the next step of `agent`.
  void advance(size_t agent) { ++clocks[agent][component(agent, Issued)]; }
  /// Accesses the tile of `use` in CTA `rank`; false after an error, which names both operations.
  bool access(size_t agent, const RoleStep &step, const TileUse &use, uint32_t rank);
  /// Completes MMAs in registers whose accesses have been recorded, but for those that go on.
  void finish(size_t agent, const RoleStep &step);
  /// Orders accesses of `agent` to shared memory before copies behind its next arrival.
  void fence(size_t agent);
  /// The clock that an arrival of `agent` leaves, where `engine` arrives for `channel`.
  Clock arrival(size_t agent, Engine engine, ChannelOp channel);
  /// Merges `clock`, which a wait of `agent` has found.
  void join(size_t agent, const Clock &clock);
  /// Every read so far was of a tile that had been written in its iteration.
  llvm::LogicalResult checkWritten() const;
  /// The bulk stores of `agent` out of stages up to the one `delay` before have been read.
  void completeStores(size_t agent, ChannelOp channel, int64_t delay);

private:
  enum Part : uint32_t { Issued, Fenced, Tensor, FirstChannel };
  struct Access {
    mlir::Operation *op;
    size_t agent;
    uint32_t component, time; ///< clock entry and value at which the access is complete
    uint32_t issued;
    int64_t iteration;
    bool isGeneric; ///< access of threads to shared memory, without a fence of its own
    bool isTensor;  ///< access of tcgen05
    bool isScales;  ///< copy of scales
  };
  struct History {
    llvm::SmallVector<Access, 2> writes, reads;
  };
  /// A read in front of which nothing wrote the tile. A write behind it is a race of its own.
  std::optional<Access> unwritten;

  uint32_t component(size_t agent, uint32_t part) const { return agent * parts + part; }
  uint32_t partOf(ChannelOp channel) const;
  Access describe(size_t agent, mlir::Operation *op, const TileUse &use);
  bool isOrdered(const Access &before, const Access &now) const;
  bool checkAll(llvm::ArrayRef<Access> before, const Access &now, bool otherIteration) const;
  static void record(llvm::SmallVectorImpl<Access> &all, const Access &now);

  llvm::SmallVector<ChannelOp> channels;
  uint32_t parts;
  std::vector<Clock> clocks;
  Clock issuedWork; ///< operations that engines have been given, for each component
  std::map<std::pair<uint32_t, TilePlace>, History> histories;
  std::map<std::pair<size_t, const void *>, std::vector<uint32_t>> stores;
};

} // namespace fp4::pipe
