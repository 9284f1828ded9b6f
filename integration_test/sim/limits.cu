// Limits of one GPU without MPS on a small host: each line must be as expected.
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void count(int *values) { values[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

static int wrong = 0;
static void expect(const char *what, bool holds) {
  if (!holds)
    std::printf("not as expected: %s\n", what);
  wrong += !holds;
}

/// Adds 1 to `bytes` bytes of `value`, and compares the sum.
static bool counts(int *values, int value) {
  int last = 0;
  count<<<4, 256>>>(values);
  return cudaMemcpy(&last, values + 1023, sizeof last, cudaMemcpyDeviceToHost) == cudaSuccess &&
         last == value + 1;
}

int main() {
  constexpr size_t large = size_t(64) << 30, middle = large / 8 + 4;
  int *values = nullptr;
  expect("64 GiB are allocated", cudaMalloc(&values, large) == cudaSuccess);
  expect("they are fresh", counts(values + middle, int(0xCDCDCDCD)));
  expect("they are zeroed", cudaMemset(values + 1, 0, large - 4) == cudaSuccess);
  expect("they are zeros", counts(values + middle, 0) && counts(values + 1, 0));
  expect("a part is filled", cudaMemset(values + middle, 1, 4096) == cudaSuccess);
  expect("the part is filled", counts(values + middle, 0x01010101));
  expect("they are freed", cudaFree(values) == cudaSuccess);
  expect("an exabyte is too much", cudaMalloc(&values, size_t(1) << 60) == cudaErrorMemoryAllocation);
  cudaGetLastError();
  cudaMalloc(&values, 4096);
  expect("there is no second device to copy from",
         cudaMemcpyPeer(values, 0, values, 1, 4) == cudaErrorInvalidDevice);
  CUcontext context;
  CUexecAffinityParam affinity = {};
  affinity.param.smCount.val = 8;
  CUctxCreateParams parameters = {};
  parameters.execAffinityParams = &affinity;
  parameters.numExecAffinityParams = 1;
  expect("there is no MPS",
         cuCtxCreate(&context, &parameters, 0, 0) == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
  const pid_t child = fork();
  if (!child)
    _exit(cudaMemset(values, 0, 4096) == cudaSuccess && counts(values, 0) ? 7 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  expect("a process of the program has memory of its own", WEXITSTATUS(status) == 7);
  std::puts(wrong ? "wrong" : "all as expected");
  return wrong;
}
