"""The operations torch.ops.fp4.*: what torch.compile and export put into a graph.

    amax(x, per_row)                      -> float32 scalar, or [M]
    hadamard_amax(x, sign_mask)           -> the amax of x, and of x transformed along M
    hadamard(x, dim, size, sign_mask)     -> like x
    quantize(x, amax?, rng?, ...)         -> data, scales
    quantize_both(x, amax?, columnwise_amax?, rng?, ...)
                                          -> data, scales, and those of the transpose of x
    fake_quantize(x, amax?, rng?, ...)    -> like x
    dequantize(data, scales, amax?, ...)  -> [M, K]
    swizzle_scales(scales)                -> [bytes]
    unswizzle_scales(scales, rows, columns) -> [rows, columns]
    scaled_mm(a, scale_a, amax_a?, b, scale_b, amax_b?, bias?, ...) -> [M, N]

The operators take plain tensors: data and scales may have their own dtypes or uint8. The functions
of fp4.torch take and return Scaled, and document shapes and dtypes. A graph has the number of rows
as a symbol. Columns are compiled into a program.

Tiled scales are one row of bytes here. In the shape [ceil(M/128), ...] their first size would be 1
for up to 128 rows, and torch makes a graph of its own for a size that is 1.
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import UsageError
from . import programs
from .execution import run
from .operation import Operation
from .programs import Runnable
from .recipes import BLOCKS
from .scaled import SCALE_DTYPES
from .strides import dense, placed

_Pair = tuple[torch.Tensor, torch.Tensor]
_Four = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def _columns(x: torch.Tensor) -> int:
    if x.dim() != 2:
        raise UsageError(f"the input must be a matrix, but has the shape {list(x.shape)}",
                         "flatten the leading dimensions")
    return int(x.shape[1])


def _element(dtype: torch.dtype, what: str) -> str:
    if dtype not in programs.ELEMENTS:
        raise UsageError(f"{what} must be bfloat16, float16 or float32, but got {str(dtype)[6:]}")
    return programs.ELEMENTS[dtype]


def _amax(x: torch.Tensor, per_row: bool) -> torch.Tensor:
    if not x.numel():
        return x.new_zeros(x.shape[:1] if per_row else (), dtype=torch.float32)
    columns, x = _columns(x), placed(x)
    facts = (columns, _element(x.dtype, "the input"), per_row, not x.is_contiguous())
    result: torch.Tensor = run(programs.amax, facts, x)
    return result


def _amax_fake(x: torch.Tensor, per_row: bool) -> torch.Tensor:
    return x.new_empty(x.shape[:1] if per_row else (), dtype=torch.float32)


def _hadamard_amax(x: torch.Tensor, sign_mask: int) -> _Pair:
    if not x.numel():
        return x.new_zeros((), dtype=torch.float32), x.new_zeros((), dtype=torch.float32)
    result: _Pair = run(programs.hadamard_amax, (_columns(x), sign_mask), dense(x))
    return result


def _hadamard_amax_fake(x: torch.Tensor, sign_mask: int) -> _Pair:
    return x.new_empty((), dtype=torch.float32), x.new_empty((), dtype=torch.float32)


def _hadamard(x: torch.Tensor, dim: int, size: int, sign_mask: int) -> torch.Tensor:
    if not x.numel():
        return _hadamard_fake(x, dim, size, sign_mask)
    facts = (_columns(x), dim, size, sign_mask)
    result: torch.Tensor = run(programs.hadamard, facts, dense(x))
    return result


def _hadamard_fake(x: torch.Tensor, dim: int, size: int, sign_mask: int) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _quantize(x: torch.Tensor, amax: torch.Tensor | None, rng: torch.Tensor | None, format: str,
              recipe: str, layout: str, square: bool, columnwise: bool,
              sign_mask: int | None) -> _Pair:
    if not x.numel():
        return _outputs(x, format, layout, columnwise)
    columns, x = _columns(x), placed(x)
    facts = (columns, _element(x.dtype, "the input"), format, recipe, layout,
             "columnwise" if columnwise else "rowwise", int(amax is not None),
             amax is not None and amax.dim() == 1, rng is not None, square, sign_mask,
             not x.is_contiguous())
    data, scales = run(_quantizer, facts, x, amax, rng)
    return data, scales if layout == "linear" else scales.view(-1)


def _quantizer(*facts: Any) -> Runnable:
    """The quantizer of these members of programs.Quantizer, and of a target."""
    return programs.quantizer(programs.Quantizer(*facts[:-1]), facts[-1])


def _quantize_fake(x: torch.Tensor, amax: torch.Tensor | None, rng: torch.Tensor | None,
                   format: str, recipe: str, layout: str, square: bool, columnwise: bool,
                   sign_mask: int | None) -> _Pair:
    return _outputs(x, format, layout, columnwise)


def _outputs(x: torch.Tensor, format: str, layout: str, columnwise: bool) -> _Pair:
    """Empty data and scales of x, or of its transpose."""
    rows, columns = x.shape
    if columnwise:
        rows, columns = columns, rows
    return (x.new_empty((rows, columns // 2), dtype=torch.float4_e2m1fn_x2),
            x.new_empty(_scale_shape(rows, -(-columns // BLOCKS[format]), layout),
                        dtype=SCALE_DTYPES[format]))


def _scale_shape(rows: int, blocks: int, layout: str) -> tuple[int, ...]:
    if layout == "linear":
        return rows, blocks
    return (-(-rows // 128) * -(-blocks // 4) * 512,)


def _quantize_both(x: torch.Tensor, amax: torch.Tensor | None,
                   columnwise_amax: torch.Tensor | None, rng: torch.Tensor | None, format: str,
                   recipe: str, square: bool, sign_mask: int | None) -> _Four:
    if not x.numel():
        return _quantize_both_fake(x, amax, columnwise_amax, rng, format, recipe, square, sign_mask)
    facts = (_columns(x), _element(x.dtype, "the input"), format, recipe, "tiled_128x4", "both",
             (amax is not None) + (columnwise_amax is not None),
             amax is not None and amax.dim() == 1, rng is not None, square, sign_mask)
    q, s, qt, st = run(_quantizer, facts, dense(x), amax, columnwise_amax, rng)
    return q, s.view(-1), qt, st.view(-1)


def _quantize_both_fake(x: torch.Tensor, amax: torch.Tensor | None,
                        columnwise_amax: torch.Tensor | None, rng: torch.Tensor | None,
                        format: str, recipe: str, square: bool, sign_mask: int | None) -> _Four:
    return (*_outputs(x, format, "tiled_128x4", False), *_outputs(x, format, "tiled_128x4", True))


def _fake_quantize(x: torch.Tensor, amax: torch.Tensor | None, rng: torch.Tensor | None,
                   format: str, recipe: str, square: bool) -> torch.Tensor:
    data, scales = _quantize(x, amax, rng, format, recipe, "linear", square, False, None)
    return _dequantize(data, scales, amax, format, recipe, x.dtype)


def _fake_quantize_fake(x: torch.Tensor, amax: torch.Tensor | None, rng: torch.Tensor | None,
                        format: str, recipe: str, square: bool) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _dequantize(data: torch.Tensor, scales: torch.Tensor, amax: torch.Tensor | None, format: str,
                recipe: str, dtype: torch.dtype) -> torch.Tensor:
    if not data.numel():
        return _dequantize_fake(data, scales, amax, format, recipe, dtype)
    facts = (2 * _columns(data), _element(dtype, "'dtype'"), format, recipe,
             -1 if amax is None else amax.dim())
    result: torch.Tensor = run(programs.dequantizer, facts, data, scales, amax)
    return result


def _dequantize_fake(data: torch.Tensor, scales: torch.Tensor, amax: torch.Tensor | None,
                     format: str, recipe: str, dtype: torch.dtype) -> torch.Tensor:
    return data.new_empty((data.shape[0], 2 * data.shape[1]), dtype=dtype)


def _format_of(scales: torch.Tensor) -> str:
    """The format whose scales these are; bytes move in the same way in all of them."""
    for name, dtype in SCALE_DTYPES.items():
        if scales.dtype in (dtype, torch.uint8):
            return name
    raise UsageError(f"the scales must be float8_e4m3fn, float8_e8m0fnu or uint8, but got "
                     f"{str(scales.dtype)[6:]}", "scales.view(dtype) says what the bytes are")


def _swizzle_scales(scales: torch.Tensor) -> torch.Tensor:
    if not scales.numel():
        return _swizzle_scales_fake(scales)
    facts = (_columns(scales), _format_of(scales))
    result: torch.Tensor = run(programs.swizzler, facts, scales)
    return result.view(-1).view(scales.dtype)


def _swizzle_scales_fake(scales: torch.Tensor) -> torch.Tensor:
    return scales.new_empty(_scale_shape(scales.shape[0], scales.shape[1], "tiled_128x4"))


def _unswizzle_scales(scales: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    if not rows:
        return _unswizzle_scales_fake(scales, rows, columns)
    # All rows of all tiles: their number is static, and so matrices of 1 to 128 rows share one.
    facts = (-(-rows // 128) * 128, columns, _format_of(scales))
    result: torch.Tensor = run(programs.unswizzler, facts, scales)
    return result[:rows].view(scales.dtype)


def _unswizzle_scales_fake(scales: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    return scales.new_empty((rows, columns))


def _scaled_mm(a: torch.Tensor, scale_a: torch.Tensor, amax_a: torch.Tensor | None,
               b: torch.Tensor, scale_b: torch.Tensor, amax_b: torch.Tensor | None,
               bias: torch.Tensor | None, format: str, recipe_a: str, recipe_b: str,
               dtype: torch.dtype) -> torch.Tensor:
    columns, rows = 2 * _columns(b), int(b.shape[0])
    if not a.numel():
        return a.new_empty((0, rows), dtype=dtype)
    if (amax_a is None) != (amax_b is None):
        raise UsageError("both operands must have a scale of the tensor or none, but one has")
    result = _element(dtype if bias is None else torch.float32, "'dtype'")
    facts: tuple[Any, ...] = (columns, rows, result, format)
    if amax_a is not None and amax_b is not None:
        facts += ((recipe_a, recipe_b), (amax_a.dim(), amax_b.dim()))
    blocks = columns // BLOCKS[format]
    y: torch.Tensor = run(_product, facts, a, without_padding(scale_a, blocks), b,
                          without_padding(scale_b, blocks), amax_a, amax_b)
    # In fp32, so that the only rounding to `dtype` is the last step.
    return y if bias is None else y.add_(bias).to(dtype)


def _product(*facts: Any) -> Runnable:
    """The matmul of these members of programs.Product, and of a target."""
    return programs.product(programs.Product(*facts[:-1]), facts[-1])


def without_padding(scales: torch.Tensor, blocks: int) -> torch.Tensor:
    """Tiled scales whose padding columns are zero. The tensor core multiplies them with elements
    beyond K, which are zero, and zero times NaN would reach the result. Padding rows are harmless:
    nobody reads their results."""
    if not blocks % 4:
        return scales
    tiles = scales.view(torch.uint8).reshape(-1, -(-blocks // 4), 128, 4).clone()
    tiles[:, -1, :, blocks % 4:] = 0
    return tiles.view(scales.dtype).reshape(scales.shape)


def _scaled_mm_fake(a: torch.Tensor, scale_a: torch.Tensor, amax_a: torch.Tensor | None,
                    b: torch.Tensor, scale_b: torch.Tensor, amax_b: torch.Tensor | None,
                    bias: torch.Tensor | None, format: str, recipe_a: str, recipe_b: str,
                    dtype: torch.dtype) -> torch.Tensor:
    return a.new_empty((a.shape[0], b.shape[0]), dtype=dtype)


amax = Operation("amax(Tensor x, bool per_row) -> Tensor", _amax, _amax_fake)
hadamard_amax = Operation("hadamard_amax(Tensor x, int sign_mask) -> (Tensor, Tensor)",
                           _hadamard_amax, _hadamard_amax_fake)
hadamard = Operation("hadamard(Tensor x, int dim, int size, int sign_mask) -> Tensor", _hadamard,
                      _hadamard_fake)
quantize = Operation(
    "quantize(Tensor x, Tensor? amax, Tensor? rng, str format, str recipe, str layout, "
    "bool square, bool columnwise, int? sign_mask) -> (Tensor, Tensor)", _quantize, _quantize_fake)
quantize_both = Operation(
    "quantize_both(Tensor x, Tensor? amax, Tensor? columnwise_amax, Tensor? rng, str format, "
    "str recipe, bool square, int? sign_mask) -> (Tensor, Tensor, Tensor, Tensor)",
    _quantize_both, _quantize_both_fake)
fake_quantize = Operation(
    "fake_quantize(Tensor x, Tensor? amax, Tensor? rng, str format, str recipe, bool square) "
    "-> Tensor", _fake_quantize, _fake_quantize_fake)
dequantize = Operation(
    "dequantize(Tensor data, Tensor scales, Tensor? amax, str format, str recipe, "
    "ScalarType dtype) -> Tensor", _dequantize, _dequantize_fake)
swizzle_scales = Operation("swizzle_scales(Tensor scales) -> Tensor", _swizzle_scales,
                            _swizzle_scales_fake)
unswizzle_scales = Operation(
    "unswizzle_scales(Tensor scales, SymInt rows, int columns) -> Tensor", _unswizzle_scales,
    _unswizzle_scales_fake)
scaled_mm = Operation(
    "scaled_mm(Tensor a, Tensor scale_a, Tensor? amax_a, Tensor b, Tensor scale_b, "
    "Tensor? amax_b, Tensor? bias, str format, str recipe_a, str recipe_b, ScalarType dtype) "
    "-> Tensor", _scaled_mm, _scaled_mm_fake)
