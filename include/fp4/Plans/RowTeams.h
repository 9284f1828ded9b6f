//===- RowTeams.h - The threads that have a row of a matrix together ------===//
//
// A thread of a row kernel (family reduce_rows) has chunks of 16 consecutive elements of one row,
// the unit in which numerics::reduceRow combines elements. Lanes of a warp have neighbouring
// chunks, so that a warp has a segment of 512 elements. The CTAs of a cluster may have a row
// together, which then is in their registers although it is too long for those of one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/RowReduction.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdint>

namespace fp4 {

inline constexpr int64_t kRowChunk = numerics::kReductionChunk;

/// The chunks of a row of `columns` elements.
inline int64_t chunksOfRow(int64_t columns) {
  return std::max<int64_t>(1, llvm::divideCeil(columns, kRowChunk));
}

/// Threads that have a chunk each: a power of two within a warp, else whole warps.
inline int64_t threadsOfChunks(int64_t chunks) {
  return chunks <= 32 ? int64_t(llvm::PowerOf2Ceil(uint64_t(chunks)))
                      : int64_t(llvm::alignTo(uint64_t(chunks), 32));
}

/// Words of a row that a thread has registers for. A row of more words is read again for each
/// number that is computed of it.
inline constexpr int64_t kMostRowWords = 64;

/// Returns true when a thread keeps the `words` of its `chunks` in registers. One chunk is always
/// kept.
inline bool keepsRow(int64_t words, int64_t chunks) {
  return words <= kMostRowWords || chunks == 1;
}

/// Threads that have a row together: those of all `ctas`, or of one CTA of `threads` as many as
/// have a chunk, or all where fewer would not share the CTA out evenly.
inline int64_t teamOfRow(int64_t chunks, int64_t threads, int64_t ctas) {
  if (ctas > 1)
    return ctas * threads;
  int64_t team = threadsOfChunks(chunks);
  return team < threads && threads % team == 0 ? team : threads;
}

} // namespace fp4
