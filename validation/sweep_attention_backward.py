#!/usr/bin/env python3
"""Compiles gradients of attention of many shapes, runs them in the simulator and checks.

  validation/sweep_attention_backward.py          a covering subset: every pair of two parameters
  validation/sweep_attention_backward.py --full   the cross product
  validation/sweep_attention_backward.py --list   what would run

Each gradient must equal its model bit for bit, and lie within its bound around fp64. Each library
runs under every schedule of the simulator with its strict hazard check.
"""
import random
import sys

import sweep_attention
import sweeping

BATCHES = [1, 2]
QUERIES = [1, 5, 64, 127, 129, 200, 257]
KEYS = [1, 7, 64, 127, 129, 200, 300]
HEADS = [(1, 1), (2, 1), (6, 2)]  # of queries, and of keys and values
# Elements of a head of keys, and of values.
ELEMENTS = [(64, 64), (64, 128), (128, 64), (128, 128), (96, 96), (192, 128), (192, 192), (256, 256)]
TYPE = ["bf16", "f16"]
MASK = ["full", "causal", "window 1", "window 17", "window 64", "window 200"]
SCALE = ["0.125", "0.001", "0.03", "1.0"]
SOFTCAP = ["", "softcap 2.0 ", "softcap 50.0 "]
PACKED = [False, True]  # sequences, whose lengths follow from those of queries and keys
TILE = ["", "64, 64, 64", "128, 48, 80", "128, 128, 64", "192, 64, 128"]  # rows, queries and keys of a block
DIST = ["gaussian", "zeros"]
SCHEDULES = sweeping.schedules(1)


def offsets_of(case):
    """Operands of packed sequences, some of them empty, and their definitions."""
    batches, queries, keys, *_ = case
    generator = random.Random(repr(case[:3]))
    operands = definitions = ""
    for word, tokens in (("query_offsets", queries), ("key_offsets", keys)):
        name = word[0] + "o"
        kind, more = sweep_attention.list_of(name, sweep_attention.offsets_of(generator, batches + 2, tokens * batches))
        operands += f" {word}(%{name} : {kind})"
        definitions += more
    return operands, definitions


def program(case):
    batches, queries, keys, (heads, shared), (of_keys, of_values), element, mask, scale, softcap, *more = case
    packed, definitions = offsets_of(case) if more[:1] == [True] else ("", "")
    query, key, value, output = (
        f"tensor<{f'{batches * tokens}' if packed else f'{batches}x{tokens}'}x{count}x{elements}x{element}>"
        for tokens, count, elements in ((queries, heads, of_keys), (keys, shared, of_keys), (keys, shared, of_values),
                                        (queries, heads, of_values)))
    lse = f"tensor<{f'{batches * queries}' if packed else f'{batches}x{queries}'}x{heads}xf32>"
    words = "" if mask == "full" else "causal" if mask == "causal" else f"causal {mask}"
    return (f"func.func @backward(%q: {query}, %k: {key}, %v: {value}, %o: {output}, %g: {output}, %l: {lse})"
            f" -> ({query}, {key}, {value}) {{\n{definitions}"
            f"  %dq, %dk, %dv = fp4.attention_backward %q, %k, %v, %o, %g, %l{packed} scale {scale} {softcap}{words}\n"
            f"      : {query}, {key}, {value}, {output}, {lse}\n"
            f"  return %dq, %dk, %dv : {query}, {key}, {value}\n}}\n")


def valid(case):
    batches, queries, keys, (heads, _), (of_keys, of_values), element, _, scale, _, _, tile, _ = case
    if element == "f16" and float(scale) > 0.05:  # powers of any scores and logarithms are beyond the numbers of f16
        return False
    if tile.startswith("192") and of_keys + of_values > 128:  # registers have no room for more
        return False
    if tile and of_keys + of_values > 256:
        return False
    return batches * queries * heads * keys * (of_keys + of_values) < 1 << 25  # the simulator takes seconds for more


def library(case):
    *_, packed, tile, dist = case
    plan = [f"--plan=tile_attention, tile = [{tile}]"] if tile else []
    parts = [*case[:-3], "packed" if packed else "equal", tile, dist]
    name = sweeping.file_name(*("of".join(map(str, part)) if isinstance(part, tuple) else part or "all"
                                for part in parts))
    return sweeping.Program(name, program(case), ["--target=sm_90a", *plan], [[f"--dist={dist}"]])


def main():
    options = sweeping.product_parser(__doc__).parse_args()
    parameters = [BATCHES, QUERIES, KEYS, HEADS, ELEMENTS, TYPE, MASK, SCALE, SOFTCAP, PACKED, TILE, DIST]
    return sweeping.run_gemms(options, [library(case) for case in sweeping.cases_of(options.full, parameters, valid)], SCHEDULES)


if __name__ == "__main__":
    sys.exit(main())
