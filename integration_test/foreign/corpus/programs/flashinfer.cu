// FlashInfer's operators but for its norms as one source, since each of its files compiles the same large headers, and an operator for its
// attention of one query, with the parameters and the variant of attention that its header has by default and 128 numbers in bfloat16 for
// a head: the project makes the file with both from a template when it runs.
#include <cmath>
#include <flashinfer/attention/decode.cuh>
#include <flashinfer/attention/default_decode_params.cuh>
#include <flashinfer/attention/variants.cuh>

#include "cascade.cu"
#include "flashinfer_cascade_binding.cu"
#include "flashinfer_norm_binding.cu"
#include "flashinfer_page_binding.cu"
#include "flashinfer_quantization_binding.cu"
#include "flashinfer_rope_binding.cu"
#include "flashinfer_sampling_binding.cu"
#include "page.cu"
#include "quantization.cu"
#include "renorm.cu"
#include "rope.cu"
#include "sampling.cu"
#include "tensors.h"

void single_decode(TensorView q, TensorView k, TensorView v, TensorView partial, TensorView out) {
  using Number = nv_bfloat16;
  const uint32_t heads = q.size(0), keys = k.size(0), groups = k.size(1);
  SingleDecodeParams<Number, Number, Number> params(at<Number>(q), at<Number>(k), at<Number>(v), at<Number>(out), nullptr, keys, heads, groups,
                                                    QKVLayout::kNHD, 128, -1, 0.0f, 1.0f / std::sqrt(128.0f), 1.0f, 1e4f);
  const cudaError_t status = SingleDecodeWithKVCacheDispatched<128, PosEncodingMode::kNone, DefaultAttention<false, false, false, false>>(
      params, at<Number>(partial), get_stream(q.device()));
  TVM_FFI_ICHECK(status == cudaSuccess) << cudaGetErrorString(status);
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(single_decode, single_decode);
