"""Models of transformers with layers of fp4: generation, files, and low-rank adapters.

    pip install transformers peft

Each model is a tiny one of random weights, on the simulator. The reference is the same model with
the numbers that the quantized layers multiply by.
"""

import copy
import subprocess
import sys
import tempfile
import unittest
import warnings
from typing import Any

import fp4
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
        if name in ("Qwen3", "GptOss"):
            sizes |= {"head_dim": 64}
        config = getattr(transformers, f"{name}Config")(**{**sizes, **options})
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


@unittest.skipIf(transformers is None, "torch or transformers is not installed")
class Files(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

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
                               ({"layers": {}, "version": 2}, "must have version 1 of the layers")):
            with self.assertRaisesRegex(fp4.UsageError, words):
                FP4Config(**members)

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


PLACE = "model.layers.0.mlp.experts"


def rest_of(exact: Any) -> Any:
    return {name: value.contiguous() for name, value in exact.state_dict().items()
            if not name.startswith(PLACE) or name.endswith("_bias")}


def as_gpt_oss(ck: Any, path: str, exact: Any) -> None:
    weights = {}
    for last in ("gate_up_proj", "down_proj"):
        stack = getattr(exact.get_submodule(PLACE), last)
        weights[f"{PLACE}.{last}"] = [ft.quantize(one.t().contiguous(), format="mxfp4")
                                      for one in stack]
        for one, matrix in zip(weights[f"{PLACE}.{last}"], stack):
            matrix.copy_(ft.dequantize(one).t())
    ck.write(path, weights, "gpt-oss", tensors=rest_of(exact))


def as_modelopt_stacks(ck: Any, path: str, exact: Any) -> None:
    """Stores experts as ModelOpt writes those of gpt-oss: transposed, with one scale for all."""
    content = rest_of(exact)
    for last in ("gate_up_proj", "down_proj"):
        stack = getattr(exact.get_submodule(PLACE), last)
        scale = stack.abs().max().float() / 2688
        found = [ft.quantize(one.t().contiguous(), layout="linear", amax=scale,
                             recipe="modelopt, tensor_scale = supplied_decode") for one in stack]
        for one, matrix in zip(found, stack):
            matrix.copy_(ft.dequantize(one).t())
        data, scales = (torch.stack([value.view(torch.uint8).t() for value in values]).contiguous()
                        for values in ([one.data for one in found], [one.scales for one in found]))
        content |= {f"{PLACE}.{last}": data, f"{PLACE}.{last}_weight_scale_2": scale,
                    f"{PLACE}.{last}_weight_scale": scales.view(torch.float8_e4m3fn)}
    optional("safetensors.torch").save_file(content, path)


def as_modelopt(ck: Any, path: str, exact: Any) -> None:
    """A weight for each expert and projection."""
    weights = {}
    experts = exact.get_submodule(PLACE)
    for number in range(4):
        gate, up = experts.gate_up_proj[number].chunk(2)
        for last, matrix in (("gate_proj", gate), ("up_proj", up),
                             ("down_proj", experts.down_proj[number])):
            one = ft.quantize(matrix.contiguous())
            weights[f"{PLACE}.{number}.{last}"] = one
            matrix.copy_(ft.dequantize(one))
    ck.write(path, weights, "modelopt", tensors=rest_of(exact))


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


if __name__ == "__main__":
    unittest.main()
