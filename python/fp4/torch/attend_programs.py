"""Programs of attention as MLIR text."""

from __future__ import annotations

import dataclasses
import functools
import math

import torch

from . import programs, recipes
from .programs import Runnable

PACKED = (torch.uint8, torch.float4_e2m1fn_x2)
CODES = {torch.float8_e4m3fn: "f8E4M3FN", torch.float4_e2m1fn_x2: "f4E2M1FN"}
SCALES = {torch.float8_e4m3fn: "f8E4M3FN", torch.float8_e8m0fnu: "f8E8M0FNU"}
ELEMENTS = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float8_e4m3fn: "f8E4M3FN"}
BLOCKS = {"f8E4M3FN": 16, "f8E8M0FNU": 32}


@dataclasses.dataclass(frozen=True)
class Attention:
    """The facts that decide the program: shapes of [B, S, H, D] in elements, the type of queries,
    and the mask; `pages` of a sequence, or 0 without a cache; the types of codes and of scales, or
    none; the numbers of factors; softcap, window, and numbers `of_heads`, "sinks" and "slopes"; and
    the results. There are `offsets` offsets of packed sequences, whose shapes [None, H, D] have any
    tokens. With `latent`, so many elements of keys are values, too. With `value_code` tensor cores
    scale blocks of queries and keys, and values are such codes. Results are "f8E4M3FN" or matrices
    of a format and layout where `out` says so. Words of `order` are "heads_first" of pages,
    "value_rows" of values with scales, which have a row for each element, "q", "k" and "v" of
    operands that are matrices of tokens, whose rows may have gaps, and "placed" of a result that
    is one."""

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
    of_heads: tuple[str, ...] = ()
    has_lse: bool = False
    offsets: int = 0
    order: str = ""
    latent: int = 0
    out: str = ""
    value_code: str = ""

    def says(self, word: str) -> bool:
        return word in self.order.split()

    @property
    def value_rows(self) -> bool:
        """Returns True where values have a row for each element, of all keys."""
        return self.says("value_rows")


@functools.lru_cache(maxsize=256)
def program(what: Attention, target: str) -> Runnable:
    """(query, key, value?, scales?, factors?, lengths?, pages?, query_offsets?, key_offsets?,
    sinks?, slopes?) -> result, lse?"""
    return programs.compile_text(text_of(what), target)


def text_of(what: Attention) -> str:
    """The program of attention as MLIR text."""
    code = what.code or what.element
    batches = what.offsets - 1 if what.offsets else what.query[0]
    query = tensor(what.query, what.element)
    key, value = tensor(what.key, code), tensor(what.value, what.value_code or code)
    groups: dict[str, list[tuple[str, str]]] = {}
    if what.value_code:
        groups["block_scales"] = [(name, tiles(matrices, rows, columns, what.element))
                                  for name, (matrices, rows, columns) in blocks_of(what).items()]
    elif what.scale_type:
        block = BLOCKS[what.scale_type]
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
    for word in what.of_heads:
        groups[word] = [(word[:2], f"tensor<{what.query[-2]}xf32>")]
    order = " heads_first" if what.says("heads_first") else ""
    more = "".join(f" {word}({_typed(operands)})" + (order if word == "pages" else "")
                   for word, operands in groups.items())
    arguments = ", ".join((*_elements(what, query, key, *(() if what.latent else (value,))), *(
        f"%{name}: {kind}" for operands in groups.values() for name, kind in operands)))
    inputs, epilogue, names, kinds = _results(what)
    arguments += "".join(f", %{name}: {kind}" for name, kind in inputs)
    scalars = f" inputs({_typed(inputs)})" if inputs else ""
    listed = ", ".join(kinds[:2 if what.has_lse else 1])
    quantized = f" quantized({', '.join(kinds[2:])})" if kinds[2:] else ""
    body, values, types, given = _returned(names, [kind for kind in kinds if kind], what)
    return (f"func.func @attention({arguments}) -> ({given}) {{\n"
            f"{_expanded(what, query, key, value)}"
            f"  {names} = fp4.attention %q, %k, %{'k' if what.latent else 'v'}{more}"
            f" {_scores(what)}{scalars}{epilogue}\n"
            f"      : {query}, {key}, {value} -> {listed}{quantized}\n"
            f"{body}  return {values} : {types}\n}}\n")


def _returned(names: str, kinds: list[str], what: Attention) -> tuple[str, str, str, str]:
    """The operation that makes a matrix of tokens of a result that is placed; and values that are
    returned, their types, and those of the results of the function."""
    types = ", ".join(kinds)
    if not what.says("placed"):
        return "", names, types, types
    matrix = _matrix((*what.query[:-1], what.latent or what.value[-1]), kinds[0])
    body = (f"  %m = tensor.collapse_shape %o {_groups(what.query)} : {kinds[0]} into {matrix}\n")
    others = "".join(f", {kind}" for kind in kinds[1:])
    return (body, names.replace("%o", "%m"), f"{matrix}{others}",
            f"{matrix} {{fp4.strided}}{others}")


def _groups(shape: tuple[int | None, ...]) -> str:
    """The dimensions of a tensor that are rows, and columns, of its matrix of tokens."""
    return "[[0], [1, 2]]" if len(shape) == 3 else "[[0, 1], [2, 3]]"


def _typed(operands: list[tuple[str, str]]) -> str:
    return (f"{', '.join(f'%{name}' for name, _ in operands)} : "
            f"{', '.join(kind for _, kind in operands)}")


def tensor(shape: tuple[int | None, ...], element: str) -> str:
    sizes = "".join(f"{'?' if size is None else size}x" for size in shape)
    return f"tensor<{sizes}{element}>"


def tiles(matrices: int, rows: int, columns: int, element: str) -> str:
    """The scales of so many matrices, each of a multiple of 128 rows."""
    block, scale = (16, "f8E4M3FN") if element == "f4E2M1FN" else (32, "f8E8M0FNU")
    return (f"tensor<{matrices * -(-rows // 128) * 128}x{-(-columns // block)}x{scale}, "
            "#fp4.scale_layout<tiled_128x4>>")


def blocks_of(what: Attention) -> dict[str, tuple[int, int, int]]:
    """The matrices, rows and columns that have scales of blocks."""
    (batches, tokens, heads, elements), (_, keys, key_heads, _) = what.query, what.key
    assert batches and tokens and keys and elements and heads and key_heads
    blocks = {"qs": (batches * heads, tokens, elements),
              "ks": (batches * key_heads, keys, elements)}
    if what.value_rows:
        blocks["vs"] = (batches * key_heads, what.value[2] or 0, keys)
    return blocks


def _results(what: Attention) -> tuple[list[tuple[str, str]], str, str, list[str]]:
    """Inputs of an epilogue region, the region, and the names and types of results: elements, which
    are none where they are quantized, logarithms, codes and scales."""
    plain = "f16" if what.element == "f16" else "bf16"
    size = what.latent or what.value[2 if what.value_rows else -1]
    lse = [tensor(what.query[:-1], "f32")] if what.has_lse else []
    if not what.out:
        return [], "", "%o, %l" if lse else "%o", [tensor((*what.query[:-1], size), plain), *lse]
    names = "%l, %c, %s" if lse else "%c, %s"
    if what.out == "f8E4M3FN":
        region = ("    %y = arith.mulf %x, %f : f32\n    fp4.yield %y : f32\n")
        kinds = [tensor((*what.query[:-1], size), what.out), *lse]
        return ([("of", "tensor<f32>")], f" epilogue {{\n  ^bb0(%x: f32, %f: f32):\n{region}  }}",
                "%o, %l" if lse else "%o", kinds)
    out, layout = what.out.split()
    block, scale = (16, "f8E4M3FN") if out == "nvfp4" else (32, "f8E8M0FNU")
    amax = [("oa", "tensor<f32>")] if out == "nvfp4" else []
    recipe = recipes.DEFAULT_RECIPES[out]
    encoding = ", #fp4.scale_layout<tiled_128x4>" if layout == "tiled_128x4" else ""
    argument, given, kind = (", %a: f32", " amax %a", ", f32") if amax else ("", "", "")
    region = (f"    %r = arith.truncf %x : f32 to {plain}\n"
              f"    %c, %s = fp4.epilogue_quantize %r{given} {{recipe = #fp4.recipe<{recipe}>}}"
              f" : ({plain}{kind}) -> (f4E2M1FN, {scale})\n"
              f"    fp4.yield %c, %s : f4E2M1FN, {scale}\n")
    *tokens, heads, _ = what.query
    assert heads and size
    rows = None if None in tokens else math.prod(x or 0 for x in tokens)
    columns = heads * size
    kinds = ["", lse[0] if lse else "", tensor((rows, columns), "f4E2M1FN"),
             f"tensor<{'?' if rows is None else rows}x{columns // block}x{scale}{encoding}>"]
    return amax, f" epilogue {{\n  ^bb0(%x: f32{argument}):\n{region}  }}", names, kinds


def _elements(what: Attention, *kinds: str) -> list[str]:
    """The arguments of queries, keys and values. Sizes that are dynamic have names, by which tokens
    of keys and values are compared before a kernel runs."""
    names = zip("qkv", ("query", "key", "value"), kinds, (what.query, what.key, what.value), "TKK")
    arguments = []
    for letter, name, kind, shape, size in names:
        if what.says(letter):
            rows = f', fp4.dims = ["{size}", ""]' if None in shape else ""
            arguments.append(f'%{letter}m: {_matrix(shape, kind)} '
                             f'{{fp4.name = "{name}"{rows}, fp4.strided}}')
            continue
        dims = ", ".join(f'"{size}"' if x is None else '""' for x in shape)
        named = f', fp4.dims = [{dims}]' if None in shape else ""
        arguments.append(f'%{letter}: {kind} {{fp4.name = "{name}"{named}}}')
    return arguments


def _matrix(shape: tuple[int | None, ...], kind: str) -> str:
    """The type of the matrix of tokens of a tensor of type `kind`."""
    rows = None if None in shape else math.prod(x or 0 for x in shape[:-2])
    columns = math.prod(x or 0 for x in shape[-2:])
    return tensor((rows, columns), kind.rpartition("x")[2].rstrip(">"))


def _expanded(what: Attention, *kinds: str) -> str:
    """Makes tensors of matrices of tokens."""
    lines = "  %zero = arith.constant 0 : index\n" if what.offsets and what.order else ""
    for letter, kind, shape in zip("qkv", kinds, (what.query, what.key, what.value)):
        if not what.says(letter):
            continue
        matrix = _matrix(shape, kind)
        if None in shape:
            lines += f"  %{letter}n = tensor.dim %{letter}m, %zero : {matrix}\n"
        sizes = ", ".join(f"%{letter}n" if size is None else str(size) for size in shape)
        lines += (f"  %{letter} = tensor.expand_shape %{letter}m {_groups(shape)} output_shape "
                  f"[{sizes}] : {matrix} into {kind}\n")
    return lines


def _scores(what: Attention) -> str:
    """The attributes of scores, and those that say which keys queries see."""
    softcap = "" if what.softcap is None else f" softcap {what.softcap:.9e}"
    window = "" if what.window is None else f" window {what.window}"
    latent = f" latent {what.latent}" if what.latent else ""
    return f"scale {what.scale:.9e}{softcap}{' causal' if what.causal else ''}{window}{latent}"


def padded(offsets: torch.Tensor) -> torch.Tensor:
    """Offsets of a power of two of sequences, of which the last ones are empty: programs are for so
    many."""
    missing = (1 << (offsets.numel() - 2).bit_length()) + 1 - offsets.numel()
    return torch.cat([offsets, offsets[-1:].expand(missing)]) if missing else offsets


def elements_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape of keys or values in elements: two codes of 4 bits are a byte."""
    packed = tensor.dtype in PACKED
    return (*tensor.shape[:-1], tensor.shape[-1] * 2) if packed else tuple(tensor.shape)


def element_of(tensor: torch.Tensor) -> str:
    """The type of elements, as MLIR names it."""
    return CODES.get(tensor.dtype) or ELEMENTS[tensor.dtype]
