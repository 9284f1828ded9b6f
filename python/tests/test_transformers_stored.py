"""fp4.transformers.register beside the real transformers: checkpoints of other packages in layers
of fp4, on tiny models of random weights in the simulator.

    pip install transformers
"""

import json
import pathlib
import tempfile
import unittest
from typing import Any

import fp4
from expert_files import PLACE, as_gpt_oss, as_modelopt
from programs import optional, torch
from test_transformers import (
    HAS_EXPERTS,
    Folder,
    error,
    model,
    quantized,
    reference,
    tokens,
    transformers,
)

if transformers is not None:
    import fp4.torch as ft


@unittest.skipIf(transformers is None or optional("fp4.checkpoints") is None,
                 "torch, transformers or safetensors is not installed")
class OtherPackages(Folder):
    """Checkpoints of ModelOpt and compressed-tensors, with the layers of fp4."""

    def stored(self, name: str, layout: str, **options: Any) -> "tuple[Any, Any]":
        """A model in 4 bits and its checkpoint in the folder."""
        import fp4.checkpoints as ck

        made = quantized(name, weight_only=True, **options)[1]
        ck.save(made, self.folder, layout)
        return made, ck

    def load(self, method: str, **options: Any) -> Any:
        import fp4.transformers

        with fp4.transformers.register(method):
            return transformers.AutoModelForCausalLM.from_pretrained(self.folder, **options)

    def test_layouts(self) -> None:
        for layout, format, name in (("modelopt", "nvfp4", "Llama"),
                                     ("compressed-tensors", "nvfp4", "Qwen3"),
                                     ("compressed-tensors", "mxfp4", "Llama"),
                                     ("modelopt", "mxfp4", "Llama")):
            with self.subTest(layout, format=format):
                recipe = {"mxfp4": f"mxfp4_{layout.replace('-', '_')}"}.get(
                    format, layout.replace("-", "_"))
                _, ck = self.stored(name, layout, format=format, recipe=recipe)
                loaded, info = self.load(layout, output_loading_info=True)
                self.assertFalse(any(info[key] for key in info), info)
                with torch.device("meta"):
                    expected = type(loaded)._from_config(loaded.config, dtype=torch.bfloat16)
                expected.model.rotary_emb = loaded.model.rotary_emb
                ck.load_into(expected, self.folder, weight_only=True)
                ids = tokens(2)
                one, two = expected.state_dict(), loaded.state_dict()
                self.assertEqual(set(one), set(two))
                for key, value in one.items():
                    self.assertTrue(torch.equal(two[key], value), key)
                with torch.no_grad():
                    self.assertTrue(torch.equal(loaded(ids).logits, expected(ids).logits))
                self.round_trips(loaded, layout, ck)

    def round_trips(self, loaded: Any, layout: str, ck: Any) -> None:
        """save_pretrained keeps every bit, and so does the way back into the layout."""
        with tempfile.TemporaryDirectory() as folder:
            loaded.save_pretrained(folder)
            again = transformers.AutoModelForCausalLM.from_pretrained(folder)
            self.assertEqual(again.config.quantization_config.quant_method, "fp4")
            for key, value in loaded.state_dict().items():
                self.assertTrue(torch.equal(again.state_dict()[key], value), key)
        with tempfile.TemporaryDirectory() as folder:
            ck.save(loaded, folder, layout)
            with ck.open(folder) as one, ck.open(self.folder) as two:
                self.assertEqual(set(one), set(two))
                for name in one:
                    self.assertTrue(one.read(name).same(two.read(name)), name)

    def test_dtype_and_bias(self) -> None:
        import fp4.checkpoints as ck

        other = model("Llama", attention_bias=True)
        with torch.no_grad():
            for name, value in other.named_parameters():
                if name.endswith("bias"):
                    value.uniform_(-1, 1)
        ft.quantize_(other, weight_only=True)
        ck.save(other, self.folder, "modelopt")
        loaded = self.load("modelopt", dtype=torch.float16)
        layer = loaded.model.layers[0].self_attn.q_proj
        self.assertEqual((layer.bias.dtype, layer.weight.dtype), (torch.float16, torch.float16))
        self.assertLess(error(layer.bias, other.model.layers[0].self_attn.q_proj.bias), 0.01)
        self.assertEqual(loaded.model.norm.weight.dtype, torch.float16)

    def test_experts(self) -> None:
        import fp4.checkpoints as ck

        if not HAS_EXPERTS:
            self.skipTest("a kernel for experts is not installed")
        for name, write, layout in (("Mixtral", as_modelopt, "modelopt"),
                                    ("GptOss", as_gpt_oss, "gpt-oss")):
            with self.subTest(name):
                exact = model(name)
                with torch.no_grad():
                    write(ck, f"{self.folder}/model.safetensors", exact)
                method = ck.LAYOUTS[layout].methods[0]
                format = "mxfp4" if layout == "gpt-oss" else "nvfp4"
                exact.config.quantization_config = ck.quantization_config(layout, format)
                exact.config.save_pretrained(self.folder)
                del exact.config.quantization_config
                loaded = self.load(method, dtype=torch.bfloat16)
                self.assertIsInstance(loaded.get_submodule(PLACE), ft.RoutedExperts)
                ids = tokens(2)
                with torch.no_grad():
                    self.assertLess(error(loaded(ids).logits, exact(ids).logits), 0.02)
                loaded.save_pretrained(f"{self.folder}/again")
                again = transformers.AutoModelForCausalLM.from_pretrained(f"{self.folder}/again")
                with torch.no_grad():
                    self.assertTrue(torch.equal(again(ids).logits, loaded(ids).logits))

    def damage(self, change: Any) -> None:
        from safetensors.torch import load_file, save_file

        content = load_file(f"{self.folder}/model.safetensors")
        change(content)
        save_file(content, f"{self.folder}/model.safetensors", metadata={"format": "pt"})

    def test_damaged(self) -> None:
        up = "model.layers.0.mlp.up_proj"
        for change, words in (
                (lambda content: content.pop(f"{up}.weight_scale"),
                 f"tensor '{up}.weight' must have block scales"),
                (lambda content: content.pop(f"{up}.weight_scale_2"),
                 f"tensor '{up}.weight_scale_2' must be there"),
                (lambda content: content.update({f"{up}.weight_scale": torch.zeros(
                    128, 4).to(torch.float8_e4m3fn)}), f"'{up}.weight_scale' must have the shape"),
                (lambda content: [content.pop(f"{up}.{last}") for last in (
                    "weight", "weight_scale", "weight_scale_2")],
                 f"layer '{up}' must have a weight, but the checkpoint has neither"),
                (lambda content: content[f"{up}.weight_scale"].view(torch.uint8).fill_(0x7f),
                 "must have E4M3 scales that are numbers"),
                (lambda content: [content.update({key.replace("up_proj", "upp"): content.pop(key)})
                                  for key in list(content) if "up_proj" in key],
                 "weight 'model.layers.0.mlp.upp' has no layer in the model")):
            self.stored("Llama", "modelopt")
            self.damage(change)
            with self.subTest(words), self.assertRaisesRegex(fp4.UsageError, words):
                self.load("modelopt")

    def test_other_formats_are_refused(self) -> None:
        model("Llama").save_pretrained(self.folder)
        path = pathlib.Path(self.folder, "config.json")
        path.write_text(json.dumps({**json.loads(path.read_text()), "quantization_config": {
            "quant_method": "modelopt", "quant_algo": "FP8"}}))
        with self.assertRaisesRegex(fp4.UsageError, "must have weights in NVFP4 or MXFP4.*(?s:.*)"
                                    "fp4.transformers.register was called for modelopt"):
            self.load("modelopt")

    def test_the_config_of_transformers_that_quantizes(self) -> None:
        """NVFP4Config makes the layers of FP4Config, and the model is saved as one of fp4."""
        import fp4.transformers

        model("Llama").save_pretrained(f"{self.folder}/16")
        auto, ids = transformers.AutoModelForCausalLM, tokens(2)

        def load(config: Any) -> Any:
            return auto.from_pretrained(f"{self.folder}/16", dtype=torch.bfloat16,
                                        quantization_config=config)

        kept = ["lm_head", "model.layers.0.mlp.down_proj"]
        with self.assertRaisesRegex((ImportError, RuntimeError), "kernels|CUDA"):
            load(transformers.NVFP4Config(modules_to_not_convert=kept))
        with fp4.transformers.register("nvfp4"):
            found = load(transformers.NVFP4Config(modules_to_not_convert=kept))
        expected = load(fp4.transformers.FP4Config(modules_to_not_convert=kept))
        layer = found.model.layers[0]
        self.assertIs(type(layer.mlp.down_proj), torch.nn.Linear)
        self.assertIsInstance(layer.mlp.up_proj, ft.WeightOnlyLinear)
        found.save_pretrained(f"{self.folder}/4")
        again = auto.from_pretrained(f"{self.folder}/4", dtype=torch.bfloat16)
        with torch.no_grad():
            for one in (found, again):
                self.assertTrue(torch.equal(one(ids).logits, expected(ids).logits))

    def test_the_choice_is_explicit(self) -> None:
        import fp4.transformers
        from transformers.quantizers import auto

        before = dict(auto.AUTO_QUANTIZER_MAPPING), dict(auto.AUTO_QUANTIZATION_CONFIG_MAPPING)
        self.assertNotIn("modelopt", before[0])
        with fp4.transformers.register("modelopt", "compressed-tensors"):
            self.assertIn("modelopt", auto.AUTO_QUANTIZER_MAPPING)
        self.assertEqual((auto.AUTO_QUANTIZER_MAPPING, auto.AUTO_QUANTIZATION_CONFIG_MAPPING),
                         before)
        for methods, words in (((), "but there is none"), (("modelopt", "fp8"), "but got 'fp8'")):
            with self.assertRaisesRegex(fp4.UsageError, words):
                fp4.transformers.register(*methods)
            self.assertNotIn("modelopt", auto.AUTO_QUANTIZER_MAPPING)

    def test_files_devices_and_the_model_without_its_head(self) -> None:
        from fp4.checkpoints._quantize_model import Request, quantize_model

        model("Llama").save_pretrained(f"{self.folder}/16", max_shard_size="50KB")
        quantize_model(f"{self.folder}/16", f"{self.folder}/4", Request())
        self.folder += "/4"
        self.assertGreater(len(list(pathlib.Path(self.folder).glob("*.safetensors"))), 3)
        whole, ids = self.load("compressed-tensors"), tokens(2)
        with fp4.transformers.register("compressed-tensors"):
            body, info = transformers.AutoModel.from_pretrained(
                self.folder, dtype=torch.bfloat16, output_loading_info=True)
        self.assertEqual(info["unexpected_keys"], {"lm_head.weight"})
        with torch.no_grad():
            self.assertTrue(torch.equal(body(ids).last_hidden_state,
                                        whole.model(ids).last_hidden_state))
        if optional("accelerate") is None:
            return
        for places in ("auto", "cpu", {"": "cpu"}):
            other = self.load("compressed-tensors", device_map=places)
            with self.subTest(places=places), torch.no_grad():
                self.assertTrue(torch.equal(other(ids).logits, whole(ids).logits))
        disk = {"model.embed_tokens": "cpu", "lm_head": "cpu", "model.norm": "cpu",
                "model.rotary_emb": "cpu", "model.layers": "disk"}
        with self.assertRaisesRegex(fp4.UsageError, "all on the CPU, but places them on cpu, disk"):
            self.load("compressed-tensors", device_map=disk, offload_folder=f"{self.folder}/rest")

    def test_a_part_on_the_cpu(self) -> None:
        from fp4.transformers._layers import refuse_offload

        part = torch.nn.Linear(2, 2)
        for places, is_refused in (({"a": 0, "b": "cpu"}, True), ({"": "disk"}, True),
                                   ({"": "cpu"}, False), ({"a": 0, "b": 1}, False)):
            part.hf_device_map = places
            with self.subTest(places):
                if is_refused:
                    with self.assertRaisesRegex(fp4.UsageError, "'device_map' must place all"):
                        refuse_offload(part)
                else:
                    refuse_offload(part)

    def test_a_folder_of_quantize_model(self) -> None:
        import fp4.transformers
        from fp4.checkpoints._quantize_model import Request, quantize_model

        for name, kind, most in (("Llama", ft.WeightOnlyLinear, 0.03),
                                 ("Mixtral", ft.RoutedExperts, 0.1)):  # one scale for w1 and w3
            exact, root = model(name), f"{self.folder}/{name}"
            exact.save_pretrained(f"{root}/16")
            quantize_model(f"{root}/16", f"{root}/4", Request())
            with fp4.transformers.register("compressed-tensors"):
                loaded, info = transformers.AutoModelForCausalLM.from_pretrained(
                    f"{root}/4", dtype=torch.bfloat16, output_loading_info=True)
            self.assertFalse(any(info[key] for key in info), info)
            self.assertTrue(any(isinstance(layer, kind) for layer in loaded.modules()))
            with torch.no_grad():
                self.assertLess(error(loaded(tokens(2)).logits,
                                      reference(exact, loaded)(tokens(2)).logits), most)


if __name__ == "__main__":
    unittest.main()
