#!/usr/bin/env python3
"""Times fp4's GEMMs beside those of other libraries, in one process, on the same operands, with
cold L2.

  benchmarks/peers/run.py list
  benchmarks/peers/run.py prepare FOLDER --source fp4=build --source DeepGEMM=SOURCES ...
  benchmarks/peers/run.py run FOLDER [--json FILE] [--plot FILE.svg]

The program fetches nothing. `prepare` takes folders with the sources or wheels of other libraries,
and writes into FOLDER what a run needs; it needs no GPU, and may be called again for other
libraries, on another machine. `list` says what each library takes. `run` needs PyTorch with CUDA
and an H200, verifies every result of every operand set against the GEMM in f32 before it times it
and again afterwards, and prints one table. A missing library is named, and the others are compared.
The exit code of `run` is 1 where something that is there failed.

  --problems REGEX    those whose name matches; `list` prints the names
  --random SEED:COUNT in place of the usual problems: so many of layers of published models
  --shape KIND:MxNxK  in place of the usual problems; may be repeated, also beside --random; that of
                      "contiguous" ends with its number of groups
  --libraries A,B     only these
  --space [MOST]      prepare: besides, fp4's GEMMs with each legal plan of plan_space.py, or with
                      so many that the model expects to be the fastest: the compiler's regret is
                      what the fastest of them saves
  --device NAME       prepare: besides, fp4's GEMMs with the plans for this GPU, such as h200
  --settle MS         run: what is timed runs for so long before, in each round, and is timed for as
                      long: from a few hundred on, the clock of GEMMs that power limits is their
                      own, and not that of what ran before
  --rounds N          run: rounds in which libraries alternate, 9 if it is not given
  --plan PART:RANGES:PLAN    prepare: besides, fp4's GEMMs whose names, behind "fast_accumulation, "
                      or "prepacked, " where the arithmetic or the weights are such, contain PART,
                      with this split-K and plan; RANGES is a number, or the workers and the tile of
                      stream_k, such as 132x128x128
"""
from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import pathlib
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import table
from libraries import ALL
from libraries.library import Library, Missing, Prepared
from layers import drawn, named
from problems import Problem, difference, every, make_operands

#: Relative root of the mean squared error; rounding to bf16 alone gives 0.0017.
LARGEST_ERROR = 0.01
METHOD = ("medians of graph replays with cold L2, libraries in turn, the gap between two nodes of a graph included; "
          "the roof is that of the specification, 4.8 TB/s and 989 or 1979 TFLOP/s")


def verify(prepared: Prepared, sets: Sequence[Any], expected: Callable[[Callable[..., Any], int], Any]) -> float:
    """The largest error of any set. Raises ArithmeticError where it is too large."""
    errors = [difference(result, expected(prepared.expected, i)) for i, result in enumerate(prepared.results)]
    if not errors or max(errors) > LARGEST_ERROR + prepared.rounding:
        raise ArithmeticError(f"the result differs from the GEMM in f32 by {max(errors, default=0):.3g}")
    return max(errors)


class Comparison:
    """One problem on all libraries."""

    def __init__(self, problem: Problem, sets: Sequence[Any]) -> None:
        self.problem, self.sets = problem, sets
        self.prepared: dict[tuple[str, str], Prepared] = {}
        self.results: dict[tuple[str, str], dict[str, Any]] = {}
        self._expected: dict[tuple[Callable[..., Any], int], Any] = {}

    def expected(self, function: Callable[..., Any], which: int) -> Any:
        if (function, which) not in self._expected:
            self._expected[function, which] = function(self.sets[which])
        return self._expected[function, which]

    def verify(self, library: Library, folder: pathlib.Path) -> None:
        for case in library.cases(folder, self.problem):
            key = library.name, case
            try:
                prepared = library.run(folder, case, self.sets)
                for launch in prepared.launches:
                    launch()
                self.results[key] = {"error": verify(prepared, self.sets, self.expected)}
                self.prepared[key] = prepared
            except Exception as failure:  # of one library: the others are still compared
                self.results[key] = {"failed": f"{type(failure).__name__}: {str(failure)[:500]}"}

    def measure(self, timer: Callable[..., dict[Any, Any]]) -> None:
        for key, timing in timer({key: p.launches for key, p in self.prepared.items()}).items():
            try:
                if isinstance(timing, str):
                    raise RuntimeError(timing)
                self.results[key]["error"] = verify(self.prepared[key], self.sets, self.expected)
                self.results[key] |= dataclasses.asdict(timing)
            except Exception as failure:
                self.results[key] = {"failed": f"{type(failure).__name__}: {str(failure)[:500]}"}

    def report(self) -> dict[str, Any]:
        roof, bound = self.problem.roof()
        results = [{"library": library, "case": case} | result for (library, case), result in self.results.items()]
        return dataclasses.asdict(self.problem) | {"name": self.problem.name, "rows": self.problem.rows,
                                                   "flops": self.problem.flops, "bytes": self.problem.bytes,
                                                   "roof_us": roof, "bound": bound, "results": results}


def compare(problem: Problem, libraries: Iterable[tuple[Library, pathlib.Path]], device: str,
            timer: Callable[..., dict[Any, Any]], sets_of: Callable[[int], int]) -> dict[str, Any]:
    first = make_operands(problem, 0, device)
    sets = [first] + [make_operands(problem, seed, device) for seed in range(1, sets_of(first.nbytes))]
    comparison = Comparison(problem, sets)
    for library, folder in libraries:
        comparison.verify(library, folder)
    comparison.measure(timer)
    return comparison.report()


def prepare(options: argparse.Namespace, problems: Sequence[Problem]) -> int:
    sources = dict(source.split("=", 1) for source in options.source)
    unknown = sources.keys() - {library.name for library in ALL}
    if unknown:
        sys.exit(f"error: no library is named {', '.join(sorted(unknown))}; `list` names them")
    failed = 0
    for library in chosen(options):
        if library.source and library.name not in sources:
            print(f"{library.name}: left out, no --source (it takes {library.source})")
            continue
        folder = options.folder / library.name
        folder.mkdir(parents=True, exist_ok=True)
        try:
            source = pathlib.Path(sources[library.name]).resolve() if library.source else None
            library.prepare(source, folder.resolve(), problems)
            print(f"{library.name}: prepared")
        except Missing as missing:
            failed = 1
            print(f"{library.name}: needs {missing}")
    return failed


def run(options: argparse.Namespace, problems: Sequence[Problem]) -> int:
    import measuring
    import torch

    timer = functools.partial(measuring.measure, settle=1e3 * options.settle, rounds=options.rounds)
    state, ready = find(chosen(options), options.folder.resolve())
    for library, folder in ready:
        library.warm(folder, problems)
    report: dict[str, Any] = {"schema": table.SCHEMA, "machine": machine(torch), "method": METHOD + (f"; each ran for {options.settle:g} ms before, and was timed for as long" if options.settle else ""),
                              "libraries": state, "problems": []}
    for problem in problems:
        report["problems"].append(compare(problem, ready, "cuda", timer, measuring.sets_of))
        print("\n".join(" | ".join(row) for row in table.rows(report | {"problems": report["problems"][-1:]})), flush=True)
        torch.cuda.empty_cache()
        if options.json:  # what was measured stays, whatever happens next
            options.json.write_text(json.dumps(report, indent=1))
    table.check_schema(report)
    print(table.text(report))
    if options.plot:
        options.plot.write_text(table.plot(report))
    return 1 if any("failed" in r for p in report["problems"] for r in p["results"]) else 0


def find(libraries: Iterable[Library], folder: pathlib.Path) -> tuple[dict[str, str], list[tuple[Library, pathlib.Path]]]:
    """Returns what is missing of each library, and the libraries of which nothing is missing."""
    state: dict[str, str] = {}
    ready = []
    for library in libraries:
        try:
            library.check(folder / library.name)
            state[library.name] = "measured"
            ready.append((library, folder / library.name))
        except Missing as missing:
            state[library.name] = str(missing)
    return state, ready


def machine(torch: Any) -> dict[str, Any]:
    from driver import Device

    device = Device()
    driver = pathlib.Path("/proc/driver/nvidia/version")
    words = re.search(r"\d+\.\d+\.\d+", driver.read_text()) if driver.exists() else None
    return {"device": device.name(), "driver": words.group() if words else f"CUDA {device.driver()}",
            "torch": torch.__version__}


def chosen(options: argparse.Namespace) -> list[Library]:
    names = options.libraries.split(",") if options.libraries else [library.name for library in ALL]
    plans = [(part, ranges, plan) for part, ranges, plan in (p.split(":", 2) for p in options.plan)]
    return [library(plans, options.space, options.device) if library.name == table.OURS else library() for library in ALL if library.name in names]


def asked(options: argparse.Namespace) -> list[Problem]:
    """The problems of the command line. Raises ValueError."""
    others = [named(shape) for shape in options.shape] + (drawn(options.random) if options.random else [])
    return [problem for problem in others or every() if re.search(options.problems, problem.name)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("list", "prepare", "run"))
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--source", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--problems", default="", metavar="REGEX")
    parser.add_argument("--random", default="", metavar="SEED:COUNT")
    parser.add_argument("--shape", action="append", default=[], metavar="KIND:MxNxK")
    parser.add_argument("--libraries", default="", metavar="A,B")
    parser.add_argument("--plan", action="append", default=[], metavar="PART:RANGES:PLAN")
    parser.add_argument("--space", type=int, nargs="?", const=-1, default=0, metavar="MOST")
    parser.add_argument("--device", default="", metavar="NAME")
    parser.add_argument("--settle", type=float, default=0, metavar="MS")
    parser.add_argument("--rounds", type=int, default=9, metavar="N")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--plot", type=pathlib.Path)
    options = parser.parse_args()
    try:
        problems = asked(options)
    except ValueError as failure:
        parser.error(str(failure))
    if options.command == "list":
        print("\n".join([*(f"{library.name}: {library.source or 'needs no source'}" for library in ALL), "",
                         *(problem.name for problem in problems)]))
        return 0
    if options.folder is None:
        parser.error(f"{options.command} needs FOLDER")
    return (prepare if options.command == "prepare" else run)(options, problems)


if __name__ == "__main__":
    sys.exit(main())
