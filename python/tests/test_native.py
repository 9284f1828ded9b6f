"""Calls that take the native module: their plans, what they still refuse, and their lifetimes."""

import gc
import os
import subprocess
import sys
import threading
import unittest
from typing import Any
from unittest import mock

import fp4
import numpy as np
from fp4 import _calls
from programs import QUANTIZE, compiled, matrix, torch

HAS_PLANS = torch is not None and _calls._accept(torch)
WHY = "there is no native module, or no torch with the exchange API of DLPack"


def values(rows: int = 3, seed: int = 1) -> Any:
    return torch.from_numpy(matrix(rows, seed=seed).view(np.int16)).view(torch.bfloat16)


def unplanned() -> Any:
    """Fails where a call is checked in Python."""
    return mock.patch.object(fp4.Program, "_call", side_effect=AssertionError("no plan"))


@unittest.skipUnless(HAS_PLANS, WHY)
class Plans(unittest.TestCase):
    def setUp(self) -> None:
        self.program = fp4.Program(compiled().program()._code)  # without plans
        self.x, self.amax = values(), torch.tensor(3.0)

    def test_the_second_call_with_such_tensors_runs_no_python(self) -> None:
        expected = self.program(self.x, self.amax, function="linear", verify=True)
        other = values(seed=2)
        with unplanned():
            found = self.program(self.x.clone(), self.amax, function="linear")
            changed = self.program(other, self.amax, function="linear")
        self.assertTrue(all(same(*pair) for pair in zip(expected, found)))
        again = self.program(other, self.amax, function="linear", verify=True)
        self.assertTrue(all(same(*pair) for pair in zip(again, changed)))

    def test_plans_are_for_a_function_and_for_types_and_shapes(self) -> None:
        self.program(self.x, self.amax, function="linear")
        for tensors, function in (((values(4), self.amax), "linear"),
                                  ((self.x, self.amax), "tiled"),
                                  ((self.x,), "amax"),
                                  ((self.x.view(torch.uint16), self.amax), "linear"),
                                  ((self.x, self.amax.reshape(1)), "linear")):
            with self.subTest(function), unplanned(), self.assertRaisesRegex(Exception, "no plan"):
                self.program(*tensors, function=function)

    def test_uint8_that_stands_for_other_types(self) -> None:
        q, s = self.program(self.x, self.amax, function="linear")
        expected = self.program(q, s, self.amax, function="dequantize")
        self.program(q.view(torch.uint8), s.view(torch.uint8), self.amax, function="dequantize")
        with unplanned():
            found = self.program(q.view(torch.uint8), s.view(torch.uint8), self.amax,
                                 function="dequantize")
        self.assertTrue(same(expected, found))

    def test_tensors_that_are_refused_although_their_type_is_known(self) -> None:
        wide = torch.zeros(3, 128, dtype=torch.bfloat16)
        empty = values().clone()
        empty.untyped_storage().resize_(0)
        self.program(values(), function="amax")
        self.program(values(64), function="amax")
        for tensor, message in (
                (wide[:, ::2], "must be contiguous and row-major"),
                (values(64).t(), "must be contiguous and row-major"),
                (values().requires_grad_(), "must not require a gradient"),
                (torch.nn.Parameter(values()), "must not require a gradient"),
                (torch._neg_view(values()), "negates or conjugates"),
                (empty, "must have memory, but its storage is empty"),
                (values().to("meta"), "must be on the CPU or a CUDA device"),
                (torch.zeros(200, dtype=torch.bfloat16)[1:193].reshape(3, 64),
                 None)):  # not aligned, but copied to the device
            with self.subTest(message):
                if message is None:
                    self.assertEqual(self.program(tensor, function="amax"), 0)
                    continue
                with self.assertRaisesRegex(fp4.UsageError, message):
                    self.program(tensor, function="amax")
        for tensors, options in (((), {}), ((values(), values()), {}), ((values(),), {"x": 1}),
                                 ((values(),), {"function": "none"}), ((3,), {}), ((None,), {})):
            options = {"function": "amax", **options}
            with self.subTest(options), self.assertRaises((fp4.UsageError, TypeError)):
                self.program(*tensors, **options)

    def test_a_subclass_may_be_anything(self) -> None:
        class Mine(torch.Tensor):  # type: ignore[misc]
            pass

        self.program(values(), function="amax")
        with unplanned(), self.assertRaisesRegex(AssertionError, "no plan"):
            self.program(values().as_subclass(Mine), function="amax")
        self.assertEqual(self.program(values(), function="amax"),
                         self.program(values().as_subclass(Mine), function="amax"))

    def test_results_in_tensors_of_the_caller(self) -> None:
        q, s = self.program(self.x, self.amax, function="linear")
        other = values(seed=2)
        expected = self.program(other, self.amax, function="linear")
        out = torch.empty_like(q.view(torch.uint8)).view(q.dtype), torch.empty_like(s)
        with unplanned():
            self.assertIs(self.program(other, self.amax, function="linear", out=out), out)
            number = torch.empty(())
            with self.assertRaisesRegex(AssertionError, "no plan"):
                self.program(other, function="amax", out=number)
        self.assertTrue(all(same(*pair) for pair in zip(expected, out)))
        self.assertIs(self.program(other, function="amax", out=number), number)
        with unplanned():
            self.assertIs(self.program(self.x, function="amax", out=number), number)
            self.assertIs(self.program(self.x, function="amax", out=(number,))[0], number)
            self.program(self.x, function="amax", out=None, verify=False, stream=None)
        self.assertEqual(number, self.x.abs().max())

    def test_tensors_for_results_that_are_refused(self) -> None:
        fits = self.program(self.x, self.amax, function="linear")
        memory = torch.zeros(3 * 64, dtype=torch.bfloat16)
        wide = torch.zeros(3, 8, dtype=torch.uint8).view(torch.float8_e4m3fn)
        cases = (((fits[0],), "an array for each of the 2 results of 'linear', but has 1"),
                 (fits[0], "must have an array for each of the 2 results"),
                 ((fits[0], fits[0]), "'r1' must be 3x4xf8E4M3FN .* got torch float4_e2m1fn_x2"),
                 ((fits[0], wide), r"'r1' must be 3x4xf8E4M3FN, an array of shape \[3, 4\], but"),
                 ((fits[0], wide[:, ::2]), "'r1' must be contiguous"),
                 ((fits[0], fits[1].clone().view(torch.int8)), "note: pass x.view"),
                 ((fits[0], np.zeros((3, 4), np.uint8)), "of torch on the CPU, .* is of numpy on"),
                 ((fits[0], None), None),
                 ((memory.view(torch.uint8)[:96].view(3, 32), fits[1]),
                  "result 'r0' must have memory of its own, but overlaps argument 'x'"),
                 ((fits[0], fits[0].view(torch.uint8).view(-1)[:12].view(3, 4)),
                  "result 'r0' must have memory of its own, but overlaps result 'r1'"))
        for _ in range(2):
            for out, message in cases:
                error = TypeError if message is None else fp4.UsageError
                with self.subTest(message), self.assertRaisesRegex(error, message or "result 'r1'"):
                    self.program(memory.view(3, 64), self.amax, function="linear", out=out)
            self.program(memory.view(3, 64), self.amax, function="linear")

    def test_a_stream_or_a_comparison_needs_checks(self) -> None:
        self.program(values(), function="amax")
        with self.assertRaisesRegex(fp4.UsageError, "'stream' must be None for arrays on the CPU"):
            self.program(values(), function="amax", stream=7)
        with unplanned(), self.assertRaisesRegex(AssertionError, "no plan"):
            self.program(values(), function="amax", verify=True)

    def test_errors_of_the_simulator_come_back(self) -> None:
        with fp4.Device("sim") as device:
            program = self.program.on(device)
            program(self.x, function="amax")
            self.assertIs(self.program.on(device), program)
        with self.assertRaisesRegex(fp4.UsageError, "the device is closed"):
            program(self.x, function="amax")

    def test_nothing_is_kept(self) -> None:
        for _ in range(2):
            self.program(self.x, self.amax, function="linear")
        gc.collect()
        counts = [sys.getrefcount(item) for item in (self.x, self.amax, None, torch.bfloat16)]
        for _ in range(100):
            self.program(self.x, self.amax, function="linear")
        gc.collect()
        after = [sys.getrefcount(item) for item in (self.x, self.amax, None, torch.bfloat16)]
        self.assertEqual(after[:2], counts[:2])
        self.assertLess(max(abs(a - b) for a, b in zip(after, counts)), 50)

    def test_a_device_is_closed_while_threads_call(self) -> None:
        self.assertEqual(close_while_threads_call(self.program, self.x), [])


class Fallback(unittest.TestCase):
    def test_the_package_works_without_the_module(self) -> None:
        code = "import fp4, numpy, sys; assert fp4._calls.native is None; " \
               "print(fp4.compile(sys.argv[1])(numpy.full((3, 64), 0x40A0, 'u2'), function='amax'))"
        found = subprocess.run([sys.executable, "-c", code, QUANTIZE], capture_output=True,
                               text=True, env={**os.environ, "FP4_NATIVE": "0"})
        self.assertEqual((found.stdout, found.returncode), ("5.0\n", 0), found.stderr)

    @unittest.skipIf(_calls.native is None, "there is no native module")
    def test_the_module_drops_nothing_after_python_has_ended(self) -> None:
        code = "from fp4 import _calls, _library; " \
               "_calls.native.load(str(_library.PATH), lambda *error: None)"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((found.stderr, found.returncode), ("", 0))

    def test_numpy_goes_the_checked_way(self) -> None:
        x = matrix()
        compiled()(x, function="amax")
        with unplanned(), self.assertRaisesRegex(AssertionError, "no plan"):
            compiled()(x, function="amax")


    def test_a_device_is_closed_while_threads_call(self) -> None:
        self.assertEqual(close_while_threads_call(compiled().program(), matrix()), [])


def close_while_threads_call(program: fp4.Program, x: Any) -> "list[BaseException]":
    """Returns what three threads met that is neither the right result nor the end of the device."""
    failures: list[BaseException] = []
    device = fp4.Device("sim")
    expected, started = program.on(device)(x, function="amax"), threading.Barrier(4)

    def work() -> None:
        started.wait()
        try:
            while True:
                if program.on(device)(x, function="amax") != expected:
                    failures.append(AssertionError("another result"))
        except fp4.UsageError as error:
            if "the device is closed" not in str(error):
                failures.append(error)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    started.wait()
    device.close()
    for thread in threads:
        thread.join(60)
    return failures + [AssertionError("it runs") for thread in threads if thread.is_alive()]


@unittest.skipUnless(HAS_PLANS, WHY)
class Exit(unittest.TestCase):
    def test_python_ends_before_what_the_module_keeps(self) -> None:
        """The module has the last reference to a function, which it must not free after Python."""
        script = """
import fp4, programs, torch
original = torch.Tensor.is_neg
torch.Tensor.is_neg = lambda tensor: False
torch.Tensor.is_neg.facts = {}  # a container asks for Python's thread when it is freed
program = fp4.Program(programs.compiled().program()._code)
program(torch.zeros(3, 64, dtype=torch.bfloat16), function="amax")
torch.Tensor.is_neg = original
"""
        here = os.path.dirname(os.path.abspath(__file__))
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], cwd=here, text=True,
                              capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


def same(one: Any, other: Any) -> bool:
    return one.dtype == other.dtype and torch.equal(one.view(torch.uint8), other.view(torch.uint8))


if __name__ == "__main__":
    unittest.main()
