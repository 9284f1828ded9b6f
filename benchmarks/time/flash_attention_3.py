#!/usr/bin/env python3
"""Predicts FlashAttention-3's forward pass and compares it with measured times.

  benchmarks/time/flash_attention_3.py compile FOLDER SOURCES CUTLASS   with nvcc, five programs
  benchmarks/time/flash_attention_3.py measure FOLDER       on a GPU: writes FOLDER/measured.json
  benchmarks/time/flash_attention_3.py predict FOLDER BUILD CELLS [--gpu GPU] [--json FILE]

SOURCES has Dao-AILab/flash-attention and CUTLASS its submodule; flash_attention_3.cu, which they
are compiled with, is a kernel and its launches alone, without PyTorch. CELLS are results with rows
like those of benchmarks/results/flash_attention_3_h200_2026-12-01.json. A cell is predicted at the
clock of its measurement. Each third cell, in the order of its name, is kept out of any fit, and has
a mean error of its own.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
CAUSAL, PAIRS, ALONE, NARROW = "causal, tiles from a counter", "clusters of 2", "without clusters", "MMAs of 16 columns"
#: The kind of a kernel, and if CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED is set, as packages have it.
PROGRAMS = {PAIRS: (2, True), ALONE: (1, True), CAUSAL: (0, True), f"{PAIRS}, {NARROW}": (2, False), f"{ALONE}, {NARROW}": (1, False)}
SIZES = {PAIRS: [(1, 16, 256), (4, 16, 256), (1, 16, 512), (2, 16, 512), (1, 32, 512), (4, 16, 512), (1, 16, 1024), (2, 16, 1024), (2, 16, 2048)],
         ALONE: [(1, 16, 512), (1, 16, 1024), (2, 16, 1024), (2, 16, 2048)],
         CAUSAL: [(1, 16, 512), (2, 16, 1024), (32, 16, 512), (4, 16, 2048)],
         f"{PAIRS}, {NARROW}": [(1, 16, 512), (2, 16, 512), (1, 16, 1024), (2, 16, 1024), (2, 16, 2048), (4, 16, 2048)],
         f"{ALONE}, {NARROW}": [(1, 16, 512), (2, 16, 2048)]}
OPTIONS = ["-O3", "-std=c++17", "--use_fast_math", "-lineinfo", "-w", "-DCUTLASS_ENABLE_GDC_FOR_SM90", "-DCUTLASS_DEBUG_TRACE_LEVEL=0",
           "-DNDEBUG", "--expt-relaxed-constexpr", "--expt-extended-lambda", "-gencode", "arch=compute_90a,code=[compute_90a,sm_90a]"]


def program_of(folder: pathlib.Path, kernel: str) -> pathlib.Path:
    kind, extended = PROGRAMS[kernel]
    return folder / f"fa3_{kind}_{int(extended)}"


def compile_all(options: argparse.Namespace) -> None:
    options.folder.mkdir(parents=True, exist_ok=True)
    for kernel, (kind, extended) in PROGRAMS.items():
        shapes = ["-DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED"] if extended else []
        subprocess.run(["nvcc", *OPTIONS, *shapes, f"-DKIND={kind}", f"-I{options.sources}/hopper", f"-I{options.cutlass}/include",
                        str(HERE / "flash_attention_3.cu"), "-o", str(program_of(options.folder, kernel))], check=True)


def measure(options: argparse.Namespace) -> None:
    """Five rounds of each cell, of which the first warms up; the median of the others."""
    rows = []
    for kernel, sizes in SIZES.items():
        for size in sizes:
            batch, heads, tokens = size
            work = batch * heads * tokens ** 2 * (0.5 if kernel == CAUSAL else 1)
            launches = max(8, min(200, int(4e10 / work / 20)))
            done = subprocess.run([program_of(options.folder, kernel), *map(str, size), str(launches)], capture_output=True, text=True)
            if done.returncode:
                print(f"FAILED: {kernel} {size}: {done.stderr}", flush=True)
                continue
            row = json.loads(done.stdout)
            times, clocks = zip(*row["rounds"][1:])
            rows.append({"kernel": kernel, "batch": batch, "heads": heads, "tokens": tokens, "microseconds": round(statistics.median(times), 3),
                         "megahertz": round(statistics.median(clocks)), "spread": round((max(times) - min(times)) / statistics.median(times), 3),
                         "difference": row["difference"]})
            print(rows[-1], flush=True)
            (options.folder / "measured.json").write_text(json.dumps({"rows": rows}, indent=1))


def predicted(options: argparse.Namespace, row: dict[str, Any]) -> float:
    """Microseconds of a launch."""
    command = [options.build / "bin/fp4-sim", "run", "--device", options.gpu, f"--clock={row['megahertz'] / 1e3}", "--time-only", "--mix", "cubin", "--json",
               "--", program_of(options.folder, row["kernel"]).resolve(), *(str(row[name]) for name in ("batch", "heads", "tokens"))]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    times = json.loads(lines[-1])["predicted_times"] if lines else []
    if len(times) != 1 or not times[0]["predicted"]:
        sys.exit(f"error: no prediction of {row}: {done.stderr[-400:]}")
    return float(times[0]["microseconds"])


def predict(options: argparse.Namespace) -> None:
    rows = json.loads(options.cells.read_text())["rows"]
    names = [(row["kernel"], row["batch"], row["heads"], row["tokens"]) for row in rows]
    held = set(sorted(names)[::3])
    errors: dict[bool, list[float]] = {False: [], True: []}
    for row, name in zip(rows, names):
        if options.narrow and row["kernel"] in (PAIRS, ALONE):  # of a build without the wide shapes
            row = row | {"kernel": f"{row['kernel']}, {NARROW}"}
        time = predicted(options, row)
        errors[name in held].append(time / row["microseconds"] - 1)
        row = row | {"kernel": name[0], "predicted": round(time, 2), "predicted_to_measured": round(time / row["microseconds"], 3),
                     "kept_out": "yes" if name in held else "no"}
        print(json.dumps(row), flush=True)
        if options.json:
            with open(options.json, "a", encoding="utf-8") as file:
                print(json.dumps(row), file=file)
    for what, of in (("kept out", errors[True]), ("others", errors[False]), ("all", errors[True] + errors[False])):
        print(f"{what}: {len(of)} cells, mean absolute error {100 * statistics.mean(map(abs, of)):.1f} %, mean {100 * statistics.mean(of):+.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    compiling = commands.add_parser("compile")
    compiling.set_defaults(run=compile_all)
    measuring = commands.add_parser("measure")
    measuring.set_defaults(run=measure)
    predicting = commands.add_parser("predict")
    predicting.set_defaults(run=predict)
    for command in (compiling, measuring, predicting):
        command.add_argument("folder", type=pathlib.Path)
    compiling.add_argument("sources", type=pathlib.Path)
    compiling.add_argument("cutlass", type=pathlib.Path)
    predicting.add_argument("build", type=pathlib.Path)
    predicting.add_argument("cells", type=pathlib.Path)
    predicting.add_argument("--gpu", default="h200")
    predicting.add_argument("--narrow", action="store_true", help="kernels without a mask are those with MMAs of 16 columns")
    predicting.add_argument("--json", help="append the rows there")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
