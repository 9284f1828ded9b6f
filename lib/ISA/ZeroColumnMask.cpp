//===- ZeroColumnMask.cpp - Columns of B that tcgen05.mma.ws leaves out ---===//
#include "fp4/ISA/ZeroColumnMask.h"
#include <fmt/format.h>

namespace fp4::hw {

uint64_t ZeroColumnMask::encode() const {
  uint64_t bits = uint64_t(nonZero) << 39 | uint64_t((skipSpan - 1) & 0xFF) << 40 |
                  uint64_t((useSpan - 1) & 0xFF) << 48 | uint64_t(columnShift & 0x3F) << 56;
  for (unsigned i = 0; i < 4; ++i)
    bits |= uint64_t(startCount[i]) << (8 * i) | uint64_t(firstSkips[i]) << (32 + i);
  return bits;
}

Expected<ZeroColumnMask> ZeroColumnMask::decode(uint64_t bits) {
  if (bits & (7ull << 36 | 3ull << 62))
    return makeError(ErrorKind::Simulation,
                     fmt::format("zero-column mask descriptor 0x{:016x} must be zero in bits 36-38 "
                                 "and 62-63",
                                 bits));
  ZeroColumnMask mask;
  for (unsigned i = 0; i < 4; ++i) {
    mask.startCount[i] = uint8_t(bits >> (8 * i));
    mask.firstSkips[i] = bits >> (32 + i) & 1;
  }
  mask.nonZero = bits >> 39 & 1;
  mask.skipSpan = unsigned(bits >> 40 & 0xFF) + 1;
  mask.useSpan = unsigned(bits >> 48 & 0xFF) + 1;
  mask.columnShift = unsigned(bits >> 56 & 0x3F);
  return mask;
}

// [uncertain] The columns of the skip span are zero, as the examples of PTX ISA have it; its text
// calls them the columns "where B is used", the other way round.
std::vector<bool> ZeroColumnMask::zeroColumns(unsigned m, unsigned n) const {
  std::vector<bool> zero(n);
  const unsigned parts = 128 / m, width = n / parts, period = skipSpan + useSpan;
  for (unsigned column = 0; nonZero && column < n; ++column) {
    const unsigned part = column / width;
    const unsigned at = (column % width + startCount[part]) % period;
    zero[column] = firstSkips[part] ? at < skipSpan : at >= useSpan;
  }
  return zero;
}

unsigned maxColumnShift(unsigned m) { return m == 32 ? 16 : 32; }

} // namespace fp4::hw
