//===- Tcgen05.cpp - Functions that all tcgen05 handlers need -------------===//
#include "Sim/Insn/TensorCore/Tcgen05.h"
#include "fp4/ISA/TargetModel.h"

#include <fmt/format.h>

namespace fp4::sim {

bool hasWideDescriptors(ExecContext &cx) {
  return cx.launch().target->limits.sharedOversizedBytes != 0;
}

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

/// Other CTAs, or pairs of them, have pipelines of their own.
bool inOrder(const Ticket &earlier, const Ticket &later) {
  return earlier.tcgen05.pipelined && earlier.tcgen05.ctaGroup == later.tcgen05.ctaGroup &&
         earlier.firstOfGroup() == later.firstOfGroup() &&
         keepOrder(*earlier.tcgen05.pipelined, *later.tcgen05.pipelined, /*textOnly=*/false);
}

} // namespace

void orderTcgen05(TicketQueue &queue, Ticket &ticket) {
  for (const auto &[id, earlier] : queue.tickets())
    if (earlier.issuer == ticket.issuer && inOrder(earlier, ticket))
      ticket.after.push_back(id);
  for (uint64_t id : queue.acquired(ticket.issuer))
    if (auto it = queue.tickets().find(id); it != queue.tickets().end())
      if (it->second.issuer != ticket.issuer && inOrder(it->second, ticket))
        ticket.after.push_back(id);
}

void emitTmem(TicketQueue &queue, const Ticket &self, uint32_t rank, const TmemRange &range) {
  queue.emitTmem(self, AccessKind::Read, {rank, range});
}

} // namespace fp4::sim
