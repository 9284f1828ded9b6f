#!/usr/bin/env python3
"""Compares predictions of samples with those of whole simulations of the same launches, on any
machine.

  benchmarks/time/sample.py FP4_RUNNER [--cuda FP4_SIM] [--case WORD] [--sample-after N] [--most
      PERCENT] [--json FILE]

Each kernel is predicted twice: on all SMs to the end (--sample-after 0), and with a sample that
goes on alone after N warp instructions. The table has both times, their difference, and how long
each simulation took. With --cuda the kernels of blocks.cu are compared too, for which nvcc is
needed. The exit code is 1 if a difference is larger than --most percent; a sample that is refused
has no difference.
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
    program: str  # a file of benchmarks/, "product", or "cuda" for a kernel of blocks.cu
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

#: Cases of blocks.cu, with CTAs and a number: tiles of CTAs that stay, or turns of a loop.
CUDA_CASES = [Case(f"CUDA {name}", "h200", "cuda", name, shape) for name, shape in (
    ("queue", (132, 4000)), ("tiles", (132, 4000)), ("ragged", (132, 4000)), ("scan", (6000, 100)),
    ("causal", (12000, 16)), ("causal", (24000, 16)), ("last", (6000, 100)))]


def product(m: int, n: int, k: int) -> str:
    """One NVFP4 GEMM with a result in bf16."""
    def operand(name: str, rows: int) -> str:
        return (f'%{name}: tensor<{rows}x{k}xf4E2M1FN> {{fp4.name = "{name}"}}, '
                f'%s{name}: tensor<{rows}x{k // 16}xf8E4M3FN, #tiled> {{fp4.name = "s{name}"}}')

    def types(rows: int) -> str:
        return f"tensor<{rows}x{k}xf4E2M1FN>, tensor<{rows}x{k // 16}xf8E4M3FN, #tiled>"

    return f"""#tiled = #fp4.scale_layout<tiled_128x4>
func.func @gemm({operand("a", m)}, {operand("b", n)}) -> (tensor<{m}x{n}xbf16> {{fp4.name = "y"}}) {{
  %lhs = fp4.scaled %a, %sa : !fp4.scaled<nvfp4, {types(m)}>
  %rhs = fp4.scaled %b, %sb : !fp4.scaled<nvfp4, {types(n)}>
  %y = fp4.matmul %lhs, %rhs : (!fp4.scaled<nvfp4, {types(m)}>, !fp4.scaled<nvfp4, {types(n)}>)
      -> tensor<{m}x{n}xbf16>
  return %y : tensor<{m}x{n}xbf16>
}}
"""


def compiled(folder: pathlib.Path) -> pathlib.Path:
    program = folder / "blocks"
    subprocess.run(["nvcc", "-cudart=shared", "-gencode", "arch=compute_90a,code=compute_90a", HERE / "blocks.cu", "-o",
                    program], check=True)
    return program


@dataclass(frozen=True)
class Prediction:
    """The prediction for the longest launch; None: the sample was refused."""
    microseconds: float | None
    note: str  # why it was not sampled, or refused
    seconds: float  # that the simulation took


def prediction(launches: list[dict[str, object]], seconds: float) -> Prediction:
    for launch in launches:
        if "unknown" in launch:
            return Prediction(None, f"refused: {launch['unknown']}", seconds)
    launch = max(launches, key=lambda one: float(str(one["microseconds"])))
    note = "" if launch["sampled"] else str(launch.get("not_sampled", "not sampled"))
    return Prediction(float(str(launch["microseconds"])), note, seconds)


def predict_cuda(tool: str, case: Case, program: pathlib.Path, after: int) -> Prediction:
    command = [tool, "run", f"--device={case.target}", "--time-only", f"--sample-after={after}", "--json", "--",
               str(program), case.function, *map(str, case.shape)]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}\n{done.stderr}")
    times = json.loads(done.stdout.splitlines()[-1])["predicted_times"]
    return prediction(times, time.monotonic() - begin)


def predict(runner: str, case: Case, program: pathlib.Path, after: int) -> Prediction:
    command = [runner, str(program), f"--target={case.target}", "--device=sim", "--time-only", f"--sample-after={after}",
               "--function", case.function, "--json"]
    if case.program != "product":
        command += ["--shape", ",".join(map(str, case.shape))]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}\n{done.stderr}")
    return prediction(json.loads(done.stdout)["predicted_times"], time.monotonic() - begin)


def both(options: argparse.Namespace, case: Case) -> tuple[Prediction, Prediction]:
    with tempfile.TemporaryDirectory() as folder:
        tool, how, program = options.runner, predict, HERE.parent / case.program
        if case.program == "product":
            program = pathlib.Path(folder) / "product.mlir"
            program.write_text(product(*case.shape), encoding="utf-8")
        elif case.program == "cuda":
            tool, how, program = options.cuda, predict_cuda, compiled(pathlib.Path(folder))
        return how(tool, case, program, 0), how(tool, case, program, options.sample_after)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runner", help="fp4-runner")
    parser.add_argument("--cuda", metavar="FP4_SIM", help="fp4-sim, for the kernels of blocks.cu")
    parser.add_argument("--case", default="", help="only those whose names contain this")
    parser.add_argument("--sample-after", type=int, default=1 << 20, help="warp instructions before the sample")
    parser.add_argument("--most", type=float, default=5.0, help="the largest difference in percent")
    parser.add_argument("--json", help="write the table there")
    options = parser.parse_args()
    rows = []
    print(f"{'kernel':<20} {'shape':<16} {'whole, us':>10} {'sample, us':>10} {'difference':>10} {'s':>6} {'s':>6}")
    for case in CASES + (CUDA_CASES if options.cuda else []):
        if options.case not in case.name:
            continue
        whole, sample = both(options, case)
        if whole.microseconds is None:
            sys.exit(f"error: {case.name}: no prediction: {whole.note}")
        shape = "x".join(map(str, case.shape))
        difference = 100 * (sample.microseconds / whole.microseconds - 1) if sample.microseconds else None
        rows.append({"kernel": case.name, "shape": shape, "whole_us": whole.microseconds, "note": sample.note,
                     "sample_us": sample.microseconds, "difference_percent": difference,
                     "whole_seconds": whole.seconds, "sample_seconds": sample.seconds})
        sampled = f"{sample.microseconds:>10.2f} {difference:>+9.2f}%" if sample.microseconds else f"{'-':>10} {'-':>10}"
        print(f"{case.name:<20} {shape:<16} {whole.microseconds:>10.2f} {sampled} {whole.seconds:>6.1f} "
              f"{sample.seconds:>6.1f}  {sample.note}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    worst = max((abs(float(str(row["difference_percent"]))) for row in rows if row["sample_us"]), default=0.0)
    print(f"predictions alone: {len(rows)} kernels, the largest difference is {worst:.2f} %")
    return 1 if worst > options.most else 0


if __name__ == "__main__":
    sys.exit(main())
