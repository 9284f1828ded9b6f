"""Times launches with cold L2, all libraries of a problem in turn, and the SM clock of each.

A library's launches, one for each set of operands, are captured into a CUDA graph that uses the
sets in turn. The sets that a launch does not use are together more than twice the L2 cache.
Libraries alternate in rounds, so that all of them meet the same temperature and power; the median
is over the replays of all rounds. A replay is measured by events around it, so the gap between two
nodes of a graph, about a microsecond, is in every time.
"""
from __future__ import annotations

import ctypes
import dataclasses
import random
import statistics
from collections.abc import Callable, Sequence

import torch
from driver import Device

Launch = Callable[[], None]

#: Bytes of the operand sets that a launch does not use, more than twice the 60 MB of L2 of an H200.
COLD = 140e6
NODES, ROUNDS, ROUND_US = 10, 9, 6000.0
#: A graph of short launches has so many that the start of the graph is little of it.
GRAPH_US = 1000.0

#: A CTA for each SM notes its cycles and the time: words 2i and 2i + 1 of SM i.
CLOCKS = """
.version @VERSION@
.target @TARGET@
.address_size 64
.extern .shared .align 16 .b8 room[];
.visible .entry k(.param .u64 words)
{
  .reg .pred %p;
  .reg .b32 %r<3>;
  .reg .b64 %d<5>;
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p, %r0, 0;
  @%p ret;
  mov.u32 %r1, %smid;
  ld.param.u64 %d0, [words];
  mad.wide.u32 %d1, %r1, 16, %d0;
  mov.u64 %d2, %clock64;
  mov.u64 %d3, %globaltimer;
  st.global.v2.u64 [%d1], {%d2, %d3};
  ret;
}
"""


def sets_of(size: int) -> int:
    """Returns the number of operand sets of `size` bytes that keep a launch cold."""
    return max(2, min(64, 1 + -int(-COLD // size)))


class Clock:
    """The mean SM clock in MHz between two notes on the current stream."""

    def __init__(self) -> None:
        self.device = Device()
        self.count = self.device.sms()
        self.kernel = self.device.load(CLOCKS, shared=200 * 1024)
        self.words = [self.device.allocate(16 * 256) for _ in range(2)]

    def note(self, which: int) -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.kernel(self.count, 32, self.words[which], stream=stream)

    def mhz(self) -> float:
        torch.cuda.synchronize()
        return clock_of(*(list(self.device.read(words, 2 * self.count)) for words in self.words))


def clock_of(before: Sequence[int], after: Sequence[int]) -> float:
    """MHz of the SMs that both notes have; NaN where there is none."""
    pairs = zip(before[::2], before[1::2], after[::2], after[1::2])
    rates = [1e3 * (c1 - c0) / (t1 - t0) for c0, t0, c1, t1 in pairs if c0 and c1 and t1 > t0]
    return statistics.median(rates) if rates else float("nan")


@dataclasses.dataclass
class Timing:
    us: float
    low: float  # 20th percentile
    high: float  # 80th percentile
    mhz: float
    samples: int


class _Series:
    """A graph of launches, and the times of its replays."""

    def __init__(self, launches: Sequence[Launch]) -> None:
        for launch in launches:
            launch()
        torch.cuda.synchronize()
        self.capture(launches, NODES)
        self.capture(launches, max(NODES, int(GRAPH_US * self.nodes / self.took)))
        self.times: list[float] = []
        self.clocks: list[float] = []
        self.replays = max(1, int(ROUND_US / self.took))

    def capture(self, launches: Sequence[Launch], nodes: int) -> None:
        """At least so many nodes."""
        self.nodes = len(launches) * max(1, -(-nodes // len(launches)))
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for i in range(self.nodes):
                launches[i % len(launches)]()
        self.replay()
        self.took = max(self.replay(), 1.0)

    def replay(self) -> float:
        """us of one replay."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        self.graph.replay()
        end.record()
        torch.cuda.synchronize()
        return 1000 * float(begin.elapsed_time(end))

    def round(self, clock: Clock, settle: float) -> None:
        settling = int(settle / self.took)
        events = [torch.cuda.Event(enable_timing=True) for _ in range(max(self.replays, settling) + 1)]
        for _ in range(1 + settling):  # the caches and the clock are those of this library
            self.graph.replay()
        clock.note(0)
        events[0].record()
        for event in events[1:]:
            self.graph.replay()
            event.record()
        clock.note(1)
        self.clocks.append(clock.mhz())
        self.times += [1000 * a.elapsed_time(b) / self.nodes for a, b in zip(events, events[1:])]

    def timing(self) -> Timing:
        times = sorted(self.times)
        return Timing(statistics.median(times), times[len(times) // 5], times[-1 - len(times) // 5],
                      statistics.median(self.clocks), len(times))


def measure(series: dict[str, Sequence[Launch]], settle: float = 0.0, rounds: int = ROUNDS) -> dict[str, Timing | str]:
    """The timing of each series of launches, or what went wrong. Each runs for `settle` us before
    it is timed in a round, and is timed for as long: the power limit sets a clock by what ran tens
    of milliseconds before, and moves it by a few percent within a tenth of a second. With `settle`
    the order of a round is random, so that nobody always follows the same neighbour."""
    clock, found, ready = Clock(), {}, {}
    for name, launches in series.items():
        try:
            ready[name] = _Series(launches)
        except Exception as failure:  # of a library: the others are still measured
            found[name] = f"{type(failure).__name__}: {failure}"
    for number in range(rounds):
        turns = list(ready.values())
        if settle:
            random.Random(number).shuffle(turns)
        for one in turns:
            one.round(clock, settle)
    return found | {name: one.timing() for name, one in ready.items()}
