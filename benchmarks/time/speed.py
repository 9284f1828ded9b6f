#!/usr/bin/env python3
"""Compares what a simulation costs with --time and without it, in processor time, on any machine.

  benchmarks/time/speed.py BUILD [--case WORD] [--repeat N] [--libraries FOLDER]

Each kernel runs alone in fp4-run, without the checker and without verification, on inputs of zeros,
which cost next to nothing to generate. The table has seconds in user and system mode of all
threads, the least of N runs each, and their ratio. The libraries that FOLDER has are not compiled
again, so that it and BUILD/bin/fp4-run are enough on another machine. Processor time is compared
because the simulation without a clock uses several cores, and the timed one uses one.
"""
from __future__ import annotations

import argparse
import pathlib
import resource
import subprocess
import sys
import tempfile

import sample

STREAMING = ("amax", "nvfp4", "mxfp4", "hadamard", "stochastic", "adaptive", "dequantize")
ROWS = 16384
PRODUCT = (2048, 2048, 4096)


def compile_library(build: pathlib.Path, program: pathlib.Path, target: str, folder: pathlib.Path) -> pathlib.Path:
    library = folder / f"{program.stem}-{target}.so"
    if not library.exists():
        subprocess.run([build / "bin/fp4-runner", program, f"--target={target}", "--emit=so", "-o", library], check=True)
    return library


def cases(build: pathlib.Path, folder: pathlib.Path) -> list[tuple[str, list[str]]]:
    """A name and the arguments of fp4-run for each kernel."""
    streaming = compile_library(build, sample.HERE.parent / "streaming.mlir", "sm_90a", folder)
    found = [(f"{name}, {ROWS} rows, sm_90a", [str(streaming), "--function", name, "--shape", str(ROWS)])
             for name in STREAMING]
    program = folder / "product.mlir"
    program.write_text(sample.product(*PRODUCT), encoding="utf-8")
    shape = " x ".join(map(str, PRODUCT))
    for target in ("sm_90a", "sm_100a"):
        library = compile_library(build, program, target, folder)
        found.append((f"NVFP4 product {shape}, {target}", [str(library), "--function", "gemm"]))
    return found


def processor_seconds(command: list[str], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="the build folder")
    parser.add_argument("--case", default="", help="only kernels whose names contain this")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, of which the fastest counts")
    parser.add_argument("--libraries", type=pathlib.Path, help="a folder for the libraries, which stay")
    options = parser.parse_args()
    print(f"{'kernel':<46} {'functional, s':>14} {'timed, s':>9} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.libraries or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name, arguments in cases(options.build, folder):
            if options.case not in name:
                continue
            command = [str(options.build / "bin/fp4-run"), *arguments, "--device", "sim", "--check=off", "--no-verify",
                       "--dist", "zeros"]
            functional = processor_seconds(command, options.repeat)
            timed = processor_seconds([*command, "--time"], options.repeat)
            print(f"{name:<46} {functional:>14.2f} {timed:>9.2f} {timed / functional:>6.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
