"""Keys and values of tokens that are written to slots of a paged cache.

    reshape_and_cache(key, value, slots, key_cache, value_cache, scales?, factors?, format)

Keys and values are quantized in the kernels that write them.
"""

from __future__ import annotations

import dataclasses
import functools

import torch

from ..errors import UsageError
from . import functional, programs
from .checking import check_rows
from .execution import run_into
from .operation import Operation
from .programs import Runnable, compile_text
from .row_programs import Ending, Tensor, Text, constant, quantized
from .row_results import Optional, check_contiguous, check_tensor, said
from .strides import flat_rows, placed_alike

#: The dtypes of codes and of scales, the elements in one of codes, and those that share a scale, by
#: format; and the recipe of the codes.
_Facts = tuple[torch.dtype, torch.dtype | None, int, int, str]
_FORMATS: dict[str, _Facts] = {
    "fp8": (torch.float8_e4m3fn, None, 1, 0, ""),
    "nvfp4": (torch.uint8, torch.float8_e4m3fn, 2, 16,
              "transformer_engine, tensor_scale = supplied_decode, scale = divide_twice, "
              "encode = reciprocal_of_product"),
    "mxfp4": (torch.uint8, torch.float8_e8m0fnu, 2, 32, "ocp_floor"),
    "mxfp8_e4m3": (torch.float8_e4m3fn, torch.float8_e8m0fnu, 1, 32, "mxfp8_e4m3_floor")}
_HAVE_FACTOR = ("fp8", "nvfp4")
_MOST = 448.0

# ===--- Programs ---------------------------------------------------------=== #


@dataclasses.dataclass(frozen=True)
class Slots:
    """The facts that decide the program.

    Attributes:
        columns: of keys and of values, those of all heads of a token.
        count: slots of each cache.
    """

    columns: tuple[int, int]
    source: str
    format: str
    count: int
    strided: bool = False


@functools.lru_cache(maxsize=256)
def slots(what: Slots, target: str) -> Runnable:
    """(keys, values [M, columns], slots [M]; factors of both where the format has them) -> the
    codes, and the scales if there are any, of the cache of keys, and of that of values."""
    return compile_text(slots_text(what), target)


def slots_text(what: Slots) -> str:
    """The program as MLIR text."""
    text = Text(what.columns[0], what.source, what.strided)
    matrices = []
    for name, columns in zip("kv", what.columns):
        text.columns = columns
        matrices.append(text.argument(name, text.matrix(what.source)))
    numbers = text.argument("slots", "tensor<?xi64>", "#row")
    factors = [text.argument(f"{name}_factor", "tensor<f32>", "#one") for name in "kv"
               ] if what.format in _HAVE_FACTOR else [None, None]
    text.begin(matrices[0])
    stored = []
    for x, factor, columns in zip(matrices, factors, what.columns):
        text.columns = columns
        stored += _codes(text, what, x, factor)
    if not what.format and len(set(what.columns)) == 1:
        stored = _copies(text, stored)
    for value in stored:
        place = text.scatter(f"{value.name}_cache", value, numbers, what.count)
        text.result(place.name, place.type)
    return text.text("reshape_and_cache")


def _codes(text: Text, what: Slots, x: Tensor, factor: Tensor | None) -> list[Tensor]:
    """Parts of a cache, of the matrix `x`."""
    if not what.format:
        return [x]
    if what.format != "fp8":
        ending = Ending(what.format, _FORMATS[what.format][4])
        return list(quantized(text, ending, x, factor, f"{x.name}."))
    assert factor is not None
    body = constant("high", _MOST) + constant("low", -_MOST) + f"""\
    %q = arith.divf %{x.name}.f, %{factor.name}.f : f32
    %l = arith.minimumf %q, %high : f32
    %c = arith.maximumf %l, %low : f32
"""
    return [text.elements(f"{x.name}.q", [x, factor], body, "%c", "f8E4M3FN")]


def _copies(text: Text, pair: list[Tensor]) -> list[Tensor]:
    """Elements with their own signs, which one kernel stores: an operation that yields its operands
    would be left out. A NaN of bfloat16 becomes that of the conversions."""
    type, element = pair[0].type, pair[0].element
    text.lines.append(f"""  %place = tensor.empty(%height) : {type}
  %k.q, %v.q = linalg.generic {{
      indexing_maps = [#all, #all, #all, #all], iterator_types = ["parallel", "parallel"]}}
      ins(%k, %v : {type}, {type}) outs(%place, %place : {type}, {type}) {{
  ^bb0(%k.e: {element}, %v.e: {element}, %k.o: {element}, %v.o: {element}):
    %k.s = math.copysign %k.e, %k.e : {element}
    %v.s = math.copysign %v.e, %v.e : {element}
    linalg.yield %k.s, %v.s : {element}, {element}
  }} -> ({type}, {type})""")
    return [Tensor(f"{value.name}.q", value.type) for value in pair]


# ===--- Operation --------------------------------------------------------=== #


def _reshape_and_cache(key: torch.Tensor, value: torch.Tensor, slots_: torch.Tensor,
                       key_cache: torch.Tensor, value_cache: torch.Tensor, key_scales: Optional,
                       value_scales: Optional, key_factor: Optional, value_factor: Optional,
                       format: str, heads_first: bool = False) -> None:
    count = key_cache.shape[0] * key_cache.shape[2 if heads_first else 1]
    check_rows(slots_, "slots", count, skips=True, are_places=True)
    if not slots_.numel():
        return
    if heads_first:
        slots_ = _slots_of_heads(slots_, key_cache)
        count = slots_.shape[1] * count
        slots_ = slots_.flatten()
        key, value = (x.flatten(0, 1).unsqueeze(1) for x in (key, value))
    rows = [flat_rows(x.flatten(1)) for x in (key, value)]
    if rows[0].shape == rows[1].shape:
        rows, is_strided = placed_alike(*rows)
    else:
        rows, is_strided = [x.contiguous() for x in rows], False
    what = Slots((rows[0].shape[1], rows[1].shape[1]), programs.ELEMENTS[key.dtype], format, count,
                 is_strided and not all(x.is_contiguous() for x in rows))
    out = [_flat(cache, count) for cache in (key_cache, key_scales, value_cache, value_scales)
           if cache is not None]
    factors = (None if factor is None else factor.reshape(())
               for factor in (key_factor, value_factor))
    run_into(slots, (what,), tuple(out), *rows, slots_.contiguous(), *factors)


def _slots_of_heads(slots_: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
    """The slots [T, H] of the heads of tokens in a cache that has heads in front of tokens."""
    heads, tokens = cache.shape[1:3]
    page = torch.div(slots_, tokens, rounding_mode="floor").unsqueeze(1)
    places = (page * heads + torch.arange(heads, device=slots_.device)) * tokens
    places += (slots_ % tokens).unsqueeze(1)
    return places.masked_fill((slots_ < 0).unsqueeze(1), -1)


def _flat(cache: torch.Tensor, count: int) -> torch.Tensor:
    """The `count` rows of a cache, one for each slot; codes of 4 bits by torch's name for them."""
    rows = cache.view(count, -1)
    return rows.view(torch.float4_e2m1fn_x2) if rows.dtype == torch.uint8 else rows


def _fake(*_: object) -> None:
    pass


_operation = Operation(
    "reshape_and_cache(Tensor key, Tensor value, Tensor slots, Tensor(a!) key_cache, "
    "Tensor(b!) value_cache, Tensor(c!)? key_scales, Tensor(d!)? value_scales, "
    "Tensor? key_factor, Tensor? value_factor, str format, bool heads_first=False) -> ()",
    _reshape_and_cache, _fake)

# ===--- Functions --------------------------------------------------------=== #


def reshape_and_cache(key: torch.Tensor, value: torch.Tensor, slots: torch.Tensor,
                      key_cache: torch.Tensor, value_cache: torch.Tensor, *, format: str = "",
                      key_scales: torch.Tensor | None = None,
                      value_scales: torch.Tensor | None = None,
                      key_factor: torch.Tensor | None = None,
                      value_factor: torch.Tensor | None = None, kv_layout: str = "NHD") -> None:
    """Writes keys and values of tokens, [T, Hk, D] and [T, Hk, E], to the cache of a PagedCache.

    Args:
        slots: int64 [T], numbers of tokens of all pages, which checked() checks. Negative ones are
            skipped.
        format: that of the cache.
        kv_layout: "NHD" or "HND", as in `attention`.

    Raises:
        UsageError: an argument that does not fit.
    """
    facts = _check_format(format)
    _check_tokens(key, value, slots)
    if kv_layout not in ("NHD", "HND"):
        raise UsageError(f"'kv_layout' must be 'NHD' or 'HND', but got {kv_layout!r}",
                         "pages have tokens in front of heads, or heads in front of tokens")
    heads_first = kv_layout == "HND"
    for name, x, cache, scales, factor in (
            ("key", key, key_cache, key_scales, key_factor),
            ("value", value, value_cache, value_scales, value_factor)):
        _check_cache(name, x, cache, format, facts, heads_first)
        _check_scales(name, x, cache, scales, facts)
        _check_factor(name, factor, format)
    if key_cache.shape[:3] != value_cache.shape[:3]:
        raise UsageError(f"'value_cache' must have the pages of 'key_cache', but got "
                         f"{said(value_cache)} and {said(key_cache)}", "a slot is one of both")
    functional._check_devices(key=key, value=value, slots=slots, key_cache=key_cache,
                              value_cache=value_cache, key_scales=key_scales,
                              value_scales=value_scales, key_factor=key_factor,
                              value_factor=value_factor)
    torch.ops.fp4.reshape_and_cache(key.detach(), value.detach(), slots, key_cache, value_cache,
                                    key_scales, value_scales, key_factor, value_factor, format,
                                    heads_first)


def _check_format(format: str) -> _Facts | None:
    if format and format not in _FORMATS:
        raise UsageError(f"'format' must be {', '.join(_FORMATS)} or '', but got {format!r}",
                         "'' keeps elements as they are")
    return _FORMATS.get(format)


def _check_tokens(key: torch.Tensor, value: torch.Tensor, slots: torch.Tensor) -> None:
    for name, x in (("key", key), ("value", value)):
        functional._check_input(x, name)
        if x.dim() != 3 or x.dtype != key.dtype or x.shape[:2] != key.shape[:2]:
            raise UsageError(f"'{name}' must be tokens x heads x columns, of as many tokens and "
                             f"heads and of the dtype of 'key', but got {said(x)}",
                             "pass x.view(-1, heads, columns)")
    check_tensor(slots, "slots")
    if slots.dtype != torch.int64 or slots.dim() != 1 or slots.shape[0] != key.shape[0]:
        raise UsageError(f"'slots' must be int64 with a slot for each token, but got {said(slots)}",
                         "pass slots.long(), and -1 for a token that is not kept")


def _check_cache(name: str, x: torch.Tensor, cache: torch.Tensor, format: str,
                 facts: _Facts | None, heads_first: bool) -> None:
    check_tensor(cache, f"{name}_cache")
    dtype, packed, block = (x.dtype, 1, 0) if facts is None else (facts[0], *facts[2:4])
    if block and x.shape[2] % block:
        raise UsageError(f"'{name}' must have a multiple of {block} columns for {format}, but got "
                         f"{x.shape[2]}", "elements of one head share a scale")
    heads, columns = x.shape[1], x.shape[2] // packed
    place = 1 if heads_first else 2
    sizes = ["N", "page_tokens", columns]
    sizes.insert(place, heads)
    if cache.dim() != 4 or cache.dtype != dtype or (
            cache.shape[place] != heads or cache.shape[3] != columns):
        raise UsageError(f"'{name}_cache' must be {str(dtype)[6:]} of shape "
                         f"[{', '.join(map(str, sizes))}], but got {said(cache)}",
                         "'kv_layout' says whether tokens or heads are first in a page")
    check_contiguous(cache, f"{name}_cache")


def _check_scales(name: str, x: torch.Tensor, cache: torch.Tensor, scales: Optional,
                  facts: _Facts | None) -> None:
    if facts is None or facts[1] is None:
        if scales is not None:
            raise UsageError(f"'{name}_scales' must be None for this format, but got a tensor",
                             "nvfp4, mxfp4 and mxfp8_e4m3 have scales of blocks")
        return
    shape = [*cache.shape[:3], x.shape[2] // facts[3]]
    if scales is None or list(scales.shape) != shape or scales.dtype != facts[1]:
        raise UsageError(f"'{name}_scales' must be {str(facts[1])[6:]} of shape {shape}, but got "
                         f"{'none' if scales is None else said(scales)}",
                         f"a scale is of {facts[3]} elements")
    check_contiguous(scales, f"{name}_scales")


def _check_factor(name: str, factor: Optional, format: str) -> None:
    if (factor is not None) != (format in _HAVE_FACTOR):
        raise UsageError(f"'{name}_factor' must be {'given' if factor is None else 'None'} for "
                         f"format {format!r}", "fp8 and nvfp4 have a decode scale of the cache")
    if factor is not None and (factor.numel() != 1 or factor.dtype != torch.float32):
        raise UsageError(f"'{name}_factor' must be one float32, but got {said(factor)}",
                         "it is the decode scale of the cache")
