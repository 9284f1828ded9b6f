//===- PackedWeights.h - Weights in the order of a tensor core's registers ===//
//
// fp4.prepack and fp4.unprepack on the host. The order is that of fp4/ISA/WeightLayout.h.
//
// NVFP4 scales become unsigned floats with 5 exponent and 3 fraction bits: (8 + m) / 8 * 2^(e -
// 22), where no magnitude of e4m3 is subnormal. Zero is 0 and NaN 255; the sign of a scale is
// ignored. As the lower bits of a bf16 with exponent bits 111 above them, such a byte is the scale
// times 2^119; as those of an f16 it is the scale times 2^7.
//
// MXFP4 scales are bytes as they are.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Formats.h"
#include "fp4/Support/Error.h"
#include <cstdint>
#include <span>
#include <vector>

namespace fp4::numerics {

/// The e5m3 byte of an e4m3 scale, and back; 0x7F is NaN.
uint8_t widenScale(uint8_t e4m3);
uint8_t narrowScale(uint8_t e5m3);

/// Rows of `columns / 2` bytes of codes and of `columns / block` scales to tiles. Elements whose
/// nvfp4 scale is zero become zero. Fails unless `columns` is a multiple of the scale block.
Expected<std::vector<uint8_t>> packWeights(BlockFormat format, std::span<const uint8_t> codes,
                                           std::span<const uint8_t> scales, uint64_t rows,
                                           uint64_t columns);

struct UnpackedWeights {
  std::vector<uint8_t> codes, scales;
};
Expected<UnpackedWeights> unpackWeights(BlockFormat format, std::span<const uint8_t> tiles,
                                        uint64_t rows, uint64_t columns);

} // namespace fp4::numerics
