#!/usr/bin/env python3
"""Attention of few queries over a cache of keys, beside PyTorch's kernels and a copy of the cache.

  benchmarks/cached_attention.py pack BUILD FOLDER     compiles the programs for sm_90a into FOLDER
  benchmarks/cached_attention.py run FOLDER [--json=FILE]

`run` needs a Hopper GPU and PyTorch. The cache is cold: calls take turns with as many caches as
exceed the L2 cache. Each result is compared with attention in fp32 before it is timed; CUDA graphs
of several calls alternate between the libraries. A line of JSON for each cell has microseconds, and
the rate at which keys and values are read, relative to that of a copy, which reads and writes.
"""
import dataclasses
import os
import statistics

import kit

LEAST_BYTES = 256 << 20  # of all caches together


@dataclasses.dataclass(frozen=True)
class Cell:
    model: str
    heads: int
    key_heads: int
    elements: int
    batches: int
    queries: int
    keys: int
    page: int = 0

    @property
    def name(self):
        return f"cache_{self.model}_{self.batches}_{self.queries}_{self.keys}_{self.page}"

    @property
    def bytes(self):
        return 2 * 2 * self.batches * self.keys * self.key_heads * self.elements

    def text(self, plan=""):
        query = f"tensor<{self.batches}x{self.queries}x{self.heads}x{self.elements}xbf16>"
        rows = (self.batches * self.keys // self.page, self.page) if self.page else (self.batches, self.keys)
        key = f"tensor<{rows[0]}x{rows[1]}x{self.key_heads}x{self.elements}xbf16>"
        lengths, pages = f"tensor<{self.batches}xi32>", f"tensor<{self.batches}x{self.keys // max(self.page, 1)}xi32>"
        more = f" lengths(%n : {lengths}) pages(%p : {pages})" if self.page else ""
        arguments = f", %n: {lengths}, %p: {pages}" if self.page else ""
        return f"""func.func @attention(%q: {query}, %k: {key}, %v: {key}{arguments}) -> {query} {{
  %o = fp4.attention %q, %k, %v{more} scale {self.elements ** -0.5:.9e} causal {plan}
      : {query}, {key}, {key} -> {query}
  return %o : {query}
}}
"""


def cells():
    for batches, keys in ((1, 1024), (1, 4096), (1, 16384), (1, 131072), (16, 1024), (16, 4096), (16, 16384),
                          (64, 1024), (64, 4096)):
        yield Cell("llama8b", 32, 8, 128, batches, 1, keys)
    for queries in (4, 16):
        yield Cell("llama8b", 32, 8, 128, 16, queries, 4096)
    for batches, keys in ((1, 16384), (16, 4096), (64, 1024)):
        yield Cell("llama8b", 32, 8, 128, batches, 1, keys, page=64)
        yield Cell("llama8b", 32, 8, 128, batches, 1, keys, page=16)
        yield Cell("gptoss", 64, 8, 64, batches, 1, keys)


def pack(build, folder):
    kit.begin(folder, __file__)
    kit.copy_package(build, folder)
    kit.compile_programs(build, folder, [(cell.name, cell.text()) for cell in cells()])


class Operands:
    """Queries, and as many caches as exceed the L2 cache."""

    def __init__(self, cell, torch):
        self.cell, self.torch = cell, torch
        make = lambda *shape: torch.randn(*shape, device="cuda").bfloat16()  # noqa: E731
        count = max(2, min(64, -(-LEAST_BYTES // cell.bytes)))
        self.query = make(cell.batches, cell.queries, cell.heads, cell.elements)
        shape = (cell.batches, cell.keys, cell.key_heads, cell.elements)
        self.caches = [(make(*shape), make(*shape)) for _ in range(count)]
        if cell.page:
            self.lengths = torch.full((cell.batches,), cell.keys, dtype=torch.int32, device="cuda")
            pages = torch.randperm(cell.batches * cell.keys // cell.page, device="cuda")
            self.pages = pages.view(cell.batches, -1).int()

    def arguments(self, number):
        key, value = self.caches[number]
        if not self.cell.page:
            return self.query, key, value
        paged = (-1, self.cell.page, *key.shape[2:])
        return self.query, key.view(paged), value.view(paged), self.lengths, self.pages

    def contiguous(self, number):
        """Keys and values of the sequences, in their order."""
        return tuple(x[self.pages.long()].flatten(1, 2) if self.cell.page else x
                     for x in self.arguments(number)[1:3])


def expected(operands, number, torch):
    """Attention of the first sequence in fp32."""
    cell = operands.cell
    key, value = (x[0].float().repeat_interleave(cell.heads // cell.key_heads, 1)
                  for x in operands.contiguous(number))
    scores = torch.einsum("shd,thd->hst", operands.query[0].float(), key) * cell.elements ** -0.5
    mask = torch.ones(cell.queries, cell.keys, dtype=torch.bool, device="cuda").triu(cell.keys - cell.queries + 1)
    return torch.einsum("hst,thd->shd", scores.masked_fill(mask, float("-inf")).softmax(-1), value)


def peers(operands, torch):
    """Calls of PyTorch's kernels, and a copy of the cache; kernels that refuse it are missing."""
    from torch.nn.attention import SDPBackend, bias, sdpa_kernel
    cell, found = operands.cell, {}

    def call(backend):
        def run(number):
            key, value = operands.caches[number]
            mask = bias.causal_lower_right(cell.queries, cell.keys) if cell.queries > 1 else None
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    operands.query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), attn_mask=mask,
                    enable_gqa=True)
        return run
    for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash2", SDPBackend.FLASH_ATTENTION)):
        try:
            call(backend)(0)
            found[name] = call(backend)
        except RuntimeError:
            pass
    copies = [torch.empty_like(x) for x in operands.caches[0]]

    def copy(number):
        for to, source in zip(copies, operands.caches[number]):
            to.copy_(source)
    found["copy"] = copy
    return found


def graph_of(function, count, torch):
    function(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(count):
            function(number)
    return graph


def time_all(functions, count, torch, rounds=8):
    """Median microseconds of a call of each function; rounds alternate between them."""
    graphs = {name: graph_of(function, count, torch) for name, function in functions.items()}
    times = {name: [] for name in graphs}
    for number in range(rounds + 1):
        for name, graph in graphs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            if number:
                times[name].append(begin.elapsed_time(end) * 1e3 / count)
    return {name: statistics.median(values) for name, values in times.items()}


def measure(folder, cell, programs, torch):
    """A row of `cell`, whose `programs` are names of columns and of libraries."""
    import fp4
    operands = Operands(cell, torch)
    functions, row = {}, dataclasses.asdict(cell)
    for name, library in programs.items():
        program = fp4.load(os.path.join(folder, library + ".so"))
        want = expected(operands, 1, torch)
        error = ((program(*operands.arguments(1))[0].float() - want).abs().max() / want.abs().max()).item()
        if not error < 0.02:
            row[f"{name}_wrong"] = error
            continue
        row[f"{name}_difference"] = error
        functions[name] = lambda number, program=program: program(*operands.arguments(number))
    times = time_all({**functions, **peers(operands, torch)}, len(operands.caches), torch)
    row.update(times)
    for name in functions:  # a copy reads and writes
        row[f"{name}_rate"] = cell.bytes / times[name] / (2 * cell.bytes / times["copy"])
    return row


def measure_all(folder):
    torch = kit.open_package(folder)
    for cell in cells():
        yield measure(folder, cell, {"ours": cell.name}, torch)


if __name__ == "__main__":
    kit.main(__doc__, pack, measure_all)
