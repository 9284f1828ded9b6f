// FlashInfer's kernels, called with addresses: their own binding needs TVM FFI. Grids and blocks of
// activations are those of the template that its package fills in when it runs.
#include <flashinfer/activation.cuh>
#include <flashinfer/norm.cuh>
#include <flashinfer/page.cuh>
#include <flashinfer/pos_enc.cuh>

using namespace flashinfer;
using Number = nv_bfloat16;

namespace {

constexpr uint32_t kHead = 128, kPage = 16;

__device__ __forceinline__ float silu(const float &val) { return val / (1.0f + __expf(-val)); }

__device__ __forceinline__ float gelu_tanh(const float &val) {
  const float cdf =
      0.5f * (1.0f + math::tanh((0.7978845608028654f * (val + 0.044715f * val * val * val))));
  return val * cdf;
}

template <float (*Activation)(const float &)>
int activate(Number *out, Number *input, uint32_t rows, uint32_t columns, cudaStream_t stream) {
  constexpr uint32_t vec = 16 / sizeof(Number), most = 256;
  activation::act_and_mul_kernel<Number, Activation, vec>
      <<<rows, std::min(columns / vec, most), 0, stream>>>(out, input, columns);
  return cudaGetLastError();
}

} // namespace

extern "C" {

int silu_and_mul(Number *out, Number *input, uint32_t rows, uint32_t columns, cudaStream_t stream) {
  return activate<silu>(out, input, rows, columns, stream);
}

int gelu_tanh_and_mul(Number *out, Number *input, uint32_t rows, uint32_t columns,
                      cudaStream_t stream) {
  return activate<gelu_tanh>(out, input, rows, columns, stream);
}

int rmsnorm(Number *input, Number *weight, Number *out, uint32_t rows, uint32_t columns,
            cudaStream_t stream) {
  return norm::RMSNorm(input, weight, out, rows, columns, columns, columns, 1e-5f, false, stream);
}

int fused_add_rmsnorm(Number *input, Number *residual, Number *weight, uint32_t rows,
                      uint32_t columns, cudaStream_t stream) {
  return norm::FusedAddRMSNorm(input, residual, weight, rows, columns, columns, columns, 1e-5f,
                               false, stream);
}

/// Also stores what it quantizes.
int fused_add_rmsnorm_fp8_block_quant(Number *input, Number *residual, Number *weight,
                                      __nv_fp8_e4m3 *codes, float *scales, Number *normed,
                                      uint32_t rows, uint32_t columns, cudaStream_t stream) {
  return norm::FusedAddRMSNormFP8BlockQuant(input, residual, weight, codes, scales, normed, rows,
                                            columns, columns, columns, columns, columns,
                                            (rows + 3) & ~3u, 1e-5f, false, stream);
}

/// Rotates heads of queries; there are no keys.
int rope(Number *q, Number *out, float *table, int64_t *positions, uint32_t rows, uint32_t heads,
         cudaStream_t stream) {
  const size_t row = size_t(heads) * kHead;
  return BatchQKApplyRotaryPosIdsCosSinCache(q, q, out, out, table, positions, rows, heads, 0,
                                             kHead, kHead, row, kHead, row, kHead, row, kHead, row,
                                             kHead, false, stream);
}

int rope_quantize_fp8(Number *q, __nv_fp8_e4m3 *out, float *table, int64_t *positions,
                      uint32_t rows, uint32_t heads, float scale, cudaStream_t stream) {
  const size_t row = size_t(heads) * kHead;
  return RopeQuantize(q, q, q, q, out, out, out, out, table, positions, rows, heads, 0, kHead, 0,
                      row, kHead, row, kHead, row, kHead, row, kHead, row, kHead, row, kHead, row,
                      kHead, row, kHead, scale, scale, false, false, stream);
}

/// Appends keys and values, the halves of a row, at `positions` of one sequence of all pages.
int append_paged_kv_cache(Number *rows_of, Number *keys, Number *values, int32_t *pages,
                          int32_t *indptr, int32_t *last, int32_t *batches, int32_t *positions,
                          uint32_t rows, uint32_t heads, cudaStream_t stream) {
  paged_kv_t<Number, int32_t> cache(heads, kPage, kHead, 1, QKVLayout::kNHD, keys, values, pages,
                                    indptr, last);
  const size_t row = size_t(heads) * kHead * 2;
  return AppendPagedKVCache(cache, rows_of, rows_of + row / 2, batches, positions, rows, row, kHead,
                            row, kHead, stream);
}

} // extern "C"
