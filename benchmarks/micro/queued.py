"""Times of launches that the host has made before the first of them begins."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ptx
from cuda import Device

# Until the global timer has gone on for so many nanoseconds.
SPIN = ptx.kernel(["ns"], "", """  .reg .b64 %begin, %now; .reg .pred %q;
  mov.u64 %begin, %globaltimer;
WAIT: mov.u64 %now, %globaltimer; sub.u64 %now, %now, %begin; setp.lt.u64 %q, %now, %ns; @%q bra WAIT;""")


class Queue:
    """Launches behind a kernel that waits, so that the host is ahead, with events between them."""

    def __init__(self, device: Device, quick: bool) -> None:
        self.device, self.quick = device, quick
        self.spin = device.load(SPIN)
        self.events = [device.event() for _ in range(64)]

    def run(self, works: list[Callable[[], Any]], befores: list[Callable[[], Any]] | None = None) -> list[float]:
        """Seconds of each work between two events; what comes before it is not counted."""
        self.spin(1, 1, 1000 if self.quick else 3_000_000)
        for number, work in enumerate(works):
            if befores:
                befores[number]()
            self.device.record(self.events[2 * number])
            work()
            self.device.record(self.events[2 * number + 1])
        self.device.synchronize()
        return [self.device.between(self.events[2 * n], self.events[2 * n + 1]) for n in range(len(works))]


def queued(device: Device, works: list[Callable[[], Any]], quick: bool, empty: Callable[[], Any]) -> list[float]:
    """Seconds of each, less those of a launch of as many threads that does nothing."""
    queue = Queue(device, quick)
    nothing = sorted(queue.run([empty] * 5))[2]
    return [seconds - nothing for seconds in queue.run(works)]
