"""fp4.compat against the formulas of FlashInfer and vLLM, written in torch. Every comparison is of
bits."""

import os
import subprocess
import sys
import unittest
from typing import Any
from unittest import mock

import fp4
from compat_formulas import (
    data,
    dequantized,
    e2m1,
    fast,
    flashinfer_exact,
    same,
    to_blocked,
    vllm_tiles,
)
from graph_recorder import GraphRecorder
from programs import torch

if torch is not None:
    from fp4.compat import _programs, flashinfer, vllm


@unittest.skipIf(torch is None, "torch is not installed")
class Flashinfer(unittest.TestCase):
    def test_quantize_without_fast_math(self) -> None:
        with mock.patch.dict(os.environ, FLASHINFER_DISABLE_FP4_QUANT_FAST_MATH="1"):
            for dtype in (torch.bfloat16, torch.float16):
                x = data(130, 96, dtype=dtype)
                g = (448 * 6) / x.float().abs().max()
                codes, scales = flashinfer.nvfp4_quantize(x, g)
                expected = flashinfer_exact(x, g)
                self.assertEqual((scales.dtype, tuple(scales.shape)), (torch.uint8, (256, 8)))
                same(self, codes, expected[0])
                same(self, scales, to_blocked(expected[1]))
                codes, scales = flashinfer.nvfp4_quantize(
                    x, g, flashinfer.SfLayout.layout_linear)
                self.assertEqual(tuple(scales.shape), (130, 6))
                same(self, scales, expected[1])

    def test_quantize_with_fast_math(self) -> None:
        for exponent in (4, 6, 9):  # of g; at 9 the outlier saturates
            x, g = data(9, 64, exponent), torch.tensor([2.0 ** exponent])
            x[3, :16] = 2.0 ** -4 * g.reciprocal()
            x[0, :16] = 0.5  # a block of zeros beside nonzero ones has its own test
            codes, scales = flashinfer.nvfp4_quantize(x, g, flashinfer.SfLayout.layout_linear)
            expected = fast(x, g, zero_is_of_scale=False)
            same(self, scales, expected[1])
            same(self, codes, expected[0])

    def test_a_scale_that_rounds_to_zero(self) -> None:
        """FlashInfer saturates its elements, NaN for zeros; vLLM makes them zero."""
        x = torch.zeros(1, 16, dtype=torch.bfloat16)
        x[0, 1] = 2.0 ** -20
        g = torch.ones(1)
        codes, scales = flashinfer.nvfp4_quantize(x, g, flashinfer.SfLayout.layout_linear)
        self.assertEqual((codes.tolist(), scales.tolist()), ([[0x77] * 8], [[0]]))
        codes, scales = vllm.scaled_fp4_quant(x, g, False)
        self.assertEqual((codes.tolist(), scales.view(torch.uint8).tolist()), ([[0] * 8], [[0]]))

    def test_fast_math_equals_the_model_for_every_scale(self) -> None:
        """Approximate reciprocals: the bits are those of lib/Numerics, which has the table of an
        H200, and some differ from those of exact ones."""
        x = data(64, 256)
        different = 0
        for g in (523.21167, 67.3, 411.7):
            scale = torch.tensor(g)
            codes, scales = flashinfer.nvfp4_quantize(x, scale, flashinfer.SfLayout.layout_linear)
            program = _programs.quantizer(256, "bf16", flashinfer._FAST, "linear", "a",
                                          "a_global_sf", "sm_100a")
            verified = program(x, scale, verify=True)
            same(self, codes, verified[0])
            same(self, scales, verified[1])
            expected = fast(x, scale, zero_is_of_scale=False)
            same(self, scales, expected[1])
            unlike = (codes != expected[0]).sum().item()
            different += unlike
            self.assertLess(unlike, 0.01 * codes.numel() + 10)
        self.assertGreater(different, 0)

    def test_mxfp4(self) -> None:
        x = data(40, 64)
        x[5, 32:] = 2.0 ** -120
        codes, scales = flashinfer.mxfp4_quantize(x, sfLayout=flashinfer.SfLayout.layout_linear)
        blocks = x.float().view(40, -1, 32)
        least = blocks.abs().amax(-1, keepdim=True) * torch.tensor(1 / 6, dtype=torch.float32)
        byte = ((least.view(torch.int32) + 0x7FFFFF) >> 23).clamp(max=254)
        factor = torch.where(byte == 0, 1.0, torch.exp2(127.0 - byte.double()))
        same(self, scales, byte.to(torch.uint8))
        same(self, codes, e2m1((blocks * factor).float().view(x.shape)))
        tiled, tiles = flashinfer.mxfp4_quantize(x)
        same(self, tiles, to_blocked(scales))
        values = flashinfer.mxfp4_dequantize(tiled, tiles)
        same(self, values, flashinfer.mxfp4_dequantize(codes, scales,
                                                       flashinfer.SfLayout.layout_linear))
        self.assertLess(((values - x.float())[7:]).abs().max().item(), 0.5)

    def test_dequantize(self) -> None:
        x = data(33, 64)
        g = (448 * 6) / x.float().abs().max()
        d = 1 / g
        for layout in (flashinfer.SfLayout.layout_linear, flashinfer.SfLayout.layout_128x4):
            codes, scales = flashinfer.nvfp4_quantize(x, g, layout)
            values = flashinfer.e2m1_and_ufp8sf_scale_to_float(
                codes, scales, d, is_sf_swizzled_layout=layout == 0)
            linear = flashinfer.nvfp4_quantize(x, g, flashinfer.SfLayout.layout_linear)[1]
            same(self, values, dequantized(codes, linear.view(torch.float8_e4m3fn), d))

    def test_interleave(self) -> None:
        scales = torch.randint(0, 255, (130, 6), dtype=torch.uint8)
        tiles = flashinfer.block_scale_interleave(scales)
        same(self, tiles, to_blocked(scales))
        out = torch.empty_like(tiles)
        self.assertIs(flashinfer.nvfp4_block_scale_interleave(scales, out=out), out)
        same(self, out, tiles)

    def test_a_gemm(self) -> None:
        x, w = data(130, 128), data(64, 128, 1)
        gx, gw = ((448 * 6) / value.float().abs().max() for value in (x, w))
        qx, sx = flashinfer.nvfp4_quantize(x, gx)
        qw, sw = flashinfer.nvfp4_quantize(w, gw)
        alpha = 1 / (gx * gw)
        y = flashinfer.mm_fp4(qx, qw.T, sx, sw.T, alpha)
        linear = flashinfer.SfLayout.layout_linear
        fx, fw = (dequantized(q, flashinfer.nvfp4_quantize(v, g, linear)[1].view(
            torch.float8_e4m3fn), torch.tensor(1.0)).double()
            for q, v, g in ((qx, x, gx), (qw, w, gw)))
        exact = (fx @ fw.T) * alpha.double()
        self.assertEqual((y.dtype, tuple(y.shape)), (torch.bfloat16, (130, 64)))
        self.assertLess(((y.double() - exact).abs() / (exact.abs() + 1e-3)).max().item(), 2 ** -7)
        same(self, flashinfer.mm_fp4(qx, qw.T, sx, sw, alpha), y)
        same(self, flashinfer.mm_fp4(qx, qw.T, sx, sw.T, alpha.repeat(130)), y)
        out = torch.empty(130, 64, dtype=torch.float16)
        self.assertIs(flashinfer.mm_fp4(qx, qw.T, sx, sw.T, alpha, torch.float16, out), out)
        mx, mw = flashinfer.mxfp4_quantize(x), flashinfer.mxfp4_quantize(w)
        z = flashinfer.mm_fp4(mx[0], mw[0].T, mx[1], mw[1].T, block_size=32, use_nvfp4=False)
        fx, fw = (flashinfer.mxfp4_dequantize(*value).double() for value in (mx, mw))
        exact = fx @ fw.T
        self.assertLess(((z.double() - exact).abs() / (exact.abs() + 1)).max().item(), 2 ** -7)

    def test_tiles_of_eight_rows(self) -> None:
        layout = flashinfer.SfLayout.layout_8x4
        for rows, columns in ((13, 96), (16, 64)):
            x, g = data(rows, columns), torch.tensor(64.0)
            codes, scales = flashinfer.nvfp4_quantize(x, g, layout)
            linear = flashinfer.nvfp4_quantize(x, g, flashinfer.SfLayout.layout_linear)
            high, wide = -(-rows // 8) * 8, -(-columns // 64) * 4
            expected = torch.zeros(high, wide, dtype=torch.uint8)
            for row in range(rows):
                for block in range(columns // 16):
                    offset = ((row // 8 * (wide // 4) + block // 4) * 32 + row % 8 * 4 + block % 4)
                    expected.view(-1)[offset] = linear[1][row, block]
            self.assertEqual(scales.shape, (high, wide))
            same(self, codes, linear[0])
            same(self, scales, expected)
            values = flashinfer.e2m1_and_ufp8sf_scale_to_float(codes, scales, 1 / g,
                                                               is_sf_8x4_layout=True)
            same(self, values, flashinfer.e2m1_and_ufp8sf_scale_to_float(
                *linear, 1 / g, is_sf_swizzled_layout=False))
            mx = flashinfer.mxfp4_quantize(x, sfLayout=layout)
            same(self, flashinfer.mxfp4_dequantize(*mx, layout),
                 flashinfer.mxfp4_dequantize(*flashinfer.mxfp4_quantize(x)))
            with self.assertRaisesRegex(fp4.UsageError, "must be tiled_128x4 scales of"):
                flashinfer.mm_fp4(codes, codes.T, scales, scales.T)
            ours = vllm.scaled_fp4_quant(x, g, True, "trtllm")
            same(self, ours[1], vllm_tiles(vllm.scaled_fp4_quant(x, g, False)[1]))

    def test_scales_of_rows(self) -> None:
        x = data(9, 64)
        x[7] = 0
        inverse, linear = 1 / (448 * 6), flashinfer.SfLayout.layout_linear
        for exact in ("0", "1"):
            with mock.patch.dict(os.environ, FLASHINFER_DISABLE_FP4_QUANT_FAST_MATH=exact):
                codes, scales, tokens = flashinfer.nvfp4_quantize(
                    x, inverse, linear, per_token_activation=True)
                self.assertEqual((tokens.dtype, tokens.shape), (torch.float32, (9,)))
                amax = x.float().abs().amax(1)
                torch.testing.assert_close(tokens[:7], amax[:7] * inverse)
                for row in (2, 5, 8):  # each is as a matrix of its own
                    one = flashinfer.nvfp4_quantize(x[row:row + 1], 1 / tokens[row:row + 1], linear)
                    same(self, codes[row], one[0][0])
                    same(self, scales[row], one[1][0])
                self.assertFalse(codes[7].any() or scales[7].any())
                given = flashinfer.nvfp4_quantize(x, torch.tensor([inverse]), linear,
                                                  per_token_activation=True)
                same(self, given[0], codes)
                same(self, given[2], tokens)

    def test_silu_and_mul(self) -> None:
        x, g = torch.cat((data(9, 64, 1), data(9, 64)), 1), torch.tensor([4.0])
        product = (torch.nn.functional.silu(x[:, :64].float()) * x[:, 64:].float()).bfloat16()
        for named, layout in (({}, 0), ({"is_sf_8x4_layout": True}, 1),
                              ({"is_sf_swizzled_layout": False}, 2)):
            found = flashinfer.silu_and_mul_nvfp4_quantize(x, g, **named)
            for one, other in zip(found, flashinfer.nvfp4_quantize(product, g, layout)):
                self.assertEqual(one.shape, other.shape)
                same(self, one, other)

    def test_mxfp8(self) -> None:
        x = data(40, 64)
        x[5, 32:], x[6, :32] = 2.0 ** -130, 448 * 2.0 ** 3
        codes, scales = flashinfer.mxfp8_quantize(x, False)
        blocks = x.float().view(40, -1, 32)
        least = blocks.abs().amax(-1).double() / 448
        byte = (torch.ceil(torch.log2(least)).clamp(min=-127) + 127).where(least > 0, 0)
        same(self, scales, byte.to(torch.uint8))
        values = codes.float().view(40, -1, 32) * torch.exp2(byte - 127)[..., None]
        self.assertLess(((values - blocks).abs() / (blocks.abs() + 2.0 ** -9)).max().item(), 0.0627)
        self.assertEqual((codes.dtype, codes.shape, scales.shape),
                         (torch.float8_e4m3fn, (40, 64), (80,)))
        tiled = flashinfer.mxfp8_quantize(x)
        same(self, tiled[0], codes)
        same(self, tiled[1], to_blocked(scales.view(40, 2)))
        wide, more = flashinfer.mxfp8_quantize(x, False, 128)
        self.assertEqual((wide.shape, more.shape), ((40, 128), (160,)))
        same(self, wide[:, :64].contiguous(), codes)
        with self.assertRaisesRegex(fp4.UsageError, "'alignment' must be a multiple of 32"):
            flashinfer.mxfp8_quantize(x, True, 48)

    def test_scales_and_rows_are_converted_as_there(self) -> None:
        x, linear = data(9, 64), flashinfer.SfLayout.layout_linear
        expected = flashinfer.nvfp4_quantize(x, torch.tensor(96.0), linear)
        for g in (torch.tensor([96.0], dtype=torch.bfloat16), torch.tensor(96.0).double()):
            for one, other in zip(flashinfer.nvfp4_quantize(x, g, linear), expected):
                same(self, one, other)
        wide = torch.cat((x, x), 1)
        for rows in (wide[:, 64:], x.t().clone().t()):
            for one, other in zip(flashinfer.nvfp4_quantize(rows, torch.tensor(96.0), linear),
                                  expected):
                same(self, one, other)

    def test_options_without_a_kernel_are_refused(self) -> None:
        x, g = data(16, 32), torch.ones(())
        for named, message in (
                ({"sfLayout": 7}, "'sfLayout' must be an SfLayout, but got 7"),
                ({"do_shuffle": True}, "do_shuffle has no kernel"),
                ({"backend": "cute-dsl"}, "backend = 'cute-dsl' has no kernel"),
                ({"out_scale": g}, "out_scale has no kernel"),
                ({"expanded_idx_to_permuted_idx": g}, "expanded_idx_to_permuted_idx has no kern"),
                ({"nvfp4_4over6": object()}, "nvfp4_4over6"),
                ({"sf_vec_size": 32}, "sf_vec_size = 32")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                flashinfer.nvfp4_quantize(x, g, **named)
        with mock.patch.dict(os.environ, FLASHINFER_NVFP4_4OVER6="1"):
            with self.assertRaisesRegex(fp4.UsageError, "nvfp4_4over6 with a global scale"):
                flashinfer.nvfp4_quantize(x, g)
            flashinfer.nvfp4_quantize(x, g, nvfp4_4over6=None)

    def test_arguments_that_do_not_fit(self) -> None:
        x, g = data(16, 32), torch.ones(())
        for arguments, message in (
                ((x.float(), g), "'a' must be bfloat16 or float16, but got float32"),
                ((x[:, :24].contiguous(), g), "rows of a multiple of 16"),
                ((x, g.int()), "'a_global_sf' must be one float32, but got int32"),
                ((x, torch.ones(2)), "'a_global_sf' must be one float32")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                flashinfer.nvfp4_quantize(*arguments)
        with self.assertRaisesRegex(TypeError, "'a_global_sf' must be a torch tensor, but got"):
            flashinfer.nvfp4_quantize(x, 1.0)


@unittest.skipIf(torch is None, "torch is not installed")
class Layouts(unittest.TestCase):
    """A producer of one layout and a consumer of the other are an error, also where the shapes are
    the same."""

    def operands(self, layout: Any) -> "tuple[Any, Any]":
        codes, scales = flashinfer.nvfp4_quantize(data(128, 64), torch.ones(()), layout)
        return codes, scales

    def test_linear_scales_in_a_gemm(self) -> None:
        linear, tiled = (self.operands(layout) for layout in (
            flashinfer.SfLayout.layout_linear, flashinfer.SfLayout.layout_128x4))
        self.assertEqual(linear[1].shape, tiled[1].shape)
        y = flashinfer.mm_fp4(tiled[0], tiled[0].T, tiled[1], tiled[1].T)
        message = ("'a_descale' must be tiled_128x4 scales of 128 x 4, but got linear scales of "
                   "128 x 4 that nvfp4_quantize made")
        for scales in (linear[1], linear[1].view(torch.float8_e4m3fn), linear[1].reshape(-1),
                       linear[1].detach()):
            with self.assertRaisesRegex(fp4.UsageError, message):
                flashinfer.mm_fp4(tiled[0], tiled[0].T, scales, tiled[1].T)
        with self.assertRaisesRegex(fp4.UsageError, "'b_descale' must be tiled"):
            flashinfer.mm_fp4(tiled[0], tiled[0].T, tiled[1], linear[1].T)
        with self.assertRaisesRegex(fp4.UsageError, "'block_scale_b' must be tiled"):
            vllm.cutlass_scaled_fp4_mm(tiled[0], tiled[0], tiled[1], linear[1], torch.ones(()),
                                       torch.bfloat16)
        moved = flashinfer.block_scale_interleave(linear[1])
        same(self, flashinfer.mm_fp4(tiled[0], tiled[0].T, moved, tiled[1].T), y)

    def test_tiled_scales_where_linear_ones_are_read(self) -> None:
        codes, tiled = self.operands(flashinfer.SfLayout.layout_128x4)
        message = "must be linear scales of 128 x 4, but got tiled"
        with self.assertRaisesRegex(fp4.UsageError, message):
            flashinfer.block_scale_interleave(tiled)
        with self.assertRaisesRegex(fp4.UsageError, message):
            flashinfer.e2m1_and_ufp8sf_scale_to_float(codes, tiled, torch.ones(()),
                                                      is_sf_swizzled_layout=False)

    def test_scales_that_were_overwritten(self) -> None:
        (codes, tiled), (_, linear) = (self.operands(layout) for layout in (
            flashinfer.SfLayout.layout_128x4, flashinfer.SfLayout.layout_linear))
        flashinfer.mm_fp4(codes, codes.T, tiled, tiled.T)
        for view in (tiled, torch.nn.Parameter(tiled, False), tiled.view(torch.float8_e4m3fn)):
            flashinfer.mm_fp4(codes, codes.T, view, tiled.T)
        tiled.view(torch.float8_e4m3fn).copy_(linear.view(torch.float8_e4m3fn))
        with self.assertRaisesRegex(fp4.UsageError, "from elsewhere may as well be linear"):
            flashinfer.mm_fp4(codes, codes.T, tiled, tiled.T)
        with torch.inference_mode():
            codes, tiled = self.operands(flashinfer.SfLayout.layout_128x4)
            flashinfer.mm_fp4(codes, codes.T, tiled, tiled.T)

    def test_a_right_side_that_is_not_transposed(self) -> None:
        codes, tiled = flashinfer.nvfp4_quantize(data(128, 256), torch.ones(()))  # [N, K/2] square
        for b in (codes, codes.T.contiguous()):
            with self.assertRaisesRegex(fp4.UsageError, "'b' must be column-major, but its st"):
                flashinfer.mm_fp4(codes, b, tiled, tiled.T)

    def test_scales_from_elsewhere(self) -> None:
        codes, tiled = self.operands(flashinfer.SfLayout.layout_128x4)
        y = flashinfer.mm_fp4(codes, codes.T, tiled, tiled.T)
        copy = tiled.clone()
        with self.assertRaisesRegex(fp4.UsageError, "may as well be linear") as caught:
            flashinfer.mm_fp4(codes, codes.T, copy, tiled.T)
        self.assertIn("pass fp4.tiled(scales, 128, 4)", caught.exception.note)
        said = fp4.tiled(copy, 128, 4)
        same(self, flashinfer.mm_fp4(codes, codes.T, said, said), y)
        with self.assertRaisesRegex(fp4.UsageError, "got tiled_128x4 scales of 128 x 8"):
            flashinfer.mm_fp4(codes, codes.T, fp4.tiled(copy, 128, 8), tiled.T)

    def test_scales_of_other_sizes(self) -> None:
        codes, tiled = self.operands(flashinfer.SfLayout.layout_128x4)
        other = flashinfer.nvfp4_quantize(data(100, 64), torch.ones(()))[1]
        self.assertEqual(other.shape, tiled.shape)
        with self.assertRaisesRegex(fp4.UsageError, "got tiled_128x4 scales of 100 x 4"):
            flashinfer.mm_fp4(codes, codes.T, other, tiled.T)
        with self.assertRaisesRegex(fp4.UsageError, "a tensor of shape .128, 4., but got .1, 4."):
            flashinfer.mm_fp4(codes, codes.T, tiled[:1].clone(), tiled.T)
        with self.assertRaisesRegex(fp4.UsageError, "'b' must be column-major, but"):
            flashinfer.mm_fp4(codes, codes.T.contiguous(), tiled, tiled.T)

    def test_padding_does_not_matter(self) -> None:
        """NaN in the scales of rows that do not exist, and any number in those of columns, leave a
        matmul as it is. (NaN in columns would be read: their padding must be zero.)"""
        codes, tiles = flashinfer.nvfp4_quantize(data(130, 80), torch.ones(()))
        y = flashinfer.mm_fp4(codes, codes.T, tiles, tiles.T)
        padding = to_blocked(torch.ones(130, 5, dtype=torch.uint8)) == 0
        rows = to_blocked(torch.ones(130, 8, dtype=torch.uint8)) == 0
        self.assertEqual(padding.sum().item(), 256 * 8 - 130 * 5)
        tiles.view(-1)[padding] = 0x7E
        tiles.view(-1)[rows] = 0x7F
        same(self, flashinfer.mm_fp4(codes, codes.T, tiles, tiles.T), y)

    def test_a_note_ends_with_its_memory(self) -> None:
        codes, tiled = self.operands(flashinfer.SfLayout.layout_128x4)
        for _ in range(300):
            linear = flashinfer.nvfp4_quantize(data(8, 64), torch.ones(()),
                                               flashinfer.SfLayout.layout_linear)[1]
            del linear
        from fp4.compat._layouts import _NOTES
        self.assertLess(len(_NOTES._notes), 200)
        flashinfer.mm_fp4(codes, codes.T, tiled, tiled.T)


@unittest.skipIf(torch is None, "torch is not installed")
class Vllm(unittest.TestCase):
    def test_quantize(self) -> None:
        for exponent in (4, 7):
            x, g = data(9, 64, exponent), torch.tensor([2.0 ** exponent])
            codes, scales = vllm.scaled_fp4_quant(x, g, False)
            expected = fast(x, g, zero_is_of_scale=True)
            self.assertEqual(scales.dtype, torch.float8_e4m3fn)
            same(self, scales, expected[1])
            same(self, codes, expected[0])
            codes, scales = vllm.scaled_fp4_quant(x.view(3, 3, 64), g)
            self.assertEqual((tuple(codes.shape), tuple(scales.shape)), ((9, 32), (128, 4)))
            same(self, codes, expected[0])
            same(self, scales, to_blocked(expected[1]))

    def test_padding_of_k(self) -> None:
        x, g = data(130, 80), torch.tensor([16.0])
        full = torch.zeros(130, 144, dtype=torch.bfloat16)
        full[:, :80] = x
        for swizzled in (False, True):
            codes, scales = vllm.scaled_fp4_quant(x, g, swizzled, padded_n=144)
            expected = vllm.scaled_fp4_quant(full, g, swizzled)
            self.assertEqual(scales.shape, expected[1].shape)
            same(self, codes, expected[0])
            same(self, scales, expected[1])

    def test_a_gemm_is_that_of_flashinfer(self) -> None:
        x, w = data(20, 64), data(48, 64, 1)
        g, alpha = torch.tensor(16.0), torch.tensor(1 / 256)
        (qx, sx), (qw, sw) = (vllm.scaled_fp4_quant(value, g) for value in (x, w))
        y = vllm.cutlass_scaled_fp4_mm(qx, qw, sx, sw, alpha, torch.float16)
        same(self, y, flashinfer.mm_fp4(qx, qw.T, sx, sw.T, alpha, torch.float16))
        exact = x.double() @ w.double().T
        self.assertLess(((y.double() - exact).norm() / exact.norm()).item(), 0.2)

    def test_arguments_that_do_not_fit(self) -> None:
        x, g = data(16, 64), torch.ones(())
        for arguments, message in (
                ((x, g, True, "none", 72), "'padded_n' must be a multiple of 16 of at least 64"),
                ((x, g, True, "none", 48), "'padded_n' must be a multiple of 16 of at least 64"),
                ((x.float(), g), "'input' must be bfloat16 or float16")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                vllm.scaled_fp4_quant(*arguments)


@unittest.skipIf(torch is None, "torch is not installed")
class Compiled(unittest.TestCase):
    def test_a_graph_breaks_at_the_functions(self) -> None:
        """Dynamo traces none of their code: it would compile a program for every call."""
        graphs = GraphRecorder()

        def product(x: Any, w: Any, g: Any) -> Any:
            (a, sa), (b, sb) = vllm.scaled_fp4_quant(x * 2, g), vllm.scaled_fp4_quant(w, g)
            return vllm.cutlass_scaled_fp4_mm(a, b, sa, sb, 1 / (g * g), torch.bfloat16) + 1

        x, w, g = data(9, 64), data(48, 64, 1), torch.tensor(16.0)
        expected = product(x, w, g)
        for _ in range(2):
            same(self, torch.compile(product, backend=graphs)(x, w, g), expected)
        self.assertLessEqual(len(graphs), 3)
        self.assertTrue(all(len(list(graph.graph.nodes)) <= 5 for graph in graphs))
        with self.assertRaisesRegex(Exception, "fp4.compat is eager; fp4.torch has operators"):
            torch.compile(lambda x: vllm.scaled_fp4_quant(x, g), backend=graphs, fullgraph=True)(x)

    def test_importing_it_does_not_import_dynamo(self) -> None:
        names = ("flash_attn", "flashinfer", "torchao", "vllm")
        code = (f"import sys, {', '.join(f'fp4.compat.{name}' for name in names)}\n"
                "sys.exit('torch._dynamo' in sys.modules)")
        done = subprocess.run([sys.executable, "-c", code], env={
            **os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
