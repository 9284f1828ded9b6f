"""Calls of torch's operations and layers that are repeated without Python code."""

import contextlib
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import fp4
from fp4 import _calls
from programs import torch

HAS_PLANS = torch is not None and _calls._accept(torch)
WHY = "there is no native module, or no torch with the exchange API of DLPack"
if HAS_PLANS:
    import fp4.torch
    from fp4.compat import vllm
    from fp4.torch import execution, planned

PACKAGE = """
import sys, torch, fp4.torch
from fp4.torch import weight_only
layer = fp4.torch.WeightOnlyLinear.from_linear(torch.nn.Linear(64, 128, dtype=torch.bfloat16))
x = torch.randn(4, 64).bfloat16()
with torch.no_grad():
    path = torch._inductor.aoti_compile_and_package(torch.export.export(layer, (x,)),
                                                    package_path=sys.argv[1] + "/layer.pt2")
    package, expected = torch._inductor.aoti_load_package(path), layer(x)
    package(x)
    weight_only.run = None  # what is planned needs it no more
    print("equal" if torch.equal(package(x), expected) else "different")
"""


@contextlib.contextmanager
def without_python() -> Iterator[None]:
    """Fails where a program is called by Python code."""
    with contextlib.ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            for call in ("run", "run_into"):
                if name.startswith("fp4.torch.") and hasattr(module, call):
                    stack.enter_context(mock.patch.object(module, call,
                                                          side_effect=AssertionError(call)))
        yield


def values(*shape: int, seed: int = 1, dtype: Any = None) -> Any:
    torch.manual_seed(seed)
    return torch.randn(*shape).to(dtype or torch.bfloat16)


def tensors_of(results: Any) -> "list[Any]":
    """The tensors of results and of what holds them."""
    if isinstance(results, torch.Tensor):
        return [results]
    if not isinstance(results, tuple):
        results = tuple(vars(results).values()) if hasattr(results, "__dict__") else ()
    return [tensor for result in results for tensor in tensors_of(result)]


@unittest.skipUnless(HAS_PLANS, WHY)
class Layers(unittest.TestCase):
    def check(self, layer: Any, shape: "tuple[int, ...]", *rest: Any) -> None:
        with torch.no_grad():
            layer(values(*shape), *rest)
            other = values(*shape, seed=2)
            with planned.held():
                expected = layer(other, *rest)
            with without_python():
                found = layer(other, *rest)
        self.assertTrue(torch.equal(expected, found))
        self.assertEqual(found.shape, expected.shape)
        self.assertEqual(found.stride(), expected.stride())

    def test_weights_alone(self) -> None:
        for bias, dtype in ((True, torch.bfloat16), (False, torch.float16)):
            linear = torch.nn.Linear(192, 136, bias=bias, dtype=dtype)
            layer = fp4.torch.WeightOnlyLinear.from_linear(linear)
            for shape in ((1, 192), (5, 192), (2, 3, 192), (192,)):
                with self.subTest(shape), torch.no_grad():
                    layer(values(*shape, dtype=dtype))
                    other = values(*shape, seed=2, dtype=dtype)
                    with planned.held():
                        expected = layer(other)
                    with without_python():
                        self.assertTrue(torch.equal(layer(other), expected))

    def test_experts(self) -> None:
        stack = values(2, 128, 64)
        layer = fp4.torch.WeightOnlyExperts.from_stack(stack, gate=values(2, 128, 64, seed=3))
        self.check(layer, (6, 64), torch.tensor([0, 2, 6]))

    def test_three_programs_of_a_quantized_layer(self) -> None:
        linear = torch.nn.Linear(128, 64, bias=False, dtype=torch.bfloat16)
        for activations in ("token", "tensor"):
            with self.subTest(activations):
                layer = fp4.torch.QuantizedLinear.from_linear(linear, activations=activations)
                self.check(layer, (3, 128))

    def test_results_that_a_call_has_not(self) -> None:
        x, other, weight = values(4, 256), values(4, 256, seed=2), values(256, seed=3)
        residual, amax = values(4, 256, seed=4), torch.tensor(4.0)
        calls = {"norm": lambda y: (fp4.torch.rms_norm(y, weight),),
                 "sum": lambda y: fp4.torch.rms_norm(y, weight, residual=residual),
                 "quantized": lambda y: fp4.torch.rms_norm_quantize(y, weight, amax=amax),
                 "gate": lambda y: fp4.torch.silu_and_mul_quantize(y, format="mxfp8_e4m3"),
                 "gathered": lambda y: fp4.torch.gather_quantize(y, torch.tensor([2, 0]),
                                                                 format="mxfp4")}
        for name, call in calls.items():
            with self.subTest(name), torch.no_grad():
                call(x)
                with planned.held():
                    expected = tensors_of(call(other))
                with without_python():
                    found = tensors_of(call(other))
                self.assertEqual(len(expected), len(found))
                for one, two in zip(expected, found):
                    self.assertEqual((one.shape, one.dtype), (two.shape, two.dtype))
                    one, two = (t.reshape(-1).view(torch.uint8) for t in (one, two))
                    self.assertTrue(torch.equal(one, two))

    def test_an_empty_argument_is_no_result_of_its_own(self) -> None:
        empty = torch.empty(0)
        weight = values(256, seed=3)
        call = planned.planned(lambda x, given: (fp4.torch.rms_norm(x, weight), given))
        for seed in (1, 2):
            self.assertIs(call(values(4, 256, seed=seed), empty)[1], empty)

    def test_caches_that_are_given(self) -> None:
        """Keys and values are columns of one matrix, which do not begin where the others do."""
        slots, factors = torch.tensor([3, 1, -1, 30]), [torch.full((1,), 2.0) for _ in "kv"]
        for name, dtype in (("auto", torch.bfloat16), ("fp8", torch.uint8)):
            for mode in (torch.no_grad, torch.inference_mode):
                with self.subTest(name, mode=mode), mode():
                    def store(seed: int, *caches: Any, name: str = name) -> Any:
                        key, value, _ = values(4, 3, 2, 64, seed=seed).unbind(1)
                        vllm.reshape_and_cache_flash(key, value, *caches, slots, name, *factors)
                        return caches

                    caches = [torch.zeros(2, 16, 2, 64, dtype=dtype) for _ in range(4)]
                    store(1, *(cache.clone() for cache in caches[:2]))
                    with planned.held():
                        expected = store(2, *caches[:2])
                    with without_python():
                        found = store(2, *caches[2:])
                    self.assertTrue(expected[0].any())
                    self.assertTrue(all(map(torch.equal, expected, found)))
                    with self.assertRaisesRegex(fp4.UsageError, "memory of its own"):
                        store(3, caches[0], caches[0])

    def test_a_result_that_is_given(self) -> None:
        query, key, value = (values(1, 16, 2, 64, seed=seed) for seed in (1, 2, 3))
        for has_lse in (False, True):
            with self.subTest(has_lse), torch.no_grad():
                expected = fp4.torch.attention(query, key, value, return_lse=has_lse)
                out = torch.empty_like(query)
                fp4.torch.attention(key, query, value, out=out, return_lse=has_lse)
                with without_python():
                    found = fp4.torch.attention(query, key, value, out=out, return_lse=has_lse)
                self.assertIs(found[0] if has_lse else found, out)
                self.assertTrue(all(map(torch.equal, tensors_of(expected), tensors_of(found))))
                with self.assertRaisesRegex(fp4.UsageError, "memory of its own"):
                    fp4.torch.attention(query, key, value, out=query, return_lse=has_lse)
                with self.assertRaisesRegex(fp4.UsageError, "'out' must be"):
                    fp4.torch.attention(query, key, value, out=out[:, 1:], return_lse=has_lse)

    def test_a_result_that_is_copied_has_no_sequence(self) -> None:
        """To an argument, whose version tells it, or to what is no argument."""
        weight, kept = values(256, seed=3), torch.empty(4, 256, dtype=torch.bfloat16)

        def copy(x: Any, out: Any) -> None:
            (kept if out is None else out).copy_(fp4.torch.rms_norm(x, weight))

        def copy_and_give(x: Any, out: Any) -> Any:
            copy(x, out)
            return fp4.torch.rms_norm(x, weight)

        for function, out in ((copy, kept), (copy, None), (copy_and_give, kept)):
            with self.subTest(function, is_given=out is not None), torch.no_grad():
                again = planned.planned(function)
                for seed in (1, 2):
                    x = values(4, 256, seed=seed)
                    again(x, out)
                    self.assertTrue(torch.equal(kept, fp4.torch.rms_norm(x, weight)))

    def test_rows_with_gaps(self) -> None:
        layer = fp4.torch.WeightOnlyLinear.from_linear(
            torch.nn.Linear(64, 128, dtype=torch.bfloat16))
        wide = values(4, 128)
        with torch.no_grad():
            expected = layer(wide[:, 64:].contiguous())
            layer(wide[:, 64:])
            with without_python():
                self.assertTrue(torch.equal(layer(wide[:, 64:]), expected))

    def test_a_copy_is_made_again(self) -> None:
        layer = fp4.torch.WeightOnlyLinear.from_linear(
            torch.nn.Linear(64, 128, dtype=torch.bfloat16))
        with torch.no_grad():
            for seed in range(3):  # columns of one step each: no kernel reads them
                x = values(64, 4, seed=seed)
                self.assertTrue(torch.equal(layer(x.t()), layer(x.t().contiguous())))
            memory = torch.zeros(257, dtype=torch.bfloat16)
            for seed in range(3):
                memory[1:] = values(256, seed=seed)
                self.assertTrue(torch.equal(layer(memory[1:].view(4, 64)),
                                            layer(memory[1:].view(4, 64).clone())))

    def test_gradients_are_recorded(self) -> None:
        layer = fp4.torch.WeightOnlyLinear.from_linear(
            torch.nn.Linear(64, 128, dtype=torch.bfloat16))
        x = values(4, 64)
        with torch.no_grad():
            layer(x)
            self.assertIsNone(layer(x).grad_fn)
        self.assertIsNotNone(layer(x).grad_fn)  # of the bias
        layer(x.requires_grad_()).float().sum().backward()
        self.assertIsNotNone(x.grad)
        with torch.no_grad():
            self.assertIsNone(layer(x).grad_fn)

    def test_the_inference_mode(self) -> None:
        layer = fp4.torch.WeightOnlyLinear.from_linear(
            torch.nn.Linear(64, 128, dtype=torch.bfloat16))
        with torch.inference_mode():
            x = values(7, 64)
            expected = layer(x)
            with without_python():
                self.assertTrue(torch.equal(layer(x), expected))

    def test_parameters_that_move_are_found(self) -> None:
        layer = fp4.torch.WeightOnlyLinear.from_linear(
            torch.nn.Linear(64, 128, dtype=torch.bfloat16))
        other = fp4.torch.WeightOnlyLinear.from_linear(
            torch.nn.Linear(64, 128, dtype=torch.bfloat16))
        x = values(4, 64)
        with torch.no_grad():
            layer(x)
            expected = other(x)
            layer.load_state_dict(other.state_dict())
            self.assertTrue(torch.equal(layer(x), expected))
            layer.bias.data = torch.zeros(128, dtype=torch.bfloat16)
            other.bias.zero_()
            with without_python():
                self.assertTrue(torch.equal(layer(x), other(x)))

    def test_wrong_inputs_are_told_as_before(self) -> None:
        layer = fp4.torch.WeightOnlyLinear.from_linear(
            torch.nn.Linear(64, 128, dtype=torch.bfloat16))
        with torch.no_grad():
            layer(values(4, 64))
            for _ in range(2):
                with self.assertRaisesRegex(fp4.UsageError, "'input' must have 64 columns"):
                    layer(values(4, 32))
                with self.assertRaisesRegex(TypeError, "'input' must be a torch.Tensor"):
                    layer(None)
                with self.assertRaisesRegex(fp4.UsageError, "must be bfloat16, float16 or"):
                    layer(torch.zeros(4, 64, dtype=torch.int64))
                with self.assertRaisesRegex(fp4.UsageError, "negates or conjugates"):
                    layer(torch._neg_view(values(4, 64)))


@unittest.skipUnless(HAS_PLANS, WHY)
class Operations(unittest.TestCase):
    def test_constants_choose_the_sequence(self) -> None:
        x = values(32, 64)
        ops = torch.ops.fp4
        for _ in range(2):
            one = ops.amax(x, False)
            each = ops.amax(x, True)
            self.assertEqual((one.dim(), each.dim()), (0, 1))
            shapes = [tuple(ops.quantize(x, one, None, "nvfp4", "torchao", layout, False, False,
                                         None)[1].shape) for layout in ("linear", "tiled_128x4")]
            self.assertEqual(shapes, [(32, 4), (512,)])
        with without_python():
            ops.quantize(x, one, None, "nvfp4", "torchao", "lin" + "ear", False, False, None)
        q, s = ops.quantize(x, one, None, "nvfp4", "torchao", "linear", False, False, None)
        for _ in range(2):
            dtypes = [ops.dequantize(q, s, one, "nvfp4", "torchao", dtype).dtype
                      for dtype in (torch.bfloat16, torch.float32)]
            self.assertEqual(dtypes, [torch.bfloat16, torch.float32])

    def test_arguments_that_share_memory(self) -> None:
        """The record of a call with one amax for both must not be that of two."""
        x = values(32, 64)
        ops = torch.ops.fp4
        amax = ops.amax(x, False)
        q, s = ops.quantize(x, amax, None, "nvfp4", "torchao", "tiled_128x4", False, False, None)
        rest = (None, "nvfp4", "torchao", "torchao", torch.float32)
        both = ops.scaled_mm(q, s, amax, q, s, amax, *rest)
        half = ops.scaled_mm(q, s, amax, q.clone(), s.clone(), amax / 2, *rest)
        self.assertTrue(torch.equal(half, both / 2))
        again = ops.scaled_mm(q, s, amax / 2, q.clone(), s.clone(), amax.clone(), *rest)
        self.assertTrue(torch.equal(again, both / 2))

    def test_a_result_that_torch_changes_has_no_sequence(self) -> None:
        x = values(32, 64)
        ops = torch.ops.fp4
        amax, bias = ops.amax(x, False), values(32)
        q, s = ops.quantize(x, amax, None, "nvfp4", "torchao", "tiled_128x4", False, False, None)
        for seed in (1, 2):
            bias = values(32, seed=seed, dtype=torch.float32)
            facts = ("nvfp4", "torchao", "torchao", torch.float32)
            plain = ops.scaled_mm(q, s, amax, q, s, amax.clone(), None, *facts)
            self.assertTrue(torch.equal(
                ops.scaled_mm(q, s, amax, q, s, amax.clone(), bias, *facts), plain + bias))

    def test_modes_see_the_operation(self) -> None:
        from torch.utils._python_dispatch import TorchDispatchMode

        seen: list[Any] = []

        class Mode(TorchDispatchMode):  # type: ignore[misc]
            def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (),
                                   named: Any = None) -> Any:
                seen.append(function)
                return function(*arguments, **(named or {}))

        x = values(8, 64)
        torch.ops.fp4.amax(x, False)
        with Mode():
            torch.ops.fp4.amax(x, False)
        self.assertIn(torch.ops.fp4.amax.default, seen)
        with torch.profiler.profile() as profile:
            torch.ops.fp4.amax(x, False)
        self.assertIn("fp4::amax", [event.name for event in profile.events()])
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            self.assertIs(torch.ops.fp4.amax(mode.from_tensor(x), False).fake_mode, mode)
        with without_python():  # callers in C++ come the same way, behind the dispatcher
            torch.ops.fp4.amax.default(x=x, per_row=False)

    def test_scripts_and_traces_have_the_operation(self) -> None:
        def amax(x: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
            return torch.ops.fp4.amax(x, False)

        x = values(8, 64, dtype=torch.float32)
        torch.ops.fp4.amax(x, False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            for graph in (torch.jit.script(amax), torch.jit.trace(amax, (x,))):
                self.assertIn("fp4::amax", str(graph.graph))
                self.assertEqual(graph(3 * x), 3 * x.abs().max())

    def test_transforms_see_the_operation(self) -> None:
        layer = fp4.torch.WeightOnlyLinear.from_linear(
            torch.nn.Linear(64, 128, bias=False, dtype=torch.bfloat16))
        x = values(4, 64)
        with torch.no_grad():
            layer(x)
        gradient = torch.func.grad(lambda y: layer(y).float().sum())(x)
        self.assertEqual(gradient.shape, x.shape)

    def test_the_simulator_s_settings_count(self) -> None:
        layer = fp4.torch.WeightOnlyLinear.from_linear(
            torch.nn.Linear(64, 128, dtype=torch.bfloat16))
        x = values(4, 64)
        with torch.no_grad():
            layer(x)
            with fp4.torch.simulator(verify=True), mock.patch.object(
                    execution, "_program", side_effect=AssertionError("verified")), \
                    self.assertRaisesRegex(AssertionError, "verified"):
                layer(x)
            with without_python():
                layer(x)

    def test_a_default_device_watches_nothing(self) -> None:
        layer = fp4.torch.WeightOnlyLinear.from_linear(
            torch.nn.Linear(64, 128, dtype=torch.bfloat16))
        x = values(4, 64)
        with torch.no_grad():
            expected = layer(x)
            with torch.device("cpu"), without_python():
                self.assertTrue(torch.equal(layer(x), expected))
            with torch.device("cpu"), torch.profiler.profile() as profile:
                torch.ops.fp4.amax(x, False)
        self.assertIn("fp4::amax", [event.name for event in profile.events()])

    def test_autocast_converts(self) -> None:
        layer = fp4.torch.WeightOnlyLinear.from_linear(
            torch.nn.Linear(64, 128, dtype=torch.bfloat16))
        x = values(4, 64)
        with torch.no_grad():
            layer(x)
            with torch.autocast("cpu", dtype=torch.float16):
                self.assertEqual(layer(x).dtype, torch.float16)

    def test_a_closed_device_is_told(self) -> None:
        x = values(8, 64)
        torch.ops.fp4.amax(x, False)
        fp4.device.default_device("sim", "sm_100a").close()
        execution._programs.clear()
        self.assertEqual(torch.ops.fp4.amax(x, False), x.abs().max())

    def test_compiled_code_has_one_node_and_calls_the_sequence(self) -> None:
        layer = fp4.torch.WeightOnlyLinear.from_linear(
            torch.nn.Linear(64, 128, dtype=torch.bfloat16))
        x, graphs = values(4, 64), []

        def backend(graph: Any, inputs: Any) -> Any:
            graphs.append([node.target for node in graph.graph.nodes
                           if isinstance(node.target, torch._ops.OpOverload)])
            return graph.forward

        with torch.no_grad():
            expected = layer(x)
            compiled = torch.compile(layer, fullgraph=True, backend=backend)
            self.assertTrue(torch.equal(compiled(x), expected))
            self.assertEqual(graphs, [[torch.ops.fp4.weight_mm.default]])
            with without_python():
                compiled(x)

    @unittest.skipIf(shutil.which("g++") is None, "there is no g++ for AOTInductor")
    def test_a_package_of_aotinductor_runs(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            found = subprocess.run([sys.executable, "-c", PACKAGE, folder], capture_output=True,
                                   text=True, env={**os.environ, "CXX": "g++"})
        self.assertEqual(found.stdout, "equal\n", found.stderr)

    def test_the_module_needs_no_symbol_of_torch(self) -> None:
        """One module serves every torch: it has none of the symbols that its C++ interface has."""
        tool = shutil.which("nm") or shutil.which("llvm-nm-22")
        if tool is None:
            self.skipTest("there is no nm")
        said = subprocess.run([tool, "-D", "--undefined-only", _calls.native.__file__],
                              capture_output=True, text=True, check=True).stdout
        names = [line.split()[-1] for line in said.splitlines()]
        self.assertIn("PyObject_Call", names)
        self.assertEqual([name for name in names
                          if re.search(r"torch|c10|aoti|THP|^_ZN?K?2at", name)], [])

    def test_nothing_is_kept(self) -> None:
        x = values(8, 64)
        torch.ops.fp4.amax(x, False)
        gc.collect()
        before = sys.getrefcount(x), sys.getrefcount(torch.bfloat16)
        for _ in range(100):
            torch.ops.fp4.amax(x, False)
        self.assertEqual(sys.getrefcount(x), before[0])
        self.assertLess(abs(sys.getrefcount(torch.bfloat16) - before[1]), 20)


if __name__ == "__main__":
    unittest.main()
