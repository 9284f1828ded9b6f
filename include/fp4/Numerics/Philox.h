//===- Philox.h - Counter-based random numbers ----------------------------===//
//
// Philox4x32 (Salmon et al., SC 2011), with the key and counter layout of cuRAND and Triton:
// key = (seed low, high), counter = (offset low, high, subsequence low, high).
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>

namespace fp4::numerics {

/// The 128 bits of counter `offset` of `subsequence`.
std::array<uint32_t, 4> philox4x32(uint64_t seed, uint64_t subsequence, uint64_t offset,
                                   unsigned rounds = 10);

} // namespace fp4::numerics
