"""Where the operations run."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..compiler import Compiled
from ..device import Device
from ..errors import UsageError

_settings: contextvars.ContextVar[tuple[Device | None, bool]] = contextvars.ContextVar(
    "fp4.torch.simulator", default=(None, False))


@contextlib.contextmanager
def simulator(device: Device | None = None, *, verify: bool = False) -> Iterator[None]:
    """Inside it operations of CPU tensors run on `device`, with its target, hazard checks and
    policy, and with `verify` every result is compared with the reference model.

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
        yield
    finally:
        _settings.reset(token)


def run(program: Callable[[str], Compiled], *tensors: torch.Tensor | None,
        target: str = "sm_100a") -> Any:
    """Calls the program that `program` makes for a target, which on the CPU is that of the
    simulator, or `target` without one. Arguments that are None are left out. Gradients are recorded
    outside, by the operation."""
    given = [tensor.detach() if tensor.requires_grad else tensor
             for tensor in tensors if tensor is not None]
    if given[0].is_cuda:
        return program(_target_of(given[0].device))(*given)
    if not given[0].is_cpu:
        raise UsageError("tensors must be on the CPU or a CUDA device, but are on "
                         f"{given[0].device}", "move them with .cpu() or .cuda()")
    device, verify = _settings.get()
    compiled = program(target if device is None else device.target)
    return compiled.program(device)(*given, verify=verify)


@functools.cache
def _target_of(device: torch.device) -> str:
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}a"
