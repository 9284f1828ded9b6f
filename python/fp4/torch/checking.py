"""Checks of numbers of rows that only the device knows: slots, positions, ids."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

import torch

from ..errors import UsageError
from . import planned

_is_checked: contextvars.ContextVar[bool] = contextvars.ContextVar("fp4.torch.checked",
                                                                   default=False)


@contextlib.contextmanager
def checked() -> Iterator[None]:
    """Lets operations check the slots, positions, ids, pages and other numbers of rows that they
    are given. The host waits for the device."""
    token = _is_checked.set(True)
    try:
        with planned.held():
            yield
    finally:
        _is_checked.reset(token)


def is_checked() -> bool:
    """Returns True within checked()."""
    return _is_checked.get()


def refuse_capture(numbers: torch.Tensor, name: str) -> None:
    """Refuses to wait for the device while a graph is captured."""
    if numbers.is_cuda and torch.cuda.is_current_stream_capturing():
        raise UsageError(f"'{name}' must not be checked while a graph is captured",
                         "leave fp4.torch.checked() before the capture")


def check_rows(numbers: torch.Tensor, name: str, count: int, *, skips: bool = False,
               are_places: bool = False, remedy: str = "") -> None:
    """In checked(), refuses numbers of `count` rows that are outside. Negative ones are skipped
    with `skips`, and numbers of places that are written must differ. `remedy` is the note of the
    error, where it is not that of rows."""
    if not is_checked():
        return
    refuse_capture(numbers, name)
    flat = numbers.reshape(-1)
    outside = (flat >= count) if skips else (flat >= count) | (flat < 0)
    if outside.any():
        at = int(outside.nonzero()[0])
        raise UsageError(f"'{name}' must be below {count}{'' if skips else ' and not negative'}, "
                         f"but number {at} is {int(flat[at])}",
                         remedy or ("a number below 0 is skipped" if skips else
                                    "each is that of a row"))
    if are_places:
        _check_apart(flat, name)


def _check_apart(flat: torch.Tensor, name: str) -> None:
    """Refuses numbers of which two are the same row."""
    ordered, order = flat.sort(stable=True)
    same = (ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)
    if same.any():
        at = int(same.nonzero()[0])
        raise UsageError(f"'{name}' must differ, but numbers {int(order[at])} and "
                         f"{int(order[at + 1])} are {int(ordered[at])}",
                         "which of both is kept would be left to chance: pass the last one alone")
