"""fp4 quantize-model and fp4 compare-checkpoints: folders of a few small tensors, whose bytes are
those that fp4.torch gives."""

import contextlib
import io
import json
import math
import os
import pathlib
import tempfile
import threading
import unittest
from typing import Any

import fp4
from fp4 import __main__
from programs import optional, torch

if torch is not None and optional("safetensors") is not None:
    import fp4.checkpoints as ck
    import fp4.torch as ft
    from fp4.checkpoints._errors import Loss, check_budget, kept_by, loss_of
    from fp4.checkpoints._linears import Linear, fused, units
    from fp4.checkpoints._quantize_model import Request, quantize_model
    from safetensors.torch import load_file, save_file
else:
    ck = None

_COMPRESSED = optional("compressed_tensors")
LAYER = "model.layers.0."
SHAPES = {"self_attn.q_proj": (64, 64), "self_attn.k_proj": (32, 64), "self_attn.v_proj": (32, 64),
          "self_attn.o_proj": (64, 64), "mlp.gate_proj": (96, 64), "mlp.up_proj": (96, 64),
          "mlp.down_proj": (64, 96)}
FUSED = {"self_attn.q_proj": ("q_proj", "k_proj", "v_proj"), "mlp.gate_proj": ("gate", "up")}


def tensors() -> "dict[str, Any]":
    """Weights of a layer, each of its own size of numbers, and what stays as it is."""
    torch.manual_seed(5)
    found = {LAYER + name + ".weight": torch.randn(shape).bfloat16() * 0.01 * (number + 1)
             for number, (name, shape) in enumerate(SHAPES.items())}
    found[LAYER + "self_attn.q_proj.bias"] = torch.randn(64).bfloat16()
    found[LAYER + "input_layernorm.weight"] = torch.randn(64).bfloat16()
    found[LAYER + "mlp.gate.weight"] = torch.randn(4, 64).bfloat16()
    found["model.embed_tokens.weight"] = torch.randn(128, 64).bfloat16()
    found["lm_head.weight"] = torch.randn(128, 64).bfloat16()
    return found


@unittest.skipIf(ck is None, "torch or safetensors is not installed")
class Folders(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.source, self.target = self.root / "in", self.root / "out"
        self.source.mkdir()

    def write(self, content: "dict[str, Any]", shards: int = 1, **config: Any) -> None:
        (self.source / "config.json").write_text(json.dumps({"model_type": "llama", **config}))
        (self.source / "tokenizer.json").write_text("{}")
        names = sorted(content)
        if shards == 1:
            save_file(content, self.source / "model.safetensors")
            return
        places = {name: f"model-{number % shards}.safetensors" for number, name in enumerate(names)}
        for file in set(places.values()):
            save_file({name: content[name] for name in names if places[name] == file},
                      self.source / file)
        (self.source / "model.safetensors.index.json").write_text(
            json.dumps({"weight_map": places}))

    def quantize(self, **request: Any) -> Any:
        return quantize_model(self.source, self.target, Request(**request))

    def call(self, *arguments: str) -> "tuple[int, str, str]":
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = __main__.main(list(arguments))
        return code, out.getvalue(), err.getvalue()


class QuantizeModel(Folders):
    def expected(self, content: "dict[str, Any]", name: str, format: str, recipe: str) -> Any:
        """The weight as fp4.torch quantizes it with the amax of those that are fused with it."""
        parent, _, last = name.rpartition(".")
        group = next((parts for parts in (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
                      if last in parts), (last,))
        amax = torch.stack([content[f"{parent}.{part}.weight"].float().abs().max()
                            for part in group]).max()
        return ft.quantize(content[f"{name}.weight"], format=format, recipe=recipe,
                           layout="linear", amax=amax if format == "nvfp4" else None)

    def test_bytes(self) -> None:
        content = tensors()
        for number, (format, recipe, shards) in enumerate((
                ("nvfp4", "compressed_tensors", 1), ("nvfp4", "compressed_tensors", 3),
                ("mxfp4", "mxfp4_compressed_tensors", 2), ("nvfp4", "transformer_engine", 1))):
            with self.subTest(format=format, recipe=recipe, shards=shards):
                self.source = self.root / f"in{number}"
                self.source.mkdir()
                self.write(content, shards)
                self.target = self.root / f"out{number}"
                given = {} if "compressed" in recipe else {"recipe": recipe}
                report = self.quantize(format=format, **given)
                self.assertEqual(report.recipe, recipe)
                with ck.open(self.target) as checkpoint:
                    self.assertEqual(set(checkpoint), {LAYER + name for name in SHAPES})
                    self.assertEqual(checkpoint.layout.name, "compressed-tensors")
                    for name in checkpoint:
                        found = checkpoint.read(name)
                        wanted = self.expected(content, name, format, recipe)
                        for one, two in ((found.data, wanted.data), (found.scales, wanted.scales)):
                            self.assertTrue(torch.equal(one.view(torch.uint8),
                                                        two.view(torch.uint8)), name)
                        error = (ft.dequantize(found, torch.float32)
                                 - ft.dequantize(wanted, torch.float32)).abs().max()
                        self.assertLessEqual(float(error), 1e-7)
                    others = {name: checkpoint.tensor(name) for name in checkpoint.others}
                plain = {name: value for name, value in content.items()
                         if name.removesuffix(".weight") not in checkpoint}
                self.assertEqual(set(others), set(plain))
                for name, value in plain.items():
                    self.assertTrue(torch.equal(others[name], value), name)
                self.assertEqual(len(list(self.target.glob("*.safetensors"))), shards)

    def test_fused_layers_have_one_scale(self) -> None:
        self.write(tensors(), 3)
        self.quantize()
        with ck.open(self.target) as checkpoint:
            level = {name: checkpoint.read(LAYER + name).amax.item() for name in SHAPES}
        self.assertEqual(len({level[f"self_attn.{name}_proj"] for name in "qkv"}), 1)
        self.assertEqual(level["mlp.gate_proj"], level["mlp.up_proj"])
        self.assertEqual(len(set(level.values())), 4)

    def test_index_and_other_files(self) -> None:
        self.write(tensors(), 3, torch_dtype="bfloat16")
        (self.source / "pytorch_model.bin").write_bytes(b"x")
        (self.source / ".hidden").write_text("x")
        (self.source / "original").mkdir()
        self.quantize()
        index = json.loads((self.target / "model.safetensors.index.json").read_text())
        held = {name: (file.name, value.nbytes) for file in self.target.glob("*.safetensors")
                for name, value in load_file(file).items()}
        self.assertEqual(index["weight_map"], {name: file for name, (file, _) in held.items()})
        self.assertEqual(index["metadata"]["total_size"], sum(size for _, size in held.values()))
        self.assertEqual({file.name for file in self.target.iterdir()
                          if file.suffix != ".safetensors"},
                         {"config.json", "tokenizer.json", "model.safetensors.index.json"})
        config = json.loads((self.target / "config.json").read_text())
        self.assertEqual((config["torch_dtype"], config["model_type"]), ("bfloat16", "llama"))
        section = config["quantization_config"]
        self.assertEqual(section["ignore"], ["lm_head", LAYER + "mlp.gate"])
        self.assertEqual(section["format"], "nvfp4-pack-quantized")

    @unittest.skipIf(_COMPRESSED is None, "compressed-tensors is not installed")
    def test_compressed_tensors_takes_the_config_and_the_weights(self) -> None:
        from compressed_tensors.compressors.nvfp4 import NVFP4PackedCompressor
        from compressed_tensors.quantization import QuantizationConfig

        self.write(tensors())
        self.quantize()
        section = json.loads((self.target / "config.json").read_text())["quantization_config"]
        config = QuantizationConfig.model_validate(section)
        name = LAYER + "mlp.down_proj"
        state = {key.removeprefix(f"{name}."): value
                 for key, value in load_file(self.target / "model.safetensors").items()
                 if key.startswith(f"{name}.")}
        theirs = NVFP4PackedCompressor.decompress(state, config.config_groups["group_0"])["weight"]
        with ck.open(self.target) as checkpoint:
            ours = ft.dequantize(checkpoint.read(name), theirs.dtype)
        self.assertTrue(torch.equal(theirs, ours))

    def test_report(self) -> None:
        content = tensors()
        content[LAYER + "mlp.down_proj.weight"][0, :48] = 3.0  # an outlier in every block
        content[LAYER + "mlp.down_proj.weight"][1:, ::16] = 0.9
        self.write(content)
        report = self.quantize()
        with ck.open(self.target) as checkpoint:
            for line in report.lines[:7]:
                weight = content[f"{line.layer.name}.weight"].double()
                found = ft.dequantize(checkpoint.read(line.layer.name), torch.float32).double()
                error = float((weight - found).norm() / weight.norm())
                self.assertAlmostEqual(line.loss.relative, error, 12)
                self.assertAlmostEqual(line.loss.sqnr, -20 * math.log10(error), 9)
        errors = [line.loss.relative for line in report.lines[:7]]
        self.assertEqual(errors, sorted(errors, reverse=True))
        self.assertEqual({line.layer.name: line.reason for line in report.lines[7:]},
                         {"lm_head": "is the head", LAYER + "mlp.gate": "is a router"})
        self.assertEqual(report.bits, 4.5)
        self.assertIn("7 of 9 linear layers in 4 bits, 4.50 bits a weight", str(report))

    def test_exclude_and_head(self) -> None:
        self.write(tensors())
        report = self.quantize(exclude=("*.o_proj", "*.mlp.*_proj"), head=True)
        self.assertEqual({line.layer.name for line in report.lines if line.format},
                         {"lm_head", *(f"{LAYER}self_attn.{name}_proj" for name in "qkv")})
        section = json.loads((self.target / "config.json").read_text())["quantization_config"]
        self.assertNotIn("lm_head", section["ignore"])
        self.assertIn(LAYER + "self_attn.o_proj", section["ignore"])

    def test_head_in_4_bits_is_not_the_embedding(self) -> None:
        for text in ({}, {"text_config": {"hidden_size": 64, "tie_word_embeddings": True}}):
            for head in (False, True):
                self.write(tensors(), tie_word_embeddings=True, **text)
                self.target = self.root / f"out{len(text)}{head}"
                self.quantize(head=head)
                config = json.loads((self.target / "config.json").read_text())
                self.assertIs(config["tie_word_embeddings"], not head)
                if text:
                    self.assertEqual(config["text_config"],
                                     {"hidden_size": 64, "tie_word_embeddings": not head})

    def test_bits_of_layers_that_stay(self) -> None:
        for dtype, bits in (("BF16", 16), ("F32", 32), ("F64", 64), ("F8_E4M3", 8), ("BOOL", 8)):
            self.assertEqual(Linear("a", (1, 1), dtype).bits, bits)

    def test_latent_attention_and_bert_are_fused(self) -> None:
        for names in (("a.q_a_proj", "a.kv_a_proj_with_mqa"), ("a.query", "a.key", "a.value")):
            self.assertEqual(fused([*names, "a.q_b_proj"]), [names, ("a.q_b_proj",)])

    def test_budget(self) -> None:
        content = tensors()
        for shards in (1, 3):
            self.write(content, shards)
            self.target = self.root / f"out{shards}"
            report = self.quantize(bits=7.5)
            kept = {line.layer.name for line in report.lines if line.loss and not line.format}
            self.assertTrue(kept)
            self.assertLessEqual(report.bits, 7.5)
            sizes = {LAYER + name: rows * columns for name, (rows, columns) in SHAPES.items()}
            bits = sum(size * (16 if name in kept else 4.5) for name, size in sizes.items())
            self.assertAlmostEqual(report.bits, bits / sum(sizes.values()))
            with ck.open(self.target) as checkpoint:
                self.assertEqual(set(checkpoint), set(sizes) - kept)
                for name in kept:
                    self.assertTrue(torch.equal(checkpoint.tensor(f"{name}.weight"),
                                                content[f"{name}.weight"]))
                for name in checkpoint:
                    self.assertEqual(
                        checkpoint.read(name).data.view(torch.uint8).tolist(),
                        self.expected(content, name, "nvfp4", "compressed_tensors")
                        .data.view(torch.uint8).tolist())
            section = json.loads((self.target / "config.json").read_text())["quantization_config"]
            self.assertLessEqual(kept, set(section["ignore"]))
            (self.source / "model.safetensors").unlink(missing_ok=True)

    def test_budget_keeps_the_worst_group_that_fits(self) -> None:
        layers = [Linear(name, (32, size), "BF16") for name, size in
                  (("a.q_proj", 32), ("a.k_proj", 32), ("a.v_proj", 32), ("b", 64), ("c", 32))]
        self.assertEqual(fused(layer.name for layer in layers),
                         [("a.q_proj", "a.k_proj", "a.v_proj"), ("b",), ("c",)])
        losses = {"a.q_proj": Loss(1, 9), "a.k_proj": Loss(1, 0), "a.v_proj": Loss(1, 0),
                  "b": Loss(1, 2), "c": Loss(1, 1)}
        every = 4.5 + 11.5 * 3 / 6  # the three of the group
        for budget, kept in ((4.5, set()), (4.5 + 11.5 / 6, {"c"}), (4.5 + 11.5 * 2 / 6, {"b"}),
                             (every, {"a.q_proj", "a.k_proj", "a.v_proj"}),
                             (every + 11.5 / 6, {"a.q_proj", "a.k_proj", "a.v_proj", "c"})):
            self.assertEqual(kept_by(budget, layers, losses, 4.5), kept, budget)
        for budget in (4.4, math.nan):
            with self.assertRaisesRegex(fp4.UsageError, "'bits' must be at least the 4.5 of"):
                check_budget(budget, 4.5)

    def test_experts_of_a_layer_have_one_format(self) -> None:
        names = [f"{layer}.mlp.experts.{number}.{last}" for layer in "ab" for number in (0, 1)
                 for last in ("gate_proj", "up_proj", "down_proj")]
        self.assertEqual([len(group) for group in fused(names)], [2, 1, 2, 1, 2, 1, 2, 1])
        self.assertEqual(units(names), [tuple(names[:6]), tuple(names[6:])])
        layers = [Linear(name, (32, 32), "BF16") for name in names]
        losses = {name: Loss(1, 9 if name == names[7] else 1) for name in names}
        self.assertEqual(kept_by(4.5 + 11.5 * 5 / 12, layers, losses, 4.5), set())
        self.assertEqual(kept_by(4.5 + 11.5 * 6 / 12, layers, losses, 4.5), set(names[6:]))

    def test_loss(self) -> None:
        weight = torch.randn(1500, 8)
        found = loss_of(weight, weight * 0.5)
        self.assertAlmostEqual(found.relative, 0.5)
        self.assertAlmostEqual(found.sqnr, 20 * math.log10(2))
        self.assertEqual((loss_of(weight, weight).sqnr, loss_of(weight * 0, weight * 0).relative),
                         (None, 0.0))

    def test_errors_leave_nothing(self) -> None:
        bad = tensors()
        bad[LAYER + "mlp.down_proj.weight"][3, 5] = float("nan")
        odd = {**tensors(), LAYER + "self_attn.o_proj.weight": torch.zeros(64, 40).bfloat16()}
        stack = {**tensors(), LAYER + "mlp.experts.down_proj": torch.zeros(2, 32, 32).bfloat16()}
        eight = {**tensors(), LAYER + "self_attn.o_proj.weight":
                 torch.zeros(64, 64, dtype=torch.float8_e4m3fn)}
        empty = {**tensors(), LAYER + "self_attn.o_proj.weight": torch.zeros(0, 64).bfloat16()}
        joint = {**tensors(), LAYER + "self_attn.v_proj.weight":
                 torch.full((32, 64), math.inf).bfloat16()}
        large = {**tensors(), LAYER + "self_attn.o_proj.weight": torch.full((64, 64), 3.4e38)}
        named = {**tensors(), LAYER + "self_attn.o_proj.weight_scale": torch.zeros(1)}
        tied = {name: value for name, value in tensors().items() if name != "lm_head.weight"}
        inner = {"quantization_config": {"quant_method": "fp8"}}
        for content, config, request, words in (
                (bad, {}, {}, r"weight '.*down_proj': the weight must be finite, but \[3, 5\]"),
                (odd, {}, {}, "'.*o_proj' must have columns that are a multiple of 16.*has 40"),
                (stack, {}, {}, "experts.down_proj' must be one matrix for each expert"),
                (eight, {}, {}, "o_proj.weight' must be BF16, F16 or F32, but is F8_E4M3"),
                (tensors(), {"quantization_config": {"quant_method": "fp8"}}, {}, "has a quantiza"),
                (tensors(), {"text_config": inner}, {}, "has a quantization_config"),
                (tensors(), {"compression_config": inner}, {}, "has a compression_config"),
                (empty, {}, {}, "'.*o_proj' must have rows and columns, but is 0 x 64"),
                (large, {}, {}, "weight '.*o_proj': the numbers in 4 bits must be finite"),
                (joint, {}, {}, r"^weight '\S*v_proj': the weight must be finite, but \[0, 0\]"),
                (named, {}, {}, "'.*o_proj' must have no tensor '.*o_proj.weight_scale', but has"),
                (tied, {}, {"head": True}, "must have a tensor of the head, but has none"),
                (tensors(), {"model_type": "gpt2"}, {}, "those of gpt2 are transposed"),
                (tensors(), {}, {"exclude": ("*.nothing",)}, "'\\*.nothing' matches none"),
                (tensors(), {}, {"exclude": ("*.q_proj",)}, "'.*q_proj' and '.*k_proj' must have "
                 "one format(?s:.*)exclude all of them"),
                (tensors(), {}, {"exclude": ("*",)}, "must have a linear layer to quantize"),
                (tensors(), {}, {"recipe": "nonsense"}, "unknown recipe 'nonsense'"),
                (tensors(), {}, {"recipe": "vllm, tensor_scale = supplied"}, "must compute the sc"),
                (tensors(), {}, {"bits": 4.0}, "'bits' must be at least the 4.5"),
                (tensors(), {}, {"bits": 99.0}, "must leave a layer in 4 bits, but 99 keeps all"),
                (tensors(), {}, {"device": "cuda:99"}, "'device' must be one that torch has"),
                (tensors(), {}, {"device": "meta"}, "'device' must be cpu or cuda, but got 'meta'"),
                ({"a.bias": torch.zeros(4)}, {}, {}, "must have a linear layer to quantize")):
            with self.subTest(words):
                self.write(content, **config)
                with self.assertRaisesRegex(fp4.Error, words):
                    self.quantize(**request)
                self.assertEqual({file.name for file in self.root.iterdir()}, {"in"})
        self.write(stack)
        self.quantize(exclude=("*.experts.*",))  # the twin of the stack
        section = json.loads((self.target / "config.json").read_text())["quantization_config"]
        self.assertIn(LAYER + "mlp.experts", section["ignore"])

    def test_modules_of_sentence_transformers(self) -> None:
        self.write(tensors())
        (self.source / "1_Pooling").mkdir()
        (self.source / "1_Pooling" / "config.json").write_text("{}")
        (self.source / "onnx").mkdir()
        modules = self.source / "modules.json"
        for content in ("5", "[{}]", "{"):
            modules.write_text(content)
            with self.assertRaisesRegex(fp4.UsageError, "must be a list of modules with a path"):
                self.quantize()
            self.assertFalse(self.target.exists())
        modules.write_text(json.dumps([{"path": path} for path in (
            "", ".", "..", "../in", "1_Pooling", "2_Normalize")]))
        self.quantize()
        self.assertEqual({file.name for file in self.target.iterdir() if file.is_dir()},
                         {"1_Pooling"})
        self.assertEqual((self.target / "1_Pooling" / "config.json").read_text(), "{}")

    def test_config_of_modelopt(self) -> None:
        self.write(tensors())
        (self.source / "hf_quant_config.json").write_text("{}")
        with self.assertRaisesRegex(fp4.UsageError, "but has a hf_quant_config.json"):
            self.quantize()

    def test_folders(self) -> None:
        self.write(tensors())
        self.target.symlink_to(self.root / "nothing")
        with self.assertRaisesRegex(fp4.UsageError, "must not exist, but does"):
            self.quantize()
        self.target.unlink()
        self.target.mkdir()
        with self.assertRaisesRegex(fp4.UsageError, "must not exist, but does"):
            self.quantize()
        self.target.rmdir()
        other = self.root / f".out.{os.getpid()}.{threading.get_ident()}.tmp"
        other.mkdir()
        with self.assertRaisesRegex(fp4.UsageError, "cannot write '.*out'.*File exists"):
            self.quantize()
        other.rmdir()  # which is another's, and still there
        self.target = self.root / "no" / "out"
        with self.assertRaisesRegex(fp4.UsageError, "cannot write '.*out'"):
            self.quantize()
        (self.source / "config.json").unlink()
        self.target = self.root / "other"
        with self.assertRaisesRegex(fp4.UsageError, "a folder with a config.json, but has none"):
            self.quantize()

    def test_command(self) -> None:
        self.write(tensors(), 2)
        code, out, err = self.call("quantize-model", str(self.source), str(self.target), "--json",
                                   "--bits", "6", "--exclude", "*.o_proj")
        self.assertEqual((code, err.count("file ")), (0, 2))
        found = json.loads(out)
        self.assertLessEqual(found["bits"], 6)
        self.assertEqual(len(found["layers"]), 9)
        self.assertEqual(found["recipe"], "compressed_tensors")
        code, out, err = self.call("quantize-model", str(self.source), str(self.target))
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(err, "fp4: error: '.*' must not exist, but does\nnote: remove it")


class CompareCheckpoints(Folders):
    def setUp(self) -> None:
        super().setUp()
        self.write(tensors())
        self.other = self.root / "other"
        for target, recipe in ((self.target, ""), (self.other, "transformer_engine")):
            quantize_model(self.source, target, Request(recipe=recipe))

    def changed(self, ending: str, place: "tuple[int, ...]", value: Any) -> pathlib.Path:
        """A copy with one number of down_proj changed."""
        folder = self.root / f"changed{ending}"
        folder.mkdir(exist_ok=True)
        content = load_file(self.target / "model.safetensors")
        tensor = content[f"{LAYER}mlp.down_proj{ending}"]
        tensor.view(torch.uint8 if tensor.element_size() == 1 else tensor.dtype)[place] = value
        save_file(content, folder / "model.safetensors")
        (folder / "config.json").write_text((self.target / "config.json").read_text())
        return folder

    def test_equal(self) -> None:
        code, out, _ = self.call("compare-checkpoints", str(self.target), str(self.target))
        self.assertEqual((code, out), (0, "no difference in 12 weights and tensors\n"))

    def test_layouts_of_equal_numbers(self) -> None:
        """A weight of MXFP4 has one set of bytes in two layouts."""
        folder = self.root / "modelopt"
        folder.mkdir()
        weight = ft.quantize(tensors()["lm_head.weight"], format="mxfp4", recipe="mxfp4_modelopt")
        for layout, name in (("modelopt", "a"), ("compressed-tensors", "b")):
            (folder / name).mkdir()
            ck.write(folder / name / "model.safetensors", {"lm_head": weight}, layout)
            (folder / name / "config.json").write_text(json.dumps(
                {"quantization_config": ck.quantization_config(layout, "mxfp4")}))
        code, _, _ = self.call("compare-checkpoints", str(folder / "a"), str(folder / "b"))
        self.assertEqual(code, 0)

    def test_parts(self) -> None:
        weight = LAYER + "mlp.down_proj"
        byte = int(load_file(self.target / "model.safetensors")[f"{weight}.weight_packed"][2, 7])
        for ending, place, value, words in (
                (".weight_packed", (2, 7), byte ^ 0x10, rf"codes: 1 of 6,144, first at \[2, 15\]: "
                 rf"{byte >> 4} and {byte >> 4 ^ 1}\n"),
                (".weight_scale", (1, 3), 0x38, r"scales: 1 of 384, first at \[1, 3\]: .* and 1 \("
                 r"0x38\)\n"),
                (".weight_global_scale", (0,), 512.0, r"tensor scale: 1 of 1, first at \[0\]: .* "
                 r"and 0.001953125 \(0x3b000000\)\n")):
            other = self.changed(ending, place, value)
            code, out, _ = self.call("compare-checkpoints", str(self.target), str(other))
            self.assertEqual(code, 1)
            self.assertRegex(out, f"^'{weight}' differs in its {words}1 of 12 differ\n$")

    def test_numbers_of_experts(self) -> None:
        weight = ft.quantize(tensors()["lm_head.weight"], format="mxfp4", recipe="mxfp4_modelopt")
        folders = [self.root / f"experts{count}" for count in (2, 4)]
        for folder, count in zip(folders, (2, 4)):
            folder.mkdir()
            ck.write(folder / "model.safetensors", {"experts.down_proj": [weight] * count},
                     "gpt-oss")
        for one, two in (folders, folders[::-1]):
            code, out, _ = self.call("compare-checkpoints", str(one), str(two))
            self.assertEqual(code, 1)
            self.assertRegex(out, r"in its names: .*[24] experts in mxfp4 of \[128, 64\] and [24]")
            code, _, _ = self.call("compare-checkpoints", str(one), str(one))
            self.assertEqual(code, 0)

    def test_recipes(self) -> None:
        code, out, _ = self.call("compare-checkpoints", str(self.target), str(self.other),
                                 "--original", str(self.source), "--json")
        found = json.loads(out)
        self.assertEqual((code, found["first"]["part"]), (1, "tensor scale"))
        ours, theirs = found["first"]["recipes"]
        self.assertIn("compressed_tensors", ours)
        self.assertIn("transformer_engine", theirs)

    def test_names_and_other_tensors(self) -> None:
        content = load_file(self.target / "model.safetensors")
        config = (self.target / "config.json").read_text()
        for change, words in ((lambda: content.pop("lm_head.weight"),
                               "'lm_head.weight' differs in its names: .* BF16 of shape "
                               r"\[128, 64\] and nothing"),
                              (lambda: content.__setitem__("lm_head.weight",
                                                           torch.zeros(128, 64).bfloat16()),
                               r"'lm_head.weight' differs in its tensor: .* first at \[0, 0\]")):
            change()
            folder = self.root / f"named{len(content)}"
            folder.mkdir()
            (folder / "config.json").write_text(config)
            save_file(content, folder / "model.safetensors")
            _, out, _ = self.call("compare-checkpoints", str(self.target), str(folder))
            self.assertRegex(out, words)

    def test_what_is_no_checkpoint(self) -> None:
        code, _, err = self.call("compare-checkpoints", str(self.target), str(self.source))
        self.assertEqual(code, 2)
        self.assertIn("must have weights in NVFP4 or MXFP4", err)
        small = self.root / "small"
        small.mkdir()
        save_file({f"{LAYER}self_attn.k_proj.weight": torch.zeros(2, 2)},
                  small / "model.safetensors")
        code, _, err = self.call("compare-checkpoints", str(self.target), str(self.other),
                                 "--original", str(small))
        self.assertEqual(code, 2)
        self.assertRegex(err, "of the original must be|the original must have the tensor")
        eight = {name: value.to(torch.float8_e4m3fn) for name, value in tensors().items()}
        save_file(eight, small / "model.safetensors")
        code, _, err = self.call("compare-checkpoints", str(self.target), str(self.other),
                                 "--original", str(small))
        self.assertEqual(code, 2)
        self.assertRegex(err, r"weight 'model\S*weight': .* must be bfloat16, float16 or float32")


if __name__ == "__main__":
    unittest.main()
