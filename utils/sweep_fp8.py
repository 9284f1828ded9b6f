#!/usr/bin/env python3
"""Compiles products of FP8 with f32 scales of many shapes, runs them in the simulator and checks every
result.

  utils/sweep_fp8.py         a covering subset: every pair of values of two parameters occurs
  utils/sweep_fp8.py --full  the whole cross product
  utils/sweep_fp8.py --list  what would run

Operands are quantized by the program, activations in blocks of 1 x 128 and weights in 128 x 128, or are
its arguments. M is dynamic or static; tiles are those that fp4-plan-kernels chooses and others. One
library is compiled per program and run by fp4-run for every M under several schedules of the simulator,
with its strict hazard check. Prints every failure with the command that repeats it, then "N passed, N
failed".
"""
import collections
import itertools
import sys

import sweeping

M = [1, 64, 65, 130, 257]
N = [8, 72, 136, 264]
K = [16, 128, 272, 640]  # 16 and 272 end within a block
RESULTS = ["bf16", "f16", "f32"]
OPERANDS = ["plain", "power_of_two", "fp8"]
EPILOGUES = ["none", "alpha", "rows", "columns", "relu"]
ROWS = ["dynamic", "static"]
TILES = {"chosen": "", "64x56": "tile = [64, 56, 128]", "64x128": "tile = [64, 128, 128]",
         "128x128": "tile = [128, 128, 128]", "128x96": "tile = [128, 96, 128]",
         "128x192": "tile = [128, 192, 128], stages = 2", "256x128": "tile = [256, 128, 128]",
         "along_n": "schedule = #pipe.static_persistent<along_n>"}
SCHEDULES = [("eager", 1), ("lazy", 1), ("random", 1), ("delay", 1)]


def up(size):
    return (size + 127) // 128


def alpha_type(epilogue, m, n):
    return {"alpha": "tensor<f32>", "rows": f"tensor<{m}x1xf32>",
            "columns": f"tensor<1x{n}xf32>"}.get(epilogue)


def quantization(name, data, scales, recipe, block):
    source = data.replace("f8E4M3FN", "bf16")
    return (f"  %{name}, %s{name} = fp4.quantize %x{name} {{format = #fp4.format<fp8_block128>,"
            f" recipe = #fp4.recipe<{recipe}>, block = array<i64: {block}, 128>}}"
            f" : ({source}) -> ({data}, {scales})")


def program(result, operands, epilogue, tile, m, n, k):
    recipe = "fp8_deepgemm" + ("" if operands == "plain" else "_power_of_two")
    arguments, body, types = [], [], []
    for name, rows, bands, block in (("a", m, m, 1), ("b", n, up(n), 128)):
        data, scales = f"tensor<{rows}x{k}xf8E4M3FN>", f"tensor<{bands}x{up(k)}xf32>"
        types += [data, scales]
        if operands == "fp8":
            arguments += [f"%{name}: {data}", f"%s{name}: {scales}"]
        else:
            arguments.append(f"%x{name}: {data.replace('f8E4M3FN', 'bf16')}")
            body.append(quantization(name, data, scales, recipe, block))
    alpha = alpha_type(epilogue, m, n)
    if alpha:
        arguments.append(f"%alpha: {alpha}")
        types.append(alpha)
    y = f"tensor<{m}x{n}x{result}>"
    written = TILES[tile] and f", fp4.plan = #fp4.plan<tile_product, {TILES[tile]}>"
    if epilogue == "relu":
        written += ", epilogue = #fp4.epilogue<relu>"
    body += [f"  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb{' alpha %alpha' * bool(alpha)}"
             f" {{format = #fp4.format<fp8_block128>{written}}} : ({', '.join(types)}) -> {y}",
             f"  return %y : {y}"]
    return "\n".join([f"func.func @product({', '.join(arguments)}) -> {y} {{", *body, "}", ""])


def main():
    options = sweeping.product_parser(__doc__).parse_args()
    cases = list(itertools.product(RESULTS, OPERANDS, EPILOGUES, ROWS, TILES, N, K, M))
    groups = collections.defaultdict(list)
    for result, operands, epilogue, rows, tile, n, k, m in cases if options.full else sweeping.covering(cases):
        key = (result, operands, epilogue, tile, "?" if rows == "dynamic" else m, n, k)
        groups[key].append([f"--shape={m}"])
    programs = [sweeping.Program(sweeping.file_name(*key), program(*key), ["--target=sm_90a"], runs)
                for key, runs in groups.items()]
    return sweeping.run_products(options, programs, SCHEDULES)


if __name__ == "__main__":
    sys.exit(main())
