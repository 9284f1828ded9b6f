#!/usr/bin/env python3
"""Predicts what the roles of a GEMM on tcgen05 wait for in steady state (concepts/time-model.md).

  validation/steady_roles.py [OPTIONS] PLAN       the steady state of PLAN
  validation/steady_roles.py [OPTIONS] --whole    8192 x 8192 x 8192 by the plan chosen

OPTIONS are --build BUILD, --clock GHZ, --least SHARE, --format FORMAT and --unit UNIT.

The steady state is what a GEMM of 512 x 1024 does between K = 2048 and K = 4096: the difference of
two reports of `fp4-runner --time-only`, whose shares are of the cycles in between. Prints how busy
the tensor core is, and of each role how long it waits and how long it issues.

Fails where the tensor core (or UNIT of --whole) is busy for less than SHARE of the time, or where a
role hardly waits, so that its instructions and not the tensor core might bound the kernel: every
role must wait for a fifth of the time, and the one that loads for two thirds, because the stages
are full.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import blackwell  # noqa: E402

WAITS = ("mbarrier", "barrier", "async work", "busy unit")
DEPTHS = (2048, 4096)


def predict(options, scratch, m, n, k, *more):
    """The report of the one kernel."""
    source = pathlib.Path(scratch) / "product.mlir"
    source.write_text(blackwell.program(blackwell.Problem("GEMM", m, n, k, None, "-", format=options.format)))
    command = [options.build / "bin/fp4-runner", source, "--target=sm_100a", "--device=sim", "--time-only", "--json", "--no-verify",
               "--check=off", "--dist=zeros", f"--clock={options.clock}", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    [time] = json.loads(done.stdout)["predicted_times"]
    if not time["predicted"]:
        sys.exit(f"error: no prediction: {time.get('unknown')}")
    return time


def between(less, more):
    """The report of what the deeper GEMM does beyond the other one; units are those of the CTAs
    that run."""
    cycles = more["cycles"] - less["cycles"]
    blocks = more["grid"][0] * more["grid"][1] * more["grid"][2]
    difference = lambda a, b: (b * more["cycles"] - a * less["cycles"]) / cycles
    busy = {unit: difference(less["busy"].get(unit, 0), share) * more["sms"] / blocks
            for unit, share in more["busy"].items()}
    roles = {after["name"]: {cause: difference(before["share"].get(cause, 0), share) for cause, share in after["share"].items()}
             for before, after in zip(less["roles"], more["roles"])}
    return cycles, busy, roles


def judge(options, busy, roles):
    problems = []
    if busy[options.unit] < options.least:
        problems.append(f"the {options.unit} must be busy for {options.least:.0%} of the time, but is for {busy[options.unit]:.1%}")
    for name, shares in roles.items():
        waits, least = sum(shares.get(cause, 0) for cause in WAITS), 2 / 3 if name.startswith("copies") else 1 / 5
        print(f"{name}: waits {waits:.0%} ({shares['mbarrier']:.0%} at mbarriers), "
              f"issues {shares['issue'] + shares['arithmetic'] + shares['branch']:.0%}")
        if waits < least:
            problems.append(f"'{name}' must wait for {least:.0%} of the time, but does for {waits:.1%}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", nargs="?", default="")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--clock", type=float, default=1.965)
    parser.add_argument("--format", default="nvfp4")
    parser.add_argument("--least", type=float, default=0)
    parser.add_argument("--unit", default="tensor core")
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fp4-steady-") as scratch:
        if options.whole:
            time = predict(options, scratch, 8192, 8192, 8192, "--sample-after=100000")
            busy, roles = time["busy"], {role["name"]: role["share"] for role in time["roles"]}
            print(f"{time['microseconds']:.1f} us predicted, bound by {time['bound']}")
        else:
            plan = [f"--plan=tile_gemm, {options.plan}"] if options.plan else []
            cycles, busy, roles = between(*(predict(options, scratch, 512, 1024, k, *plan) for k in DEPTHS))
            print(f"{cycles / (DEPTHS[1] - DEPTHS[0]) * 256:.0f} cycles for 256 of K")
    print(f"{options.unit}: busy {busy[options.unit]:.1%}")
    problems = judge(options, busy, roles)
    for problem in problems:
        print("error:", problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
