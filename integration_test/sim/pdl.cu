// Programmatic dependent launch: three kernels in a row, of which each may begin before the one
// before it has ended. Arguments: what is wrong (none, unwaited, middle, early, overwritten), and
// with "graph" behind it the launches are captured and replayed.
#include <cstdio>
#include <cstring>

enum Wrong { None, Unwaited, Middle, Early, Overwritten };

__global__ void fill(float *x) {
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
  x[threadIdx.x] = float(threadIdx.x + 1);
}

__global__ void twice(float *y, Wrong wrong) {
  if (wrong != Middle)
    cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
  y[threadIdx.x] = 2;
}

__global__ void multiply(const float *x, float *y, float *z, Wrong wrong) {
  if (wrong == Overwritten)
    y[threadIdx.x] = 2;
  const float early = wrong == Early ? y[threadIdx.x] : 0;
  if (wrong != Unwaited)
    cudaGridDependencySynchronize();
  z[threadIdx.x] = x[threadIdx.x] * y[threadIdx.x] + 0 * early;
}

template <typename... T> void launch(cudaStream_t stream, void (*kernel)(T...), T... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = 64;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, arguments...);
}

int main(int argc, char **argv) {
  Wrong wrong = None;
  const char *names[] = {"none", "unwaited", "middle", "early", "overwritten"};
  for (int i = 0; argc > 1 && i < 5; ++i)
    if (std::strcmp(argv[1], names[i]) == 0)
      wrong = Wrong(i);
  float *x, *y, *z, result[64];
  cudaMalloc(&x, sizeof(result));
  cudaMalloc(&y, sizeof(result));
  cudaMalloc(&z, sizeof(result));
  cudaMemset(x, 0, sizeof(result));
  cudaMemset(y, 0, sizeof(result));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  const bool graph = argc > 2;
  if (graph)
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  launch(stream, fill, x);
  launch(stream, twice, y, wrong);
  launch(stream, multiply, (const float *)x, y, z, wrong);
  if (graph) {
    cudaGraph_t captured;
    cudaGraphExec_t executable;
    cudaStreamEndCapture(stream, &captured);
    cudaGraphInstantiate(&executable, captured, 0);
    cudaGraphLaunch(executable, stream);
  }
  cudaStreamSynchronize(stream);
  cudaMemcpy(result, z, sizeof(result), cudaMemcpyDeviceToHost);
  int right = 0;
  for (int i = 0; i < 64; ++i)
    right += result[i] == 2.f * float(i + 1);
  std::printf("%d of 64 are right\n", right);
}
