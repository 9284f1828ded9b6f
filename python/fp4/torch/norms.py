"""Norms of rows and gates, with a quantizer behind them in one kernel: operations and functions.

    norm(x, residual?, weight?, bias?, kind, ...) -> elements, x + residual
    norm_quantize(x, residual?, weight?, bias?, amax?, kind, ..., rng?)
                                         -> data, scales, amax, elements, x + residual
    silu_and_mul_quantize(x, amax?, ...) -> data, scales, amax

A result that a call does not have is empty.
"""

from __future__ import annotations

import dataclasses

import torch

from ..errors import UsageError
from . import functional, norm_gradients, norm_programs, programs, row_results
from .execution import run
from .expert_programs import ACTIVATIONS
from .gates import check_halves
from .norm_programs import Gate, Norm
from .operation import Operation
from .row_programs import ALONE, Ending
from .row_results import Normed, Optional, Output, ScaledFP8, Three, check_number, check_scale, said
from .scaled import Scaled
from .strides import dense, placed_alike

_Pair = tuple[torch.Tensor, torch.Tensor]
_Five = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]

_ORDERS = ("torch", "llama")


# ===--- Operations -------------------------------------------------------=== #


def _norm(x: torch.Tensor, residual: Optional, weight: Optional, bias: Optional, kind: str,
          eps: float, offset: float | None, order: str) -> _Pair:
    if not x.numel():
        return _norm_fake(x, residual, weight, bias, kind, eps, offset, order)
    found = _run(x, residual, weight, bias, None, None, ALONE, kind, eps, offset, order)
    return found[0], _sum(x, None) if residual is None else found[1]


def _norm_fake(x: torch.Tensor, residual: Optional, weight: Optional, bias: Optional, kind: str,
               eps: float, offset: float | None, order: str) -> _Pair:
    return torch.empty_like(x, memory_format=torch.contiguous_format), _sum(x, residual)


def _norm_quantize(x: torch.Tensor, residual: Optional, weight: Optional, bias: Optional,
                   amax: Optional, kind: str, eps: float, offset: float | None, order: str,
                   format: str, recipe: str, layout: str, per_row: bool, keep: bool,
                   rng: Optional = None) -> _Five:
    if not x.numel():
        return _norm_quantize_fake(x, residual, weight, bias, amax, kind, eps, offset, order,
                                   format, recipe, layout, per_row, keep)
    ending = row_results.ending(format, recipe, layout, amax, per_row, keep, rng is not None)
    found = _run(x, residual, weight, bias, amax, rng, ending, kind, eps, offset, order)
    y = found[-1 if residual is None else -2] if keep else x.new_empty(0)
    three = row_results.three(x, found, layout, per_row)
    return *three, y, _sum(x, None) if residual is None else found[-1]


def _norm_quantize_fake(x: torch.Tensor, residual: Optional, weight: Optional, bias: Optional,
                        amax: Optional, kind: str, eps: float, offset: float | None, order: str,
                        format: str, recipe: str, layout: str, per_row: bool, keep: bool,
                        rng: Optional = None) -> _Five:
    y = torch.empty_like(x, memory_format=torch.contiguous_format) if keep else x.new_empty(0)
    return (*row_results.empty(x, x.shape[0], x.shape[1], format, layout, per_row), y,
            _sum(x, residual))


def _run(x: torch.Tensor, residual: Optional, weight: Optional, bias: Optional,
         amax: Optional, rng: Optional, ending: Ending, kind: str, eps: float,
         offset: float | None, order: str) -> tuple[torch.Tensor, ...]:
    """The results of the program of a norm."""
    inputs, is_strided = placed_alike(x, *() if residual is None else (residual,))
    what = Norm(x.shape[1], programs.ELEMENTS[x.dtype], kind, eps, _name(weight), _name(bias),
                offset, residual="" if residual is None else "rounded",
                is_normed_rounded=order == "llama", ending=ending,
                strided=is_strided and not all(value.is_contiguous() for value in inputs))
    scales = (None if scale is None else dense(scale) for scale in (weight, bias))
    found = run(norm_programs.norm, (what,), *inputs, *scales, amax, rng)
    return found if isinstance(found, tuple) else (found,)


def _silu_and_mul_quantize(x: torch.Tensor, amax: Optional, format: str, recipe: str,
                           layout: str, per_row: bool, activation: str = "silu",
                           rng: Optional = None) -> Three:
    if not x.numel():
        return _silu_and_mul_quantize_fake(x, amax, format, recipe, layout, per_row)
    halves, is_strided = placed_alike(*x.chunk(2, 1))
    ending = row_results.ending(format, recipe, layout, amax, per_row, stochastic=rng is not None)
    what = Gate(x.shape[1] // 2, programs.ELEMENTS[x.dtype], ending, is_strided, activation)
    found = run(norm_programs.gate, (what,), *halves, amax, rng)
    return row_results.three(x, found, layout, per_row)


def _silu_and_mul_quantize_fake(x: torch.Tensor, amax: Optional, format: str, recipe: str,
                                layout: str, per_row: bool, activation: str = "silu",
                                rng: Optional = None) -> Three:
    return row_results.empty(x, x.shape[0], x.shape[1] // 2, format, layout, per_row)


def _sum(x: torch.Tensor, residual: Optional) -> torch.Tensor:
    if residual is None:
        return x.new_empty(0)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _name(scale: Optional) -> str:
    return "" if scale is None else programs.ELEMENTS[scale.dtype]


_RULE = "str kind, float eps, float? offset, str order"
_OUTPUT = "str format, str recipe, str layout, bool per_row"
norm = Operation(
    f"norm(Tensor x, Tensor? residual, Tensor? weight, Tensor? bias, {_RULE}) "
    "-> (Tensor, Tensor)", _norm, _norm_fake)
norm_quantize = Operation(
    "norm_quantize(Tensor x, Tensor? residual, Tensor? weight, Tensor? bias, Tensor? amax, "
    f"{_RULE}, {_OUTPUT}, bool keep, Tensor? rng=None) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    _norm_quantize, _norm_quantize_fake)
norm_gradients.register(norm, 0)
norm_gradients.register(norm_quantize, 3, keeps=13)
gate_quantize = Operation(
    f"silu_and_mul_quantize(Tensor x, Tensor? amax, {_OUTPUT}, str activation='silu', "
    "Tensor? rng=None) -> (Tensor, Tensor, Tensor)",
    _silu_and_mul_quantize, _silu_and_mul_quantize_fake)

# ===--- Functions --------------------------------------------------------=== #


@dataclasses.dataclass(frozen=True)
class _Call:
    """The operands of a norm, checked."""

    kind: str
    x: torch.Tensor
    residual: Optional
    weight: Optional
    bias: Optional
    eps: float
    offset: float | None
    order: str
    shape: torch.Size

    def operands(self) -> tuple[Optional, ...]:
        return self.x, self.residual, self.weight, self.bias

    def rule(self) -> tuple[str, float, float | None, str]:
        return self.kind, self.eps, self.offset, self.order

    def output(self, format: str, recipe: str, layout: str, amax: Optional,
               per_row: bool) -> Output:
        return row_results.output(self.x.shape[0], self.x.shape[1], format, recipe, layout, amax,
                                  per_row)

    def quantized(self, output: Output, keep: bool, rounding: str, rng: Optional) -> Normed:
        rng = row_results.rng_for(self.x, output.format, rounding, rng)
        functional._check_devices(x=self.x, amax=output.amax, rng=rng)
        data, scales, most, y, h = torch.ops.fp4.norm_quantize(
            *self.operands(), output.amax, *self.rule(), *output.rule(), keep, rng)
        return Normed(output.container(data, scales, most), y.view(self.shape) if keep else None,
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
                      keep: bool = False, rounding: str = "nearest",
                      rng: torch.Tensor | None = None) -> Normed:
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
        amax: of nvfp4, a float32 scalar or [M]: that of y, from calibration, or the scale that the
            recipe takes.
        per_row: the kernel gives every row its own amax.
        keep: y is a result too, with gradients.
        rounding: "nearest" (to even) or, to nvfp4 and mxfp4, "stochastic".
        rng: as in `quantize`.

    Raises:
        UsageError: an argument that does not fit.
    """
    call = _call("rms", x, residual, weight, None, eps, weight_offset, order)
    return call.quantized(call.output(format, recipe, layout, amax, per_row), keep, rounding, rng)


def layer_norm_quantize(x: torch.Tensor, weight: torch.Tensor | None = None,
                        bias: torch.Tensor | None = None, *, residual: torch.Tensor | None = None,
                        eps: float = 1e-5, weight_offset: float = 0.0, format: str = "nvfp4",
                        recipe: str = "", layout: str = "tiled_128x4",
                        amax: torch.Tensor | None = None, per_row: bool = False,
                        keep: bool = False, rounding: str = "nearest",
                        rng: torch.Tensor | None = None) -> Normed:
    """LayerNorm of rows, quantized along its rows, in one kernel.

    As rms_norm_quantize, with d = h - m in the place of h, where m is the sum of the row divided by
    K: the variance is the sum of d * d, divided by K, in a second pass. `bias`, [K],
    is added behind the weight.

    Raises:
        UsageError: an argument that does not fit, as in `rms_norm_quantize`.
    """
    call = _call("layer", x, residual, weight, bias, eps, weight_offset, "torch")
    return call.quantized(call.output(format, recipe, layout, amax, per_row), keep, rounding, rng)


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


def silu_and_mul_quantize(x: torch.Tensor, *, activation: str = "silu", format: str = "nvfp4",
                          recipe: str = "", layout: str = "tiled_128x4",
                          amax: torch.Tensor | None = None, per_row: bool = False,
                          rounding: str = "nearest",
                          rng: torch.Tensor | None = None) -> Scaled | ScaledFP8:
    """silu(g) * u of the halves g and u of each row of x, [..., 2K], quantized in one kernel.

    silu(g) = g / (1 + exp(-g)) and the product are in f32, with math.exp of
    docs/reference/semantics.md, and rounded once to the dtype of `x`. "gelu_tanh" and "gpt_oss" are
    other activations. Other arguments are those of rms_norm_quantize.

    Raises:
        UsageError: an argument that does not fit.
    """
    rows = functional._matrix(x, "x")
    columns = rows.shape[1] // 2
    check_halves(rows)
    if activation not in ACTIVATIONS:
        raise UsageError(f"'activation' must be {', '.join(ACTIVATIONS)}, but got {activation!r}",
                         "compute another one by torch, and quantize its result")
    output = row_results.output(rows.shape[0], columns, format, recipe, layout, amax, per_row)
    rng = row_results.rng_for(rows, format, rounding, rng)
    functional._check_devices(x=x, amax=output.amax, rng=rng)
    return output.container(*torch.ops.fp4.silu_and_mul_quantize(rows, output.amax, *output.rule(),
                                                                 activation, rng))


def _call(kind: str, x: torch.Tensor, residual: Optional, weight: Optional, bias: Optional,
          eps: float, offset: float, order: str) -> _Call:
    rows = functional._rows(x, "x")
    if order not in _ORDERS:
        raise UsageError(f"'order' must be torch or llama, but got {order!r}",
                         "'llama' rounds before the weight, and 'torch' behind it")
    if residual is not None:
        functional._check_input(residual, "residual")
    if residual is not None and (residual.shape != x.shape or residual.dtype != x.dtype):
        raise UsageError(f"'residual' must be {said(x)}, as 'x' is, but got {said(residual)}",
                         "convert or expand it: nothing is broadcast")
    for name, scale in (("weight", weight), ("bias", bias)):
        check_scale(scale, name, rows.shape[1])
    if weight is None and offset:
        raise UsageError(f"'weight_offset' must be 0 without a weight, but got {offset}",
                         "pass weight=torch.zeros(K) for rows times the offset")
    check_number(eps, "eps")
    check_number(offset, "weight_offset")
    functional._check_devices(x=x, residual=residual, weight=weight, bias=bias)
    return _Call(kind, rows, None if residual is None else functional._rows(residual, "residual"),
                 weight, bias, float(eps), float(offset) if offset else None, order, x.shape)
