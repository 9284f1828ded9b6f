"""vLLM's functions for NVFP4, norms with FP8, rotations, and the choice of experts, of
vllm._custom_ops in vllm 0.33.0; the two with static scales are operators torch.ops._C there.
SGLang's former sgl_kernel has the same functions for NVFP4; its calls without names fit here, of
scaled_fp4_experts_quant those without an expert_map.

The global scale is the encode scale g = 448 * 6 / amax, and `alpha` is 1 / (g_a * g_b). The bits of
the quantizer are those of vLLM's kernel, which takes two approximate reciprocals (numerics.md); a
CPU tensor gives an H200's. A block whose scale rounds to zero has codes 0, unlike FlashInfer's.

A norm and its quantizer are one kernel. The roundings have vLLM's order, but a row is added in the
order of docs/reference/semantics.md, its root is exact, and a rotation rounds each product and each
sum: last bits may differ. A copy behind the kernel overwrites `residual`.
"""

from __future__ import annotations

import torch

from ..errors import UsageError
from ..torch.norm_programs import Norm
from ._group_programs import ragged
from ._layouts import EIGHT, GROUPED, LINEAR, TILED, expect, note, padded, shape_of, to_eight
from ._norms import static_fp8, token_fp8
from ._operands import (
    check_codes,
    check_input,
    check_tensor,
    eager,
    into,
    numbers,
    refuse,
    rows_of,
    scalar,
    type_of,
)
from ._programs import element, product, quantizer, target
from ._rotations import FLOATS, angles, normed, places, rotated
from ._routing import aligned, grouped, routed, store
from ._slots import cached

__all__ = ["cutlass_scaled_fp4_mm", "fused_add_rms_norm_static_fp8_quant", "fused_qk_norm_rope",
           "grouped_topk", "moe_align_block_size", "reshape_and_cache_flash",
           "rms_norm_dynamic_per_token_quant", "rms_norm_static_fp8_quant", "rotary_embedding",
           "scaled_fp4_experts_quant", "scaled_fp4_quant", "topk_softmax"]

_RECIPE = "vllm, tensor_scale = supplied, reciprocals = approximate"
_STATIC = Norm(0, "", "rms", 0.0, residual="rounded")
_OF_TOKENS = Norm(0, "", "rms", 0.0, residual="exact", is_normed_rounded=True)


@eager
def scaled_fp4_quant(
    input: torch.Tensor,
    input_global_scale: torch.Tensor,
    is_sf_swizzled_layout: bool = True,
    backend: str = "none",
    padded_n: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantizes the rows of a tensor to NVFP4.

    Args:
        input: bf16 or f16 of shape [..., K], K a multiple of 16.
        input_global_scale: one f32.
        is_sf_swizzled_layout: whether the scales are in the layout tiled_128x4.
        backend: of the kernel that will read the result. "trtllm" reads scales of up to 32 rows in
            the layout 8x4.
        padded_n: a larger K, a multiple of 16: codes and scales are filled up with zeros.

    Returns:
        Codes, uint8 [M, K/2], M the product of the leading sizes; and scales, float8_e4m3fn
        [M, K/16], or swizzled [128 * ceil(M/128), 4 * ceil(K/64)], in the layout 8x4
        [8 * ceil(M/8), 4 * ceil(K/64)].

    Raises:
        UsageError: an argument that does not fit.
    """
    check_input(input, "input", (torch.bfloat16, torch.float16), 16)
    x = rows_of(input)
    rows, columns = x.shape
    is_eight = is_sf_swizzled_layout and "trtllm" in backend and rows <= 32
    layout = TILED if is_sf_swizzled_layout and not is_eight else LINEAR
    width = columns if padded_n is None else padded_n
    if width < columns or width % 16:
        raise UsageError(f"argument 'padded_n' must be a multiple of 16 of at least {columns}, but "
                         f"got {padded_n}")
    program = quantizer(columns, element(x.dtype), _RECIPE, layout, "input", "input_global_scale",
                        target(x))
    codes, scales = program(x, scalar(input_global_scale, "input_global_scale"))
    codes, scales = codes.view(torch.uint8), scales.view(torch.uint8)
    if width != columns:
        more = -(-width // 64) - -(-columns // 64) if layout == TILED else (width - columns) // 16
        sizes = (0, 0, 0, more) if layout == TILED else (0, more)
        codes = torch.nn.functional.pad(codes, (0, (width - columns) // 2))
        scales = torch.nn.functional.pad(scales, sizes)
    blocks = width // 16
    if is_eight:
        scales, layout = to_eight(scales.view(rows, blocks)), EIGHT
    shape = shape_of(layout, rows, blocks)
    scales = note(scales.view(shape), layout, rows, blocks, "scaled_fp4_quant")
    return codes, scales.view(torch.float8_e4m3fn)


@eager
def scaled_fp4_experts_quant(
    input_tensor: torch.Tensor,
    input_global_scale: torch.Tensor,
    expert_offsets: torch.Tensor,
    blockscale_offsets: torch.Tensor,
    topk: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantizes the tokens of each expert to NVFP4: rows expert_offsets[e] to
    expert_offsets[e + 1], which the device reads.

    Args:
        input_tensor: bf16 or f16 [M, K], row-major, sorted by expert, K a multiple of 16.
        input_global_scale: f32 [E], one for each expert.
        expert_offsets: int32 or int64 [E + 1].
        blockscale_offsets: int32 or int64 [E + 1], the sums of the experts' rows, each rounded up
            to 128. Offsets on the CPU are compared with these sums.
        topk: has no effect here: the scales have room for any distribution of M rows.

    Returns:
        Codes, uint8 [M, K/2], unspecified in rows of no expert; and swizzled scales, float8_e4m3fn
        [128 * (floor(M/128) + E), 4 * ceil(K/64)], those of expert e from row
        blockscale_offsets[e] on.

    Raises:
        UsageError: an argument that does not fit, or offsets that decrease or exceed M.
    """
    check_input(input_tensor, "input_tensor", (torch.bfloat16, torch.float16), 16)
    if input_tensor.dim() != 2 or not input_tensor.shape[0]:
        raise UsageError("argument 'input_tensor' must be a matrix with rows, but its shape is "
                         f"{list(input_tensor.shape)}")
    x, (rows, columns) = rows_of(input_tensor), input_tensor.shape
    experts = input_global_scale.numel() if isinstance(input_global_scale, torch.Tensor) else 0
    scale = numbers(input_global_scale, "input_global_scale", experts, (torch.float32,))
    integers = (torch.int32, torch.int64)
    offsets = numbers(expert_offsets, "expert_offsets", experts + 1, integers).to(torch.int64)
    _check_places(offsets, numbers(blockscale_offsets, "blockscale_offsets", experts + 1, integers))
    names = ("input_tensor", "input_global_scale", "expert_offsets")
    program = ragged(rows, experts, columns, element(x.dtype), _RECIPE, names, target(x))
    codes, tiles = program(x, scale, offsets)
    blocks = columns // 16
    scales = tiles.view(torch.uint8).view(128 * (rows // 128 + experts), padded(1, blocks)[1])
    scales = note(scales, GROUPED, rows, blocks, "scaled_fp4_experts_quant")
    return codes.view(torch.uint8), scales.view(torch.float8_e4m3fn)


def _check_places(offsets: torch.Tensor, places: torch.Tensor) -> None:
    """Checks that the scales of each expert begin where the rows say."""
    if offsets.device.type != "cpu" or places.device.type != "cpu":
        return
    sums = [0, *torch.cumsum((offsets.diff() + 127) // 128 * 128, 0).tolist()]
    if places.tolist() != sums:
        raise UsageError("argument 'blockscale_offsets' must be the sums of the experts' rows, "
                         f"each rounded up to 128, {sums}, but got {places.tolist()}",
                         "scales have no other places here")


@eager
def cutlass_scaled_fp4_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    block_scale_a: torch.Tensor,
    block_scale_b: torch.Tensor,
    alpha: torch.Tensor,
    out_dtype: torch.dtype,
) -> torch.Tensor:
    """alpha * A B^T of operands that scaled_fp4_quant made, with swizzled scales.

    Args:
        a, b: codes [M, K/2] and [N, K/2], uint8 or float4_e2m1fn_x2.
        block_scale_a, block_scale_b: tiled scales, [128 * i, 4 * j].
        alpha: one f32.
        out_dtype: bfloat16 or float16, of the result [M, N].

    Raises:
        UsageError: an operand of another size, dtype or layout.
    """
    refuse(out_dtype not in (torch.bfloat16, torch.float16), f"out_dtype = {out_dtype}")
    check_codes(a, "a")
    check_codes(b, "b")
    if a.shape[1] != b.shape[1]:
        raise UsageError(f"arguments 'a' and 'b' must have one K, but got {2 * a.shape[1]} and "
                         f"{2 * b.shape[1]}",
                         "each is quantized along K, its last dimension")
    rows, columns, size = a.shape[0], 2 * a.shape[1], b.shape[0]
    blocks = columns // 16
    scales = (expect(block_scale_a, TILED, rows, blocks, "argument 'block_scale_a'"),
              expect(block_scale_b, TILED, size, blocks, "argument 'block_scale_b'"))
    names = ("a", "block_scale_a", "b", "block_scale_b", "alpha")
    program = product(size, columns, element(out_dtype), "scalar", names, target(a))
    result: torch.Tensor = program(a, scales[0], b, scales[1], scalar(alpha, "alpha"))
    return result


@eager
def rms_norm_static_fp8_quant(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor,
    epsilon: float,
) -> None:
    """Writes E4M3 of the RMSNorm of rows to `result`: x * r * weight in f32, rounded to the dtype
    of `input`, times the f32 1 / scale, within +-448, rounded. r = 1 / sqrt(sum / K + epsilon).
    NaN becomes 448.

    The operands are those of FlashInfer's rmsnorm_quant, and `scale` is one f32.

    Raises:
        UsageError: an argument that does not fit.
    """
    static_fp8(_STATIC, epsilon, result, input, None, weight, scalar(scale, "scale"))


@eager
def fused_add_rms_norm_static_fp8_quant(
    result: torch.Tensor,
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor,
    epsilon: float,
) -> None:
    """rms_norm_static_fp8_quant of input + residual, rounded to the dtype of `input` and left in
    `residual`.

    Raises:
        UsageError: an argument that does not fit.
    """
    static_fp8(_STATIC, epsilon, result, input, residual, weight, scalar(scale, "scale"))


@eager
def rms_norm_dynamic_per_token_quant(
    input: torch.Tensor,
    weight: torch.Tensor,
    epsilon: float,
    quant_dtype: torch.dtype,
    scale_ub: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """E4M3 of the RMSNorm of rows, with a scale for each row.

    The norm is one of input + residual in f32, and x * r is rounded to the dtype of `input` before
    the weight and behind it. scale = max(min(amax, scale_ub) / 448, 1 / (448 * 512)), and elements
    are divided by it.

    Args:
        input, weight: bf16 or f16 [..., K] and [K].
        quant_dtype: float8_e4m3fn.
        scale_ub: one f32, the largest amax.
        residual: of the shape of `input`; input + residual, rounded, is left in it.

    Returns:
        Elements of the shape of `input`, and f32 scales [M, 1].

    Raises:
        UsageError: an argument that does not fit.
    """
    refuse(quant_dtype != torch.float8_e4m3fn, f"quant_dtype = {quant_dtype}",
           "pass torch.float8_e4m3fn")
    return token_fp8(_OF_TOKENS, epsilon, input, residual, weight, scale_ub)


@eager
def rotary_embedding(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor | None,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
    rope_dim_offset: int = 0,
    inverse: bool = False,
) -> None:
    """Copies what fp4.torch.rotate makes of `query` and `key` to them: a kernel each.

    Args:
        positions: int64 [T] or [B, S].
        query, key: bf16, f16 or f32, for each position H * head_size columns.
        cos_sin_cache: of any of these dtypes.
        rope_dim_offset, inverse: 0 and False.

    Raises:
        UsageError: an argument that does not fit, or an option that has no kernel here.
    """
    refuse(bool(rope_dim_offset), f"rope_dim_offset = {rope_dim_offset}",
           "pass the columns from there on, query[..., rope_dim_offset:]")
    refuse(inverse, "inverse", "pass a cos_sin_cache whose sines are negative")
    at, table = places(positions, "positions", (torch.int64,), (1, 2)), angles(cos_sin_cache)
    given = [(x, name) for x, name in ((query, "query"), (key, "key")) if x is not None]
    found = [rotated(x, name, FLOATS, head_size, table, at, is_neox) for x, name in given]
    for (x, _), result in zip(given, found):
        x.copy_(result)


@eager
def fused_qk_norm_rope(
    qkv: torch.Tensor,
    num_heads_q: int,
    num_heads_k: int,
    num_heads_v: int,
    head_dim: int,
    eps: float,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
    position_ids: torch.Tensor,
    forced_token_heads_per_warp: int = -1,
) -> None:
    """Overwrites the heads of q and k in `qkv`, bf16 or f16, by their RMSNorm x * (r * weight),
    rotated in f32 and rounded once: a kernel and a copy. Weights have the dtype of `qkv`, and
    `cos_sin_cache` has any. forced_token_heads_per_warp has no effect."""
    normed(qkv, (num_heads_q, num_heads_k, num_heads_v), head_dim, eps, (q_weight, k_weight),
           angles(cos_sin_cache), places(position_ids, "position_ids", (torch.int64,)), is_neox)


@eager
def reshape_and_cache_flash(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache_dtype: str,
    k_scale: torch.Tensor,
    v_scale: torch.Tensor,
) -> None:
    """fp4.torch.reshape_and_cache of the first tokens. kv_cache_dtype is "auto", or "fp8" with one
    scale each.

    Raises:
        UsageError: an argument that does not fit, or an option that has no kernel here.
    """
    cached(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale)


@eager
def topk_softmax(
    topk_weights: torch.Tensor,
    topk_ids: torch.Tensor,
    token_expert_indices: torch.Tensor,
    gating_output: torch.Tensor,
    renormalize: bool = False,
    e_score_correction_bias: torch.Tensor | None = None,
    is_padding: torch.Tensor | None = None,
) -> None:
    """Chooses the experts with the largest softmax, of each token.

    Args:
        topk_weights: f32 [T, k], k up to 16, which gets the weights, the largest first.
        topk_ids: int32, int64 or uint32 [T, k], which gets the experts.
        token_expert_indices: int32 [T, k], which gets j * T + t in row t and column j.
        gating_output: the logits, bf16, f16 or f32 [T, E], E up to 512.
        renormalize: divide the weights by their sum.
        e_score_correction_bias: [E], which is added for the choice alone.
        is_padding: refused.

    Raises:
        UsageError: an argument that does not fit.
    """
    refuse(is_padding is not None, "'is_padding'", "rows that pad get experts, too")
    check_tensor(topk_ids, "topk_ids")
    if topk_ids.dim() != 2:
        raise UsageError(f"argument 'topk_ids' must be a matrix, but got {type_of(topk_ids)}",
                         "its columns are the experts of a token")
    found = routed(gating_output, e_score_correction_bias, topk_ids.shape[1], "gating_output",
                   renormalize="sum" if renormalize else "none")
    store(found, topk_weights, topk_ids, ("topk_weights", "topk_ids"))
    rows, k = topk_ids.shape
    places = torch.arange(rows * k, dtype=torch.int32, device=topk_ids.device)
    into(token_expert_indices, places.view(k, rows).T, "token_expert_indices")


@eager
def grouped_topk(
    scores: torch.Tensor,
    num_expert_group: int,
    topk_group: int,
    topk: int,
    renormalize: bool,
    routed_scaling_factor: float,
    bias: torch.Tensor,
    scoring_func: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Chooses the experts of DeepSeek-V3 by fp4.torch.route.

    Args:
        scores: bf16, f16 or f32.
        renormalize: divide the weights by their sum + 1e-20.
        scoring_func: 0: `scores` are used as they are; 1: they are logits, of which 1 / (1 +
            exp(-x)) are the scores, in float32.

    Returns:
        Weights, float32 [T, topk], and experts, int32, the largest biased score first.

    Raises:
        UsageError: an argument that does not fit.
    """
    if scoring_func not in (0, 1):
        raise UsageError(f"argument 'scoring_func' must be 0 or 1, but got {scoring_func!r}",
                         "1 is a sigmoid")
    return grouped(scores, bias, num_expert_group, topk_group, topk, routed_scaling_factor,
                   is_sigmoid=scoring_func == 1, renormalizes=renormalize)


@eager
def moe_align_block_size(
    topk_ids: torch.Tensor,
    num_experts: int,
    block_size: int,
    sorted_token_ids: torch.Tensor,
    experts_ids: torch.Tensor,
    num_tokens_post_pad: torch.Tensor,
    expert_map: torch.Tensor | None = None,
    scatter_idx: torch.Tensor | None = None,
) -> None:
    """Orders pairs of tokens and experts by expert, in blocks of one expert.

    The order comes from fp4.torch.permute_tokens. Pairs of an expert are in the order of tokens,
    and not of atomic additions as those of 1024 pairs are in vLLM.

    Args:
        topk_ids: int32 or int64 [T, k], up to 1048576. Ids from `num_experts` on have no place.
        num_experts: up to 512.
        block_size: 1 to 1024; each expert begins at a multiple of it.
        sorted_token_ids: int32, which gets the pairs t * k + j, and T * k in empty places.
        experts_ids: int32, which gets the expert of each block, and -1 behind the last one.
        num_tokens_post_pad: int32 [1], which gets the end of the last expert.
        expert_map: int32 [num_experts], by which ids are replaced; pairs with -1 have no place.
        scatter_idx: int32 [T * k, 1], which gets the pairs that have a place, and -1.

    Raises:
        UsageError: an argument that does not fit.
    """
    aligned(topk_ids, num_experts, block_size, expert_map,
            {"sorted_token_ids": sorted_token_ids, "experts_ids": experts_ids,
             "num_tokens_post_pad": num_tokens_post_pad, "scatter_idx": scatter_idx})
