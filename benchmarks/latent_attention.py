#!/usr/bin/env python3
"""Multi-head latent attention (MLA of DeepSeek-V3) beside FlashAttention-3 and cuDNN.

  benchmarks/latent_attention.py pack BUILD FOLDER     compiles the programs for sm_90a into FOLDER
  benchmarks/latent_attention.py run FOLDER [--json=FILE]

`run` needs a Hopper GPU and PyTorch, and for FlashAttention-3 the file that flash_attention_3.py
names, in FOLDER. Prefill has heads of 192 elements of keys and 128 of values, 16384 tokens in all.
Decode has one query of each sequence over a latent cache of 576 elements a token, the first 512 of
which are values, in pages of 64 in any order, of bf16 or of e4m3 with queries of e4m3; caches take
turns, so that the L2 cache has none.
Results are compared with attention in fp32 of the same numbers before they are timed; rounds
alternate between the libraries. A causal cell counts half of the products.
"""
import itertools
import os

import attention
import cached_attention
import flash_attention_3
import kit

KEY, VALUE = 192, 128
HEADS, TOKENS = 16, 16384
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
PREFILL = tuple(itertools.product(LENGTHS, (False, True)))
LATENT, ROTATED, PAGE, SCALE = 512, 64, 64, 192 ** -0.5
ELEMENTS = {"bf16": "bf16", "fp8": "f8E4M3FN"}
MOST_DIFFERENCE = {"bf16": 0.02, "fp8": 0.05}
DECODE = tuple((form, heads, batches, keys) for heads in (128, 16) for batches, keys in (
    (1, 1024), (1, 4096), (1, 16384), (1, 131072), (16, 1024), (16, 4096), (16, 16384), (64, 1024), (64, 4096),
    (128, 1024), (128, 4096)) for form in ELEMENTS)


def prefill_text(length, causal):
    query, value = (f"tensor<{TOKENS // length}x{length}x{HEADS}x{elements}xbf16>" for elements in (KEY, VALUE))
    return f"""func.func @attention(%q: {query}, %k: {query}, %v: {value}) -> {value} {{
  %o = fp4.attention %q, %k, %v scale {KEY ** -0.5:.9e}{' causal' if causal else ''}
      : {query}, {query}, {value} -> {value}
  return %o : {value}
}}
"""


def prefill_name(length, causal):
    return f"prefill_{length}_{'causal' if causal else 'full'}"


def decode_text(form, heads, batches, keys):
    pages, element = keys // PAGE, ELEMENTS[form]
    query, result = (f"tensor<{batches}x1x{heads}x{x}>" for x in (f"{LATENT + ROTATED}x{element}", f"{LATENT}xbf16"))
    cache, lengths, table = (f"tensor<{x}>" for x in (f"{batches * pages}x{PAGE}x1x{LATENT + ROTATED}x{element}",
                                                      f"{batches}xi32", f"{batches}x{pages}xi32"))
    return f"""func.func @attention(%q: {query}, %c: {cache}, %n: {lengths}, %p: {table}) -> {result} {{
  %o = fp4.attention %q, %c, %c lengths(%n : {lengths}) pages(%p : {table}) scale {SCALE:.9e} causal latent {LATENT}
      : {query}, {cache}, {cache} -> {result}
  return %o : {result}
}}
"""


def decode_name(form, heads, batches, keys):
    return f"decode_{form}_{heads}_{batches}_{keys}"


def pack(build, folder):
    kit.begin(folder, __file__, attention.__file__, cached_attention.__file__, flash_attention_3.__file__)
    kit.copy_package(build, folder)
    kit.compile_programs(build, folder, [(prefill_name(*cell), prefill_text(*cell)) for cell in PREFILL])
    kit.compile_programs(build, folder, [(decode_name(*cell), decode_text(*cell)) for cell in DECODE])


def measure_prefill(folder, torch):
    import fp4
    for length, causal in PREFILL:
        q, k = (torch.randn(TOKENS // length, length, HEADS, KEY, device="cuda").bfloat16() for _ in range(2))
        v = torch.randn(TOKENS // length, length, HEADS, VALUE, device="cuda").bfloat16()
        program = fp4.load(os.path.join(folder, prefill_name(length, causal) + ".so"))
        functions = {"ours": lambda: program(q, k, v), **attention.peers(q, k, v, causal, folder, torch)}
        row = {"form": "prefill", "length": length, "causal": causal}
        for name in functions.keys() & {"ours", "flash3"}:
            row[f"{name}_difference"] = attention.difference(functions[name](), q, k, v, causal, torch)
        operations = 2 * TOKENS * length * HEADS * (KEY + VALUE) * (0.5 if causal else 1)
        for name, microseconds in attention.time_all(functions).items():
            row[name] = microseconds
            row[f"{name}_tflops"] = operations / microseconds / 1e6
        yield row


class Decode:
    """Queries, and as many caches as exceed the L2 cache."""

    def __init__(self, form, heads, batches, keys, torch):
        element = torch.bfloat16 if form == "bf16" else torch.float8_e4m3fn
        self.bytes = batches * keys * (LATENT + ROTATED) * element.itemsize
        count = max(2, min(64, -(-cached_attention.LEAST_BYTES // self.bytes)))
        self.query = torch.randn(batches, 1, heads, LATENT + ROTATED, device="cuda").to(element)
        shape = (batches * keys // PAGE, PAGE, 1, LATENT + ROTATED)
        self.caches = [torch.randn(shape, device="cuda", dtype=torch.bfloat16).to(element) for _ in range(count)]
        self.lengths = torch.full((batches,), keys, dtype=torch.int32, device="cuda")
        self.pages = torch.randperm(shape[0], device="cuda").view(batches, -1).int()

    def difference(self, result, torch):
        """The largest distance of the last sequence from attention in fp32, relative to its largest
        element, with cache 1."""
        cache = self.caches[1].view(torch.uint8)[self.pages[-1].long()].view(self.query.dtype).flatten(0, 2).float()
        weights = torch.softmax(self.query[-1, 0].float() @ cache.T * SCALE, -1)
        want = weights @ cache[:, :LATENT]
        return ((result[-1].view_as(want).float() - want).abs().max() / want.abs().max()).item()


def measure_decode(folder, torch):
    import fp4
    for form, heads, batches, keys in DECODE:
        cell = Decode(form, heads, batches, keys, torch)
        program = fp4.load(os.path.join(folder, decode_name(form, heads, batches, keys) + ".so"))
        functions = {"ours": lambda number: program(cell.query, cell.caches[number], cell.lengths, cell.pages)}
        if (forward := flash_attention_3.operation(folder)) and form == "bf16":
            calls = [flash_attention_3.call_latent(forward, cell.query, cache, LATENT, cell.lengths, cell.pages, SCALE)
                     for cache in cell.caches]
            functions["flash3"] = lambda number: calls[number]()
        row = {"form": "decode", "cache": form, "heads": heads, "batches": batches, "keys": keys}
        for name, function in list(functions.items()):
            row[f"{name}_difference"] = error = cell.difference(function(1), torch)
            if not error < MOST_DIFFERENCE[form]:
                functions.pop(name)
        copied = torch.empty_like(cell.caches[0])
        functions["copy"] = lambda number: copied.view(torch.uint8).copy_(cell.caches[number].view(torch.uint8))
        times = cached_attention.time_all(functions, len(cell.caches), torch)
        operations = 2 * batches * keys * heads * (2 * LATENT + ROTATED)
        for name, microseconds in times.items():
            row[name] = microseconds
            if name != "copy":  # a copy reads and writes
                row[f"{name}_rate"] = times["copy"] / 2 / microseconds
                row[f"{name}_tflops"] = operations / microseconds / 1e6
        yield row


def measure(folder):
    torch = kit.open_package(folder)
    yield from measure_prefill(folder, torch)
    yield from measure_decode(folder, torch)


if __name__ == "__main__":
    kit.main(__doc__, pack, measure)
