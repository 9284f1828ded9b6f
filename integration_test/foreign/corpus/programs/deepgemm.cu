// A host for DeepGEMM's FP8 x FP8 and FP8 x FP4 kernels for sm_100a (sm100_fp8_fp4_gemm_1d1d.cuh), whose own host code needs
// PyTorch and a JIT compiler. Inputs have exact sums: every element of D must be right. Macros choose what is compiled:
// CLUSTER_SIZE (1 or 2 CTAs), TILE_N, FP4_B.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <deep_gemm/impls/sm100_fp8_fp4_gemm_1d1d.cuh>
#include <vector>

using namespace deep_gemm;

#ifdef FP4_B
using ElementB = cutlass::detail::float_e2m1_unpacksmem_t;
constexpr bool isFp4 = true;
#else
using ElementB = cutlass::float_e4m3_t;
constexpr bool isFp4 = false;
#endif

constexpr int kBlocks = 8, kStages = 4, kBlock = 128, kScaleK = 32;
constexpr auto *kernel = &sm100_fp8_fp4_gemm_1d1d_impl<
    cute::UMMA::Major::K, cute::UMMA::Major::K, kScaleK, kScaleK, 128, 0, 0, 0, kBlock, TILE_N, kBlock, 1, 128, 128, 128,
    kStages, 128, 128, CLUSTER_SIZE, false, kBlocks, false, false, GemmType::Normal, false, cutlass::float_e4m3_t, ElementB,
    cutlass::bfloat16_t, epilogue::transform::EpilogueIdentity>;

static unsigned nextRandom() {
  static unsigned state = 3;
  state = state * 1664525u + 1013904223u;
  return state >> 20;
}

template <typename T> static T *upload(const std::vector<T> &values) {
  T *device;
  if (cudaMalloc(&device, values.size() * sizeof(T)) ||
      cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice))
    std::exit(3);
  return device;
}

/// Rows of `pitch` bytes; the box is `boxInner` x `boxOuter` elements.
static cute::TmaDescriptor tensorMap(CUtensorMapDataType type, void *data, cuuint64_t inner, cuuint64_t outer,
                                     cuuint64_t pitch, cuuint32_t boxInner, cuuint32_t boxOuter, CUtensorMapSwizzle swizzle) {
  cute::TmaDescriptor map;
  const cuuint64_t dims[] = {inner, outer};
  const cuuint32_t box[] = {boxInner, boxOuter}, steps[] = {1, 1};
  if (cuTensorMapEncodeTiled(reinterpret_cast<CUtensorMap *>(&map), type, 2, data, dims, &pitch, box, steps,
                             CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    std::exit(3);
  return map;
}

/// One operand: its values, its bytes, and a UE8M0 scale for 32 of them, four to a word, the rows of a word together.
struct Operand {
  Operand(int rows, int k, bool fp4) : rows(rows), k(k), values(size_t(rows) * k), bytes(values.size() / (fp4 ? 2 : 1)) {
    static const float e2m1[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (size_t i = 0; i < values.size(); ++i)
      if (fp4) {
        const unsigned code = nextRandom() % 16;
        values[i] = code & 8 ? -e2m1[code & 7] : e2m1[code & 7];
        bytes[i / 2] |= static_cast<uint8_t>(code << (i & 1) * 4);
      } else {
        values[i] = static_cast<float>(static_cast<int>(nextRandom() % 17) - 8) / 4;
        bytes[i] = cutlass::float_e4m3_t(values[i]).storage;
      }
    scales.resize(size_t(k) / (4 * kScaleK) * rows);
    for (uint32_t &word : scales)
      for (int byte = 0; byte < 4; ++byte)
        word |= (126 + nextRandom() % 4) << 8 * byte;
  }
  double at(int row, int column) const {
    const uint32_t word = scales[size_t(column / (4 * kScaleK)) * rows + row];
    return std::ldexp(values[size_t(row) * k + column], static_cast<int>(word >> 8 * (column / kScaleK % 4) & 255) - 127);
  }
  int rows, k;
  std::vector<float> values;
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> scales;
};

static int countWrong(const Operand &a, const Operand &b, const cutlass::bfloat16_t *device) {
  std::vector<cutlass::bfloat16_t> d(size_t(a.rows) * b.rows);
  if (cudaMemcpy(d.data(), device, d.size() * 2, cudaMemcpyDeviceToHost))
    return -1;
  int wrong = 0;
  for (int row = 0; row < a.rows; ++row)
    for (int column = 0; column < b.rows; ++column) {
      double sum = 0;
      for (int k = 0; k < a.k; ++k)
        sum += a.at(row, k) * b.at(column, k);
      wrong += float(d[size_t(row) * b.rows + column]) != float(cutlass::bfloat16_t(static_cast<float>(sum)));
    }
  return wrong;
}

int main() {
  const int m = 256, n = 2 * TILE_N, k = 512;
  const Operand a(m, k, false), b(n, k, isFp4);
  cutlass::bfloat16_t *d = upload(std::vector<cutlass::bfloat16_t>(size_t(m) * n));
  const auto mapA = tensorMap(CU_TENSOR_MAP_DATA_TYPE_UINT8, upload(a.bytes), k, m, k, kBlock, kBlock, CU_TENSOR_MAP_SWIZZLE_128B);
  const auto mapB = tensorMap(isFp4 ? CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B : CU_TENSOR_MAP_DATA_TYPE_UINT8, upload(b.bytes), k,
                              n, isFp4 ? k / 2 : k, kBlock, TILE_N / CLUSTER_SIZE, CU_TENSOR_MAP_SWIZZLE_128B);
  const auto scalesA = tensorMap(CU_TENSOR_MAP_DATA_TYPE_INT32, upload(a.scales), m, k / 128, m * 4, kBlock, 1,
                                 CU_TENSOR_MAP_SWIZZLE_NONE);
  const auto scalesB = tensorMap(CU_TENSOR_MAP_DATA_TYPE_INT32, upload(b.scales), n, k / 128, n * 4, TILE_N, 1,
                                 CU_TENSOR_MAP_SWIZZLE_NONE);
  const auto mapD = tensorMap(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, d, n, m, n * 2, 64, kBlock, CU_TENSOR_MAP_SWIZZLE_128B);

  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {CLUSTER_SIZE, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = kBlocks;
  config.blockDim = 256;
  config.dynamicSmemBytes = 2 * kBlock * 128 + kStages * (kBlock * kBlock + TILE_N / CLUSTER_SIZE * kBlock + 512 + 1024) + 4096;
  config.attrs = &cluster;
  config.numAttrs = 1;
  cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(config.dynamicSmemBytes));
  cudaLaunchKernelEx(&config, kernel, static_cast<int *>(nullptr), uint32_t(m), uint32_t(n), uint32_t(k), mapA, mapB, scalesA,
                     scalesB, mapD);
  const cudaError_t error = cudaDeviceSynchronize();
  const int wrong = countWrong(a, b, d);
  std::printf("%s, %d of %d wrong\n", cudaGetErrorString(error), wrong, m * n);
  return error || wrong ? 1 : 0;
}
