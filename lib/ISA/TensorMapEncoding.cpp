//===- TensorMapEncoding.cpp - The 128 bytes of a tensor map --------------===//
//
// 32 words of 32 bits. Copies read the first 16:
//
//   0-1    global address
//   2      [0:4) mode: 0 tiles, 1 im2col   [4:7) rank - 1    [7:11) type code   [11:13) interleave
//          [13:15) swizzle   15 NaN fill   16 the type rounds to TF32   [17:19) L2 promotion
//   3-6    strides of dimensions 1 to 4 / 16, the lower 32 bits
//   7      their upper 4 bits, dimension 1 lowest
//   8-12   sizes of dimensions 0 to 4, - 1
//   13     [0:15) element strides - 1, 3 bits each   [24:32) box 0 - 1, in im2col mode channels - 1
//   14     tiles: box 1 to 4, - 1, a byte each; im2col: lower corners from bit 0, upper ones from
//          bit 16, of 16, 8 or 5 bits for 1, 2 or 3 of them
//   15     im2col: [0:10) pixels - 1
//   16     bytes of the box, as the driver counts them
//   18     bytes after which the swizzle repeats
//
// Bits that 40,000 maps of an H200's driver never set are zero here and are not looked at: word 2
// from bit 19 on, word 7 from bit 16 on, word 13 [15:24), word 15 from bit 10 on, words 17 and 19
// to 31. Facts that this driver does not show are [uncertain]: the codes of the types of 4 and 6
// bits (published host code for sm_100 writes 11 and 12), mode 2 (the same code writes it for
// tiles; read here, and never written), and the swizzle atom (word 2, [19:21)). Drivers for sm_100
// also set bit 21 of word 2, which programs clear after NVIDIA's advice for old drivers.
//
//===----------------------------------------------------------------------===//
#include "fp4/ISA/TensorMap.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fp4::hw {
namespace {

using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

/// Bits [low, low + width) of a word.
struct BitField {
  unsigned word, low, width;
};
constexpr BitField modeBits{2, 0, 4}, rankBits{2, 4, 3}, typeBits{2, 7, 4},
    interleaveBits{2, 11, 2}, swizzleBits{2, 13, 2}, fillBits{2, 15, 1}, roundBits{2, 16, 1},
    promotionBits{2, 17, 2}, atomBits{2, 19, 2}, pixelBits{15, 0, 10}, boxBytesBits{16, 0, 32},
    repeatBits{18, 0, 32};
constexpr BitField addressBits(unsigned half) { return {half, 0, 32}; }
constexpr BitField strideBits(unsigned i) { return {3 + i, 0, 32}; }
constexpr BitField strideHighBits(unsigned i) { return {7, 4 * i, 4}; }
constexpr BitField dimBits(unsigned i) { return {8 + i, 0, 32}; }
constexpr BitField elementStrideBits(unsigned i) { return {13, 3 * i, 3}; }
constexpr BitField boxBits(unsigned i) {
  return i ? BitField{14, 8 * (i - 1), 8} : BitField{13, 24, 8};
}
constexpr BitField cornerBits(unsigned corners, unsigned i, bool upper) {
  const unsigned width = corners == 1 ? 16 : corners == 2 ? 8 : 5;
  return {14, (upper ? 16 : 0) + width * i, width};
}

enum Mode : unsigned { Tiles = 0, Im2col = 1, TilesOfSm100 = 2 };

/// Codes of element types, by CUtensorMapDataType. The TF32 types have the code of their type in
/// memory and a bit for the rounding.
constexpr uint8_t typeCodes[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7, 8, 11, 12, 13};
/// Types by the numbers of tensormap.replace: by their code, and behind them those that round.
constexpr TensorMapType typesOfReplace[] = {
    TensorMapType::UInt8,       TensorMapType::UInt16,   TensorMapType::UInt32,
    TensorMapType::Int32,       TensorMapType::UInt64,   TensorMapType::Int64,
    TensorMapType::Float16,     TensorMapType::Float32,  TensorMapType::Float32Ftz,
    TensorMapType::Float64,     TensorMapType::BFloat16, TensorMapType::TFloat32,
    TensorMapType::TFloat32Ftz, TensorMapType::U4Align8, TensorMapType::U4Align16,
    TensorMapType::U6Align16};

bool roundsToTf32(TensorMapType type) {
  return type == TensorMapType::TFloat32 || type == TensorMapType::TFloat32Ftz;
}

// Words are little endian, as every host of CUDA is.
uint32_t word(ConstBytes map, unsigned i) {
  uint32_t value;
  std::memcpy(&value, map.data() + 4 * i, 4);
  return value;
}

uint32_t get(ConstBytes map, BitField f) {
  const uint32_t bits = word(map, f.word) >> f.low;
  return f.width == 32 ? bits : bits & ((1u << f.width) - 1);
}

void set(Bytes map, BitField f, uint64_t value) {
  const uint32_t mask = (f.width == 32 ? ~0u : (1u << f.width) - 1) << f.low;
  const uint32_t next =
      (word(map, f.word) & ~mask) | (static_cast<uint32_t>(value) << f.low & mask);
  std::memcpy(map.data() + 4 * f.word, &next, 4);
}

void setAddress(Bytes map, uint64_t address) {
  set(map, addressBits(0), address);
  set(map, addressBits(1), address >> 32);
}

void setStride(Bytes map, unsigned i, uint64_t stride) {
  set(map, strideBits(i), stride >> 4);
  set(map, strideHighBits(i), stride >> 36);
}

void packSizes(const TensorMap &map, Bytes bytes) {
  for (unsigned i = 0; i < map.rank; ++i) {
    set(bytes, dimBits(i), map.dims[i] - 1);
    set(bytes, elementStrideBits(i), map.elementStrides[i] - 1);
    if (i + 1 < map.rank)
      setStride(bytes, i, map.strides[i]);
    if (i == 0 || !map.pixels)
      set(bytes, boxBits(i), map.box[i] - 1);
  }
  if (!map.pixels)
    return;
  set(bytes, pixelBits, map.box[1] - 1);
  const unsigned corners = map.rank - 2;
  for (unsigned i = 0; i < corners; ++i) {
    set(bytes, cornerBits(corners, i, false), static_cast<uint32_t>(map.pixels->lower[i]));
    set(bytes, cornerBits(corners, i, true), static_cast<uint32_t>(map.pixels->upper[i]));
  }
}

int32_t signedValue(uint32_t bits, unsigned width) {
  return static_cast<int32_t>(bits << (32 - width)) >> (32 - width);
}

void unpackPixels(ConstBytes bytes, TensorMap &map) {
  map.pixels.emplace();
  map.box = {map.box[0], get(bytes, pixelBits) + 1, 1, 1, 1};
  const unsigned corners = map.rank - 2;
  for (unsigned i = 0; i < corners; ++i) {
    const BitField lower = cornerBits(corners, i, false), upper = cornerBits(corners, i, true);
    map.pixels->lower[i] = signedValue(get(bytes, lower), lower.width);
    map.pixels->upper[i] = signedValue(get(bytes, upper), upper.width);
  }
}

auto notAMap(std::string note) {
  return makeError(ErrorKind::Simulation, "tensor map operand does not hold a tensor map",
                   std::move(note));
}

Expected<TensorMapType> typeOf(ConstBytes bytes) {
  const uint32_t code = get(bytes, typeBits);
  const auto *found = std::find(std::begin(typeCodes), std::end(typeCodes), code);
  if (found == std::end(typeCodes))
    return notAMap(fmt::format("no element type has code {}", code));
  const auto type = static_cast<TensorMapType>(found - std::begin(typeCodes));
  if (!get(bytes, roundBits))
    return type;
  // The bit says nothing about other types: tensormap.replace leaves it when it changes the type.
  return type == TensorMapType::Float32      ? TensorMapType::TFloat32
         : type == TensorMapType::Float32Ftz ? TensorMapType::TFloat32Ftz
                                             : type;
}

Expected<SwizzleMode> swizzleOf(ConstBytes bytes) {
  const uint32_t mode = get(bytes, swizzleBits), atom = get(bytes, atomBits);
  if (atom == 0)
    return *swizzleFromTensorMapCode(mode);
  if (atom == 1 && mode == tensorMapSwizzleCode(SwizzleMode::B128))
    return SwizzleMode::B128Atom32;
  return makeError(ErrorKind::Simulation,
                   fmt::format("the simulator has no swizzle mode {} with atom {}", mode, atom));
}

} // namespace

TensorMap::Encoded TensorMap::pack() const {
  Encoded bytes{};
  set(bytes, modeBits, pixels ? Im2col : Tiles);
  set(bytes, rankBits, rank - 1);
  set(bytes, typeBits, typeCodes[static_cast<uint32_t>(elementType)]);
  set(bytes, roundBits, roundsToTf32(elementType));
  set(bytes, interleaveBits, static_cast<uint32_t>(interleave));
  const bool atom32 = swizzle == SwizzleMode::B128Atom32;
  set(bytes, swizzleBits, tensorMapSwizzleCode(atom32 ? SwizzleMode::B128 : swizzle));
  set(bytes, atomBits, atom32);
  set(bytes, fillBits, static_cast<uint32_t>(oobFill));
  set(bytes, promotionBits, static_cast<uint32_t>(promotion));
  setAddress(bytes, address);
  packSizes(*this, bytes);
  set(bytes, boxBytesBits, driverBoxBytes());
  set(bytes, repeatBits, swizzleRepeatBytes(swizzle));
  return bytes;
}

Expected<TensorMap::Encoded> TensorMap::encode() const {
  FP4_TRY(validate());
  return pack();
}

Expected<TensorMap> TensorMap::unpack(std::span<const std::byte, usedBytes> bytes) {
  if (std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte(0); }))
    return notAMap("all its bytes are zero: it was not encoded, or not copied to the device");
  const uint32_t mode = get(bytes, modeBits);
  TensorMap map;
  map.rank = get(bytes, rankBits) + 1;
  if (mode > TilesOfSm100 || map.rank > maxRank || (mode == Im2col && map.rank < 3))
    return notAMap(fmt::format("mode {} with rank {}", mode, map.rank));
  FP4_ASSIGN(auto type, typeOf(bytes));
  FP4_ASSIGN(auto swizzle, swizzleOf(bytes));
  map.elementType = type;
  map.swizzle = swizzle;
  map.interleave = static_cast<TensorMapInterleave>(get(bytes, interleaveBits));
  map.oobFill = static_cast<TensorMapOobFill>(get(bytes, fillBits));
  map.promotion = static_cast<TensorMapL2Promotion>(get(bytes, promotionBits));
  // Addresses have 57 bits: the CuTe DSL writes no more of one that lies before the tensor, from
  // which coordinates lead back.
  constexpr unsigned unused = 64 - 57;
  const uint64_t address = get(bytes, addressBits(0)) | uint64_t(get(bytes, addressBits(1))) << 32;
  map.address = uint64_t(int64_t(address << unused) >> unused);
  for (unsigned i = 0; i < map.rank; ++i) {
    map.dims[i] = uint64_t(get(bytes, dimBits(i))) + 1;
    map.elementStrides[i] = get(bytes, elementStrideBits(i)) + 1;
    map.box[i] = get(bytes, boxBits(i)) + 1;
    if (i + 1 < map.rank)
      map.strides[i] =
          uint64_t(get(bytes, strideBits(i))) << 4 | uint64_t(get(bytes, strideHighBits(i))) << 36;
  }
  if (mode == Im2col)
    unpackPixels(bytes, map);
  return map;
}

Expected<TensorMap> TensorMap::decode(std::span<const std::byte, usedBytes> bytes) {
  auto map = unpack(bytes);
  FP4_TRY(map);
  FP4_TRY(map->validate());
  return map;
}

/// Sets the type by its number in tensormap.replace; types that do not round leave the rounding bit
/// as it is.
static bool setType(Bytes map, uint64_t number) {
  if (number >= std::size(typesOfReplace))
    return false;
  const TensorMapType type = typesOfReplace[number];
  set(map, typeBits, typeCodes[static_cast<uint32_t>(type)]);
  if (roundsToTf32(type))
    set(map, roundBits, 1);
  return true;
}

bool TensorMap::replace(std::span<std::byte, usedBytes> map, TensorMapField field, unsigned i,
                        uint64_t value) {
  const auto put = [&](BitField bits, uint64_t least, uint64_t most) {
    if (value < least || value > most)
      return false;
    set(map, bits, value - least);
    return true;
  };
  switch (field) {
  case TensorMapField::GlobalAddress:
    setAddress(map, value);
    return true;
  case TensorMapField::Rank:
    return put(rankBits, 0, maxRank - 1);
  case TensorMapField::BoxDim: // behind the first an im2col map has its corners there
    return (i == 0 || get(map, modeBits) != Im2col) && put(boxBits(i), 1, 256);
  case TensorMapField::GlobalDim:
    set(map, dimBits(i), value - 1);
    return true;
  case TensorMapField::GlobalStride:
    setStride(map, i, value);
    return value % 16 == 0 && value < 1ull << 40;
  case TensorMapField::ElementStride:
    return put(elementStrideBits(i), 1, 8);
  case TensorMapField::ElementType:
    return setType(map, value);
  case TensorMapField::InterleaveLayout:
    return put(interleaveBits, 0, 2);
  case TensorMapField::SwizzleMode:
    return put(swizzleBits, 0, 3);
  case TensorMapField::SwizzleAtomicity:
    return put(atomBits, 0, 3);
  case TensorMapField::FillMode:
    return put(fillBits, 0, 1);
  }
  return false;
}

} // namespace fp4::hw
