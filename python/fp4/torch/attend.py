"""Attention in one kernel.

    attention(query, key, value, causal?, scale?) -> elements

The compiler makes a kernel for each shape, and keeps it for the process.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import torch

from ..errors import UsageError
from . import functional, programs
from .execution import run
from .operation import Operation
from .programs import Runnable
from .row_results import check_number, check_tensor, said
from .strides import dense


@dataclasses.dataclass(frozen=True)
class Attention:
    """The facts that decide the program: shapes of [B, S, H, D], the element type, and the mask."""

    query: tuple[int, ...]
    key: tuple[int, ...]
    value: tuple[int, ...]
    element: str
    scale: float
    causal: bool


@functools.lru_cache(maxsize=256)
def _program(what: Attention, target: str) -> Runnable:
    """(query, key, value) -> result."""
    return programs.compile_text(_text(what), target)


def _text(what: Attention) -> str:
    query, key, value, result = (
        f"tensor<{'x'.join(map(str, shape))}x{what.element}>"
        for shape in (what.query, what.key, what.value, _result(what.query, what.value)))
    mask = " causal" if what.causal else ""
    return (f"func.func @attention(%q: {query}, %k: {key}, %v: {value}) -> {result} {{\n"
            f"  %o = fp4.attention %q, %k, %v scale {what.scale:.9e}{mask}\n"
            f"      : {query}, {key}, {value} -> {result}\n"
            f"  return %o : {result}\n}}\n")


def _result(query: tuple[int, ...], value: tuple[int, ...]) -> tuple[int, ...]:
    return (*query[:3], value[3])


def _attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float,
               causal: bool) -> torch.Tensor:
    if not query.numel():
        return _attention_fake(query, key, value, scale, causal)
    what = Attention(tuple(query.shape), tuple(key.shape), tuple(value.shape),
                     programs.ELEMENTS[query.dtype], scale, causal)
    result: torch.Tensor = run(_program, (what,), dense(query), dense(key), dense(value),
                               target="sm_90a")
    return result


def _attention_fake(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float,
                    causal: bool) -> torch.Tensor:
    return query.new_empty((*query.shape[:3], value.shape[3]))


_operation = Operation(
    "attention(Tensor query, Tensor key, Tensor value, float scale, bool causal) -> Tensor",
    _attention, _attention_fake)


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, causal: bool = False,
              scale: float | None = None) -> torch.Tensor:
    """softmax(scale * query @ key^T) @ value of each head, [B, Sq, Hq, E], on Hopper.

    The layout is that of FlashAttention. A kernel is compiled for each shape. No gradient flows.

    Args:
        query: bfloat16 or float16 [B, Sq, Hq, D], D and E 64, 128, 192 or 256.
        key, value: [B, Sk, Hk, D] and [B, Sk, Hk, E] in its dtype; Hq is a multiple of Hk, and of
            several batches Sk one of 16.
        causal: query i sees keys up to i + Sk - Sq; one that sees none gives zeros.
        scale: a positive number; 1 / sqrt(D) unless given.

    Raises:
        UsageError: an argument that does not fit. CompileError: a GPU or a shape without a kernel.
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_tensor(tensor, name)
        _check_heads(tensor, name, query)
    functional._check_devices(query=query, key=key, value=value)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[3])
    check_number(scale, "scale")
    result: torch.Tensor = torch.ops.fp4.attention(query, key, value, float(scale), bool(causal))
    return result


def _check_heads(tensor: torch.Tensor, name: str, query: torch.Tensor) -> None:
    if tensor.dim() != 4:
        raise UsageError(f"'{name}' must be batches x tokens x heads x elements, but got the shape "
                         f"{list(tensor.shape)}", "pass x.view(batches, tokens, heads, -1)")
    if query.dtype not in (torch.bfloat16, torch.float16) or tensor.dtype != query.dtype:
        raise UsageError(f"'{name}' must be bfloat16 or float16 as 'query', but got {said(tensor)}",
                         "convert it with .to(torch.bfloat16)")
