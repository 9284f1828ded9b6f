//===- ZeroColumnMask.h - Columns of B that tcgen05.mma.ws leaves out -----===//
//
// The 64-bit operand of tcgen05.mma.ws that makes columns of B zero, and moves the first one (PTX
// ISA, "Zero-Column Mask Descriptor"):
//
//   bits  0-31  start count of the four sub-masks, 8 bits each     bits 40-47  skip span - 1
//   bits 32-35  first span of the four                             bits 48-55  use span - 1
//   bit     39  0: no column is zero                               bits 56-61  column shift
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <array>
#include <cstdint>
#include <vector>

namespace fp4::hw {

struct ZeroColumnMask {
  std::array<uint8_t, 4> startCount{}; ///< columns of the pattern that a sub-mask leaves out
  std::array<bool, 4> firstSkips{};    ///< the pattern begins with zero columns
  bool nonZero = false;
  unsigned skipSpan = 1, useSpan = 1; ///< columns that are zero, that are used, in turns
  unsigned columnShift = 0;           ///< column 0 of the result is this column of B

  bool operator==(const ZeroColumnMask &) const = default;
  uint64_t encode() const;
  /// Fails on reserved bits.
  static Expected<ZeroColumnMask> decode(uint64_t bits);

  /// Columns that are zero in a GEMM of M rows: one, two or four sub-masks share the N columns.
  std::vector<bool> zeroColumns(unsigned m, unsigned n) const;
};

/// The greatest column shift of a GEMM of M rows.
unsigned maxColumnShift(unsigned m);

} // namespace fp4::hw
