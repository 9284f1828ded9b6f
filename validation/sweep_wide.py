#!/usr/bin/env python3
"""Compiles GEMMs of elements of 8 and 6 bits, and of these and 4, of many shapes, runs them in the
simulator and checks every result.

  validation/sweep_wide.py         a covering subset: every pair of values of two parameters occurs
  validation/sweep_wide.py --full  the whole cross product
  validation/sweep_wide.py --list  what would run
  validation/sweep_wide.py --plans=warps  GEMMs of mma.sync, for sm_120a
  validation/sweep_wide.py --plans=wgmma  GEMMs whose operands are converted, for sm_90a

Operands are quantized by the program or are its arguments. M is dynamic or static; plans are the
one that fp4-plan-kernels chooses and others. One library is compiled per program and run by fp4-run
for every M under several schedules of the simulator, with its strict hazard check. Prints every
failure with the command that repeats it, then "N passed, N failed".
"""
import collections
import sys

import recipes
import sweeping
from matmul_text import Side, matmul

M = [1, 64, 65, 130, 257]
N = [8, 72, 136, 264]
K = [32, 128, 288, 640]  # 32 and 288 end within a tile of 128
FORMATS = [name for name, facts in recipes.FORMATS.items() if facts.is_mx]
RECIPES = {name: recipes.swept(i)[name] for i, name in enumerate(FORMATS)}
RESULTS = ["bf16", "f16", "f32", "f8E4M3FN"]
BYTES = {"f32": 4, "f8E4M3FN": 1}  # of an element; others have 2
OPERANDS = ["bf16", "codes"]
EPILOGUES = ["none", "alpha", "rows", "columns", "relu"]
ROWS = ["dynamic", "static"]
TCGEN05 = {"chosen": "", **{str(n): f"tile = [128, {n}, 128]" for n in (64, 96, 128, 192, 256)},
           **{f"pair_{n}": f"pair, tile = [256, {n}, 128]" for n in (64, 128, 192, 256)},
           "deep": "tile = [128, 96, 256]", "pair_deep": "pair, tile = [256, 128, 256]",
           "2x2": "cluster = [2, 2]", "pair_2x2": "pair, cluster = [2, 2]",
           "tma": "store = tma, tile = [128, 128, 128]", "swap": "route = <orientation = swapped>, tile = [128, 32, 128]",
           "shallow": "tile = [128, 64, 128], stages = 1, accumulators = 1"}
WARPS = {"warps": "", "warps_shallow": "stages = 1",
         **{f"warps_{m}x{n}": f"tile = [{m}, {n}, 128]"
            for m, n in ((16, 64), (32, 128), (64, 64), (128, 64), (128, 128), (64, 256))}}
WGMMA = {"converted": "", **{f"converted_{m}x{n}": f"tile = [{m}, {n}, 128]" for m, n in ((128, 128), (128, 256), (256, 128))},
         "converted_few": "route = <b = shared, orientation = swapped>, tile = [128, 64, 128]",
         "converted_few_ahead": "route = <b = pre, orientation = swapped>, tile = [128, 64, 128]",
         "converted_ahead": "route = <b = pre, orientation = swapped>, tile = [128, 128, 128]"}
PLANS = {"tcgen05": TCGEN05, "warps": WARPS, "wgmma": WGMMA}
TARGETS = {"tcgen05": "sm_100a", "warps": "sm_120a", "wgmma": "sm_90a"}
SCHEDULES = sweeping.schedules(1)
LAYOUT = "#fp4.scale_layout<tiled_128x4>"


def alpha_type(epilogue, m, n):
    return {"alpha": "tensor<f32>", "rows": f"tensor<{m}x1xf32>",
            "columns": f"tensor<1x{n}xf32>"}.get(epilogue)


def operand(name, fmt, operands, rows, k):
    """Arguments, lines that define %<name> and %t<name>, and the operand that they are."""
    facts = recipes.FORMATS[fmt]
    data = f"tensor<{rows}x{k}x{facts.element}>"
    scales = f"tensor<{rows}x{k // facts.block}x{facts.scale}"
    tiled = f"{scales}, {LAYOUT}>"
    swizzle = f"  %t{name} = fp4.swizzle_scales %s{name} : {scales}> -> {tiled}"
    if operands == "codes":
        return [f"%{name}: {data}", f"%s{name}: {scales}>"], [swizzle], Side(f"%{name}", data, f"%t{name}", tiled, fmt)
    quantize = (f"  %{name}, %s{name} = fp4.quantize %x{name} {{format = #fp4.format<{fmt}>,"
                f" recipe = #fp4.recipe<{RECIPES[fmt]}>}} : (tensor<{rows}x{k}xbf16>)"
                f" -> ({data}, {scales}>)")
    return [f"%x{name}: tensor<{rows}x{k}xbf16>"], [quantize, swizzle], Side(f"%{name}", data, f"%t{name}", tiled, fmt)


def program(lhs, rhs, result, operands, epilogue, plan, m, n, k):
    arguments, body, sides = [], [], []
    for more, lines, side in (operand("a", lhs, operands, m, k), operand("b", rhs, operands, n, k)):
        arguments, body, sides = arguments + more, body + lines, sides + [side]
    alpha = alpha_type(epilogue, m, n)
    if alpha:
        arguments.append(f"%alpha: {alpha}")
    factor = {"alpha": "%alpha", "alpha_type": alpha} if alpha else {}
    y = f"tensor<{m}x{n}x{result}>"
    attributes = []
    if epilogue == "relu":
        attributes.append("epilogue = #fp4.epilogue<relu>")
    if fields := {**TCGEN05, **WARPS, **WGMMA}[plan]:
        attributes.append(f"fp4.plan = #fp4.plan<tile_gemm, {fields}>")
    body += [*matmul("%y", y, *sides, **factor, attributes=tuple(attributes)), f"  return %y : {y}"]
    return "\n".join([f"func.func @product({', '.join(arguments)}) -> {y} {{", *body, "}", ""])


def exists(case):
    """Beside 6 and 8 bits, elements of 4 come 128 at a time, and those of 6 where TMA spreads
    them."""
    lhs, rhs, result, _, _, rows, plan, n, k, m = case
    sides = [recipes.FORMATS[name] for name in (lhs, rhs)]
    packed = sum(facts.is_packed for facts in sides)
    if packed == 2 or packed and k % 128 or any(k % facts.block for facts in sides):
        return False
    if plan in TCGEN05 and k % 128 and any(facts.element.startswith("f6") for facts in sides):
        return False
    if plan == "swap" and rows == "dynamic":
        return False
    if plan.endswith("ahead") and k % 128:
        return False
    if "few" in plan:
        return rows == "static" and case[-1] <= 64
    if plan == "converted_ahead":
        return rows == "dynamic" or case[-1] > 64
    return plan != "tma" or n * BYTES.get(result, 2) % 16 == 0


def main():
    parser = sweeping.product_parser(__doc__)
    parser.add_argument("--plans", default="tcgen05", choices=PLANS)
    options = parser.parse_args()
    values = [FORMATS, FORMATS, RESULTS, OPERANDS, EPILOGUES, ROWS, list(PLANS[options.plans]), N, K, M]
    cases = sweeping.cases_of(options.full, values, exists)
    groups = collections.defaultdict(list)
    for lhs, rhs, result, operands, epilogue, rows, plan, n, k, m in cases:
        key = (lhs, rhs, result, operands, epilogue, plan, "?" if rows == "dynamic" else m, n, k)
        groups[key].append([f"--shape={m}"])
    programs = [sweeping.Program(sweeping.file_name(*key), program(*key), [f"--target={TARGETS[options.plans]}"], runs)
                for key, runs in groups.items()]
    return sweeping.run_gemms(options, programs, SCHEDULES)


if __name__ == "__main__":
    sys.exit(main())
