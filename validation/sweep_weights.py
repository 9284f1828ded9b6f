#!/usr/bin/env python3
"""Compiles GEMMs of 16-bit floats, e4m3 or fp4, and fp4 weights, runs them in the simulator and
checks every result.

  validation/sweep_weights.py                a covering subset for sm_90a: every pair of values of
                                             two parameters occurs
  validation/sweep_weights.py --plans=warps  the same of the GEMMs of mma.sync, for sm_120a
  validation/sweep_weights.py --plans=lanes  the same of the GEMMs of tcgen05, for sm_100a
  validation/sweep_weights.py --plans=six    the same of weights of 6 bits beside bf16, for sm_90a;
                                             six_warps for sm_120a, six_lanes for sm_100a
  validation/sweep_weights.py --plans=bytes  the same of weights with scales beside e4m3, for sm_90a
  validation/sweep_weights.py --plans=shares  the same of tiles that workers share, for sm_90a
  validation/sweep_weights.py --plans=dynamic  the same of prepacked weights of any N and K, for
                                             sm_90a; dynamic_warps for sm_120a, dynamic_lanes for
                                             sm_100a
  validation/sweep_weights.py --full         the cross product
  validation/sweep_weights.py --list         what would run

Weights are an argument with their scales, plain or packed by the program; K has one range or
several; alpha is none, one number, one for each row or one for each column. M is dynamic, but
static where tcgen05 has swapped operands, and of shared tiles. One library is compiled per program
and run by fp4-run for every M under every schedule of the simulator, with its strict hazard check.
Prints every failure with the command that repeats it, then "N passed, N failed".
"""
import collections
import sys

import recipes
import sweeping
from matmul_text import Side, matmul

M = [1, 8, 21, 65, 130, 300]
N = [128, 256, 200, 130]  # 200 and 130 end within a tile of prepacked weights
#: 320 and 384 end within a k tile, 768 and 1024 do not; 176 and 480 end within a tile of
#: prepacked weights.
K = [64, 320, 768, 384, 176, 480, 1024]
ELEMENTS = ["bf16", "f16", "f8E4M3FN", "f4E2M1FN"]  # the last with scales, beside prepacked weights for wgmma
FORMATS = [name for name, facts in recipes.FORMATS.items() if facts.is_packed]
SIX = [name for name, facts in recipes.FORMATS.items() if facts.element.startswith("f6")]
RESULTS = ["bf16", "f16", "f32"]
WEIGHTS = ["plain", "prepacked", "fast"]  # the last are prepacked with powers of rows, for fast accumulation
ALPHAS = ["none", "one", "rows", "columns"]
SPLITS = [1, 2, 3]
TILES = ["chosen", "8", "16", "32", "64", "128", "256", "8x256", "64x256", "128x256",  # rows x columns, of 128
         "24", "96", "152", "192", "200", "248", "24x256", "104x256", "24x192", "80x192", "104x192",  # of prepacked weights
         "8slices", "24slices",  # of 128 columns, with warpgroups for each of two or three k slices
         "128ahead", "256ahead"]  # of 128 columns with pre-dequantized weights
PROMOTED = ("24", "96", "24x256", "24x192", "80x192")  # beside e4m3 whose sums are promoted
THIRDS = ("24x192", "80x192", "104x192")  # of three warpgroups
UNEVEN = (*PROMOTED, "104x192", "152", "192", "200", "248", "104x256")
LANE_TILES = ["chosen", "16", "32", "64", "128", "256", "shallow", "four", "eight", "half",  # of floats
              "128x96", "128x256", "pair_128", "swap_16"]  # of e4m3: kind mxf8f6f4
ROLES = ("#pipe.role_plan<load warps {1} to {2} drives [tma], mma warps {0} to {1} drives [tensor], "
         "convert warps 4 to {0} drives [threads] auxiliary, epilogue warps 0 to 4 drives [threads]>")
SPECIAL_LANES = {"shallow": "tile = [64, 128, 128], stages = 1, accumulators = 1",
                 "four": f"tile = [64, 128, 128], roles = {ROLES.format(8, 9, 10)}",
                 "eight": f"tile = [32, 128, 128], roles = {ROLES.format(12, 13, 14)}",
                 "half": "tile = [32, 128, 64]",
                 "pair_128": "pair, tile = [256, 128, 128]", "swap_16": "route = <orientation = swapped>, tile = [128, 16, 128]"}
#: Of e4m3 beside weights with scales, which become bf16: rows by columns, or columns by rows.
BYTE_TILES = {"chosen": "", "128x128": "tile = [128, 128, 128]", "256x128": "tile = [256, 128, 128]",
              "128x256": "tile = [128, 256, 128]",
              "few": "route = <b = shared, orientation = swapped>, tile = [128, 32, 128]",
              "few_ahead": "route = <b = pre, orientation = swapped>, tile = [128, 32, 128]",
              "ahead": "route = <b = pre, orientation = swapped>"}
SCHEDULES = sweeping.schedules(2)

TILED = "#fp4.scale_layout<tiled_128x4>"
PACKED, ROWS_PACKED = "#fp4.weight_layout<wgmma>", "#fp4.weight_layout<wgmma_rows>"
FAST = "arithmetic = #fp4.matmul_arithmetic<fast_accumulation>"


def rhs(element, fmt, weights, n, k):
    """Arguments, lines that define the right side, and the operand that it is."""
    facts = recipes.FORMATS[fmt]
    data, scales = f"tensor<{n}x{k}x{facts.element}>", f"tensor<{n}x{k // facts.block}x{facts.scale}>"
    arguments = [f"%w: {data}", f"%s: {scales}"]
    if weights == "plain":
        tiled = f"{scales[:-1]}, {TILED}>"
        return (arguments, [f"  %t = fp4.swizzle_scales %s : {scales} -> {tiled}"],
                Side("%w", data, "%t", tiled, fmt))
    columns, tile = tile_of(element, fmt)
    packed = f"tensor<{-(-n // 128)}x{-(-k // columns)}x{tile}xi8, {ROWS_PACKED if weights == 'fast' else PACKED}>"
    line = (f"  %p = fp4.prepack %w scaled %s {{format = #fp4.format<{fmt}>}} "
            f": ({data}, {scales}) -> {packed}")
    return arguments, [line], Side("%p", packed)


def lhs_scales(fmt, m, k):
    """Lines that define the tiled scales of the left side, and their types before and after."""
    facts = recipes.FORMATS[fmt]
    scales = f"tensor<{m}x{k // facts.block}x{facts.scale}>"
    tiled = f"{scales[:-1]}, {TILED}>"
    return [f"  %tx = fp4.swizzle_scales %sx : {scales} -> {tiled}"], scales, tiled


def tile_of(element, fmt):
    """Columns and bytes of a tile of prepacked weights."""
    columns = 128 if element == "f8E4M3FN" else 64
    return columns, columns * 128 // 2 + columns * 128 // recipes.FORMATS[fmt].block


def shape_of(tile, weights, element, warps):
    """The tile, by rows, columns and depth: prepacked weights have several depths."""
    if tile.endswith("ahead"):
        return f"[128, {tile[:3]}, 128], route = <a = pre>"
    if tile.endswith("slices"):
        return f"[{tile.removesuffix('slices')}, 128, 256], sliced_k"
    rows, _, columns = tile.partition("x")
    if warps:
        return f"[{rows}, {columns or 128}, {64 if rows == '256' else 128}]"
    depth = 128 if weights == "plain" or rows in ("32", "192") or columns else 64 if rows == "256" else 256
    if element == "f8E4M3FN":
        depth = 128 if rows in ("192", "256") else 256
    return f"[{rows}, {columns or 128}, {depth}]"


def shared_tile(tile):
    """Rows and columns of a tile, as `stream_k` has them."""
    rows, _, columns = tile.partition("x")
    return f"{rows}, {columns or 128}"


def fields_of(tile, weights, element, plans):
    """Returns the fields of a plan; none if the compiler chooses it."""
    if tile == "chosen" or plans == "shares":
        return ""
    if plans == "bytes":
        return BYTE_TILES[tile]
    if "lanes" not in plans:
        return f"tile = {shape_of(tile, weights, element, 'warps' in plans)}"
    rows, _, columns = tile.partition("x")
    return SPECIAL_LANES.get(tile) or f"tile = [{rows}, {columns or 128}, 128]"


def program(element, fmt, result, weights, alpha, split, tile, n, k, m, plans):
    """`m` is a number of rows or '?'."""
    lhs, y = f"tensor<{m}x{k}x{element}>", f"tensor<{m}x{n}x{result}>"
    arguments, body, second = rhs(element, fmt, weights, n, k)
    first = Side("%x", lhs)
    if element == "f4E2M1FN":
        lines, scales, tiled = lhs_scales(fmt, m, k)
        arguments, body = [f"%sx: {scales}", *arguments], lines + body
        first = Side("%x", lhs, "%tx", tiled, fmt)
    factor = {"one": "tensor<f32>", "rows": f"tensor<{m}x1xf32>", "columns": f"tensor<1x{n}xf32>"}.get(alpha)
    if factor:
        arguments.append(f"%alpha: {factor}")
    given = {"alpha": "%alpha", "alpha_type": factor} if factor else {}
    fields = fields_of(tile, weights, element, plans)
    attributes = [FAST] * (weights == "fast") + [f"fp4.plan = #fp4.plan<tile_gemm, {fields}>"] * bool(fields)
    work = f"stream_k = [{split + 2}, {shared_tile(tile)}]" if plans == "shares" else f"split_k = {split}"
    body += [*matmul("%y", y, first, second, **given, work=(work,),
                     attributes=tuple(attributes)), f"  return %y : {y}"]
    return "\n".join([f"func.func @linear(%x: {lhs}, {', '.join(arguments)}) -> {y} {{", *body, "}", ""])


def dynamic_program(element, fmt, result, weights, alpha, _, tile, *, plans):
    """The program of prepacked weights of any N and K, which are an argument."""
    facts, (columns, size) = recipes.FORMATS[fmt], tile_of(element, fmt)
    lhs, y, packed = f"tensor<?x?x{element}>", f"tensor<?x?x{result}>", f"tensor<?x?x{size}xi8, {PACKED}>"
    arguments = [("%x", lhs, '"M", "K"'), ("%p", packed, f'"N/128", "K/{columns}", ""')]
    first = Side("%x", lhs)
    if element == "f4E2M1FN":
        tiled = f"tensor<?x?x{facts.scale}, {TILED}>"
        arguments.append(("%tx", tiled, f'"M", "K/{facts.block}"'))
        first = Side("%x", lhs, "%tx", tiled, fmt)
    factor = {"one": ("tensor<f32>", ""), "rows": ("tensor<?x1xf32>", '"M", ""'),
              "columns": ("tensor<1x?xf32>", '"", "N"')}.get(alpha)
    if factor:
        arguments.append(("%alpha", *factor))
    fields = fields_of(tile, weights, element, plans)
    body = matmul("%y", y, first, Side("%p", packed), **({"alpha": "%alpha", "alpha_type": factor[0]} if factor else {}),
                  attributes=(f"fp4.plan = #fp4.plan<tile_gemm, {fields}>",) * bool(fields))
    text = ", ".join(f"{name}: {kind}" + f" {{fp4.dims = [{dims}]}}" * bool(dims) for name, kind, dims in arguments)
    return "\n".join([f"func.func @linear({text}) -> {y} {{", *body, f"  return %y : {y}", "}", ""])


VALUES = [ELEMENTS, FORMATS, RESULTS, WEIGHTS, ALPHAS, SPLITS, TILES, N, K, M]


def exists_of_warps(case):
    """Beside e4m3 weights with scales have tiles of 16 rows at least; elsewhere few bytes."""
    element, fmt, _, weights, _, split, tile, n, k, _ = case
    if element == "f4E2M1FN" or weights == "fast" and element != "f8E4M3FN":
        return False
    if element == "f8E4M3FN" and weights != "plain":
        return (fmt == "mxfp4" and k % 32 == 0 and split <= -(-k // 256) and ("x" not in tile or n % 256 == 0)
                and tile in ("chosen", "8", "16", "32", "64", "128", "8x256", "64x256"))
    if element == "f8E4M3FN":
        return (weights == "plain" and fmt == "mxfp4" and split <= -(-k // 256) and k % 128 == 0
                and tile in ("chosen", "16", "32", "64", "128", "64x256"))
    fits = (tile not in (*UNEVEN, "128x256") and not tile.endswith(("ahead", "slices"))
            and (tile != "256" or weights == "prepacked"))
    return fits and exists(case)


def exists(case):
    element, fmt, _, weights, _, split, tile, n, k, _ = case
    exact = element != "f8E4M3FN" or fmt == "mxfp4"
    if weights == "fast" and (element != "f8E4M3FN" or tile.endswith("ahead")):
        return False
    if element == "f8E4M3FN" and (weights == "plain" or tile == "128x256" and weights != "fast"):
        return False
    if element == "f4E2M1FN" and weights == "plain":
        return False
    if tile in UNEVEN and (weights == "plain"
                           or element == "f8E4M3FN" and weights != "fast" and tile not in PROMOTED):
        return False
    if tile.endswith("ahead") and element != "f8E4M3FN":
        return False
    if tile in THIRDS and split > 1:
        return False
    if tile.endswith("slices") and (split == 1 or -(-k // 256) % split or weights == "plain" or split == 3 and tile[0] != "8"
                                    or element == "f8E4M3FN" and weights != "fast"):
        return False
    wide = "x" not in tile or tile in THIRDS or weights != "plain" and n % 256 == 0
    return exact and wide and k % recipes.FORMATS[fmt].block == 0 and split <= -(-k // 256)


def exists_of_lanes(case):
    """Some tiles are those of floats, and some those of e4m3, whose weights have scales. A role
    that is named converts prepacked weights with one warpgroup, and a k tile of them may be half as
    deep."""
    element, fmt, _, weights, _, split, tile, n, k, m = case
    if k % recipes.FORMATS[fmt].block or split > -(-k // 256) or element == "f4E2M1FN":
        return False
    if weights != "plain" and tile == "eight" or weights == "fast" and element != "f8E4M3FN":
        return False
    if element == "f8E4M3FN" and weights != "plain":
        return (fmt == "mxfp4" and (tile in ("chosen", "shallow", "four", "16", "32", "64", "128")
                                    or tile == "256" and weights == "fast"))
    if tile == "half" and weights == "plain":
        return False
    of_floats = tile.isdigit() or tile in ("shallow", "four", "eight", "half")
    if element == "f8E4M3FN":
        return not of_floats and fmt == "mxfp4" and k % 128 == 0 and (tile != "swap_16" or m <= 16)
    return (of_floats or tile == "chosen")


def exists_of_six(case):
    """Weights have scales, and no f16 beside them, which does not have their exponents."""
    element, _, _, weights, _, _, tile, *_ = case
    return element == "bf16" and weights == "plain" and (tile == "chosen" or tile.isdigit()) and exists(case)


def exists_of_six_warps(case):
    """Shared memory has two stages beside 64 rows."""
    return exists_of_six(case) and case[6] in ("chosen", "8", "16", "32", "64")


def exists_of_six_lanes(case):
    element, fmt, _, weights, _, split, tile, _, k, _ = case
    return (element == "bf16" and weights == "plain" and k % recipes.FORMATS[fmt].block == 0 and split <= -(-k // 256)
            and (tile == "chosen" or tile.isdigit() or tile in ("shallow", "four", "eight")))


def exists_of_shares(case):
    """Tiles have multiples of 16 rows, and weights of several workers several slices of K."""
    element, _, _, _, _, _, tile, _, k, _ = case
    return (k > 256 and tile in ("16", "32", "64", "128", "256", "64x256", "96", "192")
            and exists((*case[:5], 1, *case[6:])))


def exists_of_bytes(case):
    """Weights have scales; split-K has few rows, which are static."""
    element, fmt, _, weights, _, split, tile, n, k, m = case
    return ((element, fmt, weights, split) == ("f8E4M3FN", "mxfp4", "plain", 1) and k % 128 == 0
            and (not tile.startswith("few") or m <= 32) and (tile != "ahead" or m > 64))


def exists_of_dynamic(valid):
    """Cases of one program for any sizes: an alpha of each column says N, which is else whole
    tiles."""
    def exists_dynamic(case):
        element, _, _, weights, alpha, split, tile, n, k, _ = case
        return (valid(case) and weights == "prepacked" and split == 1 and n % 8 == 0 and (alpha == "columns" or n % 128 == 0)
                and (element != "f4E2M1FN" or k % 32 == 0) and "x" not in tile and not tile.endswith(("ahead", "slices")))
    return exists_dynamic


def rows_of(plans, case):
    """M in the program: dynamic where it can be."""
    *_, tile, _, _, m = case
    return m if tile == "swap_16" or plans == "shares" or plans == "bytes" and tile != "chosen" else "?"


PLANS = {"wgmma": (exists, "sm_90a", TILES, FORMATS), "warps": (exists_of_warps, "sm_120a", TILES, FORMATS),
         "lanes": (exists_of_lanes, "sm_100a", LANE_TILES, FORMATS), "six": (exists_of_six, "sm_90a", TILES, SIX),
         "six_warps": (exists_of_six_warps, "sm_120a", TILES, SIX), "six_lanes": (exists_of_six_lanes, "sm_100a", LANE_TILES, SIX),
         "shares": (exists_of_shares, "sm_90a", TILES, FORMATS),
         "bytes": (exists_of_bytes, "sm_90a", [*BYTE_TILES], FORMATS),
         "dynamic": (exists_of_dynamic(exists), "sm_90a", TILES, FORMATS),
         "dynamic_warps": (exists_of_dynamic(exists_of_warps), "sm_120a", TILES, FORMATS),
         "dynamic_lanes": (exists_of_dynamic(exists_of_lanes), "sm_100a", LANE_TILES, FORMATS)}


def grouped(plans, cases):
    """{what a program depends on: the options of its runs}."""
    groups = collections.defaultdict(list)
    for case in cases:
        *key, n, k, m = case
        rows = rows_of(plans, case)
        if plans.startswith("dynamic"):
            groups[tuple(key)].append([f"--dim={name}={size}" for name, size in zip("MNK", (m, n, k), strict=True)])
        else:
            groups[(*key, n, k, rows)].append([f"--shape={m}"] if rows == "?" else [])
    return groups


def has_ragged_tile(key, run):
    """True where prepacked weights that are an argument end within a tile. Random ones have no
    zeros there, and powers that overflow are no numbers times the zeros of x."""
    columns, _ = tile_of(*key[:2])
    return int(run[-1].removeprefix("--dim=K=")) % columns != 0


def main():
    parser = sweeping.product_parser(__doc__)
    parser.add_argument("--plans", choices=PLANS, default="wgmma")
    options = parser.parse_args()
    valid, target, tiles, formats = PLANS[options.plans]
    values = [tiles if value is TILES else formats if value is FORMATS else value for value in VALUES]
    cases = sweeping.cases_of(options.full, values, valid)
    groups, write = grouped(options.plans, cases), program
    if options.plans.startswith("dynamic"):
        write = dynamic_program
    for key, runs in groups.items():
        if {"mxfp4", "prepacked"} < set(key) and "f8E4M3FN" not in key:
            ragged = [run for run in runs if write is dynamic_program and has_ragged_tile(key, run)]
            groups[key] = sweeping.with_powers([run for run in runs if run not in ragged]) + ragged
    programs = [sweeping.Program(sweeping.file_name(*key), write(*key, plans=options.plans), [f"--target={target}"], runs)
                for key, runs in groups.items()]
    return sweeping.run_gemms(options, programs, SCHEDULES)


if __name__ == "__main__":
    sys.exit(main())
