"""The fast way of a call: the native module where there is one, and how it learns about torch.

Program checks a call in Python. After that, `remember` gives the plan of the call to the native
module, and calls with tensors of the same types and shapes take it. Without the module, or with a
torch that has no exchange API of DLPack (before 2.10), every call is checked in Python.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.machinery
import importlib.util
import os
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from . import _library as c
from .errors import make_error
from .tensors import View

if TYPE_CHECKING:
    from . import _native
    from .program import Program, _Call


def _raise(kind: int, message: str, note: str, cause: str) -> NoReturn:
    raise make_error(kind, message, note) from (RuntimeError(cause) if cause else None)


def _load() -> Any:
    """The module beside the library, or None: then $FP4_NATIVE is 0, or it was not built, or it
    does not fit to this Python. The module finds the library when a plan is made."""
    path = c.PATH.parent / "_native.abi3.so"
    if os.environ.get("FP4_NATIVE") == "0" or not path.is_file():
        return None
    name = __package__ + "._native"
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    with contextlib.suppress(ImportError):
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        sys.modules[name] = module
        return module
    return None


native: Any = _load()

if TYPE_CHECKING:
    Calls = _native.Calls
    Gate = _native.Gate
elif native is not None:
    Calls, Gate = native.Calls, native.Gate
else:

    class Calls:
        """Calls that are checked in Python, every time."""

        def __call__(self, *tensors: Any, **options: Any) -> Any:
            return self._call(*tensors, **options)

    class Gate:
        """Holds calls off an executable that is destroyed (_native.pyi)."""

        def __init__(self) -> None:
            self._changed = threading.Condition()
            self._inside, self._is_closed = 0, False

        def enter(self) -> bool:
            with self._changed:
                self._inside += not self._is_closed
                return not self._is_closed

        def leave(self) -> None:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

        def close(self) -> None:
            with self._changed:
                self._is_closed = True
                self._changed.wait_for(lambda: not self._inside)


@functools.cache
def _accept(torch: Any) -> bool:
    """Returns True if the module fits to the library, and can read the tensors of `torch`."""
    api = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if native is None or api is None:
        return False
    several = torch.cuda.is_available() and torch.cuda.device_count() > 1
    with contextlib.suppress(BufferError, ValueError, ImportError):
        native.load(str(c.PATH), _raise)
        native.accept((torch.Tensor, torch.nn.Parameter), api, torch.Tensor.is_neg,
                      torch.cuda.current_device if several else None)
        return True
    return False


def remember(program: Program, name: str | None, tensors: tuple[Any, ...], call: _Call,
             outputs: Sequence[View]) -> None:
    """Keeps the plan of `call`, which ran, for calls with such tensors of torch."""
    torch = sys.modules.get("torch")
    if call.package != "torch" or torch is None or not _accept(torch):
        return
    executable = call.executable
    program._remember(name, tensors, executable, executable.gate, call.function,
                      executable.device.handle, bytes(call.arguments), bytes(call.results),
                      tuple(output.owner for output in outputs),
                      tuple(maker(torch, output.owner) for output in outputs))


def maker(torch: Any, tensor: Any) -> Any:
    """Returns the way to make a tensor like `tensor`, in the form of _native.pyi.
    torch.empty_strided serves every device. The function that torch.compile emits for the current
    device takes a third of the time."""
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    here = getattr(guards, f"_empty_strided_{tensor.device.type}", None)
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    options = {"dtype": tensor.dtype, "device": tensor.device}
    return (torch.empty_strided, (shape, strides), options, here, (shape, strides, tensor.dtype))
