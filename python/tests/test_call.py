"""Calls with NumPy arrays and DLPack objects, in the simulator."""

import json
import pathlib
import tempfile
import threading
import unittest
from typing import Any

import fp4
import numpy as np
from fp4.program import _Call, require_names
from fp4.tensors import view
from programs import QUANTIZE, bf16_bits, compiled, floats, matrix, ml_dtypes, operands, product


class Exporter:
    """An array of a package that nobody knows."""

    def __init__(self, array: Any, device: int = 1) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> "tuple[int, int]":
        return self.device, 0


class Calls(unittest.TestCase):
    def test_results_are_right_and_numpy(self) -> None:
        x = matrix(130)
        amax = compiled()(x, function="amax", verify=True)
        self.assertIsInstance(amax, np.ndarray)
        self.assertEqual((amax.dtype, amax.shape), (np.dtype(np.float32), ()))
        self.assertEqual(amax, np.abs(floats(x)).max())
        q, s = compiled()(x, amax, function="linear", verify=True)
        self.assertEqual((q.dtype, q.shape, s.shape), (np.dtype(np.uint8), (130, 32), (130, 4)))
        self.assertEqual(s.dtype, np.dtype(ml_dtypes.float8_e4m3fn if ml_dtypes else np.uint8))
        y = compiled()(q, s, amax, function="dequantize", verify=True)
        self.assertEqual(y.dtype, np.dtype(ml_dtypes.bfloat16 if ml_dtypes else np.uint16))
        self.assertLess(np.abs(floats(y) - floats(x)).max(), amax / 6)

    def test_a_call_finds_nothing_of_the_one_before(self) -> None:
        x = floats(matrix(2000))
        for rows, factor in ((2000, 4), (2000, 1), (1, 0.5), (700, 0.25)):
            part = bf16_bits(x[:rows] * factor)
            amax = compiled()(part, function="amax", verify=True)
            self.assertEqual(amax, np.abs(floats(part)).max())

    def test_arguments_have_no_names(self) -> None:
        expected = r"a call of amax\(.* in their order, but got 'x' by"
        with self.assertRaisesRegex(TypeError, expected):
            compiled()(x=matrix(), function="amax")

    def test_tiled_scales(self) -> None:
        x = matrix(130)
        amax = compiled()(x, function="amax")
        q, linear = compiled()(x, amax, function="linear")
        same, s = compiled()(x, amax, function="tiled", verify=True)
        np.testing.assert_array_equal(q, same)
        self.assertEqual(s.shape, (2, 1, 512))
        rows, blocks = np.mgrid[:130, :4]  # the layout of docs/reference/fp4-attributes.md
        places = rows // 128 * 512 + rows % 32 * 16 + rows % 128 // 32 * 4 + blocks
        np.testing.assert_array_equal(s.reshape(-1).view(np.uint8)[places], linear.view(np.uint8))

    def test_a_gemm_takes_tiled_scales_in_every_form(self) -> None:
        qx, sx, qw, sw, alpha = operands()
        for text in (product(), product(rows="130", dims="")):
            program = compiled(text)
            y = program(qx, sx, qw, sw, alpha, verify=True)
            self.assertEqual((y.dtype, y.shape), (np.dtype(np.float32), (130, 32)))
            for scales in (sx.reshape(-1), sx.view(np.uint8), fp4.tiled(sx, 130, 4)):
                again = program(qx, scales, qw, sw, alpha)
                np.testing.assert_array_equal(y, again)
        unnamed = compiled(product(dims=""))
        with self.assertRaisesRegex(fp4.UsageError, "'sx' .* its buffer does not tell its rows"):
            unnamed(qx, sx, qw, sw, alpha)
        again = unnamed(qx, fp4.tiled(sx, 130, 4), qw, sw, alpha, verify=True)
        np.testing.assert_array_equal(y, again)

    def test_scales_that_could_be_linear_are_refused(self) -> None:
        qx, sx, qw, sw, alpha = operands()
        program = compiled(product())
        for wrong, message in (
                (sx.reshape(256, 4), r"tiled scales of shape \[2, 1, 512\] or \[1024\]"),
                (sx[:1], r"but got numpy \w+\[1, 1, 512\]"),
                (fp4.tiled(sx, 129, 4), "must have 130 for dimension 'M'"),
                (fp4.tiled(sx, 130, 8), "must be .x4xf8E4M3FN, tiled_128x4, but got .* 130x8"),
                (fp4.tiled(sx.view(np.int8), 130, 4), "numpy int8")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                program(qx, wrong, qw, sw, alpha)
        with self.assertRaisesRegex(fp4.UsageError, "has the layout linear, but got a tiled"):
            program(fp4.tiled(qx, 130, 32), sx, qw, sw, alpha)

    def test_sizes_that_disagree(self) -> None:
        x = matrix(130)
        amax = compiled()(x, function="amax")
        q, s = compiled()(x, amax, function="linear")
        with self.assertRaisesRegex(fp4.UsageError, "'s' must have 130 for dimension 'M', as"):
            compiled()(q, s[:129], amax, function="dequantize")
        nameless = QUANTIZE.replace(', fp4.dims = ["M", "K"]', "")
        unnamed = compiled(nameless.replace(', fp4.dims = ["M", "K/16"]', ""))
        with self.assertRaisesRegex(fp4.UsageError, "'fp4.dequantize' must have as many rows"):
            unnamed(q, s[:32], amax, function="dequantize")
        for program in (compiled(), unnamed):
            require_names(program.manifest.functions["linear"])  # only one size is dynamic
        require_names(compiled().manifest.functions["dequantize"])
        with self.assertRaisesRegex(fp4.UsageError, "'q' must name its dynamic sizes on a GPU"):
            require_names(unnamed.manifest.functions["dequantize"])

    def test_any_dlpack_object(self) -> None:
        def program(array: Any, verify: bool = False) -> Any:
            return compiled()(array, function="amax", verify=verify)

        x = matrix()  # NumPy exports the bits of bf16 as uint16
        self.assertEqual(program(Exporter(x), verify=True), program(x))
        with self.assertRaisesRegex(fp4.UsageError, "must be contiguous"):
            program(Exporter(np.zeros((64, 64), x.dtype).T))
        with self.assertRaisesRegex(fp4.UsageError, "is on DLPack device 7\nnote: copy it"):
            program(Exporter(x, device=7))
        with self.assertRaisesRegex(fp4.UsageError, "but got numpy float64"):
            program(x.astype(np.float64))
        with self.assertRaisesRegex(fp4.UsageError, r"DLPack\(code 2, bits 64, lanes 1\)"):
            program(Exporter(x.astype(np.float64)))

    def test_results_in_arrays_of_the_caller(self) -> None:
        x = matrix()
        amax = compiled()(x, function="amax")
        expected = compiled()(x, amax, function="tiled")
        out = np.zeros((3, 32), np.uint8), np.zeros(512, np.uint8)
        self.assertIs(compiled()(x, amax, function="tiled", out=out, verify=True), out)
        for one, right in zip(out, expected):
            np.testing.assert_array_equal(one, right.view(np.uint8).reshape(one.shape))
        constant = np.zeros((3, 32), np.uint8)
        constant.flags.writeable = False
        for wrong, message in (((constant, out[1]), "can be written, which this ndarray cannot"),
                               ((Exporter(out[0]), out[1]), "written, which this Exporter cannot"),
                               ((out[0], x), "must be 3x4xf8E4M3FN, tiled_128x4 .* numpy uint16"),
                               ((out[0], out[1][:-1]), r"an array of shape \[1, 1, 512\], but")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                compiled()(x, amax, function="tiled", out=wrong)
        with self.assertRaisesRegex(fp4.UsageError, "can be written, which this float32 cannot"):
            compiled()(x, function="amax", out=np.float32(0))

    def test_a_wrong_result_is_a_mismatch(self) -> None:
        program, x = compiled().program(), matrix()
        function = program.manifest.find("amax")
        executable = program._code.on(fp4.Device("sim"))

        class Wrong(_Call):
            def issue(self, verify: bool, options: Any = None) -> None:
                super().issue(False)
                bad = np.float32(1000)
                self.library.fp4_device_copy_to(executable.device.handle, self.results[0].address,
                                                bad.ctypes.data if hasattr(bad, "ctypes")
                                                else np.asarray(bad).ctypes.data, 4)
                self.library.fp4_executable_verify(executable.handle, self.name, *self.operands)

        from fp4.program import arguments_of

        views = [view(x, "x")]
        with self.assertRaisesRegex(fp4.MismatchError, "result 'r0' differs .* 1 of 1 elements"):
            Wrong(executable, function, arguments_of(function, views), views, "numpy").on_host(True)

    def test_threads_share_a_program(self) -> None:
        program, x = compiled().program(), matrix(130)
        expected, found = program(x, function="amax"), []

        def work() -> None:
            found.extend(program(x, function="amax") for _ in range(5))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 20)


class Devices(unittest.TestCase):
    def test_policies_give_the_same_bits(self) -> None:
        qx, sx, qw, sw, alpha = operands()
        program = compiled(product()).program()
        expected = program(qx, sx, qw, sw, alpha)
        for options in ({"policy": "lazy"}, {"policy": "random", "seed": 7}, {"policy": "delay"},
                        {"check": "strict"}, {"check": "off", "threads": 1}):
            with self.subTest(**options), fp4.Device("sim", **options) as device:  # type: ignore
                y = program.on(device)(qx, sx, qw, sw, alpha, verify=True)
                np.testing.assert_array_equal(y, expected)

    def test_a_closed_device(self) -> None:
        device = fp4.Device("sim", target="sm_90a")
        self.assertEqual((device.selector, device.name, device.is_hardware),
                         ("sim", "simulator", False))
        device.synchronize()
        program = compiled().program(device)
        device.close()
        device.close()
        with self.assertRaisesRegex(fp4.UsageError, "the device is closed"):
            program(matrix(), function="amax")
        with self.assertRaisesRegex(fp4.UsageError, "the device is closed"):
            device.synchronize()

    def test_the_timeline_is_a_trace(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            with fp4.Device("sim", timeline=path) as device:
                compiled().program(device)(matrix(), function="amax")
            names = {event.get("name") for event in json.loads(path.read_text())}
            self.assertIn("barrier.cta arrive", names)
            with self.assertRaisesRegex(fp4.UsageError, "cannot write"):
                fp4.Device("sim", timeline=pathlib.Path(folder) / "none" / "x.json")


if __name__ == "__main__":
    unittest.main()
