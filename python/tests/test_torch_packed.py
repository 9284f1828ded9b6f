"""Attention of packed sequences, with the slopes of ALiBi, and over pages in both orders: equal to
attention of each sequence by itself, bit for bit, and judged by its reference."""

import importlib
import pathlib
import sys
import unittest
import unittest.mock
from typing import Any

import fp4
from fp4.program import require_names
from programs import torch
from test_torch_attention import heads, shared

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import attend_programs

#: Queries and keys of sequences: none, one, and about the size of a tile.
SEQUENCES = [(0, 5), (1, 1), (127, 127), (5, 0), (129, 140), (0, 0), (2, 130)]


def offsets(counts: "list[int]") -> Any:
    return torch.tensor([0, *counts], dtype=torch.int32).cumsum(0).int()


def packed(queries: int = 2, keys: int = 1, elements: int = 64) -> "tuple[Any, ...]":
    """Queries, keys and values of all sequences, and both offsets."""
    of_queries, of_keys = (offsets([pair[i] for pair in SEQUENCES]) for i in range(2))
    total, of_all = int(of_queries[-1]), int(of_keys[-1])
    return (heads(total, queries, elements), heads(of_all, keys, elements, seed=1),
            heads(of_all, keys, elements, seed=2), of_queries, of_keys)


def with_slopes(query: Any, key: Any, value: Any, slopes: Any, causal: bool) -> Any:
    """Attention in f32 with a bias of -slope * |i + Sk - Sq - j|, as FlashAttention has it."""
    q, k, v = shared(query, key, value)
    place = torch.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
    distance = place - torch.arange(k.shape[2])
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5 - slopes[:, None, None] * distance.abs()
    if causal:
        scores = scores.masked_fill(distance < 0, -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Packed(unittest.TestCase):
    def simulated(self, *arguments: Any, **options: Any) -> Any:
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            return ft.attention(*arguments, **options)

    def test_each_sequence_as_by_itself(self) -> None:
        """Blocks of keys begin with a sequence, so that sums have the order that they have alone. A
        number that is none behind a sequence, or in front of it, is not read."""
        query, key, value, of_queries, of_keys = packed()
        for causal in (False, True):
            got, lse = self.simulated(query, key, value, causal=causal, cu_seqlens_q=of_queries,
                                      cu_seqlens_k=of_keys, return_lse=True)
            for i, (queries, keys) in enumerate(SEQUENCES):
                if not queries:
                    continue
                begin, first = int(of_queries[i]), int(of_keys[i])
                here = slice(begin, begin + queries)
                if not keys:
                    self.assertEqual(int(got[here].count_nonzero()), 0)
                    self.assertTrue(bool((lse[here] == -torch.inf).all()))
                    continue
                others = [torch.full_like(x, float("nan")) for x in (key, value)]
                for x, other in zip((key, value), others):
                    other[first:first + keys] = x[first:first + keys]
                alone = self.one(query[here], *(x[first:first + keys] for x in others), causal)
                among = ft.attention(query, *others, causal=causal, cu_seqlens_q=of_queries,
                                     cu_seqlens_k=of_keys)
                with self.subTest(sequence=i, causal=causal):
                    self.assertTrue(torch.equal(got[here], alone))
                    self.assertTrue(torch.equal(among[here], alone))

    def one(self, query: Any, key: Any, value: Any, causal: bool) -> Any:
        ends = [torch.tensor([0, x.shape[0]], dtype=torch.int32) for x in (query, key)]
        return ft.attention(query, key, value, causal=causal, cu_seqlens_q=ends[0],
                            cu_seqlens_k=ends[1])

    def test_one_program_for_any_tokens(self) -> None:
        """Three sequences and four are one program, of any number of tokens."""
        query, key, value, *_ = packed()
        before = None
        for counts in ([10, 0, 30], [1, 2, 3, 4], [60, 60, 5]):
            ends = offsets(counts)
            ft.attention(query[:ends[-1]], key[:ends[-1]], value[:ends[-1]], causal=True,
                         scale=0.37, cu_seqlens_q=ends, cu_seqlens_k=ends)
            count = ft.programs.compilations()
            before = count if before is None else before
            self.assertEqual(count, before)

    def test_rest_and_nothing(self) -> None:
        """Queries behind the last sequence are zeros, as those of a batch without keys."""
        query, key, value, *_ = packed()
        ends = torch.tensor([0, 7, 20], dtype=torch.int32)
        got = self.simulated(query, key, value, cu_seqlens_q=ends, cu_seqlens_k=ends)
        self.assertEqual(int(got[20:].count_nonzero()), 0)
        self.assertTrue(bool(got[:20].count_nonzero(-1).all()))
        got = self.simulated(query[:20], key[:0], value[:0], cu_seqlens_q=ends,
                             cu_seqlens_k=torch.zeros_like(ends))
        self.assertEqual(int(got.count_nonzero()), 0)

    def test_programs_for_a_gpu(self) -> None:
        """Sizes that are dynamic have names, without which no GPU takes a program."""
        rows = (None, 2, 64)
        for keys, pages in ((rows, 0), ((9, 16, 2, 64), 4)):
            what = attend_programs.Attention(rows, keys, keys, "bf16", 0.125, True, bool(pages),
                                             pages, offsets=3)
            manifest = attend_programs.program(what, "sm_90a").program().manifest
            with self.subTest(pages=pages):
                require_names(manifest.functions["attention"])
        query, key, value, *ends = packed()
        with self.assertRaisesRegex(fp4.UsageError, "'value'"):
            self.simulated(query, key, value[:-1], cu_seqlens_q=ends[0], cu_seqlens_k=ends[1])

    def test_programs_of_the_benchmark(self) -> None:
        folder = pathlib.Path(__file__).parents[2] / "benchmarks"
        with unittest.mock.patch("sys.path", [str(folder), *sys.path]):
            benchmark = importlib.import_module("packed_attention")
        for slopes in (False, True):
            program = fp4.compile(benchmark.packed_text(True, slopes), target="sm_90a").program()
            require_names(program.manifest.functions["attention"])

    def test_packed_queries_over_pages(self) -> None:
        """As vLLM has them: block tables, lengths, and the first query of each sequence."""
        query, keys, values = heads(40, 4, 64), heads(3, 90, 2, 64, seed=1), heads(3, 90, 2, 64)
        cache = ft.PagedCache(3, 96, key_heads=2, elements=64, page_tokens=16)
        cache.pages = cache.pages.flatten().flip(0).view(3, -1)
        cache.append(keys, values)
        lengths, counts = torch.tensor([90, 33, 7], dtype=torch.int32), [17, 1, 22]
        begins = offsets(counts).tolist()
        orders = {"NHD": (cache.key, cache.value),
                  "HND": tuple(x.transpose(1, 2).contiguous() for x in (cache.key, cache.value))}
        for order, (key, value) in orders.items():
            got = self.simulated(query, key, value, causal=True, cu_seqlens_q=offsets(counts),
                                 lengths=lengths, pages=cache.pages, kv_layout=order)
            for i, length in enumerate(lengths.tolist()):
                here = slice(begins[i], begins[i + 1])
                alone = ft.attention(query[None, here], keys[i:i + 1, :length],
                                     values[i:i + 1, :length], causal=True)
                with self.subTest(order=order, sequence=i):
                    torch.testing.assert_close(got[here].float(), alone[0].float(), rtol=2e-2,
                                               atol=1e-2)

    def test_heads_in_front_of_tokens(self) -> None:
        """One query, of elements as they are, and of codes: the bits of the other order."""
        keys, values, query = (heads(2, 70, 2, 64, seed=i) for i in range(3))
        for form in ("", "fp8", "nvfp4"):
            cache = ft.PagedCache(2, 80, key_heads=2, elements=64, page_tokens=16, format=form)
            cache.append(keys, values)
            given = {"lengths": cache.lengths, "pages": cache.pages,
                     "key_factors": cache.key_factors, "value_factors": cache.value_factors}
            turned = [None if x is None else x.view(torch.uint8).transpose(1, 2).contiguous()
                      .view(x.dtype) for x in (cache.key, cache.value, cache.key_scales,
                                               cache.value_scales)]
            expected = self.simulated(query[:, :1], cache.key, cache.value, **given,
                                      key_scales=cache.key_scales, value_scales=cache.value_scales)
            got = self.simulated(query[:, :1], turned[0], turned[1], **given, kv_layout="HND",
                                 key_scales=turned[2], value_scales=turned[3])
            with self.subTest(form=form):
                self.assertTrue(torch.equal(got, expected))

    def test_slopes(self) -> None:
        """In tiles, in warps, of heads that are rows of a tile, and of packed sequences."""
        slopes = torch.tensor([0.5, 0.25, 0.0, -0.125])
        for tokens, keys, causal in ((150, 170, True), (150, 90, False), (3, 70, True),
                                     (1, 40, True)):
            query, key = heads(1, tokens, 4, 64), heads(1, keys, 2, 64, seed=1)
            value = heads(1, keys, 2, 64, seed=2)
            with self.subTest(tokens=tokens, causal=causal):
                got = self.simulated(query, key, value, causal=causal, alibi_slopes=slopes)
                expected = with_slopes(query, key, value, slopes, causal)
                torch.testing.assert_close(got.float(), expected, rtol=2e-2, atol=2e-2)
        ends = torch.tensor([0, 40], dtype=torch.int32)
        got = self.simulated(query[0].expand(40, 4, 64), key[0], value[0], causal=True,
                             cu_seqlens_q=ends, cu_seqlens_k=ends, alibi_slopes=slopes)
        expected = with_slopes(query.expand(1, 40, 4, 64), key, value, slopes, True)
        torch.testing.assert_close(got[None].float(), expected, rtol=2e-2, atol=2e-2)

    def test_refusals(self) -> None:
        query, key, value, of_queries, of_keys = packed()
        lengths, pages = torch.ones(7, dtype=torch.int32), torch.zeros(7, 2, dtype=torch.int32)
        for change, text in (({"cu_seqlens_k": None}, "must come together, but got one"),
                             ({"cu_seqlens_q": None}, "must come together, but got one"),
                             ({"lengths": lengths}, "must be left out beside 'cu_seqlens_k'"),
                             ({"cu_seqlens_k": of_keys[1:]}, "'cu_seqlens_k' must be int32 of"),
                             ({"cu_seqlens_q": of_queries.long()}, "'cu_seqlens_q' must be int32"),
                             ({"cu_seqlens_q": of_queries[:1]}, "an offset for each sequence"),
                             ({"query": query[None]}, "must be tokens x heads x elements"),
                             ({"alibi_slopes": torch.ones(3)}, "'alibi_slopes' must be float32"),
                             ({"kv_layout": "HND"}, "HND must come with 'pages'"),
                             ({"kv_layout": "HDN"}, "must be 'NHD' or 'HND'")):
            arguments = {"query": query, "key": key, "value": value, "cu_seqlens_q": of_queries,
                         "cu_seqlens_k": of_keys, **change}
            with self.subTest(text=text), self.assertRaisesRegex(fp4.UsageError, text):
                ft.attention(**arguments)
        codes = key.to(torch.float8_e4m3fn)[None]
        with self.assertRaisesRegex(fp4.UsageError, "'key' must be bfloat16 beside"):
            ft.attention(query, codes, codes, cu_seqlens_q=of_queries, lengths=lengths, pages=pages)

    def test_wrong_offsets(self) -> None:
        """The device finds offsets that decrease or exceed the tokens."""
        query, key, value, *_ = packed()
        good = torch.tensor([0, 4, 9], dtype=torch.int32)
        for wrong, text in (([0, 9, 4], "must not decrease"), ([1, 4, 9], "must begin with 0"),
                            ([0, 4, 9999], "must not exceed")):
            bad = torch.tensor(wrong, dtype=torch.int32)
            for offsets in ((bad, good), (good, bad)):
                with self.subTest(wrong=wrong), self.assertRaisesRegex(fp4.Error, text):
                    ft.attention(query, key, value, cu_seqlens_q=offsets[0],
                                 cu_seqlens_k=offsets[1])

    def test_calls_behind_wrong_offsets(self) -> None:
        """A call whose offsets are all wrong is one error, and the next call has none."""
        query, key, value, *_ = packed()
        good, bad = (torch.tensor([0, 4, x], dtype=torch.int32) for x in (9, 9999))
        expected = ft.attention(query, key, value, cu_seqlens_q=good, cu_seqlens_k=good)
        with self.assertRaisesRegex(fp4.UsageError, "must not exceed"):
            ft.attention(query, key, value, cu_seqlens_q=bad, cu_seqlens_k=bad)
        again = ft.attention(query, key, value, cu_seqlens_q=good, cu_seqlens_k=good)
        self.assertTrue(torch.equal(again, expected))


if __name__ == "__main__":
    unittest.main()
