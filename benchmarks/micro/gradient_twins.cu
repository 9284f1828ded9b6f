// Times kernels of the gradient of RMSNorm, 4096 x 2048 bf16, by how threads have rows.
//   nvcc -O2 -std=c++17 -arch=sm_90a gradient_twins.cu -o gradient_twins && ./gradient_twins [ROWS]
// A line of JSON has microseconds, the median of rounds by turns with a cold L2 behind a fill, and
// behind reads of as many bytes. All kernels but those without a sum have the same results, up to
// the order of the sum.
#include "runtime_timing.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <functional>
#include <string>
#include <vector>

static constexpr int kColumns = 2048, kRounds = 30;
static constexpr size_t kFlush = 256 << 20;

enum Hint { Plain, Last, First, Stream };
/// Threads of a row, pieces of 16 bytes of each, rows of a CTA beside each other and in turn.
struct Shape {
  int threads, pieces, teams, turns;
  bool neighbours; ///< lanes have pieces that follow each other
  Hint load, store;
  bool hasSum;
};

template <Hint hint> __device__ uint4 load(const void *from) {
  uint4 v;
  if constexpr (hint == Plain)
    asm volatile("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
  else if constexpr (hint == Stream)
    asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
  else {
    uint64_t policy;
    if constexpr (hint == Last)
      asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    else
      asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.nc.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from), "l"(policy));
  }
  return v;
}
template <Hint hint> __device__ void store(void *to, uint4 v) {
  if constexpr (hint == Plain)
    *static_cast<uint4 *>(to) = v;
  else if constexpr (hint == Stream)
    __stcs(static_cast<uint4 *>(to), v);
  else {
    uint64_t policy;
    if constexpr (hint == Last)
      asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    else
      asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("st.global.L2::cache_hint.v4.b32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(to), "r"(v.x),
                 "r"(v.y), "r"(v.z), "r"(v.w), "l"(policy)
                 : "memory");
  }
}

__device__ float low(uint32_t word) { return __uint_as_float(word << 16); }
__device__ float high(uint32_t word) { return __uint_as_float(word & 0xffff0000u); }
__device__ uint32_t pairOf(float a, float b) {
  uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(b), "f"(a));
  return word;
}

template <int kThreads, int kPieces, int kTeams, int kTurns, bool kNeighbours, Hint kLoad,
          Hint kStore, bool kSum, int kCtas>
__global__ void __launch_bounds__(kThreads *kTeams, kCtas)
    gradient(unsigned rows, const char *dy, const char *x, const char *w, const float *rstd,
             char *dx) {
  constexpr int kWarps = kThreads / 32;
  __shared__ float sums[2][kTeams][kWarps];
  unsigned thread = threadIdx.x % kThreads, team = threadIdx.x / kThreads;
  unsigned at = kNeighbours ? thread * 16 : thread * 16 * kPieces;
  constexpr unsigned kStep = kNeighbours ? kThreads * 16 : 16;
  uint4 weights[kPieces], one[kPieces], two[kPieces];
  unsigned row = (blockIdx.x * kTeams + team);
  auto fetch = [&](unsigned from) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      one[i] = load<kLoad>(dy + size_t(from) * kColumns * 2 + at + i * kStep);
      two[i] = load<kLoad>(x + size_t(from) * kColumns * 2 + at + i * kStep);
    }
  };
  fetch(row);
#pragma unroll
  for (int i = 0; i < kPieces; ++i)
    weights[i] = load<Plain>(w + at + i * kStep);
  float factor = rstd[row];
#pragma unroll 1
  for (int turn = 0; turn < kTurns; ++turn) {
    float g[kPieces][8], n[kPieces][8], sum = 0;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const uint32_t *a = &one[i].x, *b = &two[i].x, *c = &weights[i].x;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        g[i][2 * k] = low(a[k]) * low(c[k]), g[i][2 * k + 1] = high(a[k]) * high(c[k]);
        n[i][2 * k] = low(b[k]) * factor, n[i][2 * k + 1] = high(b[k]) * factor;
        sum += g[i][2 * k] * n[i][2 * k] + g[i][2 * k + 1] * n[i][2 * k + 1];
      }
    }
    float mine = factor;
    unsigned here = row;
    if (turn + 1 < kTurns) {
      row += gridDim.x * kTeams;
      if (row < rows)
        fetch(row), factor = rstd[row];
    }
    if constexpr (kSum) {
      for (int lane = 16; lane; lane /= 2)
        sum += __shfl_xor_sync(~0u, sum, lane);
      if (thread % 32 == 0)
        sums[turn % 2][team][thread / 32] = sum;
      __syncthreads();
      sum = 0;
#pragma unroll
      for (int i = 0; i < kWarps; ++i)
        sum += sums[turn % 2][team][i];
    }
    sum *= 1.f / kColumns;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      uint4 v;
      uint32_t *to = &v.x;
#pragma unroll
      for (int k = 0; k < 4; ++k)
        to[k] = pairOf((g[i][2 * k] - n[i][2 * k] * sum) * mine,
                       (g[i][2 * k + 1] - n[i][2 * k + 1] * sum) * mine);
      store<kStore>(dx + size_t(here) * kColumns * 2 + at + i * kStep, v);
    }
    if (kTurns > 1 && row >= rows)
      return;
  }
}

__global__ void fill(uint4 *to, size_t count) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
       i += size_t(gridDim.x) * blockDim.x)
    to[i] = {unsigned(i * 2654435761u) & 0x3fff3fffu, 0x3f803f80, unsigned(i) & 0x3f7f3f7fu,
             0x3f003f00};
}
__global__ void readAll(const uint4 *from, size_t count, unsigned *to) {
  unsigned sum = 0;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
       i += size_t(gridDim.x) * blockDim.x)
    sum ^= from[i].x ^ from[i].y;
  if (sum == 12345)
    *to = sum;
}
/// A copy of `count` pieces, four of a thread.
__global__ void copy(const uint4 *from, uint4 *to, size_t count) {
  size_t first = blockIdx.x * size_t(blockDim.x) * 4 + threadIdx.x;
  uint4 v[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v[i] = load<Plain>(from + first + i * blockDim.x);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    to[first + i * blockDim.x] = v[i];
}

struct Timer {
  cudaStream_t stream;
  cudaEvent_t begin, end;

  Timer() {
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
  }
  template <typename Work> float microsecondsOf(Work work) {
    float milliseconds;
    CHECK(cudaEventRecord(begin, stream));
    work();
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    return milliseconds * 1e3f;
  }
};

struct Kernel {
  std::string name;
  std::function<void(cudaStream_t)> launch;
  std::vector<float> times, clean;
};
static std::vector<Kernel> kernels;
static unsigned rows = 4096;
static char *dy, *x, *w, *dx;
static float *rstd;

template <int kThreads, int kPieces, int kTeams, int kTurns, bool kNeighbours, Hint kLoad,
          Hint kStore, bool kSum, int kCtas>
static void add() {
  static const char *hints[] = {"", "last", "first", "stream"};
  char name[200];
  int resident = 0;
  auto *kernel =
      gradient<kThreads, kPieces, kTeams, kTurns, kNeighbours, kLoad, kStore, kSum, kCtas>;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads * kTeams, 0));
  snprintf(name, sizeof name, "%d threads x %d, %d rows of a CTA, %d in turn, %s%s%s%s%s%s, %d CTAs",
           kThreads, kPieces, kTeams, kTurns, kNeighbours ? "neighbours" : "runs",
           *hints[kLoad] ? ", loads " : "", hints[kLoad], *hints[kStore] ? ", stores " : "",
           hints[kStore], kSum ? "" : ", no sum", resident);
  unsigned ctas = rows / kTeams;
  if (kTurns > 64)
    ctas = std::min(ctas, 132u * resident);
  else
    ctas /= kTurns;
  kernels.push_back({name, [=](cudaStream_t stream) {
                       kernel<<<ctas, kThreads * kTeams, 0, stream>>>(rows, dy, x, w, rstd, dx);
                     }});
}
template <bool kNeighbours, Hint kLoad, Hint kStore, bool kSum> static void addShapes() {
  add<128, 2, 1, 1, kNeighbours, kLoad, kStore, kSum, 1>();
  add<256, 1, 1, 1, kNeighbours, kLoad, kStore, kSum, 1>();
}
static void addAll() {
  addShapes<false, Plain, Plain, true>();
  addShapes<true, Plain, Plain, true>();
  addShapes<true, Last, Plain, true>();
  addShapes<true, First, Plain, true>();
  addShapes<true, Stream, Plain, true>();
  addShapes<true, Plain, Stream, true>();
  addShapes<true, Plain, First, true>();
  addShapes<true, Last, First, true>();
  addShapes<true, First, First, true>();
  addShapes<true, Plain, Last, true>();
  addShapes<true, First, Last, true>();
  addShapes<true, Plain, Plain, false>();
  addShapes<false, Plain, Plain, false>();
  add<128, 2, 1, 1, true, Plain, Plain, true, 8>();
  add<128, 2, 1, 1, true, Plain, Plain, true, 12>();
  add<128, 2, 1, 1, true, Plain, Plain, true, 16>();
  add<256, 1, 1, 1, true, Plain, Plain, true, 6>();
  add<256, 1, 1, 1, true, Plain, Plain, true, 8>();
  add<64, 4, 1, 1, true, Plain, Plain, true, 1>();
  add<64, 4, 1, 1, true, Plain, Plain, true, 12>();
  add<64, 4, 2, 1, true, Plain, Plain, true, 1>();
  add<32, 8, 1, 1, true, Plain, Plain, true, 1>();
  add<32, 8, 4, 1, true, Plain, Plain, true, 1>();
  add<128, 2, 2, 1, true, Plain, Plain, true, 1>();
  add<128, 2, 4, 1, true, Plain, Plain, true, 1>();
  add<256, 1, 2, 1, true, Plain, Plain, true, 1>();
  add<256, 1, 4, 1, true, Plain, Plain, true, 1>();
  add<128, 2, 1, 2, true, Plain, Plain, true, 1>();
  add<128, 2, 1, 4, true, Plain, Plain, true, 1>();
  add<256, 1, 1, 2, true, Plain, Plain, true, 1>();
  add<256, 1, 1, 4, true, Plain, Plain, true, 1>();
  add<128, 2, 1, 100, true, Plain, Plain, true, 1>();
  add<128, 2, 1, 100, true, Plain, Plain, true, 8>();
  add<256, 1, 1, 100, true, Plain, Plain, true, 1>();
  add<256, 1, 1, 100, true, Plain, Plain, true, 4>();
  add<256, 1, 1, 100, true, First, First, true, 4>();
  add<256, 1, 1, 100, true, Last, First, true, 4>();
}

int main(int count, char **arguments) {
  if (count > 1)
    rows = unsigned(atoi(arguments[1]));
  size_t bytes = size_t(rows) * kColumns * 2;
  char *flush;
  CHECK(cudaMalloc(&flush, kFlush));
  for (char **tensor : {&dy, &x, &dx})
    CHECK(cudaMalloc(tensor, bytes));
  CHECK(cudaMalloc(&w, kColumns * 2));
  CHECK(cudaMalloc(&rstd, rows * 4));
  for (char *tensor : {dy, x})
    fill<<<1024, 256>>>(reinterpret_cast<uint4 *>(tensor), bytes / 16);
  fill<<<1, 256>>>(reinterpret_cast<uint4 *>(w), kColumns * 2 / 16);
  CHECK(cudaMemset(rstd, 0x3f, rows * 4));
  Timer timer;
  addAll();
  size_t copied = bytes * 3 / 2 / 16; // pieces read, and as many written
  char *from, *to;
  CHECK(cudaMalloc(&from, copied * 16));
  CHECK(cudaMalloc(&to, copied * 16));
  kernels.push_back({"copy of the same bytes", [=](cudaStream_t stream) {
                       copy<<<copied / 1024, 256, 0, stream>>>(reinterpret_cast<uint4 *>(from),
                                                               reinterpret_cast<uint4 *>(to), copied);
                     }});
  kernels.push_back({"cudaMemcpyAsync of the same bytes", [=](cudaStream_t stream) {
                       cudaMemcpyAsync(to, from, copied * 16, cudaMemcpyDeviceToDevice, stream);
                     }});
  auto *wide = reinterpret_cast<uint4 *>(flush);
  for (int round = -2; round < kRounds; ++round)
    for (size_t i = 0; i < kernels.size(); ++i) {
      Kernel &kernel = kernels[(i + size_t(round + 2) * 7) % kernels.size()];
      CHECK(cudaMemsetAsync(flush, round & 255, kFlush, timer.stream));
      float us = timer.microsecondsOf([&] { kernel.launch(timer.stream); });
      readAll<<<1024, 256, 0, timer.stream>>>(wide, kFlush / 16, reinterpret_cast<unsigned *>(rstd));
      float clean = timer.microsecondsOf([&] { kernel.launch(timer.stream); });
      if (round >= 0)
        kernel.times.push_back(us), kernel.clean.push_back(clean);
    }
  for (Kernel &kernel : kernels) {
    for (auto *times : {&kernel.times, &kernel.clean})
      std::sort(times->begin(), times->end());
    printf("{\"rows\": %u, \"kernel\": \"%s\", \"us\": %.2f, \"clean\": %.2f}\n", rows,
           kernel.name.c_str(), kernel.times[kRounds / 2], kernel.clean[kRounds / 2]);
  }
}
