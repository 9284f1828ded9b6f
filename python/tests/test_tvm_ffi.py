"""fp4.tvm_ffi: functions of emitted libraries as functions of apache-tvm-ffi, on the CPU through
the simulator.

    pip install apache-tvm-ffi
"""

import pathlib
import tempfile
import threading
import unittest
from typing import Any

import fp4
import numpy as np
from programs import QUANTIZE, compiled, matrix, operands, optional, product, torch

tvm_ffi: Any = optional("tvm_ffi")
if tvm_ffi is not None:
    import fp4.tvm_ffi

STRIDED = """
func.func @amax(%x: tensor<?x64xbf16> {fp4.name = "x", fp4.strided}) -> tensor<f32> {
  %a = fp4.amax %x : tensor<?x64xbf16> -> tensor<f32>
  return %a : tensor<f32>
}
"""


@unittest.skipIf(tvm_ffi is None, "apache-tvm-ffi is not installed")
class TvmFfi(unittest.TestCase):
    def load(self, text: str = QUANTIZE, prefix: str = "fp4.") -> "dict[str, Any]":
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "library.so")
            compiled(text).save(path)
            return fp4.tvm_ffi.load(path, prefix)

    def amax(self, x: Any) -> Any:
        return compiled()(x, function="amax")

    def test_results_are_those_of_a_program(self) -> None:
        functions, x = self.load(prefix="test.results."), matrix(5)
        self.assertEqual(set(functions), {"amax", "linear", "tiled", "dequantize"})
        q, s = np.zeros((5, 32), np.uint8), np.zeros((5, 4), np.uint8)
        self.assertIsNone(functions["linear"](x, self.amax(x), q, s))
        for got, expected in zip((q, s), compiled()(x, self.amax(x), function="linear")):
            self.assertEqual(got.tobytes(), np.asarray(expected).tobytes())

    def test_functions_are_global(self) -> None:
        self.load(prefix="test.global.")
        x, a = matrix(3), np.zeros((), np.float32)
        tvm_ffi.get_global_func("test.global.amax")(tvm_ffi.from_dlpack(x),
                                                    tvm_ffi.from_dlpack(a))
        self.assertEqual(a, self.amax(x))

    def test_tiled_scales_and_names(self) -> None:
        values = operands()
        y = np.zeros((130, 32), np.float32)
        bits = [np.asarray(one) for one in values]  # NumPy exports its own dtypes alone
        bits = [one.view(np.uint8) if one.itemsize == 1 else one for one in bits]
        self.load(product(), "test.tiled.")["product"](*bits, y)
        expected = compiled(product())(values[0], fp4.tiled(values[1], 130, 4), *values[2:])
        self.assertEqual(y.tobytes(), expected.tobytes())

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_tensors_of_torch_and_rows_with_gaps(self) -> None:
        x = torch.from_numpy(matrix(6, 128).view(np.int16)).view(torch.bfloat16)
        a = torch.zeros(())
        strided = self.load(STRIDED, "test.strided.")["amax"]
        strided(x[:, 64:], a)
        self.assertEqual(a.item(), x[:, 64:].abs().max().item())
        with self.assertRaisesRegex(ValueError, "argument 'x' must be contiguous"):
            self.load(prefix="test.dense.")["amax"](x[:, 64:], a)

    def test_rows_backwards_are_refused(self) -> None:
        strided, a = self.load(STRIDED, "test.backwards.")["amax"], np.zeros((), np.float32)
        strided(matrix(6)[::2], a)
        with self.assertRaisesRegex(ValueError, r"argument 'x' must have strides of at least 0, "
                                    r"but they are \[-64, 1\]"):
            strided(matrix(6)[::-1], a)

    def test_results_that_overlap_are_refused(self) -> None:
        functions, memory = self.load(prefix="test.overlap."), np.zeros(1024, np.uint8)
        x, a, s = matrix(4), np.float32([1]).reshape(()), np.zeros((4, 4), np.uint8)

        def refuses(other: str, *arrays: Any) -> None:
            with self.assertRaisesRegex(ValueError, f"(?s)result '.*' must have memory of its own, "
                                        f"but overlaps {other}"):
                functions["linear"](*arrays)

        memory[:512] = x.view(np.uint8).reshape(-1)
        x = memory[:512].view(np.uint16).reshape(4, 64)
        refuses("argument 'x'", x, a, memory[448:576].reshape(4, 32), s)
        refuses("result '.*'", x, a, memory[512:640].reshape(4, 32), memory[624:640].reshape(4, 4))
        q = memory[512:640].reshape(4, 32)
        functions["linear"](x, a, q, memory[640:656].reshape(4, 4))
        self.assertEqual(q.tobytes(), np.asarray(
            compiled()(x, a, function="linear")[0]).tobytes())

    def test_threads_share_a_function(self) -> None:
        function = self.load(prefix="test.threads.")["amax"]
        inputs = [matrix(3, seed=seed) for seed in range(4)]
        outputs = [np.zeros((), np.float32) for _ in inputs]
        threads = [threading.Thread(target=function, args=pair) for pair in zip(inputs, outputs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(outputs, [self.amax(x) for x in inputs])

    def test_a_library_that_is_loaded_again_takes_the_name(self) -> None:
        first = self.load(prefix="test.again.")["amax"]
        second = self.load(prefix="test.again.")["amax"]
        for function in (first, second):
            a = np.zeros((), np.float32)
            function(matrix(3), a)
            self.assertEqual(a, self.amax(matrix(3)))

    def test_tensors_that_do_not_fit(self) -> None:
        functions, x, a = self.load(prefix="test.wrong."), matrix(5), np.zeros((), np.float32)

        def refuses(message: str, *arguments: Any) -> None:
            with self.assertRaisesRegex(ValueError, message):
                functions["amax"](*arguments)

        refuses(r"(?s)'amax' expects 2 tensors, but got 1.*1 arguments, and then", x)
        refuses(r"operand 1 of 'amax' must be a tensor, but is of type 1", x, 3)
        refuses(r"argument 'x' must be \?x64xbf16 \(bfloat16 or uint16\), but got float32\[5, 64\]",
                x.astype(np.float32), a)
        refuses(r"argument 'x' must be \?x64xbf16, a tensor of shape \[-1, 64\], but got "
                r"uint16\[5, 32\]", np.ascontiguousarray(x[:, :32]), a)
        refuses(r"result '.*' must be f32, a tensor of shape \[\], but got float32\[2\]", x,
                np.zeros(2, np.float32))
        self.assertEqual(a, 0)
        functions["amax"](x, a)
        self.assertEqual(a, self.amax(x))


if __name__ == "__main__":
    unittest.main()
