#!/usr/bin/env python3
"""Fits the rates of GEMMs on wgmma to measured kernels, with cross-validation: of weights that are
in registers (lib/ISA/WeightRates.cpp), and of FP8 whose sums are promoted (PromotedRates.cpp).

  benchmarks/analysis/fit_tiles.py collect RESULT.json PEERS.json...
  benchmarks/analysis/fit_tiles.py fit RESULT.json... [--folds 5] [--seed 1]

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
import math
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMS, WARPGROUPS, DEPTH = 132, 128, 128
#: From this day on, kernels of FP8 select a scale for each step of their columns, have scales of
#: any K in shared memory, and no five stages.
BY_STEPS = "2026-12-01"
#: Cycles of a wave behind the first with rows of scales in sets: kSetCycles of
#: PromotedGemmPlans.cpp.
SET_CYCLES = 1400
#: Tiles of a GEMM up to which wide ones had five stages before, of which a warp finds its own by a
#: division; and the cycles of a k tile that it takes.
MOST_DIRECT_TILES, FIVE_STAGES = 4 * SMS, 52.7
#: A start for each rate of WeightRates, in the order of the struct; two kernels of one SM share its
#: clock.
WEIGHTS = {"convert": 500, "convertRow": 4, "multiplyRow": 6, "wide": 0.9, "three": 0.9, "shared": 1.7, "ahead": 0.95, "slice": 0.7, "epilogueRow": 15,
           "launch": 2000, "overlapped": 1000, "memoryBytes": 2000, "workspace": 3000, "workspaceRow": 20,
           "cluster": 2000, "clusterRow": 10, "clusterRange": 200, "share": 5000, "shareRow": 80}
#: Besides the rates of the struct: a kernel that dequantizes the activations before.
PREPARATION = 2100.0
#: The time of the MMAs of three warpgroups (WeightTiles.cpp).
MULTIPLY_OF_THREE = 0.96
#: Rows of the tallest tile that a cluster reduces (WeightRates.h).
REDUCED = {"bytes": 256}
#: Rows of tiles beside whose sums clusters have few stages, and the time of their k tiles
#: (WeightTiles.cpp).
MOST_STAGED_ROWS, FEW_STAGES = 240, 1.14
#: Rows of narrow tiles whose MMAs go on between k tiles and leave time beside the conversion.
AHEAD = range(32, 49)
#: A start for each rate of PromotedRates, in the order of the struct.
PROMOTED = {"aloneWait": 500, "aloneColumn": 2, "deepWait": 265, "deepColumn": 1, "besideWait": 400, "besideColumn": 2,
            "tallWait": 500, "tallColumn": 4, "manyWait": 300, "manyColumn": 4, "manyTallWait": 300,
            "manyTallColumn": 6, "select": 10, "manySelect": 8, "feedBytes": 50, "memoryBytes": 2300,
            "idle": 0.1, "rangeBytes": 18000, "tile": 800, "tileColumn": 5, "manyTile": 1500, "launch": 4000, "overlapped": 4000,
            "cluster": 1500, "clusterColumn": 10, "workspace": 3000, "workspaceColumn": 10}
#: The part of the cycles that workers must save (SplitPlans.cpp).
LEAST_GAIN_OF_SHARES = 0.05
#: The part that three warpgroups must save (WeightTiles.cpp).
LEAST_GAIN_OF_THREE = 0.04
MULTIPLY_ADDS = 4096  # of fp8, in a cycle of an SM
#: The fewest cycles of a row of 128 columns and a k tile, which the MMAs take.
ROW = WARPGROUPS * DEPTH / MULTIPLY_ADDS
LEAST = {"halves": 2 * ROW, "bytes": ROW, "promotedBytes": ROW}
#: The memory of each card, by that of a target without a device (WeightRates.cpp).
MEMORY = {"H100": 1 / 1.2, "H200": 4.8 / 3.35 / 1.2}
#: The kinds of GEMMs whose kernels have the rates of a constant.
KINDS = {"halves": ("bf16_nvfp4", "bf16_mxfp4", "nvfp4_nvfp4", "mxfp4_mxfp4"), "bytes": ("e4m3_mxfp4",),
         "promotedBytes": ("e4m3_mxfp4",), "fp8": ("fp8",)}
COLUMNS = [{"name": name, "title": name.replace("_", " "), "unit": unit} for name, unit in (
    ("kind", None), ("form", None), ("m", None), ("n", None), ("k", None), ("rows", None), ("columns", None),
    ("depth", None), ("splits", None), ("workers", None), ("slices", None), ("resident", None), ("us", "us"), ("mhz", "MHz"))]
KEY = [column["name"] for column in COLUMNS[:-2]]
CASE = re.compile(r"(?P<form>[a-z_]*, )?(split_k (?P<splits>\d+)|stream_k (?P<workers>\d+)x\d+x\d+), "
                  r".*tile = \[(?P<tile>[\d, ]+)\](.*, k_slices = (?P<slices>\d), sliced_k)?"
                  r"(.*, ctas_per_sm = (?P<resident>\d))?.*")


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
    depth: int
    splits: int
    workers: int  # that share the tiles, or 0
    slices: int  # of K in a CTA, with warpgroups of their own
    cycles: float
    us: float
    card: str
    by_steps: bool = False  # measured since BY_STEPS
    reduced: int = 128  # rows of the tallest tile that a cluster reduces


def collect(target: pathlib.Path, sources: list[pathlib.Path]) -> None:
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for source in sources:
        report = json.loads(source.read_text())
        for problem in report["problems"]:
            for result in problem["results"]:
                found = CASE.fullmatch(result["case"]) if result["library"] == "fp4" and "us" in result else None
                if not found or problem["groups"] > 1 or "= pre" in result["case"]:
                    continue
                tile = dict(zip(("rows", "columns", "depth"), map(int, found["tile"].split(","))))
                row = {"kind": problem["kind"], "form": (found["form"] or "").rstrip(", "), "m": problem["m"],
                       "n": problem["n"], "k": problem["k"], **tile, "splits": int(found["splits"] or 1),
                       "workers": int(found["workers"] or 0), "slices": int(found["slices"] or 1),
                       "resident": int(found["resident"] or 0), "us": round(result["us"], 2), "mhz": round(result["mhz"])}
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
    """The kernels of a kind. The planner of weights decides the depth, so the faster of two is
    taken."""
    best: dict[tuple[Any, ...], Kernel] = {}
    for path in paths:
        report = json.loads(path.read_text())
        for row in report["rows"]:
            fast = row["form"] == "fast_accumulation"
            plain = row["kind"].startswith(("e4m3", "bf16", "fp8")) or row["form"] == "prepacked"
            if row["kind"] not in KINDS[kind] or fast != (kind == "bytes") or not plain:
                continue
            era = BY_STEPS if kind == "fp8" and report["date"] >= BY_STEPS else ""
            name = f"{report['card']} {row['kind']} {row['m']} {row['n']} {row['k']} {era}"
            kernel = Kernel(name, row["form"] == "prepacked", 16 if row["kind"].endswith("nvfp4") else 32, row["m"],
                            row["n"], row["k"], row["rows"], row["columns"], row["depth"], row["splits"], row.get("workers", 0), row.get("slices", 1),
                            row["us"] * row["mhz"], row["us"], report["card"], report["date"] >= BY_STEPS,
                            REDUCED.get(kind, 128))
            key = name, *(row.get(part, 0) for part in ("rows", "columns", "splits", "workers", "slices")), row["depth"] if kind == "fp8" else 0
            if key not in best or kernel.us < best[key].us:
                best[key] = kernel
    return list(best.values())


def joined(power: int, *parts: float) -> float:
    """The time of parts that wait for each other: `joinedTime` of CostModel.cpp."""
    most = max(parts)
    return float(most * sum((part / most) ** power for part in parts) ** (1 / power))


def predict_weights(kernel: Kernel, rate: dict[str, float]) -> float:
    """Predicts cycles: cyclesOfWeights of lib/Plans/WeightTiles.cpp."""
    rows, wide, slices = kernel.rows, kernel.columns / WARPGROUPS, kernel.slices
    of_convert, of_multiply = (rate["three"], MULTIPLY_OF_THREE) if wide == 1.5 else (rate["wide"] if wide > 1 else 1, 1)
    along = -(-kernel.m // rows)
    ctas = along * -(-kernel.n // kernel.columns) * kernel.splits // slices
    places = SMS * (2 if ctas > SMS and rows <= 32 and wide == 1 and slices == 1 else 1)
    waves, memory = -(-ctas // places), rate["memoryBytes"] * MEMORY[kernel.card]
    of_slices = 1 + (rate["slice"] if rows <= 8 else 1.05) * (slices - 1)

    def k_tile(running: int) -> float:
        cycles = max(wide * of_convert * (rate["convert"] + rate["convertRow"] * rows) * of_slices,
                     slices * wide * of_multiply * rate["multiplyRow"] * rows)
        stored = (WARPGROUPS * DEPTH // 2 + WARPGROUPS * DEPTH // kernel.block) / along
        of_memory = running * slices * stored * wide / memory
        paired = min(1.0, running / SMS)**2 if places > SMS and not kernel.workers else 0.0
        if rate["ahead"] and not paired and rows in AHEAD and wide == slices == 1:
            return max(rate["ahead"] * cycles, of_memory)
        return joined(4, cycles * (1 + (rate["shared"] - 1) * paired), of_memory)

    k_tiles = kernel.k / (DEPTH * kernel.splits)
    prepared = rate["launch"] + PREPARATION * kernel.converted
    if kernel.workers:
        of_tile = k_tiles * k_tile(kernel.workers) + rate["epilogueRow"] * rows * wide
        return float(prepared + ctas / kernel.workers * of_tile + rate["share"] + rate["shareRow"] * rows * wide)
    of_tile = rate["epilogueRow"] * rows * wide + (1000 + 8 * (slices - 1) * rows if slices > 1 else 0)
    cycles = prepared - (rate["overlapped"] if 2 * ctas <= SMS else 0)
    cycles += waves * (of_tile + of_reduction(kernel, rate, ctas, places))
    if rows > MOST_STAGED_ROWS and along == 1 and is_reduced_in_clusters(kernel, ctas, places):
        k_tiles *= FEW_STAGES
    return float(cycles + k_tiles * ((waves - 1) * k_tile(places) + k_tile(ctas - (waves - 1) * places)))


def is_reduced_in_clusters(kernel: Kernel, ctas: int, places: int) -> bool:
    """True where a cluster reduces the ranges of split-K: reduceInClusters."""
    ranges = kernel.splits // kernel.slices
    has_room = ranges == 2 or 14 * places <= 20 * ctas <= 17 * places
    return ranges > 1 and kernel.columns == WARPGROUPS and kernel.rows <= kernel.reduced and has_room


def of_reduction(kernel: Kernel, rate: dict[str, float], ctas: int, places: int) -> float:
    """Cycles of the reduction of split-K: cyclesOfReduction."""
    ranges, wide = kernel.splits // kernel.slices, kernel.columns / WARPGROUPS
    if ranges == 1:
        return 0
    if is_reduced_in_clusters(kernel, ctas, places):
        return (rate["cluster"] + rate["clusterRow"] * kernel.rows * kernel.slices + rate["clusterRange"] * (ranges - 2)
                + (1500 if kernel.slices > 1 else 0))
    return rate["workspace"] + rate["workspaceRow"] * kernel.rows * wide * kernel.splits


def selections(columns: int, by_steps: bool) -> int:
    """Selections of one of two scales of 128 columns by the threads of a tile: selectionsOf of
    PromotedGemmPlans.cpp. Before, each part of eight columns had one, but where all begin at 0 or
    64."""
    step = math.gcd(columns, DEPTH)
    last, apart = DEPTH - step, step if by_steps or 2 * step == DEPTH else 8
    return sum(column // DEPTH != (last + column) // DEPTH for column in range(0, columns, apart))


def predict_promoted(kernel: Kernel, rate: dict[str, float]) -> float:
    """Predicts cycles: cyclesOf of lib/Plans/PromotedGemmPlans.cpp. In the kernels measured before
    BY_STEPS threads load scales where K is no multiple of 512."""
    m, n = kernel.rows, kernel.columns
    along, across = -(-kernel.m // m), -(-kernel.n // n)
    tiles = along * across * kernel.splits
    waves = -(-tiles // SMS)
    is_many = kernel.m > 128 and m > 64 and n % 32 == 0 and kernel.splits == 1 and (kernel.by_steps or kernel.k % 512 == 0)
    name = {64: "deep" if kernel.depth == 256 else "alone", 128: "many" if is_many else "beside",
            256: "manyTall" if is_many else "tall"}[m]
    warps = rate[name + "Wait"] + rate[name + "Column"] * n
    warps += rate["manySelect" if is_many else "select"] * selections(n, kernel.by_steps) * -(-m // 128)
    if m == 128 < n and tiles <= MOST_DIRECT_TILES and not kernel.by_steps:
        warps += FIVE_STAGES

    def block(running: int) -> float:
        rows = min(running, along * kernel.splits) * min(m, kernel.m)
        columns = min(-(-running // along) * n, kernel.n * kernel.splits)
        memory = (rows + columns) * DEPTH / rate["memoryBytes"] * (1 + rate["idle"] * (1 - running / SMS))
        if kernel.splits > 1:
            memory += running * min(m, kernel.m) * DEPTH / rate["rangeBytes"]
        return max(m * n * DEPTH / MULTIPLY_ADDS, joined(6, warps, (m + n) * DEPTH / rate["feedBytes"], memory))

    of_tile = rate["manyTile"] if is_many else rate["tile"] + rate["tileColumn"] * n
    if kernel.splits == 2 and m <= 128:
        of_tile += rate["cluster"] + rate["clusterColumn"] * n
    elif kernel.splits > 1:
        of_tile += rate["workspace"] + rate["workspaceColumn"] * n * kernel.splits * m / 128
    blocks = kernel.k / (DEPTH * kernel.splits)
    of_sets = SET_CYCLES * (waves - 1) if kernel.by_steps and kernel.splits == 1 and kernel.k % 512 else 0
    return (of_sets + rate["launch" if waves == 1 else "overlapped"] + waves * of_tile
            + blocks * ((waves - 1) * block(SMS) + block(tiles - (waves - 1) * SMS)))


@dataclasses.dataclass(frozen=True)
class Model:
    """Rates, and the cycles that they predict of a kernel."""

    starts: dict[str, float]
    cycles: Callable[[Kernel, dict[str, float]], float]
    file: str

    def predict(self, kernel: Kernel, rates: np.ndarray) -> float:
        return float(self.cycles(kernel, dict(zip(self.starts, rates))))

    def compiled(self, kind: str) -> np.ndarray:
        """The rates of the constant `kind` of the compiler, in the order of its struct."""
        text = re.sub(r"//.*", "", (ROOT / "lib/ISA" / self.file).read_text())
        block = text[text.index(f"Rates {kind} = {{"):]
        return np.array(re.findall(r"(?<![\w.])\d[\d.]*", block[:block.index(".mark")]), dtype=float)


MODELS = {"fp8": Model(PROMOTED, predict_promoted, "PromotedRates.cpp")}
OF_WEIGHTS = Model(WEIGHTS, predict_weights, "WeightRates.cpp")


def fit(model: Model, kernels: list[Kernel], known: np.ndarray, least_row: float) -> np.ndarray:
    """Fits the logarithms of the times, by the logarithms of the rates, from `known` on. Kernels
    that nobody would choose count less, and a row takes no less than its MMAs."""
    from scipy.optimize import least_squares
    best: dict[str, float] = collections.defaultdict(lambda: float("inf"))
    for kernel in kernels:
        best[kernel.problem] = min(best[kernel.problem], kernel.us)
    weights = np.array([1 / (1 + 5 * (kernel.us / best[kernel.problem] - 1)) for kernel in kernels])
    measured = np.log([kernel.cycles for kernel in kernels])
    start = np.log(np.array([rate or other for rate, other in zip(known, model.starts.values())]))
    low = np.array([np.log(least_row) if name == "multiplyRow" else at - 0.7 for name, at in zip(model.starts, start)])

    def residuals(logarithms: np.ndarray) -> np.ndarray:
        rates = np.exp(logarithms)
        return weights * np.clip(np.log([model.predict(kernel, rates) for kernel in kernels]) - measured, -1, 1)

    bounds = low, np.maximum(start + 0.7, low + 0.1)
    return np.exp(least_squares(residuals, np.maximum(start, low + 0.01), loss="soft_l1", f_scale=0.05, bounds=bounds).x)


def chosen(model: Model, kernels: list[Kernel], rates: np.ndarray) -> Kernel:
    """The kernel of a problem that the rates choose. As in SplitPlans.cpp, workers share tiles
    where that saves enough, and where its rate is known."""
    def cycles(kernel: Kernel) -> float:
        if not kernel.workers:
            least = LEAST_GAIN_OF_THREE if model is OF_WEIGHTS and kernel.columns == 192 else 0
            return float(model.predict(kernel, rates)) / (1 - least)
        shares = rates[list(model.starts).index("share")] if "share" in model.starts else 0
        return float(model.predict(kernel, rates)) / (1 - LEAST_GAIN_OF_SHARES) if shares else math.inf

    return min(kernels, key=cycles)


def regrets(model: Model, kernels: list[Kernel], rates: np.ndarray) -> dict[str, float]:
    """By problem: the time of the kernel that the rates choose by that of the fastest, less one."""
    by = collections.defaultdict(list)
    for kernel in kernels:
        by[kernel.problem].append(kernel)
    return {problem: chosen(model, found, rates).us / min(kernel.us for kernel in found) - 1
            for problem, found in by.items()}


def report(kind: str, kernels: list[Kernel], folds: int, seed: int) -> None:
    model = MODELS.get(kind, OF_WEIGHTS)
    problems = sorted({kernel.problem for kernel in kernels})
    fold_of = dict(zip(problems, np.random.default_rng(seed).permutation(len(problems)) % folds))
    held_error, held_regret, known = [], [], model.compiled(kind)
    for fold in range(folds):
        rates = fit(model, [kernel for kernel in kernels if fold_of[kernel.problem] != fold], known, LEAST.get(kind, 0))
        held = [kernel for kernel in kernels if fold_of[kernel.problem] == fold]
        held_error += [abs(model.predict(kernel, rates) / kernel.cycles - 1) for kernel in held]
        held_regret += regrets(model, held, rates).values()
    print(f"{kind}: {len(kernels)} kernels of {len(problems)} problems")
    fitted = fit(model, kernels, known, LEAST.get(kind, 0))
    for name, rates in (("compiler", known), ("fitted", fitted)):
        error = [abs(model.predict(kernel, rates) / kernel.cycles - 1) for kernel in kernels]
        found = list(regrets(model, kernels, rates).values())
        print(f"  {name:9} median error {100 * np.median(error):5.1f} %  mean regret {100 * np.mean(found):5.2f} %  "
              f"greatest {100 * max(found):5.1f} %")
    print(f"  held out  median error {100 * np.median(held_error):5.1f} %  mean regret {100 * np.mean(held_regret):5.2f} %"
          f"  greatest {100 * max(held_regret):5.1f} %")
    print("  " + ", ".join(f"{name} {rate:.3g}" for name, rate in zip(model.starts, fitted)))


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
            if kernels := read(options.results, kind):
                report(kind, kernels, options.folds, options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
