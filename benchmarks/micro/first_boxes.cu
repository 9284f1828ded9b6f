// First loads of an attention tile alone, as FlashAttention-3 asks for them: clocks from the first
// request to the arrival of K, Q, the next K and V, with some of them left out, of CTAs that begin
// together; by pairs of CTAs with multicasts, and without:
//   nvcc -O3 -std=c++17 -arch=sm_90a first_boxes.cu && ./a.out
// Each line has the 5th, 50th and 95th percentile of all CTAs in five launches. Q is waited for
// first, so that K comes no earlier in it. By it TimedPolicy::lastRow was judged.
#include "runtime_timing.h"

#include <algorithm>
#include <cstring>
#include <cuda.h>
#include <vector>

constexpr int heads = 16, keys = 176, rowsOfQ = 128;
struct Maps {
  CUtensorMap k, q, v;
};
__device__ unsigned arrived;
__device__ __forceinline__ unsigned shared(void *p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void waitFor(unsigned bar) {
  asm volatile(
      "{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W; }" ::"r"(
          bar)
      : "memory");
}
__device__ __forceinline__ void load(const CUtensorMap &m, unsigned at, unsigned bar, int x, int y,
                                     int z, bool cast) {
  if (cast)
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes."
                 "multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(at),
                 "l"(&m), "r"(x), "r"(y), "r"(z), "r"(bar), "h"((unsigned short)3)
                 : "memory");
  else
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(at),
                 "l"(&m), "r"(x), "r"(y), "r"(z), "r"(bar)
                 : "memory");
}
// parts: 1 K, 2 Q, 4 next K, 8 V, 16 a prefetch of Q before all
template <bool cast>
__device__ void body(const Maps &maps, int tokens, int parts, unsigned target,
                     unsigned long long *out) {
  extern __shared__ __align__(1024) char window[];
  __shared__ __align__(8) unsigned long long bars[4];
  const int c = blockIdx.x, tiles = (tokens + 127) / 128, rank = cast ? c & 1 : 0;
  const int m = c % tiles, head = c / tiles % heads, b = c / tiles / heads,
            blocks = (tokens + keys - 1) / keys;
  char *base = (char *)(((unsigned long long)window + 1023) & ~1023ull);
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4; ++i)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&bars[i])));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&maps.k));
    asm volatile("prefetch.tensormap [%0];" ::"l"(&maps.q));
    asm volatile("prefetch.tensormap [%0];" ::"l"(&maps.v));
    const int bytes[4] = {keys * 256, rowsOfQ * 256, keys * 256, keys * 256};
    for (int i = 0; i < 4; ++i)
      if (parts >> i & 1)
        asm volatile(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(&bars[i])),
            "r"(bytes[i])
            : "memory");
  }
  if (cast)
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
  else
    __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&arrived, 1);
    unsigned seen;
    do {
      asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(&arrived) : "memory");
    } while (seen < target);
    const int offsets[4] = {0, keys * 256, keys * 256 + rowsOfQ * 256,
                            2 * keys * 256 + rowsOfQ * 256};
    const unsigned long long begin = clk();
    if (parts & 16)
      for (int h = 0; h < 2; ++h)
        asm volatile(
            "cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(&maps.q),
            "r"(head * 128 + 64 * h), "r"(m * 128), "r"(b)
            : "memory");
    for (int i = 0; i < 4; ++i)
      if (parts >> i & 1)
        for (int h = 0; h < 2; ++h) {
          const CUtensorMap &map = i == 1 ? maps.q : i == 3 ? maps.v : maps.k;
          const int rows = i == 1 ? rowsOfQ
                           : cast ? keys / 2
                                  : keys,
                    y = i == 1 ? m * 128
                               : (blocks - 1 - (i == 2)) * keys + (cast ? rank * keys / 2 : 0);
          const int full = i == 1 ? rowsOfQ : keys;
          load(
              map,
              shared(base + offsets[i] + h * full * 128 + (i != 1 && cast ? rank * rows * 128 : 0)),
              shared(&bars[i]), head * 128 + 64 * h, y, b, cast && i != 1);
        }
    const unsigned long long issued = clk();
    out[6 * c] = issued - begin;
    for (int k = 0; k < 4; ++k) {
      const int i = k == 0 ? 1 : k == 1 ? 0 : k; // Q first, as the kernel waits
      if (parts >> i & 1) {
        waitFor(shared(&bars[i]));
        out[6 * c + 1 + i] = clk() - begin;
      } else
        out[6 * c + 1 + i] = 0;
    }
  }
  if (cast)
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}
__global__ void __cluster_dims__(2, 1, 1)
    pairs(const __grid_constant__ Maps maps, int tokens, int parts, unsigned target,
          unsigned long long *out) {
  body<true>(maps, tokens, parts, target, out);
}
__global__ void single(const __grid_constant__ Maps maps, int tokens, int parts, unsigned target,
                       unsigned long long *out) {
  body<false>(maps, tokens, parts, target, out);
}
__global__ void sweep(uint4 *at, size_t n, unsigned *out) {
  unsigned s = 0;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n;
       i += size_t(gridDim.x) * blockDim.x) {
    uint4 x;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(at + i));
    s ^= x.x ^ x.y ^ x.z ^ x.w;
  }
  if (s == 0x7fffffff)
    *out = s;
}
typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                           const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                           const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static Encode encode;
static CUtensorMap map(void *p, int b, int n, int rows) {
  CUtensorMap m;
  cuuint64_t dims[3] = {heads * 128, (cuuint64_t)n, (cuuint64_t)b},
             strides[2] = {heads * 256, (cuuint64_t)heads * 256 * n};
  cuuint32_t box[3] = {64, (cuuint32_t)rows, 1}, ones[3] = {1, 1, 1};
  if (encode(&m, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, p, dims, strides, box, ones,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) {
    fprintf(stderr, "encode\n");
    exit(1);
  }
  return m;
}
int main(int argc, char **argv) {
  bool quick = argc > 1 && !strcmp(argv[1], "quick");
  void *f;
  cudaDriverEntryPointQueryResult q;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &q));
  encode = (Encode)f;
  const size_t pool = size_t(quick ? 24 : 192) << 20;
  char *p;
  unsigned long long *out;
  unsigned *sink;
  CHECK(cudaMalloc(&p, pool));
  CHECK(cudaMemset(p, 0, pool));
  CHECK(cudaMalloc(&out, 65536));
  CHECK(cudaMalloc(&sink, 256));
  const int bytes = 3 * keys * 256 + rowsOfQ * 256 + 2048;
  CHECK(cudaFuncSetAttribute(pairs, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  CHECK(cudaFuncSetAttribute(single, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  unsigned done = 0;
  CHECK(cudaMemcpyToSymbol(arrived, &done, 4));
  const int shapes[][3] = {{1, 512, 2},    {1, 512, 64},   {2, 512, 128}, {4, 512, 132},
                           {1, 1024, 128}, {2, 1024, 132}, {1, 2048, 132}};
  for (auto [b, n, ctas] : shapes)
    for (int cast = 1; cast >= 0; --cast)
      for (int parts : {1, 2, 3, 15, 31})
        for (int warm = 0; warm < 2; ++warm) {
          if (quick && (n > 1024 || b > 2))
            continue;
          char *base = p;
          size_t each = size_t(b) * n * heads * 256;
          Maps maps{map(base, b, n, cast ? keys / 2 : keys), map(base + each, b, n, rowsOfQ),
                    map(base + 2 * each, b, n, cast ? keys / 2 : keys)};
          std::vector<std::vector<unsigned long long>> per(5);
          unsigned long long last = 0, rounds = quick ? 1 : 5;
          for (unsigned r = 0; r < rounds + (warm ? 1 : 0); ++r) {
            if (!warm) {
              if (quick) {
              } else
                sweep<<<264, 1024>>>((uint4 *)(p + 3 * each), (pool - 3 * each) / 16, sink);
            }
            done += ctas;
            if (cast)
              pairs<<<ctas, 128, bytes>>>(maps, n, parts, done, out);
            else
              single<<<ctas, 128, bytes>>>(maps, n, parts, done, out);
            CHECK(cudaDeviceSynchronize());
            static unsigned long long w[6 * 132];
            CHECK(cudaMemcpy(w, out, sizeof(unsigned long long) * 6 * ctas, cudaMemcpyDeviceToHost));
            if (warm && !r)
              continue;
            for (int c = 0; c < ctas; ++c)
              for (int i = 0; i < 5; ++i) {
                per[i].push_back(w[6 * c + i]);
                if (i == 4 || i == 1)
                  last = std::max(last, w[6 * c + i]);
              }
          }
          printf("{\"batch\": %d, \"tokens\": %d, \"ctas\": %d, \"multicast\": %d, \"parts\": %d, "
                 "\"warm\": %d",
                 b, n, ctas, cast, parts, warm);
          const char *names[] = {"issue", "K", "Q", "next K", "V"};
          for (int i = 0; i < 5; ++i)
            if (i == 0 || parts >> (i - 1) & 1) {
              auto &v = per[i];
              std::sort(v.begin(), v.end());
              printf(", \"%s\": [%llu, %llu, %llu]", names[i], v[v.size() / 20], v[v.size() / 2],
                     v[v.size() - 1 - v.size() / 20]);
            }
          printf("}\n");
          fflush(stdout);
        }
  return 0;
}
