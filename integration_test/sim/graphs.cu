// Graphs and memory that host and device share, as a program compiled by nvcc uses them. Ends with 0 when every result is right.
#include "check.h"

#include <cooperative_groups.h>

__managed__ int total = 5;

__global__ void fill(int *x, int value) { x[threadIdx.x] = value + int(threadIdx.x); }
__global__ void add(int *x, const int *y) { x[threadIdx.x] += y[threadIdx.x]; }
__global__ void sum(const int *x) { atomicAdd(&total, x[threadIdx.x]); }

/// Two branches that are joined again; three launches add up.
static int captured() {
  cudaStream_t main, side;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreate(&main));
  CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  int *x, *y;
  CHECK(cudaMallocManaged(&x, 32 * sizeof(int)));
  CHECK(cudaMalloc(&y, 32 * sizeof(int)));
  for (int i = 0; i < 32; ++i)
    x[i] = 0;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(fork, main));
  CHECK(cudaStreamWaitEvent(side, fork));
  fill<<<1, 32, 0, side>>>(y, 1);
  CHECK(cudaEventRecord(join, side));
  CHECK(cudaStreamWaitEvent(main, join));
  add<<<1, 32, 0, main>>>(x, y);
  CHECK(cudaStreamEndCapture(main, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i)
    CHECK(cudaGraphLaunch(executable, main));
  CHECK(cudaStreamSynchronize(main));
  for (int i = 0; i < 32; ++i)
    if (x[i] != 3 * (i + 1))
      return 2;
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  return 0;
}

/// Nodes by hand, and a kernel whose arguments change in the executable graph.
static int built() {
  int *x;
  CHECK(cudaMalloc(&x, 32 * sizeof(int)));
  int value = 10, result[32];
  void *arguments[] = {&x, &value};
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void *>(fill);
  params.gridDim = 1;
  params.blockDim = 32;
  params.kernelParams = arguments;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaGraphNode_t kernel, copy;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &params));
  CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, result, x, sizeof result,
                                 cudaMemcpyDeviceToHost));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, nullptr));
  if (result[31] != 41)
    return 3;
  value = 100;
  CHECK(cudaGraphExecKernelNodeSetParams(executable, kernel, &params));
  CHECK(cudaGraphLaunch(executable, nullptr));
  return result[31] == 131 ? 0 : 4;
}

/// Pinned memory and a __managed__ variable.
static int shared() {
  int *pinned, *device;
  CHECK(cudaHostAlloc(&pinned, 32 * sizeof(int), cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&device, pinned, 0));
  fill<<<1, 32>>>(device, 0);
  CHECK(cudaDeviceSynchronize());
  if (pinned[7] != 7)
    return 5;
  total += 1;
  sum<<<1, 32>>>(device);
  CHECK(cudaDeviceSynchronize());
  return total == 6 + 31 * 16 ? 0 : 6;
}

int main() { return runAll({captured, built, shared}); }
