// Amaxes of small tensors and twins of them that leave parts out: what the loads, the maximum of a
// CTA and an exchange of maxima take, through L2 or in a cluster (notebook/quantizers.md).
//   nvcc -cubin -arch=sm_90a -O3 -std=c++17 amax_twins.cu && python3 amax_twins.py amax_twins.cubin
#include <cooperative_groups.h>
#include <cstdint>
namespace cg = cooperative_groups;
struct alignas(32) Item {
  uint4 a, b;
};
static __device__ __forceinline__ unsigned m2(unsigned x, unsigned y) {
  unsigned r;
  asm("max.xorsign.abs.bf16x2 %0,%1,%2;" : "=r"(r) : "r"(x), "r"(y));
  return r;
}
static __device__ __forceinline__ unsigned maxOf(const uint4 &a, const uint4 &b) {
  unsigned r = m2(m2(m2(a.x, a.y), m2(a.z, a.w)), m2(m2(b.x, b.y), m2(b.z, b.w)));
  unsigned lo = (r << 16) & 0x7fffffffu, hi = r & 0x7fff0000u;
  return lo > hi ? lo : hi;
}
static __device__ __forceinline__ unsigned ofCta(unsigned v) {
  __shared__ unsigned w[32];
  v = __reduce_max_sync(~0u, v);
  if ((threadIdx.x & 31) == 0)
    w[threadIdx.x >> 5] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    unsigned n = blockDim.x >> 5;
    v = __reduce_max_sync(~0u, threadIdx.x < n ? w[threadIdx.x] : 0u);
  }
  return v; // in the first warp
}
static __device__ __forceinline__ unsigned poll(unsigned *p) {
  unsigned v;
  do
    asm volatile("ld.relaxed.gpu.global.b32 %0,[%1];" : "=r"(v) : "l"(p) : "memory");
  while (!v);
  asm volatile("st.relaxed.gpu.global.b32 [%0],%1;" ::"l"(p), "r"(0u) : "memory");
  return v & 0x7fffffffu;
}
// The maximum of v and of what other CTAs put into their slots, of each thread's slots.
static __device__ __forceinline__ unsigned ofOthers(unsigned *slots, unsigned v) {
  for (unsigned c = threadIdx.x + 1; c < gridDim.x; c += 512) {
    unsigned o = poll(slots + c);
    v = o > v ? o : v;
  }
  return v;
}
static __device__ __forceinline__ void put(unsigned *p, unsigned v) {
  asm volatile("st.relaxed.gpu.global.b32 [%0],%1;" ::"l"(p), "r"(v | 0x80000000u) : "memory");
}
extern "C" {
__global__ void __launch_bounds__(512)
    empty(const uint4 *x, unsigned *out, int items, unsigned *slots) {}
__global__ void __launch_bounds__(512)
    loads(const uint4 *x, unsigned *out, int items, unsigned *slots) {
  unsigned i = blockIdx.x * 512 + threadIdx.x, v = 0;
  if (i < items)
    v = maxOf(x[2 * i], x[2 * i + 1]);
  if (v == 0x7f7f0000u)
    out[i] = v;
}
__global__ void __launch_bounds__(512)
    alone(const uint4 *x, unsigned *out, int items, unsigned *slots) {
  unsigned i = blockIdx.x * 512 + threadIdx.x, v = 0;
  if (i < items)
    v = maxOf(x[2 * i], x[2 * i + 1]);
  v = ofCta(v);
  if (threadIdx.x == 0)
    out[1024 + blockIdx.x] = v;
}
__global__ void __launch_bounds__(512)
    slots512(const uint4 *x, unsigned *out, int items, unsigned *slots) {
  unsigned i = blockIdx.x * 512 + threadIdx.x, v = 0;
  if (i < items)
    v = maxOf(x[2 * i], x[2 * i + 1]);
  if (blockIdx.x == 0)
    v = ofOthers(slots, v);
  v = ofCta(v);
  if (threadIdx.x == 0) {
    if (blockIdx.x)
      put(slots + blockIdx.x, v);
    else
      out[0] = v;
  }
}
#define CLUSTER(N)                                                                                 \
  __global__ void __cluster_dims__(N, 1, 1) __launch_bounds__(1024)                                \
      cluster##N(const uint4 *x, unsigned *out, int items, unsigned *slots) {                      \
    __shared__ unsigned all[N];                                                                    \
    auto c = cg::this_cluster();                                                                   \
    unsigned v = 0;                                                                                \
    _Pragma("unroll 4") for (unsigned i = blockIdx.x * 1024 + threadIdx.x; i < items;              \
                             i += N * 1024) {                                                      \
      unsigned o = maxOf(x[2 * i], x[2 * i + 1]);                                                  \
      v = o > v ? o : v;                                                                           \
    }                                                                                              \
    v = ofCta(v);                                                                                  \
    if (threadIdx.x == 0)                                                                          \
      *c.map_shared_rank(&all[c.block_rank()], 0) = v;                                             \
    c.sync();                                                                                      \
    if (c.block_rank() == 0 && threadIdx.x == 0) {                                                 \
      unsigned m = 0;                                                                              \
      for (int k = 0; k < N; ++k)                                                                  \
        m = all[k] > m ? all[k] : m;                                                               \
      out[0] = m;                                                                                  \
    }                                                                                              \
  }
CLUSTER(16)
CLUSTER(8)
static __device__ __forceinline__ void pack(unsigned *out, unsigned i, const uint4 &a,
                                            const uint4 &b, unsigned m) {
  uint2 q = {(a.x ^ a.y ^ m) + (a.z ^ a.w), (b.x ^ b.y ^ m) + (b.z ^ b.w)};
  ((uint2 *)(out + 4096))[i] = q;
  ((unsigned char *)(out + 4096 + (1 << 20)))[i] = (unsigned char)(m >> 20);
}
__global__ void __launch_bounds__(256)
    q_none(const uint4 *x, unsigned *out, int items, unsigned *slots) {
  unsigned i = blockIdx.x * 256 + threadIdx.x;
  if (i >= items)
    return;
  uint4 a = x[2 * i], b = x[2 * i + 1];
  pack(out, i, a, b, maxOf(a, b));
}
// Two trips: to CTA 0 and back. CTAs of 512 threads.
__global__ void __launch_bounds__(512)
    q_two(const uint4 *x, unsigned *out, int items, unsigned *slots) {
  __shared__ unsigned got;
  unsigned i = blockIdx.x * 512 + threadIdx.x, v = 0;
  uint4 a = {}, b = {};
  if (i < items) {
    a = x[2 * i];
    b = x[2 * i + 1];
    v = maxOf(a, b);
  }
  if (blockIdx.x == 0)
    v = ofOthers(slots, v);
  v = ofCta(v);
  if (threadIdx.x == 0) {
    if (blockIdx.x) {
      put(slots + blockIdx.x, v);
      v = poll(slots + 1024 + blockIdx.x);
    }
    got = v;
  }
  __syncthreads();
  v = got;
  if (blockIdx.x == 0)
    for (unsigned c = threadIdx.x + 1; c < gridDim.x; c += 512)
      put(slots + 1024 + c, v);
  if (i < items)
    pack(out, i, a, b, v);
}
// One trip: each CTA to each other.
__global__ void __launch_bounds__(512)
    q_one(const uint4 *x, unsigned *out, int items, unsigned *slots) {
  __shared__ unsigned got, w[32];
  unsigned i = blockIdx.x * 512 + threadIdx.x, v = 0;
  uint4 a = {}, b = {};
  if (i < items) {
    a = x[2 * i];
    b = x[2 * i + 1];
    v = maxOf(a, b);
  }
  v = ofCta(v);
  if (threadIdx.x == 0)
    got = v;
  __syncthreads();
  v = got;
  unsigned o = 0;
  if (threadIdx.x < gridDim.x) {
    put(slots + threadIdx.x * gridDim.x + blockIdx.x, v);
    o = poll(slots + blockIdx.x * gridDim.x + threadIdx.x);
  }
  o = __reduce_max_sync(~0u, o);
  if ((threadIdx.x & 31) == 0)
    w[threadIdx.x >> 5] = o;
  __syncthreads();
  v = 0;
  for (int k = 0; k < 16; ++k)
    v = w[k] > v ? w[k] : v;
  if (i < items)
    pack(out, i, a, b, v);
}
__global__ void __cluster_dims__(16, 1, 1) __launch_bounds__(1024)
    q_cluster16(const uint4 *x, unsigned *out, int items, unsigned *slots) {
  __shared__ unsigned all[16];
  auto c = cg::this_cluster();
  unsigned v = 0;
  uint4 a[4], b[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    unsigned i = (k * 16 + blockIdx.x) * 1024 + threadIdx.x;
    if (i < items) {
      a[k] = x[2 * i];
      b[k] = x[2 * i + 1];
    }
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    unsigned i = (k * 16 + blockIdx.x) * 1024 + threadIdx.x;
    if (i < items) {
      unsigned o = maxOf(a[k], b[k]);
      v = o > v ? o : v;
    }
  }
  v = ofCta(v);
  if (threadIdx.x < 32) {
    v = __shfl_sync(~0u, v, 0);
    if (threadIdx.x < 16)
      *c.map_shared_rank(&all[c.block_rank()], threadIdx.x) = v;
  }
  c.sync();
  v = 0;
  for (int k = 0; k < 16; ++k)
    v = all[k] > v ? all[k] : v;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    unsigned i = (k * 16 + blockIdx.x) * 1024 + threadIdx.x;
    if (i < items)
      pack(out, i, a[k], b[k], v);
  }
}
}
