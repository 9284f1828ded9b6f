//===- SmColumns.h - Tensor memory that the CTAs of one SM share -----------===//
//
// PTX ISA, "tcgen05.alloc": it blocks until the columns are free, and the CTAs that an SM runs at
// the same time share its columns. A place is as many SMs as a cluster has CTAs, and each cluster
// that has begun has one. The CTAs of a pair (cta_group::2) have the same columns of two SMs.
//
// A launch has such columns where an SM has room for several of its CTAs, and runs out of SMs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace fp4::sim {

/// A CTA that shares columns, or the first of its pair.
struct ColumnsOwner {
  uint64_t cluster = 0;
  uint32_t place = 0, rank = 0;
  std::array<uint32_t, 3> cta{}; ///< %ctaid

  bool operator==(const ColumnsOwner &other) const {
    return cluster == other.cluster && rank == other.rank;
  }
};

/// A call of tcgen05.alloc.
struct ColumnsCall {
  ColumnsOwner owner;
  uint32_t number = 0; ///< allocations that the CTA has made before
  uint32_t columns = 0;
  bool exclusive = false;
  uint32_t line = 0;
};

class SmColumns {
public:
  /// `places` of as many SMs as a cluster has CTAs, with room for `ctasPerSm` CTAs on each SM. With
  /// `turns` other clusters have a turn behind each allocation: the kernel makes several.
  SmColumns(uint64_t places, uint64_t ctasPerSm, bool turns)
      : takesTurns(turns), ctasPerSm(ctasPerSm), clusters(places) {}
  const bool takesTurns;

  /// The place of a cluster that begins: its own, or the one with fewest clusters if that is full.
  uint32_t enter(uint64_t cluster);
  /// Frees what the cluster still has.
  void leave(uint64_t cluster, uint32_t place);

  /// The first column; none if they are not free, and the CTA waits from now on. The second CTA of
  /// a pair gets what the first got.
  std::optional<uint32_t> take(const ColumnsCall &call);
  bool available(const ColumnsCall &call) const;
  /// A CTA of the owner, which is one of `parts`, needs them no longer.
  void give(const ColumnsOwner &owner, uint32_t column, uint32_t parts);

  /// "columns 256..511 by CTA (148,0,0) since line 12, which waits for 256 more at line 13": what
  /// others have on the SM of this CTA. Empty if they have nothing.
  std::string describeOthers(const ColumnsOwner &owner) const;
  /// "CTA (148,0,0) of the same SM waits at line 9 for 512 columns of tensor memory": who waits for
  /// what this CTA has. Empty if nobody does.
  std::string describeWaiters(const ColumnsOwner &owner) const;

private:
  struct Held {
    ColumnsCall call;
    uint32_t column = 0;
    uint32_t given = 0; ///< CTAs that need them no longer
  };
  std::optional<uint32_t> findFree(const ColumnsCall &call) const;
  /// True for another CTA on the SM of this one.
  static bool meets(const ColumnsOwner &one, const ColumnsOwner &other) {
    return one.place == other.place && one.rank == other.rank && one.cluster != other.cluster;
  }

  const uint64_t ctasPerSm;
  mutable std::mutex lock;
  std::vector<uint64_t> clusters; ///< clusters at each place
  std::vector<Held> held;
  std::vector<ColumnsCall> waiting;
};

} // namespace fp4::sim
