"""Functions of emitted libraries for apache-tvm-ffi, in any language."""

from __future__ import annotations

import os
from typing import Any

from . import _library as c
from .program import load as load_program

try:
    import tvm_ffi  # loads libtvm_ffi.so
except ImportError as error:
    raise ImportError("fp4.tvm_ffi needs apache-tvm-ffi\nnote: pip install apache-tvm-ffi"
                      ) from error

__all__ = ["load"]


def load(path: str | os.PathLike[str], prefix: str = "fp4.") -> dict[str, Any]:
    """Makes each function of a library the global function `prefix` + its name, and returns all.

    f(*arguments, *results) takes DLPack tensors of one device, with the dtypes and shapes of
    fp4.Program, and writes the results; a ValueError says which does not fit. Work on a GPU
    is in the stream of tvm-ffi's environment. Tiled scales with dynamic rows need fp4.dims.
    """
    program = load_program(path)
    for name in program.manifest.functions:
        c.library().fp4_tvm_ffi_add(program._handle, name.encode(),
                                    c.encode(prefix + name, "'prefix'"))
    return {name: tvm_ffi.get_global_func(prefix + name) for name in program.manifest.functions}
