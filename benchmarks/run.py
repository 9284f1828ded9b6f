#!/usr/bin/env python3
"""Measures what a user waits for: compiling to a cubin, and simulating.

  compile    .mlir to cubin of the 256 x 512 x 1024 NVFP4 GEMM        aim: under 1 s
  simulate   the 512 x 512 x 1024 NVFP4 GEMM in the simulator         aim: under 2 s on two cores

Wall clock of whole processes, median of --runs after one that warms the page cache; the steps of
compiling are those of fp4-runner --time-phases. --json prints all samples with their environment.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GEMM = ROOT / "benchmarks" / "nvfp4_gemm.mlir"
STEP = re.compile(r"^\s*([\d.]+) ms  (.+)$", re.M)


def run(command):
    start = time.perf_counter()
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stderr}")
    return (time.perf_counter() - start) * 1e3, result


def measure(command, runs, details):
    """Samples in milliseconds, and per sample what `details` reads from the process' output."""
    run(command)
    samples, extra = [], []
    for _ in range(runs):
        milliseconds, result = run(command)
        samples.append(milliseconds)
        extra.append(details(result))
    return samples, extra


def medians(dictionaries):
    return {key: statistics.median(d[key] for d in dictionaries) for key in dictionaries[0]}


def compile_gemm(runner, runs):
    with tempfile.TemporaryDirectory() as scratch:
        command = [runner, GEMM, "--emit=cubin", "-o", scratch + "/", "--time-phases"]
        samples, steps = measure(command, runs, lambda result: {
            step: float(ms) for ms, step in STEP.findall(result.stderr)})
    return {"name": "compile 256x512x1024 to cubin", "aim_ms": 1000, "samples_ms": samples,
            "steps_ms": medians(steps)}


def simulate_gemm(runner, runs):
    command = [runner, GEMM, "--device=sim", "--shape=512,512,1024", "--no-verify", "--json"]
    samples, steps = measure(command, runs, lambda result: {
        kernel["module"]: kernel["milliseconds"]
        for kernel in json.loads(result.stdout)["kernels"]})
    return {"name": "simulate 512x512x1024", "aim_ms": 2000, "samples_ms": samples,
            "steps_ms": medians(steps)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build tree")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    runner = options.build / "bin" / "fp4-runner"
    results = [compile_gemm(runner, options.runs), simulate_gemm(runner, options.runs)]
    if options.json:
        print(json.dumps({"schema": 1, "machine": platform.machine(), "cores": os.cpu_count(),
                          "results": results}, indent=1))
        return
    for result in results:
        samples = result["samples_ms"]
        print(f"{result['name']}: {statistics.median(samples):.0f} ms (from {min(samples):.0f} to "
              f"{max(samples):.0f} in {len(samples)} runs; aim {result['aim_ms']} ms)")
        for step, milliseconds in result["steps_ms"].items():
            print(f"  {milliseconds:8.1f} ms  {step}")


if __name__ == "__main__":
    main()
