#!/usr/bin/env python3
"""Predicts how much faster another plan than the compiler's would be, by the simulator, for
published problems of B200.

  benchmarks/plan_regret.py [--build BUILD] [--only WORD] [--others 4] [--times FILE]

For every GEMM by tensor cores of benchmarks/blackwell.py with a public time: `fp4-runner
--time-only` (1.965 GHz) of the plan that the compiler chooses, and of the OTHERS plans of other
tiles that its static model likes most. The regret of a problem is the time of the chosen plan over
that of the fastest, less one. Every time is a prediction. FILE keeps the times of plans, so that a
change of the model alone needs few new ones: remove it when kernels or the simulator change.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
import tempfile

import blackwell
from blackwell import Problem

TILES = [(pair, columns) for pair in (False, True) for columns in (64, 96, 128, 192, 256)]
REMARKED = re.compile(r"tiles of (\d+)x(\d+) by (a pair|one block)")


def plan_of(pair: bool, columns: int) -> str:
    return f"{'pair, ' if pair else ''}tile = [{256 if pair else 128}, {columns}, 256]"


def tile_of(remark: str) -> tuple[bool, int] | None:
    found = REMARKED.search(remark)
    return (found[3] == "a pair", int(found[2])) if found else None


class Times:
    """Times of the simulator, by problem and tile, kept in a file."""

    def __init__(self, build: pathlib.Path, path: pathlib.Path | None, source: pathlib.Path, limit: float) -> None:
        self.build, self.path, self.source, self.limit = build, path, source, limit
        self.known: dict[str, float] = json.loads(path.read_text()) if path and path.exists() else {}

    def of(self, problem: Problem, tile: tuple[bool, int]) -> float | None:
        key = f"{problem.kind} {problem.name} {problem.format} {plan_of(*tile)}"
        if key not in self.known:
            self.source.write_text(blackwell.program(problem, plan_of(*tile)))
            found = blackwell.timed(self.build, self.source, self.limit)
            if not isinstance(found, dict):
                print(f"{key}: {found}", file=sys.stderr)
                return None
            self.known[key] = float(str(found["microseconds"]))
            if self.path:
                self.path.write_text(json.dumps(self.known, indent=1))
        return self.known[key]


def static_time(build: pathlib.Path, source: pathlib.Path, problem: Problem, plan: str) -> blackwell.Row:
    row = blackwell.Row(problem)
    source.write_text(blackwell.program(problem, plan))
    blackwell.planned(build, source, row)
    return row


def regret_of(build: pathlib.Path, source: pathlib.Path, problem: Problem, others: int, times: Times) -> float | None:
    """Prints the row of a problem; None where it has no tile, or no other one was simulated."""
    chosen = tile_of(static_time(build, source, problem, "").plan)
    if chosen is None:
        return None
    liked = []
    for tile in TILES:
        row = static_time(build, source, problem, plan_of(*tile))
        if tile != chosen and row.static is not None and tile_of(row.plan) == tile:
            liked.append((row.static, tile))
    candidates = [chosen] + [tile for _, tile in sorted(liked)[:others]]
    simulated = {tile: time for tile in candidates if (time := times.of(problem, tile)) is not None}
    if chosen not in simulated or len(simulated) < 2:
        return None
    best = min(simulated, key=lambda tile: simulated[tile])
    regret = simulated[chosen] / simulated[best] - 1
    rest = ", ".join(f"{plan_of(*tile)} {time:.1f}" for tile, time in simulated.items() if tile != chosen)
    print(f"| {problem.kind} {problem.name} {problem.format} | {plan_of(*chosen)} | {simulated[chosen]:.1f} | {rest} | "
          f"{100 * regret:.1f} |", flush=True)
    return regret


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=blackwell.ROOT / "build")
    parser.add_argument("--only", default="")
    parser.add_argument("--others", type=int, default=4)
    parser.add_argument("--times", type=pathlib.Path)
    parser.add_argument("--limit", type=float, default=900, help="seconds for one simulation")
    options = parser.parse_args()
    print("| problem | the plan | us (predicted) | others, us (predicted) | regret, % |\n|---|---|---|---|---|")
    regrets = []
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "p.mlir"
        times = Times(options.build, options.times, source, options.limit)
        for problem in blackwell.problems():
            if problem.published and options.only in f"{problem.kind} {problem.name} {problem.format} {problem.source}":
                found = regret_of(options.build, source, problem, options.others, times)
                regrets += [] if found is None else [found]
    if regrets:
        print(f"mean regret of {len(regrets)} problems {100 * sum(regrets) / len(regrets):.2f} %, greatest {100 * max(regrets):.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
