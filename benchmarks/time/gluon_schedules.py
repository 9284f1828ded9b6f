#!/usr/bin/env python3
"""Compares predictions for a B200 with published times of Gluon's block-scaled GEMM, by both of its
schedules.

  benchmarks/time/gluon_schedules.py FILE [--build BUILD] [--ctas 1|2] [--most K] [--clock GHZ]
      [--json OUT] [--again OUT]

FILE is Gluon's example 04, the block-scaled GEMM by pairs, in github.com/triton-lang/triton
(0667816 has both schedules). The kernel that is predicted is its own: Triton compiles it, and the
simulator runs what Triton emits, for GEMMs of mxfp8, 8192 x 8192 x K, with the configurations that
the file calls the best ones. The program runs with a Python that has torch, pytest and Triton
(3.9.0 here).

PUBLISHED has the table of pull request triton #10556, in TFLOP/s: a static persistent grid, and
tiles that clusters take over by cluster launch control. Neither the GPU nor its clock is named
there, nor the sizes; 8192 x 8192 is what the file's benchmarks have. Nothing was fitted to the
table.
"""
from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import sys
from dataclasses import asdict, dataclass

from predictions import last_launch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIDE = 8192
SCHEDULES = ("static", "clc")
# CTAs of a cluster, K: TFLOP/s of cluster launch control, and of the static grid
PUBLISHED = {
    (1, 256): (831.6, 1191.2), (1, 512): (1321.0, 1686.4), (1, 1024): (1873.4, 2219.6), (1, 2048): (2369.6, 2647.8),
    (1, 4096): (2686.5, 2888.0), (1, 8192): (2815.3, 2915.6), (1, 16384): (2776.4, 2820.2),
    (2, 256): (808.8, 1184.9), (2, 512): (1312.0, 1840.8), (2, 1024): (1976.0, 2486.7), (2, 2048): (2638.7, 3060.6),
    (2, 4096): (3193.2, 3361.0), (2, 8192): (3432.4, 3478.7), (2, 16384): (3415.7, 3411.9),
}


@dataclass
class Point:
    ctas: int
    k: int
    clc: float  # us, published
    static: float
    predicted_clc: float = 0  # us
    predicted_static: float = 0

    def errors(self) -> tuple[float, float]:
        return self.predicted_static / self.static - 1, self.predicted_clc / self.clc - 1

    def published_ratio(self) -> float:
        return self.clc / self.static

    def ratio(self) -> float:
        return self.predicted_clc / self.predicted_static

    def agrees(self) -> bool:
        return (self.ratio() > 1) == (self.published_ratio() > 1)


def points(ctas: int | None, most: int) -> list[Point]:
    def microseconds(k: int, tflops: float) -> float:
        return 2.0 * SIDE * SIDE * k / tflops / 1e6

    return [Point(blocks, k, *(microseconds(k, rate) for rate in rates)) for (blocks, k), rates in PUBLISHED.items()
            if ctas in (None, blocks) and k <= most]


# ---- In the simulator: one launch ----------------------------------------------------------------


def launch(file: str, ctas: int, k: int, schedule: str) -> None:
    import torch

    spec = importlib.util.spec_from_file_location("block_scale_matmul", file)
    assert spec and spec.loader
    example = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = example  # Triton asks for the source of its functions
    spec.loader.exec_module(example)

    def operand() -> tuple[torch.Tensor, torch.Tensor]:
        """Zeros, because the time does not depend on values."""
        data = torch.zeros(SIDE, k, dtype=torch.uint8, device="cuda").view(torch.float8_e4m3fn)
        return data, torch.zeros(SIDE // 128, k // 128, 32, 4, 4, dtype=torch.uint8, device="cuda")

    (a, a_scale), (b, b_scale) = operand(), operand()
    scheduler = example.SCHEDULER_CLC if schedule == "clc" else example.SCHEDULER_SPS
    config = example.BEST_1CTA_CONFIG if ctas == 1 else example.BEST_2CTA_CONFIG
    example.mma_scaled_warp_specialized(a, b, a_scale, b_scale, 32, scheduler, **config)


# ---- Outside -------------------------------------------------------------------------------------


def predict(options: argparse.Namespace, point: Point, schedule: str) -> float:
    """Microseconds of the kernel, by a process of its own under the simulator."""
    command = [sys.executable, "-m", "fp4.sim", "--device=b200", "--time-only", "--check=off", "--json",
               f"--clock={options.clock}", __file__, str(options.file), "--launch", f"{point.ctas}:{point.k}:{schedule}"]
    paths = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    try:
        report = last_launch(command, {"FP4_SIM": str(options.build / "bin/fp4-sim"), "PYTHONPATH": paths})
    except RuntimeError as failure:
        sys.exit(f"{point.ctas} blocks, K = {point.k}, {schedule}:\n{failure}")
    return float(report["microseconds"])


def show(rows: list[Point]) -> None:
    print("| blocks | K | static, published | predicted | CLC, published | predicted | CLC / static, published | predicted |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row.ctas} | {row.k} | {row.static:.1f} | {row.predicted_static:.1f} | {row.clc:.1f} | {row.predicted_clc:.1f} "
              f"| {row.published_ratio():.3f} | {row.ratio():.3f} |")
    errors = [100 * error for row in rows for error in row.errors()]
    ratios = [100 * abs(row.ratio() / row.published_ratio() - 1) for row in rows]
    print(f"{sum(row.agrees() for row in rows)} of {len(rows)} signs agree; the ratio is off by {sum(ratios) / len(rows):.1f} % on "
          f"average and {max(ratios):.1f} % at most; times by {sum(map(abs, errors)) / len(errors):.1f} % (mean "
          f"{sum(errors) / len(errors):+.1f} %, worst {max(errors, key=abs):+.1f} %)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--ctas", type=int, choices=(1, 2), help="CTAs of a cluster; both without")
    parser.add_argument("--most", type=int, default=1 << 20, metavar="K", help="leave larger K out")
    parser.add_argument("--clock", type=float, default=0, metavar="GHZ", help="0: as in the table of rates")
    parser.add_argument("--json", type=pathlib.Path, help="write the points there, each when it is known")
    parser.add_argument("--again", type=pathlib.Path, help="points that --json wrote")
    parser.add_argument("--launch", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.launch:
        ctas, k, schedule = options.launch.split(":")
        launch(str(options.file), int(ctas), int(k), schedule)
        return 0
    known = {}
    if options.again:
        known = {(row["ctas"], row["k"]): Point(**row) for row in json.loads(options.again.read_text(encoding="utf-8"))}
    rows = []
    for point in points(options.ctas, options.most):
        if (point.ctas, point.k) in known:
            point = known[point.ctas, point.k]
        else:
            point.predicted_static, point.predicted_clc = (predict(options, point, schedule) for schedule in SCHEDULES)
        rows.append(point)
        if options.json:
            options.json.write_text(json.dumps([asdict(row) for row in rows], indent=0) + "\n", encoding="utf-8")
    show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
