#!/usr/bin/env python3
"""Compiles attention whose operands have scales of blocks, runs it in the simulator and checks.

  validation/sweep_attention_blocks.py          a covering subset: each pair of values of parameters
  validation/sweep_attention_blocks.py --full   the cross product
  validation/sweep_attention_blocks.py --list   what would run

Each result must equal the model of its order of keys bit for bit, but for mma.sync, whose order is
its own, and lie within its bound around attention in fp64. Each library runs under every schedule
of the simulator with its strict hazard check.
"""
import sys

import sweeping
from sweep_attention import list_of

TARGETS = ["sm_100a", "sm_120a"]
BATCHES = [1, 3]
QUERIES = [1, 127, 129, 200, 257]
KEYS = [32, 96, 128, 160, 320]
HEADS = [(1, 1), (2, 1), (6, 2)]  # of queries, and of keys and values
ELEMENTS = [(64, 64), (64, 128), (128, 64), (128, 128), (192, 128)]  # of keys, and of values
# Elements of queries and keys, those of their scales, elements of a block, and elements of values.
FORMATS = {"mxfp8": ("f8E4M3FN", "f8E8M0FNU", 32, "f8E4M3FN"), "nvfp4 e4m3": ("f4E2M1FN", "f8E4M3FN", 16, "f8E4M3FN"),
           "nvfp4": ("f4E2M1FN", "f8E4M3FN", 16, "f4E2M1FN"), "mxfp8 all": ("f8E4M3FN", "f8E8M0FNU", 32, "f8E4M3FN")}
WITH_VALUES = ("nvfp4", "mxfp8 all")  # formats whose values have scales of blocks of keys, too
MASK = ["full", "causal", "window"]
BLOCK = [64, 128]
LENGTHS = [False, True]
ROWS = ["", "sinks", "lse", "sinks lse"]
GROWTH = ["0.0", "3.0", "8.0"]
DIST = ["gaussian", "zeros"]
SCHEDULES = sweeping.schedules(1)


def program(case, order=True):
    target, batches, queries, keys, (heads, shared), (of_keys, of_values), form, mask, block, has_lengths, rows, growth, _ = case
    element, scale, size, of_value = FORMATS[form]
    tiled = f"x{scale}, #fp4.scale_layout<tiled_128x4>>"
    query, key = (f"tensor<{batches}x{tokens}x{count}x{of_keys}x{element}>" for tokens, count in ((queries, heads), (keys, shared)))
    scaled = form in WITH_VALUES
    value = f"tensor<{batches}x{shared}x{of_values}x{keys}x{of_value}>" if scaled else f"tensor<{batches}x{keys}x{shared}x{of_values}x{of_value}>"
    rows_of = lambda heads, rows: batches * heads * -(-rows // 128) * 128
    scales = {"qs": f"tensor<{rows_of(heads, queries)}x{of_keys // size}{tiled}", "ks": f"tensor<{rows_of(shared, keys)}x{of_keys // size}{tiled}"}
    if scaled:
        scales["vs"] = f"tensor<{rows_of(shared, of_values)}x{keys // size}{tiled}"
    operands = f"block_scales({', '.join(f'%{name}' for name in scales)} : {', '.join(scales.values())})"
    arguments = "".join(f", %{name}: {kind}" for name, kind in scales.items())
    definitions = ""
    if has_lengths:
        kind, definitions = list_of("n", [(0, keys, 1 + keys // 2)[i % 3] for i in range(batches)])
        operands += f" lengths(%n : {kind})"
    if "sinks" in rows:
        arguments, operands = f"{arguments}, %s: tensor<{heads}xf32>", f"{operands} sinks(%s : tensor<{heads}xf32>)"
    result = f"tensor<{batches}x{queries}x{heads}x{of_values}xbf16>"
    names, results = ("%o, %l", f"{result}, tensor<{batches}x{queries}x{heads}xf32>") if "lse" in rows else ("%o", result)
    masks = {"full": "", "causal": " causal", "window": " causal window 70"}[mask]
    orders = f" order <in_blocks = {block}, growth = {growth}>" if order and target == "sm_100a" else ""
    factor = 0.002 if target == "sm_120a" and form.startswith("mxfp8") else 0.0625  # small scores have a tight bound
    return (f"func.func @attention(%q: {query}, %k: {key}, %v: {value}{arguments}) -> ({results}) {{\n"
            f"{definitions}  {names} = fp4.attention %q, %k, %v {operands} scale {factor}{masks}{orders}\n"
            f"      : {query}, {key}, {value} -> {results}\n  return {names} : {results}\n}}\n")


def valid(case):
    target, batches, queries, keys, (heads, _), (of_keys, of_values), form, _, block, _, _, growth, _ = case
    if target == "sm_120a":
        return (block, growth) == (BLOCK[0], GROWTH[0]) and batches * queries * heads * keys * (of_keys + of_values) < 1 << 26
    if form == "mxfp8 all" and block == 64:
        return False
    has_room = form == "mxfp8 all" or block == 64 or (of_values == 64 and of_keys <= 128 and (form != "nvfp4" or keys % 128 == 0))  # columns of tensor memory
    if form.startswith("mxfp8") and of_keys == 192:
        return False
    return has_room and batches * queries * heads * keys * (of_keys + of_values) < 1 << 26


def library(case):
    target, *_, dist = case
    name = "blocks_" + sweeping.file_name(*("of".join(map(str, part)) if isinstance(part, tuple) else str(part).replace(" ", "") or "all"
                                            for part in case))
    return sweeping.Program(name, program(case), [f"--target={target}"], [[f"--dist={dist}"]])


def main():
    options = sweeping.product_parser(__doc__).parse_args()
    parameters = [BATCHES, QUERIES, KEYS, HEADS, ELEMENTS, list(FORMATS), MASK, BLOCK, LENGTHS, ROWS, GROWTH, DIST]
    programs = [library(case) for target in TARGETS for case in sweeping.cases_of(options.full, [[target], *parameters], valid)]
    return sweeping.run_gemms(options, programs, SCHEDULES)


if __name__ == "__main__":
    sys.exit(main())
