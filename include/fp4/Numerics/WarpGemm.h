//===- WarpGemm.h - m16n8k16 of one warp, as its registers have it -----===//
#pragma once

#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/Numerics/DenseMma.h"
#include <array>
#include <cstdint>
#include <span>

namespace fp4::numerics {

/// The registers of mma.sync with 16 rows, of f16 or bf16 factors, or of fp8 factors that are
/// multiplied as f16 (MmaSync.cpp has both layouts), and an fp32 result: 32 lanes each.
struct WarpGemm {
  hw::MmaType aType{}, bType{};
  unsigned k = 16; ///< 8 or 16; with fp8 16 or 32. Half of it takes half of the registers
  std::array<const uint32_t *, 4> a{};
  std::array<const uint32_t *, 2> b{};
  std::array<const uint32_t *, 4> c{};
  std::array<uint32_t *, 4> d{}; ///< may be any of the others
};

/// Multiplies. False, and nothing has happened, where the processor cannot do it, or where an
/// element needs the definition: NaN, infinity, exponents near the ends of fp32's range.
bool multiplyWarp(const WarpGemm &product);

/// A warp's part of a wgmma: 16 rows by tiles of 8 columns, 32 bytes deep, of f16, bf16 or fp8
/// factors, and an fp32 result whose tiles lie in registers as above.
struct WarpTiles {
  hw::MmaType aType{}, bType{};
  std::span<const uint8_t> a, b; ///< rows of A and columns of B, one after the other
  bool accumulate = false;       ///< D is added to
  std::span<uint32_t *const> d;  ///< four registers of each tile
};

/// As multiplyWarp. fp8 factors are multiplied as they are, with the precision of Hopper's unit.
bool multiplyTiles(const WarpTiles &tiles);

} // namespace fp4::numerics
