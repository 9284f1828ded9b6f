"""Calls with torch tensors: CPU tensors in the simulator, CUDA tensors where they are."""

import unittest
from typing import Any

import fp4
import numpy as np
from fp4.program import _TorchAllocator
from programs import compiled, floats, matrix, product, torch


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

    def test_a_product(self) -> None:
        (qx, sx, ax), (qw, sw, aw) = self.quantized(130, 1), self.quantized(32, 2)
        program, alpha = compiled(product()), ax * aw / 2688**2
        y = program(qx, sx, qw, sw, alpha, verify=True)
        same = program(qx.view(torch.uint8), sx.view(torch.uint8).reshape(-1), qw, sw, alpha)
        self.assertTrue(torch.equal(y, same))
        exact = floats(matrix(130)) @ floats(matrix(32, seed=2)).T
        self.assertLess(np.abs(y.numpy() - exact).max(), 0.2 * np.abs(exact).max())

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
                (x.reshape(1, 64, 64), r"array of shape \[\?, 64\], but got"),
                (x[:0], r"array of shape \[\?, 64\], but got")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                program(tensor, function="amax")
        scales = torch.zeros(3, 4, dtype=torch.uint8)
        with self.assertRaisesRegex(fp4.UsageError, "transpose before you quantize"):
            program(q.t(), scales, amax, function="dequantize")
        with self.assertRaisesRegex(fp4.UsageError, "one package, but got numpy and torch"):
            program(x, np.float32(1), function="linear")


@unittest.skipIf(torch is None or not torch.cuda.is_available(), "torch finds no GPU")
class Cuda(unittest.TestCase):
    def test_the_bytes_of_the_simulator_on_a_stream_of_torch(self) -> None:
        program = fp4.compile(compiled()._source.text, target="sm_90a").program()
        x = values(130)
        amax = program(x, function="amax")
        expected = program(x, amax, function="tiled")
        with torch.cuda.stream(torch.cuda.Stream()):
            x = x.cuda()
            amax = program(x, function="amax", verify=True)
            found = program(x, amax, function="tiled")
        torch.cuda.synchronize()
        for one, other in zip(expected, found):
            self.assertEqual(other.device.type, "cuda")
            self.assertTrue(torch.equal(one.view(torch.uint8), other.view(torch.uint8).cpu()))

    def test_the_allocator_keeps_what_is_in_use(self) -> None:
        memory = _TorchAllocator(torch, 0).functions
        address = memory.allocate(None, 512, 0)
        self.assertNotEqual(address, 0)
        memory.free(None, address, 0)

    def test_a_tensor_elsewhere_than_its_program(self) -> None:
        with self.assertRaisesRegex(fp4.UsageError, "the tensors are on cuda:0"):
            compiled().program(fp4.Device("sim"))(values().cuda(), function="amax")


if __name__ == "__main__":
    unittest.main()
