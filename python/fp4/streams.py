"""The stream to which a call issues its work, in the forms that packages have for one."""

from __future__ import annotations

import operator
from typing import Any

from ._dlpack import CPU
from .errors import UsageError

_LEGACY = 1  # CU_STREAM_LEGACY, and what DLPack calls the default stream


class Stream:
    """The `stream` that the caller gave.

    Attributes:
        handle: the CUstream as a number, 0 being the default stream; None where nothing was given.
        dlpack: the same as __dlpack__ takes it, where 0 is not allowed.
    """

    def __init__(self, given: Any) -> None:
        self.handle = None if given is None else _handle(given)
        self.dlpack = self.handle or _LEGACY
        index = getattr(getattr(given, "device", None), "index", None)
        self._device = index if isinstance(index, int) else None

    def check(self, device: int) -> None:
        """A UsageError where a stream is given that is not of `device`, on which the arrays are.
        The CPU has none. A number tells no device."""
        if self.handle is not None and device == CPU:
            raise UsageError("'stream' must be None for arrays on the CPU, whose calls wait",
                             "move the arrays to a GPU, or leave 'stream' out")
        if self._device not in (None, device):
            raise UsageError(f"'stream' must be of cuda:{device}, as the arrays, but is of "
                             f"cuda:{self._device}")


def _handle(given: Any) -> int:
    try:
        if hasattr(given, "__cuda_stream__"):
            return operator.index(given.__cuda_stream__()[1])
        number = operator.index(getattr(given, "cuda_stream", given))
    except (TypeError, IndexError, AttributeError):
        raise TypeError("'stream' must be a stream of torch, an object with __cuda_stream__, or a "
                        f"number, but got {type(given).__name__}") from None
    if isinstance(given, bool) or not 0 <= number < 2**64:
        raise UsageError(f"'stream' must be a CUstream, but got {given!r}")
    return number
