//===- TmemLayout.h - Tensor memory: addresses, accumulators, transfers ---===//
//
// Tensor memory of one CTA has 128 TMEM lanes (rows) of 512 columns of 32 bits. The functions here
// say where the elements of an accumulator lie, which cell each register of a tcgen05.ld/st names,
// and what a tcgen05.cp writes.
//
// Sources: PTX ISA, "Tensor memory" (addressing, data path organization, ld/st shapes, cp);
// CUTLASS cute/atom/mma_traits_sm100_frag.hpp and copy_traits_sm100.hpp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/Support/Error.h"
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fp4::hw {

inline constexpr uint32_t tmemLaneCount = 128;
inline constexpr uint32_t tmemColumnCount = 512;
inline constexpr uint32_t tmemMaxColumnCount = 576; ///< columns of tensor memory on sm_107a
inline constexpr uint32_t tmemMinAllocColumns = 32;

/// A tensor-memory address: TMEM lane in bits 16-31, column in bits 0-15.
struct TmemAddress {
  uint32_t lane = 0, column = 0;

  bool operator==(const TmemAddress &) const = default;
  constexpr uint32_t pack() const { return lane << 16 | (column & 0xFFFF); }
  static constexpr TmemAddress unpack(uint32_t bits) { return {bits >> 16, bits & 0xFFFF}; }
};

/// Columns that tcgen05.alloc can give for a need of `columns`: a power of two, at least 32;
/// nothing above 512.
std::optional<uint32_t> tmemAllocationColumns(uint32_t columns);

//===--- Accumulators ----------------------------------------------------===//

/// Data path organizations, by the letters of PTX ISA's table:
///   A  M 256, cta_group 2            B  M 128, cta_group 2, dense   C  M 128, cta_group 2, sparse
///   D  M 128, cta_group 1            E  M 64, .ws                   F  M 64, cta_group 1
///   G  M 32, .ws
enum class AccumulatorLayout : uint8_t { A, B, C, D, E, F, G };

/// A cell of D: the member of the CTA pair (0 even, 1 odd) and, relative to the accumulator's
/// address, TMEM lane and column.
struct AccumulatorCell {
  uint32_t cta = 0, lane = 0, column = 0;
  bool operator==(const AccumulatorCell &) const = default;
};

/// The organization of an MMA, or nothing where no such MMA exists.
std::optional<AccumulatorLayout> accumulatorLayout(unsigned ctaGroup, unsigned m, bool sparse,
                                                   bool warpSpecialized);

/// Rows M of an organization.
unsigned accumulatorRows(AccumulatorLayout layout);

/// Columns an accumulator of N columns takes: N, N / 2 for B and E, N / 4 for G.
unsigned accumulatorColumns(AccumulatorLayout layout, unsigned n);

/// Returns the place of element (row, col) of an M x n accumulator. For C and F the result takes
/// TMEM lanes 0..15 of each 32; add 16 where the accumulator's address does.
AccumulatorCell accumulatorCell(AccumulatorLayout layout, unsigned row, unsigned col, unsigned n);

/// TMEM lane of row `row` (of one CTA's part) of an A in tensor memory, or of its sparsity
/// metadata, relative to its address. Each part of the data path reads its own copy: see
/// operandCopies.
uint32_t operandLane(AccumulatorLayout layout, unsigned row, unsigned copy);
/// Number of copies that such an operand must have: 2 for B and E, 4 for G, else 1.
unsigned operandCopies(AccumulatorLayout layout);

/// Sparsity metadata of elements of 16 and 32 bits: bits of row `row` are spread over two TMEM
/// lanes, those of `half` of K (0 or 1) in the TMEM lane of metadataRow, 16 bits from metadataShift
/// on. Narrower elements have the bits of a row in its own TMEM lane, in two columns.
unsigned metadataRow(unsigned row, unsigned half);
unsigned metadataShift(unsigned row);

//===--- tcgen05.ld and tcgen05.st ---------------------------------------===//

enum class LoadShape : uint8_t { S32x32b, S16x64b, S16x128b, S16x256b, S16x32bx2 };

std::string_view stringify(LoadShape shape); ///< "16x256b"
std::optional<LoadShape> parseLoadShape(std::string_view text);

/// Registers per thread of shape.x`num`, or nothing where the combination does not exist.
std::optional<unsigned> loadRegisters(LoadShape shape, unsigned num);

/// Columns that shape.x`num` covers (16x32bx2: of each half).
unsigned loadColumns(LoadShape shape, unsigned num);

/// The cell that register `reg` of lane `lane` of warp `warp` (rank in its CTA) reads or writes.
/// `base` is the instruction's address operand; `halfSplit` the immediate of 16x32bx2. With
/// .pack::16b / .unpack::16b use loadCellPacked.
TmemAddress loadCell(LoadShape shape, unsigned warp, unsigned lane, unsigned reg, TmemAddress base,
                     unsigned halfSplit = 0);

/// .pack::16b of a load (and .unpack::16b of a store): a register holds the low 16 bits of two
/// neighbouring cells. Columns count double: the register that names column base + c without it
/// names base + 2c (`half` 0, its low half) and base + 2c + 1 (`half` 1). `halfSplit` stays in
/// columns.
TmemAddress loadCellPacked(LoadShape shape, unsigned warp, unsigned lane, unsigned reg,
                           unsigned half, TmemAddress base, unsigned halfSplit = 0);

//===--- tcgen05.cp ------------------------------------------------------===//

enum class CopyShape : uint8_t {
  C32x128bWarpx4,
  C64x128bWarpx2_01_23,
  C64x128bWarpx2_02_13,
  C128x128b,
  C128x256b,
  C4x256b
};

std::string_view stringify(CopyShape shape); ///< "32x128b.warpx4"
std::optional<CopyShape> parseCopyShape(std::string_view text);

unsigned copyRows(CopyShape shape);    ///< rows read: 4, 32, 64 or 128
unsigned copyColumns(CopyShape shape); ///< 32-bit words of each row: 4 or 8

/// The cells, relative to the destination address, that receive word `word` of source row `row`.
/// The source address of that word is SmemDescriptor::operandAddress(row, 4 * word).
struct CopyCells {
  std::array<TmemAddress, 4> cells;
  unsigned count = 0;
};
CopyCells copyCells(CopyShape shape, unsigned row, unsigned word);

} // namespace fp4::hw
