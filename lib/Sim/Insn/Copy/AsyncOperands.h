//===- AsyncOperands.h - Operands of the asynchronous families ------------===//
#pragma once

#include "Sim/Async/TicketQueue.h"
#include "Sim/Decode/Decode.h"

namespace fp4::sim {

/// "shared", "shared::cta", "shared::cluster", "global", "" (generic).
inline Space spaceFromText(std::string_view text) {
  if (text == "shared" || text == "shared::cta")
    return Space::SharedCta;
  if (text == "shared::cluster")
    return Space::SharedCluster;
  return text == "global" ? Space::Global : Space::Generic;
}

/// The shared::cluster address that operand `o` of `lane` names; false after cx.fail, when the
/// address is not in shared memory.
bool sharedAddress(ExecContext &cx, Space space, const Operand &o, int lane, uint32_t &address);

/// Fails with the place of the executing instruction, or continues.
inline Outcome finish(ExecContext &cx, Status status, Outcome outcome = Outcome::Next) {
  return status ? outcome : cx.fail(std::move(status.error()));
}
/// Fails with an error that has no place yet.
inline Outcome failHere(ExecContext &cx, Error error, int lane = -1) {
  return cx.fail(std::move(error.message), std::move(error.note), lane);
}

/// Fails unless exactly one lane executes an instruction that one thread must issue.
bool singleLane(ExecContext &cx, std::string_view instruction);

/// Tells the observer that the executing warp has waited for `ticket`.
void emitWaited(ExecContext &cx, uint64_t ticket);

/// Puts a ticket into the open bulk group of its thread.
void registerInGroup(TicketQueue &queue, Ticket &ticket);

/// Global memory of a ticket; the error names the nearest allocation.
Expected<std::byte *> globalBytes(TicketQueue &queue, uint64_t address, uint64_t bytes,
                                  bool toWrite);

/// Fails unless a live mbarrier is at `barrier`, in the CTA of `destination` or, with `pair`, in
/// the other CTA of its pair.
Status checkDestinationBarrier(TicketQueue &queue, uint32_t barrier, uint32_t destination,
                               bool pair);

} // namespace fp4::sim
