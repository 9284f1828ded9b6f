#!/usr/bin/env python3
"""The backward pass of attention beside FlashAttention-2 and cuDNN as PyTorch has them.

  benchmarks/attention_backward.py pack BUILD FOLDER   compiles the programs for sm_90a into FOLDER
  benchmarks/attention_backward.py run FOLDER [--json=FILE]

`run` needs a Hopper GPU and PyTorch. Cells are those of attention.py in bf16. Before they are
timed, the gradients of the last head of the last sequence are compared with those of fp64, and all
are computed again: a row says whether they have the same bits. Rounds alternate between the
libraries. A line of JSON for each cell has TFLOP/s: five products, of which a causal cell counts
half. Some cells have `capped` gradients too, of scores with a softcap.
"""
import itertools
import os

import attention
import kit

ELEMENTS, LENGTHS = (64, 128, 256), (512, 1024, 2048, 4096, 8192, 16384)
TOKENS, ALL_ELEMENTS = attention.TOKENS, attention.ALL_ELEMENTS
CELLS = tuple(itertools.product(ELEMENTS, LENGTHS, (False, True)))
SOFTCAP, CAPPED = 2.0, tuple(cell for cell in CELLS if cell[1] == 4096)


def shape_of(elements, length):
    return TOKENS // length, length, ALL_ELEMENTS // elements, elements


def scores(elements, causal, cap):
    softcap = f" softcap {SOFTCAP:.9e}" if cap else ""
    return f"scale {elements ** -0.5:.9e}{softcap}{' causal' if causal else ''}"


def types(elements, length):
    rows = "x".join(map(str, shape_of(elements, length)[:3]))
    return f"tensor<{rows}x{elements}xbf16>", f"tensor<{rows}xf32>"


def forward(elements, length, causal, cap=False):
    matrix, lse = types(elements, length)
    return f"""func.func @forward(%q: {matrix}, %k: {matrix}, %v: {matrix}) -> ({matrix}, {lse}) {{
  %o, %l = fp4.attention %q, %k, %v {scores(elements, causal, cap)} : {matrix}, {matrix}, {matrix} -> {matrix}, {lse}
  return %o, %l : {matrix}, {lse}
}}
"""


def backward(elements, length, causal, cap=False):
    matrix, lse = types(elements, length)
    operands = ", ".join(f"%{name}: {matrix}" for name in "qkvog")
    return f"""func.func @backward({operands}, %l: {lse}) -> ({matrix}, {matrix}, {matrix}) {{
  %dq, %dk, %dv = fp4.attention_backward %q, %k, %v, %o, %g, %l {scores(elements, causal, cap)}
      : {matrix}, {matrix}, {matrix}, {matrix}, {lse}
  return %dq, %dk, %dv : {matrix}, {matrix}, {matrix}
}}
"""


def name_of(kind, elements, length, causal):
    return f"{kind}_{elements}_{length}_{'causal' if causal else 'full'}"


def pack(build, folder):
    kit.begin(folder, __file__, attention.__file__, attention.flash_attention_3.__file__)
    kit.copy_package(build, folder)
    for make in (forward, backward):
        kit.compile_programs(build, folder, [(name_of(make.__name__, *cell), make(*cell)) for cell in CELLS])
        kit.compile_programs(build, folder, [(name_of(f"capped_{make.__name__}", *cell), make(*cell, cap=True)) for cell in CAPPED])


def differences(gradients, q, k, v, g, causal, torch, cap=False):
    """The largest distance of each gradient from that of fp64, of the last head of the last batch,
    relative to its largest element."""
    q, k, v, g = (x[-1, :, -1].double() for x in (q, k, v, g))
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    products = q @ k.T * q.shape[-1] ** -0.5
    if cap:
        products = SOFTCAP * torch.tanh(products / SOFTCAP)
    if causal:
        products = products.masked_fill(torch.ones_like(products, dtype=torch.bool).triu(1), float("-inf"))
    (torch.softmax(products, -1) @ v).backward(g)
    return [((given[-1, :, -1] - x.grad).abs().max() / x.grad.abs().max()).item() for given, x in zip(gradients, (q, k, v))]


def peers(q, k, v, g, causal, torch):
    """Functions that compute the same gradients; those that refuse them are missing."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    operands = [x.detach().requires_grad_() for x in (q, k, v)]
    found = {}
    for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash2", SDPBackend.FLASH_ATTENTION)):
        try:
            with sdpa_kernel(backend):
                result = torch.nn.functional.scaled_dot_product_attention(
                    *(x.transpose(1, 2) for x in operands), is_causal=causal).transpose(1, 2)

            def call(result=result):
                return torch.autograd.grad(result, operands, g, retain_graph=True)
            call()
            found[name] = call
        except RuntimeError:
            pass
    return found


def capped(elements, length, causal, q, k, v, g, folder, fp4):
    """The gradients of scores with a softcap."""
    programs = [fp4.load(os.path.join(folder, name_of(f"capped_{kind}", elements, length, causal) + ".so"))
                for kind in ("forward", "backward")]
    output, sums = programs[0](q, k, v)
    return lambda: programs[1](q, k, v, output, g, sums)


def measure(folder):
    torch = kit.open_package(folder)
    import fp4
    for elements, length, causal in CELLS:
        q, k, v, g = (torch.randn(shape_of(elements, length), device="cuda").bfloat16() for _ in range(4))
        programs = [fp4.load(os.path.join(folder, name_of(kind, elements, length, causal) + ".so"))
                    for kind in ("forward", "backward")]
        results = programs[0](q, k, v)
        functions = {"ours": lambda: programs[1](q, k, v, results[0], g, results[1]), **peers(q, k, v, g, causal, torch)}
        if (elements, length, causal) in CAPPED:
            functions["capped"] = capped(elements, length, causal, q, k, v, g, folder, fp4)
        row = {"elements": elements, "length": length, "causal": causal}
        for name, function in functions.items():
            first, again = function(), function()
            row[f"{name}_differences"] = differences(first, q, k, v, g, causal, torch, name == "capped")
            row[f"{name}_same_bits"] = all(torch.equal(x, y) for x, y in zip(first, again))
        for name, microseconds in attention.time_all(functions).items():
            row[name] = microseconds
            row[f"{name}_tflops"] = 2.5 * attention.operations(elements, length, causal) / microseconds / 1e6
        yield row


if __name__ == "__main__":
    kit.main(__doc__, pack, measure)
