//===- RowSets.h - Rows of 32-bit words that TMA cannot stride by ---------===//
//
// TMA copies and strides by units of 16 bytes, four words. Rows of another pitch are sets, each of
// every second or every fourth row, whose distance is whole units. The rows of a set begin equally
// many words behind a unit, so each set has a tensor map of its own, which begins there. Words of
// several rows that belong to one column are in units of different columns, and at different places
// in them. A tile in shared memory has one unit of each row, its sets one behind the other. FP8
// GEMMs have such rows of f32 scales where K is no multiple of 512.
//
// Source: PTX ISA, cuTensorMapEncodeTiled (globalAddress, globalStrides); an H200 traps where the
// first coordinate is within a unit (lib/Sim/Async/TensorBox.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <numeric>

namespace fp4::hw {

struct RowSets {
  /// Words of a unit, and of a row of a tile.
  static constexpr int64_t unit = 4;

  int64_t pitch; ///< words from a row to the next one, modulo `unit`

  constexpr int64_t count() const { return unit / std::gcd(unit, pitch); }
  /// Columns from a multiple of them on that each row has in one unit.
  constexpr int64_t columnsTogether() const { return std::gcd(unit, pitch); }
  /// Words between a unit and the begin of row number `row` of a matrix.
  template <typename Int> constexpr Int shift(Int row) const {
    return row % count() * pitch % unit;
  }
  /// The place of row number `row` of a tile of `rows` rows, whole sets.
  template <typename Int> constexpr Int place(Int row, int64_t rows) const {
    return row % count() * (rows / count()) + row / count();
  }
};

} // namespace fp4::hw
