//===- StagedScales.h - Tiles of f32 scales in shared memory --------------===//
//
// Tiles have the scales of several scale blocks of K, whose k tiles a kernel writes out: the more
// blocks, the fewer branches between them. Rows whose pitch TMA does not stride by
// (fp4/ISA/RowSets.h) have whole units of it, the first of which may begin up to three scales
// before the first block.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/RowSets.h"

#include <numeric>

namespace fp4 {

struct StagedScales {
  int64_t together; ///< scale blocks of a tile
  int64_t columns;  ///< scales of a row of a tile
};

/// Returns the tiles of rows of `blocks` scales, of which a stage of operands has `step`.
constexpr StagedScales stagedScales(int64_t blocks, int64_t step) {
  constexpr int64_t most = 8; // copies of the code of a k tile
  hw::RowSets sets{blocks % hw::RowSets::unit};
  if (sets.count() == 1)
    return {hw::RowSets::unit, hw::RowSets::unit};
  int64_t together = step;
  for (int64_t count = step; count <= most; count += step)
    if (blocks % count == 0 && count % sets.columnsTogether() == 0)
      together = count;
  int64_t shift = hw::RowSets::unit - std::gcd(together, sets.columnsTogether());
  return {together,
          (shift + together + hw::RowSets::unit - 1) / hw::RowSets::unit * hw::RowSets::unit};
}

} // namespace fp4
