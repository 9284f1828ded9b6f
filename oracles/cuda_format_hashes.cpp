// Prints hashes of CUDA's own host implementations of the fp4 and fp8 conversions, over the inputs
// that unittests/Numerics/FormatTest.cpp sweeps: the second, outside source of those tests.
//   clang++ -std=c++17 -O2 -I$CUDA_HOME/include oracles/cuda_format_hashes.cpp -o /tmp/hashes &&
//   /tmp/hashes
// With the argument "all" it walks all 2^32 inputs.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cuda_fp4.h>
#include <cuda_fp8.h>

static uint64_t hash(uint64_t h, uint8_t byte) { return (h ^ byte) * 0x100000001B3ull; }

int main(int argc, char **argv) {
  const uint64_t step = argc > 1 && !strcmp(argv[1], "all") ? 1 : 2039;
  uint64_t e2m1 = 0xCBF29CE484222325ull, e4m3 = e2m1, e4m3NoSat = e2m1, up = e2m1, zero = e2m1;
  for (uint64_t bits = 0; bits < (1ull << 32); bits += step) {
    const uint32_t word = static_cast<uint32_t>(bits);
    float x;
    memcpy(&x, &word, 4);
    e2m1 = hash(e2m1, __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest));
    e4m3 = hash(e4m3, __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3));
    e4m3NoSat = hash(e4m3NoSat, __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3));
    up = hash(up, __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf));
    zero = hash(zero, __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundZero));
  }
  printf("e2m1 %016llx\ne4m3 %016llx\ne4m3 nosat %016llx\nue8m0 up %016llx\nue8m0 zero %016llx\n",
         (unsigned long long)e2m1, (unsigned long long)e4m3, (unsigned long long)e4m3NoSat,
         (unsigned long long)up, (unsigned long long)zero);
}
