"""FlashAttention-4, which the CuTe DSL compiles, and its gradients, against attention in float32."""
import torch

from cases import case

SOURCE = "flash-attn-4"
DEFAULTS = {"devices": ("b200", "h200"), "policies": ("eager", "lazy"), "limit": 600,
            "tolerance": 1e-2}


def attention(q, k, v, causal):
    group = q.shape[2] // k.shape[2]
    k, v = (x.repeat_interleave(group, 2) for x in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    if causal:
        mask = torch.ones(scores.shape[-2:]).tril(k.shape[1] - q.shape[1]).bool()
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.einsum("bhqk,bkhd->bqhd", torch.softmax(scores, -1), v)


def operands(rows, keys, heads=2, groups=1, width=128):
    return [torch.randn(1, size, count, width).bfloat16()
            for size, count in ((rows, heads), (keys, groups), (keys, groups))]


def forward(causal, rows, keys, **sizes):
    from flash_attn.cute import flash_attn_func
    q, k, v = operands(rows, keys, **sizes)
    found = flash_attn_func(*(x.to("cuda") for x in (q, k, v)), causal=causal)
    found = found[0] if isinstance(found, tuple) else found
    yield "result", found, attention(q.float(), k.float(), v.float(), causal)


@case()
def dense():
    yield from forward(False, 130, 200)


@case()
def causal():
    yield from forward(True, 200, 200, heads=4, groups=2)


@case()
def width_64():
    yield from forward(True, 130, 130, width=64)


@case(tolerance=3e-2)
def backward():
    from flash_attn.cute import flash_attn_func
    mine = operands(128, 128, heads=2, groups=2)
    there = [x.to("cuda").requires_grad_() for x in mine]
    here = [x.float().requires_grad_() for x in mine]
    expected, found = attention(*here, True), flash_attn_func(*there, causal=True)
    found = found[0] if isinstance(found, tuple) else found
    slope = torch.randn(expected.shape).bfloat16()
    expected.backward(slope.float())
    found.backward(slope.to("cuda"))
    yield "result", found, expected
    for name, one, other in zip("qkv", there, here):
        yield f"gradient of {name}", one.grad, other.grad
