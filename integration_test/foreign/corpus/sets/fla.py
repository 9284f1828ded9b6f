"""flash-linear-attention's Triton kernels with their gradients, against recurrences in torch.

Sequences are no multiple of a chunk. Operands are float32, which products round to tf32.
"""
import importlib

import torch
import torch.nn.functional as F

from cases import case, gradients

SOURCE = "fla"
DEFAULTS = {"tolerance": 5e-3, "limit": 600}
T, H, K = 80, 2, 32


def fla(place, name):
    return getattr(importlib.import_module(f"fla.ops.{place}"), name)


def rows(*more):
    return torch.randn(1, T, H, *(more or (K,)))


def gates(*more):
    return F.logsigmoid(torch.randn(1, T, H, *more) + 2)


def units():
    return F.normalize(rows(), dim=-1)


def linear(q, k, v, decay=None, bonus=None, scale=K ** -0.5):
    """S = exp(decay) S + k v; a bonus adds to the newest term of the result alone."""
    state, found = torch.zeros(1, H, K, v.shape[-1]), []
    for t in range(q.shape[1]):
        new = k[:, t, :, :, None] * v[:, t, :, None]
        if bonus is not None:
            found.append((q[:, t, :, :, None] * scale * (state + bonus[None, :, :, None] * new)).sum(2))
        if decay is not None:
            state = state * (decay[:, t].exp()[..., None] if decay.dim() == 4
                             else decay[:, t].exp()[..., None, None])
        state = state + new
        if bonus is None:
            found.append((q[:, t, :, :, None] * scale * state).sum(2))
    return torch.stack(found, 1)


def delta(q, k, v, beta, decay=None, erased=None, scale=K ** -0.5):
    """S = exp(decay) S, then S = S + beta k (v - k S)."""
    state, found = torch.zeros(1, H, K, v.shape[-1]), []
    erased = k if erased is None else erased
    for t in range(q.shape[1]):
        if decay is not None:
            state = state * (decay[:, t].exp()[..., None] if decay.dim() == 4
                             else decay[:, t].exp()[..., None, None])
        value = (v[:, t] - (state * erased[:, t, :, :, None]).sum(2)) * beta[:, t, :, None]
        state = state + k[:, t, :, :, None] * value[:, :, None]
        found.append((q[:, t, :, :, None] * scale * state).sum(2))
    return torch.stack(found, 1)


def low_rank(q, k, v, a, b, decay=None, scale=K ** -0.5):
    """S = exp(decay) S + b (a S) + k v."""
    state, found = torch.zeros(1, H, K, v.shape[-1]), []
    for t in range(q.shape[1]):
        more = b[:, t, :, :, None] * (state * a[:, t, :, :, None]).sum(2, keepdim=True)
        state = state if decay is None else state * decay[:, t].exp()[..., None]
        state = state + more + k[:, t, :, :, None] * v[:, t, :, None]
        found.append((q[:, t, :, :, None] * scale * state).sum(2))
    return torch.stack(found, 1)


def attention(q, k, v, bias=None):
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * K ** -0.5
    scores = scores if bias is None else scores + bias
    mask = torch.ones(T, T).tril().bool()
    return torch.einsum("bhqk,bkhd->bqhd", torch.softmax(scores.masked_fill(~mask, -torch.inf), -1), v)


def decays(heads=H):
    return (1 - 2.0 ** (-5 - torch.arange(heads))).log()[None, None].expand(1, T, heads)


# Linear attention


@case("h200", "b200")
def chunk_linear_attn():
    f = fla("linear_attn", "chunk_linear_attn")
    yield from gradients(lambda q, k, v: f(q, k, v, normalize=False), linear, [rows(), rows(), rows()])


@case()
def fused_chunk_linear_attn():
    f = fla("linear_attn", "fused_chunk_linear_attn")
    yield from gradients(lambda q, k, v: f(q, k, v, normalize=False), linear, [rows(), rows(), rows()])


@case()
def fused_recurrent_linear_attn():
    f = fla("linear_attn", "fused_recurrent_linear_attn")
    yield from gradients(lambda q, k, v: f(q, k, v, normalize=False), linear, [rows(), rows(), rows()])


@case("h200", "b200")
def chunk_gla():
    yield from gradients(fla("gla", "chunk_gla"), linear, [rows(), rows(), rows(), gates(K)])


@case()
def fused_recurrent_gla():
    yield from gradients(fla("gla", "fused_recurrent_gla"), linear, [rows(), rows(), rows(), gates(K)])


@case("h200", "b200")
def chunk_simple_gla():
    yield from gradients(fla("simple_gla", "chunk_simple_gla"), linear,
                         [rows(), rows(), rows(), gates()])


@case()
def fused_chunk_simple_gla():
    yield from gradients(fla("simple_gla", "fused_chunk_simple_gla"), linear,
                         [rows(), rows(), rows(), gates()])


@case()
def fused_recurrent_simple_gla():
    yield from gradients(fla("simple_gla", "fused_recurrent_simple_gla"), linear,
                         [rows(), rows(), rows(), gates()])


@case("h200", "b200")
def parallel_simple_gla():
    yield from gradients(fla("simple_gla", "parallel_simple_gla"), linear,
                         [rows(), rows(), rows(), gates()])


def retention(q, k, v):
    return linear(q, k, v, decays())


@case()
def chunk_retention():
    yield from gradients(fla("retention", "chunk_retention"), retention, [rows(), rows(), rows()])


@case()
def fused_chunk_retention():
    yield from gradients(fla("retention", "fused_chunk_retention"), retention, [rows(), rows(), rows()])


@case()
def fused_recurrent_retention():
    yield from gradients(fla("retention", "fused_recurrent_retention"), retention, [rows(), rows(), rows()])


@case()
def parallel_retention():
    yield from gradients(fla("retention", "parallel_retention"), retention, [rows(), rows(), rows()])


@case()
def chunk_lightning_attn():
    f = fla("lightning_attn", "chunk_lightning_attn")
    slopes = -(8 / H * (1 - 1 / 4)) * torch.arange(H)
    yield from gradients(lambda q, k, v: f(q, k, v, 1, 4),
                         lambda q, k, v: linear(q, k, v, slopes[None, None].expand(1, T, H)),
                         [rows(), rows(), rows()])


def rwkv6(r, k, v, w, u):
    return linear(r, k, v, w, u)


@case()
def chunk_rwkv6():
    yield from gradients(fla("rwkv6", "chunk_rwkv6"), rwkv6,
                         [rows(), rows(), rows(), gates(K), torch.randn(H, K)])


@case()
def fused_recurrent_rwkv6():
    yield from gradients(fla("rwkv6", "fused_recurrent_rwkv6"), rwkv6,
                         [rows(), rows(), rows(), gates(K), torch.randn(H, K)])


# Delta rules


@case("h200", "b200", tolerance=3e-2)
def chunk_delta_rule():
    yield from gradients(fla("delta_rule", "chunk_delta_rule"), delta,
                         [rows(), units(), rows(), torch.rand(1, T, H)], torch.bfloat16)


@case()
def fused_recurrent_delta_rule():
    yield from gradients(fla("delta_rule", "fused_recurrent_delta_rule"), delta,
                         [rows(), units(), rows(), torch.rand(1, T, H)])


def gated(q, k, v, g, beta):
    return delta(q, k, v, beta, g)


@case("h200", "b200", tolerance=1e-2)
def chunk_gated_delta_rule():
    yield from gradients(fla("gated_delta_rule", "chunk_gated_delta_rule"), gated,
                         [rows(), units(), rows(), gates(), torch.rand(1, T, H)])


@case()
def fused_recurrent_gated_delta_rule():
    f = fla("gated_delta_rule", "fused_recurrent_gated_delta_rule")
    inputs = [rows(), units(), rows(), gates(), torch.rand(1, T, H)]
    q, k, v, g, beta = (x.to("cuda") for x in inputs)
    yield "result", f(q, k, v, g=g, beta=beta)[0], gated(*inputs)


@case("h200", "b200", tolerance=1e-2)
def chunk_kda():
    yield from gradients(fla("kda", "chunk_kda"), gated,
                         [rows(), units(), rows(), gates(K), torch.rand(1, T, H)])


@case()
def fused_recurrent_kda():
    inputs = [rows(), units(), rows(), gates(K), torch.rand(1, T, H)]
    found = fla("kda", "fused_recurrent_kda")(*(x.to("cuda") for x in inputs))[0]
    yield "result", found, gated(*inputs)


def transition():
    a = units()
    return -a, a * torch.rand(1, T, H, 1)


@case(tolerance=1e-2)
def chunk_dplr_delta_rule():
    yield from gradients(fla("generalized_delta_rule", "chunk_dplr_delta_rule"), low_rank,
                         [rows(), units(), rows(), *transition(), gates(K)])


@case()
def fused_recurrent_dplr_delta_rule():
    inputs = [rows(), units(), rows(), *transition(), gates(K)]
    found = fla("generalized_delta_rule", "fused_recurrent_dplr_delta_rule")(*(x.to("cuda") for x in inputs))
    yield "result", found[0], low_rank(*inputs)


@case(tolerance=1e-2)
def chunk_iplr_delta_rule():
    inputs = [rows(), units(), rows(), *transition()]
    found = fla("generalized_delta_rule", "chunk_iplr_delta_rule")(*(x.to("cuda") for x in inputs))
    yield "result", found[0], low_rank(*inputs)


@case()
def fused_recurrent_iplr_delta_rule():
    yield from gradients(fla("generalized_delta_rule", "fused_recurrent_iplr_delta_rule"), low_rank,
                         [rows(), units(), rows(), *transition()])


@case(tolerance=1e-2)
def chunk_rwkv7():
    yield from gradients(
        fla("rwkv7", "chunk_rwkv7"),
        lambda r, w, k, v, a, b: low_rank(r, k, v, a, b, w, 1.0),
        [rows(), gates(K), units(), rows(), *transition()])


@case()
def fused_recurrent_rwkv7():
    r, w, k, v, (a, b) = rows(), gates(K), units(), rows(), transition()
    found = fla("rwkv7", "fused_recurrent_rwkv7")(*(x.to("cuda") for x in (r, w, k, v, a, b)), scale=1.0)
    yield "result", found[0], low_rank(r, k, v, a, b, w, 1.0)


@case(tolerance=3e-2)
def chunk_gated_delta_product():
    f = fla("gated_delta_product", "chunk_gated_delta_product")

    def reference(q, k, v, g, beta):
        state, found = torch.zeros(1, H, K, K), []
        for t in range(T):
            state = state * g[:, t].exp()[..., None, None]
            for n in (2 * t, 2 * t + 1):
                value = (v[:, n] - (state * k[:, n, :, :, None]).sum(2)) * beta[:, n, :, None]
                state = state + k[:, n, :, :, None] * value[:, :, None]
            found.append((q[:, t, :, :, None] * K ** -0.5 * state).sum(2))
        return torch.stack(found, 1)
    twice = [F.normalize(torch.randn(1, 2 * T, H, K), dim=-1), torch.randn(1, 2 * T, H, K)]
    yield from gradients(lambda q, k, v, g, b: f(q, k, v, g, b, 2), reference,
                         [rows(), *twice, gates(), torch.rand(1, 2 * T, H)], torch.bfloat16)


# Other recurrences


def hgrn(x, g):
    state, found = torch.zeros(1, K), []
    for t in range(T):
        state = g[:, t].exp() * state + x[:, t]
        found.append(state)
    return torch.stack(found, 1)


@case()
def chunk_hgrn():
    yield from gradients(fla("hgrn", "chunk_hgrn"), hgrn,
                         [torch.randn(1, T, K), F.logsigmoid(torch.randn(1, T, K))])


@case()
def fused_recurrent_hgrn():
    yield from gradients(fla("hgrn", "fused_recurrent_hgrn"), hgrn,
                         [torch.randn(1, T, K), F.logsigmoid(torch.randn(1, T, K))])


def slots(q, k, v, s, g):
    keys = linear(q, k, s, None, None) if g is None else None
    state, found = torch.zeros(1, H, K, s.shape[-1]), []
    other = torch.zeros(1, H, s.shape[-1], K)
    assert keys is None
    for t in range(T):
        decay = g[:, t].exp()
        state = state * decay[:, :, None] + k[:, t, :, :, None] * s[:, t, :, None]
        weight = torch.softmax((q[:, t, :, :, None] * K ** -0.5 * state).sum(2), -1)
        other = other * decay[..., None] + s[:, t, :, :, None] * v[:, t, :, None]
        found.append((weight[..., None] * other).sum(2))
    return torch.stack(found, 1)


@case(tolerance=1e-2)
def chunk_gsa():
    g = gates(16)
    yield from gradients(fla("gsa", "chunk_gsa"), slots, [rows(), rows(), rows(), 1 - g.exp(), g])


@case()
def fused_recurrent_gsa():
    g = gates(16)
    yield from gradients(fla("gsa", "fused_recurrent_gsa"), slots, [rows(), rows(), rows(), 1 - g.exp(), g])


# Attention


@case("h200", "b200")
def parallel_attn():
    yield from gradients(fla("attn", "parallel_attn"), attention, [rows(), rows(), rows()])


@case("h200", "b200")
def parallel_forgetting_attn():
    def reference(q, k, v, g):
        sums = g.cumsum(1).transpose(1, 2)
        return attention(q, k, v, sums[..., :, None] - sums[..., None, :])
    yield from gradients(fla("forgetting_attn", "parallel_forgetting_attn"), reference,
                         [rows(), rows(), rows(), gates()])


@case()
def parallel_stickbreaking_attn():
    def reference(q, k, v):
        z = torch.einsum("bqhd,bkhd->bhqk", q, k) * K ** -0.5
        mask = torch.ones(T, T).tril(-1).bool()
        stays = F.logsigmoid(-z).masked_fill(~mask, 0)
        after = stays.flip(-1).cumsum(-1).flip(-1) - stays
        weights = (F.logsigmoid(z) + after).exp() * mask
        rest = 1 - weights.sum(-1).transpose(1, 2)
        return torch.cat([torch.einsum("bhqk,bkhd->bqhd", weights, v), rest[..., None]], -1)

    def found(q, k, v):
        result, rest = fla("stickbreaking_attn", "parallel_stickbreaking_attn")(q, k, v)
        return torch.cat([result, rest[..., None]], -1)
    yield from gradients(found, reference, [rows(), rows(), rows()])


def taylor(q, k, v, power):
    a = torch.einsum("bqhd,bkhd->bhqk", q, k) * 16 ** -0.5
    a = (1 + a + a * a / 2 if power else a * a) * torch.ones(T, T).tril()
    return torch.einsum("bhqk,bkhd->bqhd", a / (a.sum(-1, keepdim=True) + 1e-6), v)


@case()
def parallel_based():
    yield from gradients(fla("based", "parallel_based"), lambda q, k, v: taylor(q, k, v, True),
                         [rows(16), rows(16), rows()])


@case()
def fused_chunk_based():
    yield from gradients(fla("based", "fused_chunk_based"), lambda q, k, v: taylor(q, k, v, True),
                         [rows(16), rows(16), rows()])


# Pieces


@case()
def sinkhorn():
    f = fla("utils.sinkhorn.ops", "sinkhorn")

    def reference(x):
        for _ in range(20):
            x = x - x.logsumexp(-2, keepdim=True)
            x = x - x.logsumexp(-1, keepdim=True)
        return x.exp()
    yield from gradients(f, reference, [torch.randn(6, 4, 4)])


@case()
def mean_pooling():
    f = fla("utils.pooling", "mean_pooling")
    yield from gradients(lambda x: f(x, 16), lambda x: x.view(1, T // 16, 16, H, K).mean(2), [rows()])


@case()
def global_cumsum():
    f = fla("utils.cumsum", "chunk_global_cumsum")
    x, y = rows(), torch.randn(1, T, H)
    yield "vectors", f(x.to("cuda")), x.cumsum(1)
    yield "scalars", f(y.to("cuda"), reverse=True), y.flip(1).cumsum(1).flip(1)


@case()
def local_cumsum():
    f = fla("utils.cumsum", "chunk_local_cumsum")
    x = torch.randn(1, T, H)
    yield "scalars", f(x.to("cuda"), chunk_size=16), x.view(1, -1, 16, H).cumsum(2).view(1, T, H)


@case()
def solve_tril():
    f = fla("utils.solve_tril", "solve_tril")
    a = torch.randn(1, 128, H, 64).reshape(1, 2, 64, H, 64).permute(0, 3, 1, 2, 4).tril(-1) / 8
    expected = torch.linalg.inv(a + torch.eye(64)).permute(0, 2, 3, 1, 4).reshape(1, 128, H, 64)
    yield "inverse", f(a.permute(0, 2, 3, 1, 4).reshape(1, 128, H, 64).contiguous().to("cuda")), expected


@case()
def logsumexp():
    x = torch.randn(40, 300)
    yield "result", fla("utils.logsumexp", "logsumexp_fwd")(x.to("cuda")), x.logsumexp(-1)


@case()
def softmax():
    x = torch.randn(40, 300)
    yield "result", fla("utils.softmax", "softmax_fwd")(x.to("cuda")), x.softmax(-1)


@case("h200", "b200")
def matmul():
    a, b = torch.randn(100, 70), torch.randn(70, 90)
    yield "product", fla("utils.matmul", "matmul")(a.to("cuda"), b.to("cuda")), a @ b
