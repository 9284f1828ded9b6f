#!/usr/bin/env python3
"""Compiles GEMMs whose epilogues take two GEMMs or quantize, runs them in the simulator and checks.

  validation/sweep_results.py          a covering subset: every pair of values of two parameters
                                       occurs
  validation/sweep_results.py --full   the cross product
  validation/sweep_results.py --list   what would run
  validation/sweep_results.py --plans=converted, swapped, warps   GEMMs of wgmma for sm_90a, as they
                                  are and with swapped operands, and of mma.sync for sm_120a, whose
                                  sums are in registers
  validation/sweep_results.py --plans=weights, weights_warps, weights_lanes   activations without
                                  scales beside weights, by wgmma, by mma.sync and by tcgen05
  validation/sweep_results.py --plans=promoted, promoted_warps, promoted_lanes   FP8 with f32
                                  scales, whose sums threads promote, of wgmma, of mma.sync and of
                                  tcgen05

A program is one GEMM, or two of one lhs, then an elementwise operation (a sum with a bias, or
SwiGLU), and what is derived of its elements: codes and scales of rows, of columns or of both, in
the same or another format, from elements in bf16 or f32, and an amax; with the elements as a
result besides, or not. The reference executes the operations of the program one by one, and every
result must be equal bit by bit. Each library runs under every schedule of the simulator with its
strict hazard check. Programs whose operations did not become one kernel count as failed.
"""
import subprocess
import sys

import recipes
import sweeping
from matmul_text import Side, matmul
from sweep_groups import prepacked

FORMATS = [name for name, facts in recipes.FORMATS.items() if facts.is_packed]
#: Weights beside activations without scales: their format, the element of these, and their place.
WEIGHTS = ["nvfp4 bf16 prepacked", "mxfp4 f16 prepacked", "nvfp4 f16 plain", "mxfp4 bf16 plain", "mxfp4 f8E4M3FN plain"]
HOPPER_WEIGHTS = [*WEIGHTS, "mxfp6_e2m3 bf16 plain", "mxfp4 f8E4M3FN prepacked", "mxfp4 f8E4M3FN fast",
                  "nvfp4 f4E2M1FN prepacked", "mxfp4 f4E2M1FN prepacked"]
FAST = ("arithmetic = #fp4.matmul_arithmetic<fast_accumulation>",)
RECIPE = recipes.swept()
INPUT = ["one", "dual"]
RESULT = ["none", *recipes.FORMATS]  # the format of the codes
OUTPUTS = ["rowwise", "columnwise", "both"]
SCALES = ["tiled", "linear"]
AMAX = ["", "amax"]
ELEMENTS = ["kept", "gone"]
TYPE = ["bf16", "f32"]
ROWS = ["32", "128", "160", "?1", "?130"]  # dynamic ones with the number that runs
N = [64, 192, 256, 288]
K = [64, 320]
PLANS = {"chosen": "", "128": "tile = [128, 128, 256]", "64": "tile = [128, 64, 256]",
         "256": "tile = [128, 256, 256]", "pair": "pair, tile = [256, 128, 256]",
         "eight": "tile = [128, 128, 256], epilogue_warps = 8",
         "2x2": "cluster = [2, 2], tile = [128, 128, 256]",
         "pair_2x2": "pair, cluster = [2, 2], tile = [256, 128, 256]",
         "half_pair": "pair, tile = [128, 256, 256]", "half_pair_128": "pair, tile = [128, 128, 256]"}
KINDS = {
    "tcgen05": ("sm_100a", PLANS),
    "converted": ("sm_90a", {"chosen": "", "tall": "tile = [256, 128, 128]", "256": "tile = [128, 256, 128]",
                             **sweeping.scheduled(), "shallow": "stages = 1"}),
    "warps": ("sm_120a", {"chosen": "", "64": "tile = [128, 64, 128]", "128": "tile = [128, 128, 128]",
                          "deep": "tile = [128, 64, 256]", "few": "tile = [64, 64, 128]",
                          "shallow": "stages = 1"})}
# Operands of sm_90a are swapped for small M, or where the lhs is pre-dequantized.
KINDS["swapped"] = ("sm_90a", {"chosen": "", "ahead": "route = <orientation = swapped>, tile = [128, 128, 128]",
                               "wide": "route = <orientation = swapped>, tile = [256, 128, 128]", "few": "route = <orientation = swapped>, tile = [128, 64, 128]",
                               "shallow": "route = <orientation = swapped>, tile = [128, 128, 128], stages = 1"})
#: Tiles of rows by columns, where weights are 64 rows of an instruction.
BESIDE_FLOATS = {"chosen": "", "8": "tile = [8, 128, 128]", "32": "tile = [32, 128, 128]", "64": "tile = [64, 128, 128]",
                 "128": "tile = [128, 128, 128]", "shallow": "stages = 1"}
KINDS["weights"] = ("sm_90a", BESIDE_FLOATS | {"256": "tile = [256, 128, 64]", "wide": "tile = [64, 256, 128]"})
KINDS["weights_warps"] = ("sm_120a", BESIDE_FLOATS)
KINDS["weights_lanes"] = ("sm_100a", {"chosen": "", "32": "tile = [32, 128, 128]", "64": "tile = [64, 128, 64]",
                                      "128": "tile = [128, 128, 128]", "256": "tile = [256, 128, 128]",
                                      "shallow": "stages = 1"})
BESIDE = ("weights", "weights_warps", "weights_lanes")
# Sums of FP8 with f32 scales.
KINDS["promoted_lanes"] = ("sm_100a", {"chosen": "", "32": "tile = [128, 32, 128]", "64": "tile = [128, 64, 128]",
                                       "128": "tile = [128, 128, 128]", "256": "tile = [128, 256, 128]",
                                       "pair": "tile = [256, 128, 128], pair", "shallow": "stages = 1, accumulators = 1",
                                       **sweeping.scheduled()})
KINDS["promoted"] = ("sm_90a", {"chosen": "", "64": "tile = [64, 64, 128]", "56": "tile = [128, 56, 128]",
                                "128": "tile = [128, 128, 128]", "half": "tile = [128, 64, 128]",
                                "tall": "tile = [256, 128, 128]", "stored": "tile = [128, 96, 128], store = tma",
                                "shallow": "stages = 1", **sweeping.scheduled()})
KINDS["promoted_warps"] = ("sm_120a", {"chosen": "", "32": "tile = [64, 32, 128]", "128": "tile = [64, 128, 128]",
                                       "few": "tile = [128, 32, 128]", "64": "tile = [128, 64, 128]",
                                       "shallow": "stages = 1"})
PROMOTED = ("promoted", "promoted_warps", "promoted_lanes")
ROWS_OF = {"swapped": ["32", "64", "128", "160", "?1", "?130"]} | dict.fromkeys(BESIDE, ["1", "32", "160", "?1", "?130"])
COLUMNS_OF = {"swapped": [64, 224, 256]} | dict.fromkeys(BESIDE, [64, 224, 256])
DEPTHS_OF = {"swapped": [256]} | dict.fromkeys(BESIDE, [192, 256, 320]) | dict.fromkeys(PROMOTED, [64, 320, 512])
OPERANDS_OF = dict.fromkeys(BESIDE, WEIGHTS) | {"weights": HOPPER_WEIGHTS} | dict.fromkeys(PROMOTED, ["fp8_block128"])
OPERANDS_OF["weights_lanes"] = [*WEIGHTS, "mxfp4 f8E4M3FN prepacked", "mxfp4 f8E4M3FN fast"]
SCHEDULES = sweeping.schedules(2)
LAYOUT = "#fp4.scale_layout<tiled_128x4>"


def matrix(rows, columns, element, layout=""):
    return f"tensor<{rows}x{columns}x{element}{layout and ', ' + layout}>"


def operand(name, fmt, rows, k):
    """Arguments with codes and scales of a matrix; the operand that it is."""
    facts = recipes.FORMATS[fmt]
    data = matrix(rows, k, facts.element)
    dims = ' {fp4.dims = ["M", ""]}' if rows == "?" else ""
    if facts.has_f32_scales:  # weights have one for 128 rows
        bands = rows if name == "x" else -(-rows // facts.block)
        scales = matrix(bands, -(-k // facts.block), facts.scale)
        return [f"%q{name}: {data}{dims}", f"%s{name}: {scales}{dims}"], [], Side(f"%q{name}", data, f"%s{name}", scales, fmt)
    scales = matrix(rows, k // facts.block, facts.scale)
    tiled = matrix(rows, k // facts.block, facts.scale, LAYOUT)
    return ([f"%q{name}: {data}{dims}", f"%s{name}: {scales}{dims}"],
            [f"  %t{name} = fp4.swizzle_scales %s{name} : {scales} -> {tiled}"],
            Side(f"%q{name}", data, f"%t{name}", tiled, fmt))


def sides_of(operands, names, rows, n, k):
    """Arguments and lines of the lhs and of the weights `names`, and the operands that they are."""
    fmt, element, *form = operands.split() + [""] * (" " not in operands)
    if not element:
        return [operand("x", fmt, rows, k), *(operand(name, fmt, n, k) for name in names)]
    if element == "f4E2M1FN":  # with scales, and bf16 when it is multiplied
        return [operand("x", fmt, rows, k), *(prepacked(name, fmt, n, 1, k, "bf16") for name in names)]
    x = matrix(rows, k, element)
    dims = ' {fp4.dims = ["M", ""]}' if rows == "?" else ""
    weights = [operand(name, fmt, n, k) if form == ["plain"] else prepacked(name, fmt, n, 1, k, element)
               for name in names]
    if form == ["fast"]:
        weights = [(arguments, [with_rows(line) for line in lines], Side(side.data, with_rows(side.type)))
                   for arguments, lines, side in weights]
    return [([f"%qx: {x}{dims}"], [], Side("%qx", x)), *weights]


def with_rows(text):
    """Prepacked weights whose rows have powers."""
    return text.replace("weight_layout<wgmma>", "weight_layout<wgmma_rows>")


def quantizer(fmt, outputs, layout, element, rows, n):
    """Lines that quantize %h, the results and their types."""
    facts = recipes.FORMATS[fmt]
    amax, kind = ("", "") if facts.scale != "f8E4M3FN" else (" amax %given", ", tensor<f32>")
    sides = {"rowwise": [(rows, n)], "columnwise": [(n, rows)], "both": [(rows, n), (n, rows)]}[outputs]
    types = []
    for r, c in sides:
        blocks = -(-int(c) // facts.block)
        types += [matrix(r, c, facts.element),
                  matrix(r, blocks, facts.scale, LAYOUT if layout == "tiled" else "")]
    names = [f"%z#{i}" for i in range(len(types))]
    return [f"  %z:{len(types)} = fp4.quantize %h{amax} {{format = #fp4.format<{fmt}>, recipe = #fp4.recipe<{RECIPE[fmt]}>,"
            f" outputs = #fp4.outputs<{outputs}>}}",
            f"      : ({matrix(rows, n, element)}{kind}) -> ({', '.join(types)})"], names, types


GATE = """    %one = arith.constant 1.0 : f32
    %minus = arith.negf %x0 : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %exp, %one : f32
    %silu = arith.divf %x0, %below : f32
    %e = arith.mulf %silu, %x1 : f32"""


def elementwise(is_dual, element, rows, n, lhs):
    """%h, a gated unit of %p0 and %p1, or %p0 and a bias."""
    type_of_h, product = matrix(rows, n, element), matrix(rows, n, "f32")
    lines = [f"  %empty = tensor.empty() : {type_of_h}"]
    if rows == "?":
        lines = ["  %c0 = arith.constant 0 : index", f"  %m = tensor.dim %qx, %c0 : {lhs}",
                 f"  %empty = tensor.empty(%m) : {type_of_h}"]
    maps, ins = "#all, #row", f"%p0, %bias : {product}, tensor<{n}xf32>"
    if is_dual:
        maps, ins = "#all, #all", f"%p0, %p1 : {product}, {product}"
    lines += [f"  %h = linalg.generic {{indexing_maps = [{maps}, #all], iterator_types = [\"parallel\", \"parallel\"]}}",
              f"      ins({ins}) outs(%empty : {type_of_h}) {{", f"  ^bb0(%x0: f32, %x1: f32, %o: {element}):",
              GATE if is_dual else "    %e = arith.addf %x0, %x1 : f32"]
    if element == "bf16":
        lines.append("    %r = arith.truncf %e : f32 to bf16")
    return lines + [f"    linalg.yield {'%r' if element == 'bf16' else '%e'} : {element}", f"  }} -> {type_of_h}"]


def program(case):
    operands, dual, result, outputs, layout, amax, kept, element, rows, n, k, _ = case
    rows = "?" if rows[0] == "?" else rows
    names = ["w", "v"] if dual == "dual" else ["w"]
    (arguments, body, x), *weights = sides_of(operands, names, rows, n, k)
    arguments += [f"%bias: tensor<{n}xf32>", "%given: tensor<f32>"]
    alpha = {} if recipes.FORMATS[operands.split()[0]].scale != "f8E4M3FN" else {"alpha": "%given", "alpha_type": "tensor<f32>"}
    for i, (more, lines, side) in enumerate(weights):
        arguments += more
        made = 1 if i and x.scales else 0  # the first GEMM has bundled the lhs
        body += lines + matmul(f"%p{i}", matrix(rows, n, "f32"), x, side, **alpha,
                               attributes=FAST if operands.endswith("fast") else ())[made:]
    body += elementwise(dual == "dual", element, rows, n, x.type)
    results, types = [], []
    if kept == "kept":
        results, types = ["%h"], [matrix(rows, n, element)]
    if result != "none":
        lines, more, kinds = quantizer(result, outputs, layout, element, rows, n)
        body, results, types = body + lines, results + more, types + kinds
    if amax:
        body.append(f"  %amax = fp4.amax %h : {matrix(rows, n, element)} -> tensor<f32>")
        results, types = results + ["%amax"], types + ["tensor<f32>"]
    return "\n".join(["#all = affine_map<(i, j) -> (i, j)>", "#row = affine_map<(i, j) -> (j)>",
                      f"func.func @product({', '.join(arguments)}) -> ({', '.join(types)}) {{", *body,
                      f"  return {', '.join(results)} : {', '.join(types)}", "}", ""])


def valid(case):
    _, dual, result, outputs, layout, amax, kept, _, rows, n, _, plan = case
    if result == "none":
        if (outputs, layout) != ("rowwise", "tiled") or not amax and kept == "gone":
            return False
    elif recipes.FORMATS[result].has_f32_scales and ((outputs, layout) != ("rowwise", "linear") or n % 128):
        return False
    elif outputs != "rowwise" and rows[0] == "?":
        return False
    if dual == "dual" and plan == "256":
        return False  # tensor memory has no room for the sums of both
    return True


def fits_beside(kind, case):
    """Returns True if the operands of a case have its plan and its number of GEMMs."""
    operands, dual, *_, k, plan = case
    element, form = operands.split()[1:]
    if element == "f8E4M3FN":  # tiles of prepacked weights are deeper, and others those of operands with scales
        many = kind == "weights_lanes"  # of two GEMMs, and beside results
        return (plan in ("chosen", "shallow", *["32"] * (many and form != "plain"))
                and (k % 128 == 0 if form == "plain" else many or dual == "one"))
    return form == "prepacked" or plan not in ("wide", "256") and (kind != "weights_lanes" or plan != "64")


def fits_promoted(kind, case):
    """Returns True if sums that threads promote have the plan of a case."""
    _, dual, result, _, _, amax, kept, element, *_, plan = case
    wide = result == "fp8_block128"
    if kind == "promoted_lanes":  # a thread has whole blocks, or half of one of 128 beside the other half
        return not wide or plan not in ("32", "64") and not (dual == "dual" and plan == "256")
    if plan == "stored":
        return result == "none" and not amax and kept == "kept" and element == "bf16"
    if plan == "tall" or plan == "128" and kind == "promoted_warps":  # threads have registers for sums of one alone
        return (dual, result) == ("one", "none")
    if kind == "promoted_warps" and wide:
        return dual == "one" and element == "bf16" and plan in ("chosen", "shallow")
    tiles = {"promoted": ("128",) if wide else ("128", "half"), "promoted_warps": ("64",)}[kind]
    return result == "none" or plan in ("chosen", "shallow", *sweeping.scheduled(), *tiles)


def fits(kind, case):
    """Returns True if the plan of a case fits it; kinds of kernels differ in that."""
    _, dual, result, outputs, _, _, kept, element, *_, plan = case
    if kind == "tcgen05":  # a thread has words of scales: 64 columns in nvfp4, else 128
        return (plan not in ("64", "eight", "half_pair_128") or result in ("none", "nvfp4")
                or outputs == "columnwise")
    if kind in BESIDE and not fits_beside(kind, case):
        return False
    if kind in BESIDE:  # a warp has blocks of columns; the sums of two GEMMs fill registers
        if outputs != "rowwise" and (case[8] == "1" or plan == "8"):
            return False
        if kept == "gone" and result == "none" and case[9] % 128:
            return False  # nothing says where the columns of prepacked weights end
        if kind == "weights_warps" and dual == "dual" and plan == "128" or kind == "weights_lanes" and plan == "256":
            return dual == "one"
        return plan not in ("256", "wide") or dual == "one" and (result == "none" if plan == "256" else case[9] % 256 == 0)
    if kind == "swapped":
        is_wide = case[9] % 256 == 0 and dual == "one" and element == "bf16"
        return plan != "few" or case[8] in ("32", "64") if plan != "wide" else is_wide
    if kind == "converted":  # registers have room for the sums of both GEMMs, or for what quantizes
        return plan not in ("256", "tall") or (dual, result, element) == ("one", "none", "bf16")
    is_small = dual == "dual" or (result != "none" and element == "f32")
    if kind in PROMOTED:
        return fits_promoted(kind, case)
    if result == "fp8_block128" and (is_small or plan in ("64", "deep")):  # tiles of 64 columns have half a block
        return False
    return not (plan == "128" and is_small) and not (plan == "few" and result != "none")


def parameters(kind):
    return [OPERANDS_OF.get(kind, FORMATS), INPUT, RESULT, OUTPUTS, SCALES, AMAX, ELEMENTS, TYPE,
            ROWS_OF.get(kind, ROWS), COLUMNS_OF.get(kind, N), DEPTHS_OF.get(kind, K), list(KINDS[kind][1])]


def chosen_cases(kind, full):
    def fits_plan(case):
        return valid(case) and fits(kind, case)
    return sweeping.cases_of(full, parameters(kind), fits_plan)


def judge_on(target):
    def is_one_kernel(tools, path):
        fused = subprocess.run([tools / "fp4-runner", path, "--emit=mlir", "--compile-to=fused", f"--target={target}"],
                               capture_output=True, text=True, check=False).stdout
        others = [op for op in ("linalg.generic", "fp4.quantize ", "fp4.amax ") if op in fused]
        return [] if fused.count("fp4.matmul ") == 1 and not others else [f"not one kernel: {others}\n"]
    return is_one_kernel


def library(case, kind="tcgen05"):
    target, plans = KINDS[kind]
    plan, rows = plans[case[-1]], case[8]
    arguments = [f"--target={target}"] + ([f"--plan=tile_gemm, {plan}"] if plan else [])
    return sweeping.Program(sweeping.file_name(*case), program(case), arguments,
                            [[f"--shape={rows[1:]}"] if rows[0] == "?" else []])


def main():
    parser = sweeping.product_parser(__doc__)
    parser.add_argument("--plans", default="tcgen05", choices=KINDS)
    options = parser.parse_args()
    cases = chosen_cases(options.plans, options.full)
    return sweeping.run_gemms(options, [library(case, options.plans) for case in cases], SCHEDULES,
                                 judge_on(KINDS[options.plans][0]))


if __name__ == "__main__":
    sys.exit(main())
