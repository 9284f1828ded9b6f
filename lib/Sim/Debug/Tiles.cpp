//===- Tiles.cpp - Tiles of shared and tensor memory in words -------------===//
#include "Sim/Async/TicketQueue.h"
#include "View.h"
#include "fp4/ISA/Swizzle.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/UE8M0.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim::debug {
namespace {

using Convert = std::string (*)(uint64_t);

template <typename Int> std::string whole(uint64_t bits) {
  return fmt::format("{}", static_cast<Int>(bits));
}
std::string hex(uint64_t bits) { return fmt::format("{:#x}", bits); }
std::string shown(double value) { return fmt::format("{:g}", value); }

struct ValueType {
  std::string_view name;
  unsigned bits;
  Convert text;
};

constexpr auto e5m2 = [](uint64_t bits) {
  return shown(numerics::decodeF16(uint16_t(bits << 8))); // the upper half of an f16
};

constexpr ValueType kTypes[] = {
    {"pred", 1, whole<unsigned>},
    {"b8", 8, hex},
    {"b16", 16, hex},
    {"b32", 32, hex},
    {"b64", 64, hex},
    {"u8", 8, whole<uint8_t>},
    {"u16", 16, whole<uint16_t>},
    {"u32", 32, whole<uint32_t>},
    {"u64", 64, whole<uint64_t>},
    {"s8", 8, [](uint64_t bits) { return fmt::format("{}", int(int8_t(bits))); }},
    {"s16", 16, whole<int16_t>},
    {"s32", 32, whole<int32_t>},
    {"s64", 64, whole<int64_t>},
    {"f64", 64, [](uint64_t bits) { return shown(std::bit_cast<double>(bits)); }},
    {"f32", 32, [](uint64_t bits) { return shown(numerics::floatOf(uint32_t(bits))); }},
    {"f16", 16, [](uint64_t bits) { return shown(numerics::decodeF16(uint16_t(bits))); }},
    {"bf16", 16, [](uint64_t bits) { return shown(numerics::decodeBF16(uint16_t(bits))); }},
    {"e4m3", 8, [](uint64_t bits) { return shown(numerics::decodeE4M3(uint8_t(bits))); }},
    {"e5m2", 8, e5m2},
    {"ue8m0", 8, [](uint64_t bits) { return shown(numerics::decodeUE8M0(uint8_t(bits))); }},
    {"e2m1", 4, [](uint64_t bits) { return shown(numerics::decodeE2M1(uint8_t(bits))); }},
};

/// The value that the lowest bits have in a type.
std::string textOf(const ValueType &type, uint64_t bits) {
  return type.text(type.bits < 64 ? bits & ((uint64_t(1) << type.bits) - 1) : bits);
}

const ValueType *typeOf(const std::string &name) {
  const auto found = std::ranges::find(kTypes, name, &ValueType::name);
  return found == std::end(kTypes) ? nullptr : found;
}

/// The elements of a tile.
struct Shape {
  const ValueType *type = nullptr;
  uint32_t rows = 1, columns = 1;
};

Expected<Shape> shapeOf(const Json &request) {
  constexpr uint32_t most = 1024;
  Shape shape{typeOf(request.value("type", "b32")), request.value("rows", 1u),
              request.value("columns", 8u)};
  if (!shape.type)
    return makeError(ErrorKind::Usage,
                     fmt::format("there is no type '{}'", request.value("type", "")));
  if (!shape.rows || !shape.columns || shape.rows > most || shape.columns > most)
    return makeError(ErrorKind::Usage, fmt::format("a tile has 1 to {} rows and columns, but got "
                                                   "{} x {}",
                                                   most, shape.rows, shape.columns));
  return shape;
}

Expected<hw::SwizzleMode> swizzleOf(const Json &request) {
  switch (request.value("swizzle", 0u)) {
  case 0:
    return hw::SwizzleMode::None;
  case 32:
    return hw::SwizzleMode::B32;
  case 64:
    return hw::SwizzleMode::B64;
  case 128:
    return hw::SwizzleMode::B128;
  default:
    return makeError(ErrorKind::Usage, "a swizzle is 32, 64 or 128");
  }
}

/// The shared address of "tile", "tile+64" or "0x480".
Expected<uint64_t> addressOf(const Kernel &kernel, const std::string &place) {
  const auto number = [](std::string_view text) -> std::optional<uint32_t> {
    const bool isHex = text.starts_with("0x");
    uint32_t value = 0;
    const char *begin = text.data() + (isHex ? 2 : 0), *end = text.data() + text.size();
    const auto [rest, failed] = std::from_chars(begin, end, value, isHex ? 16 : 10);
    return failed == std::errc() && rest == end ? std::optional(value) : std::nullopt;
  };
  if (const auto address = number(place))
    return *address;
  const size_t plus = place.find('+');
  const auto offset = plus == place.npos ? 0 : number(std::string_view(place).substr(plus + 1));
  const auto &names = kernel.sharedNames;
  const auto found = std::ranges::find(names, place.substr(0, plus), &SharedName::name);
  if (found == names.end() || !offset)
    return makeError(ErrorKind::Usage,
                     fmt::format("'{}' is no shared variable and no address", place));
  return uint64_t(found->offset) + *offset;
}

/// The offset at which a swizzle stores the byte of an address. Fails where the CTA has no shared
/// memory: addresses are wider than offsets, so that no sum of a request wraps.
Expected<uint32_t> storedAt(const SharedMemory &shared, uint64_t address, hw::SwizzleMode swizzle) {
  const uint64_t offset = hw::swizzle(swizzle, address);
  if (offset >= shared.end() || !shared.contains(uint32_t(offset), 1))
    return makeError(ErrorKind::Usage,
                     fmt::format("a tile must lie in the CTA's shared memory, {:#x} to {:#x}, but "
                                 "a byte of it is at {:#x}",
                                 kSharedBase, shared.end(), offset));
  return uint32_t(offset);
}

/// The element of a row that begins at `row`; "?" where nobody wrote, "~" while a copy writes.
Expected<std::string> sharedElement(const SharedMemory &shared, uint64_t row, uint32_t column,
                                    const ValueType &type, hw::SwizzleMode swizzle) {
  const uint64_t bit = uint64_t(column) * type.bits;
  const uint32_t bytes = std::max(1u, type.bits / 8);
  uint64_t bits = 0;
  for (uint32_t i = 0; i < bytes; ++i) {
    FP4_ASSIGN(const uint32_t at, storedAt(shared, row + bit / 8 + i, swizzle));
    if (const auto bad = shared.firstBad(at, 1))
      return bad->ticket ? "~" : "?";
    bits |= uint64_t(std::to_integer<uint8_t>(*shared.at(at))) << 8 * i;
  }
  return textOf(type, bits >> bit % 8);
}

} // namespace

std::string valueText(const std::string &type, uint64_t bits) {
  const ValueType *found = typeOf(type);
  return found ? textOf(*found, bits) : "";
}

unsigned valueBits(const std::string &type) {
  const ValueType *found = typeOf(type);
  return found ? found->bits : 0;
}

Expected<Json> tileOf(Cluster &cluster, uint32_t rank, const Json &request) {
  FP4_ASSIGN(const Shape shape, shapeOf(request));
  FP4_ASSIGN(const hw::SwizzleMode swizzle, swizzleOf(request));
  FP4_ASSIGN(const uint64_t address,
             addressOf(*cluster.launch->kernel, request.value("place", "")));
  const SharedMemory &shared = cluster.ctas[rank]->shared;
  const uint32_t rowBytes = (shape.columns * shape.type->bits + 7) / 8;
  const uint32_t pitch = request.value("pitch", rowBytes);
  Json rows = Json::array();
  for (uint32_t row = 0; row < shape.rows; ++row) {
    Json values = Json::array();
    for (uint32_t column = 0; column < shape.columns; ++column) {
      const uint64_t begin = address + uint64_t(row) * pitch;
      FP4_ASSIGN(std::string value, sharedElement(shared, begin, column, *shape.type, swizzle));
      values.push_back(std::move(value));
    }
    rows.push_back(std::move(values));
  }
  return Json{{"address", fmt::format("{:#x}", address)}, {"rows", std::move(rows)}};
}

Expected<Json> tensorTileOf(Cluster &cluster, uint32_t rank, const Json &request) {
  FP4_ASSIGN(const Shape shape, shapeOf(request));
  TensorMemory &tmem = static_cast<TicketQueue &>(*cluster.async).state(rank).tmem;
  const uint32_t first = request.value("column", 0u), lane = request.value("lane", 0u);
  const uint32_t words = (shape.columns * shape.type->bits + 31) / 32;
  FP4_TRY(tmem.checkAllocated({lane, shape.rows, first, words}));
  Json rows = Json::array();
  for (uint32_t row = 0; row < shape.rows; ++row) {
    Json values = Json::array();
    for (uint32_t column = 0; column < shape.columns; ++column) {
      const uint32_t bit = column * shape.type->bits, word = first + bit / 32;
      const auto bad =
          tmem.firstBad({lane + row, 1, word, std::max(1u, shape.type->bits / 32)}, ~0ull);
      uint64_t bits = *tmem.cell(lane + row, word) >> bit % 32;
      if (shape.type->bits == 64)
        bits |= uint64_t(*tmem.cell(lane + row, word + 1)) << 32;
      values.push_back(!bad ? textOf(*shape.type, bits) : bad->ticket ? "~" : "?");
    }
    rows.push_back(std::move(values));
  }
  return Json{{"rows", std::move(rows)}};
}

} // namespace fp4::sim::debug
