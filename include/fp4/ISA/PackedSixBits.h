//===- PackedSixBits.h - Elements of 6 bits as TMA wants them -------------===//
//
// In memory an element of 6 bits (E2M3, E3M2) is the low bits of a byte. A tensor map of type
// 16U6_ALIGN16B reads them packed, 16 in 12 bytes, the first in the lowest bits (PTX ISA, "Sub-byte
// types", .b6x16_p32).
//
// Templates: on the host with integers, in kernels with Int32, which emits the same operations.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>

namespace fp4::hw {

/// Codes in a group of packed words, and these words.
inline constexpr int sixBitGroup = 16, sixBitGroupWords = 3;

/// The 24 bits of four codes in a word.
template <typename Int> constexpr Int packSixBits(Int word) {
  Int even = word & 0x003F003F, odd = word & 0x3F003F00;
  Int pairs = even | odd >> 2; // 12 bits in each half
  return (pairs & 0xFFF) | (pairs >> 4 & 0xFFF000);
}

/// Four words of codes as three.
template <typename Int>
constexpr std::array<Int, sixBitGroupWords> packSixBitGroup(const std::array<Int, 4> &words) {
  Int a = packSixBits(words[0]), b = packSixBits(words[1]);
  Int c = packSixBits(words[2]), d = packSixBits(words[3]);
  return {a | b * 0x1000000, b >> 8 | c * 0x10000, c >> 16 | d * 0x100};
}

} // namespace fp4::hw
