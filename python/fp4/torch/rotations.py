"""Rotations of heads by their positions, and rows that are read by number, in one kernel each.

    rotate(x, cos_sin, positions, weight?, ...)                 -> elements
    rotate_quantize(x, cos_sin, positions, weight?, amax?, ...) -> data, scales, amax, elements
    gather_quantize(x, rows, amax?, ...)                        -> data, scales, amax
    combine(y, rows, weights)                                   -> sums

A result that a call does not have is empty. Numbers of rows are checked in checked() alone, because
the host waits for the device: with one outside of the matrix the result is undefined.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from ..errors import UsageError
from . import functional, programs, rotation_programs, row_results
from .checking import check_rows
from .execution import run
from .norm_programs import Norm
from .operation import NO_GRADIENT, Operation
from .rotation_programs import Gather, Rotation, Sum
from .row_programs import ALONE, Ending
from .row_results import (
    Normed,
    Optional,
    ScaledFP8,
    Three,
    check_contiguous,
    check_number,
    check_scale,
    check_tensor,
    said,
)
from .scaled import Scaled
from .strides import dense, placed_alike, placed_heads

_Four = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]

_ORDERS = ("torch", "llama", "exact")
#: The least and the largest number of rows in a weighted sum.
_LEAST, _MOST = 2, 16

# ===--- Operations -------------------------------------------------------=== #


def _rotate(x: torch.Tensor, cos_sin: torch.Tensor, positions: torch.Tensor, weight: Optional,
            interleaved: bool, eps: float, offset: float | None, order: str) -> torch.Tensor:
    if not x.numel():
        return _rotate_fake(x, cos_sin, positions, weight, interleaved, eps, offset, order)
    check_rows(positions, "positions", cos_sin.shape[0])
    found = _run(x, cos_sin, positions, weight, None, ALONE, interleaved, eps, offset, order)
    return found[0].view(x.shape)


def _rotate_fake(x: torch.Tensor, cos_sin: torch.Tensor, positions: torch.Tensor,
                 weight: Optional, interleaved: bool, eps: float, offset: float | None,
                 order: str) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _rotate_quantize(x: torch.Tensor, cos_sin: torch.Tensor, positions: torch.Tensor,
                     weight: Optional, amax: Optional, interleaved: bool, eps: float,
                     offset: float | None, order: str, format: str, recipe: str, layout: str,
                     per_row: bool, keep: bool) -> _Four:
    if not x.numel():
        return _rotate_quantize_fake(x, cos_sin, positions, weight, amax, interleaved, eps, offset,
                                     order, format, recipe, layout, per_row, keep)
    check_rows(positions, "positions", cos_sin.shape[0])
    ending = row_results.ending(format, recipe, layout, amax, per_row, keep)
    found = _run(x, cos_sin, positions, weight, amax, ending, interleaved, eps, offset, order)
    y = found[-1].view(x.shape) if keep else x.new_empty(0)
    return *row_results.three(x, found, layout, per_row), y


def _rotate_quantize_fake(x: torch.Tensor, cos_sin: torch.Tensor, positions: torch.Tensor,
                          weight: Optional, amax: Optional, interleaved: bool, eps: float,
                          offset: float | None, order: str, format: str, recipe: str, layout: str,
                          per_row: bool, keep: bool) -> _Four:
    y = torch.empty_like(x, memory_format=torch.contiguous_format) if keep else x.new_empty(0)
    rows, columns = x.shape[0] * x.shape[1], x.shape[2]
    return *row_results.empty(x, rows, columns, format, layout, per_row), y


def _run(x: torch.Tensor, cos_sin: torch.Tensor, positions: torch.Tensor, weight: Optional,
         amax: Optional, ending: Ending, interleaved: bool, eps: float, offset: float | None,
         order: str) -> tuple[torch.Tensor, ...]:
    """The results of the program of a rotation."""
    placed, is_strided = placed_heads(x)
    source, (_, heads, columns) = programs.ELEMENTS[x.dtype], x.shape
    norm = None if weight is None else Norm(
        columns, source, "rms", eps, programs.ELEMENTS[weight.dtype], offset=offset,
        is_normed_rounded=order == "llama", elements="f32" if order == "exact" else "")
    what = Rotation(heads, columns, source, cos_sin.shape[1], programs.ELEMENTS[cos_sin.dtype],
                    interleaved, norm, ending=ending, strided=is_strided)
    found = run(rotation_programs.rotation, (what,), placed, positions.contiguous(),
                dense(cos_sin), None if weight is None else dense(weight), amax)
    return found if isinstance(found, tuple) else (found,)


def _gather_quantize(x: torch.Tensor, rows: torch.Tensor, amax: Optional, format: str, recipe: str,
                     layout: str, per_row: bool) -> Three:
    if not x.numel() or not rows.numel():
        return _gather_quantize_fake(x, rows, amax, format, recipe, layout, per_row)
    check_rows(rows, "rows", x.shape[0], skips=True)
    (placed,), is_strided = placed_alike(x)
    what = Gather(x.shape[1], programs.ELEMENTS[x.dtype],
                  row_results.ending(format, recipe, layout, amax, per_row),
                  is_strided and not placed.is_contiguous())
    found = run(rotation_programs.gather, (what,), placed, rows.contiguous(), amax)
    return row_results.three(x, found, layout, per_row)


def _gather_quantize_fake(x: torch.Tensor, rows: torch.Tensor, amax: Optional, format: str,
                          recipe: str, layout: str, per_row: bool) -> Three:
    return row_results.empty(x, rows.shape[0], x.shape[1], format, layout, per_row)


def _combine(y: torch.Tensor, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    if not y.numel() or not rows.numel():
        return _combine_fake(y, rows, weights)
    check_rows(rows, "rows", y.shape[0], skips=True)
    (placed,), is_strided = placed_alike(y)
    what = Sum(y.shape[1], programs.ELEMENTS[y.dtype], rows.shape[1],
               is_strided and not placed.is_contiguous())
    result: torch.Tensor = run(rotation_programs.weighted_sum, (what,), placed, dense(weights),
                               *_columns_of(rows))
    return result


def _columns_of(rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The columns of numbers of rows, each at a multiple of 16 bytes."""
    columns, count = rows.t(), rows.shape[0]
    if count % 2 or not columns.is_contiguous() or columns.data_ptr() % 16:
        room = rows.new_empty((rows.shape[1], count + count % 2))
        columns = room[:, :count].copy_(columns)
    return columns.unbind(0)


def _combine_fake(y: torch.Tensor, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return y.new_empty((rows.shape[0], y.shape[1]))


_HEADS = "Tensor x, Tensor cos_sin, Tensor positions, Tensor? weight"
_RULE = "bool interleaved, float eps, float? offset, str order"
_OUTPUT = "str format, str recipe, str layout, bool per_row"
_rotate_operation = Operation(f"rotate({_HEADS}, {_RULE}) -> Tensor", _rotate, _rotate_fake)


def _keep_angles(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    _, cos_sin, positions, weight, *ctx.rule = inputs
    ctx.has_weight = weight is not None
    ctx.save_for_backward(cos_sin, positions)


def _rotate_back(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    """A rotation by the opposite angles."""
    if ctx.has_weight or any(ctx.needs_input_grad[1:]):
        raise UsageError("fp4.rotate has no gradient of a weight or of angles", NO_GRADIENT)
    cos_sin, positions = ctx.saved_tensors
    cosines, sines = cos_sin.chunk(2, 1)
    back = torch.cat((cosines, -sines), 1)
    return torch.ops.fp4.rotate(gradient, back, positions, None, *ctx.rule), *(None,) * 7


_rotate_operation.register_autograd(_rotate_back, setup_context=_keep_angles)

_rotate_quantize_operation = Operation(
    f"rotate_quantize({_HEADS}, Tensor? amax, {_RULE}, {_OUTPUT}, bool keep) "
    "-> (Tensor, Tensor, Tensor, Tensor)", _rotate_quantize, _rotate_quantize_fake)
_gather_operation = Operation(
    f"gather_quantize(Tensor x, Tensor rows, Tensor? amax, {_OUTPUT}) -> (Tensor, Tensor, Tensor)",
    _gather_quantize, _gather_quantize_fake)
_combine_operation = Operation("combine(Tensor y, Tensor rows, Tensor weights) -> Tensor", _combine,
                               _combine_fake)

# ===--- Functions --------------------------------------------------------=== #


@dataclasses.dataclass(frozen=True)
class _Call:
    """The operands of a rotation, checked."""

    operands: tuple[torch.Tensor, torch.Tensor, torch.Tensor, Optional]
    rule: tuple[bool, float, float | None, str]


def rotate(x: torch.Tensor, cos_sin: torch.Tensor, positions: torch.Tensor, *,
           interleaved: bool = False, weight: torch.Tensor | None = None,
           offset: float | None = None, eps: float = 1e-6, order: str = "torch") -> torch.Tensor:
    """Rotates heads by their positions (RoPE), with `weight` behind an RMSNorm of each (QK-norm).

    Partners a, b become a * cos - b * sin and b * cos + a * sin in f32, and are rounded once.
    Columns from R on stay. Without a weight, the gradient of x is rotated back.

    Args:
        x: bfloat16, float16 or float32 [T, H, D], of any strides, as in `quantize`.
        cos_sin: [P, R], R/2 cosines, then R/2 sines; float32, bfloat16 or float16.
        positions: int64 [T], rows of `cos_sin`, which are not checked.
        interleaved: partners are columns 2i and 2i + 1; otherwise i and i + R/2.
        weight, offset, eps: as in rms_norm, whose weight_offset is `offset`.
        order: as in rms_norm, or "exact": the norm is not rounded.

    Raises:
        UsageError: an argument that does not fit.
    """
    call = _call(x, cos_sin, positions, interleaved, weight, offset, eps, order)
    result: torch.Tensor = torch.ops.fp4.rotate(*call.operands, *call.rule)
    return result


def rotate_quantize(x: torch.Tensor, cos_sin: torch.Tensor, positions: torch.Tensor, *,
                    interleaved: bool = False, weight: torch.Tensor | None = None,
                    offset: float | None = None, eps: float = 1e-6, order: str = "torch",
                    format: str = "nvfp4", recipe: str = "", layout: str = "tiled_128x4",
                    amax: torch.Tensor | None = None, per_row: bool = False,
                    keep: bool = False) -> Normed:
    """`rotate`, quantized as [T * H, D] in one kernel, with options of rms_norm_quantize."""
    call = _call(x, cos_sin, positions, interleaved, weight, offset, eps, order)
    rows, columns = x.shape[0] * x.shape[1], x.shape[2]
    output = row_results.output(rows, columns, format, recipe, layout, amax, per_row)
    functional._check_devices(x=x, amax=output.amax)
    data, scales, most, y = torch.ops.fp4.rotate_quantize(*call.operands, output.amax, *call.rule,
                                                          *output.rule(), keep)
    return Normed(output.container(data, scales, most), y if keep else None, None)


def gather_quantize(x: torch.Tensor, rows: torch.Tensor, *, format: str = "nvfp4",
                    recipe: str = "", layout: str = "tiled_128x4",
                    amax: torch.Tensor | None = None,
                    per_row: bool = False) -> Scaled | ScaledFP8:
    """Quantizes x[rows] of x [N, K] in one kernel, with options of rms_norm_quantize. The numbers
    `rows`, int64 [M], are not checked."""
    _check_matrix(x, "x")
    check_tensor(rows, "rows")
    _check_integers(rows, "rows", rows.dim() == 1, "M")
    output = row_results.output(rows.shape[0], x.shape[1], format, recipe, layout, amax, per_row)
    functional._check_devices(x=x, rows=rows, amax=output.amax)
    return output.container(*torch.ops.fp4.gather_quantize(x.detach(), rows, output.amax,
                                                           *output.rule()))


def combine(y: torch.Tensor, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The sums of weights[t, i] * y[rows[t, i]] over i in order, in f32, rounded once to the dtype
    of y [N, K], in one kernel.

    Args:
        rows: int64 [T, k], k from 2 to 16, not checked; negative ones add nothing.
        weights: float32 [T, k].
    """
    _check_matrix(y, "y")
    check_tensor(rows, "rows")
    check_tensor(weights, "weights")
    _check_integers(rows, "rows", rows.dim() == 2, "T", "k")
    if not _LEAST <= rows.shape[1] <= _MOST:
        raise UsageError(f"'rows' must have {_LEAST} to {_MOST} columns, but got {rows.shape[1]}",
                         "multiply one row yourself, and add the sums of more")
    if weights.shape != rows.shape or weights.dtype != torch.float32:
        raise UsageError(f"'weights' must be float32 of shape {list(rows.shape)}, but got "
                         f"{said(weights)}", "each row has a weight")
    functional._check_devices(y=y, rows=rows, weights=weights)
    result: torch.Tensor = torch.ops.fp4.combine(y, rows, weights)
    return result


def _call(x: torch.Tensor, cos_sin: torch.Tensor, positions: torch.Tensor, interleaved: bool,
          weight: Optional, offset: float | None, eps: float, order: str) -> _Call:
    functional._check_input(x, "x")
    if x.dim() != 3:
        raise UsageError(f"'x' must be tokens x heads x columns, but got the shape "
                         f"{list(x.shape)}", "pass x.view(-1, heads, columns)")
    if order not in _ORDERS:
        raise UsageError(f"'order' must be torch, llama or exact, but got {order!r}",
                         "'exact' does not round between the norm and the rotation")
    check_scale(weight, "weight", x.shape[2])
    if weight is None and offset:
        raise UsageError(f"'offset' must be None without a weight, but got {offset}",
                         "the norm belongs to a weight: pass weight=torch.zeros(D)")
    check_number(eps, "eps")
    check_number(offset or 0.0, "offset")
    _check_angles(cos_sin, x.shape[2])
    check_tensor(positions, "positions")
    _check_integers(positions, "positions", tuple(positions.shape) == (x.shape[0],), x.shape[0])
    functional._check_devices(x=x, cos_sin=cos_sin, positions=positions, weight=weight)
    return _Call((x, cos_sin, positions, weight),
                 (bool(interleaved), float(eps), float(offset) if offset else None, order))


def _check_angles(cos_sin: torch.Tensor, columns: int) -> None:
    check_tensor(cos_sin, "cos_sin")
    if cos_sin.dim() != 2 or cos_sin.dtype not in programs.ELEMENTS:
        raise UsageError("'cos_sin' must be a matrix of float32, bfloat16 or float16, but got "
                         f"{said(cos_sin)}", "it has a row of cosines and sines for each position")
    size = cos_sin.shape[1]
    if not 0 < size <= columns or size % 2:
        raise UsageError(f"'cos_sin' must have an even number of columns up to {columns}, but got "
                         f"{size}", "it has a cosine and a sine for two columns of a head")
    check_contiguous(cos_sin, "cos_sin")


def _check_matrix(x: torch.Tensor, name: str) -> None:
    functional._check_input(x, name)
    if x.dim() != 2:
        raise UsageError(f"'{name}' must be a matrix, but got the shape {list(x.shape)}",
                         "its rows have the numbers")


def _check_integers(value: torch.Tensor, name: str, fits: bool, *shape: int | str) -> None:
    if value.dtype != torch.int64 or not fits:  # the text of a dynamic size would make it static
        raise UsageError(f"'{name}' must be int64 of shape [{', '.join(map(str, shape))}], but got "
                         f"{said(value)}", f"it has numbers of rows: pass {name}.long()")
