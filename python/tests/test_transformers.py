"""Models of transformers with layers of fp4: generation, files, and low-rank adapters.

    pip install transformers peft

Each model is a tiny one of random weights, on the simulator. The reference is the same model with
the numbers that the quantized layers multiply by.
"""

import contextlib
import copy
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import fp4
from expert_files import PLACE, as_gpt_oss, as_modelopt, as_modelopt_stacks
from programs import optional, torch

transformers = optional("transformers") if torch is not None else None
peft = optional("peft") if transformers is not None else None

if transformers is not None:
    import fp4.torch as ft

HAS_EXPERTS = transformers is not None and hasattr(ft, "experts_from")
SIZES = {"hidden_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2,
         "num_key_value_heads": 1, "vocab_size": 128, "max_position_embeddings": 64,
         "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
NAMES = ("Llama", "Qwen3", "GPT2", "Mixtral", "GptOss")


def model(name: str, **options: Any) -> Any:
    torch.manual_seed(7)
    if name == "GPT2":
        config = transformers.GPT2Config(n_embd=128, n_layer=1, n_head=2, vocab_size=128,
                                         n_positions=64, bos_token_id=None, eos_token_id=None,
                                         **options)
    else:
        sizes = {**SIZES, "intermediate_size": 128}
        if name in ("Mixtral", "GptOss"):
            sizes |= {"num_local_experts": 4, "num_experts_per_tok": 2}
        if name in ("Qwen3", "GptOss", "Gemma3"):
            sizes |= {"head_dim": 64}
        text = "Text" if name == "Gemma3" else ""
        config = getattr(transformers, f"{name}{text}Config")(**{**sizes, **options})
    kind = getattr(transformers, "GPT2LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM")
    made = kind._from_config(config, dtype=torch.bfloat16).eval()
    with torch.no_grad():  # weights as of a trained model: the first ones are too small to matter
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4)
    return made


def reference(made: Any, quantized: Any) -> Any:
    """`made` with the numbers of the weights of `quantized`."""
    exact = copy.deepcopy(made)
    with torch.no_grad():
        for name, layer in quantized.named_modules():
            if isinstance(layer, (ft.QuantizedLinear, ft.WeightOnlyLinear)):
                weight = layer.weight + 0
                plain = exact.get_submodule(name).weight
                is_turned = type(exact.get_submodule(name)).__name__ == "Conv1D"
                plain.copy_(weight.t() if is_turned else weight)
            elif type(layer).__name__ == "RoutedExperts":
                experts_in_4_bits(exact.get_submodule(name))
    return exact


def experts_in_4_bits(experts: Any) -> None:
    """Gates, ups and downs of every expert, each with a scale of its own. In gpt-oss the matrices
    are transposed, and gates and ups are in turns."""
    is_turned = type(experts).__name__ == "GptOssExperts"
    for stack, parts in ((experts.gate_up_proj, 2), (experts.down_proj, 1)):
        for matrix in stack:
            rows = matrix.t() if is_turned else matrix
            in_turns = [rows[part::parts] for part in range(parts)]
            for half in in_turns if is_turned else rows.chunk(parts):
                half.copy_(ft.dequantize(ft.quantize(half.contiguous())))


def tokens(batch: int, length: int = 5) -> Any:
    torch.manual_seed(batch)
    return torch.randint(1, 128, (batch, length))


def error(found: Any, expected: Any) -> float:
    return float((found.float() - expected.float()).norm() / expected.float().norm())


def quantized(name: str, **options: Any) -> "tuple[Any, Any]":
    made = model(name)
    other = copy.deepcopy(made)
    with warnings.catch_warnings():
        if not HAS_EXPERTS:
            warnings.simplefilter("ignore")  # that the experts stay
        report = ft.quantize_(other, **options)
    assert report.names, name
    return made, other


@unittest.skipIf(transformers is None, "torch or transformers is not installed")
class Generation(unittest.TestCase):
    def check(self, name: str, least: float, **options: Any) -> None:
        made, other = quantized(name, **options)
        exact = reference(made, other)
        for batch in (1, 4):
            ids = tokens(batch)
            with torch.no_grad():
                logits = other(ids).logits
                self.assertLess(error(logits, exact(ids).logits), least)
            for cache in ("dynamic", "static"):
                with self.subTest(name, batch=batch, cache=cache, **options):
                    found = other.generate(ids, max_new_tokens=3, do_sample=False,
                                           cache_implementation=cache,
                                           attention_mask=torch.ones_like(ids))
                    self.assertEqual(found.shape, (batch, 8))
                    self.greedy(exact, found, least)

    def greedy(self, exact: Any, found: Any, least: float) -> None:
        """Every new token is the best of the reference, or one whose logit is as good but for the
        error that is allowed."""
        with torch.no_grad():
            logits = exact(found).logits.float()[:, 4:-1]
        chosen = logits.gather(2, found[:, 5:, None])[..., 0]
        spread = logits.norm(dim=-1) * 2 * least
        self.assertTrue((chosen >= logits.max(-1).values - spread).all())

    def test_weights_alone(self) -> None:
        for name in NAMES:
            self.check(name, 0.03, weight_only=True)

    def test_norms_of_other_weights(self) -> None:
        """Rounding to bfloat16 changes logits by less than 0.01, and router logits alike. So a
        token may get another expert where two are as good, and its logits are others then, by 0.1:
        those of transformers in bfloat16 and in float32 differ alike. All other tokens are
        compared."""
        for name in ("Llama", "Mixtral", "GptOss"):
            made, other = quantized(name, weight_only=True)
            torch.manual_seed(5)
            for key, weight in made.named_parameters():
                if "norm" in key:
                    weight.data.add_(torch.empty_like(weight).uniform_(-0.5, 0.5))
                    other.get_parameter(key).data.copy_(weight)
            ids = tokens(8)
            found, ours = self.routed(other, ids)
            expected, theirs = self.routed(reference(made, other), ids)
            self.assertEqual(bool(theirs), name != "Llama")
            same = torch.ones(ids.shape, dtype=torch.bool)
            for mine, right in zip(ours, theirs, strict=True):
                differs = (mine[1] != right[1]).any(-1)
                same &= ~differs.view(ids.shape)
                logits, experts = right[0][differs], right[1].shape[-1]
                best = logits.sort(-1, descending=True).values
                gap = best[:, experts - 1] - best[:, experts]
                self.assertTrue((gap < 2 * 0.03 * logits.norm(dim=-1)).all(), name)
            self.assertGreater(int(same.sum()), 30)
            self.assertLess(error(found[same], expected[same]), 0.03, name)

    def routed(self, made: Any, ids: Any) -> "tuple[Any, list[Any]]":
        """The logits of tokens, and for each layer the logits and the chosen experts of routers."""
        seen = []

        def note(router: Any, arguments: Any, results: Any) -> None:
            x = arguments[0].reshape(-1, arguments[0].shape[-1]).float()
            bias = getattr(router, "bias", None)
            logits = torch.nn.functional.linear(x, router.weight.float(),
                                                None if bias is None else bias.float())
            chosen = next(one for one in reversed(results) if one.dtype == torch.int64)
            seen.append((logits, chosen.sort(-1).values))

        hooks = [module.register_forward_hook(note) for module in made.modules()
                 if type(module).__name__.endswith("Router")]
        with torch.no_grad():
            logits = made(ids).logits
        for hook in hooks:
            hook.remove()
        return logits, seen

    def test_inputs_too(self) -> None:
        for name in NAMES:
            self.check(name, 0.35)

    def test_the_head_too(self) -> None:
        self.check("Llama", 0.03, weight_only=True, head=True)

    def test_rows_of_a_batch_do_not_change_each_other(self) -> None:
        other = quantized("Llama")[1]
        layer = other.model.layers[0].mlp
        x = torch.randn(4, 3, 128, dtype=torch.bfloat16)
        x[2] *= 50
        with torch.no_grad():
            self.assertTrue(torch.equal(layer(x)[:1], layer(x[:1])))


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name


@unittest.skipIf(transformers is None, "torch or transformers is not installed")
class Files(Folder):
    def test_saved_and_loaded(self) -> None:
        import fp4.transformers  # noqa: F401 (it registers fp4)

        for name, options in (("Llama", {"weight_only": True}), ("Qwen3", {}),
                              ("GPT2", {"weight_only": True, "head": True}),
                              ("Llama", {"format": "mxfp4"}), ("Mixtral", {"weight_only": True}),
                              ("GptOss", {"weight_only": True})):
            with self.subTest(name, **options):
                other = quantized(name, **options)[1]
                other.save_pretrained(self.folder)
                loaded, info = transformers.AutoModelForCausalLM.from_pretrained(
                    self.folder, output_loading_info=True)
                self.assertFalse(any(info[key] for key in info), info)
                one, two = other.state_dict(), loaded.state_dict()
                self.assertEqual(set(one), set(two))
                for key, value in one.items():
                    self.assertEqual((key, two[key].dtype), (key, value.dtype))
                    self.assertTrue(torch.equal(two[key], value), key)
                ids = tokens(2)
                with torch.no_grad():
                    self.assertTrue(torch.equal(loaded(ids).logits, other(ids).logits))
                loaded.save_pretrained(self.folder)  # and again
                transformers.AutoModelForCausalLM.from_pretrained(self.folder)

    def test_without_fp4_it_is_an_error(self) -> None:
        """transformers does not know fp4, and must not make random weights of it."""
        quantized("Llama", weight_only=True)[1].save_pretrained(self.folder)
        code = ("import transformers\ntransformers.AutoModelForCausalLM.from_pretrained("
                f"{self.folder!r})")
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("MISMATCH", ended.stderr)

    def test_what_is_damaged(self) -> None:
        from fp4.transformers import FP4Config

        for members, words in (({"layers": {"a": 1}, "records": []}, "must have a record for each"),
                               ({"layers": ["a"]}, "must have a record for each"),
                               ({"layers": {"a": 1}, "records": {}}, "must have a record for each"),
                               ({"modules_to_not_convert": ["("]}, "must be regular expressions"),
                               ({"layers": {}, "version": 2}, "must have version 1 of the layers"),
                               ({"new": {}, "version": 2}, "must have version 1 of the layers")):
            with self.assertRaisesRegex(fp4.UsageError, words):
                FP4Config(**members)
        with self.assertRaisesRegex(TypeError, "has no argument 'formt'"):
            FP4Config(formt="nvfp4")

    def test_arguments_of_a_model_that_is_not_loaded_yet(self) -> None:
        from fp4.transformers import FP4Config

        config = FP4Config(format="mxfp4", recipe="ocp_ceil", weight_only=False, head=True,
                           modules_to_not_convert=["a"], skip_unsupported=True)
        again = FP4Config.from_dict(config.to_dict())
        self.assertEqual(vars(again), vars(config))
        self.assertIn("mxfp4", repr(config))

    def test_unknown_recipe(self) -> None:
        model("Llama").save_pretrained(self.folder)
        config = fp4.transformers.FP4Config(recipe="nonsense")
        with self.assertRaisesRegex(fp4.CompileError, "unknown recipe 'nonsense'"):
            transformers.AutoModelForCausalLM.from_pretrained(self.folder,
                                                              quantization_config=config)

    def test_dequantized(self) -> None:
        """A model that is all plain again says nothing of fp4."""
        other = quantized("Llama", weight_only=True)[1]
        self.assertTrue(hasattr(other.config, "quantization_config"))
        ft.dequantize_(other)
        self.assertFalse(hasattr(other.config, "quantization_config"))
        other.save_pretrained(self.folder)
        loaded = transformers.AutoModelForCausalLM.from_pretrained(self.folder)
        self.assertTrue(torch.equal(loaded.model.layers[0].mlp.up_proj.weight,
                                    other.model.layers[0].mlp.up_proj.weight))

    def test_checkpoints_of_other_packages(self) -> None:
        ck = optional("fp4.checkpoints")
        if ck is None:
            self.skipTest("safetensors is not installed")
        other = quantized("Llama", weight_only=True)[1]
        for layout in ("compressed-tensors", "modelopt"):
            ck.save(other, self.folder, layout)
            with torch.device("meta"):
                loaded = transformers.LlamaForCausalLM(other.config).bfloat16()
            loaded.model.rotary_emb = other.model.rotary_emb  # buffers that no file has
            report = ck.load_into(loaded, self.folder)
            self.assertEqual(len(report.names), 7)
            ids = tokens(2)
            with torch.no_grad():
                self.assertLess(error(loaded(ids).logits, other(ids).logits), 0.01)


    def test_experts_of_checkpoints(self) -> None:
        """Stacks as gpt-oss has them, stacks that ModelOpt transposes, and weights of their own."""
        ck = optional("fp4.checkpoints")
        if ck is None or not HAS_EXPERTS:
            self.skipTest("safetensors or a kernel for experts is not installed")
        for name, write in (("GptOss", as_gpt_oss), ("GptOss", as_modelopt_stacks),
                            ("Mixtral", as_modelopt)):
            with self.subTest(write.__name__):
                exact = model(name)  # becomes a model of the numbers in the file
                path = f"{self.folder}/{write.__name__}.safetensors"
                with torch.no_grad():
                    write(ck, path, exact)
                with torch.device("meta"):
                    loaded = type(exact)._from_config(exact.config, dtype=torch.bfloat16)
                loaded.model.rotary_emb = exact.model.rotary_emb
                report = ck.load_into(loaded, path)
                self.assertEqual((report.names, report[PLACE].reason), ([PLACE], "a RoutedExperts"))
                with torch.no_grad():
                    self.assertLess(error(loaded(tokens(2)).logits, exact(tokens(2)).logits), 0.02)


@unittest.skipIf(transformers is None, "torch or transformers is not installed")
class WhileLoading(Folder):
    """A 16-bit model that from_pretrained quantizes gives what quantize_ gives."""

    def load(self, name: str, **options: Any) -> Any:
        from fp4.transformers import FP4Config

        return transformers.AutoModelForCausalLM.from_pretrained(
            self.folder, quantization_config=FP4Config(**options), dtype=torch.bfloat16)

    @contextlib.contextmanager
    def warns(self, words: str) -> "Iterator[None]":
        """assertWarns looks into every module, and so imports all models of transformers."""
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            yield
        self.assertRegex("\n".join(str(one.message) for one in found), words)

    def same(self, one: Any, two: Any) -> None:
        first, second = one.state_dict(), two.state_dict()
        self.assertEqual(set(first), set(second))
        for key, value in first.items():
            self.assertEqual((key, second[key].dtype), (key, value.dtype))
            self.assertTrue(torch.equal(second[key], value), key)

    def test_models(self) -> None:
        for name, options in (("Llama", {}), ("Llama", {"format": "mxfp4"}),
                              ("Qwen3", {"weight_only": False}), ("GPT2", {}), ("Mixtral", {}),
                              ("GptOss", {}),
                              ("Llama", {"head": True}),
                              ("Llama", {"recipe": "compressed_tensors"})):
            with self.subTest(name, **options):
                made = model(name, attention_bias=True) if name == "Llama" else model(name)
                made.save_pretrained(self.folder)
                expected = copy.deepcopy(made)
                ft.quantize_(expected, **{"weight_only": True, **options})
                loaded = self.load(name, **options)
                self.same(expected, loaded)
                ids = tokens(2)
                with torch.no_grad():
                    self.assertTrue(torch.equal(loaded(ids).logits, expected(ids).logits))
                loaded.save_pretrained(f"{self.folder}/4")
                again = transformers.AutoModelForCausalLM.from_pretrained(f"{self.folder}/4")
                self.same(expected, again)

    def test_one_weight_at_a_time(self) -> None:
        """No linear layer of 16 bits is left when the loading ends, but the head."""
        from fp4.transformers import FP4HfQuantizer

        model("Llama").save_pretrained(self.folder)
        seen = []
        finish = FP4HfQuantizer._finish

        def look(quantizer: Any, loaded: Any) -> Any:
            seen.extend(name for name, layer in loaded.named_modules()
                        if type(layer) is torch.nn.Linear)
            return finish(quantizer, loaded)

        with mock.patch.object(FP4HfQuantizer, "_finish", look):
            self.load("Llama")
        self.assertEqual(seen, ["lm_head"])

    def test_a_head_that_shares_its_weight(self) -> None:
        model("Llama", tie_word_embeddings=True).save_pretrained(self.folder)
        loaded = self.load("Llama", head=True)
        self.assertIsInstance(loaded.lm_head, ft.WeightOnlyLinear)
        self.assertEqual(loaded.model.embed_tokens.weight.dtype, torch.bfloat16)
        kept = self.load("Llama")
        self.assertIs(kept.lm_head.weight, kept.model.embed_tokens.weight)

    def test_modules_to_not_convert(self) -> None:
        made = model("Llama")
        made.save_pretrained(self.folder)
        loaded = self.load("Llama", modules_to_not_convert=[
            "down_proj", r"model\.layers\.0\.self.*"])
        kinds = {name.rpartition(".")[2]: type(layer) for name, layer in loaded.named_modules()
                 if isinstance(layer, torch.nn.Linear)}
        ours = {name for name, kind in kinds.items() if kind is ft.WeightOnlyLinear}
        self.assertEqual(ours, {"gate_proj", "up_proj"})
        self.assertTrue(torch.equal(loaded.model.layers[0].mlp.down_proj.weight,
                                    made.model.layers[0].mlp.down_proj.weight))
        with self.warns("no module of the model matches 'dwon_proj'"):
            self.load("Llama", modules_to_not_convert=["dwon_proj"])
        with self.assertRaisesRegex(fp4.UsageError, "must have a linear layer to quantize"):
            self.load("Llama", modules_to_not_convert=["model"])
        with self.assertRaisesRegex(fp4.UsageError, "must be a list of names, but got the str"):
            self.load("Llama", modules_to_not_convert="lm_head")

    def test_layers_without_a_kernel(self) -> None:
        """W4A4 needs whole blocks."""
        model("Llama", intermediate_size=136).save_pretrained(self.folder)
        with self.assertRaisesRegex(fp4.UsageError, "layer 'model.layers.0.mlp.down_proj': .*136"):
            self.load("Llama", weight_only=False)
        with self.warns("left 1 layer as they are: '.*down_proj'"):
            loaded = self.load("Llama", weight_only=False, skip_unsupported=True)
        self.assertIs(type(loaded.model.layers[0].mlp.down_proj), torch.nn.Linear)
        made = model("Llama")
        with torch.no_grad():
            made.model.layers[0].mlp.up_proj.weight[2, 3] = float("inf")
        made.save_pretrained(self.folder)
        with self.assertRaisesRegex(fp4.UsageError, r"up_proj': weight must be finite.*\[2, 3\]"):
            self.load("Llama")

    def test_options(self) -> None:
        from fp4.transformers import FP4Config

        with self.assertRaisesRegex(fp4.UsageError, "'format' must be nvfp4 or mxfp4"):
            FP4Config(format="fp8")
        with self.assertRaises(TypeError):
            FP4Config(fromat="nvfp4")

    def test_what_is_in_4_bits_already(self) -> None:
        """transformers passes such weights on; they must not be quantized as numbers."""
        ck = optional("fp4.checkpoints")
        if ck is None:
            self.skipTest("safetensors is not installed")
        ck.save(quantized("Llama", weight_only=True)[1], self.folder, "modelopt")
        with self.assertRaises(RuntimeError), self.assertLogs("transformers") as said:
            self.load("Llama")
        self.assertIn("call fp4.transformers.register", "".join(said.output))


@unittest.skipIf(peft is None, "torch, transformers or peft is not installed")
class Adapters(unittest.TestCase):
    def test_training_a_low_rank_adapter(self) -> None:
        for options in ({"weight_only": True}, {}):
            other = quantized("Llama", **options)[1]
            config = peft.LoraConfig(r=4, target_modules=["q_proj", "down_proj"],
                                     init_lora_weights=False)
            adapted = peft.get_peft_model(other, config)
            ids = tokens(2)
            optimizer = torch.optim.SGD(
                [value for value in adapted.parameters() if value.requires_grad], 0.5)
            losses = []
            for _ in range(3):
                loss = adapted(ids, labels=ids).loss
                losses.append(float(loss))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            self.assertLess(losses[-1], losses[0], options)
            with tempfile.TemporaryDirectory() as folder:
                adapted.save_pretrained(folder)
                again = peft.PeftModel.from_pretrained(quantized("Llama", **options)[1], folder)
                with torch.no_grad():
                    self.assertTrue(torch.equal(again(ids).logits, adapted(ids).logits))
            with self.assertRaisesRegex(fp4.UsageError, "4 bits(?s:.*)fp4.torch.dequantize_"):
                adapted.merge_adapter()
            ft.dequantize_(adapted)
            with torch.no_grad():
                before = adapted(ids).logits
                merged = adapted.merge_and_unload()
                self.assertLess(error(merged(ids).logits, before), 0.1)

    def test_of_models_that_from_pretrained_made(self) -> None:
        """Quantized while it is loaded, and from ModelOpt: the adapter trains, the rest stays."""
        import fp4.checkpoints as ck
        import fp4.transformers

        for is_stored in (False, True):
            with self.subTest(is_stored=is_stored), tempfile.TemporaryDirectory() as folder, (
                    fp4.transformers.register("modelopt")):
                if is_stored:
                    ck.save(quantized("Llama", weight_only=True)[1], folder, "modelopt")
                    options = {}
                else:
                    model("Llama").save_pretrained(folder)
                    options = {"quantization_config": fp4.transformers.FP4Config()}
                loaded = transformers.AutoModelForCausalLM.from_pretrained(
                    folder, dtype=torch.bfloat16, **options)
                before = {key: value.clone() for key, value in loaded.state_dict().items()}
                adapted = peft.get_peft_model(loaded, peft.LoraConfig(
                    r=4, target_modules=["q_proj", "up_proj"], init_lora_weights=False))
                loss = adapted(tokens(2), labels=tokens(2)).loss
                loss.backward()
                trained = {name: value for name, value in adapted.named_parameters()
                           if value.requires_grad}
                self.assertTrue(trained)
                for name, value in trained.items():
                    self.assertIn("lora_", name)
                    self.assertGreater(float(value.grad.norm()), 0)
                after = adapted.unload().state_dict()
                for key, value in before.items():
                    self.assertTrue(torch.equal(after[key], value), key)


if __name__ == "__main__":
    unittest.main()
