// thunderkittens_kernels.cu: the GEMMs for Hopper of ThunderKittens' kernels/gemm, with the templates' parameters
// of their own benchmarks.
//
//   peer_create(kind, m, n, k, a, b, d, sa, sb)   an object, or null
//   peer_run(object, stream)                      0 if it was launched
//   peer_error()                                  why it was not
//
// kind 0 is bf16_h100 (b is K x N), 1 is fp8_h100 with results in e4m3, 2 is fp8_h100_scaled with results in f32 and a
// scale for each row of a and of b. Else b is N x K. thunderkittens.py compiles it against a checkout; the files of
// kernels are included as they are, each in a namespace, because they use the same names.
#include <chrono>
#include <cmath>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <exception>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernels/gemm/common.cuh"
#include "kittens.cuh"
#include "prototype.cuh"

namespace bf16_product {
#include "kernels/gemm/bf16_h100/bf16_h100_gemm.cu"
}
namespace fp8_product {
#include "kernels/gemm/fp8_h100/fp8_h100_gemm.cu"
}
namespace scaled_product {
#include "kernels/gemm/fp8_h100_scaled/fp8_h100_gemm_scaled.cu"
}

namespace {

thread_local std::string problem;

struct Launchable {
  virtual ~Launchable() = default;
  virtual cudaError_t run(cudaStream_t stream) = 0;
};

template <class Product>
struct Instance : Launchable {
  using Globals = typename Product::layout::globals;
  static constexpr size_t shared = kittens::MAX_SHARED_MEMORY - 1024;
  static constexpr auto kernel = kittens::prototype::lcf::kernel<Product>;
  Globals globals;
  dim3 grid;

  Instance(const Globals &globals, size_t m, size_t n, size_t k) : globals(globals), grid(Product::grid(m, n, k)) {
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (error != cudaSuccess)
      throw std::runtime_error(cudaGetErrorString(error));
  }

  cudaError_t run(cudaStream_t stream) override {
    kernel<<<grid, kittens::prototype::detail::NUM_THREADS_v<Product>, shared, stream>>>(globals);
    return cudaGetLastError();
  }
};

template <class Matrix, class T>
Matrix matrix(void *data, size_t rows, size_t columns) {
  return Matrix{static_cast<T *>(data), nullptr, nullptr, rows, columns};
}

Launchable *create(int kind, size_t m, size_t n, size_t k, void *a, void *b, void *d, float *sa, float *sb) {
  using kittens::bf16, kittens::fp8e4m3;
  if (kind == 0) {
    using Product = bf16_product::matmul_template<2, 4, 8>;
    using Matrix = Product::layout::global_layout;
    return new Instance<Product>(
        {matrix<Matrix, bf16>(a, m, k), matrix<Matrix, bf16>(b, k, n), matrix<Matrix, bf16>(d, m, n)}, m, n, k);
  }
  if (kind == 1) {
    using Product = fp8_product::matmul_template<8>;
    using L = Product::layout;
    return new Instance<Product>({matrix<L::a_layout, fp8e4m3>(a, m, k), matrix<L::b_layout, fp8e4m3>(b, n, k),
                                  matrix<L::c_layout, fp8e4m3>(d, m, n)},
                                 m, n, k);
  }
  using Product = scaled_product::matmul_template<8>;
  using L = Product::layout;
  return new Instance<Product>(
      {matrix<L::a_layout, fp8e4m3>(a, m, k), matrix<L::b_layout, fp8e4m3>(b, n, k), matrix<L::c_layout, float>(d, m, n),
       L::scale_a_layout{sa, nullptr, nullptr, nullptr, m}, L::scale_b_layout{sb, nullptr, nullptr, nullptr, n}},
      m, n, k);
}

} // namespace

extern "C" void *peer_create(int kind, int m, int n, int k, void *a, void *b, void *d, float *sa, float *sb) try {
  return create(kind, m, n, k, a, b, d, sa, sb);
} catch (const std::exception &failure) {
  problem = failure.what();
  return nullptr;
}

extern "C" int peer_run(void *product, void *stream) {
  cudaError_t error = static_cast<Launchable *>(product)->run(static_cast<cudaStream_t>(stream));
  if (error != cudaSuccess)
    problem = cudaGetErrorString(error);
  return error != cudaSuccess;
}

extern "C" const char *peer_error() { return problem.c_str(); }
