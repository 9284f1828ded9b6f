#!/usr/bin/env python3
"""Speed of the simulator on a forward of attention as FlashAttention-3 has it: wgmma, TMA, roles of
warps.

  benchmarks/sim/attention.py BUILD [OTHER...] [--tokens=N] [--heads=N] [--rounds=N] [--threads=N]
                              [--json=FILE]

Compiles bf16 attention of heads of 128 elements for sm_90a with the first build, and runs it in the
simulator of each build without checks, with those of each mode, and with --time. A figure is user
CPU seconds of the process, the least of all rounds: builds and modes take turns, so that others who
use the machine disturb all of them.
"""
import argparse
import json
import os
import subprocess
import tempfile
import time

MODES = {"off": ["--check=off"], "default": ["--check=default"], "strict": ["--check=strict"],
         "time": ["--check=off", "--time"]}


def text(tokens, heads):
    matrix = f"tensor<1x{tokens}x{heads}x128xbf16>"
    return f"""func.func @attention(%q: {matrix}, %k: {matrix}, %v: {matrix}) -> {matrix} {{
  %o = fp4.attention %q, %k, %v scale 0.08838834764 : {matrix}, {matrix}, {matrix} -> {matrix}
  return %o : {matrix}
}}
"""


def measure(command):
    """User CPU seconds and seconds of a process."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with status {status}")
    return usage.ru_utime, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", help="build folders, or fp4-run of others than the first")
    for name, value in (("tokens", 4096), ("heads", 1), ("rounds", 3), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--json", help="file for a line of JSON for each build")
    options = parser.parse_args()
    programs = [os.path.join(build, "bin/fp4-run") if os.path.isdir(build) else build for build in options.builds]
    modes = options.modes.split(",")
    best = {(program, mode): (float("inf"), float("inf")) for program in programs for mode in modes}
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "attention.mlir"), os.path.join(folder, "attention.so")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text(options.tokens, options.heads))
        subprocess.run([os.path.join(options.builds[0], "bin/fp4-runner"), source, "--target=sm_90a", "--emit=so", "-o",
                        library], check=True)
        for _ in range(options.rounds):
            for mode in modes:
                for program in programs:
                    measured = measure([program, library, "--device=sim", "--no-verify",
                                        f"--threads={options.threads}", *MODES[mode]])
                    best[program, mode] = tuple(map(min, best[program, mode], measured))
    print("".join(f"{word:>12}" for word in ["build", *modes]))
    for build, program in zip(options.builds, programs):
        seconds = {mode: best[program, mode][0] for mode in modes}
        line = [f"{seconds[mode]:.2f} ({seconds[mode] / seconds[modes[0]]:.2f})" for mode in modes]
        print("".join(f"{word:>14}" for word in line) + f"  {build}")
        if options.json:
            with open(options.json, "a", encoding="utf-8") as file:
                file.write(json.dumps({"build": build, "tokens": options.tokens, "heads": options.heads,
                                       "user_seconds": seconds,
                                       "seconds": {mode: best[program, mode][1] for mode in modes}}) + "\n")


if __name__ == "__main__":
    main()
