"""fp4.checkpoints.load_into and save: checkpoints into models, and back."""

import copy
import json
import unittest
from typing import Any

from programs import torch
from test_checkpoints import Checkpoints, decoded

if torch is not None:
    import fp4.torch as ft
    from safetensors.torch import load_file

    try:
        import fp4.checkpoints as ck
    except ImportError:
        ck = None

    class Block(torch.nn.Module):
        """Separate projections, or merged ones; the head shares the weight of the embedding."""

        def __init__(self, merged: bool = False) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(32, 64)
            sizes = {"qkv_proj": 384} if merged else {"q_proj": 128, "k_proj": 128, "v_proj": 128}
            self.attention = torch.nn.ModuleDict(
                {name: torch.nn.Linear(64, rows) for name, rows in sizes.items()})
            self.norm = torch.nn.BatchNorm1d(384)
            self.head = torch.nn.Linear(64, 32, bias=False)
            self.head.weight = self.embed.weight
            self.bfloat16()

        def forward(self, x: Any) -> Any:
            return torch.cat([layer(x) for layer in self.attention.values()], -1)


def source() -> Any:
    torch.manual_seed(4)
    model = Block()
    with torch.no_grad():
        model.attention["k_proj"].weight *= 5  # a scale of its own
    return model


class Models(Checkpoints):
    def saved(self, layout: str, weight_only: bool = True, inputs: bool = False) -> Any:
        """A model, and its checkpoint in self.folder."""
        model = source()
        ft.quantize_(model, lambda _, name: name != "head", weight_only=weight_only)
        if inputs:
            for name, layer in model.attention.items():
                weight = layer.unpack()
                recipe = {"modelopt": "modelopt, tensor_scale = supplied_decode",
                          "compressed-tensors": "compressed_tensors, tensor_scale = supplied"}
                kind = ck.LAYOUTS[layout].kind("nvfp4")
                linear = ck.restated(ft.swizzle(weight, "linear"), kind)
                self.assertEqual(linear.recipe, recipe[layout])
                scale = {"modelopt": 4 / 2688, "compressed-tensors": 2688 / 4}[layout]
                model.attention[name] = ft.QuantizedLinear(linear, layer.bias, torch.tensor(scale))
        ck.save(model, self.folder, layout)
        return model

    def test_weights_alone(self) -> None:
        x = torch.randn(3, 64, dtype=torch.bfloat16)
        for layout in ("modelopt", "compressed-tensors"):
            model = self.saved(layout)
            with torch.device("meta"):
                other = Block()
            report = ck.load_into(other, self.folder)
            self.assertEqual(report.names, [f"attention.{name}_proj" for name in "kqv"])
            for name, layer in other.attention.items():
                self.assertIsInstance(layer, ft.WeightOnlyLinear)
                error = layer.weight + 0 - model.attention[name].weight
                self.assertLess(error.float().norm(), 1e-3 * model.attention[name].weight.norm())
            self.assertIs(other.head.weight, other.embed.weight)
            self.same(other.embed.weight.detach(), model.embed.weight.detach())
            self.same(other.norm.running_mean, model.norm.running_mean)
            self.assertEqual(other(x).shape, (3, 384))
            self.assertFalse([name for name, value in other.state_dict().items() if value.is_meta])

    def test_inputs_too(self) -> None:
        x = torch.randn(3, 64, dtype=torch.bfloat16)
        for layout in ("modelopt", "compressed-tensors"):
            model = self.saved(layout, weight_only=False, inputs=True)
            other = Block()
            ck.load_into(other, self.folder)
            self.assertIsInstance(other.attention["q_proj"], ft.QuantizedLinear)
            self.same(other(x).detach(), model(x).detach())
            plain = Block()
            ck.load_into(plain, self.folder, weight_only=True)
            self.assertIsInstance(plain.attention["q_proj"], ft.WeightOnlyLinear)

    def test_one_layer_for_several_weights(self) -> None:
        x = torch.randn(3, 64, dtype=torch.bfloat16)
        for inputs in (False, True):
            model = self.saved("modelopt", weight_only=not inputs, inputs=inputs)
            merged = Block(merged=True)
            ck.load_into(merged, self.folder)
            layer = merged.attention["qkv_proj"]
            self.assertEqual((layer.out_features, layer.unpack().amax.shape), (384, (384,)))
            self.same(layer.weight + 0, torch.cat([part.weight + 0 for part in
                                                   model.attention.values()]))
            self.same(layer.bias.detach(), torch.cat([part.bias.detach() for part in
                                                      model.attention.values()]))
            error = (merged(x) - model(x)).norm() / model(x).norm()
            self.assertLess(error, 0.01)

    def test_what_does_not_fit(self) -> None:
        self.saved("modelopt")
        narrow, without = Block(), Block()
        narrow.attention["q_proj"] = torch.nn.Linear(64, 64)
        del without.attention["v_proj"]
        more = Block()
        more.extra = torch.nn.Linear(4, 4)
        for model, message in (
                (narrow, "layer 'attention.q_proj' must have a weight of 64 x 64, but the checkpoi"
                 "nt has 128 x 64"),
                (without, "weight 'attention.v_proj' has no layer in the model: it has no linear "
                 "layer 'attention.v_proj'\nnote: pass rename="),
                (more, "parameter 'extra.weight' is not in the checkpoint")):
            with self.refused(message):
                ck.load_into(model, self.folder)
        holder = torch.nn.ModuleDict({"model": Block()})
        ck.load_into(holder, self.folder, rename=lambda name: f"model.{name}")
        self.assertIsInstance(holder["model"].attention["q_proj"], ft.WeightOnlyLinear)
        with self.refused("must have layers with weights in 4 bits, but has none"):
            ck.save(Block(), self.folder, "modelopt")

    def test_what_is_left_over_is_said(self) -> None:
        self.saved("modelopt")
        fewer = Block()
        fewer.norm = torch.nn.Identity()
        with self.assertWarnsRegex(UserWarning, "found no place for 5 tensors of the checkpoint, "
                                   "such as 'norm.bias'"):
            ck.load_into(fewer, self.folder)

    def test_the_files(self) -> None:
        model = self.saved("compressed-tensors")
        config = json.loads((self.folder / "config.json").read_text())["quantization_config"]
        self.assertEqual(config["ignore"], ["head"])
        self.assertNotIn("input_activations", config["config_groups"]["group_0"])
        file = load_file(self.folder / "model.safetensors")
        self.assertIn("attention.q_proj.weight_packed", file)
        self.assertIn("attention.q_proj.bias", file)
        self.assertEqual(("embed.weight" in file) + ("head.weight" in file), 1)
        with ck.open(self.folder) as checkpoint:
            found = decoded(checkpoint.read("attention.q_proj"))
        expected = ft.dequantize(model.attention["q_proj"].unpack(), torch.float32)
        self.assertLess((found - expected).abs().max(), 1e-6 * expected.abs().max())


class States(Checkpoints):
    def test_a_state_in_safetensors(self) -> None:
        """Every part of a state is a tensor that safetensors holds."""
        from safetensors.torch import load_model, save_model

        x = torch.randn(3, 64, dtype=torch.bfloat16)
        for options in ({}, {"format": "mxfp4"}, {"weight_only": True}):
            model, other = source(), Block()
            ft.quantize_(model, **options)
            ft.quantize_(other, **options)
            save_model(model, str(self.path))
            load_model(other, str(self.path))
            self.same(other(x).detach(), model(x).detach())
        wrong = copy.deepcopy(source())
        ft.quantize_(wrong, recipe="torchao")
        ft.quantize_(model := source())
        with self.refused("the state must be of .*'torchao'.*, but got .*'transformer_engine'"):
            wrong.load_state_dict(model.state_dict())


if __name__ == "__main__":
    unittest.main()
