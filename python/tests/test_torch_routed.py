"""fp4.torch.experts_from: the experts of transformers' modules, on small configurations."""

import unittest
from typing import Any

import fp4
from programs import optional, torch
from test_torch_linear import compiled_once

transformers = optional("transformers")
if torch is not None:
    import fp4.torch as ft

    class TurnedExperts(torch.nn.Module):
        """Experts as gpt-oss has them: transposed, gates and ups in turns, biases."""

        def __init__(self, experts: int = 4, hidden: int = 96, size: int = 80) -> None:
            super().__init__()
            torch.manual_seed(3)
            self.alpha, self.limit = 1.702, 7.0
            self.gate_up_proj = parameter(experts, hidden, 2 * size)
            self.gate_up_proj_bias = parameter(experts, 2 * size)
            self.down_proj = parameter(experts, size, hidden)
            self.down_proj_bias = parameter(experts, hidden)

    class HalvedExperts(torch.nn.Module):
        """Experts as Mixtral has them: gates in front of ups, no biases."""

        def __init__(self, experts: int = 4, hidden: int = 96, size: int = 80) -> None:
            super().__init__()
            torch.manual_seed(3)
            self.act_fn = torch.nn.SiLU()
            self.gate_up_proj = parameter(experts, 2 * size, hidden)
            self.down_proj = parameter(experts, hidden, size)


def parameter(*sizes: int) -> Any:
    return torch.nn.Parameter((torch.randn(sizes) * 0.3).bfloat16())


def routing(tokens: int, experts: int, chosen: int = 2) -> "tuple[Any, Any, Any]":
    torch.manual_seed(5)
    x = torch.randn(tokens, 96).bfloat16()
    weights, index = torch.randn(tokens, experts).softmax(-1).topk(chosen, dim=-1)
    return x, index, weights.bfloat16()


def dequantized(made: Any, x: Any, index: Any, weights: Any) -> Any:
    """Computes what the module computes, token by token in fp32, with the weights that it has."""
    layers = (made.gate_up, made.down)
    y = torch.zeros(x.shape[0], made.hidden_size)
    for token, (chosen, shares) in enumerate(zip(index.tolist(), weights.tolist())):
        for expert, share in zip(chosen, shares):
            if expert >= made.num_experts:
                continue
            h = x[token:token + 1].float()
            for layer in layers:
                offsets = torch.zeros(made.num_experts + 1, dtype=torch.int64)
                offsets[expert + 1:] = 1
                h = layer(h.bfloat16(), offsets).float()
            y[token] += share * h[0]
    return y


@unittest.skipIf(torch is None, "torch is not installed")
class Routed(unittest.TestCase):
    def check(self, module: Any, format: str) -> None:
        made = ft.experts_from(module, format=format)
        x, index, weights = routing(7, 4)
        index[2, 1] = 4  # a sentinel of expert parallelism: no expert
        with torch.no_grad():
            y = made(x, index, weights)
        self.assertEqual((y.shape, y.dtype), (x.shape, torch.bfloat16))
        torch.testing.assert_close(y.float(), dequantized(made, x, index, weights), rtol=0.02,
                                   atol=0.02)

    def test_layouts(self) -> None:
        gelu = HalvedExperts()
        gelu.act_fn = torch.nn.GELU(approximate="tanh")
        for module in (TurnedExperts(), HalvedExperts(), gelu):
            with self.subTest(type(module).__name__, gate=getattr(module, "act_fn", None)):
                self.check(module, "nvfp4")

    def test_weights_are_those_of_the_module(self) -> None:
        turned, halved = TurnedExperts(), HalvedExperts()
        for module, gates, ups, down in (
                (turned, turned.gate_up_proj[:, :, ::2].mT, turned.gate_up_proj[:, :, 1::2].mT,
                 turned.down_proj.mT),
                (halved, halved.gate_up_proj[:, :80], halved.gate_up_proj[:, 80:],
                 halved.down_proj)):
            made = ft.experts_from(module)
            for expert in range(4):
                for found, scale, weight in (
                        (made.gate_up.gate_packed, made.gate_up.gate_alpha, gates),
                        (made.gate_up.packed, made.gate_up.alpha, ups),
                        (made.down.packed, made.down.alpha, down)):
                    tiles = found.shape[0] // 4
                    one = ft.WeightOnlyLinear(ft.quantize(weight[expert].detach()))
                    self.assertTrue(torch.equal(found[expert * tiles:(expert + 1) * tiles],
                                                one.packed))
                    self.assertEqual(scale[expert], one.alpha)
        made = ft.experts_from(turned)
        self.assertTrue(torch.equal(made.gate_up.gate_bias, turned.gate_up_proj_bias[:, ::2]))
        self.assertTrue(torch.equal(made.gate_up.bias, turned.gate_up_proj_bias[:, 1::2]))
        self.assertEqual((made.gate_up.activation, made.down.bias is turned.down_proj_bias),
                         ("gpt_oss", True))

    def test_weights_of_all_experts(self) -> None:
        """A router of gpt-oss before transformers 5 gives a weight for each expert."""
        made = ft.experts_from(HalvedExperts())
        x, index, weights = routing(5, 4)
        every = torch.zeros(5, 4, dtype=weights.dtype).scatter_(1, index, weights)
        with torch.no_grad():
            y = made(x, index, weights)
            self.assertTrue(torch.equal(made(x, index, every), y))
            self.assertTrue(torch.equal(made(x.view(5, 1, 96), index, weights).view(5, 96), y))

    def test_graphs_and_gradients(self) -> None:
        made = ft.experts_from(HalvedExperts())
        graphed, graphs = compiled_once(made)
        with torch.no_grad():
            for tokens in (7, 5):
                arguments = routing(tokens, 4)
                self.assertTrue(torch.equal(graphed(*arguments), made(*arguments)))
        self.assertEqual(len(graphs), 1)
        x, index, weights = routing(5, 4)
        x.requires_grad_()
        weights.requires_grad_()
        made(x, index, weights).sum().backward()
        self.assertTrue(x.grad.isfinite().all() and x.grad.any() and weights.grad.any())

    def test_what_is_refused(self) -> None:
        other, narrow, wide = HalvedExperts(), HalvedExperts(), HalvedExperts()
        other.act_fn = torch.nn.GELU()
        narrow.down_proj = parameter(4, 96, 64)
        wide.has_post_expert_norm = True
        x, index, weights = routing(5, 4)
        for said, call in (
                ("must have gate_up_proj and down_proj of three dimensions, but Linear has not",
                 lambda: ft.experts_from(torch.nn.Linear(4, 4))),
                ("one of the activations silu, gpt_oss, gelu_tanh, but that of HalvedExperts is",
                 lambda: ft.experts_from(other)),
                ("or both transposed, but HalvedExperts has \\[4, 160, 96\\] and \\[4, 96, 64\\]",
                 lambda: ft.experts_from(narrow)),
                ("no norm behind its experts", lambda: ft.experts_from(wide)),
                ("'format' must be nvfp4 or mxfp4", lambda: ft.experts_from(other, format="fp4")),
                ("'top_k_weights' must be \\[5, 2\\] or \\[5, 4\\], but got \\[5, 3\\]",
                 lambda: ft.experts_from(HalvedExperts())(x, index, weights[:, :1].expand(5, 3)))):
            with self.subTest(said=said), self.assertRaisesRegex(fp4.UsageError, said):
                call()


@unittest.skipIf(torch is None or transformers is None, "transformers is not installed")
class Transformers(unittest.TestCase):
    def check(self, model: Any, path: str, format: str) -> None:
        """The model with quantized experts, beside the same with the numbers that these have."""
        model = model.eval().bfloat16()
        layers = [layer for name, layer in model.named_modules() if name.endswith(path)]
        self.assertTrue(layers)
        tokens = torch.randint(64, (2, 5))
        for layer in layers:
            made = ft.experts_from(layer.experts, format=format)
            self.store(layer.experts, made)
            layer.made = made
        with torch.no_grad():
            expected = model(tokens).logits
            for layer in layers:
                layer.experts = layer.made
            found = model(tokens).logits
        self.assertLess(((found - expected).norm() / expected.norm()).item(), 0.02)
        self.assertEqual(model.generate(tokens, max_new_tokens=3, do_sample=False).shape, (2, 8))

    def store(self, experts: Any, made: Any) -> None:
        """Writes the dequantized weights into the parameters of the module."""
        from fp4.torch.experts import _expert
        turned = experts.gate_up_proj.shape[1] == made.hidden_size
        for number in range(made.num_experts):
            parts = [ft.dequantize(_expert(tiles, scale, number, made.num_experts, (
                layer.out_features, layer.in_features)))
                for layer, tiles, scale in (
                    (made.gate_up, made.gate_up.gate_packed, made.gate_up.gate_alpha),
                    (made.gate_up, made.gate_up.packed, made.gate_up.alpha),
                    (made.down, made.down.packed, made.down.alpha))]
            gate, up, down = (part[:, :columns] for part, columns in zip(
                parts, (made.hidden_size, made.hidden_size, made.intermediate_size)))
            both = torch.stack((gate, up), 1).flatten(0, 1) if turned else torch.cat((gate, up))
            with torch.no_grad():
                experts.gate_up_proj[number] = both.T if turned else both
                experts.down_proj[number] = down.T if turned else down

    def test_mixtral(self) -> None:
        torch.manual_seed(1)
        config = transformers.MixtralConfig(
            vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=1,
            num_attention_heads=2, num_key_value_heads=1, num_local_experts=4)
        self.check(transformers.MixtralForCausalLM(config), ".mlp", "nvfp4")

    def test_gpt_oss(self) -> None:
        torch.manual_seed(1)
        config = transformers.GptOssConfig(
            vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=1, head_dim=32,
            num_attention_heads=2, num_key_value_heads=1, num_local_experts=4,
            num_experts_per_tok=2)
        self.check(transformers.GptOssForCausalLM(config), ".mlp", "mxfp4")


if __name__ == "__main__":
    unittest.main()
