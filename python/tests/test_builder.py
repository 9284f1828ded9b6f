"""fp4.Builder: the text that it makes, what the programs compute, and what it refuses."""

import pathlib
import re
import unittest
from typing import Any

import fp4
import numpy as np
from fp4.formats import FORMATS
from programs import ROOT, compiled, matrix, operands, product

TILED = "tiled_128x4"


def linear(fmt: str = "nvfp4") -> fp4.Builder:
    """relu(X * W^T) of 64 columns, W 32 x 64."""
    builder = fp4.Builder()
    f = builder.function("linear")
    x, w = f.argument("x", ("M", 64)), f.argument("w", (32, 64))
    has_amax = fmt == "nvfp4"
    qx, qw = (f.quantize(v, fmt, amax=f.amax(v) if has_amax else None, layout=TILED)
              for v in (x, w))
    alpha = f.matmul_alpha(qx, qw) if has_amax else None
    f.returns(y=f.matmul(qx, qw, alpha=alpha, epilogue=["relu"]))
    return builder


def quantizers() -> fp4.Builder:
    """A function for each operation, or for several."""
    builder = fp4.Builder()
    f = builder.function("lines")
    x = f.argument("x", (32, 64))
    f.returns(rows=f.amax(x, per_row=True), columns=f.amax(x, nan="propagate", per_column=True))
    f = builder.function("transform")
    x = f.argument("x", (32, 64))
    before, after = f.hadamard_amax(x, fp4.Hadamard(size=32), dimension=0)
    f.returns(f.hadamard(x, fp4.Hadamard(size=32), dimension=0), before, after)
    f = builder.function("columnwise")
    x, rng = f.argument("x", (32, 64)), f.argument("rng", (2,), "i64")
    q = f.quantize(x, amax=f.argument("a", (), "f32"), columnwise=True, rng=rng,
                   hadamard=fp4.Hadamard(arithmetic="tensor_core"))
    f.returns(q=q)
    f = builder.function("both")
    x = f.argument("x", (32, 64))
    a = f.amax(x)
    f.returns(*f.quantize_both(x, amax=a, block=(16, 16), recipe="transformer_engine"))
    f = builder.function("rows")
    x = f.argument("x", (32, 64))
    q = f.quantize(x, amax=f.amax(x, per_row=True), layout=TILED, per_row=True)
    y = f.matmul(q, q2 := f.quantize(x, amax=f.amax(x), layout=TILED),
                 alpha=f.matmul_alpha(q, q2), element="f32")
    f.returns(x=f.dequantize(f.unswizzle_scales(q), "f32", per_row=True), y=y)
    f = builder.function("experts")
    x, w, o = f.argument("x", (32, 64)), f.argument("w", (64, 64)), f.argument("o", (3,), "i64")
    q = f.quantize(x, amax=f.amax(x, offsets=o), layout=TILED, offsets=o)
    qw = f.quantize(w, amax=f.amax(w, groups=[32, 32]), layout=TILED, groups=[32, 32])
    y = f.matmul(q, qw, alpha=f.matmul_alpha(q, qw, per_group=True), offsets=o)
    again = f.swizzle_scales(f.quantize(x, amax=q.amax, offsets=o), offsets=o)
    f.returns(y=y, tiles=again.scales, first=q.scales)
    f = builder.function("swizzled")
    s = f.argument("s", ("M", 4), "f8E4M3FN")
    d = f.argument("d", ("M", 64), "f4E2M1FN")
    f.returns(f.swizzle_scales(f.scaled(d, s)).scales)
    return builder


class Text(unittest.TestCase):
    def test_the_text_of_a_function(self) -> None:
        builder = fp4.Builder()
        f = builder.function("f")
        x = f.argument("x", ("M", 32), "bf16")
        q = f.quantize(x, "mxfp4", recipe="ocp_ceil")
        f.returns(q=q)
        expected = """
func.func @f(%x: tensor<?x32xbf16> {fp4.name = "x", fp4.dims = ["M", ""]})
    -> (tensor<?x32xf4E2M1FN> {fp4.name = "q"}, tensor<?x1xf8E8M0FNU> {fp4.name = "q_scales"}) {
  %1, %2 = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_ceil>} :
 (tensor<?x32xbf16>) -> (tensor<?x32xf4E2M1FN>, tensor<?x1xf8E8M0FNU>)
  return %1, %2 : tensor<?x32xf4E2M1FN>, tensor<?x1xf8E8M0FNU>
}
"""
        self.assertEqual(str(builder), expected.lstrip("\n").replace(":\n (", ": ("))
        parsed = fp4.compile(builder).ir("parsed")
        self.assertEqual(parsed, fp4.compile(str(builder)).ir("parsed"))

    def test_names_may_have_any_characters(self) -> None:
        builder = fp4.Builder()
        f = builder.function('say "ä\\"')
        names = ['"', "%0", "a b", "0", "x", "ä\n", "}"]
        f.returns(*(f.amax(f.argument(name, ("M\"", 32))) for name in names))
        function = fp4.compile(builder).manifest.find('say "ä\\"')
        self.assertEqual([argument.name for argument in function.arguments], names)
        self.assertEqual(function.arguments[0].dims, ('M"', ""))

    def test_the_formats_are_those_of_the_numerics(self) -> None:
        folder = ROOT / "include" / "fp4" / "Numerics"
        formats = re.findall(r"^FP4_FORMAT\(\w+, (\w+), (\w+), (\d+), (\w+)\)",
                             (folder / "Formats.def").read_text(), re.M)
        recipes = dict(reversed(re.findall(r"^FP4_RECIPE\((\w+), (\w+),",
                                           (folder / "Recipes.def").read_text(), re.M)))
        first = {name.lower().replace("_", ""): recipe for recipe, name in recipes.items()}
        self.assertEqual({name: (f"f{data}", f"f{scales}", int(block))
                          for name, data, block, scales in formats},
                         {name: (f.data, f.scales, f.block) for name, f in FORMATS.items()})
        self.assertEqual({name.replace("_", ""): f.recipe for name, f in FORMATS.items()}, first)


class Run(unittest.TestCase):
    def test_a_gemm_equals_that_of_text(self) -> None:
        builder = fp4.Builder()
        f = builder.function("product")
        x, sx = f.argument("x", ("M", 64), "f4E2M1FN"), f.argument("sx", ("M", 4), "f8E4M3FN",
                                                                   TILED)
        w, sw = f.argument("w", (32, 64), "f4E2M1FN"), f.argument("sw", (32, 4), "f8E4M3FN", TILED)
        f.returns(f.matmul(f.scaled(x, sx), f.scaled(w, sw), element="f32",
                                       alpha=f.argument("alpha", (), "f32")))
        arguments = operands()
        np.testing.assert_array_equal(fp4.compile(builder)(*arguments, verify=True),
                                      compiled(product())(*arguments))

    def test_a_linear_layer(self) -> None:
        for fmt in ("nvfp4", "mxfp4"):
            with self.subTest(fmt):
                y = fp4.compile(linear(fmt))(matrix(5), matrix(32, seed=2), verify=True)
                bits = np.asarray(y).view(np.uint16)
                self.assertEqual(bits.shape, (5, 32))
                self.assertTrue(bits.any())
                self.assertFalse((bits >> 15).any(), "relu leaves no sign")

    def test_every_operation(self) -> None:
        program = fp4.compile(quantizers())
        x, rng = matrix(32), np.array([7, 0], np.int64)
        rest: dict[str, tuple[Any, ...]] = {
            "lines": (x,), "transform": (x,), "columnwise": (x, rng, np.float32(3)), "both": (x,),
            "rows": (x,), "experts": (x, matrix(64, seed=3), np.array([1, 20, 30])),
            "swizzled": (np.zeros((32, 4), np.uint8), np.zeros((32, 32), np.uint8))}
        shapes = {"lines": [(32,), (64,)], "transform": [(32, 64), (), ()],
                  "columnwise": [(64, 16), (64, 2)], "rows": [(32, 64), (32, 32)],
                  "experts": [(32, 32), (2, 1, 512), (2, 1, 512)],
                  "both": [(32, 32), (32, 4), (64, 16), (64, 2)], "swizzled": [(1, 1, 512)]}
        for name, arguments in rest.items():
            with self.subTest(name):
                results = program(*arguments, function=name, verify=True)
                results = results if isinstance(results, tuple) else (results,)
                self.assertEqual([np.shape(result) for result in results], shapes[name])
        self.assertEqual(set(rest), set(program.manifest.functions))


class Refused(unittest.TestCase):
    def test_a_diagnostic_has_the_line_of_python(self) -> None:
        builder = fp4.Builder()
        f = builder.function("f")
        q = f.quantize(f.argument("x", (4, 64)))  # without the amax that nvfp4 needs
        f.returns(q)
        with self.assertRaisesRegex(fp4.CompileError, "amax") as caught:
            fp4.compile(builder)
        lines = pathlib.Path(__file__).read_text().split("\n")
        line = next(number for number, text in enumerate(lines, 1)
                    if text.endswith("  # without the amax that nvfp4 needs"))
        self.assertEqual(caught.exception.location, (__file__, line, 1))

    def test_the_former_name_of_a_matmul(self) -> None:
        builder = fp4.Builder()
        f = builder.function("former")
        x = f.quantize(f.argument("x", (8, 128)), "mxfp4", layout=TILED)
        with self.assertWarnsRegex(DeprecationWarning, "is now FunctionBuilder.matmul"):
            f.returns(f.blockscaled_matmul(x, x))
        self.assertIn("fp4.matmul", builder.text())

    def test_operands_of_two_formats(self) -> None:
        builder = fp4.Builder()
        f = builder.function("mixed")
        x, w = f.argument("x", (4, 128)), f.argument("w", (8, 128))
        activations = f.quantize(x, "mxfp8_e4m3", layout=TILED)
        f.returns(f.matmul(activations, f.quantize(w, "mxfp4", layout=TILED)))
        self.assertIn("fp4.scaled<mxfp4, tensor<8x128xf4E2M1FN>",
                      f.text())
        fp4.compile(builder)

    def test_operands_that_no_instruction_has(self) -> None:
        builder = fp4.Builder()
        f = builder.function("mixed")
        x, w = f.argument("x", (4, 128)), f.argument("w", (8, 128))
        weights = f.quantize(w, "nvfp4", amax=f.amax(w), layout=TILED)
        alpha = f.argument("alpha", (), "f32")
        f.returns(f.matmul(f.quantize(x, "mxfp4", layout=TILED), weights, alpha=alpha))
        with self.assertRaisesRegex(fp4.CompileError,
                                    "no route multiplies a lhs of mxfp4 and a rhs of nvfp4"):
            fp4.compile(builder)

    def test_what_the_builder_refuses(self) -> None:
        builder, other = fp4.Builder(), fp4.Builder().function("other")
        f = builder.function("f")
        x, v = f.argument("x", (4, 64)), f.argument("v", (64,), "f32")
        y = other.argument("y", (4, 64))
        linear_scales = f.quantize(x, amax=f.amax(x))
        tiled = f.swizzle_scales(linear_scales)
        mx = f.quantize(x, "mxfp4", layout=TILED)
        usage: dict[str, Any] = {
            "name of a function must be a new one": lambda: builder.function("f"),
            "name of an argument must be a new one": lambda: f.argument("x", (1, 2)),
            "must be Unicode": lambda: f.argument("\ud800", (1, 2)),
            "size of 'z' must be positive": lambda: f.argument("z", (0, 2)),
            "a number or a name": lambda: f.argument("z", ("", 2)),
            "must have 64 bits": lambda: f.argument("z", (2**70, 2)),
            "unknown element 'bf17'": lambda: f.argument("z", (1, 2), "bf17"),
            "unknown layout": lambda: f.argument("z", (1, 2), "bf16", "tiled"),
            "unknown format 'fp4'": lambda: f.quantize(x, "fp4"),
            "'recipe' must be a name": lambda: f.quantize(x, recipe="a> }"),
            "'nan' must be a word": lambda: f.amax(x, nan="drop>"),
            "'input' must be a matrix": lambda: f.amax(v),
            "value of function 'f', but is one of 'other'": lambda: f.amax(y),
            "scales in the layout tiled_128x4": lambda: f.matmul(linear_scales, tiled),
            "must have an alpha": lambda: f.matmul(tiled, tiled),
            "must have an amax": lambda: f.matmul_alpha(tiled, mx),
            "'rounding' must be bf16 here": lambda: f.hadamard(x, fp4.Hadamard(rounding="none")),
            "must return before": lambda: fp4.compile(builder),
            "must have a function": lambda: fp4.compile(fp4.Builder()),
        }
        for message, wrong in usage.items():
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                wrong()
        f.returns(x)
        with self.assertRaisesRegex(fp4.UsageError, "has returned"):
            f.amax(x)
        fp4.compile(builder)  # what was refused left nothing behind

    def test_what_is_of_a_wrong_type(self) -> None:
        f = fp4.Builder().function("f")
        x = f.argument("x", (4, 64))
        with self.assertRaisesRegex(TypeError, "a size of 'z' must be an int, but got float"):
            f.argument("z", (1.5, 2))  # type: ignore[arg-type]
        wrong: list[Any] = [
            lambda: f.argument(3, (1, 2)),  # type: ignore[arg-type]
            lambda: f.argument("z", "MK"),
            lambda: f.argument("z", (1.5, 2)),  # type: ignore[arg-type]
            lambda: f.amax(matrix()),
            lambda: f.amax(f.quantize(x)),  # type: ignore[arg-type]
            lambda: f.dequantize(x),  # type: ignore[arg-type]
            lambda: f.quantize(x, per_row=1),  # type: ignore[arg-type]
            lambda: f.quantize(x, hadamard=16),  # type: ignore[arg-type]
            lambda: f.quantize(x, block=16),  # type: ignore[arg-type]
            lambda: f.matmul(x, x),  # type: ignore[arg-type]
            lambda: f.returns(3),  # type: ignore[arg-type]
        ]
        for case, call in enumerate(wrong):
            with self.subTest(case), self.assertRaises(TypeError):
                call()


if __name__ == "__main__":
    unittest.main()
