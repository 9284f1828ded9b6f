//===- RemoteStore.cpp - st.async, red.async, st.bulk ---------------------===//
//
// PTX ISA, "st.async", "red.async": one value (or vector) per active lane, which arrives in shared
// memory of a CTA of the cluster, or in global memory, some time later; the forms with an mbarrier
// count the bytes on it. "st.bulk": zeros in shared memory.
//
//===----------------------------------------------------------------------===//
#include "Sim/Async/Reduction.h"
#include "Sim/Insn/Copy/AsyncOperands.h"
#include "Sim/Insn/Memory/MemoryAccess.h"
#include "fp4/Sim/Events/BarrierEvent.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

/// The value of one lane: up to four elements of eight bytes, or one of sixteen.
struct Value {
  std::array<std::byte, 32> data{};
  uint32_t bytes = 0;
};

Value valueOf(ExecContext &cx, const Insn &insn, const Operand &o, int lane) {
  const auto &how = insn.as<RemoteStoreModifiers>();
  Value value;
  const Operand *elements = cx.elements(o);
  if (how.bytes == 16) {
    std::memcpy(value.data.data(), cx.src<std::byte>(*elements) + size_t(16) * unsigned(lane), 16);
    value.bytes = 16;
    return value;
  }
  for (unsigned i = 0; i < how.elements; ++i) {
    const uint64_t bits = cx.scalar(elements[i], lane);
    std::memcpy(&value.data[value.bytes], &bits, how.bytes);
    value.bytes += how.bytes;
  }
  return value;
}

/// Stores the value at `to`, or reduces it into what is there.
void put(const Insn &insn, std::byte *to, const Value &value) {
  const auto &how = insn.as<RemoteStoreModifiers>();
  if (how.reduction)
    reduction(*how.reduction, how.type)(to, value.data.data(), how.elements);
  else
    std::memcpy(to, value.data.data(), value.bytes);
}

AccessKind accessKind(const Insn &insn) {
  return insn.as<RemoteStoreModifiers>().reduction ? AccessKind::Atomic : AccessKind::Write;
}

bool aligned(ExecContext &cx, uint64_t address, uint32_t bytes, int lane) {
  if (address % bytes == 0)
    return true;
  cx.fail(fmt::format("expects an address that is a multiple of {}, but got {:#x}", bytes, address),
          "", lane);
  return false;
}

/// To shared memory of the cluster; op 0 the address, 1 the value, 2 the mbarrier.
Outcome toShared(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  const auto &how = insn.as<RemoteStoreModifiers>();
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    uint32_t to, barrier;
    if (!sharedAddress(cx, how.space, insn.op[0], lane, to) ||
        !sharedAddress(cx, how.space, insn.op[2], lane, barrier))
      return Outcome::Error;
    const Value value = valueOf(cx, insn, insn.op[1], lane);
    if (!aligned(cx, to, value.bytes, lane))
      return Outcome::Error;
    if (Status ok = checkDestinationBarrier(queue, barrier, to, false); !ok)
      return failHere(cx, std::move(ok.error()), lane);
    Ticket ticket = queue.makeTicket(cx, insn, TicketKind::Bulk, lane);
    ticket.proxy = Proxy::Generic;
    ticket.work.bytes = value.bytes;
    ticket.engine = Engine::Threads;
    if (!how.reduction)
      ticket.writes.shared.push_back({to, value.bytes});
    ticket.signals.push_back(barrier);
    ticket.stages.push_back([&queue, &insn, to, value](const Ticket &self) -> Status {
      FP4_ASSIGN(auto target, queue.sharedDestination(to, value.bytes));
      put(insn, target, value);
      queue.emitAccess(self, accessKind(insn), Space::SharedCluster, to, value.bytes,
                       Proxy::Generic);
      return {};
    });
    ticket.signal = [&queue, barrier, bytes = value.bytes](const Ticket &self) {
      return queue.completeTx(barrier, bytes, self);
    };
    if (Status ok = queue.issue(std::move(ticket)); !ok)
      return cx.fail(std::move(ok.error()));
  }
  return Outcome::Next;
}

/// To global memory, with release semantics; nothing tells when it has happened.
Outcome toGlobal(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto place =
        cx.place(insn.as<RemoteStoreModifiers>().space, cx.address(insn.op[0], lane));
    const Value value = valueOf(cx, insn, insn.op[1], lane);
    if (!cx.readable(place.space, place.address, value.bytes, value.bytes, lane))
      return Outcome::Error;
    Ticket ticket = queue.makeTicket(cx, insn, TicketKind::Bulk, lane);
    ticket.work.bytes = value.bytes;
    ticket.engine = Engine::Threads;
    ticket.stages.push_back(
        [&queue, &insn, to = place.address, value](const Ticket &self) -> Status {
          FP4_ASSIGN(auto target, globalBytes(queue, to, value.bytes, true));
          put(insn, target, value);
          queue.emitAccess(self, accessKind(insn), Space::Global, to, value.bytes, Proxy::Generic);
          return {};
        });
    if (Status ok = queue.issue(std::move(ticket)); !ok)
      return cx.fail(std::move(ok.error()));
  }
  return Outcome::Next;
}

/// Tells the observer of zeros that st.bulk will store.
void reportZeros(ExecContext &cx, const Insn &insn) {
  const uint32_t bytes = uint32_t(cx.scalar(insn.op[1]));
  if (!cx.observer || !bytes)
    return;
  const Space space = insn.as<SpaceModifiers>().space;
  const LaneAddresses lanes(cx, insn.op[0], bytes);
  const auto areZero = [&](unsigned, const std::byte *there) {
    return std::all_of(there, there + bytes, [](std::byte b) { return b == std::byte(0); });
  };
  reportAccess(cx, lanes, AccessKind::Write,
               {space, MemOrder::Weak, Scope::None, bytes,
                unchangedLanes(cx, space, lanes, bytes, areZero)});
}

/// op 0 the address, 1 the size, 2 the value, which must be zero.
Outcome bulkZero(ExecContext &cx, const Insn &insn) {
  constexpr uint64_t unit = 8, largest = 16777216;
  reportZeros(cx, insn);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t bytes = cx.scalar(insn.op[1], lane);
    if (bytes % unit || bytes > largest)
      return cx.fail(fmt::format("st.bulk expects a size that is a multiple of {} up to {}, but "
                                 "got {}",
                                 unit, largest, bytes),
                     "", lane);
    const auto place = cx.place(insn.as<SpaceModifiers>().space, cx.address(insn.op[0], lane));
    if (place.space != Space::SharedCluster)
      return cx.fail("st.bulk expects an address in shared memory", "", lane);
    if (!bytes)
      continue;
    std::byte *to = cx.writable(place.space, place.address, uint32_t(bytes), 8, lane);
    if (!to)
      return Outcome::Error;
    std::memset(to, 0, bytes);
  }
  return Outcome::Next;
}

Status bindValue(BindContext &bind, Space space) {
  const Type type = bind.match.type();
  const unsigned elements = bind.match.vectorSize();
  auto &how = bind.insn.make<RemoteStoreModifiers>(
      {space, uint8_t(elements), uint8_t(bytesOf(type)), std::nullopt, type});
  if (type == Type::B128 && elements > 1)
    return bind.fail("there are no vectors of .b128");
  if (bind.insn.op[1].imm != elements)
    return bind.fail(fmt::format("expects {} values, but got {}", elements, bind.insn.op[1].imm));
  if (!bind.match.has("op"))
    return {};
  const ReductionOp op = reductionFromText(bind.match.text("op"));
  if (!reduction(op, type))
    return bind.fail(
        fmt::format("there is no red.async of .{} on .{}", bind.match.text("op"), spelling(type)));
  how.reduction = op;
  return {};
}

} // namespace

Status bindAsyncShared(BindContext &bind) {
  FP4_TRY(
      bindValue(bind, bind.match.has("shared::cluster") ? Space::SharedCluster : Space::Generic));
  return bind.use(toShared);
}
Status bindAsyncGlobal(BindContext &bind) {
  FP4_TRY(bindValue(bind, bind.match.has("global") ? Space::Global : Space::Generic));
  return bind.use(toGlobal);
}
Status bindBulkZero(BindContext &bind) {
  if (bind.insn.op[2].imm != 0)
    return bind.fail(fmt::format("st.bulk expects the value 0, but got {}", bind.insn.op[2].imm));
  bind.insn.make<SpaceModifiers>(
      {bind.match.has("shared::cta") ? Space::SharedCta : Space::Generic});
  return bind.use(bulkZero);
}

} // namespace fp4::sim
