#!/usr/bin/env python3
"""Compares predicted times of products with measured ones (products_h200.csv), on any machine.

  benchmarks/time/products.py FP4_RUNNER [--kind WORD] [--most SECONDS] [--json FILE]

Each product is compiled for sm_90a with the plan that was measured, and predicted alone with cold L2 (--time-only).
--most leaves out what takes longer. None of the points took part in a calibration.
"""
from __future__ import annotations

import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass

HERE = pathlib.Path(__file__).resolve().parent
SCALES = {"nvfp4": (16, "f8E4M3FN", 4608), "mxfp4": (32, "f8E8M0FNU", 4352)}


@dataclass
class Point:
    kind: str
    format: str  # of kind "dots": the function of gemv.mlir
    m: int
    n: int
    k: int
    split: int
    tile: str
    measured: float
    predicted: float = 0.0
    bound: str = ""

    def error(self) -> float:
        return self.predicted / self.measured - 1


def read_points() -> list[Point]:
    with open(HERE / "products_h200.csv", encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    return [Point(row["kind"], row["format"], int(row["m"]), int(row["n"]), int(row["k"]), int(row["split"]),
                  row["tile"], float(row["microseconds"])) for row in csv.DictReader(lines)]


def weights(p: Point) -> str:
    """bf16 activations times prepacked weights."""
    packed = f"tensor<{p.n // 128}x{p.k // 64}x{SCALES[p.format][2]}xi8, #fp4.weight_layout<wgmma>>"
    return f"""func.func @f(%x: tensor<?x{p.k}xbf16> {{fp4.dims = ["M", "K"]}}, %w: {packed}) -> tensor<?x{p.n}xbf16> {{
  %y = fp4.blockscaled_matmul %x, %w {{format = #fp4.format<{p.format}>, split_k = {p.split} : i64}}
      : (tensor<?x{p.k}xbf16>, {packed}) -> tensor<?x{p.n}xbf16>
  return %y : tensor<?x{p.n}xbf16>
}}
"""


def product(p: Point) -> str:
    """Two operands with scales, of fp4 or of FP8 in blocks of 128."""
    def operand(name: str, rows: int) -> tuple[str, str]:
        if p.format == "fp8_block128":
            size = f"{rows}x{p.k // 128}" if name == "a" else f"{rows // 128}x{p.k // 128}"
            data, scale = f"tensor<{rows}x{p.k}xf8E4M3FN>", f"tensor<{size}xf32>"
        else:
            block, element, _ = SCALES[p.format]
            data = f"tensor<{rows}x{p.k}xf4E2M1FN>"
            scale = f"tensor<{rows}x{p.k // block}x{element}, #fp4.scale_layout<tiled_128x4>>"
        return f"%{name}: {data}, %s{name}: {scale}", f"{data}, {scale}"

    (a, types_a), (b, types_b) = operand("a", p.m), operand("b", p.n)
    split = f", split_k = {p.split} : i64" if p.split > 1 else ""
    return f"""func.func @f({a}, {b}) -> tensor<{p.m}x{p.n}xbf16> {{
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {{format = #fp4.format<{p.format}>{split}}}
      : ({types_a}, {types_b}) -> tensor<{p.m}x{p.n}xbf16>
  return %y : tensor<{p.m}x{p.n}xbf16>
}}
"""


def predict(runner: str, p: Point, folder: pathlib.Path, most: float) -> bool:
    """Fills in the prediction; false where it takes too long."""
    program = HERE.parent / "gemv.mlir" if p.kind == "dots" else folder / "product.mlir"
    if p.kind != "dots":
        program.write_text(weights(p) if p.kind == "weights" else product(p), encoding="utf-8")
    command = [runner, str(program), "--target=sm_90a", "--device=sim", "--time-only", "--json", "--function",
               p.format if p.kind == "dots" else "f"]
    if p.tile:
        command += ["--plan", f"tile_product, tile = [{p.tile.replace('x', ', ')}]"]
    if p.kind == "dots":
        command += ["--plan", "stream_dots, threads = 128, resident = 4"]
    if p.kind == "weights":
        command += ["--shape", str(p.m)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=most)
    except subprocess.TimeoutExpired:
        return False
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}\n{done.stderr}")
    launch = max(json.loads(done.stdout)["predicted_times"],
                 key=lambda one: ("dots" in str(one["kernel"]), float(one["microseconds"])))
    p.predicted, p.bound = float(launch["microseconds"]), str(launch["bound"])
    return True


def show(points: list[Point], what: str) -> None:
    if not points:
        return
    errors = [abs(p.error()) for p in points]
    print(f"{what}: {len(points)} points, mean absolute error {100 * sum(errors) / len(errors):.1f} %, "
          f"worst {100 * max(errors):.1f} %, {sum(e <= 0.2 for e in errors)} within 20 %")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runner", help="fp4-runner")
    parser.add_argument("--kind", default="", help="only kinds that contain this")
    parser.add_argument("--most", type=float, default=600, help="seconds of one prediction")
    parser.add_argument("--json", help="write the points there")
    options = parser.parse_args()
    points = [p for p in read_points() if options.kind in p.kind]
    done: list[Point] = []
    with tempfile.TemporaryDirectory() as folder:
        for p in points:
            name = f"{p.kind:<8} {p.format:<18} {p.m:>5} x {p.n} x {p.k}, {p.split} ranges {p.tile}"
            if not predict(options.runner, p, pathlib.Path(folder), options.most):
                print(f"{name}: left out after {options.most:.0f} s", flush=True)
                continue
            done.append(p)
            print(f"{name}: measured {p.measured:.1f} us, predicted {p.predicted:.1f} us, {100 * p.error():+.1f} %, "
                  f"{p.bound}", flush=True)
    for kind in dict.fromkeys(p.kind for p in done):
        show([p for p in done if p.kind == kind], kind)
    show(done, "all")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps([asdict(p) for p in done], indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
