"""The programs behind linear layers of 16-bit activations and prepacked weights.

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
#: The targets with a matmul of prepacked weights. CPU tensors have the first.
TARGETS = ("sm_90a", "sm_100a", "sm_103a", "sm_107a", "sm_110a", "sm_120a", "sm_121a")
TARGET = TARGETS[0]


def whole_blocks(columns: int, format: str) -> int:
    """So many columns once they are padded to whole scale blocks of the format."""
    block = find_format(format).block
    return -(-columns // block) * block


@functools.lru_cache(maxsize=256)
def prepacker(rows: int, columns: int, format: str, target: str) -> Runnable:
    """(data [rows, columns/2], linear scales) -> [ceil(rows/128), ceil(columns/64), tile bytes]."""
    data, scales, packed = _types(rows, columns, format)
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
def unprepacker(rows: int, columns: int, format: str, target: str) -> Runnable:
    """The inverse of `prepacker`."""
    data, scales, packed = _types(rows, columns, format)
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
        element: of the activations, "bf16" or "f16".
        alpha_rank: of the scale of the weights: 0, 1 where every row has one, -1 without one.
        bias: its element, or "" without one.
        result: element of the result.
        split_k: the policy by which the compiler chooses split-K factors: "fastest", or "fixed",
            where the bits of a row do not depend on how many rows there are.
    """

    rows: int
    columns: int
    element: str
    format: str
    alpha_rank: int = -1
    bias: str = ""
    result: str = "bf16"
    split_k: str = "fastest"


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
    """(x [M, columns], whose rows may have gaps between them; packed weights; alpha, [] or
    [1, rows]; bias [1, rows]) -> [M, rows]. The fp32 sum is multiplied by alpha, the bias is added,
    and the result is rounded once."""
    check_target(target)
    n = what.rows
    x, y = f"tensor<?x{what.columns}x{what.element}>", f"tensor<?x{n}x{what.result}>"
    operands = {"x": x, "packed": packed_type(n, what.columns, what.format)}
    if what.alpha_rank >= 0:
        operands["alpha"] = "tensor<f32>" if what.alpha_rank == 0 else f"tensor<1x{n}xf32>"
    types = ", ".join(operands.values())
    sums = y
    if what.bias:
        operands["bias"] = f"tensor<1x{n}x{what.bias}>"
        sums = f"tensor<?x{n}xf32>"
    arguments = ",\n    ".join(
        f'%{name}: {kind} {{fp4.name = "{name}"'
        + (', fp4.dims = ["M", ""], fp4.strided}' if name == "x" else "}")
        for name, kind in operands.items())
    alpha = " alpha %alpha" if what.alpha_rank >= 0 else ""
    result, add = _add_bias(what, x, sums, y) if what.bias else ("%sums", "")
    return compile_program(f"""func.func @weight_mm(
    {arguments})
    -> ({y} {{fp4.name = "y"}}) {{
  %sums = fp4.matmul %x, %packed{alpha} {{work = #fp4.work<split_k = {what.split_k}>}}
      : ({types}) -> {sums}
{add}  return {result} : {y}
}}
""", target)


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


def _types(rows: int, columns: int, format: str) -> tuple[str, str, str]:
    """Data, linear scales and tiles of weights."""
    facts = find_format(format)
    return (f"tensor<{rows}x{columns}x{facts.data}>",
            f"tensor<{rows}x{columns // facts.block}x{facts.scales}>",
            packed_type(rows, columns, format))


def packed_type(rows: int, columns: int, format: str, groups: int = 1) -> str:
    """The type of the tiles of the weights of all groups, which have so many rows and columns
    each."""
    size = next(size for size, name in FORMATS.items() if name == format)
    tiles = f"{groups * -(-rows // TILE[0])}x{-(-columns // TILE[1])}x{size}"
    return f"tensor<{tiles}xi8, #fp4.weight_layout<wgmma>>"


def compile_program(text: str, target: str) -> Runnable:
    return programs.compile_text(text, target)
