// The features of a first CUDA program: memory, symbols, printf, streams, events, device functions,
// function pointers, virtual functions, a dense switch, local arrays. Ends with 0 when every result
// is right.
#include "check.h"

#include <vector>

__device__ float scaleBy = 1;
__constant__ int offsets[4];

__global__ void scale(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[i] * scaleBy + offsets[i & 3];
  if (i == 5)
    printf("thread %d has %.2f %s\n", i, y[i], "here");
}

struct Shape {
  __device__ virtual int area() const = 0;
};
struct Square : Shape {
  int side;
  __device__ explicit Square(int side) : side(side) {}
  __device__ int area() const override { return side * side; }
};
struct Rectangle : Shape {
  int a, b;
  __device__ Rectangle(int a, int b) : a(a), b(b) {}
  __device__ int area() const override { return a * b; }
};

__device__ __noinline__ int collatz(int n) {
  int steps = 0;
  for (; n != 1; ++steps)
    n = n % 2 ? 3 * n + 1 : n / 2;
  return steps;
}
__device__ __noinline__ int square(int n) { return n * n; }

__device__ int pick(int i) {
  switch (i) {
  case 0:
    return 11;
  case 1:
    return 23;
  case 2:
    return 5;
  case 3:
    return 77;
  case 4:
    return 2;
  case 5:
    return 900;
  case 6:
    return 31;
  case 7:
    return 8;
  default:
    return -1;
  }
}

__global__ void functions(int *out, int index) {
  int i = threadIdx.x;
  int (*table[2])(int) = {collatz, square};
  Square s(i);
  Rectangle r(i, 3);
  const Shape *shape = i % 2 ? static_cast<const Shape *>(&s) : &r;
  int local[8];
  for (int k = 0; k < 8; ++k)
    local[k] = pick((i + k) % 9);
  out[i] = table[(i + index) % 2](i + 1) + 1000 * shape->area() + 1000000 * local[index];
}

static int hostCollatz(int n) {
  int steps = 0;
  for (; n != 1; ++steps)
    n = n % 2 ? 3 * n + 1 : n / 2;
  return steps;
}

static int runScale() {
  const int n = 1000;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i)
    x[i] = i;
  float *dx, *dy, three = 3;
  int host[4] = {1, 2, 3, 4};
  cudaStream_t stream;
  cudaEvent_t begin, end;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaMalloc(&dx, n * sizeof(float)));
  CHECK(cudaMallocAsync(&dy, n * sizeof(float), stream));
  CHECK(cudaMemcpyToSymbol(scaleBy, &three, sizeof(three)));
  CHECK(cudaMemcpyToSymbol(offsets, host, sizeof(host)));
  CHECK(cudaMemcpyAsync(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream));
  CHECK(cudaEventRecord(begin, stream));
  scale<<<(n + 127) / 128, 128, 0, stream>>>(dx, dy, n);
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaMemcpyAsync(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  for (int i = 0; i < n; ++i)
    if (y[i] != 3 * x[i] + host[i & 3])
      return 2;
  CHECK(cudaFree(dx));
  CHECK(cudaFreeAsync(dy, stream));
  return milliseconds >= 0 ? 0 : 3;
}

static int runFunctions() {
  int *out, values[64], index = 3;
  CHECK(cudaMalloc(&out, sizeof(values)));
  functions<<<1, 64>>>(out, index);
  CHECK(cudaMemcpy(values, out, sizeof(values), cudaMemcpyDeviceToHost));
  const int picked[] = {11, 23, 5, 77, 2, 900, 31, 8, -1};
  for (int i = 0; i < 64; ++i) {
    int called = (i + index) % 2 ? (i + 1) * (i + 1) : hostCollatz(i + 1);
    int area = i % 2 ? i * i : 3 * i;
    if (values[i] != called + 1000 * area + 1000000 * picked[(i + index) % 9])
      return 4;
  }
  return 0;
}

int main() { return runAll({runScale, runFunctions}); }
