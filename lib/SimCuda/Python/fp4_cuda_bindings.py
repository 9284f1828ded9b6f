"""Gives cuda.bindings our CUDA runtime in place of the one that is linked into it.

cuda.bindings.runtime is a library without a symbol table, but it exports its functions to other
extension modules by name (__pyx_capi__). Behind its import each of them begins with a jump to ours;
what it carries never runs.
"""
import ctypes

from fp4_redirect import JUMP_BYTES, address_of, our_library, write_jump

MODULES = ("cuda.bindings._internal.runtime", "cuda.bindings._internal.runtime_ptds")


def exported_functions(module):
    """The addresses of the functions that a Cython module exports, by name."""
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype = ctypes.c_void_p
    pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return {name: pointer_of(capsule, name_of(capsule))
            for name, capsule in module.__pyx_capi__.items()}


def take_over(module):
    import cuda.bindings

    major = getattr(cuda.bindings, "__version__", "13").split(".")[0]
    runtime = our_library(f"libcudart.so.{major}")
    functions = exported_functions(module)
    places = sorted(functions.values())
    for name, address in functions.items():
        ours = address_of(runtime, name[1:]) if name.startswith("_cuda") else None
        behind = next((place for place in places if place > address), address + JUMP_BYTES)
        if ours and behind - address >= JUMP_BYTES:
            write_jump(address, ours)
