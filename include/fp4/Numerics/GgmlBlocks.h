//===- GgmlBlocks.h - The blocks of ggml's files --------------------------===//
//
// ggml (llama.cpp) stores scales next to the codes they belong to. A row is a sequence of
//
//   mxfp4   32 elements, 17 bytes: the scale; then byte j holds elements j and j + 16
//   nvfp4   64 elements, 36 bytes: four scales; then of each 16 elements in turn eight bytes, of
//           which byte j holds elements j and j + 8
//
// the first element of a pair in the low nibble. Codes and scale bytes are those of the recipes
// ggml_mxfp4 and ggml_nvfp4, whose values ggml doubles and halves: its tables hold 2 * e2m1.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/QuantizeMatrix.h"

namespace fp4::numerics {

/// Elements and bytes of a block.
constexpr uint64_t ggmlElements(BlockFormat format) {
  return format == BlockFormat::NVFP4 ? 64 : 32;
}
constexpr uint64_t ggmlBytes(BlockFormat format) { return format == BlockFormat::NVFP4 ? 36 : 17; }

/// Converts the rows of `side`, of format nvfp4 or mxfp4, to ggml's layout, and back. The two
/// functions fail if rows are not whole blocks or the number of bytes does not match.
Expected<std::vector<uint8_t>> toGgmlBlocks(BlockFormat format, const QuantizedSide &side);
Expected<QuantizedSide> fromGgmlBlocks(BlockFormat format, std::span<const uint8_t> bytes,
                                       uint64_t rows, uint64_t columns);

} // namespace fp4::numerics
