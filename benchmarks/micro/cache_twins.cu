// Twins of the kernels of attention over caches that load and compute nothing: keys and values of
// warp_attention with the grid, warps, addresses and widths of the compiler's kernel, and latent
// keys as a ring of stages (notebook/attention.md).
//   nvcc -cubin -arch=sm_90a -O3 -std=c++17 cache_twins.cu      (by cache_twins.py)
#include <cstdint>
struct Keys {
  const uint8_t *keys, *values, *keyScales, *valueScales;
  const int *pages;
  unsigned *out;
  int tokens, parts, strip, heads, page;
};

/// BYTES bytes of global memory, folded so that they must be loaded.
template <int BYTES> static __device__ __forceinline__ unsigned take(const uint8_t *from) {
  unsigned folded = 0;
  if constexpr (BYTES >= 16)
#pragma unroll
    for (int i = 0; i < BYTES; i += 16) {
      uint4 x = __ldg(reinterpret_cast<const uint4 *>(from + i));
      folded ^= x.x ^ x.y ^ x.z ^ x.w;
    }
  else if constexpr (BYTES == 8) {
    uint2 x = __ldg(reinterpret_cast<const uint2 *>(from));
    folded = x.x ^ x.y;
  } else if constexpr (BYTES == 4)
    folded = __ldg(reinterpret_cast<const unsigned *>(from));
  else if constexpr (BYTES == 2)
    folded = __ldg(reinterpret_cast<const unsigned short *>(from));
  else if constexpr (BYTES == 1)
    folded = __ldg(from);
  return folded;
}

/// Heads of ELEMENTS of BITS bits, a scale for each BLOCK of them (0: none), and WARPS of a CTA. A
/// step is 16 tokens: four lanes share a row of keys, and eight one of values.
template <int ELEMENTS, int BITS, int BLOCK, int WARPS>
static __device__ __forceinline__ void loadKeys(const Keys &p) {
  constexpr int kRow = ELEMENTS * BITS / 8, kKey = kRow / 4, kValue = kRow / 8;
  constexpr int kBlock = BLOCK ? BLOCK : 1, kScales = ELEMENTS / kBlock;
  constexpr int kKeyScales = !BLOCK ? 0 : ELEMENTS / 4 > BLOCK ? ELEMENTS / 4 / kBlock : 1;
  constexpr int kValueScales = !BLOCK ? 0 : ELEMENTS / 8 > BLOCK ? ELEMENTS / 8 / kBlock : 1;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, member = lane % 4;
  int strips = p.heads / p.strip, part = blockIdx.x % p.parts, work = blockIdx.x / p.parts;
  int head = work % strips * p.strip + warp % p.strip, batch = work / strips;
  int steps = (p.tokens + 15) / 16, ofPart = (steps + p.parts - 1) / p.parts;
  int end = min((part + 1) * ofPart, steps), stride = WARPS / p.strip;
  int first = part * ofPart + warp / p.strip, page = 0;
  const int *pages = p.page ? p.pages + batch * (p.tokens / p.page) : nullptr;
  if (pages && first < end)
    page = pages[first * 16 / p.page];
  unsigned folded = 0;
#pragma unroll 2
  for (int step = first; step < end; step += stride) {
    int64_t row = int64_t(batch) * p.tokens + step * 16;
    if (pages) { // of the next step
      row = int64_t(page) * p.page + step * 16 % p.page;
      page = pages[(step + stride < end ? step + stride : step) * 16 / p.page];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      int64_t r = (row + group + 8 * i) * p.heads + head;
      folded ^= take<kKey>(p.keys + r * kRow + member * kKey);
      folded ^= take<kKeyScales>(p.keyScales + r * kScales + member * (ELEMENTS / 4) / kBlock);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int64_t r = (row + 2 * member + i % 2 + i / 2 * 8) * p.heads + head;
      folded ^= take<kValue>(p.values + r * kRow + group * kValue);
      folded ^= take<kValueScales>(p.valueScales + r * kScales + group * (ELEMENTS / 8) / kBlock);
    }
  }
  if (folded == 0x12345678)
    *p.out = folded;
}

#define KEYS(NAME, ELEMENTS, BITS, BLOCK, WARPS, CTAS)                                             \
  extern "C" __global__ void __launch_bounds__(WARPS * 32, CTAS)                                   \
      NAME##_##WARPS##_##CTAS(const __grid_constant__ Keys p) {                                    \
    loadKeys<ELEMENTS, BITS, BLOCK, WARPS>(p);                                                     \
  }
#define SHAPES(NAME, ELEMENTS, BITS, BLOCK)                                                        \
  KEYS(NAME, ELEMENTS, BITS, BLOCK, 16, 1)                                                         \
  KEYS(NAME, ELEMENTS, BITS, BLOCK, 8, 1)                                                          \
  KEYS(NAME, ELEMENTS, BITS, BLOCK, 8, 2)                                                          \
  KEYS(NAME, ELEMENTS, BITS, BLOCK, 4, 2)
SHAPES(nvfp4_128, 128, 4, 16)
SHAPES(nvfp4_64, 64, 4, 16)
SHAPES(mxfp4_128, 128, 4, 32)
SHAPES(mxfp4_64, 64, 4, 32)
SHAPES(mxfp8_128, 128, 8, 32)
SHAPES(mxfp8_64, 64, 8, 32)
SHAPES(fp8_128, 128, 8, 0)
SHAPES(fp8_64, 64, 8, 0)
SHAPES(bf16_128, 128, 16, 0)
SHAPES(bf16_64, 64, 16, 0)

struct Latent {
  const uint8_t *cache;
  const int *pages;
  int batches, blocks, slices, tiles;
};

static __device__ __forceinline__ void wait(unsigned barrier, unsigned parity) {
  asm volatile("{.reg .pred p; W%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"
               "@!p bra W%=;}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

/// STAGES of a page of 64 tokens of ROW bytes: a thread loads, and another one gives stages back.
template <int STAGES, int ROW> static __device__ __forceinline__ void loadLatent(const Latent &p) {
  extern __shared__ __align__(128) uint8_t stages[];
  constexpr unsigned kBytes = 64 * ROW, kPieces = 4;
  unsigned base = unsigned(__cvta_generic_to_shared(stages)), full = base + STAGES * kBytes;
  if (threadIdx.x == 0)
    for (int i = 0; i < 2 * STAGES; ++i)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full + 8 * i) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  bool loads = threadIdx.x == 0, releases = threadIdx.x == 32;
  int ofSlice = (p.blocks + p.slices - 1) / p.slices;
  unsigned number = 0;
  for (int work = blockIdx.x; (loads || releases) && work < p.batches * p.slices * p.tiles;
       work += gridDim.x) {
    int slice = work / p.tiles % p.slices, batch = work / p.tiles / p.slices;
    for (int block = slice * ofSlice; block < min((slice + 1) * ofSlice, p.blocks); ++block) {
      unsigned stage = number % STAGES, parity = number++ / STAGES & 1, barrier = full + 16 * stage;
      if (releases) {
        wait(barrier, parity);
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier + 8) : "memory");
        continue;
      }
      wait(barrier + 8, parity ^ 1);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                   "r"(kBytes)
                   : "memory");
      const uint8_t *from = p.cache + int64_t(p.pages[batch * p.blocks + block]) * kBytes;
      for (unsigned piece = 0; piece < kPieces; ++piece)
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
            "[%0], [%1], %2, [%3];" ::"r"(base + stage * kBytes + piece * kBytes / kPieces),
            "l"(from + piece * kBytes / kPieces), "r"(kBytes / kPieces), "r"(barrier)
            : "memory");
    }
  }
  __syncthreads();
}
extern "C" __global__ void __launch_bounds__(384, 1) latent_bf16(const __grid_constant__ Latent p) {
  loadLatent<2, 1152>(p);
}
extern "C" __global__ void __launch_bounds__(384, 1) latent_fp8(const __grid_constant__ Latent p) {
  loadLatent<4, 576>(p);
}
