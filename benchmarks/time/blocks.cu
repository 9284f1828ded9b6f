// Launches whose CTAs have to do with each other, or differ in work: sample.py predicts each whole and with the
// default sample. `blocks CASE BLOCKS N`.
#include <cstdio>
#include <cstdlib>
#include <cstring>

__device__ float work(int steps) {
  float x = threadIdx.x;
  for (int i = 0; i < steps; i++)
    x = x * 1.0001f + 0.5f;
  return x;
}

// Persistent CTAs take tiles from a counter.
__global__ void __launch_bounds__(128) queue(int *words, float *out, int n) {
  __shared__ int next;
  for (int tile = blockIdx.x; tile < n;) {
    out[tile % 4096 * 128 + threadIdx.x] = work(200);
    __syncthreads();
    if (threadIdx.x == 0)
      next = atomicAdd(words, 1) + gridDim.x;
    __syncthreads();
    tile = next;
  }
}

// Persistent CTAs take every so many tiles; `ragged`: tiles differ in work.
template <bool Ragged> __global__ void __launch_bounds__(128) tiles(int *words, float *out, int n) {
  for (int tile = blockIdx.x; tile < n; tile += gridDim.x)
    out[tile % 4096 * 128 + threadIdx.x] = work(Ragged ? 40 + tile * 37 % 320 : 200);
}

// A scan with a decoupled look-back: a CTA adds up what the CTAs before it have, as far as they have it.
__global__ void __launch_bounds__(128) scan(int *words, float *out, int n) {
  __shared__ int sum;
  float x = work(n);
  if (threadIdx.x == 0) {
    volatile int *states = words;
    int before = 0;
    for (int b = int(blockIdx.x) - 1; b >= 0;) {
      int state = states[b];
      if (!state)
        continue;
      before += state >> 2;
      b = state & 2 ? -1 : b - 1;
    }
    sum = before;
    __threadfence();
    states[blockIdx.x] = (before + 1) << 2 | 2;
  }
  __syncthreads();
  out[blockIdx.x % 4096 * 128 + threadIdx.x] = x + sum;
}

// The CTAs of a row of an attention with a causal mask: the later, the more. `words` is not used.
__global__ void __launch_bounds__(128) causal(int *words, float *out, int n) {
  out[blockIdx.x % 4096 * 128 + threadIdx.x] = work((blockIdx.x % 12 + 1) * n);
}

// The last CTA of all adds up what the others have stored.
__global__ void __launch_bounds__(128) last(int *words, float *out, int n) {
  __shared__ bool isLast;
  out[blockIdx.x % 4096 * 128 + threadIdx.x] = work(n);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    isLast = atomicAdd(words, 1) == gridDim.x - 1;
  __syncthreads();
  for (int i = 0; isLast && i < 4096; i++)
    out[threadIdx.x] += out[i * 128 + threadIdx.x];
}

int main(int argc, char **argv) {
  using Kernel = void (*)(int *, float *, int);
  const struct {
    const char *name;
    Kernel kernel;
  } kernels[] = {{"queue", queue}, {"tiles", tiles<false>}, {"ragged", tiles<true>},
                 {"scan", scan},   {"causal", causal},      {"last", last}};
  int *words;
  float *out;
  cudaMalloc(&words, 1 << 20);
  cudaMemset(words, 0, 1 << 20);
  cudaMalloc(&out, 4096 * 128 * 4);
  for (const auto &one : kernels)
    if (argc == 4 && !strcmp(argv[1], one.name))
      one.kernel<<<atoi(argv[2]), 128>>>(words, out, atoi(argv[3]));
  return cudaDeviceSynchronize();
}
