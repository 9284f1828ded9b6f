// The rate at which L2 delivers while it also takes stores: bulk copies of 16 KiB in a ring of
// loads, and stores of one other thread beside it. On an H200, whose L2 holds the 16 MiB that are
// read:
//   nvcc -O2 -std=c++17 -arch=sm_90a stores_beside_loads.cu && ./a.out
// WriteHold of TimingRates.def is what the stores add to the time of the loads alone, over the time
// that as many stores to device memory take alone (notebook/time.md).
#include "runtime_timing.h"

#include <algorithm>
#include <cstdint>
#include <vector>

constexpr unsigned PIECE = 16384, LOADS = 8, STORES = 4;
__device__ uint32_t s32(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ void wait(uint64_t *bar, uint32_t parity) {
  asm volatile("{\n .reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @!p "
               "bra W;\n}" ::"r"(s32(bar)),
               "r"(parity)
               : "memory");
}
// loads and stores: pieces of each SM. shared: how many of them read the same pieces;
// 0: none. Spans are in pieces.
__global__ __launch_bounds__(64) void mix(const char *in, char *out, unsigned loads,
                                          unsigned stores, unsigned shared, unsigned inSpan,
                                          unsigned outSpan, unsigned rows) {
  extern __shared__ __align__(128) char smem[];
  __shared__ uint64_t bars[LOADS];
  const unsigned sm = blockIdx.x, sms = gridDim.x;
  if (threadIdx.x == 0)
    for (unsigned i = 0; i < LOADS; ++i)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(s32(&bars[i])));
  for (unsigned i = threadIdx.x; i < STORES * PIECE / 16; i += blockDim.x)
    ((uint4 *)(smem + LOADS * PIECE))[i] = uint4{i, sm, 3, 4};
  asm volatile("fence.mbarrier_init.release.cluster;\n fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned i = 0; i < loads + LOADS; ++i) {
      const unsigned stage = i % LOADS;
      if (i >= LOADS)
        wait(&bars[stage], (i / LOADS - 1) & 1);
      if (i < loads) {
        const uint64_t piece =
            (shared ? i + (sm / shared) * 37ull : (uint64_t)i * sms + sm) % inSpan;
        asm volatile(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(s32(&bars[stage])),
            "r"(PIECE)
            : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                     "[%1], %2, [%3];" ::"r"(s32(smem + stage * PIECE)),
                     "l"(in + piece * PIECE), "r"(PIECE), "r"(s32(&bars[stage]))
                     : "memory");
      }
    }
  } else if (threadIdx.x == 32) {
    for (unsigned i = 0; i < stores; ++i) {
      const uint64_t piece = ((uint64_t)i * sms + sm) % outSpan;
      for (unsigned r = 0; r < PIECE / rows; ++r)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                         out + piece * PIECE + r * rows),
                     "r"(s32(smem + (LOADS + i % STORES) * PIECE + r * rows)), "r"(rows)
                     : "memory");
      asm volatile("cp.async.bulk.commit_group;\n cp.async.bulk.wait_group.read 3;" ::: "memory");
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
struct Bench {
  Bench() {
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    for (char **memory : {&in, &out}) {
      CHECK(cudaMalloc(memory, 2ull << 30));
      CHECK(cudaMemset(*memory, 1, 2ull << 30));
    }
    CHECK(cudaFuncSetAttribute(mix, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
  }

  /// Prints the median of five launches, less about 4 us of a launch between two events.
  void run(const char *what, unsigned loads, unsigned stores, unsigned shared, unsigned inSpan,
           unsigned outSpan, unsigned rows) {
    std::vector<float> times;
    for (int i = 0; i < 7; ++i) {
      CHECK(cudaEventRecord(begin));
      mix<<<sms, 64, bytes>>>(in, out, loads, stores, shared, inSpan, outSpan, rows);
      CHECK(cudaEventRecord(end));
      CHECK(cudaEventSynchronize(end));
      float ms;
      CHECK(cudaEventElapsedTime(&ms, begin, end));
      if (i > 1)
        times.push_back(ms * 1e3f);
    }
    std::sort(times.begin(), times.end());
    const double us = times[times.size() / 2] - 4;
    const double read = double(loads) * PIECE * sms, written = double(stores) * PIECE * sms;
    printf("%-44s loads %5u stores %5u: %8.1f us, read %5.2f TB/s, written %5.2f TB/s\n", what,
           loads, stores, us, read / us / 1e6, written / us / 1e6);
  }

  static constexpr unsigned bytes = (LOADS + STORES) * PIECE;
  int sms = 0;
  char *in = nullptr, *out = nullptr;
  cudaEvent_t begin, end;
};

int main() {
  const unsigned MB = (1u << 20) / PIECE;
  Bench bench;
  char what[64];
  for (unsigned shared : {0u, 8u}) {
    const char *name = shared ? "reads of 8 SMs alike, 16 MiB" : "reads apart, 16 MiB";
    bench.run(name, 2000, 0, shared, 16 * MB, MB, PIECE);
    for (unsigned out : {8u, 1024u})
      for (unsigned part : {250u, 500u, 1000u, 2000u}) {
        snprintf(what, sizeof what, "%s; writes %u MiB", name, out);
        bench.run(what, 2000, part, shared, 16 * MB, out * MB, PIECE);
      }
  }
  for (unsigned out : {8u, 16u, 1024u})
    for (unsigned rows : {16384u, 2048u, 128u}) {
      snprintf(what, sizeof what, "writes alone %u MiB, pieces of %u", out, rows);
      bench.run(what, 0, rows < 1024 ? 500 : 2000, 0, MB, out * MB, rows);
    }
  bench.run("reads apart from memory", 2000, 0, 0, 1536 * MB, MB, PIECE);
  bench.run("reads from memory, writes to memory", 1000, 1000, 0, 1536 * MB, 1536 * MB, PIECE);
}
