#!/usr/bin/env python3
"""Predicts the times of attention with scales of blocks on a B200 or a RTX 5090, in the simulator.

  benchmarks/blackwell_blocks.py b200|rtx5090 [--build BUILD] [--only FORMAT ...] [--timed SECONDS]
      [--json FILE]

b200      rates of 4 sequences of 4096 tokens, of blackwell.py's problems, with instructions as
          ptxas makes them. A causal mask counts half.
rtx5090   times of two cells on sm_120a, with instructions as they are estimated from PTX: decode,
          a query of 32 heads over 8 of keys for each of 16 sequences of 4096 keys, and prefill,
          1024 causal tokens of 8 heads. Heads have 128 elements.

Operands are zeros, whose maxima never grow, so that no sums are scaled. Nothing ran on either GPU.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

import blackwell

ROOT = pathlib.Path(__file__).resolve().parent.parent
B200_FORMATS = ("MXFP8, values FP8", "MXFP8", "NVFP4, values FP8", "NVFP4")
RTX_FORMATS = ("bf16", "cache of FP8, queries bf16", *B200_FORMATS)
CELLS = {"decode": (16, 1, 4096, 32, 8, ""), "prefill": (1, 1024, 1024, 8, 8, "causal")}  # sequences, queries, keys, heads
HEAD = 128


def cell_program(cell, form):
    """The text of a cell of `CELLS` in a format."""
    batches, queries, keys, heads, shared, mask = cell
    operands = blackwell.OPERANDS.get(form, blackwell.Operands("f8E4M3FN", "f8E4M3FN"))
    of_query = "bf16" if form not in blackwell.OPERANDS else operands.keys
    arguments = {"q": f"tensor<{batches}x{queries}x{heads}x{HEAD}x{of_query}>", "k": f"tensor<{batches}x{keys}x{shared}x{HEAD}x{operands.keys}>",
                 "v": f"tensor<{batches}x{keys}x{shared}x{HEAD}x{operands.values}>"}
    scales = {}
    if operands.scale:
        tiled = f"x{operands.scale}, #fp4.scale_layout<tiled_128x4>>"
        rows = lambda tokens: -(-tokens // 128) * 128
        scales = {"qs": f"tensor<{batches * heads * rows(queries)}x{HEAD // operands.block}{tiled}",
                  "ks": f"tensor<{batches * shared * rows(keys)}x{HEAD // operands.block}{tiled}"}
        if operands.scaled_values:
            arguments["v"] = f"tensor<{batches}x{shared}x{HEAD}x{keys}x{operands.values}>"
            scales["vs"] = f"tensor<{batches * shared * rows(HEAD)}x{keys // operands.block}{tiled}"
    result = f"tensor<{batches}x{queries}x{heads}x{HEAD}xbf16>"
    clause = f"block_scales({', '.join(f'%{name}' for name in scales)} : {', '.join(scales.values())})" if scales else ""
    return (f"func.func @f({', '.join(f'%{name}: {kind}' for name, kind in (arguments | scales).items())}) -> {result} {{\n"
            f"  %o = fp4.attention %q, %k, %v {clause} scale 0.09 {mask} : {', '.join(arguments.values())} -> {result}\n"
            f"  return %o : {result}\n}}\n")


def predicted(options, folder, text, *, target="sm_100a", mix="ptx", sms=0):
    """The report of `--time-only`."""
    source = pathlib.Path(folder) / "p.mlir"
    source.write_text(text)
    found = blackwell.timed(options.build, source, options.timed, mix, sms, target)
    if isinstance(found, str):
        sys.exit(f"error: {found}\n{text}")
    return found


def b200_row(options, folder, form):
    row = {"format": form}
    for elements in (64, 128):
        problem = blackwell.Attention(4096, elements, "causal" if form.endswith(", causal") else "", form.removesuffix(", causal"),
                                      sms=40 if form.endswith(", causal") else 0)
        time = predicted(options, folder, problem.text, mix="cubin", sms=problem.sms)
        row |= {f"t{elements}": round(problem.flops / time["microseconds"] / 1e6), "limit": time["bound"]}
    return row


def rtx_row(options, folder, form):
    row = {"format": form}
    for name, cell in CELLS.items():
        time = predicted(options, folder, cell_program(cell, form), target="sm_120a")
        row |= {name: round(time["microseconds"], 1), f"{name}_bound": time["bound"],
                f"{name}_memory": round(100 * time["busy"].get("device memory", 0)), f"{name}_tensor": round(100 * time["busy"].get("tensor cores", 0))}
    return row


CARDS = {
    "b200": {"area": "blackwell-attention", "card": "B200", "device": "sm_100a, simulated", "row": b200_row,
             "formats": [form + mask for form in B200_FORMATS for mask in ("", ", causal")],
             "clock": "1.965 GHz, cold L2, 0.5 us of launch",
             "program": "4 sequences of 4096 tokens, 2048 elements of all heads; operands are zeros; a causal mask counts half, and so "
                        "many heads as fall to 40 of 148 SMs ran on these",
             "columns": [("format", "queries and keys", None), ("t64", "heads of 64", "TFLOP/s"), ("t128", "heads of 128", "TFLOP/s"),
                         ("limit", "limit", None)]},
    "rtx5090": {"area": "blackwell-blocks", "card": "RTX5090", "device": "sm_120a, simulated", "row": rtx_row, "formats": RTX_FORMATS,
                "clock": "2.87 GHz, cold L2, 0.53 us of launch",
                "program": "decode: 16 sequences of 4096 keys, 32 heads over 8; prefill: 1024 causal tokens, 8 heads; heads of 128; "
                           "operands are zeros; instructions as estimated from PTX",
                "columns": [("format", "queries and keys", None),
                            *((f"{cell}{what}", f"{cell}{title}", unit) for cell in CELLS
                              for what, title, unit in (("", "", "us"), ("_memory", ", device memory busy", "%"),
                                                        ("_tensor", ", tensor cores busy", "%"), ("_bound", ", bound", None)))]},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("card", choices=list(CARDS))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", nargs="+", metavar="FORMAT")
    parser.add_argument("--timed", type=float, default=900, metavar="SECONDS")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    result = dict(CARDS[options.card])
    row_of, formats = result.pop("row"), result.pop("formats")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for form in options.only or formats:
            rows.append(row_of(options, folder, form))
            print(json.dumps(rows[-1]), flush=True)
    if options.json:
        revision = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=8", "HEAD"], text=True, capture_output=True, check=True)
        result |= {"driver": None, "date": datetime.date.today().isoformat(), "revision": revision.stdout.strip(),
                   "command": f"benchmarks/blackwell_blocks.py {options.card}", "evidence": "predicted", "key": ["format"], "rows": rows}
        result["columns"] = [dict(zip(("name", "title", "unit"), column)) for column in result["columns"]]
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
