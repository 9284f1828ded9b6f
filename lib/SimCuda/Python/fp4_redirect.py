"""Functions of libraries without symbol tables begin with a jump to ours (x86-64)."""
import ctypes
import functools
import mmap
import os
import struct

JUMP_BYTES = 14


@functools.cache
def _libc():
    return ctypes.CDLL(None)


def our_library(name):
    """The simulator's library of this name, also where another one of this name is there already.

    A path is necessary: a torch for CUDA brings a libcudart with it, and once that is loaded, its
    name alone means it."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return ctypes.CDLL(os.path.join(folder, name))


def write_jump(begin, to):
    """Lets the function at `begin` continue at `to`; what it did never runs."""
    page = begin // mmap.PAGESIZE * mmap.PAGESIZE
    size = begin + JUMP_BYTES - page
    pages, code = ctypes.c_void_p(page), mmap.PROT_READ | mmap.PROT_EXEC
    if _libc().mprotect(pages, ctypes.c_size_t(size), code | mmap.PROT_WRITE) == 0:
        ctypes.memmove(begin, b"\xff\x25\0\0\0\0" + struct.pack("<Q", to), JUMP_BYTES)
        _libc().mprotect(pages, ctypes.c_size_t(size), code)


def address_of(library, name):
    """The address of a function in a library, or None."""
    function = getattr(library, name, None)
    return function and ctypes.cast(function, ctypes.c_void_p).value
