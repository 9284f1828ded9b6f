"""Attention in one kernel.

    attention(query, key, value, causal?, scale?, window?, sinks?, ...) -> elements
    scaled_dot_product_attention(query, key, value, ...) -> elements, as torch.nn.functional has it

The compiler makes a kernel for each shape, and keeps it for the process. One for packed sequences
is for any number of tokens.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, Literal, overload

import torch

from ..errors import UsageError
from . import attend_backward, functional, programs
from .execution import run
from .operation import Operation
from .programs import Runnable
from .row_results import check_number, check_tensor, said
from .strides import dense

Maybe = torch.Tensor | None

_PACKED = (torch.uint8, torch.float4_e2m1fn_x2)
_CODES = {torch.float8_e4m3fn: "f8E4M3FN", torch.float4_e2m1fn_x2: "f4E2M1FN"}
_SCALES = {torch.float8_e4m3fn: "f8E4M3FN", torch.float8_e8m0fnu: "f8E8M0FNU"}
_ELEMENTS = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float8_e4m3fn: "f8E4M3FN"}
_BLOCKS = {"f8E4M3FN": 16, "f8E8M0FNU": 32}


@dataclasses.dataclass(frozen=True)
class Attention:
    """The facts that decide the program: shapes of [B, S, H, D] in elements, the type of queries,
    and the mask; `pages` of a sequence, or 0 without a cache; the types of codes and of scales, or
    none; the numbers of factors; softcap, window, sinks and slopes; and the results. There are
    `offsets` offsets of packed sequences, whose shapes [None, H, D] have any tokens. With `latent`,
    so many elements of keys are values, too."""

    query: tuple[int | None, ...]
    key: tuple[int | None, ...]
    value: tuple[int | None, ...]
    element: str
    scale: float
    causal: bool
    has_lengths: bool = False
    pages: int = 0
    code: str = ""
    scale_type: str = ""
    factors: tuple[tuple[int, ...], ...] = ()
    softcap: float | None = None
    window: int | None = None
    has_sinks: bool = False
    has_lse: bool = False
    offsets: int = 0
    has_slopes: bool = False
    heads_first: bool = False
    latent: int = 0


@functools.lru_cache(maxsize=256)
def _program(what: Attention, target: str) -> Runnable:
    """(query, key, value?, scales?, factors?, lengths?, pages?, query_offsets?, key_offsets?,
    sinks?, slopes?) -> result, lse?"""
    return programs.compile_text(text_of(what), target)


def text_of(what: Attention) -> str:
    """The program of attention as MLIR text."""
    def tensor(shape: tuple[int | None, ...], element: str) -> str:
        sizes = "x".join("?" if size is None else str(size) for size in shape)
        return f"tensor<{sizes}x{element}>"

    code = what.code or what.element
    batches = what.offsets - 1 if what.offsets else what.query[0]
    query = tensor(what.query, what.element)
    result = tensor((*what.query[:-1], what.latent or what.value[-1]),
                    "bf16" if what.element == "f8E4M3FN" else what.element)
    key, value = tensor(what.key, code), tensor(what.value, code)
    groups: dict[str, list[tuple[str, str]]] = {}
    if what.scale_type:
        block = _BLOCKS[what.scale_type]
        groups["scales"] = [
            (name, tensor((*shape[:-1], -(-(shape[-1] or 0) // block)), what.scale_type))
            for name, shape in (("ks", what.key), ("vs", what.value))]
    if what.factors:
        groups["factors"] = [(name, tensor(shape, "f32"))
                             for name, shape in zip(("fk", "fv"), what.factors)]
    if what.has_lengths:
        groups["lengths"] = [("n", f"tensor<{batches}xi32>")]
    if what.pages:
        groups["pages"] = [("p", f"tensor<{batches}x{what.pages}xi32>")]
    for word, is_there in (("query_offsets", what.offsets),
                           ("key_offsets", what.offsets and not what.pages)):
        if is_there:
            groups[word] = [(word[0] + "o", f"tensor<{what.offsets}xi32>")]
    for word, given in (("sinks", what.has_sinks), ("slopes", what.has_slopes)):
        if given:
            groups[word] = [(word[:2], f"tensor<{what.query[-2]}xf32>")]
    more = "".join(f" {word}({', '.join(f'%{name}' for name, _ in operands)} : "
                   f"{', '.join(kind for _, kind in operands)})"
                   + (" heads_first" if word == "pages" and what.heads_first else "")
                   for word, operands in groups.items())
    arguments = ", ".join((*_elements(what, query, key, *(() if what.latent else (value,))), *(
        f"%{name}: {kind}" for operands in groups.values() for name, kind in operands)))
    names, results, returned = "%o", result, result
    if what.has_lse:
        names, results = "%o, %l", f"{result}, {tensor(what.query[:-1], 'f32')}"
        returned = f"({results})"
    return (f"func.func @attention({arguments}) -> {returned} {{\n"
            f"  {names} = fp4.attention %q, %k, %{'k' if what.latent else 'v'}{more}"
            f" {_scores(what)}\n"
            f"      : {query}, {key}, {value} -> {results}\n"
            f"  return {names} : {results}\n}}\n")


def _elements(what: Attention, *kinds: str) -> list[str]:
    """The arguments of queries, keys and values. Sizes that are dynamic have names, by which tokens
    of keys and values are compared before a kernel runs."""
    names = zip("qkv", ("query", "key", "value"), kinds, (what.query, what.key, what.value), "TKK")
    arguments = []
    for letter, name, kind, shape, size in names:
        dims = ", ".join(f'"{size}"' if x is None else '""' for x in shape)
        named = f', fp4.dims = [{dims}]' if None in shape else ""
        arguments.append(f'%{letter}: {kind} {{fp4.name = "{name}"{named}}}')
    return arguments


def _scores(what: Attention) -> str:
    """The attributes of scores, and those that say which keys queries see."""
    softcap = "" if what.softcap is None else f" softcap {what.softcap:.9e}"
    window = "" if what.window is None else f" window {what.window}"
    latent = f" latent {what.latent}" if what.latent else ""
    return f"scale {what.scale:.9e}{softcap}{' causal' if what.causal else ''}{window}{latent}"


def elements_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape of keys or values in elements: two codes of 4 bits are a byte."""
    packed = tensor.dtype in _PACKED
    return (*tensor.shape[:-1], tensor.shape[-1] * 2) if packed else tuple(tensor.shape)


def _attend(has_lse: bool, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
            lengths: Maybe, pages: Maybe, scale: float, causal: bool, key_scales: Maybe = None,
            value_scales: Maybe = None, key_factors: Maybe = None, value_factors: Maybe = None,
            sinks: Maybe = None, softcap: float | None = None, window: int | None = None,
            cu_seqlens_q: Maybe = None, cu_seqlens_k: Maybe = None, alibi_slopes: Maybe = None,
            heads_first: bool = False, latent: int = 0) -> Any:
    if not query.numel():
        return _attend_fake(has_lse, query, key, value, latent=latent)
    if key.dtype in _PACKED:
        key, value = (x.view(torch.float4_e2m1fn_x2) for x in (key, value))
    axis = 1 if pages is None and cu_seqlens_k is None else 0  # of tokens, or of pages
    if not key.shape[axis] and not value.shape[axis]:  # no kernel has a map of no keys
        key, value = (_one_row(x, axis) for x in (key, value))
        key_scales, value_scales = (None if x is None else _one_row(x, axis)
                                    for x in (key_scales, value_scales))
        if axis and lengths is None:
            lengths = query.new_zeros(query.shape[:1], dtype=torch.int32)
    factors = () if key_factors is None or value_factors is None else (
        tuple(key_factors.shape), tuple(value_factors.shape))
    shapes: list[Any] = [tuple(query.shape), elements_of(key), elements_of(value)]
    for i, offsets in enumerate((cu_seqlens_q, cu_seqlens_k, cu_seqlens_k)):
        shapes[i] = shapes[i] if offsets is None else (None, *shapes[i][1:])
    if cu_seqlens_q is not None and cu_seqlens_k is not None:
        cu_seqlens_q, cu_seqlens_k = (_padded(x) for x in (cu_seqlens_q, cu_seqlens_k))
    what = Attention(shapes[0], shapes[1], shapes[2], _ELEMENTS[query.dtype], scale,
                     causal, lengths is not None, 0 if pages is None else pages.shape[1],
                     _CODES.get(key.dtype, ""),
                     "" if key_scales is None else _SCALES[key_scales.dtype], factors, softcap,
                     window, sinks is not None, has_lse,
                     0 if cu_seqlens_q is None else cu_seqlens_q.numel(), alibi_slopes is not None,
                     heads_first, latent)
    more = (None if x is None else dense(x) for x in
            (key_scales, value_scales, key_factors, value_factors, lengths, pages, cu_seqlens_q,
             cu_seqlens_k, sinks, alibi_slopes))
    values = () if latent else (dense(value),)
    return run(_program, (what,), dense(query), dense(key), *values, *more, target="sm_90a")


def _one_row(empty: torch.Tensor, axis: int) -> torch.Tensor:
    """Zeros in place of a tensor without tokens, of which no query sees one."""
    result = empty.new_empty((*empty.shape[:axis], 1, *empty.shape[axis + 1:]))
    result.view(torch.uint8).zero_()
    return result


def _padded(offsets: torch.Tensor) -> torch.Tensor:
    """Offsets of a power of two of sequences, of which the last ones are empty: programs are for so
    many."""
    missing = (1 << (offsets.numel() - 2).bit_length()) + 1 - offsets.numel()
    return torch.cat([offsets, offsets[-1:].expand(missing)]) if missing else offsets


def _attend_fake(has_lse: bool, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                 *, latent: int = 0) -> Any:
    is_byte = query.dtype == torch.float8_e4m3fn
    result = query.new_empty((*query.shape[:-1], latent or elements_of(value)[-1]),
                             dtype=torch.bfloat16 if is_byte else query.dtype)
    return (result, query.new_empty(query.shape[:-1], dtype=torch.float32)) if has_lse else result


_ARGUMENTS = (
    "(Tensor query, Tensor key, Tensor value, Tensor? lengths, Tensor? pages, float scale,"
    " bool causal, Tensor? key_scales=None, Tensor? value_scales=None, Tensor? key_factors=None,"
    " Tensor? value_factors=None, Tensor? sinks=None, float? softcap=None, int? window=None,"
    " Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None, Tensor? alibi_slopes=None,"
    " bool heads_first=False, int latent=0)")
_LATENT = 18  # the place of this argument, which the dispatcher may leave out


def _operation(name: str, has_lse: bool, results: str) -> Operation:
    def implementation(*arguments: Any) -> Any:
        return _attend(has_lse, *arguments)

    def fake(*arguments: Any) -> Any:
        latent = arguments[_LATENT] if len(arguments) > _LATENT else 0
        return _attend_fake(has_lse, *arguments[:3], latent=latent)

    return Operation(f"{name}{_ARGUMENTS} -> {results}", implementation, fake)


_operations = (_operation("attention", False, "Tensor"),
               _operation("attention_lse", True, "(Tensor, Tensor)"))
attend_backward.register(*_operations)


@overload
def attention(query: torch.Tensor, key: torch.Tensor, value: Maybe, *, causal: bool = False,
              scale: float | None = None, softcap: float | None = None, window: int | None = None,
              sinks: torch.Tensor | None = None, lengths: torch.Tensor | None = None,
              pages: torch.Tensor | None = None, key_scales: torch.Tensor | None = None,
              value_scales: torch.Tensor | None = None, key_factors: torch.Tensor | None = None,
              value_factors: torch.Tensor | None = None,
              cu_seqlens_q: torch.Tensor | None = None, cu_seqlens_k: torch.Tensor | None = None,
              alibi_slopes: torch.Tensor | None = None, kv_layout: str = "NHD", latent: int = 0,
              return_lse: Literal[False] = False) -> torch.Tensor: ...


@overload
def attention(query: torch.Tensor, key: torch.Tensor, value: Maybe, *, causal: bool = False,
              scale: float | None = None, softcap: float | None = None, window: int | None = None,
              sinks: torch.Tensor | None = None, lengths: torch.Tensor | None = None,
              pages: torch.Tensor | None = None, key_scales: torch.Tensor | None = None,
              value_scales: torch.Tensor | None = None, key_factors: torch.Tensor | None = None,
              value_factors: torch.Tensor | None = None,
              cu_seqlens_q: torch.Tensor | None = None, cu_seqlens_k: torch.Tensor | None = None,
              alibi_slopes: torch.Tensor | None = None, kv_layout: str = "NHD", latent: int = 0,
              return_lse: Literal[True]) -> tuple[torch.Tensor, torch.Tensor]: ...


def attention(query: torch.Tensor, key: torch.Tensor, value: Maybe, *, causal: bool = False,
              scale: float | None = None, softcap: float | None = None, window: int | None = None,
              sinks: torch.Tensor | None = None, lengths: torch.Tensor | None = None,
              pages: torch.Tensor | None = None, key_scales: torch.Tensor | None = None,
              value_scales: torch.Tensor | None = None, key_factors: torch.Tensor | None = None,
              value_factors: torch.Tensor | None = None,
              cu_seqlens_q: torch.Tensor | None = None, cu_seqlens_k: torch.Tensor | None = None,
              alibi_slopes: torch.Tensor | None = None, kv_layout: str = "NHD", latent: int = 0,
              return_lse: bool = False) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """softmax(scale * query @ key^T) @ value of each head, [B, Sq, Hq, E].

    A kernel is compiled for each shape. CUDA graphs follow lengths, pages and offsets. Gradients
    flow with masks and sinks alone.

    Args:
        query: bfloat16 or float16 [B, Sq, Hq, D], D and E 64, 128, 192 or 256, with wgmma
            multiples of 32. Or float8_e4m3fn beside such keys and values, with a bfloat16 result;
            its own decode scale is a part of key_factors.
        key, value: [B, Sk, Hk, D] and [B, Sk, Hk, E] in its dtype; Hq is a multiple of Hk. Or
            codes: float8_e4m3fn, or float4_e2m1fn_x2 or uint8 [..., D/2] with the even element in
            the low nibble.
        latent: with value=None, the first elements of keys that are values: 512 of 576 in MLA.
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
        cu_seqlens_q, cu_seqlens_k: int32 [B + 1], offsets of packed sequences: query is [T, Hq, D],
            key and value are [Tk, Hk, D] and [Tk, Hk, E], and sequence b has rows
            `cu_seqlens_q[b]` up to `cu_seqlens_q[b + 1]`, likewise of keys. Rows behind the last
            one give zeros. A program is for any T and Tk, and for the next power of two of B. With
            `pages` of all B, cu_seqlens_q comes alone.
        alibi_slopes: float32 [Hq]; scores lose slope * |i + Sk - Sq - j|, behind a softcap.
        kv_layout: "NHD", or "HND" for pages [N, Hk, T, D], as FlashInfer names them.
        key_scales, value_scales: of blocks of codes of a head: float8_e4m3fn for 16 of 4 bits
            (NVFP4), float8_e8m0fnu for 32 (MXFP4, MXFP8) with a bfloat16 query.
        key_factors, value_factors: float32 [1] or [Hk], decode scales of all codes, or of those of
            a head. Beside a float8_e4m3fn query they are positive, and may be [B, Hk].
        return_lse: also return the logarithms of denominators, float32 [B, Sq, Hq]: minus infinity
            without a key or sink.

    Raises:
        UsageError: an argument that does not fit. CompileError: a GPU or a shape without a kernel.
    """
    _check_together(cu_seqlens_q, cu_seqlens_k, pages)
    value = _values_of(key, value, latent)
    for name, tensor, offsets in (("query", query, "cu_seqlens_q"), ("key", key, "cu_seqlens_k"),
                                  ("value", value, "cu_seqlens_k")):
        check_tensor(tensor, name)
        packed = cu_seqlens_q if name == "query" else cu_seqlens_k
        _check_heads(tensor, name, query, "" if packed is None else offsets)
    heads_first = _check_layout(kv_layout, pages)
    heads = key.shape[1 if heads_first else -2]
    sequences = _count_sequences(cu_seqlens_q, cu_seqlens_k, query, key, lengths, pages)
    _check_codes(query, key, value, heads, sequences, key_scales, value_scales, key_factors,
                 value_factors)
    _check_scores(query, causal, softcap, window)
    _check_of_heads(sinks, "sinks", "logit", query)
    _check_of_heads(alibi_slopes, "alibi_slopes", "slope", query)
    _check_numbers(lengths, "lengths", (sequences,))
    _check_numbers(pages, "pages", (sequences, -1))
    if pages is not None and lengths is None:
        raise UsageError("'pages' must come with 'lengths', but got none",
                         "a sequence ends in the middle of a page")
    given = {"lengths": lengths, "pages": pages, "key_scales": key_scales,
             "value_scales": value_scales, "key_factors": key_factors,
             "value_factors": value_factors, "sinks": sinks, "cu_seqlens_q": cu_seqlens_q,
             "cu_seqlens_k": cu_seqlens_k, "alibi_slopes": alibi_slopes}
    functional._check_devices(query=query, key=key, value=value,
                              **{name: x for name, x in given.items() if x is not None})
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    check_number(scale, "scale")
    has_lse = return_lse or attend_backward.wants_gradient(query, key, value)
    operation = torch.ops.fp4.attention_lse if has_lse else torch.ops.fp4.attention
    results: torch.Tensor | tuple[torch.Tensor, torch.Tensor] = operation(
        query, key, value, lengths, pages, float(scale), bool(causal), key_scales, value_scales,
        key_factors, value_factors, sinks, None if softcap is None else float(softcap), window,
        cu_seqlens_q, cu_seqlens_k, alibi_slopes, heads_first, latent)
    return results[0] if has_lse and not return_lse else results


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                                 attn_mask: None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> torch.Tensor:
    """torch.nn.functional.scaled_dot_product_attention, where `attention` computes the same.

    Args:
        query, key, value: bfloat16 or float16 [B, Hq, Sq, D], [B, Hk, Sk, D] and [B, Hk, Sk, E].
            Tensors that are no transposed views of [B, S, H, D] are copied.
        is_causal: query i sees keys up to i, as torch aligns the mask with the first key. Queries
            behind the last key are computed by a call of their own.
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
        if tensor.dim() != 4:
            raise UsageError(f"'{name}' must be batches x heads x tokens x elements, but got the "
                             f"shape {list(tensor.shape)}",
                             "pass x.unsqueeze(0) of heads x tokens x elements")
        _check_heads(tensor, name, query)
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise UsageError(f"'key' must have the {query.shape[1]} heads of 'query', but has "
                         f"{key.shape[1]}", "pass enable_gqa=True where heads share keys")
    tokens, keys = query.shape[2], key.shape[2]
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    if not is_causal or tokens <= keys:  # no query sees the keys behind it
        key, value = (x[:, :tokens] if is_causal else x for x in (key, value))
        return attention(query, key, value, causal=is_causal, scale=scale).transpose(1, 2)
    parts = (attention(query[:, :keys], key, value, causal=True, scale=scale),
             attention(query[:, keys:], key, value, scale=scale))
    return torch.cat(parts, dim=1).transpose(1, 2)


def _values_of(key: torch.Tensor, value: Maybe, latent: int) -> torch.Tensor:
    """Values, which are keys with `latent`."""
    if value is not None and not latent:
        return value
    check_tensor(key, "key")
    if value is None and isinstance(latent, int) and 0 < latent <= key.shape[-1]:
        return key
    raise UsageError(f"'latent' must be from 1 to the {key.shape[-1]} elements of 'key' with "
                     f"value=None, and else left out, but got {latent!r}",
                     "values are the first elements of keys, such as 512 of 576")


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


def _check_layout(kv_layout: str, pages: Maybe) -> bool:
    """Returns True where pages have heads in front of tokens."""
    if kv_layout not in ("NHD", "HND"):
        raise UsageError(f"'kv_layout' must be 'NHD' or 'HND', but got {kv_layout!r}",
                         "pages have tokens in front of heads, or heads in front of tokens")
    if kv_layout == "HND" and pages is None:
        raise UsageError("'kv_layout' HND must come with 'pages', but got none",
                         "pass key.transpose(1, 2)")
    return kv_layout == "HND"


def _check_together(of_queries: Maybe, of_keys: Maybe, pages: Maybe) -> None:
    if (of_keys is not None and of_queries is None) or (
            of_queries is not None and of_keys is None and pages is None):
        raise UsageError("'cu_seqlens_q' and 'cu_seqlens_k' must come together, but got one",
                         "they may be the same tensor; keys with 'pages' have no offsets")


def _count_sequences(of_queries: Maybe, of_keys: Maybe, query: torch.Tensor, key: torch.Tensor,
                     lengths: Maybe, pages: Maybe) -> int:
    """The number of sequences, whose offsets are checked where they are packed."""
    if of_queries is None:
        return query.shape[0]
    if of_keys is not None and (lengths is not None or pages is not None):
        raise UsageError("'lengths' and 'pages' must be left out beside 'cu_seqlens_k'",
                         "offsets say how many keys each sequence has")
    if key.dtype != query.dtype:
        raise UsageError(f"'key' must be {str(query.dtype)[6:]} beside 'cu_seqlens_q', but got "
                         f"{said(key)}", "queries of equal numbers may see codes: [B, S, H, D]")
    check_tensor(of_queries, "cu_seqlens_q")
    if of_queries.dim() != 1 or of_queries.numel() < 2:
        raise UsageError("'cu_seqlens_q' must have an offset for each sequence and one more, but "
                         f"got {said(of_queries)}", "a sequence begins where the one before ends")
    for name, tensor in (("cu_seqlens_q", of_queries), ("cu_seqlens_k", of_keys)):
        _check_numbers(tensor, name, (of_queries.numel(),))
    return of_queries.numel() - 1


def _check_scores(query: torch.Tensor, causal: bool, softcap: float | None,
                  window: int | None) -> None:
    if softcap is not None:
        check_number(softcap, "softcap")
    if window is not None and (not isinstance(window, int) or window < 1):
        raise UsageError(f"'window' must be a positive number of keys, but got {window!r}",
                         "leave it out, and a query sees all keys up to its own")
    if window is not None and not causal:
        raise UsageError("'window' must come with causal=True, but got False",
                         "a window ends with the key of its query")


def _check_of_heads(numbers: Maybe, name: str, what: str, query: torch.Tensor) -> None:
    if numbers is None:
        return
    check_tensor(numbers, name)
    heads = query.shape[-2]
    if numbers.dtype != torch.float32 or tuple(numbers.shape) != (heads,):
        raise UsageError(f"'{name}' must be float32 of shape [{heads}], but got {said(numbers)}",
                         f"write {name}.float(), a {what} for each head of queries")


def _check_heads(tensor: torch.Tensor, name: str, query: torch.Tensor,
                 offsets: str = "") -> None:
    if offsets and tensor.dim() != 3:
        raise UsageError(f"'{name}' must be tokens x heads x elements beside '{offsets}', but got "
                         f"the shape {list(tensor.shape)}", "pass x.flatten(0, 1)")
    if not offsets and tensor.dim() != 4:
        raise UsageError(f"'{name}' must be batches x tokens x heads x elements, but got the shape "
                         f"{list(tensor.shape)}", "pass x.view(batches, tokens, heads, -1)")
    is_code = name != "query" and (tensor.dtype in _CODES or tensor.dtype == torch.uint8) and (
        query.dtype != torch.float8_e4m3fn)
    if query.dtype not in _ELEMENTS or (tensor.dtype != query.dtype and not is_code):
        like = "" if name == "query" else ", as 'query'"
        raise UsageError(f"'{name}' must be bfloat16, float16 or float8_e4m3fn{like}, but got "
                         f"{said(tensor)}", "convert it with .to(torch.bfloat16)")


def _check_codes(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, heads: int,
                 sequences: int, *more: Maybe) -> None:
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
    is_byte = query.dtype == torch.float8_e4m3fn
    if given and key.dtype == query.dtype and not is_byte:
        raise UsageError(f"'{next(iter(given))}' must come with codes, but 'key' is {said(key)}",
                         "elements of the query's dtype are as they are")
    if key.dtype in _PACKED and "key_scales" not in given:
        raise UsageError("'key_scales' must be given for codes of 4 bits, but got none",
                         "pass the scales of the blocks of keys and values")
    for name, codes in (("key_scales", key), ("value_scales", value)):
        if name in given:
            _check_scales(given[name], name, codes, query)
    shapes = [(1,), (heads,), *([(sequences, heads)] if is_byte else [])]
    for name in ("key_factors", "value_factors"):
        if name in given:
            _check_factors(given[name], name, shapes)


def _check_scales(scales: torch.Tensor, name: str, codes: torch.Tensor,
                  query: torch.Tensor) -> None:
    packed = codes.dtype in _PACKED
    allowed = ([torch.float8_e4m3fn] if packed else []) + (
        [torch.float8_e8m0fnu] if query.dtype == torch.bfloat16 else [])
    if scales.dtype in allowed:
        block = _BLOCKS[_SCALES[scales.dtype]]
        shape = (*codes.shape[:3], -(-elements_of(codes)[3] // block))
        if tuple(scales.shape) == shape:
            return
        raise UsageError(f"'{name}' must be of shape {list(shape)}, but got {said(scales)}",
                         f"it has a scale for each {block} elements of a head")
    dtypes = " or ".join(str(x)[6:] for x in allowed) or "left out"
    raise UsageError(f"'{name}' must be {dtypes} beside {str(codes.dtype)[6:]} and a "
                     f"{str(query.dtype)[6:]} query, but got {said(scales)}",
                     "NVFP4 has float8_e4m3fn, MXFP4 and MXFP8 float8_e8m0fnu")


def _check_factors(factors: torch.Tensor, name: str, shapes: list[tuple[int, ...]]) -> None:
    if factors.dtype != torch.float32 or tuple(factors.shape) not in shapes:
        words = " or ".join(dict.fromkeys(str(list(x)) for x in shapes))
        raise UsageError(f"'{name}' must be float32 of shape {words}, but got {said(factors)}",
                         "it has a number for all heads of keys, or for each")
