"""Gradients of attention, of three kernels.

    attention_backward(query, key, value, output, lse, gradient, scale, causal, window,
        softcap, cu_seqlens_q, cu_seqlens_k) -> gradients of query, key and value

Results have the same bits every time.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import torch

from ..errors import UsageError
from . import programs
from .attend_programs import padded, tensor
from .execution import run
from .operation import Operation
from .programs import Runnable
from .strides import dense

Maybe = torch.Tensor | None

#: Arguments behind `value` that leave the gradient as it is, or that it follows.
_FOLLOWED = ("scale", "softcap", "causal", "window", "sinks", "heads_first", "cu_seqlens_q",
             "cu_seqlens_k")


@dataclasses.dataclass(frozen=True)
class Backward:
    """The facts that decide the program: the shapes of queries, keys and values, their type, the
    mask, and the number of offsets of packed sequences, whose tokens are dynamic."""

    query: tuple[int | None, ...]
    key: tuple[int | None, ...]
    value: tuple[int | None, ...]
    element: str
    scale: float
    causal: bool
    window: int | None
    softcap: float | None = None
    offsets: int = 0


@functools.lru_cache(maxsize=256)
def _program(what: Backward, target: str) -> Runnable:
    """(query, key, value, output, gradient, lse, offsets?) -> gradients of query, key and value."""
    return programs.compile_text(text_of(what), target)


def text_of(what: Backward) -> str:
    """The program of the gradients as MLIR text."""
    query, key, value = (tensor(x, what.element) for x in (what.query, what.key, what.value))
    output = tensor((*what.query[:-1], what.value[-1]), what.element)
    lse = tensor(what.query[:-1], "f32")
    names = (("query", query, "T"), ("key", key, "K"), ("value", value, "K"),
             ("output", output, "T"), ("gradient", output, "T"), ("lse", lse, "T"))
    arguments = ", ".join(f'%{name[0]}{name[-1]}: {kind} {{fp4.name = "{name}"{_dims(kind, size)}}}'
                          for name, kind, size in names)
    packed = ""
    if what.offsets:
        kind = tensor((what.offsets,), "i32")
        arguments += f", %qo: {kind}, %ko: {kind}"
        packed = f" query_offsets(%qo : {kind}) key_offsets(%ko : {kind})"
    mask = f"{' causal' if what.causal else ''}{f' window {what.window}' if what.window else ''}"
    cap = f" softcap {what.softcap:.9e}" if what.softcap else ""
    results = f"{query}, {key}, {value}"
    return (f"func.func @attention_backward({arguments}) -> ({results}) {{\n"
            f"  %dq, %dk, %dv = fp4.attention_backward %qy, %ky, %ve, %ot, %gt, %le{packed}"
            f" scale {what.scale:.9e}{cap}{mask}\n"
            f"      : {query}, {key}, {value}, {output}, {lse}\n"
            f"  return %dq, %dk, %dv : {results}\n}}\n")


def _dims(kind: str, size: str) -> str:
    """The name of a dynamic number of tokens, which operands have in common."""
    if "?" not in kind:
        return ""
    dims = ", ".join([f'"{size}"', *['""'] * (kind.count("x") - 1)])
    return f", fp4.dims = [{dims}]"


def _by_keys(x: Any, sequences: int, heads: int) -> Any:
    """Heads of queries, of all sequences that share one of `sequences` of keys, as heads of one."""
    return x.unflatten(2, (heads, -1)).unflatten(0, (sequences, -1)).movedim(1, 3).flatten(2, 4)


def _by_queries(x: Any, sharing: int, heads: int) -> Any:
    """The inverse of _by_keys, of `sharing` sequences."""
    return x.unflatten(2, (heads, sharing, -1)).movedim(3, 1).flatten(0, 1).flatten(2, 3)


def _differentiate(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                   output: torch.Tensor, lse: torch.Tensor, gradient: torch.Tensor, scale: float,
                   causal: bool, window: int | None = None, softcap: float | None = None,
                   cu_seqlens_q: Maybe = None, cu_seqlens_k: Maybe = None) -> Any:
    if not query.numel() or not key.numel():
        return tuple(torch.zeros_like(x, memory_format=torch.contiguous_format)
                     for x in (query, key, value))
    sharing = 1 if cu_seqlens_q is not None else query.shape[0] // key.shape[0]
    if sharing > 1:
        query, output, lse, gradient = (_by_keys(x, key.shape[0], key.shape[2])
                                        for x in (query, output, lse, gradient))
        of_queries, *others = _differentiate(query, key, value, output, lse, gradient, scale,
                                             causal, window, softcap)
        return _by_queries(of_queries, sharing, key.shape[2]).contiguous(), *others
    offsets = [padded(x) for x in (cu_seqlens_q, cu_seqlens_k) if x is not None]
    shapes: list[Any] = [(None, *x.shape[1:]) if offsets else tuple(x.shape)
                         for x in (query, key, value)]
    what = Backward(shapes[0], shapes[1], shapes[2], programs.ELEMENTS[query.dtype], scale, causal,
                    window, softcap, offsets[0].numel() if offsets else 0)
    operands = (dense(x) for x in (query, key, value, output, gradient, lse, *offsets))
    return run(_program, (what,), *operands, target="sm_90a")


def _fake(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any) -> Any:
    return tuple(torch.empty_like(x, memory_format=torch.contiguous_format)
                 for x in (query, key, value))


_operation = Operation(
    "attention_backward(Tensor query, Tensor key, Tensor value, Tensor output, Tensor lse,"
    " Tensor gradient, float scale, bool causal, int? window=None, float? softcap=None,"
    " Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None) -> (Tensor, Tensor, Tensor)",
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
    for place, kept in zip(ctx.places, saved):
        inputs[place] = kept
    given = dict(zip(names, inputs))
    _check(given)
    results = saved[len(ctx.places):]
    if len(results) == 1:
        results = torch.ops.fp4.attention_lse(*inputs)
    gradients = torch.ops.fp4.attention_backward(
        *inputs[:3], *results, gradient, given["scale"], given["causal"],
        *(given.get(name) for name in ("window", "softcap", "cu_seqlens_q", "cu_seqlens_k")))
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
