//===- ScaleMatrix.h - Block scales in the layouts that consumers read ----===//
//
// A scale matrix has a row per matrix row and a byte per block along it. Layouts (byte offsets are
// lib/ISA's, ScaleLayout.h); bytes that belong to no scale are zero:
//
//   linear         rows x blocks, row-major
//   padded_128x4   row-major, padded to 128 rows and 4 blocks: TransformerEngine before its swizzle
//   tiled_128x4    512-byte tiles of 128 x 4: cuBLASLt, torch to_blocked, tcgen05
//   mma_tiled      another name of tiled_128x4: the (32, 4, M/128, 4, K/4) tensor of CuTe's block
//                  scaled GEMMs has the same bytes
//   tiled_8x4      32-byte tiles of 8 x 4: FlashInfer for small M
//
// In a grouped GEMM every group's matrix is laid out and padded on its own (an empty one takes no
// bytes) and the matrices follow each other.
//
// Gathering the shards of tensor- or sequence-parallel ranks: row-wise quantized shards are stacked
// along rows, so only the padding between them must be removed. Column-wise shards are K x M_rank
// matrices. An all-gather stacks them as [ranks * K, M_rank], while [K, ranks * M_rank] is needed;
// interleaveShards moves the bytes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fp4::numerics {

enum class ScaleLayout : uint8_t { Linear, Padded128x4, Tiled128x4, Tiled8x4 };

std::string_view stringify(ScaleLayout layout);
/// Accepts "mma_tiled" too.
std::optional<ScaleLayout> parseScaleLayout(std::string_view text);

/// Bytes of a matrix of rows x blocks scales, padding included.
uint64_t scaleMatrixBytes(ScaleLayout layout, uint64_t rows, uint64_t blocks);
/// Offset of a scale in the bytes of its matrix.
uint64_t scaleOffset(ScaleLayout layout, uint64_t row, uint64_t block, uint64_t blocks);

/// Converts linear scales to `layout`, with zero padding, and back. The two functions fail on a
/// wrong size.
Expected<std::vector<uint8_t>> layOutScales(std::span<const uint8_t> linear, uint64_t rows,
                                            uint64_t blocks, ScaleLayout layout);
Expected<std::vector<uint8_t>> readScales(std::span<const uint8_t> bytes, uint64_t rows,
                                          uint64_t blocks, ScaleLayout layout);

/// Scales of one rank's or group's matrix.
struct ScaleShard {
  std::span<const uint8_t> bytes;
  uint64_t rows = 0;
};

/// Shards of `blocks` scales per row, each padded by itself, as one matrix with its padding at the
/// end only. Fails where a shard's size does not match.
Expected<std::vector<uint8_t>> stackScales(std::span<const ScaleShard> shards, uint64_t blocks,
                                           ScaleLayout layout);

/// [shards * rows, rowBytes], stacked by an all-gather, to [rows, shards * rowBytes]: packed codes
/// or linear scales. Fails where the size of `gathered` does not match.
Expected<std::vector<uint8_t>> interleaveShards(std::span<const uint8_t> gathered, uint64_t shards,
                                                uint64_t rows, uint64_t rowBytes);

} // namespace fp4::numerics
