// Features of CUDA's own libraries: tiles of a warp, pipelines, bulk copies with barriers,
// atomics between CTAs, sorting and scanning. Ends with 0 when all is right.
#include "check.h"

#include <algorithm>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <numeric>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <vector>

// Objects of libcu++ in shared memory are initialized by the block.
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

/// Tiles of 16 lanes reduce and scan what their neighbours have copied; odd values count
/// themselves.
__global__ void tiles(const int *in, int *out) {
  __shared__ int cells[64];
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
  cg::memcpy_async(block, cells, in + blockIdx.x * 64, sizeof(int) * 64);
  cg::wait(block);
  int value = cells[block.thread_rank() ^ 1];
  int sum = cg::reduce(tile, value, cg::plus<int>());
  int scan = cg::inclusive_scan(tile, value, cg::plus<int>());
  if (value & 1)
    sum += 1000 * static_cast<int>(cg::coalesced_threads().size());
  out[blockIdx.x * 64 + threadIdx.x] = 3 * sum + scan;
}

constexpr int kStages = 3;

/// A ring of cuda::pipeline, all threads producers and consumers.
__global__ void pipelined(const float *in, float *out, int chunks) {
  __shared__ float buffer[kStages][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  cg::thread_block block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  float sum = 0;
  for (int i = 0, fetch = 0; i < chunks; ++i) {
    for (; fetch < chunks && fetch < i + kStages; ++fetch) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, buffer[fetch % kStages], in + fetch * 128,
                         cuda::aligned_size_t<16>(512), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += buffer[i % kStages][127 - threadIdx.x];
    pipeline.consumer_release();
  }
  out[threadIdx.x] = sum;
}

using Barrier = cuda::barrier<cuda::thread_scope_block>;

/// In by a bulk copy that completes a barrier, out by a bulk copy in a group.
__global__ void bulk(const int *in, int *out) {
  __shared__ alignas(16) int data[256];
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  }
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0)
    cuda::memcpy_async(data, in + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof(data)),
                       barrier);
  token = barrier.arrive();
  barrier.wait(std::move(token));
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    data[i] += 1;
  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared,
                             out + blockIdx.x * 256, data, sizeof(data));
    cuda::ptx::cp_async_bulk_commit_group();
    cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
  }
}

__device__ cuda::atomic<unsigned, cuda::thread_scope_device> published;
__device__ int message;

/// One block publishes a message, the other waits for it.
__global__ void handOver(int *out) {
  if (threadIdx.x != 0)
    return;
  if (blockIdx.x == 0) {
    message = 42;
    published.store(1, cuda::std::memory_order_release);
    return;
  }
  while (published.load(cuda::std::memory_order_acquire) != 1)
    ;
  *out = message;
}

static int runTiles() {
  constexpr int n = 512;
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i)
    in[i] = i * 37 % 101;
  int *device;
  CHECK(cudaMalloc(&device, 2 * n * sizeof(int)));
  CHECK(cudaMemcpy(device, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  tiles<<<n / 64, 64>>>(device, device + n);
  CHECK(cudaMemcpy(out.data(), device + n, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) {
    int sum = 0, scan = 0, odd = 0;
    for (int j = i / 16 * 16; j < i / 16 * 16 + 16; ++j) {
      sum += in[j ^ 1];
      scan += j <= i ? in[j ^ 1] : 0;
    }
    for (int j = i / 32 * 32; j < i / 32 * 32 + 32; ++j)
      odd += in[j ^ 1] & 1;
    if (out[i] != 3 * (sum + (in[i ^ 1] & 1) * 1000 * odd) + scan)
      return 2;
  }
  return 0;
}

static int runPipelined() {
  constexpr int chunks = 7;
  std::vector<float> in(chunks * 128), out(128);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<float>(i % 13) / 2;
  float *device;
  CHECK(cudaMalloc(&device, (chunks + 1) * 512));
  CHECK(cudaMemcpy(device, in.data(), chunks * 512, cudaMemcpyHostToDevice));
  pipelined<<<1, 128>>>(device, device + chunks * 128, chunks);
  CHECK(cudaMemcpy(out.data(), device + chunks * 128, 512, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 128; ++i) {
    float sum = 0;
    for (int chunk = 0; chunk < chunks; ++chunk)
      sum += in[chunk * 128 + 127 - i];
    if (out[i] != sum)
      return 2;
  }
  return 0;
}

static int runBulk() {
  std::vector<int> in(512), out(512);
  std::iota(in.begin(), in.end(), 7);
  int *device;
  CHECK(cudaMalloc(&device, 4096));
  CHECK(cudaMemcpy(device, in.data(), 2048, cudaMemcpyHostToDevice));
  bulk<<<2, 128>>>(device, device + 512);
  CHECK(cudaMemcpy(out.data(), device + 512, 2048, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < in.size(); ++i)
    if (out[i] != in[i] + 1)
      return 2;
  return 0;
}

static int runHandOver() {
  int *device, out = 0;
  CHECK(cudaMalloc(&device, sizeof(int)));
  handOver<<<2, 32>>>(device);
  CHECK(cudaMemcpy(&out, device, sizeof(int), cudaMemcpyDeviceToHost));
  return out == 42 ? 0 : 2;
}

static int runAlgorithms() {
  std::vector<int> values(20000);
  unsigned state = 1;
  for (int &value : values)
    value = static_cast<int>((state = state * 1664525u + 1013904223u) >> 16);
  thrust::device_vector<int> device(values.begin(), values.end()), sums(values.size());
  if (thrust::reduce(device.begin(), device.end()) !=
      std::accumulate(values.begin(), values.end(), 0))
    return 2;
  thrust::inclusive_scan(device.begin(), device.end(), sums.begin());
  thrust::sort(device.begin(), device.end());
  std::vector<int> got(values.size()), want(values.size());
  std::partial_sum(values.begin(), values.end(), want.begin());
  thrust::copy(sums.begin(), sums.end(), got.begin());
  if (got != want)
    return 3;
  std::sort(values.begin(), values.end());
  thrust::copy(device.begin(), device.end(), got.begin());
  return got == values ? 0 : 4;
}

int main() { return runAll({runTiles, runPipelined, runBulk, runHandOver, runAlgorithms}); }
