#!/usr/bin/env python3
"""Forward attention beside cuDNN and FlashAttention-2 as PyTorch has them, and FlashAttention-3.

  benchmarks/attention.py pack BUILD FOLDER          compiles the programs for sm_90a into FOLDER
  benchmarks/attention.py run FOLDER [--json=FILE]

`run` needs a Hopper GPU and PyTorch, and for FlashAttention-3 the file that flash_attention_3.py
names, in FOLDER. Cells are those of the paper of FlashAttention-3: 16384 tokens in all, 2048
elements of all heads, in bf16 and in e4m3 with scales of each sequence and head. Results of fp4 and
of FlashAttention-3 are compared with attention in fp32 of the same numbers before they are timed;
rounds alternate between the libraries. A line of JSON for each cell has TFLOP/s, where a causal
cell counts half of the products.
"""
import itertools
import os
import statistics

import flash_attention_3
import kit

ELEMENTS, LENGTHS = (64, 128, 256), (512, 1024, 2048, 4096, 8192, 16384)
TOKENS, ALL_ELEMENTS = 16384, 2048
BYTES = "_bytes"
CELLS = tuple(itertools.product(ELEMENTS, LENGTHS, (False, True)))


def text(batches, tokens, heads, elements, causal):
    matrix = f"tensor<{batches}x{tokens}x{heads}x{elements}xbf16>"
    return f"""func.func @attention(%q: {matrix}, %k: {matrix}, %v: {matrix}) -> {matrix} {{
  %o = fp4.attention %q, %k, %v scale {elements ** -0.5:.9e}{' causal' if causal else ''}
      : {matrix}, {matrix}, {matrix} -> {matrix}
  return %o : {matrix}
}}
"""


def text_of_bytes(batches, tokens, heads, elements, causal):
    matrix, result, factors = (f"tensor<{batches}x{shape}>" for shape in (
        f"{tokens}x{heads}x{elements}xf8E4M3FN", f"{tokens}x{heads}x{elements}xbf16", f"{heads}xf32"))
    operands = f"%q: {matrix}, %k: {matrix}, %v: {matrix}, %a: {factors}, %c: {factors}"
    return f"""func.func @attention({operands}) -> {result} {{
  %o = fp4.attention %q, %k, %v factors(%a, %c : {factors}, {factors})
      scale {elements ** -0.5:.9e}{' causal' if causal else ''} : {matrix}, {matrix}, {matrix} -> {result}
  return %o : {result}
}}
"""


def name_of(elements, length, causal):
    return f"attention_{elements}_{length}_{'causal' if causal else 'full'}"


def pack(build, folder):
    kit.begin(folder, __file__, flash_attention_3.__file__)
    kit.copy_package(build, folder)
    for make, suffix in ((text, ""), (text_of_bytes, BYTES)):
        kit.compile_programs(build, folder, [
            (name_of(*cell) + suffix, make(TOKENS // cell[1], cell[1], ALL_ELEMENTS // cell[0], cell[0], cell[2]))
            for cell in CELLS])


def operations(elements, length, causal):
    return 4 * TOKENS * length * ALL_ELEMENTS * (0.5 if causal else 1)


def difference(result, q, k, v, causal, torch, scales=()):
    """The largest distance from attention in fp32, of the last head of the last batch, relative to
    its largest element. Scales are those of q, k and v."""
    result = result[-1:, :, -1:]
    q, k, v = (x[-1, :, -1].float() for x in (q, k, v))
    q, k, v = (x * scale[-1, -1] for x, scale in zip((q, k, v), scales)) if scales else (q, k, v)
    scores = q @ k.T * q.shape[-1] ** -0.5
    if causal:
        scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
    expected = torch.softmax(scores, -1) @ v
    return ((result[0, :, 0].float() - expected).abs().max() / expected.abs().max()).item()


def peers(q, k, v, causal, folder, torch):
    """Functions that compute the same attention; those that refuse it are missing."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    transposed = [x.transpose(1, 2) for x in (q, k, v)]

    def call(backend):
        def run():
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(*transposed, is_causal=causal)
        return run
    flash3 = flash_attention_3.operation(folder)
    found = {"flash3": flash_attention_3.call_batch(flash3, q, k, v, causal)} if flash3 else {}
    for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash2", SDPBackend.FLASH_ATTENTION)):
        try:
            call(backend)()
            found[name] = call(backend)
        except RuntimeError:
            pass
    return found


def of_bytes(q, k, v, causal, folder, program, torch):
    """Functions that compute attention of the same matrices in e4m3 with the scales, and these."""
    batches, _, heads, _ = q.shape
    scales = [torch.rand(batches, heads, device="cuda") + 0.5 for _ in range(3)]
    matrices = [(x / scale[:, None, :, None]).to(torch.float8_e4m3fn) for x, scale in zip((q, k, v), scales)]
    of_products = scales[0] * scales[1]
    found = {"ours_bytes": lambda: program(*matrices, of_products, scales[2])}
    if flash3 := flash_attention_3.operation(folder):
        found["flash3_bytes"] = flash_attention_3.call_batch(flash3, *matrices, causal, scales)
    return found, matrices, scales


def time_all(functions, rounds=12, calls=4):
    """Median microseconds of each function; rounds alternate between them."""
    times = {name: [] for name in functions}
    for number in range(rounds + 2):
        for name, function in functions.items():
            function()
            time = kit.microseconds_of(function, calls)
            if number >= 2:
                times[name].append(time)
    return {name: statistics.median(values) for name, values in times.items()}


def measure(folder):
    torch = kit.open_package(folder)
    import fp4
    for elements, length, causal in CELLS:
        heads = ALL_ELEMENTS // elements
        q, k, v = (torch.randn(TOKENS // length, length, heads, elements, device="cuda").bfloat16() for _ in range(3))
        programs = [fp4.load(os.path.join(folder, name_of(elements, length, causal) + suffix + ".so"))
                    for suffix in ("", BYTES)]
        functions = {"ours": lambda: programs[0](q, k, v), **peers(q, k, v, causal, folder, torch)}
        in_bytes, matrices, scales = of_bytes(q, k, v, causal, folder, programs[1], torch)
        row = {"elements": elements, "length": length, "causal": causal}
        for name in functions.keys() & {"ours", "flash3"}:
            row[f"{name}_difference"] = difference(functions[name](), q, k, v, causal, torch)
        for name, function in in_bytes.items():
            row[f"{name}_difference"] = difference(function(), *matrices, causal, torch, scales)
        times = time_all({**functions, **in_bytes})
        for name, microseconds in times.items():
            row[name] = microseconds
            row[f"{name}_tflops"] = operations(elements, length, causal) / microseconds / 1e6
        yield row


if __name__ == "__main__":
    kit.main(__doc__, pack, measure)
