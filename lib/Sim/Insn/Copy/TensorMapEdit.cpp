//===- TensorMapEdit.cpp - tensormap.replace and cp_fenceproxy ------------===//
//
// PTX ISA, "tensormap.replace": one field of a tensor map in global or shared memory gets a new
// value; "tensormap.cp_fenceproxy": 128 bytes from shared to global memory.
//
// Maps are edited field by field, so an intermediate one need not be valid: it is checked by the
// copy that uses it. An edit touches the 64 bytes that copies read (H200), and no more. A copy moves
// all 128, of which the others may be what nobody wrote: CuTe DSL makes a map of its 64 bytes.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Copy/AsyncOperands.h"
#include "Sim/Insn/Memory/MemoryAccess.h"
#include "fp4/ISA/TensorMap.h"
#include "fp4/Sim/Events/FenceEvent.h"
#include "fp4/Sim/Observer.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

using hw::TensorMap;
using hw::TensorMapField;

/// Names in the order of TensorMapField.
constexpr std::string_view fieldNames[] = {
    "global_address", "rank",     "box_dim",           "global_dim",   "global_stride",
    "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity",
    "fill_mode"};

void report(ExecContext &cx, const Operand &address, Space space, AccessKind kind, size_t bytes) {
  if (cx.observer)
    reportAccess(cx, LaneAddresses(cx, address, bytes), kind,
                 {space, MemOrder::Weak, Scope::None, uint32_t(bytes)});
}

/// op 0 the address of the map, 1 the new value.
Outcome replaceField(ExecContext &cx, const Insn &insn) {
  constexpr size_t bytes = TensorMap::usedBytes;
  const auto [space, field, ordinal] = insn.as<TensorMapModifiers>();
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto place = cx.place(space, cx.address(insn.op[0], lane));
    if (!cx.readable(place.space, place.address, bytes, 64, lane))
      return Outcome::Error;
    std::byte *map = cx.writable(place.space, place.address, bytes, 64, lane);
    if (!map)
      return Outcome::Error;
    const uint64_t value = cx.scalar(insn.op[1], lane);
    if (!TensorMap::replace(std::span<std::byte, bytes>(map, bytes), field, ordinal, value))
      return cx.fail(
          fmt::format("tensormap.replace: .{} cannot be {} here", fieldNames[size_t(field)], value),
          "", lane);
  }
  report(cx, insn.op[0], space, AccessKind::Read, bytes);
  report(cx, insn.op[0], space, AccessKind::Write, bytes);
  return Outcome::Next;
}

/// op 0 the destination, 1 the source; one copy for the warp.
Outcome copyFenced(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  const int lane = cx.firstLane();
  const auto to = cx.place(Space::Global, cx.address(insn.op[0], lane));
  const auto from = cx.place(Space::SharedCta, cx.address(insn.op[1], lane));
  const std::byte *source = cx.sharedObject(from.address, TensorMap::encodedBytes, 64);
  if (!source || !cx.readable(from.space, from.address, TensorMap::usedBytes, 64, lane))
    return Outcome::Error;
  std::byte *target = cx.writable(to.space, to.address, TensorMap::encodedBytes, 64, lane);
  if (!target)
    return Outcome::Error;
  std::memcpy(target, source, TensorMap::encodedBytes);
  const uint32_t lanes = cx.mask;
  cx.mask = 1u << lane; // one copy, not one per lane
  report(cx, insn.op[1], Space::SharedCta, AccessKind::Read, TensorMap::usedBytes);
  report(cx, insn.op[0], Space::Global, AccessKind::Write, TensorMap::encodedBytes);
  if (cx.observer) {
    FenceEvent event;
    event.actor = cx.actor();
    event.at = cx.here();
    event.kind = FenceKind::ProxyTensormap;
    event.order = MemOrder::Release;
    event.scope = insn.as<TensorMapCopyModifiers>().scope;
    event.laneMask = lanes; // the warp executes it as one
    cx.observer->onFence(event);
  }
  return Outcome::Next;
}

} // namespace

Status bindTensormapReplace(BindContext &bind) {
  const std::string_view name = bind.match.text("field");
  const auto field = TensorMapField(std::find(std::begin(fieldNames), std::end(fieldNames), name) -
                                    std::begin(fieldNames));
  auto &how = bind.insn.make<TensorMapModifiers>({spaceFromText(bind.match.text("space")), field});
  const bool wide = field == TensorMapField::GlobalAddress || field == TensorMapField::GlobalStride;
  if (bind.match.text("type") != (wide ? "b64" : "b32"))
    return bind.fail(fmt::format(".{} expects .{}, but got .{}", name, wide ? "b64" : "b32",
                                 bind.match.text("type")));
  if (field >= TensorMapField::BoxDim && field <= TensorMapField::ElementStride) {
    const unsigned count = TensorMap::maxRank - (field == TensorMapField::GlobalStride);
    const int64_t ordinal = bind.insn.op[1].imm;
    if (uint64_t(ordinal) >= count)
      return bind.fail(
          fmt::format("the ordinal of .{} must be below {}, but got {}", name, count, ordinal));
    how.ordinal = uint8_t(ordinal);
    bind.insn.op[1] = bind.insn.op[2];
  }
  return bind.use(replaceField);
}
Status bindTensormapCopy(BindContext &bind) {
  if (bind.insn.op[2].imm != int64_t(TensorMap::encodedBytes))
    return bind.fail(fmt::format("expects a size of {}, but got {}", TensorMap::encodedBytes,
                                 bind.insn.op[2].imm));
  bind.insn.make<TensorMapCopyModifiers>({bind.match.scope()});
  return bind.use(copyFenced);
}

} // namespace fp4::sim
