"""Calls with torch tensors: CPU tensors in the simulator, CUDA tensors where they are."""

import os
import unittest
from typing import Any

import fp4
import numpy as np
from fp4.program import _TorchAllocator
from graph_recorder import GraphRecorder
from programs import QUANTIZE, compiled, floats, matrix, product, torch


def values(rows: int = 3, seed: int = 1) -> Any:
    return torch.from_numpy(matrix(rows, seed=seed).view(np.int16)).view(torch.bfloat16)


@unittest.skipIf(torch is None, "torch is not installed")
class Cpu(unittest.TestCase):
    def quantized(self, rows: int, seed: int) -> "tuple[Any, Any, Any]":
        x = values(rows, seed)
        amax = compiled()(x, function="amax", verify=True)
        return (*compiled()(x, amax, function="tiled", verify=True), amax)

    def test_results_are_tensors_of_the_types_of_torch(self) -> None:
        q, s, amax = self.quantized(130, 1)
        self.assertEqual((q.dtype, tuple(q.shape)), (torch.float4_e2m1fn_x2, (130, 32)))
        self.assertEqual((s.dtype, tuple(s.shape)), (torch.float8_e4m3fn, (2, 1, 512)))
        self.assertEqual(amax, values(130).abs().max().float())
        x = matrix(130)
        numpy_amax = compiled()(x, function="amax")
        numpy_q, numpy_s = compiled()(x, numpy_amax, function="tiled")
        np.testing.assert_array_equal(q.view(torch.uint8).numpy(), numpy_q)
        np.testing.assert_array_equal(s.view(torch.uint8).numpy(), numpy_s.view(np.uint8))

    def test_a_gemm(self) -> None:
        (qx, sx, ax), (qw, sw, aw) = self.quantized(130, 1), self.quantized(32, 2)
        program, alpha = compiled(product()), ax * aw / 2688**2
        y = program(qx, sx, qw, sw, alpha, verify=True)
        same = program(qx.view(torch.uint8), sx.view(torch.uint8).reshape(-1), qw, sw, alpha)
        self.assertTrue(torch.equal(y, same))
        exact = floats(matrix(130)) @ floats(matrix(32, seed=2)).T
        self.assertLess(np.abs(y.numpy() - exact).max(), 0.2 * np.abs(exact).max())

    def test_a_graph_breaks_at_a_program(self) -> None:
        graphs = GraphRecorder()

        program, x = compiled().program(), values()
        run = torch.compile(lambda x: program(x + 1, function="amax") * 2, backend=graphs)
        self.assertEqual(run(x), (x + 1).abs().max().float() * 2)
        self.assertEqual(len(graphs), 2)

    def test_no_rows(self) -> None:
        x, program = values(64), compiled()
        self.assertEqual(program(x[:0], function="amax"), 0)
        self.assertEqual(program(x[:1], function="amax"), x[:1].abs().max())

    def test_tensors_that_are_refused(self) -> None:
        x, program = values(64), compiled()
        half = torch.zeros(3, 64, dtype=torch.float16)
        q = torch.zeros(32, 3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
        amax = torch.zeros(())
        for tensor, message in (
                (x.t(), "must be contiguous and row-major"),
                (x[:, ::2], "must be contiguous and row-major"),
                (half, r"must be \?x64xbf16 .*, but got torch float16\[3, 64\]"),
                (x.to("meta"), "must be on the CPU or a CUDA device, but is on meta"),
                (x.to_sparse(), "must be a dense tensor"),
                (x.clone().requires_grad_(), "must not require a gradient"),
                (torch._neg_view(x), "negates or conjugates"),
                (x[:, :32].contiguous(), r"array of shape \[\?, 64\], but got"),
                (x.reshape(1, 64, 64), r"array of shape \[\?, 64\], but got")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                program(tensor, function="amax")
        scales = torch.zeros(3, 4, dtype=torch.uint8)
        with self.assertRaisesRegex(fp4.UsageError, "transpose before you quantize"):
            program(q.t(), scales, amax, function="dequantize")
        with self.assertRaisesRegex(fp4.UsageError, "one package, but got numpy and torch"):
            program(x, np.float32(1), function="linear")


def same(expected: Any, found: Any) -> bool:
    """Returns True if the tensors of two calls have the same types and bytes."""
    return all(one.dtype == other.dtype and one.shape == other.shape and
               torch.equal(raw(one), raw(other)) for one, other in zip(expected, found))


def raw(tensor: Any) -> Any:
    """Returns the bytes of a tensor; torch has no view of a scalar as bytes."""
    return (tensor if tensor.dim() else tensor.reshape(1)).view(torch.uint8).cpu()


@unittest.skipIf(torch is None or not torch.cuda.is_available(), "torch finds no GPU")
class Cuda(unittest.TestCase):
    """$FP4_CUDA_LIBRARY names a library with code for the GPU; on a machine with the compiler it is
    not needed. Functions of a bf16 matrix and possibly an amax are tested."""

    program: fp4.Program
    name: str

    @classmethod
    def setUpClass(cls) -> None:
        path = os.environ.get("FP4_CUDA_LIBRARY")
        target = "sm_{}{}a".format(*torch.cuda.get_device_capability())
        cls.program = fp4.load(path) if path else fp4.compile(QUANTIZE, target=target).program()
        cls.name = next(name for name in cls.names() if len(cls.inputs(name, 1)) == 2)

    @classmethod
    def names(cls) -> "list[str]":
        return [function.name for function in cls.program.manifest.functions.values()
                if [argument.type.element for argument in function.arguments] in
                (["bf16"], ["bf16", "f32"])]

    @classmethod
    def inputs(cls, name: str, rows: int) -> "tuple[Any, ...]":
        arguments = cls.program.manifest.functions[name].arguments
        torch.manual_seed(rows)
        x = (torch.randn(rows, arguments[0].type.shape[1]) * 3).to(torch.bfloat16)
        return (x, x.abs().max().float())[:len(arguments)]

    def test_the_bytes_of_the_simulator_on_a_stream_of_torch(self) -> None:
        for rows in (1, 7, 130, 1000):
            for name in self.names():
                inputs = self.inputs(name, rows)
                expected = self.call(*inputs, function=name, verify=True)
                stream = torch.cuda.Stream()
                with torch.cuda.stream(stream):
                    moved = [value.cuda() for value in inputs]
                    found = self.call(*moved, function=name, verify=True)
                stream.synchronize()
                self.assertTrue(all(value.is_cuda for value in found))
                with self.subTest(name=name, rows=rows):
                    self.assertTrue(same(expected, found))

    def test_cpu_tensors_on_a_gpu(self) -> None:
        inputs = self.inputs(self.name, 130)
        found = self.program.on(fp4.Device("cuda"))(*inputs, function=self.name, verify=True)
        self.assertTrue(same(self.program(*inputs, function=self.name), found))

    def test_work_that_is_queued_before_the_call(self) -> None:
        x, amax = (value.cuda() for value in self.inputs(self.name, 1000))
        late, stream = torch.zeros_like(x), torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)
            late.copy_(x)
            found = self.call(late, amax, function=self.name)
        stream.synchronize()
        self.assertTrue(same(self.call(x, amax, function=self.name), found))

    def test_a_cuda_graph(self) -> None:
        x, amax = (value.cuda() for value in self.inputs(self.name, 130))
        expected = self.call(x, amax, function=self.name)  # loads the modules
        source, graph = x.clone(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = self.call(source, amax, function=self.name)
        source.zero_()
        graph.replay()
        torch.cuda.synchronize()
        self.assertFalse(same(expected, found))
        source.copy_(x)
        graph.replay()
        torch.cuda.synchronize()
        self.assertTrue(same(expected, found))

    def test_temporary_memory_is_torch_s(self) -> None:
        memory = _TorchAllocator(torch, 0)
        before = torch.cuda.memory_allocated()
        address = memory.functions.allocate(None, 1 << 20, 0)
        self.assertEqual(torch.cuda.memory_allocated() - before, 1 << 20)
        memory.functions.free(None, address, 0)
        self.assertEqual(torch.cuda.memory_allocated(), before)
        self.assertEqual(memory.functions.allocate(None, 1 << 60, 0), 0)
        self.assertIsInstance(memory.failure, torch.OutOfMemoryError)

    def test_no_rows(self) -> None:
        x, program = values(64), compiled()
        self.assertEqual(program(x[:0], function="amax"), 0)
        self.assertEqual(program(x[:1], function="amax"), x[:1].abs().max())

    def test_tensors_that_are_refused(self) -> None:
        x, amax = self.inputs(self.name, 64)
        moved = [x.cuda(), amax.cuda()]
        for arguments, message in (([x, moved[1]], "must have one device, but got cpu and cuda:0"),
                                   ([moved[0][:, ::2], moved[1]], "must be contiguous"),
                                   ([moved[0].float(), moved[1]], "but got torch float32")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                self.program(*arguments, function=self.name)
        with self.assertRaisesRegex(fp4.UsageError, "the tensors are on cuda:0, but the program"):
            self.program.on(fp4.Device("sim"))(*moved, function=self.name)

    def call(self, *tensors: Any, **options: Any) -> "tuple[Any, ...]":
        results = self.program(*tensors, **options)
        return results if isinstance(results, tuple) else (results,)


if __name__ == "__main__":
    unittest.main()
