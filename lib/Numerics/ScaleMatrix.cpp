// Scale matrices: lib/ISA's offsets applied.
#include "fp4/Numerics/ScaleMatrix.h"
#include "fp4/ISA/ScaleLayout.h"
#include <algorithm>
#include <array>
#include <string>

namespace fp4::numerics {
namespace {

constexpr std::array<std::pair<std::string_view, ScaleLayout>, 5> layouts = {
    {{"linear", ScaleLayout::Linear},
     {"padded_128x4", ScaleLayout::Padded128x4},
     {"tiled_128x4", ScaleLayout::Tiled128x4},
     {"tiled_8x4", ScaleLayout::Tiled8x4},
     {"mma_tiled", ScaleLayout::Tiled128x4}}};

Status checkBytes(std::string_view what, size_t got, uint64_t expected) {
  if (got == expected)
    return {};
  return makeError(ErrorKind::Usage, std::string(what) + " must have " + std::to_string(expected) +
                                         " bytes, but got " + std::to_string(got));
}

} // namespace

std::string_view stringify(ScaleLayout layout) {
  return std::ranges::find(layouts, layout, [](const auto &l) { return l.second; })->first;
}

std::optional<ScaleLayout> parseScaleLayout(std::string_view text) {
  for (auto [name, layout] : layouts)
    if (name == text)
      return layout;
  return std::nullopt;
}

uint64_t scaleMatrixBytes(ScaleLayout layout, uint64_t rows, uint64_t blocks) {
  switch (layout) {
  case ScaleLayout::Linear:
    return rows * blocks;
  case ScaleLayout::Padded128x4:
  case ScaleLayout::Tiled128x4:
    return hw::tiled128x4Bytes(rows, blocks);
  case ScaleLayout::Tiled8x4:
    return hw::tiled8x4Bytes(rows, blocks);
  }
  return 0;
}

uint64_t scaleOffset(ScaleLayout layout, uint64_t row, uint64_t block, uint64_t blocks) {
  switch (layout) {
  case ScaleLayout::Linear:
    return row * blocks + block;
  case ScaleLayout::Padded128x4:
    return hw::padded128x4Offset(row, block, blocks);
  case ScaleLayout::Tiled128x4:
    return hw::tiled128x4Offset(row, block, blocks);
  case ScaleLayout::Tiled8x4:
    return hw::tiled8x4Offset(row, block, blocks);
  }
  return 0;
}

Expected<std::vector<uint8_t>> layOutScales(std::span<const uint8_t> linear, uint64_t rows,
                                            uint64_t blocks, ScaleLayout layout) {
  FP4_TRY(checkBytes("scales", linear.size(), rows * blocks));
  std::vector<uint8_t> bytes(scaleMatrixBytes(layout, rows, blocks));
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t b = 0; b < blocks; ++b)
      bytes[scaleOffset(layout, r, b, blocks)] = linear[r * blocks + b];
  return bytes;
}

Expected<std::vector<uint8_t>> readScales(std::span<const uint8_t> bytes, uint64_t rows,
                                          uint64_t blocks, ScaleLayout layout) {
  FP4_TRY(checkBytes("scales", bytes.size(), scaleMatrixBytes(layout, rows, blocks)));
  std::vector<uint8_t> linear(rows * blocks);
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t b = 0; b < blocks; ++b)
      linear[r * blocks + b] = bytes[scaleOffset(layout, r, b, blocks)];
  return linear;
}

Expected<std::vector<uint8_t>> stackScales(std::span<const ScaleShard> shards, uint64_t blocks,
                                           ScaleLayout layout) {
  std::vector<uint8_t> linear;
  uint64_t rows = 0;
  for (const ScaleShard &shard : shards) {
    FP4_ASSIGN(auto part, readScales(shard.bytes, shard.rows, blocks, layout));
    linear.insert(linear.end(), part.begin(), part.end());
    rows += shard.rows;
  }
  return layOutScales(linear, rows, blocks, layout);
}

Expected<std::vector<uint8_t>> interleaveShards(std::span<const uint8_t> gathered, uint64_t shards,
                                                uint64_t rows, uint64_t rowBytes) {
  FP4_TRY(checkBytes("gathered shards", gathered.size(), shards * rows * rowBytes));
  std::vector<uint8_t> fixed(gathered.size());
  for (uint64_t s = 0; s < shards; ++s)
    for (uint64_t r = 0; r < rows; ++r)
      std::copy_n(gathered.begin() + static_cast<ptrdiff_t>((s * rows + r) * rowBytes), rowBytes,
                  fixed.begin() + static_cast<ptrdiff_t>((r * shards + s) * rowBytes));
  return fixed;
}

} // namespace fp4::numerics
