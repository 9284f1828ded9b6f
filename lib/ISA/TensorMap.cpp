// Rules of tensor maps, and the sizes that follow; the bits are in TensorMapEncoding.cpp.
#include "fp4/ISA/TensorMap.h"
#include <fmt/format.h>

namespace fp4::hw {
namespace {

struct TypeFacts {
  std::string_view name;
  unsigned bits;
  bool floating;
};
constexpr std::array<TypeFacts, 16> types = {{
    {"uint8", 8, false},
    {"uint16", 16, false},
    {"uint32", 32, false},
    {"int32", 32, false},
    {"uint64", 64, false},
    {"int64", 64, false},
    {"float16", 16, true},
    {"float32", 32, true},
    {"float64", 64, true},
    {"bfloat16", 16, true},
    {"float32_ftz", 32, true},
    {"tfloat32", 32, true},
    {"tfloat32_ftz", 32, true},
    {"16u4_align8b", 4, false},
    {"16u4_align16b", 4, false},
    {"16u6_align16b", 6, false},
}};

bool isAlign16(TensorMapType t) {
  return t == TensorMapType::U4Align16 || t == TensorMapType::U6Align16;
}

auto mapFail(std::string message, std::string note = "") {
  return makeError(ErrorKind::Device, "tensor map: " + std::move(message), std::move(note));
}

// Alignment that global address and strides share.
uint64_t globalAlignment(const TensorMap &map) {
  return map.interleave == TensorMapInterleave::B32 || isAlign16(map.elementType) ? 32 : 16;
}

Status validateHeader(const TensorMap &map) {
  const auto type = static_cast<uint32_t>(map.elementType);
  if (type >= types.size())
    return mapFail(fmt::format("element type must be 0..15, but got {}", type));
  if (static_cast<uint32_t>(map.interleave) > 2)
    return mapFail(
        fmt::format("interleave must be 0..2, but got {}", static_cast<uint32_t>(map.interleave)));
  if (static_cast<uint32_t>(map.promotion) > 3)
    return mapFail(
        fmt::format("L2 promotion must be 0..3, but got {}", static_cast<uint32_t>(map.promotion)));
  if (static_cast<uint32_t>(map.oobFill) > 1)
    return mapFail(fmt::format("fill of elements outside must be 0 or 1, but got {}",
                               static_cast<uint32_t>(map.oobFill)));
  const uint32_t minRank = map.interleave == TensorMapInterleave::None ? 1 : 3;
  if (map.rank < minRank || map.rank > TensorMap::maxRank)
    return mapFail(fmt::format("rank must be {}..5, but got {}", minRank, map.rank));
  const uint64_t align = globalAlignment(map);
  if (map.address % align)
    return mapFail(
        fmt::format("address must be a multiple of {}, but got 0x{:x}", align, map.address));
  if (map.oobFill == TensorMapOobFill::NanRequestZeroFma && !types[type].floating)
    return mapFail(
        fmt::format("NaN fill expects a floating-point type, but got {}", types[type].name),
        "use zero fill");
  return {};
}

Status validateDims(const TensorMap &map) {
  for (uint32_t i = 0; i < map.rank; ++i)
    if (map.dims[i] == 0 || map.dims[i] > (1ull << 32))
      return mapFail(fmt::format("dimension {} must be 1..2^32, but got {}", i, map.dims[i]));
  const uint64_t multiple = map.elementType == TensorMapType::U4Align8 ? 2
                            : isAlign16(map.elementType)               ? 128
                                                                       : 1;
  if (map.dims[0] % multiple)
    return mapFail(fmt::format("dimension 0 must be a multiple of {} for {}, but got {}", multiple,
                               stringify(map.elementType), map.dims[0]));
  const uint64_t align = globalAlignment(map);
  for (uint32_t i = 0; i + 1 < map.rank; ++i)
    if (map.strides[i] % align || map.strides[i] >= (1ull << 40))
      return mapFail(
          fmt::format("stride of dimension {} must be a multiple of {} bytes below 2^40, "
                      "but got {}",
                      i + 1, align, map.strides[i]),
          "pad the row pitch of the tensor");
  return {};
}

/// Checks corners, which have 16 bits in all: the fewer dimensions, the wider. As in the driver,
/// sizes wrap at 2^31, and the corners of interleaved tensors are held against the dimensions from
/// 0 on.
Status validatePixels(const TensorMap &map) {
  constexpr unsigned maxPixels = 1024;
  constexpr int limits[] = {1 << 15, 1 << 7, 1 << 4};
  if (map.rank < 3)
    return mapFail(fmt::format("im2col mode expects a rank of 3..5, but got {}", map.rank));
  if (map.box[1] == 0 || map.box[1] > maxPixels)
    return mapFail(
        fmt::format("a column must have 1..{} pixels, but got {}", maxPixels, map.box[1]));
  const int limit = limits[map.rank - 3];
  for (uint32_t i = 0; i + 2 < map.rank; ++i) {
    const int lower = map.pixels->lower[i], upper = map.pixels->upper[i];
    for (int corner : {lower, upper})
      if (corner < -limit || corner >= limit)
        return mapFail(
            fmt::format("corners of the pixel box must be {}..{} with rank {}, but got {}", -limit,
                        limit - 1, map.rank, corner));
    const uint32_t d = map.interleave == TensorMapInterleave::None ? i + 1 : i;
    if (lower >= static_cast<int32_t>(static_cast<uint32_t>(map.dims[d]) + uint32_t(upper)))
      return mapFail(fmt::format("the pixel box is empty in dimension {}: from {} to {} of {}", d,
                                 lower, upper, map.dims[d]));
  }
  return {};
}

Status validateBoxSizes(const TensorMap &map) {
  for (uint32_t i = 0; i < map.rank; ++i) {
    if ((!map.pixels || i == 0) && (map.box[i] == 0 || map.box[i] > 256))
      return mapFail(
          fmt::format("box dimension {} must be 1..256 elements, but got {}", i, map.box[i]));
    if (map.elementStrides[i] == 0 || map.elementStrides[i] > 8)
      return mapFail(
          fmt::format("element stride {} must be 1..8, but got {}", i, map.elementStrides[i]));
  }
  if (isAlign16(map.elementType) && map.box[0] != 128)
    return mapFail(fmt::format("box dimension 0 must be 128 for {}, but got {}",
                               stringify(map.elementType), map.box[0]));
  return map.pixels ? validatePixels(map) : Status();
}

Status validateBox(const TensorMap &map) {
  constexpr uint64_t mostBytes = 228 << 10; // shared memory of an H200's SM
  FP4_TRY(validateBoxSizes(map));
  if (isAlign16(map.elementType) && map.swizzle != SwizzleMode::None &&
      map.swizzle != SwizzleMode::B128 && map.swizzle != SwizzleMode::B128Atom32)
    return mapFail(fmt::format("{} expects no swizzle or a 128-byte one, but got {}",
                               stringify(map.elementType), stringify(map.swizzle)));
  const uint64_t row = map.boxRowBytes();
  if (row % 16)
    return mapFail(
        fmt::format("box dimension 0 must span a multiple of 16 bytes, but got {} {} = {} "
                    "bytes",
                    map.box[0], stringify(map.elementType), row));
  if (map.interleave == TensorMapInterleave::None && map.swizzle != SwizzleMode::None &&
      row > swizzleWidthBytes(map.swizzle))
    return mapFail(fmt::format("box dimension 0 must span at most {} bytes with {}, but got {}",
                               swizzleWidthBytes(map.swizzle), stringify(map.swizzle), row),
                   "split the box, or use a wider swizzle");
  if (map.driverBoxBytes() > mostBytes)
    return mapFail(fmt::format("the box must have at most {} bytes, but got {}", mostBytes,
                               map.driverBoxBytes()));
  return {};
}

} // namespace

unsigned tensorMapTypeBits(TensorMapType type) {
  const auto i = static_cast<uint32_t>(type);
  return i < types.size() ? types[i].bits : 0;
}

std::string_view stringify(TensorMapType type) {
  const auto i = static_cast<uint32_t>(type);
  return i < types.size() ? types[i].name : "unknown";
}

Status TensorMap::validate() const {
  FP4_TRY(validateHeader(*this));
  FP4_TRY(validateDims(*this));
  return validateBox(*this);
}

Status TensorMap::validateFor(const TargetModel &target) const {
  const bool newType = static_cast<uint32_t>(elementType) >= 13 && tensorMapTypeBits(elementType);
  if (!target.features.hasPackedTensorMaps && newType)
    return mapFail(
        fmt::format("target '{}' has no element type {}", target.name, stringify(elementType)));
  if (!target.features.hasPackedTensorMaps && swizzle == SwizzleMode::B128Atom32)
    return mapFail(fmt::format("target '{}' has no {}", target.name, stringify(swizzle)));
  return validate();
}

uint64_t TensorMap::boxRowBytes() const {
  if (isAlign16(elementType))
    return box[0]; // 16 elements take 16 bytes, padding included
  return (uint64_t(box[0]) * tensorMapTypeBits(elementType) + 7) / 8;
}

uint64_t TensorMap::boxElements() const {
  if (pixels)
    return uint64_t(box[0]) * box[1];
  uint64_t n = box[0];
  for (uint32_t i = 1; i < rank; ++i)
    n *= (box[i] + elementStrides[i] - 1) / elementStrides[i];
  return n;
}

uint64_t TensorMap::driverBoxBytes() const {
  uint64_t n = pixels ? boxElements() : 1;
  for (uint32_t i = 0; !pixels && i < rank; ++i)
    n *= box[i] / elementStrides[i];
  return n * tensorMapTypeBits(elementType) / 8;
}

uint64_t TensorMap::boxSharedBytes() const {
  return isAlign16(elementType) ? boxElements() : transactionBytes();
}

uint64_t TensorMap::transactionBytes() const {
  return boxElements() * tensorMapTypeBits(elementType) / 8;
}

} // namespace fp4::hw
