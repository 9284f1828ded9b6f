"""Norms and gates of fp4.torch: their bits are those of the formulas in plain torch, and each call
is one kernel, compiled once for any number of rows."""

import unittest
from typing import Any

import fp4
import norm_formulas as formulas
import one_kernel
from graph_recorder import GraphRecorder
from programs import torch

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import execution, norm_gradients, norm_programs

FORMATS = ("nvfp4", "mxfp4", "mxfp8_e4m3", "fp8_block128", "fp8_row")


def amax_for(format: str) -> Any:
    return torch.tensor(3.5) if format == "nvfp4" else None


def weights(columns: int, dtype: Any = None) -> "tuple[Any, Any]":
    torch.manual_seed(5)
    return torch.randn(columns).to(dtype or torch.bfloat16), torch.randn(columns)


@unittest.skipIf(torch is None, "torch is not installed")
class Norms(unittest.TestCase):
    def setUp(self) -> None:
        execution._programs.clear()
        self.compiled = one_kernel.watch(self, norm_programs,
                                         norm_programs.norm,
                                         norm_programs.gate)

    def same(self, found: Any, expected: Any) -> None:
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
        one, other = (torch.where(value.isnan(), torch.nan, value).view(torch.int32)
                      for value in (found.float(), expected.float()))
        self.assertTrue(torch.equal(one, other))

    def check(self, found: Any, y: Any, format: str, layout: str = "tiled_128x4") -> None:
        """Codes and scales are those of the elements `y`."""
        if format in ("nvfp4", "mxfp4"):
            other = ft.quantize(y, format=format, layout=layout, amax=amax_for(format))
            self.assertTrue(found.same(other))
        elif format == "mxfp8_e4m3":
            codes, scales = formulas.mxfp8(y)
            self.same(found.data, codes)
            self.assertTrue(torch.equal(formulas.linear(found.scales, *scales.shape), scales))
        else:
            codes, scales = formulas.fp8_of_blocks(y, 128 if format == "fp8_block128" else
                                                   y.shape[1])
            self.same(found.data, codes)
            self.same(found.scales, scales)

    def test_every_format_behind_a_norm_of_a_residual(self) -> None:
        x, r, (w, b) = formulas.data(9, 96), formulas.data(9, 96, 7), weights(96)
        h = x + r
        for format in FORMATS:
            options = {"residual": r, "format": format, "amax": amax_for(format), "keep": True}
            with self.subTest(format):
                q = ft.rms_norm_quantize(x, w, **options)
                y = formulas.norm(h, w)
                self.same(q.elements, y)
                self.same(q.residual, h)
                self.check(q.quantized, y, format)
                q = ft.layer_norm_quantize(x, w, b, **options)
                y = formulas.norm(h, w, b, kind="layer", eps=1e-5)
                self.same(q.elements, y)
                self.same(q.residual, h)
                self.check(q.quantized, y, format)

    def test_formulas(self) -> None:
        """Elements of each form of the formula and each type; rows of several segments."""
        for dtype, columns in ((torch.bfloat16, 17), (torch.float16, 560), (torch.float32, 1104)):
            x, (w, b) = formulas.data(7, columns, 1, dtype), weights(columns, dtype)
            with self.subTest(dtype):
                self.same(ft.rms_norm(x), formulas.norm(x))
                self.same(ft.rms_norm(x, b, weight_offset=1.0, eps=1e-3),
                          formulas.norm(x, b, offset=1.0, eps=1e-3))
                self.same(ft.rms_norm(x, w, order="llama"),
                          formulas.norm(x, w, is_normed_rounded=True))
                self.same(ft.layer_norm(x, w, b), formulas.norm(x, w, b, kind="layer", eps=1e-5))
                self.same(ft.layer_norm(x), formulas.norm(x, kind="layer", eps=1e-5))
                y, h = ft.rms_norm(x, w, residual=x)
                self.same(y, formulas.norm(x + x, w))
                self.same(h, x + x)

    def test_near_torch(self) -> None:
        x, (w, b) = formulas.data(4, 256), weights(256)
        y = torch.nn.functional.rms_norm(x, (256,), w, 1e-6)
        torch.testing.assert_close(ft.rms_norm(x, w), y, rtol=2**-7, atol=0)
        y = torch.nn.functional.layer_norm(x.float(), (256,), w.float(), b)
        torch.testing.assert_close(ft.layer_norm(x, w, b).float(), y, rtol=2**-7, atol=1e-5)

    def test_options_of_quantizers(self) -> None:
        x, (w, _) = formulas.data(9, 96), weights(96)
        y = formulas.norm(x, w)
        of_rows = torch.arange(1.0, 10.0)
        for options in ({"layout": "linear", "amax": of_rows}, {"amax": torch.tensor(128.0),
                        "recipe": "vllm, tensor_scale = supplied"}, {"recipe": "torchao_1level"},
                        {"format": "mxfp4", "layout": "linear", "recipe": "mxfp4_flashinfer"}):
            with self.subTest(options):
                q = ft.rms_norm_quantize(x, w, **options)
                self.assertTrue(q.quantized.same(ft.quantize(y, **options)))
                self.assertEqual((q.elements, q.residual), (None, None))

    def test_amaxes_of_rows(self) -> None:
        for dtype in (torch.bfloat16, torch.float32):
            x, (w, b) = formulas.data(9, 96, 3, dtype), weights(96)
            for q, y in (
                    (ft.rms_norm_quantize(x, w, residual=x, per_row=True, keep=True).quantized,
                     formulas.norm(x + x, w)),
                    (ft.layer_norm_quantize(x, w, b, per_row=True, layout="linear").quantized,
                     formulas.norm(x, w, b, kind="layer", eps=1e-5)),
                    (ft.silu_and_mul_quantize(x, per_row=True), formulas.silu_and_mul(x))):
                self.assertTrue(q.same(ft.quantize(y, per_row=True, layout=q.layout)))
        given = ft.rms_norm_quantize(x, w, amax=q.amax, per_row=True)
        self.assertEqual(given.quantized.amax.data_ptr(), q.amax.data_ptr())
        self.assertEqual(ft.rms_norm_quantize(x[:0], per_row=True).quantized.amax.shape, (0,))

    def test_stochastic_rounding(self) -> None:
        """The codes are those of `quantize` with the same random words."""
        x, (w, b), rng = formulas.data(9, 96), weights(96), torch.tensor([7, 11])
        for format in ("nvfp4", "mxfp4"):
            options = {"format": format, "amax": amax_for(format), "rounding": "stochastic"}
            for norm, more in ((ft.rms_norm_quantize, (w,)), (ft.layer_norm_quantize, (w, b))):
                with self.subTest(format, norm=norm.__name__):
                    found = norm(x, *more, keep=True, rng=rng, **options)
                    other = ft.quantize(found.elements, rng=rng, **options)
                    self.assertTrue(found.quantized.same(other))
                    self.assertFalse(found.quantized.same(
                        norm(x, *more, format=format, amax=amax_for(format)).quantized))
        torch.manual_seed(3)
        one = ft.rms_norm_quantize(x, format="mxfp4", rounding="stochastic").quantized
        torch.manual_seed(3)
        self.assertTrue(one.same(
            ft.rms_norm_quantize(x, format="mxfp4", rounding="stochastic").quantized))
        with self.assertRaisesRegex(fp4.UsageError, "'rounding' must be nearest for fp8_row"):
            ft.rms_norm_quantize(x, format="fp8_row", rounding="stochastic")

    def test_gates(self) -> None:
        x = formulas.data(9, 192)
        for format in FORMATS:
            with self.subTest(format):
                y = formulas.silu_and_mul(x)
                found = ft.silu_and_mul_quantize(x, format=format, amax=amax_for(format))
                self.check(found, y, format)

    def test_other_activations(self) -> None:
        """Their kernels have the bits of the reference, near those of torch."""
        x, rng = formulas.data(9, 192), torch.tensor([7, 11])
        wide = (2 * torch.randn(6, 192)).bfloat16()
        gate, up = wide.float().chunk(2, 1)
        expected = {"gelu_tanh": torch.nn.functional.gelu(gate, approximate="tanh") * up}
        gate, up = gate.clamp(max=7), up.clamp(-7, 7)
        expected["gpt_oss"] = gate * torch.sigmoid(1.702 * gate) * (up + 1)
        with fp4.Device("sim", check="strict", policy="random", seed=3) as device, \
                ft.simulator(device, verify=True):
            for activation, values in expected.items():
                ft.silu_and_mul_quantize(x, activation=activation, per_row=True)
                ft.silu_and_mul_quantize(x, activation=activation, format="mxfp4", rng=rng,
                                         rounding="stochastic")
                found = ft.silu_and_mul_quantize(wide, activation=activation, format="fp8_block128")
                decoded = found.data.float() * found.scales
                torch.testing.assert_close(decoded, values, rtol=2**-4, atol=2**-6)

    def test_one_program_for_all_rows(self) -> None:
        w, _ = weights(96)
        for rows in (1, 2, 0, 5, 130):
            x = formulas.data(rows, 96)
            q = ft.rms_norm_quantize(x, w, residual=x, amax=torch.tensor(3.5), keep=True)
            self.assertTrue(q.quantized.same(ft.quantize(q.elements, amax=torch.tensor(3.5))))
            self.same(q.residual, x + x)
            self.assertEqual(ft.rms_norm(x, w).shape, (rows, 96))
            gate = ft.silu_and_mul_quantize(x, format="fp8_row")
            self.assertEqual((gate.data.shape, gate.scales.shape), ((rows, 48), (rows, 1)))
        self.assertEqual(len(self.compiled), 3)

    def test_plans_of_few_and_many_rows(self) -> None:
        """A program has a kernel for few rows of 4112 elements and one for many, of which a call
        launches one. The CTAs of a cluster may have a row of 20480 elements."""
        for columns, counts in ((4112, (3, 150)), (20480, (2,))):
            w, _ = weights(columns)
            for rows in counts:
                x = formulas.data(rows, columns)
                for format in ("nvfp4", "fp8_row"):
                    with self.subTest(columns=columns, rows=rows, format=format):
                        found = ft.rms_norm_quantize(x, w, format=format, amax=amax_for(format))
                        self.check(found.quantized, formulas.norm(x, w), format)
        self.assertEqual([len(program.kernels) for program in self.compiled], [2, 2, 1, 1])
        self.compiled.clear()  # what is compiled elsewhere has one

    def test_dimensions_and_strides(self) -> None:
        """Rows with gaps are read where they are, and other strides from a copy."""
        whole, (w, _) = formulas.data(12, 320, 2), weights(96)
        for x in (whole[:, :96].view(3, 4, 96), whole[:, 8:104], whole[:, 4:100],
                  whole[:, :192:2], whole[::2, 96:192], whole[:, -1:].expand(12, 96)):
            with self.subTest(shape=x.shape, strides=x.stride()):
                q = ft.rms_norm_quantize(x, w, residual=x, amax=torch.tensor(3.5), keep=True)
                h = (x + x).contiguous()
                y = formulas.norm(h.view(-1, 96), w)
                self.same(q.residual, h)
                self.same(q.elements, y.view(x.shape))
                self.check(q.quantized, y, "nvfp4")
        x = whole[:, 32:66]  # contiguous rows would not begin at multiples of 16 bytes
        q = ft.rms_norm_quantize(x, residual=x.contiguous(), amax=torch.tensor(3.5))
        self.check(q.quantized, formulas.norm(x + x), "nvfp4")
        for x in (whole.view(3, 4, 320), whole[:, 16:80], whole[:, 4:68], whole[:, 8:76]):
            self.check(ft.silu_and_mul_quantize(x, amax=torch.tensor(3.5)),
                       formulas.silu_and_mul(x.reshape(-1, x.shape[-1])), "nvfp4")

    def test_against_the_reference_model(self) -> None:
        x, (w, b) = formulas.data(9, 544), weights(544)
        with fp4.Device("sim", check="strict", policy="random", seed=3) as device, \
                ft.simulator(device, verify=True):
            ft.rms_norm_quantize(x, w, residual=x, amax=torch.tensor(3.5), keep=True)
            ft.layer_norm_quantize(x, w, b, format="fp8_row")
            ft.silu_and_mul_quantize(x[:, :512], format="mxfp8_e4m3")

    def test_opcheck(self) -> None:
        x, (w, b), number = formulas.data(4, 64), weights(64), torch.tensor(3.5)
        rule = ("layer", 1e-5, None, "torch")
        fp8 = ("fp8_row", "fp8_deepgemm", "linear")
        nvfp4 = ("nvfp4", "transformer_engine", "tiled_128x4")
        for name, arguments in (
                ("norm", (x, x.clone(), w, b, *rule)),
                ("norm", (x, None, None, None, "rms", 1e-5, None, "llama")),
                ("norm_quantize", (x, x.clone(), w, b, None, *rule, *fp8, False, True)),
                ("norm_quantize", (x, None, w, None, number, "rms", 1e-5, 1.0, "torch", *nvfp4,
                                   False, False)),
                ("norm_quantize", (x, x.clone(), w, b, None, *rule, *nvfp4, True, True)),
                ("norm_quantize", (x, None, w, None, number, *rule, *nvfp4, False, False,
                                   torch.tensor([1, 2]))),
                ("silu_and_mul_quantize", (x, None, *nvfp4, True)),
                ("silu_and_mul_quantize", (x, number, *nvfp4, False, "gpt_oss",
                                           torch.tensor([1, 2])))):
            with self.subTest(name):
                found = torch.library.opcheck(getattr(torch.ops.fp4, name).default, arguments)
                self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_one_graph(self) -> None:
        w, _ = weights(64)

        def function(x: Any, residual: Any, amax: Any) -> Any:
            q = ft.rms_norm_quantize(x, w, residual=residual, amax=amax, keep=True)
            z = ft.silu_and_mul_quantize(q.elements, format="mxfp4")
            return ft.dequantize(q.quantized) + q.residual, ft.dequantize(z), ft.layer_norm(x, w)

        graphs = GraphRecorder()

        fast = torch.compile(function, backend=graphs, fullgraph=True, dynamic=True)
        for rows in (5, 12):
            x = formulas.data(rows, 64)[:4 * rows // 5]
            arguments = (x, x.flip(0), torch.tensor(3.5))
            for found, expected in zip(fast(*arguments), function(*arguments)):
                self.same(found, expected)
        self.assertEqual(len(graphs), 1)

    def test_no_gradient(self) -> None:
        x = formulas.data(4, 64).requires_grad_()
        q = ft.rms_norm_quantize(x, format="mxfp4")
        self.assertFalse(q.quantized.data.requires_grad)
        y = torch.ops.fp4.norm_quantize(x, None, None, None, None, "rms", 1e-5, None, "torch",
                                        "mxfp4", "ocp_floor", "linear", False, False)[3]
        with self.assertRaisesRegex(fp4.UsageError, "fp4.norm_quantize has no gradient without"):
            y.sum().backward()

    def test_what_is_refused(self) -> None:
        x, (w, b), a = formulas.data(4, 64), weights(64), torch.tensor(1.0)
        for function, message in (
                (lambda: ft.rms_norm(x.double()), "'x' must be bfloat16, float16 or float32"),
                (lambda: ft.rms_norm(x, w[:32]), r"'weight' must be .* of shape \[64\], but got"),
                (lambda: ft.rms_norm(x, w.int()), "'weight' must be bfloat16, float16 or float32"),
                (lambda: ft.layer_norm(x, w, b[None]), r"'bias' must be .* of shape \[64\], but"),
                (lambda: ft.rms_norm(x, torch.randn(128)[::2]), "'weight' must be contiguous, but"),
                (lambda: ft.rms_norm(x, weight_offset=1.0), "'weight_offset' must be 0 without"),
                (lambda: ft.rms_norm(x, residual=x.float()), "'residual' must be bfloat16 of"),
                (lambda: ft.rms_norm(x, residual=x[:2]), r"'residual' must be .*\[4, 64\], as 'x'"),
                (lambda: ft.rms_norm(x, order="gemma"), "'order' must be torch or llama, but got"),
                (lambda: ft.rms_norm_quantize(x), "'amax' must be given for recipe"),
                (lambda: ft.rms_norm_quantize(x, format="mxfp4", amax=a), "'amax' must be None"),
                (lambda: ft.rms_norm_quantize(x, format="fp8_row", amax=a), "'amax' must be None"),
                (lambda: ft.rms_norm_quantize(x, format="fp8"), "'format' must be nvfp4, mxfp4"),
                (lambda: ft.rms_norm_quantize(x, amax=a, layout="tiled"), "'layout' must be"),
                (lambda: ft.rms_norm_quantize(x, amax=a.double()), "'amax' must be float32 and a"),
                (lambda: ft.rms_norm_quantize(x[:, :40], format="mxfp4"), "multiple of 32 for mx"),
                (lambda: ft.rms_norm_quantize(x[:, :41], amax=a), "multiple of 2 for nvfp4, but"),
                (lambda: ft.rms_norm_quantize(x[:, :40], format="fp8_row"), "multiple of 16 for"),
                (lambda: ft.rms_norm_quantize(x, amax=a, per_row=True),
                 "'per_row' must be False beside an amax"),
                (lambda: ft.rms_norm_quantize(x, format="mxfp4", per_row=True),
                 "'per_row' must be False for recipe"),
                (lambda: ft.rms_norm(x, eps=1e40), "'eps' must be a number that f32 has, but got"),
                (lambda: ft.rms_norm(x, w, weight_offset=1e39), "'weight_offset' must be a number"),
                (lambda: ft.silu_and_mul_quantize(x[:, :33], format="mxfp4"), "of two halves, but"),
                (lambda: ft.silu_and_mul_quantize(x[:, :48], format="mxfp4"), "but got 24"),
                (lambda: ft.silu_and_mul_quantize(x, activation="relu"), "'activation' must be "),
                (lambda: ft.silu_and_mul_quantize(x, format="fp8_row", rounding="stochastic"),
                 "'rounding' must be nearest for fp8_row"),
                (lambda: ft.silu_and_mul_quantize(x, recipe="vllm, tensor_scale = supplied",
                                                  per_row=True), "'amax' must be given for")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                function()
        with self.assertRaisesRegex(TypeError, "'amax' must be a torch.Tensor, but got float"):
            ft.rms_norm_quantize(x, amax=3.0)  # type: ignore[arg-type]
        for name, arguments in (("x", ([1.0],)), ("weight", (x, [1.0])), ("residual", (x,))):
            named = {"residual": 3} if name == "residual" else {}
            with self.assertRaisesRegex(TypeError, f"'{name}' must be a torch.Tensor, but got "):
                ft.rms_norm(*arguments, **named)


@unittest.skipIf(torch is None, "torch is not installed")
class Gradients(unittest.TestCase):
    """Gradients of norms: bits of the formula, and those of torch within their rounding."""

    def setUp(self) -> None:
        execution._programs.clear()
        self.compiled = one_kernel.watch(self, norm_gradients, norm_gradients.gradients)

    def test_bits(self) -> None:
        for dtype, columns in ((torch.bfloat16, 17), (torch.float16, 560), (torch.float32, 1104)):
            dy, h, dh = (formulas.data(7, columns, seed, dtype) for seed in (1, 2, 3))
            w, _ = weights(columns, dtype)
            for kind, weight, offset, more in (("rms", w, None, None), ("rms", w, 1.0, dh),
                                               ("layer", w.float(), None, dh),
                                               ("layer", None, None, None)):
                with self.subTest(dtype=dtype, kind=kind):
                    found = torch.ops.fp4.norm_backward(dy, h, more, weight, kind, 1e-5, offset)
                    expected = formulas.norm_gradient(dy, h, more, weight, kind, offset)
                    for one, other in zip(found, expected, strict=True):
                        self.assertEqual((one.dtype, one.shape), (other.dtype, other.shape))
                        same = (one == other) | (one.isnan() & other.isnan())
                        self.assertTrue(same.all())

    def gradients(self, norm: Any, *operands: Any) -> "list[Any]":
        """The gradients of what is asked of the `operands`, whose norm and sum are both read."""
        operands = tuple(None if value is None else value.clone().requires_grad_()
                         for value in operands)
        y, h = norm(*operands)
        torch.manual_seed(9)
        loss = (y.float() * torch.randn(y.shape)).sum()
        if operands[1] is not None:
            loss = loss + (h.float() * torch.randn(h.shape)).sum()
        loss.backward()
        return [value.grad for value in operands if value is not None]

    def test_near_torch(self) -> None:
        torch.manual_seed(4)
        x, r, (w, b) = torch.randn(6, 96), torch.randn(6, 96), weights(96)

        def mine(kind: str, y: Any, residual: Any, w: Any, b: Any) -> Any:
            found = (ft.rms_norm(y, w, residual=residual) if kind == "rms"
                     else ft.layer_norm(y, w, b, residual=residual))
            return found if residual is not None else (found, y)

        def plain(kind: str, y: Any, residual: Any, w: Any, b: Any) -> Any:
            h = y if residual is None else y + residual
            if kind == "rms":
                return torch.nn.functional.rms_norm(h, (96,), w, 1e-6), h
            return torch.nn.functional.layer_norm(h, (96,), w, b, 1e-5), h

        for kind, residual in (("rms", None), ("rms", r), ("layer", None), ("layer", r)):
            with self.subTest(kind=kind, residual=residual is not None):
                operands = (x, residual, w.float(), b if kind == "layer" else None)
                for found, expected in zip(
                        self.gradients(lambda *a, k=kind: mine(k, *a), *operands),
                        self.gradients(lambda *a, k=kind: plain(k, *a), *operands), strict=True):
                    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)

    def test_kept_elements(self) -> None:
        """A norm that is quantized has the gradients of its elements and of its residual."""
        x, r, (w, _) = formulas.data(4, 64), formulas.data(4, 64, 7), weights(64)

        def quantized(x: Any, r: Any, w: Any) -> Any:
            q = ft.rms_norm_quantize(x, w, residual=r, format="mxfp4", keep=True)
            self.assertFalse(q.quantized.data.requires_grad)
            return q.elements, q.residual

        for one, other in zip(self.gradients(quantized, x, r, w), self.gradients(
                lambda x, r, w: ft.rms_norm(x, w, residual=r), x, r, w), strict=True):
            self.assertTrue(torch.equal(one, other))

    def test_parts(self) -> None:
        """The residual alone, strides, no rows, and a weight that needs no gradient."""
        x = formulas.data(4, 128)[:, :64].requires_grad_()
        r = formulas.data(4, 64, 3).requires_grad_()
        w, _ = weights(64)
        ft.rms_norm(x, w, residual=r)[1].sum().backward()
        self.assertTrue(torch.equal(r.grad, torch.ones_like(r)))
        dy = formulas.data(4, 256, 5)[:, 64:128]
        strided = torch.ops.fp4.norm_backward(dy, x.detach(), None, w, "rms", 1e-6, None)
        dense = torch.ops.fp4.norm_backward(dy.contiguous(), x.detach().contiguous(), None, w,
                                            "rms", 1e-6, None)
        self.assertTrue(torch.equal(strided[0], dense[0]))
        self.assertEqual(torch.ops.fp4.norm_backward(dy[:0], r.detach()[:0], None, w, "layer",
                                                     1e-6, None)[2].shape, (0,))

    def test_against_the_reference_model(self) -> None:
        x, (w, _) = formulas.data(9, 544), weights(544)
        with fp4.Device("sim", check="strict", policy="random", seed=3) as device, \
                ft.simulator(device, verify=True):
            for kind in ("rms", "layer"):
                torch.ops.fp4.norm_backward(x, x.flip(0), x, w, kind, 1e-5, 1.0)

    def test_opcheck(self) -> None:
        x, dy, (w, b) = torch.randn(4, 64), torch.randn(4, 64), weights(64, torch.float32)
        call = torch.library.opcheck
        for rule in (("rms", 1e-5, None), ("layer", 1e-5, 1.0)):
            found = call(torch.ops.fp4.norm_backward.default, (dy, x, dy.clone(), w, *rule))
            self.assertEqual(set(found.values()), {"SUCCESS"})
        operands = [value.requires_grad_() for value in (x, dy, w, b)]
        found = call(torch.ops.fp4.norm.default, (*operands, "layer", 1e-5, None, "torch"))
        self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_one_graph(self) -> None:
        """One graph has forward and backward of any number of rows."""
        w = torch.ones(64, requires_grad=True)

        def function(x: Any, residual: Any) -> Any:
            y, h = ft.rms_norm(x, w, residual=residual)
            return (y * h).sum()

        fast = torch.compile(function, backend="aot_eager", fullgraph=True, dynamic=True)
        for rows in (5, 12):
            found = []
            for call in (fast, function):
                w.grad, x = None, torch.randn(rows, 64, generator=torch.Generator().manual_seed(3))
                x.requires_grad_()
                call(x, x.flip(0)).backward()
                found.append((x.grad, w.grad))
            for one, other in zip(*found, strict=True):
                torch.testing.assert_close(one, other)
