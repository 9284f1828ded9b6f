"""fp4.torch.W4A8Linear: bits, plans, sizes, activations with scales, gradients, graphs, what is
refused."""

import copy
import unittest
from typing import Any

import fp4
from programs import torch
from test_torch_linear import compiled_once
from test_torch_ops import bytes_of, matrix

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import weight_programs

N, K = 256, 320


def source(rows: int = N, columns: int = K, bias: bool = True) -> Any:
    torch.manual_seed(1)
    return torch.nn.Linear(columns, rows, bias, dtype=torch.bfloat16)


def layer(**options: Any) -> Any:
    return ft.W4A8Linear.from_linear(source(**options))


def exact_weight(top: float = 48.0) -> Any:
    """Numbers that MXFP4 has, in blocks with the scale 1; one has the scale top / 6."""
    torch.manual_seed(2)
    values = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
    weight = values[torch.randint(8, (N, K))] * (torch.randint(2, (N, K)) * 2 - 1)
    weight[:, 0], weight[:, 1::32] = 0.0, 6.0
    weight[3, :32] *= top / 6
    return weight


def exact_rows(count: int) -> Any:
    """Small integers in rows whose amax is 448, so that the scale of a row is 1; no weight
    multiplies it."""
    x = torch.randint(-2, 3, (count, K)).float()
    x[:, 0] = 448
    return x


@unittest.skipIf(torch is None, "torch is not installed")
class W4A8(unittest.TestCase):
    def test_sums_that_are_exact_are_those_of_torch(self) -> None:
        weight, bias = exact_weight(), torch.randint(-8, 8, (N,)).float()
        made = ft.W4A8Linear(ft.quantize(weight, format="mxfp4"), torch.nn.Parameter(bias))
        self.assertTrue(torch.equal(ft.dequantize(made.unpack(), torch.float32), weight))
        for rows, dtype in ((3, torch.bfloat16), (70, torch.float32), (130, torch.float16)):
            with self.subTest(rows=rows, dtype=dtype), torch.no_grad():
                x = exact_rows(rows)
                expected = (x @ weight.T + bias).to(dtype)
                y = made(x.to(dtype).view(rows, 1, K))
                self.assertEqual((y.shape, y.dtype), ((rows, 1, N), dtype))
                self.assertTrue(torch.equal(y.view(rows, N), expected))

    def test_every_plan_has_the_bits_of_the_reference_model(self) -> None:
        weight_programs.product.cache_clear()
        device = fp4.Device("sim", target="sm_90a", check="strict", policy="random", seed=3)
        with device, ft.simulator(device, verify=True), torch.no_grad():
            made = layer()
            for count in (1, 12, 100):
                made(matrix(count, K))
            layer(bias=False)(matrix(30, K).half())
        self.assertEqual(weight_programs.product.cache_info().misses, 2)

    def test_other_targets(self) -> None:
        for target in ("sm_100a", "sm_120a"):
            device = fp4.Device("sim", target=target, check="strict", policy="lazy")
            with self.subTest(target=target), device, ft.simulator(device, verify=True), \
                    torch.no_grad():
                for count in (1, 30):
                    layer()(matrix(count, K))

    def test_activations_with_scales_are_those_of_a_norm(self) -> None:
        made, x = layer(), matrix(5, K)
        with torch.no_grad():
            normed = ft.rms_norm_quantize(x, format="fp8_row", keep=True)
            y = made(normed.quantized)
            self.assertEqual(y.dtype, torch.bfloat16)
            self.assertTrue(torch.equal(y, made(normed.elements)))

    def test_any_sizes(self) -> None:
        """Tiles are filled up with zeros, and the result has the sizes of the layer."""
        for rows, columns in ((33, 72), (160, 64), (129, 100), (1, 33)):
            with self.subTest(rows=rows, columns=columns):
                made = layer(rows=rows, columns=columns)
                weight = ft.dequantize(made.unpack(), torch.float32)[:, :columns]
                x = matrix(5, columns).requires_grad_()
                y = made(x)
                self.assertEqual((y.shape, y.is_contiguous()), ((5, rows), True))
                expected = x.float() @ weight.T + made.bias.float()
                self.assertLess(((y - expected).norm() / expected.norm()).item(), 0.04)
                dy = matrix(5, rows, 3)
                y.backward(dy)
                torch.testing.assert_close(x.grad, dy @ weight.bfloat16(), rtol=0.02, atol=0.02)
                self.assertTrue(torch.equal(made.bias.grad, dy.float().sum(0).bfloat16()))

    def test_rows_with_gaps_and_none(self) -> None:
        made, whole = layer(), matrix(12, K + 64)
        with torch.no_grad():
            for x in (whole[:, 8:8 + K], whole[::2, :K], whole[:1, :K].expand(5, K),
                      matrix(K, 4).t()):
                self.assertTrue(torch.equal(made(x), made(x.clone(
                    memory_format=torch.contiguous_format))))
            self.assertEqual(made(whole[:0, :K]).shape, (0, N))

    def test_a_row_does_not_depend_on_the_others(self) -> None:
        made = ft.W4A8Linear.from_linear(source(columns=1024), batch_invariant=True)
        with torch.no_grad():
            x = matrix(70, 1024)
            y = made(x)
            for count in (1, 9, 33):
                self.assertTrue(torch.equal(made(x[:count]), y[:count]))

    def test_opcheck(self) -> None:
        weight = ft.quantize(exact_weight(), format="mxfp4", layout="linear")
        packed = torch.ops.fp4.prepack_bytes(weight.data, weight.scales)
        bias = torch.ones(N, requires_grad=True)
        for name, arguments in (
                ("prepack_bytes", (bytes_of(weight.data), bytes_of(weight.scales))),
                ("unprepack_bytes", (packed,)),
                ("byte_mm", (matrix(4, K).requires_grad_(), None, packed, bias, N, torch.float32)),
                ("byte_mm", (matrix(4, K), None, packed, None, N, torch.bfloat16, True))):
            with self.subTest(name):
                found = torch.library.opcheck(getattr(torch.ops.fp4, name).default, arguments)
                self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_graphs_and_copies(self) -> None:
        made, x = layer(), matrix(3, K)
        with torch.no_grad():
            y = made(x)
            compiled, graphs = compiled_once(made)
            self.assertTrue(torch.equal(compiled(x), y))
            self.assertEqual(len(graphs), 1)
            self.assertTrue(torch.equal(copy.deepcopy(made)(x), y))
            other = layer()
            other.packed.zero_()
            other.load_state_dict(made.state_dict())
            self.assertTrue(torch.equal(other(x), y))

    def test_scales_too_far_apart_are_refused(self) -> None:
        self.assertTrue(torch.equal(
            ft.dequantize(ft.W4A8Linear(ft.quantize(exact_weight(6 * 2.0 ** 11), format="mxfp4"))
                          .unpack(), torch.float32), exact_weight(6 * 2.0 ** 11)))
        with self.assertRaisesRegex(fp4.UsageError, "row 3 from column 0 on are 2\\^12 apart"):
            ft.W4A8Linear(ft.quantize(exact_weight(6 * 2.0 ** 12), format="mxfp4"))

    def test_what_is_refused(self) -> None:
        made, x = layer(), matrix(3, K)
        data, scales = ft.rms_norm_quantize(x, format="fp8_row").quantized
        for call, message in (
                (lambda: ft.W4A8Linear(ft.quantize(source().weight)), "must be mxfp4"),
                (lambda: made(x[:, 1:]), "must have 320 columns"),
                (lambda: made(x.int()), "'input'|'x' must be"),
                (lambda: made(ft.ScaledFP8(data, scales[:2])), r"float32 of shape \[3, 1\]"),
                (lambda: made(ft.ScaledFP8(x, scales)), "float8_e4m3fn beside scales"),
                (lambda: torch.ops.fp4.byte_mm(x, None, made.packed, None, 1, torch.bfloat16),
                 "'rows' must be 256"),
                (lambda: torch.ops.fp4.byte_mm(x, None, made.packed[..., :9], None, N,
                                               torch.bfloat16), "'packed' must have the shape")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                call()


if __name__ == "__main__":
    unittest.main()
