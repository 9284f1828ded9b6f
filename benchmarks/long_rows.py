#!/usr/bin/env python3
"""Norms and losses of rows that one CTA does not keep, beside a copy and torch.compile.

  benchmarks/long_rows.py pack BUILD FOLDER     compiles the programs for sm_90a into FOLDER
  benchmarks/long_rows.py run FOLDER [--json=FILE] [--tokens=64,512]
  benchmarks/long_rows.py predict BUILD [--json=FILE]

A program has the plan that the compiler chooses, one CTA for a row, which reads it several times,
or a cluster of 2, 4, 8 or 16 CTAs, which read it once. `pack` needs PyTorch, and `run` also a
Hopper GPU. Results are verified and then timed with a cold L2. A line of JSON for each program,
plan and number of rows has microseconds. `predict` prints what `fp4-runner
--time-only` says of 2048 rows of norms on an H200, a B200 and an RTX 5090.
"""
import json
import os
import subprocess
import sys
import tempfile

import kit
import norm_peers
import norms
import routing

TOKENS = (64, 512)
#: Kinds of norms.py with their columns, of which the first one is no longer than others are.
NORMS = {"rms-bf16": (16384, 32768, 65536, 131072), "layer-bf16": (32768, 65536), "add_rms-nvfp4": (32768, 65536)}
LOSSES = ("loss", "gradient")
PLANS = {"chosen": [], "one": ["--plan=reduce_rows, cluster = [1, 1], threads = 512, ctas_per_sm = 2"],
         **{f"of{ctas}": [f"--plan=reduce_rows, cluster = [1, {ctas}]"] for ctas in (2, 4, 8, 16)}}


def programs():
    """The kind, columns and MLIR of each program."""
    for kind, columns in NORMS.items():
        for number in columns:
            yield kind, number, norms.program(kind, number)
    for kind in LOSSES:
        yield kind, routing.VOCABULARY, routing.program(kind)


def pack(build, folder):
    kit.begin(folder, os.path.join(build, "bin", "fp4-run"), __file__, *norms.FILES, routing.__file__)
    norms.save_amax(folder)
    for plan, options in PLANS.items():
        kit.compile_programs(build, folder, [(f"{kind}_{plan}_{columns}", text) for kind, columns, text in programs()],
                             options)


def in_torch(kind, rows, columns, torch):
    """The function that torch.compile is given, and its arguments."""
    if kind in LOSSES:
        function, arguments = routing.in_torch(kind, rows, torch)
        torch._dynamo.reset()
        return torch.compile(function, dynamic=False), arguments
    return norm_peers.compiled(kind, torch), norm_peers.arguments(kind, rows, columns, torch)


def measure(folder, tokens_of):
    import torch
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    cases = [(kind, number) for kind, columns in NORMS.items() for number in columns]
    cases += [(kind, routing.VOCABULARY) for kind in LOSSES]
    for kind, columns in reversed(cases):
        for rows in tokens_of:
            row = {"kind": kind, "columns": columns, "rows": rows}
            for plan in PLANS:
                found = norms.time_kernels(folder, f"{kind}_{plan}", rows, columns)
                row[plan] = found["ours"]
                row["copy"] = found["copy"]
            if not kind.endswith("nvfp4"):
                function, arguments = in_torch(kind, rows, columns, torch)
                row["compiled"] = norms.time_torch(function, [arguments], flush, torch)
                torch.cuda.empty_cache()
            yield row


#: Programs whose times are predicted, and the GPUs with their targets.
PREDICTED = (*(("rms-bf16", columns) for columns in NORMS["rms-bf16"]), ("layer-bf16", 65536), ("add_rms-nvfp4", 65536))
GPUS = {"h200": "sm_90a", "b200": "sm_100a", "rtx5090": "sm_120a"}


def microseconds(build, path, gpu, plan):
    """The predicted time of 2048 rows; None where the time model lacks a rate."""
    done = subprocess.run([os.path.join(build, "bin", "fp4-runner"), path, f"--target={GPUS[gpu]}", "--device=sim",
                           f"--gpu={gpu}", "--time-only", "--shape=2048", "--json", *plan], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {path} on {gpu}: {done.stderr or done.stdout}")
    times = json.loads(done.stdout)["predicted_times"]
    return round(sum(time["microseconds"] for time in times), 1) if all(time["predicted"] for time in times) else None


def predict(build):
    with tempfile.TemporaryDirectory() as folder:
        for kind, columns in PREDICTED:
            path = os.path.join(folder, f"{kind}_{columns}.mlir")
            with open(path, "w") as file:
                file.write(norms.program(kind, columns))
            row = {"kind": kind, "columns": columns, "one": microseconds(build, path, "h200", PLANS["one"])}
            found = {gpu: microseconds(build, path, gpu, []) for gpu in GPUS}
            yield {**row, **{gpu: time for gpu, time in found.items() if time is not None}}


if __name__ == "__main__":
    if sys.argv[1:2] == ["predict"]:
        norms.report(predict(sys.argv[2]), next((a.removeprefix("--json=") for a in sys.argv[3:]), None))
    else:
        norms.run_by_tokens(__doc__, pack, measure, TOKENS)
