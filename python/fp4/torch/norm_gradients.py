"""Gradients of norms of rows, in one kernel.

    norm_backward(dy, h, dh?, weight?, kind, ...) -> dh, rstd, mean

With n = (h - mean) * rstd and g = dy * (weight + offset), the gradient of h is
(g - mean(g) - n * mean(g * n)) * rstd, without both means of h and g for RMSNorm. The gradient that
h has as a result is added before the one rounding. Gradients of weights and biases are sums of
columns, which torch adds: torch.compile makes one kernel of them.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from ..errors import UsageError
from . import norm_programs, programs
from .execution import run
from .norm_programs import Norm
from .operation import NO_GRADIENT, Operation
from .programs import Runnable, compile_text
from .row_programs import NUMBERS, Tensor, Text, constant
from .row_results import Optional
from .strides import dense, placed_alike

_Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

# ===--- Programs ---------------------------------------------------------=== #


@functools.lru_cache(maxsize=256)
def gradients(what: Norm, target: str) -> Runnable:
    """(dy, h [M, columns]; the gradient of h where there is a residual; weight) -> the gradient of
    h; rstd and, for LayerNorm, mean of each row, f32 [M]."""
    return compile_text(gradients_text(what), target)


def gradients_text(what: Norm) -> str:
    """The program of gradients as MLIR text. Means are divided by the columns, as in the norm."""
    text = Text(what.columns, what.source, what.strided)
    dy, h = (text.argument(name, text.matrix(what.source)) for name in ("dy", "h"))
    dh = [text.argument("dh", text.matrix(what.source))] if what.residual else []
    scales = [text.argument("w", f"tensor<{what.columns}x{what.weight}>", "#column")
              ] if what.weight else []
    text.begin(h)
    rows, body = _normed(text, what, h)
    weighted, given = _weighted(what)
    inputs, body = [dy, h, *rows, *scales], body + weighted
    sums = [_mean(text, what, "b", inputs, body + f"    %p = arith.mulf {given}, %n : f32\n", "%p")]
    last = given
    if what.kind == "layer":
        sums.append(_mean(text, what, "a", [dy, *scales], weighted, given))
        body, last = body + f"    %m = arith.subf {given}, %a.f : f32\n", "%m"
    body += f"""\
    %t = arith.mulf %n, %b.f : f32
    %l = arith.subf {last}, %t : f32
    %z = arith.mulf %l, %rstd.f : f32
"""
    body += "    %s = arith.addf %z, %dh.f : f32\n" if dh else ""
    text.elements("dx", [*inputs, *sums, *dh], body, "%s" if dh else "%z", what.source)
    text.result("dx", text.matrix(what.source))
    for number in reversed(rows):
        text.result(number.name, NUMBERS)
    return text.text(f"{what.kind}_norm_gradient")


def _normed(text: Text, what: Norm, h: Tensor) -> tuple[list[Tensor], str]:
    """The numbers of rows, mean of LayerNorm and rstd, and lines that compute %n."""
    rows, body, value = [], "", "%h.f"
    if what.kind == "layer":
        rows.append(norm_programs.mean_of(text, what, h))
        body, value = "    %d = arith.subf %h.f, %mean.f : f32\n", "%d"
    square = body + f"    %p = arith.mulf {value}, {value} : f32\n"
    rows.append(norm_programs.rstd_of(text, what, [h, *rows], square, ""))
    return rows, f"{body}    %n = arith.mulf {value}, %rstd.f : f32\n"


def _weighted(what: Norm) -> tuple[str, str]:
    """Lines of dy * (weight + offset), and what it is called."""
    if not what.weight:
        return "", "%dy.f"
    if what.offset is None:
        return "    %g = arith.mulf %dy.f, %w.f : f32\n", "%g"
    return constant("o", what.offset) + """\
    %w.o = arith.addf %w.f, %o : f32
    %g = arith.mulf %dy.f, %w.o : f32
""", "%g"


def _mean(text: Text, what: Norm, name: str, inputs: list[Tensor], body: str, last: str) -> Tensor:
    """The mean of each row of what the `body` computes."""
    total = text.reduce(f"{name}.sum", inputs, body, last)
    body = constant("n", float(what.columns)) + f"    %m = arith.divf %{name}.sum.f, %n : f32\n"
    return text.numbers(name, [total], body, "%m")


# ===--- Operation --------------------------------------------------------=== #


def _backward(dy: torch.Tensor, h: torch.Tensor, dh: Optional, weight: Optional, kind: str,
              eps: float, offset: float | None) -> _Three:
    if not h.numel():
        return _backward_fake(dy, h, dh, weight, kind, eps, offset)
    inputs, is_strided = placed_alike(dy, h, *() if dh is None else (dh,))
    what = Norm(h.shape[1], programs.ELEMENTS[h.dtype], kind, eps,
                "" if weight is None else programs.ELEMENTS[weight.dtype], offset=offset,
                residual="" if dh is None else "rounded",
                strided=is_strided and not all(value.is_contiguous() for value in inputs))
    dx, rstd, *mean = run(gradients, (what,), *inputs, None if weight is None else dense(weight))
    return dx, rstd, mean[0] if mean else rstd.new_empty(0)


def _backward_fake(dy: torch.Tensor, h: torch.Tensor, dh: Optional, weight: Optional, kind: str,
                   eps: float, offset: float | None) -> _Three:
    rstd = h.new_empty(h.shape[0], dtype=torch.float32)
    return (torch.empty_like(h, memory_format=torch.contiguous_format), rstd,
            torch.empty_like(rstd) if kind == "layer" else rstd.new_empty(0))


norm_backward = Operation(
    "norm_backward(Tensor dy, Tensor h, Tensor? dh, Tensor? weight, str kind, float eps, "
    "float? offset) -> (Tensor, Tensor, Tensor)", _backward, _backward_fake)


def register(operation: Operation, elements: int, keeps: int | None = None) -> None:
    """Gives `operation` of x, residual, weight, bias, ..., whose results are the elements at the
    index `elements` and x + residual behind them, its gradients. The argument at the index `keeps`
    says whether there are elements."""

    def keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        x, residual, weight, bias, *rest = inputs
        kind, eps, offset, _ = rest[-4:] if keeps is None else rest[1:5]
        ctx.rule, ctx.more = (kind, eps, offset), len(rest)
        ctx.has_elements = keeps is None or inputs[keeps]
        ctx.types = [None if scale is None else scale.dtype for scale in (weight, bias)]
        ctx.has_residual = residual is not None
        ctx.mark_non_differentiable(*output[:elements])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x if residual is None else output[-1], weight)

    def backward(ctx: Any, *given: Optional) -> tuple[Optional, ...]:
        if not ctx.has_elements:
            raise UsageError(f"fp4.{operation.name} has no gradient without its elements",
                             f"pass keep=True; {NO_GRADIENT}")
        dy, dh = given[elements], given[elements + 1] if ctx.has_residual else None
        dx: Optional = dh
        scales: tuple[Optional, Optional] = (None, None)
        if dy is not None:
            dx, scales = _gradients(ctx, dy, dh)
        return (dx, dx if ctx.has_residual else None, *scales, *(None,) * ctx.more)

    operation.register_autograd(backward, setup_context=keep)


def _gradients(ctx: Any, dy: torch.Tensor, dh: Optional
               ) -> tuple[torch.Tensor, tuple[Optional, Optional]]:
    """The gradients of h, and of the weight and the bias where they are asked for."""
    h, weight = ctx.saved_tensors
    dx, rstd, mean = torch.ops.fp4.norm_backward(dy, h, dh, weight, *ctx.rule)
    of_weight = of_bias = None
    if ctx.needs_input_grad[2]:
        wide = h.float() - mean[:, None] if ctx.rule[0] == "layer" else h.float()
        of_weight = (dy.float() * (wide * rstd[:, None])).sum(0).to(ctx.types[0])
    if ctx.needs_input_grad[3]:
        of_bias = dy.sum(0, dtype=torch.float32).to(ctx.types[1])
    return dx, (of_weight, of_bias)
