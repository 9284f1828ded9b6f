"""fp4 quantize-model --calibrate: weights rounded for the inputs that a text gives a layer."""

import importlib
import json
import math
import pathlib
import unittest
from typing import Any
from unittest import mock

import fp4
import numpy as np
from programs import optional, torch
from test_quantize_model import LAYER, Folders, ck, tensors

if ck is not None:
    import fp4.torch as ft
    from fp4.checkpoints._calibrate import Calibration, Text
    from fp4.checkpoints._errors import loss_of
    from fp4.checkpoints._gptq import loss_on, round_for
    from safetensors.torch import load_file

transformers: Any = optional("transformers")
tokenizers: Any = optional("tokenizers")
_LLMCOMPRESSOR = optional("llmcompressor")
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def inputs(columns: int, rank: int = 12) -> Any:
    """The moments of inputs that depend on each other."""
    torch.manual_seed(columns)
    x = torch.randn(256, rank) @ torch.randn(rank, columns) + 0.2 * torch.randn(256, columns)
    return x.T @ x


def codes(stored: Any) -> Any:
    data = stored.data.view(torch.uint8)
    return torch.stack([data & 15, data >> 4], -1).reshape(stored.shape).numpy()


def least_squares(weight: Any, scales: Any, moments: Any) -> Any:
    """GPTQ by its definition, in NumPy: columns that are left take the values that lose least, and
    the next one is rounded."""
    weight, scales, moments = (one.double().numpy() for one in (weight, scales, moments))
    moments = moments + 0.01 * np.diag(moments).mean() * np.eye(len(moments))
    order = np.argsort(-np.diag(moments), kind="stable")
    error, found = np.zeros_like(weight), np.zeros(weight.shape, np.uint8)
    for number, column in enumerate(order):
        done, left = order[:number], order[number:]
        move = np.linalg.solve(moments[np.ix_(left, left)],
                               moments[np.ix_(left, done)] @ error[:, done].T)
        wanted = weight[:, column] - move[0]
        distance = np.abs(wanted[:, None] - VALUES * scales[:, column, None])
        best = distance.argmin(1)
        found[:, column] = best
        error[:, column] = VALUES[best] * scales[:, column] - weight[:, column]
    return found


@unittest.skipIf(ck is None, "torch or safetensors is not installed")
class Rounding(unittest.TestCase):
    def weight(self, rows: int = 24, columns: int = 160) -> Any:
        torch.manual_seed(7)
        return torch.randn(rows, columns).bfloat16() * 0.1

    def quantized(self, weight: Any, format: str) -> Any:
        return ft.quantize(weight, format=format, layout="linear")

    def assert_nearest(self, weight: Any, stored: Any, found: Any) -> None:
        """Numbers of `found` are those of `stored`, but where a recipe, which multiplies by a
        rounded reciprocal, takes the other neighbour of a number half way between two."""
        values = [ft.dequantize(one, torch.float32) for one in (stored, found)]
        before, after = ((value - weight.float()).abs() for value in values)
        torch.testing.assert_close(after, before, rtol=1e-5, atol=0)
        self.assertLess((values[0] != values[1]).float().mean(), 0.005)

    def test_inputs_that_do_not_depend_on_each_other_round_to_the_nearest(self) -> None:
        weight = self.weight()
        for format in ("nvfp4", "mxfp4"):
            stored = self.quantized(weight, format)
            for moments in (torch.eye(160), torch.zeros(160, 160),
                            torch.diag(torch.arange(160.0))):
                found = round_for(weight, stored, moments)
                self.assertIs(found.scales, stored.scales)
                self.assert_nearest(weight, stored, found)

    def test_codes_are_those_of_the_definition(self) -> None:
        weight, moments = self.weight(), inputs(160)
        for format in ("nvfp4", "mxfp4"):
            stored = self.quantized(weight, format)
            scales = ft.dequantize(stored, torch.float32) / torch.from_numpy(
                np.where(VALUES[codes(stored)] == 0, np.nan, VALUES[codes(stored)]))
            blocks = scales.view(24, -1, stored.block)
            scales = blocks.nan_to_num(0).max(-1, keepdim=True).values.expand_as(blocks)
            found = round_for(weight, stored, moments)
            np.testing.assert_array_equal(
                VALUES[codes(found)],
                VALUES[least_squares(weight, scales.reshape(24, 160), moments)])

    def test_the_results_lose_less(self) -> None:
        weight, moments = self.weight(), inputs(160)
        for format in ("nvfp4", "mxfp4"):
            stored = self.quantized(weight, format)
            found = round_for(weight, stored, moments)
            before, after = (loss_on(weight, ft.dequantize(one, torch.float32), moments)
                             for one in (stored, found))
            self.assertLess(after.relative, 0.6 * before.relative)
            self.assertGreater(loss_of(weight, ft.dequantize(found, torch.float32)).relative,
                               loss_of(weight, ft.dequantize(stored, torch.float32)).relative)

    def test_zeros_and_inputs_that_are_always_zero(self) -> None:
        weight, moments = self.weight(), inputs(160)
        weight[:, :32] = 0
        weight[3] = 0
        moments[:, 64:80] = moments[64:80] = 0
        stored = self.quantized(weight, "nvfp4")
        found = round_for(weight, stored, moments)
        self.assertTrue((VALUES[codes(found)[3]] == 0).all())
        self.assertTrue((VALUES[codes(found)[:, :32]] == 0).all())
        alone = moments.new_zeros(160).fill_(1)
        self.assertTrue(np.array_equal(codes(found)[:, 64:80], codes(
            round_for(weight, stored, torch.diag(alone)))[:, 64:80]))

    def test_inputs_that_are_not_finite(self) -> None:
        weight, moments = self.weight(), inputs(160)
        moments[3, 3] = math.inf
        with self.assertRaisesRegex(fp4.UsageError, "inputs of the layer must be finite"):
            round_for(weight, self.quantized(weight, "nvfp4"), moments)

    def test_the_loss_is_that_of_the_results(self) -> None:
        torch.manual_seed(2)
        weight, x = self.weight().double(), torch.randn(64, 160).double()
        decoded = ft.dequantize(self.quantized(weight.bfloat16(), "nvfp4"), torch.float32).double()
        loss = loss_on(weight, decoded, x.T @ x)
        self.assertAlmostEqual(loss.signal / float((x @ weight.T).square().sum()), 1, 12)
        self.assertAlmostEqual(loss.noise / float((x @ (weight - decoded).T).square().sum()), 1, 9)

    @unittest.skipIf(_LLMCOMPRESSOR is None, "llmcompressor is not installed")
    def test_llmcompressor_loses_as_much(self) -> None:
        from compressed_tensors.quantization.quant_scheme import preset_name_to_scheme

        theirs = importlib.import_module("llmcompressor.modifiers.gptq.gptq_quantize")
        weight, moments = self.weight(), inputs(160)
        stored = ft.quantize(weight, recipe="compressed_tensors", layout="linear")
        level = stored.encode_scale
        quantized, _, _ = theirs.quantize_weight(
            weight.float()[None].clone(), moments[None].clone(), stored.scales.float()[None],
            torch.zeros_like(stored.scales.float())[None], level.reshape(1, 1),
            preset_name_to_scheme("NVFP4A16", ["Linear"]).weights)
        ours = ft.dequantize(round_for(weight, stored, moments), torch.float32)
        ratio = (loss_on(weight, ours, moments).relative
                 / loss_on(weight, quantized[0].float(), moments).relative)
        self.assertLess(ratio, 1.02)


@unittest.skipIf(ck is None, "torch or safetensors is not installed")
class Model(Folders):
    def text(self, content: "str | None" = None) -> Any:
        path = self.root / "text.txt"
        order = np.random.default_rng(4).integers(0, len(WORDS), 1500)
        path.write_text(" ".join(WORDS[i] for i in order) if content is None else content)
        return Text(path)

    def make(self, **config: Any) -> Any:
        """A small model of transformers and its tokenizer, in the folder IN."""
        if transformers is None or tokenizers is None:
            self.skipTest("transformers is not installed")
        torch.manual_seed(3)
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=len(WORDS) + 1, hidden_size=64, intermediate_size=96, num_hidden_layers=1,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
            **config)).bfloat16()
        for parameter in model.parameters():
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, 0, 0.1)
        model.save_pretrained(self.source)
        words = tokenizers.models.WordLevel({w: i for i, w in enumerate(["?", *WORDS])}, "?")
        tokenizer = tokenizers.Tokenizer(words)
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?"
                                             ).save_pretrained(self.source)
        return model

    def test_a_model(self) -> None:
        model, text = self.make(), self.text()
        code, out, err = self.call("quantize-model", str(self.source), str(self.target), "--json",
                                   "--calibrate", str(text.path))
        self.assertEqual((code, "loading the model" in err), (0, True))
        found = json.loads(out)
        self.assertTrue(found["calibrated"])
        lines = {line["name"]: line for line in found["layers"] if line["format"]}
        self.assertEqual(len(lines), 7)
        moments = Calibration(self.source, text, "cpu").moments([(name,) for name in lines])
        with ck.open(self.target) as checkpoint:
            decoded = {name: ft.dequantize(checkpoint.read(name), torch.float32) for name in lines}
        for name, line in lines.items():
            self.assertLess(line["relative_error"], 0.8 * line["nearest_error"], name)
            loss = loss_on(model.get_submodule(name).weight, decoded[name], moments[name])
            self.assertAlmostEqual(line["relative_error"], loss.relative, 5)
        self.assertLess(self.error(model, decoded, text), 0.6 * self.error(model, {
            name: ft.dequantize(ft.quantize(model.get_submodule(name).weight.detach()),
                                torch.float32) for name in lines}, text))
        self.assertIn("nearest   error", str(self.again(text)))

    def error(self, model: Any, decoded: "dict[str, Any]", text: Any) -> float:
        """The relative error of the logits of the text with these weights."""
        rows = Calibration(self.source, text, "cpu")._rows
        with torch.no_grad():
            right = model.float()(rows).logits
            for name, weight in decoded.items():
                model.get_submodule(name).weight.data, decoded[name] = (
                    weight, model.get_submodule(name).weight.data)
            wrong = model(rows).logits
            for name, weight in decoded.items():
                model.get_submodule(name).weight.data = weight
        return float((wrong - right).norm() / right.norm())

    def again(self, text: Any) -> Any:
        """A second run, with the same bytes."""
        first, self.target = self.target, self.root / "again"
        report = self.quantize(calibrate=text)
        one, two = (load_file(folder / "model.safetensors") for folder in (first, self.target))
        for name, tensor in one.items():
            self.assertTrue(torch.equal(tensor.view(torch.uint8), two[name].view(torch.uint8)))
        return report

    def test_fused_layers_have_one_scale_and_one_input(self) -> None:
        self.make()
        groups = [tuple(LAYER + f"self_attn.{name}_proj" for name in "qkv")]
        found = Calibration(self.source, self.text(), "cpu").moments(groups)
        self.assertEqual(set(found), set(groups[0]))
        self.assertEqual(len({id(one) for one in found.values()}), 1)
        self.quantize(calibrate=self.text())
        with ck.open(self.target) as checkpoint:
            self.assertEqual(len({checkpoint.read(name).amax.item() for name in groups[0]}), 1)

    def test_a_layer_that_no_token_reaches(self) -> None:
        model = self.make()
        with mock.patch.object(Calibration, "moments", return_value={}):
            report = self.quantize(calibrate=self.text())
        self.assertEqual({line.reason for line in report.lines if line.format},
                         {"no token of the text reaches it"})
        name = LAYER + "mlp.down_proj"
        with ck.open(self.target) as checkpoint:
            expected = ft.quantize(model.get_submodule(name).weight.detach(), layout="linear",
                                   recipe="compressed_tensors")
            self.assertTrue(torch.equal(checkpoint.read(name).data.view(torch.uint8),
                                        expected.data.view(torch.uint8)))

    def refuses(self, message: str, text: Any, **request: Any) -> None:
        with self.assertRaisesRegex(fp4.UsageError, message):
            self.quantize(calibrate=text, **request)
        self.assertFalse(self.target.exists())

    def test_texts_and_models_that_do_not_fit(self) -> None:
        self.make()
        text = self.text()
        self.refuses("must be a text in UTF-8", Text(self.root / "nowhere.txt"))
        self.refuses("'tokens' must be at least 1, but got 0", Text(text.path, 0))
        self.refuses("must have a token, but is empty", self.text(" "))
        self.text()
        config = json.loads((self.source / "config.json").read_text())
        for names in ([], ["Unknown"]):
            (self.source / "config.json").write_text(
                json.dumps({**config, "architectures": names}))
            self.refuses("a class of transformers in 'architectures'", text)
        (self.source / "config.json").write_text(json.dumps({**config,
                                                             "architectures": ["LlamaModel"]}))
        self.refuses("layer 'model.layers.0.*' must be a linear layer of LlamaModel", text)
        (self.source / "config.json").write_text(json.dumps(config))
        for file in self.source.glob("tokenizer*"):
            file.unlink()
        self.refuses("must have a tokenizer", text)

    def test_a_number_of_tokens_needs_a_text(self) -> None:
        self.write(tensors())
        call = ("quantize-model", str(self.source), str(self.target))
        code, _, err = self.call(*call, "--calibrate-tokens", "64")
        self.assertEqual(code, 2)
        self.assertIn("--calibrate-tokens needs --calibrate TEXT\nnote: name the text", err)
        self.assertFalse(pathlib.Path(self.target).exists())
        self.assertEqual(self.call(*call)[0], 0)

    def test_without_transformers(self) -> None:
        self.write(tensors())
        with mock.patch.dict("sys.modules", {"transformers": None}):
            code, _, err = self.call("quantize-model", str(self.source), str(self.target),
                                     "--calibrate", str(self.text().path))
        self.assertEqual(code, 2)
        self.assertIn("calibration needs transformers\nnote: pip install transformers", err)
        self.assertFalse(pathlib.Path(self.target).exists())


if __name__ == "__main__":
    unittest.main()
