"""FlashInfer's kernels, which its own wrappers compile by nvcc and the CuTe DSL, against torch."""
import torch
import torch.nn.functional as F

from cases import case

SOURCE = "flashinfer-python"
DEFAULTS = {"devices": ("h200",), "tolerance": 1e-2, "limit": 1800}


def numbers(*shape, dtype=torch.float16):
    return torch.randn(*shape).to(dtype)


def there(*values):
    return [x.to("cuda") if isinstance(x, torch.Tensor) else x for x in values]


#===--- Activations and norms ---------------------------------------------===#


def gated(name, function):
    import flashinfer
    x = numbers(7, 512)
    a, b = x.float().chunk(2, -1)
    yield "result", getattr(flashinfer, name)(x.to("cuda"), enable_pdl=False), function(a) * b


@case()
def silu_and_mul():
    yield from gated("silu_and_mul", F.silu)


@case()
def gelu_and_mul():
    yield from gated("gelu_and_mul", F.gelu)


@case()
def gelu_tanh_and_mul():
    yield from gated("gelu_tanh_and_mul", lambda x: F.gelu(x, approximate="tanh"))


def normed(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()


@case("h200", "b200")
def rmsnorm():
    import flashinfer
    x, weight = numbers(9, 1024), numbers(1024)
    yield "result", flashinfer.rmsnorm(*there(x, weight), enable_pdl=False), normed(x.float(), weight)


@case("h200", "b200")
def gemma_rmsnorm():
    import flashinfer
    x, weight = numbers(9, 1024), numbers(1024)
    yield "result", flashinfer.gemma_rmsnorm(*there(x, weight), enable_pdl=False), normed(x.float(), weight + 1)


@case("h200", "b200")
def fused_add_rmsnorm():
    import flashinfer
    x, residual, weight = numbers(9, 1024), numbers(9, 1024), numbers(1024)
    out, sums, scales = there(x, residual, weight)
    flashinfer.fused_add_rmsnorm(out, sums, scales, enable_pdl=False)
    expected = x.float() + residual.float()
    yield "sum", sums, expected
    yield "result", out, normed(expected, weight)


@case("h200", "b200")
def rmsnorm_fp8():
    import flashinfer
    x, weight, scale = numbers(9, 1024), numbers(1024), torch.tensor([0.02])
    out = torch.empty(9, 1024, dtype=torch.float8_e4m3fn, device="cuda")
    flashinfer.rmsnorm_quant(out, *there(x, weight, scale), enable_pdl=False)
    yield "result", out.cpu().float(), (normed(x.float(), weight) / scale).clamp(-448, 448), 0.08


@case("h200", "b200")
def layernorm():
    import flashinfer
    x, gamma, beta = numbers(9, 1024, dtype=torch.bfloat16), torch.randn(1024), torch.randn(1024)
    yield "result", flashinfer.layernorm(*there(x, gamma, beta)), F.layer_norm(x.float(), (1024,), gamma, beta, 1e-6)


#===--- Positions and pages -----------------------------------------------===#


def rotated(x, positions, halves, theta=1e4):
    angles = positions[:, None].float() * theta ** (-torch.arange(0, x.shape[-1], 2).float() / x.shape[-1])
    cosines, sines = angles.cos()[:, None], angles.sin()[:, None]
    a, b = x.float().chunk(2, -1) if halves else (x.float()[..., ::2], x.float()[..., 1::2])
    both = a * cosines - b * sines, b * cosines + a * sines
    return torch.cat(both, -1) if halves else torch.stack(both, -1).flatten(-2)


@case()
def apply_rope():
    import flashinfer
    q, k = numbers(11, 4, 64), numbers(11, 2, 64)
    starts, offsets = torch.tensor([0, 4, 11], dtype=torch.int32), torch.tensor([5, 0], dtype=torch.int32)
    positions = torch.cat((torch.arange(5, 9), torch.arange(7)))
    query, key = flashinfer.apply_rope(*there(q, k, starts, offsets))
    yield "query", query, rotated(q, positions, True)
    yield "key", key, rotated(k, positions, True)


@case()
def apply_rope_pos_ids_interleaved():
    import flashinfer
    q, k, positions = numbers(11, 4, 64), numbers(11, 2, 64), torch.randint(0, 64, (11,), dtype=torch.int32)
    query, key = flashinfer.apply_rope_pos_ids(*there(q, k, positions), interleave=True)
    yield "query", query, rotated(q, positions, False)
    yield "key", key, rotated(k, positions, False)


STARTS, PAGES = torch.tensor([0, 2, 4], dtype=torch.int32), torch.tensor([2, 0, 1, 3], dtype=torch.int32)
LAST, LENGTHS = torch.tensor([4, 9], dtype=torch.int32), (20, 25)


def rows_of(cache, sequence):
    first, end = STARTS[sequence].item(), STARTS[sequence + 1].item()
    return torch.cat([cache[page] for page in PAGES[first:end].tolist()])[:LENGTHS[sequence]]


@case(tolerance=0.0)
def append_paged_kv_cache():
    import flashinfer
    key, value, cache = numbers(5, 2, 64), numbers(5, 2, 64), torch.zeros(4, 2, 16, 2, 64, dtype=torch.float16)
    starts = torch.tensor([0, 2, 5], dtype=torch.int32).to("cuda")
    lengths = flashinfer.get_seq_lens(*there(STARTS, LAST), 16)
    owners, positions = flashinfer.get_batch_indices_positions(starts, lengths, 5)
    here = cache.to("cuda")
    flashinfer.append_paged_kv_cache(*there(key, value), owners, positions, here, *there(PAGES, STARTS, LAST))
    here = here.cpu()
    for sequence, (first, end) in enumerate(((0, 2), (2, 5))):
        yield "keys", rows_of(here[:, 0], sequence)[-(end - first):], key[first:end]
        yield "values", rows_of(here[:, 1], sequence)[-(end - first):], value[first:end]


#===--- Attention ---------------------------------------------------------===#


def attention(q, k, v, causal=False):
    group = q.shape[1] // k.shape[1]
    k, v = (x.float().repeat_interleave(group, 1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q.float(), k) * q.shape[-1] ** -0.5
    if causal:
        mask = torch.ones(scores.shape[-2:]).tril(k.shape[0] - q.shape[0]).bool()
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), v), scores.logsumexp(-1).T * 1.4426950408889634


@case()
def merge_state():
    import flashinfer
    a, b, first, second = numbers(9, 4, 64), numbers(9, 4, 64), torch.randn(9, 4), torch.randn(9, 4)
    out, sums = flashinfer.merge_state(*there(a, first, b, second))
    expected = torch.log2(first.exp2() + second.exp2())
    yield "result", out, sum(x.float() * (s - expected).exp2()[..., None] for x, s in ((a, first), (b, second)))
    yield "logarithm of the sums", sums, expected, 1e-4


@case()
def merge_states():
    import flashinfer
    parts, sums = numbers(9, 5, 4, 64), torch.randn(9, 5, 4)
    out, total = flashinfer.merge_states(*there(parts, sums))
    expected = torch.log2(sums.exp2().sum(1))
    yield "result", out, (parts.float() * (sums - expected[:, None]).exp2()[..., None]).sum(1)
    yield "logarithm of the sums", total, expected, 1e-4


@case()
def single_decode():
    import flashinfer
    q, k, v = numbers(4, 64), numbers(77, 2, 64), numbers(77, 2, 64)
    found = flashinfer.single_decode_with_kv_cache(*there(q, k, v))
    yield "result", found, attention(q[None], k, v)[0][0]


@case()
def single_prefill():
    import flashinfer
    q, k, v = numbers(40, 4, 64), numbers(77, 2, 64), numbers(77, 2, 64)
    found, sums = flashinfer.single_prefill_with_kv_cache(*there(q, k, v), causal=True, backend="fa2", return_lse=True)
    expected, logarithms = attention(q, k, v, True)
    yield "result", found, expected
    yield "logarithm of the sums", sums, logarithms, 1e-3


def paged():
    cache = numbers(4, 2, 16, 2, 64)
    return cache, [(rows_of(cache[:, 0], sequence), rows_of(cache[:, 1], sequence)) for sequence in (0, 1)]


@case()
def batch_decode_paged():
    import flashinfer
    (cache, rows), q = paged(), numbers(2, 4, 64)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(16 << 20, dtype=torch.uint8, device="cuda"))
    wrapper.plan(*there(STARTS, PAGES, LAST), 4, 2, 64, 16, q_data_type=q.dtype)
    found = wrapper.run(*there(q, cache))
    yield "result", found, torch.cat([attention(q[i:i + 1], *rows[i])[0] for i in (0, 1)])


@case()
def batch_prefill_paged():
    import flashinfer
    (cache, rows), q = paged(), numbers(12, 4, 64)
    starts = torch.tensor([0, 7, 12], dtype=torch.int32)
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
        torch.empty(16 << 20, dtype=torch.uint8, device="cuda"), backend="fa2")
    wrapper.plan(*there(starts, STARTS, PAGES, LAST), 4, 2, 64, 16, causal=True, q_data_type=q.dtype)
    found = wrapper.run(*there(q, cache))
    yield "result", found, torch.cat([attention(q[:7], *rows[0], True)[0], attention(q[7:], *rows[1], True)[0]])


#===--- Sampling ----------------------------------------------------------===#


def probabilities():
    return (torch.randn(9, 500) * 2).softmax(-1)


@case(tolerance=1e-5)
def softmax():
    import flashinfer
    logits = torch.randn(9, 500)
    yield "result", flashinfer.sampling.softmax(logits.to("cuda"), temperature=0.7, enable_pdl=False), (
        logits / 0.7).softmax(-1)


@case(tolerance=1e-5)
def top_k_renorm_probs():
    import flashinfer
    p = probabilities()
    kept = p * (p >= p.topk(20).values[:, -1:])
    yield "result", flashinfer.sampling.top_k_renorm_probs(p.to("cuda"), 20), kept / kept.sum(-1, keepdim=True)


@case(tolerance=1e-5)
def top_p_renorm_probs():
    import flashinfer
    p = probabilities()
    sorted_, order = p.sort(-1, descending=True)
    kept = torch.zeros_like(p).scatter(1, order, sorted_ * (sorted_.cumsum(-1) - sorted_ < 0.6))
    yield "result", flashinfer.sampling.top_p_renorm_probs(p.to("cuda"), 0.6), kept / kept.sum(-1, keepdim=True)


@case(tolerance=0.0)
def top_k_mask_logits():
    import flashinfer
    logits = torch.randn(9, 500)
    kept = logits >= logits.topk(20).values[:, -1:]
    yield "result", flashinfer.sampling.top_k_mask_logits(logits.to("cuda"), 20), logits.masked_fill(~kept, -torch.inf)


def within(samples, allowed):
    """All samples are among the numbers that the mask allows."""
    return "samples that are allowed", allowed.gather(1, samples.cpu().long()[:, None])[:, 0].float(), torch.ones(9), 0.0


@case()
def sampling_from_probs():
    import flashinfer
    p = probabilities() * (torch.rand(9, 500) > 0.9)
    p = p / p.sum(-1, keepdim=True)
    yield within(flashinfer.sampling.sampling_from_probs(p.to("cuda"), seed=7, offset=0), p > 0)


@case()
def top_k_sampling():
    import flashinfer
    p = probabilities()
    yield within(flashinfer.sampling.top_k_sampling_from_probs(p.to("cuda"), 3, seed=7, offset=0),
                 p >= p.topk(3).values[:, -1:])


@case()
def top_p_sampling():
    import flashinfer
    p = probabilities()
    sorted_, order = p.sort(-1, descending=True)
    allowed = torch.zeros_like(p).scatter(1, order, (sorted_.cumsum(-1) - sorted_ < 0.3).float()) > 0
    yield within(flashinfer.sampling.top_p_sampling_from_probs(p.to("cuda"), 0.3, seed=7, offset=0), allowed)


@case()
def min_p_sampling():
    import flashinfer
    p = probabilities()
    yield within(flashinfer.sampling.min_p_sampling_from_probs(p.to("cuda"), 0.2, seed=7, offset=0),
                 p >= 0.2 * p.amax(-1, keepdim=True))


@case(tolerance=0.0)
def top_k():
    import flashinfer
    x = torch.randn(3, 4096)
    values, places = flashinfer.top_k(x.to("cuda"), 32, sorted=True)
    expected, order = x.topk(32)
    yield "values", values, expected
    yield "places", places.long(), order


#===--- Quantizers --------------------------------------------------------===#


@case(tolerance=0.0)
def packbits():
    import flashinfer
    bits = torch.rand(1003) > 0.5
    padded = F.pad(bits.int(), (0, 5)).view(-1, 8)
    yield "result", flashinfer.packbits(bits.to("cuda"), "little"), (padded << torch.arange(8)).sum(-1).to(torch.uint8)
