"""The libcuda of `fp4-sim run`, as far as tensors need it."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from ..errors import DeviceError

#: CU_DEVICE_ATTRIBUTE_...: values of the driver API.
ATTRIBUTES = {
    "max_threads_per_block": 1, "shared_memory_per_block": 8, "total_constant_memory": 9,
    "warp_size": 10, "regs_per_block": 12, "clock_rate": 13, "multi_processor_count": 16,
    "memory_clock_rate": 36, "memory_bus_width": 37, "L2_cache_size": 38,
    "max_threads_per_multi_processor": 39, "major": 75, "minor": 76,
    "shared_memory_per_multiprocessor": 81, "regs_per_multiprocessor": 82,
    "shared_memory_per_block_optin": 97,
}


@functools.cache
def _library() -> Any:
    if "FP4_SIM_DEVICE" not in os.environ:
        raise DeviceError("libcuda.so.1 is not the simulator's",
                          "start the script with python -m fp4.sim")
    library = ctypes.CDLL("libcuda.so.1")
    _check(library, "cuInit", 0)
    return library


def _check(library: Any, name: str, *arguments: Any) -> None:
    code = getattr(library, name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        library.cuGetErrorName(code, ctypes.byref(text))
        reason = text.value.decode() if text.value else str(code)
        raise RuntimeError(f"CUDA error: {reason} from {name} (the simulator's report is above)")


def call(name: str, *arguments: Any) -> None:
    """A function of the driver; a RuntimeError where it fails, as in torch."""
    library = _library()
    _make_current(library)
    _check(library, name, *arguments)


@functools.cache
def _primary_context() -> Any:
    context = ctypes.c_void_p()
    _check(_library(), "cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    return context


def _make_current(library: Any) -> None:
    _check(library, "cuCtxSetCurrent", _primary_context())


def attribute(name: str) -> int:
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), ATTRIBUTES[name], 0)
    return value.value


def device_name() -> str:
    text = ctypes.create_string_buffer(256)
    call("cuDeviceGetName", text, 256, 0)
    return text.value.decode()


def total_memory() -> int:
    value = ctypes.c_size_t()
    call("cuDeviceTotalMem_v2", ctypes.byref(value), 0)
    return value.value


def lend(address: int, size: int, written: bool) -> None:
    """Makes host memory device memory, at the same address and within these bounds: nothing but
    kernels writes it while a launch runs. `written`: the host has written all of it."""
    call("cuFp4Lend", ctypes.c_void_p(address), ctypes.c_size_t(size), int(written))


def take_back(address: int) -> None:
    call("cuFp4Return", ctypes.c_void_p(address))


def mark_written(address: int, size: int) -> None:
    """The host has written to memory that it lent."""
    call("cuFp4Written", ctypes.c_void_p(address), ctypes.c_size_t(size))


def synchronize() -> None:
    call("cuCtxSynchronize")
