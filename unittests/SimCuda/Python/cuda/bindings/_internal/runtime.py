"""Looks like the module of cuda.bindings that has a CUDA runtime inside: its functions answer 999."""
import ctypes
import os

SIGNATURE = b"cudaError_t (int *)"  # lives as long as the capsules that point to it
library = ctypes.CDLL(os.environ["FP4_TEST_RUNTIME"])


def capsule(name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.cast(getattr(library, name), ctypes.c_void_p), SIGNATURE, None)


__pyx_capi__ = {f"_{name}": capsule(name) for name in ("cudaGetDeviceCount", "cudaDriverGetVersion")}
