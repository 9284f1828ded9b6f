"""Arguments whose rows have gaps between them (fp4.strided), in the simulator."""

import unittest
from typing import Any

import fp4
import numpy as np
from programs import compiled, matrix, operands, product

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

SLICE = """
func.func @quantize(%x: tensor<?x64xbf16> {fp4.name = "x", fp4.strided})
    -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<f32>) {
  %a = fp4.amax %x : tensor<?x64xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xbf16>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  return %q, %s, %a : tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<f32>
}
func.func @heads(%x: tensor<4x8x32xbf16> {fp4.name = "x", fp4.strided}) -> tensor<32xf32> {
  %m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<4x8x32xbf16> into tensor<32x32xbf16>
  %a = fp4.amax %m {per_row} : tensor<32x32xbf16> -> tensor<32xf32>
  return %a : tensor<32xf32>
}
"""


PLACED = """
func.func @f(%x: tensor<?x32xbf16>) -> (tensor<?x32xbf16> {fp4.strided},
    tensor<?x32xbf16> {fp4.strided}, tensor<?x32xbf16> {fp4.strided}) {
  %a = fp4.hadamard %x {size = 16 : i64, dimension = 1 : i64}
      : tensor<?x32xbf16> -> tensor<?x32xbf16>
  %b = fp4.hadamard %a {size = 16 : i64, dimension = 1 : i64}
      : tensor<?x32xbf16> -> tensor<?x32xbf16>
  %c = fp4.hadamard %b {size = 16 : i64, dimension = 1 : i64}
      : tensor<?x32xbf16> -> tensor<?x32xbf16>
  return %a, %b, %c : tensor<?x32xbf16>, tensor<?x32xbf16>, tensor<?x32xbf16>
}
"""


class Strided(unittest.TestCase):
    def test_a_slice_of_columns(self) -> None:
        whole = matrix(37, 160)
        for begin in (0, 8, 96):
            part = whole[:, begin:begin + 64]
            self.assertFalse(part.flags.c_contiguous)
            found = compiled(SLICE)(part, function="quantize", verify=True)
            dense = compiled(SLICE)(part.copy(), function="quantize", verify=True)
            for one, other in zip(found, dense):
                self.assertEqual(one.tobytes(), other.tobytes())

    def test_other_strides_and_then_none(self) -> None:
        for columns in (160, 72, 64, 80, 160):
            part = matrix(5, columns, seed=columns)[:, :64]
            compiled(SLICE)(part, function="quantize", verify=True)

    def test_one_row(self) -> None:
        compiled(SLICE)(matrix(1, 71)[:, :64], function="quantize", verify=True)

    def test_interleaved_heads(self) -> None:
        tokens = matrix(8, 4 * 32).reshape(8, 4, 32)
        compiled(SLICE)(tokens.transpose(1, 0, 2), function="heads", verify=True)

    def test_packed_codes(self) -> None:
        text = product().replace('fp4.name = "x"', 'fp4.name = "x", fp4.strided')
        q, s, w, sw, alpha = operands()
        wide = np.full((130, 48), 0x55, np.uint8)
        wide[:, :32] = q.view(np.uint8)
        y = compiled(text)(wide[:, :32], s, w, sw, alpha, verify=True)
        np.testing.assert_array_equal(y, compiled(product())(q, s, w, sw, alpha))

    def test_the_checker_sees_the_gaps(self) -> None:
        with fp4.Device("sim", check="strict") as device:
            program = compiled(SLICE).program(device)
            program(matrix(37, 160)[:, 8:72], function="quantize", verify=True)

    def test_strides_that_do_not_fit(self) -> None:
        def refuse(array: Any, message: str, text: str = SLICE) -> None:
            with self.assertRaisesRegex(fp4.UsageError, message):
                compiled(text)(array, function="quantize")

        wide = matrix(6, 160)
        refuse(wide[:, :128:2], "'x' must have rows of adjacent elements")
        refuse(wide[::-1, :64], r"'x' must have rows of adjacent elements at ascending addresses, "
               r"but its strides of shape \[6, 64\] are \[-160, 1\]\nnote: no copy is made; pass")
        compiled(SLICE)(wide[:0, :64], function="quantize", verify=True)
        refuse(matrix(6, 68)[:, :64], r"'x': strides of 6x64xbf16 must be multiples of 16 bytes, "
               r"but got \(68, 1\)\nnote: pass a copy, or a slice of a tensor whose rows are pad")
        overlapping = np.lib.stride_tricks.as_strided(wide, (6, 64), (64, 2))
        refuse(overlapping, "must be at least as long as a row")
        refuse(wide[:, :64], "must be contiguous(.|\n)*An argument with fp4.strided takes rows",
               SLICE.replace(", fp4.strided", ""))

    def test_results_beside_each_other(self) -> None:
        x = matrix(37, 32)
        dense = compiled(PLACED)(x)
        whole = np.full((37, 3 * 32 + 8), 7, dense[0].dtype)
        parts = tuple(whole[:, i * 32:(i + 1) * 32] for i in range(3))
        for _ in range(2):
            out = compiled(PLACED)(x, out=parts, verify=True)
            self.assertIs(out, parts)
        for part, values in zip(parts, dense):
            np.testing.assert_array_equal(part, values)
        self.assertTrue((whole[:, 96:] == whole[0, 96]).all())

    def test_results_that_do_not_fit(self) -> None:
        def refuse(parts: Any, message: str, text: str = PLACED) -> None:
            with self.assertRaisesRegex(fp4.UsageError, message):
                compiled(text)(matrix(5, 32), out=parts)

        dtype = compiled(PLACED)(matrix(5, 32))[0].dtype
        whole = np.zeros((5, 160), dtype)
        refuse((whole[:, :32], whole[:, 24:56], whole[:, 64:96]), "must have memory of its own")
        odd = np.zeros((5, 36), dtype)
        apart = np.zeros((5, 96), dtype)
        refuse((odd[:, :32], apart[:, :32], apart[:, 32:64]), "must be multiples of 16 bytes")
        refuse((apart[:, :64:2], apart[:, 64:], np.zeros((5, 32), dtype)),
               "must have rows of adjacent elements")
        refuse((whole[:, :32], whole[:, 32:64], whole[:, 64:96]), "must be contiguous",
               PLACED.replace(" {fp4.strided}", ""))

    def test_the_builder(self) -> None:
        builder = fp4.Builder()
        f = builder.function("f")
        f.returns(a=f.amax(f.argument("x", ["M", 64], strided=True)))
        self.assertIn("fp4.strided", builder.text())
        part = matrix(9, 80)[:, 8:72]
        self.assertEqual(compiled(builder.text())(part), compiled(builder.text())(part.copy()))

    @unittest.skipIf(torch is None, "needs torch")
    def test_tensors_of_torch(self) -> None:
        whole = torch.from_numpy(matrix(37, 160).view(np.int16)).view(torch.bfloat16)
        program = compiled(SLICE)
        for part in 2 * (whole[:, 8:72], whole[:, 96:], whole[:30, 8:72], whole[::2, 8:72][:15]):
            found = program(part, function="quantize")  # the second time by a plan
            dense = program(part.contiguous(), function="quantize", verify=True)
            for one, other in zip(found[:2], dense):
                self.assertTrue(torch.equal(one.view(torch.uint8), other.view(torch.uint8)))


if __name__ == "__main__":
    unittest.main()
