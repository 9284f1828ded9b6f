#!/usr/bin/env python3
"""Predicts what one library for GEMMs of any M, N and K costs beside a kernel for each shape.

  validation/size_plans.py            NVFP4, MXFP8 and FP8 with f32 scales on sm_100a
  validation/size_plans.py --worst    the worst of many shapes instead of a table of common ones

fp4-plan-kernels gives a GEMM of dynamic N and K several plans, of which host code chooses one when
it knows the sizes (docs/reference/semantics.md, several plans of one product). This program makes
the same choice from the numbers of the plans, and asks the model of each family, in its remarks,
what the chosen tile and the tile of a static GEMM cost. All times are predictions of that model.
"""
import argparse
import itertools
import math
import pathlib
import re
import subprocess
import sys
import tempfile

from matmul_text import Side, matmul

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPT = ROOT / "build/bin/fp4-opt"
MULTIPROCESSORS = 148
SHAPES = [(16, 4096, 4096), (64, 7168, 2048), (128, 4096, 7168), (256, 6144, 4096), (512, 4096, 4096),
          (1024, 1024, 4096), (1024, 14336, 4096), (2048, 4096, 14336), (4096, 4096, 4096), (4096, 28672, 8192),
          (8192, 8192, 8192)]
MANY = list(itertools.product((1, 16, 128, 200, 300, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192),
                         (512, 1024, 1536, 2048, 3072, 4096, 6144, 7168, 8192, 14336), (1024, 2048, 4096, 7168, 14336)))
TILED = "#fp4.scale_layout<tiled_128x4>"
#: Format: elements, type of scales, elements of a block along K and along N of the rhs, layout of
#: scales.
FORMATS = {"nvfp4": ("f4E2M1FN", "f8E4M3FN", 16, 1, f", {TILED}"),
           "mxfp8_e4m3": ("f8E4M3FN", "f8E8M0FNU", 32, 1, f", {TILED}"),
           "fp8_block128": ("f8E4M3FN", "f32", 128, 128, "")}


def blocks(size, block):
    return size if size == "?" else -(-size // block)


def product(name, fmt, m, n, k, plan=""):
    """A function on one line, so that its remarks have its number."""
    data, scale, block, rows, layout = FORMATS[fmt]
    a, b = f"tensor<{m}x{k}x{data}>", f"tensor<{n}x{k}x{data}>"
    s = f"tensor<{m}x{blocks(k, block)}x{scale}{layout}>"
    t = f"tensor<{blocks(n, rows)}x{blocks(k, block)}x{scale}{layout}>"
    y = f"tensor<{m}x{n}xbf16>"
    given = (f"fp4.plan = #fp4.plan<tile_gemm, {plan}>",) if plan else ()
    lines = matmul("%y", y, Side("%a", a, "%s", s, fmt), Side("%b", b, "%t", t, fmt), attributes=given)
    return (f"func.func @{name}(%a: {a}, %s: {s}, %b: {b}, %t: {t}) -> {y} {{ {' '.join(lines)} "
            f"return %y : {y} }}")


def planned(lines):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "products.mlir")
        source.write_text("\n".join(lines) + "\n")
        run = subprocess.run([OPT, source, "-fp4-set-target=target=sm_100a", "-fp4-plan-kernels",
                              "--remarks-filter-passed=fp4-plan"], capture_output=True, text=True, check=True)
    return run.stdout, run.stderr


def size_plans(fmt):
    """Returns the plans of a GEMM of any sizes: tile, clusters at a time, and the three numbers;
    the last is that of the last case, which holds for all sizes."""
    text, _ = planned([product("any", fmt, "?", "?", "?")])
    plans = []
    for plan in re.findall(r"tile = \[(\d+), (\d+), (\d+)\](.*?)wave_cost = \[(\d+), (\d+), (\d+)\]", text):
        pair = re.search(r"\bpair\b", plan[3]) is not None
        plans.append(([int(x) for x in plan[:3]], pair, MULTIPROCESSORS // (2 if pair else 1), [int(x) for x in plan[4:]]))
    return plans


def chosen(plans, m, n, k):
    def cost(plan):
        tile, _, workers, (once, wave, k_tile) = plan
        waves = math.ceil(math.ceil(m / tile[0]) * math.ceil(n / tile[1]) / workers)
        return once + waves * (wave + math.ceil(k / tile[2]) * k_tile)
    own, others = plans[-1], plans[:-1]
    best = min(others, key=cost)
    return best if cost(best) < cost(own) else own


def spell(plan):
    tile, pair, _, _ = plan
    return f"{'pair, ' * pair}tile = [{tile[0]}, {tile[1]}, {tile[2]}]"


def predictions(fmt, plans, shapes):
    """Returns for each shape: microseconds of the static plan, of the chosen one, and of the last
    case alone, and the tiles."""
    lines = []
    for number, (m, n, k) in enumerate(shapes):
        lines.append(product(f"static{number}", fmt, m, n, k))
        lines.append(product(f"chosen{number}", fmt, m, n, k, spell(chosen(plans, m, n, k))))
        lines.append(product(f"one{number}", fmt, m, n, k, spell(plans[-1])))
    _, remarks = planned(lines)
    found = {}
    for line, tile, time in re.findall(r":(\d+):\d+: remark:.*?tiles of (\d+x\d+).*?predicted ([\d.]+) us", remarks):
        found[int(line)] = (float(time), tile)
    for number, shape in enumerate(shapes):
        yield shape, *(found[3 * number + 1 + which] for which in range(3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worst", action="store_true")
    options = parser.parse_args()
    for fmt in FORMATS:
        plans = size_plans(fmt)
        print(f"{fmt}: kernels with {'; '.join(spell(plan) for plan in plans)}")
        rows = list(predictions(fmt, plans, MANY if options.worst else SHAPES))
        if not options.worst:
            for (m, n, k), static, one_of, alone in rows:
                print(f"{m:6}{n:7}{k:7}  static {static[0]:8.2f} us {static[1]:8}  chosen {one_of[0]:8.2f} us {one_of[1]:8}"
                      f" {100 * (one_of[0] / static[0] - 1):+6.1f} %  last case alone {100 * (alone[0] / static[0] - 1):+6.1f} %")
        for what, place in (("chosen", 2), ("last case alone", 3)):
            lost = sorted((row[place][0] / row[1][0] - 1, row[0]) for row in rows)
            mean = sum(x for x, _ in lost) / len(lost)
            over = sum(x > 0.05 for x, _ in lost)
            print(f"  {what}: {100 * mean:.1f} % on average, {over} of {len(lost)} shapes lose more than 5 %, "
                  f"most {100 * lost[-1][0]:.1f} % of {'x'.join(map(str, lost[-1][1]))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
