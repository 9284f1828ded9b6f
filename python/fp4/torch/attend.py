"""Attention in one kernel.

    attention(query, key, value, causal?, scale?, window?, sinks?, ...) -> elements
    scaled_dot_product_attention(query, key, value, ...) -> elements, as torch.nn.functional has it

The compiler makes a kernel for each shape, and keeps it for the process.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, Literal, overload

import torch

from ..errors import UsageError
from . import functional, programs
from .execution import run
from .operation import Operation
from .programs import Runnable
from .row_results import check_number, check_tensor, said
from .strides import dense

Maybe = torch.Tensor | None

_PACKED = (torch.uint8, torch.float4_e2m1fn_x2)
_CODES = {torch.float8_e4m3fn: "f8E4M3FN", torch.float4_e2m1fn_x2: "f4E2M1FN"}
_SCALES = {torch.float8_e4m3fn: "f8E4M3FN", torch.float8_e8m0fnu: "f8E8M0FNU"}
_BLOCKS = {"f8E4M3FN": 16, "f8E8M0FNU": 32}


@dataclasses.dataclass(frozen=True)
class Attention:
    """The facts that decide the program: shapes of [B, S, H, D] in elements, the type of queries,
    and the mask; `pages` of a sequence, or 0 without a cache; the types of codes and of scales, or
    none; the numbers of factors; softcap, window and sinks; and the results."""

    query: tuple[int, ...]
    key: tuple[int, ...]
    value: tuple[int, ...]
    element: str
    scale: float
    causal: bool
    has_lengths: bool = False
    pages: int = 0
    code: str = ""
    scale_type: str = ""
    factors: tuple[int, ...] = ()
    softcap: float | None = None
    window: int | None = None
    has_sinks: bool = False
    has_lse: bool = False


@functools.lru_cache(maxsize=256)
def _program(what: Attention, target: str) -> Runnable:
    """(query, key, value, scales?, factors?, lengths?, pages?, sinks?) -> result, lse?"""
    return programs.compile_text(text_of(what), target)


def text_of(what: Attention) -> str:
    """The program of attention as MLIR text."""
    def tensor(shape: tuple[int, ...], element: str) -> str:
        return f"tensor<{'x'.join(map(str, shape))}x{element}>"

    code, batches = what.code or what.element, what.query[0]
    query, result = (tensor(x, what.element) for x in (what.query, _result(what.query, what.value)))
    key, value = tensor(what.key, code), tensor(what.value, code)
    groups: dict[str, list[tuple[str, str]]] = {}
    if what.scale_type:
        block = _BLOCKS[what.scale_type]
        groups["scales"] = [(name, tensor((*shape[:3], -(-shape[3] // block)), what.scale_type))
                            for name, shape in (("ks", what.key), ("vs", what.value))]
    if what.factors:
        groups["factors"] = [(name, f"tensor<{count}xf32>")
                             for name, count in zip(("fk", "fv"), what.factors)]
    if what.has_lengths:
        groups["lengths"] = [("n", f"tensor<{batches}xi32>")]
    if what.pages:
        groups["pages"] = [("p", f"tensor<{batches}x{what.pages}xi32>")]
    if what.has_sinks:
        groups["sinks"] = [("s", f"tensor<{what.query[2]}xf32>")]
    more = "".join(f" {word}({', '.join(f'%{name}' for name, _ in operands)} : "
                   f"{', '.join(kind for _, kind in operands)})"
                   for word, operands in groups.items())
    arguments = "".join(f", %{name}: {kind}" for operands in groups.values()
                        for name, kind in operands)
    names, results, given = "%o", result, result
    if what.has_lse:
        names, results = "%o, %l", f"{result}, {tensor(what.query[:3], 'f32')}"
        given = f"({results})"
    return (f"func.func @attention(%q: {query}, %k: {key}, %v: {value}{arguments}) -> {given} {{\n"
            f"  {names} = fp4.attention %q, %k, %v{more} {_scores(what)}\n"
            f"      : {query}, {key}, {value} -> {results}\n"
            f"  return {names} : {results}\n}}\n")


def _scores(what: Attention) -> str:
    """The attributes of scores, and those that say which keys queries see."""
    softcap = "" if what.softcap is None else f" softcap {what.softcap:.9e}"
    window = "" if what.window is None else f" window {what.window}"
    return f"scale {what.scale:.9e}{softcap}{' causal' if what.causal else ''}{window}"


def _result(query: tuple[int, ...], value: tuple[int, ...]) -> tuple[int, ...]:
    return (*query[:3], value[3])


def _elements(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape of keys or values in elements: two codes of 4 bits are a byte."""
    packed = tensor.dtype in _PACKED
    return (*tensor.shape[:3], tensor.shape[3] * 2) if packed else tuple(tensor.shape)


def _attend(has_lse: bool, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
            lengths: Maybe, pages: Maybe, scale: float, causal: bool, key_scales: Maybe = None,
            value_scales: Maybe = None, key_factors: Maybe = None, value_factors: Maybe = None,
            sinks: Maybe = None, softcap: float | None = None, window: int | None = None) -> Any:
    if not query.numel():
        return _attend_fake(has_lse, query, key, value)
    if key.dtype in _PACKED:
        key, value = (x.view(torch.float4_e2m1fn_x2) for x in (key, value))
    factors = () if key_factors is None or value_factors is None else (
        key_factors.numel(), value_factors.numel())
    what = Attention(tuple(query.shape), _elements(key), _elements(value),
                     programs.ELEMENTS[query.dtype], scale, causal, lengths is not None,
                     0 if pages is None else pages.shape[1], _CODES.get(key.dtype, ""),
                     "" if key_scales is None else _SCALES[key_scales.dtype], factors,
                     softcap, window, sinks is not None, has_lse)
    more = (None if x is None else dense(x) for x in
            (key_scales, value_scales, key_factors, value_factors, lengths, pages, sinks))
    return run(_program, (what,), dense(query), dense(key), dense(value), *more, target="sm_90a")


def _attend_fake(has_lse: bool, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                 *_: Any) -> Any:
    result = query.new_empty((*query.shape[:3], _elements(value)[3]))
    return (result, query.new_empty(query.shape[:3], dtype=torch.float32)) if has_lse else result


_ARGUMENTS = (
    "(Tensor query, Tensor key, Tensor value, Tensor? lengths, Tensor? pages, float scale,"
    " bool causal, Tensor? key_scales=None, Tensor? value_scales=None, Tensor? key_factors=None,"
    " Tensor? value_factors=None, Tensor? sinks=None, float? softcap=None, int? window=None)")


def _operation(name: str, has_lse: bool, results: str) -> Operation:
    def implementation(*arguments: Any) -> Any:
        return _attend(has_lse, *arguments)

    def fake(*arguments: Any) -> Any:
        return _attend_fake(has_lse, *arguments)

    return Operation(f"{name}{_ARGUMENTS} -> {results}", implementation, fake)


_operations = (_operation("attention", False, "Tensor"),
               _operation("attention_lse", True, "(Tensor, Tensor)"))


@overload
def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, causal: bool = False,
              scale: float | None = None, softcap: float | None = None, window: int | None = None,
              sinks: torch.Tensor | None = None, lengths: torch.Tensor | None = None,
              pages: torch.Tensor | None = None, key_scales: torch.Tensor | None = None,
              value_scales: torch.Tensor | None = None, key_factors: torch.Tensor | None = None,
              value_factors: torch.Tensor | None = None,
              return_lse: Literal[False] = False) -> torch.Tensor: ...


@overload
def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, causal: bool = False,
              scale: float | None = None, softcap: float | None = None, window: int | None = None,
              sinks: torch.Tensor | None = None, lengths: torch.Tensor | None = None,
              pages: torch.Tensor | None = None, key_scales: torch.Tensor | None = None,
              value_scales: torch.Tensor | None = None, key_factors: torch.Tensor | None = None,
              value_factors: torch.Tensor | None = None,
              return_lse: Literal[True]) -> tuple[torch.Tensor, torch.Tensor]: ...


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, causal: bool = False,
              scale: float | None = None, softcap: float | None = None, window: int | None = None,
              sinks: torch.Tensor | None = None, lengths: torch.Tensor | None = None,
              pages: torch.Tensor | None = None, key_scales: torch.Tensor | None = None,
              value_scales: torch.Tensor | None = None, key_factors: torch.Tensor | None = None,
              value_factors: torch.Tensor | None = None,
              return_lse: bool = False) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """softmax(scale * query @ key^T) @ value of each head, [B, Sq, Hq, E].

    A kernel is compiled for each shape. CUDA graphs follow lengths and pages. No gradient flows.

    Args:
        query: bfloat16 or float16 [B, Sq, Hq, D], D and E 64, 128, 192 or 256.
        key, value: [B, Sk, Hk, D] and [B, Sk, Hk, E] in its dtype; Hq is a multiple of Hk. Or
            codes: float8_e4m3fn, or float4_e2m1fn_x2 or uint8 [..., D/2] with the even element in
            the low nibble.
        causal: query i sees keys up to i + Sk - Sq; one that sees none gives zeros.
        scale: a positive number; 1 / sqrt(D) unless given.
        softcap: scores are softcap * tanh(score / softcap).
        window: with causal, the last keys that a query sees, its own included: `sliding_window` of
            transformers, (window - 1, 0) of FlashAttention.
        sinks: float32 [Hq], logits that join the denominators (gpt-oss).
        lengths: int32 [B], the keys of each sequence in place of Sk. Values behind them must be
            finite.
        pages: int32 [B, P], with lengths: key and value are a cache [N, T, Hk, D] and
            [N, T, Hk, E], T a multiple of 8, or 16 for codes, and key j of sequence b is key
            j % T of page `pages[b, j // T]`.
        key_scales, value_scales: of blocks of codes of a head: float8_e4m3fn for 16 of 4 bits
            (NVFP4), float8_e8m0fnu for 32 (MXFP4, MXFP8) with a bfloat16 query.
        key_factors, value_factors: float32 [1] or [Hk], decode scales of all codes, or of those of
            a head.
        return_lse: also return the logarithms of denominators, float32 [B, Sq, Hq]: minus infinity
            without a key or sink.

    Raises:
        UsageError: an argument that does not fit. CompileError: a GPU or a shape without a kernel.
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_tensor(tensor, name)
        _check_heads(tensor, name, query)
    _check_codes(query, key, value, key_scales, value_scales, key_factors, value_factors)
    _check_scores(query, causal, softcap, window, sinks)
    _check_numbers(lengths, "lengths", (query.shape[0],))
    _check_numbers(pages, "pages", (query.shape[0], -1))
    if pages is not None and lengths is None:
        raise UsageError("'pages' must come with 'lengths', but got none",
                         "a sequence ends in the middle of a page")
    given = {"lengths": lengths, "pages": pages, "key_scales": key_scales,
             "value_scales": value_scales, "key_factors": key_factors,
             "value_factors": value_factors, "sinks": sinks}
    functional._check_devices(query=query, key=key, value=value,
                              **{name: x for name, x in given.items() if x is not None})
    if scale is None:
        scale = 1 / math.sqrt(query.shape[3])
    check_number(scale, "scale")
    operation = torch.ops.fp4.attention_lse if return_lse else torch.ops.fp4.attention
    results: torch.Tensor | tuple[torch.Tensor, torch.Tensor] = operation(
        query, key, value, lengths, pages, float(scale), bool(causal), key_scales, value_scales,
        key_factors, value_factors, sinks, None if softcap is None else float(softcap), window)
    return results


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


def _check_numbers(tensor: Maybe, name: str, shape: tuple[int, ...]) -> None:
    """`tensor` must be int32 of `shape`, in which -1 stands for any size but 0."""
    if tensor is None:
        return
    check_tensor(tensor, name)
    fits = tensor.dim() == len(shape) and all(
        size == wanted or (wanted < 0 and size) for size, wanted in zip(tensor.shape, shape))
    if tensor.dtype != torch.int32 or not fits:
        raise UsageError(f"'{name}' must be int32 of shape {list(shape)}, but got {said(tensor)}",
                         f"write {name}.int(), one number or row for each sequence")


def _check_scores(query: torch.Tensor, causal: bool, softcap: float | None, window: int | None,
                  sinks: Maybe) -> None:
    if softcap is not None:
        check_number(softcap, "softcap")
    if window is not None and (not isinstance(window, int) or window < 1):
        raise UsageError(f"'window' must be a positive number of keys, but got {window!r}",
                         "leave it out, and a query sees all keys up to its own")
    if window is not None and not causal:
        raise UsageError("'window' must come with causal=True, but got False",
                         "a window ends with the key of its query")
    if sinks is None:
        return
    check_tensor(sinks, "sinks")
    if sinks.dtype != torch.float32 or tuple(sinks.shape) != (query.shape[2],):
        raise UsageError(f"'sinks' must be float32 of shape [{query.shape[2]}], but got "
                         f"{said(sinks)}", "write sinks.float(), a logit for each head of queries")


def _check_heads(tensor: torch.Tensor, name: str, query: torch.Tensor) -> None:
    if tensor.dim() != 4:
        raise UsageError(f"'{name}' must be batches x tokens x heads x elements, but got the shape "
                         f"{list(tensor.shape)}", "pass x.view(batches, tokens, heads, -1)")
    is_code = name != "query" and (tensor.dtype in _CODES or tensor.dtype == torch.uint8)
    if query.dtype not in (torch.bfloat16, torch.float16) or (
            tensor.dtype != query.dtype and not is_code):
        raise UsageError(f"'{name}' must be bfloat16 or float16 as 'query', but got {said(tensor)}",
                         "convert it with .to(torch.bfloat16)")


def _check_codes(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                 *more: Maybe) -> None:
    """Keys and values are of one format, with the scales and factors that it has."""
    if key.dtype != value.dtype:
        raise UsageError(f"'value' must be of the dtype of 'key', {str(key.dtype)[6:]}, but got "
                         f"{said(value)}", "keys and values are of one format")
    names = ("key_scales", "value_scales", "key_factors", "value_factors")
    given = {name: x for name, x in zip(names, more) if x is not None}
    for name, tensor in given.items():
        check_tensor(tensor, name)
    for kind in ("scales", "factors"):
        if (f"key_{kind}" in given) != (f"value_{kind}" in given):
            raise UsageError(f"'key_{kind}' and 'value_{kind}' must come together, but got one",
                             "keys and values are of one format")
    if given and key.dtype == query.dtype:
        raise UsageError(f"'{next(iter(given))}' must come with codes, but 'key' is {said(key)}",
                         "elements of the query's dtype are as they are")
    if key.dtype in _PACKED and "key_scales" not in given:
        raise UsageError("'key_scales' must be given for codes of 4 bits, but got none",
                         "pass the scales of the blocks of keys and values")
    for name, codes in (("key_scales", key), ("value_scales", value)):
        if name in given:
            _check_scales(given[name], name, codes, query)
    for name in ("key_factors", "value_factors"):
        if name in given:
            _check_factors(given[name], name, key.shape[2])


def _check_scales(scales: torch.Tensor, name: str, codes: torch.Tensor,
                  query: torch.Tensor) -> None:
    packed = codes.dtype in _PACKED
    allowed = ([torch.float8_e4m3fn] if packed else []) + (
        [torch.float8_e8m0fnu] if query.dtype == torch.bfloat16 else [])
    if scales.dtype in allowed:
        block = _BLOCKS[_SCALES[scales.dtype]]
        shape = (*codes.shape[:3], -(-_elements(codes)[3] // block))
        if tuple(scales.shape) == shape:
            return
        raise UsageError(f"'{name}' must be of shape {list(shape)}, but got {said(scales)}",
                         f"it has a scale for each {block} elements of a head")
    dtypes = " or ".join(str(x)[6:] for x in allowed) or "left out"
    raise UsageError(f"'{name}' must be {dtypes} beside {str(codes.dtype)[6:]} and a "
                     f"{str(query.dtype)[6:]} query, but got {said(scales)}",
                     "NVFP4 has float8_e4m3fn, MXFP4 and MXFP8 float8_e8m0fnu")


def _check_factors(factors: torch.Tensor, name: str, heads: int) -> None:
    if factors.dtype != torch.float32 or tuple(factors.shape) not in ((1,), (heads,)):
        raise UsageError(f"'{name}' must be float32 of shape [1] or [{heads}], but got "
                         f"{said(factors)}", "it has a number for all heads of keys, or for each")
