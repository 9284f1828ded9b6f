"""Launches: in a stream, in a graph, and of many CTAs."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device


def launches(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    sms = device.sms()
    empty = device.load(ptx.kernel(["out"], "", ""))
    count = 10 if quick else 1000
    for grid, block in ((1, 32), (sms, 128), (sms, 1024), (8 * sms, 256)):
        def issue(stream: Any = None) -> None:
            for _ in range(count):
                empty(grid, block, out, stream=stream)

        replay = device.graph(issue)
        for name, work in (("in a stream", issue), ("in a graph", replay)):
            work()
            device.synchronize()
            seconds = min(device.seconds(work) for _ in range(1 if quick else 5))
            yield {"name": f"empty kernel of {grid} x {block}, {name}", "value": round(seconds / count * 1e6, 3),
                   "unit": "us each"}
    for block in (64, 128, 256, 512, 1024):
        grid = sms * (16 if quick else 4096)
        empty(sms, block, out)
        device.synchronize()
        seconds = min(device.seconds(lambda: empty(grid, block, out)) for _ in range(1 if quick else 3))
        yield {"name": f"empty blocks of {block} threads", "value": round(seconds / grid * sms * 1e9, 1),
               "unit": "ns each of an SM"}
    chase = device.load(ptx.kernel(["out"], "  .reg .b64 %t, %n;", "  mov.u64 %t, %globaltimer; st.global.u64 [%out], %t;"))

    def two() -> None:
        chase(1, 32, out)
        chase(1, 32, out + 8)

    steps = []
    for _ in range(1 if quick else 20):
        two()
        device.synchronize()
        words = device.read(out, 2)
        steps.append(words[1] - words[0])
    yield {"name": "from one kernel's timer to the next's", "value": sorted(steps)[len(steps) // 2], "unit": "ns"}
