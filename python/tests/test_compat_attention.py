"""Functions and wrappers of FlashAttention and FlashInfer for attention: equal to fp4.torch, bit
for bit, and to plain torch in f32."""

import unittest
from typing import Any

import fp4
from programs import torch
from test_torch_attention import heads, plain, with_sinks
from test_torch_packed import offsets, with_slopes

if torch is not None:
    import fp4.compat.flashinfer as flashinfer
    import fp4.torch as ft
    from fp4.compat.flash_attn import flash_attn_func, flash_attn_varlen_func

COUNTS, LENGTHS, PAGE = [17, 1, 22], [40, 33, 22], 16


def close(got: Any, expected: Any) -> None:
    torch.testing.assert_close(got.float(), expected.float(), rtol=2e-2, atol=2e-2)


def lists(cache: Any) -> "tuple[Any, Any, Any]":
    """FlashInfer's lists of pages, of the lengths here."""
    counts = [-(-length // PAGE) for length in LENGTHS]
    indices = torch.cat([cache.pages[i, :count] for i, count in enumerate(counts)])
    last = [length - (count - 1) * PAGE for length, count in zip(LENGTHS, counts)]
    return offsets(counts), indices, torch.tensor(last, dtype=torch.int32)


def filled(form: str = "") -> "tuple[Any, Any, Any]":
    """A cache of three sequences, whose pages are in any order, and what is in it."""
    keys, values = heads(3, 40, 2, 64, seed=1), heads(3, 40, 2, 64, seed=2)
    cache = ft.PagedCache(3, 48, key_heads=2, elements=64, page_tokens=PAGE, format=form)
    cache.pages = cache.pages.flatten().flip(0).view(3, -1)
    cache.append(keys, values)
    return cache, keys, values


@unittest.skipIf(torch is None, "PyTorch is not installed")
class FlashAttention(unittest.TestCase):
    def test_packed_sequences(self) -> None:
        query, key, value = heads(40, 4, 64), heads(95, 2, 64, seed=1), heads(95, 2, 64, seed=2)
        of_queries, of_keys = offsets(COUNTS), offsets(LENGTHS)
        slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625])
        got, lse, _ = flash_attn_varlen_func(
            query, key, value, of_queries, of_keys, max(COUNTS), max(LENGTHS), causal=True,
            window_size=(9, -1), softcap=20.0, alibi_slopes=slopes, return_attn_probs=True)
        expected, sums = ft.attention(query, key, value, causal=True, window=10, softcap=20.0,
                                      cu_seqlens_q=of_queries, cu_seqlens_k=of_keys,
                                      alibi_slopes=slopes, return_lse=True)
        self.assertTrue(torch.equal(got, expected))
        self.assertTrue(torch.equal(lse, sums.T))
        begins, firsts = of_queries.tolist(), of_keys.tolist()
        got = flash_attn_varlen_func(query, key, value, of_queries, of_keys, 22, 40,
                                     softmax_scale=0.2)
        for i in range(3):
            one = [x[None, firsts[i]:firsts[i + 1]] for x in (key, value)]
            here = query[None, begins[i]:begins[i + 1]]
            close(got[None, begins[i]:begins[i + 1]], plain(here, *one, False, 0.2))

    def test_sequences_of_one_length(self) -> None:
        query, key, value = heads(2, 33, 4, 64), heads(2, 50, 2, 64), heads(2, 50, 2, 64, seed=2)
        got, lse, _ = flash_attn_func(query, key, value, causal=True, return_attn_probs=True)
        expected, sums = ft.attention(query, key, value, causal=True, return_lse=True)
        self.assertTrue(torch.equal(got, expected))
        self.assertTrue(torch.equal(lse, sums.transpose(1, 2)))
        close(flash_attn_func(query, key, value), plain(query, key, value, False, None))

    def test_pages(self) -> None:
        cache, keys, values = filled()
        query = heads(40, 4, 64)
        got = flash_attn_varlen_func(query, cache.key, cache.value, offsets(COUNTS),
                                     offsets(LENGTHS), 22, 40, causal=True, block_table=cache.pages)
        begins = offsets(COUNTS).tolist()
        for i, length in enumerate(LENGTHS):
            here = slice(begins[i], begins[i + 1])
            close(got[None, here], plain(query[None, here], keys[i:i + 1, :length],
                                         values[i:i + 1, :length], True, None))

    def test_refusals(self) -> None:
        query, ends = heads(4, 1, 64), torch.tensor([0, 4], dtype=torch.int32)
        for change, text in (({"dropout_p": 0.1}, "'dropout_p' other than 0 has no kernel"),
                             ({"window_size": (3, 3)}, "'window_size' \\(3, 3\\) has no kernel"),
                             ({"window_size": (3, -1)}, "'window_size' \\(3, -1\\) has no kernel"),
                             ({"alibi_slopes": torch.ones(1, 1)}, "'alibi_slopes' of each")):
            with self.subTest(text=text), self.assertRaisesRegex(fp4.UsageError, text):
                flash_attn_varlen_func(query, query, query, ends, ends, 4, 4, **change)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class FlashInfer(unittest.TestCase):
    def decode(self, cache: Any, query: Any, layout: str = "NHD", **options: Any) -> Any:
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.zeros(1), layout)
        planned = {name: options.pop(name) for name in ("q_len_per_req", "window_left",
                                                        "pos_encoding_mode") if name in options}
        wrapper.plan(*lists(cache), 4, 2, 64, PAGE, q_data_type=torch.bfloat16, **planned)
        given = options.pop("given", (cache.key, cache.value))
        return wrapper.run(query, given, **options)

    def test_decode(self) -> None:
        """One query of each sequence, of pages in both orders, apart and behind each other."""
        cache, keys, values = filled()
        query = heads(3, 4, 64)
        lengths = torch.tensor(LENGTHS, dtype=torch.int32)
        expected = ft.attention(query[:, None], keys, values, lengths=lengths)[:, 0]
        turned = [x.transpose(1, 2).contiguous() for x in (cache.key, cache.value)]
        for layout, given in (("NHD", (cache.key, cache.value)), ("HND", tuple(turned)),
                              ("NHD", torch.stack([cache.key, cache.value], 1)),
                              ("HND", torch.stack(turned, 1))):
            with self.subTest(layout=layout, pair=isinstance(given, tuple)):
                close(self.decode(cache, query, layout, given=given), expected)

    def test_scores_of_decode(self) -> None:
        cache, keys, values = filled()
        query, sinks = heads(6, 4, 64), torch.randn(4)
        got, lse = self.decode(cache, query, sinks=sinks, window_left=6, q_len_per_req=2,
                               return_lse=True)
        for i, length in enumerate(LENGTHS):
            expected, sums = with_sinks(query[None, 2 * i:2 * i + 2], keys[i:i + 1, :length],
                                        values[i:i + 1, :length], sinks, window=7)
            close(got[None, 2 * i:2 * i + 2], expected)
            close(lse[None, 2 * i:2 * i + 2], sums / torch.tensor(2.0).log())
        got = self.decode(cache, query[:3], pos_encoding_mode="ALIBI")
        slopes = torch.tensor([2.0 ** -2, 2.0 ** -4, 2.0 ** -6, 2.0 ** -8])
        for i, length in enumerate(LENGTHS):
            close(got[None, i:i + 1], with_slopes(query[None, i:i + 1], keys[i:i + 1, :length],
                                                  values[i:i + 1, :length], slopes, True))

    def test_codes(self) -> None:
        """Decode scales are numbers here, and scales of blocks lie in pages."""
        query = heads(3, 4, 64)
        lengths = torch.tensor(LENGTHS, dtype=torch.int32)
        for form in ("fp8", "nvfp4"):
            cache, *_ = filled(form)
            scales = None if cache.key_scales is None else (cache.key_scales, cache.value_scales)
            got = self.decode(cache, query, k_scale=0.5, v_scale=2.0, kv_cache_sf=scales)
            expected = ft.attention(
                query[:, None], cache.key, cache.value, lengths=lengths, pages=cache.pages,
                causal=True, key_scales=cache.key_scales, value_scales=cache.value_scales,
                key_factors=torch.tensor([0.5]), value_factors=torch.tensor([2.0]))[:, 0]
            with self.subTest(form=form):
                close(got, expected)

    def test_prefill(self) -> None:
        """Packed queries, and as many of each sequence."""
        cache, keys, values = filled()
        for counts in (COUNTS, [5, 5, 5]):
            query, begins = heads(sum(counts), 4, 64), offsets(counts)
            wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.zeros(1))
            wrapper.plan(begins, *lists(cache), 4, 2, 64, PAGE, causal=True,
                         q_data_type="bfloat16")
            got, lse = wrapper.run(query, (cache.key, cache.value), return_lse=True,
                                   lse_base="ln", lse_layout="HN")
            self.assertEqual(list(lse.shape), [4, sum(counts)])
            for i, length in enumerate(LENGTHS):
                here = slice(int(begins[i]), int(begins[i + 1]))
                expected, sums = with_sinks(query[None, here], keys[i:i + 1, :length],
                                            values[i:i + 1, :length], torch.full((4,), -1e9))
                with self.subTest(counts=counts, sequence=i):
                    close(got[None, here], expected)
                    close(lse.T[None, here], sums)

    def test_plans_of_a_graph(self) -> None:
        """Later plans write to the memory of the first one, and results to what is given."""
        cache, *_ = filled()
        query, out = heads(3, 4, 64), torch.empty(3, 4, 64, dtype=torch.bfloat16)
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            torch.zeros(1), use_cuda_graph=True,
            paged_kv_indices_buffer=torch.empty(9, dtype=torch.int32))
        indptr, indices, last = lists(cache)
        wrapper.plan(indptr, indices, torch.ones_like(last), 4, 2, 64, PAGE,
                     q_data_type=torch.bfloat16)
        before = wrapper._plan.lengths.data_ptr(), wrapper._plan.pages.data_ptr()
        wrapper.plan(indptr, indices, last, 4, 2, 64, PAGE, q_data_type=torch.bfloat16)
        self.assertEqual(before, (wrapper._plan.lengths.data_ptr(), wrapper._plan.pages.data_ptr()))
        self.assertEqual(wrapper._plan.lengths.tolist(), LENGTHS)
        result = wrapper.run(query, (cache.key, cache.value), out=out)
        self.assertIs(result, out)
        close(out, self.decode(cache, query))
        with self.assertRaisesRegex(fp4.UsageError, "must have the sequences of the first one"):
            wrapper.plan(indptr[:2], indices, last[:1], 4, 2, 64, PAGE, q_data_type=torch.bfloat16)

    def test_refusals(self) -> None:
        cache, *_ = filled()
        query, given = heads(3, 4, 64), lists(cache)
        make = flashinfer.BatchDecodeWithPagedKVCacheWrapper
        with self.assertRaisesRegex(fp4.UsageError, "'run' must come behind 'plan'"):
            make(torch.zeros(1)).run(query, (cache.key, cache.value))
        with self.assertRaisesRegex(fp4.UsageError, "'kv_layout' must be 'NHD' or 'HND'"):
            make(torch.zeros(1), "DHN")
        with self.assertRaisesRegex(fp4.UsageError, "buffer for the indices"):
            make(torch.zeros(1), use_cuda_graph=True)
        for change, text in (({"pos_encoding_mode": "ROPE_LLAMA"}, "'pos_encoding_mode'"),
                             ({"window_right": 1}, "'window_right' other than 0"),
                             ({"o_data_type": torch.float32}, "'o_data_type'"),
                             ({"q_data_type": "brain"}, "must be a torch.dtype or its name")):
            with self.subTest(text=text), self.assertRaisesRegex(fp4.UsageError, text):
                make(torch.zeros(1)).plan(*given, 4, 2, 64, PAGE, **change)
        with self.assertRaisesRegex(fp4.UsageError, "'indptr' must have the begin"):
            make(torch.zeros(1)).plan(given[0][1:], *given[1:], 4, 2, 64, PAGE)
        wrapper = make(torch.zeros(1))
        wrapper.plan(*given, 4, 2, 64, PAGE)
        with self.assertRaisesRegex(fp4.UsageError, "'q' must be torch.float16 of 4 heads"):
            wrapper.run(query, (cache.key, cache.value))
        wrapper.plan(*given, 4, 2, 64, PAGE, q_data_type=torch.bfloat16)
        for change, text in (({"k_scale": 2.0}, "'k_scale' of a cache"),
                             ({"skip_softmax_threshold_scale_factor": 1.0}, "further arguments")):
            with self.subTest(text=text), self.assertRaisesRegex(fp4.UsageError, text):
                wrapper.run(query, (cache.key, cache.value), **change)
        with self.assertRaisesRegex(fp4.UsageError, "'q' must have the 3 rows that were planned"):
            wrapper.run(query[:2], (cache.key, cache.value))
        with self.assertRaisesRegex(fp4.UsageError, "must be a pair, or contiguous of shape"):
            wrapper.run(query, cache.key)
        prefill = flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.zeros(1))
        with self.assertRaisesRegex(fp4.UsageError, "a mask of bits has no kernel"):
            prefill.plan(offsets(COUNTS), *given, 4, 2, 64, PAGE, custom_mask=torch.ones(1))


if __name__ == "__main__":
    unittest.main()
