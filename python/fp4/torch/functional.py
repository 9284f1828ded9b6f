"""Functions on tensors and Scaled matrices."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import UsageError
from ..tensors import check_dense
from . import gradients, recipes  # noqa: F401  (gradients registers them)
from .scaled import Scaled, scale_shape
from .strides import flat_rows

#: The signs of TransformerEngine's Hadamard transform: bit i is set where element i is negated.
SIGN_MASK = 0xD7E8

_ops = torch.ops.fp4


def amax(x: torch.Tensor, *, per_row: bool = False) -> torch.Tensor:
    """The largest magnitude of a matrix as float32.

    Args:
        x: bfloat16, float16 or float32, [M, K] or [..., K] whose leading sizes become M. NaN
            elements are skipped.
        per_row: one number for each row, [M], instead of a scalar.

    Returns:
        A scalar or [M]. No gradient is recorded.

    Raises:
        UsageError: an `x` of another dtype or shape.
    """
    result: torch.Tensor = _ops.amax(_matrix(x, "x"), per_row)
    return result


def quantize(x: torch.Tensor, *, format: str = "nvfp4", recipe: str = "",
             layout: str = "tiled_128x4", amax: torch.Tensor | None = None, per_row: bool = False,
             rounding: str = "nearest", rng: torch.Tensor | None = None,
             square: bool = False, transpose: bool = False) -> Scaled:
    """Quantizes a matrix along its rows. No gradient flows through it; fake_quantize has one.

    Args:
        x: bfloat16, float16 or float32, [M, K] or [..., K] whose leading sizes become M, of any
            strides: rows at multiples of 16 bytes are read where they are, others from a copy. K
            is a multiple of 2 for NVFP4 and of 32 for MXFP4.
        format: "nvfp4" (blocks of 16, E4M3 scales) or "mxfp4" (blocks of 32, E8M0 scales).
        recipe: of docs/reference/numerics.md; without it transformer_engine or ocp_floor.
        layout: of the scales: "tiled_128x4", which matmuls read, or "linear".
        amax: a float32 scalar or [M], used as it is; without it that of `x`. Recipes with
            tensor_scale = supplied or supplied_decode need it, because it is their scale.
        per_row: give every row an amax of its own.
        rounding: "nearest" (to even) or "stochastic".
        rng: int64 [seed, offset] of stochastic rounding; without it torch's generator makes one.
        square: let blocks be 16 x 16, so that the matrix and its transpose have the same values.
        transpose: quantize x^T instead, in one pass over `x` (columnwise quantization): the result
            is [K, M], and M is a multiple of the block, 16 or 32.

    Raises:
        UsageError: an argument that does not fit. Nothing is converted.
    """
    recipes.check_format(format)
    recipes.check_layout(layout)
    recipe = recipe or recipes.DEFAULT_RECIPES[format]
    rows = _matrix(x, "x")
    shape = (rows.shape[1], rows.shape[0]) if transpose else (rows.shape[0], rows.shape[1])
    if transpose:
        _check_transpose(shape[1], format, per_row or (amax is not None and amax.dim() == 1))
    else:
        _check_columns(rows, format)
    _check_devices(x=x, amax=amax, rng=rng)
    number = amax_for(rows, format, recipe, amax, per_row)
    data, scales = _ops.quantize(rows, number, _rng_for(rows, rounding, rng), format, recipe,
                                 layout, square, transpose, None)
    scales = scales.view(scale_shape(shape, format, layout))
    return Scaled(data, scales, None if number is None else _own(number, amax), shape, format,
                  layout, recipe)


def fake_quantize(x: torch.Tensor, *, format: str = "nvfp4", recipe: str = "",
                  amax: torch.Tensor | None = None, rounding: str = "nearest",
                  rng: torch.Tensor | None = None, square: bool = False) -> torch.Tensor:
    """dequantize(quantize(x)) in the shape and dtype of `x`, with arguments of `quantize`; the
    gradient passes straight through.

    Raises:
        UsageError: an argument that does not fit, as in `quantize`.
    """
    recipes.check_format(format)
    recipe = recipe or recipes.DEFAULT_RECIPES[format]
    rows = _rows(x, "x")
    _check_columns(rows, format)
    number = amax_for(rows.detach(), format, recipe, amax, False)
    result: torch.Tensor = _ops.fake_quantize(rows, number, _rng_for(rows, rounding, rng), format,
                                              recipe, square)
    return result.view(x.shape)


def dequantize(x: Scaled, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """The numbers of `x`, [M, K], computed in fp32 and rounded once to `dtype`: bfloat16, float16
    or float32. Tiled scales are rearranged first."""
    linear = swizzle(x, "linear")
    result: torch.Tensor = _ops.dequantize(_typed(x.data), linear.scales, x.amax, x.format,
                                           x.recipe, dtype)
    return result


def swizzle(x: Scaled, layout: str = "tiled_128x4") -> Scaled:
    """Returns the same matrix with scales in `layout`: "tiled_128x4", padded with zeros, or
    "linear". The result is `x` itself if its scales have that layout."""
    _check_scaled(x, "x")
    if recipes.check_layout(layout) == x.layout:
        return x
    scales = _typed(x.scales, x)
    if layout == "linear":
        scales = _ops.unswizzle_scales(scales, x.shape[0], -(-x.shape[1] // x.block))
    else:
        scales = _ops.swizzle_scales(scales).view(scale_shape(x.shape, x.format, layout))
    return Scaled(x.data, scales, x.amax, x.shape, x.format, layout, x.recipe)


def hadamard(x: torch.Tensor, dim: int = -1, *, size: int = 16,
             sign_mask: int = SIGN_MASK) -> torch.Tensor:
    """Multiplies each group of `size` elements along `dim` by an orthogonal matrix:
    y[j] = size^(-1/2) * sum_i s[i] * (-1)^popcount(i & j) * x[i].

    Args:
        x: bfloat16 [M, K].
        dim: 0 or 1. The size of the dimension is a multiple of `size`: 16, 32, 64 or 128.
        sign_mask: s[i] is -1 where bit i mod 16 is set.

    Returns:
        Like x: the sum is computed in fp32 and rounded once. The gradient is that of the exact
        transform, rounded in the same way.
    """
    if x.dim() != 2 or not -2 <= dim < 2:
        raise UsageError("'x' must be a matrix and 'dim' one of its dimensions, but got the shape "
                         f"{list(x.shape)} and {dim}")
    _check_input(x, "x")
    result: torch.Tensor = _ops.hadamard(x, dim % 2, size, sign_mask)
    return result


def linear(x: Scaled, weight: Scaled, bias: torch.Tensor | None = None,
           dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """x weight^T + bias of quantized matrices, [M, N].

    The fp32 sum of the tensor core is multiplied by the scales of the tensors, and the bias is
    added. The result is rounded once to `dtype`.

    Args:
        x: [M, K], its scales tiled.
        weight: [N, K] of the same format, its scales tiled.
        bias: [N], of a floating-point dtype.
        dtype: bfloat16, float16 or float32.
    """
    for value, name in ((x, "x"), (weight, "weight")):
        _check_scaled(value, name)
        if value.layout != "tiled_128x4":
            raise UsageError(f"'{name}' must have tiled_128x4 scales, but has {value.layout} ones",
                             f"pass fp4.torch.swizzle({name})")
    if x.format != weight.format or x.shape[1] != weight.shape[1]:
        raise UsageError(f"'x' and 'weight' must have one format and one K, but got {x!r} and "
                         f"{weight!r}", "quantize both in one format; K is the columns of both")
    if x.shape[1] % x.block:
        raise UsageError(f"K must be a multiple of {x.block}, but got {x.shape[1]}")
    _check_alpha(x, weight)
    check_bias(bias, weight.shape[0])
    _check_devices(x=x, weight=weight, bias=bias)
    result: torch.Tensor = _ops.scaled_mm(
        _typed(x.data), _typed(x.scales, x), x.amax, _typed(weight.data),
        _typed(weight.scales, weight), weight.amax, bias, x.format, x.recipe, weight.recipe, dtype)
    return result


def _check_devices(**operands: torch.Tensor | Scaled | None) -> None:
    """Nothing is moved: all operands are on the device of the first."""
    if torch.compiler.is_compiling():
        return
    first = ""
    device: torch.device | None = None
    for name, value in operands.items():
        if value is None:
            continue
        if device is None:
            first, device = name, value.device
        elif value.device != device:
            raise UsageError(f"'{first}' and '{name}' must be on one device, but are on {device} "
                             f"and {value.device}", "move one of them with .to(device)")


def _check_alpha(x: Scaled, weight: Scaled) -> None:
    if x.amax is None or weight.amax is None:
        return
    rules = [recipes.alpha_rule(value.recipe) for value in (x, weight)]
    if rules[0] != rules[1]:
        raise UsageError(f"'x' and 'weight' must have recipes with one decision 'alpha', but got "
                         f"{rules[0]} of '{x.recipe}' and {rules[1]} of '{weight.recipe}'",
                         f"quantize x with recipe='{x.recipe}, alpha = {rules[1]}', or with the "
                         "recipe of the weight")


def check_bias(bias: torch.Tensor | None, size: int) -> None:
    if bias is not None and (tuple(bias.shape) != (size,) or not bias.dtype.is_floating_point):
        raise UsageError(f"'bias' must be a floating-point tensor of shape [{size}], but got "
                         f"{str(bias.dtype)[6:]} of shape {list(bias.shape)}")


def random_state(device: torch.device) -> torch.Tensor:
    """A new [seed, offset] for stochastic rounding, from torch's generator: torch.manual_seed
    repeats it, and a replayed CUDA graph does not."""
    return torch.randint(2**62, (2,), dtype=torch.int64, device=device)


def _rows(x: Any, name: str) -> torch.Tensor:
    """[..., K] as [M, K], with its gradient."""
    _check_input(x, name)
    return flat_rows(x)


def _matrix(x: Any, name: str) -> torch.Tensor:
    """[..., K] as [M, K]."""
    return _rows(x, name).detach()


def _check_input(x: Any, name: str) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"'{name}' must be a torch.Tensor, but got {type(x).__name__}")
    check_dense(x, f"'{name}'")
    if not x.dtype.is_floating_point or x.dtype.itemsize < 2 or x.dtype == torch.float64:
        raise UsageError(f"'{name}' must be bfloat16, float16 or float32, but got "
                         f"{str(x.dtype)[6:]}", "nothing is converted; pass x.float()")
    if x.dim() == 0 or not x.shape[-1]:
        raise UsageError(f"'{name}' must be a matrix with columns, but got the shape "
                         f"{list(x.shape)}", "rows may be none, and columns not")


def _check_columns(x: torch.Tensor, format: str) -> None:
    multiple = 2 if format == "nvfp4" else 32
    if x.shape[1] % multiple:
        raise UsageError(f"the columns must be a multiple of {multiple}, but got {x.shape[1]}",
                         "pad them with zeros")


def _check_transpose(rows: int, format: str, per_row: bool) -> None:
    block = recipes.BLOCKS[format]
    if rows % block:
        raise UsageError(f"the rows must be a multiple of {block} with 'transpose', but got {rows}",
                         "pad them with zeros")
    if per_row:
        raise UsageError("'transpose' must have one amax, but got one for each row")


def _check_scaled(x: Any, name: str) -> None:
    if not isinstance(x, Scaled):
        raise TypeError(f"'{name}' must be an fp4.torch.Scaled, but got {type(x).__name__}\n"
                        f"note: pass fp4.torch.quantize({name})")


def amax_for(x: torch.Tensor, format: str, recipe: str, given: torch.Tensor | None,
              per_row: bool) -> torch.Tensor | None:
    """Returns what the recipe needs besides x: nothing, the amax that is given, or that of x."""
    if not recipes.has_tensor_scale(format, recipe):
        if given is not None:
            raise UsageError(f"recipe '{recipe}' of {format} has no scale of the tensor, but got "
                             "an amax")
        return None
    if given is None:
        if recipes.is_supplied(recipe) or recipes.is_supplied_decode(recipe):
            raise UsageError(f"recipe '{recipe}' takes the scale of the tensor, but got none",
                             "pass amax=scale")
        return amax(x, per_row=per_row)
    return checked_amax(given, x.shape[0])


def checked_amax(given: torch.Tensor, rows: int) -> torch.Tensor:
    """The amax of a matrix or of each of its rows, without a gradient."""
    if given.dtype != torch.float32 or tuple(given.shape) != ((rows,) if given.dim() else ()):
        raise UsageError(f"'amax' must be float32 and a scalar or [{rows}], but got "
                         f"{str(given.dtype)[6:]} of shape {list(given.shape)}",
                         "the amax is of the whole matrix, or of each row")
    return given.detach()


def _own(number: torch.Tensor, given: torch.Tensor | None) -> torch.Tensor:
    """The caller may change the amax that he gave."""
    return number if given is None else number.clone()


def _rng_for(x: torch.Tensor, rounding: str, rng: torch.Tensor | None) -> torch.Tensor | None:
    if rounding not in ("nearest", "stochastic"):
        raise UsageError(f"'rounding' must be nearest or stochastic, but got {rounding!r}",
                         "'nearest' is to even")
    if rounding == "nearest":
        if rng is not None:
            raise UsageError("'rng' must come with rounding='stochastic', but got nearest",
                             "leave one of both out")
        return None
    if rng is None:
        return random_state(x.device)
    if rng.dtype != torch.int64 or tuple(rng.shape) != (2,):
        raise UsageError("'rng' must be int64 [seed, offset], but got "
                         f"{str(rng.dtype)[6:]} of shape {list(rng.shape)}",
                         "leave it out, and the generator of torch gives both")
    return rng


def _typed(tensor: torch.Tensor, of: Scaled | None = None) -> torch.Tensor:
    """Bytes under the dtype that says what they are."""
    if tensor.dtype != torch.uint8:
        return tensor
    if of is None:
        return tensor.view(torch.float4_e2m1fn_x2)
    return tensor.view(torch.float8_e4m3fn if of.format == "nvfp4" else torch.float8_e8m0fnu)
