"""Norms of rows and gates, with a quantizer behind them in one kernel: operations and functions.

    norm(x, residual?, weight?, bias?, kind, ...) -> elements, x + residual
    norm_quantize(x, residual?, weight?, bias?, amax?, kind, ...)
                                         -> data, scales, amax, elements, x + residual
    silu_and_mul_quantize(x, amax?, ...) -> data, scales, amax

A result that a call does not have is empty.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import torch

from ..errors import UsageError
from ..formats import FORMATS
from . import functional, norm_programs, ops, programs, recipes
from .execution import run
from .norm_programs import Ending, Gate, Norm
from .operation import Operation
from .scaled import Scaled, scale_shape
from .strides import dense, placed_alike

_Optional = torch.Tensor | None
_Pair = tuple[torch.Tensor, torch.Tensor]
_Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
_Five = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]

#: The formats by what the compiler calls them.
_FORMATS = {**{name: name for name in ("nvfp4", "mxfp4", "mxfp8_e4m3", "fp8_block128")},
            "fp8_row": "fp8_block128"}
#: The multiples that columns must be of.
_MULTIPLES = {"nvfp4": 2, "fp8_block128": 16, "fp8_row": 16}
_ORDERS = ("torch", "llama")


class ScaledFP8(NamedTuple):
    """A matrix of E4M3 elements.

    Attributes:
        data: float8_e4m3fn [M, K].
        scales: factors of the elements: of mxfp8_e4m3 float8_e8m0fnu in their layout; else float32,
            [M, ceil(K/128)], or [M, 1] where a row has one.
    """

    data: torch.Tensor
    scales: torch.Tensor


class Normed(NamedTuple):
    """The results of a norm.

    Attributes:
        quantized: the elements of the norm, quantized along their rows.
        elements: these elements, in the shape and dtype of the input; None unless they are kept.
        residual: input + residual, the residual of the next layer; None without one.
    """

    quantized: Scaled | ScaledFP8
    elements: torch.Tensor | None
    residual: torch.Tensor | None


# ===--- Operations -------------------------------------------------------=== #


def _norm(x: torch.Tensor, residual: _Optional, weight: _Optional, bias: _Optional, kind: str,
          eps: float, offset: float | None, order: str) -> _Pair:
    if not x.numel():
        return _norm_fake(x, residual, weight, bias, kind, eps, offset, order)
    found = _run(x, residual, weight, bias, None, Ending(), kind, eps, offset, order)
    return found[0], _sum(x, None) if residual is None else found[1]


def _norm_fake(x: torch.Tensor, residual: _Optional, weight: _Optional, bias: _Optional, kind: str,
               eps: float, offset: float | None, order: str) -> _Pair:
    return torch.empty_like(x, memory_format=torch.contiguous_format), _sum(x, residual)


def _norm_quantize(x: torch.Tensor, residual: _Optional, weight: _Optional, bias: _Optional,
                   amax: _Optional, kind: str, eps: float, offset: float | None, order: str,
                   format: str, recipe: str, layout: str, per_row: bool, keep: bool) -> _Five:
    if not x.numel():
        return _norm_quantize_fake(x, residual, weight, bias, amax, kind, eps, offset, order,
                                   format, recipe, layout, per_row, keep)
    ending = _ending(format, recipe, layout, amax, per_row, keep)
    found = _run(x, residual, weight, bias, amax, ending, kind, eps, offset, order)
    y = found[-1 if residual is None else -2] if keep else x.new_empty(0)
    return *_three(x, found, layout, per_row), y, _sum(x, None) if residual is None else found[-1]


def _norm_quantize_fake(x: torch.Tensor, residual: _Optional, weight: _Optional, bias: _Optional,
                        amax: _Optional, kind: str, eps: float, offset: float | None, order: str,
                        format: str, recipe: str, layout: str, per_row: bool,
                        keep: bool) -> _Five:
    y = torch.empty_like(x, memory_format=torch.contiguous_format) if keep else x.new_empty(0)
    return (*_quantized(x, format, layout, per_row, x.shape[1]), y, _sum(x, residual))


def _run(x: torch.Tensor, residual: _Optional, weight: _Optional, bias: _Optional,
         amax: _Optional, ending: Ending, kind: str, eps: float, offset: float | None,
         order: str) -> tuple[torch.Tensor, ...]:
    """The results of the program of a norm."""
    inputs, is_strided = placed_alike(x, *() if residual is None else (residual,))
    what = Norm(x.shape[1], programs.ELEMENTS[x.dtype], kind, eps, _name(weight), _name(bias),
                offset, residual="" if residual is None else "rounded",
                is_normed_rounded=order == "llama", ending=ending,
                strided=is_strided and not all(value.is_contiguous() for value in inputs))
    scales = (None if scale is None else dense(scale) for scale in (weight, bias))
    found = run(norm_programs.norm, (what,), *inputs, *scales, amax)
    return found if isinstance(found, tuple) else (found,)


def _silu_and_mul_quantize(x: torch.Tensor, amax: _Optional, format: str, recipe: str,
                           layout: str, per_row: bool) -> _Three:
    if not x.numel():
        return _silu_and_mul_quantize_fake(x, amax, format, recipe, layout, per_row)
    halves, is_strided = placed_alike(*x.chunk(2, 1))
    what = Gate(x.shape[1] // 2, programs.ELEMENTS[x.dtype],
                _ending(format, recipe, layout, amax, per_row, False), is_strided)
    return _three(x, run(norm_programs.gate, (what,), *halves, amax), layout, per_row)


def _silu_and_mul_quantize_fake(x: torch.Tensor, amax: _Optional, format: str, recipe: str,
                                layout: str, per_row: bool) -> _Three:
    return _quantized(x, format, layout, per_row, x.shape[1] // 2)


def _three(x: torch.Tensor, found: tuple[torch.Tensor, ...], layout: str, per_row: bool) -> _Three:
    """Data, scales and amax of the results of a program."""
    return (found[0], found[1] if layout == "linear" else found[1].view(-1),
            found[2] if per_row else x.new_empty(0, dtype=torch.float32))


def _quantized(x: torch.Tensor, format: str, layout: str, per_row: bool, columns: int) -> _Three:
    """Empty data, scales and amax of a matrix of the rows of x."""
    rows, facts = x.shape[0], FORMATS[_FORMATS[format]]
    if format in recipes.BLOCKS:
        data = x.new_empty((rows, columns // 2), dtype=torch.float4_e2m1fn_x2)
    else:
        data = x.new_empty((rows, columns), dtype=torch.float8_e4m3fn)
    blocks = 1 if format == "fp8_row" else -(-columns // facts.block)
    dtypes = {"f8E4M3FN": torch.float8_e4m3fn, "f8E8M0FNU": torch.float8_e8m0fnu,
              "f32": torch.float32}
    return (data, x.new_empty(ops._scale_shape(rows, blocks, layout), dtype=dtypes[facts.scales]),
            x.new_empty(rows if per_row else 0, dtype=torch.float32))


def _sum(x: torch.Tensor, residual: _Optional) -> torch.Tensor:
    if residual is None:
        return x.new_empty(0)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _ending(format: str, recipe: str, layout: str, amax: _Optional, per_row: bool,
            keep: bool) -> Ending:
    return Ending(format, recipe, layout, -1 if amax is None else amax.dim(),
                  computes_amax=per_row, keeps=keep)


def _name(scale: _Optional) -> str:
    return "" if scale is None else programs.ELEMENTS[scale.dtype]


_RULE = "str kind, float eps, float? offset, str order"
_OUTPUT = "str format, str recipe, str layout, bool per_row"
norm = Operation(
    f"norm(Tensor x, Tensor? residual, Tensor? weight, Tensor? bias, {_RULE}) "
    "-> (Tensor, Tensor)", _norm, _norm_fake)
norm_quantize = Operation(
    "norm_quantize(Tensor x, Tensor? residual, Tensor? weight, Tensor? bias, Tensor? amax, "
    f"{_RULE}, {_OUTPUT}, bool keep) -> (Tensor, Tensor, Tensor, Tensor, Tensor)", _norm_quantize,
    _norm_quantize_fake)
gate_quantize = Operation(
    f"silu_and_mul_quantize(Tensor x, Tensor? amax, {_OUTPUT}) -> (Tensor, Tensor, Tensor)",
    _silu_and_mul_quantize, _silu_and_mul_quantize_fake)

# ===--- Functions --------------------------------------------------------=== #


@dataclasses.dataclass(frozen=True)
class _Call:
    """The operands of a norm, checked."""

    kind: str
    x: torch.Tensor
    residual: _Optional
    weight: _Optional
    bias: _Optional
    eps: float
    offset: float | None
    order: str
    shape: torch.Size

    def operands(self) -> tuple[_Optional, ...]:
        return self.x, self.residual, self.weight, self.bias

    def rule(self) -> tuple[str, float, float | None, str]:
        return self.kind, self.eps, self.offset, self.order

    def quantized(self, format: str, recipe: str, layout: str, amax: _Optional, per_row: bool,
                  keep: bool) -> Normed:
        recipe, layout = _check_format(format, recipe, layout)
        _check_columns(self.x.shape[1], format)
        amax, per_row = _check_amax(self.x, format, recipe, amax, per_row)
        functional._check_devices(x=self.x, amax=amax)
        data, scales, most, y, h = torch.ops.fp4.norm_quantize(
            *self.operands(), amax, *self.rule(), format, recipe, layout, per_row, keep)
        return Normed(_container(data.detach(), scales.detach(),
                                 most.detach() if per_row else amax, self.x.shape[1], format,
                                 recipe, layout),
                      y.view(self.shape) if keep else None,
                      None if self.residual is None else h.view(self.shape))

    def elements(self) -> torch.Tensor | _Pair:
        y, h = torch.ops.fp4.norm(*self.operands(), *self.rule())
        y = y.view(self.shape)
        return y if self.residual is None else (y, h.view(self.shape))


def rms_norm_quantize(x: torch.Tensor, weight: torch.Tensor | None = None, *,
                      residual: torch.Tensor | None = None, eps: float = 1e-6,
                      weight_offset: float = 0.0, order: str = "torch", format: str = "nvfp4",
                      recipe: str = "", layout: str = "tiled_128x4",
                      amax: torch.Tensor | None = None, per_row: bool = False,
                      keep: bool = False) -> Normed:
    """RMSNorm of rows, quantized along its rows, in one kernel.

    Each operation is in f32 and rounds to nearest: h = x + residual, rounded to the dtype of `x`;
    s = the sum of h * h, in the order of docs/reference/semantics.md; r = 1 / sqrt(s / K + eps),
    with a division by K; y = (h * r) * (weight + weight_offset), rounded to the dtype of `x`. The
    quantizer reads y.

    Args:
        x: bfloat16, float16 or float32, [..., K], of any strides, as in `quantize`.
        weight: bfloat16, float16 or float32 [K]; None is 1.
        residual: of the shape and dtype of `x`.
        weight_offset: 1.0 for weights that are stored minus 1, as Gemma's.
        order: "torch", as above; or "llama": h * r is rounded to the dtype of `x` first, as
            LlamaRMSNorm of transformers does.
        format: "nvfp4", "mxfp4", "mxfp8_e4m3", "fp8_block128" (a scale for 128 elements) or
            "fp8_row" (a scale for each row).
        recipe: of docs/reference/numerics.md; without it that of the format.
        layout: of the scales of nvfp4, mxfp4 and mxfp8_e4m3, "tiled_128x4" or "linear".
        amax: a float32 scalar or [M] of nvfp4: the amax of y, which calibration gives. With
            tensor_scale = supplied in the recipe it is the encode scale. The result has this tensor
            and no copy.
        per_row: in place of an amax of nvfp4: the kernel gives every row its own.
        keep: y is a result too.

    Raises:
        UsageError: an argument that does not fit. A backward pass through the result is one.
    """
    call = _call("rms", x, residual, weight, None, eps, weight_offset, order)
    return call.quantized(format, recipe, layout, amax, per_row, keep)


def layer_norm_quantize(x: torch.Tensor, weight: torch.Tensor | None = None,
                        bias: torch.Tensor | None = None, *, residual: torch.Tensor | None = None,
                        eps: float = 1e-5, weight_offset: float = 0.0, format: str = "nvfp4",
                        recipe: str = "", layout: str = "tiled_128x4",
                        amax: torch.Tensor | None = None, per_row: bool = False,
                        keep: bool = False) -> Normed:
    """LayerNorm of rows, quantized along its rows, in one kernel.

    As rms_norm_quantize, with d = h - m in the place of h, where m is the sum of the row divided by
    K: the variance is the sum of d * d, divided by K, in a second pass over the row. `bias`, [K],
    is added behind the weight.

    Raises:
        UsageError: an argument that does not fit, as in `rms_norm_quantize`.
    """
    call = _call("layer", x, residual, weight, bias, eps, weight_offset, "torch")
    return call.quantized(format, recipe, layout, amax, per_row, keep)


def rms_norm(x: torch.Tensor, weight: torch.Tensor | None = None, *,
             residual: torch.Tensor | None = None, eps: float = 1e-6, weight_offset: float = 0.0,
             order: str = "torch") -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """The elements of rms_norm_quantize; with `residual` also x + residual."""
    return _call("rms", x, residual, weight, None, eps, weight_offset, order).elements()


def layer_norm(x: torch.Tensor, weight: torch.Tensor | None = None,
               bias: torch.Tensor | None = None, *, residual: torch.Tensor | None = None,
               eps: float = 1e-5, weight_offset: float = 0.0
               ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """The elements of layer_norm_quantize; with `residual` also x + residual."""
    return _call("layer", x, residual, weight, bias, eps, weight_offset, "torch").elements()


def silu_and_mul_quantize(x: torch.Tensor, *, format: str = "nvfp4", recipe: str = "",
                          layout: str = "tiled_128x4", amax: torch.Tensor | None = None,
                          per_row: bool = False) -> Scaled | ScaledFP8:
    """silu(g) * u of the halves g and u of each row of x, [..., 2K], quantized in one kernel.

    silu(g) = g / (1 + exp(-g)) and the product are in f32, with math.exp of
    docs/reference/semantics.md, and rounded once to the dtype of `x`. No gradient flows through it.
    The other arguments are those of rms_norm_quantize.

    Raises:
        UsageError: an argument that does not fit.
    """
    rows = functional._matrix(x, "x")
    columns = rows.shape[1] // 2
    if rows.shape[1] % 2:
        raise UsageError(f"the columns must be those of two halves, but got {rows.shape[1]}",
                         "concatenate the gate and the up projection")
    recipe, layout = _check_format(format, recipe, layout)
    _check_columns(columns, format)
    amax, per_row = _check_amax(rows, format, recipe, amax, per_row)
    functional._check_devices(x=x, amax=amax)
    data, scales, most = torch.ops.fp4.silu_and_mul_quantize(rows, amax, format, recipe, layout,
                                                             per_row)
    return _container(data, scales, most if per_row else amax, columns, format, recipe, layout)


def _call(kind: str, x: torch.Tensor, residual: _Optional, weight: _Optional, bias: _Optional,
          eps: float, offset: float, order: str) -> _Call:
    rows = functional._rows(x, "x")
    if order not in _ORDERS:
        raise UsageError(f"'order' must be torch or llama, but got {order!r}")
    if residual is not None:
        functional._check_input(residual, "residual")
    if residual is not None and (residual.shape != x.shape or residual.dtype != x.dtype):
        raise UsageError(f"'residual' must be {_said(x)}, as 'x' is, but got {_said(residual)}")
    for name, scale in (("weight", weight), ("bias", bias)):
        _check_scale(scale, name, rows.shape[1])
    if weight is None and offset:
        raise UsageError(f"'weight_offset' must be 0 without a weight, but got {offset}")
    check_number(eps, "eps")
    check_number(offset, "weight_offset")
    functional._check_devices(x=x, residual=residual, weight=weight, bias=bias)
    return _Call(kind, rows, None if residual is None else functional._rows(residual, "residual"),
                 weight, bias, float(eps), float(offset) if offset else None, order, x.shape)


def check_number(value: object, name: str) -> None:
    """Refuses what no f32 is near to."""
    if not isinstance(value, (int, float)) or abs(value) > torch.finfo(torch.float32).max:
        raise UsageError(f"'{name}' must be a number that f32 has, but got {value!r}")


def _check_scale(scale: _Optional, name: str, columns: int) -> None:
    if scale is None:
        return
    if not isinstance(scale, torch.Tensor):
        raise TypeError(f"'{name}' must be a torch.Tensor, but got {type(scale).__name__}")
    if tuple(scale.shape) != (columns,) or scale.dtype not in programs.ELEMENTS:
        raise UsageError(f"'{name}' must be bfloat16, float16 or float32 of shape [{columns}], but "
                         f"got {_said(scale)}", "it has a number for each column")
    if not scale.is_contiguous():
        raise UsageError(f"'{name}' must be contiguous, but has strides {scale.stride()}",
                         "no copy is made; pass a contiguous one")


def _check_format(format: str, recipe: str, layout: str) -> tuple[str, str]:
    """The recipe and the layout of the scales."""
    if format not in _FORMATS:
        raise UsageError(f"'format' must be {', '.join(_FORMATS)}, but got {format!r}")
    recipes.check_layout(layout)
    facts = FORMATS[_FORMATS[format]]
    return recipe or facts.recipe, "linear" if facts.scales == "f32" else layout


def _check_columns(columns: int, format: str) -> None:
    multiple = _MULTIPLES.get(format, FORMATS[_FORMATS[format]].block)
    if columns % multiple:
        raise UsageError(f"the columns must be a multiple of {multiple} for {format}, but got "
                         f"{columns}", "pad the projection before with zeros")


def _check_amax(x: torch.Tensor, format: str, recipe: str, amax: _Optional,
                per_row: bool) -> tuple[_Optional, bool]:
    """The amax that the kernel is given, and whether it computes those of rows."""
    if amax is not None and not isinstance(amax, torch.Tensor):
        raise TypeError(f"'amax' must be a torch.Tensor, but got {type(amax).__name__}")
    if per_row and not recipes.has_tensor_scale(format, recipe):
        raise UsageError(f"'per_row' must be False for recipe '{recipe}' of {format}, but got True",
                         "it has no scale of the tensor")
    if per_row and amax is not None and not amax.dim():
        raise UsageError("'per_row' must be False beside an amax of the whole matrix, but got True",
                         "leave amax out, and the kernel computes the amaxes of rows")
    if not recipes.has_tensor_scale(format, recipe):
        if amax is not None:
            raise UsageError(f"'amax' must be None for recipe '{recipe}' of {format}, but got a "
                             "tensor", "it has no scale of the tensor")
        return None, False
    is_given = recipes.is_supplied(recipe) or recipes.is_supplied_decode(recipe)
    if amax is None and per_row and not is_given:
        return None, True
    if amax is None:
        raise UsageError(f"'amax' must be given for recipe '{recipe}' of {format}, but got none",
                         "the kernel knows no amax of the whole matrix: pass amax=scale"
                         if is_given else "the kernel knows no amax of the whole matrix: pass "
                         "per_row=True, or an amax that calibration gives")
    return functional.amax_for(x, format, recipe, amax, False), False


def _container(data: torch.Tensor, scales: torch.Tensor, amax: _Optional, columns: int,
               format: str, recipe: str, layout: str) -> Scaled | ScaledFP8:
    shape = (data.shape[0], columns)
    if format in recipes.BLOCKS:
        return Scaled(data, scales.view(scale_shape(shape, format, layout)),
                      amax, shape, format, layout, recipe)
    if layout != "linear":
        scales = scales.view(-(-shape[0] // 128), -(-(columns // 32) // 4), 512)
    return ScaledFP8(data, scales)


def _said(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype)[6:]} of shape {list(tensor.shape)}"
