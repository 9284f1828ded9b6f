#!/usr/bin/env python3
"""The quantizers of streaming.mlir in PyTorch, eager and compiled, on the GPU beside the library.

  fp4-runner benchmarks/streaming.mlir --target=sm_90a --emit=so -o streaming.so
  benchmarks/pytorch.py --fp4-run=fp4-run --library=streaming.so --rows=16384

Eager PyTorch executes one IEEE operation per tensor operation, so its bytes must equal those of the
library (exit code 1 if they do not). The code that Inductor compiles from the same function is
timed, and its differing bytes are counted, because it may contract and approximate. Times are
medians of runs with an event on either side, on operand sets that are used in turn and are together
larger than twice the L2 cache. With --cpu the bytes are compared with those of the simulator, and
nothing is timed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy
import torch

FLT_MAX = torch.finfo(torch.float32).max


def codes(y):
    """E2M1, nearest even, two to a byte; no NaN."""
    a = y.abs()
    c = (a > 0.25).to(torch.uint8) + (a >= 0.75) + (a > 1.25) + (a >= 1.75) + (a > 2.5) + (a >= 3.5) + (a > 5.0)
    c = c | (torch.signbit(y).to(torch.uint8) << 3)
    return (c[..., 0::2] | (c[..., 1::2] << 4)).flatten(1)


def nvfp4(x, amax):
    """Recipe transformer_engine."""
    blocks = x.float().unflatten(1, (-1, 16))
    one = torch.ones_like(amax)
    g = torch.minimum(torch.full_like(amax, 2688.0) / amax, torch.full_like(amax, FLT_MAX))
    g = torch.where((amax == 0) | (g == 0), one, g)
    d = one / g
    sixth = torch.full_like(amax, 1.0 / 6.0)
    scales = (blocks.abs().amax(-1) * (g * sixth)).clamp(max=448.0).to(torch.float8_e4m3fn)
    product = scales.float() * d
    factor = torch.minimum(torch.ones_like(product) / product, torch.full_like(product, FLT_MAX))
    return codes(blocks * factor[..., None]), scales.view(torch.uint8)


def mxfp4(x, _):
    """Recipe ocp_floor; finite input."""
    blocks = x.float().unflatten(1, (-1, 32))
    bits = blocks.abs().amax(-1).view(torch.int32)
    byte = ((bits >> 23) - 2).clamp(0, 254)
    factor = torch.where(byte == 254, 0x00400000, (254 - byte) << 23).view(torch.float32)
    return codes(blocks * factor[..., None]), byte.to(torch.uint8)


def median_us(function, sets):
    for s in sets:
        function(*s)
    times = []
    for i in range(60):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        function(*sets[i % len(sets)])
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def time_both(function, eager, sets, row):
    """Adds what was measured to `row`; the same as text."""
    compiled = torch.compile(function)
    row["compiled_bytes_that_differ"] = sum(int((a != b).sum()) for a, b in zip(eager, compiled(*sets[0])))
    text = f", eager and compiled in {row['compiled_bytes_that_differ']}"
    for kind, f in (("eager", function), ("compiled", compiled)):
        row[kind + "_us"] = median_us(f, sets)
        row[kind + "_TBps"] = row["bytes"] / row[kind + "_us"] / 1e6
        text += f"; {kind} {row[kind + '_us']:.1f} us = {row[kind + '_TBps']:.3f} TB/s"
    return text


def library_bytes(args, name, x, folder):
    """Returns what the library makes of x: the packed codes and the scale bytes."""
    paths = {n: os.path.join(folder, n + ".npy") for n in ("x", "q", "s")}
    numpy.save(paths["x"], x.view(torch.int16).cpu().numpy().view(numpy.uint16))
    subprocess.run([args.fp4_run, args.library, "--device=" + ("sim" if args.cpu else "cuda"), "--function", name, "--input", "x=" + paths["x"],
                    "--output", "q=" + paths["q"], "--output", "s=" + paths["s"]], check=True,
                   stdout=subprocess.DEVNULL)
    return [torch.from_numpy(numpy.load(paths[n]).view(numpy.uint8)).to(x.device) for n in ("q", "s")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fp4-run", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--columns", type=int, default=4096)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(1)
    sets = []
    for _ in range(3):
        x = torch.randn(args.rows, args.columns, device="cpu" if args.cpu else "cuda").bfloat16()
        sets.append((x, x.float().abs().amax()))
    report, differs = [], False
    for function, block in ((nvfp4, 16), (mxfp4, 32)):
        name = function.__name__
        eager = function(*sets[0])
        with tempfile.TemporaryDirectory() as folder:
            ours = library_bytes(args, name, sets[0][0], folder)
        wrong = sum(int((a != b.view_as(a)).sum()) for a, b in zip(eager, ours))
        differs |= wrong > 0
        total = args.rows * args.columns * 2.5 + args.rows * args.columns / block
        row = {"function": name, "rows": args.rows, "columns": args.columns, "bytes": total,
               "eager_bytes_that_differ": wrong}
        text = f"{name}: library and eager PyTorch differ in {wrong} bytes"
        if not args.cpu:
            text += time_both(function, eager, sets, row)
        report.append(row)
        if not args.json:
            print(text)
    if args.json:
        print(json.dumps({"torch": torch.__version__, "device": "cpu" if args.cpu else torch.cuda.get_device_name(), "rows": report}))
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
