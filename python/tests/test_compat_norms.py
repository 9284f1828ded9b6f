"""Norms with FP8 of fp4.compat against the formulas of FlashInfer and vLLM, whose sums have the
order of docs/reference/semantics.md. Every comparison is of bits."""

import unittest
from typing import Any

import fp4
import norm_formulas as formulas
import one_kernel
from compat_formulas import same
from programs import torch

if torch is not None:
    from fp4.compat import flashinfer, vllm
    from fp4.torch import norm_programs


def operands(dtype: Any = None, columns: int = 96) -> "tuple[Any, Any, Any]":
    """Rows of ordinary and special numbers, a residual, and a weight with a negative zero."""
    x, r = (formulas.data(9, columns, seed, dtype) for seed in (1, 2))
    torch.manual_seed(3)
    w = torch.randn(columns).to(x.dtype)
    w[5] = -0.0
    return x, r, w


def flashinfer_formula(h: Any, w: Any, scale: Any, eps: float) -> Any:
    """The norm of `h` in f32, times 1 / scale; the weight is added to 0."""
    y = formulas.norm(h, w, eps=eps, offset=0.0, dtype=torch.float32)
    return formulas.clamped(y * (1 / scale))


def vllm_formula(h: Any, w: Any, scale: Any, eps: float) -> Any:
    return formulas.clamped(formulas.norm(h, w, eps=eps).float() * (1 / scale))


@unittest.skipIf(torch is None, "torch is not installed")
class Norms(unittest.TestCase):
    def setUp(self) -> None:
        self.compiled = one_kernel.watch(self, norm_programs, norm_programs.norm)

    def test_flashinfer(self) -> None:
        scale = torch.tensor([0.037])
        for dtype in (torch.bfloat16, torch.float16):
            x, r, w = operands(dtype)
            out = torch.empty(x.shape, dtype=torch.float8_e4m3fn)
            self.assertIsNone(flashinfer.rmsnorm_quant(out, x, w, scale))
            same(self, out, flashinfer_formula(x, w, scale, 1e-6))
            self.assertIn(0x7E, out[5].view(torch.uint8).tolist())  # NaN becomes 448
            flashinfer.rmsnorm_quant(out, x, w, scale.double(), 1e-3, False)
            same(self, out, flashinfer_formula(x, w, scale, 1e-3))
            h, given = x.float() + r.float(), r.clone()
            flashinfer.fused_add_rmsnorm_quant(out, x, given, w, scale, enable_pdl=True)
            same(self, out, flashinfer_formula(h, w, scale, 1e-6))
            same(self, given.nan_to_num(7), h.to(dtype).nan_to_num(7))
            flashinfer.rmsnorm_quant(out, x, w, 0.5)
            same(self, out, flashinfer_formula(x, w, torch.tensor(0.5), 1e-6))
        self.assertEqual(len(self.compiled), 6)

    def test_vllm_with_a_static_scale(self) -> None:
        scale = torch.tensor(0.037)
        for dtype in (torch.bfloat16, torch.float16):
            x, r, w = operands(dtype)
            out = torch.empty(x.shape, dtype=torch.float8_e4m3fn)
            self.assertIsNone(vllm.rms_norm_static_fp8_quant(out, x, w, scale, 1e-5))
            same(self, out, vllm_formula(x, w, scale, 1e-5))
            h, given = x + r, r.clone()
            vllm.fused_add_rms_norm_static_fp8_quant(out, x, given, w, scale, 1e-5)
            same(self, out, vllm_formula(h, w, scale, 1e-5))
            same(self, given.nan_to_num(7), h.nan_to_num(7))

    def test_vllm_with_scales_of_tokens(self) -> None:
        most = torch.tensor(448.0)
        for dtype, bound in ((torch.bfloat16, None), (torch.float16, torch.tensor([2.0]))):
            x, r, w = operands(dtype)
            for residual in (None, r.clone()):
                h = x.float() if residual is None else x.float() + r.float()
                y = formulas.norm(h.to(torch.float32), dtype=torch.float32, eps=1e-5)
                y = (y.to(dtype).float() * w.float()).to(dtype).float()
                amax = y.abs().nan_to_num(0, torch.inf).amax(1, keepdim=True)
                amax = amax if bound is None else torch.fmin(amax, bound)
                scale = torch.fmax(amax / most, 1 / (most * 512))
                codes, scales = vllm.rms_norm_dynamic_per_token_quant(
                    x, w, 1e-5, torch.float8_e4m3fn, bound, residual)
                same(self, scales, scale)
                same(self, codes, formulas.clamped(y / scale))
                if residual is not None:
                    same(self, residual.nan_to_num(7), h.to(dtype).nan_to_num(7))
        self.assertEqual(len(self.compiled), 4)

    def test_rows(self) -> None:
        """One program for any number of rows, of any dimensions and strides."""
        whole, _, w = operands(columns=192)
        for x in (whole[:, :96], whole[:1, 3:99], whole[:8, 96:].view(2, 4, 96), whole[:0, :96]):
            codes, scales = vllm.rms_norm_dynamic_per_token_quant(x, w[:96], 1e-5,
                                                                  torch.float8_e4m3fn)
            out, rows = torch.empty(x.shape, dtype=codes.dtype), x.reshape(-1, 96)
            vllm.rms_norm_static_fp8_quant(out, x, w[:96], torch.tensor(0.1), 1e-5)
            self.assertEqual((codes.shape, scales.shape), (x.shape, (rows.shape[0], 1)))
            same(self, out, vllm_formula(rows, w[:96], torch.tensor(0.1), 1e-5))
        self.assertEqual(len(self.compiled), 2)

    def test_what_is_refused(self) -> None:
        x, r, w = operands()
        out, scale = torch.empty(x.shape, dtype=torch.float8_e4m3fn), torch.tensor(0.1)
        for arguments, message in (
                ((out, x.float(), w, scale), "'input' must be bfloat16 or float16, but got"),
                ((out, x[0], w, scale), "'input' must have rows and columns, but got"),
                ((out, x, w.float(), scale), r"'weight' must be bfloat16 of shape \[96\], but got"),
                ((out, x, w[:32], scale), r"'weight' must be bfloat16 of shape \[96\], but got"),
                ((out[:3], x, w, scale), r"'out' must be contiguous and of shape \[9, 96\], but"),
                ((out.t().contiguous().t(), x, w, scale), "'out' must be contiguous and of shape"),
                ((out.view(torch.float8_e5m2), x, w, scale), "an 'out' of float8_e5m2 has no"),
                ((out, x, w, torch.ones(2)), "'scale' must be one float32, but got")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                flashinfer.rmsnorm_quant(*arguments)
        for residual, message in ((r.half(), "'residual' must be bfloat16 of shape"),
                                  (r.t().contiguous().t(), "'residual' must be contiguous, but")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                vllm.fused_add_rms_norm_static_fp8_quant(out, x, residual, w, scale, 1e-5)
        with self.assertRaisesRegex(fp4.UsageError, "quant_dtype = torch.int8 has no kernel here"):
            vllm.rms_norm_dynamic_per_token_quant(x, w, 1e-5, torch.int8)
        with self.assertRaisesRegex(TypeError, "'residual' must be a torch tensor, but got int"):
            vllm.rms_norm_dynamic_per_token_quant(x, w, 1e-5, torch.float8_e4m3fn, None, 3)
