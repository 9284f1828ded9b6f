"""Gated units silu(g) * u of the halves of rows, and their gradients, in one kernel each.

    silu_and_mul(x)              -> half as many columns
    silu_and_mul_backward(dy, x) -> like x
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import torch

from ..errors import UsageError
from . import functional, programs
from .execution import run
from .operation import Operation
from .programs import Runnable, compile_text
from .row_programs import Text, constant
from .strides import dense, placed_alike

# ===--- Programs ---------------------------------------------------------=== #


@dataclasses.dataclass(frozen=True)
class Unit:
    """The facts that decide both programs: the columns of y, the element type, and whether rows of
    g and u have gaps between them."""

    columns: int
    source: str
    strided: bool = False


#: 1 + exp(-g), as %d.
_DIVISOR = constant("one", 1.0) + """\
    %n = arith.negf %g.f : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
"""


@functools.lru_cache(maxsize=256)
def units(what: Unit, target: str) -> Runnable:
    """(g, u [M, columns]) -> silu(g) * u."""
    return compile_text(units_text(what), target)


def units_text(what: Unit) -> str:
    """The program of gated units as MLIR text. Kernels by rows read rows with gaps; the number of
    the column makes it one."""
    text = Text(what.columns, what.source, what.strided)
    inputs = [text.argument(name, text.matrix(what.source)) for name in ("g", "u")]
    text.begin(inputs[0])
    body = _DIVISOR + f"""\
    %silu = arith.divf %g.f, %d : f32
    %column = linalg.index 1 : index
    %at = arith.index_cast %column : index to i32
    %size = arith.constant {what.columns} : i32
    %inside = arith.cmpi ult, %at, %size : i32
    %v = arith.mulf %silu, %u.f : f32
    %z = arith.select %inside, %v, %g.f : f32
"""
    y = text.elements("y", inputs, body, "%z", what.source)
    text.result(y.name, y.type)
    return text.text("gated_unit")


@functools.lru_cache(maxsize=256)
def gradients(what: Unit, target: str) -> Runnable:
    """(dy [M, columns], x [M, 2 * columns]) -> the gradients of x."""
    return compile_text(gradients_text(what), target)


def gradients_text(what: Unit) -> str:
    """The program of gradients as MLIR text. The derivative of silu(g) is s + silu(g) * (1 - s). A
    thread with a column of g reads that of u, too, so that one kernel has both halves."""
    size = what.columns
    text = Text(2 * size, what.source, False)
    dy = text.argument("dy", f"tensor<?x{size}x{what.source}>")
    x = text.argument("x", text.matrix(what.source))
    text.begin(x)
    inputs = [dataclasses.replace(value, alias=name, map=f"affine_map<(i, j) -> (i, {column})>")
              for value, name, column in ((dy, "dy", f"j mod {size}"), (x, "g", f"j mod {size}"),
                                          (x, "u", f"j mod {size} + {size}"))]
    body = _DIVISOR + f"""\
    %s = arith.divf %one, %d : f32
    %silu = arith.mulf %g.f, %s : f32
    %half = arith.constant {size} : i32
    %column = linalg.index 1 : index
    %at = arith.index_cast %column : index to i32
    %first = arith.cmpi ult, %at, %half : i32
    %r = arith.subf %one, %s : f32
    %t = arith.mulf %silu, %r : f32
    %slope = arith.addf %s, %t : f32
    %v = arith.mulf %dy.f, %u.f : f32
    %of.g = arith.mulf %v, %slope : f32
    %of.u = arith.mulf %dy.f, %silu : f32
    %z = arith.select %first, %of.g, %of.u : f32
"""
    dx = text.elements("dx", inputs, body, "%z", what.source)
    text.result(dx.name, dx.type)
    return text.text("gate_gradients")


# ===--- Operations -------------------------------------------------------=== #


def _gate(x: torch.Tensor) -> torch.Tensor:
    if not x.numel():
        return _gate_fake(x)
    halves, is_strided = placed_alike(*x.chunk(2, 1))
    what = Unit(x.shape[1] // 2, programs.ELEMENTS[x.dtype], is_strided)
    result: torch.Tensor = run(units, (what,), *halves)
    return result


def _gate_fake(x: torch.Tensor) -> torch.Tensor:
    return x.new_empty((x.shape[0], x.shape[1] // 2))


def _gradients(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    if not x.numel():
        return _gradients_fake(dy, x)
    what = Unit(x.shape[1] // 2, programs.ELEMENTS[x.dtype])
    result: torch.Tensor = run(gradients, (what,), dense(dy), dense(x))
    return result


def _gradients_fake(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_operation = Operation("silu_and_mul(Tensor x) -> Tensor", _gate, _gate_fake)
_backward_operation = Operation("silu_and_mul_backward(Tensor dy, Tensor x) -> Tensor",
                                _gradients, _gradients_fake)


def _keep(ctx: Any, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, dy: torch.Tensor) -> torch.Tensor:
    dx: torch.Tensor = torch.ops.fp4.silu_and_mul_backward(dy, *ctx.saved_tensors)
    return dx


_operation.register_autograd(_backward, setup_context=_keep)

# ===--- Functions --------------------------------------------------------=== #


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """silu(g) * u of the halves g and u of each row of x, [..., 2K], as in silu_and_mul_quantize;
    its gradient is one kernel, too."""
    rows = functional._rows(x, "x")
    check_halves(rows)
    y: torch.Tensor = torch.ops.fp4.silu_and_mul(rows)
    return y.view(*x.shape[:-1], rows.shape[1] // 2)


def check_halves(rows: torch.Tensor) -> None:
    """Refuses an odd number of columns."""
    if rows.shape[1] % 2:
        raise UsageError(f"the columns must be those of two halves, but got {rows.shape[1]}",
                         "concatenate the gate and the up projection")
