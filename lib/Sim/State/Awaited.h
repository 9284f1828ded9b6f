//===- Awaited.h - Waits that other warps end -----------------------------===//
#pragma once

#include <cstdint>
#include <string>

namespace fp4::sim {

/// The object at which a group of lanes waits for other warps, for the report of a deadlock.
struct Awaited {
  enum class What : uint8_t {
    Mbarrier,       ///< `object`: its offset in the CTA of this rank
    Barrier,        ///< `object`: the number of a barrier of the CTA
    ClusterBarrier, ///< barrier.cluster
    Warpgroup,      ///< a wgmma; `object`: the first of its warps
    Lanes,          ///< other lanes of the same warp
  };
  What what{};
  uint32_t rank = 0;
  uint32_t object = 0;
  std::string name{}; ///< "'full'", "barrier 2"

  bool sameObject(const Awaited &other) const {
    return what == other.what && rank == other.rank && object == other.object;
  }
};

/// The part of a Wait that says for whom.
class AwaitsWarps {
public:
  virtual ~AwaitsWarps() = default;
  virtual Awaited awaited() const = 0;
};

} // namespace fp4::sim
