"""The scale of a tensor goes from each package's convention to ours and back: the number is the
same, to the last bit, and so are the decoded matrix and the result."""

import re
import unittest
from typing import Any

import fp4
from programs import ROOT, optional, torch

if torch is not None:
    import fp4.torch as ft
    from fp4.compat import flashinfer, torchao, vllm
    from fp4.torch import recipes
if torch is not None and optional("safetensors") is not None:
    import fp4.checkpoints as ck
else:
    ck = None


def matrix(rows: int = 40, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.randn(rows, 64, dtype=torch.bfloat16) * 0.3


def linear(x: Any, scale: Any, which: str) -> "tuple[Any, Any]":
    """Codes and linear scales by the quantizer of a package."""
    if which == "flashinfer":
        return flashinfer.nvfp4_quantize(x, scale, flashinfer.SfLayout.layout_linear)
    if which == "vllm":
        return vllm.scaled_fp4_quant(x, scale, False)
    scales, codes = torchao.nvfp4_quantize(x, per_tensor_scale=scale)
    return codes, scales


@unittest.skipIf(torch is None, "torch is not installed")
class Conventions(unittest.TestCase):
    def test_encode_scales_of_flashinfer_and_vllm(self) -> None:
        x = matrix()
        g = 448 * 6 / x.float().abs().max()  # as their callers write it
        for which in ("flashinfer", "vllm"):
            codes, scales = linear(x, g, which)
            ours = ft.Scaled.from_encode_scale(codes, scales, g, shape=(40, 64), layout="linear")
            with self.subTest(which):
                self.assertEqual(ours.encode_scale, g)
                self.assertEqual(ft.encode_scale_of(ft.amax_of_encode_scale(g), "vllm"), g)
                theirs = flashinfer.e2m1_and_ufp8sf_scale_to_float(
                    codes, scales.view(torch.uint8), 1 / g, is_sf_swizzled_layout=False)
                ours = ft.Scaled.from_encode_scale(
                    codes, scales, g, shape=(40, 64), layout="linear",
                    recipe="flashinfer, tensor_scale = supplied")
                self.assertTrue(torch.equal(ft.dequantize(ours, torch.float32), theirs))

    def test_the_decode_scale_of_torchao(self) -> None:
        x = matrix()
        d = torchao.per_tensor_amax_to_scale(x.abs().max())
        ours = ft.Scaled.from_decode_scale(*linear(x, d, "torchao"), d, shape=(40, 64),
                                           layout="linear")
        self.assertEqual(ours.decode_scale, d)
        self.assertEqual(ft.amax_of_decode_scale(d), x.float().abs().max())
        self.assertEqual(ft.decode_scale_of(ft.amax_of_decode_scale(d), "torchao"), d)
        theirs = torchao.NVFP4Tensor.to_nvfp4(x, per_tensor_scale=d).dequantize(torch.float32)
        self.assertTrue(torch.equal(ft.dequantize(ours, torch.float32), theirs))

    def test_what_fp4_quantized_goes_to_each_package(self) -> None:
        """An amax becomes the scale that the package takes, and the package gives the same bytes
        as fp4 with its recipe."""
        x = matrix()
        for which, recipe, amax_recipe in (
                ("flashinfer", "flashinfer, reciprocals = approximate", "flashinfer"),
                ("vllm", "vllm, reciprocals = approximate", "vllm"),
                ("torchao", "torchao", "torchao")):
            ours = ft.quantize(x, recipe=recipe, layout="linear")
            with self.subTest(which):
                scale = ours.decode_scale if which == "torchao" else ours.encode_scale
                codes, scales = linear(x, scale, which)
                self.assertTrue(torch.equal(codes, ours.data.view(torch.uint8)))
                self.assertTrue(torch.equal(scales.view(torch.uint8),
                                            ours.scales.view(torch.uint8)))
                back = (ft.amax_of_decode_scale if which == "torchao" else
                        ft.amax_of_encode_scale)(scale, amax_recipe)
                self.assertLessEqual(((back - ours.amax) / ours.amax).abs().item(), 2.0 ** -22)

    def test_gemms(self) -> None:
        """One matmul, asked for with alpha and with scales of the tensors."""
        x, w = matrix(), matrix(32, 1)
        for g, h in ((torch.tensor(1024.0), torch.tensor(2048.0)),  # alpha is exact
                     (2688 / x.float().abs().max(), 2688 / w.float().abs().max())):
            (a, sa), (b, sb) = vllm.scaled_fp4_quant(x, g), vllm.scaled_fp4_quant(w, h)
            theirs = vllm.cutlass_scaled_fp4_mm(a, b, sa, sb, 1 / (g * h), torch.bfloat16)
            ours = ft.linear(*(ft.Scaled.from_encode_scale(
                codes, scales.reshape(1, -1, 512), scale, shape=(codes.shape[0], 64))
                for codes, scales, scale in ((a, sa, g), (b, sb, h))))
            self.assertTrue(torch.equal(ours, theirs))

    def test_scales_follow_from_amaxes_as_in_the_kernels(self) -> None:
        """A quantizer that is given the scale gives the bytes of the one that is given the amax,
        and both matrices decode to the same numbers."""
        for recipe in ("transformer_engine", "transformer_engine_transform", "cutlass", "vllm",
                       "compressed_tensors", "compressed_tensors_f32", "torchao",
                       "torchao_cuda"):
            is_decode = "torchao" in recipe
            given = f"{recipe}, tensor_scale = supplied{'_decode' if is_decode else ''}"
            for factor in (1.0, 0.37, 5.1, 77.0):
                x = matrix() * factor
                ours = ft.quantize(x, recipe=recipe, layout="linear")
                scale = ours.decode_scale if is_decode else ours.encode_scale
                again = ft.quantize(x, recipe=given, layout="linear", amax=scale)
                with self.subTest(recipe=recipe, amax=ours.amax.item()):
                    self.assertTrue(torch.equal(again.data.view(torch.uint8),
                                                ours.data.view(torch.uint8)))
                    self.assertTrue(torch.equal(again.scales.view(torch.uint8),
                                                ours.scales.view(torch.uint8)))
                    if recipe not in ("transformer_engine", "transformer_engine_transform",
                                      "cutlass"):  # which decode with the amax
                        self.assertTrue(torch.equal(ft.dequantize(again, torch.float32),
                                                    ft.dequantize(ours, torch.float32)))

    def test_the_rules_are_those_of_lib_numerics(self) -> None:
        text = (ROOT / "include/fp4/Numerics/Recipes.def").read_text()
        found = re.findall(r"^FP4_RECIPE\((\w+), NVFP4,(.*?)\)$", text, re.M | re.S)
        self.assertGreater(len(found), 30)
        names = dict(re.findall(r"FP4_VALUE\((\w+), (\w+)\)", text))
        for recipe, body in found:
            with self.subTest(recipe):
                rule = re.search(r"\.global = GlobalRule::(\w+)", body)
                self.assertEqual(recipes.tensor_scale_rule(recipe),
                                 names[rule[1]] if rule else "guarded_divide")
                most = re.search(r"\.e4m3Max = (\d+)", body)
                self.assertEqual(recipes.range_of(recipe), 6 * int(most[1] if most else 448))
                self.assertEqual(recipes.computes_in_bf16(recipe), "AmaxArithmetic::BF16" in body)
                alpha = re.search(r"\.alpha = AlphaRule::(\w+)", body)
                self.assertEqual(recipes.alpha_rule(recipe),
                                 names[alpha[1]] if alpha else "amax_product")

    def test_a_tensor_of_zeros(self) -> None:
        zero = torch.tensor(0.0)
        for recipe, scale in (("transformer_engine", 1.0), ("fouroversix", 1.0),
                              ("compressed_tensors", 1.0), ("vllm", float("inf")),
                              ("cutlass", float("inf")), ("torchao", float("inf"))):
            self.assertEqual(ft.encode_scale_of(zero, recipe), scale, recipe)
        tiny = torch.tensor(1e-42)
        self.assertEqual(ft.encode_scale_of(tiny, "transformer_engine"), torch.finfo().max)
        self.assertEqual(ft.encode_scale_of(tiny, "compressed_tensors_f32"), 1)

    def test_a_gemm_has_one_rule(self) -> None:
        """Activations of the default recipe, and a weight of ModelOpt."""
        weight = ft.quantize(matrix(32, 1), recipe="modelopt")
        with self.assertRaisesRegex(fp4.UsageError, "'alpha', but got amax_product of 'transformer_"
                                    "engine' and decode_scales of 'modelopt'\nnote: quantize x"):
            ft.linear(ft.quantize(matrix()), weight)
        recipe = "transformer_engine, alpha = decode_scales"  # as the note says
        x = ft.quantize(matrix(), recipe=recipe)
        exact = ft.dequantize(x).double() @ ft.dequantize(weight).double().T
        error = (ft.linear(x, weight) - exact).norm() / exact.norm()
        self.assertLess(error.item(), 0.01)

    def test_every_encode_scale_of_an_amax_has_one(self) -> None:
        torch.manual_seed(1)
        amax = torch.cat([torch.rand(5000) * 100, torch.tensor([1e-30, 2688.0, 1e30])])
        for recipe in ("vllm", "four_over_six"):
            scale = ft.encode_scale_of(amax, recipe)
            self.assertTrue(torch.equal(
                ft.encode_scale_of(ft.amax_of_encode_scale(scale, recipe), recipe), scale))

    def test_scales_that_no_amax_has(self) -> None:
        torch.manual_seed(2)
        refused = 0
        for scale in torch.rand(200):
            for convert, back in ((ft.amax_of_decode_scale, ft.decode_scale_of),
                                  (ft.amax_of_encode_scale, ft.encode_scale_of)):
                try:
                    self.assertEqual(back(convert(scale), "torchao"), scale)
                except fp4.UsageError as error:
                    self.assertRegex(str(error), "code scale must be .* of an fp32 amax, but got "
                                     "(?s:.*)Scaled.from_decode_scale or from_encode_scale")
                    refused += 1
        self.assertIn(refused, range(1, 400))
        for bad in (-1.0, float("inf"), float("nan")):
            with self.assertRaisesRegex(fp4.UsageError, "must be finite and not negative"):
                ft.amax_of_encode_scale(torch.tensor(bad))
        with self.assertRaisesRegex(fp4.UsageError, "the encode scale must be float32, but got fl"):
            ft.amax_of_encode_scale(torch.tensor(1.0).half())

    @unittest.skipIf(ck is None, "safetensors is not installed")
    def test_checkpoints(self) -> None:
        """compressed-tensors and vLLM have one convention, ModelOpt and torchao the other."""
        x = matrix()
        g, d = torch.tensor(2.0 ** 11), torch.tensor(2.0 ** -11)
        for layout, which, scale in (("compressed-tensors", "vllm", g), ("modelopt", "torchao", d)):
            kind = ck.LAYOUTS[layout].kind("nvfp4")
            of = (ft.Scaled.from_encode_scale if kind.convention == "encode" else
                  ft.Scaled.from_decode_scale)
            weight = of(*linear(x, scale, which), scale, shape=(40, 64), layout="linear")
            for other in ("compressed-tensors", "modelopt"):
                there = ck.restated(weight, ck.LAYOUTS[other].kind("nvfp4"))
                back = ck.restated(there, kind)
                self.assertEqual((there.encode_scale, there.decode_scale, back.amax), (g, d, scale))
                self.assertTrue(torch.equal(ft.dequantize(there, torch.float32),
                                            ft.dequantize(weight, torch.float32)))


if __name__ == "__main__":
    unittest.main()
