#!/usr/bin/env python3
"""Fits the static model of GEMMs (lib/Plans/CostModel.h) to published times, with cross-validation.

  benchmarks/analysis/fit_gemms.py FILE.csv [--folds 5] [--seed 1]

FILE is results/dsv3_nvfp4.csv of github.com/hbarclay/gemm-model, which has no licence and therefore
is not stored here: 320 NVFP4 GEMMs of CuTe DSL kernels on a B200 at 1.3 GHz, of 40 problems with 8
tiles each. Folds are of whole problems, so that a problem that is predicted took no part in the
fit. Prints the error of the rates that the compiler has, of rates fitted to all points, and of the
cross-validation, by tile; then the rates themselves. The rates that the simulator has too
(include/fp4/ISA/TimingRates.def) are fixed. Needs numpy.
"""
from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import dataclass

import numpy as np

GIGAHERTZ, MULTIPROCESSORS = 1.3, 148
# TimingRates.def: FLOP and bytes a cycle, SMs that clusters of four reach, TB/s
FLOPS, SHARED, CLUSTERED, L2_SHARED, MEMORY = 32768.0, 128.0, 132, 16.86, 7.26
NAMES = ["l2BytesPerCycle", "fillCycles", "epilogueCyclesPerColumn", "serialShare", "storeShare", "tailCycles",
         "writeTerabytes", "launchCycles"]
# lib/ISA/Targets.cpp and CostModel.cpp; the launch, which contains the harness of the data, is in
# no plan
COMPILED = np.array([80.0, 137.0, 15.0, 0.314, 2.324, 2000.0, 4.281, 10381.0])
START = np.array([72.0, 700.0, 20.0, 0.5, 1.0, 1500.0, 3.0, 10000.0])  # of every search, far from what it finds
FLOOR = 24.0  # microseconds that the harness of the data never falls below


@dataclass
class Points:
    """Columns of the file; `problem` numbers the sizes."""
    m: np.ndarray
    n: np.ndarray
    k: np.ndarray
    columns: np.ndarray
    cluster: np.ndarray
    microseconds: np.ndarray
    problem: np.ndarray

    def take(self, which: np.ndarray) -> "Points":
        return Points(*(getattr(self, name)[which] for name in self.__dataclass_fields__))


def read(path: str) -> Points:
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    number = {size: i for i, size in enumerate(sorted({(r["m"], r["n"], r["k"]) for r in rows}))}
    column = lambda name: np.array([float(r[name]) for r in rows])  # noqa: E731
    return Points(column("m"), column("n"), column("k"), column("mma_n"), column("cluster_n"), column("runtime_us"),
                  np.array([number[r["m"], r["n"], r["k"]] for r in rows]))


def predict(p: Points, rates: np.ndarray) -> np.ndarray:
    """Predicts microseconds: gemmCost of CostModel.cpp for pairs of CTAs, results of fp32 and
    scales of 16 elements, in kernels that hold no results in registers and whose accumulators do
    not overlap."""
    feed, fill, per_column, serial, store, tail, write, launch = rates
    rows = 128 + p.columns / 2
    issue = np.maximum(2 * 128 * p.columns * 64 / FLOPS, rows * 32 / SHARED)
    delivered = np.minimum(p.m, 128) + np.minimum(p.n, p.columns / 2)
    scale_rows = 128 + np.ceil(p.columns / 128) * 128
    epilogue = per_column * p.columns
    stored = np.minimum(p.m, 128) * np.minimum(p.n, p.columns) * 4

    def tile(pairs: np.ndarray) -> np.ndarray:
        """The time of a wave of so many pairs."""
        rate = np.minimum(feed, L2_SHARED * 1e3 / GIGAHERTZ / np.maximum(2 * pairs, 2))
        step = np.maximum(issue, (delivered * 32 + scale_rows * 4) / rate)
        main = 4 * np.ceil(p.k / 256) * step + fill + store * stored / rate
        return np.maximum(main + np.where(p.columns > 192, serial, 0) * epilogue, epilogue)

    blocks = np.where(p.cluster > 1, CLUSTERED, MULTIPROCESSORS)
    size = 2 * p.cluster
    workers = np.floor(blocks / size) * size / 2
    tiles = np.ceil(p.m / 256) * np.ceil(p.n / (p.columns * p.cluster)) * p.cluster
    rest = tiles % workers
    busy = np.floor(tiles / workers) * tile(workers) + np.where(rest > 0, tile(rest), 0) + tail + epilogue
    read, written = (p.m + p.n) * (p.k / 2 + p.k / 16), 4 * p.m * p.n
    memory = (read / MEMORY + written / write) / 1e3 * GIGAHERTZ
    return np.maximum((np.maximum(busy, memory) + launch) / GIGAHERTZ / 1e3, FLOOR)


def errors(p: Points, rates: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(predict(p, rates) / p.microseconds - 1))


def loss(p: Points, rates: np.ndarray) -> float:
    return float(np.mean(errors(p, rates)))


def fit(p: Points, rounds: int = 60) -> np.ndarray:
    """Pattern search in the logarithms of the rates: the loss has corners, so there is no gradient
    to follow."""
    rates, best, step = START.copy(), loss(p, START), 0.2
    for _ in range(rounds):
        moved = False
        for i in range(len(NAMES)):
            for factor in (np.exp(step), np.exp(-step)):
                trial = rates.copy()
                trial[i] *= factor
                if (found := loss(p, trial)) < best:
                    rates, best, moved = trial, found, True
        if not moved:
            step /= 2
    return rates


def cross_validate(p: Points, folds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors of all points, each by rates that its problem took no part in; the rates of every
    fold."""
    count = int(p.problem.max()) + 1
    fold_of = np.random.default_rng(seed).permutation(count) % folds
    found, rates = np.empty(len(p.m)), []
    for fold in range(folds):
        held = fold_of[p.problem] == fold
        rates.append(fit(p.take(~held)))
        found[held] = errors(p.take(held), rates[-1])
    return found, np.array(rates)


def table(p: Points, columns: dict[str, np.ndarray]) -> None:
    print("| tile | " + " | ".join(f"{name}, %" for name in columns) + " |\n|---" * 1 + "|---" * len(columns) + "|")
    groups = [(f"256 x {n:.0f}", p.columns == n) for n in sorted(set(p.columns))]
    groups += [("K <= 512", p.k <= 512), ("M or N >= 128000", np.maximum(p.m, p.n) >= 128000), ("all", p.m > 0)]
    for name, which in groups:
        print(f"| {name} ({which.sum()}) | " + " | ".join(f"{100 * e[which].mean():.1f}" for e in columns.values()) + " |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    points = read(options.file)
    fitted = fit(points)
    held, folds = cross_validate(points, options.folds, options.seed)
    table(points, {"the compiler": errors(points, COMPILED), "fitted to all": errors(points, fitted),
                   f"{options.folds}-fold": held})
    print(f"median of the {options.folds}-fold errors {100 * np.median(held):.1f} %, worst {100 * held.max():.1f} %")
    print("| rate | compiler | fitted | folds, least to greatest |\n|---|---|---|---|")
    for i, name in enumerate(NAMES):
        print(f"| {name} | {COMPILED[i]:g} | {fitted[i]:.4g} | {folds[:, i].min():.4g} to {folds[:, i].max():.4g} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
