#!/usr/bin/env python3
"""Gradients of attention of packed sequences beside those of equal lengths, FlashAttention-2 as
PyTorch has it (torch.nn.attention.varlen), and cuDNN for equal lengths.

  benchmarks/packed_attention_backward.py pack BUILD FOLDER   compiles the programs into FOLDER
  benchmarks/packed_attention_backward.py run FOLDER [--json=FILE]

`run` needs a Hopper GPU and PyTorch. Batches are those of packed_attention.py, of heads of 64 and
128. A line of JSON for each cell has TFLOP/s of five products, of which a causal cell counts half.
Before they are timed, gradients of each sequence are compared with those of fp64 while all other
sequences are no numbers, with those of equal lengths bit for bit, and with themselves computed
again. Rounds alternate.
"""
import itertools
import os

import attention
import attention_backward
import flash_attention_3
import kit
import packed_attention
from packed_attention import BATCHES, MOST, mask_of

ELEMENTS = (64, 128)
CELLS = tuple(itertools.product(ELEMENTS, BATCHES, (False, True)))
EQUAL = tuple(name for name, lengths in BATCHES.items() if len(set(lengths)) == 1)


def texts(elements, causal):
    """The programs of the forward and of the backward pass."""
    rows = f"?x{attention.ALL_ELEMENTS // elements}"
    matrix, lse, offsets = f"tensor<{rows}x{elements}xbf16>", f"tensor<{rows}xf32>", f"tensor<{MOST + 1}xi32>"
    packed = f"query_offsets(%n : {offsets}) key_offsets(%n : {offsets}) {attention_backward.scores(elements, causal, False)}"

    def arguments(names):
        return ", ".join(f'%{name}: {matrix} {{fp4.name = "{name}", fp4.dims = ["T", "", ""]}}' for name in names)
    forward = f"""func.func @forward({arguments("qkv")}, %n: {offsets}) -> ({matrix}, {lse}) {{
  %o, %l = fp4.attention %q, %k, %v {packed} : {matrix}, {matrix}, {matrix} -> {matrix}, {lse}
  return %o, %l : {matrix}, {lse}
}}
"""
    backward = f"""func.func @backward({arguments("qkvog")}, %l: {lse} {{fp4.name = "l", fp4.dims = ["T", ""]}}, %n: {offsets})
    -> ({matrix}, {matrix}, {matrix}) {{
  %dq, %dk, %dv = fp4.attention_backward %q, %k, %v, %o, %g, %l {packed}
      : {matrix}, {matrix}, {matrix}, {matrix}, {lse}
  return %dq, %dk, %dv : {matrix}, {matrix}, {matrix}
}}
"""
    return {"forward": forward, "backward": backward}


def name_of(kind, elements, causal):
    return f"{kind}_{elements}_{mask_of(causal)}"


def pack(build, folder):
    kit.begin(folder, __file__, attention.__file__, attention_backward.__file__, packed_attention.__file__,
              flash_attention_3.__file__)
    kit.copy_package(build, folder)
    for elements, causal in itertools.product(ELEMENTS, (False, True)):
        kit.compile_programs(build, folder, [(name_of(kind, elements, causal), text)
                                             for kind, text in texts(elements, causal).items()])
        kit.compile_programs(build, folder, [
            (name_of(f"equal_{length}", elements, causal), attention_backward.backward(elements, length, causal))
            for length in (BATCHES[name][0] for name in EQUAL)])


def largest_difference(programs, operands, offsets, causal, torch):
    """The largest distance of the gradients of each sequence from those of fp64, where no other
    sequence has numbers."""
    largest = 0.0
    for begin, end in itertools.pairwise(offsets.tolist()):
        if begin == end:
            continue
        others = [torch.full_like(x, float("nan")) for x in operands]
        for other, x in zip(others, operands):
            other[begin:end] = x[begin:end]
        q, k, v, g = others
        gradients = programs["backward"](q, k, v, *with_gradient(programs["forward"](q, k, v, offsets), g), offsets)
        own = [x[begin:end][None] for x in (*gradients, *operands)]
        largest = max(largest, *attention_backward.differences(own[:3], *own[3:], causal, torch))
    return largest


def with_gradient(results, gradient):
    output, sums = results
    return output, gradient, sums


def flash2(q, k, v, g, offsets, most, causal, torch):
    """torch's function, or none where this torch has none."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return {}
    operands = [x.detach().requires_grad_() for x in (q, k, v)]
    result = varlen_attn(*operands, offsets, offsets, most, most, window_size=(-1, 0 if causal else -1))
    return {"flash2": lambda: torch.autograd.grad(result, operands, g, retain_graph=True)}


def of_equal(folder, name, elements, causal, operands, results, torch):
    """Gradients of sequences of equal lengths, of other kernels."""
    import fp4
    lengths = BATCHES[name]
    program = fp4.load(os.path.join(folder, name_of(f"equal_{lengths[0]}", elements, causal) + ".so"))
    q, k, v, g, output = (x.view(len(lengths), lengths[0], *x.shape[1:]) for x in (*operands, results[0]))
    sums = results[1].view(q.shape[:3])
    others = attention_backward.peers(q, k, v, g, causal, torch)
    return {"equal": lambda: program(q, k, v, output, g, sums),
            **({"cudnn_equal": others["cudnn"]} if "cudnn" in others else {})}


def measure(folder):
    torch = kit.open_package(folder)
    import fp4
    for elements, name, causal in CELLS:
        lengths, heads = BATCHES[name], attention.ALL_ELEMENTS // elements
        (q, k, v, g), offsets, known = packed_attention.operands_of(lengths, heads, elements, 4, torch)
        programs = {kind: fp4.load(os.path.join(folder, name_of(kind, elements, causal) + ".so"))
                    for kind in ("forward", "backward")}
        results = programs["forward"](q, k, v, offsets)
        functions = {"ours": lambda: programs["backward"](q, k, v, results[0], g, results[1], offsets),
                     **flash2(q, k, v, g, known, max(lengths), causal, torch)}
        if name in EQUAL:
            functions |= of_equal(folder, name, elements, causal, (q, k, v, g), results, torch)
        first, again = functions["ours"](), functions["ours"]()
        row = {"elements": elements, "sequences": name, "causal": causal,
               "same_bits": all(torch.equal(x, y) for x, y in zip(first, again)),
               "difference": largest_difference(programs, (q, k, v, g), offsets, causal, torch)}
        if name in EQUAL:
            row["bits_of_equal"] = all(torch.equal(x, y.view(x.shape)) for x, y in zip(first, functions["equal"]()))
        yield row | packed_attention.rates(functions, lengths, causal, passes=2.5)


if __name__ == "__main__":
    kit.main(__doc__, pack, measure)
