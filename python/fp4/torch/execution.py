"""Chooses the device that an operation runs on."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .. import _library as c
from ..device import Device
from ..errors import UsageError
from ..program import Program
from . import planned
from .programs import Runnable

_settings: contextvars.ContextVar[tuple[Device | None, bool]] = contextvars.ContextVar(
    "fp4.torch.simulator", default=(None, False))


@contextlib.contextmanager
def simulator(device: Device | None = None, *, verify: bool = False) -> Iterator[None]:
    """Runs operations of CPU tensors on `device`, and with `verify` compares every result with the
    reference model.

        with fp4.torch.simulator(fp4.Device("sim", check="strict"), verify=True):
            y = layer(x)

    Raises:
        MismatchError: `verify` found a difference. SimulationError, HazardError: the simulated code
            is wrong.
    """
    if device is not None and not isinstance(device, Device):
        raise TypeError(f"'device' must be an fp4.Device, but got {type(device).__name__}")
    token = _settings.set((device, bool(verify)))
    try:
        with planned.held():
            yield
    finally:
        _settings.reset(token)


#: Programs by what makes them, what is known of them, and where they run without a setting.
_programs: dict[tuple[Any, ...], Program] = {}
#: Far more than a model has; then all are looked up again.
_MOST_PROGRAMS = 4096

_Make = Callable[..., Runnable]


class Found(Exception):
    """A program would run where programs are only collected; the operation takes its fake."""


class _Collecting(threading.local):
    programs: dict[tuple[Any, ...], None] | None = None


_collecting = _Collecting()


@contextlib.contextmanager
def collecting() -> Iterator[dict[tuple[Any, ...], None]]:
    """Meanwhile this thread runs no programs, and results are zeros. Yields the programs that would
    have run, as (make, facts, place, target)."""
    found = _collecting.programs = {}
    try:
        with planned.held():
            yield found
    finally:
        _collecting.programs = None


def run(make: _Make, facts: tuple[Any, ...], *tensors: torch.Tensor | None,
        target: str = "sm_100a") -> Any:
    """Calls the program make(*facts, target of the device), which on the CPU is the target of the
    simulator, or `target` without one. Arguments that are None are left out. Gradients are recorded
    outside, by the operation."""
    given = [tensor.detach() if tensor.requires_grad else tensor
             for tensor in tensors if tensor is not None]
    place = given[0].device
    if _collecting.programs is not None:
        _collecting.programs[make, facts, place, target] = None
        raise Found
    device, verify = _settings.get()
    if (device is None and not verify) or place.type == "cuda":
        program = ready(make, facts, place, target)
        results = program(*given)
        planned.note(program, tuple(given), results)
        return results
    return _program(make, facts, place, device, target)(*given, verify=verify)


def run_into(make: _Make, facts: tuple[Any, ...], out: tuple[torch.Tensor, ...],
             *tensors: torch.Tensor | None, target: str = "sm_100a") -> None:
    """Calls the program as `run` does, for results in memory that the caller gives. Nothing is
    written where programs are collected."""
    given = [tensor for tensor in tensors if tensor is not None]
    place = given[0].device
    if _collecting.programs is not None:
        _collecting.programs[make, facts, place, target] = None
        return
    device, verify = _settings.get()
    into = out if len(out) > 1 else out[0]
    if (device is None and not verify) or place.type == "cuda":
        program = ready(make, facts, place, target)
        program(*given, out=into)
        planned.note(program, tuple(given), out, are_given=True)
    else:
        _program(make, facts, place, device, target)(*given, out=into, verify=verify)


def ready(make: _Make, facts: tuple[Any, ...], place: torch.device, target: str) -> Program:
    """The program of an operation at a place, which later calls find at once."""
    program = _programs.get((make, facts, place))
    if program is None:
        program = _program(make, facts, place, None, target)
        if len(_programs) >= _MOST_PROGRAMS:
            _programs.clear()
        _programs[make, facts, place] = program
    return program


def _program(make: _Make, facts: tuple[Any, ...], place: torch.device, device: Device | None,
             target: str) -> Program:
    if place.type == "cuda":
        if torch.cuda.is_current_stream_capturing():
            raise UsageError("a program must be ready before a graph is captured, but this one "
                             f"({make.__name__.strip('_')}) is not",
                             "call fp4.torch.prepare(model), or the model once, before the capture")
        return make(*facts, _target_of(place)).program()
    if place.type != "cpu":
        raise UsageError(f"tensors must be on the CPU or a CUDA device, but are on {place}",
                         "move them with .cpu() or .cuda()")
    return make(*facts, target if device is None else device.target).program(device)


@functools.cache
def _target_of(device: torch.device) -> str:
    """The target of a GPU, and behind a slash the product that plans are chosen for, if fp4 knows
    it: "sm_90a/h200"."""
    major, minor = torch.cuda.get_device_capability(device)
    name = torch.cuda.get_device_properties(device).name
    product = c.library().fp4_find_product(c.encode(name, "the name of the GPU"))
    return f"sm_{major}{minor}a/" + (c.text(product) if product else "")
