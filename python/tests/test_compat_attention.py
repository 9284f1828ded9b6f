"""Functions and wrappers of FlashAttention and FlashInfer for attention: equal to fp4.torch, bit
for bit, and to plain torch in f32."""

import unittest
from typing import Any

import fp4
from programs import torch
from test_torch_attention import heads, plain, shared, with_sinks
from test_torch_packed import offsets, with_slopes

if torch is not None:
    import fp4.compat.flashinfer as flashinfer
    import fp4.torch as ft
    from fp4.compat.flash_attn import flash_attn_func, flash_attn_varlen_func
    from fp4.torch import execution

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
class Append(unittest.TestCase):
    def written(self, layout: str, is_pair: bool, at: Any = None) -> None:
        keys, values = heads(22, 2, 64, seed=1), heads(22, 2, 64, seed=2)
        sequence = torch.tensor([0] * 17 + [2] * 5, dtype=torch.int32)
        places = torch.tensor([*range(17), *range(28, 33)], dtype=torch.int32)
        pages, begin = torch.tensor([7, 2, 5, 0, 3]), torch.tensor([0, 2, 2, 5])
        cache = torch.zeros(8, 2, *((PAGE, 2) if layout == "NHD" else (2, PAGE)), 64).bfloat16()
        both = [cache[:, i].clone() for i in range(2)] if is_pair else cache.unbind(1)
        flashinfer.append_paged_kv_cache(
            keys, values, sequence, places if at is None else at, tuple(both) if is_pair else cache,
            pages.int(), begin.int(), torch.ones(3, dtype=torch.int32), layout)
        page = pages[begin[sequence.long()] + places // PAGE]
        for part, tokens in zip(both, (keys, values)):
            rows = part if layout == "NHD" else part.transpose(1, 2)
            self.assertTrue(torch.equal(rows[page, places % PAGE], tokens))
            self.assertEqual(int((rows != 0).any(-1).any(-1).sum()), 22)

    def test_both_layouts(self) -> None:
        for layout in ("NHD", "HND"):
            for is_pair in (True, False):
                with self.subTest(layout, is_pair=is_pair), ft.checked():
                    self.written(layout, is_pair)

    def test_refused(self) -> None:
        wrong = torch.tensor([*range(17), *range(46, 51)], dtype=torch.int32)
        with ft.checked(), self.assertRaisesRegex(fp4.UsageError, "number 19 is 48"):
            self.written("NHD", True, wrong)
        for arguments, text in ((("NDH", True), "'kv_layout' must be 'NHD' or 'HND'"),
                                (("NHD", True, wrong[1:]), "a number for each of the 22 tokens")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                self.written(*arguments)
        key = heads(1, 2, 64)
        one, none = torch.zeros(1, dtype=torch.int32), torch.tensor([0, 1], dtype=torch.int32)
        for cache in (key.half().view(1, 1, 1, 2, 64), key.view(1, 1, 1, 2, 64), key):
            with self.assertRaisesRegex(fp4.UsageError, "'paged_kv_cache' must be bfloat16, a"):
                flashinfer.append_paged_kv_cache(key, key, one, one, cache, one, none, one)


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

    def test_gradients(self) -> None:
        """Both functions have the gradients of fp4.torch, and refuse them with slopes."""
        query, key = heads(40, 2, 64), heads(95, 1, 64, seed=1)
        of_queries, of_keys = offsets(COUNTS), offsets(LENGTHS)
        packed = {"cu_seqlens_q": of_queries, "cu_seqlens_k": of_keys}
        slopes = torch.ones(2)

        def attend(q: Any, k: Any, **more: Any) -> Any:
            return flash_attn_varlen_func(q, k, k, of_queries, of_keys, 22, 40, causal=True, **more)

        calls = ((attend, lambda q, k: ft.attention(q, k, k, causal=True, **packed), query, key),
                 (lambda q, k: flash_attn_func(q, k, k), lambda q, k: ft.attention(q, k, k),
                  query[None], key[None]))
        for function, like, q, k in calls:
            mine, theirs = ([x.clone().requires_grad_() for x in (q, k)] for _ in range(2))
            function(*mine).sum().backward()
            like(*theirs).sum().backward()
            for x, y in zip(mine, theirs):
                self.assertTrue(torch.equal(x.grad, y.grad) and x.grad.any())
        result = attend(query.clone().requires_grad_(), key, alibi_slopes=slopes)
        with self.assertRaisesRegex(fp4.UsageError, "no gradient with 'alibi_slopes'"):
            result.sum().backward()

    def test_sequences_of_one_length(self) -> None:
        query, key, value = heads(2, 33, 4, 64), heads(2, 50, 2, 64), heads(2, 50, 2, 64, seed=2)
        got, lse, _ = flash_attn_func(query, key, value, causal=True, return_attn_probs=True)
        expected, sums = ft.attention(query, key, value, causal=True, return_lse=True)
        self.assertTrue(torch.equal(got, expected))
        self.assertTrue(torch.equal(lse, sums.transpose(1, 2)))
        close(flash_attn_func(query, key, value), plain(query, key, value, False, None))

    def test_logarithms_beside_slopes(self) -> None:
        """FlashAttention adds slope * j to scores of key j, if the mask is causal and no window
        ends it; else it takes slope * distance away."""
        query, key, value = heads(40, 4, 64), heads(95, 2, 64, seed=1), heads(95, 2, 64, seed=2)
        of_queries, of_keys = offsets(COUNTS), offsets(LENGTHS)
        slopes = torch.tensor([0.5, 0.25, 0.125, -0.0625])
        cache, *of_cache = filled()

        def expected(i: int, by_key: bool, keys: Any) -> Any:
            places = torch.arange(COUNTS[i])[:, None] + LENGTHS[i] - COUNTS[i]
            columns = torch.arange(LENGTHS[i])
            here = slice(int(of_queries[i]), int(of_queries[i + 1]))
            q, k, _ = shared(query[None, here], keys, keys)
            bias = columns.expand(COUNTS[i], -1) if by_key else -(places - columns).abs()
            scores = q[0] @ k[0].transpose(1, 2) / 8 + slopes[:, None, None] * bias
            return scores.masked_fill(columns > places, -torch.inf).logsumexp(-1)

        for window, by_key in (((-1, -1), True), ((40, 0), True), ((39, 0), False)):
            *_, lse, _ = flash_attn_varlen_func(
                query, key, value, of_queries, of_keys, 22, 40, causal=True, window_size=window,
                alibi_slopes=slopes, return_attn_probs=True)
            *_, paged, _ = flash_attn_varlen_func(
                query, cache.key, cache.value, of_queries, of_keys, 22, 40, causal=True,
                window_size=window, alibi_slopes=slopes, return_attn_probs=True,
                block_table=cache.pages)
            for i, length in enumerate(LENGTHS):
                here = slice(int(of_queries[i]), int(of_queries[i + 1]))
                keys = key[None, int(of_keys[i]):int(of_keys[i + 1])]
                with self.subTest(window=window, sequence=i):
                    close(lse[:, here], expected(i, by_key, keys))
                    close(paged[:, here], expected(i, by_key, of_cache[0][i:i + 1, :length]))
        *_, lse, _ = flash_attn_func(query[None, :17], key[None, :40], value[None, :40],
                                     causal=True, alibi_slopes=slopes, return_attn_probs=True)
        close(lse[0], expected(0, True, key[None, :40]))

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
                             ({"alibi_slopes": torch.ones(1, 1)}, "'alibi_slopes' of each"),
                             ({"window_size": None}, "'window_size' must be \\(left, right\\), "),
                             ({"window_size": 3}, "'window_size' must be \\(left, right\\), ")):
            with self.subTest(text=text), self.assertRaisesRegex(fp4.UsageError, text):
                flash_attn_varlen_func(query, query, query, ends, ends, 4, 4, **change)
        with self.assertRaisesRegex(TypeError, "'alibi_slopes' must be a torch tensor"):
            flash_attn_varlen_func(query, query, query, ends, ends, 4, 4, alibi_slopes=[0.5])
        cache, table = torch.zeros(2, 16, 1, 64).bfloat16(), torch.zeros(1, 1, dtype=torch.int32)
        for wrong in (ends.long(), ends[1], ends[:1]):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(
                    fp4.UsageError, "'cu_seqlens_k' must be int32 of one dimension"):
                flash_attn_varlen_func(query, cache, cache, ends, wrong, 4, 4, block_table=table)


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
        turned = torch.empty(4, 3, 64, dtype=torch.bfloat16).transpose(0, 1)  # gets a copy
        for place, is_placed in ((out, True), (turned, False)):
            with execution.collecting() as programs:
                wrapper.run(query, (cache.key, cache.value), out=place)
            (_, (what,), _, _), = programs
            self.assertEqual(what.says("placed"), is_placed)
            result = wrapper.run(query, (cache.key, cache.value), out=place)
            self.assertIs(result, place)
            close(place, self.decode(cache, query))
        with self.assertRaisesRegex(fp4.UsageError, "must have the sequences of the first one"):
            wrapper.plan(indptr[:2], indices, last[:1], 4, 2, 64, PAGE, q_data_type=torch.bfloat16)

    def test_constants_of_a_graph(self) -> None:
        """A captured graph has addresses, and what was compiled into kernels."""
        cache, *_ = filled()
        room = torch.empty(8, dtype=torch.int32)
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            torch.zeros(1), use_cuda_graph=True, paged_kv_indices_buffer=room)

        def plan(given: Any = None, page: int = PAGE, **change: Any) -> None:
            wrapper.plan(*(given or lists(cache)), 4, 2, 64, page, **{
                "q_data_type": torch.bfloat16, "pos_encoding_mode": "ALIBI", **change})

        plan()
        slopes = wrapper._plan.slopes
        plan()
        self.assertIs(wrapper._plan.slopes, slopes)
        for change, text in (({"sm_scale": 0.5}, "keep 'sm_scale' of the first one, 0.125, but"),
                             ({"window_left": 3}, "keep 'window_left'"),
                             ({"pos_encoding_mode": "NONE"}, "keep 'pos_encoding_mode'"),
                             ({"q_len_per_req": 2}, "keep the queries of each sequence"),
                             ({"q_data_type": torch.float16}, "keep the type of queries"),
                             ({"page": 24}, "keep 'page_size'"),
                             ({"pos_encoding_mode": "NONE", "logits_soft_cap": 3.0},
                              "keep 'logits_soft_cap'")):
            with self.subTest(text=text), self.assertRaisesRegex(fp4.UsageError, text):
                plan(**change)
        self.assertEqual(wrapper._plan.lengths.tolist(), LENGTHS)
        five = offsets([5, 4, 0]), torch.arange(9).int(), torch.tensor([8, 8, 8]).int()
        with self.assertRaisesRegex(fp4.UsageError, "buffer for 8 pages .*, but got 9 pages"):
            plan(five)
        plan((offsets([5, 3, 0]), torch.arange(8).int(), torch.tensor([8, 8, 8]).int()))
        self.assertEqual(wrapper._plan.pages[0, :5].tolist(), [0, 1, 2, 3, 4])

    def test_plans_and_what_runs(self) -> None:
        """Queries and caches are those that were planned."""
        cache, *_ = filled()
        query, given = heads(3, 4, 64), lists(cache)
        pair = cache.key, cache.value
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.zeros(1))
        for sizes, text in (((4, 1, 64, PAGE), r"pages of \[16, 1, 64\] elements of keys, as"),
                            ((4, 2, 128, PAGE), "of 4 heads of 128, as planned"),
                            ((2, 2, 64, PAGE), "of 2 heads of 64, as planned"),
                            ((4, 2, 64, 24), r"pages of \[24, 2, 64\] elements of keys")):
            wrapper.plan(*given, *sizes, q_data_type=torch.bfloat16)
            with self.subTest(sizes=sizes), self.assertRaisesRegex(fp4.UsageError, text):
                wrapper.run(query, pair)
        wrapper.plan(*given, 4, 2, 64, PAGE, q_data_type=torch.bfloat16)
        with self.assertRaisesRegex(fp4.UsageError, "must have the page 8 that was planned, but "):
            wrapper.run(query, (cache.key[:8], cache.value[:8]))
        with self.assertRaisesRegex(fp4.UsageError, "'q_len_per_req' must be 1, as planned, but"):
            wrapper.run(query, pair, q_len_per_req=2)
        close(wrapper.run(query, pair, q_len_per_req=1), wrapper.run(query, pair))
        prefill = flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.zeros(1))
        prefill.plan(offsets(COUNTS), *given, 4, 2, 64, PAGE, q_data_type=torch.bfloat16)
        with self.assertRaisesRegex(fp4.UsageError, "'q' must have the 40 rows that were planned"):
            prefill.run(heads(39, 4, 64), pair)
        prefill.plan(offsets(COUNTS), *given, 4, 2, 64, PAGE, head_dim_vo=128,
                     q_data_type=torch.bfloat16)
        with self.assertRaisesRegex(fp4.UsageError, r"\[16, 2, 128\] elements of values"):
            prefill.run(heads(40, 4, 64), pair)

    def test_lists(self) -> None:
        """Offsets begin with 0 and are as many as sequences; last pages are not empty."""
        cache, *_ = filled()
        indptr, indices, last = lists(cache)
        prefill = flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.zeros(1))
        decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.zeros(1))
        five = torch.tensor([0, 5, 10, 15], dtype=torch.int32)
        prefill.plan(five, indptr, indices, last, 4, 2, 64, PAGE)
        for wrong in (five + 2, five[:2], five[[0, 2, 1, 3]], torch.cat([five, five[-1:] + 1]),
                      torch.tensor(3), five.float()):
            with self.subTest(wrong=wrong.tolist()), self.assertRaisesRegex(
                    fp4.UsageError, "argument 'qo_indptr' must "):
                prefill.plan(wrong, indptr, indices, last, 4, 2, 64, PAGE)
        for number in (PAGE + 1, 0, -20):
            with self.subTest(last=number), self.assertRaisesRegex(
                    fp4.UsageError, "'paged_kv_last_page_len' must be from 1 up to page_size 16"):
                prefill.plan(five, indptr, indices, last.where(last == 1, number), 4, 2, 64, PAGE)
        with self.assertRaisesRegex(fp4.UsageError, "'indices' must have the 8 pages of 'indptr'"):
            decode.plan(indptr, indices[:-1], last, 4, 2, 64, PAGE)
        with self.assertRaisesRegex(fp4.UsageError, "'indices' must have the 8 pages .*-1"):
            decode.plan(indptr, indices.where(indices != 3, -1), last, 4, 2, 64, PAGE)
        for sizes, text in (((4, 2, 0, PAGE), "'head_dim' must be a positive int, but got 0"),
                            ((4, 2, 64, 0), "'page_size' must be a positive int, but got 0"),
                            ((0, 2, 64, PAGE), "'num_qo_heads' must be a positive int, but got 0"),
                            ((4, 3, 64, PAGE), "multiple of num_kv_heads 3, but got 4")):
            with self.subTest(text=text), self.assertRaisesRegex(fp4.UsageError, text):
                decode.plan(indptr, indices, last, *sizes, pos_encoding_mode="ALIBI")

    def test_options_of_decode(self) -> None:
        """Options have names, or FlashInfer's order; others are refused."""
        cache, *_ = filled()
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.zeros(1))

        def plan(*options: Any, **names: Any) -> None:
            wrapper.plan(*lists(cache), 4, 2, 64, PAGE, *options, **names)

        plan("NONE", 5, None, torch.bfloat16, None, None, None, 0.5, None, None, True, None, None,
             None, False, 2)
        found = wrapper._plan
        self.assertEqual((found.window_left, found.scale, found.tokens), (5, 0.5, 2))
        for options, names, text in (
                ((), {"window_lef": 3}, "but got 'window_lef'\n.*did you mean 'window_left'?"),
                (("NONE",) * 17, {}, "at most 16 arguments behind 'page_size'"),
                (("NONE",), {"pos_encoding_mode": "NONE"}, "and pos_encoding_mode by name too"),
                ((), {"q_len_per_req": None}, "'q_len_per_req' must be a positive int, but got"),
                ((), {"pos_encoding_mode": "ALIBI", "logits_soft_cap": 5.0},
                 "'logits_soft_cap' with ALIBI has no kernel")):
            with self.subTest(text=text), self.assertRaisesRegex(fp4.UsageError, text):
                plan(*options, **names)
        plan(pos_encoding_mode="ALIBI", logits_soft_cap=0.0)

    def test_default_device(self) -> None:
        """Plans are made on the CPU, whatever tensors are made on by default."""
        cache, *_ = filled()
        given, workspace = lists(cache), torch.zeros(1)
        torch.set_default_device("meta")
        try:
            wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace)
            wrapper.plan(*given, 4, 2, 64, PAGE)
        finally:
            torch.set_default_device(None)
        self.assertEqual(wrapper._plan.lengths.tolist(), LENGTHS)

    def test_scales_that_change(self) -> None:
        """Decode scales that are tensors are read when a call runs."""
        cache, *_ = filled("fp8")
        query, scale = heads(3, 4, 64), torch.tensor(1.0)
        before = self.decode(cache, query, v_scale=scale)
        scale.fill_(2.0)
        self.assertTrue(torch.equal(self.decode(cache, query, v_scale=scale), 2 * before))
        with self.assertRaisesRegex(fp4.UsageError, "'k_scale' must be a number or a tensor"):
            self.decode(cache, query, k_scale="2")

    def test_caches_without_pages(self) -> None:
        """Zeros, and logarithms of nothing."""
        cache, *_ = filled()
        none, nothing = torch.zeros(4, dtype=torch.int32), torch.zeros(0, dtype=torch.int32)
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.zeros(1))
        wrapper.plan(none, nothing, none[:3], 4, 2, 64, PAGE, q_data_type=torch.bfloat16)
        empty = cache.key[:0]
        for given in ((empty, empty), torch.stack([empty, empty], 1)):
            got, lse = wrapper.run(heads(3, 4, 64), given, return_lse=True)
            self.assertEqual(int(got.count_nonzero()), 0)
            self.assertTrue(bool((lse == -torch.inf).all()))

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
        with self.assertRaisesRegex(fp4.UsageError, "'q' must be torch.float16 of 4 heads of 64"):
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
