#!/usr/bin/env python3
"""Compares predictions of samples with those of whole simulations of the same launches, on any machine.

  benchmarks/time/sample.py FP4_RUNNER [--case WORD] [--sample-after N] [--most PERCENT] [--json FILE]

Each kernel is predicted twice: on all multiprocessors to the end (--sample-after 0), and with a sample that goes on
alone after N warp instructions. The table has both times, their difference, and how long each simulation took. The
exit code is 1 if a difference is larger than --most percent.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent


@dataclass(frozen=True)
class Case:
    name: str
    target: str
    program: str  # a file of benchmarks/, or "product"
    function: str
    shape: tuple[int, ...]


CASES = [
    Case("streaming amax", "sm_90a", "streaming.mlir", "amax", (4096,)),
    Case("streaming nvfp4", "sm_90a", "streaming.mlir", "nvfp4", (4096,)),
    Case("streaming hadamard", "sm_90a", "streaming.mlir", "hadamard", (2048,)),
    Case("product sm_90a", "sm_90a", "product", "gemm", (1024, 4096, 1024)),
    Case("product sm_90a", "sm_90a", "product", "gemm", (2048, 4096, 1024)),
    Case("product sm_100a", "sm_100a", "product", "gemm", (2048, 2048, 4096)),
    Case("product sm_100a", "sm_100a", "product", "gemm", (4096, 8192, 4096)),
]


def product(m: int, n: int, k: int) -> str:
    """One NVFP4 product with a result in bf16."""
    def operand(name: str, rows: int) -> str:
        return (f'%{name}: tensor<{rows}x{k}xf4E2M1FN> {{fp4.name = "{name}"}}, '
                f'%s{name}: tensor<{rows}x{k // 16}xf8E4M3FN, #tiled> {{fp4.name = "s{name}"}}')

    def types(rows: int) -> str:
        return f"tensor<{rows}x{k}xf4E2M1FN>, tensor<{rows}x{k // 16}xf8E4M3FN, #tiled>"

    return f"""#tiled = #fp4.scale_layout<tiled_128x4>
func.func @gemm({operand("a", m)}, {operand("b", n)}) -> (tensor<{m}x{n}xbf16> {{fp4.name = "y"}}) {{
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {{format = #fp4.format<nvfp4>}}
      : ({types(m)}, {types(n)}) -> tensor<{m}x{n}xbf16>
  return %y : tensor<{m}x{n}xbf16>
}}
"""


def predict(runner: str, case: Case, program: pathlib.Path, after: int) -> tuple[float, bool, float]:
    """Microseconds of the longest launch, whether it was sampled, and seconds that the simulation took."""
    command = [runner, str(program), f"--target={case.target}", "--device=sim", "--time-only", f"--sample-after={after}",
               "--function", case.function, "--json"]
    if case.program != "product":
        command += ["--shape", ",".join(map(str, case.shape))]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}\n{done.stderr}")
    launch = max(json.loads(done.stdout)["predicted_times"], key=lambda one: float(one["microseconds"]))
    return float(launch["microseconds"]), bool(launch["sampled"]), time.monotonic() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runner", help="fp4-runner")
    parser.add_argument("--case", default="", help="only those whose names contain this")
    parser.add_argument("--sample-after", type=int, default=1 << 20, help="warp instructions before the sample")
    parser.add_argument("--most", type=float, default=3.0, help="the largest difference in percent")
    parser.add_argument("--json", help="write the table there")
    options = parser.parse_args()
    rows = []
    print(f"{'kernel':<20} {'shape':<16} {'whole, us':>10} {'sample, us':>10} {'difference':>10} {'s':>6} {'s':>6}")
    for case in CASES:
        if options.case not in case.name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            program = HERE.parent / case.program
            if case.program == "product":
                program = pathlib.Path(folder) / "product.mlir"
                program.write_text(product(*case.shape), encoding="utf-8")
            whole, _, slow = predict(options.runner, case, program, 0)
            sample, sampled, fast = predict(options.runner, case, program, options.sample_after)
        shape = "x".join(map(str, case.shape))
        difference = 100 * (sample / whole - 1)
        rows.append({"kernel": case.name, "shape": shape, "whole_us": whole, "sample_us": sample, "sampled": sampled,
                     "difference_percent": difference, "whole_seconds": slow, "sample_seconds": fast})
        print(f"{case.name:<20} {shape:<16} {whole:>10.2f} {sample:>10.2f} {difference:>+9.2f}% {slow:>6.1f} {fast:>6.1f}"
              f"{'' if sampled else '  not sampled'}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    worst = max((abs(float(str(row["difference_percent"]))) for row in rows), default=0.0)
    print(f"predictions alone: {len(rows)} kernels, the largest difference is {worst:.2f} %")
    return 1 if worst > options.most else 0


if __name__ == "__main__":
    sys.exit(main())
