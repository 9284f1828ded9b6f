// Threads that work together: shuffles, clusters with distributed shared memory, a cooperative
// grid, asynchronous copies of single threads, tensor cores through wmma. Ends with 0 when all is
// right.
#include "check.h"

#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
#include <vector>

namespace cg = cooperative_groups;

/// Every CTA of a cluster adds up the sums of all.
__global__ void clusterSum(const int *in, int *out) {
  __shared__ int sum;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0)
    sum = 0;
  __syncthreads();
  int value = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_down_sync(0xFFFFFFFF, value, offset);
  if (threadIdx.x % 32 == 0)
    atomicAdd(&sum, value);
  cluster.sync();
  if (threadIdx.x == 0) {
    int total = 0;
    for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank)
      total += *cluster.map_shared_rank(&sum, rank);
    out[blockIdx.x] = total;
  }
  cluster.sync();
}

/// Each step needs what all CTAs wrote in the one before.
__global__ void gridSteps(int *data, int n, int steps) {
  cg::grid_group grid = cg::this_grid();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 0; step < steps; ++step) {
    int left = data[(i + n - 1) % n];
    grid.sync();
    data[i] = left + 1;
    grid.sync();
  }
}

/// One 16x16x16 product; the operands come through cp.async.
__global__ void product(const half *a, const half *b, float *d) {
  __shared__ __align__(16) half tiles[2][256];
  for (int t = 0; t < 2; ++t)
    __pipeline_memcpy_async(&tiles[t][threadIdx.x * 8], (t ? b : a) + threadIdx.x * 8, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, half, col_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  fill_fragment(fc, 0.5f);
  load_matrix_sync(fa, tiles[0], 16);
  load_matrix_sync(fb, tiles[1], 16);
  mma_sync(fc, fa, fb, fc);
  store_matrix_sync(d, fc, 16, mem_row_major);
}

static int runCluster() {
  const int blocks = 8, threads = 64;
  std::vector<int> in(blocks * threads), out(blocks);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<int>(i * 7 % 31);
  int *din, *dout;
  CHECK(cudaMalloc(&din, in.size() * 4));
  CHECK(cudaMalloc(&dout, blocks * 4));
  CHECK(cudaMemcpy(din, in.data(), in.size() * 4, cudaMemcpyHostToDevice));
  cudaLaunchConfig_t config{};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {4, 1, 1};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, clusterSum, static_cast<const int *>(din), dout));
  CHECK(cudaMemcpy(out.data(), dout, blocks * 4, cudaMemcpyDeviceToHost));
  for (int block = 0; block < blocks; ++block) {
    int sum = 0;
    for (int i = 0; i < 4 * threads; ++i)
      sum += in[block / 4 * 4 * threads + i];
    if (out[block] != sum)
      return 2;
  }
  return 0;
}

static int runGrid() {
  int n = 4 * 128, steps = 3;
  std::vector<int> data(n), expected(n);
  for (int i = 0; i < n; ++i)
    data[i] = i;
  int *device;
  CHECK(cudaMalloc(&device, n * 4));
  CHECK(cudaMemcpy(device, data.data(), n * 4, cudaMemcpyHostToDevice));
  void *arguments[] = {&device, &n, &steps};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(gridSteps), dim3(4), dim3(128),
                                    arguments, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(data.data(), device, n * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i)
    if (data[i] != (i + n - steps) % n + steps)
      return 3;
  return 0;
}

static int runGemm() {
  std::vector<half> a(256), b(256);
  std::vector<float> d(256);
  for (int i = 0; i < 256; ++i) {
    a[i] = __float2half(static_cast<float>(i % 7 - 3));
    b[i] = __float2half(static_cast<float>(i % 5) / 4);
  }
  half *da, *db;
  float *dd;
  CHECK(cudaMalloc(&da, 512));
  CHECK(cudaMalloc(&db, 512));
  CHECK(cudaMalloc(&dd, 1024));
  CHECK(cudaMemcpy(da, a.data(), 512, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(db, b.data(), 512, cudaMemcpyHostToDevice));
  product<<<1, 32>>>(da, db, dd);
  CHECK(cudaMemcpy(d.data(), dd, 1024, cudaMemcpyDeviceToHost));
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 16; ++column) {
      float sum = 0.5f;
      for (int k = 0; k < 16; ++k)
        sum += __half2float(a[row * 16 + k]) * __half2float(b[column * 16 + k]);
      if (d[row * 16 + column] != sum)
        return 4;
    }
  return 0;
}

int main() { return runAll({runCluster, runGrid, runGemm}); }
