#!/usr/bin/env python3
"""Compiles attention of many shapes, runs it in the simulator and checks.

  validation/sweep_attention.py          a covering subset: every pair of values of two parameters
  validation/sweep_attention.py --full   the cross product
  validation/sweep_attention.py --list   what would run

Each result must lie within its bound around attention in fp64. Each library runs under every
schedule of the simulator with its strict hazard check.
"""
import itertools
import sys

import sweeping

BATCHES = [1, 2, 3]
QUERIES = [1, 5, 64, 127, 129, 200]
KEYS = [1, 7, 16, 33, 96, 130, 300, 336]
HEADS = [(1, 1), (2, 1), (6, 2)]  # of queries, and of keys and values
ELEMENTS = [(64, 64), (64, 128), (128, 64), (128, 128), (192, 128), (192, 192), (256, 256)]  # of keys, and of values
TYPE = ["bf16", "f16"]
MASK = ["full", "causal"]
SCALE = ["0.125", "0.001", "1.5"]
BLOCK = [0, 16, 48, 80, 160]  # keys of a block; 0 leaves them to the planner
DIST = ["gaussian", "zeros"]
SCHEDULES = sweeping.schedules(1)


def program(case):
    batches, queries, keys, (heads, shared), (of_keys, of_values), element, mask, scale, *_ = case
    query = f"tensor<{batches}x{queries}x{heads}x{of_keys}x{element}>"
    key = f"tensor<{batches}x{keys}x{shared}x{of_keys}x{element}>"
    value = f"tensor<{batches}x{keys}x{shared}x{of_values}x{element}>"
    result = f"tensor<{batches}x{queries}x{heads}x{of_values}x{element}>"
    return (f"func.func @attention(%q: {query}, %k: {key}, %v: {value}) -> {result} {{\n"
            f"  %o = fp4.attention %q, %k, %v scale {scale}{' causal' if mask == 'causal' else ''}\n"
            f"      : {query}, {key}, {value} -> {result}\n"
            f"  return %o : {result}\n}}\n")


def valid(case):
    batches, queries, keys, (heads, _), (of_keys, of_values), *_, block, _ = case
    if batches > 1 and keys % (block or 16):  # a block of keys ends with a sequence
        return False
    if of_values > 128 and block > 80:  # registers have no room for more
        return False
    return batches * queries * heads * keys * (of_keys + of_values) < 1 << 26  # the simulator takes seconds for more


def library(case):
    *_, block, dist = case
    plan = [f"--plan=tile_attention, tile = [128, {block}]"] if block else []
    name = sweeping.file_name(*("of".join(map(str, part)) if isinstance(part, tuple) else part for part in case))
    return sweeping.Program(name, program(case), ["--target=sm_90a", *plan], [[f"--dist={dist}"]])


def main():
    options = sweeping.product_parser(__doc__).parse_args()
    parameters = [BATCHES, QUERIES, KEYS, HEADS, ELEMENTS, TYPE, MASK, SCALE, BLOCK, DIST]
    if options.full:
        cases = list(filter(valid, itertools.product(*parameters)))
    else:
        cases = sweeping.sampled_covering(parameters, valid, lambda i, j: True)
    return sweeping.run_gemms(options, [library(case) for case in cases], SCHEDULES)


if __name__ == "__main__":
    sys.exit(main())
