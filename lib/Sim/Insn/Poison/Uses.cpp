//===- Uses.cpp - Uses of poisoned values, and stores of them -------------===//
#include "Sim/Insn/Poison/Uses.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;

Outcome fp4::sim::failPoisoned(ExecContext &cx, std::string_view does, const PoisonOrigin &origin,
                               int lane) {
  const Insn &load = cx.kernel().code[origin.pc];
  std::string text = cx.launch().program->shownLine(load.line);
  if (text.ends_with(';'))
    text.pop_back();
  return cx.fail(
      fmt::format("{} a value of {}, which was never written", does,
                  cx.describeShared(origin.address)),
      fmt::format("line {} read it: {}; a store, copy or barrier is missing, or the use must "
                  "depend on what says that the value is not there; --unwritten=ignore lets it "
                  "pass",
                  load.line, text),
      lane);
}

bool fp4::sim::expectClean(ExecContext &cx, const Operand &o, uint32_t lanes,
                           std::string_view does) {
  const Poison *poison = cx.warp().poison.get();
  if (!poison || !poison->has(o))
    return true;
  const uint32_t bad = poison->lanesOf(o) & lanes;
  if (!bad)
    return true;
  const int lane = std::countr_zero(bad);
  failPoisoned(cx, does, poison->origin(o.offset, lane), lane);
  return false;
}

bool fp4::sim::storePoison(ExecContext &cx, Space space, uint64_t address,
                           std::span<const std::byte> bits, const PoisonOrigin &origin, int lane) {
  const ExecContext::Place place = cx.place(space, address);
  const bool any = std::ranges::any_of(bits, [](std::byte b) { return b != std::byte(0); });
  if (place.space == Space::Local) {
    for (size_t i = 0; i < bits.size(); ++i)
      cx.poison().storeLocal(lane, place.address + i, {bits[i], origin});
    return true;
  }
  if (!any)
    return true;
  if (place.space != Space::SharedCluster) {
    failPoisoned(cx, "stores to global memory", origin, lane);
    return false;
  }
  const auto at = static_cast<uint32_t>(place.address);
  SharedMemory &shared = cx.cluster().ctaOfSharedAddress(at)->shared;
  for (uint32_t i = 0; i < bits.size(); ++i)
    if (bits[i] != std::byte(0))
      shared.storePoison((at & kSharedOffsetMask) + i, {bits[i], origin});
  return true;
}

/// Byte `i` of an argument in a lane.
static PoisonedByte argumentByte(const Poison &poison, const ArgumentPlace &place, int lane,
                                 uint32_t i) {
  if (!place.value) {
    const PoisonedByte *found = poison.loadLocal(lane, place.offset + i);
    return found ? *found : PoisonedByte();
  }
  if (!poison.has(place.value) || i >= place.value.width)
    return {};
  const size_t at = place.value.offset + size_t(lane) * place.value.width + i;
  return {poison.registers()[at], poison.origin(place.value.offset, lane)};
}

void fp4::sim::copyPoison(ExecContext &cx, const ArgumentPlace &to, const ArgumentPlace &from) {
  Poison &poison = cx.poison();
  const uint32_t bytes = std::min(to.bytes, from.bytes);
  Poison::Origins origins{};
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    for (uint32_t i = 0; i < bytes; ++i) {
      const PoisonedByte byte = argumentByte(poison, from, lane, i);
      if (!to.value) {
        poison.storeLocal(lane, to.offset + i, byte);
        continue;
      }
      if (i < to.value.width)
        poison.registers()[to.value.offset + size_t(lane) * to.value.width + i] = byte.bits;
      if (byte.bits != std::byte(0))
        origins[size_t(lane)] = byte.origin;
    }
  }
  if (to.value)
    poison.update(to.value, cx.mask, origins);
}
