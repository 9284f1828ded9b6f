#!/usr/bin/env python3
"""Predicts the times of chains between GEMMs on Blackwell, of kernels that the simulator runs.

  benchmarks/blackwell_neighbours.py [--build BUILD] [--cell ROWSxCOLUMNS] [--only KIND,...]
      [--json FILE]

A chain is one of norms.py or neighbour_chains.py, compiled for sm_100a (B200) and sm_120a (RTX
5090). Times are those of `fp4-run --time-only` with instructions as they are estimated from PTX: a
cold L2, the kernel alone. Nothing ran on either GPU. Needs PyTorch, of whose tensors nothing is
used.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import kit
import neighbour_chains
import norms

sys.path.insert(0, os.path.join(kit.ROOT, "python"))
TARGETS = {"sm_100a": "b200", "sm_120a": "rtx"}
KINDS = ("rms-nvfp4", "add_rms-mxfp4", "layer-fp8_row", "silu-nvfp4", "norm_rope-bf16", "cache-nvfp4", "gather-mxfp8", "combine-4",
         "rms_gradient", "loss")
COLUMNS = [("kind", "chain", None),
           *((f"{name}_{what}", f"{gpu}{more}", unit) for name, gpu in (("b200", "B200"), ("rtx", "RTX 5090"))
             for what, more, unit in (("time", "", "us"), ("memory", ", device memory busy", "%"), ("bound", ", bound", None)))]


def text_of(kind, columns):
    chain = neighbour_chains.KINDS.get(kind)
    return (norms.program(kind, columns), ()) if chain is None else (chain.text(columns), chain.sizes)


def predicted(build, folder, kind, rows, columns, target):
    """Microseconds, the share of the device memory's time, and what bounds the kernels."""
    text, sizes = text_of(kind, columns)
    source, library = folder / f"{kind}.mlir", folder / f"{kind}_{target}.so"
    source.write_text(text)
    environment = os.environ | {"FP4_PTXAS": "none"}
    subprocess.run([build / "bin/fp4-runner", source, f"--target={target}", "--emit=so", "-o", library], env=environment,
                   capture_output=True, check=True)
    run = subprocess.run([build / "bin/fp4-run", library, "--device=sim", "--time-only", "--json", "--no-verify", "--check=off",
                          f"--shape={rows}", *(f"--dim={size}" for size in sizes)],
                         capture_output=True, text=True, check=True)
    times = json.loads(run.stdout)["predicted_times"]
    assert all(time["predicted"] for time in times), times
    longest = max(times, key=lambda time: time["microseconds"])
    return sum(time["microseconds"] for time in times), longest["busy"].get("device memory", 0), longest["bound"]


def row_of(options, folder, kind):
    rows, columns = map(int, options.cell.split("x"))
    row = {"kind": kind}
    for target, name in TARGETS.items():
        time, memory, bound = predicted(options.build, folder, kind, rows, columns, target)
        row |= {f"{name}_time": round(time, 1), f"{name}_memory": round(100 * memory), f"{name}_bound": bound}
    print(json.dumps(row), flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(kit.ROOT, "build"))
    parser.add_argument("--cell", default="4096x4096")
    parser.add_argument("--only", type=lambda text: text.split(","), default=KINDS)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = [row_of(options, pathlib.Path(folder), kind) for kind in options.only]
    if options.json:
        command = f"benchmarks/blackwell_neighbours.py --cell {options.cell}"
        result = kit.document("blackwell-neighbours", COLUMNS, found, key=["kind"], command=command,
                              program=f"chains of {options.cell} elements; instructions as estimated from PTX",
                              clock="1.965 GHz (B200) and 2.87 GHz (RTX 5090), cold L2",
                              revision=subprocess.run(["git", "-C", kit.ROOT, "rev-parse", "--short=8", "HEAD"], text=True,
                                                      capture_output=True, check=True).stdout.strip())
        result |= {"card": "B200", "device": "sm_100a and sm_120a, simulated", "driver": None, "evidence": "predicted"}
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
