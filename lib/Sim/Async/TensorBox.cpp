//===- TensorBox.cpp - The box of a tensor map, in memory -----------------===//
#include "TensorBox.h"
#include "Sim/Async/Fail.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

constexpr uint32_t chunk = 16;            ///< bytes that every swizzle keeps together
constexpr uint32_t sharedAlignment = 128; ///< alignment of a box in shared memory, in bytes

/// Returns true when 16 packed elements take 16 bytes of shared memory, padding behind them.
bool isPadded(const hw::TensorMap &map) {
  return map.elementType == hw::TensorMapType::U4Align16 ||
         map.elementType == hw::TensorMapType::U6Align16;
}

/// PTX ISA, "Sub-byte types": loads only, in runs of 128 elements.
Status checkPadded(const hw::TensorMap &map, const Coordinates &at, bool store) {
  constexpr int32_t run = 128;
  if (store)
    return fail(
        fmt::format("a tensor map of type {} is for loads only", stringify(map.elementType)));
  if (at[0] % run)
    return fail(
        fmt::format("expects a first coordinate that is a multiple of {} with {}, but got {}", run,
                    stringify(map.elementType), at[0]));
  return {};
}

uint32_t steps(const hw::TensorMap &map, unsigned d) {
  const uint32_t stride = map.elementStrides[d];
  return (map.box[d] + stride - 1) / stride;
}

/// Fills elements outside the tensor: zeros, or for OOB_FILL_NAN the 16 bits 0x7FF7 over and over,
/// for every floating-point type (H200).
void fillOutside(const hw::TensorMap &map, std::vector<std::byte> &data) {
  if (map.oobFill != hw::TensorMapOobFill::NanRequestZeroFma)
    return;
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = std::byte(i % 2 ? 0x7F : 0xF7);
}

/// Converts the values of a run as a load does: the TF32 types round to 10 fraction bits (to
/// nearest, as seen on an H200), the FTZ types flush subnormals.
void convertLoaded(hw::TensorMapType type, std::byte *data, uint64_t bytes) {
  const bool tf32 = type == hw::TensorMapType::TFloat32 || type == hw::TensorMapType::TFloat32Ftz;
  const bool flush =
      type == hw::TensorMapType::Float32Ftz || type == hw::TensorMapType::TFloat32Ftz;
  if (!tf32 && !flush)
    return;
  for (uint64_t i = 0; i < bytes; i += 4) {
    uint32_t bits;
    std::memcpy(&bits, data + i, 4);
    const uint32_t field = bits & 0x7F800000u;
    if (tf32 && field != 0x7F800000u)
      bits = (bits + 0x1000u) & ~0x1FFFu;
    if (flush && !field)
      bits &= 0x80000000u;
    std::memcpy(data + i, &bits, 4);
  }
}

/// Puts a run of packed elements where the box has it: 16 of them at the start of every 16 bytes.
/// The padding behind them is not defined; here it is a pattern that no kernel expects.
void spread(const hw::TensorMap &map, std::byte *to, const std::byte *packed, uint64_t bytes) {
  constexpr std::byte undefined{0xA5};
  const uint64_t group = tensorMapTypeBits(map.elementType) * 16 / 8; // bytes of 16 elements
  for (uint64_t from = 0; from < bytes; from += group, to += chunk) {
    std::memcpy(to, packed + from, group);
    std::fill(to + group, to + chunk, undefined);
  }
}

/// Calls f(row, first element's global address, inside) for every run along dimension 0, in the
/// order of the box. `inside` says whether dimensions 1.. lie in the tensor.
template <typename F> Status forEachRow(const hw::TensorMap &map, const Coordinates &at, F &&f) {
  std::array<uint32_t, hw::TensorMap::maxRank> count{1, 1, 1, 1, 1}, i{};
  uint64_t rows = 1;
  for (unsigned d = 1; d < map.rank; ++d)
    rows *= count[d] = steps(map, d);
  for (uint64_t row = 0; row < rows; ++row) {
    bool inside = true;
    uint64_t address = map.address;
    for (unsigned d = 1; d < map.rank; ++d) {
      const int64_t x = int64_t(at[d]) + int64_t(i[d]) * map.elementStrides[d];
      inside &= x >= 0 && uint64_t(x) < map.dims[d];
      address += uint64_t(x) * map.strides[d - 1];
    }
    FP4_TRY(f(row, address, inside));
    for (unsigned d = 1; d < map.rank && ++i[d] == count[d]; ++d)
      i[d] = 0;
  }
  return {};
}

} // namespace

void forEachGlobalRun(const hw::TensorMap &map, const Coordinates &at,
                      const std::function<void(uint64_t, uint32_t)> &run) {
  const int64_t begin = std::max<int64_t>(0, at[0]),
                end = std::min<int64_t>(int64_t(map.dims[0]), int64_t(at[0]) + map.box[0]);
  if (begin >= end)
    return;
  const uint64_t bits = tensorMapTypeBits(map.elementType);
  (void)forEachRow(map, at, [&](uint64_t, uint64_t address, bool inside) -> Status {
    if (inside)
      run(address + uint64_t(begin) * bits / 8, uint32_t(uint64_t(end - begin) * bits / 8));
    return {};
  });
}

namespace {

/// Calls `f` for every pixel of a column (im2col).
template <typename F>
Status forEachPixel(const hw::TensorMap &map, const Coordinates &at, const PixelOffsets &offsets,
                    F &&f) {
  const unsigned last = map.rank - 1; // the dimension of images
  std::array<int64_t, hw::TensorMap::maxRank> corner{};
  std::copy(at.begin(), at.end(), corner.begin());
  for (uint64_t pixel = 0; pixel < map.box[1]; ++pixel) {
    bool inside = true;
    uint64_t address = map.address;
    for (unsigned d = 1; d <= last; ++d) {
      const int64_t x = corner[d] + (d < last ? offsets[d - 1] : 0);
      inside &= x >= 0 && uint64_t(x) < map.dims[d];
      address += uint64_t(x) * map.strides[d - 1];
    }
    FP4_TRY(f(pixel, address, inside));
    unsigned d = 1;
    for (; d < last; ++d) {
      corner[d] += map.elementStrides[d];
      if (corner[d] < int64_t(map.dims[d]) + map.pixels->upper[d - 1])
        break;
      corner[d] = map.pixels->lower[d - 1];
    }
    corner[last] += d == last;
  }
  return {};
}

/// The elements of a row of the box that lie in the tensor: box indices [begin, end).
struct Inside {
  int64_t begin = 0, end = 0;
};
Inside insideRow(const hw::TensorMap &map, int32_t first) {
  const int64_t box = map.box[0];
  const int64_t begin = std::clamp<int64_t>(-int64_t(first), 0, box);
  const int64_t end = std::clamp<int64_t>(int64_t(map.dims[0]) - first, begin, box);
  return {begin, end};
}

} // namespace

Status checkSupported(const hw::TensorMap &map) {
  if (map.interleave != hw::TensorMapInterleave::None)
    return fail("the simulator does not model interleaved tensor maps");
  return {};
}

Status checkBox(const hw::TensorMap &map, const Coordinates &at, uint32_t sharedAddress,
                bool store) {
  FP4_TRY(checkSupported(map));
  if (isPadded(map))
    FP4_TRY(checkPadded(map, at, store));
  if (sharedAddress % sharedAlignment)
    return fail(
        fmt::format("expects a shared memory address that is a multiple of {}, but got {:#x}",
                    sharedAlignment, sharedAddress));
  if (const int64_t bits = int64_t(at[0]) * tensorMapTypeBits(map.elementType); bits % (8 * chunk))
    return fail(fmt::format("expects a first coordinate that is a multiple of {} bytes, but got {} "
                            "elements of {} bits",
                            chunk, at[0], tensorMapTypeBits(map.elementType)),
                "the device stops with an illegal instruction");
  for (unsigned d = 1; map.pixels && d + 1 < map.rank; ++d) {
    const int64_t lower = map.pixels->lower[d - 1],
                  upper = int64_t(map.dims[d]) + map.pixels->upper[d - 1];
    if (at[d] < lower || at[d] >= upper)
      return fail(fmt::format("the corner of the filter must be in the pixel box, {} to {} in "
                              "dimension {}, but got {}",
                              lower, upper - 1, d, at[d]));
  }
  for (unsigned d = 0; store && !map.pixels && d < map.rank; ++d)
    if (at[d] < 0)
      return fail(fmt::format("a store expects coordinates that are not negative, but got {} for "
                              "dimension {}",
                              at[d], d));
  return {};
}

Expected<std::vector<std::byte>> readBox(const hw::TensorMap &map, const Coordinates &at,
                                         const GlobalResolver &global, const GlobalTouched &touched,
                                         const PixelOffsets &offsets) {
  const unsigned bits = tensorMapTypeBits(map.elementType);
  const uint64_t rowBytes = map.boxRowBytes();
  std::vector<std::byte> data(map.boxSharedBytes());
  fillOutside(map, data);
  const Inside inside = insideRow(map, at[0]);
  const auto readRow = [&](uint64_t row, uint64_t address, bool rowInside) -> Status {
    if (!rowInside || inside.begin == inside.end)
      return {};
    const uint64_t begin = inside.begin * bits / 8, bytes = (inside.end - inside.begin) * bits / 8;
    const uint64_t from = address + int64_t(at[0]) * bits / 8 + begin;
    FP4_ASSIGN(auto source, global(from, bytes));
    touched(from, uint32_t(bytes));
    if (isPadded(map)) { // dimension 0 is a multiple of the box: all of the row or nothing
      spread(map, data.data() + row * rowBytes, source, bytes);
      return {};
    }
    std::byte *to = data.data() + row * rowBytes + begin;
    std::memcpy(to, source, bytes);
    convertLoaded(map.elementType, to, bytes);
    return {};
  };
  FP4_TRY(map.pixels ? forEachPixel(map, at, offsets, readRow) : forEachRow(map, at, readRow));
  return data;
}

Status writeBox(const hw::TensorMap &map, const Coordinates &at, std::span<const std::byte> data,
                const GlobalResolver &global, const GlobalTouched &touched,
                const std::function<void(std::byte *, const std::byte *, size_t)> &combine) {
  const unsigned bits = tensorMapTypeBits(map.elementType);
  const uint64_t rowBytes = map.boxRowBytes();
  const Inside inside = insideRow(map, at[0]);
  const auto writeRow = [&](uint64_t row, uint64_t address, bool rowInside) -> Status {
    if (!rowInside || inside.begin == inside.end)
      return {};
    // The last 16 bytes of a row are written whole, into the padding of its pitch (H200).
    const uint64_t begin = inside.begin * bits / 8, end = inside.end * bits / 8;
    const uint64_t bytes = (end + chunk - 1) / chunk * chunk - begin;
    const uint64_t to = address + int64_t(at[0]) * bits / 8 + begin;
    FP4_ASSIGN(auto target, global(to, bytes));
    combine(target, data.data() + row * rowBytes + begin, bytes);
    touched(to, uint32_t(bytes));
    return {};
  };
  return map.pixels ? forEachPixel(map, at, {}, writeRow) : forEachRow(map, at, writeRow);
}

namespace {

/// Calls f(dense offset, shared address) for every 16 bytes of the box. Rows narrower than the
/// swizzle width are that width apart in shared memory; the gap is not touched (H200).
template <typename F> void forEachChunk(const hw::TensorMap &map, uint32_t sharedAddress, F &&f) {
  const uint32_t rowBytes = uint32_t(map.boxRowBytes());
  const uint32_t rows = uint32_t(map.boxSharedBytes() / rowBytes), pitch = sharedRowPitch(map);
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t byte = 0; byte < rowBytes; byte += chunk)
      f(row * rowBytes + byte, hw::swizzleAddress(map.swizzle, sharedAddress + row * pitch + byte));
}

} // namespace

uint32_t sharedRowPitch(const hw::TensorMap &map) {
  const uint32_t rowBytes = uint32_t(map.boxRowBytes());
  return map.swizzle == hw::SwizzleMode::None
             ? rowBytes
             : std::max(rowBytes, hw::swizzleWidthBytes(map.swizzle));
}

uint32_t sharedExtent(const hw::TensorMap &map) {
  return uint32_t(map.boxSharedBytes() / map.boxRowBytes()) * sharedRowPitch(map);
}

void swizzleInto(const hw::TensorMap &map, uint32_t sharedAddress, std::byte *shared,
                 std::span<const std::byte> data) {
  forEachChunk(map, sharedAddress, [&](uint32_t dense, uint32_t address) {
    std::memcpy(shared + (address - sharedAddress), data.data() + dense, chunk);
  });
}

std::vector<std::byte> unswizzle(const hw::TensorMap &map, uint32_t sharedAddress,
                                 const std::byte *shared) {
  std::vector<std::byte> data(map.boxSharedBytes());
  forEachChunk(map, sharedAddress, [&](uint32_t dense, uint32_t address) {
    std::memcpy(data.data() + dense, shared + (address - sharedAddress), chunk);
  });
  return data;
}

} // namespace fp4::sim
