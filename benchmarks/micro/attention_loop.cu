// The loop of an attention tile without loads: clocks of a block of keys, of one and of two
// warpgroups, with products of values alone and with all products and softmax, with turns as
// FlashAttention-3 has them and without, on one SM and on all:
//   nvcc -O3 -std=c++17 --use_fast_math -arch=sm_90a attention_loop.cu && ./a.out
// With an argument it is short, for the simulator. ptxas removes products whose sums are
// overwritten, so that products of keys alone are not measured. No rate was fitted to it.
#include "runtime_timing.h"
#include "wgmma.h"

#include <cuda_bf16.h>

enum { Qk = 1, Pv = 2, Turns = 4, Softmax = 8, PvShared = 16, Serial = 32, Phases = 64 };
/// Clocks that a warpgroup notes in a block: at its begin, at its turn, behind the issue of both
/// products, behind the wait for sums of keys, behind exponentials, behind the wait for the others.
constexpr int phases = 7;
constexpr int blocksNoted = 6;
__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <int keys, int mode>
__global__ void __launch_bounds__(256, 1)
    loop(int blocks, int groups, unsigned long long *out, float *sink) {
  extern __shared__ __align__(1024) char window[];
  for (int i = threadIdx.x; i < 160 * 1024 / 4; i += blockDim.x) {
    unsigned x = i * 2654435761u + blockIdx.x;
    x ^= x >> 15;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    reinterpret_cast<unsigned *>(window)[i] = (x & 0x807f807fu) | 0x3f003f00u;
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const int wg = threadIdx.x / 128;
  if (wg >= groups)
    return;
  const unsigned base = (unsigned)__cvta_generic_to_shared(window);
  const unsigned long long common = 1ull << 62 | (64ull << 32) | (1ull << 16);
  const unsigned long long q = common | ((base + wg * 16384) >> 4),
                           k = common | ((base + 32768) >> 4),
                           v = common | (((unsigned long long)keys * 128 >> 4) << 16) |
                               ((base + 32768 + keys * 256) >> 4);
  float s[keys / 2], o[64], m[2] = {-1e30f, -1e30f}, l[2] = {0, 0};
  unsigned p[keys / 16][4];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    o[i] = 0;
#pragma unroll
  for (int i = 0; i < keys / 2; ++i)
    s[i] = 0;
#pragma unroll
  for (int i = 0; i < keys / 16; ++i)
    for (int j = 0; j < 4; ++j)
      p[i][j] = 0x3f003f00u + threadIdx.x;
  if ((mode & Turns) && groups == 2 && wg == 1)
    asm volatile("bar.arrive 2, 256;" ::: "memory");
  unsigned long long begin = 0;
  for (int t = 0; t < blocks + 2; ++t) {
    const auto note = [&](int phase) {
      if ((mode & Phases) && threadIdx.x % 128 == 0 && t < blocksNoted)
        out[4 * gridDim.x + ((blockIdx.x * 2 + wg) * blocksNoted + t) * phases + phase] = clk();
    };
    if (t == 2)
      begin = clk();
    note(0);
    if ((mode & Turns) && groups == 2)
      asm volatile("bar.sync %0, 256;" ::"r"(2 + wg) : "memory");
    note(1);
    if (mode & Qk) {
      keep(s);
      fence();
#pragma unroll
      for (int i = 0; i < 8; ++i)
        multiply(s, q + (i / 4) * 512 + (i % 4) * 2, k + (i / 4) * (keys * 8) + (i % 4) * 2,
                 i != 0);
      commit();
    }
    note(2);
    if (mode & Serial) {
      wait<0>();
      keep(s);
    }
    if (mode & Pv) {
      keep(o);
      fence();
#pragma unroll
      for (int i = 0; i < keys / 16; ++i) {
        if (mode & PvShared)
          multiply(o, q + (i % 4) * 2, v + i * 128, 1);
        else
          multiplyTransposed(o, p[i], v + i * 128, 1);
      }
      commit();
    }
    note(3);
    if ((mode & Turns) && groups == 2)
      asm volatile("bar.arrive %0, 256;" ::"r"(2 + (1 - wg)) : "memory");
    if ((mode & Qk) && (mode & Pv))
      wait<1>();
    else
      wait<0>();
    keep(s);
    note(4);
    float scale[2] = {1, 1};
    if (mode & Softmax) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float x = m[r];
#pragma unroll
        for (int i = 0; i < keys / 4; ++i)
          x = fmaxf(x, s[(i / 2) * 4 + r * 2 + i % 2]);
        x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
        x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
        scale[r] = ex2((m[r] - x) * 0.1275f);
        m[r] = x;
        l[r] *= scale[r];
        float c = x * 0.1275f;
#pragma unroll
        for (int i = 0; i < keys / 4; ++i) {
          float &y = s[(i / 2) * 4 + r * 2 + i % 2];
          y = ex2(fmaf(y, 0.1275f, -c));
        }
#pragma unroll
        for (int i = 0; i < keys / 4; ++i)
          l[r] += s[(i / 2) * 4 + r * 2 + i % 2];
      }
    }
    if (mode & Phases)
      keep(s), keep(l);
    note(5);
    if ((mode & Qk) && (mode & Pv)) {
      wait<0>();
    }
    keep(o);
    note(6);
    if (mode & Softmax) {
#pragma unroll
      for (int i = 0; i < keys / 16; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          __nv_bfloat162 h = __floats2bfloat162_rn(s[i * 8 + j * 2], s[i * 8 + j * 2 + 1]);
          p[i][j] = *reinterpret_cast<unsigned *>(&h);
        }
#pragma unroll
      for (int i = 0; i < 64; ++i)
        o[i] *= scale[i / 2 % 2];
    }
  }
  const unsigned long long end = clk();
  if ((mode & Turns) && groups == 2 && wg == 0)
    asm volatile("bar.sync 2, 256;" ::: "memory");
  if (threadIdx.x % 128 == 0) {
    out[4 * blockIdx.x + 2 * wg] = begin;
    out[4 * blockIdx.x + 2 * wg + 1] = end;
  }
  float z = l[0] + l[1];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    z += o[i];
#pragma unroll
  for (int i = 0; i < keys / 2; ++i)
    z += s[i];
  sink[blockIdx.x * 256 + threadIdx.x] = z;
}
template <int keys, int mode>
void measure(const char *what, unsigned long long *out, float *sink, bool quick) {
  auto f = loop<keys, mode>;
  CHECK(cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
  for (int ctas : {1, 132}) {
    if (quick && ctas > 1)
      continue;
    for (int groups : {1, 2}) {
      double got[2];
      int n[2] = {4, quick ? 12 : 36};
      for (int i = 0; i < 2; ++i) {
        double best = 1e30;
        for (int turn = 0; turn < (quick ? 1 : 3); ++turn) {
          f<<<ctas, 256, 180 << 10>>>(n[i], groups, out, sink);
          CHECK(cudaDeviceSynchronize());
          static unsigned long long w[4 * 132];
          CHECK(cudaMemcpy(w, out, sizeof w, cudaMemcpyDeviceToHost));
          double sum = 0;
          for (int c = 0; c < ctas; ++c)
            sum += double((groups == 2 ? (w[4 * c + 1] > w[4 * c + 3] ? w[4 * c + 1] : w[4 * c + 3])
                                       : w[4 * c + 1]) -
                          (groups == 2 && w[4 * c + 2] < w[4 * c] ? w[4 * c + 2] : w[4 * c]));
          best = sum / ctas < best ? sum / ctas : best;
        }
        got[i] = best;
      }
      printf("{\"keys\": %d, \"what\": \"%s\", \"ctas\": %d, \"groups\": %d, \"clk\": %.1f, "
             "\"first4\": %.0f}\n",
             keys, what, ctas, groups, (got[1] - got[0]) / (n[1] - n[0]), got[0]);
      fflush(stdout);
    }
  }
}
/// Prints the clocks of blocks of two warpgroups of the first CTA.
template <int keys, int mode> void note(const char *what, unsigned long long *out, float *sink) {
  auto f = loop<keys, mode | Phases>;
  CHECK(cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
  for (int groups : {1, 2}) {
    static unsigned long long w[2 * blocksNoted * phases];
    f<<<1, 256, 180 << 10>>>(8, groups, out, sink);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(w, out + 4, sizeof w, cudaMemcpyDeviceToHost));
    for (int g = 0; g < groups; ++g)
      for (int t = 2; t < blocksNoted; ++t) {
        printf("{\"keys\": %d, \"phases\": \"%s\", \"groups\": %d, \"group\": %d, \"block\": %d, "
               "\"clk\": [", keys, what, groups, g, t);
        for (int i = 0; i < phases; ++i)
          printf("%s%lld", i ? ", " : "",
                 (long long)(w[(g * blocksNoted + t) * phases + i] - w[2 * phases]));
        printf("]}\n");
      }
    fflush(stdout);
  }
}
template <int keys> void all(unsigned long long *out, float *sink, bool quick) {
  measure<keys, Pv>("PV", out, sink, quick);
  measure<keys, Qk | Pv | Softmax>("QK, PV and softmax", out, sink, quick);
  measure<keys, Qk | Pv | Softmax | Turns>("QK, PV and softmax, turns", out, sink, quick);
  measure<keys, Qk | Pv | Softmax | Turns | PvShared>(
      "QK, PV and softmax, turns, A in shared memory", out, sink, quick);
  note<keys, Qk | Pv | Softmax>("QK, PV and softmax", out, sink);
  note<keys, Qk | Pv | Softmax | Turns>("QK, PV and softmax, turns", out, sink);
  note<keys, Qk | Pv | Softmax | Turns | PvShared>(
      "QK, PV and softmax, turns, A in shared memory", out, sink);
}
int main(int argc, char **) {
  unsigned long long *out;
  float *sink;
  CHECK(cudaMalloc(&out, 1 << 16));
  CHECK(cudaMalloc(&sink, 132 * 256 * 4));
  all<176>(out, sink, argc > 1);
  all<128>(out, sink, argc > 1);
  return 0;
}
