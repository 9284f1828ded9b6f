"""Arrays of other packages on the GPU, through DLPack, and what is refused on a GPU."""

import importlib.util
import sys
import unittest
from typing import Any
from unittest import mock

import fp4
import torch
from fp4 import _calls
from operations import amax_of, difference, matrix, program, same
from test_streams import LONG

HAS_CUPY = importlib.util.find_spec("cupy") is not None


def as_torch(arrays: Any) -> "list[Any]":
    return [torch.from_dlpack(array).view(torch.uint8) for array in arrays]


def raw(tensors: Any) -> "list[Any]":
    return [tensor.view(torch.uint8) for tensor in tensors]


class Exporter:
    """An array whose package does not do what DLPack asks of it."""

    def __init__(self, array: Any, device: Any = None, waits: bool = True) -> None:
        self.array, self.waits = array, waits
        self.device = array.__dlpack_device__() if device is None else device

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        return self.array.__dlpack__(stream=stream if self.waits else -1, **options)

    def __dlpack_device__(self) -> Any:
        return self.device

    def __array_namespace__(self) -> Any:
        return sys.modules["cupy"]


@unittest.skipUnless(HAS_CUPY, "CuPy is not installed")
class CuPy(unittest.TestCase):
    def setUp(self) -> None:
        import cupy

        self.cupy = cupy
        x = matrix(256)
        self.bits = x.view(torch.uint16).numpy()
        self.amax = cupy.asarray(amax_of(x).numpy())
        self.expected = raw(program()(x.cuda(), amax_of(x).cuda(), function="quantize"))
        self.stale = raw(program()(torch.zeros_like(x).cuda(), amax_of(x).cuda(),
                                   function="quantize"))
        self.producer, self.consumer = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
        torch.cuda.synchronize()

    def late(self) -> Any:
        """Zeros that become the matrix when the producer's stream gets there."""
        with self.producer, torch.cuda.stream(torch.cuda.ExternalStream(self.producer.ptr)):
            values, array = self.cupy.asarray(self.bits), self.cupy.zeros_like(self.bits)
            torch.cuda.synchronize()
            torch.cuda._sleep(LONG)
            array[...] = values
        return array

    def check(self, found: Any, expected: Any) -> None:
        torch.cuda.synchronize()
        found = as_torch(found)
        self.assertTrue(same(found, expected), difference(found, expected))

    def test_results_are_arrays_of_the_package(self) -> None:
        found = program()(self.cupy.asarray(self.bits), self.amax, function="quantize")
        self.assertIsInstance(found[0], self.cupy.ndarray)
        self.check(found, self.expected)

    def test_the_producer_makes_our_stream_wait(self) -> None:
        array = self.late()
        with self.producer:
            found = program()(array, self.amax, function="quantize", stream=self.consumer)
        self.assertFalse(self.producer.done, "the call waited on the host")
        self.consumer.synchronize()
        self.check(found, self.expected)

    def test_a_producer_that_does_not_is_seen(self) -> None:
        array = Exporter(self.late(), waits=False)
        with self.producer:
            amax = Exporter(self.amax, waits=False)
            with mock.patch("fp4.tensors._make_other", self.made_before(array)):
                found = program()(array, amax, function="quantize", stream=self.consumer.ptr)
        self.consumer.synchronize()
        self.assertFalse(self.producer.done, "the producer was not late enough")
        self.check([one.array for one in found], self.stale)

    def made_before(self, like: Any) -> Any:
        """Results whose package does not make our stream wait either."""
        def make(view: Any, shape: Any, dtype: Any) -> Any:
            with self.consumer:
                return Exporter(self.cupy.empty(shape, dtype=dtype), waits=False)

        return make

    def test_without_a_stream_the_call_waits(self) -> None:
        with self.producer:
            found = program()(self.late(), self.amax, function="quantize")
        self.assertTrue(self.producer.done)
        self.check(found, self.expected)

    def test_managed_memory(self) -> None:
        with self.cupy.cuda.using_allocator(self.cupy.cuda.malloc_managed):
            array = self.cupy.empty(self.bits.shape, self.bits.dtype)
            amax = self.cupy.empty((), "float32")
        array[...], amax[...] = self.cupy.asarray(self.bits), self.amax
        if array.__dlpack_device__()[0] != 13:
            self.skipTest("this CuPy does not say that memory is managed")
        torch.cuda.synchronize()
        self.check(program()(array, amax, function="quantize"), self.expected)

    def test_another_device_than_it_says(self) -> None:
        array = self.cupy.asarray(self.bits)
        for device, message in (((2, 7), "'cuda:7' does not exist|as __dlpack_device__ says"),
                                ((4, 0), "but is on DLPack device 4"),
                                ((1, 0), "__dlpack__ fails|as __dlpack_device__ says")):
            with self.subTest(device), self.assertRaisesRegex(fp4.Error, message):
                program()(Exporter(array, device), self.amax, function="quantize")


class Refused(unittest.TestCase):
    def test_the_native_module_reads_tensors_of_this_torch(self) -> None:
        self.assertIsNotNone(_calls.native)
        self.assertTrue(_calls._accept(torch))
        x, amax = matrix(64).cuda(), amax_of(matrix(64)).cuda()
        expected = program()(x, amax, function="quantize")
        with mock.patch.object(fp4.Program, "_call", side_effect=AssertionError("no plan")):
            found = program()(x, amax, function="quantize")
        self.assertTrue(same(found, expected))

    def test_what_is_refused_before_and_after_a_plan_is_known(self) -> None:
        x, amax = matrix(64), amax_of(matrix(64))
        moved = x.cuda(), amax.cuda()
        wide = matrix(64, columns=2048).cuda()
        for _ in range(2):
            for arguments, options, message in (
                    ((x, moved[1]), {}, "must have one device, but got cpu and cuda:0"),
                    ((wide[:, ::2], moved[1]), {}, "must be contiguous"),
                    ((moved[0].float(), moved[1]), {}, "but got torch float32"),
                    ((wide, moved[1]), {}, r"array of shape \[\?, 1024\], but got"),
                    ((moved[0].clone().requires_grad_(), moved[1]), {}, "a gradient"),
                    ((x, amax), {"stream": torch.cuda.Stream()}, "'stream' must be None"),
                    (moved, {"stream": -1}, "'stream' must be a CUstream"),
                    ((torch.zeros(65 * 1024 + 1, dtype=torch.bfloat16, device="cuda")[1:]
                      .reshape(65, 1024), moved[1]), {}, "must start at a multiple of 16 bytes")):
                with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                    program()(*arguments, function="quantize", **options)
            program()(*moved, function="quantize")
        with self.assertRaisesRegex(TypeError, "'stream' must be a stream of torch"):
            program()(*moved, function="quantize", stream="0")
        with fp4.Device("sim", target="sm_90a") as device, \
                self.assertRaisesRegex(fp4.UsageError, "the tensors are on cuda:0, but the prog"):
            program().on(device)(*moved, function="quantize")
        torch.cuda.synchronize()
