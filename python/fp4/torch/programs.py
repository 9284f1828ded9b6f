"""The programs behind the operations of fp4.torch: each is compiled once and kept.

The number of rows is dynamic. Columns are static, and so are the rows of the right side of a
product: another size is another program, which the first call with it compiles.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import torch

from ..compiler import Compiled, compile
from .recipes import BLOCKS, SCALE_ELEMENTS

ELEMENTS = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}

#: The type of an argument and the names of its dimensions, if others have the same.
_Argument = tuple[str, tuple[str, ...]]


def _program(target: str, arguments: Mapping[str, _Argument], body: str,
             results: Mapping[str, str]) -> Compiled:
    """The function @main of `arguments`, named as they are, that returns the values `results`."""
    heads = []
    for name, (kind, dims) in arguments.items():
        names = ", ".join(f'"{dim}"' for dim in dims)
        heads.append(f'%{name}: {kind} {{fp4.name = "{name}"'
                     f'{f", fp4.dims = [{names}]" if dims else ""}}}')
    values, kinds = ", ".join(f"%{name}" for name in results), ", ".join(results.values())
    return compile(f"func.func @main({', '.join(heads)}) -> ({kinds}) {{\n{body}\n"
                   f"  return {values} : {kinds}\n}}\n", target=target, name="fp4.torch")


def _scales(rows: int | str, columns: int | str, format: str, layout: str) -> str:
    encoding = "" if layout == "linear" else f", #fp4.scale_layout<{layout}>"
    return f"tensor<{rows}x{columns}x{SCALE_ELEMENTS[format]}{encoding}>"


@functools.lru_cache(maxsize=256)
def amax(columns: int, source: str, per_row: bool, target: str) -> Compiled:
    """(x [M, columns]) -> amax, one number or [M]."""
    x, result = f"tensor<?x{columns}x{source}>", f"tensor<{'?x' if per_row else ''}f32>"
    body = f"  %y = fp4.amax %x {'{per_row} ' if per_row else ''}: {x} -> {result}"
    return _program(target, {"x": (x, ())}, body, {"y": result})


@functools.lru_cache(maxsize=256)
def hadamard_amax(columns: int, sign_mask: int, target: str) -> Compiled:
    """(x [M, columns]) -> the amax of x, and that of x transformed along M."""
    x = f"tensor<?x{columns}xbf16>"
    body = (f"  %y, %z = fp4.hadamard_amax %x {{dimension = 0 : i64, "
            f"sign_mask = {sign_mask} : i64}} : {x} -> tensor<f32>, tensor<f32>")
    return _program(target, {"x": (x, ())}, body, {"y": "tensor<f32>", "z": "tensor<f32>"})


@functools.lru_cache(maxsize=256)
def hadamard(columns: int, dimension: int, size: int, sign_mask: int, target: str) -> Compiled:
    """(x [M, columns]) -> x transformed along `dimension`."""
    x = f"tensor<?x{columns}xbf16>"
    body = (f"  %y = fp4.hadamard %x {{dimension = {dimension} : i64, size = {size} : i64, "
            f"sign_mask = {sign_mask} : i64}} : {x} -> {x}")
    return _program(target, {"x": (x, ())}, body, {"y": x})


@dataclasses.dataclass(frozen=True)
class Quantizer:
    """What a quantizer does; docs/Spec.md has the attributes of fp4.quantize.

    Attributes:
        columns, source: of the input, [M, columns], and its element type.
        outputs: "rowwise", "columnwise" or "both".
        amaxes: 0 without a scale of the tensor, 1, or 2 where the columnwise output has its own.
        sign_mask: of the Hadamard transform of the columnwise output, or None.
    """

    columns: int
    source: str
    format: str
    recipe: str
    layout: str
    outputs: str = "rowwise"
    amaxes: int = 1
    per_row: bool = False
    stochastic: bool = False
    square: bool = False
    sign_mask: int | None = None

    def results(self) -> dict[str, str]:
        """The types of the outputs by their names in the program."""
        block, found = BLOCKS[self.format], {}
        if self.outputs != "columnwise":
            found = {"q": f"tensor<?x{self.columns}xf4E2M1FN>",
                     "s": _scales("?", -(-self.columns // block), self.format, self.layout)}
        if self.outputs != "rowwise":
            found |= {"qt": f"tensor<{self.columns}x?xf4E2M1FN>",
                      "st": _scales(self.columns, "?", self.format, self.layout)}
        return found

    def attributes(self) -> str:
        found = [f"format = #fp4.format<{self.format}>", f"recipe = #fp4.recipe<{self.recipe}>",
                 f"outputs = #fp4.outputs<{self.outputs}>"]
        found += ["per_row"] if self.per_row else []
        found += ["rounding = #fp4.rounding<stochastic>"] if self.stochastic else []
        found += ["block = array<i64: 16, 16>"] if self.square else []
        if self.sign_mask is not None:
            found.append(f"columnwise_hadamard = #fp4.hadamard<sign_mask = {self.sign_mask}>")
        return ", ".join(found)


@functools.lru_cache(maxsize=256)
def quantizer(what: Quantizer, target: str) -> Compiled:
    """(x, amax if there is one, columnwise_amax if there are two, rng if stochastic) -> codes and
    scales of each output."""
    number = f"tensor<{'?x' if what.per_row else ''}f32>"
    rows = ("M",) if what.per_row else ()
    arguments: dict[str, _Argument] = {"x": (f"tensor<?x{what.columns}x{what.source}>",
                                             ("M", "") if rows else ())}
    operands = "%x"
    for name in ("amax", "columnwise_amax")[:what.amaxes]:
        arguments[name] = (number, rows)
        operands += f" {name} %{name}"
    if what.stochastic:
        arguments["rng"] = ("tensor<2xi64>", ())
        operands += " rng %rng"
    results = what.results()
    body = (f"  {', '.join(f'%{name}' for name in results)} = fp4.quantize {operands} "
            f"{{{what.attributes()}}} : ({', '.join(kind for kind, _ in arguments.values())}) -> "
            f"({', '.join(results.values())})")
    return _program(target, arguments, body, results)


@functools.lru_cache(maxsize=256)
def dequantizer(columns: int, result: str, format: str, recipe: str, amax_rank: int,
                target: str) -> Compiled:
    """(data [M, columns/2], linear scales, amax unless amax_rank is -1) -> [M, columns]."""
    kinds = {"data": f"tensor<?x{columns}xf4E2M1FN>",
             "scales": _scales("?", -(-columns // BLOCKS[format]), format, "linear")}
    if amax_rank >= 0:
        kinds["amax"] = ("tensor<f32>", "tensor<?xf32>")[amax_rank]
    dims = {"data": ("M", ""), "scales": ("M", ""), "amax": ("M",)[:amax_rank]}
    y = f"tensor<?x{columns}x{result}>"
    body = (f"  %y = fp4.dequantize %data scaled %scales{' amax %amax' if amax_rank >= 0 else ''} "
            f"{{format = #fp4.format<{format}>, recipe = #fp4.recipe<{recipe}>"
            f"{', per_row' if amax_rank == 1 else ''}}} : ({', '.join(kinds.values())}) -> {y}")
    return _program(target, {name: (kind, dims[name]) for name, kind in kinds.items()}, body,
                    {"y": y})


@functools.lru_cache(maxsize=256)
def swizzler(columns: int, format: str, target: str) -> Compiled:
    """(scales [M, columns]) -> the same in the layout tiled_128x4."""
    linear, tiled = (_scales("?", columns, format, layout) for layout in ("linear", "tiled_128x4"))
    return _program(target, {"scales": (linear, ())},
                    f"  %y = fp4.swizzle_scales %scales : {linear} -> {tiled}", {"y": tiled})


@functools.lru_cache(maxsize=256)
def unswizzler(rows: int, columns: int, format: str, target: str) -> Compiled:
    """(tiled scales) -> linear ones. The buffer does not tell its rows, so they are static."""
    linear, tiled = (_scales(rows, columns, format, layout) for layout in ("linear", "tiled_128x4"))
    return _program(target, {"scales": (tiled, ())},
                    f"  %y = fp4.unswizzle_scales %scales : {tiled} -> {linear}", {"y": linear})


@dataclasses.dataclass(frozen=True)
class Product:
    """What a product does: [M, columns] times the transpose of [rows, columns].

    Attributes:
        recipes: of the two operands, or () where they have no scale of the tensor.
        amax_ranks: of the scales of the tensors: 1 where every row has one.
    """

    columns: int
    rows: int
    result: str
    format: str
    recipes: tuple[str, ...] = ()
    amax_ranks: tuple[int, int] = (0, 0)


@functools.lru_cache(maxsize=256)
def product(what: Product, target: str) -> Compiled:
    """(a [M, K/2], its scales, b [N, K/2], its scales; with recipes also the numbers from which
    alpha is computed, of a and of b) -> [M, N]."""
    blocks = what.columns // BLOCKS[what.format]
    kinds = {"a": f"tensor<?x{what.columns}xf4E2M1FN>",
             "scale_a": _scales("?", blocks, what.format, "tiled_128x4"),
             "b": f"tensor<{what.rows}x{what.columns}xf4E2M1FN>",
             "scale_b": _scales(what.rows, blocks, what.format, "tiled_128x4")}
    arguments: dict[str, _Argument] = {
        name: (kind, ("M", "") if "?" in kind else ()) for name, kind in kinds.items()}
    alpha, body = "", ""
    if what.recipes:
        numbers = [f"tensor<{f'{size}x' if rank else ''}f32>"
                   for size, rank in zip(("?", what.rows), what.amax_ranks)]
        arguments["amax_a"] = (numbers[0], ("M",)[:what.amax_ranks[0]])
        arguments["amax_b"] = (numbers[1], ())
        alpha = {(0, 0): "tensor<f32>", (1, 0): "tensor<?x1xf32>",
                 (0, 1): f"tensor<1x{what.rows}xf32>"}[what.amax_ranks]
        body = (f"  %alpha = fp4.matmul_alpha %amax_a, %amax_b "
                f"{{lhs_recipe = #fp4.recipe<{what.recipes[0]}>, "
                f"rhs_recipe = #fp4.recipe<{what.recipes[1]}>}} : {', '.join(numbers)} -> "
                f"{alpha}\n")
    y = f"tensor<?x{what.rows}x{what.result}>"
    body += (f"  %y = fp4.blockscaled_matmul %a scaled %scale_a, %b scaled %scale_b"
             f"{' alpha %alpha' if alpha else ''} {{format = #fp4.format<{what.format}>}} : "
             f"({', '.join([*kinds.values(), *([alpha] if alpha else [])])}) -> {y}")
    return _program(target, arguments, body, {"y": y})
