//===- KeptTiles.h - Places for what is known of tiles --------------------===//
//
// The stages of a loop name the same tiles again and again: a host thread keeps what it has found
// out of some of them, in tables of a fixed size.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace fp4::sim {

/// Returns the place of a tile in a table of 2^bits, by its address. Stages and slabs of K lie
/// powers of two apart, so the upper bits of a product choose.
constexpr size_t keptPlace(uint64_t address, unsigned bits) {
  constexpr uint64_t golden = 0x9E3779B97F4A7C15; // of 2^64
  return address * golden >> (64 - bits);
}

} // namespace fp4::sim
