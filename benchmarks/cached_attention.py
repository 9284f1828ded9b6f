#!/usr/bin/env python3
"""Attention of few queries over a cache of keys, beside PyTorch's kernels, FlashAttention-3, and a
copy of the cache.

  benchmarks/cached_attention.py pack BUILD FOLDER     compiles the programs for sm_90a into FOLDER
  benchmarks/cached_attention.py run FOLDER [--json=FILE]

`run` needs a Hopper GPU and PyTorch, and for FlashAttention-3 the file that flash_attention_3.py
names, in FOLDER. The cache is cold: calls take turns with as many caches as exceed the L2 cache.
Each result of fp4 is compared with attention in fp32 before it is timed; CUDA graphs of several
calls alternate between the libraries. A line of JSON for each cell has microseconds, and the rate
at which keys and values are read, relative to that of a copy, which reads and writes.
"""
import dataclasses
import os
import statistics

import flash_attention_3
import kit

LEAST_BYTES = 256 << 20  # of all caches together
# Elements of codes and of scales of a quantized cache, and elements that share a scale.
FORMATS = {"nvfp4": ("f4E2M1FN", "f8E4M3FN", 16), "mxfp4": ("f4E2M1FN", "f8E8M0FNU", 32),
           "mxfp8": ("f8E4M3FN", "f8E8M0FNU", 32), "fp8": ("f8E4M3FN", None, 0)}


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
    format: str = "bf16"

    @property
    def name(self):
        return f"cache_{self.model}_{self.batches}_{self.queries}_{self.keys}_{self.page}_{self.format}"

    @property
    def bytes(self):
        bits = 16
        if self.format in FORMATS:
            code, _, block = FORMATS[self.format]
            bits = (4 if code == "f4E2M1FN" else 8) + (8 / block if block else 0)
        return int(2 * self.batches * self.keys * self.key_heads * self.elements * bits / 8)

    def text(self, plan=""):
        query = f"tensor<{self.batches}x{self.queries}x{self.heads}x{self.elements}xbf16>"
        rows = (self.batches * self.keys // self.page, self.page) if self.page else (self.batches, self.keys)
        code, scale, block = FORMATS.get(self.format, ("bf16", None, 0))
        of_heads = f"tensor<{rows[0]}x{rows[1]}x{self.key_heads}x"
        key = f"{of_heads}{self.elements}x{code}>"
        arguments, more = "", ""
        if scale:
            scales = f"{of_heads}{self.elements // block}x{scale}>"
            arguments += f", %ks: {scales}, %vs: {scales}"
            more += f" scales(%ks, %vs : {scales}, {scales})"
        if self.page:
            lengths, pages = f"tensor<{self.batches}xi32>", f"tensor<{self.batches}x{self.keys // self.page}xi32>"
            arguments += f", %n: {lengths}, %p: {pages}"
            more += f" lengths(%n : {lengths}) pages(%p : {pages})"
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
    for format in FORMATS:
        for batches, keys in ((1, 16384), (1, 131072), (16, 4096), (64, 1024), (64, 4096)):
            yield Cell("llama8b", 32, 8, 128, batches, 1, keys, format=format)
        yield Cell("llama8b", 32, 8, 128, 16, 4, 4096, format=format)
        yield Cell("llama8b", 32, 8, 128, 16, 1, 4096, page=16, format=format)
        yield Cell("gptoss", 64, 8, 64, 16, 1, 4096, format=format)


def pack(build, folder):
    kit.begin(folder, __file__, flash_attention_3.__file__)
    kit.copy_package(build, folder)
    kit.compile_programs(build, folder, [(cell.name, cell.text()) for cell in cells()])


def quantized(shape, format, torch):
    """Random codes, scales (an empty tuple without them), and what they stand for in fp32."""
    code, scale, block = FORMATS[format]
    if code == "f8E4M3FN":
        codes = torch.randn(*shape, device="cuda").to(torch.float8_e4m3fn)
        values = codes.float()
    else:
        codes = torch.randint(0, 256, (*shape[:-1], shape[-1] // 2), device="cuda", dtype=torch.uint8)
        table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], device="cuda")
        values = table[torch.stack((codes & 15, codes >> 4), -1).flatten(-2).int()]
        codes = codes.view(torch.float4_e2m1fn_x2)
    if not scale:
        return codes, (), values
    places = (*shape[:-1], shape[-1] // block)
    if scale == "f8E4M3FN":
        scales = (torch.rand(*places, device="cuda") * 0.5 + 0.1).to(torch.float8_e4m3fn)
    else:
        scales = torch.randint(124, 127, places, device="cuda", dtype=torch.uint8).view(torch.float8_e8m0fnu)
    return codes, (scales,), values * scales.float().repeat_interleave(block, -1)


class Operands:
    """Queries, and as many caches as exceed the L2 cache: keys, values, and scales of both."""

    def __init__(self, cell, torch):
        self.cell, self.torch = cell, torch
        make = lambda *shape: torch.randn(*shape, device="cuda").bfloat16()  # noqa: E731
        count = max(2, min(64, -(-LEAST_BYTES // cell.bytes)))
        self.query = make(cell.batches, cell.queries, cell.heads, cell.elements)
        shape = (cell.batches, cell.keys, cell.key_heads, cell.elements)
        self.caches, self.first = [], None
        for number in range(count):
            if cell.format not in FORMATS:
                self.caches.append((make(*shape), make(*shape)))
                continue
            key, value = (quantized(shape, cell.format, torch) for _ in range(2))
            self.caches.append((key[0], value[0], *key[1], *value[1]))
            self.first = (key[2], value[2]) if number == 1 else self.first
        if cell.page:
            self.lengths = torch.full((cell.batches,), cell.keys, dtype=torch.int32, device="cuda")
            pages = torch.randperm(cell.batches * cell.keys // cell.page, device="cuda")
            self.pages = pages.view(cell.batches, -1).int()

    def paged(self, tensor):
        return tensor.view(-1, self.cell.page, *tensor.shape[2:]) if self.cell.page else tensor

    def arguments(self, number):
        given = (self.query, *(self.paged(x) for x in self.caches[number]))
        return (*given, self.lengths, self.pages) if self.cell.page else given

    def contiguous(self):
        """Keys and values of the sequences in cache 1, in their order."""
        return tuple(self.paged(x)[self.pages.long()].flatten(1, 2) if self.cell.page else x
                     for x in self.first or self.caches[1])


def expected(operands, torch):
    """Attention of the first sequence in cache 1, in fp32."""
    cell = operands.cell
    key, value = (x[0].float().repeat_interleave(cell.heads // cell.key_heads, 1)
                  for x in operands.contiguous())
    scores = torch.einsum("shd,thd->hst", operands.query[0].float(), key) * cell.elements ** -0.5
    mask = torch.ones(cell.queries, cell.keys, dtype=torch.bool, device="cuda").triu(cell.keys - cell.queries + 1)
    return torch.einsum("hst,thd->shd", scores.masked_fill(mask, float("-inf")).softmax(-1), value)


def flash3(operands, folder, torch):
    """The call of FlashAttention-3, which reads pages and, with codes as queries, FP8."""
    cell, forward = operands.cell, flash_attention_3.operation(folder)
    if forward is None or cell.format not in ("bf16", "fp8"):
        return {}
    query = operands.query if cell.format == "bf16" else operands.query.to(torch.float8_e4m3fn)
    if cell.page:
        calls = [flash_attention_3.call_paged(forward, query, *(operands.paged(x) for x in cache), operands.lengths, operands.pages)
                 for cache in operands.caches]
    else:
        calls = [flash_attention_3.call_batch(forward, query, *cache, True) for cache in operands.caches]
    return {"flash3": lambda number: calls[number]()}


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
    backends = (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash2", SDPBackend.FLASH_ATTENTION))
    for name, backend in () if cell.format in FORMATS else backends:
        try:
            call(backend)(0)
            found[name] = call(backend)
        except RuntimeError:
            pass
    copies = [torch.empty_like(x) for x in operands.caches[0]]

    def copy(number):
        for to, source in zip(copies, operands.caches[number]):
            to.view(torch.uint8).copy_(source.view(torch.uint8))
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
    """Median microseconds of a call of each function; rounds alternate between them. Before each
    one the L2 cache is filled by reads: a copy leaves lines there that others would write."""
    read = torch.zeros(LEAST_BYTES, dtype=torch.uint8, device="cuda")
    graphs = {name: graph_of(function, count, torch) for name, function in functions.items()}
    times = {name: [] for name in graphs}
    for number in range(rounds + 1):
        for name, graph in graphs.items():
            read.max()
            time = kit.microseconds_of(graph.replay) / count
            if number:
                times[name].append(time)
    return {name: statistics.median(values) for name, values in times.items()}


def measure(folder, cell, programs, torch):
    """A row of `cell`, whose `programs` are names of columns and of libraries."""
    import fp4
    torch.cuda.empty_cache()  # where buffers lie costs all who read them up to 10 %
    operands = Operands(cell, torch)
    functions, row = {}, dataclasses.asdict(cell)
    for name, library in programs.items():
        program = fp4.load(os.path.join(folder, library + ".so"))
        want = expected(operands, torch)
        error = ((program(*operands.arguments(1))[0].float() - want).abs().max() / want.abs().max()).item()
        if not error < 0.02:
            row[f"{name}_wrong"] = error
            continue
        row[f"{name}_difference"] = error
        functions[name] = lambda number, program=program: program(*operands.arguments(number))
    others = {**flash3(operands, folder, torch), **peers(operands, torch)}
    times = time_all({**functions, **others}, len(operands.caches), torch)
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
