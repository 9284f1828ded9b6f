"""The exceptions of fp4: one class for each kind of failure (docs/reference/diagnostics.md)."""

from __future__ import annotations

import re

__all__ = [
    "CacheWarning",
    "CompileError",
    "DeviceError",
    "Error",
    "HazardError",
    "InternalError",
    "MismatchError",
    "SimulationError",
    "UsageError",
]

_LOCATION = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?P<column>\d+): error: ", re.M)


class Error(Exception):
    """The base class of every failure of fp4.

    Attributes:
        message: what is wrong, with the value found and the value expected; for a program that
            does not compile, also the located diagnostics of the compiler.
        note: what to do about it; may be empty.
        location: (file, line, column) of the first located diagnostic, or None.
    """

    #: The exit code that the tools have for this kind; 0 is no kind.
    kind: int = 0

    def __init__(self, message: str, note: str = "") -> None:
        super().__init__(message, note)
        self.message = message
        self.note = note

    @property
    def location(self) -> tuple[str, int, int] | None:
        found = _LOCATION.search(self.message)
        return (found["file"], int(found["line"]), int(found["column"])) if found else None

    def __str__(self) -> str:
        return f"{self.message}\nnote: {self.note}" if self.note else self.message


class CacheWarning(UserWarning):
    """An entry of the cache of compiled programs is not used, or none is written."""


class MismatchError(Error):
    """A result differs from the reference model (docs/reference/numerics.md)."""

    kind = 1


class UsageError(Error, ValueError):
    """An operand, a file or an option is not what the function takes. Nothing ran."""

    kind = 2


class CompileError(Error):
    """The program does not verify or does not compile."""

    kind = 3


class DeviceError(Error):
    """The device, its driver or its resources failed."""

    kind = 4


class SimulationError(Error):
    """The simulated program is wrong: a deadlock, an access out of bounds. A HazardError is one."""

    kind = 5


class HazardError(SimulationError):
    """The checker of the simulator found races, missing fences or reads of data that has not
    arrived. The message has a report for each."""

    kind = 6


class InternalError(Error):
    """A promise of fp4 itself is broken. Please report it."""

    kind = 70


_CLASSES: dict[int, type[Error]] = {
    cls.kind: cls
    for cls in (MismatchError, UsageError, CompileError, DeviceError, SimulationError,
                HazardError, InternalError)
}


def make_error(kind: int, message: str, note: str) -> Error:
    """The exception for an error of the C API."""
    return _CLASSES.get(kind, InternalError)(message, note)
