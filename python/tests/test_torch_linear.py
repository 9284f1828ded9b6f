"""fp4.torch.Linear, QuantizedLinear and quantize_: bits, gradients, graphs, copies and files."""

import copy
import io
import unittest
from typing import Any
from unittest import mock

import fp4
from programs import ROOT, torch
from test_torch_ops import bytes_of, matrix

if torch is not None:
    import fp4.torch as ft
    import torch.utils.checkpoint
    from fp4.torch import layers

SIZES = {"M": 48, "N": 32, "K": 64}


def layer(**options: Any) -> Any:
    torch.manual_seed(1)
    return ft.Linear(64, 32, dtype=torch.bfloat16, **options)


def model(columns: int = 64) -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(columns, 32), torch.nn.ReLU(),
                               torch.nn.Linear(32, 16, bias=False)).to(torch.bfloat16)


def step(module: Any, x: Any, seed: int = 5) -> "tuple[Any, ...]":
    """y, and the gradients of x and of every parameter."""
    module.zero_grad()
    x = x.detach().requires_grad_()
    torch.manual_seed(seed)
    y = module(x)
    y.backward(matrix(y.numel() // y.shape[-1], y.shape[-1], 3).view(y.shape))
    return y, x.grad, *(parameter.grad for parameter in module.parameters())


def model_in_nvfp4() -> Any:
    made = model()
    ft.quantize_(made, training=True)
    return made


def checkpointed(module: Any) -> Any:
    """The module with an activation checkpoint, which computes it a second time."""
    class Checkpointed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, x: Any) -> Any:
            return torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=False)

    return Checkpointed()


def example(name: str) -> Any:
    """A program of examples/, which the suite checks against the reference model."""
    return fp4.compile(ROOT / "examples" / f"{name}.mlir", dims=SIZES)


def compiled_once(module: Any) -> "tuple[Any, list[Any]]":
    """The module compiled for any number of rows, and the graphs that were compiled so far."""
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    return torch.compile(module, fullgraph=True, dynamic=True, backend=backend), graphs


@unittest.skipIf(torch is None, "torch is not installed")
class Training(unittest.TestCase):
    def equal(self, found: Any, expected: Any) -> None:
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            self.assertEqual((one.shape, one.dtype), (other.shape, other.dtype))
            self.assertTrue(torch.equal(bytes_of(one), bytes_of(other)))

    def test_the_bits_of_the_three_programs(self) -> None:
        module, x = layer(bias=False), matrix()
        weight = module.weight.detach().clone()
        module.weight.data = weight.float()  # WGrad of the program gives float32
        y, dx, dw = step(module, x)
        torch.manual_seed(5)
        rng = ft.functional.random_state(x.device)
        expected, *saved = example("fprop")(x, weight)
        expected_dx, *dy = example("dgrad")(matrix(48, 32, 3), *saved[3:], rng)
        self.equal((y, dx, dw), (expected, expected_dx, example("wgrad")(*dy, *saved[:3])))

    def test_against_the_reference_model_and_exact_gradients(self) -> None:
        module, x = layer(), matrix()
        with fp4.Device("sim", check="strict") as device, ft.simulator(device, verify=True):
            y, dx, dw, db = step(module, x)
        w, dy = module.weight.detach().float(), matrix(48, 32, 3).float()
        for found, exact in ((y, x.float() @ w.T + module.bias), (dx, dy @ w),
                             (dw, dy.T @ x.float())):
            self.assertLess((found - exact).norm(), 0.25 * exact.norm())
        self.assertTrue(torch.equal(db, dy.sum(0).bfloat16()))

    def test_only_quantized_operands_are_kept(self) -> None:
        kept = []
        with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda value: value):
            layer()(matrix(requires_grad=True))
        self.assertEqual([value.element_size() for value in kept if value.numel() > 1], [1] * 4)
        self.assertEqual(sum(value.numel() > 1 for value in kept), 4)
        self.assertLess(sum(value.nbytes for value in kept), (48 + 32) * 64 * 2)

    def test_a_compiled_layer_keeps_quantized_operands_too(self) -> None:
        """Checks what Inductor's partitioner passes from the forward graph to the backward
        graph."""
        from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
        from torch._dynamo.backends.common import aot_autograd

        kept = []

        def forward(graph: Any, inputs: Any) -> Any:
            kept.extend(value.meta["val"] for value in graph.graph.output_node().args[0])
            return make_boxed_func(graph.forward)

        backend = aot_autograd(
            fw_compiler=forward, partition_fn=min_cut_rematerialization_partition,
            bw_compiler=lambda graph, inputs: make_boxed_func(graph.forward))
        module, x = layer(), matrix()
        compiled = torch.compile(module, fullgraph=True, dynamic=True, backend=backend)
        self.equal(step(compiled, x), step(module, x))
        wide = [value for value in kept[1:] if isinstance(value, torch.Tensor) and value.dim()]
        self.assertEqual([value.element_size() for value in wide], [1] * 4)  # kept[0] is y

    def test_whole_blocks_of_rows_are_not_copied(self) -> None:
        """The gradient of a slice would be zeros and a copy."""
        for rows, has_slice in ((48, False), (33, True)):
            node, names = layer()(matrix(rows, requires_grad=True)).grad_fn, []
            while node is not None and node.next_functions:
                names.append(node.name())
                node = node.next_functions[0][0]
            self.assertEqual("SliceBackward0" in names, has_slice)

    def test_layers_of_one_input_quantize_it_once(self) -> None:
        modules = [layer() for _ in range(3)]
        leaf = matrix().requires_grad_()

        def calls(inputs: "list[Any]") -> "tuple[int, list[Any]]":
            """Quantizers of the calls of all layers, and y and the gradient of the leaf."""
            leaf.grad = None
            torch.manual_seed(5)
            with mock.patch.object(layers, "_quantize", side_effect=layers._quantize) as quantize:
                ys = [module(x) for module, x in zip(modules, inputs)]
            sum(y.float().sum() for y in ys).backward()
            return quantize.call_count, [*ys, leaf.grad]

        h = 2 * leaf
        count, _ = calls([leaf, leaf, leaf])  # a leaf may change without a new version
        self.assertEqual(count, 6)
        count, wanted = calls([2 * leaf, 2 * leaf, 2 * leaf])
        self.assertEqual(count, 6)
        count, found = calls([h, h, h])
        self.assertEqual(count, 4)
        self.equal(found[:3], wanted[:3])
        h = 2 * leaf
        modules[2].weight.requires_grad_(False)  # X^T is not wanted
        self.assertEqual(calls([h, h, h])[0], 5)
        with torch.no_grad():
            h = 2 * leaf
        h.requires_grad_()
        self.assertEqual(calls([h, h, h])[0], 6)
        h = (2 * leaf).clone()
        first = modules[0](h)
        h.mul_(2)
        self.assertFalse(torch.equal(modules[0](h), first))

    def test_weights_that_are_kept(self) -> None:
        """Micro-batches, checkpoints and calls without gradients use what the first call made."""
        for module, calls in ((layer(), 1), (model_in_nvfp4(), 2)):
            x = matrix()
            expected = [step(module, x, seed) for seed in (5, 6)]
            with ft.keep_weights(module), mock.patch.object(
                    layers, "_quantize", side_effect=layers._quantize) as quantize:
                for seed, wanted in zip((5, 6), expected):
                    self.equal(step(module, x, seed), wanted)
                self.assertEqual(quantize.call_count, calls * (1 + 2 * 2))
                self.equal(step(checkpointed(module), x, 5)[:2], expected[0][:2])
                with torch.no_grad():
                    self.equal((module(x),), expected[0][:1])
                self.assertEqual(quantize.call_count, calls * (1 + 2 * 2 + 3 + 1))
                copied = copy.deepcopy(module)
                with ft.keep_weights(module):
                    self.equal(step(module, x, 5), expected[0])
            with torch.no_grad():
                module[0].weight.mul_(2) if calls > 1 else module.weight.mul_(2)
            self.assertFalse(torch.equal(step(module, x)[0], expected[0][0]))
            self.equal(step(copied, x, 5), expected[0])

    def test_weights_that_are_kept_in_a_graph(self) -> None:
        torch.compiler.reset()
        module, x = layer(), matrix()
        compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
        expected = step(module, x)
        for calls_first in (compiled, module):  # a traced call keeps nothing
            with ft.keep_weights(module):
                self.equal(step(calls_first, x), expected)
                self.assertEqual(len(module._kept), 0 if calls_first is compiled else 5)
                self.equal(step(compiled, x), expected)
        self.equal(step(compiled, x), expected)

    def test_what_needs_no_gradient_is_not_computed(self) -> None:
        module, x = layer(), matrix()
        y, dx, dw, db = step(module, x)
        with torch.no_grad():
            self.equal((module(x),), (y,))
        module.weight.requires_grad_(False)
        self.equal(step(module, x)[:2], (y, dx))
        self.assertEqual(module(matrix(33, requires_grad=True)).shape, (33, 32))
        module.weight.requires_grad_(True)
        module.zero_grad()
        torch.manual_seed(5)
        module(x).backward(matrix(48, 32, 3))
        self.equal((module.weight.grad, module.bias.grad), (dw, db))

    def test_decisions(self) -> None:
        plain = ft.NVFP4Training(hadamard=False, stochastic_rounding=False, square_weights=False)
        found = step(layer(training=plain), matrix(), seed=1)
        self.equal(step(layer(training=plain), matrix(), seed=2), found)
        for name in ("hadamard", "stochastic_rounding", "square_weights"):
            other = ft.NVFP4Training(**{**vars(plain), name: True})
            differ = [not torch.equal(*pair) for pair in
                      zip(step(layer(training=other), matrix()), found)]
            self.assertEqual(differ, {"hadamard": [False, False, True, False],
                                      "stochastic_rounding": [False, True, True, False],
                                      "square_weights": [True, True, False, False]}[name], name)

    def test_torch_compile_with_any_number_of_rows(self) -> None:
        module = layer()
        compiled, calls = compiled_once(module)
        for rows in (48, 64, 16, 160):
            x = matrix(rows).view(2, rows // 2, 64)
            self.equal(step(compiled, x), step(module, x))
        self.assertEqual(len(calls), 1)

    def test_autocast_takes_what_it_takes_in_torch(self) -> None:
        module, x = layer().float(), matrix().float()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = module(x)
        self.assertEqual(y.dtype, torch.bfloat16)
        y.sum().backward()
        self.assertEqual(module.weight.grad.dtype, torch.float32)

    def test_no_rows(self) -> None:
        """An expert without tokens."""
        module, x = layer(), matrix(0).requires_grad_()
        module(x).sum().backward()
        self.equal((x.grad, module.weight.grad, module.bias.grad),
                   (x, torch.zeros_like(module.weight), torch.zeros_like(module.bias)))
        with torch.no_grad():
            self.assertEqual(module(x).shape, (0, 32))

    def test_copies_and_files(self) -> None:
        module, x = layer(), matrix()
        plain = torch.nn.Linear(64, 32, dtype=torch.bfloat16)
        plain.load_state_dict(module.state_dict())
        file = io.BytesIO()
        torch.save(module, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        for other in (copy.deepcopy(module), loaded, ft.Linear.from_linear(plain)):
            self.equal(step(other, x), step(module, x))

    def test_any_number_of_rows(self) -> None:
        """Rows of zeros fill the last block of 16; they change no bit."""
        training = ft.NVFP4Training(stochastic_rounding=False)
        module = ft.Linear.from_linear(layer(), training)
        for rows in (1, 33, 47):
            x = matrix(rows)
            filled = torch.cat((x, torch.zeros(-rows % 16, 64).bfloat16()))
            found = []
            for value in (x, filled):
                value = value.clone().requires_grad_()
                module.zero_grad()
                y = module(value)
                y[:rows].backward(matrix(rows, 32, 3))
                found.append((y[:rows], value.grad[:rows], module.weight.grad, module.bias.grad))
            self.equal(*found)

    def test_what_is_refused(self) -> None:
        module = layer()
        for function, message in (
                (lambda: module(matrix().float()), "'input' must be bfloat16 for training, but"),
                (lambda: module(matrix(48, 32)), r"must have 64 columns, but got the shape"),
                (lambda: ft.Linear(60, 32), "in_features must be a multiple of 16 and")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                function()


@unittest.skipIf(torch is None, "torch is not installed")
class Stored(unittest.TestCase):
    def test_a_model(self) -> None:
        for members in ({}, {"recipe": "torchao"}, {"format": "mxfp4"}, {"square": True}):
            with self.subTest(members), ft.simulator(verify=True):
                exact, quantized = model(), model()
                self.assertEqual(ft.quantize_(quantized, **members).names, ["0", "2"])
                x = matrix(33).requires_grad_()
                y = quantized(x)
                self.assertLess((y - exact(x)).norm(), 0.3 * exact(x).norm())
                y.sum().backward()
                weights = [ft.dequantize(quantized[i].unpack()) for i in (0, 2)]
                hidden = (quantized[0](x) > 0).to(torch.bfloat16)
                gradient = (torch.ones(33, 16, dtype=torch.bfloat16) @ weights[1] * hidden)
                self.assertTrue(torch.equal(x.grad, gradient @ weights[0]))

    def test_torch_compile_and_padding(self) -> None:
        from test_torch_ops import poisoned

        module = model(80)
        ft.quantize_(module)
        compiled, calls = compiled_once(module)
        exported = torch.export.export(module, (matrix(5, 80),), dynamic_shapes=(
            {0: torch.export.Dim("M", min=2)},)).module()
        for rows in (5, 130, 64):
            for other in (compiled, exported):
                self.assertTrue(torch.equal(other(matrix(rows, 80)), module(matrix(rows, 80))))
        self.assertEqual(len(calls), 1)
        other = ft.QuantizedLinear(poisoned(module[0].unpack()), module[0].bias)
        self.assertTrue(torch.equal(other(matrix(5, 80)), module[0](matrix(5, 80))))

    def test_copies_and_files(self) -> None:
        module, x = model(), matrix(5)
        ft.quantize_(module)
        other = model()
        ft.quantize_(other)
        torch.nn.init.zeros_(other[0].bias)
        other[0].scaled.data.zero_()
        file = io.BytesIO()
        torch.save(module.state_dict(), file)
        self.assertLess(len(file.getvalue()), 12000)
        file.seek(0)
        other.load_state_dict(torch.load(file, weights_only=True))
        for same in (other, copy.deepcopy(module)):
            self.assertTrue(torch.equal(same(x), module(x)))

    def test_no_rows(self) -> None:
        """An expert without tokens."""
        for format in ("nvfp4", "mxfp4"):
            module, x = model(), matrix(0).requires_grad_()
            ft.quantize_(module, format=format)
            y = module(x)
            y.sum().backward()
            self.assertEqual((y.shape, x.grad.shape), ((0, 16), (0, 64)))

    def test_an_amax_that_is_known(self) -> None:
        weight, x = ft.quantize(matrix(32, seed=2)), matrix(5)
        known = ft.QuantizedLinear(weight, input_amax=x.abs().max().float())
        same = ft.QuantizedLinear(weight, activations="tensor")
        self.assertTrue(torch.equal(known(x), same(x)))
        self.assertEqual(known.half().input_amax.dtype, torch.float32)
        self.assertIn("input_amax", known.state_dict())

    def test_training_shares_the_parameters(self) -> None:
        module = model()
        parameters = dict(module.named_parameters())
        report = ft.quantize_(module, lambda layer, name: name != "2", training=True)
        self.assertEqual(report.names, ["0"])
        self.assertEqual([type(part).__name__ for part in module], ["Linear", "ReLU", "Linear"])
        self.assertIsInstance(module[0], ft.Linear)
        self.assertNotIsInstance(module[2], ft.Linear)
        self.assertTrue(all(parameters[name] is value for name, value in module.named_parameters()))
        shared = torch.nn.ModuleList([module[2], module[2]])
        self.assertEqual(ft.quantize_(shared).names, ["0", "1"])
        self.assertIs(shared[0], shared[1])

    def test_what_is_refused(self) -> None:
        bad = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Linear(32, 10))
        for function, message in (
                (lambda: ft.quantize_(bad, training=True), "layer '1': in_features must be a"),
                (lambda: ft.quantize_(bad[0]), "'model' must contain the layers, but is one"),
                (lambda: ft.quantize_(model(80), format="mxfp4"), "layer '0': in_features must be "
                 "a multiple of 32, but got 80\n"),
                (lambda: ft.quantize_(model(), training=True, square=True), "those of stored"),
                (lambda: ft.quantize_(model(), format="int4"), "'format' must be nvfp4 or")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                function()
        self.assertEqual([type(part) for part in bad], [torch.nn.Linear] * 2)


if __name__ == "__main__":
    unittest.main()
