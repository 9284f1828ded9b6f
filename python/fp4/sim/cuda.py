"""torch.cuda of a torch without CUDA, for the one device of the simulator."""

from __future__ import annotations

import contextlib
import time
import types
from collections.abc import Iterator
from typing import Any

import torch

from . import driver


class Stream:
    """A name: everything happens in the order of the calls."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.device, self.priority = torch.device("cuda", 0), priority
        self.cuda_stream = 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def synchronize(self) -> None:
        driver.synchronize()

    def query(self) -> bool:
        return True

    def wait_stream(self, other: Any) -> None:
        pass

    wait_event = wait_stream

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record()
        return event


class Event:
    """A time of the host."""

    def __init__(self, enable_timing: bool = False, **kwargs: Any) -> None:
        self._time = 0.0

    def record(self, stream: Any = None) -> None:
        self._time = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        driver.synchronize()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds of the host: how long the simulator took."""
        return (end._time - self._time) * 1000


class CUDAGraph:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("fp4.sim has no CUDA graphs of torch: run the script without")


@contextlib.contextmanager
def _context(*args: Any, **kwargs: Any) -> Iterator[None]:
    yield


def _properties(device: Any = None) -> Any:
    values = {name: driver.attribute(name) for name in driver.ATTRIBUTES}
    return types.SimpleNamespace(
        name=driver.device_name(), total_memory=driver.total_memory(), is_integrated=0,
        is_multi_gpu_board=0, uuid="fp4-sim", **values)


def _capability(device: Any = None) -> tuple[int, int]:
    return driver.attribute("major"), driver.attribute("minor")


def install() -> None:
    """Puts the device of the simulator in the place of CUDA."""
    cuda: Any = torch.cuda
    stream = Stream()

    def answer(value: Any) -> Any:
        return lambda *args, **kwargs: value

    replaced = {
        "is_available": answer(True), "is_initialized": answer(True), "device_count": answer(1),
        "current_device": answer(0), "set_device": answer(None), "_lazy_init": answer(None),
        "init": answer(None), "synchronize": lambda device=None: driver.synchronize(),
        "get_device_capability": _capability, "get_device_properties": _properties,
        "get_device_name": lambda device=None: driver.device_name(),
        "get_arch_list": lambda: ["sm_{}{}".format(*_capability())],
        "is_bf16_supported": answer(True), "current_stream": answer(stream),
        "default_stream": answer(stream), "set_stream": answer(None), "stream": _context,
        "device": _context, "device_of": _context, "Stream": Stream, "Event": Event,
        "ExternalStream": Stream, "CUDAGraph": CUDAGraph, "graph": CUDAGraph,
        "empty_cache": answer(None), "memory_allocated": answer(0),
        "max_memory_allocated": answer(0), "memory_reserved": answer(0),
        "max_memory_reserved": answer(0), "reset_peak_memory_stats": answer(None),
        "mem_get_info": lambda device=None: (driver.total_memory(),) * 2,
        "manual_seed": answer(None), "manual_seed_all": answer(None), "seed": answer(None),
        "is_current_stream_capturing": answer(False), "_exchange_device": answer(0),
        "_maybe_exchange_device": answer(0),
    }
    for name, value in replaced.items():
        setattr(cuda, name, value)
    core: Any = torch._C
    core._cuda_getCurrentRawStream = answer(0)
    core._cuda_getDeviceCount = answer(1)
    torch.version.cuda = "13.0"
