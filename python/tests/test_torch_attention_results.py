"""Results of attention in e4m3 and quantized, and blocks of queries and keys that tensor cores
scale."""

import unittest
from typing import Any

import fp4
from programs import torch
from test_torch_attention import heads, plain

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import attend_programs, execution, strides
    from graph_recorder import GraphRecorder


def sim(target: str = "sm_90a") -> Any:
    return ft.simulator(fp4.Device("sim", target=target, check="strict"))


def quantized(x: Any, format: str) -> "tuple[Any, Any, Any]":
    """Codes and row-major scales of blocks along the last dimension, and their numbers."""
    if format == "mx":
        blocks = x.float().unflatten(-1, (-1, 32))
        exponent = blocks.abs().amax(-1, keepdim=True).clamp(min=2.0 ** -100).log2().floor() - 8
        codes = (blocks / exponent.exp2()).clamp(-448, 448).to(torch.float8_e4m3fn)
        numbers = (codes.float() * exponent.exp2()).flatten(-2)
        scales = (exponent.squeeze(-1) + 127).to(torch.uint8).view(torch.float8_e8m0fnu)
        return codes.flatten(-2), scales, numbers
    with ft.simulator(fp4.Device("sim", target="sm_100a")):
        matrix = ft.quantize(x.reshape(-1, x.shape[-1]), amax=torch.tensor(2688.0), layout="linear")
        numbers = ft.dequantize(matrix, torch.float32).view(x.shape)
    return (matrix.data.view(torch.uint8).view(*x.shape[:-1], -1),
            matrix.scales.view(torch.float8_e4m3fn).view(*x.shape[:-1], -1), numbers)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Results(unittest.TestCase):
    def test_bytes(self) -> None:
        """A factor for all: prefill, decode by warps and by clusters, and latent slices."""
        factor = torch.tensor(3.0)
        for query, keys, options in (((1, 130, 2, 128), (1, 130, 2, 128), {"causal": True}),
                                     ((2, 1, 8, 128), (2, 300, 2, 128), {}),
                                     ((2, 1, 4, 64), (2, 200, 2, 64), {}),
                                     ((1, 1, 16, 192), (1, 700, 1, 192), {"latent": 128})):
            q, k, v = heads(*query), heads(*keys, seed=1), heads(*keys, seed=2)
            value = None if "latent" in options else v
            with self.subTest(query), sim():
                got = ft.attention(q, k, value, out_factor=factor, **options)
                expected = ft.attention(q, k, value, **options)
                self.assertEqual(got.dtype, torch.float8_e4m3fn)
                torch.testing.assert_close(got.float(), expected.float() * 3, rtol=0.07, atol=0.02)

    def test_one_graph(self) -> None:
        """torch.compile has one graph for any number of tokens."""
        def function(x: Any, offsets: Any, key: Any) -> Any:
            q, k, v = x.unbind(2)
            y, lse = ft.attention(q, k, v, causal=True, return_lse=True)
            packed = ft.attention(q[0], k[0], v[0], causal=True, cu_seqlens_q=offsets,
                                  cu_seqlens_k=offsets)
            scaled = ft.attention_scaled(q, k, v, causal=True, format="mxfp4")
            cache = ft.PagedCache(1, 64, key_heads=2, elements=64, format="fp8")
            cache.append(key, key)
            return y, lse, packed, ft.dequantize(scaled), cache.attention(key), cache.lengths

        graphs = GraphRecorder()
        fast = torch.compile(function, backend=graphs, fullgraph=True, dynamic=True)
        with sim():
            for tokens in (130, 201):
                arguments = (heads(1, tokens, 3, 2, 64), heads(1, tokens // 8, 2, 64))
                offsets = torch.tensor([0, 7, tokens], dtype=torch.int32)
                for found, expected in zip(fast(arguments[0], offsets, arguments[1]),
                                           function(arguments[0], offsets, arguments[1])):
                    self.assertTrue(torch.equal(found, expected))
        self.assertEqual(len(graphs), 1)

    def test_scaled(self) -> None:
        """Codes and scales are those of the quantizer, bit for bit."""
        for shape, format, number in (((1, 200, 2, 128), "mxfp4", None),
                                      ((1, 256, 4, 64), "nvfp4", torch.tensor(2.0))):
            q, k, v = (heads(*shape, seed=i) for i in range(3))
            with self.subTest(format), sim():
                got = ft.attention_scaled(q, k, v, causal=True, format=format, amax=number)
                elements = ft.attention(q, k, v, causal=True)
                expected = ft.quantize(elements.flatten(2).flatten(0, 1), format=format,
                                       amax=number)
                self.assertEqual(got.shape, expected.shape)
                for x, y in ((got.data, expected.data), (got.scales, expected.scales)):
                    self.assertTrue(torch.equal(x.view(torch.uint8).flatten(),
                                                y.view(torch.uint8).flatten()))

    def test_scaled_of_few_queries(self) -> None:
        """Warps, also over a cache of codes, and slices of latent keys have row-major scales."""
        codes, scales, _ = quantized(heads(2, 200, 2, 128, seed=1), "nv")
        cache = {"key_scales": scales, "value_scales": scales}
        small = heads(2, 200, 2, 64)
        for q, k, v, options in ((heads(2, 1, 4, 64), small, small, {}),
                                 (heads(2, 3, 4, 128), codes, codes, cache),
                                 (heads(1, 1, 16, 192), heads(1, 700, 1, 192), None,
                                  {"latent": 128})):
            for format, number in (("mxfp4", None), ("nvfp4", torch.tensor(2.0))):
                with self.subTest(str(options.keys()) + format), sim():
                    got = ft.attention_scaled(q, k, v, format=format, amax=number, layout="linear",
                                              **options)
                    elements = ft.attention(q, k, v, **options)
                    expected = ft.quantize(elements.flatten(2).flatten(0, 1), format=format,
                                           amax=number, layout="linear")
                    for x, y in ((got.data, expected.data), (got.scales, expected.scales)):
                        self.assertTrue(torch.equal(x.view(torch.uint8), y.view(torch.uint8)))

    def test_refused(self) -> None:
        q, few = heads(1, 128, 2, 64), heads(1, 4, 2, 64)
        with self.assertRaisesRegex(fp4.UsageError, "'out_factor' must be a float32 scalar"):
            ft.attention(q, q, q, out_factor=torch.ones(2))
        with self.assertRaisesRegex(fp4.UsageError, "'amax' must be given with format 'nvfp4'"):
            ft.attention_scaled(q, q, q)
        with self.assertRaisesRegex(fp4.UsageError, "'amax' must be left out with format 'mxfp4'"):
            ft.attention_scaled(q, q, q, format="mxfp4", amax=torch.tensor(1.0))
        with self.assertRaisesRegex(fp4.UsageError, "'return_lse' must be left out"):
            ft.attention_scaled(q, q, q, format="mxfp4", return_lse=True)
        with sim(), self.assertRaisesRegex(fp4.CompileError, "leave scales row-major"):
            ft.attention_scaled(few, few, few, format="mxfp4")

    def test_operators(self) -> None:
        q = heads(1, 128, 2, 64)
        scalars = (None, None, 0.125, False, *[None] * 10, False, 0, None)
        torch.library.opcheck(torch.ops.fp4.attention.default,
                              (q, q, q, *scalars, torch.tensor(2.0)))
        torch.library.opcheck(torch.ops.fp4.attention_scaled.default,
                              (q, q, q, *scalars, None, None, "mxfp4 linear"))


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Blocks(unittest.TestCase):
    def check(self, format: str, bound: float = 0.06, has_rows: bool = False,
              target: str = "sm_100a") -> None:
        x = [heads(1, tokens, count, 128, seed=i) for i, (tokens, count)
             in enumerate(((130, 2), (160, 1), (160, 1)))]
        (q, qs, query), (k, ks, key) = (quantized(y, format) for y in x[:2])
        v, options = x[2].to(torch.float8_e4m3fn), {}
        value = v.float()
        if has_rows:
            v, vs, rows = quantized(x[2].permute(0, 2, 3, 1).contiguous(), format)
            value, options = rows.permute(0, 3, 1, 2), {"value_scales": vs}
        with sim(target):
            got = ft.attention(q, k, v, query_scales=qs, key_scales=ks, causal=True, **options)
        self.assertEqual(got.dtype, torch.bfloat16)
        expected = plain(query, key, value, True, None)
        error = (got.float() - expected).abs().max() / expected.abs().max()
        self.assertLess(float(error), bound)

    def test_mx(self) -> None:
        self.check("mx")

    def test_nv(self) -> None:
        self.check("nv")

    def test_warps(self) -> None:
        """mma.sync multiplies them on sm_120a, with powers of f16."""
        for format in ("mx", "nv"):
            with self.subTest(format):
                self.check(format, 0.01, target="sm_120a")

    def test_throughout(self) -> None:
        for format, bound in (("nv", 0.2), ("mx", 0.06)):
            for target in ("sm_100a", "sm_120a"):
                with self.subTest(format, target=target):
                    self.check(format, bound, has_rows=True, target=target)

    def test_refused(self) -> None:
        q = heads(1, 16, 2, 64)
        codes, scales, _ = quantized(q, "mx")
        for arguments, given, text in (
                ((codes, codes, codes), {"query_scales": scales}, "must come together, but got"),
                ((codes, codes, codes), {"query_scales": scales[:, :8], "key_scales": scales},
                 r"'query_scales' must be float8_e8m0fnu of shape \[1, 16, 2, 2\]"),
                ((q, codes, codes), {"query_scales": scales, "key_scales": scales},
                 "'query' must be float8_e4m3fn, float4_e2m1fn_x2 or uint8"),
                ((codes, q, codes), {"query_scales": scales, "key_scales": scales},
                 "'key' must be of the dtype of 'query'"),
                ((codes, codes, q), {"query_scales": scales, "key_scales": scales},
                 "'value' must be float8_e4m3fn, or with 'value_scales'"),
                ((codes, codes, q), {"query_scales": scales, "key_scales": scales,
                                     "value_scales": scales},
                 "'value' must be float8_e4m3fn, or with 'value_scales'"),
                ((codes, codes, None),
                 {"query_scales": scales, "key_scales": scales, "latent": 32},
                 "'latent' must be left out beside 'query_scales'")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.attention(*arguments, **given)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Strides(unittest.TestCase):
    def test_slices_of_one_tensor(self) -> None:
        """Queries, keys and values of a fused projection are read where they are; others, also
        with strides that TMA cannot take, from copies."""
        every = heads(2, 130, 8, 64)
        q, k, v = every[:, :, :4], every[:, :, 4:6], every[:, :, 6:]
        with sim():
            expected = ft.attention(*(x.contiguous() for x in (q, k, v)), causal=True)
            self.assertTrue(torch.equal(ft.attention(q, k, v, causal=True), expected))
        for x, rows, columns in ((q, 260, 256), (k, 260, 128), (v[0], 130, 128)):
            matrix, has_gaps = strides.placed_tokens(x)
            self.assertTrue(has_gaps)
            self.assertEqual((*matrix.shape, matrix.stride(0)), (rows, columns, 512))
            self.assertEqual(matrix.data_ptr(), x.data_ptr())
        unaligned = heads(1, 16, 130, 1).view(1, 16, 1, 130)[..., :128]
        for x in (q.contiguous(), every.transpose(1, 2), unaligned):
            placed, has_gaps = strides.placed_tokens(x)
            self.assertFalse(has_gaps)
            self.assertTrue(placed.is_contiguous() and torch.equal(placed, x))
        unaligned = unaligned[:, ::2]
        with sim():
            self.assertTrue(torch.equal(ft.attention(*[unaligned] * 3),
                                        ft.attention(*[unaligned.contiguous()] * 3)))

    def test_packed_slices(self) -> None:
        """Packed sequences, queries over pages, and latent keys are read where they are."""
        offsets = torch.tensor([0, 70, 130], dtype=torch.int32)
        every, keys = heads(130, 8, 64), heads(2, 300, 2, 192)
        q, k, v = every[:, :4], every[:, 4:6], every[:, 6:]
        pages = torch.tensor([[0, 3, 5], [1, 2, 4]], dtype=torch.int32)
        cache = heads(6, 32, 2, 64, seed=1)
        paged = {"pages": pages, "lengths": torch.tensor([90, 70], dtype=torch.int32)}
        rows = heads(2, 3, 8, 64)[:, :, :4]
        turned = cache.transpose(1, 2).contiguous()
        for query, key, value, order, options in (
                (q, k, v, "q k v",
                 {"cu_seqlens_q": offsets, "cu_seqlens_k": offsets, "causal": True}),
                (q, cache, cache, "q", {"cu_seqlens_q": offsets, **paged}),
                (rows, cache, cache, "q", paged),
                (rows, turned, turned, "heads_first q", {"kv_layout": "HND", **paged}),
                (heads(2, 1, 20, 192)[:, :, :16], keys[:, :, :1], None, "q k", {"latent": 128})):
            dense = (None if x is None else x.contiguous() for x in (query, key, value))
            with self.subTest(f"{order} {list(options)}"), sim():
                with execution.collecting() as programs:
                    ft.attention(query, key, value, **options)
                (_, (what,), _, _), = programs
                self.assertEqual(what.order, order)
                self.assertTrue(torch.equal(ft.attention(query, key, value, **options),
                                            ft.attention(*dense, **options)))

    def test_results_in_place(self) -> None:
        """A slice of a wider buffer gets the bits of the result, and nothing else is written: by
        tiles, warps over codes, latent slices, of packed tokens, and in e4m3."""
        offsets = torch.tensor([0, 70, 130], dtype=torch.int32)
        packed = {"cu_seqlens_q": offsets, "cu_seqlens_k": offsets}
        cache = heads(2, 300, 2, 128, seed=1).to(torch.float8_e4m3fn)
        q = heads(2, 130, 4, 64)
        for query, key, value, options in (
                (q, q[:, :, :2], q[:, :, 2:], {"causal": True}),
                (heads(2, 1, 8, 128), cache, cache, {}),
                (heads(1, 1, 16, 192), heads(1, 700, 1, 192), None, {"latent": 128}),
                (heads(1, 3, 4, 64)[0], heads(1, 3, 4, 64)[0], heads(1, 3, 4, 64)[0],
                 {"cu_seqlens_q": offsets[:2] // 30, "cu_seqlens_k": offsets[:2] // 30}),
                (q[0], q[0], q[1], packed), (q, q, q, {"out_factor": torch.tensor(2.0)})):
            with self.subTest(f"{query.shape} {list(options)}"), sim():
                expected, lse = ft.attention(query, key, value, **options, return_lse=True)
                wide = torch.full((*expected.shape[:-2], expected.shape[-2] + 3,
                                   expected.shape[-1]), 7.0, dtype=expected.dtype)
                place = wide[..., 1:-2, :]
                got, sums = ft.attention(query, key, value, **options, out=place, return_lse=True)
                self.assertIs(got, place)
                self.assertTrue(torch.equal(sums, lse))
                self.assertTrue(torch.equal(place.view(torch.uint8), expected.view(torch.uint8)))
                rest = torch.cat([wide[..., :1, :], wide[..., -2:, :]], dim=-2)
                self.assertTrue((rest.float() == 7).all())
                self.assertIs(ft.attention(query, key, value, **options, out=expected), expected)
        torch.library.opcheck(torch.ops.fp4.attention_into.default,
                              (torch.empty(2, 130, 4, 64, dtype=torch.bfloat16), None, q, q, q,
                               None, None, 0.125, True), test_utils="test_schema")

    def test_wrong_places(self) -> None:
        q = heads(1, 16, 2, 64)
        wide = heads(1, 16, 5, 64)
        for out, text in ((wide, r"'out' must be bfloat16 of shape \[1, 16, 2, 64\], but got"),
                          (wide[:, :, ::2][:, :, :2], "'out' must have tokens at one distance"),
                          (heads(1, 16, 1, 131)[..., :128].unflatten(-1, (2, 64))[:, :, 0],
                           "multiple of 16 bytes, and adjacent heads"),
                          (wide[:, :, :2].half(), "'out' must be bfloat16")):
            with self.subTest(text), self.assertRaisesRegex(fp4.UsageError, text):
                ft.attention(q, q, q, out=out)
        with self.assertRaisesRegex(fp4.UsageError, "'out' must be left out where gradients flow"):
            ft.attention(q.requires_grad_(), q, q, out=wide[:, :, :2])
        with self.assertRaisesRegex(fp4.UsageError, "'out' must be left out"):
            ft.attention_scaled(q.detach(), q, q, format="mxfp4", out=wide[:, :, :2])

    def test_strides_that_tma_cannot_take(self) -> None:
        """A program takes rows at multiples of 16 bytes, and refuses others at the argument."""
        shape = (1, 16, 1, 128)
        what = attend_programs.Attention(shape, shape, shape, "bf16", 0.1, False, order="q k v")
        program = fp4.compile(attend_programs.text_of(what), target="sm_90a").program(
            fp4.Device("sim", target="sm_90a"))
        rows = heads(16, 136)
        program(*[rows[:, :128]] * 3)
        odd = heads(16, 132)[:, :128]
        with self.assertRaisesRegex(fp4.UsageError, "'key': strides .* must be multiples of 16"):
            program(rows[:, :128], odd, rows[:, :128])


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Checked(unittest.TestCase):
    def test_ranges(self) -> None:
        """Lengths and pages that do not exist are refused where they are checked, and else taken
        for the most keys and for zeros."""
        q, cache = heads(2, 1, 2, 64), heads(3, 16, 2, 64, seed=1)
        lengths = torch.tensor([20, 16], dtype=torch.int32)
        pages = torch.tensor([[0, 1], [2, 9]], dtype=torch.int32)
        for more, wrong, text in (
                ([33, 16], pages, "'lengths' must be from 0 to 32, but sequence 0 has 33"),
                ([20, -1], pages, "'lengths' must be from 0 to 32, but sequence 1 has -1"),
                ([20, 17], pages, "'pages' must be from 0 to 2, but page 1 of sequence 1 is 9"),
                ([20, 16], -pages, "'pages' must be from 0 to 2, but page 1 of sequence 0 is -1")):
            numbers = torch.tensor(more, dtype=torch.int32)
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.attention(q, cache, cache, lengths=numbers, pages=wrong, checked=True)
            with ft.checked(), self.assertRaisesRegex(fp4.UsageError, text):
                ft.attention(q, cache, cache, lengths=numbers, pages=wrong)
        with sim():
            got = ft.attention(q, cache, cache, lengths=lengths, pages=pages, checked=True)
            self.assertTrue(torch.equal(
                got, ft.attention(q, cache, cache, lengths=lengths, pages=pages)))
        with self.assertRaisesRegex(fp4.UsageError, "'lengths' must be from 0 to 8"):
            ft.attention(heads(1, 1, 1, 64), heads(1, 8, 1, 64), heads(1, 8, 1, 64),
                         lengths=torch.tensor([9], dtype=torch.int32), checked=True)

    def test_factors(self) -> None:
        """Kernels of queries of 8 bits need positive factors."""
        x, one = heads(1, 4, 1, 64).to(torch.float8_e4m3fn), torch.ones(1)
        for wrong in (-one, one * 0, one * float("nan")):
            with ft.checked(), self.assertRaisesRegex(fp4.UsageError, "'value_factors' must be"):
                ft.attention(x, x, x, key_factors=one, value_factors=wrong)
        with sim(), ft.checked():
            ft.attention(x, x, x, key_factors=one, value_factors=one)


if __name__ == "__main__":
    unittest.main()
