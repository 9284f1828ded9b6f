"""The few calls of the CUDA driver that the microbenchmarks need, through ctypes.

The machine needs a driver and Python, no toolkit: the driver assembles the PTX. Under
`fp4-sim run --time -- python3 run.py` the same calls reach the simulator.
"""
from __future__ import annotations

import array
import ctypes
from collections.abc import Sequence
from typing import Any

_u64, _int, _uint, _ptr = ctypes.c_uint64, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p


class Failure(RuntimeError):
    """A call of the driver failed."""


def resolve(ptx: str, target: str) -> str:
    """@TARGET@ becomes the target, and @VERSION@ the first version of PTX that has all of it."""
    version = "8.0" if target == "sm_90a" else "8.8"
    return ptx.replace("@TARGET@", target).replace("@VERSION@", version)


class Device:
    """Device 0 with a context; memory lives until the process ends."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", 0)
        device = _int()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._device = device
        context = _ptr()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            raise Failure(f"{name}: {(text.value or b'?').decode()}")

    def name(self) -> str:
        text = ctypes.create_string_buffer(128)
        self._call("cuDeviceGetName", text, 128, self._device)
        return text.value.decode()

    def driver(self) -> int:
        """The version of CUDA that it has: 13010 is 13.1."""
        value = _int()
        self._call("cuDriverGetVersion", ctypes.byref(value))
        return value.value

    def attribute(self, which: int) -> int:
        value = _int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), which, self._device)
        return value.value

    def sms(self) -> int:
        return self.attribute(16)

    def target(self) -> str:
        """The target that PTX for this device names, with the instructions of this architecture
        alone: sm_90a."""
        major, minor = self.attribute(75), self.attribute(76)
        return f"sm_{major}{minor}" + ("a" if major >= 9 else "")

    def upload(self, contents: bytes) -> int:
        """Device memory with these bytes."""
        pointer = self.allocate(len(contents))
        self.write(pointer, contents)
        return pointer

    def download(self, pointer: int, size: int) -> bytes:
        contents = ctypes.create_string_buffer(size)
        self._call("cuMemcpyDtoH_v2", contents, _u64(pointer), ctypes.c_size_t(size))
        return contents.raw

    def write(self, pointer: int, contents: bytes) -> None:
        self._call("cuMemcpyHtoD_v2", _u64(pointer), contents, ctypes.c_size_t(len(contents)))

    def allocate(self, size: int) -> int:
        pointer = _u64()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        self._call("cuMemsetD8_v2", pointer, ctypes.c_ubyte(0), ctypes.c_size_t(size))
        return pointer.value

    def free(self, pointer: int) -> None:
        self._call("cuMemFree_v2", _u64(pointer))

    def read(self, pointer: int, count: int) -> "array.array[int]":
        """`count` 64-bit words."""
        words = array.array("Q", bytes(8 * count))
        address, _ = words.buffer_info()
        self._call("cuMemcpyDtoH_v2", _ptr(address), _u64(pointer), ctypes.c_size_t(8 * count))
        return words

    def load(self, ptx: str, shared: int = 0, name: str = "k") -> "Kernel":
        """The kernel `name` of a module, whose text names the target as `resolve` says."""
        module = _ptr()
        ptx = resolve(ptx, self.target())
        try:
            self._call("cuModuleLoadData", ctypes.byref(module), ptx.encode() + b"\0")
        except Failure as failure:
            numbered = "\n".join(f"{i + 1:4} {line}" for i, line in enumerate(ptx.splitlines()))
            raise Failure(f"{failure} of\n{numbered}") from failure
        return self._function(module, shared, name)

    def load_image(self, cubin: bytes, shared: int = 0, name: str = "k") -> "Kernel":
        module = _ptr()
        self._call("cuModuleLoadData", ctypes.byref(module), cubin)
        return self._function(module, shared, name)

    def _function(self, module: ctypes.c_void_p, shared: int, name: str) -> "Kernel":
        function = _ptr()
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared > 48 * 1024:
            self._call("cuFuncSetAttribute", function, 8, shared)
        return Kernel(self, function, shared)

    def synchronize(self) -> None:
        self._call("cuCtxSynchronize")

    def event(self) -> ctypes.c_void_p:
        event = _ptr()
        self._call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def record(self, event: ctypes.c_void_p) -> None:
        self._call("cuEventRecord", event, None)

    def between(self, first: ctypes.c_void_p, second: ctypes.c_void_p) -> float:
        """Seconds, when both have happened."""
        milliseconds = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(milliseconds), first, second)
        return milliseconds.value * 1e-3

    def seconds(self, work: Any) -> float:
        """Returns the time of `work()`, by events around it."""
        events = [self.event(), self.event()]
        self.record(events[0])
        work()
        self.record(events[1])
        self._call("cuEventSynchronize", events[1])
        return self.between(events[0], events[1])

    def graph(self, work: Any) -> Any:
        """Returns a function that replays what `work(stream)` issues."""
        stream, graph, executable = _ptr(), _ptr(), _ptr()
        self._call("cuStreamCreate", ctypes.byref(stream), 1)
        self._call("cuStreamBeginCapture_v2", stream, 0)
        work(stream)
        self._call("cuStreamEndCapture", stream, ctypes.byref(graph))
        self._call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, _u64(0))
        return lambda: self._call("cuGraphLaunch", executable, None)

    def encode(self, kind: int, pointer: int, sizes: Sequence[int], strides: Sequence[int], box: Sequence[int],
               swizzle: int, promotion: int = 2, fill: int = 0) -> "ctypes.Array[Any]":
        """A tensor map: `kind`, `swizzle`, `promotion` (of L2, 128 bytes) and `fill` are numbers of
        the driver's enumerations, sizes and boxes are in elements, the first dimension first, and
        strides in bytes, of all dimensions but the first."""
        storage = (ctypes.c_uint64 * 32)()
        base = ctypes.addressof(storage)
        aligned = (ctypes.c_uint64 * 16).from_address((base + 63) // 64 * 64)
        rank = len(sizes)
        self._call("cuTensorMapEncodeTiled", ctypes.byref(aligned), kind, rank, _u64(pointer), (_u64 * rank)(*sizes),
                   (_u64 * rank)(*strides), (_uint * rank)(*box), (_uint * rank)(*[1] * rank), 0, swizzle,
                   promotion, fill)
        aligned._storage = storage  # type: ignore[attr-defined]
        return aligned

    def tensor_map(self, pointer: int, rows: int, columns: int, box_rows: int, box_columns: int) -> "ctypes.Array[Any]":
        """A tensor map of a bf16 matrix with boxes in the 128-byte swizzle."""
        return self.encode(9, pointer, (columns, rows), (2 * columns,), (box_columns, box_rows), 3)


class Kernel:
    def __init__(self, device: Device, function: ctypes.c_void_p, shared: int) -> None:
        self._device, self._function, self._shared = device, function, shared

    def _parameters(self, arguments: Sequence[Any]) -> Any:
        values = [_u64(value) if isinstance(value, int) else value for value in arguments]
        pointers = (_ptr * max(1, len(values)))(*[ctypes.cast(ctypes.byref(v), _ptr) for v in values])
        pointers._values = values  # type: ignore[attr-defined]  # they live as long
        return pointers

    def registers(self) -> int:
        """The registers of a thread."""
        value = _int()
        self._device._call("cuFuncGetAttribute", ctypes.byref(value), 4, self._function)
        return value.value

    def most_resident(self, threads: int) -> int:
        """CTAs that the driver expects on an SM at a time."""
        value = _int()
        self._device._call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(value), self._function, threads,
                           ctypes.c_size_t(self._shared))
        return value.value

    def __call__(self, grid: int, block: int, *arguments: Any, stream: Any = None) -> None:
        """An int is a 64-bit parameter; a ctypes array is one of its size."""
        self._device._call("cuLaunchKernel", self._function, grid, 1, 1, block, 1, 1, self._shared, stream,
                           self._parameters(arguments), None)

    def launch_early(self, grid: int, block: int, *arguments: Any, stream: Any = None) -> None:
        """Launches a kernel that may begin while the kernel before it on the stream ends
        (programmatic stream serialization)."""
        self._launch_with((_uint * 18)(6, 0, 1), (grid, 1), block, arguments, stream)

    def launch(self, grid: tuple[int, int], block: int, *arguments: Any, stream: Any = None, cluster: int = 1) -> None:
        """Launches with a grid of two dimensions, and clusters of so many CTAs by an attribute of
        the launch."""
        attribute = (_uint * 18)(4, 0, cluster, 1, 1) if cluster > 1 else None
        self._launch_with(attribute, grid, block, arguments, stream)

    def _launch_with(self, attribute: Any, grid: tuple[int, int], block: int, arguments: Sequence[Any], stream: Any) -> None:
        """`attribute`: a CUlaunchAttributeID, padding, its value; or none."""
        config = _Config((_uint * 7)(*grid, 1, block, 1, 1, self._shared), stream, ctypes.addressof(attribute) if attribute else None,
                         1 if attribute else 0)
        self._device._call("cuLaunchKernelEx", ctypes.byref(config), self._function, self._parameters(arguments), None)


class _Config(ctypes.Structure):
    """CUlaunchConfig."""
    _fields_ = [("dimensions", _uint * 7), ("stream", _ptr), ("attributes", _ptr), ("count", _uint)]
