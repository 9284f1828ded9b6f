"""fp4.torch.WeightOnlyLinear: bits, plans, sizes, gradients, graphs, copies, what is refused."""

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


def layer(format: str = "nvfp4", **options: Any) -> Any:
    return ft.WeightOnlyLinear.from_linear(source(**options), format=format)


def exact_weight(top: float) -> Any:
    """Numbers that NVFP4 and MXFP4 have, in blocks with the scale 1; one has the scale top / 6."""
    torch.manual_seed(2)
    values = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
    weight = values[torch.randint(8, (N, K))] * (torch.randint(2, (N, K)) * 2 - 1)
    weight[:, ::16] = 6.0
    weight[3, :32] *= top / 6
    return weight


@unittest.skipIf(torch is None, "torch is not installed")
class WeightOnly(unittest.TestCase):
    def test_sums_that_are_exact_are_those_of_torch(self) -> None:
        bias = torch.randint(-8, 8, (N,)).to(torch.float32)
        for format, top, dtype, rows in (("nvfp4", 2688, torch.bfloat16, 3),
                                         ("nvfp4", 2688, torch.float16, 70),
                                         ("mxfp4", 48, torch.bfloat16, 130)):
            with self.subTest(format=format, rows=rows):
                weight = exact_weight(top)
                made = ft.WeightOnlyLinear(ft.quantize(weight, format=format),
                                           torch.nn.Parameter(bias.to(dtype)))
                values = ft.dequantize(made.unpack(), torch.float32)
                self.assertTrue(torch.equal(values, weight))
                x = torch.randint(-2, 3, (rows, K)).to(dtype)
                expected = (x.float() @ weight.T + bias).to(dtype)
                with torch.no_grad():
                    y = made(x.view(rows, 1, K))
                self.assertEqual((y.shape, y.dtype), ((rows, 1, N), dtype))
                self.assertTrue(torch.equal(y.view(rows, N), expected))

    def test_every_plan_has_the_bits_of_the_reference_model(self) -> None:
        weight_programs.product.cache_clear()
        device = fp4.Device("sim", target="sm_90a", check="strict", policy="random", seed=3)
        with device, ft.simulator(device, verify=True), torch.no_grad():
            nvfp4, mxfp4 = layer(), layer("mxfp4", bias=False)
            rows = ft.WeightOnlyLinear(ft.quantize(source().weight, per_row=True))
            for count in (1, 12, 30):
                nvfp4(matrix(count, K))
            mxfp4(matrix(50, K))
            nvfp4(matrix(100, K).half())
            self.assertEqual(rows(matrix(9, K)).shape, (9, N))
            self.assertEqual(rows.alpha.shape, (N,))
        # Programs for bf16, for f16, for MXFP4, and for weights with a scale for each row.
        self.assertEqual(weight_programs.product.cache_info().misses, 4)

    def test_warps_multiply_on_other_targets(self) -> None:
        device = fp4.Device("sim", target="sm_120a", check="strict", policy="random", seed=3)
        with device, ft.simulator(device, verify=True), torch.no_grad():
            for count, columns in ((1, 512), (30, K), (130, K)):
                layer(columns=columns)(matrix(count, columns))
            layer("mxfp4", bias=False)(matrix(9, K))

    def test_weights_become_floats_in_tensor_memory(self) -> None:
        device = fp4.Device("sim", target="sm_100a", check="strict", policy="random", seed=3)
        with device, ft.simulator(device, verify=True), torch.no_grad():
            for count, columns in ((1, 512), (3, 64), (30, K), (130, K)):
                layer(columns=columns)(matrix(count, columns))
            layer("mxfp4", bias=False)(matrix(9, K))

    def test_no_number_of_rows_compiles_a_program(self) -> None:
        made = layer()
        with torch.no_grad():
            made(matrix(3, K))
            compiled = weight_programs.product.cache_info().misses
            for count in (1, 8, 9, 17, 65, 130):
                y = made(matrix(count, K))
                self.assertTrue(torch.equal(y[:1], made(matrix(count, K)[:1])))
            self.assertEqual(weight_programs.product.cache_info().misses, compiled)

    def test_rows_with_gaps(self) -> None:
        made, whole = layer(), matrix(12, K + 64)
        with torch.no_grad():
            for x in (whole[:, 8:8 + K], whole[::2, :K], whole.view(2, 6, -1)[:, :, 64:],
                      whole.view(2, 6, -1)[:, -1:, :K], whole[:, 1:1 + K],
                      whole[:1, :K].expand(5, K),
                      matrix(K, 4).t(), matrix(4, 2 * K)[:, ::2], matrix(4, K + 4)[:, :K],
                      whole[:, :K].view(3, 4, K).transpose(0, 1), matrix(12, K)[3:].view(3, 3, K)):
                self.assertTrue(torch.equal(made(x), made(x.clone(
                    memory_format=torch.contiguous_format))))

    def test_any_sizes(self) -> None:
        """Tiles are filled up with zeros, and the result has the sizes of the layer."""
        for rows, columns, format in ((33, 72, "nvfp4"), (160, 64, "mxfp4"), (129, 100, "mxfp4"),
                                      (1, 33, "nvfp4")):
            with self.subTest(rows=rows, columns=columns, format=format):
                made = layer(format, rows=rows, columns=columns)
                weight = ft.dequantize(made.unpack(), torch.float32)[:, :columns]
                self.assertEqual(made.unpack().shape[0], rows)
                x = torch.randint(-2, 3, (5, columns)).bfloat16().requires_grad_()
                y = made(x)
                self.assertEqual((y.shape, y.is_contiguous()), ((5, rows), True))
                torch.testing.assert_close(
                    y.float(), x.float() @ weight.T + made.bias.float(), rtol=0.01, atol=0.01)
                dy = matrix(5, rows, 3)
                y.backward(dy)
                torch.testing.assert_close(x.grad, dy @ weight.bfloat16(), rtol=0.02, atol=0.02)
                self.assertTrue(torch.equal(made.bias.grad, dy.float().sum(0).bfloat16()))
        per_row = ft.WeightOnlyLinear(ft.quantize(matrix(33, 64), per_row=True))
        with torch.no_grad():
            torch.testing.assert_close(
                per_row(matrix(3, 64, 1)).float(),
                matrix(3, 64, 1).float() @ ft.dequantize(per_row.unpack(), torch.float32).T,
                rtol=0.01, atol=0.01)

    def test_float16_beside_mxfp4(self) -> None:
        """A float16 is the sum of two bfloat16; exact sums have the bits of torch."""
        weight = exact_weight(6 * 2.0 ** 15)  # beyond the exponents of float16
        made = ft.WeightOnlyLinear(ft.quantize(weight, format="mxfp4"))
        x = torch.zeros(6, K, dtype=torch.float16)
        x[:, 0] = torch.tensor([1.0009765625, 65504, -6e-8, 0.33325, 2048.5, -0.0]).half()
        x[2:, 64] = 3
        with torch.no_grad():
            y = made(x)
        self.assertTrue(torch.equal(y, (x.float() @ weight.T).half()))
        x.requires_grad_()
        made(x).backward(torch.ones_like(y))
        expected = (torch.ones(6, N) @ weight).half()
        self.assertTrue(torch.equal(x.grad, expected))
        x = torch.tensor([[float("inf")] + [0.0] * (K - 1)]).half()
        with torch.no_grad():
            self.assertTrue(torch.equal(made(x).isinf(), weight[:, :1].T != 0))

    def test_the_bias_is_a_part_of_the_kernel(self) -> None:
        """There is a kernel for each plan, and none for biases."""
        count = {bias: len(weight_programs.product(
            weight_programs.Product(N, K, "bf16", "nvfp4", 0, bias), "sm_90a").kernels)
            for bias in ("", "bf16")}
        self.assertEqual(count[""], count["bf16"])

    def test_ranges_of_k(self) -> None:
        text = weight_programs.product(
            weight_programs.Product(128, 512, "bf16", "nvfp4", 0), "sm_90a").ir("parsed")
        self.assertIn("split_k = fastest", text)

    def test_unpack_gives_the_bytes_that_were_packed(self) -> None:
        for format in ("nvfp4", "mxfp4"):
            weight = ft.quantize(source().weight, format=format, layout="linear")
            unpacked = ft.WeightOnlyLinear(weight).unpack()
            for one, other in ((weight.data, unpacked.data), (weight.scales, unpacked.scales)):
                self.assertTrue(torch.equal(bytes_of(one), bytes_of(other)))
            self.assertTrue(torch.equal(ft.dequantize(weight), ft.dequantize(unpacked)))

    def test_gradients(self) -> None:
        made = layer()
        x = matrix(5, K).requires_grad_()
        dy = matrix(5, N, 3)
        made(x).backward(dy)
        self.assertTrue(torch.equal(x.grad, dy @ ft.dequantize(made.unpack())))
        self.assertTrue(torch.equal(made.bias.grad, dy.float().sum(0).bfloat16()))

    def test_opcheck(self) -> None:
        made = layer(rows=33)
        arguments = (matrix(3, K), made.packed, made.alpha, made.bias.detach(), 33)
        found = torch.library.opcheck(torch.ops.fp4.weight_mm.default, arguments)
        self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_graphs(self) -> None:
        made = layer()
        graphed, graphs = compiled_once(made)
        for rows in (6, 3):
            with torch.no_grad():
                self.assertTrue(torch.equal(graphed(matrix(rows, K)), made(matrix(rows, K))))
        self.assertEqual(len(graphs), 1)

    def test_copies_files_and_conversions(self) -> None:
        made = layer()
        x = matrix(4, K)
        other = ft.WeightOnlyLinear.from_linear(torch.nn.Linear(K, N, dtype=torch.bfloat16))
        other.load_state_dict(made.state_dict())
        half = copy.deepcopy(made).half()
        self.assertEqual((half.alpha.dtype, half.packed.dtype, half.bias.dtype),
                         (torch.float32, torch.uint8, torch.float16))
        with torch.no_grad():
            self.assertTrue(torch.equal(other(x), made(x)))
            with torch.autocast("cpu", torch.bfloat16):
                self.assertTrue(torch.equal(made(x.float()), made(x)))
            wide = made(x.float())  # of a model that is float32
            self.assertEqual(wide.dtype, torch.float32)
            self.assertTrue(torch.equal(wide, made(x).float()))
        with self.assertRaisesRegex(RuntimeError, "size mismatch for packed"):
            layer("mxfp4").load_state_dict(made.state_dict())

    def test_memory(self) -> None:
        """Tiles have at most 5 % more bytes than codes and scales, for layers of models."""
        for rows, columns in ((4096, 4096), (1024, 4096), (14336, 4096), (4096, 14336),
                              (2880, 2880), (5120, 2880)):
            for format, block in (("nvfp4", 16), ("mxfp4", 32)):
                data = torch.empty(rows, columns // 2, dtype=torch.uint8, device="meta")
                scales = torch.empty(rows, columns // block, dtype=torch.uint8, device="meta")
                packed = torch.ops.fp4.prepack(data.view(torch.float4_e2m1fn_x2), scales, format)
                self.assertLess(packed.nbytes, 1.05 * (data.nbytes + scales.nbytes))

    def test_a_model(self) -> None:
        model = torch.nn.Sequential(source(), torch.nn.ReLU(), source(128, N))
        x, weights = matrix(2, K), [model[0].weight, model[2].weight]
        self.assertEqual(ft.quantize_(model, weight_only=True).names, ["0", "2"])
        for index, weight in zip((0, 2), weights):
            self.assertTrue(torch.equal(ft.dequantize(model[index].unpack()),
                                        ft.dequantize(ft.quantize(weight.detach()))))
        with torch.no_grad():
            self.assertEqual(model(x).shape, (2, 128))
            self.assertEqual(model(x[:0]).shape, (0, 128))

    def test_what_is_refused(self) -> None:
        made, wide = layer(), layer("mxfp4", bias=False)
        x = matrix(4, K)
        with torch.no_grad():
            for said, call in (
                    ("must be bfloat16 or float16 beside weights of nvfp4, but got float32",
                     lambda: torch.ops.fp4.weight_mm(x.float(), made.packed, None, None, N)),
                    ("must be bfloat16 or float16 beside weights of mxfp4, but got float32",
                     lambda: torch.ops.fp4.weight_mm(x.float(), wide.packed, None, None, N)),
                    ("must have 320 columns, but got the shape \\[4, 64\\]",
                     lambda: made(matrix(4, 64))),
                    ("on one device, but are on meta and cpu", lambda: made(x.to("meta"))),
                    ("'rows' must be 256, .* or up to 127 fewer, but got 128",
                     lambda: torch.ops.fp4.weight_mm(x, made.packed, made.alpha, None, 128)),
                    ("must have the shape \\[M, 320\\], or up to 63 columns fewer",
                     lambda: torch.ops.fp4.weight_mm(x[:, :256], made.packed, None, None, N)),
                    ("'bias' must be bfloat16, float16 or float32, but got float64",
                     lambda: ft.WeightOnlyLinear(made.unpack(), torch.nn.Parameter(
                         torch.zeros(N, dtype=torch.float64)))),
                    ("'training' and 'weight_only'", lambda: ft.quantize_(
                        torch.nn.Sequential(source()), training=True, weight_only=True))):
                with self.subTest(said=said), self.assertRaisesRegex(fp4.UsageError, said):
                    call()
        with self.assertRaisesRegex(fp4.UsageError, "run on one of sm_90a, .*, but the device"):
            weight_programs.product(weight_programs.Product(N, K, "bf16", "nvfp4"), "sm_80")


if __name__ == "__main__":
    unittest.main()
