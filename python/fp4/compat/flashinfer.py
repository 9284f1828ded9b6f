"""FlashInfer's functions for NVFP4, MXFP4, rotations and the choice of experts, and its wrappers of
attention over paged caches, of flashinfer-python 0.7.2.

`a_global_sf` is the encode scale g = 448 * 6 / amax, and the `alpha` of a matmul 1 / (g_a * g_b);
fp4's own operations take the amax.

The bits are those of FlashInfer's CUDA kernels with fast math, its default, two approximate
reciprocals among them (reference/numerics.md), and with FLASHINFER_DISABLE_FP4_QUANT_FAST_MATH=1 in
the environment those without. A CPU tensor gives an H200's; no Blackwell GPU was measured.

Refused are do_shuffle, four over six, fp8 inputs, column-major inputs, rows that are permuted, and
backends with operands of their own. Matmuls read the layout 128x4. `enable_pdl` has no effect.
Tensors stay on their device.

Some bits may differ: scales of rows (per_token_activation) are reciprocals rounded to nearest,
silu_and_mul_nvfp4_quantize has the math.exp of semantics.md, mxfp8_quantize divides by 448 exactly,
a norm adds a row in the order of semantics.md and has an exact root and reciprocal, and a rotation
rounds each product and each sum.

A norm, or silu_and_mul, and its quantizer are one kernel. A copy behind it overwrites `residual`.

Sources: the modules quantization.fp4_quantization, gemm.gemm_base, norm, rope and
fused_moe.fused_routing_dsv3 of the wheel, and the kernels that it contains, those of
csrc/nv_internal/tensorrt_llm, norm.cuh and pos_enc.cuh.
"""

from __future__ import annotations

import enum
import os
from typing import Any

import torch

from ..errors import UsageError
from ..torch.norm_programs import Gate, Norm, gate
from ..torch.row_programs import Ending
from ..torch.strides import flat_rows, placed
from ._group_programs import quantized_batch
from ._layouts import (
    EIGHT,
    LINEAR,
    TILED,
    expect,
    from_eight,
    kernel_layout,
    laid_out,
    note,
    results,
    upright,
)
from ._norms import number, static_fp8
from ._operands import (
    alpha_of,
    check_codes,
    check_input,
    check_tensor,
    converted,
    eager,
    into,
    numbers,
    refuse,
    rows_of,
    scalar,
)
from ._paged_attention import (
    BatchDecodeWithPagedKVCacheWrapper,
    BatchPrefillWithPagedKVCacheWrapper,
)
from ._programs import dequantizer, element, product, quantizer, swizzler, target
from ._rotations import HALVES, INTEGERS, angles, places, rotated
from ._routing import fused_topk_deepseek
from ._slots import append_paged_kv_cache

__all__ = [
    "BatchDecodeWithPagedKVCacheWrapper", "BatchPrefillWithPagedKVCacheWrapper", "SfLayout",
    "append_paged_kv_cache", "apply_rope_with_cos_sin_cache",
    "apply_rope_with_cos_sin_cache_inplace", "block_scale_interleave",
    "e2m1_and_ufp8sf_scale_to_float", "fused_add_rmsnorm_quant", "fused_topk_deepseek", "mm_fp4",
    "mxfp4_dequantize", "mxfp4_quantize", "mxfp8_quantize", "nvfp4_batched_quantize",
    "nvfp4_block_scale_interleave", "nvfp4_quantize", "rmsnorm_quant",
    "scaled_fp4_grouped_quantize", "silu_and_mul_nvfp4_quantize",
]

_FAST = "flashinfer, tensor_scale = supplied, reciprocals = approximate"
_EXACT = "flashinfer_exact, tensor_scale = supplied"
_DECODE = ("flashinfer, tensor_scale = supplied_decode, scale = divide_twice, "
           "encode = reciprocal_of_product, alpha = decode_scales")

_NORM = Norm(0, "", "rms", 0.0, offset=0.0, residual="exact", elements="f32")


class SfLayout(enum.IntEnum):
    """The layouts of block scales: layout_128x4 is tiled_128x4, and layout_8x4 has tiles of 8
    rows."""

    layout_128x4 = 0
    layout_8x4 = 1
    layout_linear = 2


class _Unset:
    def __repr__(self) -> str:
        return "<unset>"


_UNSET: Any = _Unset()


@eager
def nvfp4_quantize(
    a: torch.Tensor,
    a_global_sf: torch.Tensor,
    sfLayout: SfLayout = SfLayout.layout_128x4,
    do_shuffle: bool = False,
    sf_vec_size: int = 16,
    enable_pdl: bool | None = None,
    backend: str = "cuda",
    per_token_activation: bool = False,
    expanded_idx_to_permuted_idx: torch.Tensor | None = None,
    out_scale: torch.Tensor | None = None,
    nvfp4_4over6: Any = _UNSET,
) -> tuple[torch.Tensor, ...]:
    """Quantizes a matrix to NVFP4.

    Args:
        a: bf16 or f16 of shape [..., K], K a multiple of 16.
        a_global_sf: one number of any floating-point dtype, which becomes f32. With
            per_token_activation it is the inverse 1 / (448 * 6), and may be a float.
        sf_vec_size, backend: 16 and "cuda".
        per_token_activation: rows have scales of their own, amax * a_global_sf each.

    Returns:
        Codes, uint8 [..., K/2], the even column in the low nibble; and E4M3 scales as uint8, with
        M the product of the leading sizes: [M, K/16], or for layout_128x4 the tiles of 128 x 4 as
        [128 * ceil(M/128), 4 * ceil(K/64)], and for layout_8x4 those of 8 x 4 as
        [8 * ceil(M/8), 4 * ceil(K/64)], zero where there is padding. With per_token_activation
        also the f32 decode scales of the rows [M].

    Raises:
        UsageError: an argument that does not fit, or an option that has no kernel here.
    """
    refuse(do_shuffle, "do_shuffle", "the rows that trtllm kernels want have no use here")
    refuse(sf_vec_size != 16, f"sf_vec_size = {sf_vec_size}", "NVFP4 has blocks of 16")
    refuse(backend != "cuda", f"backend = '{backend}'", "pass 'cuda', whose bits these are")
    refuse(expanded_idx_to_permuted_idx is not None, "expanded_idx_to_permuted_idx",
           "pass a[permutation], whose rows are quantized in their order")
    refuse(out_scale is not None, "out_scale",
           "multiply the scales of the rows, the third result, with it")
    _refuse_four_over_six(nvfp4_4over6)
    check_input(a, "a", (torch.bfloat16, torch.float16), 16)
    recipe, layout = _recipe(), _layout(sfLayout)
    if per_token_activation:
        return _quantize_tokens(a, a_global_sf, recipe, recipe == _EXACT, layout)
    scale = converted(a_global_sf, "a_global_sf")
    program = quantizer(a.shape[-1], element(a.dtype), recipe, kernel_layout(layout), "a",
                        "a_global_sf", target(a))
    codes, scales = program(rows_of(a), scale)
    return results(a, codes, scales, layout, 16, "nvfp4_quantize")


def _quantize_tokens(a: torch.Tensor, inverse: Any, recipe: str, is_exact: bool,
                     layout: str) -> tuple[torch.Tensor, ...]:
    """With a scale for each row. The scale of a row of zeros is zero, or with exact reciprocals the
    least that has one."""
    x = rows_of(a)
    if not isinstance(inverse, torch.Tensor):
        inverse = torch.tensor(float(inverse), device=x.device)
    inverse, most = converted(inverse, "a_global_sf"), torch.finfo(torch.float32).max
    amax = torch.ops.fp4.amax(x, True)
    if is_exact:
        encode = (inverse.reciprocal() / amax).clamp(max=most)
        encode = torch.where(encode == 0, 1.0, encode)
        tokens = encode.reciprocal()
    else:
        tokens = amax * inverse
        encode = torch.where(tokens == 0, 0.0, tokens.reciprocal())
    codes, scales = torch.ops.fp4.quantize(x, encode, None, "nvfp4", recipe, kernel_layout(layout),
                                           False, False, None)
    return (*results(a, codes, scales, layout, 16, "nvfp4_quantize"), tokens)


@eager
def silu_and_mul_nvfp4_quantize(
    input: torch.Tensor,
    global_scale: torch.Tensor,
    sf_vec_size: int = 16,
    is_sf_swizzled_layout: bool = True,
    is_sf_8x4_layout: bool = False,
    enable_pdl: bool | None = None,
    nvfp4_4over6: Any = _UNSET,
) -> tuple[torch.Tensor, ...]:
    """Quantizes silu(input[..., :K]) * input[..., K:], which is computed in fp32 and rounded to the
    dtype of `input` first.

    Args:
        input: bf16 or f16 of shape [..., 2K], K a multiple of 16.
        global_scale: as nvfp4_quantize has a_global_sf.
        is_sf_swizzled_layout, is_sf_8x4_layout: scales in layout_128x4, or with the second in
            layout_8x4; without the first in layout_linear.

    Returns:
        As nvfp4_quantize, with codes [M, K/2].
    """
    refuse(sf_vec_size != 16, f"sf_vec_size = {sf_vec_size}", "NVFP4 has blocks of 16")
    _refuse_four_over_six(nvfp4_4over6)
    check_input(input, "input", (torch.bfloat16, torch.float16), 32)
    layout = _layout(_chosen(is_sf_swizzled_layout, is_sf_8x4_layout))
    columns, ending = input.shape[-1] // 2, Ending("nvfp4", _recipe(), kernel_layout(layout), 0)
    program = gate(Gate(columns, element(input.dtype), ending), target(input))
    halves = flat_rows(input.detach()).chunk(2, 1)
    codes, scales = program(*map(placed, halves), converted(global_scale, "global_scale"))
    return results(input[..., :columns], codes, scales, layout, 16, "silu_and_mul_nvfp4_quantize")


@eager
def rmsnorm_quant(
    out: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    scale: float | torch.Tensor,
    eps: float = 1e-6,
    enable_pdl: bool | None = None,
) -> None:
    """Writes E4M3 of the RMSNorm of rows to `out`: x * r * weight * (1 / scale) in f32, within
    +-448, rounded once. r = 1 / sqrt(sum / K + eps). NaN becomes 448, as in the kernels of CUDA.

    Args:
        out: float8_e4m3fn, of the shape of `input`.
        input: bf16 or f16 [..., K].
        weight: [K], of the dtype of `input`.
        scale: one number of any floating-point dtype.

    Raises:
        UsageError: an argument that does not fit, or an option that has no kernel here.
    """
    static_fp8(_NORM, eps, out, input, None, weight, number(scale, input))


@eager
def fused_add_rmsnorm_quant(
    out: torch.Tensor,
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    scale: float | torch.Tensor,
    eps: float = 1e-6,
    enable_pdl: bool | None = None,
) -> None:
    """rmsnorm_quant of input + residual in f32, which is left in `residual`, rounded.

    Raises:
        UsageError: an argument that does not fit, or an option that has no kernel here.
    """
    static_fp8(_NORM, eps, out, input, residual, weight, number(scale, input))


@eager
def apply_rope_with_cos_sin_cache(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`query` and `key`, bf16 or f16 [T, H * head_size], rotated by fp4.torch.rotate: a kernel
    each. `positions` are int32 or int64 [T], and `cos_sin_cache` is f32."""
    at, table = places(positions, "positions", INTEGERS), angles(cos_sin_cache, (torch.float32,))
    query, key = (rotated(x, name, HALVES, head_size, table, at, is_neox)
                  for x, name in ((query, "query"), (key, "key")))
    return query, key


@eager
def apply_rope_with_cos_sin_cache_inplace(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool = True,
) -> None:
    """apply_rope_with_cos_sin_cache, copied to `query` and `key`."""
    found = apply_rope_with_cos_sin_cache(positions, query, key, head_size, cos_sin_cache, is_neox)
    query.copy_(found[0])
    key.copy_(found[1])


@eager
def mxfp8_quantize(
    input: torch.Tensor,
    is_sf_swizzled_layout: bool = True,
    alignment: int = 32,
    enable_pdl: bool | None = None,
    backend: str = "cuda",
    sf_swizzle_layout: SfLayout | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantizes a matrix to MXFP8: E4M3 elements, and a UE8M0 scale for each 32, rounded up.

    Args:
        input: bf16 or f16 of shape [..., K], K a multiple of 32.
        alignment: K is filled up with zeros to a multiple of it.
        sf_swizzle_layout: in the place of is_sf_swizzled_layout.

    Returns:
        Elements, float8_e4m3fn [..., K]; and scales as uint8, flat, as mxfp4_quantize orders them.
    """
    refuse(backend != "cuda", f"backend = '{backend}'", "pass 'cuda'")
    check_input(input, "input", (torch.bfloat16, torch.float16), 32)
    if alignment < 32 or alignment % 32:
        raise UsageError(f"argument 'alignment' must be a multiple of 32, but got {alignment}")
    layout = _layout(_chosen(is_sf_swizzled_layout) if sf_swizzle_layout is None else
                     sf_swizzle_layout)
    x = torch.nn.functional.pad(input, (0, -input.shape[-1] % alignment))
    program = quantizer(x.shape[-1], element(x.dtype), "mxfp8_e4m3_rceil", kernel_layout(layout),
                        "input", "", target(x), "mxfp8_e4m3")
    codes, scales = program(rows_of(x))
    rows, blocks = x.numel() // x.shape[-1], x.shape[-1] // 32
    scales = laid_out(scales, layout, rows, blocks).reshape(-1)
    return (codes.view(torch.float8_e4m3fn).view(x.shape),
            note(scales, layout, rows, blocks, "mxfp8_quantize"))


@eager
def nvfp4_batched_quantize(
    a: torch.Tensor,
    a_global_sf: torch.Tensor,
    sf_vec_size: int = 16,
    nvfp4_4over6: Any = _UNSET,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantizes each matrix of a batch to NVFP4.

    Args:
        a: bf16 or f16 [B, M, K], row-major, K a multiple of 16.
        a_global_sf: one f32, or one for each matrix.

    Returns:
        Codes, uint8 [B, M, K/2]; and E4M3 scales as uint8 [B, 128 * ceil(M/128) * 4 * ceil(K/64)],
        each matrix in layout_128x4.
    """
    refuse(sf_vec_size != 16, f"sf_vec_size = {sf_vec_size}", "NVFP4 has blocks of 16")
    _refuse_four_over_six(nvfp4_4over6)
    codes, scales = quantized_batch(a, a_global_sf, _recipe(), "nvfp4_batched_quantize")
    return codes, scales.view(a.shape[0], -1)


@eager
def scaled_fp4_grouped_quantize(
    a: torch.Tensor,
    mask: torch.Tensor,
    a_global_sf: torch.Tensor,
    nvfp4_4over6: Any = _UNSET,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantizes each matrix of a batch to NVFP4, as the masked grouped matmul takes it.

    Args:
        a: bf16 or f16 [B, M, K], row-major, K a multiple of 16.
        mask: int32 [B], the rows of each matrix that count. FlashInfer leaves the results of the
            others unspecified; here they are quantized too.
        a_global_sf: one f32, or one for each matrix.

    Returns:
        Codes, uint8 [M, K/2, B], a view of [B, M, K/2]; and scales, float8_e4m3fn
        [32, 4, ceil(M/128), 4, ceil(K/64), B], a view of the tiles of each matrix.
    """
    _refuse_four_over_six(nvfp4_4over6)
    codes, scales = quantized_batch(a, a_global_sf, _recipe(), "scaled_fp4_grouped_quantize")
    numbers(mask, "mask", a.shape[0], (torch.int32,))
    tiles = scales.view(a.shape[0], -(-a.shape[1] // 128), -(-a.shape[2] // 64), 32, 4, 4)
    return codes.permute(1, 2, 0), tiles.view(torch.float8_e4m3fn).permute(3, 4, 1, 5, 2, 0)


@eager
def mxfp4_quantize(
    a: torch.Tensor,
    backend: str = "cuda",
    enable_pdl: bool | None = None,
    sfLayout: SfLayout = SfLayout.layout_128x4,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantizes a matrix to MXFP4: blocks of 32 with UE8M0 scales, rounded up.

    Args:
        a: bf16 or f16 of shape [..., K], K a multiple of 32.
        backend: "cuda".

    Returns:
        As nvfp4_quantize, with K/32 scales in a row.

    Raises:
        UsageError: an argument that does not fit, or an option that has no kernel here.
    """
    refuse(backend != "cuda", f"backend = '{backend}'", "pass 'cuda', whose bits these are")
    check_input(a, "a", (torch.bfloat16, torch.float16), 32)
    layout = _layout(sfLayout)
    program = quantizer(a.shape[-1], element(a.dtype), "mxfp4_flashinfer", kernel_layout(layout),
                        "a", "", target(a), "mxfp4")
    codes, scales = program(rows_of(a))
    return results(a, codes, scales, layout, 32, "mxfp4_quantize")


@eager
def mm_fp4(
    a: torch.Tensor,
    b: torch.Tensor,
    a_descale: torch.Tensor,
    b_descale: torch.Tensor,
    alpha: torch.Tensor | None = None,
    out_dtype: torch.dtype = torch.bfloat16,
    out: torch.Tensor | None = None,
    block_size: int = 16,
    use_8x4_sf_layout: bool = False,
    backend: str = "auto",
    use_nvfp4: bool = True,
    enable_pdl: bool = True,
) -> torch.Tensor:
    """alpha * A B of operands that nvfp4_quantize or mxfp4_quantize made, in layout_128x4.

    Args:
        a: codes [M, K/2], uint8 or float4_e2m1fn_x2.
        b: codes [K/2, N], column-major: the transposed view of a row-major [N, K/2].
        a_descale: tiled scales of A, [128 * i, 4 * j].
        b_descale: tiled scales of B, likewise, or their transposed view.
        alpha: f32; one number, or one for each row of A. None is 1.
        out_dtype: bfloat16 or float16.
        out: [M, N], which receives the result and is returned.
        block_size: 16 with use_nvfp4, else 32.
        backend: "auto", "cudnn" or "cutlass", all of which are fp4's kernel, with the sum of the
            tensor core (reference/numerics.md).

    Raises:
        UsageError: an operand of another size, dtype or layout. Scales without padding that no
            function of fp4.compat made may be linear, so they must be fp4.tiled(...).
    """
    refuse(use_8x4_sf_layout, "use_8x4_sf_layout",
           "matmuls read the layout 128x4: quantize with SfLayout.layout_128x4")
    refuse(backend not in ("auto", "cudnn", "cutlass"), f"backend = '{backend}'",
           "the operands of 'auto', 'cudnn' and 'cutlass' are those of this matmul")
    refuse(out_dtype not in (torch.bfloat16, torch.float16), f"out_dtype = {out_dtype}")
    refuse(block_size != (16 if use_nvfp4 else 32), f"block_size = {block_size}",
           "NVFP4 has blocks of 16, and MXFP4 (use_nvfp4 = False) of 32")
    check_codes(a, "a")
    check_codes(b, "b")
    if a.shape[1] != b.shape[0]:
        raise UsageError(f"arguments 'a' and 'b' must have one K, but got {2 * a.shape[1]} and "
                         f"{2 * b.shape[0]}", "b is the transposed view of a row-major [N, K/2]")
    if not b.t().is_contiguous():
        raise UsageError(f"argument 'b' must be column-major, but its strides of shape "
                         f"{list(b.shape)} are {b.stride()}",
                         "pass the transposed view of a row-major [N, K/2], and no copy of it")
    rows, columns, names = a.shape[0], 2 * a.shape[1], ("a", "a_descale", "b", "b_descale", "alpha")
    blocks = columns // block_size
    scales = [expect(upright(value), TILED, size, blocks, f"argument '{name}'")
              for value, size, name in ((a_descale, rows, names[1]), (b_descale, b.shape[1],
                                                                     names[3]))]
    factor = alpha_of(alpha, rows)
    form = "" if factor is None else "rows" if factor.dim() else "scalar"
    program = product(b.shape[1], columns, element(out_dtype), form, names, target(a),
                      "nvfp4" if use_nvfp4 else "mxfp4")
    given = () if factor is None else (factor,)
    result: torch.Tensor = program(a, scales[0], b.t(), scales[1], *given)
    return result if out is None else into(out, result)


@eager
def block_scale_interleave(
    unswizzled_sf: torch.Tensor, *, out: torch.Tensor | None = None
) -> torch.Tensor:
    """Rearranges linear scales into the layout 128x4, padded with zeros.

    Args:
        unswizzled_sf: uint8 [M, B].
        out: a flat buffer of the result's size, which receives it and is returned.

    Returns:
        uint8 [128 * ceil(M/128) * 4 * ceil(B/4)], flat.
    """
    check_tensor(unswizzled_sf, "unswizzled_sf")
    if unswizzled_sf.dtype != torch.uint8 or unswizzled_sf.dim() != 2:
        raise UsageError("argument 'unswizzled_sf' must be a matrix of uint8, but got "
                         f"{unswizzled_sf.dtype} of shape {list(unswizzled_sf.shape)}",
                         "rearrange the scales of one expert at a time, as bytes")
    rows, columns = unswizzled_sf.shape
    scales = expect(unswizzled_sf, LINEAR, rows, columns, "argument 'unswizzled_sf'")
    program = swizzler(columns, "unswizzled_sf", target(scales))
    tiles = program(scales).view(torch.uint8).reshape(-1)
    tiles = note(tiles, TILED, rows, columns, "block_scale_interleave")
    if out is None:
        return tiles
    return note(into(out, tiles), TILED, rows, columns, "block_scale_interleave")


#: The older name of block_scale_interleave.
nvfp4_block_scale_interleave = block_scale_interleave


@eager
def e2m1_and_ufp8sf_scale_to_float(
    e2m1_tensor: torch.Tensor,
    ufp8_scale_tensor: torch.Tensor,
    global_scale_tensor: torch.Tensor | None = None,
    sf_vec_size: int = 16,
    ufp8_type: int = 1,
    is_sf_swizzled_layout: bool = True,
    is_sf_8x4_layout: bool = False,
) -> torch.Tensor:
    """The f32 matrix that codes and scales stand for: code * (scale * global scale).

    Args:
        e2m1_tensor: uint8 [M, K/2].
        ufp8_scale_tensor: scales of M x K/sf_vec_size, E4M3 or UE8M0.
        global_scale_tensor: one f32, the decode scale 1 / a_global_sf; needed for E4M3.
        sf_vec_size, ufp8_type: 16 and 1 (E4M3), or 32 and 0 (UE8M0).
        is_sf_swizzled_layout, is_sf_8x4_layout: as silu_and_mul_nvfp4_quantize has them.
    """
    refuse((sf_vec_size, ufp8_type) not in ((16, 1), (32, 0)),
           f"sf_vec_size = {sf_vec_size} with ufp8_type = {ufp8_type}",
           "NVFP4 is 16 and 1, MXFP4 is 32 and 0")
    check_codes(e2m1_tensor, "e2m1_tensor")
    rows, columns = e2m1_tensor.shape[0], 2 * e2m1_tensor.shape[1]
    layout = _layout(_chosen(is_sf_swizzled_layout, is_sf_8x4_layout))
    scales = expect(ufp8_scale_tensor, layout, rows, columns // sf_vec_size,
                    "argument 'ufp8_scale_tensor'")
    if layout == EIGHT:
        scales, layout = from_eight(scales, rows, columns // sf_vec_size), LINEAR
    names = ("e2m1_tensor", "ufp8_scale_tensor", "global_scale_tensor")
    if ufp8_type == 0:
        _refuse_other_scale(global_scale_tensor)
        program = dequantizer(rows, columns, "f32", "mxfp4_flashinfer", layout, names[:2],
                              target(e2m1_tensor), "mxfp4")
        values: torch.Tensor = program(e2m1_tensor, scales)
        return values
    if global_scale_tensor is None:
        raise UsageError("argument 'global_scale_tensor' must be given for E4M3 scales",
                         "it is 1 / a_global_sf")
    program = dequantizer(rows, columns, "f32", _DECODE, layout, names, target(e2m1_tensor))
    values = program(e2m1_tensor, scales, scalar(global_scale_tensor, names[2]))
    return values


@eager
def mxfp4_dequantize(
    a_fp4: torch.Tensor,
    a_sf: torch.Tensor,
    sfLayout: SfLayout = SfLayout.layout_128x4,
) -> torch.Tensor:
    """The f32 matrix [M, K] of codes `a_fp4`, uint8 [M, K/2], and scales `a_sf` in `sfLayout`, as
    mxfp4_quantize returned them."""
    layout = _layout(sfLayout)
    return e2m1_and_ufp8sf_scale_to_float(
        a_fp4, a_sf, sf_vec_size=32, ufp8_type=0, is_sf_swizzled_layout=layout != LINEAR,
        is_sf_8x4_layout=layout == EIGHT)


def _recipe() -> str:
    return _EXACT if os.environ.get("FLASHINFER_DISABLE_FP4_QUANT_FAST_MATH") == "1" else _FAST


def _refuse_four_over_six(config: Any) -> None:
    asked = os.environ.get("FLASHINFER_NVFP4_4OVER6") == "1" if config is _UNSET else config
    refuse(bool(asked), "nvfp4_4over6 with a global scale from the caller",
           "pass nvfp4_4over6 = None; the recipe flashinfer_four_over_six takes an amax")


def _refuse_other_scale(scale: torch.Tensor | None) -> None:
    refuse(scale is not None and bool((scale != 1).any()), "a global scale of MXFP4",
           "its scales have no second level; pass None or 1")


def _chosen(is_swizzled: bool, is_8x4: bool = False) -> SfLayout:
    """Returns the layout of scales that FlashInfer's two flags choose."""
    if not is_swizzled:
        return SfLayout.layout_linear
    return SfLayout.layout_8x4 if is_8x4 else SfLayout.layout_128x4


def _layout(layout: SfLayout) -> str:
    try:
        value = SfLayout(layout)
    except ValueError:
        raise UsageError(f"argument 'sfLayout' must be an SfLayout, but got {layout!r}") from None
    return {SfLayout.layout_128x4: TILED, SfLayout.layout_8x4: EIGHT,
            SfLayout.layout_linear: LINEAR}[value]
