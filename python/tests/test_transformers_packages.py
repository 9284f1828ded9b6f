"""Whole models that nvidia-modelopt exports, and those that 'fp4 quantize-model' writes and
compressed-tensors reads, where these packages are installed.

    pip install transformers compressed-tensors nvidia-modelopt
"""

import copy
import tempfile
import unittest
from typing import Any

import fp4
from programs import optional, torch

transformers = optional("transformers") if torch is not None else None
_COMPRESSED = optional("compressed_tensors") if transformers is not None else None
_EXPORT = optional("modelopt.torch.export") if transformers is not None else None

if transformers is not None:
    import fp4.torch as ft
    from test_transformers import error, model, reference, tokens


class Packages(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def load(self, method: str, path: str) -> Any:
        """The model with layers of fp4, of which every tensor has its place."""
        import fp4.transformers

        with fp4.transformers.register(method):
            loaded, info = transformers.AutoModelForCausalLM.from_pretrained(
                path, dtype=torch.bfloat16, output_loading_info=True)
        self.assertFalse(any(info[key] for key in info), info)
        return loaded


@unittest.skipIf(_EXPORT is None, "torch, transformers or nvidia-modelopt is not installed")
class ModelOpt(Packages):
    def export(self, config: str, name: str = "Llama") -> Any:
        """Quantizes and exports a model, and returns the one in 16 bits."""
        import modelopt.torch.quantization as mtq

        exact = model(name)
        made = copy.deepcopy(exact)
        made.config.architectures = [type(made).__name__]
        mtq.quantize(made, getattr(mtq, config), lambda each: each(tokens(4)))
        _EXPORT.export_hf_checkpoint(made, export_dir=self.folder)  # type: ignore[union-attr]
        return exact

    def test_exported_models(self) -> None:
        for config, name, count, most in (
                ("NVFP4_DEFAULT_CFG", "Llama", 7, 0.12), ("W4A16_NVFP4_CFG", "Qwen3", 7, 0.12),
                ("NVFP4_MLP_ONLY_CFG", "Llama", 3, 0.12), ("MXFP4_DEFAULT_CFG", "Llama", 7, 0.16),
                ("W4A8_MXFP4_FP8_CFG", "Llama", 7, 0.16)):
            with self.subTest(config):
                exact = self.export(config, name)
                loaded = self.load("modelopt", self.folder)
                ours = {place: layer for place, layer in loaded.named_modules()
                        if isinstance(layer, ft.WeightOnlyLinear)}
                self.assertEqual(len(ours), count)
                for place, layer in ours.items():
                    weight = exact.get_submodule(place).weight
                    self.assertLess(error(layer.weight + 0, weight), most, place)
                with torch.no_grad():
                    self.assertLess(error(loaded(tokens(2)).logits,
                                          reference(exact, loaded)(tokens(2)).logits), 0.03)

    def test_blocks_of_32_with_scales_of_nvfp4_are_refused(self) -> None:
        self.export("W4A8_NVFP4_FP8_CFG")
        with self.assertRaisesRegex(fp4.UsageError,
                                    r"weight_scale' must have the shape \[128, 8\]"):
            self.load("modelopt", self.folder)


@unittest.skipIf(_COMPRESSED is None, "torch, transformers or compressed-tensors is not installed")
class CompressedTensors(Packages):
    def test_a_folder_of_quantize_model(self) -> None:
        """compressed-tensors decompresses each weight to the numbers that fp4 has."""
        from fp4.checkpoints._quantize_model import Request, quantize_model

        model("Llama").save_pretrained(f"{self.folder}/16")
        for format, bits in (("nvfp4", None), ("mxfp4", None), ("nvfp4", 8.0)):
            with self.subTest(format, bits=bits):
                path = f"{self.folder}/{format}{bits}"
                quantize_model(f"{self.folder}/16", path, Request(format, bits=bits))
                ours = self.load("compressed-tensors", path)
                theirs = transformers.AutoModelForCausalLM.from_pretrained(
                    path, dtype=torch.bfloat16,
                    quantization_config=transformers.CompressedTensorsConfig(dequantize=True))
                layers = [place for place, layer in ours.named_modules()
                          if isinstance(layer, torch.nn.Linear)]
                self.assertEqual(len(layers), 8)
                for place in layers:
                    self.assertTrue(torch.equal(ours.get_submodule(place).weight + 0,
                                                theirs.get_submodule(place).weight), place)
                self.assertIs(type(ours.lm_head), torch.nn.Linear)


if __name__ == "__main__":
    unittest.main()
