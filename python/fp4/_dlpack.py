"""Reads the capsules of DLPack, which describe the memory of an array of any package."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any

from .errors import UsageError

_CPU, _CUDA = 1, 2
# (type code, bits, lanes) of https://dmlc.github.io/dlpack/latest/c_api.html
_DTYPES = {
    (0, 64, 1): "int64", (1, 8, 1): "uint8", (1, 16, 1): "uint16", (2, 16, 1): "float16",
    (2, 32, 1): "float32", (4, 16, 1): "bfloat16", (10, 8, 1): "float8_e4m3fn",
    (12, 8, 1): "float8_e5m2", (14, 8, 1): "float8_e8m0fnu", (17, 4, 2): "float4_e2m1fn_x2",
}


class _Tensor(ctypes.Structure):
    """DLTensor, with which DLManagedTensor begins"""

    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


@dataclasses.dataclass(frozen=True)
class Found:
    """What a capsule describes; `owner` keeps it alive."""

    owner: Any
    dtype: str
    shape: tuple[int, ...]
    address: int


def read(value: Any, what: str) -> Found:
    """The memory of a DLPack object on the CPU."""
    try:
        kind = int(value.__dlpack_device__()[0])
    except Exception as error:
        raise UsageError(f"{what} must say where it is, but __dlpack_device__ fails: "
                         f"{error}") from error
    if kind != _CPU:
        note = "torch.from_dlpack(x) makes a torch tensor of it" if kind == _CUDA else ""
        raise UsageError(f"{what} must be on the CPU (DLPack device 1) unless it is a torch "
                         f"tensor, but is on DLPack device {kind}", note)
    try:
        capsule = value.__dlpack__()
    except Exception as error:
        raise UsageError(f"{what} must export its memory, but __dlpack__ fails: "
                         f"{error}") from error
    return _describe(capsule, what)


def _describe(capsule: Any, what: str) -> Found:
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
    try:
        address = get_pointer(capsule, b"dltensor")
    except (ValueError, TypeError) as error:
        raise UsageError(f"{what} must export a capsule 'dltensor', but gave "
                         f"{capsule!r}") from error
    tensor = _Tensor.from_address(address)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides and not _is_dense(shape, [tensor.strides[i] for i in range(tensor.ndim)]):
        from .tensors import not_contiguous

        raise not_contiguous(what, shape)
    key = (tensor.code, tensor.bits, tensor.lanes)
    dtype = _DTYPES.get(key, f"DLPack(code {key[0]}, bits {key[1]}, lanes {key[2]})")
    return Found((capsule,), dtype, shape, (tensor.data or 0) + tensor.byte_offset)


def _is_dense(shape: tuple[int, ...], strides: list[int]) -> bool:
    return math.prod(shape) == 0 or all(
        size == 1 or stride == math.prod(shape[i + 1:])
        for i, (size, stride) in enumerate(zip(shape, strides)))
