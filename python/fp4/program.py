"""Programs on devices, and calls with arrays."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from . import _library as c
from ._calls import Calls, Gate, remember
from ._dlpack import CPU
from ._eager import eager
from .device import Device, closed, default_device
from .errors import Error, UsageError
from .manifest import ELEMENTS, LAYOUTS, Function, Manifest, Type
from .streams import Stream
from .tensors import View, check_result, empty, is_canonical, logical_sizes, view


class _Executable:
    """An fp4_executable: a program on a device."""

    def __init__(self, code: _Code, device: Device) -> None:
        handle = ctypes.c_void_p()
        library = c.library()
        with device.held() as opened:
            library.fp4_executable_create(code.handle, opened, ctypes.byref(handle))
            assert handle.value
            self.device = device
            self.gate = Gate()
            self.handle = handle.value
            self._functions: dict[str, int] = {}
            self._finalizer = weakref.finalize(self, _destroy, library, self.gate, handle.value)
            device._owned.add(self)

    def function(self, name: str) -> int:
        """The fp4_function of this name."""
        if name not in self._functions:
            found = ctypes.c_void_p()
            c.library().fp4_executable_get_function(self.handle, name.encode(), ctypes.byref(found))
            assert found.value
            self._functions[name] = found.value
        return self._functions[name]

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Keeps the executable and its device open meanwhile; a UsageError if they are closed
        already."""
        if not self.gate.enter():
            raise closed()
        try:
            yield
        finally:
            self.gate.leave()

    def close(self) -> None:
        self._finalizer()


def _destroy(library: Any, gate: Gate, handle: int) -> None:
    gate.close()
    library.fp4_executable_destroy(handle)


class _Code:
    """An fp4_program and its executables, which programs on several devices share."""

    def __init__(self, handle: int) -> None:
        library = c.library()
        self.handle = handle
        weakref.finalize(self, library.fp4_program_destroy, handle)
        self.manifest = Manifest(c.text(library.fp4_program_get_manifest(handle)))
        self.lock = threading.Lock()
        self._executables: dict[Device, _Executable] = {}
        self.programs: dict[Device, Program] = {}

    def on(self, device: Device) -> _Executable:
        with self.lock:
            if device not in self._executables:
                self._executables[device] = _Executable(self, device)
            return self._executables[device]


class Program(Calls):
    """Functions that can be called with arrays. `Compiled.program` and `load` make it.

    program(*tensors, function=None, out=None, verify=False, stream=None) runs a function.

    Args:
        tensors: one array per argument, all NumPy (or any DLPack object on the CPU), or all
            torch tensors of one device, or all arrays of another package on a GPU. Each is
            contiguous and row-major, except that an argument with fp4.strided may have rows
            with gaps between them, such as a slice of columns:

            bf16, f16, f32, i64   the dtype of that name, bf16 also uint16 with its bits
            4-bit, R x K          torch float4_e2m1fn_x2 or uint8 of shape [R, K/2], the even
                                  column in the low nibble
            6- and 8-bit          float8_..., or uint8, one byte for each element
            scales, tiled_128x4   float8_... or uint8 of shape [bytes], or
                                  [ceil(R/128), ceil(B/4), 512]; fp4.tiled says R and B where
                                  the function does not. Two dimensions are refused, because
                                  linear scales look the same: nothing is swizzled silently
        function: its name; not needed where the program has one.
        out: arrays for the results, one or a tuple, with the dtypes and shapes that they would have
            (or uint8 for elements of a byte), on the device of the arguments. Results overlap
            neither each other nor an argument. One for a result with fp4.strided may have rows with
            gaps between them. The call returns what was given.
        verify: compare the results with the reference model (docs/reference/numerics.md).
        stream: of arrays on a GPU: a stream of torch, an object with __cuda_stream__, or the
            number of a CUstream or cudaStream_t. None is torch's current stream for tensors of
            torch; for other packages it is the default stream, and the call waits for it. A stream
            that is given waits for the package's own current stream, and has the results.

    Returns:
        One array, a tuple of several, or None, of the package of the arguments. NumPy arrays
        have the types of ml_dtypes where it is installed, else unsigned integers of the same
        width; packed 4-bit results are uint8. Tiled scales have the shape
        [ceil(R/128), ceil(B/4), 512].

    CPU arrays are copied to the device and back, and the call waits. Arrays on a GPU are used where
    they are, and the work is issued to the stream. Memory for tensors of torch comes from torch's
    allocator, and the call does not wait, except to verify. Threads may share a program; each has
    its own current stream.

    Raises:
        UsageError: an array that does not fit, before anything runs. TypeError: no array.
        MismatchError: `verify` found a difference. DeviceError: the device failed.
        SimulationError, HazardError: the simulated code is wrong.

    Attributes:
        manifest: the functions and the types of their operands.
        device: where calls run, or None: CPU arrays run in the simulator, arrays on a GPU on it.
    """

    def __init__(self, code: _Code | int, device: Device | None = None) -> None:
        self._code = _Code(code) if isinstance(code, int) else code
        self.manifest = self._code.manifest
        self.device = device

    @property
    def _handle(self) -> int:
        """The fp4_program, for calls of the C API."""
        return self._code.handle

    def on(self, device: Device) -> Program:
        """This program on `device`, made once for each device."""
        if not isinstance(device, Device):
            raise TypeError(f"'device' must be an fp4.Device, but got {type(device).__name__}")
        with self._code.lock:
            program = self._code.programs.get(device)
            if program is None:
                program = self._code.programs[device] = Program(self._code, device)
            return program

    @eager("a Program is called and not traced; fp4.torch has operators for torch.compile")
    def _call(self, *tensors: Any, function: str | None = None, out: Any = None,
              verify: bool = False, stream: Any = None, **unknown: Any) -> Any:
        """A call that is checked. `__call__` comes here where no plan is known (_calls.py)."""
        found = self.manifest.find(function)
        if unknown:
            raise TypeError(f"a call of {found} must have its arguments in their order, but got "
                            f"'{next(iter(unknown))}' by name; only function, out, verify and "
                            "stream have names")
        work = Stream(stream)
        views = [view(value, tensor_name(found, i), work.dlpack, _is_strided(found, i))
                 for i, value in enumerate(tensors)]
        arguments = arguments_of(found, views)
        where = int(_one({item.device for item in views} or {CPU}, "device"))
        package = str(_one({item.package for item in views} or {"numpy"}, "package"))
        work.check(where)
        device = self._device_for(where)
        if device.is_hardware:
            require_names(found)
        executable = self._code.on(device)
        with executable.entered():
            call = _Call(executable, found, arguments, views, package)
            if out is not None:
                call.take(out, work)
            outputs = call.on_host(verify) if where == CPU else call.on_gpu(where, work, verify)
        if call.makes_results():
            remember(self, function, tensors, call, outputs)
        return _values(outputs) if out is None else out

    def _device_for(self, where: int) -> Device:
        device = self.device
        if device is None:
            selector = "sim" if where == CPU else f"cuda:{where}"
            return default_device(selector, self.manifest.target)
        if where != CPU and device.selector != f"cuda:{where}":
            raise UsageError(f"the tensors are on cuda:{where}, but the program is on "
                             f"{device.selector}", "move them with .cpu(), or call program.on")
        return device

    def __repr__(self) -> str:
        functions = "; ".join(map(str, self.manifest.functions.values()))
        return f"<fp4.Program for {self.manifest.target}: {functions}>"


def load(path: str | os.PathLike[str], device: Device | None = None) -> Program:
    """Loads a library that Compiled.save or fp4-runner --emit=so wrote. Loading needs no compiler:
    libfp4rt.so is enough."""
    handle = ctypes.c_void_p()
    c.library().fp4_program_load(c.encode(path, "'path'"), ctypes.byref(handle))
    assert handle.value
    program = Program(handle.value)
    return program if device is None else program.on(device)


def tensor_name(function: Function, index: int) -> str:
    """The words of messages for an argument."""
    if index < len(function.arguments):
        return f"argument '{function.arguments[index].name}'"
    return f"argument {index}"


def _is_strided(function: Function, index: int) -> bool:
    return index < len(function.arguments) and function.arguments[index].strided


def require_names(function: Function) -> None:
    """A UsageError where arguments could disagree about a size and nobody would notice: nothing
    stops a kernel on a GPU that reads beyond a buffer which is too small."""
    dynamic = [operand for operand in function.arguments if min(operand.type.shape, default=0) < 0]
    for operand in dynamic if len(dynamic) > 1 else []:
        names = operand.dims or ("",) * len(operand.type.shape)
        if any(size < 0 and not name for size, name in zip(operand.type.shape, names)):
            raise UsageError(f"argument '{operand.name}' must name its dynamic sizes on a GPU, but "
                             f"is {operand.type} without a name",
                             'give sizes that are equal one name, {fp4.dims = ["M", "K"]}, so that '
                             "arguments can be compared before a kernel runs")


def _one(values: set[Any], what: str) -> Any:
    if len(values) == 1:
        return values.pop()
    names = sorted("cpu" if value == CPU else f"cuda:{value}" if isinstance(value, int) else value
                   for value in values)
    raise UsageError(f"all arguments must have one {what}, but got {' and '.join(names)}")


def arguments_of(function: Function, views: Sequence[View]) -> Any:
    """The fp4_tensors of the arguments. Linear arguments come first, because they tell the named
    sizes of tiled ones."""
    expected = len(function.arguments)
    if len(views) != expected:
        raise UsageError(f"'{function.name}' expects {expected} argument"
                         f"{'' if expected == 1 else 's'}, but got {len(views)}",
                         f"its type is {function}")
    named: dict[str, int] = {}
    arguments = (c.Tensor * len(views))()
    order = sorted(range(expected), key=lambda i: function.arguments[i].type.is_tiled)
    for i in order:
        operand = function.arguments[i]
        sizes = logical_sizes(views[i], operand, named)
        kind = Type(sizes, operand.type.element, operand.type.layout)
        _fill(arguments[i], kind)
        strides = views[i].strides
        if strides is not None:
            _place_rows(arguments[i], kind, strides)
    return arguments


def _place_rows(tensor: c.Tensor, kind: Type, strides: Sequence[int]) -> None:
    """Gives the tensor strides, of those of an array with `kind.buffer_shape`."""
    sizes = kind.buffer_shape
    last = sum((size - 1) * stride for size, stride in zip(sizes[:-1], strides))
    tensor.bytes = (last + sizes[-1]) * kind.item_bytes
    per_byte = kind.shape[-1] // sizes[-1] if kind.element == "f4E2M1FN" else 1
    tensor.strides[:len(sizes)] = [*(stride * per_byte for stride in strides[:-1]), 1]


def _fill(tensor: c.Tensor, kind: Type) -> None:
    if len(kind.shape) > c.MAX_RANK:
        raise UsageError(f"the rank of an operand must be at most {c.MAX_RANK}, but got {kind}")
    size = kind.item_bytes
    for dim in kind.buffer_shape:
        size *= dim
    tensor.bytes = size
    tensor.element, tensor.layout = ELEMENTS.index(kind.element), LAYOUTS.index(kind.layout)
    tensor.rank = len(kind.shape)
    tensor.sizes[:len(kind.shape)] = kind.shape


class _Extent(NamedTuple):
    """The bytes of an array: rows of `width` bytes, `pitch` apart."""

    begin: int
    end: int
    width: int
    pitch: int

    @staticmethod
    def of(found: View, tensor: c.Tensor) -> _Extent:
        size = tensor.bytes
        if found.strides is None or len(found.strides) != 2 or found.shape[0] == 1:
            return _Extent(found.address, found.address + size, size, size)
        pitch = found.strides[0] * Type((), ELEMENTS[tensor.element]).item_bytes
        return _Extent(found.address, found.address + size, size - (found.shape[0] - 1) * pitch,
                       pitch)

    def rows(self) -> Iterator[tuple[int, int]]:
        """Yields the offset of each row in the array, and its bytes: nobody touches what is between
        rows."""
        size = self.end - self.begin
        for offset in range(0, size, self.pitch) if size else ():
            yield offset, self.width

    def overlaps(self, other: _Extent) -> bool:
        if self.begin >= other.end or other.begin >= self.end:
            return False
        if self.pitch != other.pitch:
            return True
        distance = (other.begin - self.begin) % self.pitch  # slices of the columns of one array
        return distance < self.width or distance + other.width > self.pitch


class _Call:
    """One call, whose arguments fit."""

    def __init__(self, executable: _Executable, function: Function, arguments: Any,
                 views: Sequence[View], package: str) -> None:
        self.library, self.executable = c.library(), executable
        self.signature, self.name = function, function.name.encode()
        self.arguments, self.views, self.package = arguments, views, package
        self.results = (c.Tensor * len(function.results))()
        self.operands = (arguments, len(views), self.results, len(self.results))
        self.library.fp4_executable_describe(executable.handle, self.name, *self.operands)
        self.function = executable.function(function.name)
        self.kinds = [Type(tuple(result.sizes[:result.rank]), ELEMENTS[result.element],
                           LAYOUTS[result.layout]) for result in self.results]
        self.given: list[View] | None = None  # the caller's arrays for the results

    def take(self, out: Any, stream: Stream) -> None:
        """Writes the results to the arrays `out`; a UsageError where they do not fit."""
        values = out if isinstance(out, tuple) else (out,)
        if len(values) != len(self.kinds):
            raise UsageError(f"'out' must have an array for each of the {len(self.kinds)} results "
                             f"of '{self.signature.name}', but has {len(values)}")
        self.given = []
        for value, operand, kind in zip(values, self.signature.results, self.kinds):
            what = f"result '{operand.name}'"
            found = view(value, what, stream.dlpack, operand.strided)
            check_result(value, found, kind, what, self.views[0] if self.views else None)
            self.given.append(found)
        for result, found, kind in zip(self.results, self.given, self.kinds):
            if found.strides is not None:
                _place_rows(result, kind, found.strides)
        self._check_overlaps(self.given)

    def _check_overlaps(self, given: list[View]) -> None:
        names = [f"result '{operand.name}'" for operand in self.signature.results]
        names += [f"argument '{operand.name}'" for operand in self.signature.arguments]
        extents = [_Extent.of(item, tensor) for item, tensor in zip(
            (*given, *self.views), (*self.results, *self.arguments))]
        for one in range(len(given)):
            for other in range(one + 1, len(names)):
                if extents[one].overlaps(extents[other]):
                    raise UsageError(f"{names[one]} must have memory of its own, but overlaps "
                                     f"{names[other]}", "pass another tensor for one of both")

    def makes_results(self) -> bool:
        """Returns True if the results are arrays as a call without `out` makes them."""
        return self.given is None or all(map(is_canonical, self.given, self.kinds))

    def issue(self, verify: bool, options: c.CallOptions | None = None) -> None:
        self.library.fp4_function_call(self.function, *self.operands,
                                       None if options is None else ctypes.byref(options))
        if verify:
            self.library.fp4_executable_verify(self.executable.handle, self.name, *self.operands)

    def allocate_results(self, stream: int = 1) -> list[View]:
        if self.given is not None:
            return self.given
        like = self.views[0] if self.views else None
        return [empty(like, kind, stream) for kind in self.kinds]

    def on_host(self, verify: bool) -> list[View]:
        """Copies arguments to the device and results back. Rows that no scatter writes stay as they
        are in arrays that the caller gives, so these are copied to the device too."""
        device = self.executable.device.handle
        outputs = self.allocate_results()
        with _memory(self.library, device) as allocate:
            for argument, source in zip(self.arguments, self.views):
                argument.address = allocate(argument.bytes)
                self.library.fp4_device_copy_to(device, argument.address, source.address,
                                                argument.bytes)
            for result, output in zip(self.results, outputs):
                result.address = allocate(result.bytes)
                for offset, size in _Extent.of(output, result).rows() if self.given else ():
                    self.library.fp4_device_copy_to(device, result.address + offset,
                                                    output.address + offset, size)
            self.issue(verify)
            for result, output in zip(self.results, outputs):
                for offset, size in _Extent.of(output, result).rows():
                    self.library.fp4_device_copy_from(device, output.address + offset,
                                                      result.address + offset, size)
        return outputs

    def on_gpu(self, index: int, stream: Stream, verify: bool) -> list[View]:
        """Issues the work to the stream."""
        for argument, source in zip(self.arguments, self.views):
            argument.address = source.address
        if self.package == "torch":
            return self._on_torch_s_stream(index, stream, verify)
        outputs = self._issue_into(stream, verify, None)
        if stream.handle is None:  # the package goes on with a stream that we do not know
            self.library.fp4_device_synchronize(self.executable.device.handle)
        return outputs

    def _on_torch_s_stream(self, index: int, stream: Stream, verify: bool) -> list[View]:
        torch = sys.modules["torch"]
        ours = torch.cuda.current_stream(index)
        if stream.handle not in (None, ours.cuda_stream):
            given = torch.cuda.ExternalStream(stream.handle, device=index)
            given.wait_stream(ours)  # as __dlpack__(stream) of a tensor does
            for source in (*self.views, *(self.given or ())):
                source.owner.record_stream(given)
            ours = given
        with torch.cuda.stream(ours):
            memory = _TorchAllocator(torch, index)
            try:
                return self._issue_into(Stream(ours), verify, ctypes.pointer(memory.functions))
            except Error as error:
                raise error from memory.failure

    def _issue_into(self, stream: Stream, verify: bool, allocator: Any) -> list[View]:
        outputs = self.allocate_results(stream.dlpack)
        for result, output in zip(self.results, outputs):
            result.address = output.address
        options = c.CallOptions(size=ctypes.sizeof(c.CallOptions), stream=stream.handle or 0)
        if allocator is not None:
            options.allocator = allocator
        self.issue(verify, options)
        return outputs


def _values(outputs: Sequence[View]) -> Any:
    values = tuple(output.owner for output in outputs)
    return values[0] if len(values) == 1 else values or None


@contextlib.contextmanager
def _memory(library: Any, device: int) -> Iterator[Any]:
    """A function that allocates device memory, all of which is freed at the end."""
    owned: list[int] = []

    def allocate(size: int) -> int:
        address = ctypes.c_uint64()
        library.fp4_device_allocate(device, size, ctypes.byref(address))
        owned.append(address.value)
        return address.value

    try:
        yield allocate
    finally:
        for address in owned:
            with contextlib.suppress(Error):  # the error of the call is the one to tell
                library.fp4_device_free(device, address)


class _TorchAllocator:
    """Temporary memory of a call from torch's caching allocator. A tensor is dropped when its last
    use has been issued; the allocator gives its memory to later work of the same stream."""

    def __init__(self, torch: Any, index: int) -> None:
        self.failure: BaseException | None = None
        tensors: dict[int, Any] = {}

        def allocate(context: int | None, size: int, stream: int) -> int:
            try:
                tensor = torch.empty(max(size, 1), dtype=torch.uint8, device=f"cuda:{index}")
            except BaseException as error:  # no exception may pass through C
                self.failure = error
                return 0
            tensors[tensor.data_ptr()] = tensor
            return int(tensor.data_ptr())

        def free(context: int | None, address: int, stream: int) -> None:
            tensors.pop(address, None)

        self.functions = c.Allocator(None, c.AllocateFunction(allocate), c.FreeFunction(free))
