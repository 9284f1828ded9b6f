#!/usr/bin/env python3
"""Runs the corpus in the simulator: every case on every device under every policy.

A failed kernel ends its process, as on a GPU; the cases after it run in another one. Ends with "N of N".
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=HERE.parents[2] / "build", type=Path, help="tree with bin/fp4-sim")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has triton, numpy, ml_dtypes")
    parser.add_argument("--cache", default=Path(tempfile.gettempdir()) / "fp4-triton-cache", type=Path,
                        help="folder of the kernels that Triton compiled")
    parser.add_argument("--devices", default="b200,h200,rtx5090")
    parser.add_argument("--policies", default="eager,lazy,random")
    parser.add_argument("--seed", default="1", help="of the policy random")
    parser.add_argument("--check", default="default", help="hazard checker: off, default, strict")
    parser.add_argument("--filter", default="", help="regular expression over the names of cases")
    parser.add_argument("--dump-ptx", type=Path, help="writes the PTX that messages refer to")
    parser.add_argument("-v", "--verbose", action="store_true", help="every case; all of stderr of those that fail")
    return parser.parse_args()


def cases(o):
    """Names of the cases of each device, in the order of the files."""
    text = subprocess.run([o.python, HERE / "list.py"], capture_output=True, text=True, check=True).stdout
    table = [line.split() for line in text.splitlines()]
    return {d: [name for name, devices in table if d in devices.split(",") and re.search(o.filter, name)]
            for d in o.devices.split(",")}


def command(o, device, policy, names):
    line = [o.build / "bin/fp4-sim", "run", f"--device={device}", f"--policy={policy}", f"--seed={o.seed}",
            f"--check={o.check}"]
    if o.dump_ptx:
        o.dump_ptx.mkdir(parents=True, exist_ok=True)
        line += ["--dump-ptx", o.dump_ptx]
    return [str(word) for word in line + ["--", o.python, HERE / "worker.py", *names]]


def start(o, device, policy, names):
    environment = dict(os.environ, TRITON_CACHE_DIR=str(o.cache), TRITON_DEFAULT_FP_FUSION="1")
    result = subprocess.run(command(o, device, policy, names), env=environment, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, errors="replace")
    return result.stderr


def verdicts(stderr, names):
    """(name, passed, what was said) of the cases that began, up to the first that failed."""
    for name in names:
        part = stderr.partition(f"::begin {name}\n")[2]
        if not part:
            return
        said, ended, rest = part.partition(f"::end {name} ")
        # A hazard does not fail the launch: its report does.
        passed = bool(ended) and rest.startswith("passed") and not re.search(r"^error: ", said, re.M)
        yield name, passed, said.partition("::begin")[0]
        if not passed:
            return


def run(o, device, policy, names):
    failures, rest = [], list(names)
    while rest:
        stderr = start(o, device, policy, rest)
        done = list(verdicts(stderr, rest))
        if not done:
            sys.exit(f"error: nothing ran on {device}\n{stderr}")
        for name, passed, said in done:
            if o.verbose or not passed:
                print(f"  {'passed' if passed else 'FAILED'}  {device} {policy} {name}")
            if not passed:
                print("\n".join("    " + line for line in said.strip().splitlines()[:None if o.verbose else 6]))
                failures.append(name)
        rest = rest[len(done):]
    return len(names), failures


def main():
    o = options()
    total, passed = 0, 0
    for device, names in cases(o).items():
        for policy in o.policies.split(","):
            began = time.time()
            count, failures = run(o, device, policy, names)
            total, passed = total + count, passed + count - len(failures)
            print(f"{device}, {policy}: {count - len(failures)} of {count} in {time.time() - began:.0f} s", flush=True)
    print(f"{passed} of {total}")
    return 0 if passed == total else 1


if __name__ == "__main__":
    sys.exit(main())
