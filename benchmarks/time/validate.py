#!/usr/bin/env python3
"""Compares predicted times with measured ones (h200.csv), on any machine.

  benchmarks/time/validate.py FOLDER [--rows 32 128 ...] [--function WORD] [--json FILE]

FOLDER is one that benchmarks/micro/pack.sh made: fp4-run and the compiled kernels. Points that a rate of
fp4/ISA/TimingRates.def was fitted to are marked, and take no part in the errors of the validation.
"""
from __future__ import annotations

import argparse
import csv
import json
import pathlib
import subprocess
import sys
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
CALIBRATION = {("add", 32)}  # FirstBlocks


@dataclass
class Point:
    function: str
    kernel: str
    rows: int
    measured: float
    predicted: float = 0.0
    bound: str = ""
    sampled: bool = False

    def error(self) -> float:
        return self.predicted / self.measured - 1

    def calibrates(self) -> bool:
        return (self.function, self.rows) in CALIBRATION


def read_points() -> list[Point]:
    with open(HERE / "h200.csv", encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    return [Point(row["function"], row["kernel"], int(row["rows"]), float(row["microseconds"]))
            for row in csv.DictReader(lines)]


def predict(folder: pathlib.Path, function: str, rows: int) -> dict[str, dict[str, object]]:
    library = folder / ("elementwise.so" if function == "add" else "streaming.so")
    command = [str(folder / "fp4-run"), str(library), "--device", "sim", "--function", function, "--shape", str(rows),
               "--time", "--json", "--no-verify", "--check=off"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}\n{done.stderr}")
    report = json.loads(done.stdout)
    times = {}
    for kernel, time in zip(report["kernels"], report["predicted_times"]):
        times[kernel["module"]] = time
    return times


def show(points: list[Point], what: str) -> None:
    if not points:
        return
    errors = [abs(p.error()) for p in points]
    within = sum(e <= 0.20 for e in errors)
    print(f"{what}: {len(points)} points, mean absolute error {100 * sum(errors) / len(errors):.1f} %, "
          f"worst {100 * max(errors):.1f} %, {within} within 20 %")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[32, 128, 512, 1024, 2048, 4096])
    parser.add_argument("--function", default="", help="only those whose names contain this")
    parser.add_argument("--json", help="write the points there")
    options = parser.parse_args()
    points = [p for p in read_points() if p.rows in options.rows and options.function in p.function]
    done: dict[tuple[str, int], dict[str, dict[str, object]]] = {}
    for point in points:
        key = point.function, point.rows
        if key not in done:
            done[key] = predict(options.folder, *key)
        time = done[key][point.kernel]
        if not time["predicted"]:
            sys.exit(f"error: no prediction of {point.kernel}: {time['unknown']}")
        point.predicted, point.bound = float(str(time["microseconds"])), str(time["bound"])
        point.sampled = bool(time["sampled"])
        print(f"{point.kernel:<26} {point.rows:>6} rows  measured {point.measured:>7.2f} us  predicted "
              f"{point.predicted:>7.2f} us  {100 * point.error():+6.1f} %  {point.bound}"
              f"{', sampled' if point.sampled else ''}{', calibration' if point.calibrates() else ''}", flush=True)
    show([p for p in points if p.calibrates()], "calibration")
    show([p for p in points if not p.calibrates()], "validation")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([{**p.__dict__, "calibration": p.calibrates()} for p in points], file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
