"""Rotations and gathered rows of fp4.torch: their bits are those of the formulas in plain torch,
and each call is one kernel, compiled once for any number of rows."""

import unittest
from typing import Any

import fp4
import norm_formulas
import one_kernel
import rotation_formulas as formulas
from graph_recorder import GraphRecorder
from programs import torch

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import execution, rotation_programs, rotations

FORMATS = ("nvfp4", "mxfp4", "mxfp8_e4m3", "fp8_block128", "fp8_row")


def options_of(format: str) -> "dict[str, Any]":
    return {"format": format, "amax": torch.tensor(3.5) if format == "nvfp4" else None}


@unittest.skipIf(torch is None, "torch is not installed")
class Rows(unittest.TestCase):
    def setUp(self) -> None:
        execution._programs.clear()
        self.compiled = one_kernel.watch(self, rotation_programs,
                                         rotation_programs.rotation,
                                         rotation_programs.gather,
                                         rotation_programs.weighted_sum)

    def same(self, found: Any, expected: Any) -> None:
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
        one, other = (torch.where(value.isnan(), torch.nan, value).view(torch.int32)
                      for value in (found.float(), expected.float()))
        self.assertTrue(torch.equal(one, other))

    def check(self, found: Any, y: Any, format: str) -> None:
        """Codes and scales are those of the rows `y`."""
        if format in ("nvfp4", "mxfp4"):
            self.assertTrue(found.same(ft.quantize(y, **options_of(format))))
        elif format == "mxfp8_e4m3":
            codes, scales = norm_formulas.mxfp8(y)
            self.same(found.data, codes)
            self.assertTrue(torch.equal(norm_formulas.linear(found.scales, *scales.shape), scales))
        else:
            block = 128 if format == "fp8_block128" else y.shape[1]
            codes, scales = norm_formulas.fp8_of_blocks(y, block)
            self.same(found.data, codes)
            self.same(found.scales, scales)

    def test_rotations(self) -> None:
        """Each type; all columns and some; halves and pairs; tables of other types; sizes whose
        halves are no multiple of a load."""
        bf16, f16, f32 = torch.bfloat16, torch.float16, torch.float32
        for dtype, table, columns, size in ((bf16, f32, 128, 128), (f16, f32, 64, 64),
                                            (f32, f32, 64, 32), (bf16, bf16, 128, 64),
                                            (f16, f16, 80, 20), (bf16, f32, 10, 6)):
            x, cos_sin, at = formulas.operands(5, 3, columns, size, dtype)
            cos_sin = cos_sin.to(table)
            for interleaved in (False, True):
                with self.subTest(dtype=dtype, columns=columns, interleaved=interleaved):
                    self.same(ft.rotate(x, cos_sin, at, interleaved=interleaved),
                              formulas.rotated(x, cos_sin, at, interleaved=interleaved))

    def test_heads_with_gaps(self) -> None:
        """Heads are read where they are, and other strides from a copy."""
        x, cos_sin, at = formulas.operands(5, 3, 64)
        gaps = formulas.q_of_qkv(5, 3, 64)
        self.assertEqual(gaps.stride(), (320, 64, 1))
        wide = norm_formulas.data(15, 96).view(5, 3, 96)
        for heads in (gaps, gaps[:, 1:], gaps[:, :1], gaps[::2], gaps[:1], wide[..., 8:72],
                      wide[..., 4:68], wide[..., :64].transpose(0, 1)[..., :64],
                      x[:, :1].expand(5, 3, 64), x[:0], x[1:2], x[:, 1:2]):
            positions = torch.arange(heads.shape[0]) % 11
            with self.subTest(shape=heads.shape, strides=heads.stride()):
                expected = formulas.rotated(heads, cos_sin, positions)
                self.same(ft.rotate(heads, cos_sin, positions), expected)
                found = ft.rotate_quantize(heads, cos_sin, positions, keep=True,
                                           **options_of("nvfp4"))
                self.same(found.elements, expected)
                self.check(found.quantized, expected.view(-1, 64), "nvfp4")
        self.same(ft.rotate(x, cos_sin, torch.stack((at, at), 1)[:, 0]),
                  formulas.rotated(x, cos_sin, at))

    def test_norms_of_heads(self) -> None:
        torch.manual_seed(5)
        for dtype in (torch.bfloat16, torch.float16):
            x, cos_sin, at = formulas.operands(5, 3, 128, 64, dtype)
            w = torch.randn(128).to(dtype)
            for order, rounding in (("torch", {}), ("llama", {"is_normed_rounded": True}),
                                    ("exact", {"dtype": torch.float32})):
                for offset in (None, 1.0):
                    with self.subTest(dtype=dtype, order=order, offset=offset):
                        found = ft.rotate(x, cos_sin, at, weight=w, order=order, offset=offset,
                                          eps=1e-5)
                        normed = formulas.normed(x, w, offset=offset, eps=1e-5, **rounding)
                        self.same(found, formulas.rotated(normed, cos_sin, at, dtype=dtype))
        normed = ft.rms_norm(x, w).view(x.shape)
        self.same(ft.rotate(x, cos_sin, at, weight=w), ft.rotate(normed, cos_sin, at))

    def test_every_format(self) -> None:
        x, cos_sin, at = formulas.operands(5, 3, 128)
        w = torch.randn(128)
        for format in FORMATS:
            with self.subTest(format):
                y = formulas.rotated(formulas.normed(x, w), cos_sin, at, interleaved=True)
                found = ft.rotate_quantize(x, cos_sin, at, weight=w, interleaved=True, keep=True,
                                           **options_of(format))
                self.same(found.elements, y)
                self.check(found.quantized, y.view(15, 128), format)
                self.assertIsNone(found.residual)
                y = x.reshape(15, 128)
                rows = torch.randint(15, (7,))
                self.check(ft.gather_quantize(y, rows, **options_of(format)), y[rows], format)

    def test_amaxes_of_rows(self) -> None:
        x, cos_sin, at = formulas.operands(5, 3, 64)
        y = formulas.rotated(x, cos_sin, at).view(15, 64)
        found = ft.rotate_quantize(x, cos_sin, at, per_row=True).quantized
        self.assertTrue(found.same(ft.quantize(y, per_row=True)))
        given = torch.arange(1.0, 16.0)
        found = ft.rotate_quantize(x, cos_sin, at, amax=given, layout="linear").quantized
        self.assertTrue(found.same(ft.quantize(y, amax=given, layout="linear")))
        rows = torch.randint(15, (7,))
        found = ft.gather_quantize(y, rows, per_row=True)
        self.assertTrue(found.same(ft.quantize(y[rows], per_row=True)))
        found = ft.gather_quantize(y, rows, amax=given[:7])
        self.assertTrue(found.same(ft.quantize(y[rows], amax=given[:7])))

    def test_weighted_sums(self) -> None:
        for dtype, count, columns in ((torch.bfloat16, 2, 128), (torch.float16, 3, 64),
                                      (torch.float32, 16, 20)):
            y = norm_formulas.data(9, columns, 2, dtype)
            rows, weights = torch.randint(9, (5, count)), torch.rand(5, count)
            with self.subTest(dtype=dtype, count=count):
                expected = formulas.weighted_sum(y, rows, weights)
                self.same(ft.combine(y, rows, weights), expected)
                self.same(ft.combine(y, rows.t().contiguous().t(), weights.t().contiguous().t()),
                          expected)
                wide = torch.cat((y, y, y, y), 1)[:, columns:2 * columns]
                self.same(ft.combine(wide, rows, weights), expected)

    def test_one_program_for_all_rows(self) -> None:
        for tokens in (1, 2, 0, 5, 43):
            x, cos_sin, at = formulas.operands(tokens, 3, 64)
            y = formulas.rotated(x, cos_sin, at)
            self.same(ft.rotate(x, cos_sin, at), y)
            source = x.view(-1, 64)
            rows = torch.randint(max(1, source.shape[0]), (2 * tokens,))
            found = ft.gather_quantize(source, rows, format="fp8_row")
            self.assertEqual((found.data.shape, found.scales.shape),
                             ((2 * tokens, 64), (2 * tokens, 1)))
            weights = torch.rand(tokens, 2)
            self.same(ft.combine(source, rows.view(-1, 2), weights),
                      formulas.weighted_sum(source, rows.view(-1, 2), weights))
        self.assertEqual(len(self.compiled), 3)

    def test_places_of_columns_of_numbers(self) -> None:
        """A GPU reads numbers from multiples of 16 bytes on, also of an odd number of tokens."""
        for tokens in (1, 2, 3, 8):
            whole = torch.arange(4 * tokens + 1)
            for rows in (whole[:-1].view(tokens, 4), whole[1:].view(4, tokens).t()):
                columns = rotations._columns_of(rows)
                self.assertTrue(torch.equal(torch.stack(columns, 1), rows))
                self.assertEqual([column.data_ptr() % 16 for column in columns], [0] * 4)

    def test_against_the_reference_model(self) -> None:
        x, cos_sin, at = formulas.q_of_qkv(5, 3, 64), *formulas.operands(5, 3, 64)[1:]
        w, rows = torch.randn(64), torch.randint(5, (4, 3))
        with fp4.Device("sim", check="strict", policy="random", seed=3) as device, \
                ft.simulator(device, verify=True):
            ft.rotate(x, cos_sin, at)
            ft.rotate_quantize(x, cos_sin, at, weight=w, interleaved=True, order="exact",
                               per_row=True, keep=True)
            ft.gather_quantize(x[:, 0], rows[:, 0], format="mxfp8_e4m3")
            ft.combine(x[:, 0], rows, torch.rand(4, 3))

    def test_opcheck(self) -> None:
        x, cos_sin, at = formulas.operands(2, 2, 64)
        w, number, rows = torch.randn(64), torch.tensor(3.5), torch.tensor([1, 0, 1])
        nvfp4 = ("nvfp4", "transformer_engine", "tiled_128x4")
        fp8 = ("fp8_row", "fp8_deepgemm", "linear")
        for name, arguments in (
                ("rotate", (x, cos_sin, at, None, False, 1e-6, None, "torch")),
                ("rotate", (x[:, :1], cos_sin, at, w, True, 1e-6, 1.0, "exact")),
                ("rotate_quantize", (x, cos_sin, at, w, number, False, 1e-6, None, "llama", *nvfp4,
                                     False, True)),
                ("rotate_quantize", (x, cos_sin, at, None, None, True, 1e-6, None, "torch", *fp8,
                                     False, False)),
                ("gather_quantize", (x[:, 0], rows, None, *nvfp4, True)),
                ("gather_quantize", (x[:, 0], rows, None, *fp8, False)),
                ("combine", (x[:, 0], rows.view(3, 1).expand(3, 2), torch.rand(3, 2)))):
            with self.subTest(name):
                found = torch.library.opcheck(getattr(torch.ops.fp4, name).default, arguments)
                self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_one_graph(self) -> None:
        cos_sin, w = torch.randn(11, 64), torch.randn(64)

        def function(qkv: Any, at: Any, weights: Any) -> Any:
            q, k, v = qkv.view(-1, 4, 64).split([2, 1, 1], 1)
            q = ft.rotate(q, cos_sin, at, weight=w)
            k = ft.rotate_quantize(k, cos_sin, at, format="mxfp4", keep=True)
            x = ft.gather_quantize(v.flatten(1), at, per_row=True)
            y = ft.combine(v.flatten(1), torch.stack((at, at.flip(0)), 1), weights)
            return q, k.elements, ft.dequantize(k.quantized), ft.dequantize(x), y

        graphs = GraphRecorder()

        fast = torch.compile(function, backend=graphs, fullgraph=True, dynamic=True)
        for tokens in (5, 12):
            arguments = (norm_formulas.data(tokens, 256), torch.arange(tokens) % 5,
                         torch.rand(tokens, 2))
            for found, expected in zip(fast(*arguments), function(*arguments)):
                self.same(found, expected)
        self.assertEqual(len(graphs), 1)

    def test_export(self) -> None:
        class Model(torch.nn.Module):
            def forward(self, x: Any, cos_sin: Any, at: Any) -> Any:
                y = ft.rotate(x, cos_sin, at, interleaved=True)
                q = ft.rotate_quantize(y, cos_sin, at, format="mxfp4", layout="linear").quantized
                return q.data

        tokens = torch.export.Dim("tokens")
        x, cos_sin, at = formulas.operands(5, 3, 64)
        program = torch.export.export(Model(), (x, cos_sin, at), dynamic_shapes=(
            {0: tokens}, None, {0: tokens}))
        x, cos_sin, at = formulas.operands(7, 3, 64, seed=2)
        found, expected = (call(x, cos_sin, at) for call in (program.module(), Model()))
        self.assertTrue(torch.equal(found.view(torch.uint8), expected.view(torch.uint8)))

    def test_no_gradient(self) -> None:
        x, cos_sin, at = formulas.operands(4, 2, 64)
        x = x.requires_grad_()
        found = ft.rotate_quantize(x, cos_sin, at, format="mxfp4", keep=True)
        self.assertFalse(found.quantized.data.requires_grad)
        for y in (found.elements,
                  ft.rotate(x, cos_sin, at, weight=torch.ones(64, dtype=torch.bfloat16)),
                  ft.rotate(x, cos_sin.float().requires_grad_(), at),
                  ft.combine(x[:, 0], at[:, None].expand(4, 2) % 4, torch.rand(4, 2))):
            with self.assertRaisesRegex(fp4.UsageError, r"fp4.\w+ has no gradient"):
                y.float().sum().backward()
        self.assertFalse(ft.gather_quantize(x[:, 0], at % 4, format="mxfp4").data.requires_grad)

    def test_gradients_are_rotated_back(self) -> None:
        for dtype, options in ((torch.bfloat16, {}), (torch.float32, {"interleaved": True})):
            with self.subTest(dtype=dtype):
                _, cos_sin, at = formulas.operands(6, 2, 64, 32)
                whole = torch.randn(6, 4, 64).to(dtype).requires_grad_()
                other = whole.detach().float().requires_grad_()
                dy = torch.randn(6, 2, 64).to(dtype)
                ft.rotate(whole[:, 1:3], cos_sin, at, **options).backward(dy)
                formulas.rotated(other[:, 1:3], cos_sin, at, **options).backward(dy.float())
                unit = torch.finfo(dtype).eps
                torch.testing.assert_close(whole.grad.float(), other.grad, rtol=unit, atol=1e-6)

    def test_what_is_refused(self) -> None:
        x, table, at = formulas.operands(4, 2, 64)
        y, rows, weights = x[:, 0], torch.zeros(3, 2, dtype=torch.int64), torch.rand(3, 2)
        w, a = torch.randn(64), torch.tensor(1.0)
        for function, message in (
                (lambda: ft.rotate(x.double(), table, at), "'x' must be bfloat16, float16 or"),
                (lambda: ft.rotate(y, table, at), "'x' must be tokens x heads x columns, but got"),
                (lambda: ft.rotate(x, table.double(), at), "'cos_sin' must be a matrix of float32"),
                (lambda: ft.rotate(x, table[0], at), "'cos_sin' must be a matrix of float32"),
                (lambda: ft.rotate(x, torch.randn(9, 66), at), "even number of columns up to 64"),
                (lambda: ft.rotate(x, torch.randn(9, 33), at), "even number of columns up to 64"),
                (lambda: ft.rotate(x, table[:, :32], at), "'cos_sin' must be contiguous, but has"),
                (lambda: ft.rotate(x, table, at.int()), r"'positions' must be int64 of .*\[4\], b"),
                (lambda: ft.rotate(x, table, at[:2]), r"'positions' must be int64 of .*\[4\], but"),
                (lambda: ft.rotate(x, table, at, weight=w[:32]), r"'weight' must be .* \[64\], b"),
                (lambda: ft.rotate(x, table, at, offset=1.0), "'offset' must be None without"),
                (lambda: ft.rotate(x, table, at, weight=w, eps=1e40), "'eps' must be a number"),
                (lambda: ft.rotate(x, table, at, order="gemma"), "'order' must be torch, llama or"),
                (lambda: ft.rotate(x, table.to("meta"), at), "'x' and 'cos_sin' must be on one"),
                (lambda: ft.rotate_quantize(x, table, at), "'amax' must be given for recipe"),
                (lambda: ft.rotate_quantize(x, table, at, format="fp8"), "'format' must be nvfp4"),
                (lambda: ft.rotate_quantize(x, table, at, amax=torch.ones(4)), r"scalar or \[8\]"),
                (lambda: ft.gather_quantize(x, at, amax=a), "'x' must be a matrix, but got the"),
                (lambda: ft.gather_quantize(y, rows, amax=a), r"'rows' must be int64 of .*\[M\]"),
                (lambda: ft.gather_quantize(y, at.int()), r"'rows' must be int64 of shape \[M\]"),
                (lambda: ft.gather_quantize(y, at, amax=torch.ones(3)), r"a scalar or \[4\], but"),
                (lambda: ft.combine(x, rows, weights), "'y' must be a matrix, but got the shape"),
                (lambda: ft.combine(y, at, weights), r"'rows' must be int64 of shape \[T, k\], b"),
                (lambda: ft.combine(y, rows[:, :1], weights), "'rows' must have 2 to 16 columns"),
                (lambda: ft.combine(y, rows.repeat(1, 9), weights), "'rows' must have 2 to 16 c"),
                (lambda: ft.combine(y, rows, weights.half()), r"'weights' must be float32 of sha"),
                (lambda: ft.combine(y, rows, weights[:2]), r"'weights' must be .* \[3, 2\], but")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                function()
        for name, call in (("x", lambda: ft.rotate([1.0], table, at)),
                           ("cos_sin", lambda: ft.rotate(x, [1.0], at)),
                           ("positions", lambda: ft.rotate(x, table, [1])),
                           ("weight", lambda: ft.rotate(x, table, at, weight=[1.0])),
                           ("rows", lambda: ft.gather_quantize(y, [1])),
                           ("weights", lambda: ft.combine(y, rows, [1.0]))):
            with self.assertRaisesRegex(TypeError, f"'{name}' must be a torch.Tensor, but got li"):
                call()
