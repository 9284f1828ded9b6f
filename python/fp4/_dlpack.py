"""Reads the capsules of DLPack, which describe the memory of an array of any package."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

from .errors import UsageError

CPU = -1  # as a device; others are CUDA devices
_CPU, _CUDA, _CUDA_MANAGED = 1, 2, 13  # kDLCPU, kDLCUDA, kDLCUDAManaged
_MAJOR = 1  # of the structures here
_IS_COPIED = 2  # DLPACK_FLAG_BITMASK_IS_COPIED
# (type code, bits, lanes) of https://dmlc.github.io/dlpack/latest/c_api.html
_DTYPES = {
    (0, 64, 1): "int64", (0, 32, 1): "int32", (1, 8, 1): "uint8", (1, 16, 1): "uint16",
    (2, 16, 1): "float16", (2, 32, 1): "float32", (4, 16, 1): "bfloat16",
    (10, 8, 1): "float8_e4m3fn", (12, 8, 1): "float8_e5m2", (14, 8, 1): "float8_e8m0fnu",
    (17, 4, 2): "float4_e2m1fn_x2",
}


class _Tensor(ctypes.Structure):
    """DLTensor, with which DLManagedTensor begins"""

    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned"""

    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p),
                ("deleter", c_void_p), ("flags", c_uint64), ("tensor", _Tensor)]


@dataclasses.dataclass(frozen=True)
class Found:
    """The tensor that a capsule describes; `owner` keeps it alive."""

    owner: Any
    dtype: str
    shape: tuple[int, ...]
    address: int
    device: int  #: CPU, or the number of a CUDA device


def read(value: Any, what: str, stream: int) -> Found:
    """The memory of a DLPack object on the CPU or a CUDA device, without a copy. The package of an
    array on a CUDA device makes `stream` wait for its work: 1 is the default stream, 2 that of the
    thread, others are a cudaStream_t. Managed memory is on the device that it names."""
    try:
        kind, index = map(int, value.__dlpack_device__())
    except Exception as error:
        raise UsageError(f"{what} must say where it is, but __dlpack_device__ fails: "
                         f"{error}") from error
    if kind not in (_CPU, _CUDA, _CUDA_MANAGED):
        raise UsageError(f"{what} must be on the CPU (DLPack device 1) or on a CUDA device (2, "
                         f"managed memory 13), but is on DLPack device {kind}",
                         "copy it to one of these")
    try:
        capsule = _export(value, {} if kind == _CPU else {"stream": stream})
    except Exception as error:
        raise UsageError(f"{what} must export its memory, but __dlpack__ fails: "
                         f"{error}") from error
    tensor = _tensor_of(capsule, what)
    if (tensor.device_type, tensor.device_id) != (kind, index):
        raise UsageError(f"{what} must be on DLPack device {kind}:{index}, as __dlpack_device__ "
                         f"says, but is on {tensor.device_type}:{tensor.device_id}")
    return _describe(tensor, capsule, what, CPU if kind == _CPU else index)


def _export(value: Any, options: dict[str, Any]) -> Any:
    try:
        return value.__dlpack__(**options, max_version=(_MAJOR, 0), copy=False)
    except TypeError:  # before version 2023.12 of the array API there was neither, nor a copy
        return value.__dlpack__(**options)


def _tensor_of(capsule: Any, what: str) -> _Tensor:
    """The DLTensor in a capsule of either form."""
    for name, begin in ((b"dltensor_versioned", _Versioned.tensor.offset), (b"dltensor", 0)):
        if not _api("PyCapsule_IsValid", ctypes.c_int)(capsule, name):
            continue
        address = _api("PyCapsule_GetPointer", c_void_p)(capsule, name)
        if begin:
            _check_version(_Versioned.from_address(address), what)
        return _Tensor.from_address(address + begin)
    raise UsageError(f"{what} must export a capsule 'dltensor' or 'dltensor_versioned', but gave "
                     f"{capsule!r}")


def _api(name: str, result: Any) -> Any:
    function = ctypes.pythonapi[name]  # an object of its own: others set other types
    function.restype, function.argtypes = result, [ctypes.py_object, ctypes.c_char_p]
    return function


def _check_version(versioned: _Versioned, what: str) -> None:
    if versioned.major != _MAJOR:
        raise UsageError(f"{what} must be of version {_MAJOR} of DLPack, but is of version "
                         f"{versioned.major}.{versioned.minor}")
    if versioned.flags & _IS_COPIED:
        raise UsageError(f"{what} must be exported as it is, but __dlpack__ made a copy",
                         "copy it yourself, if that is what you want")


def _describe(tensor: _Tensor, capsule: Any, what: str, device: int) -> Found:
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides and not _is_dense(shape, [tensor.strides[i] for i in range(tensor.ndim)]):
        from .tensors import not_contiguous

        raise not_contiguous(what, shape)
    key = (tensor.code, tensor.bits, tensor.lanes)
    dtype = _DTYPES.get(key, f"DLPack(code {key[0]}, bits {key[1]}, lanes {key[2]})")
    return Found(capsule, dtype, shape, (tensor.data or 0) + tensor.byte_offset, device)


def _is_dense(shape: tuple[int, ...], strides: list[int]) -> bool:
    return math.prod(shape) == 0 or all(
        size == 1 or stride == math.prod(shape[i + 1:])
        for i, (size, stride) in enumerate(zip(shape, strides)))
