"""Under fp4-sim run: gives cuda.bindings our CUDA runtime in place of the one that is linked into it.

cuda.bindings.runtime is a library without a symbol table, but it exports its functions to other extension modules by
name (__pyx_capi__). Behind its import each of them begins with a jump to ours (x86-64); what it carries never runs.
"""
import ctypes
import importlib.abc
import importlib.util
import mmap
import os
import platform
import struct
import sys

MODULES = ("cuda.bindings._internal.runtime", "cuda.bindings._internal.runtime_ptds")
JUMP_BYTES = 14


def write_jump(libc, begin, to):
    page = begin // mmap.PAGESIZE * mmap.PAGESIZE
    size = begin + JUMP_BYTES - page
    pages, code = ctypes.c_void_p(page), mmap.PROT_READ | mmap.PROT_EXEC
    if libc.mprotect(pages, ctypes.c_size_t(size), code | mmap.PROT_WRITE) == 0:
        ctypes.memmove(begin, b"\xff\x25\0\0\0\0" + struct.pack("<Q", to), JUMP_BYTES)
        libc.mprotect(pages, ctypes.c_size_t(size), code)


def exported_functions(module):
    """The addresses of the functions that a Cython module exports, by name."""
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return {name: pointer_of(capsule, name_of(capsule)) for name, capsule in module.__pyx_capi__.items()}


def take_over(module):
    import cuda.bindings

    major = getattr(cuda.bindings, "__version__", "13").split(".")[0]
    runtime, libc = ctypes.CDLL(f"libcudart.so.{major}"), ctypes.CDLL(None)
    functions = exported_functions(module)
    places = sorted(functions.values())
    for name, address in functions.items():
        ours = getattr(runtime, name[1:], None) if name.startswith("_cuda") else None
        behind = next((place for place in places if place > address), address + JUMP_BYTES)
        if ours and behind - address >= JUMP_BYTES:
            write_jump(libc, address, ctypes.cast(ours, ctypes.c_void_p).value)


class Loader(importlib.abc.Loader):
    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        take_over(module)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in MODULES:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        sys.meta_path.insert(0, self)
        if spec and spec.loader:
            spec.loader = Loader(spec.loader)
        return spec


def run_the_next():
    """Python runs one sitecustomize: the one that this hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        sys.modules["sitecustomize"] = own


if platform.machine() == "x86_64":
    sys.meta_path.insert(0, Finder())
run_the_next()
