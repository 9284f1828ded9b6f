"""Devices: the simulator and GPUs."""

from __future__ import annotations

import contextlib
import ctypes
import operator
import os
import threading
import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from . import _library as c
from .errors import UsageError

_CHOICES = {
    "check": ("off", "default", "strict"),
    "policy": ("eager", "lazy", "random", "delay"),
}


class Device:
    """A GPU or the simulator.

    Args:
        selector: "sim"; "cuda", "cuda:N"; or "auto": a GPU that runs `target`, else the simulator.
        target: what the code is for, such as "sm_90a".
        check: the hazard checker of the simulator: "off", "default" or "strict".
        policy: when asynchronous work completes in the simulator: "eager", "lazy", "random" or
            "delay" (docs/reference/simulator.md).
        seed: of the policy "random"; at least 1.
        timeline: a file for a Perfetto trace of the simulator, which `close` ends.
        threads: host threads of the simulator; all of the machine without it.

    Raises:
        DeviceError: there is no driver or no such GPU.

    Different threads may use one device. A device is a context manager, which closes it.
    """

    def __init__(self, selector: str = "auto", *, target: str = "sm_100a",
                 check: str | None = None, policy: str | None = None, seed: int | None = None,
                 timeline: str | os.PathLike[str] | None = None,
                 threads: int | None = None) -> None:
        options = c.DeviceOptions(size=ctypes.sizeof(c.DeviceOptions))
        options.target = c.encode(target, "'target'")
        options.check = _choice("check", check)
        options.policy = _choice("policy", policy)
        options.seed = _count("seed", seed, 2**64)
        options.threads = _count("threads", threads, 2**32)
        if timeline is not None:
            options.timeline = c.encode(timeline, "'timeline'")
            if not options.timeline:
                raise UsageError("'timeline' must be the path of a file, but is empty")
        handle = ctypes.c_void_p()
        library = c.library()
        library.fp4_device_open(c.encode(selector, "'selector'"), ctypes.byref(options),
                                ctypes.byref(handle))
        self._library = library
        self._handle: int | None = handle.value
        self._lock = threading.Lock()
        self._owned: weakref.WeakSet[Any] = weakref.WeakSet()  # executables, which end first
        #: "simulator" or the GPU's own name.
        self.name: str = c.text(library.fp4_device_get_name(handle))
        #: "sim" or "cuda:N".
        self.selector: str = c.text(library.fp4_device_get_selector(handle))
        #: "sm_90a" for a Hopper GPU; of a simulator what it was opened for.
        self.target: str = c.text(library.fp4_device_get_target(handle))
        #: True for a GPU.
        self.is_hardware: bool = bool(library.fp4_device_is_hardware(handle))
        self._finalizer = weakref.finalize(self, _close_quietly, library, self._handle)

    def close(self) -> None:
        """Ends the timeline, if there is one, and gives the device back. Waits for calls that other
        threads have begun. A second close does nothing."""
        with self._lock:
            if self._handle is None or self._finalizer.detach() is None:
                return
            for executable in list(self._owned):
                executable.close()
            handle, self._handle = self._handle, None
            self._library.fp4_device_close(handle)

    def synchronize(self) -> None:
        """Waits for all work on the device."""
        with self.held() as handle:
            self._library.fp4_device_synchronize(handle)

    @property
    def handle(self) -> int:
        """The fp4_device, for calls of the C API."""
        if self._handle is None:
            raise closed()
        return self._handle

    @contextlib.contextmanager
    def held(self) -> Iterator[int]:
        """The handle, which nobody closes meanwhile."""
        with self._lock:
            yield self.handle

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<fp4.Device {self.selector} ({self.name}, {self.target})>"


def closed() -> UsageError:
    """The error that every use of a closed device raises."""
    return UsageError("the device is closed", "open another one")


def _close_quietly(library: Any, handle: int | None) -> None:
    with contextlib.suppress(Exception):  # a finalizer has nobody to tell
        library.fp4_device_close(handle)


def _choice(name: str, value: str | None) -> bytes | None:
    if value is None:
        return None
    encoded = c.encode(value, f"'{name}'")
    if value not in _CHOICES[name]:
        raise UsageError(f"'{name}' must be one of {', '.join(_CHOICES[name])}, but got '{value}'")
    return encoded


def _count(name: str, value: int | None, end: int) -> int:
    if value is None:
        return 0
    number = operator.index(value)
    if not 1 <= number < end:
        raise UsageError(f"'{name}' must be at least 1 and below {end}, but got {number}")
    return number


_defaults: dict[tuple[str, str], Device] = {}
_defaults_lock = threading.Lock()


def default_device(selector: str, target: str) -> Device:
    """The device of calls that name none; it lives as long as the process."""
    with _defaults_lock:
        device = _defaults.get((selector, target))
        if device is None or device._handle is None:
            device = _defaults[selector, target] = Device(selector, target=target)
        return device
