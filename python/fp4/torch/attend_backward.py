"""Gradients of attention, of three kernels.

    attention_backward(query, key, value, output, lse, gradient, scale, causal, window,
        softcap) -> gradients of query, key and value

Results have the same bits every time.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import torch

from ..errors import UsageError
from . import programs
from .execution import run
from .operation import Operation
from .programs import Runnable
from .strides import dense

Maybe = torch.Tensor | None

#: Arguments behind `value` that leave the gradient as it is, or that it follows.
_FOLLOWED = ("scale", "softcap", "causal", "window", "sinks", "heads_first")


@dataclasses.dataclass(frozen=True)
class Backward:
    """The facts that decide the program: the shapes of queries, keys and values, their type, and
    the mask."""

    query: tuple[int, ...]
    key: tuple[int, ...]
    value: tuple[int, ...]
    element: str
    scale: float
    causal: bool
    window: int | None
    softcap: float | None = None


@functools.lru_cache(maxsize=256)
def _program(what: Backward, target: str) -> Runnable:
    """(query, key, value, output, gradient, lse) -> gradients of query, key and value."""
    return programs.compile_text(text_of(what), target)


def text_of(what: Backward) -> str:
    """The program of the gradients as MLIR text."""
    def tensor(shape: tuple[int, ...], element: str = what.element) -> str:
        return f"tensor<{'x'.join(map(str, shape))}x{element}>"

    query, key, value = (tensor(x) for x in (what.query, what.key, what.value))
    output, lse = tensor((*what.query[:3], what.value[3])), tensor(what.query[:3], "f32")
    names = (("query", query), ("key", key), ("value", value), ("output", output),
             ("gradient", output), ("lse", lse))
    arguments = ", ".join(f'%{name[0]}{name[-1]}: {kind} {{fp4.name = "{name}"}}'
                          for name, kind in names)
    mask = f"{' causal' if what.causal else ''}{f' window {what.window}' if what.window else ''}"
    cap = f" softcap {what.softcap:.9e}" if what.softcap else ""
    results = f"{query}, {key}, {value}"
    return (f"func.func @attention_backward({arguments}) -> ({results}) {{\n"
            f"  %dq, %dk, %dv = fp4.attention_backward %qy, %ky, %ve, %ot, %gt, %le"
            f" scale {what.scale:.9e}{cap}{mask}\n"
            f"      : {query}, {key}, {value}, {output}, {lse}\n"
            f"  return %dq, %dk, %dv : {results}\n}}\n")


def _differentiate(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                   output: torch.Tensor, lse: torch.Tensor, gradient: torch.Tensor, scale: float,
                   causal: bool, window: int | None = None,
                   softcap: float | None = None) -> Any:
    if not query.numel() or not key.numel():
        return tuple(torch.zeros_like(x, memory_format=torch.contiguous_format)
                     for x in (query, key, value))
    what = Backward(tuple(query.shape), tuple(key.shape), tuple(value.shape),
                    programs.ELEMENTS[query.dtype], scale, causal, window, softcap)
    operands = (dense(x) for x in (query, key, value, output, gradient, lse))
    return run(_program, (what,), *operands, target="sm_90a")


def _fake(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any) -> Any:
    return tuple(torch.empty_like(x, memory_format=torch.contiguous_format)
                 for x in (query, key, value))


_operation = Operation(
    "attention_backward(Tensor query, Tensor key, Tensor value, Tensor output, Tensor lse,"
    " Tensor gradient, float scale, bool causal, int? window=None, float? softcap=None)"
    " -> (Tensor, Tensor, Tensor)",
    _differentiate, _fake)


def wants_gradient(*tensors: torch.Tensor) -> bool:
    """Returns True where autograd records what becomes of one of the tensors."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def register(attention: Operation, attention_lse: Operation) -> None:
    """Gives both operations their gradient. The one without logarithms computes these again."""
    names = [argument.name for argument in attention.overload._schema.arguments]
    for operation in (attention, attention_lse):
        operation.register_autograd(functools.partial(_backward, names),
                                    setup_context=_keep)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    results = output if isinstance(output, tuple) else (output,)
    if len(results) == 2:
        ctx.mark_non_differentiable(results[1])
    ctx.inputs = tuple(None if isinstance(x, torch.Tensor) else x for x in inputs)
    ctx.places = tuple(i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor))
    ctx.save_for_backward(*(inputs[i] for i in ctx.places), *results)


def _backward(names: list[str], ctx: Any, gradient: torch.Tensor, *_: Any) -> Any:
    inputs, saved = list(ctx.inputs), ctx.saved_tensors
    for place, tensor in zip(ctx.places, saved):
        inputs[place] = tensor
    given = dict(zip(names, inputs))
    _check(given)
    results = saved[len(ctx.places):]
    if len(results) == 1:
        results = torch.ops.fp4.attention_lse(*inputs)
    gradients = torch.ops.fp4.attention_backward(
        *inputs[:3], *results, gradient, given["scale"], given["causal"], given.get("window"),
        given.get("softcap"))
    return (*gradients, *(None for _ in inputs[3:]))


def _check(given: dict[str, Any]) -> None:
    """Refuses attention whose gradient no kernel computes."""
    query, sinks = given["query"], given.get("sinks")
    if query.dtype not in (torch.bfloat16, torch.float16):
        raise UsageError("gradients of attention must be of bfloat16 or float16, but 'query' is "
                         f"{str(query.dtype)[6:]}", "compute in bfloat16 where gradients flow")
    other = [name for name, x in given.items()
             if name not in ("query", "key", "value", *_FOLLOWED)
             and x is not None and not (name == "latent" and x == 0)]
    if sinks is not None and sinks.requires_grad:
        other.append("sinks")
    if other:
        raise UsageError(f"attention has no gradient with '{other[0]}'",
                         "leave it out where gradients flow, or compute them by plain torch")
