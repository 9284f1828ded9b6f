"""Calls of XLA and of apache-tvm-ffi with arrays on a GPU: streams and temporary memory.

    fp4-sim run --device h200 -- python3 -m unittest test_frameworks_cuda

The GPU is the simulator's CUDA driver (test/scripts/python_cuda.sh). No XLA for CUDA runs there, so
the frame of a call and the functions of XLA are made here, as the header of jaxlib declares them.
"""

import ctypes
import pathlib
import tempfile
import unittest
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_size_t
from ctypes import c_void_p as pointer
from typing import Any

import fp4
import numpy as np
from fp4 import _library as c
from programs import QUANTIZE, matrix, optional
from test_cuda_arrays import IS_SIMULATED, Array, Driver

tvm_ffi: Any = optional("tvm_ffi")

#: An amax in temporary memory, and its quantizer.
BOTH = QUANTIZE + """
func.func @both(%x: tensor<?x64xbf16> {fp4.name = "x"})
    -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<?x64xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xbf16>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  return %q, %s : tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>
}
func.func @pair(%q: tensor<?x64xf4E2M1FN> {fp4.name = "q"}, %s: tensor<?x4xf8E4M3FN>
    {fp4.name = "s"}, %a: tensor<f32> {fp4.name = "a"}) -> tensor<?x64xbf16> {
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<f32>) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}
"""
XLA_TYPES = {"uint8": 6, "uint16": 7, "float32": 11}


def struct(*fields: "tuple[str, Any]") -> Any:
    """A struct of XLA, which begins with its size and extensions."""
    return type("Struct", (Structure,), {"_fields_": [("size", c_size_t), ("extensions", pointer),
                                                      *fields]})


Buffer = struct(("type", c_int), ("data", pointer), ("rank", c_int64), ("dims", pointer))
Operands = struct(("count", c_int64), ("types", pointer), ("values", pointer))
Attributes = struct(("count", c_int64), ("types", pointer), ("names", pointer),
                    ("values", pointer))
ErrorArguments = struct(("message", c_char_p), ("code", c_int))
Asked = struct(("context", pointer), ("answer", pointer))
Memory = struct(("context", pointer), ("bytes", c_size_t), ("alignment", c_size_t),
                ("data", pointer))
Freed = struct(("context", pointer), ("bytes", c_size_t), ("data", pointer))
NAMES = ("create_error", "message", "destroy_error", "register", "stream", "type", "get", "set",
         "state", "allocate", "free", "schedule", "threads", "future", "available", "failed",
         "run", "ordinal")
Api = struct(("version", struct(("major", c_int), ("minor", c_int))), ("internal", pointer),
             *((name, pointer) for name in NAMES))
Frame = struct(("api", pointer), ("context", pointer), ("stage", c_int), ("arguments", Operands),
               ("results", Operands), ("attributes", Attributes))


class Span(Structure):
    _fields_ = [("begin", c_char_p), ("length", c_size_t)]


class Xla:
    """XLA as a handler sees it: it notes what it was asked for."""

    def __init__(self, driver: Driver, stream: int) -> None:
        self.driver, self.stream = driver, stream
        self.taken: list[tuple[int, int]] = []
        self.freed: list[tuple[int, int]] = []
        self.error, self.has_memory = (0, ""), True
        self.api = Api(size=ctypes.sizeof(Api))
        self._kept = []
        for name, kind in (("create_error", ErrorArguments), ("destroy_error", Asked),
                           ("stream", Asked), ("ordinal", Asked), ("allocate", Memory),
                           ("free", Freed)):
            function = CFUNCTYPE(pointer, POINTER(kind))(getattr(self, name + "_"))
            self._kept.append(function)
            setattr(self.api, name, ctypes.cast(function, pointer))

    def create_error_(self, arguments: Any) -> int:
        self.error = arguments[0].code, arguments[0].message.decode()
        return 1

    def destroy_error_(self, arguments: Any) -> None:
        assert arguments[0].context == 1

    def stream_(self, arguments: Any) -> None:
        arguments[0].answer = self.stream

    def ordinal_(self, arguments: Any) -> None:
        arguments[0].answer = 0

    def allocate_(self, arguments: Any) -> "int | None":
        if not self.has_memory:
            return 1
        arguments[0].data = self.driver.take(arguments[0].bytes)
        self.taken.append((arguments[0].data, arguments[0].bytes))
        return None

    def free_(self, arguments: Any) -> None:
        self.freed.append((arguments[0].data, arguments[0].bytes))

    def call(self, program: str, function: str, arguments: "list[Array]",
             results: "list[Array]") -> "tuple[int, str]":
        """Calls the handler; the code and the message of its error."""
        kept: list[Any] = []

        def array(kind: Any, values: "list[Any]") -> Any:
            kept.append((kind * len(values))(*values))
            return ctypes.addressof(kept[-1])

        def buffer(one: Array) -> int:
            dims = array(c_int64, list(one.shape))
            kept.append(Buffer(ctypes.sizeof(Buffer), None, XLA_TYPES[one.dtype], one.address,
                               len(one.shape), dims))
            return ctypes.addressof(kept[-1])

        def operands(values: "list[Array]") -> Any:
            return Operands(ctypes.sizeof(Operands), None, len(values),
                            array(c_int, [1] * len(values)),
                            array(pointer, list(map(buffer, values))))

        def span(text: str) -> int:
            kept.append(Span(text.encode(), len(text)))
            return ctypes.addressof(kept[-1])

        names, values = ([span(one) for one in pair] for pair in (("function", "program"),
                                                                  (function, program)))
        attributes = Attributes(ctypes.sizeof(Attributes), None, 2, array(c_int, [4, 4]),
                                array(pointer, names), array(pointer, values))
        frame = Frame(ctypes.sizeof(Frame), None, ctypes.addressof(self.api), None, 3,
                      operands(arguments), operands(results), attributes)
        handler = c.library().fp4_xla_call_cuda
        handler.restype, handler.argtypes = pointer, [pointer]
        self.error = (0, "")
        failed = handler(ctypes.addressof(frame))
        assert bool(failed) == bool(self.error[0])
        return self.error


@unittest.skipUnless(IS_SIMULATED, "fp4-sim does not run this process")
class Frameworks(unittest.TestCase):
    driver: Driver
    program: fp4.Program

    @classmethod
    def setUpClass(cls) -> None:
        cls.driver = Driver()
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name, "library.so")
        fp4.compile(BOTH, target="sm_90a").save(cls.path)
        cls.program = fp4.load(cls.path)
        c.library().fp4_xla_add(b"key", cls.program._handle)

    def setUp(self) -> None:
        self.driver.used = 0
        self.values = matrix()
        self.x = Array(self.driver, (3, 64), "uint16").holding(self.values)
        self.q, self.s = (Array(self.driver, (3, size), "uint8") for size in (32, 4))
        self.expected = self.program(self.values, function="both")

    def check(self, expected: Any) -> None:
        for one, right in zip((self.q, self.s), expected):
            np.testing.assert_array_equal(one.numpy(), np.asarray(right).view(np.uint8))

    def captured(self, stream: int, call: Any) -> int:
        """The nodes of a graph that captures `stream` during a call."""
        graph, nodes = ctypes.c_void_p(), ctypes.c_size_t()
        self.driver("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), 2)
        call()
        self.driver("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
        self.driver("cuGraphGetNodes", graph, None, ctypes.byref(nodes))
        return nodes.value

    def test_xla_gives_memory_and_gets_it_back(self) -> None:
        xla = Xla(self.driver, self.driver.stream())
        self.assertEqual(xla.call("key", "both", [self.x], [self.q, self.s]), (0, ""))
        self.check(self.expected)
        self.assertTrue(xla.taken)
        self.assertEqual(sorted(xla.taken), sorted(xla.freed))

    def test_xla_s_stream_has_the_work(self) -> None:
        ours, other = self.driver.stream(), self.driver.stream()
        for stream, has_work in ((ours, True), (other, False)):
            xla = Xla(self.driver, stream)
            xla.call("key", "both", [self.x], [self.q, self.s])
            nodes = self.captured(ours, lambda xla=xla: self.assertEqual(
                xla.call("key", "both", [self.x], [self.q, self.s]), (0, "")))
            self.assertEqual(nodes > 0, has_work)

    def test_errors_that_xla_gets(self) -> None:
        xla = Xla(self.driver, self.driver.stream())

        def refuses(code: int, message: str, key: str, name: str, arguments: "list[Array]",
                    results: "list[Array]") -> None:
            found = xla.call(key, name, arguments, results)
            self.assertEqual(found[0], code)
            self.assertRegex(found[1], message)

        refuses(5, "no program 'other'\nnote: load its library with fp4.jax.load", "other", "both",
                [self.x], [self.q, self.s])
        refuses(5, "has no function named 'other'", "key", "other", [self.x], [self.q, self.s])
        refuses(3, r"argument 'x' must be \?x64xbf16 .*uint8\[3, 32\]", "key", "both", [self.q],
                [self.q, self.s])
        refuses(3, "'both' expects 2 results, but got 1", "key", "both", [self.x], [self.q])
        a = Array(self.driver, (), "float32").holding(np.array(3, np.float32))
        y = Array(self.driver, (3, 64), "uint16")
        refuses(3, "argument 'q' must name its dynamic sizes on a GPU", "key", "pair",
                [self.q, self.s, a], [y])
        self.assertEqual(xla.call("key", "dequantize", [self.q, self.s, a], [y]), (0, ""))
        xla.has_memory = False
        refuses(14, "the caller's allocator has no", "key", "both", [self.x], [self.q, self.s])

    @unittest.skipIf(tvm_ffi is None, "apache-tvm-ffi is not installed")
    def test_tvm_ffi_s_stream_has_the_work(self) -> None:
        import fp4.tvm_ffi

        function = fp4.tvm_ffi.load(self.path, "test.cuda.")["both"]
        operands = [tvm_ffi.from_dlpack(one.__dlpack__()) for one in (self.x, self.q, self.s)]
        ours, other = self.driver.stream(), self.driver.stream()
        for stream, has_work in ((ours, True), (other, False)):
            with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), stream):
                function(*operands)
                self.check(self.expected)
                nodes = self.captured(ours, lambda: function(*operands))
            self.assertEqual(nodes > 0, has_work)
        with self.assertRaisesRegex(ValueError, "operands of 'both' must be on one device"):
            function(operands[0], np.zeros((3, 32), np.uint8), operands[2])


if __name__ == "__main__":
    unittest.main()
