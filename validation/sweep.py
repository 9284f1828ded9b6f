#!/usr/bin/env python3
"""Compiles GEMMs of many shapes, runs them in the simulator and checks every result.

  validation/sweep.py                 a covering subset: every pair of values of two parameters
                                      occurs
  validation/sweep.py --full          also the cross product of shapes, formats, result types and
                                      plans
  validation/sweep.py --plans=others  pairs, clusters and other plans in place of tiles of every
                                      width
  validation/sweep.py --plans=half_pairs  pairs with 128 rows
  validation/sweep.py --plans=stores  results that leave through shared memory and TMA stores
  validation/sweep.py --plans=converted  GEMMs of converted operands, for sm_90a
  validation/sweep.py --plans=swapped    GEMMs with the rhs as operand A
  validation/sweep.py --plans=few        the same of converted operands, for sm_90a
  validation/sweep.py --plans=warps      GEMMs of mma.sync, for sm_120a
  validation/sweep.py --plans=k96        GEMMs by instructions of K = 96, for sm_103a
  validation/sweep.py --plans=double     GEMMs by instructions of K = 128, for sm_107a
  validation/sweep.py --list          what would run

A program is a linear layer from bf16 operands, or a GEMM of operands that are already quantized
(then the host repacks rows whose pitch TMA cannot take). In a layer of NVFP4 the rows of one
operand may have amaxes of their own, "rows" of the activations and "columns" of the weights, so
that rows or columns of the result have an alpha each. M is dynamic or static; its plan is the one
that fp4-plan-kernels chooses, or one of several others. One library is compiled per program and run
by fp4-run for every M under every schedule of the simulator, with its strict hazard check, with
Gaussian inputs and with inputs whose sums are exact. Prints every failure with the command that
repeats it, then "N passed, N failed".
"""
import collections
import itertools
import sys

import recipes
import sweeping
import tables
from matmul_text import Side, matmul

M = [1, 127, 128, 129, 300]
FEW = [1, 7, 8, 16, 33, 64, 150]  # rows of swapped GEMMs
N = [8, 64, 200, 384]
K = [64, 256, 272, 288, 1024]  # 272 and 288 end a step of 64 early, in NVFP4 and in both formats
FORMATS = [name for name, facts in recipes.FORMATS.items() if facts.is_packed]
RECIPE = recipes.swept()
RESULTS = ["bf16", "f16", "f32", "f8E4M3FN"]
OPERANDS = ["bf16", "fp4", "rows", "columns"]
ROWS = ["dynamic", "static"]
# Plans of GEMMs by name: what differs from the plan that fp4-plan-kernels would choose.
COLUMNS = (64, 96, 128, 192, 256)
CLUSTERS = ((2, 2), (4, 1), (4, 2), (1, 4), (2, 4))
TILES = {"chosen": "", **{str(n): f"tile = [128, {n}, 256]" for n in COLUMNS}}
OTHERS = {**{f"pair_{n}": f"pair, tile = [256, {n}, 256]" for n in COLUMNS},
          **{f"pair_{n}_deep": f"pair, tile = [256, {n}, 512]" for n in COLUMNS},
          **{f"{n}_deep": f"tile = [128, {n}, 512]" for n in COLUMNS},
          "deepest": "tile = [128, 64, 1024]",
          **{f"{m}x{n}": f"cluster = [{m}, {n}]" for m, n in CLUSTERS},
          **{f"pair_{m}x{n}": f"pair, cluster = [{m}, {n}]" for m, n in CLUSTERS if m > 1},
          "1x2_256": "cluster = [1, 2], tile = [128, 256, 256]",
          "shallow": "tile = [128, 64, 256], stages = 1, accumulators = 1",
          **sweeping.scheduled(),
          **{f"taken_over_{word}": f"schedule = #pipe.cluster_launch<{raster}>"
             for word, raster in tables.rasters().items()},
          "taken_over_pair": "pair, tile = [256, 64, 256], schedule = #pipe.cluster_launch<along_n depth 2>",
          "taken_over_2x2": "cluster = [2, 2], tile = [128, 64, 256], "
                            "schedule = #pipe.cluster_launch<panels<2> depth 1>"}
HALF_PAIRS = {"half_pair": "pair, tile = [128, 256, 256]",
              **{f"half_pair_{n}": f"pair, tile = [128, {n}, 256]" for n in (64, 128, 192)},
              "half_pair_128_deep": "pair, tile = [128, 128, 512]",
              "half_pair_192_tma": "store = tma, pair, tile = [128, 192, 256]",
              "half_pair_64_4x2": "pair, cluster = [4, 2], tile = [128, 64, 256]",
              "half_pair_deep": "pair, tile = [128, 256, 512]",
              **{f"half_pair_{m}x{n}": f"pair, cluster = [{m}, {n}], tile = [128, 256, 256]"
                 for m, n in CLUSTERS if m > 1},
              "half_pair_direct": "store = direct, pair, tile = [128, 256, 256]",
              "half_pair_tma": "store = tma, pair, tile = [128, 256, 256]",
              "half_pair_shallow": "pair, tile = [128, 256, 256], stages = 1, accumulators = 1",
              **sweeping.scheduled("half_pair_", "pair, tile = [128, 256, 256], "),
              "half_pair_taken_over": "pair, tile = [128, 256, 256], "
                                      "schedule = #pipe.cluster_launch<along_n depth 2>"}
STORES = {"tma": "store = tma",
          **{f"tma_{n}": f"store = tma, tile = [128, {n}, 256]" for n in (64, 96, 256)},
          **{f"direct_{n}": f"store = direct, tile = [128, {n}, 256]" for n in (192, 256)},
          "tma_pair": "store = tma, pair, tile = [256, 192, 256]",
          "tma_pair_256": "store = tma, pair, tile = [256, 256, 256]",
          "direct_pair_256": "store = direct, pair, tile = [256, 256, 256]",
          "tma_2x2": "store = tma, cluster = [2, 2]"}
CONVERTED = {"converted": "", "converted_shallow": "stages = 1",
             "converted_tall": "tile = [256, 128, 128]", "converted_wide": "tile = [128, 256, 128]",
             **sweeping.scheduled("converted_"),
             "converted_ahead": "route = <orientation = swapped>, tile = [128, 128, 128]",
             "converted_ahead_wide": "route = <orientation = swapped>, tile = [256, 128, 128], stages = 2"}
SWAPPED = {"swap": "route = <orientation = swapped>", "swap_32": "route = <orientation = swapped>, tile = [128, 32, 256]",
           "swap_deep": "route = <orientation = swapped>, tile = [128, 64, 512]",
           "swap_shallow": "route = <orientation = swapped>, tile = [128, 64, 256], stages = 1, accumulators = 1"}
CONVERTED_FEW = {"few": "route = <orientation = swapped>", "few_64": "route = <orientation = swapped>, tile = [128, 64, 128]",
                 "few_shallow": "route = <orientation = swapped>, stages = 1",
                 "few_ahead": "route = <orientation = swapped>, roles = #pipe.role_plan<load warps 8 to 9 drives [tma], "
                              "math warps 0 to 8 drives [tensor, threads]>"}
WARPS = {"warps": "", "warps_shallow": "stages = 1", "warps_deep": "tile = [64, 128, 256]",
         **{f"warps_{m}x{n}": f"tile = [{m}, {n}, 128]"
            for m, n in ((16, 64), (32, 128), (64, 64), (128, 64), (128, 128), (64, 256))},
         **sweeping.scheduled("warps_")}
LONG = {"k96": "", **{f"k96_{n}": f"tile = [256, {n}, 768]" for n in (64, 128, 192, 256)},
        "k96_tma": "store = tma, tile = [256, 128, 768]", "k96_2x2": "cluster = [2, 2]",
        "k96_4x1": "cluster = [4, 1]",
        **{f"k96_256_{m}x{n}": f"cluster = [{m}, {n}], fallback = [2, 1], tile = [256, 256, 768]"
           for m, n in ((2, 2), (4, 2))},
        "k96_256_tma": "store = tma, tile = [256, 256, 768]",
        "k96_256_one": "tile = [256, 256, 768], accumulators = 1",
        "k96_shallow": "tile = [256, 64, 768], stages = 1, accumulators = 1"}
DOUBLE = {"double": "", **{f"double_{n}": f"tile = [256, {n}, 256]" for n in (64, 128, 192, 256)},
          "double_tma": "store = tma, tile = [256, 128, 256]", "double_2x2": "cluster = [2, 2]",
          "double_shallow": "tile = [256, 64, 256], stages = 1, accumulators = 1"}
PLANS = {"tiles": TILES, "others": OTHERS, "half_pairs": HALF_PAIRS, "stores": STORES, "converted": CONVERTED,
         "swapped": SWAPPED, "few": CONVERTED_FEW, "warps": WARPS, "k96": LONG, "double": DOUBLE}
TARGETS = {**dict.fromkeys({**CONVERTED, **CONVERTED_FEW}, "sm_90a"),
           **dict.fromkeys(WARPS, "sm_120a"), **dict.fromkeys(LONG, "sm_103a"), **dict.fromkeys(DOUBLE, "sm_107a")}
SCHEDULES = sweeping.schedules(3)

LAYOUT = "#fp4.scale_layout<tiled_128x4>"


def types(fmt, rows, k):
    """Types of a matrix in bf16, of its fp4 data and of its scales."""
    facts = recipes.FORMATS[fmt]
    matrix = f"tensor<{rows}x{k}x"
    return matrix + "bf16>", matrix + "f4E2M1FN>", f"{rows}x{k // facts.block}x{facts.scale}"


def quantization(fmt, name, rows, k, per_row):
    """%<name> in bf16 to %q<name> and scales %s<name>."""
    bf16, data, scales = types(fmt, rows, k)
    recipe, amax, amax_type, lines = RECIPE[fmt], "", "", []
    kind, attribute = (f"tensor<{rows}xf32>", ", per_row") if per_row else ("tensor<f32>", "")
    if not recipes.FORMATS[fmt].is_mx:
        amax, amax_type = f" amax %a{name}", f", {kind}"
        lines = [f"  %a{name} = fp4.amax %{name} {{{attribute[2:]}}} : {bf16} -> {kind}"]
    return lines + [
        f"  %q{name}, %s{name} = fp4.quantize %{name}{amax}"
        f" {{format = #fp4.format<{fmt}>, recipe = #fp4.recipe<{recipe}>{attribute}}}",
        f"    : ({bf16}{amax_type}) -> ({data}, tensor<{scales}>)"]


def alpha_of(operands, m, n):
    """The line that defines %alpha, and its type."""
    lhs = f"tensor<{m}xf32>" if operands == "rows" else "tensor<f32>"
    rhs = f"tensor<{n}xf32>" if operands == "columns" else "tensor<f32>"
    alpha = {"rows": f"tensor<{m}x1xf32>", "columns": f"tensor<1x{n}xf32>"}.get(operands, lhs)
    return f"  %alpha = fp4.matmul_alpha %ax, %aw : {lhs}, {rhs} -> {alpha}", alpha


def program(fmt, result, operands, plan, m, n, k):
    matrices = (("x", m), ("w", n))
    arguments, body, sides = [], [], []
    for name, rows in matrices:
        bf16, data, scales = types(fmt, rows, k)
        if operands != "fp4":
            arguments.append(f"%{name}: {bf16}")
            body += quantization(fmt, name, rows, k,
                                 operands == {"x": "rows", "w": "columns"}[name])
        else:
            arguments += [f"%q{name}: {data}", f"%s{name}: tensor<{scales}>"]
        body.append(f"  %t{name} = fp4.swizzle_scales %s{name} : tensor<{scales}>"
                    f" -> tensor<{scales}, {LAYOUT}>")
        sides.append(Side(f"%q{name}", data, f"%t{name}", f"tensor<{scales}, {LAYOUT}>", fmt))
    alpha = {}
    if not recipes.FORMATS[fmt].is_mx and operands != "fp4":
        line, kind = alpha_of(operands, m, n)
        body.append(line)
        alpha = {"alpha": "%alpha", "alpha_type": kind}
    y = f"tensor<{m}x{n}x{result}>"
    fields = {name: text for plans in PLANS.values() for name, text in plans.items()}[plan]
    written = [f"fp4.plan = #fp4.plan<tile_gemm, {fields}>"] * bool(fields)
    for long, arithmetic in ((LONG, "tensor_core_k96"), (DOUBLE, "tensor_core_double_k")):
        if plan in long:
            written.append(f"arithmetic = #fp4.matmul_arithmetic<{arithmetic}>")
    body += [*matmul("%y", y, *sides, **alpha, attributes=tuple(written)), f"  return %y : {y}"]
    return "\n".join([f"func.func @linear({', '.join(arguments)}) -> {y} {{", *body, "}", ""])


def parameters(plans):
    """Values of format, result, operands, rows, plan, N, K and M."""
    rows = FEW if plans is SWAPPED else FEW[:-1] if plans is CONVERTED_FEW else M
    depths = K + [800, 2400] if plans is LONG else K  # within the second tile, and a ring of two wraps
    columns = N + [512] if plans is CONVERTED else N  # tiles of 256 columns that are all whole
    return [FORMATS, RESULTS, OPERANDS, ROWS, list(plans), columns, depths, rows]


def exists(case):
    """272 is no multiple of mxfp4's block, and only whole k tiles are pre-dequantized."""
    facts = recipes.FORMATS[case[0]]
    if "tma" in case[4] and case[5] * {"f32": 4, "f8E4M3FN": 1}.get(case[1], 2) % 16:
        return False
    if case[4] in {**SWAPPED, **CONVERTED_FEW} and case[3] == "dynamic":
        return False
    if "ahead" in case[4] and case[6] % 128:
        return False
    if case[4] == "converted_ahead_wide" and case[5] % 256:
        return False
    return not facts.is_mx or (case[6] % facts.block == 0 and case[2] in ("bf16", "fp4"))


def all_cases(plans=TILES):
    return filter(exists, itertools.product(*parameters(plans)))


def subset(plans):
    """Every pair of values occurs; of many plans in cases that were drawn."""
    if len(plans) <= 16:
        return sweeping.covering(all_cases(plans))
    return sweeping.sampled_covering(parameters(plans), exists, lambda i, j: True)


def in_full(case):
    """Dynamic layers from bf16: every result type with the plan that is chosen, every plan with
    bf16."""
    _, result, operands, rows, plan, *_ = case
    return (operands, rows) == ("bf16", "dynamic") and (
        plan in ("chosen", "converted", "warps", "k96", "double") or result == "bf16")


def libraries(cases, distributions):
    """A program for all M of a case that differs in nothing else."""
    groups = collections.defaultdict(list)
    for fmt, result, operands, rows, plan, n, k, m in cases:
        key = (fmt, result, operands, plan, "?" if rows == "dynamic" else m, n, k)
        groups[key] += [[f"--shape={m}", f"--dist={distribution}"] for distribution in distributions]
    for key, runs in groups.items():
        yield sweeping.Program(sweeping.file_name(*key), program(*key),
                               [f"--target={TARGETS.get(key[3], 'sm_100a')}"], runs)


def main():
    parser = sweeping.product_parser(__doc__)
    parser.add_argument("--dist", default="gaussian,exact", help="distributions of the inputs")
    parser.add_argument("--plans", default="tiles", choices=PLANS,
                        help="tiles of all widths; or pairs, clusters and other plans; or results "
                             "stored by TMA; or GEMMs of converted operands, of swapped ones, of mma.sync, "
                             "or of K = 96")
    options = parser.parse_args()
    plans = PLANS[options.plans]
    cases = subset(plans)
    if options.full:
        cases += filter(in_full, all_cases(plans))
    return sweeping.run_gemms(options, list(libraries(dict.fromkeys(cases), options.dist.split(","))), SCHEDULES)


if __name__ == "__main__":
    sys.exit(main())
