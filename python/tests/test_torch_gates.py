"""Gates of fp4.torch with gradients: numbers are those of plain torch in float64, rounded once, and
each call is one kernel."""

import unittest
from typing import Any

import fp4
import one_kernel
from programs import torch

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import execution, gates


def exact(x: Any) -> Any:
    gate, up = x.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


@unittest.skipIf(torch is None, "torch is not installed")
class Gates(unittest.TestCase):
    def setUp(self) -> None:
        execution._programs.clear()
        self.compiled = one_kernel.watch(self, gates, gates.units, gates.gradients)

    def operands(self, *shape: int, dtype: Any = None) -> "tuple[Any, Any]":
        """x, and the gradient of y."""
        torch.manual_seed(shape[0])
        return tuple((2 * torch.randn(*shape[:-1], size)).to(dtype or torch.bfloat16)
                     for size in (2 * shape[-1], shape[-1]))

    def check(self, x: Any, dy: Any) -> None:
        """Compares with float64: one rounding of the dtype, and a few of f32 before it."""
        one, other = x.detach().requires_grad_(), x.detach().double().requires_grad_()
        y, expected = ft.silu_and_mul(one), exact(other)
        y.backward(dy)
        expected.backward(dy.double())
        unit = 0.5 * torch.finfo(y.dtype).eps + 8 * torch.finfo(torch.float32).eps
        for found, wanted in ((y, expected), (one.grad, other.grad)):
            self.assertEqual((found.dtype, found.shape), (x.dtype, wanted.shape))
            torch.testing.assert_close(found.double(), wanted.detach(), rtol=unit, atol=1e-6)

    def test_against_float64(self) -> None:
        for rows, columns, dtype in ((7, 64, torch.bfloat16), (3, 1000, torch.float32),
                                     (5, 33, torch.float16), (2, 14336, torch.bfloat16)):
            with self.subTest(columns=columns, dtype=dtype):
                self.check(*self.operands(rows, columns, dtype=dtype))

    def test_opcheck(self) -> None:
        x, dy = self.operands(5, 64)
        found = torch.library.opcheck(torch.ops.fp4.silu_and_mul.default, (x.requires_grad_(),))
        self.assertEqual(set(found.values()), {"SUCCESS"})
        found = torch.library.opcheck(torch.ops.fp4.silu_and_mul_backward.default,
                                      (dy, x.detach()))
        self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_strides_ranks_and_rows(self) -> None:
        wide, dy = self.operands(6, 128)
        self.check(wide[:, 64:192], dy[:, 32:96])
        self.check(*self.operands(2, 3, 64))
        self.check(*self.operands(1, 64))
        self.assertEqual(ft.silu_and_mul(wide[:0]).shape, (0, 128))

    def test_the_numbers_of_the_quantized_gate(self) -> None:
        x, _ = self.operands(5, 64)
        amax = torch.tensor(9.0)
        found = ft.quantize(ft.silu_and_mul(x), amax=amax)
        wanted = ft.silu_and_mul_quantize(x, amax=amax)
        self.assertTrue(torch.equal(found.data.view(torch.uint8), wanted.data.view(torch.uint8)))

    def test_one_kernel_against_the_reference_model(self) -> None:
        x, dy = self.operands(9, 64)
        with fp4.Device("sim", check="strict") as device, ft.simulator(device, verify=True):
            ft.silu_and_mul(x.requires_grad_()).backward(dy)
        self.assertEqual(len(self.compiled), 2)

    def test_gates_far_from_zero(self) -> None:
        x = torch.tensor([[-200.0, 200.0, -90.0, 90.0] * 8 + [1.0] * 32], requires_grad=True)
        y = ft.silu_and_mul(x)
        y.backward(torch.ones(1, 32))
        self.assertEqual(y[0, :2].tolist(), [0, 200])
        self.assertEqual(x.grad[0, :2].tolist(), [0, 1])

    def test_a_compiled_call(self) -> None:
        torch.compiler.reset()
        call = torch.compile(lambda x: ft.silu_and_mul(2 * x), fullgraph=True, dynamic=True,
                             backend="aot_eager")
        for rows in (4, 9):
            x, dy = self.operands(rows, 64)
            found, wanted = (x.clone().requires_grad_() for _ in range(2))
            call(found).backward(dy)
            ft.silu_and_mul(2 * wanted).backward(dy)
            self.assertTrue(torch.equal(found.grad, wanted.grad))

    def test_errors(self) -> None:
        for x, message in ((torch.zeros(4, 63), "the columns must be those of two halves"),
                           (torch.zeros(4, 64, dtype=torch.int32), "'x' must be bfloat16")):
            with self.assertRaisesRegex(fp4.UsageError, message):
                ft.silu_and_mul(x)
        ft.silu_and_mul(torch.zeros(4, 64))


if __name__ == "__main__":
    unittest.main()
