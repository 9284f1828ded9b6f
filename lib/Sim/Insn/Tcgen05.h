//===- Tcgen05.h - What the tcgen05 handlers share ------------------------===//
#pragma once

#include "Sim/Insn/AsyncOperands.h"

namespace fp4::sim {

/// The CTA ranks a tcgen05 operation acts in: its own, or with cta_group::2 the even and the odd
/// CTA of its pair. Empty after cx.fail, when the CTA has no peer.
std::vector<uint32_t> groupRanks(ExecContext &cx, uint32_t ctaGroup);

/// Fills ticket.after with the earlier tickets that the PTX ISA orders before it ("tcgen05 memory
/// consistency model": pipelined instructions of one thread and one cta_group): mma after mma on
/// the same accumulator, mma after cp and shift, shift after mma, cp.4x256b after shift. cp after
/// mma is kept in issue order too: not in the list, but relied upon by published kernels that keep
/// one buffer of scale factors. Operations of other threads are ordered where the tcgen05 fences
/// say so (Engine::acquire).
void orderTcgen05(const Engine &engine, Ticket &ticket);

/// A ticket reads a rectangle now. (What it writes was told when it was issued.)
void emitTmem(Engine &engine, const Ticket &self, uint32_t rank, const TmemRange &range);

} // namespace fp4::sim
