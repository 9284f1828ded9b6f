//===- Foreign.h - Knowledge about other clusters -------------------------===//
//
// Each of thousands of clusters that count themselves in one word learns what all before it did.
// So copies share what they have in common, and a join looks only at what differs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "VectorClock.h"

#include <array>
#include <memory>

namespace fp4::sim::check {

/// Knowledge about another cluster, through global memory.
struct Known {
  VectorClock generic, async, loose;
  void join(const Known &other) {
    generic.join(other.generic);
    async.join(other.async);
    loose.join(other.loose);
  }
  bool covers(const Known &other) const {
    return generic.covers(other.generic) && async.covers(other.async) && loose.covers(other.loose);
  }
};

/// Knowledge by cluster.
class Foreign {
public:
  /// Returns null where nothing is known of the cluster.
  const Known *find(uint32_t cluster) const;
  void join(uint32_t cluster, const Known &known);
  void join(const Foreign &other);
  /// Returns whether a join with `other` changes nothing.
  bool covers(const Foreign &other) const;
  /// Makes what the generic proxy did visible to the async proxy.
  void fence();

private:
  using KnownPtr = std::shared_ptr<const Known>; ///< null: nothing
  static constexpr uint32_t kInPart = 32;
  using Part = std::array<KnownPtr, kInPart>;
  using PartPtr = std::shared_ptr<const Part>; ///< null: nothing

  static void join(KnownPtr &mine, const KnownPtr &other);
  static void join(PartPtr &mine, const PartPtr &other);
  static bool covers(const PartPtr &mine, const PartPtr &other);

  std::vector<PartPtr> parts;
};
using ForeignPtr = std::shared_ptr<const Foreign>; ///< null: nothing

/// Returns knowledge of one cluster alone.
ForeignPtr foreignOf(uint32_t cluster, const Known &known);
void join(ForeignPtr &mine, const ForeignPtr &other);

} // namespace fp4::sim::check
