"""Wrong calls of norms, rotations, routing, caches and attention: cases of data/bad_input.md."""

from __future__ import annotations

import collections.abc
from typing import Any, NamedTuple

import fp4.torch as ft
import torch
from fp4.compat import flash_attn, flash_mla, flashinfer, vllm

Function = collections.abc.Callable[[], Any]
E4M3, E8M0 = torch.float8_e4m3fn, torch.float8_e8m0fnu


class Case(NamedTuple):
    call: str
    wrong: str
    function: Function


def matrix(*shape: int) -> Any:
    torch.manual_seed(shape[0])
    return torch.randn(*shape).bfloat16()


def numbers(*values: int) -> Any:
    return torch.tensor(values, dtype=torch.int32)


def checked(function: Function) -> Function:
    def run() -> None:
        with ft.checked():
            function()

    return run


def row_cases() -> list[Case]:
    x, w, amax = matrix(4, 64), torch.ones(64), torch.tensor(3.0)
    norm, gate, loss = ("`fp4.torch.rms_norm_quantize`", "`fp4.torch.silu_and_mul_quantize`",
                        "`fp4.torch.cross_entropy`")

    def call(**options: Any) -> Function:
        return lambda: ft.rms_norm_quantize(**{"x": x, "weight": w, "amax": amax, **options})

    return [
        Case(norm, "dtype", call(x=x.double())),
        Case(norm, "no columns", call(x=x[:, :0])),
        Case(norm, "K", call(x=matrix(4, 48), weight=None, amax=None, format="mxfp4")),
        Case(norm, "a weight of other columns", call(weight=w[:63])),
        Case(norm, "stride: a weight with gaps", call(weight=torch.ones(128)[::2])),
        Case(norm, "a residual of other rows", call(residual=x[:3])),
        Case(norm, "eps that is NaN", call(eps=float("nan"))),
        Case(norm, "order", call(order="vllm")),
        Case(norm, "format", call(format="int8")),
        Case(norm, "no amax", call(amax=None)),
        Case(norm, "an amax of other rows", call(amax=torch.ones(3))),
        Case(norm, "an amax that the format lacks", call(format="mxfp4")),
        Case(norm, "per_row that the format lacks", call(format="mxfp4", amax=None, per_row=True)),
        Case(norm, "rounding", call(format="fp8_row", amax=None, rounding="stochastic")),
        Case(norm, "device", call(amax=amax.to("meta"))),
        Case("`fp4.torch.layer_norm_quantize`", "a bias of other columns",
             lambda: ft.layer_norm_quantize(x, w, w[:2], format="mxfp4")),
        Case(gate, "an odd number of columns",
             lambda: ft.silu_and_mul_quantize(matrix(4, 127), amax=amax)),
        Case(gate, "activation",
             lambda: ft.silu_and_mul_quantize(matrix(4, 128), amax=amax, activation="relu")),
        Case(loss, "labels of other rows",
             lambda: ft.cross_entropy(x, torch.zeros(3, dtype=torch.int64))),
        Case(loss, "a label that is no column, in checked()",
             checked(lambda: ft.cross_entropy(x, torch.tensor([0, 1, 2, 64])))),
        *rotation_cases(),
        *routing_cases(x, amax),
    ]


def rotation_cases() -> list[Case]:
    heads, cos_sin, at = matrix(4, 2, 64), torch.randn(100, 64), torch.arange(4)
    name = "`fp4.torch.rotate`"
    return [
        Case(name, "a matrix", lambda: ft.rotate(heads.flatten(1), cos_sin, at)),
        Case(name, "more angles than columns",
             lambda: ft.rotate(heads, torch.randn(100, 66), at)),
        Case(name, "an odd number of angles",
             lambda: ft.rotate(heads, cos_sin[:, :31].contiguous(), at)),
        Case(name, "positions of int32", lambda: ft.rotate(heads, cos_sin, at.int())),
        Case(name, "order", lambda: ft.rotate(heads, cos_sin, at, order="vllm")),
        Case(name, "a position that is no row, in checked()",
             checked(lambda: ft.rotate(heads, cos_sin, at + 97))),
    ]


def routing_cases(x: Any, amax: Any) -> list[Case]:
    route, permute, combine = ("`fp4.torch.route`", "`fp4.torch.permute_tokens`",
                               "`fp4.torch.combine`")
    ids, rows = numbers(0, 1, 2, 9).view(2, 2), torch.tensor([[0, 1], [2, 4]])
    return [
        Case(route, "k", lambda: ft.route(x, 17)),
        Case(route, "experts", lambda: ft.route(matrix(4, 513), 2)),
        Case(route, "groups", lambda: ft.route(matrix(4, 24), 2, num_groups=4, top_groups=2)),
        Case(route, "too few groups",
             lambda: ft.route(matrix(4, 32), 8, num_groups=8, top_groups=1)),
        Case(route, "scores", lambda: ft.route(x, 2, scores="tanh")),
        Case(route, "a bias of other experts", lambda: ft.route(x, 2, bias=torch.zeros(3))),
        Case(permute, "ids of int64", lambda: ft.permute_tokens(ids.long(), 16)),
        Case(permute, "experts", lambda: ft.permute_tokens(ids, 0)),
        Case(permute, "an id that is no expert, in checked()",
             checked(lambda: ft.permute_tokens(ids, 8))),
        Case("`fp4.torch.gather_quantize`", "rows of int32",
             lambda: ft.gather_quantize(x, numbers(0, 1), amax=amax)),
        Case("`fp4.torch.gather_quantize`", "a row that is none, in checked()",
             checked(lambda: ft.gather_quantize(x, rows[1], amax=amax))),
        Case(combine, "one row for a token", lambda: ft.combine(x, rows[:, :1], torch.ones(2, 1))),
        Case(combine, "weights of bfloat16",
             lambda: ft.combine(x, rows, torch.ones(2, 2).bfloat16())),
        Case(combine, "a row that is none, in checked()",
             checked(lambda: ft.combine(x, rows, torch.ones(2, 2)))),
    ]


def attention_cases() -> list[Case]:
    q = matrix(1, 4, 2, 64)
    name = "`fp4.torch.attention`"

    def call(*tensors: Any, **options: Any) -> Function:
        return lambda: ft.attention(*(tensors or (q, q, q)), **options)

    wide, short = matrix(1, 4, 2, 80), matrix(1, 3, 2, 64)
    return [
        Case(name, "dtype", call(q.float(), q.float(), q.float())),
        Case(name, "dtype: of keys", call(q, q.half(), q.half())),
        Case(name, "dimensions", call(q[0], q[0], q[0])),
        Case(name, "stride: a sparse tensor", call(q.to_sparse(), q, q)),
        Case(name, "elements of a head that have no kernel", call(wide, wide, wide)),
        Case(name, "elements of a head of keys", call(q, wide, wide)),
        Case(name, "heads", call(matrix(1, 4, 3, 64), q, q)),
        Case(name, "values of other keys", call(q, q, short)),
        Case(name, "a window without causality", call(window=8)),
        Case(name, "a window of no keys", call(window=0, causal=True)),
        Case(name, "scale", call(scale=0.0)),
        Case(name, "softcap that is NaN", call(softcap=float("nan"))),
        Case(name, "sinks", call(sinks=torch.zeros(3))),
        Case(name, "slopes", call(alibi_slopes=torch.zeros(2).half())),
        Case(name, "layout", call(kv_layout="HND")),
        Case(name, "latent", call(q, q, None)),
        Case(name, "offsets of queries alone", call(q[0], q[0], q[0], cu_seqlens_q=numbers(0, 4))),
        Case(name, "offsets that exceed the tokens", call(
            q[0], q[0], q[0], cu_seqlens_q=numbers(0, 4), cu_seqlens_k=numbers(0, 5))),
        Case(name, "a gradient with slopes", lambda: ft.attention(
            q.clone().requires_grad_(), q, q, alibi_slopes=torch.zeros(2)).sum().backward()),
        Case("`fp4.torch.scaled_dot_product_attention`", "a mask", lambda:
             ft.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(2, 2).bool())),
        Case("`fp4.torch.attention_scaled`", "few tokens with tiled scales",
             lambda: ft.attention_scaled(q, q, q, format="mxfp4")),
        *code_cases(q, name),
        *cache_cases(q, name),
    ]


def code_cases(q: Any, name: str) -> list[Case]:
    codes = torch.zeros(1, 32, 2, 32, dtype=torch.uint8)
    scales, others = torch.ones(1, 32, 2, 4).to(E4M3), torch.ones(1, 32, 2, 2).to(E8M0)
    byte, one = torch.ones(1, 4, 2, 64).to(E4M3), torch.ones(1)

    def call(**options: Any) -> Function:
        return lambda: ft.attention(q, codes, codes, **{
            "key_scales": scales, "value_scales": scales, **options})

    return [
        Case(name, "codes without scales", call(key_scales=None, value_scales=None)),
        Case(name, "scale convention: blocks of 32", call(key_scales=scales[..., :2])),
        Case(name, "scale convention: two formats", call(value_scales=others)),
        Case(name, "scale convention: float32", call(key_scales=scales.float())),
        Case(name, "scale convention: a factor for each token", call(
            key_factors=torch.ones(1, 32, 2), value_factors=one)),
        Case(name, "a factor of zero beside queries of 8 bits, in checked()", checked(
            lambda: ft.attention(byte, byte, byte, key_factors=one, value_factors=one * 0))),
    ]


def cache_cases(q: Any, name: str) -> list[Case]:
    cache, pages = matrix(3, 16, 2, 64), numbers(0, 2).view(1, 2)
    odd, key, slots = matrix(3, 20, 2, 64), matrix(4, 2, 64), torch.tensor([0, 5, 17, 40])
    write = "`fp4.torch.reshape_and_cache`"

    def call(keys: Any = cache, **options: Any) -> Function:
        return lambda: ft.attention(q, keys, keys, **{
            "lengths": numbers(20), "pages": pages, **options})

    def stored(to: Any = cache, slots: Any = slots, **options: Any) -> Function:
        return lambda: ft.reshape_and_cache(key, key, slots, to, to.clone(), **options)

    return [
        Case(name, "pages without lengths", call(lengths=None)),
        Case(name, "pages of int64", call(pages=pages.long())),
        Case(name, "pages of 20 tokens", call(odd)),
        Case(name, "a length that exceeds the pages, in checked()",
             checked(call(lengths=numbers(33)))),
        Case(name, "a page that does not exist, in checked()", checked(call(pages=pages + 1))),
        Case("`fp4.torch.PagedCache`", "pages of 12 tokens", lambda: ft.PagedCache(
            1, 8, key_heads=1, elements=64, page_tokens=12)),
        Case("`fp4.torch.PagedCache`", "format", lambda: ft.PagedCache(
            1, 8, key_heads=1, elements=64, format="int8")),
        Case("`PagedCache.append`", "tokens without room", lambda: ft.PagedCache(
            1, 8, key_heads=2, elements=64, page_tokens=8).append(*[matrix(1, 9, 2, 64)] * 2)),
        Case(write, "slots of int32", stored(slots=slots.int())),
        Case(write, "slots of other tokens", stored(slots=slots[:2])),
        Case(write, "a slot that is none, in checked()", checked(stored(slots=slots + 8))),
        Case(write, "a slot twice, in checked()", checked(stored(slots=slots * 0))),
        Case(write, "heads of the cache", stored(matrix(3, 16, 3, 64))),
        Case(write, "stride of the cache", stored(matrix(3, 16, 2, 128)[..., :64].flip(0)[::2])),
        Case(write, "dtype of the cache", stored(cache.half())),
        Case(write, "no factor", stored(cache.to(E4M3), format="fp8")),
    ]


def compat_cases() -> list[Case]:
    q, cache = matrix(2, 4, 64).half(), matrix(8, 2, 16, 2, 64).half()
    decode, prefill = (f"`fp4.compat.flashinfer.Batch{name}WithPagedKVCacheWrapper`"
                       for name in ("Decode", "Prefill"))

    def call(query: Any = q, pages: Any = cache, last: Any = None, indices: Any = None,
             size: int = 16, heads: int = 4, **options: Any) -> Function:
        def run() -> None:
            wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
                torch.zeros(64, dtype=torch.uint8), "NHD")
            wrapper.plan(numbers(0, 2, 4), numbers(1, 2, 3, 4) if indices is None else indices,
                         numbers(4, 16) if last is None else last, heads, 2, 64, size, **options)
            wrapper.run(query, pages)

        return run

    x, out = matrix(4, 64), torch.empty(4, 64).to(E4M3)
    ids, weights = torch.empty(4, 2, dtype=torch.int32), torch.empty(3, 2)
    return [
        Case(decode, "dtype: not as planned", call(q.bfloat16())),
        Case(decode, "a page that is more than full", call(last=numbers(17, 16))),
        Case(decode, "too few pages", call(indices=numbers(1, 2))),
        Case(decode, "a page that does not exist", call(indices=numbers(1, 2, 3, 99))),
        Case(decode, "tokens of a page", call(size=32)),
        Case(decode, "heads", call(heads=3)),
        Case(decode, "positions", call(pos_encoding_mode="ROPE_LLAMA")),
        Case(prefill, "run before plan", lambda: flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            torch.zeros(64, dtype=torch.uint8), "NHD").run(q, cache)),
        Case("`fp4.compat.flash_attn.flash_attn_func`", "a window behind the query",
             lambda: flash_attn.flash_attn_func(*[q[None]] * 3, window_size=(3, 3))),
        Case("`fp4.compat.flash_attn.flash_attn_func`", "dropout",
             lambda: flash_attn.flash_attn_func(*[q[None]] * 3, dropout_p=0.1)),
        Case("`fp4.compat.flash_mla.flash_mla_with_kvcache`", "elements of values",
             lambda: flash_mla.flash_mla_with_kvcache(
                 matrix(1, 1, 16, 576), matrix(4, 64, 1, 576), numbers(0, 1).view(1, 2),
                 numbers(100), 500, None, None, causal=True)),
        Case("`fp4.compat.vllm.reshape_and_cache_flash`", "format", lambda:
             vllm.reshape_and_cache_flash(x.view(4, 1, 64), x.view(4, 1, 64), cache[:, 0],
                                          cache[:, 1], torch.arange(4), "fp8_e5m2",
                                          torch.ones(1), torch.ones(1))),
        Case("`fp4.compat.vllm.rms_norm_static_fp8_quant`", "columns of the result", lambda:
             vllm.rms_norm_static_fp8_quant(out[:, :32].contiguous(), x, torch.ones(64).bfloat16(),
                                            torch.ones(1), 1e-6)),
        Case("`fp4.compat.vllm.topk_softmax`", "rows of the result",
             lambda: vllm.topk_softmax(weights, ids, ids.clone(), x.float())),
    ]
