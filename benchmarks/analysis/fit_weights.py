#!/usr/bin/env python3
"""Fits the rates of GEMMs whose weights wgmma has in registers (lib/ISA/WeightRates.cpp) to
measured kernels, with cross-validation.

  benchmarks/analysis/fit_weights.py collect RESULT.json PEERS.json...
  benchmarks/analysis/fit_weights.py fit RESULT.json... [--folds 5] [--seed 1]

`collect` keeps what the fit needs of reports that `benchmarks/peers/run.py run --json` wrote, with
the plans of `prepare --space`. `fit` prints for each kind of kernel the error of the times, and the
regret: what the fastest measured kernel of a problem saves over the one that the rates choose. Both
are printed for the rates of the compiler, for rates fitted to all problems, and for rates that the
problem took no part in. Needs numpy and scipy.
"""
from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import pathlib
import re
import sys
from typing import Any

import numpy as np
from scipy.optimize import least_squares

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMS, WARPGROUPS, DEPTH = 132, 128, 128
#: The rates in the order of the struct; two kernels of one SM share its clock.
NAMES = ("convert", "convertRow", "multiplyRow", "wide", "shared", "epilogueRow", "launch", "memoryBytes",
         "workspace", "workspaceRow", "cluster", "clusterRow")
START = np.array([500, 4, 6, 0.9, 1.7, 15, 2000, 1600, 3000, 20, 2000, 10.0])
#: Besides the rates of the struct: a kernel that dequantizes the activations before.
PREPARATION = 1500.0
KINDS = {"halves": ("bf16_nvfp4", "bf16_mxfp4", "nvfp4_nvfp4", "mxfp4_mxfp4"), "bytes": ("e4m3_mxfp4",),
         "promotedBytes": ("e4m3_mxfp4",)}
COLUMNS = [{"name": name, "title": name.replace("_", " "), "unit": unit} for name, unit in (
    ("kind", None), ("form", None), ("m", None), ("n", None), ("k", None), ("rows", None), ("columns", None),
    ("depth", None), ("splits", None), ("us", "us"), ("mhz", "MHz"))]
KEY = [column["name"] for column in COLUMNS[:-2]]
CASE = re.compile(r"(?P<form>[a-z_]*, )?split_k (?P<splits>\d+), .*tile = \[(?P<tile>[\d, ]+)\]")


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A measured kernel: the sizes of the GEMM, its tile, its split-K factor, and cycles."""

    problem: str
    converted: bool  # a kernel dequantizes the activations before
    block: int
    m: int
    n: int
    k: int
    rows: int
    columns: int
    splits: int
    cycles: float
    us: float


def collect(target: pathlib.Path, sources: list[pathlib.Path]) -> None:
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for source in sources:
        report = json.loads(source.read_text())
        for problem in report["problems"]:
            for result in problem["results"]:
                found = CASE.fullmatch(result["case"]) if result["library"] == "fp4" and "us" in result else None
                if not found or problem["groups"] > 1:
                    continue
                tile = dict(zip(("rows", "columns", "depth"), map(int, found["tile"].split(","))))
                row = {"kind": problem["kind"], "form": (found["form"] or "").rstrip(", "), "m": problem["m"],
                       "n": problem["n"], "k": problem["k"], **tile, "splits": int(found["splits"]),
                       "us": round(result["us"], 2), "mhz": round(result["mhz"])}
                rows[tuple(row[name] for name in KEY)] = row
    machine = report["machine"]
    head = {"area": "gemm-tiles", "card": re.search(r"H\d+", machine["device"])[0], "device": machine["device"],
            "driver": machine["driver"], "date": target.stem[-10:], "revision": None, "clock": "kernels in turns",
            "command": "benchmarks/peers/run.py run FOLDER, prepared with --space", "program": None,
            "evidence": "measured", "columns": COLUMNS, "key": KEY}
    text = ",\n ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items())
    body = ",\n  ".join(json.dumps(row) for row in rows.values())
    target.write_text(f"{{{text},\n \"rows\": [\n  {body}]}}\n")


def read(paths: list[pathlib.Path], kind: str) -> list[Kernel]:
    """The kernels of a kind. The planner decides the depth, so the faster of two is taken."""
    best: dict[tuple[Any, ...], Kernel] = {}
    for path in paths:
        for row in json.loads(path.read_text())["rows"]:
            fast = row["form"] == "fast_accumulation"
            plain = row["kind"] == "e4m3_mxfp4" or row["kind"].startswith("bf16") or row["form"] == "prepacked"
            if row["kind"] not in KINDS[kind] or fast != (kind == "bytes") or not plain:
                continue
            name = f"{row['kind']} {row['m']} {row['n']} {row['k']}"
            kernel = Kernel(name, row["form"] == "prepacked", 16 if row["kind"].endswith("nvfp4") else 32, row["m"],
                            row["n"], row["k"], row["rows"], row["columns"], row["splits"], row["us"] * row["mhz"],
                            row["us"])
            key = name, row["rows"], row["columns"], row["splits"]
            if key not in best or kernel.us < best[key].us:
                best[key] = kernel
    return list(best.values())


def predict(kernel: Kernel, rates: np.ndarray) -> float:
    """Predicts cycles: cyclesOfWeights of lib/Plans/WeightTiles.cpp."""
    rate = dict(zip(NAMES, rates))
    rows, wide = kernel.rows, kernel.columns // WARPGROUPS
    ctas = -(-kernel.m // rows) * (kernel.n // kernel.columns) * kernel.splits
    places = SMS * (2 if ctas > SMS and rows <= 32 and wide == 1 else 1)
    waves = -(-ctas // places)

    def k_tile(running: int) -> float:
        cycles = max(wide * (rate["wide"] if wide > 1 else 1) * (rate["convert"] + rate["convertRow"] * rows),
                     wide * rate["multiplyRow"] * rows)
        stored = WARPGROUPS * DEPTH // 2 + WARPGROUPS * DEPTH // kernel.block
        return max(cycles * (rate["shared"] if running > SMS else 1), running * stored * wide / rate["memoryBytes"])

    k_tiles = kernel.k / (DEPTH * kernel.splits)
    cycles = rate["launch"] + PREPARATION * kernel.converted + waves * rate["epilogueRow"] * rows * wide
    cycles += k_tiles * ((waves - 1) * k_tile(places) + k_tile(ctas - (waves - 1) * places))
    if kernel.splits == 2 and rows <= 128 and wide == 1:
        cycles += rate["cluster"] + rate["clusterRow"] * rows
    elif kernel.splits > 1:
        cycles += rate["workspace"] + rate["workspaceRow"] * rows * wide * kernel.splits
    return float(cycles)


def fit(kernels: list[Kernel]) -> np.ndarray:
    """Fits the logarithms of the times. Kernels that nobody would choose count less."""
    best: dict[str, float] = collections.defaultdict(lambda: float("inf"))
    for kernel in kernels:
        best[kernel.problem] = min(best[kernel.problem], kernel.us)
    weights = np.array([1 / (1 + 4 * (kernel.us / best[kernel.problem] - 1)) for kernel in kernels])
    measured = np.log([kernel.cycles for kernel in kernels])

    def residuals(rates: np.ndarray) -> np.ndarray:
        return weights * np.clip(np.log([predict(kernel, rates) for kernel in kernels]) - measured, -1, 1)

    return np.asarray(least_squares(residuals, START, loss="soft_l1", f_scale=0.05, x_scale=START,
                                    bounds=(0.1 * START, 10 * START)).x)


def regrets(kernels: list[Kernel], rates: np.ndarray) -> dict[str, float]:
    """By problem: the time of the kernel that the rates choose by that of the fastest, less one."""
    by = collections.defaultdict(list)
    for kernel in kernels:
        by[kernel.problem].append(kernel)
    return {problem: min(found, key=lambda kernel: predict(kernel, rates)).us / min(kernel.us for kernel in found) - 1
            for problem, found in by.items()}


def compiled(kind: str) -> np.ndarray:
    text = (ROOT / "lib/ISA/WeightRates.cpp").read_text()
    block = text[text.index(f"constexpr WeightRates {kind} "):]
    return np.array([float(re.search(rf"\.{name} = ([\d.]+)", block)[1]) for name in NAMES])


def report(kind: str, kernels: list[Kernel], folds: int, seed: int) -> None:
    problems = sorted({kernel.problem for kernel in kernels})
    fold_of = dict(zip(problems, np.random.default_rng(seed).permutation(len(problems)) % folds))
    held_error, held_regret = [], []
    for fold in range(folds):
        rates = fit([kernel for kernel in kernels if fold_of[kernel.problem] != fold])
        held = [kernel for kernel in kernels if fold_of[kernel.problem] == fold]
        held_error += [abs(predict(kernel, rates) / kernel.cycles - 1) for kernel in held]
        held_regret += regrets(held, rates).values()
    print(f"{kind}: {len(kernels)} kernels of {len(problems)} problems")
    fitted = fit(kernels)
    for name, rates in (("compiler", compiled(kind)), ("fitted", fitted)):
        error = [abs(predict(kernel, rates) / kernel.cycles - 1) for kernel in kernels]
        found = list(regrets(kernels, rates).values())
        print(f"  {name:9} median error {100 * np.median(error):5.1f} %  mean regret {100 * np.mean(found):5.2f} %  "
              f"greatest {100 * max(found):5.1f} %")
    print(f"  held out  median error {100 * np.median(held_error):5.1f} %  mean regret {100 * np.mean(held_regret):5.2f} %"
          f"  greatest {100 * max(held_regret):5.1f} %")
    print("  " + ", ".join(f"{name} {rate:.3g}" for name, rate in zip(NAMES, fitted)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    gather = commands.add_parser("collect")
    gather.add_argument("result", type=pathlib.Path)
    gather.add_argument("peers", type=pathlib.Path, nargs="+")
    fitting = commands.add_parser("fit")
    fitting.add_argument("results", type=pathlib.Path, nargs="+")
    fitting.add_argument("--folds", type=int, default=5)
    fitting.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.command == "collect":
        collect(options.result, options.peers)
    else:
        for kind in KINDS:
            report(kind, read(options.results, kind), options.folds, options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
