"""The cases that the generators of misuse.py make."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import fp4

Call = Callable[[], Any]

#: Values that are no array, no program and no option.
JUNK: list[Any] = [None, 3, 2.5, "x", b"bytes", [1.0], {}, object(), float, True, (1, 2), 1j]


@dataclasses.dataclass(frozen=True)
class Case:
    """A wrong call, and the exceptions that are right for it."""

    what: str
    call: Call
    expected: type[BaseException] | tuple[type[BaseException], ...] = fp4.UsageError
