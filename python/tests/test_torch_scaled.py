"""fp4.torch.Scaled: what it refuses, how it is copied and kept, and scales of other packages."""

import copy
import io
import unittest
from typing import Any

import fp4
from programs import torch

if torch is not None:
    import fp4.torch as ft


def scaled(rows: int = 130, seed: int = 1, **members: Any) -> Any:
    torch.manual_seed(seed)
    data = torch.randint(0, 256, (rows, 32), dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    scales = torch.randint(1, 127, (-(-rows // 128), 1, 512), dtype=torch.uint8)
    parts = {"data": data, "scales": scales.view(torch.float8_e4m3fn), "amax": torch.tensor(3.0),
             "shape": (rows, 64), **members}
    return ft.Scaled(**parts)


def through_a_file(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@unittest.skipIf(torch is None, "torch is not installed")
class ScaledRecords(unittest.TestCase):
    def test_copies(self) -> None:
        x = scaled()
        for other in (through_a_file(x), copy.deepcopy(x), copy.copy(x), x.clone(), x.to("cpu")):
            self.assertTrue(x.same(other))
        self.assertNotEqual(x.clone().data.data_ptr(), x.data.data_ptr())
        self.assertFalse(x.same(scaled(seed=2)))
        self.assertFalse(x.same(scaled(recipe="torchao")))
        self.assertEqual((x.to("meta").device.type, x.block, x.nbytes),
                         ("meta", 16, 130 * 32 + 1028))
        self.assertEqual(repr(x), "Scaled(130x64 nvfp4, tiled_128x4, recipe='transformer_engine', "
                         "device='cpu')")

    def test_what_is_refused(self) -> None:
        good = scaled()
        transposed = good.data.view(torch.uint8).t()
        for members, message in (
                ({"format": "nvfp8"}, "'format' must be nvfp4 or mxfp4, but got 'nvfp8'"),
                ({"layout": "tiled"}, "'layout' must be linear or tiled_128x4, but got 'tiled'"),
                ({"format": "mxfp4"}, "'scales' must be float8_e8m0fnu or uint8, but got"),
                ({"data": transposed}, r"'data' must have the shape \[130, 32\], but got \[32, 1"),
                ({"data": transposed, "shape": (32, 260)}, "'data' must be contiguous and row-"),
                ({"data": good.data.view(torch.int8)}, "'data' must be float4_e2m1fn_x2 or uint8"),
                ({"shape": (130, 63)}, "the columns must be a multiple of 2, but got 63"),
                ({"shape": (2, 65, 64)}, r"'shape' must be \(rows, columns\), but got \(2, 65, 64"),
                ({"layout": "linear"}, r"'scales' must have the shape \[130, 4\], but got \[2, 1"),
                ({"scales": good.scales.reshape(256, 4)}, "blocks of 512 bytes; pass scales.res"),
                ({"amax": None}, "'amax' must be a float32 scalar for recipe 'transformer_"),
                ({"recipe": "torchao_1level"}, "'amax' must be None for recipe 'torchao_1l"),
                ({"amax": torch.ones(1)}, r"'amax' must have the shape \[130\], but got \[1\]"),
                ({"amax": torch.ones((), device="meta")}, "on one device, but got cpu and meta"),
                ({"recipe": "transformer_engine, guard"}, "'name, decision = value, ...', but")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                scaled(**members)
        with self.assertRaisesRegex(TypeError, "'scales' must be a torch.Tensor, but got list"):
            scaled(scales=[1])
        with self.assertRaisesRegex(fp4.UsageError, "no conversion to bfloat16\nnote: call fp4.to"):
            good.to(torch.bfloat16)

    def test_functions_of_torch_say_what_takes_it(self) -> None:
        x = scaled()
        for function in (lambda: torch.nn.functional.linear(x, x), lambda: torch.ones(2, 2) @ x,
                         lambda: torch.equal(x, x), lambda: torch.cat([x, x])):
            with self.assertRaisesRegex(fp4.UsageError, "torch's '.*' does not take an fp4.torch.Sc"
                                        ".*\nnote: fp4.torch.linear multiplies"):
                function()

    def test_a_module_keeps_it(self) -> None:
        x, module = scaled(), ft.ScaledBuffers(scaled(seed=2))
        state = through_a_file(ft.ScaledBuffers(x).state_dict())
        self.assertEqual(list(state), ["data", "scales", "amax", "facts"])
        module.load_state_dict(state)
        self.assertTrue(module.value.same(x))
        for other in (copy.deepcopy(module), module.half(), module.to(torch.float64)):
            self.assertTrue(other.value.same(x))
        self.assertEqual(copy.deepcopy(module).to("meta").value.device.type, "meta")
        other = ft.ScaledBuffers(scaled(recipe="torchao"))
        with self.assertRaisesRegex(fp4.UsageError, "the state must be of .*'torchao'"):
            other.load_state_dict(state)

    def test_torch_compile_passes_it_through(self) -> None:
        @torch.compile(fullgraph=True, backend="eager")
        def double(x: Any) -> Any:
            return ft.Scaled(x.data.clone(), x.scales.clone(), x.amax * 2, x.shape, recipe=x.recipe)

        x = scaled()
        self.assertTrue(double(x).same(scaled(amax=torch.tensor(6.0))))


@unittest.skipIf(torch is None, "torch is not installed")
class Conventions(unittest.TestCase):
    def test_every_amax_survives_the_decode_scale(self) -> None:
        torch.manual_seed(1)
        amax = torch.cat([torch.rand(5000), torch.tensor([0.0, 1e-30, 2688.0, 1e30])])
        for recipe, divisor in (("torchao", 2688.0), ("four_over_six", 1536.0)):
            found = ft.amax_of_decode_scale(amax / divisor, recipe)
            self.assertTrue(torch.equal(ft.decode_scale_of(found, recipe), amax / divisor))

    def test_a_decode_scale_is_kept(self) -> None:
        x, scale = scaled(), torch.tensor([0.1])
        again = ft.Scaled.from_decode_scale(x.data, x.scales, scale, shape=x.shape)
        self.assertEqual((again.decode_scale, again.amax), (scale[0], scale[0]))
        self.assertEqual((again.encode_scale, again.recipe),
                         (1 / scale[0], "modelopt, tensor_scale = supplied_decode"))
        with self.assertRaisesRegex(fp4.UsageError, "must have tensor_scale = supplied_decode"):
            ft.Scaled.from_decode_scale(x.data, x.scales, scale, shape=x.shape, recipe="modelopt")

    def test_an_encode_scale_is_kept(self) -> None:
        x = scaled()
        self.assertEqual((x.encode_scale, x.decode_scale), (2688 / 3, torch.tensor(3.0) / 2688))
        again = ft.Scaled.from_encode_scale(x.data, x.scales, x.encode_scale, shape=x.shape)
        self.assertEqual((again.encode_scale, again.decode_scale), (896, 1 / torch.tensor(896.0)))
        with self.assertRaisesRegex(fp4.UsageError, "must have tensor_scale = supplied, but got"):
            ft.Scaled.from_encode_scale(x.data, x.scales, x.encode_scale, shape=x.shape,
                                        recipe="vllm")

    def test_scales_that_are_none(self) -> None:
        step = torch.arange(-64, 64, dtype=torch.int32)
        values = (step + 0x39E00000).view(torch.float32)  # 1.75 * 2^-12
        amaxes = (3 * step + (torch.tensor(1.75 * 2688 / 4096)).view(torch.int32))
        missing = values[~torch.isin(values, amaxes.view(torch.float32) / 2688)]
        self.assertGreater(missing.numel(), 0)
        for wrong, message in ((missing[0], "must be amax / 2688 of an fp32 amax, but got"),
                               (torch.tensor(float("inf")), "must be finite and not negative"),
                               (torch.tensor(-1.0), "must be finite and not negative"),
                               (torch.tensor(1.0).double(), "must be float32, but got float64")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                ft.amax_of_decode_scale(wrong)


if __name__ == "__main__":
    unittest.main()
