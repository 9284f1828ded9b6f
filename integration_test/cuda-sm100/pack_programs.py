#!/usr/bin/env python3
"""Compiles the kit's programs for one target, with what the simulator predicts of their times.

  pack_programs.py --build BUILD --target sm_100a [--small] FOLDER

FOLDER has the libraries, programs.txt with a line of arguments of fp4-run for each verification, and times.txt with
a name, arguments and predicted microseconds for each time. The programs are those of the sweeps of validation (SWEEPS says
which a target has), the streaming kernels of benchmarks/streaming.mlir, and one product of every kind (packed_gemms.py),
which is verified and timed. For sm_103a there are products of K = 96, for sm_120a those of mma.sync.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import packed_gemms

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMED = ["amax", "nvfp4", "mxfp4", "hadamard", "stochastic", "dequantize"]
ROWS = [128, 1024]
# Programs of sweeps by target: a program of validation with its options. Quantizers come from sweep_quantize.py besides.
TENSOR = [("sweep.py", f"--plans={plans}") for plans in ("half_pairs", "swapped")] + [
    ("sweep_groups.py",), ("sweep_results.py",), ("sweep_fp8.py", "--plans=lanes"), ("sweep_wide.py",)]
THREADS = ("sweep_groups.py", "--match=^threads")
# Chains along rows: those that the sweep compiles for a target.
ROWS_OF = {target: ("sweep_rows.py", f"--match={target}$") for target in ("sm_100a", "sm_120a")}
SWEEPS: dict[str, list[tuple[str, ...]]] = {
    "sm_100a": [("sweep.py", f"--plans={plans}") for plans in ("tiles", "others", "stores")] + TENSOR + [ROWS_OF["sm_100a"]],
    "sm_103a": [("sweep.py", "--plans=k96")] + TENSOR + [ROWS_OF["sm_100a"]],
    "sm_120a": [("sweep.py", "--plans=warps"), ("sweep_wide.py", "--plans=warps"),
                ("sweep_weights.py", "--plans=warps"), ROWS_OF["sm_120a"], THREADS],
    "sm_90a": [("sweep.py", "--plans=converted"), ("sweep.py", "--plans=few"), ("sweep_fp8.py",), ("sweep_weights.py",), ("sweep_rows.py",),
               THREADS],
}
# Programs of tests that one target alone runs: their functions, with the shapes of dynamic sizes.
TESTS = {"sm_103a": ("test/Runner/Gemm/tcgen05/k96.mlir", ["wide", "powers", "cluster", "layer --shape 300", "layer --shape 5"])}


def compile_library(build: pathlib.Path, source: pathlib.Path, target: str, library: pathlib.Path, small: bool,
                    *more: str) -> bool:
    """Without ptxas for a simulated GPU, which takes PTX."""
    environment = os.environ | ({"FP4_PTXAS": "none"} if small else {})
    found = subprocess.run([build / "bin/fp4-runner", source, f"--target={target}", "--emit=so", "-o", library, *more],
                           env=environment, capture_output=True, text=True, check=False)
    if found.returncode:
        print(f"{target}: {source.name} is left out: {found.stderr.splitlines()[0]}")
    return found.returncode == 0


def predicted(build: pathlib.Path, library: pathlib.Path, *arguments: str) -> float | None:
    """Predicts the time of all kernels of a call in microseconds; None if the simulator has no rates of the target."""
    found = subprocess.run([build / "bin/fp4-run", library, "--device=sim", "--time-only", "--json", "--no-verify", "--check=off",
                            "--dist=zeros", *arguments], capture_output=True, text=True, check=False)
    times = json.loads(found.stdout).get("predicted_times", []) if found.returncode == 0 else []
    return sum(time["microseconds"] for time in times) if times and all(time["predicted"] for time in times) else None


def sweeps(build: pathlib.Path, target: str, folder: pathlib.Path) -> list[str]:
    """The libraries of the sweeps, and the lines that run them."""
    for sweep, *more in SWEEPS.get(target, []):
        subprocess.run([ROOT / "validation" / sweep, "--build", build, f"--target={target}", "--pack", folder, *more], check=False)
    subprocess.run([ROOT / "validation/sweep_quantize.py", "--build", build, "--pack", folder, "--match", target], check=False)
    return [line for path in sorted(folder.glob("*.txt")) for line in path.read_text().splitlines()]


def products(build: pathlib.Path, target: str, folder: pathlib.Path, small: bool) -> list[tuple[str, str, float | None]]:
    """A library for each kind of product: its name, the line that runs it, and its predicted time."""
    found = []
    for name, text in packed_gemms.products(target, small):
        library = folder / f"product_{name}.so"
        with tempfile.TemporaryDirectory() as scratch:
            source = pathlib.Path(scratch) / f"{name}.mlir"
            source.write_text(text)
            if not compile_library(build, source, target, library, small):
                continue
        found.append((name, library.name, predicted(build, library)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    folder, build = options.folder, options.build
    folder.mkdir(parents=True, exist_ok=True)
    programs = [] if options.small else sweeps(build, options.target, folder)
    times = []
    if compile_library(build, ROOT / "benchmarks/streaming.mlir", options.target, folder / "streaming.so", options.small):
        for function in TIMED[:1] if options.small else TIMED:
            programs += [f"streaming.so --function {function} --shape {rows}" for rows in (1, 127, 300)[:2 if options.small else 3]]
            for rows in ROWS[:1] if options.small else ROWS:
                time = predicted(build, folder / "streaming.so", f"--function={function}", f"--shape={rows}")
                if time:
                    times.append(f"{function} {rows} x 4096\tstreaming.so --function {function} --shape {rows}\t{time:.3f}")
    for name, line, time in products(build, options.target, folder, options.small):
        programs += [line] if options.small or time is None else []  # what is timed is verified before
        times += [f"{name}\t{line}\t{time:.3f}"] if time else []
    if compile_library(build, ROOT / "benchmarks/nvfp4_gemm.mlir", options.target, folder / "gemm.so", options.small):
        programs.append("gemm.so --dist exact")
    source, functions = TESTS.get(options.target, ("", []))
    if source and compile_library(build, ROOT / source, options.target, folder / "target.so", options.small):
        programs += [f"target.so --function {function}" for function in functions[:2 if options.small else None]]
    (folder / "programs.txt").write_text("\n".join(programs) + "\n")
    (folder / "times.txt").write_text("".join(time + "\n" for time in times))
    print(f"{options.target}: {len(programs)} runs of programs, {len(times)} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
