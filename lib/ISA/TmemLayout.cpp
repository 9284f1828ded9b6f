// Tensor-memory layouts as closed formulas, one switch per table of PTX ISA.
#include "fp4/ISA/TmemLayout.h"
#include <bit>

namespace fp4::hw {
namespace {

constexpr std::array<std::string_view, 5> loadNames = {"32x32b", "16x64b", "16x128b", "16x256b",
                                                       "16x32bx2"};
constexpr std::array<std::string_view, 6> copyNames = {
    "32x128b.warpx4", "64x128b.warpx2::01_23", "64x128b.warpx2::02_13", "128x128b", "128x256b",
    "4x256b"};

template <typename Enum, size_t N>
std::optional<Enum> parse(const std::array<std::string_view, N> &names, std::string_view text) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == text)
      return static_cast<Enum>(i);
  return std::nullopt;
}

// A warp reaches the 32 TMEM lanes of its rank modulo 4. The lane field of the address carries the
// same quadrant by convention; its other bits matter only as the half of 16 TMEM lanes of the
// narrow shapes. [uncertain] If the address has another quadrant than the warp, the warp's wins
// here.
uint32_t loadBaseLane(LoadShape shape, unsigned warp, TmemAddress base) {
  return 32 * (warp % 4) + (shape == LoadShape::S32x32b ? 0 : base.lane & 16);
}

// [uncertain] tcgen05.cp.4x256b writes one TMEM lane of each partition of 32; tcgen05.shift leaves
// open which one. CUTLASS' layout of it says the first.
uint32_t copy4x256bLane(unsigned row) { return 32 * row; }

} // namespace

std::optional<uint32_t> tmemAllocationColumns(uint32_t columns) {
  if (columns > tmemColumnCount)
    return std::nullopt;
  return std::max(tmemMinAllocColumns, std::bit_ceil(columns));
}

std::optional<AccumulatorLayout> accumulatorLayout(unsigned ctaGroup, unsigned m, bool sparse,
                                                   bool warpSpecialized) {
  using L = AccumulatorLayout;
  if (ctaGroup == 2)
    return m == 256   ? std::optional(L::A)
           : m == 128 ? std::optional(sparse ? L::C : L::B)
                      : std::nullopt;
  if (m == 128)
    return L::D;
  if (m == 64)
    return warpSpecialized ? L::E : L::F;
  if (m == 32 && warpSpecialized)
    return L::G;
  return std::nullopt;
}

unsigned accumulatorRows(AccumulatorLayout layout) {
  constexpr std::array<unsigned, 7> rows = {256, 128, 128, 128, 64, 64, 32};
  return rows[static_cast<unsigned>(layout)];
}

unsigned accumulatorColumns(AccumulatorLayout layout, unsigned n) {
  switch (layout) {
  case AccumulatorLayout::B:
  case AccumulatorLayout::E:
    return n / 2;
  case AccumulatorLayout::G:
    return n / 4;
  default:
    return n;
  }
}

AccumulatorCell accumulatorCell(AccumulatorLayout layout, unsigned row, unsigned col, unsigned n) {
  switch (layout) {
  case AccumulatorLayout::A:
    return {row / 128, row % 128, col};
  case AccumulatorLayout::B:
    return {row / 64, row % 64 + 64 * (col / (n / 2)), col % (n / 2)};
  case AccumulatorLayout::C:
    return {row / 64, 32 * (row % 64 / 16) + row % 16, col};
  case AccumulatorLayout::D:
    return {0, row, col};
  case AccumulatorLayout::E:
    return {0, row + 64 * (col / (n / 2)), col % (n / 2)};
  case AccumulatorLayout::F:
    return {0, 32 * (row / 16) + row % 16, col};
  case AccumulatorLayout::G:
    return {0, row + 32 * (col / (n / 4)), col % (n / 4)};
  }
  return {};
}

// CUTLASS' fragments of A in tensor memory (TmemAllocMode NonInterleaved and Duplicated) and of the
// metadata (tmem_e_frg, tmem_e_frg_ws). [uncertain] C, of which neither speaks, is taken to be like
// F. A of E and G is taken to be repeated as their metadata.
uint32_t operandLane(AccumulatorLayout layout, unsigned row, unsigned copy) {
  switch (layout) {
  case AccumulatorLayout::B:
  case AccumulatorLayout::E:
    return row + 64 * copy;
  case AccumulatorLayout::C:
  case AccumulatorLayout::F:
    return 32 * (row / 16) + row % 16;
  case AccumulatorLayout::G:
    return row + 32 * copy;
  default:
    return row;
  }
}

unsigned operandCopies(AccumulatorLayout layout) {
  switch (layout) {
  case AccumulatorLayout::B:
  case AccumulatorLayout::E:
    return 2;
  case AccumulatorLayout::G:
    return 4;
  default:
    return 1;
  }
}

unsigned metadataRow(unsigned row, unsigned half) { return (row & ~8u) | 8 * half; }
unsigned metadataShift(unsigned row) { return row & 8 ? 16 : 0; }

std::string_view stringify(LoadShape shape) { return loadNames[static_cast<unsigned>(shape)]; }
std::optional<LoadShape> parseLoadShape(std::string_view text) {
  return parse<LoadShape>(loadNames, text);
}

std::optional<unsigned> loadRegisters(LoadShape shape, unsigned num) {
  if (!std::has_single_bit(num))
    return std::nullopt;
  const unsigned perUnit = shape == LoadShape::S16x128b ? 2 : shape == LoadShape::S16x256b ? 4 : 1;
  return num * perUnit <= 128 ? std::optional(num * perUnit) : std::nullopt;
}

unsigned loadColumns(LoadShape shape, unsigned num) {
  switch (shape) {
  case LoadShape::S16x64b:
    return 2 * num;
  case LoadShape::S16x128b:
    return 4 * num;
  case LoadShape::S16x256b:
    return 8 * num;
  default:
    return num;
  }
}

TmemAddress loadCell(LoadShape shape, unsigned warp, unsigned lane, unsigned reg, TmemAddress base,
                     unsigned halfSplit) {
  const uint32_t l = loadBaseLane(shape, warp, base), c = base.column;
  switch (shape) {
  case LoadShape::S32x32b:
    return {l + lane, c + reg};
  case LoadShape::S16x64b:
    return {l + (lane >> 2) + 8 * (lane & 1), c + ((lane >> 1) & 1) + 2 * reg};
  case LoadShape::S16x128b:
    return {l + (lane >> 2) + 8 * (reg & 1), c + (lane & 3) + 4 * (reg >> 1)};
  case LoadShape::S16x256b:
    return {l + (lane >> 2) + 8 * ((reg >> 1) & 1),
            c + (reg & 1) + 2 * (lane & 3) + 8 * (reg >> 2)};
  case LoadShape::S16x32bx2:
    return {l + lane % 16, c + reg + (lane / 16) * halfSplit};
  }
  return {};
}

TmemAddress loadCellPacked(LoadShape shape, unsigned warp, unsigned lane, unsigned reg,
                           unsigned half, TmemAddress base, unsigned halfSplit) {
  TmemAddress cell = loadCell(shape, warp, lane, reg, {base.lane, 0});
  cell.column = base.column + 2 * cell.column + half;
  if (shape == LoadShape::S16x32bx2)
    cell.column += (lane / 16) * halfSplit;
  return cell;
}

std::string_view stringify(CopyShape shape) { return copyNames[static_cast<unsigned>(shape)]; }
std::optional<CopyShape> parseCopyShape(std::string_view text) {
  return parse<CopyShape>(copyNames, text);
}

unsigned copyRows(CopyShape shape) {
  constexpr std::array<unsigned, 6> rows = {32, 64, 64, 128, 128, 4};
  return rows[static_cast<unsigned>(shape)];
}

unsigned copyColumns(CopyShape shape) {
  return shape == CopyShape::C128x256b || shape == CopyShape::C4x256b ? 8 : 4;
}

CopyCells copyCells(CopyShape shape, unsigned row, unsigned word) {
  CopyCells out;
  const auto add = [&](uint32_t lane) { out.cells[out.count++] = {lane, word}; };
  switch (shape) {
  case CopyShape::C32x128bWarpx4:
    for (uint32_t q = 0; q < 4; ++q)
      add(row + 32 * q);
    break;
  case CopyShape::C64x128bWarpx2_01_23: // rows 0-31 to quadrants 0 and 1, rows 32-63 to 2 and 3
    add(row % 32 + 64 * (row / 32));
    add(row % 32 + 64 * (row / 32) + 32);
    break;
  case CopyShape::C64x128bWarpx2_02_13: // rows 0-31 to quadrants 0 and 2, rows 32-63 to 1 and 3
    add(row);
    add(row + 64);
    break;
  case CopyShape::C128x128b:
  case CopyShape::C128x256b:
    add(row);
    break;
  case CopyShape::C4x256b:
    add(copy4x256bLane(row));
    break;
  }
  return out;
}

} // namespace fp4::hw
