"""Attention of fp4.torch: as plain torch computes it in f32, within the rounding of bf16, and
judged by its reference."""

import unittest
from typing import Any

import fp4
from programs import torch

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import execution


def heads(*shape: int, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.randn(*shape).bfloat16()


def shared(query: Any, key: Any, value: Any) -> Any:
    """Queries, keys and values in f32, [B, Hq, S, D] each."""
    q, k, v = (x.float().transpose(1, 2) for x in (query, key, value))
    return q, *(x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))


def plain(query: Any, key: Any, value: Any, causal: bool, scale: "float | None") -> Any:
    """Attention in f32, with masks that end with the last key."""
    q, k, v = shared(query, key, value)
    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
    if causal:
        mask = mask.tril(k.shape[2] - q.shape[2])
    result = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    return result.transpose(1, 2)


def with_sinks(query: Any, key: Any, value: Any, sinks: Any, window: "int | None" = None,
               softcap: "float | None" = None) -> "tuple[Any, Any]":
    """Causal attention in f32 as transformers computes it in gpt-oss: sinks are a column of scores,
    which is dropped behind the softmax. And the logarithm of the sum of each row."""
    q, k, v = shared(query, key, value)
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    seen = torch.ones(scores.shape[2:], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
    if window is not None:
        seen = seen.triu(k.shape[2] - q.shape[2] - window + 1)
    scores = scores.masked_fill(~seen, -torch.inf)
    column = sinks.float().view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    scores = torch.cat([scores, column], -1)
    result = scores.softmax(-1)[..., :-1] @ v
    return result.transpose(1, 2), scores.logsumexp(-1).transpose(1, 2)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Attention(unittest.TestCase):
    def check(self, query: Any, key: Any, value: Any, causal: bool = False,
              scale: "float | None" = None) -> None:
        device = fp4.Device("sim", target="sm_90a", check="strict")
        with ft.simulator(device, verify=True):
            got = ft.attention(query, key, value, causal=causal, scale=scale)
        self.assertEqual(got.dtype, query.dtype)
        expected = plain(query, key, value, causal, scale)
        torch.testing.assert_close(got.float(), expected, rtol=2e-2, atol=1e-2)

    def test_equals_plain_torch(self) -> None:
        self.check(heads(1, 33, 4, 64), heads(1, 70, 2, 64, seed=1), heads(1, 70, 2, 128, seed=2))
        self.check(heads(2, 20, 1, 64), heads(2, 32, 1, 64, seed=1), heads(2, 32, 1, 64, seed=2),
                   causal=True, scale=0.5)

    def test_strides(self) -> None:
        qkv = heads(1, 16, 3, 2, 64)
        self.check(*qkv.unbind(2), causal=True)

    def test_lengths(self) -> None:
        """The keys of each sequence end with its length, and its last query sees all of them."""
        query, key, value = heads(3, 2, 4, 64), heads(3, 50, 2, 64, seed=1), heads(3, 50, 2, 64)
        lengths = torch.tensor([50, 1, 33], dtype=torch.int32)
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            got = ft.attention(query, key, value, causal=True, lengths=lengths)
        for i, length in enumerate(lengths.tolist()):
            one = [x[i:i + 1, :length] for x in (key, value)]
            expected = plain(query[i:i + 1], *one, True, None).nan_to_num()
            torch.testing.assert_close(got[i:i + 1].float(), expected, rtol=2e-2, atol=1e-2)

    def test_paged_cache(self) -> None:
        """Tokens that are appended in any portions are those that queries see."""
        cache = ft.PagedCache(2, 40, key_heads=2, elements=64, page_tokens=16)
        cache.pages = cache.pages.flatten().flip(0).view(2, -1)
        keys, values = heads(2, 29, 2, 64, seed=1), heads(2, 29, 2, 64, seed=2)
        for part in (slice(0, 15), slice(15, 28), slice(28, 29)):
            cache.append(keys[:, part], values[:, part])
        self.assertEqual(cache.lengths.tolist(), [29, 29])
        key, value = cache.gather()
        self.assertEqual(list(key.shape), [2, 48, 2, 64])
        self.assertTrue(torch.equal(key[:, :29], keys) and torch.equal(value[:, :29], values))
        query = heads(2, 3, 6, 64)
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            got = cache.attention(query)
        torch.testing.assert_close(got.float(), plain(query, keys, values, True, None), rtol=2e-2,
                                   atol=1e-2)

    def test_scores_of_gpt_oss(self) -> None:
        """Prefill, where eight heads of a group are rows of a tile, and a step of decoding over the
        same keys in pages: with sinks, and windows on every other layer."""
        sinks = torch.randn(16) * 2
        keys, values = heads(2, 150, 2, 64, seed=1), heads(2, 150, 2, 64, seed=2)
        query = heads(2, 150, 16, 64)
        cache = ft.PagedCache(2, 160, key_heads=2, elements=64, page_tokens=16)
        cache.append(keys, values)
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            for window in (128, 20, None):
                with self.subTest(window=window):
                    expected, logs = with_sinks(query, keys, values, sinks, window)
                    got, lse = ft.attention(query, keys, values, causal=True, window=window,
                                            sinks=sinks, return_lse=True)
                    torch.testing.assert_close(got.float(), expected, rtol=2e-2, atol=1e-2)
                    torch.testing.assert_close(lse, logs, rtol=1e-5, atol=1e-5)
                    got = cache.attention(query[:, -1:], window=window, sinks=sinks)
                    torch.testing.assert_close(got.float(), expected[:, -1:], rtol=2e-2, atol=1e-2)

    def test_scores_of_gemma(self) -> None:
        """A softcap limits scores, here those of queries that are 20 times as large."""
        query, keys = heads(1, 40, 4, 64) * 20, heads(1, 40, 2, 64, seed=1)
        values, none = heads(1, 40, 2, 64, seed=2), torch.full((4,), -torch.inf)
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            got, lse = ft.attention(query, keys, values, causal=True, softcap=5.0, window=30,
                                    return_lse=True)
        expected, logs = with_sinks(query, keys, values, none, window=30, softcap=5.0)
        torch.testing.assert_close(got.float(), expected, rtol=2e-2, atol=1e-2)
        torch.testing.assert_close(lse, logs, rtol=1e-5, atol=1e-5)

    def test_logarithms_without_keys(self) -> None:
        """A query that sees no key gives zeros, and minus infinity or its sink."""
        query, key = heads(2, 1, 2, 64), heads(2, 16, 1, 64, seed=1)
        lengths, sinks = torch.tensor([16, 0], dtype=torch.int32), torch.tensor([1.0, -2.0])
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            got, lse = ft.attention(query, key, key, lengths=lengths, return_lse=True)
            self.assertTrue((got[1] == 0).all() and (lse[1] == -torch.inf).all())
            self.assertTrue(lse[0].isfinite().all())
            got, lse = ft.attention(query, key, key, lengths=lengths, sinks=sinks, return_lse=True)
        self.assertTrue((got[1] == 0).all())
        torch.testing.assert_close(lse[1, 0], sinks)

    def test_refused_scores(self) -> None:
        q, sinks = heads(1, 4, 2, 64), torch.zeros(2)
        for given, text in (({"window": 8}, "'window' must come with causal=True"),
                            ({"window": 0, "causal": True}, "'window' must be a positive number"),
                            ({"sinks": sinks.half()}, r"'sinks' must be float32 of shape \[2\]"),
                            ({"sinks": sinks[:1]}, r"'sinks' must be float32 of shape \[2\]")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.attention(q, q, q, **given)
        for given, text in (({"softcap": 0.0}, "'softcap' must be positive, but got 0.0"),
                            ({"scale": -1.0}, "'scale' must be positive, but got -1.0"),
                            ({"scale": float("nan")}, "'scale' must be a number that f32 has"),
                            ({"window": 2**70, "causal": True}, "must be a positive number of")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.attention(q, q, q, **given)

    def test_quantized_cache(self) -> None:
        """Attention over codes is attention over the numbers that they stand for."""
        for format, dtype in (("nvfp4", torch.bfloat16), ("nvfp4", torch.float16),
                              ("mxfp4", torch.bfloat16), ("mxfp8_e4m3", torch.bfloat16),
                              ("fp8", torch.float16)):
            with self.subTest(format=format, dtype=dtype), \
                    ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
                cache = ft.PagedCache(2, 40, key_heads=2, elements=64, value_elements=128,
                                      page_tokens=16, dtype=dtype, format=format)
                if cache.key_factors is not None:
                    cache.key_factors.fill_(0.25)
                keys, values = heads(2, 21, 2, 64, seed=1), heads(2, 21, 2, 128, seed=2)
                for part in (slice(0, 15), slice(15, 21)):
                    cache.append(keys[:, part].to(dtype), values[:, part].to(dtype))
                key, value = (x[:, :21] for x in cache.gather())
                for got, given in ((key, keys), (value, values)):
                    self.assertLess((got.float() - given.float()).norm() / given.float().norm(),
                                    0.2 if "fp4" in format else 0.04)
                query = heads(2, 3, 4, 64).to(dtype)
                got = cache.attention(query)
                torch.testing.assert_close(got.float(), plain(query, key, value, True, None),
                                           rtol=2e-2, atol=1e-2)

    def test_a_cache_beside_another_default_dtype(self) -> None:
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.bfloat16)
        try:
            cache = ft.PagedCache(1, 16, key_heads=1, elements=64, page_tokens=16, format="nvfp4")
        finally:
            torch.set_default_dtype(before)
        same = ft.PagedCache(1, 16, key_heads=1, elements=64, page_tokens=16, format="nvfp4")
        key = torch.randn(1, 3, 1, 64).bfloat16()
        for one in (cache, same):
            one.append(key, key)
        self.assertTrue(torch.equal(cache.gather()[0], same.gather()[0]))

    def test_refused_codes(self) -> None:
        q = heads(1, 1, 2, 64)
        codes, scales = torch.zeros(1, 16, 1, 32, dtype=torch.uint8), torch.ones(1, 16, 1, 4)
        e4m3 = scales.to(torch.float8_e4m3fn)
        factor = torch.ones(1)
        for keys, more, text in (
                ((codes, heads(1, 16, 1, 64)), {}, "'value' must be of the dtype of 'key', uint8"),
                ((codes, codes), {}, "'key_scales' must be given for codes of 4 bits"),
                ((codes, codes), {"key_scales": e4m3}, "must come together, but got one"),
                ((codes, codes), {"key_scales": scales, "value_scales": e4m3},
                 "'key_scales' must be float8_e4m3fn or float8_e8m0fnu"),
                ((codes, codes), {"key_scales": e4m3, "value_scales": e4m3[..., :2]},
                 r"'value_scales' must be of shape \[1, 16, 1, 4\]"),
                ((codes, codes), {"key_scales": e4m3, "value_scales": torch.ones(1, 16, 1, 2).to(
                    torch.float8_e8m0fnu)}, "'value_scales' must be of the dtype of 'key_scales'"),
                ((q, q), {"key_factors": factor, "value_factors": factor},
                 "'key_factors' must come with codes"),
                ((codes, codes), {"key_scales": e4m3, "value_scales": e4m3,
                                  "key_factors": factor, "value_factors": factor.half()},
                 r"'value_factors' must be float32 of shape \[1\], but got")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.attention(q, *keys, **more)
        for options, text in (({"format": "int4"}, "'format' must be nvfp4, mxfp4, mxfp8"),
                              ({"dtype": torch.float32}, "'dtype' must be bfloat16 or float16"),
                              ({"page_tokens": 16.0}, "'page_tokens' must be a positive int"),
                              ({"format": "mxfp4", "dtype": torch.float16}, "come with bfloat16"),
                              ({"format": "fp8", "page_tokens": 8}, "must be a multiple of 16")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.PagedCache(1, 16, key_heads=1, elements=64, **options)

    def test_scaled_dot_product_attention(self) -> None:
        query, key, value = heads(1, 4, 9, 64), heads(1, 2, 9, 64, seed=1), heads(1, 2, 9, 64)
        got = ft.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        expected = torch.nn.functional.scaled_dot_product_attention(
            query.float(), key.float(), value.float(), is_causal=True, enable_gqa=True)
        torch.testing.assert_close(got.float(), expected, rtol=2e-2, atol=1e-2)
        for change, text in (({"dropout_p": 0.5}, "'dropout_p' must be left out"),
                             ({"enable_gqa": False}, "must have the 4 heads of 'query'"),
                             ({"attn_mask": torch.ones(9, 9, dtype=torch.bool)}, "'attn_mask' and"),
                             ({"query": query.float()}, "'query' must be bfloat16, float16"),
                             ({"key": key[0]}, "'key' must be batches x heads x tokens x elements,"
                              r".*\n.*x\.unsqueeze\(0\)")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.scaled_dot_product_attention(**{"query": query, "key": key, "value": value,
                                                   "is_causal": True, "enable_gqa": True,
                                                   **change})

    def test_heads_in_front_of_tokens(self) -> None:
        """Contiguous tensors are sequences of one head each, and have the bits of transposed views,
        unless a causal mask has fewer queries than keys."""
        device = fp4.Device("sim", target="sm_90a", check="strict")
        for query_heads, tokens, causal, is_moved in ((2, 70, True, True), (2, 9, False, True),
                                                      (4, 33, False, True), (4, 70, True, True),
                                                      (4, 60, True, False)):
            query = heads(2, query_heads, tokens, 64)
            key, value = heads(2, 2, 70, 64, seed=1), heads(2, 2, 70, 64, seed=2)
            views = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (query, key, value)]
            options = {"is_causal": causal, "enable_gqa": True}
            with self.subTest(heads=query_heads, causal=causal), ft.simulator(device, verify=True):
                with execution.collecting() as programs:
                    ft.scaled_dot_product_attention(query, key, value, **options)
                (_, (what,), _, _), = programs
                lists = 2 * query_heads if causal else 4
                self.assertEqual(what.query, (2, tokens, query_heads, 64) if not is_moved else
                                 (lists, 2 * query_heads // lists * tokens, 1, 64))
                got = ft.scaled_dot_product_attention(query, key, value, **options)
                expected = ft.scaled_dot_product_attention(*views, **options)
                self.assertTrue(torch.equal(got, expected))
        with self.assertRaisesRegex(fp4.UsageError, "'key' must have the 2 batches"):
            ft.scaled_dot_product_attention(query, key[:1], value[:1], enable_gqa=True)

    def test_causal_masks_of_torch(self) -> None:
        """torch aligns masks with the first key, whatever the sizes are."""
        key, value = heads(2, 1, 20, 64, seed=1), heads(2, 1, 20, 64, seed=2)
        for tokens in (1, 13, 20, 33):
            query = heads(2, 2, tokens, 64)
            with self.subTest(tokens=tokens):
                got = ft.scaled_dot_product_attention(query, key, value, is_causal=True, scale=0.3,
                                                      enable_gqa=True)
                expected = torch.nn.functional.scaled_dot_product_attention(
                    query.float(), key.float(), value.float(), is_causal=True, scale=0.3,
                    enable_gqa=True)
                torch.testing.assert_close(got.float(), expected, rtol=2e-2, atol=1e-2)

    def test_no_keys(self) -> None:
        """Zeros, and the logarithms of sinks alone, of elements and of codes."""
        query, none, sinks = heads(2, 3, 4, 64), heads(2, 0, 2, 64), torch.randn(4)
        codes = torch.empty(2, 0, 2, 32, dtype=torch.uint8)
        scales = torch.empty(2, 0, 2, 4, dtype=torch.float8_e4m3fn)
        device = fp4.Device("sim", target="sm_90a", check="strict")
        for causal, keys, more in ((False, none, {}), (True, none, {}), (False, codes, {
                "key_scales": scales, "value_scales": scales})):
            with self.subTest(causal=causal, dtype=keys.dtype), ft.simulator(device, verify=True):
                got, lse = ft.attention(query, keys, keys, causal=causal, return_lse=True, **more)
                self.assertEqual(int(got.count_nonzero()), 0)
                self.assertTrue(bool((lse == -torch.inf).all()))
                got, lse = ft.attention(query, keys, keys, causal=causal, sinks=sinks,
                                        return_lse=True, **more)
                self.assertEqual(int(got.count_nonzero()), 0)
                torch.testing.assert_close(lse, sinks.expand_as(lse))
        for causal in (False, True):
            got = ft.scaled_dot_product_attention(query, none.transpose(1, 2)[:, :1],
                                                  none.transpose(1, 2)[:, :1], is_causal=causal,
                                                  enable_gqa=True)
            self.assertTrue(torch.equal(got, torch.zeros_like(query)))

    def test_no_queries(self) -> None:
        got = ft.attention(heads(1, 0, 2, 64), heads(1, 8, 2, 64), heads(1, 8, 2, 128))
        self.assertEqual(list(got.shape), [1, 0, 2, 128])

    def test_bytes(self) -> None:
        """Elements of e4m3 with factors of each sequence and head, or of all."""
        shapes = ((2, 20, 4, 64), (2, 33, 2, 64), (2, 33, 2, 64))
        q, k, v = (heads(*shape, seed=i).to(torch.float8_e4m3fn) for i, shape in enumerate(shapes))
        of_keys = torch.tensor([[0.5, 2.0], [1.0, 0.25]])
        of_values = torch.tensor([[3.0, 0.5], [1.0, 0.125]])
        for keys, values in ((of_keys, of_values), (of_keys[:1, 0], of_values[0])):
            with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
                got = ft.attention(q, k, v, causal=True, key_factors=keys, value_factors=values)
            self.assertEqual(got.dtype, torch.bfloat16)
            key, value = (x.float() * factors.expand(2, 2)[:, None, :, None]
                          for x, factors in ((k, keys), (v, values)))
            expected = plain(q, key, value, True, None)
            torch.testing.assert_close(got.float(), expected, rtol=6e-2, atol=6e-2)

    def test_refusals_of_bytes(self) -> None:
        q = heads(1, 4, 1, 64).to(torch.float8_e4m3fn)
        one = torch.ones(1)
        for arguments, given, text in (
                ((q, q.bfloat16(), q.bfloat16()), {}, "'key' must be bfloat16, float16 or float8"),
                ((q, q, q), {"key_factors": one}, "must come together, but got one"),
                ((q, q, q), {"key_factors": one[None, None], "value_factors": one},
                 r"'key_factors' must be float32 of shape \[1\] or \[1, 1\]")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.attention(*arguments, **given)

    def test_operator(self) -> None:
        arguments = (heads(1, 4, 1, 64), heads(1, 8, 1, 64), heads(1, 8, 1, 64), None, None,
                     0.125, False)
        torch.library.opcheck(torch.ops.fp4.attention.default, arguments)
        scores = (None, None, None, None, torch.zeros(1), 30.0, 3)
        torch.library.opcheck(torch.ops.fp4.attention_lse.default,
                              (*arguments[:6], True, *scores))
        ends = torch.tensor([0, 3], dtype=torch.int32)
        packed = (*(x[0] for x in arguments[:3]), *arguments[3:], *[None] * 7, ends, ends,
                  torch.ones(1))
        torch.library.opcheck(torch.ops.fp4.attention.default, packed)

    def test_refusals(self) -> None:
        q = heads(1, 4, 1, 64)
        for arguments, text in (((q[0], q, q), "'query' must be batches x tokens x heads"),
                                ((q, q.float(), q), "'key' must be bfloat16, float16 or "
                                 "float8_e4m3fn, as 'query', but"),
                                ((q.float(), q, q), "'query' must be bfloat16, float16 or float8")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.attention(*arguments)
        lengths, pages = torch.ones(1, dtype=torch.int32), torch.zeros(1, 2, dtype=torch.int32)
        for given, text in (({"lengths": lengths.long()}, "'lengths' must be int32 of shape"),
                            ({"lengths": lengths, "pages": pages[0]}, "'pages' must be int32"),
                            ({"pages": pages}, "'pages' must come with 'lengths'")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.attention(q, q, q, **given)
        with self.assertRaisesRegex(fp4.UsageError, "'page_tokens' must be a multiple of 8"):
            ft.PagedCache(1, 8, key_heads=1, elements=64, page_tokens=12)
        cache = ft.PagedCache(1, 8, key_heads=1, elements=64, page_tokens=8)
        with self.assertRaisesRegex(fp4.UsageError, "'value' must be bfloat16 of shape"):
            cache.append(q, q[:, :2])
        with self.assertRaisesRegex(fp4.CompileError, "heads of multiples of 32 up to 256"):
            ft.attention(*[heads(1, 4, 1, 80)] * 3)
        for arguments, text in (
                ((q, heads(1, 8, 1, 64), q), "'value' must have the tokens and heads of 'key'"),
                ((q, *[heads(1, 8, 1, 128)] * 2), "'key' must have the 64 elements of a head"),
                ((q, *[heads(1, 8, 3, 64)] * 2), "'query' must have a multiple of the 3 heads"),
                ([heads(1, 4, 1, 64)[..., :0]] * 3, "'query' must have elements in a head"),
                ([q.to_sparse()] * 3, "'query' must be a dense tensor")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.attention(*arguments)

    def test_a_full_cache(self) -> None:
        """Tokens without room, or of a page that does not exist, are refused, and nothing is
        written."""
        cache = ft.PagedCache(2, 32, key_heads=1, elements=64, page_tokens=16)
        cache.append(*[heads(2, 30, 1, 64)] * 2)
        before, more = cache.key.clone(), heads(2, 3, 1, 64, seed=1)
        with self.assertRaisesRegex(fp4.UsageError, "must be from 0 to 32, but sequence 0 has 33"):
            cache.append(more, more)
        cache.pages[1, 1] = 9
        with self.assertRaisesRegex(fp4.UsageError, "page 1 of sequence 1 is 9"):
            cache.append(more[:, :2], more[:, :2])
        self.assertTrue(torch.equal(cache.key, before))
        self.assertEqual(cache.lengths.tolist(), [30, 30])
        cache.pages[1, 1] = 3
        cache.append(more[:, :2], more[:, :2])
        self.assertEqual(cache.lengths.tolist(), [32, 32])


if __name__ == "__main__":
    unittest.main()
