"""torch.nn.functional.scaled_mm for tensors on the CPU, and with fp4's kernels on a GPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import ScalingType, SwizzleType

from ..errors import UsageError
from .functional import check_bias
from .scaled import SCALE_DTYPES

#: torch multiplies by the decode scales of both tensors.
_RECIPE = "modelopt, tensor_scale = supplied_decode"
_FORMATS = {
    (ScalingType.BlockWise1x16,): "nvfp4",
    (ScalingType.BlockWise1x16, ScalingType.TensorWise): "nvfp4",
    (ScalingType.BlockWise1x32,): "mxfp4",
}


def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None,
    bias: Tensor | None = None,
    output_dtype: torch.dtype | None = torch.bfloat16,
    contraction_dim: list[int] | tuple[int, ...] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """torch.nn.functional.scaled_mm of 4-bit operands, with its signature and meaning. The gradient
    is that of the bias.

    Args:
        mat_a: float4_e2m1fn_x2 [M, K/2], row-major.
        mat_b: float4_e2m1fn_x2 [K/2, N], column-major: w.t() of a matrix [N, K/2].
        scale_a, scale_b: for NVFP4 float8_e4m3fn block scales, or a list of them and of the decode
            scale amax / 2688 of the tensor, one float32; for MXFP4 float8_e8m0fnu. Block scales are
            tiles of 128 x 4, of any shape with roundup(M, 128) * roundup(K / block, 4) elements.
        scale_recipe_a, scale_recipe_b: BlockWise1x16, [BlockWise1x16, TensorWise], or
            BlockWise1x32, the same for both.
        swizzle_a, swizzle_b: SWIZZLE_32_4_4 for the block scales, in a list NO_SWIZZLE for the
            scale of the tensor.
        bias: [N], added in fp32.
        output_dtype: bfloat16, float16 or float32, of the result [M, N], which is rounded once.
        contraction_dim: () or (1, 0).
        use_fast_accum: False.
    """
    format, blocks_a, number_a = _scales(scale_a, scale_recipe_a, swizzle_a, mat_a, "a")
    other, blocks_b, number_b = _scales(scale_b, scale_recipe_b, swizzle_b, mat_b.t(), "b")
    _check(mat_a, mat_b, contraction_dim, use_fast_accum)
    if format != other or (number_a is None) != (number_b is None):
        raise UsageError("'scale_recipe_a' and 'scale_recipe_b' must be the same, but got "
                         f"{scale_recipe_a} and {scale_recipe_b}")
    if output_dtype not in (torch.bfloat16, torch.float16, torch.float32):
        raise UsageError("'output_dtype' must be bfloat16, float16 or float32, but got "
                         f"{output_dtype}")
    check_bias(bias, mat_b.shape[1])
    result: Tensor = torch.ops.fp4.scaled_mm(
        mat_a, blocks_a, number_a, mat_b.t(), blocks_b, number_b, bias, format, _RECIPE, _RECIPE,
        output_dtype)
    return result


def _check(a: Tensor, b: Tensor, contraction_dim: Any, use_fast_accum: bool) -> None:
    if use_fast_accum:
        raise UsageError("'use_fast_accum' must be False: 4-bit matmuls accumulate in fp32")
    if tuple(contraction_dim) not in ((), (1, 0), (-1, -2), (1, -2), (-1, 0)):
        raise UsageError(f"'contraction_dim' must be () or (1, 0), but got {contraction_dim}")
    if a.shape[1] != b.shape[0]:
        raise UsageError("'mat_a' and 'mat_b' must have one K, but got "
                         f"{2 * a.shape[1]} and {2 * b.shape[0]}",
                         "mat_b is the transposed view of a weight [N, K/2]")


def _scales(scale: Any, recipe: Any, swizzle: Any, matrix: Tensor,
            name: str) -> tuple[str, Tensor, Tensor | None]:
    """The format, the block scales and the scale of the tensor of an operand [rows, K/2]."""
    _check_matrix(matrix, name)
    recipes, scales, swizzles = _list(recipe), _list(scale), _list(swizzle)
    if tuple(recipes) not in _FORMATS:
        raise UsageError(f"'scale_recipe_{name}' must be BlockWise1x16, [BlockWise1x16, TensorWise]"
                         f" or BlockWise1x32, but got {recipe}", "fp4 has matmuls of FP4 only")
    format = _FORMATS[tuple(recipes)]
    if len(scales) != len(recipes):
        raise UsageError(f"'scale_{name}' must have {len(recipes)} scales, as its recipe, but got "
                         f"{len(scales)}")
    if swizzles[:1] != [SwizzleType.SWIZZLE_32_4_4] or any(
            item != SwizzleType.NO_SWIZZLE for item in swizzles[1:]) or len(swizzles) > len(scales):
        raise UsageError(f"'swizzle_{name}' must be SWIZZLE_32_4_4 for block scales, but got "
                         f"{swizzle}", "nothing is swizzled silently: use fp4.torch.swizzle")
    rows, columns = matrix.shape[0], 2 * matrix.shape[1]
    block = 16 if format == "nvfp4" else 32
    if columns % block:
        raise UsageError(f"K must be a multiple of {block}, but is {columns} in 'mat_{name}'")
    tiles = (-(-rows // 128), -(-(columns // block) // 4), 512)
    blocks = scales[0]
    size = tiles[0] * tiles[1] * 512
    if blocks.dtype != SCALE_DTYPES[format] or blocks.numel() != size or not blocks.is_contiguous():
        raise UsageError(f"'scale_{name}' must be contiguous {str(SCALE_DTYPES[format])[6:]} with "
                         f"{size} elements, but got {str(blocks.dtype)[6:]} of shape "
                         f"{list(blocks.shape)}", "tiles are of 128 rows and 4 columns, the last "
                         "ones filled up: use fp4.torch.swizzle")
    return format, blocks.view(tiles), _number(scales[1:], name)


def _check_matrix(matrix: Tensor, name: str) -> None:
    if matrix.dim() != 2 or matrix.dtype != torch.float4_e2m1fn_x2:
        raise UsageError(f"'mat_{name}' must be a matrix of float4_e2m1fn_x2, but got "
                         f"{str(matrix.dtype)[6:]} of shape {list(matrix.shape)}",
                         "bytes are passed as x.view(torch.float4_e2m1fn_x2)")
    if not matrix.is_contiguous():
        raise UsageError(f"'mat_{name}' must be {'column' if name == 'b' else 'row'}-major, but "
                         "its strides are not",
                         "K must be contiguous: transpose before you quantize, a copy of packed "
                         "data moves pairs")


def _number(scales: list[Tensor], name: str) -> Tensor | None:
    if not scales:
        return None
    if scales[0].dtype != torch.float32 or scales[0].numel() != 1:
        raise UsageError(f"the second scale of 'scale_{name}' must be one float32, but got "
                         f"{str(scales[0].dtype)[6:]} of shape {list(scales[0].shape)}")
    return scales[0].reshape(())


def _list(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]
