#!/usr/bin/env python3
"""Norms and their quantizers by the threads of a row and the rows of a thread, beside a copy.

  benchmarks/norm_plans.py pack BUILD FOLDER [NAME=BUILD ...]
  benchmarks/norm_plans.py run FOLDER [--json=FILE]

`pack` compiles the programs of norms.py for sm_90a with the plan that the compiler chooses, and
with each plan of `plans_of`. Another build, of an earlier revision, gives the plan NAME. `run`
needs a Hopper GPU, verifies results, and times kernels with a cold L2. A line of JSON for each
program and number of rows has the microseconds of each plan, and of a copy of as many bytes.
"""
import os
import sys

import kit
import norms

KINDS = ("rms-nvfp4", "rms-fp8_row")
COLUMNS = (4096, 7168, 8192, 16384)
#: Few rows, and the elements of many: fp4-run verifies them in 5 seconds.
FEW, MANY = 64, 1 << 24


def plans_of(columns):
    """Names of plans with their options: threads of a row that have one to eight chunks, and up to
    four rows of a thread."""
    chunks = columns // 16
    for per_thread in (1, 2, 4, 8):
        threads = -(-chunks // per_thread + 31) // 32 * 32 if chunks % per_thread else chunks // per_thread
        if not 64 <= threads <= 768 or threads % 32:
            continue
        for rows in (1, 2, 4):
            if rows * per_thread <= 4 or rows == 1:
                yield f"{threads}x{rows}", [f"--plan=reduce_rows, threads = {threads}, rows_per_thread = {rows}"]


def compile_kinds(build, folder, plan, options, columns):
    kit.compile_programs(build, folder, [(f"{kind}_{plan}_{columns}", norms.program(kind, columns))
                                         for kind in KINDS], options)


def pack(build, folder, *others):
    kit.begin(folder, os.path.join(build, "bin", "fp4-run"), __file__, *norms.FILES)
    norms.save_amax(folder)
    for columns in COLUMNS:
        compile_kinds(build, folder, "chosen", [], columns)
        for name, other in (text.split("=", 1) for text in others):
            compile_kinds(other, folder, name, [], columns)
        for plan, options in plans_of(columns):
            compile_kinds(build, folder, plan, options, columns)


def plans_in(folder, kind, columns):
    """Names of the plans that were compiled."""
    start, end = f"{kind}_", f"_{columns}.so"
    names = [name[len(start):-len(end)] for name in os.listdir(folder) if name.startswith(start) and name.endswith(end)]
    return sorted(names, key=lambda name: (name != "chosen", name))


def measure(folder):
    for kind in KINDS:
        for columns in COLUMNS:
            for rows in (FEW, MANY // columns):
                row = {"kind": kind, "columns": columns, "rows": rows}
                for plan in plans_in(folder, kind, columns):
                    found = norms.time_kernels(folder, f"{kind}_{plan}", rows, columns)
                    row[plan], row["copy"] = round(found["ours"], 2), found["copy"]
                yield row


def main():
    command, folder, *others = sys.argv[1:]
    if command == "pack":
        pack(folder, *others)
    else:
        norms.report(measure(folder), next((o.removeprefix("--json=") for o in others if o.startswith("--json=")), None))


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("pack", "run"):
        sys.exit(__doc__)
    main()
