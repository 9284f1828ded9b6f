"""The programs behind linear layers of prepacked weights, whose activations have 16 bits or are
E4M3.

A layer has one program for any number of rows. The library has a kernel for each of several ranges
of row counts, and a call launches the one for its own; the compiler plans the kernels
(docs/reference/semantics.md, several plans of one product), and chooses the split-K factor of each
range for the SMs of the target, or one for all.
"""

from __future__ import annotations

import dataclasses
import functools

from ..errors import UsageError
from ..formats import find_format
from . import programs
from .programs import Runnable

#: Rows and columns of a tile of prepacked weights, and the formats by the bytes of a tile
#: (include/fp4/ISA/WeightLayout.h).
TILE = (128, 64)
FORMATS = {4608: "nvfp4", 4352: "mxfp4"}
#: Bytes and columns of a tile of MXFP4 weights beside activations of E4M3.
BYTE_TILE, BYTE_COLUMNS = 8704, 128
#: The targets with a matmul of prepacked weights. CPU tensors have the first.
TARGETS = ("sm_90a", "sm_100a", "sm_103a", "sm_107a", "sm_110a", "sm_120a", "sm_121a")
TARGET = TARGETS[0]


def whole_blocks(columns: int, format: str) -> int:
    """So many columns once they are padded to whole scale blocks of the format."""
    block = find_format(format).block
    return -(-columns // block) * block


def tile_bytes(format: str) -> int:
    """Bytes of a tile beside 16-bit activations."""
    return next(size for size, name in FORMATS.items() if name == format)


def _tile_columns(size: int) -> int:
    return BYTE_COLUMNS if size == BYTE_TILE else TILE[1]


@functools.lru_cache(maxsize=256)
def prepacker(rows: int, columns: int, size: int, target: str) -> Runnable:
    """(data [rows, columns/2], linear scales) -> [ceil(rows/128), ceil(columns/64), size]; tiles
    for E4M3 have 128 columns."""
    data, scales, packed, format = _types(rows, columns, size)
    return compile_program(f"""func.func @prepack(
    %data: {data} {{fp4.name = "data"}},
    %scales: {scales} {{fp4.name = "scales"}})
    -> ({packed} {{fp4.name = "packed"}}) {{
  %packed = fp4.prepack %data scaled %scales {{format = #fp4.format<{format}>}}
      : ({data}, {scales}) -> {packed}
  return %packed : {packed}
}}
""", target)


@functools.lru_cache(maxsize=256)
def unprepacker(rows: int, columns: int, size: int, target: str) -> Runnable:
    """The inverse of `prepacker`."""
    data, scales, packed, format = _types(rows, columns, size)
    return compile_program(f"""func.func @unprepack(%packed: {packed} {{fp4.name = "packed"}})
    -> ({data} {{fp4.name = "data"}}, {scales} {{fp4.name = "scales"}}) {{
  %data, %scales = fp4.unprepack %packed {{format = #fp4.format<{format}>}}
      : ({packed}) -> ({data}, {scales})
  return %data, %scales : {data}, {scales}
}}
""", target)


@dataclasses.dataclass(frozen=True)
class Product:
    """The facts that decide the program of a matmul of activations and prepacked weights.

    Attributes:
        rows, columns: of the weights, the columns in whole scale blocks.
        element: of the activations: "bf16", "f16", or "f8E4M3FN" with a scale for each row, which
            is the alpha.
        alpha_rank: of the scale of the weights: 0, 1 where every row has one, -1 without one.
        bias: its element, or "" without one.
        result: element of the result.
        split_k: the policy by which the compiler chooses split-K factors: "fastest", or "fixed",
            where the bits of a row do not depend on how many rows there are.
        given: element of activations that the program quantizes to E4M3 by rows, or "".
    """

    rows: int
    columns: int
    element: str
    format: str
    alpha_rank: int = -1
    bias: str = ""
    result: str = "bf16"
    split_k: str = "fastest"
    given: str = ""

    @property
    def tile_bytes(self) -> int:
        return BYTE_TILE if self.element == "f8E4M3FN" else tile_bytes(self.format)


def check_target(target: str) -> None:
    """A UsageError where no matmul of prepacked weights runs."""
    target = target.partition("/")[0]
    if target not in TARGETS:
        raise UsageError(f"a matmul of prepacked weights must run on one of {', '.join(TARGETS)}, "
                         f"but the device has {target}",
                         "fp4.torch.QuantizedLinear has matmuls for other GPUs; the simulator "
                         f"is fp4.Device('sim', target='{TARGET}')")


@functools.lru_cache(maxsize=1024)
def product(what: Product, target: str) -> Runnable:
    """(x [M, columns], whose rows may have gaps between them; packed weights; alpha, [], [1, rows]
    or beside E4M3 [M, 1]; bias [1, rows]) -> [M, rows]. The fp32 sum is multiplied by alpha, the
    bias is added, and the result is rounded once."""
    check_target(target)
    n, of_rows = what.rows, what.element == "f8E4M3FN"
    given = f"tensor<?x{what.columns}x{what.given or what.element}>"
    x, y = f"tensor<?x{what.columns}x{what.element}>", f"tensor<?x{n}x{what.result}>"
    operands = {"x": given, "packed": tiles_type(n, what.columns, what.tile_bytes)}
    alpha_type = ("tensor<?x1xf32>" if of_rows else
                  "tensor<f32>" if what.alpha_rank == 0 else f"tensor<1x{n}xf32>")
    has_alpha = what.alpha_rank >= 0 or of_rows
    if has_alpha and not what.given:
        operands["alpha"] = alpha_type
    types = ", ".join((x, operands["packed"]) + ((alpha_type,) if has_alpha else ()))
    sums = y
    if what.bias:
        operands["bias"] = f"tensor<1x{n}x{what.bias}>"
        sums = f"tensor<?x{n}xf32>"
    arguments = ",\n    ".join(
        f'%{name}: {kind} {{fp4.name = "{name}"'
        + (', fp4.dims = ["M", ""], fp4.strided}' if name == "x" else
           ', fp4.dims = ["M", ""]}' if kind.startswith("tensor<?") else "}")
        for name, kind in operands.items())
    alpha = f" alpha {'%s' if what.given else '%alpha'}" if has_alpha else ""
    result, add = _add_bias(what, given, sums, y) if what.bias else ("%sums", "")
    quantize, lhs = (_quantize_rows(what, given, x), "%q") if what.given else ("", "%x")
    return compile_program(f"""func.func @weight_mm(
    {arguments})
    -> ({y} {{fp4.name = "y"}}) {{
{quantize}  %sums = fp4.matmul {lhs}, %packed{alpha} {{work = #fp4.work<split_k = {what.split_k}>}}
      : ({types}) -> {sums}
{add}  return {result} : {y}
}}
""", target)


def _quantize_rows(what: Product, given: str, x: str) -> str:
    """E4M3 of the activations, and the scale of each row."""
    return f"""  %q, %s = fp4.quantize %x {{format = #fp4.format<fp8_block128>,
      recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, {what.columns}>}}
      : ({given}) -> ({x}, tensor<?x1xf32>)
"""


def _add_bias(what: Product, x: str, sums: str, y: str) -> tuple[str, str]:
    """y and what computes it; the compiler makes it a part of the matmul's kernel."""
    added = "%shift" if what.bias == "f32" else "%wide"
    widen = "" if what.bias == "f32" else f"    %wide = arith.extf %shift : {what.bias} to f32\n"
    is_wide = what.result == "f32"
    last = "%shifted" if is_wide else "%rounded"
    rounded = "" if is_wide else f"    %rounded = arith.truncf %shifted : f32 to {what.result}\n"
    return "%y", f"""  %zero = arith.constant 0 : index
  %rows = tensor.dim %x, %zero : {x}
  %empty = tensor.empty(%rows) : {y}
  %y = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (0, j)>,
                       affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%sums, %bias : {sums}, tensor<1x{what.rows}x{what.bias}>) outs(%empty : {y}) {{
  ^bb0(%sum: f32, %shift: {what.bias}, %out: {what.result}):
{widen}    %shifted = arith.addf %sum, {added} : f32
{rounded}    linalg.yield {last} : {what.result}
  }} -> {y}
"""


def _types(rows: int, columns: int, size: int) -> tuple[str, str, str, str]:
    """Data, linear scales and tiles of weights, and their format."""
    format = "mxfp4" if size == BYTE_TILE else FORMATS[size]
    facts = find_format(format)
    return (f"tensor<{rows}x{columns}x{facts.data}>",
            f"tensor<{rows}x{columns // facts.block}x{facts.scales}>",
            tiles_type(rows, columns, size), format)


def packed_type(rows: int, columns: int, format: str, groups: int = 1) -> str:
    """The type of the tiles of the weights of all groups, which have so many rows and columns
    each, beside 16-bit activations."""
    return tiles_type(rows, columns, tile_bytes(format), groups)


def tiles_type(rows: int, columns: int, size: int, groups: int = 1) -> str:
    """The type of such tiles of `size` bytes."""
    tiles = f"{groups * -(-rows // TILE[0])}x{-(-columns // _tile_columns(size))}x{size}"
    return f"tensor<{tiles}xi8, #fp4.weight_layout<wgmma>>"


def compile_program(text: str, target: str) -> Runnable:
    return programs.compile_text(text, target)
