"""Cross entropies of rows of logits, and their gradients, in one kernel each.

    cross_entropy(logits, labels)                          -> losses, logsumexps
    cross_entropy_backward(logits, labels, lse, gradients) -> gradients of logits
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import torch

from ..errors import UsageError
from . import functional, programs
from .checking import check_rows
from .execution import run
from .operation import Operation
from .programs import Runnable, compile_text
from .row_programs import NUMBERS, Tensor, Text, constant
from .row_results import check_tensor, said
from .strides import placed_alike

_Pair = tuple[torch.Tensor, torch.Tensor]

_REDUCTIONS = ("mean", "sum", "none")
_LABELS = "tensor<?xi32>"


# ===--- Programs ---------------------------------------------------------=== #


@dataclasses.dataclass(frozen=True)
class Loss:
    """The facts that decide both programs: those of the logits, [T, columns]."""

    columns: int
    source: str
    strided: bool = False


@functools.lru_cache(maxsize=256)
def losses(what: Loss, target: str) -> Runnable:
    """(logits [T, columns], labels i32 [T]) -> losses, logsumexps, f32 [T]."""
    return compile_text(losses_text(what), target)


def losses_text(what: Loss) -> str:
    """The program of losses as MLIR text. The sum of one difference and zeros is exact."""
    text = Text(what.columns, what.source, what.strided)
    x = text.argument("logits", text.matrix(what.source))
    labels = text.argument("labels", _LABELS, "#row")
    text.begin(x)
    most = text.reduce("most", [x], "", "%logits.f", "maximumf", -math.inf)
    total = text.reduce("total", [x, most], "    %d = arith.subf %logits.f, %most.f : f32\n"
                        "    %e = math.exp %d fastmath<afn> : f32\n", "%e")
    lse = text.numbers("lse", [most, total], "    %l = math.log %total.f : f32\n"
                       "    %s = arith.addf %most.f, %l : f32\n", "%s")
    body = _is_label() + constant("none", 0.0) + """\
    %d = arith.subf %lse.f, %logits.f : f32
    %z = arith.select %here, %d, %none : f32
"""
    loss = text.reduce("loss", [x, lse, labels], body, "%z")
    for result in (loss, lse):
        text.result(result.name, NUMBERS)
    return text.text("losses")


@functools.lru_cache(maxsize=256)
def gradients(what: Loss, target: str) -> Runnable:
    """(logits [T, columns], labels i32, logsumexps and gradients of losses f32, [T]) ->
    gradients of logits."""
    return compile_text(gradients_text(what), target)


def gradients_text(what: Loss) -> str:
    """The program of gradients as MLIR text: (softmax - 1 at the label) * gradient."""
    text = Text(what.columns, what.source, what.strided)
    x = text.argument("logits", text.matrix(what.source))
    labels, lse, factor = (text.argument(name, type, "#row") for name, type in
                          (("labels", _LABELS), ("lse", NUMBERS), ("factor", NUMBERS)))
    text.begin(x)
    body = _is_label() + constant("none", 0.0) + constant("one", 1.0) + f"""\
    %columns = arith.constant {what.columns} : i32
    %counts = arith.cmpi ult, %labels.e, %columns : i32
    %d = arith.subf %logits.f, %lse.f : f32
    %p = math.exp %d fastmath<afn> : f32
    %o = arith.select %here, %one, %none : f32
    %s = arith.subf %p, %o : f32
    %g = arith.mulf %s, %factor.f : f32
    %z = arith.select %counts, %g, %none : f32
"""
    result: Tensor = text.elements("gradient", [x, labels, lse, factor], body, "%z", what.source)
    text.result(result.name, result.type)
    return text.text("gradients")


def _is_label() -> str:
    return """    %column = linalg.index 1 : index
    %at = arith.index_cast %column : index to i32
    %here = arith.cmpi eq, %at, %labels.e : i32
"""


# ===--- Operations -------------------------------------------------------=== #


def _cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> _Pair:
    if not logits.numel():
        return _cross_entropy_fake(logits, labels)
    check_rows(labels, "labels", logits.shape[1], skips=True,
               remedy="pass -100 for a row without a loss")
    placed, what = _placed(logits)
    loss, lse = run(losses, (what,), placed, labels.contiguous())
    return loss, lse


def _cross_entropy_fake(logits: torch.Tensor, labels: torch.Tensor) -> _Pair:
    rows = logits.shape[0]
    return (logits.new_empty(rows, dtype=torch.float32),
            logits.new_empty(rows, dtype=torch.float32))


def _gradients(logits: torch.Tensor, labels: torch.Tensor, lse: torch.Tensor,
               given: torch.Tensor) -> torch.Tensor:
    if not logits.numel():
        return _gradients_fake(logits, labels, lse, given)
    placed, what = _placed(logits)
    result: torch.Tensor = run(gradients, (what,), placed, labels.contiguous(), lse.contiguous(),
                               given.contiguous())
    return result


def _gradients_fake(logits: torch.Tensor, labels: torch.Tensor, lse: torch.Tensor,
                    given: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(logits, memory_format=torch.contiguous_format)


def _placed(logits: torch.Tensor) -> tuple[torch.Tensor, Loss]:
    (placed,), is_strided = placed_alike(logits)
    return placed, Loss(logits.shape[1], programs.ELEMENTS[logits.dtype],
                        is_strided and not placed.is_contiguous())


_operation = Operation("cross_entropy(Tensor logits, Tensor labels) -> (Tensor, Tensor)",
                       _cross_entropy, _cross_entropy_fake)
_backward_operation = Operation(
    "cross_entropy_backward(Tensor logits, Tensor labels, Tensor lse, Tensor given) -> Tensor",
    _gradients, _gradients_fake)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: _Pair) -> None:
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*inputs, output[1])


def _backward(ctx: Any, given: torch.Tensor, _: Any) -> tuple[torch.Tensor, None]:
    return torch.ops.fp4.cross_entropy_backward(*ctx.saved_tensors, given), None


_operation.register_autograd(_backward, setup_context=_keep)

# ===--- Functions --------------------------------------------------------=== #


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor, *,
                  reduction: str = "mean") -> torch.Tensor:
    """The cross entropy of rows of logits, logsumexp(row) - row[label], in f32.

    One kernel reads the logits, and one writes their gradients, (softmax - onehot) * gradient,
    rounded once. Exponentials are those of `ex2.approx`, as in other libraries. Rows whose label is
    no column, such as -100, have neither.

    Args:
        logits: bfloat16, float16 or float32 [T, V].
        labels: int64 or int32 [T].
        reduction: "mean" of the rows that have a loss, "sum", or "none".

    Returns:
        float32, a scalar, or [T].

    Raises:
        UsageError: an argument that does not fit.
    """
    functional._check_input(logits, "logits")
    if logits.dim() != 2 or not logits.shape[1]:
        raise UsageError(f"'logits' must be a matrix with columns, but got the shape "
                         f"{list(logits.shape)}", "pass logits.view(-1, logits.shape[-1])")
    check_tensor(labels, "labels")
    if labels.dim() != 1 or labels.dtype not in (torch.int64, torch.int32):
        raise UsageError(f"'labels' must be int64 or int32 of shape [T], but got {said(labels)}",
                         "each row of logits has one")
    if labels.shape[0] != logits.shape[0]:
        raise UsageError(f"'labels' must have {logits.shape[0]} numbers, but got {said(labels)}",
                         "each row of logits has one")
    if reduction not in _REDUCTIONS:
        raise UsageError(f"'reduction' must be {', '.join(_REDUCTIONS)}, but got {reduction!r}",
                         "'none' gives the loss of each row")
    functional._check_devices(logits=logits, labels=labels)
    numbers = labels.to(torch.int32)
    loss: torch.Tensor = torch.ops.fp4.cross_entropy(logits, numbers)[0]
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    return loss.sum() / ((numbers >= 0) & (numbers < logits.shape[1])).sum()
