//===- StreamK.h - Parts of K that workers share --------------------------===//
//
// With attribute `stream_k` = [W, m, n] a result is cut into tiles of m x n elements. The first of
// the T tiles are shared out: all if T is at most W, none if W divides T, else W tiles and the
// tiles that would begin a further wave. W workers have equal parts of all slices of K of the
// shared tiles, one after the other, so that a worker may have the end of one tile and the
// beginning of another. Tiles are counted along m first. Kernels and models take the parts from
// here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <cstdint>

namespace fp4::numerics {

/// Workers, and rows and columns of a tile of the result.
struct StreamK {
  uint64_t workers = 0, rows = 0, columns = 0;
};

/// Rows and columns of a tile are multiples of this, which no model computes less of at a time.
inline constexpr uint64_t streamUnit = 16;

/// The shares of workers in a result of `m` x `n` elements with `slices` of K.
class StreamShares {
public:
  constexpr StreamShares(const StreamK &stream, uint64_t m, uint64_t n, uint64_t slices)
      : stream(stream), slices(slices), tilesM((m + stream.rows - 1) / stream.rows),
        tiles(tilesM * ((n + stream.columns - 1) / stream.columns)) {
    const uint64_t more = tiles % stream.workers;
    shared = more ? std::min(tiles, stream.workers + more) : 0;
  }

  constexpr uint64_t tileAt(uint64_t row, uint64_t column) const {
    return row / stream.rows + column / stream.columns * tilesM;
  }
  /// The first slice of `worker`, counted over all shared tiles.
  constexpr uint64_t bound(uint64_t worker) const {
    return worker * (shared * slices) / stream.workers;
  }
  /// Runs body(first slice, end, worker) for every part of `tile`, from the first to the last. The
  /// worker of a tile that is not shared is nobody.
  template <typename Body> constexpr void forRanges(uint64_t tile, const Body &body) const {
    if (tile >= shared)
      return body(uint64_t(0), slices, stream.workers);
    const uint64_t first = tile * slices, last = first + slices;
    uint64_t worker = first * stream.workers / (shared * slices);
    for (uint64_t begin = first; begin < last; ++worker) {
      const uint64_t end = std::min(bound(worker + 1), last);
      if (end > begin)
        body(begin - first, end - first, worker);
      begin = std::max(begin, end);
    }
  }
  /// Parts of a tile.
  constexpr uint64_t parts(uint64_t tile) const {
    uint64_t count = 0;
    forRanges(tile, [&](uint64_t, uint64_t, uint64_t) { ++count; });
    return count;
  }
  constexpr uint64_t mostParts() const {
    uint64_t most = 1;
    for (uint64_t tile = 0; tile < shared; ++tile)
      most = std::max(most, parts(tile));
    return most;
  }

  StreamK stream;
  uint64_t slices, tilesM, tiles;
  uint64_t shared = 0; ///< first tiles, which are shared
};

} // namespace fp4::numerics
