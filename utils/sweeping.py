"""What the sweeps share: choosing cases that cover every pair of values, compiling programs, running
the libraries in the simulator, and counting."""
import argparse
import concurrent.futures
import itertools
import os
import pathlib
import random
import subprocess
import sys
import tempfile

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


def sampled_covering(parameters, valid, wanted, tries=400):
    """The same where there are too many cases to look at each: `parameters` are lists of values,
    `valid` judges a case, `wanted` says of which two parameters (by index) pairs count. A pair is
    given up after `tries` random cases with it that are not valid."""
    rng = random.Random(1)
    missing = {(i, j, a, b) for i, j in itertools.combinations(range(len(parameters)), 2)
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


def option_parser(doc):
    parser = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build tree")
    parser.add_argument("--full", action="store_true", help="the whole cross product")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    return parser


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
