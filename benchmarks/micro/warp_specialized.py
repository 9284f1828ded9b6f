"""Launches of warp-specialized kernels: one CTA of three warpgroups on each SM, with and without
setmaxnreg, clusters, shared memory, and the first box of a pipeline. Times are of a launch in a
graph of many."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device

THREADS = 384
SHARED = 200 * 1024
WIDTH = 1024  # columns of the matrix that the boxes are of


def split(change: str, others: str = "") -> str:
    """The first warpgroup gives registers back, the others take them; `change` is empty without
    setmaxnreg."""
    if not change:
        return others
    return f"""  .reg .b32 %t; .reg .pred %p; mov.u32 %t, %tid.x; setp.ge.u32 %p, %t, 128; @%p bra TAKE;
  setmaxnreg.dec.sync.aligned.u32 24;
{others}
  bra DONE;
TAKE:
  setmaxnreg.inc.sync.aligned.u32 240;
DONE:"""


CLUSTER_SYNC = "  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"


def kernel(change: bool, cluster: int, meet: bool, large: bool) -> str:
    text = ptx.kernel(["out"], "", (CLUSTER_SYNC if meet else "") + split("x" if change else ""), block=THREADS, cluster=cluster)
    if not large:
        text = text.replace("  .extern .shared .align 1024 .b8 window[];\n", "")
    return text.replace(f".maxntid {THREADS}, 1, 1", f".maxntid {THREADS}, 1, 1 .minnctapersm 1")


def graph_time(device: Device, issue: Any, nodes: int, quick: bool) -> float:
    """Microseconds of a node: the median of some replays."""
    replay = device.graph(lambda stream: [issue(stream) for _ in range(nodes)])
    replay()
    device.synchronize()
    times = sorted(device.seconds(replay) for _ in range(1 if quick else 15))
    return times[len(times) // 2] / nodes * 1e6


def launches(device: Device, quick: bool, out: int) -> Iterator[dict[str, Any]]:
    nodes, sms = (2 if quick else 200), device.sms()
    for change in (False, True):
        for cluster in (1, 2, 4):
            for meet in ((False,) if cluster == 1 else (False, True)):
                for large in (False, True):
                    code = device.load(kernel(change, cluster, meet, large), shared=SHARED if large else 0)
                    grid = sms // cluster * cluster
                    name = (f"{grid} CTAs of {THREADS}{', setmaxnreg' if change else ''}{f', clusters of {cluster}' if cluster > 1 else ''}"
                            f"{' that meet' if meet else ''}{', 200 KiB' if large else ''}")
                    yield {"name": name, "value": round(graph_time(device, lambda s, c=code, g=grid: c(g, THREADS, out, stream=s), nodes, quick), 3),
                           "unit": "us each", "registers": code.registers()}


def clocks(device: Device, quick: bool, out: int) -> Iterator[dict[str, Any]]:
    """Cycles of the two forms of setmaxnreg in one CTA: of the first warp of each warpgroup."""
    registers = "  .reg .b64 %c0, %c1, %w; .reg .b32 %t, %i; .reg .pred %p, %q;\n"
    note = "  mov.u64 %c1, %clock64; sub.u64 %c1, %c1, %c0; and.b32 %i, %t, 127; setp.eq.u32 %q, %i, 0;\n" \
           "  shr.u32 %i, %t, 7; mul.wide.u32 %w, %i, 8; add.u64 %w, %w, %out; @%q st.global.u64 [%w], %c1;\n"
    for wait in (False, True):  # the taking warpgroups come before or after the giving one
        late = "  nanosleep.u32 2000;\n" if wait else ""
        body = f"""  mov.u32 %t, %tid.x; setp.ge.u32 %p, %t, 128; bar.sync 0; @%p bra TAKE;
{late}  mov.u64 %c0, %clock64; setmaxnreg.dec.sync.aligned.u32 24;
{note}  bra DONE;
TAKE:
{'' if wait else '  nanosleep.u32 2000;'}
  mov.u64 %c0, %clock64; setmaxnreg.inc.sync.aligned.u32 240;
{note}DONE:"""
        text = ptx.kernel(["out"], registers, body, block=THREADS).replace("1, 1 {", "1, 1 .minnctapersm 1 {", 1)
        code = device.load(text)
        code(1, THREADS, out)
        device.synchronize()
        words = list(device.read(out, 3))
        for at, which in ((0, "dec"), (1, "inc"), (2, "inc, the other")):
            yield {"name": f"setmaxnreg.{which}, registers {'given later' if wait else 'there'}", "value": words[at], "unit": "clk"}


def stage(device: Device, quick: bool, out: int) -> Iterator[dict[str, Any]]:
    """The first stage of a pipeline in device memory: from the start of the launch to its end, with
    operands that L2 does not have, in boxes of 8 KiB through tensor maps."""
    sms = device.sms()
    rows = 64 * sms
    pools = [device.allocate(rows * WIDTH * 2) for _ in range(2 if quick else 24)]
    for cluster in (1, 2):
        for change in (False, True):
            for boxes in (1, 4, 16):
                load = f"""  .reg .b32 %b, %buf, %bar, %row, %x; .reg .b64 %map; .reg .pred %q, %e;
  mov.u32 %x, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %buf, window; add.u32 %bar, %buf, 147456;
  setp.ne.u32 %q, %x, 0; @%q bra READY;
  mov.b64 %map, p_map; cvta.param.u64 %map, %map; prefetch.tensormap [%map];
  mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster;
READY:
{CLUSTER_SYNC if cluster > 1 else '  bar.sync 0;'}
"""
                copies = "".join(f"  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                                 f"[%buf+{8192 * i}], [%map, {{{64 * i}, %row}}], [%bar];\n" for i in range(boxes))
                issue = f"""  @%q bra SKIP; mul.lo.u32 %row, %b, 64;
  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], {8192 * boxes};
{copies}SKIP:"""
                wait = "WAIT: mbarrier.try_wait.parity.shared.b64 %q, [%bar], 0; @!%q bra WAIT;\n"
                body = load + split("x" if change else "", issue) + ("" if change else "") + "\n" + wait
                if cluster > 1:
                    body += CLUSTER_SYNC
                text = ptx.kernel(["out"], "", body, block=THREADS, cluster=cluster).replace("p_out)", "p_out, .param .align 64 .b8 p_map[128])")
                text = text.replace(f".maxntid {THREADS}, 1, 1", f".maxntid {THREADS}, 1, 1 .minnctapersm 1")
                code = device.load(text, shared=SHARED)
                maps = [device.tensor_map(pool, rows, WIDTH, 64, 64) for pool in pools]
                step = iter(range(1 << 30))
                nodes = 2 if quick else 200
                value = graph_time(device, lambda s, c=code: c(sms // cluster * cluster, THREADS, out, maps[next(step) % len(maps)], stream=s), nodes, quick)
                yield {"name": f"{boxes} boxes of 8 KiB{', clusters of 2' if cluster > 1 else ''}{', setmaxnreg' if change else ''}",
                       "value": round(value, 3), "unit": "us each"}


def meetings(device: Device, quick: bool, out: int) -> Iterator[dict[str, Any]]:
    """Cycles of the barriers of a cluster that a CTA crosses one after the other: the first, the
    second and the fifth."""
    for cluster in (1, 2, 4, 8):
        for threads in (32, 128, THREADS):
            for arrive in ("arrive.aligned", "arrive.relaxed.aligned"):
                for late in (False, True):
                    steps = "".join(f"  barrier.cluster.{arrive}; barrier.cluster.wait.aligned; mov.u64 %c{i}, %clock64;\n" for i in range(1, 6))
                    body = f"""  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; setp.eq.u32 %q, %t, 0; mul.wide.u32 %w, %b, 64; add.u64 %w, %w, %out;
{'  nanosleep.u32 4000;' if late else ''}
  mov.u64 %c0, %clock64;
{steps}
""" + "".join(f"  sub.u64 %d, %c{i}, %c{i - 1}; @%q st.global.u64 [%w+{8 * i - 8}], %d;\n" for i in range(1, 6))
                    registers = "  .reg .b64 %c<6>, %w, %d; .reg .b32 %t, %b; .reg .pred %q;\n"
                    code = device.load(ptx.kernel(["out"], registers, body, block=threads, cluster=cluster))
                    for _ in range(1 if quick else 3):
                        code(cluster, threads, out)
                    device.synchronize()
                    words = list(device.read(out, 5))
                    yield {"name": f"barrier of a cluster of {cluster}, {threads} threads, {arrive}{', late' if late else ''}", "value": words[0], "unit": "clk",
                           "second": words[1], "fifth": words[4]}


def fences(device: Device, quick: bool, out: int) -> Iterator[dict[str, Any]]:
    """Cycles of a fence, which all warps of a CTA execute at the same time, alone and in a
    cluster."""
    rounds = 2 if quick else 64
    for cluster in (1, 2):
        for fence in ("fence.acq_rel.cluster", "fence.acq_rel.gpu", "fence.sc.gpu", "fence.proxy.async.global"):
            for warps in (1, 4, 8, 12, 16):
                code = device.load(ptx.timed("", f"  {fence};", [], block=32 * warps, cluster=cluster))
                times = []
                for repeats in (rounds, 3 * rounds):
                    code(cluster, 32 * warps, out, repeats, 0x7FFFFFFF)
                    device.synchronize()
                    words = list(device.read(out, 2 * warps))
                    times.append(max(words[1::2]) - min(words[0::2]))
                yield {"name": f"{fence}, {warps} warps, clusters of {cluster}", "value": round((times[1] - times[0]) / (2 * rounds), 1), "unit": "clk"}


def ends(device: Device, quick: bool, out: int) -> Iterator[dict[str, Any]]:
    """Launches that meet a given number of times: what each barrier of a cluster adds to the
    launch."""
    for cluster in (1, 2, 4):
        for times in (0, 1, 2, 3, 8):
            for store in (False, True):
                body = CLUSTER_SYNC * times + ("  .reg .b32 %t; mov.u32 %t, %tid.x; .reg .b64 %w; mul.wide.u32 %w, %t, 4; add.u64 %w, %w, %out; "
                                               "st.global.u32 [%w], %t;\n" if store else "")
                code = device.load(ptx.kernel(["out"], "", body, block=THREADS, cluster=cluster))
                grid = 120 if cluster == 4 else 132
                yield {"name": f"{grid} CTAs of {THREADS}, clusters of {cluster}, {times} barriers{', a store' if store else ''}",
                       "value": round(graph_time(device, lambda s, c=code, g=grid: c(g, THREADS, out, stream=s), 2 if quick else 200, quick), 3), "unit": "us each"}


def warp_specialized(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    yield from clocks(device, quick, out)
    yield from meetings(device, quick, out)
    yield from fences(device, quick, out)
    yield from ends(device, quick, out)
    yield from launches(device, quick, out)
    yield from stage(device, quick, out)
