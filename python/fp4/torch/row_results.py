"""Quantized rows of matrices as results of kernels by rows: the options of their quantizer, which
are checked, and what holds the results."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import torch

from ..errors import UsageError
from ..formats import FORMATS
from . import functional, ops, programs, recipes
from .row_programs import Ending
from .scaled import Scaled, scale_shape

Optional = torch.Tensor | None
Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

#: The formats by what the compiler calls them.
_FORMATS = {**{name: name for name in ("nvfp4", "mxfp4", "mxfp8_e4m3", "fp8_block128")},
            "fp8_row": "fp8_block128"}
#: The multiples that columns must be of.
_MULTIPLES = {"nvfp4": 2, "fp8_block128": 16, "fp8_row": 16}


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
    """The results of a norm or a rotation.

    Attributes:
        quantized: the elements, quantized along their rows.
        elements: these elements, in the shape and dtype of the input; None unless they are kept.
        residual: input + residual, the residual of the next layer; None without one.
    """

    quantized: Scaled | ScaledFP8
    elements: torch.Tensor | None
    residual: torch.Tensor | None


@dataclasses.dataclass(frozen=True)
class Output:
    """The options of a quantizer of [rows, columns], checked; the amax is None where the kernel
    computes those of rows (`per_row`)."""

    columns: int
    format: str
    recipe: str
    layout: str
    amax: Optional
    per_row: bool

    def rule(self) -> tuple[str, str, str, bool]:
        return self.format, self.recipe, self.layout, self.per_row

    def container(self, data: torch.Tensor, scales: torch.Tensor,
                  amax: torch.Tensor) -> Scaled | ScaledFP8:
        """The results of an operation by `rule`."""
        shape = (data.shape[0], self.columns)
        data, scales = data.detach(), scales.detach()
        if self.format in recipes.BLOCKS:
            return Scaled(data, scales.view(scale_shape(shape, self.format, self.layout)),
                          amax.detach() if self.per_row else self.amax, shape, self.format,
                          self.layout, self.recipe)
        if self.layout != "linear":
            scales = scales.view(-(-shape[0] // 128), -(-(self.columns // 32) // 4), 512)
        return ScaledFP8(data, scales)


def output(rows: int, columns: int, format: str, recipe: str, layout: str, amax: Optional,
           per_row: bool) -> Output:
    """Checks the options of a quantizer of [rows, columns]."""
    recipe, layout = _check_format(format, recipe, layout)
    _check_columns(columns, format)
    amax, per_row = _check_amax(rows, format, recipe, amax, per_row)
    return Output(columns, format, recipe, layout, amax, per_row)


def ending(format: str, recipe: str, layout: str, amax: Optional, per_row: bool,
           keep: bool = False, stochastic: bool = False) -> Ending:
    """The facts of a program that ends in a quantizer."""
    return Ending(format, recipe, layout, -1 if amax is None else amax.dim(),
                  computes_amax=per_row, keeps=keep, stochastic=stochastic)


def rng_for(x: torch.Tensor, format: str, rounding: str, rng: Optional) -> Optional:
    """The seed and the offset of a quantizer's rounding; None rounds to nearest."""
    if rounding == "stochastic" and format not in recipes.BLOCKS:
        raise UsageError(f"'rounding' must be nearest for {format}, but got {rounding!r}",
                         f"the formats with stochastic rounding are {', '.join(recipes.BLOCKS)}")
    return functional._rng_for(x, rounding, rng)


def three(x: torch.Tensor, found: tuple[torch.Tensor, ...], layout: str, per_row: bool) -> Three:
    """Data, scales and amax of the results of a program on the device of `x`."""
    return (found[0], found[1] if layout == "linear" else found[1].view(-1),
            found[2] if per_row else x.new_empty(0, dtype=torch.float32))


def empty(x: torch.Tensor, rows: int, columns: int, format: str, layout: str,
          per_row: bool) -> Three:
    """Empty data, scales and amax of [rows, columns] on the device of `x`."""
    facts = FORMATS[_FORMATS[format]]
    if format in recipes.BLOCKS:
        data = x.new_empty((rows, columns // 2), dtype=torch.float4_e2m1fn_x2)
    else:
        data = x.new_empty((rows, columns), dtype=torch.float8_e4m3fn)
    blocks = 1 if format == "fp8_row" else -(-columns // facts.block)
    dtypes = {"f8E4M3FN": torch.float8_e4m3fn, "f8E8M0FNU": torch.float8_e8m0fnu,
              "f32": torch.float32}
    return (data, x.new_empty(ops._scale_shape(rows, blocks, layout), dtype=dtypes[facts.scales]),
            x.new_empty(rows if per_row else 0, dtype=torch.float32))


def check_tensor(value: object, name: str) -> None:
    """Refuses what is no tensor."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"'{name}' must be a torch.Tensor, but got {type(value).__name__}")


def check_number(value: object, name: str) -> None:
    """Refuses what no f32 is near to."""
    if not isinstance(value, (int, float)) or not abs(value) <= torch.finfo(torch.float32).max:
        raise UsageError(f"'{name}' must be a number that f32 has, but got {value!r}",
                         f"pass {name} as a float")


def check_scale(scale: Optional, name: str, columns: int) -> None:
    """Refuses a weight or bias that does not fit."""
    if scale is None:
        return
    check_tensor(scale, name)
    if tuple(scale.shape) != (columns,) or scale.dtype not in programs.ELEMENTS:
        raise UsageError(f"'{name}' must be bfloat16, float16 or float32 of shape [{columns}], but "
                         f"got {said(scale)}", "it has a number for each column")
    check_contiguous(scale, name)


def check_contiguous(value: torch.Tensor, name: str) -> None:
    """Refuses strides that a kernel cannot read."""
    if not value.is_contiguous():
        raise UsageError(f"'{name}' must be contiguous, but has strides {value.stride()}",
                         "no copy is made; pass a contiguous one")


def said(tensor: torch.Tensor) -> str:
    """The dtype and the shape for a message."""
    return f"{str(tensor.dtype)[6:]} of shape {list(tensor.shape)}"


def _check_format(format: str, recipe: str, layout: str) -> tuple[str, str]:
    """The recipe and the layout of the scales."""
    if format not in _FORMATS:
        raise UsageError(f"'format' must be {', '.join(_FORMATS)}, but got {format!r}",
                         "the functions without 'quantize' in their names keep elements")
    recipes.check_layout(layout)
    facts = FORMATS[_FORMATS[format]]
    return recipe or facts.recipe, "linear" if facts.scales == "f32" else layout


def _check_columns(columns: int, format: str) -> None:
    multiple = _MULTIPLES.get(format, FORMATS[_FORMATS[format]].block)
    if columns % multiple:
        raise UsageError(f"the columns must be a multiple of {multiple} for {format}, but got "
                         f"{columns}", "pad the projection before with zeros")


def _check_amax(rows: int, format: str, recipe: str, amax: Optional,
                per_row: bool) -> tuple[Optional, bool]:
    """The amax that the kernel is given, and whether it computes those of rows."""
    if amax is not None:
        check_tensor(amax, "amax")
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
    return functional.checked_amax(amax, rows), False
