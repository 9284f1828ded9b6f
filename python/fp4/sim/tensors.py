"""CPU tensors that say they are on "cuda", and whose memory is the simulator's while kernels run.

A tensor is on the device if its storage is marked. Methods of torch.Tensor answer by the mark
(x.device, x.to(...)), and x.data_ptr() lends the storage to the simulator as device memory. A
TorchFunctionMode turns device="cuda" into a mark; a TorchDispatchMode lets the results of
operations inherit it, also those of autograd, and notes which bytes of an uninitialized tensor
operations have written. Everything is computed by torch on the CPU; only launches go to the
simulator.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.abc
import os
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

from . import driver

CUDA = torch.device("cuda", 0)
_T = torch.Tensor
#: The byte that fills simulated device memory before anybody writes it.
_FILL = 0xCD


class _Marked:
    """The storages on the device, and which of them the simulator has. A weak reference keeps the
    identity of a dead storage from being used again."""

    def __init__(self) -> None:
        self._marks: dict[int, Any] = {}
        self._lent: dict[int, tuple[Any, int]] = {}
        #: Regions (offset and size) that torch has written, of storages that began uninitialized.
        self._written: dict[int, list[tuple[int, int]]] = {}
        self._limit = 256

    def add(self, tensor: _T) -> None:
        storage = tensor.untyped_storage()
        if storage._cdata not in self._marks:
            self._marks[storage._cdata] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
            if len(self._marks) > self._limit:
                self._marks = {key: mark for key, mark in self._marks.items()
                               if not mark.expired()}
                self._written = {key: written for key, written in self._written.items()
                                 if key in self._marks}
                self._limit = max(256, 2 * len(self._marks))

    def remove(self, tensor: _T) -> None:
        self._marks.pop(tensor.untyped_storage()._cdata, None)
        self._written.pop(tensor.untyped_storage()._cdata, None)

    def begin_unwritten(self, tensor: _T) -> None:
        """Notes that nobody has written the storage of this new tensor."""
        self._written[tensor.untyped_storage()._cdata] = []

    def note_written(self, tensor: _T) -> None:
        """Notes that an operation of torch has written the tensor."""
        storage = tensor.untyped_storage()
        written = self._written.get(storage._cdata)
        if written is None:
            return
        begin, size = 0, storage.nbytes()
        if tensor.is_contiguous():
            begin = int(tensor.storage_offset()) * tensor.element_size()
            size = tensor.numel() * tensor.element_size()
        written.append((begin, size))
        known = self._lent.get(storage.data_ptr())
        if known is not None and begin + size <= known[1]:
            driver.mark_written(storage.data_ptr() + begin, size)

    def has(self, tensor: _T) -> bool:
        mark = self._marks.get(tensor.untyped_storage()._cdata)
        return mark is not None and not mark.expired()

    def lend(self, tensor: _T) -> None:
        """Lets kernels access the storage of the tensor, and nothing beyond it, while it lives."""
        storage = tensor.untyped_storage()
        address, size = storage.data_ptr(), storage.nbytes()
        known = self._lent.get(address)
        if not size or (known and known[0].cdata == storage._cdata and known[1] == size):
            return
        if known:  # it was resized in place
            driver.take_back(address)
            self._written.pop(storage._cdata, None)
        written = self._written.get(storage._cdata)
        driver.lend(address, size, written is None)
        for begin, part in written or ():
            driver.mark_written(address + begin, part)
        mark = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        self._lent[address] = mark, size
        # Kernels that keep the address of a dead tensor would write into the heap of the process.
        weakref.finalize(storage, self._take_back, address, mark).atexit = False

    def _take_back(self, address: int, mark: Any) -> None:
        if address in self._lent and self._lent[address][0] is mark:
            del self._lent[address]
            driver.take_back(address)


marked = _Marked()


def is_on_device(x: Any) -> bool:
    return isinstance(x, _T) and x.layout == torch.strided and marked.has(x)


def _tensors(values: Any) -> Iterator[_T]:
    for value in _pytree.tree_leaves(values):
        if isinstance(value, _T) and value.layout == torch.strided:
            yield value


def _names_cuda(device: Any) -> bool:
    if isinstance(device, int) and not isinstance(device, bool):
        return True
    if isinstance(device, (str, torch.device)):
        device = torch.device(device)
        if device.type == "cuda" and (device.index or 0) > 0:
            raise RuntimeError(f"CUDA error: invalid device ordinal: there is one device, not "
                               f"{device}\nnote: use cuda:0")
        return bool(device.type == "cuda")
    return False


class _Generator(torch.Generator):
    """A generator that may say it is on the device: its numbers are those of the CPU's."""

    _on_device: bool

    def __new__(cls, device: Any = "cpu") -> _Generator:
        on_device = _names_cuda(device)
        made: _Generator = super().__new__(  # type: ignore[call-arg]
            cls, device="cpu" if on_device else device)
        made._on_device = on_device
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return CUDA if self._on_device else torch.device("cpu")


class Inherit(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Results of operations on tensors of the device are on the device."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return "torch._dynamo" in sys.modules  # or else _HideFromCompiler does it

    #: How many operators of CUDA alone run now, one within the other.
    _inside = 0

    def _on_cuda(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The operator of a library, also for the operations that it consists of. One in C++ asks
        tensors for their addresses without our data_ptr, so kernels get them all."""
        for tensor in filter(marked.has, _tensors((args, kwargs))):
            marked.lend(tensor)
        self._inside += 1
        try:
            with self:
                return func._op_dk(torch._C.DispatchKey.CUDA, *args, **kwargs)
        finally:
            self._inside -= 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        on_device = any(map(marked.has, _tensors((args, kwargs))))
        if _names_cuda(kwargs.get("device")):
            kwargs["device"], on_device = torch.device("cpu"), True
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        wide = on_device and func.overloadpacket in _IN_FLOAT32
        if on_device and _is_of_cuda_alone(func):
            result = self._on_cuda(func, args, kwargs)
        else:
            result = _in_float32(func, args, kwargs) if wide else func(*args, **kwargs)
        if on_device:
            for tensor in _tensors(result):
                marked.add(tensor)
            if func.overloadpacket in _UNINITIALIZED:
                _fill(result)
            else:
                _note_results(func, args, kwargs)
            if self._inside:
                for tensor in _tensors(result):
                    marked.lend(tensor)
        return result


class _HideFromCompiler(importlib.abc.MetaPathFinder):
    """Hides Inherit from torch's compiler when a script imports that. torch itself would import it
    in the first operation of every script to do so, for as long as torch takes."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == "torch._dynamo":
            hide: Any = torch._disable_dynamo  # type: ignore[attr-defined]
            setattr(Inherit, "__torch_dispatch__", hide(Inherit.__torch_dispatch__))  # noqa: B010


@functools.cache
def _written_arguments(func: Any) -> tuple[tuple[int, str], ...]:
    """Position and name of the arguments that an operation writes."""
    return tuple((index, argument.name) for index, argument in enumerate(func._schema.arguments)
                 if argument.alias_info is not None and argument.alias_info.is_write)


def _note_results(func: Any, args: Any, kwargs: Any) -> None:
    for index, name in _written_arguments(func):
        for tensor in _tensors(args[index] if index < len(args) else kwargs.get(name)):
            marked.note_written(tensor)


@functools.cache
def _is_of_cuda_alone(func: Any) -> bool:
    """Returns True if a library registered the operation for CUDA, and neither for the CPU nor for
    both."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    keys = ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
    return has(func.name(), "CUDA") and not any(has(func.name(), key) for key in keys)


#: On a GPU these keep sums and statistics of 16-bit tensors in float32, and on the CPU they do not:
#: how many of the results have the dtype of the input.
_IN_FLOAT32 = {torch.ops.aten.native_layer_norm: 1, torch.ops.aten.native_layer_norm_backward: 3}


def _in_float32(func: Any, args: Any, kwargs: Any) -> Any:
    first = next(_tensors(args))
    args = _pytree.tree_map_only(_T, lambda x: x.float() if x.is_floating_point() else x, args)
    found = func(*args, **kwargs)
    narrow = _IN_FLOAT32[func.overloadpacket]
    return tuple(_ORIGINAL["to"](x, first.dtype) if x is not None and index < narrow else x
                 for index, x in enumerate(found))


def _fill(x: _T) -> None:
    if x.numel() and x.is_contiguous():
        x.view(-1).view(torch.uint8).fill_(_FILL)
        marked.begin_unwritten(x)


_UNINITIALIZED = {torch.ops.aten.empty, torch.ops.aten.empty_like, torch.ops.aten.new_empty}


#: Attributes of torch that the functions below replace.
_ORIGINAL: dict[str, Any] = {name: getattr(_T, name) for name in (
    "device", "data_ptr", "to", "numpy", "__dlpack__", "__dlpack_device__")}
_FROM_DLPACK: Any = torch.utils.dlpack.from_dlpack
_DL_CPU, _DL_CUDA = 1, 2


def _move(x: _T, to_cuda: bool, dtype: torch.dtype | None, copy: bool, options: Any) -> _T:
    """x on the device, or on the host."""
    y: _T = _ORIGINAL["to"](x, dtype or x.dtype, copy=copy, **options)
    if marked.has(x) != to_cuda and y.untyped_storage()._cdata == x.untyped_storage()._cdata:
        y = y.clone()
    (marked.add if to_cuda else marked.remove)(y)
    return y


def _to(x: _T, *args: Any, copy: bool = False, **kwargs: Any) -> _T:
    other = args[0] if args and isinstance(args[0], _T) else kwargs.pop("other", None)
    if other is not None:
        return _move(x, marked.has(other), other.dtype, copy, {})
    device, dtype, _, memory_format = torch._C._nn._parse_to(*args, **kwargs)
    options = {} if memory_format is None else {"memory_format": memory_format}
    to_cuda = marked.has(x) if device is None else _names_cuda(device)
    return _move(x, to_cuda, dtype, copy, options)


def _cuda(x: _T, device: Any = None, non_blocking: bool = False, **options: Any) -> _T:
    _names_cuda(CUDA if device is None else device)
    return _move(x, True, None, False, options)


def _cpu(x: _T, **options: Any) -> _T:
    return _move(x, False, None, False, options)


def _pointer(x: _T) -> int:
    if is_on_device(x):
        marked.lend(x)
    return int(_ORIGINAL["data_ptr"](x))


def _pinned(x: _T, *args: Any, **kwargs: Any) -> _T:
    y = x.clone()
    marked.remove(y)
    return y


def _numpy(x: _T, *args: Any, **kwargs: Any) -> Any:
    if is_on_device(x):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to "
                        "copy the tensor to host memory first.")
    return _ORIGINAL["numpy"](x, *args, **kwargs)


def _dlpack_device(x: _T) -> tuple[int, int]:
    found: tuple[int, int] = _ORIGINAL["__dlpack_device__"](x)
    return (_DL_CUDA, 0) if is_on_device(x) else found


def _dlpack(x: _T, **options: Any) -> Any:
    """A capsule that says kDLCUDA, of memory that kernels may access."""
    if not is_on_device(x):
        return _ORIGINAL["__dlpack__"](x, **options)
    marked.lend(x)
    options = {name: value for name, value in options.items()
               if name not in ("stream", "dl_device")}
    capsule = _ORIGINAL["__dlpack__"](x.detach(), **options)  # as TVM FFI takes them on a GPU
    _dlpack_device_of(capsule)[:] = _DL_CUDA, 0
    return capsule


def _dlpack_device_of(capsule: Any) -> Any:
    """The DLDevice inside: two numbers that may be changed."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    versioned = "dltensor_versioned" in repr(capsule)
    name = b"dltensor_versioned" if versioned else b"dltensor"
    # DLManagedTensorVersioned begins with its version, context, deleter and flags; then both
    # have the address of the data.
    return (ctypes.c_int32 * 2).from_address(pointer_of(capsule, name) + (40 if versioned else 8))


def _from_dlpack(source: Any, **options: Any) -> _T:
    """torch.from_dlpack, which also takes back what _dlpack gave."""
    capsule = source.__dlpack__() if hasattr(source, "__dlpack__") else source
    device = _dlpack_device_of(capsule)
    on_device = device[0] == _DL_CUDA
    if on_device:
        device[:] = _DL_CPU, 0
    result: _T = _FROM_DLPACK(capsule, **options)
    if on_device:
        marked.add(result)
    return result


def _device(x: _T) -> torch.device:
    found: torch.device = _ORIGINAL["device"].__get__(x)
    return CUDA if is_on_device(x) else found


def install() -> None:
    """Puts the answers of this module into torch.Tensor."""
    methods: dict[str, Any] = {
        "device": property(_device), "is_cuda": property(is_on_device),
        "is_cpu": property(lambda x: not is_on_device(x)),
        "get_device": lambda x: 0 if is_on_device(x) else -1, "data_ptr": _pointer, "to": _to,
        "cuda": _cuda, "cpu": _cpu, "numpy": _numpy, "pin_memory": _pinned,
        "is_pinned": lambda x, *args: False,
        "record_stream": lambda x, stream: None,  # streams are only names
        "__dlpack__": _dlpack, "__dlpack_device__": _dlpack_device,
    }
    for name, method in methods.items():
        setattr(_T, name, method)
    sys.meta_path.insert(0, _HideFromCompiler())
    torch.Generator = _Generator  # type: ignore[misc]
    if hasattr(_T, "__dlpack_c_exchange_api__"):  # it would not ask us
        del _T.__dlpack_c_exchange_api__
    autograd: Any = torch.autograd
    engine = autograd._engine_run_backward

    def run_backward(*args: Any, **kwargs: Any) -> Any:
        """torch runs it without modes, but backward functions of scripts name devices."""
        with Redirect():
            return engine(*args, **kwargs)

    autograd._engine_run_backward = run_backward
    for module in (torch, torch.utils.dlpack):
        setattr(module, "from_dlpack", _from_dlpack)  # noqa: B010
        setattr(module, "to_dlpack", _dlpack)  # noqa: B010
    # TVM FFI, by which libraries call compiled kernels, would give torch.Tensor another one.
    os.environ["TVM_FFI_DISABLE_TORCH_C_DLPACK"] = "1"
    os.environ["TVM_FFI_SKIP_DLPACK_C_EXCHANGE_API"] = "1"


class Redirect(TorchFunctionMode):
    """Handles the devices that scripts name: device="cuda" is a mark."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        if device is None or func in (torch.device, torch._C._nn._parse_to):
            return func(*args, **kwargs)  # _to and torch.device take the name as it is
        to_cuda = _names_cuda(device)
        kwargs["device"] = torch.device("cpu") if to_cuda else device
        result = func(*args, **kwargs)
        inputs = {x.untyped_storage()._cdata for x in _tensors((args, kwargs))}
        for tensor in _tensors(result):
            if tensor.untyped_storage()._cdata not in inputs:
                (marked.add if to_cuda else marked.remove)(tensor)
                if to_cuda and func in (torch.empty, torch.empty_like, _T.new_empty):
                    _fill(tensor)
        return result
