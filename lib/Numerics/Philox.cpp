#include "fp4/Numerics/Philox.h"

namespace fp4::numerics {

std::array<uint32_t, 4> philox4x32(uint64_t seed, uint64_t subsequence, uint64_t offset,
                                   unsigned rounds) {
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(offset), static_cast<uint32_t>(offset >> 32),
                               static_cast<uint32_t>(subsequence),
                               static_cast<uint32_t>(subsequence >> 32)};
  for (unsigned round = 0; round < rounds; ++round) {
    const uint64_t p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

} // namespace fp4::numerics
