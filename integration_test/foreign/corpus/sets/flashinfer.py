"""FlashInfer's CUDA operators (norms, rotary embeddings, caches, sampling, decode attention) against torch."""
import math

import torch

from cases import case, tvm_module

SOURCE = "flashinfer"
DEFAULTS = {"devices": ("h200",), "policies": ("eager", "lazy"), "tolerance": 1e-2}
#: Shared library of the operators, which TVM FFI calls: a source below the checkout, and ours with the others.
EXTENSION = {
    "90": ("norm.cu", "{programs}/flashinfer.cu"),
    "folder": "{flashinfer}/csrc",
    "flags": ("-I{flashinfer}/csrc", "-I{flashinfer}/include", "-I{packages}/tvm_ffi/include",
              "-I{packages}/nvidia/cu13/include/cccl", "-DFLASHINFER_ENABLE_F16", "-DFLASHINFER_ENABLE_BF16",
              "-DFLASHINFER_ENABLE_FP8_E4M3", "-DFLASHINFER_ENABLE_FP8_E5M2", "-DENABLE_BF16", "-DENABLE_FP8"),
}
FP8 = torch.float8_e4m3fn
LARGEST = 448.0  # of FP8
STEP = 0.08  # of rounding to FP8, as a part of the largest number


def run(name, *operands):
    """Calls an operator with its operands on the device; returns those that it may have written."""
    there = [x.to("cuda") if isinstance(x, torch.Tensor) else x for x in operands]
    tvm_module("flashinfer")[name](*there)
    return [x for x in there if isinstance(x, torch.Tensor)]


def numbers(*shape, dtype=torch.bfloat16, scale=1.0):
    return (torch.randn(*shape) * scale).to(dtype)


def whole(*values):
    return torch.tensor(values, dtype=torch.int32)


#===--- Norms -------------------------------------------------------------===#


def normed(x, weight, more=0.0):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (weight.float() + more)


def clamped(x):
    return x.clamp(-LARGEST, LARGEST)


@case()
def rmsnorm():
    x, weight = numbers(9, 1024), numbers(1024)
    yield "result", run("rmsnorm", torch.empty_like(x), x, weight, 1e-6, False)[0], normed(x.float(), weight)


@case()
def rmsnorm_of_heads():
    x, weight = numbers(9, 4, 128), numbers(128)
    yield "result", run("rmsnorm", torch.empty_like(x), x, weight, 1e-6, False)[0], normed(x.float(), weight)


@case()
def rmsnorm_quant():
    x, weight, scale = numbers(9, 1024), numbers(1024), torch.tensor([0.02])
    out = run("rmsnorm_quant", torch.empty(9, 1024, dtype=FP8), x, weight, scale, 1e-6, False)[0]
    yield "result", out.float(), clamped(normed(x.float(), weight) / scale), STEP


def added(name, more):
    x, residual, weight = numbers(9, 1024), numbers(9, 1024), numbers(1024)
    out, sums, _ = run(name, x, residual, weight, 1e-6, False)
    expected = x.float() + residual.float()
    yield "sum", sums, expected
    yield "result", out, normed(expected, weight, more)


@case()
def fused_add_rmsnorm():
    yield from added("fused_add_rmsnorm", 0.0)


@case()
def gemma_fused_add_rmsnorm():
    yield from added("gemma_fused_add_rmsnorm", 1.0)


@case()
def gemma_rmsnorm():
    x, weight = numbers(9, 1024), numbers(1024)
    out = run("gemma_rmsnorm", torch.empty_like(x), x, weight, 1e-6, False)[0]
    yield "result", out, normed(x.float(), weight, 1.0)


@case()
def fused_add_rmsnorm_quant():
    x, residual, weight, scale = numbers(9, 1024), numbers(9, 1024), numbers(1024), torch.tensor([0.02])
    out, _, sums, *_ = run("fused_add_rmsnorm_quant", torch.empty(9, 1024, dtype=FP8), x, residual, weight, scale,
                           1e-6, False)
    expected = x.float() + residual.float()
    yield "sum", sums, expected
    yield "result", out.float(), clamped(normed(expected, weight) / scale), STEP


@case()
def layernorm():
    x, weight, bias = numbers(9, 1024), torch.randn(1024), torch.randn(1024)
    out = run("layernorm", torch.empty_like(x), x, weight, bias, 1e-6)[0]
    yield "result", out, torch.nn.functional.layer_norm(x.float(), (1024,), weight, bias, 1e-6)


#===--- Rotary embeddings -------------------------------------------------===#


def frequencies(width, scale=1.0):
    return 1e4 ** (-torch.arange(0, width, 2) / width) / scale


def rotated(x, positions, rates, interleaved):
    angles = (positions[:, None] * rates)[:, None]
    cosines, sines, x = angles.cos(), angles.sin(), x.float()
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    both = a * cosines - b * sines, b * cosines + a * sines
    return torch.stack(both, -1).flatten(-2) if interleaved else torch.cat(both, -1)


def rotary(name, positions, rates, *options, interleaved=False, places=None):
    q, k = numbers(len(positions), 4, 64), numbers(len(positions), 2, 64)
    _, _, first, second, *_ = run(name, q, k, torch.empty_like(q), torch.empty_like(k),
                                  *(places or [positions.int()]), *options)
    yield "query", first, rotated(q, positions, rates, interleaved)
    yield "key", second, rotated(k, positions, rates, interleaved)


@case()
def apply_rope_pos_ids():
    yield from rotary("apply_rope_pos_ids", torch.randint(0, 64, (11,)), frequencies(64, 2.0), 64, False, 2.0, 1e4)


@case()
def apply_rope_pos_ids_interleaved():
    yield from rotary("apply_rope_pos_ids", torch.randint(0, 64, (11,)), frequencies(64), 64, True, 1.0, 1e4,
                      interleaved=True)


@case()
def apply_rope():
    positions = torch.cat((torch.arange(5, 12), torch.arange(30, 34)))
    yield from rotary("apply_rope", positions, frequencies(64), 64, False, 1.0, 1e4,
                      places=[whole(0, 7, 11), whole(5, 30)])


@case()
def apply_llama31_rope_pos_ids():
    rates = frequencies(64)
    part = ((64 * rates / (2 * math.pi) - 1.0) / (4.0 - 1.0)).clamp(0, 1)
    yield from rotary("apply_llama31_rope_pos_ids", torch.randint(0, 64, (11,)), (1 - part) * rates / 8 + part * rates,
                      64, False, 8.0, 1e4, 1.0, 4.0, 64.0)


@case()
def apply_rope_pos_ids_cos_sin_cache():
    positions, rates = torch.randint(0, 64, (11,)), frequencies(64)
    angles = torch.arange(64)[:, None] * rates
    yield from rotary("apply_rope_pos_ids_cos_sin_cache", positions, rates, False,
                      places=[torch.cat((angles.cos(), angles.sin()), -1), positions.int()])


#===--- Caches ------------------------------------------------------------===#


PAGES, BEGINS, LAST = whole(3, 0, 2), whole(0, 2, 3), whole(4, 9)  # of two sequences: three pages of 16 rows
OWNERS, ROWS = whole(0, 0, 0, 1, 1), whole(17, 18, 19, 7, 8)


def stored(cache, values):
    """The pages of a cache, rows first, with the values of five rows."""
    cache = cache.clone()
    for value, owner, row in zip(values, OWNERS.tolist(), ROWS.tolist()):
        cache[PAGES[BEGINS[owner] + row // 16], row % 16] = value
    return cache


def appended(layout):
    key, value, keys, values = numbers(5, 2, 64), numbers(5, 2, 64), numbers(4, 16, 2, 64), numbers(4, 16, 2, 64)
    order = (0, 2, 1, 3) if layout else (0, 1, 2, 3)
    places = [x.permute(order).contiguous() for x in (keys, values)]
    _, _, _, _, k, v, *_ = run("append_paged_kv_cache", key, value, OWNERS, ROWS, *places, PAGES, BEGINS, LAST, layout)
    yield "keys", k.permute(order), stored(keys, key)
    yield "values", v.permute(order), stored(values, value)


@case(tolerance=0.0)
def append_paged_kv_cache():
    yield from appended(0)


@case(tolerance=0.0)
def append_paged_kv_cache_heads_first():
    yield from appended(1)


@case(tolerance=0.0)
def append_paged_mla_kv_cache():
    latent, rope, latents, ropes = numbers(5, 512), numbers(5, 64), numbers(4, 16, 512), numbers(4, 16, 64)
    _, _, _, _, c, r, *_ = run("append_paged_mla_kv_cache", latent, rope, OWNERS, ROWS, latents, ropes, PAGES, BEGINS,
                               LAST)
    yield "latents", c, stored(latents, latent)
    yield "rotated", r, stored(ropes, rope)


#===--- Attention ---------------------------------------------------------===#


def merged(values, sums):
    """Merges states along axis 1, whose sums are logarithms with base 2."""
    total = torch.logsumexp(sums * math.log(2), 1) / math.log(2)
    return (values.float() * (sums - total[:, None]).exp2()[..., None]).sum(1), total


@case()
def merge_state():
    values, sums = numbers(9, 2, 4, 64), torch.randn(9, 2, 4)
    *_, out, total = run("merge_state", *(x[:, i].contiguous() for i in range(2) for x in (values, sums)),
                         torch.empty(9, 4, 64, dtype=values.dtype), torch.empty(9, 4))
    expected, sum_ = merged(values, sums)
    yield "result", out, expected
    yield "logarithm of the sums", total, sum_, 1e-5


@case(verdict="lane-race", reason="the lanes of a head read its sum and store the merged one, with nothing between the two")
def merge_state_in_place():
    values, sums, mask = numbers(9, 2, 4, 64), torch.randn(9, 2, 4), torch.arange(9) % 3 != 0
    out, total, *_ = run("merge_state_in_place", *(x[:, i].contiguous() for i in range(2) for x in (values, sums)),
                         mask.to(torch.uint8))
    expected, sum_ = merged(values, sums)
    yield "result", out, torch.where(mask[:, None, None], expected, values[:, 0].float())
    yield "logarithm of the sums", total, torch.where(mask[:, None], sum_, sums[:, 0]), 1e-5


@case()
def merge_states():
    values, sums = numbers(9, 7, 4, 64), torch.randn(9, 7, 4)
    *_, out, total = run("merge_states", values, sums, torch.empty(9, 4, 64, dtype=values.dtype), torch.empty(9, 4))
    expected, sum_ = merged(values, sums)
    yield "result", out, expected
    yield "logarithm of the sums", total, sum_, 1e-5


def decode(keys, heads, groups):
    q, k, v = numbers(heads, 128), numbers(keys, groups, 128), numbers(keys, groups, 128)
    *_, out = run("single_decode", q, k, v, torch.empty(1 << 16, dtype=q.dtype), torch.empty_like(q))
    k, v = (x.float().repeat_interleave(heads // groups, 1) for x in (k, v))
    weights = torch.softmax(torch.einsum("hd,nhd->hn", q.float(), k) * 128 ** -0.5, -1)
    yield "result", out, torch.einsum("hn,nhd->hd", weights, v)


@case()
def single_decode():
    yield from decode(100, 4, 1)


@case()
def single_decode_of_parts():
    yield from decode(600, 4, 2)


@case()
def single_decode_without_groups():
    yield from decode(77, 2, 2)


#===--- Masks and sampling ------------------------------------------------===#


def packed(bits, order):
    places = torch.arange(8) if order == "little" else torch.arange(7, -1, -1)
    bits = torch.cat((bits, torch.zeros(-len(bits) % 8, dtype=torch.bool))).view(-1, 8)
    return (bits * (1 << places)).sum(-1).to(torch.uint8)


@case(tolerance=0.0)
def packbits():
    for order in ("big", "little"):
        x = torch.rand(1001) < 0.5
        _, out = run("packbits", x, order, torch.empty(126, dtype=torch.uint8))
        yield order, out, packed(x, order)


@case(tolerance=0.0)
def segment_packbits():
    x, ends = torch.rand(1001) < 0.5, (0, 300, 301, 1001)
    parts = [packed(x[a:b], "little") for a, b in zip(ends, ends[1:])]
    begins = whole(0, *torch.tensor([len(part) for part in parts]).cumsum(0).tolist())
    *_, out = run("segment_packbits", x, whole(*ends), begins, "little", torch.empty(int(begins[-1]), dtype=torch.uint8))
    yield "result", out, torch.cat(parts)


def probabilities(rows, count):
    return torch.softmax(torch.randn(rows, count) * 2, -1)


def room():
    return torch.zeros(1 << 20, dtype=torch.uint8)


@case(tolerance=1e-5)
def softmax():
    for rows, count in ((5, 1000), (2, 30000)):
        x = torch.randn(rows, count) * 3
        *_, out = run("softmax", room(), x, torch.empty_like(x), None, 0.5, False)
        yield f"{count} logits", out, torch.softmax(x / 0.5, -1)


def uniforms(seed, rows):
    """The first number that cuRAND's Philox4x32-10 gives to each row: a subsequence of its own."""
    mask = 0xFFFFFFFF
    words, keys = [0, 0, torch.arange(rows), 0], [seed, 0]
    for _ in range(10):
        first, third = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = [third >> 32 & mask ^ words[1] ^ keys[0], third & mask,
                 first >> 32 & mask ^ words[3] ^ keys[1], first & mask]
        keys = [keys[0] + 0x9E3779B9 & mask, keys[1] + 0xBB67AE85 & mask]
    return words[0] * 2.0 ** -32 + 2.0 ** -33


@case(tolerance=0.0)
def sampling_from_probs():
    p, rows = torch.zeros(300), 400
    p[[3, 100, 101, 299]] = torch.tensor([0.4, 0.3, 0.2, 0.1])
    _, found, valid = run("sampling_from_probs", p.repeat(rows, 1), torch.empty(rows, dtype=torch.int32),
                          torch.zeros(rows, dtype=torch.bool), None, True, None, 1234, None, 0)
    yield "tokens", found, torch.searchsorted(p.double().cumsum(0), uniforms(1234, rows).double(), right=True).int()
    yield "valid", valid, torch.ones(rows, dtype=torch.bool)


def greedy(name, *limit):
    p = probabilities(9, 1000)
    _, found, _ = run(name, p, torch.empty(9, dtype=torch.int32), torch.zeros(9, dtype=torch.bool), None, *limit, True,
                      None, 1234, None, 0)
    yield "token", found.int(), p.argmax(-1).int(), 0.0


@case()
def top_k_sampling_from_probs():
    yield from greedy("top_k_sampling_from_probs", None, 1)


@case()
def top_p_sampling_from_probs():
    yield from greedy("top_p_sampling_from_probs", None, 1e-6)


@case()
def min_p_sampling_from_probs():
    yield from greedy("min_p_sampling_from_probs", None, 1.0)


@case()
def top_k_top_p_sampling_from_probs():
    yield from greedy("top_k_top_p_sampling_from_probs", None, 1.0, None, 0.5)


@case(tolerance=1e-5)
def top_k_renorm_probs():
    p = probabilities(5, 1000)
    _, out, _ = run("top_k_renorm_probs", p, torch.empty_like(p), None, 20, room())
    kept = torch.where(p >= p.topk(20).values[:, -1:], p, 0)
    yield "result", out, kept / kept.sum(-1, keepdim=True)


@case(tolerance=0.0)
def top_k_mask_logits():
    x = torch.randn(5, 1000)
    _, out, _ = run("top_k_mask_logits", x, torch.empty_like(x), None, 20, room())
    yield "result", out, torch.where(x >= x.topk(20).values[:, -1:], x, -torch.inf)


@case(tolerance=1e-5)
def top_p_renorm_probs():
    p = probabilities(5, 1000)
    _, out, _ = run("top_p_renorm_probs", p, torch.empty_like(p), None, 0.7, True, room())
    ordered = p.sort(-1, descending=True).values
    last = (ordered.cumsum(-1) < 0.7).sum(-1, keepdim=True)
    kept = torch.where(p >= ordered.gather(-1, last), p, 0)
    yield "result", out, kept / kept.sum(-1, keepdim=True)


@case(tolerance=0.0)
def chain_speculative_sampling():
    """Certain distributions, so that tokens are known: the draft is right up to its second, or always."""
    draft, target = whole(4, 9, 2, 4, 9, 2).view(2, 3), whole(4, 7, 2, 1, 4, 9, 2, 1).view(2, 4)
    certain = [torch.nn.functional.one_hot(x.long(), 100).float() for x in (draft, target)]
    count = torch.zeros(2, dtype=torch.int32)
    _, _, _, tokens, accepted, emitted = run("chain_speculative_sampling", certain[0], draft, certain[1],
                                             torch.empty(2, 4, dtype=torch.int32), count, count.clone(), True, None,
                                             1234, None, 0)
    yield "tokens", tokens, whole(4, 7, -1, -1, 4, 9, 2, 1).view(2, 4)
    yield "accepted", accepted, whole(2, 3)
    yield "emitted", emitted, whole(1, 3)
