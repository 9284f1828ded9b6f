"""fp4.compat.torchao against torchao's formulas, written in torch, and against torchao itself where
it is installed. Every comparison is of bits."""

import unittest
from typing import Any

import fp4
from compat_formulas import data, dequantized, e2m1, same, to_blocked, torchao_formula
from programs import optional, torch

if torch is not None:
    from fp4.compat import torchao


@unittest.skipIf(torch is None, "torch is not installed")
class Torchao(unittest.TestCase):
    def test_nvfp4(self) -> None:
        for dtype in (torch.bfloat16, torch.float32):
            x = data(130, 96, dtype=dtype)
            for p in (None, torchao.per_tensor_amax_to_scale(x.abs().max())):
                expected = torchao_formula(x, p)
                found = torchao.NVFP4Tensor.to_nvfp4(x, per_tensor_scale=p)
                tiled = torchao.NVFP4Tensor.to_nvfp4(x, per_tensor_scale=p, is_swizzled_scales=True)
                same(self, found.qdata, expected[0])
                same(self, found.scale, expected[1])
                same(self, tiled.scale, to_blocked(expected[1]))
                self.assertEqual((found.scale.dtype, tuple(tiled.scale.shape)),
                                 (torch.float8_e4m3fn, (64, 32)))
                values = dequantized(*expected, p)
                for tensor in (found, tiled):
                    same(self, tensor.dequantize(torch.float32), values)
                    same(self, tensor.dequantize(torch.bfloat16), values.bfloat16())
                self.assertEqual(found.dequantize().dtype, dtype)

    def test_a_decode_scale_is_used_as_it_is(self) -> None:
        """1 / (1 / p) is another number for this p, and gives other values."""
        x, p = data(9, 64, dtype=torch.float32), torch.tensor(5.0) / 2688
        self.assertNotEqual(1 / (1 / p), p)
        found = torchao.NVFP4Tensor.to_nvfp4(x, per_tensor_scale=p)
        same(self, found.dequantize(torch.float32), dequantized(*torchao_formula(x, p), p))

    def test_linear_rounds_three_times(self) -> None:
        """The known answer of docs/reference/numerics.md.

        1 + 2^-8 and a factor of 1.5 give 1.5, and with one rounding 1.5078125.
        """
        x, w = torch.zeros(1, 32, dtype=torch.bfloat16), torch.zeros(16, 32, dtype=torch.bfloat16)
        x[0, 0], x[0, 16] = 6, 6 * 2.0 ** -4
        w[:, 0], w[:, 16] = 6, 6 * 2.0 ** -4
        p, q = torch.tensor(1.5 / 36), torch.tensor(1.0)
        a = torchao.NVFP4Tensor(*self.parts(x), 16, torch.bfloat16, p)
        b = torchao.NVFP4Tensor(*self.parts(w), 16, torch.bfloat16, q)
        y = torch.nn.functional.linear(a, b)
        total = torch.tensor(36 * (1 + 2.0 ** -8))
        expected = total.bfloat16() * (p * q).bfloat16()
        self.assertEqual(y[0, 0], expected)
        self.assertNotEqual(y[0, 0], (total * p * q).bfloat16())
        bias = torch.arange(16).bfloat16()
        biased = torch.nn.functional.linear(a, b, bias)
        same(self, biased, y + bias)

    @staticmethod
    def parts(x: Any) -> "tuple[Any, Any]":
        plain = torchao.NVFP4Tensor.to_nvfp4(x)
        return plain.qdata, plain.scale

    def test_linear_with_both_layouts(self) -> None:
        x, w = data(20, 64), data(48, 64, 1)
        results = []
        for swizzled in (False, True):
            a, b = (torchao.NVFP4Tensor.to_nvfp4(
                value, per_tensor_scale=torchao.per_tensor_amax_to_scale(value.abs().max()),
                is_swizzled_scales=swizzled) for value in (x, w))
            results.append(torch.nn.functional.linear(a, b))
        same(self, *results)
        exact = x.float() @ w.float().T
        self.assertLess(((results[0].float() - exact).norm() / exact.norm()).item(), 0.2)

    def test_mxfp4(self) -> None:
        x = data(130, 96, dtype=torch.float32)
        blocks = x.view(130, -1, 32)
        amax = blocks.abs().amax(-1, keepdim=True)
        byte = ((amax.view(torch.int32) >> 23) - 2).clamp(min=0)
        factor = torch.exp2(127.0 - byte.clamp(min=1).double())
        expected = e2m1((blocks * factor).float().view(x.shape))
        found = torchao.MXTensor.to_mx(x, torch.float4_e2m1fn_x2)
        tiled = torchao.MXTensor.to_mx(x, torch.float4_e2m1fn_x2, is_swizzled_scales=True)
        same(self, found.qdata, expected)
        same(self, found.scale, byte.to(torch.uint8))
        same(self, tiled.scale, to_blocked(found.scale))
        self.assertEqual((found.scale.dtype, tuple(tiled.scale.shape)),
                         (torch.float8_e8m0fnu, (64, 16)))
        same(self, found.dequantize(), tiled.dequantize())

    def test_a_stack(self) -> None:
        """Each matrix is quantized by itself, with the scale of all or its own."""
        x = torch.stack([data(128, 64, seed) for seed in (1, 2)])
        own = torchao.per_tensor_amax_to_scale(x.abs().amax((1, 2), keepdim=True))
        for level in (None, own[0].reshape(()), own):
            for swizzled in (False, True):
                found = torchao.NVFP4Tensor.to_nvfp4(x, 16, level, is_swizzled_scales=swizzled)
                self.assertEqual((found.shape, found.scale.shape[0]), (x.shape, 2))
                values = found.dequantize()
                for number, one in enumerate(x):
                    single = torchao.NVFP4Tensor.to_nvfp4(
                        one, 16, level if level is None or not level.dim() else
                        own[number].reshape(()), is_swizzled_scales=swizzled)
                    for name in ("qdata", "scale"):
                        self.assertEqual(getattr(found, name)[number].shape,
                                         getattr(single, name).shape)
                        same(self, getattr(found, name)[number], getattr(single, name))
                    same(self, values[number], single.dequantize())

    @unittest.skipIf(optional("torchao") is None, "torchao is not installed")
    def test_the_package_itself(self) -> None:
        from torchao.prototype.mx_formats import config, mx_tensor, nvfp4_tensor

        for dtype, rows, columns in ((torch.bfloat16, 130, 160), (torch.float32, 9, 64)):
            x = data(rows, columns, dtype=dtype)
            for swizzled in (False, True):
                for p in (None, nvfp4_tensor.per_tensor_amax_to_scale(x.abs().max())):
                    named = {"per_tensor_scale": p, "is_swizzled_scales": swizzled}
                    self.compare(torchao.NVFP4Tensor.to_nvfp4(x, **named),
                                 nvfp4_tensor.NVFP4Tensor.to_nvfp4(x, **named))
                    if rows % 128 == 0 or not swizzled:
                        named["per_tensor_scale"] = None if p is None else p * torch.tensor(
                            [1.0, 2.0]).view(2, 1, 1)
                        stack = torch.stack((x, x.flip(0)))
                        self.compare(torchao.NVFP4Tensor.to_nvfp4(stack, **named),
                                     nvfp4_tensor.NVFP4Tensor.to_nvfp4(stack, **named))
                for mode in config.ScaleCalculationMode:
                    named = {"scaling_mode": mode, "is_swizzled_scales": swizzled}
                    self.compare(
                        torchao.MXTensor.to_mx(x, torch.float4_e2m1fn_x2, **named),
                        mx_tensor.MXTensor.to_mx(x, torch.float4_e2m1fn_x2, **named))

    def compare(self, found: Any, expected: Any) -> None:
        self.assertEqual((found.scale.shape, found.scale.dtype, found.shape),
                         (expected.scale.shape, expected.scale.dtype, expected.shape))
        same(self, found.qdata, expected.qdata)
        same(self, found.scale, expected.scale)
        for dtype in (torch.float32, torch.bfloat16):
            same(self, found.dequantize(dtype), expected.dequantize(dtype))

    def test_what_is_refused(self) -> None:
        x = data(16, 64)
        tensor = torchao.NVFP4Tensor.to_nvfp4(x)
        for call, message in (
                (lambda: torchao.NVFP4Tensor.to_nvfp4(x, 32), "block_size = 32 has no kernel"),
                (lambda: torchao.NVFP4Tensor.to_nvfp4(x, use_triton_kernel=True),
                 "use_triton_kernel has no kernel"),
                (lambda: torchao.NVFP4Tensor.to_nvfp4(x.half()), "must be bfloat16 or float32"),
                (lambda: torchao.NVFP4Tensor.to_nvfp4(x.view(2, 2, 4, 64)), "4 dimensions"),
                (lambda: torchao.NVFP4Tensor.to_nvfp4(x.view(2, 8, 64), is_swizzled_scales=True),
                 "matrices of a multiple of 128 rows beside swizzled scales"),
                (lambda: torchao.NVFP4Tensor.to_nvfp4(x.view(2, 8, 64), 16, torch.ones(2)),
                 "must be one float32, or of shape \\[2, 1, 1\\]"),
                (lambda: torch.nn.functional.linear(
                    torchao.NVFP4Tensor.to_nvfp4(x.view(2, 8, 64)), tensor), "must be matrices"),
                (lambda: torchao.MXTensor.to_mx(x, torch.float8_e4m3fn), "elem_dtype"),
                (lambda: torch.nn.functional.linear(x, tensor), "must be NVFP4Tensors both"),
                (lambda: torch.nn.functional.linear(tensor, tensor, x[0, :16]),
                 "a bias without tensor scales"),
                (lambda: torch.relu(tensor), "'relu' does not take an NVFP4Tensor")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                call()


if __name__ == "__main__":
    unittest.main()
