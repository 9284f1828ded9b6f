//===- Tcgen05.h - Functions that all tcgen05 handlers need ---------------===//
#pragma once

#include "Sim/Insn/Copy/AsyncOperands.h"

namespace fp4::sim {

/// The CTA ranks a tcgen05 operation acts in: its own, or with cta_group::2 the even and the odd
/// CTA of its pair. Empty after cx.fail, when the CTA has no peer.
std::vector<uint32_t> groupRanks(ExecContext &cx, uint32_t ctaGroup);

/// Returns true if shared-memory descriptors of the target have addresses of 15 bits.
bool hasWideDescriptors(ExecContext &cx);

/// Returns the number of CTAs that .cta_group names.
inline uint8_t ctaGroupOf(const BindContext &bind) {
  return bind.match.text("group") == "cta_group::2" ? 2 : 1;
}

/// Fills ticket.after with the earlier tickets that come before it without a wait: those of the
/// table in Tcgen05Pairs.def, of its thread or of one that the tcgen05 fences order before it
/// (TicketQueue::acquire).
void orderTcgen05(TicketQueue &queue, Ticket &ticket);

/// Tells observers that a ticket reads a rectangle now. (The issue told its writes.)
void emitTmem(TicketQueue &queue, const Ticket &self, uint32_t rank, const TmemRange &range);

} // namespace fp4::sim
