"""FlashMLA's attention over latent caches: dense and sparse, against attention in float32."""
import torch

from cases import case, tvm_module

SOURCE = "flashmla"
DEFAULTS = {"devices": ("h200",), "policies": ("eager", "lazy"), "tolerance": 1e-2, "limit": 600}
#: Shared library of the operators, which TVM FFI calls: sources below the checkout, and ours.
EXTENSION = {
    "90": ("smxx/decode/combine/combine.cu", "smxx/decode/get_decoding_sched_meta/get_decoding_sched_meta.cu",
           "{programs}/flashmla.cu"),
    "90a": ("sm90/decode/dense/instantiations/bf16.cu", "sm90/decode/sparse_fp8/instantiations/v32_persistent_h64.cu",
            "sm90/prefill/sparse/instantiations/phase1_k576.cu"),
    "100f": ("sm100/decode/head64/instantiations/v32.cu", "sm100/prefill/sparse/fwd/head128/instantiations/phase1_k576.cu",
             "sm100/prefill/sparse/fwd/head64/instantiations/phase1_k576.cu"),
    "folder": "{flashmla}/csrc",
    "flags": ("-I{flashmla}/csrc", "-I{flashmla}/csrc/sm90", "-I{flashmla}/csrc/kerutils/include", "-I{cutlass}/include",
              "-I{cutlass}/tools/util/include", "-I{packages}/tvm_ffi/include", "-DNDEBUG", "-D_USE_MATH_DEFINES",
              "-DFLASH_MLA_DISABLE_FP16", "--use_fast_math"),
}
WIDTH, VALUES, PAGE, PARTS = 576, 512, 64, 4


def attention(q, keys, causal=False):
    """(result, logarithm of the sums) of q [queries, heads, 576] over keys [keys, 576]; the values are their first 512."""
    scores = torch.einsum("qhd,kd->qhk", q.float(), keys.float()) * WIDTH ** -0.5
    if causal:
        mask = torch.ones(len(q), len(keys)).tril(len(keys) - len(q)).bool()
        scores = scores.masked_fill(~mask[:, None], -torch.inf)
    return torch.softmax(scores, -1) @ keys[:, :VALUES].float(), torch.logsumexp(scores, -1)


def numbers(*shape):
    return torch.randn(*shape).bfloat16()


def room(batch, queries, heads):
    """Tensors of a decode step: its plan, both results, and their parts."""
    kinds = [((PARTS, 8), torch.int32), ((batch + 1,), torch.int32), ((batch, queries, heads), torch.float32),
             ((batch, queries, heads, VALUES), torch.bfloat16), ((batch + PARTS, queries, heads), torch.float32),
             ((batch + PARTS, queries, heads, VALUES), torch.float32)]
    return [torch.zeros(shape, dtype=kind).to("cuda") for shape, kind in kinds]


def compared(out, lse, expected):
    yield "result", out, torch.stack([one for one, _ in expected])
    yield "logarithm of the sums", lse, torch.stack([one for _, one in expected])


def decoded(lengths, queries, heads, causal):
    pages = -(-max(lengths) // PAGE)
    cache, q = numbers(pages * len(lengths), PAGE, 1, WIDTH), numbers(len(lengths), queries, heads, WIDTH)
    table = torch.randperm(len(cache)).int().view(len(lengths), pages)
    places = room(len(lengths), queries, heads)
    operands = q.view(len(lengths), queries * heads, 1, WIDTH), cache, torch.tensor(lengths).int(), table
    tvm_module("flashmla")["dense_decode"](*(x.to("cuda") for x in operands), *places, causal)
    expected = [attention(q[i], cache[table[i].long()].flatten(0, 2)[:length], causal) for i, length in enumerate(lengths)]
    yield from compared(places[3], places[2], expected)


@case(verdict="lane-race missing-grid-wait overwritten-while-read shared-race", reason="docs/reference/found-bugs.md")
def dense_decode():
    yield from decoded([100, 333], 1, 64, False)


@case(verdict="lane-race missing-grid-wait overwritten-while-read shared-race", reason="docs/reference/found-bugs.md")
def dense_decode_causal():
    yield from decoded([130, 64], 2, 64, True)


def chosen(count, top):
    """Indices of keys, of which some are none."""
    found = torch.randperm(count)[:top].int()
    found[top - 5:] = -1
    return found


def stored(cache):
    """[pages, 64, 576] as 512 numbers in FP8, four scales, and 64 numbers in bfloat16; and what it reads as."""
    values, rope = cache[..., :VALUES].float().unflatten(-1, (4, 128)), cache[..., VALUES:].bfloat16()
    scales = (values.abs().amax(-1, keepdim=True) / 448).log2().ceil().exp2()
    codes = (values / scales).to(torch.float8_e4m3fn)
    parts = codes.flatten(-2), scales.squeeze(-1), rope
    read = torch.cat(((codes.float() * scales).flatten(-2), rope.float()), -1)
    return torch.cat([part.contiguous().view(torch.uint8) for part in parts], -1)[:, :, None], read


def decoded_of_some(blackwell):
    cache, read = stored(torch.randn(6, PAGE, WIDTH))
    q, top = numbers(2, 1, 64, WIDTH), 128
    indices = torch.stack([chosen(6 * PAGE, top) for _ in q])[:, None]
    places = room(2, 1, 64)
    tvm_module("flashmla")["sparse_decode"](*(x.to("cuda") for x in (q, cache, indices)), *places, blackwell)
    expected = [attention(q[i], read.flatten(0, 1)[indices[i, 0, :top - 5].long()]) for i in range(2)]
    yield from compared(places[3], places[2], expected)


@case()
def sparse_decode_fp8():
    yield from decoded_of_some(False)


@case("b200", verdict="shared-race wrong", reason="docs/reference/found-bugs.md")
def sparse_decode_fp8_of_blackwell():
    yield from decoded_of_some(True)


def filled(heads, blackwell):
    top = 256
    q, keys = numbers(3, heads, WIDTH), numbers(400, 1, WIDTH)
    indices = torch.stack([chosen(len(keys), top) for _ in q])[:, None]
    out, most, lse = torch.empty(3, heads, VALUES).bfloat16(), torch.empty(3, heads), torch.empty(3, heads)
    there = [x.to("cuda") for x in (q, keys, indices, out, most, lse)]
    tvm_module("flashmla")["sparse_prefill"](*there, blackwell)
    expected = [attention(q[i:i + 1], keys[indices[i, 0, :top - 5].long(), 0]) for i in range(3)]
    yield "result", there[3], torch.cat([one for one, _ in expected])
    yield "logarithm of the sums", there[5], torch.cat([one for _, one in expected])


@case()
def sparse_prefill():
    yield from filled(64, False)


@case("b200")
def sparse_prefill_of_64_heads():
    yield from filled(64, True)


@case("b200")
def sparse_prefill_of_128_heads():
    yield from filled(128, True)
