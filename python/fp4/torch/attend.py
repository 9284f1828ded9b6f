"""Attention in one kernel.

    attention(query, key, value, causal?, scale?, lengths?, pages?) -> elements
    scaled_dot_product_attention(query, key, value, ...) -> elements, as torch.nn.functional has it

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
    """The facts that decide the program: shapes of [B, S, H, D], the element type, and the mask;
    `pages` of a sequence, or 0 without a cache."""

    query: tuple[int, ...]
    key: tuple[int, ...]
    value: tuple[int, ...]
    element: str
    scale: float
    causal: bool
    has_lengths: bool = False
    pages: int = 0


@functools.lru_cache(maxsize=256)
def _program(what: Attention, target: str) -> Runnable:
    """(query, key, value, lengths?, pages?) -> result."""
    return programs.compile_text(_text(what), target)


def _text(what: Attention) -> str:
    query, key, value, result = (
        f"tensor<{'x'.join(map(str, shape))}x{what.element}>"
        for shape in (what.query, what.key, what.value, _result(what.query, what.value)))
    mask = " causal" if what.causal else ""
    batches = what.query[0]
    sequences = [("lengths", f"tensor<{batches}xi32>")] if what.has_lengths else []
    if what.pages:
        sequences.append(("pages", f"tensor<{batches}x{what.pages}xi32>"))
    more = "".join(f" {name}(%{name} : {kind})" for name, kind in sequences)
    arguments = "".join(f", %{name}: {kind}" for name, kind in sequences)
    return (f"func.func @attention(%q: {query}, %k: {key}, %v: {value}{arguments}) -> {result} {{\n"
            f"  %o = fp4.attention %q, %k, %v{more} scale {what.scale:.9e}{mask}\n"
            f"      : {query}, {key}, {value} -> {result}\n"
            f"  return %o : {result}\n}}\n")


def _result(query: tuple[int, ...], value: tuple[int, ...]) -> tuple[int, ...]:
    return (*query[:3], value[3])


def _attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
               lengths: torch.Tensor | None, pages: torch.Tensor | None, scale: float,
               causal: bool) -> torch.Tensor:
    if not query.numel():
        return _attention_fake(query, key, value, lengths, pages, scale, causal)
    what = Attention(tuple(query.shape), tuple(key.shape), tuple(value.shape),
                     programs.ELEMENTS[query.dtype], scale, causal, lengths is not None,
                     0 if pages is None else pages.shape[1])
    sequences = (None if x is None else dense(x) for x in (lengths, pages))
    result: torch.Tensor = run(_program, (what,), dense(query), dense(key), dense(value),
                               *sequences, target="sm_90a")
    return result


def _attention_fake(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                    lengths: torch.Tensor | None, pages: torch.Tensor | None, scale: float,
                    causal: bool) -> torch.Tensor:
    return query.new_empty((*query.shape[:3], value.shape[3]))


_operation = Operation(
    "attention(Tensor query, Tensor key, Tensor value, Tensor? lengths, Tensor? pages, float scale,"
    " bool causal) -> Tensor", _attention, _attention_fake)


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, causal: bool = False,
              scale: float | None = None, lengths: torch.Tensor | None = None,
              pages: torch.Tensor | None = None) -> torch.Tensor:
    """softmax(scale * query @ key^T) @ value of each head, [B, Sq, Hq, E], on Hopper.

    The layout is that of FlashAttention. A kernel is compiled for each shape; lengths and pages are
    read by the kernel, so that a CUDA graph follows them. No gradient flows.

    Args:
        query: bfloat16 or float16 [B, Sq, Hq, D], D and E 64, 128, 192 or 256.
        key, value: [B, Sk, Hk, D] and [B, Sk, Hk, E] in its dtype; Hq is a multiple of Hk.
        causal: query i sees keys up to i + Sk - Sq; one that sees none gives zeros.
        scale: a positive number; 1 / sqrt(D) unless given.
        lengths: int32 [B], the keys of each sequence in place of Sk. Values behind them must be
            finite: the kernel multiplies them by 0.
        pages: int32 [B, P], with lengths: key and value are a cache [N, T, Hk, D] and
            [N, T, Hk, E], T a multiple of 8, and key j of sequence b is key j % T of page
            `pages[b, j // T]`.

    Raises:
        UsageError: an argument that does not fit. CompileError: a GPU or a shape without a kernel.
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_tensor(tensor, name)
        _check_heads(tensor, name, query)
    _check_numbers(lengths, "lengths", (query.shape[0],))
    _check_numbers(pages, "pages", (query.shape[0], -1))
    if pages is not None and lengths is None:
        raise UsageError("'pages' must come with 'lengths', but got none",
                         "a sequence ends in the middle of a page")
    given = {"lengths": lengths, "pages": pages}
    functional._check_devices(query=query, key=key, value=value,
                              **{name: x for name, x in given.items() if x is not None})
    if scale is None:
        scale = 1 / math.sqrt(query.shape[3])
    check_number(scale, "scale")
    result: torch.Tensor = torch.ops.fp4.attention(query, key, value, lengths, pages, float(scale),
                                                   bool(causal))
    return result


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                                 attn_mask: None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> torch.Tensor:
    """torch.nn.functional.scaled_dot_product_attention, where `attention` computes the same.

    Args:
        query, key, value: bfloat16 or float16 [B, Hq, Sq, D], [B, Hk, Sk, D] and [B, Hk, Sk, E].
            Tensors that are no transposed views of [B, S, H, D] are copied.
        is_causal: only with Sq = Sk, since torch aligns the mask with the first key.
        enable_gqa: Hq is a multiple of Hk; without it Hq = Hk.

    Raises:
        UsageError: a mask, dropout, or an argument that does not fit. CompileError: a GPU or a
            shape without a kernel.
    """
    if attn_mask is not None or dropout_p:
        raise UsageError("'attn_mask' and 'dropout_p' must be left out",
                         "fp4.torch.attention has causal masks and lengths of sequences")
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_tensor(tensor, name)
        _check_heads(tensor, name, query)
    if is_causal and query.shape[2] != key.shape[2]:
        raise UsageError(f"'is_causal' must be False for {query.shape[2]} queries of "
                         f"{key.shape[2]} keys", "fp4.torch.attention ends its mask with the last "
                         "key, as torch.nn.attention.bias.causal_lower_right does")
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise UsageError(f"'key' must have the {query.shape[1]} heads of 'query', but has "
                         f"{key.shape[1]}", "pass enable_gqa=True where heads share keys")
    return attention(*(x.transpose(1, 2) for x in (query, key, value)), causal=is_causal,
                     scale=scale).transpose(1, 2)


def _check_numbers(tensor: torch.Tensor | None, name: str, shape: tuple[int, ...]) -> None:
    """`tensor` must be int32 of `shape`, in which -1 stands for any size but 0."""
    if tensor is None:
        return
    check_tensor(tensor, name)
    fits = tensor.dim() == len(shape) and all(
        size == wanted or (wanted < 0 and size) for size, wanted in zip(tensor.shape, shape))
    if tensor.dtype != torch.int32 or not fits:
        raise UsageError(f"'{name}' must be int32 of shape {list(shape)}, but got {said(tensor)}",
                         f"write {name}.int(), one number or row for each sequence")


def _check_heads(tensor: torch.Tensor, name: str, query: torch.Tensor) -> None:
    if tensor.dim() != 4:
        raise UsageError(f"'{name}' must be batches x tokens x heads x elements, but got the shape "
                         f"{list(tensor.shape)}", "pass x.view(batches, tokens, heads, -1)")
    if query.dtype not in (torch.bfloat16, torch.float16) or tensor.dtype != query.dtype:
        raise UsageError(f"'{name}' must be bfloat16 or float16 as 'query', but got {said(tensor)}",
                         "convert it with .to(torch.bfloat16)")
