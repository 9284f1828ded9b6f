#!/usr/bin/env python3
"""Compiles matrix products of many shapes, runs them in the simulator and checks every result.

  utils/sweep.py                 a covering subset: every pair of values of two parameters occurs
  utils/sweep.py --full          the cross product of everything
  utils/sweep.py --list          what would run

One library is compiled per (format, result type, N, K) with dynamic M and run by fp4-run for every M
under every schedule of the simulator. Inputs go through the quantizer, so that scales differ from
block to block, unless --operands makes the function take quantized operands. Prints one line per
failure with the commands that repeat it, then "N passed, N failed".
"""
import argparse
import concurrent.futures
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
M = [1, 127, 128, 129, 300]
N = [8, 64, 200, 384]
K = [64, 256, 272, 1024]
FORMATS = ["nvfp4", "mxfp4"]
RESULTS = ["bf16", "f16", "f32"]
SCHEDULES = [("eager", 1), ("lazy", 1), ("random", 1), ("random", 2), ("random", 3)]

LAYOUT = "#fp4.scale_layout<tiled_128x4>"


def program(fmt, result, n, k):
    """A linear layer from bf16 operands; K = 272 is no multiple of MXFP4's block."""
    block, scale = (16, "f8E4M3FN") if fmt == "nvfp4" else (32, "f8E8M0FNU")
    recipe = "transformer_engine" if fmt == "nvfp4" else "ocp_rceil"
    b = k // block
    lines = [
        f"func.func @linear(%x: tensor<?x{k}xbf16> {{fp4.name = \"x\"}},",
        f"                  %w: tensor<{n}x{k}xbf16> {{fp4.name = \"w\"}}) -> tensor<?x{n}x{result}> {{",
    ]
    for name, rows in (("x", "?"), ("w", n)):
        amax, amax_type = "", ""
        if fmt == "nvfp4":
            lines.append(f"  %a{name} = fp4.amax %{name} : tensor<{rows}x{k}xbf16> -> tensor<f32>")
            amax, amax_type = f" amax %a{name}", ", tensor<f32>"
        lines += [
            f"  %q{name}, %s{name} = fp4.quantize %{name}{amax}"
            f" {{format = #fp4.format<{fmt}>, recipe = #fp4.recipe<{recipe}>}}",
            f"    : (tensor<{rows}x{k}xbf16>{amax_type})"
            f" -> (tensor<{rows}x{k}xf4E2M1FN>, tensor<{rows}x{b}x{scale}>)",
            f"  %t{name} = fp4.swizzle_scales %s{name} : tensor<{rows}x{b}x{scale}>"
            f" -> tensor<{rows}x{b}x{scale}, {LAYOUT}>",
        ]
    alpha, alpha_type = "", ""
    if fmt == "nvfp4":
        lines.append("  %alpha = fp4.matmul_alpha %ax, %aw"
                     " : tensor<f32>, tensor<f32> -> tensor<f32>")
        alpha, alpha_type = " alpha %alpha", ", tensor<f32>"
    lines += [
        f"  %y = fp4.blockscaled_matmul %qx scaled %tx, %qw scaled %tw{alpha}"
        f" {{format = #fp4.format<{fmt}>}}",
        f"    : (tensor<?x{k}xf4E2M1FN>, tensor<?x{b}x{scale}, {LAYOUT}>,"
        f" tensor<{n}x{k}xf4E2M1FN>, tensor<{n}x{b}x{scale}, {LAYOUT}>{alpha_type})"
        f" -> tensor<?x{n}x{result}>",
        f"  return %y : tensor<?x{n}x{result}>",
        "}",
    ]
    return "\n".join(lines) + "\n"


def all_cases():
    for fmt, result, n, k, m in itertools.product(FORMATS, RESULTS, N, K, M):
        if fmt == "nvfp4" or k % 32 == 0:
            yield (fmt, result, n, k, m)


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


def compile_library(tools, scratch, key):
    fmt, result, n, k = key
    stem = scratch / f"{fmt}_{result}_n{n}_k{k}"
    source, library = stem.with_suffix(".mlir"), stem.with_suffix(".so")
    source.write_text(program(*key))
    command = [tools / "fp4-runner", source, "--emit=so", "-o", library]
    return library, command, subprocess.run(command, capture_output=True, text=True)


def check_group(tools, scratch, key, rows, schedules, distributions):
    """Compiles one library and runs it; returns (passed, messages of failures)."""
    library, command, built = compile_library(tools, scratch, key)
    runs = list(itertools.product(rows, schedules, distributions))
    if built.returncode:
        return 0, [f"{shell(command)}\n{built.stderr}"] * len(runs)
    passed, failures = 0, []
    for m, (policy, seed), distribution in runs:
        command = [tools / "fp4-run", library, "--device=sim", f"--shape={m}", f"--policy={policy}",
                   f"--seed={seed}", f"--dist={distribution}", "--threads=1"]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode == 0:
            passed += 1
        else:
            failures.append(f"exit code {run.returncode}: {shell(command)}\n{run.stdout}{run.stderr}")
    library.unlink()
    return passed, failures


def shell(command):
    return " ".join(str(word) for word in command)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build tree")
    parser.add_argument("--full", action="store_true", help="the whole cross product")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    parser.add_argument("--schedules", default="all", help="all, or eager")
    parser.add_argument("--dist", default="gaussian,exact", help="distributions of the inputs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()

    cases = list(all_cases()) if options.full else covering(all_cases())
    schedules = SCHEDULES if options.schedules == "all" else SCHEDULES[:1]
    distributions = options.dist.split(",")
    groups = {}
    for *key, m in cases:
        groups.setdefault(tuple(key), []).append(m)
    if options.list:
        for key, rows in groups.items():
            print(*key, "M", *rows)
        print(f"{len(cases)} shapes in {len(groups)} libraries, "
              f"{len(cases) * len(schedules) * len(distributions)} runs")
        return 0
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="fp4-sweep-") as scratch, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tools = options.build / "bin"
        futures = [pool.submit(check_group, tools, pathlib.Path(scratch), key, rows, schedules,
                               distributions)
                   for key, rows in groups.items()]
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            good, failures = future.result()
            passed += good
            failed += len(failures)
            for failure in failures:
                print("FAILED", failure)
            if sys.stderr.isatty():
                print(f"\r{done}/{len(futures)} libraries", end="", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
