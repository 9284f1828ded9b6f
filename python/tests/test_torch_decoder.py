"""fp4.torch.Decoder beside transformers, on tiny models of random weights in the simulator.

    pip install transformers

Both decode with the same numbers of quantized weights. The reference is the model in float32. Each
rounding to bfloat16 has a relative error of up to 2^-9, and transformers rounds after each
operation, so the error of its bfloat16 model is the measure: the decoder rounds less often. The two
errors are sums of different roundings, so that one of so few logits may be twice the other.
"""

import copy
import types
import unittest
import warnings
from typing import Any

import fp4
from programs import torch
from test_transformers import error, model, quantized, reference, tokens, transformers

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import decoder_programs
    from fp4.torch.norm_programs import Norm
    from fp4.torch.rotation_programs import Rotation

NAMES = ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma3")
MIXTURES = ("Mixtral", "Qwen3Moe", "GptOss")
MOST = 2.0


def made(name: str, format: str = "nvfp4", **options: Any) -> "tuple[Any, Any]":
    """A model with weights in 4 bits, and one of the numbers that they have."""
    if name == "Mistral":
        options.setdefault("sliding_window", None)
    plain = model(name, **options)
    for key, parameter in plain.named_parameters():
        if "norm" in key:  # no two norms are alike
            parameter.data.add_(torch.empty_like(parameter).uniform_(-0.5, 0.5))
    ours = copy.deepcopy(plain)
    ft.quantize_(ours, weight_only=True, format=format)
    return ours, reference(plain, ours)


@unittest.skipIf(transformers is None, "torch or transformers is not installed")
class Decoding(unittest.TestCase):
    def check(self, logits: Any, exact: Any, wide: Any, ids: Any) -> None:
        with torch.no_grad():
            true = wide(ids).logits[:, -1]
            least = error(exact(ids).logits[:, -1], true)
        self.assertLess(error(logits, true), MOST * least)

    def check_fallback(self, ours: Any, exact: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decoder = ft.Decoder(ours, 2, 8, allow_fallback=True)
        ids = tokens(2, 5)
        self.check(decoder.prefill(ids), exact, copy.deepcopy(exact).float(), ids)

    def follow(self, name: str, steps: int = 3, **options: Any) -> Any:
        """Decodes behind two prompts, and compares the logits of each step."""
        ours, exact = made(name, **options)
        wide, ids = copy.deepcopy(exact).float(), tokens(2, 20)
        decoder = ft.Decoder(ours, 2, 40, page_tokens=16)
        self.assertEqual(decoder.fallbacks, {})
        self.check(decoder.prefill(ids), exact, wide, ids)
        for _ in range(steps):
            ids = torch.cat([ids, decoder.token[:, None]], 1)
            self.check(decoder.step(), exact, wide, ids)
        self.assertEqual(decoder.caches[0].lengths.tolist(), [20 + steps] * 2)
        return decoder

    def test_families(self) -> None:
        for name in NAMES:
            with self.subTest(name):
                self.follow(name)

    def test_mixtures_of_experts(self) -> None:
        for name in MIXTURES:
            with self.subTest(name):
                self.follow(name, steps=1)

    def test_mixtures_that_are_layers_already(self) -> None:
        """Blocks that were replaced, beside layers without experts."""
        ours, exact = made("Qwen3Moe", num_hidden_layers=2, mlp_only_layers=[0])
        block = ours.model.layers[1].mlp
        ours.model.layers[1].mlp = ft.MoE.from_block(block)
        ids = tokens(2, 5)
        self.check(ft.Decoder(ours, 2, 8).prefill(ids), exact, copy.deepcopy(exact).float(), ids)

    def test_experts_that_are_not_quantized(self) -> None:
        ours, exact = made("Mixtral")
        ours.model.layers[0].mlp.experts = exact.model.layers[0].mlp.experts
        with self.assertRaisesRegex(fp4.UsageError, "'model.layers.0.mlp.experts' is a Mixtral"):
            ft.Decoder(ours, 2, 8)
        self.check_fallback(ours, exact)

    def test_windows(self) -> None:
        """Windows of all layers, and of the last one. A window that no sequence fills is none."""
        for name, options in (("Mistral", {"sliding_window": 7}),
                              ("Qwen3", {"use_sliding_window": True, "sliding_window": 18,
                                         "max_window_layers": 1}),
                              ("GptOss", {"sliding_window": 7, "num_hidden_layers": 2,
                                          "layer_types": ["sliding_attention",
                                                          "full_attention"]}),
                              ("Gemma3", {"sliding_window": 7, "num_hidden_layers": 2,
                                          "layer_types": ["sliding_attention",
                                                          "full_attention"]}),
                              ("Mistral", {"sliding_window": 64})):
            with self.subTest(name, **options):
                self.follow(name, steps=2, **options)

    def test_formats_and_heads(self) -> None:
        self.follow("Llama", steps=1, format="mxfp4")
        ours, exact = made("Llama")
        head = ft.WeightOnlyLinear.from_linear(ours.lm_head)
        exact.lm_head.weight = torch.nn.Parameter(head.weight + 0)
        ours.lm_head = head
        ids = tokens(2, 5)
        self.check(ft.Decoder(ours, 2, 8).prefill(ids), exact, copy.deepcopy(exact).float(), ids)

    def test_generate(self) -> None:
        """The tokens are the best of the logits, whether a prompt comes at once or in parts."""
        decoder = self.follow("Qwen3", steps=1)
        ids = tokens(2, 12)
        decoder.truncate()
        found = decoder.generate(ids, 4)
        decoder.truncate()
        decoder.prefill(ids[:, :7])
        logits = decoder.prefill(ids[:, 7:])
        self.assertTrue(torch.equal(logits.argmax(-1), found[:, 0]))
        for number in range(1, 4):
            logits = decoder.step(found[:, number - 1])
            self.assertTrue(torch.equal(logits.argmax(-1), found[:, number]))
        self.assertEqual(decoder.used, 15)
        decoder.truncate(12)  # the same step again
        self.assertTrue(torch.equal(decoder.step(found[:, 0]).argmax(-1), found[:, 1]))

    def test_several_steps(self) -> None:
        """Tokens of a graph of three steps, whose replay makes them anew, are those of steps."""
        ours, _ = made("Llama")
        decoder, ids = ft.Decoder(ours, 2, 32, page_tokens=16), tokens(2, 6)
        expected = decoder.generate(ids, 9)
        decoder.truncate(6)
        decoder.token.copy_(expected[:, 0])
        self.assertTrue(torch.equal(decoder.advance(8), expected[:, 1:]))
        chosen, replays = torch.zeros(3, 2, dtype=torch.int64), []

        def replay() -> None:
            replays.append(decoder.used)
            chosen.copy_(decoder._chosen(3))

        decoder._several = types.SimpleNamespace(replay=replay), chosen
        decoder.truncate()
        with torch.no_grad():
            self.assertTrue(torch.equal(decoder.generate(ids, 9), expected))
        self.assertEqual(replays, [9, 12])  # and two steps
        self.assertEqual((decoder.used, decoder.caches[0].lengths.tolist()), (14, [14, 14]))
        for call, words in (
                (lambda: decoder.advance(19), "must be room for 19 more tokens, but 14"),
                (lambda: decoder.advance(0), "'count' must be at least 1, but got 0"),
                (lambda: decoder.capture(0), "'steps' must be at least 1, but got 0")):
            with self.assertRaisesRegex(fp4.UsageError, words):
                call()
        self.assertEqual(decoder.used, 14)

    def test_weights_are_shared(self) -> None:
        """The layers of the model read the tiles of the merged layer, and have their bits."""
        ours, _ = made("Llama", hidden_size=256, num_attention_heads=4, num_key_value_heads=2)
        ids = tokens(1, 4)
        with torch.no_grad():
            before = ours(ids).logits
            decoder = ft.Decoder(ours, 1, 8)
            self.assertTrue(torch.equal(ours(ids).logits, before))
        merged, attention = decoder._layers[0].qkv, ours.model.layers[0].self_attn
        self.assertEqual(attention.k_proj.packed.untyped_storage().data_ptr(),
                         merged.packed.untyped_storage().data_ptr())

    def test_fallbacks(self) -> None:
        ours, exact = made("Llama")
        exact.config.num_hidden_layers = 1
        attention = ours.model.layers[0].self_attn
        attention.k_proj = copy.deepcopy(exact.model.layers[0].self_attn.k_proj)
        with self.assertRaisesRegex(fp4.UsageError, "a layer has no kernel: 'model.layers.0.self_a"
                                    "ttn.k_proj' is a Linear"):
            ft.Decoder(ours, 2, 8)
        ours.model.layers[0].mlp.down_proj = exact.model.layers[0].mlp.down_proj
        with warnings.catch_warnings(record=True) as heard:  # assertWarns imports all of
            warnings.simplefilter("always")                  # transformers
            decoder = ft.Decoder(ours, 2, 8, allow_fallback=True)
        self.assertIn("2 layers of the decoder run by torch", str(heard[-1].message))
        self.assertEqual(set(decoder.fallbacks), {"model.layers.0.self_attn.k_proj",
                                                  "model.layers.0.mlp.down_proj"})
        ids = tokens(2, 5)
        self.check(decoder.prefill(ids), exact, copy.deepcopy(exact).float(), ids)

    def test_other_activations_and_formats_fall_back(self) -> None:
        ours, exact = made("Llama", hidden_act="gelu")
        attention = ours.model.layers[0].self_attn
        attention.q_proj = ft.WeightOnlyLinear.from_linear(
            exact.model.layers[0].self_attn.q_proj, format="mxfp4")
        exact.model.layers[0].self_attn.q_proj.weight.data = attention.q_proj.weight + 0
        with self.assertRaisesRegex(fp4.UsageError, "2 layers have no kernel: .*cannot be merged: "
                                    "layer 1 .* has the activation gelu"):
            ft.Decoder(ours, 2, 8)
        self.check_fallback(ours, exact)

    def test_what_no_decoder_runs(self) -> None:
        soft = model("Gemma3", final_logit_softcapping=30.0)
        both = model("Gemma3", use_bidirectional_attention=True)
        gpt2 = quantized("GPT2", weight_only=True)[1]
        wide = model("Llama").float()
        turned = model("Llama", rope_parameters={"rope_type": "dynamic", "factor": 2.0,
                                                 "rope_theta": 10000.0})
        for other, text in ((gpt2, "must be a causal language model of llama, .* of gpt2"),
                            (wide, "must be bfloat16, but its parameters are float32"),
                            (turned, "must have rotary embeddings of .*, but has dynamic"),
                            (soft, "must have no final_logit_softcapping, but has 30.0"),
                            (both, "must be causal")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.Decoder(other, 1, 8)

    def test_refusals(self) -> None:
        ours, _ = made("Llama")
        decoder, ids = ft.Decoder(ours, 2, 16, page_tokens=8), tokens(2, 15)
        for call, text in ((lambda: decoder.prefill(ids[:1]), "'ids' must be int64 of shape"),
                           (lambda: decoder.step(ids[0]), "'token' must be int64 of shape"),
                           (lambda: decoder.truncate(1), "'count' must be up to 0"),
                           (decoder.capture, "the model must be on a GPU")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                call()
        decoder.prefill(ids)
        decoder.step()
        with self.assertRaisesRegex(fp4.UsageError, "room for 1 more tokens, but 16 of 16"):
            decoder.step()


@unittest.skipIf(torch is None, "torch is not installed")
class Programs(unittest.TestCase):
    def heads(self, norm: "Norm | None") -> Any:
        """Queries, and caches whose other rows stay as they are, of 3 tokens."""
        torch.manual_seed(1)
        x = torch.randn(3, 6, 64).bfloat16()
        angles, places = torch.randn(10, 64), torch.tensor([0, 4, 9])
        what = decoder_programs.Heads(Rotation(6, 64, "bf16", 64, "f32", False, norm,
                                               has_head_weights=norm is not None), 12, 20)
        weights = () if norm is None else (torch.rand(6, 64).bfloat16(),)
        none = torch.full((3, 6), -1)
        rows = [none.clone() for _ in range(3)]
        rows[0][:, :4] = torch.arange(12).view(3, 4)
        rows[1][:, 4], rows[2][:, 5] = torch.tensor([7, 0, 19]), torch.tensor([3, 4, 5])
        out = tuple(torch.full((size, 64), 2.0).bfloat16() for size in (12, 20, 20))
        device = fp4.Device("sim", target="sm_90a", check="strict")
        program = fp4.compile(decoder_programs.heads_text(what), target="sm_90a",
                              pdl="all").program(device)
        for _ in range(3):  # the second call on are those of the native module
            program(x, places, angles, *weights, *(row.flatten() for row in rows), out=out)
        y = x if norm is None else ft.rms_norm(x, None, order="llama")
        if norm is not None:
            y = (y.float() * weights[0].float()).bfloat16()
        return x, ft.rotate(y, angles, places), out

    def test_a_norm_in_front_of_the_residual(self) -> None:
        """The bits of two norms, one kernel, beside those of the norms alone."""
        torch.manual_seed(1)
        x, residual = torch.randn(2, 5, 640).bfloat16()
        before, weight = torch.randn(2, 640).bfloat16()
        what = Norm(640, "bf16", "rms", 1e-6, "bf16", offset=1.0, residual="rounded", before=True)
        compiled = fp4.compile(decoder_programs.norm_text(what), target="sm_90a", pdl="all")
        self.assertEqual(len(compiled.kernels), 1)
        device = fp4.Device("sim", target="sm_90a", check="strict")
        y, h = compiled.program(device)(x, residual, before, weight)
        normed = ft.rms_norm(x, before, weight_offset=1.0)
        self.assertTrue(torch.equal(h, residual + normed))
        self.assertTrue(torch.equal(y, ft.rms_norm(residual + normed, weight, weight_offset=1.0)))

    def test_heads_go_to_their_rows(self) -> None:
        for norm in (None, Norm(64, "bf16", "rms", 1e-6, "bf16", is_normed_rounded=True)):
            with self.subTest(norm=norm is not None):
                x, turned, (query, key, value) = self.heads(norm)
                self.assertTrue(torch.equal(query.view(3, 4, 64), turned[:, :4]))
                self.assertTrue(torch.equal(key[[7, 0, 19]], turned[:, 4]))
                self.assertTrue(torch.equal(value[[3, 4, 5]], x[:, 5]))
                self.assertEqual(int((key != 2).any(1).sum()), 3)
                self.assertEqual(int((value != 2).any(1).sum()), 3)


if __name__ == "__main__":
    unittest.main()
