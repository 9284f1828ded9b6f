"""The programs behind linear layers of 16-bit activations and prepacked weights.

The number of rows of a program is dynamic, but its plan, the tile and the ranges of K, is the best
one for some numbers of rows only. So a layer has a program for each plan that its calls needed.
"""

from __future__ import annotations

import dataclasses
import functools

from ..compiler import Compiled, compile
from ..errors import UsageError
from ..formats import find_format

#: Rows and columns of a tile of prepacked weights, and the formats by the bytes of a tile
#: (include/fp4/ISA/WeightLayout.h).
TILE = (128, 64)
FORMATS = {4608: "nvfp4", 4352: "mxfp4"}
#: The targets with a product of prepacked weights. CPU tensors have the first.
TARGETS = ("sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a")
TARGET = TARGETS[0]
#: Multiprocessors of an H200 or H100 SXM, for which the simulator's programs are chosen.
PROCESSORS = 132

_TILE_ROWS = (8, 16, 32, 64, 128)
_SPLITS = (1, 2, 4)
_SLICE = 256  # elements of K: a range of K has whole ones


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a product is computed.

    Attributes:
        tile: rows, columns and elements of K.
        split_k: ranges of K, whose sums are added in their order. They decide the last bits.
        resident: blocks that share a multiprocessor.
        ranges: ranges of K that a block has.
    """

    tile: tuple[int, int, int]
    split_k: int
    resident: int
    ranges: int = 1


@functools.lru_cache(maxsize=4096)
def choose_plan(rows: int, n: int, k: int, processors: int = PROCESSORS) -> Plan:
    """The plan for `rows` rows of activations and weights [n, k] (docs/Performance.md, products of
    bf16 activations and prepacked weights). Few rows read every weight once, so that tiles and
    ranges of K must occupy all multiprocessors; from 129 rows on tiles of 128 rows are many."""
    m = next((size for size in _TILE_ROWS if rows <= size), _TILE_ROWS[-1])
    tiles = -(-rows // m) * (n // 128)
    splits = [split for split in _SPLITS if split <= -(-k // _SLICE)]
    if m <= 32:  # two blocks may share a multiprocessor
        split = next((s for s in splits if 10 * tiles * s >= 9 * processors), splits[-1])
        is_full = tiles * split > processors
        # Of few rows, a block has two ranges whose sums do not wait for each other.
        if m == 8 and split > 1 and not is_full and k % (2 * split * _SLICE) == 0:
            return Plan((m, 128, 256), 2 * split, 1, ranges=2)
        return Plan((m, 128, 256), split, 2 if is_full else 1)
    split = max(s for s in splits if s == 1 or tiles * s <= processors)
    if m < 128:
        return Plan((m, 128, 256), split, 1)
    # Wide tiles load activations once for twice as many weights, where they leave no more
    # multiprocessors idle.
    waves, wide_waves = (-(-count // processors) for count in (tiles, -(-tiles // 2)))
    is_wide = n % 256 == 0 and split == 1 and 2 * wide_waves <= waves
    return Plan((m, 256 if is_wide else 128, 128), split, 1)


def _of_warps(plan: Plan) -> Plan:
    """The same where warps multiply with mma.sync, in 99 KB of shared memory: stages have 128
    elements of K, of all ranges together, and 128 columns."""
    return dataclasses.replace(plan, tile=(plan.tile[0], 128, 128 // plan.ranges))


def _of_lanes(plan: Plan, columns: int) -> Plan:
    """The same where weights become floats in tensor memory: a tile has 16 rows at least, one k
    tile is that of a warpgroup, and a block has one range and a multiprocessor to itself. The last
    k tile may have one tile of weights."""
    return Plan((max(plan.tile[0], 16), 128, min(columns, 128)), plan.split_k, resident=1)


def _of_target(plan: Plan, columns: int, target: str) -> Plan:
    if target == TARGET:
        return plan
    return _of_warps(plan) if target.startswith("sm_12") else _of_lanes(plan, columns)


@functools.lru_cache(maxsize=256)
def prepacker(rows: int, columns: int, format: str, target: str) -> Compiled:
    """(data [rows, columns/2], linear scales) -> tiles [rows/128, columns/64, bytes]."""
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
def unprepacker(rows: int, columns: int, format: str, target: str) -> Compiled:
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
    """What a product of activations and prepacked weights does.

    Attributes:
        rows, columns: of the weights.
        element: of the activations and of the result, "bf16" or "f16".
        alpha_rank: of the scale of the weights: 0, 1 where every row has one, -1 without one.
        bias: its element, or "" without one.
    """

    rows: int
    columns: int
    element: str
    format: str
    plan: Plan
    alpha_rank: int = -1
    bias: str = ""


def check_target(target: str) -> None:
    """A UsageError where no product of prepacked weights runs."""
    if target not in TARGETS:
        raise UsageError(f"a product of prepacked weights must run on one of {', '.join(TARGETS)}, "
                         f"but the device has {target}",
                         "fp4.torch.QuantizedLinear has products for other GPUs; the simulator "
                         f"is fp4.Device('sim', target='{TARGET}')")


@functools.lru_cache(maxsize=1024)
def product(what: Product, target: str) -> Compiled:
    """(x [M, columns], whose rows may have gaps between them; packed weights; alpha, [] or
    [1, rows]; bias [1, rows]) -> [M, rows]. The fp32 sum is multiplied by alpha, the bias is added,
    and the result is rounded once."""
    check_target(target)
    n = what.rows
    x, y = (f"tensor<?x{columns}x{what.element}>" for columns in (what.columns, n))
    operands = {"x": x, "packed": _types(n, what.columns, what.format)[2]}
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
    plan = _of_target(what.plan, what.columns, target)
    tile = ", ".join(map(str, plan.tile))
    ranges = f", ranges = {plan.ranges}" if plan.ranges > 1 else ""
    result, add = _add_bias(what, x, sums, y) if what.bias else ("%sums", "")
    return compile_program(f"""func.func @weight_mm(
    {arguments})
    -> ({y} {{fp4.name = "y"}}) {{
  %sums = fp4.blockscaled_matmul %x, %packed{alpha} {{
      format = #fp4.format<{what.format}>, split_k = {plan.split_k} : i64,
      fp4.plan = #fp4.plan<tile_product, tile = [{tile}]{ranges}, resident = {plan.resident}>}}
      : ({types}) -> {sums}
{add}  return {result} : {y}
}}
""", target)


def _add_bias(what: Product, x: str, sums: str, y: str) -> tuple[str, str]:
    """y and what computes it; the compiler makes it a part of the product's kernel."""
    added = "%shift" if what.bias == "f32" else "%wide"
    widen = "" if what.bias == "f32" else f"    %wide = arith.extf %shift : {what.bias} to f32\n"
    return "%y", f"""  %zero = arith.constant 0 : index
  %rows = tensor.dim %x, %zero : {x}
  %empty = tensor.empty(%rows) : {y}
  %y = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (0, j)>,
                       affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%sums, %bias : {sums}, tensor<1x{what.rows}x{what.bias}>) outs(%empty : {y}) {{
  ^bb0(%sum: f32, %shift: {what.bias}, %out: {what.element}):
{widen}    %shifted = arith.addf %sum, {added} : f32
    %rounded = arith.truncf %shifted : f32 to {what.element}
    linalg.yield %rounded : {what.element}
  }} -> {y}
"""


def _types(rows: int, columns: int, format: str) -> tuple[str, str, str]:
    """Data, linear scales and tiles of weights."""
    facts = find_format(format)
    return (f"tensor<{rows}x{columns}x{facts.data}>",
            f"tensor<{rows}x{columns // facts.block}x{facts.scales}>",
            packed_type(rows, columns, format))


def packed_type(rows: int, columns: int, format: str) -> str:
    """The type of tiles of weights."""
    size = next(size for size, name in FORMATS.items() if name == format)
    return f"tensor<{rows // TILE[0]}x{columns // TILE[1]}x{size}xi8, #fp4.weight_layout<wgmma>>"


def compile_program(text: str, target: str) -> Compiled:
    return compile(text, target=target, name="fp4.torch")
