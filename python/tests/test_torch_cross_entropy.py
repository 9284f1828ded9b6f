"""Cross entropies of fp4.torch: losses and gradients are those of plain torch, and each call is one
kernel, compiled once for any number of rows."""

import unittest
from typing import Any

import fp4
import one_kernel
from graph_recorder import GraphRecorder
from programs import torch

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import cross_entropies, execution


@unittest.skipIf(torch is None, "torch is not installed")
class CrossEntropy(unittest.TestCase):
    def setUp(self) -> None:
        execution._programs.clear()
        self.compiled = one_kernel.watch(self, cross_entropies, cross_entropies.losses,
                                         cross_entropies.gradients)

    def operands(self, rows: int, columns: int, dtype: Any = None) -> "tuple[Any, Any]":
        torch.manual_seed(rows)
        labels = torch.randint(columns, (rows,))
        labels[1::3] = -100
        return (4 * torch.randn(rows, columns)).to(dtype or torch.bfloat16), labels

    def check(self, x: Any, labels: Any, reduction: str) -> None:
        one, other = (x.detach().clone().requires_grad_() for _ in range(2))
        found = ft.cross_entropy(one, labels, reduction=reduction)
        expected = torch.nn.functional.cross_entropy(other.float(), labels.long(),
                                                     reduction=reduction)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
        given = torch.rand_like(found)
        found.backward(given)
        expected.backward(given)
        self.assertEqual((one.grad.dtype, one.grad.shape), (x.dtype, x.shape))
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-2 if x.dtype != torch.float32
                                   else 1e-4, atol=1e-7)

    def test_against_torch(self) -> None:
        for rows, columns, dtype in ((7, 64, torch.bfloat16), (4, 1000, torch.float32),
                                     (5, 33, torch.float16), (2, 20000, torch.bfloat16)):
            x, labels = self.operands(rows, columns, dtype)
            for reduction in ("mean", "sum", "none"):
                with self.subTest(columns=columns, dtype=dtype, reduction=reduction):
                    self.check(x, labels, reduction)
            self.check(x, labels.int(), "sum")

    def test_a_vocabulary(self) -> None:
        x, labels = self.operands(2, 152064)
        labels[0] = 152063
        self.check(x, labels, "none")

    def test_rows_without_a_label(self) -> None:
        x, labels = self.operands(6, 64)
        labels[:] = torch.tensor([-100, -1, 64, 2**31 - 1, 0, 63])
        x = x.requires_grad_()
        loss = ft.cross_entropy(x, labels, reduction="none")
        self.assertEqual(loss[:4].tolist(), [0, 0, 0, 0])
        self.assertTrue((loss[4:] > 0).all())
        loss.sum().backward()
        self.assertEqual([bool(row.any()) for row in x.grad], [False] * 4 + [True] * 2)
        mean = ft.cross_entropy(x, labels)
        torch.testing.assert_close(mean, loss.sum() / 2)

    def test_special_numbers(self) -> None:
        x = torch.full((3, 48), -torch.inf)
        x[0, 5] = 2.0
        x[1] = -300.0
        x[2, 7] = torch.nan
        loss = ft.cross_entropy(x, torch.tensor([5, 3, 3]), reduction="none")
        self.assertEqual(loss[0], 0)
        torch.testing.assert_close(loss[1], torch.tensor(48.0).log())
        self.assertTrue(loss[2].isnan())

    def test_strides_and_rows(self) -> None:
        wide, labels = self.operands(8, 192)
        for rows in (8, 1, 0, 5):
            x = wide[:rows, 64:128]
            found = ft.cross_entropy(x, labels[:rows] % 64, reduction="none")
            expected = torch.nn.functional.cross_entropy(x.float(), labels[:rows] % 64,
                                                         reduction="none")
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)

    def test_against_the_reference_model(self) -> None:
        x, labels = self.operands(5, 700)
        x = x.requires_grad_()
        with fp4.Device("sim", check="strict", policy="random", seed=3) as device, \
                ft.simulator(device, verify=True):
            ft.cross_entropy(x, labels).backward()

    def test_opcheck(self) -> None:
        x, labels = self.operands(4, 64, torch.float32)
        labels, numbers = labels.int(), torch.rand(4)
        for name, arguments in (("cross_entropy", (x.requires_grad_(), labels)),
                                ("cross_entropy_backward", (x.detach(), labels, numbers, numbers))):
            with self.subTest(name):
                found = torch.library.opcheck(getattr(torch.ops.fp4, name).default, arguments)
                self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_one_graph(self) -> None:
        graphs = GraphRecorder()

        fast = torch.compile(ft.cross_entropy, backend=graphs, fullgraph=True, dynamic=True)
        for rows in (5, 12):
            x, labels = self.operands(rows, 64)
            torch.testing.assert_close(fast(x, labels), ft.cross_entropy(x, labels))
        self.assertEqual(len(graphs), 1)

    def test_what_is_refused(self) -> None:
        x, labels = self.operands(4, 32)
        for function, message in (
                (lambda: ft.cross_entropy(x.double(), labels), "'logits' must be bfloat16, float1"),
                (lambda: ft.cross_entropy(x[0], labels), "'logits' must be a matrix with columns"),
                (lambda: ft.cross_entropy(x, labels.float()), "'labels' must be int64 or int32 of"),
                (lambda: ft.cross_entropy(x, labels[None]), "'labels' must be int64 or int32 of"),
                (lambda: ft.cross_entropy(x, labels[:3]), "'labels' must have 4 numbers, but got"),
                (lambda: ft.cross_entropy(x, labels, reduction="max"), "'reduction' must be mean")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                function()
        with self.assertRaisesRegex(TypeError, "'labels' must be a torch.Tensor, but got list"):
            ft.cross_entropy(x, [1])
