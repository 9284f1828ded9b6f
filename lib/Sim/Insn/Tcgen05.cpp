//===- Tcgen05.cpp - What the tcgen05 handlers share ----------------------===//
#include "Sim/Insn/Tcgen05.h"

#include <fmt/format.h>

namespace fp4::sim {

std::vector<uint32_t> groupRanks(ExecContext &cx, uint32_t ctaGroup) {
  const uint32_t rank = cx.cta().rank;
  if (ctaGroup == 1)
    return {rank};
  if ((rank ^ 1) >= cx.cluster().ctas.size()) {
    cx.fail("cta_group::2 expects a pair of CTAs, but the cluster has an odd number of them",
            "launch with a cluster whose size is even");
    return {};
  }
  return {rank & ~1u, rank | 1u};
}

namespace {

bool overlap(const TmemRange &a, const TmemRange &b) {
  return a.lane < b.lane + b.lanes && b.lane < a.lane + a.lanes &&
         a.column < b.column + b.columns && b.column < a.column + a.columns;
}

bool writesOverlap(const Ticket &a, const Ticket &b) {
  for (const TmemCells &x : a.tmemWrites)
    for (const TmemCells &y : b.tmemWrites)
      if (x.rank == y.rank && overlap(x.range, y.range))
        return true;
  return false;
}

/// Whether `earlier` is ordered before `later`, both of one thread and cta_group.
bool ordered(const Ticket &earlier, const Ticket &later) {
  switch (later.engine) {
  case EngineKind::Mma:
    return earlier.engine == EngineKind::TmemCopy || earlier.engine == EngineKind::TmemShift ||
           (earlier.engine == EngineKind::Mma && writesOverlap(earlier, later));
  case EngineKind::TmemCopy:
    return earlier.engine == EngineKind::Mma ||
           (earlier.engine == EngineKind::TmemShift && later.narrowCopy);
  case EngineKind::TmemShift:
    return earlier.engine == EngineKind::Mma;
  default:
    return false;
  }
}

bool pipelined(EngineKind kind) {
  return kind == EngineKind::Mma || kind == EngineKind::TmemCopy || kind == EngineKind::TmemShift;
}

} // namespace

void orderTcgen05(const Engine &engine, Ticket &ticket) {
  for (const auto &[id, earlier] : engine.tickets())
    if (earlier.issuer == ticket.issuer && earlier.ctaGroup == ticket.ctaGroup &&
        ordered(earlier, ticket))
      ticket.after.push_back(id);
  for (uint64_t id : engine.acquired(ticket.issuer))
    if (auto it = engine.tickets().find(id); it != engine.tickets().end())
      if (pipelined(it->second.engine) && it->second.issuer != ticket.issuer)
        ticket.after.push_back(id);
}

void emitTmem(Engine &engine, const Ticket &self, uint32_t rank, const TmemRange &range) {
  engine.emitTmem(self, AccessKind::Read, {rank, range});
}

} // namespace fp4::sim
