"""Attention in one kernel.

    attention(query, key, value, causal?, scale?, window?, sinks?, ...) -> elements

The compiler makes a kernel for each shape, and keeps it for the process. One for packed sequences
is for any number of tokens.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal, overload

import torch

from ..errors import UsageError
from ..tensors import check_dense
from . import attend_backward, attend_blocks, attend_numbers, checking, functional, recipes
from .attend_programs import (
    BLOCKS,
    CODES,
    ELEMENTS,
    PACKED,
    SCALES,
    Attention,
    element_of,
    elements_of,
    padded,
    program,
)
from .execution import run, run_into
from .operation import Operation
from .planned import planned
from .row_results import check_tensor, said
from .scaled import Scaled
from .strides import dense, matrix_of_tokens, placed_tokens

Maybe = torch.Tensor | None

#: A program's facts, its tensors, and where it runs without a device.
_Call = tuple[Attention, list[Maybe], str]


def _call(has_lse: bool, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
          lengths: Maybe, pages: Maybe, scale: float, causal: bool, key_scales: Maybe = None,
          value_scales: Maybe = None, key_factors: Maybe = None, value_factors: Maybe = None,
          sinks: Maybe = None, softcap: float | None = None, window: int | None = None,
          cu_seqlens_q: Maybe = None, cu_seqlens_k: Maybe = None, alibi_slopes: Maybe = None,
          heads_first: bool = False, latent: int = 0, query_scales: Maybe = None,
          out_factor: Maybe = None, out_amax: Maybe = None, out_format: str = "") -> _Call:
    query, key, value = (x.view(torch.float4_e2m1fn_x2) if x.dtype in PACKED else x
                         for x in (query, key, value))
    if checking.is_checked():
        attend_numbers.check_ranges(key, lengths, pages, heads_first)
        attend_numbers.check_factors(query, key_factors=key_factors, value_factors=value_factors)
    axis = 1 if pages is None and cu_seqlens_k is None else 0  # of tokens, or of pages
    if not key.shape[axis] and not value.shape[axis]:  # no kernel has a map of no keys
        key, value = (_one_row(x, axis) for x in (key, value))
        key_scales, value_scales = (None if x is None else _one_row(x, axis)
                                    for x in (key_scales, value_scales))
        if axis and lengths is None:
            lengths = query.new_zeros(query.shape[:1], dtype=torch.int32)
    factors = () if key_factors is None or value_factors is None else (
        tuple(key_factors.shape), tuple(value_factors.shape))
    shapes: list[Any] = [elements_of(x) for x in (query, key, value)]
    for i, offsets in enumerate((cu_seqlens_q, cu_seqlens_k, cu_seqlens_k)):
        shapes[i] = shapes[i] if offsets is None else (None, *shapes[i][1:])
    if cu_seqlens_q is not None and cu_seqlens_k is not None:
        cu_seqlens_q, cu_seqlens_k = (padded(x) for x in (cu_seqlens_q, cu_seqlens_k))
    of_blocks = query_scales is not None
    words = (("heads_first", heads_first), ("value_rows", of_blocks and value_scales is not None))
    of_heads = [name for name, x in (("sinks", sinks), ("slopes", alibi_slopes)) if x is not None]
    what = Attention(
        shapes[0], shapes[1], shapes[2], element_of(query), scale, causal, lengths is not None,
        0 if pages is None else pages.shape[1], CODES.get(key.dtype, ""),
        "" if key_scales is None else SCALES[key_scales.dtype], factors, softcap, window,
        tuple(of_heads), has_lse, 0 if cu_seqlens_q is None else cu_seqlens_q.numel(),
        " ".join(word for word, is_there in words if is_there), latent,
        out_format or ("" if out_factor is None else "f8E4M3FN"),
        element_of(value) if of_blocks else "")
    target = "sm_90a"
    if query_scales is not None and key_scales is not None:
        target = "sm_100a"
        query_scales, key_scales = (attend_blocks.tiled(x) for x in (query_scales, key_scales))
        value_scales = None if value_scales is None else attend_blocks.tiled(value_scales, heads=1)
    more = (None if x is None else dense(x) for x in
            (query_scales, key_scales, value_scales, key_factors, value_factors, lengths, pages,
             cu_seqlens_q, cu_seqlens_k, sinks, alibi_slopes, out_factor, out_amax))
    operands, order = [], what.order.split()
    for letter, x in zip("qk" if latent else "qkv", (query, key, value)):
        has_rows = not of_blocks and (letter == "q" or not heads_first)
        x, is_strided = placed_tokens(x) if has_rows else (dense(x), False)
        operands.append(x)
        order += [letter] if is_strided else []
    return dataclasses.replace(what, order=" ".join(order)), [*operands, *more], target


def _attend(has_lse: bool, query: torch.Tensor, *arguments: Any) -> Any:
    if not query.numel():
        given = {name: arguments[place - 1] for name, place in _PLACES.items()
                 if len(arguments) >= place}
        return _attend_fake(has_lse, query, *arguments[:2], **given)
    what, tensors, target = _call(has_lse, query, *arguments)
    return run(program, (what,), *tensors, target=target)


def _attend_into(out: torch.Tensor, lse: Maybe, query: torch.Tensor, *arguments: Any) -> None:
    if not query.numel():
        return
    what, tensors, target = _call(lse is not None, query, *arguments)
    matrix = matrix_of_tokens(out)
    assert matrix is not None
    what = dataclasses.replace(what, order=f"{what.order} placed".strip())
    run_into(program, (what,), (matrix,) if lse is None else (matrix, lse), *tensors,
             target=target)


def _one_row(empty: torch.Tensor, axis: int) -> torch.Tensor:
    """Zeros in place of a tensor without tokens, of which no query sees one."""
    result = empty.new_empty((*empty.shape[:axis], 1, *empty.shape[axis + 1:]))
    result.view(torch.uint8).zero_()
    return result


def _attend_fake(has_lse: bool, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                 latent: int = 0, value_scales: Maybe = None, query_scales: Maybe = None,
                 out_factor: Maybe = None, out_format: str = "") -> Any:
    size = latent or elements_of(value)[-1]
    if query_scales is not None and value_scales is not None:
        size = value.shape[2]
    if out_format:
        rows, columns = math.prod(query.shape[:-2]), query.shape[-2] * size
        is_nvfp4, is_linear = out_format.startswith("nvfp4"), out_format.endswith(" linear")
        blocks = columns // (16 if is_nvfp4 else 32)
        scale = torch.float8_e4m3fn if is_nvfp4 else torch.float8_e8m0fnu
        shape = (rows, blocks) if is_linear else (-(-rows // 128), -(-blocks // 4), 512)
        return (query.new_empty((rows, columns // 2), dtype=torch.float4_e2m1fn_x2),
                query.new_empty(shape, dtype=scale))
    dtype = torch.float16 if query.dtype == torch.float16 else torch.bfloat16
    if out_factor is not None:
        dtype = torch.float8_e4m3fn
    result = query.new_empty((*query.shape[:-1], size), dtype=dtype)
    return (result, query.new_empty(query.shape[:-1], dtype=torch.float32)) if has_lse else result


_ARGUMENTS = (
    "(Tensor query, Tensor key, Tensor value, Tensor? lengths, Tensor? pages, float scale,"
    " bool causal, Tensor? key_scales=None, Tensor? value_scales=None, Tensor? key_factors=None,"
    " Tensor? value_factors=None, Tensor? sinks=None, float? softcap=None, int? window=None,"
    " Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None, Tensor? alibi_slopes=None,"
    " bool heads_first=False, int latent=0, Tensor? query_scales=None, Tensor? out_factor=None,"
    " Tensor? out_amax=None, str out_format='')")
#: The places of arguments that the shapes of results depend on, which may be left out.
_PLACES = {"value_scales": 8, "latent": 18, "query_scales": 19, "out_factor": 20, "out_format": 22}


def _operation(name: str, has_lse: bool, results: str) -> Operation:
    def implementation(*arguments: Any) -> Any:
        return _attend(has_lse, *arguments)

    def fake(*arguments: Any) -> Any:
        given = {name: arguments[place] for name, place in _PLACES.items()
                 if len(arguments) > place}
        return _attend_fake(has_lse, *arguments[:3], **given)

    return Operation(f"{name}{_ARGUMENTS} -> {results}", implementation, fake)


_operations = (_operation("attention", False, "Tensor"),
               _operation("attention_lse", True, "(Tensor, Tensor)"))
attend_backward.register(*_operations)
_into_operation = Operation("attention_into(Tensor(a!) out, Tensor(b!)? lse, "
                            f"{_ARGUMENTS[1:]} -> ()", _attend_into, lambda *_: None)
_scaled_operation = _operation("attention_scaled", False, "(Tensor, Tensor)")


@overload
def attention(query: torch.Tensor, key: torch.Tensor, value: Maybe, *, causal: bool = False,
              scale: float | None = None, softcap: float | None = None, window: int | None = None,
              sinks: Maybe = None, lengths: Maybe = None, pages: Maybe = None,
              key_scales: Maybe = None, value_scales: Maybe = None, key_factors: Maybe = None,
              value_factors: Maybe = None, cu_seqlens_q: Maybe = None, cu_seqlens_k: Maybe = None,
              alibi_slopes: Maybe = None, kv_layout: str = "NHD", latent: int = 0,
              query_scales: Maybe = None, out_factor: Maybe = None, out: Maybe = None,
              checked: bool = False, return_lse: Literal[False] = False) -> torch.Tensor: ...


@overload
def attention(query: torch.Tensor, key: torch.Tensor, value: Maybe, *, causal: bool = False,
              scale: float | None = None, softcap: float | None = None, window: int | None = None,
              sinks: Maybe = None, lengths: Maybe = None, pages: Maybe = None,
              key_scales: Maybe = None, value_scales: Maybe = None, key_factors: Maybe = None,
              value_factors: Maybe = None, cu_seqlens_q: Maybe = None, cu_seqlens_k: Maybe = None,
              alibi_slopes: Maybe = None, kv_layout: str = "NHD", latent: int = 0,
              query_scales: Maybe = None, out_factor: Maybe = None, out: Maybe = None,
              checked: bool = False,
              return_lse: Literal[True]) -> tuple[torch.Tensor, torch.Tensor]: ...


def attention(query: torch.Tensor, key: torch.Tensor, value: Maybe, *, causal: bool = False,
              scale: float | None = None, softcap: float | None = None, window: int | None = None,
              sinks: Maybe = None, lengths: Maybe = None, pages: Maybe = None,
              key_scales: Maybe = None, value_scales: Maybe = None, key_factors: Maybe = None,
              value_factors: Maybe = None, cu_seqlens_q: Maybe = None, cu_seqlens_k: Maybe = None,
              alibi_slopes: Maybe = None, kv_layout: str = "NHD", latent: int = 0,
              query_scales: Maybe = None, out_factor: Maybe = None, out: Maybe = None,
              checked: bool = False,
              return_lse: bool = False) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """softmax(scale * query @ key^T) @ value of each head, [B, Sq, Hq, E].

    CUDA graphs follow lengths, pages and offsets. Gradients
    flow with masks, sinks and offsets.

    Args:
        query: bfloat16 or float16 [B, Sq, Hq, D], D and E 64, 128, 192 or 256, with wgmma
            multiples of 32. Or float8_e4m3fn beside such keys and values, with a bfloat16 result;
            its own decode scale is a part of key_factors.
        key, value: [B, Sk, Hk, D] and [B, Sk, Hk, E] in its dtype; Hq, and B of query, may be
            multiples of theirs. Or codes: float8_e4m3fn, or float4_e2m1fn_x2 or uint8 [..., D/2].
        latent: with value=None, the first elements of keys that are values (MLA).
        causal: query i sees keys up to i + Sk - Sq; one that sees none gives zeros.
        scale: a positive number; 1 / sqrt(D) unless given.
        softcap: scores are softcap * tanh(score / softcap).
        window: with causal, the last keys that a query sees, its own included.
        sinks: float32 [Hq], logits that join the denominators.
        lengths: int32 [B], keys of each sequence in place of Sk. Values behind them are finite.
        pages: int32 [B, P], with lengths: key and value are a cache [N, T, Hk, D] and
            [N, T, Hk, E], T a multiple of 8, or 16 for codes.
        cu_seqlens_q, cu_seqlens_k: int32 [B + 1], begins and last end of packed sequences: query
            is [T, Hq, D], key and value are [Tk, Hk, D] and [Tk, Hk, E]. Rows behind the last one
            give zeros. Beside `pages`, cu_seqlens_q comes alone.
        alibi_slopes: float32 [Hq]; scores lose slope * |i + Sk - Sq - j|, behind a softcap.
        kv_layout: "NHD", or "HND" for pages [N, Hk, T, D].
        key_scales, value_scales: of blocks of codes, float8_e4m3fn (NVFP4), or with a bfloat16
            query float8_e8m0fnu (MXFP4, MXFP8).
        key_factors, value_factors: float32 [1] or [Hk], decode scales of codes. Beside a
            float8_e4m3fn query they are positive, and may be [B, Hk].
        query_scales: of blocks of queries, [B, Sq, Hq, D/32] (MXFP8; NVFP4: D/16), and key_scales
            likewise. Values are float8_e4m3fn, or with value_scales codes [B, Hk, E, Sk] of the
            format of queries.
        out_factor: float32 scalar; results are float8_e4m3fn, multiplied by it.
        out: takes the result, without a gradient. Rows of tokens may have gaps.
        checked: first refuse lengths and pages that do not exist, as checked() does.
        return_lse: also return the logarithms of denominators, float32 [B, Sq, Hq]: minus infinity
            without a key or sink.

    Raises:
        UsageError: an argument that does not fit. CompileError: a GPU or a shape without a kernel.
    """
    arguments = _arguments_of(
        query, key, value, causal=causal, scale=scale, softcap=softcap, window=window, sinks=sinks,
        lengths=lengths, pages=pages, key_scales=key_scales, value_scales=value_scales,
        key_factors=key_factors, value_factors=value_factors, cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_k=cu_seqlens_k, alibi_slopes=alibi_slopes, kv_layout=kv_layout, latent=latent,
        query_scales=query_scales, out_factor=out_factor, checked=checked)
    if out is not None:
        return _attended_into(out, return_lse, arguments)
    has_lse = return_lse or attend_backward.wants_gradient(*arguments[:3])
    operation = torch.ops.fp4.attention_lse if has_lse else torch.ops.fp4.attention
    results: torch.Tensor | tuple[torch.Tensor, torch.Tensor] = operation(*arguments)
    return results[0] if has_lse and not return_lse else results


def _attended_into(out: torch.Tensor, return_lse: bool, arguments: list[Any],
                   ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    query, key, value = arguments[:3]
    if torch.is_grad_enabled() and attend_backward.wants_gradient(query, key, value):
        raise UsageError("'out' must be left out where gradients flow", "write out.copy_(result)")
    lse = query.new_empty(query.shape[:-1], dtype=torch.float32) if return_lse else None
    _attend_given(out, lse, *(x.detach() if isinstance(x, torch.Tensor) and x.requires_grad else x
                              for x in arguments))
    return out if lse is None else (out, lse)


@planned
def _attend_given(out: torch.Tensor, lse: Maybe, *arguments: Any) -> None:
    query, key, value = (tensor.to("meta") for tensor in arguments[:3])
    wanted = _attend_fake(False, query, key, value, arguments[18], arguments[8], *arguments[19:21])
    check_tensor(out, "out")
    if out.shape != wanted.shape or out.dtype != wanted.dtype:
        raise UsageError(f"'out' must be {said(wanted)}, but got {said(out)}",
                         "the result has the tokens and heads of 'query'")
    functional._check_devices(query=arguments[0], out=out)
    if matrix_of_tokens(out) is None:
        raise UsageError("'out' must have tokens at one distance, a multiple of 16 bytes, and "
                         f"adjacent heads, but has strides {list(out.stride())}",
                         "leave it out, and copy the result")
    torch.ops.fp4.attention_into(out, lse, *arguments)


def attention_scaled(query: torch.Tensor, key: torch.Tensor, value: Maybe, *, format: str = "nvfp4",
                     layout: str = "tiled_128x4", amax: Maybe = None, **options: Any) -> Scaled:
    """The result of `attention` as the operand of the next matmul, [B * Sq, Hq * E].

    Args:
        format, layout: as of `quantize`; fewer than 128 tokens have "linear" scales.
        amax: of `quantize`, with "nvfp4".
        options: those of `attention`.

    Raises:
        UsageError: an argument that does not fit. CompileError: a kernel that does not quantize.
    """
    recipes.check_format(format)
    recipes.check_layout(layout)
    for name in ("return_lse", "out_factor", "out"):
        if options.get(name) is not None and options[name] is not False:
            raise UsageError(f"'{name}' must be left out, but got {options[name]!r}",
                             "the result is codes and scales alone")
    if (amax is not None) != (format == "nvfp4"):
        raise UsageError(f"'amax' must be {'given' if amax is None else 'left out'} with format "
                         f"{format!r}", "NVFP4 has a scale of the tensor, and MXFP4 none")
    if amax is not None:
        check_tensor(amax, "amax")
        _check_scalar(amax, "amax")
    arguments = _arguments_of(query, key, value, **options)
    data, scales = torch.ops.fp4.attention_scaled(*arguments, amax, f"{format} {layout}")
    shape = (data.shape[0], 2 * data.shape[1])
    return Scaled(data, scales, amax, shape, format, layout, recipes.DEFAULT_RECIPES[format])


def _arguments_of(query: torch.Tensor, key: torch.Tensor, value: Maybe, *, causal: bool = False,
                  scale: float | None = None, softcap: float | None = None,
                  window: int | None = None, latent: int = 0, kv_layout: str = "NHD",
                  checked: bool = False, **tensors: Maybe) -> list[Any]:
    """The arguments of the operation, which are checked."""
    given = {name: tensors.get(name) for name in _TENSORS}
    if wrong := tensors.keys() - given.keys():
        raise TypeError(f"attention() got an unexpected keyword argument {min(wrong)!r}")
    lengths, pages, of_queries, of_keys = (
        given[name] for name in ("lengths", "pages", "cu_seqlens_q", "cu_seqlens_k"))
    _check_together(of_queries, of_keys, pages)
    value = _values_of(key, value, latent)
    _check_operands(query, key, value, given, latent)
    heads_first = _check_layout(kv_layout, pages)
    if given["query_scales"] is None:
        attend_numbers.check_sizes(query, key, value, heads_first, latent)
    sequences = _count_sequences(of_queries, of_keys, query, key, lengths, pages)
    if given["query_scales"] is None:
        _check_codes(query, key, value, key.shape[1 if heads_first else -2], sequences,
                     *(given[name] for name in _TENSORS[2:6]))
    _check_scores(query, causal, softcap, window)
    _check_of_heads(given["sinks"], "sinks", "logit", query)
    _check_of_heads(given["alibi_slopes"], "alibi_slopes", "slope", query)
    _check_numbers(lengths, "lengths", (sequences,))
    _check_numbers(pages, "pages", (sequences, -1))
    if pages is not None and lengths is None:
        raise UsageError("'pages' must come with 'lengths', but got none",
                         "a sequence ends in the middle of a page")
    if given["out_factor"] is not None:
        _check_scalar(given["out_factor"], "out_factor")
    functional._check_devices(query=query, key=key, value=value,
                              **{name: x for name, x in given.items() if x is not None})
    if checked:
        attend_numbers.check_ranges(key, lengths, pages, heads_first)
    if scale is None:
        scale = 1 / math.sqrt(elements_of(query)[-1])
    attend_numbers.check_positive(scale, "scale", "1 / sqrt(D) is usual")
    return [query, key, value, lengths, pages, float(scale), bool(causal),
            *(given[name] for name in _TENSORS[2:7]), None if softcap is None else float(softcap),
            window, of_queries, of_keys, given["alibi_slopes"], heads_first, latent,
            given["query_scales"], given["out_factor"]]


#: The largest number that operations of torch take.
_MOST_WINDOW = 2**63 - 1
_TENSORS = ("lengths", "pages", "key_scales", "value_scales", "key_factors", "value_factors",
            "sinks", "cu_seqlens_q", "cu_seqlens_k", "alibi_slopes", "query_scales", "out_factor")


def _check_operands(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                    given: dict[str, Maybe], latent: int) -> None:
    names = (("query", query, "cu_seqlens_q"), ("key", key, "cu_seqlens_k"),
             ("value", value, "cu_seqlens_k"))
    for name, tensor, offsets in names:
        check_tensor(tensor, name)
        check_dense(tensor, f"'{name}'")
        if given["query_scales"] is None:
            _check_heads(tensor, name, query, "" if given[offsets] is None else offsets)
    if (of_queries := given["query_scales"]) is not None:
        others = {name: given[name] for name in ("pages", "cu_seqlens_q", "cu_seqlens_k")}
        attend_blocks.check(query, key, value, of_queries, given["key_scales"],
                            given["value_scales"], {**others, "latent": latent})


def _check_scalar(number: torch.Tensor, name: str) -> None:
    if number.dtype != torch.float32 or number.dim():
        raise UsageError(f"'{name}' must be a float32 scalar, but got {said(number)}",
                         "write torch.tensor(x), one number for all elements")


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
        attend_numbers.check_positive(softcap, "softcap", "leave it out, and scores have no limit")
    if window is not None and (not isinstance(window, int) or not 1 <= window <= _MOST_WINDOW):
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
    if not tensor.shape[-1]:
        raise UsageError(f"'{name}' must have elements in a head, but got the shape "
                         f"{list(tensor.shape)}", "heads of 64, 128, 192 and 256 are usual")
    is_code = name != "query" and (tensor.dtype in CODES or tensor.dtype == torch.uint8) and (
        query.dtype != torch.float8_e4m3fn)
    if query.dtype not in ELEMENTS or (tensor.dtype != query.dtype and not is_code):
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
    if key.dtype in PACKED and "key_scales" not in given:
        raise UsageError("'key_scales' must be given for codes of 4 bits, but got none",
                         "pass the scales of the blocks of keys and values")
    for name, codes in (("key_scales", key), ("value_scales", value)):
        if name in given:
            _check_scales(given[name], name, codes, query)
    if "value_scales" in given and given["value_scales"].dtype != given["key_scales"].dtype:
        raise UsageError("'value_scales' must be of the dtype of 'key_scales', "
                         f"{str(given['key_scales'].dtype)[6:]}, but got "
                         f"{said(given['value_scales'])}", "keys and values are of one format")
    shapes = [(1,), (heads,), *([(sequences, heads)] if is_byte else [])]
    for name in ("key_factors", "value_factors"):
        if name in given:
            _check_factors(given[name], name, shapes)


def _check_scales(scales: torch.Tensor, name: str, codes: torch.Tensor,
                  query: torch.Tensor) -> None:
    packed = codes.dtype in PACKED
    allowed = ([torch.float8_e4m3fn] if packed else []) + (
        [torch.float8_e8m0fnu] if query.dtype == torch.bfloat16 else [])
    if scales.dtype in allowed:
        block = BLOCKS[SCALES[scales.dtype]]
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
