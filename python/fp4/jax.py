"""Functions of emitted libraries in JAX, also under jax.jit. Arrays on the CPU run in the
simulator, those on a GPU in XLA's stream."""

from __future__ import annotations

import hashlib
import os
import pathlib
from collections.abc import Callable
from typing import Any

from . import _library as c
from ._dlpack import CPU
from .errors import UsageError
from .manifest import ELEMENTS, LAYOUTS, Type
from .program import Program, arguments_of, tensor_name
from .program import load as load_program
from .tensors import Tiled, View, numpy_dtype

try:
    import jax
except ImportError as error:
    raise ImportError("fp4.jax needs jax\nnote: pip install jax") from error

__all__ = ["load"]

#: The platforms of XLA, and their handlers (include/fp4-c/Frameworks.h).
_HANDLERS = {"cpu": "fp4_xla_call_sim", "CUDA": "fp4_xla_call_cuda"}
_TARGET = "fp4_call"


for _platform, _symbol in _HANDLERS.items():  # at import: a deserialized computation needs them
    jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(getattr(c.library(), _symbol)),
                                platform=_platform)


class _Function:
    """A function of a library that JAX calls."""

    def __init__(self, program: Program, key: str, name: str | None) -> None:
        self._key, self._signature = key, program.manifest.find(name)
        self._program = program
        self.__name__ = self._signature.name

    def __call__(self, *arrays: Any) -> Any:
        views = [_view(array, tensor_name(self._signature, i)) for i, array in enumerate(arrays)]
        arguments = arguments_of(self._signature, views)
        results = (c.Tensor * len(self._signature.results))()
        c.library().fp4_program_describe(self._program._handle, self._signature.name.encode(),
                                         arguments, len(views), results, len(results))
        types = [_struct(result) for result in results]
        outputs = jax.ffi.ffi_call(_TARGET, types)(*arrays, program=self._key,
                                                   function=self._signature.name)
        return outputs[0] if len(outputs) == 1 else tuple(outputs) or None

    def __repr__(self) -> str:
        return f"<fp4.jax.Function {self._signature}>"


def _view(array: Any, what: str) -> View:
    """The dtype and the shape of an array that may be traced."""
    if isinstance(array, Tiled):
        raise UsageError(f"{what} must be an array, but got fp4.tiled",
                         "name the rows with fp4.dims on this and on another argument")
    if not hasattr(array, "dtype") or not hasattr(array, "shape"):
        raise TypeError(f"{what} must be an array of JAX or NumPy, but got "
                        f"{type(array).__name__}\nnote: pass jax.numpy.asarray(x, dtype)")
    return View(array, "jax", str(array.dtype), tuple(array.shape), 0, CPU)


def _struct(result: c.Tensor) -> Any:
    kind = Type(tuple(result.sizes[:result.rank]), ELEMENTS[result.element],
                LAYOUTS[result.layout])
    return jax.ShapeDtypeStruct(kind.buffer_shape, numpy_dtype(kind.element, kind.item_bytes))


def load(path: str | os.PathLike[str], function: str | None = None) -> Callable[..., Any]:
    """Loads an emitted library and returns its function of this name, or its only one.

    f(*arrays) takes and returns arrays of dtypes and shapes of fp4.Program, 4-bit elements as
    uint8. Tiled scales with dynamic rows need fp4.dims. A compiled computation names
    the library by its bytes: another process loads the same file first.
    """
    program = load_program(path)
    key = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    c.library().fp4_xla_add(key.encode(), program._handle)
    return _Function(program, key, function)
