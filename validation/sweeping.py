"""Parts that the sweeps share: choosing cases that cover every pair of values, compiling programs,
running the libraries in the simulator or packing them for a GPU, and counting."""
import argparse
import collections
import concurrent.futures
import itertools
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import tables

ROOT = pathlib.Path(__file__).resolve().parent.parent


def pairs(case):
    return {(i, j, case[i], case[j]) for i, j in itertools.combinations(range(len(case)), 2)}


def covering(cases):
    """A subset in which every pair of values that occurs in a case occurs again. Greedy: each step
    takes the case with the most new pairs, the earliest (smallest) among equals."""
    cases = list(cases)
    missing = set().union(*map(pairs, cases))
    chosen = []
    while missing:
        best = max(cases, key=lambda case: len(pairs(case) & missing))
        missing -= pairs(best)
        chosen.append(best)
    return chosen


def sampled_covering(parameters, valid, wanted, tries=400, same=lambda pair: pair):
    """Chooses cases as `covering` does, if there are too many to look at each: `parameters` are
    lists of values, `valid` judges a case, `wanted` says of which two parameters (by index) pairs
    count, and `same` gives the pair (i, j, a, b) that stands for another one. A pair is given up
    after `tries` random cases with it that are not valid."""
    rng = random.Random(1)

    def pairs(case):
        return {same((i, j, case[i], case[j])) for i, j in itertools.combinations(range(len(case)), 2)}

    missing = {same((i, j, a, b)) for i, j in itertools.combinations(range(len(parameters)), 2)
               if wanted(i, j) for a in parameters[i] for b in parameters[j]}
    chosen = []
    for pair in sorted(missing, key=repr):
        if pair not in missing:
            continue
        i, j, a, b = pair
        best, gain = None, 0
        candidates = 0
        for _ in range(tries):
            case = [rng.choice(values) for values in parameters]
            case[i], case[j] = a, b
            if not valid(case := tuple(case)):
                continue
            candidates += 1
            new = len(pairs(case) & missing)
            if new > gain:
                best, gain = case, new
            if candidates == 40:
                break
        missing.discard(pair)
        if best:
            missing -= pairs(best)
            chosen.append(best)
    return chosen


def cases_of(full, parameters, valid):
    """The valid cases of the cross product of `parameters` where `full`, or such that every pair of
    values of two parameters occurs."""
    if full:
        return filter(valid, itertools.product(*parameters))
    return sampled_covering(parameters, valid, lambda i, j: True)


def schedules(seeds):
    """(policy, seed) of each policy of the simulator, the random one with so many seeds."""
    return [(policy, seed) for policy in tables.policies()
            for seed in range(1, 1 + (seeds if policy == "random" else 1))]


def scheduled(prefix="", fields=""):
    """Plans by name: `fields` in each order of tiles but the first, which is that of most plans."""
    return {f"{prefix}{word}": f"{fields}schedule = #pipe.static_persistent<{raster}>"
            for word, raster in list(tables.rasters().items())[1:]}


# A program: its name in files and lists, its text, options of fp4-runner, and the lists of options
# of fp4-run under which it runs.
Program = collections.namedtuple("Program", "name text arguments runs")


def with_powers(runs):
    """Returns the runs, and each again with scales above 16: prepacked weights of mxfp4 are
    converted in another way then."""
    return [*runs, *([*run, "--dist=large"] for run in runs)]


def file_name(*values):
    """A file's name that says the values: ("nvfp4", (1, 0), "?", 0.5) is nvfp4_1-0_any_0p5. A name
    has no dot, behind which a library would lose it."""
    words = (str(value).replace("?", "any").replace(", ", "-").replace(".", "p") for value in values)
    return "_".join(re.sub(r"[^\w-]", "", word) for word in words)


def shell(command):
    return " ".join(str(word) for word in command)


class Outcome:
    """Counts and messages of runs."""

    def __init__(self):
        self.passed, self.failures, self.unsupported = 0, [], []

    def run(self, command, **kwargs):
        run = subprocess.run(command, capture_output=True, text=True, **kwargs)
        if run.returncode == 0:
            self.passed += 1
        else:
            self.failures.append(f"exit code {run.returncode}: {shell(command)}\n"
                                 f"{run.stdout}{run.stderr}")


def compile_library(tools, stem, text, *arguments, cubins=True):
    """Writes STEM.mlir, compiles it to STEM.so; returns library, command and the finished process.
    The simulator needs no cubins, and without them it is faster."""
    source, library = stem.with_suffix(".mlir"), stem.with_suffix(".so")
    source.write_text(text)
    command = [tools / "fp4-runner", source, "--emit=so", "-o", library, *arguments]
    environment = os.environ | ({} if cubins else {"FP4_PTXAS": "none"})
    return library, command, subprocess.run(command, capture_output=True, text=True,
                                            env=environment)


def pack(folder, library, runs):
    """Moves the library into the folder, and writes its runs beside it, a line each."""
    shutil.move(library, folder / library.name)
    (folder / library.with_suffix(".txt").name).write_text(
        "".join(f"{shell([library.name, *arguments])}\n" for arguments in runs))
    outcome = Outcome()
    outcome.passed = len(runs)
    return outcome


def run_strict(tools, library, runs, schedules):
    """Runs the library in the simulator, with its strict hazard check, with each of the lists of
    options `runs` under each of the schedules (policy, seed)."""
    outcome = Outcome()
    for arguments, (policy, seed) in itertools.product(runs, schedules):
        outcome.run([tools / "fp4-run", library, "--device=sim", *arguments, f"--policy={policy}",
                     f"--seed={seed}", "--threads=1", "--check=strict"])
    library.unlink()
    return outcome


def option_parser(doc):
    parser = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build tree")
    parser.add_argument("--full", action="store_true", help="the whole cross product")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--empty", action="store_true",
                        help="run programs of dynamic rows, and no others, without a row")
    parser.add_argument("--pack", type=pathlib.Path, metavar="FOLDER",
                        help="run nothing: leave the libraries there, with their runs, for a GPU")
    return parser


def product_parser(doc):
    parser = option_parser(doc)
    parser.add_argument("--schedules", default="all", choices=["all", "eager"])
    parser.add_argument("--match", default="", metavar="REGEX", help="only programs whose names match")
    parser.add_argument("--target", help="compile for this target, and not for the one of the plans")
    return parser


def without_rows(text, runs):
    """The runs of a program whose rows are dynamic, without a row and without repetitions."""
    if "tensor<?" not in text:
        return []
    empty = [(*(x for x in run if not x.startswith("--shape=")), "--shape=0") for run in runs]
    return [list(run) for run in dict.fromkeys(empty)]


def selected(options, programs):
    """Returns the programs that match, for the target that the options name."""
    chosen = [program for program in programs if re.search(options.match, program.name)]
    if options.empty:
        chosen = [program._replace(runs=runs) for program in chosen
                  if (runs := without_rows(program.text, program.runs))]
    if not options.target:
        return chosen
    return [program._replace(arguments=[f"--target={options.target}"]
                             + [x for x in program.arguments if not x.startswith("--target=")])
            for program in chosen]


def run_all(options, check, groups):
    """Runs check(tools, scratch, *group) for every group, in parallel, and prints what failed.
    Returns the exit code."""
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="fp4-sweep-") as scratch, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tools = options.build / "bin"
        futures = [pool.submit(check, tools, pathlib.Path(scratch), *group) for group in groups]
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            outcomes.append(future.result())
            for failure in outcomes[-1].failures:
                print("FAILED", failure, flush=True)
            if sys.stderr.isatty():
                print(f"\r{done}/{len(futures)} libraries", end="", file=sys.stderr)
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(len(outcome.failures) for outcome in outcomes)
    unsupported = sorted(text for outcome in outcomes for text in outcome.unsupported)
    for text in unsupported:
        print("NO KERNEL", text)
    print(f"{passed} passed, {failed} failed"
          + (f", {len(unsupported)} without a kernel" if unsupported else ""))
    return 1 if failed or unsupported else 0


def run_gemms(options, programs, schedules, judge=lambda tools, source: []):
    """Compiles each program, and runs it under every one of the schedules, or packs it, or lists
    it, as the options say. judge(tools, source) may return further failures of a program's file.
    Returns the exit code."""
    programs = selected(options, programs)
    if options.schedules == "eager":
        schedules = schedules[:1]
    if options.list:
        for program in programs:
            print(program.name, *(shell(arguments) for arguments in program.runs))
        runs = sum(len(program.runs) for program in programs)
        print(f"{len(programs)} libraries, {runs * len(schedules)} runs")
        return 0
    if options.pack:
        options.pack.mkdir(parents=True, exist_ok=True)

    def check(tools, scratch, program):
        stem = scratch / program.name
        library, command, built = compile_library(tools, stem, program.text, *program.arguments,
                                                  cubins=options.pack is not None)
        if built.returncode:
            outcome = Outcome()
            outcome.failures = [f"{shell(command)}\n{program.text}{built.stderr}"] * len(program.runs)
            return outcome
        if options.pack:
            return pack(options.pack, library, program.runs)
        outcome = run_strict(tools, library, program.runs, schedules)
        outcome.failures += judge(tools, stem.with_suffix(".mlir"))
        if outcome.failures:
            outcome.failures.append(program.text)
        return outcome

    return run_all(options, check, [(program,) for program in programs])
