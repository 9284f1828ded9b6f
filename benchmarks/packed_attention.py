#!/usr/bin/env python3
"""Forward attention of packed sequences beside the kernel for equal lengths, FlashAttention-2 as
PyTorch has it (torch.nn.attention.varlen), and FlashAttention-3.

  benchmarks/packed_attention.py pack BUILD FOLDER          compiles the programs into FOLDER
  benchmarks/packed_attention.py run FOLDER [--json=FILE]

`run` needs a Hopper GPU and PyTorch, and for FlashAttention-3 the file that flash_attention_3.py
names, in FOLDER. A batch has 16384 tokens of 16 heads of 128, in sequences of
equal or of any lengths; a line of JSON for each has TFLOP/s of the products that exist. Each result
is first compared with attention of each sequence by itself in fp32, and rows of other sequences are
no numbers while it is. Programs with the slopes of ALiBi are timed too. Rounds alternate.
"""
import itertools
import os

import attention
import flash_attention_3
import kit

TOKENS, HEADS, ELEMENTS, MOST = 16384, 16, 128, 32
#: Lengths of the sequences of a batch, which has as many programs.
BATCHES = {
    "equal 1024": [1024] * 16,
    "equal 4096": [4096] * 4,
    "16 to 4096": [16, 64, 129, 256, 500, 1023, 1500, 2100, 2700, 4000, 4096],
    "one long, some short": [14848, *[127, 129] * 6],
}
CELLS = tuple(itertools.product(BATCHES, (False, True)))


def operands_of(lengths, heads, elements, count, torch):
    """So many packed tensors, the offsets of their sequences for MOST of them, and those that
    exist."""
    tensors = [torch.randn(sum(lengths), heads, elements, device="cuda").bfloat16() for _ in range(count)]
    ends = [0, *itertools.accumulate(lengths)]
    offsets, known = (torch.tensor(x, dtype=torch.int32, device="cuda") for x in (ends + ends[-1:] * (MOST + 1 - len(ends)), ends))
    return tensors, offsets, known


def rates(functions, lengths, causal, passes=1):
    """Microseconds of functions, and TFLOP/s of the products that exist, `passes` times those of
    the forward pass; a causal mask counts half."""
    products = passes * sum(4 * length * length * attention.ALL_ELEMENTS for length in lengths) * (0.5 if causal else 1)
    row = {}
    for function, microseconds in attention.time_all(functions).items():
        row[function] = microseconds
        row[f"{function}_tflops"] = products / microseconds / 1e6
    return row


def packed_text(causal, slopes):
    rows, offsets = f"tensor<?x{HEADS}x{ELEMENTS}xbf16>", f"tensor<{MOST + 1}xi32>"
    kind = f"tensor<{HEADS}xf32>"
    argument, operand = (f", %s: {kind}", f" slopes(%s : {kind})") if slopes else ("", "")
    tensors = ", ".join(f'%{name}: {rows} {{fp4.name = "{name}", fp4.dims = ["T", "", ""]}}' for name in "qkv")
    return f"""func.func @attention({tensors}, %n: {offsets}{argument}) -> {rows} {{
  %o = fp4.attention %q, %k, %v query_offsets(%n : {offsets}) key_offsets(%n : {offsets}){operand}
      scale {ELEMENTS ** -0.5:.9e}{' causal' if causal else ''} : {rows}, {rows}, {rows} -> {rows}
  return %o : {rows}
}}
"""


def mask_of(causal):
    return "causal" if causal else "full"


def pack(build, folder):
    kit.begin(folder, __file__, attention.__file__, flash_attention_3.__file__)
    kit.copy_package(build, folder)
    programs = [(f"{'slopes' if slopes else 'packed'}_{mask_of(causal)}", packed_text(causal, slopes))
                for slopes, causal in itertools.product((False, True), repeat=2)]
    for lengths, causal in itertools.product(([1024] * 16, [4096] * 4), (False, True)):
        programs.append((f"equal_{lengths[0]}_{mask_of(causal)}",
                         attention.text(len(lengths), lengths[0], HEADS, ELEMENTS, causal)))
    kit.compile_programs(build, folder, programs)


def expected(q, k, v, causal, torch):
    """The first head of a sequence, in fp32."""
    q, k, v = (x[:, 0].float() for x in (q, k, v))
    scores = q @ k.T * ELEMENTS ** -0.5
    if causal:
        scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
    return torch.softmax(scores, -1) @ v


def difference(program, q, k, v, offsets, causal, torch):
    """The largest distance from attention of each sequence, with other values that are no numbers,
    relative to its largest element."""
    largest = 0.0
    for begin, end in itertools.pairwise(offsets.tolist()):
        if begin == end:
            continue
        others = torch.full_like(v, float("nan"))
        others[begin:end] = v[begin:end]
        wanted = expected(q[begin:end], k[begin:end], v[begin:end], causal, torch)
        got = program(q, k, others, offsets)[begin:end, 0].float()
        largest = max(largest, ((got - wanted).abs().max() / wanted.abs().max()).item())
    return largest


def flash2(q, k, v, offsets, most, causal):
    """torch's function, or none where this torch has none."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return {}
    window = (-1, 0 if causal else -1)
    return {"flash2": lambda: varlen_attn(q, k, v, offsets, offsets, most, most, window_size=window)}


def measure(folder):
    torch = kit.open_package(folder)
    import fp4
    slopes = torch.tensor([2.0 ** (-8 * (i + 1) / HEADS) for i in range(HEADS)], device="cuda")
    for name, causal in CELLS:
        lengths = BATCHES[name]
        (q, k, v), offsets, known = operands_of(lengths, HEADS, ELEMENTS, 3, torch)
        program, with_slopes = (fp4.load(os.path.join(folder, f"{kind}_{mask_of(causal)}.so"))
                                for kind in ("packed", "slopes"))
        functions = {"ours": lambda: program(q, k, v, offsets),
                     "slopes": lambda: with_slopes(q, k, v, offsets, slopes),
                     **flash2(q, k, v, known, max(lengths), causal)}
        if forward := flash_attention_3.operation(folder):
            functions["flash3"] = flash_attention_3.call(forward, q, k, v, causal, offsets=known, longest=max(lengths),
                                                         key_offsets=known)
        if len(set(lengths)) == 1:
            equal = fp4.load(os.path.join(folder, f"equal_{lengths[0]}_{mask_of(causal)}.so"))
            batches = [x.view(len(lengths), -1, HEADS, ELEMENTS) for x in (q, k, v)]
            functions["equal"] = lambda: equal(*batches)
        row = {"sequences": name, "causal": causal,
               "difference": difference(program, q, k, v, offsets, causal, torch)}
        yield row | rates(functions, lengths, causal)


if __name__ == "__main__":
    kit.main(__doc__, pack, measure)
