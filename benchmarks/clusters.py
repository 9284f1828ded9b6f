#!/usr/bin/env python3
"""GEMMs whose plan has clusters of two pairs, beside the plan that they would have without, in the
simulator.

  benchmarks/clusters.py [--build BUILD] [--sample 24] [--seed 1]

Many sizes of NVFP4 GEMMs, with every epilogue of benchmarks/epilogues.py, are planned for sm_100a.
The program times SAMPLE of those whose plan has `cluster = [2, 2]`: `fp4-runner --time-only` (1.965
GHz, the kernel alone, launch included; large grids are sampled) of that plan and of the one that
the compiler chooses where `cluster = [2, 1]` is asked for. Every number is a prediction.
"""
from __future__ import annotations

import argparse
import itertools
import pathlib
import random
import re
import subprocess
import tempfile

import blackwell
from epilogues import EPILOGUES, Epilogue, program

ROWS, COLUMNS, DEPTHS = [512, 1024, 1536, 2048, 3072, 4096, 8192], [2048, 3072, 4096, 7168, 8192, 14336], [1024, 2048, 4096, 7168]
PLAN = re.compile(r"tile = \[(\d+), (\d+), \d+\], cluster = \[2, 2\]")


def tile_in_cluster(build: pathlib.Path, source: pathlib.Path) -> str | None:
    """The tile of the plan that is chosen, where it has a cluster of two pairs."""
    found = subprocess.run([build / "bin/fp4-opt", source, "-fp4-set-target=target=sm_100a", "-fp4-plan-kernels"],
                           capture_output=True, text=True, check=True)
    plan = PLAN.search(found.stdout)
    return f"{plan[1]}x{plan[2]}" if plan else None


def sampled(build: pathlib.Path, source: pathlib.Path, count: int) -> list[tuple[Epilogue, tuple[int, int, int], str]]:
    """Problems with such a plan, and its tile. Every other one is a plain GEMM."""
    sizes = list(itertools.product(ROWS, COLUMNS, DEPTHS))
    problems = [(EPILOGUES[0] if index % 2 else random.choice(EPILOGUES), size)
                for index, size in enumerate(random.sample(sizes, len(sizes)))]
    found: list[tuple[Epilogue, tuple[int, int, int], str]] = []
    for epilogue, size in problems:
        if len(found) == count:
            break
        source.write_text(program(epilogue, *size, ""))
        if tile := tile_in_cluster(build, source):
            found.append((epilogue, size, tile))
    return found


def microseconds(build: pathlib.Path, source: pathlib.Path, text: str) -> float:
    source.write_text(text)
    found = blackwell.timed(build, source, 240)
    return float(str(found["microseconds"])) if isinstance(found, dict) else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=blackwell.ROOT / "build")
    parser.add_argument("--sample", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    ratios = []
    print("| epilogue | M x N x K | tile | two pairs, us | one pair, us | ratio |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "p.mlir"
        for epilogue, size, tile in sampled(options.build, source, options.sample):
            chosen = microseconds(options.build, source, program(epilogue, *size, ""))
            without = microseconds(options.build, source, program(epilogue, *size, "cluster = [2, 1], pair"))
            ratios.append(without / chosen)
            print(f"| {epilogue.name} | {' x '.join(map(str, size))} | {tile} | {chosen:.2f} | {without:.2f} | {ratios[-1]:.3f} |", flush=True)
    mean = sum(ratios) / len(ratios)
    print(f"{sum(ratio >= 1 for ratio in ratios)} of {len(ratios)} are faster with clusters, {100 * (mean - 1):.1f} % on average, "
          f"from {100 * (min(ratios) - 1):.1f} to {100 * (max(ratios) - 1):.1f} %")


if __name__ == "__main__":
    main()
