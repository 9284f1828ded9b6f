"""fp4.checkpoints against the packages whose files it reads, where they are installed: they
compress a weight, fp4 reads the file, and both decode the same numbers, to the last bit.

    pip install compressed-tensors nvidia-modelopt
"""

import pathlib
import tempfile
import unittest
from typing import Any

from programs import optional, torch
from test_checkpoints import decoded

if torch is not None and optional("safetensors") is not None:
    import fp4.checkpoints as ck
    from safetensors.torch import load_file, save_file

_COMPRESSED = optional("compressed_tensors")
_MODELOPT = optional("modelopt.torch.quantization.qtensor.nvfp4_tensor")
_MODELOPT_MX = optional("modelopt.torch.quantization.qtensor.mxfp4_tensor")


def weight() -> Any:
    torch.manual_seed(3)
    return torch.randn(64, 96, dtype=torch.bfloat16) * 0.05


class Packages(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "model.safetensors")

    def check(self, content: "dict[str, Any]", layout: str, expected: Any) -> None:
        """fp4 reads `content`, decodes it to `expected`, and writes it again."""
        save_file(content, self.path)
        stated = layout if layout == "modelopt" else None
        with ck.open(self.path, layout=stated) as checkpoint:
            found = checkpoint.read("a")
            self.assertEqual(checkpoint.layout.name, layout)
        kind = {torch.bfloat16: "bf16", torch.float32: "f32"}[expected.dtype]
        self.assertTrue(torch.equal(decoded(found, kind), expected))
        ck.write(self.path, {"a": found}, layout)
        again = load_file(self.path)
        self.assertEqual(set(again), set(content))
        for name, tensor in content.items():
            self.assertEqual((again[name].dtype, again[name].shape), (tensor.dtype, tensor.shape))
            self.assertTrue(torch.equal(again[name].reshape(-1).view(torch.uint8),
                                        tensor.reshape(-1).view(torch.uint8)))


@unittest.skipIf(_COMPRESSED is None, "compressed-tensors is not installed")
class CompressedTensors(Packages):
    def compress(self, format: str) -> "tuple[dict[str, Any], Any]":
        from compressed_tensors.compressors.mxfp4 import MXFP4PackedCompressor
        from compressed_tensors.compressors.nvfp4 import NVFP4PackedCompressor
        from compressed_tensors.quantization import QuantizationScheme
        from compressed_tensors.quantization.quant_scheme import preset_name_to_scheme
        from compressed_tensors.quantization.utils import helpers

        scheme = preset_name_to_scheme("NVFP4A16" if format == "nvfp4" else "MXFP4A16", ["Linear"])
        self.assertIsInstance(scheme, QuantizationScheme)
        compressor = NVFP4PackedCompressor if format == "nvfp4" else MXFP4PackedCompressor
        x = weight()
        g = helpers.generate_gparam(x.min(), x.max()) if format == "nvfp4" else None
        blocks = x.unflatten(1, (-1, 16 if format == "nvfp4" else 32))
        scales, _ = helpers.calculate_qparams(blocks.amin(-1), blocks.amax(-1), scheme.weights, g)
        given = {"weight": x, "weight_scale": scales}
        if g is not None:
            given["weight_global_scale"] = g
        state = compressor.compress(given, scheme)
        return ({f"a.{name}": value.detach() for name, value in state.items()},
                compressor.decompress(state, scheme)["weight"])

    def test_weights(self) -> None:
        for format in ("nvfp4", "mxfp4"):
            with self.subTest(format):
                content, expected = self.compress(format)
                self.check(content, "compressed-tensors", expected)

    def test_its_config_takes_ours(self) -> None:
        from compressed_tensors.quantization import QuantizationConfig

        for format, inputs in (("nvfp4", True), ("nvfp4", False), ("mxfp4", False)):
            config = ck.quantization_config("compressed-tensors", format, ignore=["lm_head"],
                                            inputs=inputs)
            found = QuantizationConfig.model_validate(config)
            self.assertEqual((found.format, found.ignore), (f"{format}-pack-quantized",
                                                            ["lm_head"]))
            group = found.config_groups["group_0"]
            self.assertEqual(group.weights.group_size, 16 if format == "nvfp4" else 32)
            self.assertEqual(group.input_activations is not None, inputs)


@unittest.skipIf(_MODELOPT is None, "nvidia-modelopt is not installed")
class ModelOpt(Packages):
    def test_nvfp4(self) -> None:
        tensor = _MODELOPT.NVFP4QTensor  # type: ignore[union-attr]
        packed, scales, level = tensor.quantize(weight(), 16)
        data = packed._quantized_data
        expected = packed.dequantize(dtype=torch.float32, scale=scales, double_scale=level,
                                     block_sizes={-1: 16})
        self.check({"a.weight": data, "a.weight_scale": scales, "a.weight_scale_2": level},
                   "modelopt", expected)

    def test_mxfp4(self) -> None:
        tensor = _MODELOPT_MX.MXFP4QTensor  # type: ignore[union-attr]
        packed, scales = tensor.quantize(weight(), 32)
        scales = scales.reshape(64, 3)
        expected = packed.dequantize(dtype=torch.float32, scale=scales, block_sizes={-1: 32})
        self.check({"a.weight": packed._quantized_data, "a.weight_scale": scales}, "modelopt",
                   expected)


if __name__ == "__main__":
    unittest.main()
