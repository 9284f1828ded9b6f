// Operators over FlashMLA's kernels, which TVM FFI calls: parameters as the project's own interface fills them for contiguous tensors.
#include <cmath>
#include <tvm/ffi/function.h>

#include "params.h"
#include "sm100/decode/head64/kernel.h"
#include "sm100/prefill/sparse/fwd/head128/phase1.h"
#include "sm100/prefill/sparse/fwd/head64/phase1.h"
#include "sm90/decode/dense/splitkv_mla.h"
#include "sm90/decode/sparse_fp8/splitkv_mla.h"
#include "sm90/prefill/sparse/phase1.h"
#include "smxx/decode/combine/combine.h"
#include "smxx/decode/get_decoding_sched_meta/get_decoding_sched_meta.h"
#include "tensors.h"

using tvm::ffi::TensorView;
using Number = cutlass::bfloat16_t;

static int stride(TensorView tensor, int dim) { return static_cast<int>(tensor.stride(dim)); }

static void plan_splits(TensorView meta, TensorView splits, int batch, int queries, int overhead, int top, int *lengths) {
  GetDecodeSchedMetaParams params = {batch, queries, 64, overhead, top, top > 0 ? 0 : -1, nullptr, nullptr, lengths,
                                     at<DecodingSchedMeta>(meta), at<int>(splits), static_cast<int>(meta.size(0)), nullptr};
  smxx::decode::run_get_decoding_sched_meta_kernel(params);
}

static void combine(TensorView meta, TensorView splits, TensorView lse, TensorView out, TensorView lse_parts, TensorView out_parts) {
  const int batch = out.size(0), queries = out.size(1), heads = out.size(2), width = out.size(3);
  CombineParams params = {batch, queries, heads, width, at<float>(lse), at<Number>(out), stride(lse, 0), stride(lse, 1),
                          stride(out, 0), stride(out, 1), stride(out, 2), at<float>(lse_parts), at<float>(out_parts),
                          stride(lse_parts, 0), stride(lse_parts, 1), stride(out_parts, 0), stride(out_parts, 1), stride(out_parts, 2),
                          at<DecodingSchedMeta>(meta), at<int>(splits), static_cast<int>(meta.size(0)), nullptr, nullptr};
  smxx::decode::run_flash_mla_combine_kernel<Number>(params);
}

// q [batch, queries of all heads, 1, 576], cache [pages, 64, 1, 576], out and parts of it [batch or splits, queries, heads, 512].
void dense_decode(TensorView q, TensorView cache, TensorView lengths, TensorView table, TensorView meta, TensorView splits, TensorView lse,
                  TensorView out, TensorView lse_parts, TensorView out_parts, bool causal) {
  const int batch = out.size(0), queries = out.size(1), heads = out.size(2);
  plan_splits(meta, splits, batch, queries, 5, -1, at<int>(lengths));
  DenseAttnDecodeParams p{};
  p.b = batch, p.s_q = queries, p.q_seq_per_hk = queries * heads, p.d = 576, p.d_v = 512, p.h_q = heads, p.h_k = 1;
  p.num_blocks = cache.size(0), p.q_head_per_hk = heads, p.is_causal = causal;
  p.scale_softmax = 1.0f / std::sqrt(576.0f), p.scale_softmax_log2 = p.scale_softmax * float(M_LOG2E);
  p.q_ptr = at<Number>(q), p.k_ptr = at<Number>(cache), p.o_ptr = at<Number>(out), p.softmax_lse_ptr = at<float>(lse);
  p.q_batch_stride = stride(q, 0), p.q_row_stride = stride(q, 1), p.q_head_stride = stride(q, 2);
  p.k_batch_stride = stride(cache, 0), p.k_row_stride = stride(cache, 1), p.k_head_stride = stride(cache, 2);
  p.o_batch_stride = stride(out, 0), p.o_row_stride = stride(out, 2), p.o_head_stride = stride(out, 0);
  p.block_table = at<int>(table), p.block_table_batch_stride = stride(table, 0), p.page_block_size = 64;
  p.seqlens_k_ptr = at<int>(lengths), p.tile_scheduler_metadata_ptr = at<DecodingSchedMeta>(meta);
  p.num_sm_parts = meta.size(0), p.num_splits_ptr = at<int>(splits), p.total_num_splits = batch + p.num_sm_parts;
  p.softmax_lseaccum_ptr = at<float>(lse_parts), p.oaccum_ptr = at<float>(out_parts);
  sm90::run_flash_splitkv_mla_kernel<Number>(p);
  combine(meta, splits, lse, out, lse_parts, out_parts);
}

// q [batch, queries, 64, 576], cache [pages, 64, 1, 656] in bytes, indices [batch, queries, top].
void sparse_decode(TensorView q, TensorView cache, TensorView indices, TensorView meta, TensorView splits, TensorView lse, TensorView out,
                   TensorView lse_parts, TensorView out_parts, bool blackwell) {
  const int batch = out.size(0), queries = out.size(1), top = indices.size(2);
  plan_splits(meta, splits, batch, queries, 5, top, nullptr);
  SparseAttnDecodeParams p{};
  p.b = batch, p.s_q = queries, p.h_q = out.size(2), p.h_kv = 1, p.d_qk = 576, p.d_v = 512;
  p.sm_scale = 1.0f / std::sqrt(576.0f), p.sm_scale_div_log2 = p.sm_scale * float(M_LOG2E);
  p.num_blocks = cache.size(0), p.page_block_size = cache.size(1), p.topk = top, p.model_type = ModelType::V32;
  p.q = at<Number>(q), p.kv = at<Number>(cache), p.indices = at<int>(indices), p.lse = at<float>(lse), p.out = at<Number>(out);
  p.stride_q_b = stride(q, 0), p.stride_q_s_q = stride(q, 1), p.stride_q_h_q = stride(q, 2);
  p.stride_kv_block = stride(cache, 0), p.stride_kv_row = stride(cache, 1);
  p.stride_indices_b = stride(indices, 0), p.stride_indices_s_q = stride(indices, 1);
  p.stride_lse_b = stride(lse, 0), p.stride_lse_s_q = stride(lse, 1);
  p.stride_o_b = stride(out, 0), p.stride_o_s_q = stride(out, 1), p.stride_o_h_q = stride(out, 2);
  p.lse_accum = at<float>(lse_parts), p.o_accum = at<float>(out_parts);
  p.stride_lse_accum_split = stride(lse_parts, 0), p.stride_lse_accum_s_q = stride(lse_parts, 1);
  p.stride_o_accum_split = stride(out_parts, 0), p.stride_o_accum_s_q = stride(out_parts, 1);
  p.stride_o_accum_h_q = stride(out_parts, 2);
  p.tile_scheduler_metadata_ptr = at<DecodingSchedMeta>(meta), p.num_splits_ptr = at<int>(splits), p.num_sm_parts = meta.size(0);
  if (blackwell)
    sm100::decode::head64::run_flash_splitkv_mla_fp8_sparse_kernel<ModelType::V32>(p);
  else
    sm90::decode::sparse_fp8::run_flash_splitkv_mla_fp8_sparse_kernel<ModelType::V32, 64>(p);
  combine(meta, splits, lse, out, lse_parts, out_parts);
}

// q [queries, heads, 576], kv [keys, 1, 576], indices [queries, 1, top], out [queries, heads, 512].
void sparse_prefill(TensorView q, TensorView kv, TensorView indices, TensorView out, TensorView most, TensorView lse, bool blackwell) {
  SparseAttnFwdParams p{};
  p.s_q = q.size(0), p.s_kv = kv.size(0), p.h_q = q.size(1), p.h_kv = 1, p.d_qk = 576, p.d_v = 512, p.topk = indices.size(2);
  p.sm_scale = 1.0f / std::sqrt(576.0f), p.sm_scale_div_log2 = p.sm_scale * float(M_LOG2E);
  p.q = at<Number>(q), p.kv = at<Number>(kv), p.indices = at<int>(indices), p.out = at<Number>(out);
  p.max_logits = at<float>(most), p.lse = at<float>(lse), p.num_sm = 132;
  p.stride_q_s_q = stride(q, 0), p.stride_q_h_q = stride(q, 1), p.stride_kv_s_kv = stride(kv, 0), p.stride_kv_h_kv = stride(kv, 1);
  p.stride_indices_s_q = stride(indices, 0), p.stride_indices_h_kv = stride(indices, 1);
  if (!blackwell)
    sm90::fwd::run_fwd_phase1_kernel<576, false>(p);
  else if (p.h_q == 64)
    sm100::fwd::head64::run_fwd_phase1_kernel<576>(p);
  else
    sm100::fwd::head128::run_fwd_phase1_kernel<576>(p);
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(dense_decode, dense_decode);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(sparse_decode, sparse_decode);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(sparse_prefill, sparse_prefill);
