// Rows of ggml's blocks: one walk over the places of a row, in either direction.
#include "fp4/Numerics/GgmlBlocks.h"
#include "fp4/Numerics/ScaleMatrix.h"
#include <string>

namespace fp4::numerics {
namespace {

Status check(BlockFormat format, uint64_t columns) {
  if (!isPacked(format))
    return makeError(ErrorKind::Usage, "blocks of ggml must be of format nvfp4 or mxfp4, but got " +
                                           std::string(stringify(format)));
  if (columns % ggmlElements(format) == 0)
    return {};
  return makeError(ErrorKind::Usage,
                   "rows must be multiples of " + std::to_string(ggmlElements(format)) +
                       " for ggml's " + std::string(stringify(format)) + ", but got " +
                       std::to_string(columns));
}

/// The place of an element's code: its byte within the row's bytes, and which nibble of the byte.
struct Place {
  uint64_t byte;
  bool high;
};

Place placeOf(BlockFormat format, uint64_t column) {
  const uint64_t block = column / ggmlElements(format), scale = blockSizeOf(format);
  const uint64_t group = column % ggmlElements(format) / scale, element = column % scale;
  const uint64_t scales = ggmlElements(format) / scale, half = scale / 2;
  return {block * ggmlBytes(format) + scales + group * half + element % half, element >= half};
}

uint64_t scalePlace(BlockFormat format, uint64_t block) {
  const uint64_t perBlock = ggmlElements(format) / blockSizeOf(format);
  return block / perBlock * ggmlBytes(format) + block % perBlock;
}

} // namespace

Expected<std::vector<uint8_t>> toGgmlBlocks(BlockFormat format, const QuantizedSide &side) {
  FP4_TRY(check(format, side.columns));
  FP4_ASSIGN(auto scales, readScales(side.scales, side.rows, side.blocks, side.layout));
  const uint64_t pitch = side.columns / ggmlElements(format) * ggmlBytes(format);
  std::vector<uint8_t> bytes(side.rows * pitch);
  for (uint64_t r = 0; r < side.rows; ++r) {
    for (uint64_t b = 0; b < side.blocks; ++b)
      bytes[r * pitch + scalePlace(format, b)] = scales[r * side.blocks + b];
    for (uint64_t c = 0; c < side.columns; ++c) {
      const auto [byte, high] = placeOf(format, c);
      bytes[r * pitch + byte] |= static_cast<uint8_t>(side.code(r, c) << (high ? 4 : 0));
    }
  }
  return bytes;
}

Expected<QuantizedSide> fromGgmlBlocks(BlockFormat format, std::span<const uint8_t> bytes,
                                       uint64_t rows, uint64_t columns) {
  FP4_TRY(check(format, columns));
  const uint64_t pitch = columns / ggmlElements(format) * ggmlBytes(format);
  if (bytes.size() != rows * pitch)
    return makeError(ErrorKind::Usage, "blocks must have " + std::to_string(rows * pitch) +
                                           " bytes, but got " + std::to_string(bytes.size()));
  QuantizedSide side;
  side.rows = rows;
  side.columns = columns;
  side.blocks = columns / blockSizeOf(format);
  side.data.resize(rows * side.rowBytes());
  for (uint64_t r = 0; r < rows; ++r) {
    for (uint64_t b = 0; b < side.blocks; ++b)
      side.scales.push_back(bytes[r * pitch + scalePlace(format, b)]);
    for (uint64_t c = 0; c < columns; ++c) {
      const auto [byte, high] = placeOf(format, c);
      const unsigned code = bytes[r * pitch + byte] >> (high ? 4 : 0) & 15;
      side.data[r * side.rowBytes() + c / 2] |= static_cast<uint8_t>(code << (c % 2 ? 4 : 0));
    }
  }
  return side;
}

} // namespace fp4::numerics
