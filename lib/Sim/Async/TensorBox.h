//===- TensorBox.h - The box of a tensor map, in memory -------------------===//
//
// PTX ISA, "Tensors": one box of a tensor at given coordinates, tile mode, between global memory
// and shared memory; or a column of pixels, im2col mode, from global memory. The pixels of a column
// are those that one place of a filter sees while its corner goes through the pixel box and from
// image to image. In shared memory the box (a column: pixels of channels) is dense, dimension 0
// fastest, and swizzled by XOR on the absolute shared address. Elements outside the tensor read as
// the fill value and are not written, but for the rest of the last 16 bytes of a row.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/Insn.h"
#include "fp4/ISA/TensorMap.h"
#include <functional>
#include <span>
#include <vector>

namespace fp4::sim {

using Coordinates = std::array<int32_t, hw::TensorMap::maxRank>;

/// Host storage of [address, address + bytes) of global memory, or why there is none.
using GlobalResolver = std::function<Expected<std::byte *>(uint64_t address, uint64_t bytes)>;
/// Called with every run of global memory that is touched.
using GlobalTouched = std::function<void(uint64_t address, uint32_t bytes)>;

/// Fails where the simulator does not model the map: interleave.
Status checkSupported(const hw::TensorMap &map);

/// The place of a pixel relative to the filter's corner, in dimensions 1, 2, 3.
using PixelOffsets = std::array<uint16_t, 3>;

/// The rules of an instruction for a box: a shared address that is a multiple of 128 and a first
/// coordinate that is a multiple of 16 bytes (both trap on an H200), for stores coordinates that
/// are not negative, for columns a corner in the pixel box.
Status checkBox(const hw::TensorMap &map, const Coordinates &at, uint32_t sharedAddress,
                bool store);

/// Reads the box, dense and unswizzled, out-of-bounds elements filled: boxSharedBytes() bytes.
/// `offsets` are for columns.
Expected<std::vector<std::byte>> readBox(const hw::TensorMap &map, const Coordinates &at,
                                         const GlobalResolver &global, const GlobalTouched &touched,
                                         const PixelOffsets &offsets = {});

/// The runs of global memory of a box in tile mode, as far as they lie in the tensor.
void forEachGlobalRun(const hw::TensorMap &map, const Coordinates &at,
                      const std::function<void(uint64_t address, uint32_t bytes)> &run);

/// Writes the elements of the box that lie in the tensor, each row rounded up to 16 bytes;
/// `combine` is called per contiguous run.
Status writeBox(const hw::TensorMap &map, const Coordinates &at, std::span<const std::byte> data,
                const GlobalResolver &global, const GlobalTouched &touched,
                const std::function<void(std::byte *, const std::byte *, size_t bytes)> &combine);

/// Bytes between rows of the box in shared memory: those of a row, but at least the swizzle width.
uint32_t sharedRowPitch(const hw::TensorMap &map);
/// Bytes of shared memory that the box spans, gaps between narrow rows included.
uint32_t sharedExtent(const hw::TensorMap &map);

/// Moves dense box bytes to or from shared memory whose first byte has address `sharedAddress` and
/// storage `shared`.
void swizzleInto(const hw::TensorMap &map, uint32_t sharedAddress, std::byte *shared,
                 std::span<const std::byte> data);
std::vector<std::byte> unswizzle(const hw::TensorMap &map, uint32_t sharedAddress,
                                 const std::byte *shared);

} // namespace fp4::sim
