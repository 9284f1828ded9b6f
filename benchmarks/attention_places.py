#!/usr/bin/env python3
"""Attention whose operands and result lie where others want them, beside copies.

  benchmarks/attention_places.py pack BUILD FOLDER    compiles the programs for sm_90a
  benchmarks/attention_places.py run FOLDER [--json=FILE]

`pack` needs PyTorch, `run` a Hopper GPU too. A line of JSON for each cell has microseconds of both
ways, as CUDA graphs that take turns, and have the same bits: `placed` leaves tensors where they
are, `copied` copies them. Cells are results that are slices of a wider buffer, of tiles, warps over
FP8 and slices of latent keys; packed sequences that are slices of one tensor; and contiguous heads
in front of tokens, for which `torch` has PyTorch's own.
"""
import os

import kit
from attention import time_all

HEADS, ELEMENTS = 16, 128
#: Shapes of queries and keys, and facts of the program.
RESULTS = {"tiles": ((4, 4096, HEADS, ELEMENTS), (4, 4096, HEADS, ELEMENTS), {"causal": True}),
           "warps": ((64, 1, 32, ELEMENTS), (64, 4096, 8, ELEMENTS), {"code": "f8E4M3FN"}),
           "latent": ((64, 1, HEADS, 576), (64, 4096, 1, 576), {"latent": 512})}
PACKED = (None, HEADS, ELEMENTS)
LENGTHS = (512, 4096, 1024, 3072, 2048, 128, 5000, 504)  # of packed sequences
#: Batches, heads of queries and of keys, tokens, and whether there is a causal mask.
FRONT = {"4 x 16 x 4096": (4, 16, 16, 4096, True), "8 x 16 x 2048": (8, 16, 16, 2048, False),
         "64 x 16 x 256": (64, 16, 16, 256, True), "4 x 32 over 8 x 4096": (4, 32, 8, 4096, True),
         "8 x 32 over 8 x 2048": (8, 32, 8, 2048, True), "32 x 64 over 8 x 256": (32, 64, 8, 256, True)}


def texts():
    from fp4.torch import attend_programs

    def text(query, key, order="", **facts):
        facts = {"causal": False, **facts}
        what = attend_programs.Attention(query, key, key, "bf16", query[-1] ** -0.5, order=order, **facts)
        return attend_programs.text_of(what)

    for name, (query, key, facts) in RESULTS.items():
        for order in ("", "placed"):
            yield f"result_{name}{order and '_placed'}", text(query, key, order, **facts)
    for order in ("", "q k v"):
        yield f"packed{order and '_placed'}", text(PACKED, PACKED, order, causal=True, offsets=len(LENGTHS) + 1)
    for name, (batches, heads, of_keys, tokens, causal) in FRONT.items():
        name = name.replace(" ", "")
        yield f"front_{name}", text(*((batches, tokens, x, ELEMENTS) for x in (heads, of_keys)), causal=causal)
        yield f"front_{name}_placed", text(*((batches * x, tokens, 1, ELEMENTS) for x in (heads, of_keys)), causal=causal)


def pack(build, folder):
    kit.begin(folder, __file__, os.path.join(os.path.dirname(__file__), "attention.py"),
              os.path.join(os.path.dirname(__file__), "flash_attention_3.py"))
    kit.copy_package(build, folder)
    kit.compile_programs(build, folder, texts())


def times_of(functions):
    graphs = {name: kit.captured(function) for name, function in functions.items()}
    return time_all({name: graph.replay for name, graph in graphs.items()})


def row_of(cell, functions, torch):
    """Times of both ways, whose results must have the same bits."""
    copied, placed = functions["copied"](), functions["placed"]()
    differences = int((copied.contiguous().view(torch.uint8) != placed.contiguous().view(torch.uint8)).sum())
    return {"cell": cell, "differences": differences, **times_of(functions)}


def measure(folder):
    torch = kit.open_package(folder)
    import fp4
    from fp4.torch.strides import matrix_of_tokens

    def load(name):
        return fp4.load(os.path.join(folder, f"{name}.so"))

    def randn(*shape):
        return torch.randn(*shape, device="cuda").bfloat16()

    for name, (query, key, facts) in RESULTS.items():
        dense, placed = load(f"result_{name}"), load(f"result_{name}_placed")
        operands = [randn(*query), *(randn(*key) for _ in range(1 if "latent" in facts else 2))]
        if "code" in facts:
            operands[1:] = [x.to(torch.float8_e4m3fn) for x in operands[1:]]
        size = facts.get("latent", query[3])
        wide = torch.zeros(*query[:2], query[2] + 4, size, device="cuda", dtype=torch.bfloat16)
        place = wide[:, :, 2:-2]
        matrix = matrix_of_tokens(place)

        def copied(dense=dense, operands=operands, place=place):
            place.copy_(dense(*operands))
            return place

        def in_place(placed=placed, operands=operands, matrix=matrix, place=place):
            placed(*operands, out=matrix)
            return place

        first = copied().clone()
        place.zero_()
        row = {"cell": f"result, {name}", "differences": int((first != in_place()).sum()),
               "outside": int(wide[:, :, :2].count_nonzero() + wide[:, :, -2:].count_nonzero())}
        yield {**row, **times_of({"copied": copied, "placed": in_place})}
    offsets = torch.tensor([sum(LENGTHS[:i]) for i in range(len(LENGTHS) + 1)], device="cuda", dtype=torch.int32)
    every = randn(sum(LENGTHS), 3 * HEADS, ELEMENTS)
    parts = every.split(HEADS, dim=1)
    dense, placed = load("packed"), load("packed_placed")
    matrices = [matrix_of_tokens(x) for x in parts]
    yield row_of("packed slices", {"copied": lambda: dense(*(x.contiguous() for x in parts), offsets, offsets),
                                   "placed": lambda: placed(*matrices, offsets, offsets)}, torch)
    for name, (batches, heads, of_keys, tokens, causal) in FRONT.items():
        stem = f"front_{name.replace(' ', '')}"
        dense, lists = load(stem), load(f"{stem}_placed")
        q, k, v = (randn(batches, x, tokens, ELEMENTS) for x in (heads, of_keys, of_keys))
        ofs = [x.view(-1, tokens, 1, ELEMENTS) for x in (q, k, v)]

        def torch_one():
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads > of_keys)

        yield row_of(f"{name}{', causal' if causal else ''}", {
            "copied": lambda: dense(*(x.transpose(1, 2).contiguous() for x in (q, k, v))).transpose(1, 2),
            "placed": lambda: lists(*ofs).view(batches, heads, tokens, ELEMENTS), "torch": torch_one}, torch)


if __name__ == "__main__":
    kit.main(__doc__, pack, measure)
