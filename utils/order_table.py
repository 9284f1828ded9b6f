#!/usr/bin/env python3
"""Runs the smallest case of every kind of kernel that wraps its rings in every order that makes a
difference (--policy exhaustive, docs/Simulator.md), and prints a table.

  utils/order_table.py                 all programs
  utils/order_table.py --only=product  those whose name contains the text
  utils/order_table.py --list          the names
  utils/order_table.py --run=FILE      an fp4-run other than build/bin/fp4-run

Exit code 1 when an order fails. A kernel whose orders did not all run says how many did; one that
did not end within --seconds says so.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import mutate_all
import sweep
import sweep_fp8
import sweep_groups
import sweep_results
import sweep_weights
import sweep_wide

ROOT = pathlib.Path(__file__).resolve().parent.parent
Case = collections.namedtuple("Case", "name text target shape options", defaults=[None, ()])


def product(plan, m, n, k=1024, fmt="nvfp4"):
    """A product of operands of 4 bits."""
    text = sweep.program(fmt, "bf16", "fp4", "chosen", m, n, k)
    return text.replace(f"#fp4.format<{fmt}>", f"#fp4.format<{fmt}>, fp4.plan = #fp4.plan<tile_product, {plan}>")


def on(multiprocessors, plan=""):
    return [f"--multiprocessors={multiprocessors}", *[f"--plan=tile_product, {plan}"] * bool(plan)]


def pairs():
    """A pair of blocks has 3 x 2 tiles where they have 256 rows, each of 4 k tiles."""
    for columns, what in ((128, ""), (192, ", two sets of scales"), (256, ", overlapped accumulators")):
        yield Case(f"NVFP4 product, pair of 256 x {columns}{what}",
                   product(f"pair, tile = [256, {columns}, 256], store = tma", 600, 2 * columns), "sm_100a", None, on(2))
    for store in ("tma", "direct"):
        yield Case(f"NVFP4 product, pair of 128 x 256, store {store}",
                   product(f"pair, tile = [128, 256, 256], store = {store}", 300, 256), "sm_100a", None, on(2))


def clusters():
    """Each cluster has 2 tiles for each of its blocks, of 3 k tiles in a ring of 2 stages."""
    ring = "tile = [128, 64, 256], stages = 2"
    for m, n in ((2, 1), (1, 2), (2, 2), (4, 1)):
        yield Case(f"NVFP4 product, cluster of {m} x {n}", product(f"cluster = [{m}, {n}], {ring}", 256 * m, 64 * n, 768),
                   "sm_100a", None, on(m * n))
    wide = ring.replace("128", "256", 1)
    for m, n in ((2, 2), (4, 1)):
        yield Case(f"NVFP4 product, pairs in a cluster of {m} x {n}",
                   product(f"pair, cluster = [{m}, {n}], {wide}", 256 * m, 64 * n, 768), "sm_100a", None, on(m * n))
    yield Case("NVFP4 product, half pairs in a cluster of 2 x 2",
               product("pair, cluster = [2, 2], tile = [128, 256, 256], stages = 2", 256, 512, 768), "sm_100a", None, on(4))
    yield Case("NVFP4 product, cluster of 2 x 2 that may fall back on 2 x 1",
               product(f"pair, cluster = [2, 2], fallback = [2, 1], {wide}", 512, 256, 768), "sm_100a", None, on(8))


def schedules():
    taken = "tile = [128, 64, 256], stages = 2, schedule = #pipe.cluster_launch<along_m"
    yield Case("NVFP4 product, work taken over", product(f"{taken}>", 384, 64, 768), "sm_100a", None, on(1))
    yield Case("NVFP4 product, work of pairs taken over",
               product(f"pair, {taken.replace('128', '256', 1)} depth 2>", 768, 64, 768), "sm_100a", None, on(2))
    yield Case("NVFP4 product, results stored by TMA",
               product("tile = [128, 128, 256], stages = 2, store = tma", 384, 128, 768), "sm_100a", None, on(1))
    yield Case("NVFP4 product, swapped operands",
               product("swap, tile = [128, 16, 256], stages = 2", 16, 384, 768), "sm_100a", None, on(1))
    # Two blocks share one tile: each of its four warps may be the first to count.
    for form, what in (("split", "ranges of K in a workspace"), ("stream", "stream-K"), ("groups", "groups"),
                       ("offsets", "groups of the device"), ("threads", "products of threads")):
        rows = {"split": (128,), "stream": (128,), "threads": (3, 3, 3)}.get(form, (130, 0, 1))
        plan = "" if form == "threads" else "stages = 2"
        text = sweep_groups.program(form, rows, 64, 1312, "nvfp4", "bf16", "none", "chosen")
        yield Case(f"NVFP4 product, {what}", text.replace("split_k = 6", "split_k = 2"), "sm_100a", None, on(2, plan))


def epilogues():
    """Derived results, and elements of 8 and 6 bits; K = 96 of sm_103a."""
    for dual, result, outputs, amax in (("dual", "none", "rowwise", ""), ("one", "nvfp4", "both", ""),
                                        ("dual", "mxfp4", "rowwise", "amax")):
        case = ("nvfp4", dual, result, outputs, "tiled", amax, "kept", "bf16", "160", 64, 768, "chosen")
        what = ["gate of two products" if dual == "dual" else "bias"]
        what += [f"{result} codes {outputs}"] * (result != "none") + ["amax"] * bool(amax)
        yield Case("NVFP4 product, " + ", ".join(what), sweep_results.program(case), "sm_100a", None, on(1, "stages = 2"))
    for lhs, rhs in (("mxfp8_e4m3", "mxfp8_e4m3"), ("mxfp8_e4m3", "mxfp4"), ("mxfp6_e2m3", "mxfp6_e2m3")):
        text = sweep_wide.program(lhs, rhs, "bf16", "codes", "none", "64", 260, 64, 512)
        yield Case(f"{lhs} x {rhs} product", text, "sm_100a", None, on(1, "stages = 2"))
        text = sweep_wide.program(lhs, rhs, "bf16", "codes", "none", "warps_64x64" if "warps_64x64" in sweep_wide.WARPS
                                  else "warps", 192, 64, 512)
        yield Case(f"{lhs} x {rhs} product by mma.sync", text, "sm_120a", None, on(1, "stages = 2"))
    long = sweep.program("nvfp4", "bf16", "fp4", "k96_64", 600, 64, 2400)
    yield Case("NVFP4 product, K = 96", long, "sm_103a", None, on(2, "stages = 2"))


def hopper():
    converted = sweep.program("nvfp4", "bf16", "fp4", "converted", 300, 128, 512)
    yield Case("NVFP4 product, converted", converted, "sm_90a", None, on(1, "tile = [128, 128, 128], stages = 2"))
    few = sweep.program("nvfp4", "bf16", "fp4", "few", 16, 384, 512)
    yield Case("NVFP4 product, converted, swapped", few, "sm_90a", None, on(1, "stages = 2"))
    for split, what in ((1, ""), (2, ", ranges of K in a cluster")):
        for element, weights in (("bf16", "plain"), ("bf16", "prepacked"), ("f8E4M3FN", "prepacked")):
            fmt = "mxfp4" if element == "f8E4M3FN" else "nvfp4"
            plain_ranges = weights == "plain" and split == 2  # each of its warps counts: 2^8 orders, of the fewest steps
            text = sweep_weights.program(element, fmt, "bf16", weights, "none", split, "8" if weights == "prepacked"
                                         else "chosen", *((128, 768) if plain_ranges else (384, 1024)))
            where = what.replace("cluster", "workspace") if weights == "plain" else what
            yield Case(f"{weights} {fmt} weights x {element}{where}", text, "sm_90a", 8, on(split, "stages = 2"))
    ahead = sweep_weights.program("f8E4M3FN", "mxfp4", "bf16", "prepacked", "none", 1, "128ahead", 256, 1024)
    yield Case("prepacked mxfp4 weights x f8E4M3FN, converted ahead", ahead, "sm_90a", 130, on(1, "stages = 2"))
    for form, what in (("one", ""), ("split", ", ranges of K in a cluster"), ("groups", ", groups"),
                       ("offsets", ", groups of the device")):
        text = sweep_fp8.program("bf16", "fp8", "none", "64x56", form, 130, 56, 640)
        yield Case(f"FP8 with f32 scales by wgmma{what}", text, "sm_90a", None, on(2 if form == "split" else 1, "stages = 2"))


def meetings():
    """Quantizers whose blocks count, or wait for each other: n blocks do so in n! orders. Where they count again when
    they have waited, the orders are n! times n!."""
    near = "nearest_even"
    for name, case in {
            "quantize rows": ("rowwise", "row", "none", near, "tiled", "one", 256, 128),  # 4 blocks
            "Hadamard in registers, 16": ("both", "row", "16,16", "element", "mixed", "one", 256, 384),  # 3 blocks
            "Hadamard across lanes, 128 and 32": ("both", "row", "128,32", near, "mixed", "one", 256, 384)}.items():
        for target in mutate_all.BOTH:
            yield Case(name, mutate_all.quantizer(target, *case), target)


def cases():
    for kinds in (pairs, clusters, schedules, epilogues, hopper, meetings):
        yield from kinds()
    text = re.sub(r", fp4\.plan = #fp4\.plan<.*?\]>", "", mutate_all.gemm(64))
    yield Case("NVFP4 product by mma.sync, 3 tiles of 64 x 64", text, "sm_120a", 130,
               on(1, "tile = [64, 64, 128], stages = 2"))
    smaller = {case.name for case in meetings()}
    for program in mutate_all.programs():
        for target in program.targets if program.name not in smaller else ():
            yield Case(program.name, program.text, target, program.shape, program.options)


def explore(tools, case, options):
    """The launches; a text when there are none."""
    with tempfile.TemporaryDirectory(prefix="fp4-orders-") as folder:
        source, library = pathlib.Path(folder, "program.mlir"), pathlib.Path(folder, "program.so")
        source.write_text(case.text)
        shape = [f"--shape={case.shape}"] if case.shape else []
        compiled = subprocess.run([tools / "fp4-runner", source, *shape, *case.options, f"--target={case.target}",
                                   "--emit=so", "-o", library, "--ptxas=none"], capture_output=True, text=True)
        if compiled.returncode:
            return compiled.stderr
        command = [options.run or tools / "fp4-run", library, *shape, "--device=sim", "--check=strict",
                   "--policy=exhaustive", f"--max-orders={options.most}", "--no-verify", "--json"]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds)
        except subprocess.TimeoutExpired:
            return f"did not end within {options.seconds} s"
    if run.returncode not in (0, 7):
        return run.stderr
    return json.loads(run.stdout)["orders"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    arguments.add_argument("--run", help="the fp4-run to use")
    arguments.add_argument("--only", default="", help="programs whose name contains this text")
    arguments.add_argument("--most", type=int, default=200, help="orders of each launch (200)")
    arguments.add_argument("--seconds", type=float, default=600, help="time of each program (600)")
    arguments.add_argument("--list", action="store_true", help="print the programs")
    options = arguments.parse_args()
    failed = 0
    chosen = [case for case in cases() if options.only in case.name]
    if options.list:
        print("\n".join(f"{case.name}, {case.target}" for case in chosen))
        return 0
    print("| program | target | kernel | orders | left early | steps | commuting pairs | s | complete |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case in chosen:
        launches = explore(options.build / "bin", case, options)
        if isinstance(launches, str):
            failed += 1
            print(f"{case.name}, {case.target}: {launches.strip()}", file=sys.stderr, flush=True)
            continue
        for launch in launches:
            row = (case.name, case.target, launch["kernel"], launch["orders"], launch["pruned"],
                   launch["longest"], launch["commuting_pairs"], f"{launch['seconds']:.2f}",
                   "yes" if launch["complete"] else "no")
            print("| " + " | ".join(map(str, row)) + " |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
