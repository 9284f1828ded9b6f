// Validation and the simulator's encoding of tensor maps.
#include "fp4/ISA/TensorMap.h"
#include <cstring>
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

auto fail(std::string message, std::string note = "") {
  return makeError(ErrorKind::Device, "tensor map: " + std::move(message), std::move(note));
}

// Alignment that global address and strides share.
uint64_t globalAlignment(const TensorMap &map) {
  return map.interleave == TensorMapInterleave::B32 || isAlign16(map.elementType) ? 32 : 16;
}

Status validateHeader(const TensorMap &map) {
  const auto type = static_cast<uint32_t>(map.elementType);
  if (type >= types.size())
    return fail(fmt::format("element type must be 0..15, but got {}", type));
  if (static_cast<uint32_t>(map.interleave) > 2)
    return fail(
        fmt::format("interleave must be 0..2, but got {}", static_cast<uint32_t>(map.interleave)));
  const uint32_t minRank = map.interleave == TensorMapInterleave::None ? 1 : 3;
  if (map.rank < minRank || map.rank > TensorMap::maxRank)
    return fail(fmt::format("rank must be {}..5, but got {}", minRank, map.rank));
  const uint64_t align = globalAlignment(map);
  if (map.address % align)
    return fail(
        fmt::format("address must be a multiple of {}, but got 0x{:x}", align, map.address));
  if (map.oobFill == TensorMapOobFill::NanRequestZeroFma && !types[type].floating)
    return fail(fmt::format("NaN fill expects a floating-point type, but got {}", types[type].name),
                "use zero fill");
  return {};
}

Status validateDims(const TensorMap &map) {
  for (uint32_t i = 0; i < map.rank; ++i)
    if (map.dims[i] == 0 || map.dims[i] > (1ull << 32))
      return fail(fmt::format("dimension {} must be 1..2^32, but got {}", i, map.dims[i]));
  const uint64_t multiple = map.elementType == TensorMapType::U4Align8 ? 2
                            : isAlign16(map.elementType)               ? 128
                                                                       : 1;
  if (map.dims[0] % multiple)
    return fail(fmt::format("dimension 0 must be a multiple of {} for {}, but got {}", multiple,
                            stringify(map.elementType), map.dims[0]));
  const uint64_t align = globalAlignment(map);
  for (uint32_t i = 0; i + 1 < map.rank; ++i)
    if (map.strides[i] % align || map.strides[i] >= (1ull << 40))
      return fail(fmt::format("stride of dimension {} must be a multiple of {} bytes below 2^40, "
                              "but got {}",
                              i + 1, align, map.strides[i]),
                  "pad the row pitch of the tensor");
  return {};
}

/// Corners have 16 bits in all: the fewer dimensions, the wider.
Status validatePixels(const TensorMap &map) {
  constexpr unsigned maxPixels = 1024;
  constexpr int limits[] = {1 << 15, 1 << 7, 1 << 4};
  if (map.rank < 3)
    return fail(fmt::format("im2col mode expects a rank of 3..5, but got {}", map.rank));
  if (map.box[1] == 0 || map.box[1] > maxPixels)
    return fail(fmt::format("a column must have 1..{} pixels, but got {}", maxPixels, map.box[1]));
  const int limit = limits[map.rank - 3];
  for (uint32_t i = 0; i + 2 < map.rank; ++i) {
    const int lower = map.pixels->lower[i], upper = map.pixels->upper[i];
    for (int corner : {lower, upper})
      if (corner < -limit || corner >= limit)
        return fail(fmt::format("corners of the pixel box must be {}..{} with rank {}, but got {}",
                                -limit, limit - 1, map.rank, corner));
    if (lower >= int64_t(map.dims[i + 1]) + upper)
      return fail(fmt::format("the pixel box is empty in dimension {}: from {} to {} of {}", i + 1,
                              lower, upper, map.dims[i + 1]));
  }
  return {};
}

Status validateBox(const TensorMap &map) {
  if (map.pixels)
    FP4_TRY(validatePixels(map));
  for (uint32_t i = 0; i < map.rank; ++i) {
    if ((!map.pixels || i == 0) && (map.box[i] == 0 || map.box[i] > 256))
      return fail(
          fmt::format("box dimension {} must be 1..256 elements, but got {}", i, map.box[i]));
    if (map.elementStrides[i] == 0 || map.elementStrides[i] > 8)
      return fail(
          fmt::format("element stride {} must be 1..8, but got {}", i, map.elementStrides[i]));
  }
  if (isAlign16(map.elementType) && map.box[0] != 128)
    return fail(fmt::format("box dimension 0 must be 128 for {}, but got {}",
                            stringify(map.elementType), map.box[0]));
  if (isAlign16(map.elementType) && map.swizzle != SwizzleMode::None &&
      map.swizzle != SwizzleMode::B128 && map.swizzle != SwizzleMode::B128Atom32)
    return fail(fmt::format("{} expects no swizzle or a 128-byte one, but got {}",
                            stringify(map.elementType), stringify(map.swizzle)));
  const uint64_t row = map.boxRowBytes();
  if (map.interleave == TensorMapInterleave::None && row % 16)
    return fail(fmt::format("box dimension 0 must span a multiple of 16 bytes, but got {} {} = {} "
                            "bytes",
                            map.box[0], stringify(map.elementType), row));
  if (map.swizzle != SwizzleMode::None && row > swizzleWidthBytes(map.swizzle))
    return fail(fmt::format("box dimension 0 must span at most {} bytes with {}, but got {}",
                            swizzleWidthBytes(map.swizzle), stringify(map.swizzle), row),
                "split the box, or use a wider swizzle");
  if (map.interleave == TensorMapInterleave::B32 && map.swizzle != SwizzleMode::B32)
    return fail(
        fmt::format("interleave 32B expects swizzle_32B, but got {}", stringify(map.swizzle)));
  return {};
}

constexpr std::array<char, 8> magic = {'f', 'p', '4', 't', 'm', 'a', 'p', '3'};

// The simulator's 128 bytes, little endian in declaration order, the rest zero. Bits that a program
// edits itself are caught by the sum. The second word means nothing: programs clear a bit of it to
// work around old drivers.
struct Packed {
  std::array<char, 8> magic;
  uint64_t unused;
  uint64_t address;
  uint64_t dims[5];    // size - 1, so that 2^32 fits its documented range
  uint64_t strides[4]; // bytes
  uint16_t box[5];     // im2col: channels, pixels, lower corners
  uint8_t elementStrides[5];
  uint8_t elementType, rank, swizzle, interleave, oobFill;
  int16_t upper[3];
  uint16_t im2col;
  uint32_t sum; ///< of everything but `unused`
};
static_assert(sizeof(Packed) <= TensorMap::encodedBytes && sizeof(Packed) % 8 == 0);

uint32_t sumOf(Packed p) {
  p.unused = p.sum = 0;
  uint64_t words[sizeof(Packed) / 8], sum = 0;
  std::memcpy(words, &p, sizeof(p));
  for (uint64_t word : words)
    sum = (sum ^ word) * 0x9E3779B97F4A7C15ull ^ (sum >> 29);
  return static_cast<uint32_t>(sum >> 32);
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

uint64_t TensorMap::boxRowBytes() const {
  if (isAlign16(elementType))
    return box[0]; // 16 elements take 16 bytes, padding included
  const uint64_t elements = interleave == TensorMapInterleave::None
                                ? box[0]
                                : (box[0] + elementStrides[0] - 1) / elementStrides[0];
  return (elements * tensorMapTypeBits(elementType) + 7) / 8;
}

uint64_t TensorMap::boxElements() const {
  if (pixels)
    return uint64_t(box[0]) * box[1];
  uint64_t n = box[0];
  for (uint32_t i = 1; i < rank; ++i)
    n *= (box[i] + elementStrides[i] - 1) / elementStrides[i];
  return n;
}

uint64_t TensorMap::boxSharedBytes() const {
  return isAlign16(elementType) ? boxElements() : transactionBytes();
}

uint64_t TensorMap::transactionBytes() const {
  return boxElements() * tensorMapTypeBits(elementType) / 8;
}

TensorMap::Encoded TensorMap::packSimulator() const {
  Packed p{};
  p.magic = magic;
  p.address = address;
  for (unsigned i = 0; i < maxRank; ++i) {
    p.dims[i] = dims[i] - 1;
    p.box[i] = static_cast<uint16_t>(box[i]);
    p.elementStrides[i] = static_cast<uint8_t>(elementStrides[i]);
    if (i)
      p.strides[i - 1] = strides[i - 1];
  }
  p.im2col = pixels.has_value();
  for (unsigned i = 0; pixels && i < 3; ++i) {
    p.box[2 + i] = static_cast<uint16_t>(pixels->lower[i]);
    p.upper[i] = static_cast<int16_t>(pixels->upper[i]);
  }
  p.elementType = static_cast<uint8_t>(elementType);
  p.rank = static_cast<uint8_t>(rank);
  p.swizzle = static_cast<uint8_t>(tensorMapSwizzleCode(swizzle));
  p.interleave = static_cast<uint8_t>(interleave);
  p.oobFill = static_cast<uint8_t>(oobFill);
  p.sum = sumOf(p);
  Encoded out{};
  std::memcpy(out.data(), &p, sizeof(p));
  return out;
}

Expected<TensorMap::Encoded> TensorMap::encodeSimulator() const {
  FP4_TRY(validate());
  if (interleave != TensorMapInterleave::None)
    return fail("the simulator does not model interleaved tensors",
                "encode with CU_TENSOR_MAP_INTERLEAVE_NONE");
  return packSimulator();
}

Expected<TensorMap> TensorMap::unpackSimulator(std::span<const std::byte, encodedBytes> bytes) {
  Packed p;
  std::memcpy(&p, bytes.data(), sizeof(p));
  const auto swizzle = swizzleFromTensorMapCode(p.swizzle);
  if (p.magic != magic || p.rank > maxRank || !swizzle)
    return makeError(ErrorKind::Simulation,
                     "tensor map operand does not hold a tensor map of this simulator",
                     "a map made by cuTensorMapEncodeTiled is opaque; let the runtime make it");
  if (p.sum != sumOf(p))
    return makeError(ErrorKind::Simulation, "the bits of the tensor map were edited",
                     "its layout is the driver's own: encode it again, or use tensormap.replace");
  TensorMap map;
  map.elementType = static_cast<TensorMapType>(p.elementType);
  map.rank = p.rank;
  map.address = p.address;
  for (unsigned i = 0; i < maxRank; ++i) {
    map.dims[i] = p.dims[i] + 1;
    map.box[i] = p.box[i];
    map.elementStrides[i] = p.elementStrides[i];
    if (i)
      map.strides[i - 1] = p.strides[i - 1];
  }
  if (p.im2col) {
    map.pixels.emplace();
    for (unsigned i = 0; i < 3; ++i) {
      map.pixels->lower[i] = static_cast<int16_t>(p.box[2 + i]);
      map.pixels->upper[i] = p.upper[i];
      map.box[2 + i] = 1;
    }
  }
  map.swizzle = *swizzle;
  map.interleave = static_cast<TensorMapInterleave>(p.interleave);
  map.oobFill = static_cast<TensorMapOobFill>(p.oobFill);
  return map;
}

Expected<TensorMap> TensorMap::decodeSimulator(std::span<const std::byte, encodedBytes> bytes) {
  auto map = unpackSimulator(bytes);
  FP4_TRY(map);
  FP4_TRY(map->validate());
  return map;
}

} // namespace fp4::hw
