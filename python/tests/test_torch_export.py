"""fp4.torch.from_export: graphs of torch.export with scaled_mm, and what is refused."""

import unittest
from typing import Any

import fp4
from programs import torch

if torch is not None:
    import fp4.torch as ft
    from torch.nn.functional import ScalingType, SwizzleType, scaled_mm
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    TILES, NONE = SwizzleType.SWIZZLE_32_4_4, SwizzleType.NO_SWIZZLE
    RECIPES = {"nvfp4": [ScalingType.BlockWise1x16, ScalingType.TensorWise],
               "mxfp4": [ScalingType.BlockWise1x32]}

    class Linear(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        """A linear layer whose weight is quantized, in the words of torch alone."""

        def __init__(self, weight: Any, dtype: Any) -> None:
            super().__init__()
            self.register_buffer("weight", weight.data)
            self.register_buffer("scales", weight.scales.reshape(-1))
            if weight.amax is not None:
                self.register_buffer("number", weight.decode_scale)
            self.recipe, self.dtype = RECIPES[weight.format], dtype

        def forward(self, x: Any, *scales: Any) -> Any:
            numbers = [self.number] if len(scales) > 1 else []
            swizzles = [TILES, NONE][:len(scales)]
            return scaled_mm(x, self.weight.t(), list(scales), self.recipe,
                             [self.scales, *numbers], self.recipe, swizzle_a=swizzles,
                             swizzle_b=swizzles, output_dtype=self.dtype)


    class Layers(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        """A function of tensors."""

        def __init__(self, function: Any) -> None:
            super().__init__()
            self.function = function

        def forward(self, *tensors: Any) -> Any:
            return self.function(*tensors)


def turned(*tensors: Any, **options: Any) -> Any:
    """torch's attention of [B, S, H, D]."""
    return sdpa(*(x.transpose(1, 2) for x in tensors), **options).transpose(1, 2)


def operand(rows: int, format: str, seed: int) -> Any:
    x = torch.randn(rows, 64, generator=torch.Generator().manual_seed(seed))
    return ft.swizzle(ft.quantize(x.to(torch.bfloat16), format=format))


def inputs(x: Any) -> Any:
    numbers = [] if x.amax is None else [x.decode_scale]
    return (x.data, x.scales.reshape(-1), *numbers)


@unittest.skipIf(torch is None, "torch is not installed")
class FromExport(unittest.TestCase):
    def export(self, module: Any, arguments: Any) -> Any:
        return torch.export.export(module, arguments, strict=False)

    def test_gemms(self) -> None:
        for format, dtype in (("nvfp4", torch.bfloat16), ("mxfp4", torch.float32)):
            with self.subTest(format):
                x, w = operand(48, format, 1), operand(32, format, 2)
                module = Linear(w, dtype)
                linear = ft.from_export(self.export(module, inputs(x)))
                text = str(linear.builder)
                self.assertIn("fp4.matmul", text)
                self.assertNotIn("fp4.swizzle_scales", text)
                self.assertEqual("fp4.matmul_alpha" in text, format == "nvfp4")
                found = torch.as_tensor(linear(*inputs(x)))
                recipe = RECIPES[format]
                swizzles = [TILES, NONE][:len(recipe)]
                expected = ft.scaled_mm(x.data, w.data.t(), list(inputs(x)[1:]), recipe,
                                        list(inputs(w)[1:]), recipe, swizzles, swizzles,
                                        output_dtype=dtype)
                self.assertTrue(torch.equal(found, expected))

    def test_poisoned_padding(self) -> None:
        x, w = operand(48, "mxfp4", 1), operand(32, "mxfp4", 2)  # 2 of 4 blocks are padding
        linear = ft.from_export(self.export(Linear(w, torch.float32), inputs(x)))
        expected = torch.as_tensor(linear(*inputs(x)))
        scales = x.scales.view(torch.uint8).reshape(-1, 128, 4).clone()
        scales[:, :, 2:] = 0xFF
        poisoned = scales.view(torch.float8_e8m0fnu).reshape(-1)
        self.assertTrue(torch.equal(torch.as_tensor(linear(x.data, poisoned)), expected))

    def test_refused(self) -> None:
        x, w = operand(48, "mxfp4", 1), operand(32, "mxfp4", 2)

        class Behind(Linear):
            def forward(self, x: Any, *scales: Any) -> Any:
                return torch.relu(super().forward(x, *scales))

        with self.assertRaisesRegex(fp4.UsageError, r"node 'relu'.* has no counterpart in fp4: "
                                    r"it is aten\.relu\.default") as caught:
            ft.from_export(self.export(Behind(w, torch.float32), inputs(x)))
        self.assertIn("export what is around the matmuls by itself", caught.exception.note)

        class Linear32(Linear):
            def forward(self, x: Any, *scales: Any) -> Any:
                bias = torch.ones(32, dtype=torch.bfloat16)
                return scaled_mm(x, self.weight.t(), scales[0], self.recipe[0], self.scales,
                                 self.recipe[0], swizzle_a=TILES, swizzle_b=TILES, bias=bias)

        with self.assertRaisesRegex(fp4.UsageError, "it has a bias"):
            ft.from_export(self.export(Linear32(w, torch.bfloat16), inputs(x)))

    def test_attention(self) -> None:
        """Heads that share keys, a causal mask, and two layers over the same keys."""
        q, k, v = (torch.randn(2, 20, heads, 64).bfloat16() for heads in (4, 2, 2))
        for options in ({"is_causal": True}, {"scale": 0.3}):
            layers = Layers(lambda query, k, v, other, options=options: tuple(
                turned(x, k, v, enable_gqa=True, **options) for x in (query, other)))
            arguments = (q, k, v, 2 * q)
            program = ft.from_export(self.export(layers, arguments), target="sm_90a")
            text = str(program.builder)
            self.assertEqual(text.count("fp4.attention"), 2)
            self.assertEqual("causal" in text, "is_causal" in options)
            for got, expected in zip(program(*arguments), layers(*(x.float() for x in arguments))):
                torch.testing.assert_close(torch.as_tensor(got).float(), expected, rtol=2e-2,
                                           atol=1e-2)

    def test_repeated_heads(self) -> None:
        """Keys and values whose heads are repeated, as models write it, are read as they are."""
        q, k, v = (torch.randn(2, 20, heads, 64).bfloat16() for heads in (4, 2, 2))

        def indexed(x: Any) -> Any:
            b, h, s, d = x.shape
            return x[:, :, None, :, :].expand(b, h, 2, s, d).reshape(b, 2 * h, s, d)

        def interleaved(x: Any) -> Any:
            return x.repeat_interleave(2, dim=1)

        def attended(repeat: Any, **options: Any) -> Any:
            def forward(q: Any, k: Any, v: Any) -> Any:
                q, k, v = (x.transpose(1, 2) for x in (q, k, v))
                return sdpa(q, repeat(k), repeat(v), **options).transpose(1, 2)
            return Layers(forward)

        for repeat in (indexed, interleaved):
            layers = attended(repeat, is_causal=True)
            program = ft.from_export(self.export(layers, (q, k, v)), target="sm_90a")
            self.assertIn("tensor<2x20x2x64xbf16> -> tensor<2x20x4x64xbf16>", str(program.builder))
            expected = layers(*(x.float() for x in (q, k, v)))
            torch.testing.assert_close(torch.as_tensor(program(q, k, v)).float(), expected,
                                       rtol=2e-2, atol=1e-2)
        whole = [lambda x: x.repeat(1, 2, 1, 1),
                 lambda x: x[:, None].expand(2, 2, 2, 20, 64).reshape(2, 4, 20, 64)]
        for repeat in whole:  # heads take turns
            with self.assertRaisesRegex(fp4.UsageError, "must be the transposition"):
                ft.from_export(self.export(attended(repeat), (q, k, v)), target="sm_90a")

        def returned(q: Any, k: Any, v: Any) -> Any:
            x = indexed(k.transpose(1, 2))
            return sdpa(q.transpose(1, 2), x, x).transpose(1, 2), x

        with self.assertRaisesRegex(fp4.UsageError, "'output' reads it"):
            ft.from_export(self.export(Layers(returned), (q, k, v)), target="sm_90a")

    def test_refused_attention(self) -> None:
        q, k = torch.randn(1, 20, 2, 64).bfloat16(), torch.randn(1, 30, 2, 64).bfloat16()
        mask = torch.ones(20, 20, dtype=torch.bool)
        cases = (((q, q), lambda q, k: turned(q, k, k, attn_mask=mask), "it has a mask or dropout"),
                 ((q, q), lambda q, k: sdpa(q, k, k).transpose(1, 2), "must be the transposition"),
                 ((q, q), lambda q, k: sdpa(*(x.transpose(1, 2) for x in (q, k, k))),
                  "its result must be transposed"),
                 ((q, k), lambda q, k: turned(q, k, k, is_causal=True), "no keys behind them"),
                 ((k, q), lambda q, k: turned(q, k, k, is_causal=True), "must have as many keys"),
                 ((q.float(), q.float()), lambda q, k: turned(q, k, k), "must be bfloat16"),
                 ((q, q), lambda q, k: turned(q, torch.relu(k), k), "it is aten.relu.default"))
        for arguments, function, text in cases:
            with self.subTest(text=text), self.assertRaisesRegex(fp4.UsageError, text):
                ft.from_export(self.export(Layers(function), arguments), target="sm_90a")

    def test_attention_of_other_ranks(self) -> None:
        for shape in ((20, 2, 64), (3, 2, 20, 2, 64)):
            q = torch.randn(shape).bfloat16()
            with self.subTest(shape=shape), self.assertRaisesRegex(
                    fp4.UsageError, "'query' must have batches, heads, tokens and elements, but"):
                ft.from_export(self.export(Layers(turned), (q, q, q)), target="sm_90a")

    def test_transpositions_that_others_read(self) -> None:
        """The program has no transposed tensors, so that none is a result; queries and keys of two
        calls may be one."""
        q = torch.randn(1, 20, 2, 64).bfloat16()

        def returned(q: Any) -> Any:
            x = q.transpose(1, 2)
            return sdpa(x, x, x).transpose(1, 2), x

        with self.assertRaisesRegex(fp4.UsageError, "node 'transpose'.*'output' reads it"):
            ft.from_export(self.export(Layers(returned), (q,)), target="sm_90a")

        def twice(q: Any) -> Any:
            x = q.transpose(1, 2)
            return sdpa(x, x, x).transpose(1, 2), sdpa(x, x, x, scale=0.3).transpose(1, 2)

        program = ft.from_export(self.export(Layers(twice), (q,)), target="sm_90a")
        self.assertEqual(str(program.builder).count("fp4.attention"), 2)

    def test_inputs(self) -> None:
        x = operand(48, "mxfp4", 1)
        linear = ft.from_export(self.export(Linear(operand(32, "mxfp4", 2), torch.float32),
                                            inputs(x)))
        with self.assertRaisesRegex(fp4.UsageError, "the program has 2 inputs, but got 1"):
            linear(x.data)


if __name__ == "__main__":
    unittest.main()
