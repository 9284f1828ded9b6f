//===- TensorMapEdit.cpp - tensormap.replace and cp_fenceproxy ------------===//
//
// PTX ISA, "tensormap.replace": one field of a tensor map in global or shared memory gets a new
// value; "tensormap.cp_fenceproxy": 128 bytes from shared to global memory. Insn::m: 0 space,
// 1 field; Insn::u is the ordinal, or the immediate of the fields that take one.
//
// Maps are edited field by field, so an intermediate one need not be valid: it is checked by the
// copy that uses it.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/AsyncOperands.h"
#include "Sim/Insn/MemoryAccess.h"
#include "fp4/ISA/TensorMap.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

using hw::TensorMap;
using hw::TensorMapType;

enum Field : uint8_t {
  GlobalAddress,
  Rank,
  BoxDim,
  GlobalDim,
  GlobalStride,
  ElementStride,
  ElementType,
  InterleaveLayout,
  SwizzleMode,
  SwizzleAtomicity,
  FillMode
};
constexpr std::string_view fieldNames[] = {
    "global_address", "rank",     "box_dim",           "global_dim",   "global_stride",
    "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity",
    "fill_mode"};

/// .elemtype numbers types unlike CUtensorMapDataType.
constexpr TensorMapType elementTypes[] = {
    TensorMapType::UInt8,       TensorMapType::UInt16,   TensorMapType::UInt32,
    TensorMapType::Int32,       TensorMapType::UInt64,   TensorMapType::Int64,
    TensorMapType::Float16,     TensorMapType::Float32,  TensorMapType::Float32Ftz,
    TensorMapType::Float64,     TensorMapType::BFloat16, TensorMapType::TFloat32,
    TensorMapType::TFloat32Ftz, TensorMapType::U4Align8, TensorMapType::U4Align16,
    TensorMapType::U6Align16};

/// The swizzle of a mode and an atomicity; none where the simulator has none.
std::optional<hw::SwizzleMode> swizzleOf(hw::SwizzleMode old, Field field, uint64_t value) {
  using hw::SwizzleMode;
  constexpr SwizzleMode modes[] = {SwizzleMode::None, SwizzleMode::B32, SwizzleMode::B64,
                                   SwizzleMode::B128};
  if (field == Field::SwizzleMode)
    return value < std::size(modes) ? std::optional(modes[value]) : std::nullopt;
  if (value == 0)
    return old == SwizzleMode::B128Atom32 ? SwizzleMode::B128 : old;
  if (value == 1 && (old == SwizzleMode::B128 || old == SwizzleMode::B128Atom32))
    return SwizzleMode::B128Atom32;
  return std::nullopt;
}

/// False where the value has no meaning.
bool replace(TensorMap &map, Field field, unsigned ordinal, uint64_t value) {
  switch (field) {
  case GlobalAddress:
    map.address = value;
    return true;
  case Rank:
    map.rank = uint32_t(value) + 1;
    return value < TensorMap::maxRank;
  case BoxDim:
    map.box[ordinal] = uint32_t(value);
    return true;
  case GlobalDim:
    map.dims[ordinal] = value;
    return true;
  case GlobalStride:
    map.strides[ordinal] = value;
    return true;
  case ElementStride:
    map.elementStrides[ordinal] = uint32_t(value);
    return true;
  case ElementType:
    map.elementType = elementTypes[value % std::size(elementTypes)];
    return value < std::size(elementTypes);
  case InterleaveLayout:
    map.interleave = hw::TensorMapInterleave(value);
    return value <= uint64_t(hw::TensorMapInterleave::B32);
  case Field::SwizzleMode:
  case SwizzleAtomicity: {
    const auto swizzle = swizzleOf(map.swizzle, field, value);
    map.swizzle = swizzle.value_or(map.swizzle);
    return swizzle.has_value();
  }
  case FillMode:
    map.oobFill = hw::TensorMapOobFill(value);
    return value <= uint64_t(hw::TensorMapOobFill::NanRequestZeroFma);
  }
  return false;
}

/// The map to edit. One that is made from nothing begins with zeros: one dimension of one element.
Expected<TensorMap> mapAt(std::span<const std::byte, TensorMap::encodedBytes> bytes) {
  if (!std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte(0); }))
    return TensorMap::unpackSimulator(bytes);
  TensorMap map;
  map.rank = 1;
  map.dims.fill(1);
  map.box.fill(1);
  map.elementStrides.fill(1);
  return map;
}

void report(ExecContext &cx, const Operand &address, Space space, AccessKind kind) {
  if (cx.observer)
    reportAccess(cx, LaneAddresses(cx, address, TensorMap::encodedBytes), kind,
                 {space, MemOrder::Weak, Scope::None, uint32_t(TensorMap::encodedBytes)});
}

/// op 0 the address of the map, 1 the new value.
Outcome replaceField(ExecContext &cx, const Insn &insn) {
  const auto field = Field(insn.m[1]);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto place = cx.place(Space(insn.m[0]), cx.address(insn.op[0], lane));
    const std::byte *from =
        cx.readable(place.space, place.address, TensorMap::encodedBytes, 64, lane);
    std::byte *to = cx.writable(place.space, place.address, TensorMap::encodedBytes, 64, lane);
    if (!from || !to)
      return Outcome::Error;
    auto map =
        mapAt(std::span<const std::byte, TensorMap::encodedBytes>(from, TensorMap::encodedBytes));
    if (!map)
      return failHere(cx, std::move(map.error()), lane);
    if (map->pixels && field == BoxDim && insn.u > 1)
      return cx.fail(fmt::format("tensormap.replace: the ordinal of .box_dim must be 0 (channels) "
                                 "or 1 (pixels) in a map for im2col, but got {}",
                                 insn.u),
                     "", lane);
    const uint64_t value = insn.op[1] ? cx.scalar(insn.op[1], lane) : insn.u;
    if (!replace(*map, field, unsigned(insn.u), value))
      return cx.fail(fmt::format("tensormap.replace: the simulator has no .{} of value {}",
                                 fieldNames[field], value),
                     "", lane);
    const TensorMap::Encoded bytes = map->packSimulator();
    std::memcpy(to, bytes.data(), bytes.size());
  }
  report(cx, insn.op[0], Space(insn.m[0]), AccessKind::Read);
  report(cx, insn.op[0], Space(insn.m[0]), AccessKind::Write);
  return Outcome::Next;
}

/// op 0 the destination, 1 the source; one copy for the warp.
Outcome copyFenced(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  const int lane = cx.firstLane();
  const auto to = cx.place(Space::Global, cx.address(insn.op[0], lane));
  const auto from = cx.place(Space::SharedCta, cx.address(insn.op[1], lane));
  const std::byte *source =
      cx.readable(from.space, from.address, TensorMap::encodedBytes, 64, lane);
  std::byte *target = cx.writable(to.space, to.address, TensorMap::encodedBytes, 64, lane);
  if (!source || !target)
    return Outcome::Error;
  std::memcpy(target, source, TensorMap::encodedBytes);
  cx.mask = 1u << lane; // one copy, not one per lane
  report(cx, insn.op[1], Space::SharedCta, AccessKind::Read);
  report(cx, insn.op[0], Space::Global, AccessKind::Write);
  if (cx.observer) {
    FenceEvent event;
    event.agent = cx.agent();
    event.at = cx.here();
    event.kind = FenceKind::ProxyTensormap;
    event.order = MemOrder::Release;
    event.scope = Scope(insn.m[0]);
    event.laneMask = cx.mask;
    cx.observer->onFence(event);
  }
  return Outcome::Next;
}

} // namespace

Status bindTensormapReplace(BindContext &bind) {
  const std::string_view name = bind.match.text("field");
  const auto field =
      Field(std::find(std::begin(fieldNames), std::end(fieldNames), name) - std::begin(fieldNames));
  bind.insn.m[0] = uint8_t(spaceFromText(bind.match.text("space")));
  bind.insn.m[1] = field;
  const bool wide = field == GlobalAddress || field == GlobalStride;
  if (bind.match.text("type") != (wide ? "b64" : "b32"))
    return bind.fail(fmt::format(".{} expects .{}, but got .{}", name, wide ? "b64" : "b32",
                                 bind.match.text("type")));
  if (field >= BoxDim && field <= ElementStride) {
    const unsigned count = TensorMap::maxRank - (field == GlobalStride);
    bind.insn.u = uint64_t(bind.insn.op[1].imm);
    if (bind.insn.u >= count)
      return bind.fail(fmt::format("the ordinal of .{} must be below {}, but got {}", name, count,
                                   bind.insn.op[1].imm));
    bind.insn.op[1] = bind.insn.op[2];
  }
  return bind.use(replaceField);
}
Status bindTensormapCopy(BindContext &bind) {
  if (bind.insn.op[2].imm != int64_t(TensorMap::encodedBytes))
    return bind.fail(fmt::format("expects a size of {}, but got {}", TensorMap::encodedBytes,
                                 bind.insn.op[2].imm));
  bind.insn.m[0] = uint8_t(bind.match.scope());
  return bind.use(copyFenced);
}

} // namespace fp4::sim
