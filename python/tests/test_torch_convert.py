"""fp4.torch.quantize_: its report, what stays and why, tied weights and heads; weights that look
like those of torch.nn.Linear; rows that do not change each other."""

import copy
import unittest
import warnings
from typing import Any

import fp4
from programs import torch
from test_torch_ops import matrix

if torch is not None:
    import fp4.torch as ft

    class Model(torch.nn.Module):
        """An embedding, a block and a head that shares the weight of the embedding."""

        def __init__(self, tied: bool = True) -> None:
            super().__init__()
            torch.manual_seed(1)
            self.embed = torch.nn.Embedding(64, 64)
            self.up, self.down = torch.nn.Linear(64, 128), torch.nn.Linear(128, 64, bias=False)
            self.lm_head = torch.nn.Linear(64, 64, bias=False)
            if tied:
                self.lm_head.weight = self.embed.weight
            self.to(torch.bfloat16)

        def forward(self, ids: Any) -> Any:
            return self.lm_head(self.down(torch.relu(self.up(self.embed(ids)))))

    class Scaling(torch.nn.Linear):
        def forward(self, input: Any) -> Any:
            return 2 * super().forward(input)

    class Stack(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.matrices = torch.nn.Parameter(torch.ones(2, 64, 64))


def silent(function: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function()


@unittest.skipIf(torch is None, "torch is not installed")
class Reports(unittest.TestCase):
    def test_a_report(self) -> None:
        module = Model()
        report = silent(lambda: ft.quantize_(module))
        self.assertEqual(report.names, ["up", "down"])
        self.assertEqual(report.kept, {"lm_head": "is the head of the model, which head=True "
                                       "converts"})
        up = report["up"]
        self.assertEqual((up.kind, up.format, up.bytes_before), ("Linear", "nvfp4", 2 * 65 * 128))
        state = sum(value.nbytes for value in module.up.state_dict().values())
        self.assertEqual(up.bytes_after, state)
        self.assertLess(report.bytes_after, report.bytes_before / 2)
        self.assertIs(module.lm_head.weight, module.embed.weight)
        self.assertRegex(str(report), r"^2 of 3 layers in 4 bits, 33,024 to \d\d,\d\d\d bytes\n"
                         r"  up       Linear  +nvfp4 (?s:.*)lm_head  Linear  +as it is")
        self.assertEqual(ft.quantize_(module, head=True).names, ["lm_head"])  # and no layer twice

    def test_the_head_when_asked(self) -> None:
        module = Model()
        expected = ft.dequantize(ft.quantize(module.embed.weight.detach()))
        report = silent(lambda: ft.quantize_(module, head=True))
        self.assertEqual(report["lm_head"].reason,
                         "'embed' keeps the weight that it shares with this layer")
        self.assertEqual(report["lm_head"].bytes_before, 0)
        self.assertIsInstance(module.lm_head, ft.QuantizedLinear)
        self.assertTrue(torch.equal(module.lm_head.weight + 0, expected))
        self.assertEqual(module.embed.weight.dtype, torch.bfloat16)

    def test_layers_under_two_names(self) -> None:
        layer = torch.nn.Linear(64, 32, dtype=torch.bfloat16)
        module = torch.nn.ModuleDict({"a": layer, "b": layer})
        report = ft.quantize_(module)
        self.assertEqual((report.names, report["b"].bytes_after, report["b"].reason),
                         (["a", "b"], 0, "is 'a' too"))
        self.assertIs(module["a"], module["b"])

    def test_what_stays_is_said_once(self) -> None:
        hooked = torch.nn.utils.weight_norm(torch.nn.Linear(64, 64))
        parametrized = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(64, 64))
        patched = torch.nn.Linear(64, 64)
        patched.forward = lambda x: x
        module = torch.nn.ModuleDict({
            "plain": torch.nn.Linear(64, 64), "hooked": hooked, "parametrized": parametrized,
            "patched": patched, "scaling": Scaling(64, 64), "experts": Stack(),
            "convolution": torch.nn.Conv1d(4, 4, 3), "left": torch.nn.Linear(64, 64)})
        for weight_only in (False, True):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                report = ft.quantize_(
                    torch.nn.ModuleDict(dict(module.items())), lambda layer, name: name != "left",
                    weight_only=weight_only)
            kept = report.kept
            self.assertEqual(list(kept), ["hooked", "parametrized", "patched", "scaling",
                                          "experts", "left"])
            for name, words in (("hooked", "a weight that a hook computes: torch.nn.utils.remove_"),
                                ("parametrized", "is parametrized: torch.nn.utils.parametrize."),
                                ("patched", "has another forward, as accelerate's hooks make"),
                                ("scaling", "test_torch_convert.Scaling, a subclass of Linear"),
                                ("experts", "Stack"), ("left", "the filter is False for it")):
                self.assertIn(words, kept[name])
            text = [str(warning.message) for warning in caught]
            self.assertEqual(len(text), 1, text)
            self.assertIn("quantize_ left 5 layers as they are: '", text[0])
            self.assertNotIn("'left'", text[0])

    def test_hooks_are_carried(self) -> None:
        seen = []
        module = Model()
        module.up.register_forward_hook(lambda layer, x, y: seen.append(type(layer).__name__))
        ft.quantize_(module)
        module(torch.arange(4))
        self.assertEqual(seen, ["QuantizedLinear"])

    def test_sizes_without_a_kernel(self) -> None:
        def made() -> Any:
            return torch.nn.ModuleDict({"odd": torch.nn.Linear(62, 64),
                                        "even": torch.nn.Linear(64, 64)})

        with self.assertRaisesRegex(fp4.UsageError, "layer 'odd': in_features must be (?s:.*)"
                                    "pass a filter that is False for it, or skip_unsupported"):
            ft.quantize_(made(), training=True)
        with self.assertWarnsRegex(UserWarning, "left 1 layer as they are: 'odd' in_features must"):
            report = ft.quantize_(made(), training=True, skip_unsupported=True)
        self.assertEqual(report.names, ["even"])

    def test_weights_that_are_no_numbers(self) -> None:
        for value, said in ((float("nan"), "nan"), (float("inf"), "inf")):
            for options in ({}, {"training": True}, {"weight_only": True},
                            {"skip_unsupported": True}):
                module = Model()
                with torch.no_grad():
                    module.down.weight[3, 5] = value
                    module.down.weight[7, 1] = value
                with self.assertRaisesRegex(
                        fp4.UsageError, rf"layer 'down': weight must be finite, but \[3, 5\] is "
                        rf"{said}, and 1 more are wrong\nnote: .*check=False"):
                    ft.quantize_(module, **options)
                self.assertIs(type(module.up), torch.nn.Linear)  # nothing was replaced
        ft.quantize_(module, check=False)
        with self.assertRaisesRegex(fp4.UsageError, r"the weight must be finite, but \[3, 5\]"):
            ft.QuantizedLinear.from_linear(_with_nan())
        ft.QuantizedLinear.from_linear(_with_nan(), check=False)

    def test_and_back(self) -> None:
        module = Model()
        exact = copy.deepcopy(module)
        ft.quantize_(module)
        x = torch.arange(6)
        weight = ft.dequantize(module.up.unpack())
        report = ft.dequantize_(module)
        self.assertEqual([(layer.name, layer.format) for layer in report],
                         [("up", "bfloat16"), ("down", "bfloat16")])
        self.assertTrue(torch.equal(module.up.weight, weight))
        self.assertEqual(module.state_dict().keys(), exact.state_dict().keys())
        self.assertLess((module(x) - exact(x)).norm(), 0.3 * exact(x).norm())


def _with_nan() -> Any:
    layer = torch.nn.Linear(64, 64)
    with torch.no_grad():
        layer.weight[3, 5] = float("nan")
    return layer


@unittest.skipIf(torch is None, "torch is not installed")
class LooksLikeLinear(unittest.TestCase):
    def layers(self) -> "list[Any]":
        source = torch.nn.Linear(64, 128, dtype=torch.float16)
        return [ft.QuantizedLinear.from_linear(source), ft.WeightOnlyLinear.from_linear(source)]

    def test_the_weight_is_dequantized_when_it_is_read(self) -> None:
        for layer in self.layers():
            self.assertIsInstance(layer, torch.nn.Linear)
            weight = layer.weight
            self.assertEqual((weight.shape, weight.dtype, weight.device.type, weight.requires_grad),
                             ((128, 64), torch.float16, "cpu", False))
            numbers = ft.dequantize(layer.unpack(), torch.float16)
            self.assertTrue(torch.equal(weight + 0, numbers))
            x = torch.randn(3, 64, dtype=torch.float16)
            self.assertTrue(torch.equal(torch.nn.functional.linear(x, weight),
                                        torch.nn.functional.linear(x, numbers)))
            self.assertTrue(torch.equal(weight.float(), numbers.float()))
            self.assertEqual(copy.deepcopy(layer).bfloat16().weight.dtype, torch.bfloat16)
            self.assertEqual((layer.in_features, layer.out_features), (64, 128))

    def test_the_weight_cannot_be_written(self) -> None:
        for layer in self.layers():
            weight = layer.weight
            for write in (lambda w=weight: w.add_(1), lambda w=weight: torch.nn.init.zeros_(w),
                          lambda w=weight: w.data.mul_(2), lambda w=weight: w.__setitem__(0, 1),
                          lambda w=weight: torch.add(w, w, out=w),
                          lambda w=weight: setattr(w, "data", torch.ones(1)),
                          layer.reset_parameters):
                with self.assertRaisesRegex(fp4.UsageError, "(?s)4 bits.*note: .*(dequantize_|rese)"
                                            ):
                    write()

    def test_models_in_float32(self) -> None:
        for options in ({}, {"weight_only": True}):
            module = torch.nn.Sequential(torch.nn.Linear(64, 128))
            exact = copy.deepcopy(module)
            ft.quantize_(module, **options)
            x = torch.randn(5, 64, requires_grad=True)
            y = module(x)
            self.assertEqual((y.dtype, module[0].weight.dtype), (torch.float32, torch.float32))
            self.assertLess((y - exact(x)).norm(), 0.3 * exact(x).norm())
            y.sum().backward()
            self.assertEqual(x.grad.dtype, torch.float32)
            self.assertEqual(module[0].bias.grad.dtype, torch.float32)
            with torch.autocast("cpu", torch.bfloat16):
                self.assertEqual(module(x).dtype, torch.bfloat16)

    def test_functional_transforms(self) -> None:
        for layer in self.layers():
            layer = layer.bfloat16()
            x = matrix(5, 64)
            state = dict(layer.named_parameters()) | dict(layer.named_buffers())
            y = torch.func.functional_call(layer, state, (x,))
            self.assertTrue(torch.equal(y, layer(x)))
            gradient = torch.func.grad(lambda value, one=layer: one(value).float().sum())(x)
            expected = x.clone().requires_grad_()
            layer(expected).float().sum().backward()
            self.assertTrue(torch.equal(gradient, expected.grad))


@unittest.skipIf(torch is None, "torch is not installed")
class BatchMates(unittest.TestCase):
    def test_a_row_has_the_bits_that_it_has_alone(self) -> None:
        source = torch.nn.Linear(64, 128, dtype=torch.bfloat16)
        for format, recipe in (("nvfp4", ""), ("nvfp4", "torchao"), ("nvfp4", "modelopt"),
                               ("nvfp4", "vllm"), ("mxfp4", "")):
            layer = ft.QuantizedLinear.from_linear(source, format=format, recipe=recipe)
            x = matrix(9, 64)
            x[4] *= 100
            whole = layer(x)
            for row in range(0, 9, 4):
                self.assertTrue(torch.equal(layer(x[row:row + 1])[0], whole[row]), recipe)

    def test_one_amax_for_all_by_name(self) -> None:
        source = torch.nn.Linear(64, 128, dtype=torch.bfloat16)
        token, tensor = (ft.QuantizedLinear.from_linear(source, activations=activations)
                         for activations in ("token", "tensor"))
        x = matrix(9, 64)
        x[4] *= 1e6
        exact = torch.nn.functional.linear(x, token.weight, source.bias)
        self.assertFalse(torch.equal(tensor(x[:1])[0], tensor(x)[0]))
        errors = [(layer(x)[0] - exact[0]).norm() for layer in (token, tensor)]
        self.assertLess(3 * errors[0], errors[1])
        with self.assertRaisesRegex(fp4.UsageError, "'activations' must be token or tensor"):
            ft.quantize_(torch.nn.Sequential(source), activations="row")


if __name__ == "__main__":
    unittest.main()
