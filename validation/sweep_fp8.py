#!/usr/bin/env python3
"""Compiles GEMMs of FP8 with f32 scales of many shapes, runs them in the simulator and checks every
result.

  validation/sweep_fp8.py         a covering subset: every pair of values of two parameters occurs
  validation/sweep_fp8.py --full  the whole cross product
  validation/sweep_fp8.py --list  what would run
  validation/sweep_fp8.py --strided       matrices have gaps between their rows (fp4.strided)
  validation/sweep_fp8.py --plans=lanes  GEMMs whose sums are in tensor memory, for sm_100a
  validation/sweep_fp8.py --plans=warps  GEMMs of mma.sync, for sm_120a

Operands are quantized by the program, activations in blocks of 1 x 128 and weights in 128 x 128, or
are its arguments. A GEMM is plain, or split-K by two, with a reduction in a cluster or in a
workspace, or of four groups, among them an empty one and one of a single row: their rows are
attributes (groups), or numbers of the device that say where each group ends (offsets), or where
each begins and ends (ranges). M is dynamic or static; tiles are those that fp4-plan-kernels chooses
and others. One library is compiled per program and run by fp4-run for every M under several
schedules of the simulator, with its strict hazard check. Prints every failure with the command that
repeats it, then "N passed, N failed".
"""
import collections
import sys

import sweeping
from matmul_text import Side, matmul

M = [1, 64, 65, 130, 257]
N = [8, 72, 136, 264]
K = [16, 128, 272, 512, 640, 768]  # 16 and 272 end within a block; 512 alone has rows of scales of 16 bytes
RESULTS = ["bf16", "f16", "f32"]
OPERANDS = ["plain", "power_of_two", "fp8"]
EPILOGUES = ["none", "alpha", "rows", "columns", "relu"]
ROWS = ["dynamic", "static"]
FORMS = ["one", "split", "groups", "offsets", "ranges"]
GROUPS = 4
TILES = {"chosen": "", "64x8": "tile = [64, 8, 128]", "64x56": "tile = [64, 56, 128]",
         "64x128": "tile = [64, 128, 128]",
         "128x128": "tile = [128, 128, 128]", "128x96": "tile = [128, 96, 128]",
         "128x192": "tile = [128, 192, 128], stages = 2", "256x128": "tile = [256, 128, 128]",
         "stored": "tile = [256, 128, 128], store = tma", "stored_64": "tile = [64, 96, 128], store = tma",
         "workspace": "cluster = [1, 1]", "64x128x256": "tile = [64, 128, 256]",
         **sweeping.scheduled()}
LANES = {"chosen": "", "16": "tile = [128, 16, 128]", "32": "tile = [128, 32, 128]", "64": "tile = [128, 64, 128]",
         "128": "tile = [128, 128, 128]", "256": "tile = [128, 256, 128]",
         "one_stage": "tile = [128, 64, 128], stages = 1, accumulators = 1",
         **sweeping.scheduled()}
WARPS = {"chosen": "", "64x32": "tile = [64, 32, 128]", "64x64": "tile = [64, 64, 128]",
         "64x128": "tile = [64, 128, 128]", "128x32": "tile = [128, 32, 128]", "128x64": "tile = [128, 64, 128]",
         "shallow": "tile = [64, 64, 128], stages = 1", **sweeping.scheduled()}
KINDS = {"fragments": ("sm_90a", TILES), "lanes": ("sm_100a", LANES), "warps": ("sm_120a", WARPS)}
SCHEDULES = sweeping.schedules(1)


def up(size):
    return (size + 127) // 128


def sizes_of_groups(m):
    """Rows of the groups: none, one, a third and the others."""
    return [0, 1, (m - 1) // 3, m - 1 - (m - 1) // 3]


def of_form(form, m):
    """Lines, an operand, its type, and an attribute of the GEMM."""
    if form == "split":
        return [], {}, ("split_k = 2",)
    if form == "groups":
        return [], {}, (f"groups = [{', '.join(map(str, sizes_of_groups(m)))}]",)
    ends = [0, 0, 1, 1 + (m - 1) // 3, m]
    if form == "offsets":
        numbers, kind = ends, f"tensor<{GROUPS + 1}xi64>"
    else:  # the last row of each group but the second belongs to none
        numbers = [[begin, max(begin, end - (group != 1))]
                   for group, (begin, end) in enumerate(zip(ends, ends[1:]))]
        kind = f"tensor<{GROUPS}x2xi64>"
    return ([f"  %o = arith.constant dense<{numbers}> : {kind}"],
            {"offsets": "%o", "offsets_type": kind}, ())


def alpha_type(epilogue, m, n, groups):
    return {"alpha": f"tensor<{groups}xf32>" if groups > 1 else "tensor<f32>", "rows": f"tensor<{m}x1xf32>",
            "columns": f"tensor<1x{n}xf32>"}.get(epilogue)


def quantization(name, data, scales, recipe, block):
    source = data.replace("f8E4M3FN", "bf16")
    return (f"  %{name}, %s{name} = fp4.quantize %x{name} {{format = #fp4.format<fp8_block128>,"
            f" recipe = #fp4.recipe<{recipe}>, block = array<i64: {block}, 128>}}"
            f" : ({source}) -> ({data}, {scales})")


def program(result, operands, epilogue, tile, form, m, n, k, strided=""):
    recipe = "fp8_deepgemm" + ("" if operands == "plain" else "_power_of_two")
    arguments, sides = [], []
    groups = 1 if form in ("one", "split") else GROUPS
    body, offsets, work = ([], {}, ()) if form == "one" else of_form(form, m)
    for name, rows, bands, block in (("a", m, m, 1), ("b", groups * n, groups * up(n), 128)):
        data, scales = f"tensor<{rows}x{k}xf8E4M3FN>", f"tensor<{bands}x{up(k)}xf32>"
        sides.append(Side(f"%{name}", data, f"%s{name}", scales, "fp8_block128"))
        if operands == "fp8" or rows == groups * n != n:  # blocks of weights end with their group
            arguments += [f"%{name}: {data}{strided}", f"%s{name}: {scales}"]
        else:
            arguments.append(f"%x{name}: {data.replace('f8E4M3FN', 'bf16')}{strided}")
            body.append(quantization(name, data, scales, recipe, block))
    alpha = alpha_type(epilogue, m, n, groups)
    if alpha:
        arguments.append(f"%alpha: {alpha}")
    factor = {"alpha": "%alpha", "alpha_type": alpha} if alpha else {}
    y = f"tensor<{m}x{n}x{result}>"
    plan = (TILES | LANES | WARPS)[tile]
    written = [f"fp4.plan = #fp4.plan<tile_gemm, {plan}>"] * bool(plan)
    if epilogue == "relu":
        written.append("epilogue = #fp4.epilogue<relu>")
    body += [*matmul("%y", y, *sides, **factor, **offsets, work=work, attributes=tuple(written)),
             f"  return %y : {y}"]
    return "\n".join([f"func.func @product({', '.join(arguments)}) -> {y} {{", *body, "}", ""])


def has_form(case):
    result, _, epilogue, rows, tile, form, _, k, m = case
    if tile.endswith("x256") and k % 256:
        return False
    if form == "split" and tile == "256":  # two warpgroups have no split-K
        return False
    if tile.startswith("stored") and (form == "split" or result == "f32"):
        return False
    if form == "split":
        return k > 256
    return form == "one" or (rows == "static" and m > 3 and epilogue not in ("rows", "columns"))


def main():
    parser = sweeping.product_parser(__doc__)
    parser.add_argument("--plans", default="fragments", choices=KINDS)
    parser.add_argument("--strided", action="store_true", help="rows of matrices have gaps between them")
    options = parser.parse_args()
    strided = " {fp4.strided}" if options.strided else ""
    target, tiles = KINDS[options.plans]
    values = [RESULTS, OPERANDS, EPILOGUES, ROWS, list(tiles), FORMS, N, K, M]
    cases = sweeping.cases_of(options.full, values, has_form)
    groups = collections.defaultdict(list)
    for case in cases:
        result, operands, epilogue, rows, tile, form, n, k, m = case
        key = (result, operands, epilogue, tile, form, "?" if rows == "dynamic" else m, n, k)
        groups[key].append([f"--shape={m}"])
    programs = [sweeping.Program(sweeping.file_name(*key), program(*key, strided), [f"--target={target}"], runs)
                for key, runs in groups.items()]
    return sweeping.run_gemms(options, programs, SCHEDULES)


if __name__ == "__main__":
    sys.exit(main())
