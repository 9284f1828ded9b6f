//===- ColumnPieces.h - GEMMs by pieces of their columns ------------------===//
#pragma once

#include "GemmOperands.h"
#include "fp4/Support/Parallel.h"
#include <mutex>

namespace fp4::numerics {

/// Columns that are handled at once: those of the widest instruction.
inline constexpr uint64_t pieceColumns = 256;

/// Runs body(first column, columns) for every piece of the result's columns, and reports how many
/// elements are done. A piece lies in one column of tiles of stream-K.
template <typename Body> void forPieces(const GemmProblem &p, const Body &body) {
  std::mutex mutex;
  uint64_t done = 0;
  const uint64_t columns = p.b.rows;
  const uint64_t width = p.streamK ? std::min(pieceColumns, p.streamK->columns) : pieceColumns;
  parallelFor((columns + width - 1) / width, p.threads, [&](uint64_t piece) {
    const uint64_t first = piece * width, count = std::min(width, columns - first);
    body(first, count);
    const std::lock_guard lock(mutex);
    if (p.progress)
      p.progress(done += p.a.rows * count, p.a.rows * columns);
  });
}

/// Sets the elements of `row` of the result from column `first` on. `sums` has, for each element,
/// the exact sum, the sum of magnitudes, the error of the tensor core, and how far a partial sum
/// may reach.
template <typename Sums>
void setElements(const GemmProblem &p, const EpilogueProgram &epilogue, const Sums &sums,
                 uint64_t row, uint64_t first, GemmReference &result) {
  const double fp64 = double(p.depth) * 0x1p-52; // of the reference itself
  for (uint64_t j = 0; j < sums.sum.size(); ++j) {
    const float alpha = alphaAt(p, row, first + j).value_or(1.f);
    const BoundedValue element =
        epilogue.bound({sums.sum[j], sums.error[j] + fp64 * sums.magnitude[j]}, alpha);
    const uint64_t at = row * p.b.rows + first + j;
    result.values[at] = element.value;
    result.bounds[at] = element.error;
    result.mayOverflow[at] =
        overflowOf(epilogue, !(sums.reach[j] < 0x1p128) || epilogue.mayOverflow(element, alpha));
  }
}

} // namespace fp4::numerics
