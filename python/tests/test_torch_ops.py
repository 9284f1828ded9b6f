"""fp4.torch: every operation with opcheck, against the reference model, and in compiled graphs."""

import inspect
import pathlib
import re
import unittest
from typing import Any

import fp4
from programs import torch

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import strides
    from torch.nn.functional import ScalingType, SwizzleType

    BLOCKS, TENSOR = ScalingType.BlockWise1x16, ScalingType.TensorWise
    TILES, NONE = SwizzleType.SWIZZLE_32_4_4, SwizzleType.NO_SWIZZLE
    DECODE = "modelopt, tensor_scale = supplied_decode"


def matrix(rows: int = 48, columns: int = 64, seed: int = 1, **options: Any) -> Any:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, columns, generator=generator).to(torch.bfloat16)
    return x.requires_grad_(**options) if options else x


def bytes_of(tensor: Any) -> Any:
    return tensor.contiguous().view(torch.uint8)


def poisoned(x: Any) -> Any:
    """The matrix `x` with NaN in every padding byte of its tiled scales."""
    rows, columns = x.shape[0], -(-x.shape[1] // x.block)
    row = torch.arange(x.scales.shape[0] * 128)[:, None] < rows
    column = torch.arange(x.scales.shape[1] * 4)[None, :] < columns
    inside = (row & column).view(-1, 4, 32, x.scales.shape[1], 4).permute(0, 3, 2, 1, 4)
    nan = 0x7F if x.format == "nvfp4" else 0xFF
    changed = torch.where(inside.reshape(x.scales.shape), bytes_of(x.scales), nan)
    assert not torch.equal(changed, bytes_of(x.scales))
    return ft.Scaled(x.data, changed.to(torch.uint8).view(x.scales.dtype), x.amax, *x._facts())


def has_opcheck_elsewhere(name: str) -> bool:
    """Another file of tests calls opcheck, and names the operation."""
    named = re.compile(rf'"{name}"|torch\.ops\.fp4\.{name}\.default')
    files = [path for path in pathlib.Path(__file__).parent.glob("test_torch_*.py")
             if path != pathlib.Path(__file__)]
    texts = [path.read_text() for path in files]
    return any("library.opcheck(" in text and named.search(text) for text in texts)


@unittest.skipIf(torch is None, "torch is not installed")
class Operations(unittest.TestCase):
    def check(self, operation: Any, *arguments: Any) -> None:
        found = torch.library.opcheck(operation, arguments)
        self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_opcheck(self) -> None:
        x, number, rng = matrix(), torch.tensor(4.0), torch.tensor([3, 5])
        bias = torch.ones(32, requires_grad=True)
        one = ("nvfp4", "transformer_engine")
        # As bytes: opcheck compares inputs with torch.allclose, which knows no float4 and float8.
        data, scales = map(bytes_of, torch.ops.fp4.quantize(
            x, number, None, *one, "linear", False, False, None))
        a, b = ft.quantize(x), ft.quantize(matrix(32))
        operands = (bytes_of(a.data), bytes_of(a.scales), a.amax,
                    bytes_of(b.data), bytes_of(b.scales), b.amax)
        weight = ft.quantize(matrix(128), layout="linear")
        packed = torch.ops.fp4.prepack(weight.data, weight.scales, "nvfp4")
        found = {
            "amax": [(x, False), (x, True)],
            "hadamard_amax": [(x, ft.SIGN_MASK)],
            "hadamard": [(matrix(requires_grad=True), dim, 16, ft.SIGN_MASK) for dim in (0, 1)],
            "quantize": [(x, number, None, *one, "tiled_128x4", False, False, None),
                         (x, number, rng, *one, "linear", False, True, ft.SIGN_MASK),
                         (x, None, None, "mxfp4", "ocp_floor", "tiled_128x4", False, False, None)],
            "quantize_both": [(x, number, None, None, *one, True, None),
                              (x, number, number, rng, *one, False, ft.SIGN_MASK)],
            "fake_quantize": [(matrix(requires_grad=True), number, None, *one, False)],
            "dequantize": [(data, scales, number, *one, torch.float32)],
            "swizzle_scales": [(scales,)],
            "unswizzle_scales": [(bytes_of(a.scales), 48, 4)],
            "scaled_mm": [(*operands, None, "nvfp4", one[1], one[1], torch.bfloat16),
                          (*operands, bias, "nvfp4", one[1], one[1], torch.float32)],
            "prepack": [(bytes_of(weight.data), bytes_of(weight.scales), "nvfp4")],
            "unprepack": [(packed,)],
            "weight_mm": [(matrix(requires_grad=True), packed, number, None, 128),
                          (x, packed, None, torch.ones(128, requires_grad=True), 128)],
        }
        mine = {name.split("::")[1].split(".")[0] for name in
                torch._C._dispatch_get_all_op_names() if name.startswith("fp4::")}
        unchecked = mine - set(found) - {name for name in mine if has_opcheck_elsewhere(name)}
        self.assertEqual(unchecked, set(), "call torch.library.opcheck on these operations")
        for name, samples in found.items():
            for arguments in samples:
                with self.subTest(name):
                    self.check(getattr(torch.ops.fp4, name).default, *arguments)

    def test_everything_against_the_reference_model(self) -> None:
        with fp4.Device("sim", check="strict", policy="random", seed=3) as device, \
                ft.simulator(device, verify=True):
            for members in ({}, {"recipe": "torchao"}, {"format": "mxfp4"}, {"per_row": True},
                            {"rounding": "stochastic"}, {"square": True}):
                with self.subTest(members):
                    torch.manual_seed(1)
                    x = ft.quantize(matrix(130), **members)
                    linear = ft.swizzle(x, "linear")
                    self.assertTrue(ft.swizzle(linear).same(x))
                    self.assertIs(ft.swizzle(x), x)
                    self.assertTrue(torch.equal(ft.dequantize(x), ft.dequantize(linear)))
                    self.assertLess((ft.dequantize(x) - matrix(130)).abs().max(), 1.4)
                    members.pop("per_row", None)
                    y = ft.linear(x, ft.quantize(matrix(32, seed=2), **members), torch.ones(32))
                    exact = matrix(130).float() @ matrix(32, seed=2).float().T + 1
                    self.assertLess((y - exact).abs().max(), 0.25 * exact.abs().max())

    def test_padding_of_scales_is_never_read(self) -> None:
        for members in ({"columns": 80}, {"columns": 96, "format": "mxfp4"}):
            with self.subTest(members):
                columns = members.pop("columns")
                a, b = (ft.quantize(matrix(rows, columns), **members) for rows in (33, 48))
                y = ft.linear(a, b)
                self.assertTrue(torch.isfinite(y).all())
                self.assertTrue(torch.equal(ft.linear(poisoned(a), poisoned(b)), y))
                self.assertTrue(torch.equal(ft.dequantize(poisoned(a)), ft.dequantize(a)))
                self.assertTrue(ft.swizzle(ft.swizzle(poisoned(a), "linear")).same(a))

    def test_gradients(self) -> None:
        for dim, size in ((0, 16), (1, 64)):
            x, g = matrix(64, requires_grad=True), matrix(64, seed=2)
            ft.hadamard(x, dim, size=size).backward(g)
            basis = ft.hadamard(torch.eye(64).to(torch.bfloat16), 1, size=size).float()
            exact = basis @ g.float() if dim == 0 else g.float() @ basis.T
            self.assertLess((x.grad - exact).abs().max(), 2**-8 * exact.abs().max())
        x, g = matrix(requires_grad=True), matrix(seed=2)
        y = ft.fake_quantize(x)
        y.backward(g)
        self.assertTrue(torch.equal(y, ft.dequantize(ft.quantize(x))))
        self.assertTrue(torch.equal(x.grad, g))
        a, b, bias = ft.quantize(x), ft.quantize(matrix(32)), torch.zeros(32, requires_grad=True)
        self.assertFalse(a.data.requires_grad)
        ft.linear(a, b, bias).backward(matrix(48, 32, seed=3))
        self.assertTrue(torch.allclose(bias.grad, matrix(48, 32, seed=3).float().sum(0)))
        with self.assertRaisesRegex(fp4.UsageError, "fp4.amax has no gradient\nnote: fp4.torch.fa"):
            torch.ops.fp4.amax(matrix(requires_grad=True), False).backward()

    def test_stochastic_rounding_follows_torch_s_generator(self) -> None:
        torch.manual_seed(7)
        first, second = (ft.quantize(matrix(), rounding="stochastic") for _ in range(2))
        torch.manual_seed(7)
        self.assertTrue(ft.quantize(matrix(), rounding="stochastic").same(first))
        self.assertFalse(second.same(first))
        rng = torch.tensor([1, 2])
        one, same = (ft.quantize(matrix(), rounding="stochastic", rng=rng) for _ in range(2))
        self.assertTrue(one.same(same))

    def test_any_strides(self) -> None:
        """Rows with gaps are read where they are, and other strides from a copy."""
        whole = matrix(48, 160)
        for x in (whole[:, 8:72], whole[::2, 32:96], whole.view(3, 16, 160)[:, :, :64],
                  whole[:, 4:68], whole[:, :128:2], matrix(48, 68)[:, :64],
                  whole[:, :128].view(48, 2, 64).transpose(0, 1), matrix(64, 48).t(),
                  whole[:1, :64].expand(16, 64), whole.view(3, 16, 160)[:, -1:, :64],
                  whole.view(-1)[1:1 + 32 * 64].view(32, 64)):
            for options in ({}, {"transpose": True}, {"per_row": True}, {"format": "mxfp4"}):
                with self.subTest(shape=x.shape, strides=x.stride(), **options):
                    if "transpose" in options and x.numel() // 64 % 16:
                        continue
                    other = ft.quantize(x.clone(memory_format=torch.contiguous_format), **options)
                    one = ft.quantize(x, **options)
                    for part in ("data", "scales"):
                        self.assertTrue(torch.equal(bytes_of(getattr(one, part)),
                                                    bytes_of(getattr(other, part))))
                    self.assertTrue(one.amax is None or torch.equal(one.amax, other.amax))
        x = matrix(64, 48).t()
        for call in (ft.amax, ft.fake_quantize, ft.hadamard,
                     lambda x: torch.ops.fp4.hadamard_amax(x, 3)[1],
                     lambda x: bytes_of(torch.ops.fp4.quantize_both(
                         x, ft.amax(x), None, None, "nvfp4", "transformer_engine", False,
                         None)[2])):
            self.assertTrue(torch.equal(call(x), call(x.contiguous())))

    def test_rows_are_read_where_they_are(self) -> None:
        whole = matrix(48, 160)
        for x in (whole[:, 8:72], whole[::2], whole.view(3, 16, 160)[:, -1], whole[:1, :64]):
            self.assertIs(strides.placed(x), x)
        for x in (whole[:, 4:68], matrix(48, 68)[:, :64], whole[:, ::2], whole.t(),
                  whole[:1].expand(4, 160), whole.view(-1)[1:1 + 32 * 64].view(32, 64)):
            copy = strides.placed(x)
            self.assertTrue(torch.equal(copy, x) and copy.is_contiguous())
            self.assertEqual(copy.data_ptr() % 16, 0)
        for x in (whole.view(3, 16, 160)[:, -1:], whole.view(3, 16, 160)[..., :64]):
            self.assertEqual(strides.flat_rows(x).data_ptr(), x.data_ptr())

    def test_no_rows(self) -> None:
        graph = torch.ops.fp4.quantize(matrix()[:0], torch.tensor(1.0), None, "nvfp4",
                                       "transformer_engine", "linear", False, False, None)
        self.assertEqual([list(value.shape) for value in graph], [[0, 32], [0, 4]])
        w = ft.quantize(matrix(32))
        y = torch.ops.fp4.scaled_mm(graph[0], graph[1], w.amax, w.data, w.scales, w.amax, None,
                                    "nvfp4", w.recipe, w.recipe, torch.bfloat16)
        self.assertEqual(y.shape, (0, 32))
        for format, layout in (("nvfp4", "tiled_128x4"), ("mxfp4", "linear")):
            x = ft.quantize(matrix()[:0], format=format, layout=layout)
            self.assertEqual((x.shape, ft.dequantize(x).shape), ((0, 64), (0, 64)))

    def test_what_is_refused(self) -> None:
        x, w = matrix(), ft.quantize(matrix(32))
        a = ft.quantize(x)
        for function, message in (
                (lambda: ft.quantize(x.double()), "'x' must be bfloat16, float16 or float32"),
                (lambda: ft.quantize(a.data), "'x' must be bfloat16, float16 or float32, but"),
                (lambda: ft.quantize(x[:, :48].contiguous(), format="mxfp4"), "multiple of 32"),
                (lambda: ft.quantize(x[:, :0]), r"with columns, but got the shape \[48, 0\]"),
                (lambda: ft.quantize(x, recipe=DECODE), "takes the scale of the tensor, but"),
                (lambda: ft.quantize(x, recipe="torchao_1level", amax=a.amax), "has no scale"),
                (lambda: ft.quantize(x, amax=torch.ones(3)), r"float32 and a scalar or \[48\]"),
                (lambda: ft.quantize(x, rounding="up"), "'rounding' must be nearest or"),
                (lambda: ft.quantize(x, rng=torch.ones(2)), "'rng' must come with"),
                (lambda: ft.quantize(x, rounding="stochastic", rng=torch.ones(2)), r"int64"),
                (lambda: ft.quantize(x, recipe="none"), "unknown recipe 'none'"),
                (lambda: ft.hadamard(x[0]), "'x' must be a matrix and 'dim' one of its"),
                (lambda: ft.hadamard(x, 0, size=32), "grouped by 32 must be 64, but got 48"),
                (lambda: ft.linear(ft.swizzle(a, "linear"), w), "'x' must have tiled_128x4"),
                (lambda: ft.linear(a, ft.quantize(x, format="mxfp4")), "one format and one K"),
                (lambda: ft.linear(a, w, torch.ones(3)), r"'bias' must be .* of shape \[32\]"),
                (lambda: ft.linear(a, w, dtype=torch.int8), "'dtype' must be bfloat16")):
            with self.subTest(message), self.assertRaisesRegex(fp4.Error, message):
                function()
        for wrong in (lambda: ft.linear(x, w), lambda: ft.swizzle(x), lambda: ft.quantize([1]),
                      lambda: ft.simulator("sim").__enter__()):
            with self.assertRaisesRegex(TypeError, "must be an? .*, but got "):
                wrong()


@unittest.skipIf(torch is None, "torch is not installed")
class ScaledMm(unittest.TestCase):
    """fp4.torch.scaled_mm, which is torch.nn.functional.scaled_mm."""

    def arguments(self, **members: Any) -> "dict[str, Any]":
        a, b = ft.quantize(matrix(48, 96)), ft.quantize(matrix(32, 96, seed=2))
        return {"mat_a": a.data, "mat_b": b.data.t(), "scale_a": [a.scales, a.decode_scale],
                "scale_recipe_a": [BLOCKS, TENSOR], "scale_b": [b.scales, b.decode_scale],
                "scale_recipe_b": [BLOCKS, TENSOR], "swizzle_a": [TILES, NONE],
                "swizzle_b": [TILES, NONE], **members}

    def test_the_signature_is_that_of_the_installed_torch(self) -> None:
        mine, theirs = (inspect.signature(function, eval_str=True) for function in
                        (ft.scaled_mm, torch.nn.functional.scaled_mm))
        self.assertEqual(mine, theirs)

    def test_two_levels(self) -> None:
        a, b = ft.quantize(matrix(48, 96)), ft.quantize(matrix(32, 96, seed=2))
        with ft.simulator(verify=True):
            y = ft.scaled_mm(**self.arguments())
        exact = ft.dequantize(a, torch.float32) @ ft.dequantize(b, torch.float32).T
        self.assertLess((y - exact).abs().max(), 2**-8 * exact.abs().max())
        flat = [a.scales.reshape(-1), a.decode_scale.reshape(1)]
        again = ft.scaled_mm(**self.arguments(scale_a=flat, contraction_dim=(1, 0)))
        self.assertTrue(torch.equal(y, again))
        with torch.device("meta"):  # what torch itself takes
            meta = {name: [item.to("meta") for item in value] if name.startswith("scale_") and
                    "recipe" not in name else value.to("meta") if name.startswith("mat") else value
                    for name, value in self.arguments().items()}
            theirs = torch.nn.functional.scaled_mm(**meta)
        self.assertEqual((theirs.shape, theirs.dtype), (y.shape, y.dtype))

    def test_one_level_and_mxfp4(self) -> None:
        for members, recipe in (({"recipe": "torchao_1level"}, BLOCKS),
                                ({"format": "mxfp4"}, ScalingType.BlockWise1x32)):
            a, b = (ft.quantize(matrix(rows, 96, rows), **members) for rows in (48, 32))
            bias = torch.arange(32, dtype=torch.bfloat16)
            y = ft.scaled_mm(a.data, b.data.t(), a.scales, recipe, b.scales, recipe, TILES, TILES,
                             bias, torch.float32)
            exact = ft.dequantize(a, torch.float32) @ ft.dequantize(b, torch.float32).T + bias
            self.assertLess((y - exact).abs().max(), 2**-20 * exact.abs().max())

    def test_what_is_refused(self) -> None:
        good = self.arguments()
        f8 = torch.zeros(48, 96, dtype=torch.float8_e4m3fn)
        for members, message in (
                ({"mat_a": f8}, "'mat_a' must be a matrix of float4_e2m1fn_x2, but got"),
                ({"mat_b": good["mat_b"].contiguous()}, "'mat_b' must be column-major, but its"),
                ({"mat_b": good["mat_b"][:8]}, "'mat_b' must be column-major|one K"),
                ({"scale_recipe_a": ScalingType.RowWise}, "'scale_recipe_a' must be"),
                ({"scale_recipe_a": BLOCKS}, "'scale_a' must have 1 scales, as its recipe, but"),
                ({"swizzle_a": NONE}, "'swizzle_a' must be SWIZZLE_32_4_4 for block scales, but"),
                ({"swizzle_b": None}, "nothing is swizzled silently: use fp4.torch.swizzle"),
                ({"scale_a": [good["scale_a"][0][:, :1], good["scale_a"][1]]}, "with 1024"),
                ({"scale_a": [good["scale_a"][0], torch.ones(2)]}, "must be one float32, but"),
                ({"output_dtype": None}, "'output_dtype' must be bfloat16, float16 or float32"),
                ({"bias": torch.ones(31)}, r"'bias' must be .* of shape \[32\], but got float32"),
                ({"contraction_dim": (0, 1)}, r"'contraction_dim' must be \(\) or \(1, 0\)"),
                ({"use_fast_accum": True}, "'use_fast_accum' must be False")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                ft.scaled_mm(**self.arguments(**members))


@unittest.skipIf(torch is None, "torch is not installed")
class Graphs(unittest.TestCase):
    def test_one_graph_for_any_number_of_rows(self) -> None:
        w = ft.quantize(matrix(32, seed=2))
        graphs = []

        def backend(module: Any, inputs: Any) -> Any:
            graphs.append(module)
            return module.forward

        def function(x: Any, weight: Any) -> Any:
            q = ft.quantize(ft.hadamard(x, 1))
            y = ft.linear(ft.swizzle(ft.swizzle(q, "linear")), weight, dtype=torch.float32)
            return y + ft.dequantize(q).sum(), q

        compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=backend)
        for rows in (48, 130, 33):
            (y, q), (expected, same) = compiled(matrix(rows), w), function(matrix(rows), w)
            self.assertTrue(torch.equal(y, expected))
            self.assertTrue(q.same(same))
        self.assertEqual(len(graphs), 1)

    def test_aot_autograd(self) -> None:
        w = matrix(32, seed=2)

        def function(x: Any, bias: Any) -> Any:
            weight = ft.quantize(w)
            return ft.linear(ft.quantize(x), weight, bias) + ft.fake_quantize(x)[:, :32]

        compiled = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
        for rows in (48, 33):
            found = []
            for call in (function, compiled):
                x, bias = matrix(rows, requires_grad=True), torch.zeros(32, requires_grad=True)
                y = call(x, bias)
                y.sum().backward()
                found.append((y, x.grad, bias.grad))
            for one, other in zip(*found):
                self.assertTrue(torch.equal(one, other))


if __name__ == "__main__":
    unittest.main()
