#!/usr/bin/env python3
"""Forward attention beside cuDNN and FlashAttention-2 as PyTorch has them, and FlashAttention-3.

  benchmarks/attention.py pack BUILD FOLDER          compiles the programs for sm_90a into FOLDER
  benchmarks/attention.py run FOLDER [--json=FILE]

`run` needs a Hopper GPU and PyTorch, and for FlashAttention-3 the file that flash_attention_3.py
names, in FOLDER. Cells are those of the paper of FlashAttention-3: 16384 tokens in all, 2048
elements of all heads. Results of fp4 and of FlashAttention-3 are compared with attention in fp32
before they are timed; rounds alternate between the libraries. A line of JSON for each cell has
TFLOP/s, where a causal cell counts half of the products.
"""
import itertools
import os
import statistics

import flash_attention_3
import kit

ELEMENTS, LENGTHS = (64, 128, 256), (512, 1024, 2048, 4096, 8192, 16384)
TOKENS, ALL_ELEMENTS = 16384, 2048
CELLS = tuple(itertools.product(ELEMENTS, LENGTHS, (False, True)))


def text(batches, tokens, heads, elements, causal):
    matrix = f"tensor<{batches}x{tokens}x{heads}x{elements}xbf16>"
    return f"""func.func @attention(%q: {matrix}, %k: {matrix}, %v: {matrix}) -> {matrix} {{
  %o = fp4.attention %q, %k, %v scale {elements ** -0.5:.9e}{' causal' if causal else ''}
      : {matrix}, {matrix}, {matrix} -> {matrix}
  return %o : {matrix}
}}
"""


def name_of(elements, length, causal):
    return f"attention_{elements}_{length}_{'causal' if causal else 'full'}"


def pack(build, folder):
    kit.begin(folder, __file__, flash_attention_3.__file__)
    kit.copy_package(build, folder)
    kit.compile_programs(build, folder, [
        (name_of(*cell), text(TOKENS // cell[1], cell[1], ALL_ELEMENTS // cell[0], cell[0], cell[2])) for cell in CELLS])


def operations(elements, length, causal):
    return 4 * TOKENS * length * ALL_ELEMENTS * (0.5 if causal else 1)


def difference(result, q, k, v, causal, torch):
    """The largest distance from attention in fp32, of the first head of the first batch, relative
    to its largest element."""
    q, k, v = (x[0, :, 0].float() for x in (q, k, v))
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
        program = fp4.load(os.path.join(folder, name_of(elements, length, causal) + ".so"))
        functions = {"ours": lambda: program(q, k, v), **peers(q, k, v, causal, folder, torch)}
        row = {"elements": elements, "length": length, "causal": causal}
        for name in functions.keys() & {"ours", "flash3"}:
            row[f"{name}_difference"] = difference(functions[name](), q, k, v, causal, torch)
        times = time_all(functions)
        for name, microseconds in times.items():
            row[name] = microseconds
            row[f"{name}_tflops"] = operations(elements, length, causal) / microseconds / 1e6
        yield row


if __name__ == "__main__":
    kit.main(__doc__, pack, measure)
