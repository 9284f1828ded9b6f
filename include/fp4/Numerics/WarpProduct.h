//===- WarpProduct.h - m16n8k16 of one warp, as its registers have it -----===//
#pragma once

#include "fp4/ISA/InstrDescriptor.h"
#include <array>
#include <cstdint>

namespace fp4::numerics {

/// The registers of mma.sync with 16 rows, of f16 or bf16 factors, or of fp8 factors that are
/// multiplied as f16 (MmaSync.cpp has both layouts), and an fp32 result: 32 lanes each.
struct WarpProduct {
  hw::MmaType aType{}, bType{};
  unsigned k = 16; ///< 8 or 16; with fp8 16 or 32. Half of it takes half of the registers
  std::array<const uint32_t *, 4> a{};
  std::array<const uint32_t *, 2> b{};
  std::array<const uint32_t *, 4> c{};
  std::array<uint32_t *, 4> d{}; ///< may be any of the others
};

/// Multiplies. False, and nothing has happened, where the processor cannot do it, or where an
/// element needs the definition: NaN, infinity, exponents near the ends of fp32's range.
bool multiplyWarp(const WarpProduct &product);

} // namespace fp4::numerics
