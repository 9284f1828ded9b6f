"""Arrays of a package on a GPU, through DLPack: streams, devices and memory.

    fp4-sim run --device h200 -- python3 -m unittest test_cuda_arrays

The GPU is the simulator's CUDA driver (test/scripts/python_cuda.sh), where all work happens in the
order of the calls. The package here keeps the work of its streams back, as a GPU may: it is done
when the package is asked to make a stream wait for it, and only if that is the stream on which the
caller says it reads. A wrong stream, or none, so shows stale bytes.
"""

import ctypes
import os
import sys
import types
import unittest
from typing import Any
from unittest import mock

import fp4
import numpy as np
from fp4._dlpack import _Versioned
from programs import QUANTIZE, matrix

IS_SIMULATED = "FP4_SIM_DEVICE" in os.environ
CODES = {"uint8": (1, 8), "uint16": (1, 16), "float32": (2, 32)}
_BYTES = 1 << 20


class Driver:
    """The functions of libcuda that the tests need."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self("cuCtxSetCurrent", context)
        self.memory = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(self.memory), ctypes.c_size_t(_BYTES))
        self.used = 0

    def __call__(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        assert code == 0, f"{name} answers {code}"

    def take(self, size: int) -> int:
        """Memory that lives as long as the process, so that none is allocated in a capture."""
        address = self.memory.value + self.used
        self.used += -(-size // 256) * 256
        assert self.used <= _BYTES
        return address

    def stream(self) -> int:
        handle = ctypes.c_void_p()
        self("cuStreamCreate", ctypes.byref(handle), 1)
        assert handle.value
        return handle.value

    def write(self, address: int, values: Any) -> None:
        self("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(values.ctypes.data),
             ctypes.c_size_t(values.nbytes))

    def read(self, address: int, values: Any) -> Any:
        self("cuMemcpyDtoH_v2", ctypes.c_void_p(values.ctypes.data), ctypes.c_uint64(address),
             ctypes.c_size_t(values.nbytes))
        return values


class Array:
    """An array of a package on a GPU. Tests change what it says about itself."""

    def __init__(self, driver: Driver, shape: "tuple[int, ...]", dtype: str) -> None:
        self.driver, self.shape, self.dtype = driver, shape, dtype
        self.address = driver.take(int(np.prod(shape)) * np.dtype(dtype).itemsize)
        self.says = self.exports = (2, 0)  # kDLCUDA
        self.form, self.version, self.flags = b"dltensor_versioned", 1, 0
        self.asked: list[Any] = []  # the streams that were to wait
        self.late: tuple[int, Any] | None = None  # who reads it, and what will be written
        self.namespace: Any = types.SimpleNamespace(
            __name__="arrays", uint8="uint8", float32="float32", empty=self.make)

    def make(self, shape: "tuple[int, ...]", dtype: str) -> "Array":
        made = Array(self.driver, shape, dtype)
        made.asked = self.asked
        return made

    def holding(self, values: Any) -> "Array":
        self.driver.write(self.address, values)
        return self

    def numpy(self) -> Any:
        return self.driver.read(self.address, np.zeros(self.shape, self.dtype))

    def __dlpack_device__(self) -> "tuple[int, int]":
        return self.says

    def __array_namespace__(self) -> Any:
        if isinstance(self.namespace, Exception):
            raise self.namespace
        return self.namespace

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, copy: Any = None) -> Any:
        self.asked.append(stream)
        if self.late is not None and stream == self.late[0]:
            self.holding(self.late[1])
        record = _Versioned(major=self.version, flags=self.flags)
        tensor = record.tensor
        tensor.data, (tensor.device_type, tensor.device_id) = self.address, self.exports
        tensor.code, tensor.bits = CODES[self.dtype]
        tensor.lanes, tensor.ndim = 1, len(self.shape)
        sizes = (ctypes.c_int64 * len(self.shape))(*self.shape)
        tensor.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
        self.kept = record, sizes
        begin = _Versioned.tensor.offset if self.form == b"dltensor" else 0
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p,
                                                         ctypes.c_void_p]
        return make(ctypes.addressof(record) + begin, self.form, None)


@unittest.skipUnless(IS_SIMULATED, "fp4-sim does not run this process")
class Arrays(unittest.TestCase):
    driver: Driver
    program: fp4.Program

    @classmethod
    def setUpClass(cls) -> None:
        cls.driver = Driver()
        cls.program = fp4.compile(QUANTIZE, target="sm_90a").program()

    def setUp(self) -> None:
        self.driver.used = 0
        self.values, self.number = matrix(), np.array(3, np.float32)
        self.x = Array(self.driver, (3, 64), "uint16").holding(self.values)
        self.amax = Array(self.driver, (), "float32").holding(self.number)
        self.expected = self.program(self.values, self.number, function="linear")
        self.stale = self.program(np.zeros_like(self.values), self.number, function="linear")

    def call(self, **options: Any) -> Any:
        return self.program(self.x, self.amax, function="linear", **options)

    def check(self, found: Any, expected: Any) -> None:
        for one, right in zip(found, expected):
            self.assertIsInstance(one, Array)
            np.testing.assert_array_equal(one.numpy(), right.view(np.uint8))

    def write_late(self, reader: int) -> None:
        """The matrix is written when the stream `reader`, in the numbers of DLPack, waits."""
        self.x.holding(np.zeros_like(self.values)).late = (reader, self.values)

    def test_results_are_arrays_of_the_package(self) -> None:
        self.check(self.call(), self.expected)
        self.check(self.call(verify=True), self.expected)

    def test_every_array_is_asked_to_make_our_stream_wait(self) -> None:
        handle = self.driver.stream()
        cuda_stream = types.SimpleNamespace(__cuda_stream__=lambda: (0, handle))
        torch_stream = types.SimpleNamespace(cuda_stream=handle)
        for stream, number in ((None, 1), (0, 1), (1, 1), (2, 2), (handle, handle),
                               (cuda_stream, handle), (torch_stream, handle)):
            with self.subTest(stream):
                self.x.asked = self.amax.asked = []
                self.call(stream=stream)
                self.assertEqual(self.x.asked, [number] * 4)  # two arguments, two results

    def test_a_late_producer(self) -> None:
        ours, other = self.driver.stream(), self.driver.stream()
        self.write_late(ours)
        self.check(self.call(stream=ours), self.expected)
        self.write_late(1)
        self.check(self.call(), self.expected)
        for wrong in (other, None, 0, 2):
            with self.subTest(wrong):
                self.write_late(ours)
                self.check(self.call(stream=wrong), self.stale)

    def test_the_work_is_on_the_stream_that_is_given(self) -> None:
        ours, other = self.driver.stream(), self.driver.stream()
        self.call(stream=ours)  # loads the module
        for stream, count in ((ours, 1), (other, 0)):
            graph, nodes = ctypes.c_void_p(), ctypes.c_size_t()
            self.driver("cuStreamBeginCapture_v2", ctypes.c_void_p(ours), 2)
            found = self.call(stream=stream)
            self.driver("cuStreamEndCapture", ctypes.c_void_p(ours), ctypes.byref(graph))
            self.driver("cuGraphGetNodes", graph, None, ctypes.byref(nodes))
            self.assertEqual(nodes.value, count)
            if stream == other:
                self.check(found, self.expected)
                continue
            instance = ctypes.c_void_p()
            self.driver("cuGraphInstantiateWithFlags", ctypes.byref(instance), graph,
                        ctypes.c_uint64(0))
            self.x.holding(np.zeros_like(self.values))
            self.driver("cuGraphLaunch", instance, ctypes.c_void_p(ours))
            self.check(found, self.stale)
            self.x.holding(self.values)
            self.driver("cuGraphLaunch", instance, ctypes.c_void_p(ours))
            self.check(found, self.expected)

    def test_managed_memory_and_the_older_form(self) -> None:
        self.x.says = self.x.exports = (13, 0)  # kDLCUDAManaged
        self.check(self.call(), self.expected)
        self.amax.form = b"dltensor"
        self.check(self.call(), self.expected)

    def test_devices_that_are_wrong(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"says": (2, 1)}, "on DLPack device 2:1, as __dlpack_device__ says, but is on 2:0"),
            ({"says": (2, 1), "exports": (2, 1)}, "one device, but got cuda:0 and cuda:1"),
            ({"says": (1, 0), "exports": (1, 0)}, "one device, but got cpu and cuda:0"),
            ({"says": (10, 0)}, "but is on DLPack device 10"),
            ({"says": None}, "must say where it is"),
            ({"flags": 2}, "must be exported as it is, but __dlpack__ made a copy"),
            ({"version": 2}, r"must be of version 1 of DLPack, but is of version 2\.0"),
            ({"form": b"tensor"}, "must export a capsule 'dltensor' or 'dltensor_versioned'"),
            ({"dtype": "float32"}, "must be .x64xbf16 .*, but got arrays float32"),
            ({"shape": (3, 32)}, r"array of shape \[\?, 64\], but got arrays uint16\[3, 32\]"),
            ({"address": self.x.address + 2}, "must start at a multiple of 16 bytes"),
            ({"namespace": NotImplementedError()}, "must have __array_namespace__, which makes"),
        ]
        for members, message in cases:
            saved = dict(self.x.__dict__)
            self.x.__dict__.update(members)
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                self.call()
            self.x.__dict__.update(saved)
        self.check(self.call(), self.expected)

    def test_a_gpu_that_is_not_there(self) -> None:
        for array in (self.x, self.amax):
            array.says = array.exports = (2, 9)
        with self.assertRaisesRegex(fp4.DeviceError, "'cuda:9' does not exist"):
            self.call()

    def test_a_program_on_another_device(self) -> None:
        with fp4.Device("sim", target="sm_90a") as device, \
                self.assertRaisesRegex(fp4.UsageError, "are on cuda:0, but the program is on sim"):
            self.program.on(device)(self.x, self.amax, function="linear")

    def test_packages_are_not_mixed(self) -> None:
        with self.assertRaisesRegex(fp4.UsageError, "one device, but got cpu and cuda:0"):
            self.program(self.x, self.number, function="linear")

    def test_results_on_another_device(self) -> None:
        def elsewhere(shape: "tuple[int, ...]", dtype: str) -> Array:
            made = self.x.make(shape, dtype)
            made.says = made.exports = (2, 1)
            return made

        self.x.namespace.empty = elsewhere
        with self.assertRaisesRegex(fp4.UsageError, "results must be on cuda:0, .* on cuda:1\n"
                                    "note: make cuda:0 its current device"):
            self.call()

    def test_dtypes_that_the_package_does_not_export(self) -> None:
        self.x.namespace.float8_e4m3fn = "float8"  # no such NumPy dtype
        self.check(self.call(), self.expected)  # so scales are bytes
        del self.x.namespace.uint8
        with self.assertRaisesRegex(fp4.UsageError, "arrays must make arrays of f4E2M1FN or of"):
            self.call()

    def test_a_package_without_an_array_namespace(self) -> None:
        package = types.ModuleType("cupy_like")
        package.__dict__.update(self.x.namespace.__dict__)
        other = type("Other", (Array,), {"__module__": "cupy_like.core"})
        self.x.__class__ = other
        self.x.namespace = NotImplementedError()
        with mock.patch.dict(sys.modules, {"cupy_like": package}), \
                self.assertRaisesRegex(fp4.UsageError, "one package, but got arrays and cupy_like"):
            package.__name__ = "cupy_like"
            self.call()
        self.amax.__class__, self.amax.namespace = other, NotImplementedError()
        with mock.patch.dict(sys.modules, {"cupy_like": package}):
            self.check(self.call(), self.expected)

    def test_streams_that_are_none(self) -> None:
        for stream, kind in (("0", TypeError), (1.5, TypeError), (True, fp4.UsageError),
                             (-1, fp4.UsageError), (2**64, fp4.UsageError),
                             (types.SimpleNamespace(__cuda_stream__=3), TypeError),
                             (types.SimpleNamespace(__cuda_stream__=lambda: 3), TypeError),
                             (types.SimpleNamespace(cuda_stream="x"), TypeError)):
            with self.subTest(stream), self.assertRaisesRegex(kind, "'stream' must be"):
                self.call(stream=stream)
        elsewhere = types.SimpleNamespace(cuda_stream=self.driver.stream(),
                                          device=types.SimpleNamespace(index=1))
        with self.assertRaisesRegex(fp4.UsageError, "'stream' must be of cuda:0, as the arrays"):
            self.call(stream=elsewhere)
        with self.assertRaisesRegex(fp4.UsageError, "'stream' must be None for arrays on the CPU"):
            self.program(self.values, function="amax", stream=1)


if __name__ == "__main__":
    unittest.main()
