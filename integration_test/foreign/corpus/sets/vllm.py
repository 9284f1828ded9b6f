"""vLLM's CUDA operators (norms, activations, caches, quantizers) against torch."""
import torch
import torch.nn.functional as F

from cases import case, extension

SOURCE = "vllm"
DEFAULTS = {"devices": ("h200",), "policies": ("eager", "lazy"), "tolerance": 1e-2}
#: Shared library of the operators: sources below the checkout, by the architecture that they need.
EXTENSION = {
    "90": ("torch_bindings.cpp", "cuda_utils_kernels.cu", "activation_kernels.cu", "layernorm_kernels.cu",
           "layernorm_quant_kernels.cu", "pos_encoding_kernels.cu", "cache_kernels.cu",
           "quantization/activation_kernels.cu", "attention/merge_attn_states.cu", "quantization/w8a8/fp8/common.cu",
           "quantization/w8a8/int8/scaled_quant.cu", "quantization/w8a8/fp8/per_token_group_quant.cu",
           "quantization/fused_kernels/fused_layernorm_dynamic_per_token_quant.cu"),
    "100a": ("quantization/fp4/nvfp4_quant_entry.cu", "quantization/fp4/nvfp4_quant_kernels.cu",
             "quantization/fp4/activation_nvfp4_quant_fusion_kernels.cu"),
    "folder": "{vllm}/csrc",
    "flags": ("-I{vllm}/csrc", "-I{cutlass}/include", "-DUSE_CUDA", "-DENABLE_FP8", "-DENABLE_NVFP4_SM100=1",
              "-DTORCH_TARGET_VERSION=0x020B000000000000ULL"),
}
FP8 = torch.float8_e4m3fn
LARGEST = 448.0  # of FP8
STEP = 0.08  # of rounding to FP8, as a part of the largest number


def run(name, *operands, library="_C"):
    """Calls an operator with its operands on the device; returns those that it may have written."""
    extension("vllm")
    there = [x.to("cuda") if isinstance(x, torch.Tensor) else x for x in operands]
    getattr(getattr(torch.ops, library), name)(*there)
    return [x for x in there if isinstance(x, torch.Tensor)]


def numbers(*shape, dtype=torch.bfloat16, scale=1.0):
    return (torch.randn(*shape) * scale).to(dtype)


#===--- Activations -------------------------------------------------------===#


def gated(name, function, *options, interleaved=False):
    x = numbers(7, 512)
    out, _ = run(name, torch.empty(7, 256, dtype=x.dtype), x, *options)
    a, b = (x.float()[:, ::2], x.float()[:, 1::2]) if interleaved else x.float().chunk(2, -1)
    yield "result", out, function(a, b)


@case()
def silu_and_mul():
    yield from gated("silu_and_mul", lambda a, b: F.silu(a) * b)


@case()
def mul_and_silu():
    yield from gated("mul_and_silu", lambda a, b: a * F.silu(b))


@case()
def gelu_and_mul():
    yield from gated("gelu_and_mul", lambda a, b: F.gelu(a) * b)


@case()
def gelu_tanh_and_mul():
    yield from gated("gelu_tanh_and_mul", lambda a, b: F.gelu(a, approximate="tanh") * b)


@case()
def fatrelu_and_mul():
    yield from gated("fatrelu_and_mul", lambda a, b: torch.where(a > 0.25, a, 0) * b, 0.25)


@case()
def swigluoai_and_mul():
    def function(a, b):
        a, b = a.clamp(max=1.0), b.clamp(-1.0, 1.0)
        return (b + 1) * a * torch.sigmoid(1.702 * a)
    yield from gated("swigluoai_and_mul", function, 1.702, 1.0, interleaved=True)


@case()
def silu_and_mul_with_clamp():
    yield from gated("silu_and_mul_with_clamp", lambda a, b: F.silu(a.clamp(max=0.5)) * b.clamp(-0.5, 0.5), 0.5)


def elementwise(name, function):
    x = numbers(7, 264)
    out, _ = run(name, torch.empty_like(x), x)
    yield "result", out, function(x.float())


@case()
def gelu_new():
    yield from elementwise("gelu_new", lambda x: F.gelu(x, approximate="tanh"))


@case()
def gelu_fast():
    yield from elementwise("gelu_fast", lambda x: F.gelu(x, approximate="tanh"))


@case()
def gelu_quick():
    yield from elementwise("gelu_quick", lambda x: x * torch.sigmoid(1.702 * x))


@case()
def relu_squared():
    yield from elementwise("relu_squared", lambda x: F.relu(x) ** 2)


@case()
def silu_and_mul_quant():
    x, scale = numbers(7, 512), torch.tensor([0.01])
    out, _, _ = run("silu_and_mul_quant", torch.empty(7, 256, dtype=FP8), x, scale)
    a, b = x.float().chunk(2, -1)
    yield "result", out.float(), (F.silu(a) * b / scale).clamp(-LARGEST, LARGEST), STEP


#===--- Norms -------------------------------------------------------------===#


def normed(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()


@case()
def rms_norm():
    x, weight = numbers(9, 1024), numbers(1024)
    out, _, _ = run("rms_norm", torch.empty_like(x), x, weight, 1e-6)
    yield "result", out, normed(x.float(), weight)


@case()
def rms_norm_odd():
    x, weight = numbers(5, 333, dtype=torch.float32), numbers(333, dtype=torch.float32)
    out, _, _ = run("rms_norm", torch.empty_like(x), x, weight, 1e-6)
    yield "result", out, normed(x, weight), 1e-5


@case()
def fused_add_rms_norm():
    x, residual, weight = numbers(9, 1024), numbers(9, 1024), numbers(1024)
    out, sums, _ = run("fused_add_rms_norm", x, residual, weight, 1e-6)
    expected = x.float() + residual.float()
    yield "sum", sums, expected
    yield "result", out, normed(expected, weight)


@case()
def rms_norm_static_fp8_quant():
    x, weight, scale = numbers(9, 1024), numbers(1024), torch.tensor([0.02])
    out = run("rms_norm_static_fp8_quant", torch.empty(9, 1024, dtype=FP8), x, weight, scale, 1e-6)[0]
    yield "result", out.float(), (normed(x.float(), weight) / scale).clamp(-LARGEST, LARGEST), STEP


@case()
def fused_add_rms_norm_static_fp8_quant():
    x, residual, weight, scale = numbers(9, 1024), numbers(9, 1024), numbers(1024), torch.tensor([0.02])
    out, _, sums, _, _ = run("fused_add_rms_norm_static_fp8_quant", torch.empty(9, 1024, dtype=FP8), x, residual,
                             weight, scale, 1e-6)
    expected = x.float() + residual.float()
    yield "sum", sums, expected
    yield "result", out.float(), (normed(expected, weight) / scale).clamp(-LARGEST, LARGEST), STEP


def by_rows(name, dtype, largest, *options):
    x, weight = numbers(9, 1024), numbers(1024)
    out, _, _, scale = run(name, torch.empty(9, 1024, dtype=dtype), x, weight, torch.empty(9, 1), 1e-6, *options)
    expected = normed(x.float(), weight)
    yield "scale", scale, expected.abs().amax(-1, keepdim=True) / largest
    yield "result", out.float() * scale, expected, STEP if dtype == FP8 else 1e-2


@case()
def rms_norm_dynamic_per_token_quant():
    yield from by_rows("rms_norm_dynamic_per_token_quant", FP8, LARGEST, None, None)


@case()
def rms_norm_dynamic_per_token_quant_int8():
    yield from by_rows("rms_norm_dynamic_per_token_quant", torch.int8, 127.0, None, None)


@case()
def rms_norm_per_block_quant():
    x, weight = numbers(9, 1024), numbers(1024)
    out, _, _, scale = run("rms_norm_per_block_quant", torch.empty(9, 1024, dtype=FP8), x, weight,
                           torch.empty(9, 8), 1e-6, None, None, 128, False)
    expected = normed(x.float(), weight).view(9, 8, 128)
    yield "scale", scale, expected.abs().amax(-1) / LARGEST
    yield "result", out.float().view(9, 8, 128) * scale[..., None], expected, STEP


#===--- Quantizers --------------------------------------------------------===#


@case()
def static_scaled_fp8_quant():
    x, scale = numbers(9, 512), torch.tensor([0.01])
    out, _, _ = run("static_scaled_fp8_quant", torch.empty(9, 512, dtype=FP8), x, scale)
    yield "result", out.float(), (x.float() / scale).clamp(-LARGEST, LARGEST), STEP


@case()
def dynamic_scaled_fp8_quant():
    x = numbers(9, 512)
    out, _, scale = run("dynamic_scaled_fp8_quant", torch.empty(9, 512, dtype=FP8), x, torch.zeros(1))
    yield "scale", scale, x.float().abs().amax()[None] / LARGEST
    yield "result", out.float() * scale, x.float(), STEP


@case()
def dynamic_per_token_scaled_fp8_quant():
    x = numbers(9, 512)
    out, _, scale = run("dynamic_per_token_scaled_fp8_quant", torch.empty(9, 512, dtype=FP8), x, torch.empty(9, 1), None)
    yield "scale", scale, x.float().abs().amax(-1, keepdim=True) / LARGEST
    yield "result", out.float() * scale, x.float(), STEP


@case()
def static_scaled_int8_quant():
    x, scale = numbers(9, 512), torch.tensor([0.02])
    out, _, _ = run("static_scaled_int8_quant", torch.empty(9, 512, dtype=torch.int8), x, scale, None)
    yield "result", out, (x.float() / scale).round().clamp(-128, 127)


@case()
def dynamic_scaled_int8_quant():
    x = numbers(9, 512)
    out, _, scale = run("dynamic_scaled_int8_quant", torch.empty(9, 512, dtype=torch.int8), x, torch.empty(9, 1), None)
    yield "scale", scale, x.float().abs().amax(-1, keepdim=True) / 127
    yield "result", out * scale, x.float()


def by_groups(name, dtype, largest, *options):
    x = numbers(9, 512)
    _, out, scale = run(name, x, torch.empty(9, 512, dtype=dtype), torch.empty(9, 4), 128, 1e-10, -largest, largest,
                        *options)
    groups = x.float().view(9, 4, 128)
    yield "scale", scale, groups.abs().amax(-1) / largest
    yield "result", out.float().view(9, 4, 128) * scale[..., None], groups, STEP if dtype == FP8 else 1e-2


@case()
def per_token_group_fp8_quant():
    yield from by_groups("per_token_group_fp8_quant", FP8, LARGEST, False, False, False)


@case()
def per_token_group_quant_int8():
    yield from by_groups("per_token_group_quant_int8", torch.int8, 127.0)


def nvfp4(codes, scales, factor):
    """The numbers of packed codes and of scales for 16 of them."""
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    table = torch.cat((table, -table))
    codes = torch.stack((codes & 15, codes >> 4), -1).flatten(-2).long()
    return table[codes].view(*scales.shape, 16) * scales.float()[..., None] / factor


@case("b200")
def scaled_fp4_quant():
    x, factor = numbers(128, 256), torch.tensor([100.0])
    extension("vllm")
    codes, scales = torch.ops._C.scaled_fp4_quant(x.to("cuda"), factor.to("cuda"), False)
    scales = scales.cpu().view(torch.uint8).view(FP8).view(128, 16)
    groups = x.float().view(128, 16, 16)
    yield "scale", scales.float(), groups.abs().amax(-1) / 6 * factor, STEP
    yield "result", nvfp4(codes.cpu().view(torch.uint8), scales, factor), groups, 0.2


#===--- Attention and caches ----------------------------------------------===#


def rotated(x, cosines, sines, halves):
    a, b = x.chunk(2, -1) if halves else (x[..., ::2], x[..., 1::2])
    both = a * cosines - b * sines, b * cosines + a * sines
    return torch.cat(both, -1) if halves else torch.stack(both, -1).flatten(-2)


def rotary(halves):
    positions = torch.randint(0, 64, (11,))
    query, key, table = numbers(11, 4, 64), numbers(11, 2, 64), numbers(64, 64)
    _, q, k, _ = run("rotary_embedding", positions, query, key, 64, table, halves)
    cosines, sines = table.float()[positions][:, None].chunk(2, -1)
    yield "query", q, rotated(query.float(), cosines, sines, halves)
    yield "key", k, rotated(key.float(), cosines, sines, halves)


@case()
def rotary_embedding():
    yield from rotary(True)


@case()
def rotary_embedding_interleaved():
    yield from rotary(False)


@case()
def merge_attn_states():
    prefix, suffix = numbers(9, 4, 64), numbers(9, 4, 64)
    first, second = torch.randn(4, 9), torch.randn(4, 9)
    out, sums, *_ = run("merge_attn_states", torch.empty_like(prefix), torch.empty(4, 9), prefix, first, suffix,
                        second, None)
    expected = torch.logaddexp(first, second)
    parts = [x.float() * (sum - expected).exp().T[..., None] for x, sum in ((prefix, first), (suffix, second))]
    yield "result", out, sum(parts)
    yield "logarithm of the sums", sums, expected, 1e-5


SLOTS = torch.tensor([3, 17, 4, 31, 12, -1, 20])


def stored(cache, values, slots):
    """The cache, whose first two axes are blocks and their rows, with values of the slots that are not negative."""
    cache = cache.clone()
    for value, slot in zip(values, slots.tolist()):
        if slot >= 0:
            cache[slot // cache.shape[1], slot % cache.shape[1]] = value
    return cache


@case(tolerance=0.0)
def reshape_and_cache_flash():
    key, value, one = numbers(7, 2, 64), numbers(7, 2, 64), torch.ones(1)
    keys, values = numbers(2, 16, 2, 64), numbers(2, 16, 2, 64)
    _, _, k, v, *_ = run("reshape_and_cache_flash", key, value, keys, values, SLOTS, "auto", one, one,
                         library="_C_cache_ops")
    yield "keys", k, stored(keys, key, SLOTS)
    yield "values", v, stored(values, value, SLOTS)


@case(tolerance=0.0)
def reshape_and_cache():
    key, value, one = numbers(7, 2, 64), numbers(7, 2, 64), torch.ones(1)
    keys, values = numbers(2, 2, 8, 16, 8), numbers(2, 2, 64, 16)
    _, _, k, v, *_ = run("reshape_and_cache", key, value, keys, values, SLOTS, "auto", one, one,
                         library="_C_cache_ops")
    yield "keys", k.permute(0, 3, 1, 2, 4), stored(keys.permute(0, 3, 1, 2, 4), key.view(7, 2, 8, 8), SLOTS)
    yield "values", v.permute(0, 3, 1, 2), stored(values.permute(0, 3, 1, 2), value, SLOTS)


@case(tolerance=0.0)
def concat_and_cache_mla():
    latent, rope, cache = numbers(7, 512), numbers(7, 64), numbers(2, 16, 576)
    _, _, out, *_ = run("concat_and_cache_mla", latent, rope, cache, SLOTS, "auto", torch.ones(1),
                        library="_C_cache_ops")
    yield "cache", out, stored(cache, torch.cat((latent, rope), -1), SLOTS)


@case()
def concat_and_cache_mla_fp8():
    latent, rope, cache = numbers(7, 512), numbers(7, 64), torch.zeros(2, 16, 576, dtype=torch.uint8)
    _, _, out, *_ = run("concat_and_cache_mla", latent, rope, cache, SLOTS, "fp8", torch.tensor([0.05]),
                        library="_C_cache_ops")
    expected = stored(torch.zeros(2, 16, 576), torch.cat((latent, rope), -1).float(), SLOTS)
    yield "cache", out.cpu().view(FP8).float() * 0.05, expected, STEP


@case(tolerance=0.0)
def concat_mla_q():
    latent, rope = numbers(5, 4, 512), numbers(5, 4, 64)
    *_, out = run("concat_mla_q", latent, rope, torch.empty(5, 4, 576, dtype=latent.dtype), library="_C_cache_ops")
    yield "query", out, torch.cat((latent, rope), -1)


def gathered(cache, table, lengths):
    return torch.cat([torch.cat([cache[block] for block in blocks])[:length]
                      for blocks, length in zip(table.tolist(), lengths)])


TABLE, LENGTHS = torch.tensor([[2, 0], [1, 3]], dtype=torch.int32), (20, 9)
STARTS = torch.tensor([0, 20, 29], dtype=torch.int32)


@case(tolerance=0.0)
def cp_gather_cache():
    cache = numbers(4, 16, 576)
    _, out, *_ = run("cp_gather_cache", cache, torch.empty(29, 576, dtype=cache.dtype), TABLE, STARTS, 2, None,
                     library="_C_cache_ops")
    yield "rows", out, gathered(cache, TABLE, LENGTHS)


@case(tolerance=0.0)
def gather_and_maybe_dequant_cache():
    cache, owners = numbers(4, 16, 576), torch.tensor([0] * 20 + [1] * 9, dtype=torch.int32)
    _, out, *_ = run("gather_and_maybe_dequant_cache", cache, torch.empty(29, 576, dtype=cache.dtype), TABLE, STARTS,
                     owners, 29, "auto", torch.ones(1), None, library="_C_cache_ops")
    yield "rows", out, gathered(cache, TABLE, LENGTHS)


@case()
def convert_fp8():
    x = numbers(4, 256)
    out, _ = run("convert_fp8", torch.zeros(4, 256, dtype=torch.uint8), x, 0.05, "fp8", library="_C_cache_ops")
    yield "result", out.cpu().view(FP8).float() * 0.05, x.float(), STEP


@case()
def indexer_k_quant_and_cache():
    x, slots = numbers(7, 128), torch.tensor([3, 17, 4, 31, 12, 8, 20])
    _, cache, _ = run("indexer_k_quant_and_cache", x, torch.zeros(2, 16, 132, dtype=torch.uint8), slots, 128, "ue8m0",
                      library="_C_cache_ops")
    blocks = cache.cpu().view(2, 16 * 132)
    codes = blocks[:, :16 * 128].reshape(32, 128).view(FP8).float()[slots]
    scales = blocks[:, 16 * 128:].reshape(32, 4).view(torch.float32)[slots]
    yield "result", codes * scales, x.float(), STEP
    yield "scale", scales, (x.float().abs().amax(-1, keepdim=True) / LARGEST).log2().ceil().exp2()
