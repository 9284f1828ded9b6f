//===- WarpgroupWait.h - A warpgroup waits for its MMAs -------------------===//
#pragma once

#include "Sim/Async/TicketQueue.h"
#include "Sim/State/Awaited.h"
#include <fmt/format.h>

namespace fp4::sim {

inline constexpr unsigned warpsPerGroup = 4;

/// The first `count` groups of a warpgroup. An MMA is one operation of its four warps: CUTLASS lets
/// one thread of them tell the producer that all have read their operands.
class WarpgroupWait final : public Wait, public AwaitsWarps {
public:
  WarpgroupWait(ExecContext &cx, size_t count)
      : queue(TicketQueue::of(cx)), rank(cx.cta().rank),
        first(cx.warp().index / warpsPerGroup * warpsPerGroup), count(count) {}

  bool ready() const override {
    for (uint32_t warp = first; warp < first + warpsPerGroup; ++warp)
      if (!ready(warp))
        return false;
    return true;
  }
  std::string describe() const override {
    return fmt::format("the wgmma of warps {} to {} in wgmma.wait_group", first,
                       first + warpsPerGroup - 1);
  }
  Awaited awaited() const override {
    return {Awaited::What::Warpgroup, rank, first,
            fmt::format("the wgmma of warps {}-{}", first, first + warpsPerGroup - 1)};
  }

private:
  bool ready(uint32_t warp) const {
    const auto &all = queue.state(rank).wgmmaGroups;
    const auto found = all.find(warp);
    if (found == all.end() || found->second.committed.size() < count)
      return count == 0;
    const auto &groups = found->second;
    for (size_t i = groups.waited; i < count; ++i)
      for (uint64_t id : groups.committed[i])
        if (!queue.done(id))
          return false;
    return true;
  }

  TicketQueue &queue;
  uint32_t rank, first;
  size_t count;
};

} // namespace fp4::sim
