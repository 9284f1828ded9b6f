// A small tcgen05 kernel with the bugs of docs/guides/debug-a-kernel.md.
//
//   nvcc -lineinfo -gencode arch=compute_100a,code=compute_100a -DBUG=1 tcgen05_bugs.cu -o bugs
//   fp4-sim run -- ./bugs
//
// One CTA computes a tile of 128 x 64 from four k tiles of 16. Warp 0 copies, warp 1 multiplies, and
// warps 4 to 7 store the sums. Without a BUG the result is right and the strict check has no report.
//
//   BUG=1  the last commit is missing                       hangs
//   BUG=2  expect_tx announces more bytes than are copied   hangs
//   BUG=3  the first wait for an empty stage has parity 0   hangs
//   BUG=4  an arrival and no commit releases a stage        a race
#include <cstdint>
#include <cstdio>
#include <cuda_bf16.h>
#include <vector>

#ifndef BUG
#define BUG 0
#endif
constexpr int kTiles = 4, stages = 2, rowsA = 128, rowsB = 64, bytesA = rowsA * 32, bytesB = rowsB * 32;

__device__ uint32_t shared(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void init(uint64_t *barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(barrier)), "r"(arrivals));
}

__device__ void wait(uint64_t *barrier, int parity) {
  asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra AGAIN; }" ::"r"(
                   shared(barrier)),
               "r"(parity)
               : "memory");
}

__device__ void expect(uint64_t *barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(barrier)), "r"(bytes) : "memory");
}

__device__ void arrive(uint64_t *barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared(barrier)) : "memory");
}

__device__ void copy(void *to, const void *from, int bytes, uint64_t *barrier) {
  asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared(to)),
               "l"(from), "r"(bytes), "r"(shared(barrier))
               : "memory");
}

__device__ void commit(uint64_t *barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared(barrier))
               : "memory");
}

/// The descriptor of a tile without a swizzle: 8 rows of 16 bytes lie together.
__device__ uint64_t tile(const void *p) {
  return (shared(p) >> 4) | (128ull >> 4) << 16 | (256ull >> 4) << 32 | 1ull << 46;
}

__device__ void multiply(uint32_t d, const void *a, const void *b, bool add) {
  constexpr uint32_t f32 = 1 << 4, bf16 = 1 << 7 | 1 << 10, shape = rowsB / 8 << 17 | rowsA / 16 << 24;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(d),
               "l"(tile(a)), "l"(tile(b)), "r"(f32 | bf16 | shape), "r"(uint32_t(add)));
}

__global__ void __launch_bounds__(256) product(const char *a, const char *b, float *d) {
  __shared__ alignas(128) char tilesA[stages][bytesA], tilesB[stages][bytesB];
  __shared__ uint64_t full[stages], empty[stages], done;
  __shared__ uint32_t columns;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 2)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(shared(&columns)) : "memory");
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s)
      init(&full[s], 1), init(&empty[s], 1);
    init(&done, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (warp == 0 && lane == 0)
    for (int k = 0; k < kTiles; ++k) {
      const int s = k % stages;
      wait(&empty[s], k / stages % 2 ^ (BUG != 3));
      expect(&full[s], bytesA + bytesB + (BUG == 2 ? 128 : 0));
      copy(tilesA[s], a + k * bytesA, bytesA, &full[s]);
      copy(tilesB[s], b + k * bytesB, bytesB, &full[s]);
    }
  if (warp == 1 && lane == 0) {
    for (int k = 0; k < kTiles; ++k) {
      const int s = k % stages;
      wait(&full[s], k / stages % 2);
      asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
      multiply(columns, tilesA[s], tilesB[s], k > 0);
      BUG == 4 ? arrive(&empty[s]) : commit(&empty[s]);
    }
    if (BUG != 1)
      commit(&done);
  }
  if (warp >= 4) {
    wait(&done, 0);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    for (uint32_t n = 0; n < rowsB; ++n) {
      float sum;
      asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=f"(sum) : "r"(columns + (warp % 4 << 21) + n));
      asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
      d[(warp % 4 * 32 + lane) * rowsB + n] = sum;
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  }
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (warp == 2) {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(columns));
  }
}

int main() {
  std::vector<__nv_bfloat16> factors(kTiles * rowsA * 16);
  const std::vector<__nv_bfloat16> ones(kTiles * rowsB * 16, __float2bfloat16(1));
  for (size_t i = 0; i < factors.size(); ++i) // 1 in the first k tile, 2 in the second
    factors[i] = __float2bfloat16(1 + i / (rowsA * 16));
  std::vector<float> sums(rowsA * rowsB);
  char *a, *b;
  float *d;
  cudaMalloc(&a, kTiles * bytesA), cudaMalloc(&b, kTiles * bytesB), cudaMalloc(&d, sums.size() * 4);
  cudaMemcpy(a, factors.data(), kTiles * bytesA, cudaMemcpyHostToDevice);
  cudaMemcpy(b, ones.data(), kTiles * bytesB, cudaMemcpyHostToDevice);
  product<<<1, 256>>>(a, b, d);
  const cudaError_t error = cudaDeviceSynchronize();
  cudaMemcpy(sums.data(), d, sums.size() * 4, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (float sum : sums)
    wrong += sum != 16 * (1 + 2 + 3 + 4);
  std::printf("%s, %d of %zu wrong\n", cudaGetErrorString(error), wrong, sums.size());
  return error || wrong;
}
