// Twins of norms of few rows of 7168 bf16: a CTA has a row, and each of its 896 threads 16 bytes.
#include <cstdint>
#include <cuda_runtime.h>

// `sums`: -2 nothing, 0 loads and stores, 1 or 2 sums of the row, one behind the other.
template <int sums, bool residual, bool codes>
__global__ void __launch_bounds__(896) twin(const uint4 *x, const uint4 *r, const uint4 *w, uint4 *y, uint4 *h) {
  asm volatile("griddepcontrol.launch_dependents;");
  if (sums < 0) {
    asm volatile("griddepcontrol.wait;");
    return;
  }
  uint4 weight = w[threadIdx.x];
  asm volatile("griddepcontrol.wait;");
  const int at = blockIdx.x * 896 + threadIdx.x, lane = threadIdx.x % 32;
  uint4 v = x[at];
  if (residual) {
    const uint4 u = r[at];
    v = make_uint4(v.x ^ u.x, v.y ^ u.y, v.z ^ u.z, v.w ^ u.w);
    h[at] = v;
  }
  float sum = 0;
  __shared__ float parts[2][28];
  for (int k = 0; k < sums; ++k) {
    float f = __uint_as_float((v.x ^ v.y ^ v.z ^ v.w) & 0x3fffffff) + sum;
    for (int m = 16; m; m >>= 1)
      f += __shfl_xor_sync(~0u, f, m);
    if (lane == 0)
      parts[k][threadIdx.x / 32] = f;
    __syncthreads();
    f = lane < 28 ? parts[k][lane] : 0;
    for (int m = 16; m; m >>= 1)
      f += __shfl_xor_sync(~0u, f, m);
    sum = f;
  }
  v = make_uint4(v.x ^ weight.x ^ __float_as_uint(sum), v.y ^ weight.y, v.z ^ weight.z, v.w ^ weight.w);
  if (!codes) {
    y[at] = v;
    return;
  }
  reinterpret_cast<uint32_t *>(y)[at] = v.x ^ v.y ^ v.z ^ v.w;
  if (threadIdx.x % 2 == 0) // a scale for 16 elements, behind the codes
    reinterpret_cast<uint8_t *>(y)[gridDim.x * 896 * 4 + at / 2] = v.x;
}

template <int sums> static auto *choose(int residual, int codes) {
  return residual ? (codes ? twin<sums, true, true> : twin<sums, true, false>)
                  : (codes ? twin<sums, false, true> : twin<sums, false, false>);
}

extern "C" int run_twin(int sums, int residual, int codes, int rows, const uint4 *x, const uint4 *r, const uint4 *w,
                        uint4 *y, uint4 *h, cudaStream_t stream) {
  auto *kernel = sums < 0    ? choose<-2>(residual, codes)
                 : sums == 0 ? choose<0>(residual, codes)
                 : sums == 1 ? choose<1>(residual, codes)
                             : choose<2>(residual, codes);
  cudaLaunchAttribute overlaps = {};
  overlaps.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlaps.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch = {};
  launch.gridDim = dim3(rows);
  launch.blockDim = dim3(896);
  launch.stream = stream;
  launch.attrs = &overlaps;
  launch.numAttrs = 1;
  return cudaLaunchKernelEx(&launch, kernel, x, r, w, y, h);
}
