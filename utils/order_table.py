#!/usr/bin/env python3
"""Runs the smallest case of every kind of kernel that wraps its rings in every order that makes a
difference (--policy exhaustive, docs/Simulator.md), and prints a table.

  utils/order_table.py                 all programs
  utils/order_table.py --only=product  those whose name contains the text
  utils/order_table.py --run=FILE      an fp4-run other than build/bin/fp4-run

Exit code 1 when an order fails. A kernel whose orders did not all run says how many did.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
Case = collections.namedtuple("Case", "name text target shape options", defaults=[()])


def pair(columns, n, rows=256):
    """A product for one pair of blocks, of 3 x 2 tiles where they have 256 rows, each of 4 k tiles."""
    a, sa = "tensor<600x1024xf4E2M1FN>", "tensor<600x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>"
    b, sb = a.replace("600", str(n)), sa.replace("600", str(n))
    return (f"func.func @product(%a: {a}, %sa: {sa}, %b: {b}, %sb: {sb}) -> tensor<600x{n}xbf16> {{\n"
            "  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<nvfp4>, fp4.plan ="
            f" #fp4.plan<tile_product, pair, tile = [{rows}, {columns}, 256], store = tma>}} : ({a}, {sa}, {b}, {sb})"
            f" -> tensor<600x{n}xbf16>\n  return %y : tensor<600x{n}xbf16>\n}}\n")


def cases():
    for columns, what in ((128, ""), (192, ", two sets of scales"), (256, ", overlapped accumulators")):
        yield Case(f"NVFP4 product, pair of 256 x {columns}{what}", pair(columns, 2 * columns), "sm_100a",
                   None, ["--multiprocessors=2"])
    yield Case("NVFP4 product, pair of 128 x 256", pair(256, 256, rows=128), "sm_100a", None,
               ["--multiprocessors=2"])
    text = re.sub(r", fp4\.plan = #fp4\.plan<.*?\]>", "", mutate_all.gemm(64))
    yield Case("NVFP4 product by mma.sync, 3 tiles of 64 x 64", text, "sm_120a", 130,
               ["--multiprocessors=1", "--plan=tile_product, tile = [64, 64, 128], stages = 2"])
    for program in mutate_all.programs():
        for target in program.targets:
            yield Case(program.name, program.text, target, program.shape, program.options)


def explore(tools, case, options):
    with tempfile.TemporaryDirectory(prefix="fp4-orders-") as folder:
        source, library = pathlib.Path(folder, "program.mlir"), pathlib.Path(folder, "program.so")
        source.write_text(case.text)
        shape = [f"--shape={case.shape}"] if case.shape else []
        subprocess.run([tools / "fp4-runner", source, *shape, *case.options, f"--target={case.target}",
                        "--emit=so", "-o", library, "--ptxas=none"], check=True, capture_output=True)
        command = [options.run or tools / "fp4-run", library, *shape, "--device=sim", "--check=strict",
                   "--policy=exhaustive", f"--max-orders={options.most}", "--no-verify", "--json"]
        run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode not in (0, 7):
        print(run.stderr, file=sys.stderr)
        return None
    return json.loads(run.stdout)["orders"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    arguments.add_argument("--run", help="the fp4-run to use")
    arguments.add_argument("--only", default="", help="programs whose name contains this text")
    arguments.add_argument("--most", type=int, default=200, help="orders of each launch (200)")
    options = arguments.parse_args()
    failed = 0
    print("| program | target | kernel | orders | left early | steps | commuting pairs | s | complete |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case in cases():
        if options.only not in case.name:
            continue
        launches = explore(options.build / "bin", case, options)
        failed += launches is None
        for launch in launches or []:
            row = (case.name, case.target, launch["kernel"], launch["orders"], launch["pruned"],
                   launch["longest"], launch["commuting_pairs"], f"{launch['seconds']:.2f}",
                   "yes" if launch["complete"] else "no")
            print("| " + " | ".join(map(str, row)) + " |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
