"""cp.async.bulk.prefetch.L2: how long it holds the copy engine, and when what it asks for is there.

One thread of a CTA asks for `total` bytes to be brought to L2, in pieces, and copies 4 KiB right
behind. Either those are lines of L2, and what the copy takes longer than alone is what the prefetch
takes of the engine; or they are the last that were prefetched, and the copy waits for device
memory, as if nobody had asked, or less.
"""
from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device, Kernel
from memory import MIB, stream

COPY = 4096
MOST = 256 * 1024  # bytes that a CTA asks for at most
LAUNCHES = 7

BODY = f"""  .reg .b32 %t, %buf, %bar, %size, %block; .reg .b64 %begin, %issued, %end, %at, %last, %w, %room; .reg .pred %q, %done;
  mov.u32 %t, %tid.x; setp.ne.u32 %q, %t, 0; @%q bra END;
  mov.u32 %buf, window; add.u32 %bar, %buf, {COPY}; cvt.u32.u64 %size, %piece; mov.u32 %block, %ctaid.x;
  mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;
  mul.wide.u32 %room, %block, {MOST}; add.u64 %at, %far, %room; add.u64 %last, %at, %total;
  mul.wide.u32 %room, %block, {COPY}; add.u64 %near, %near, %room;
  sub.u64 %room, %last, {COPY}; setp.ne.u64 %q, %own, 0; selp.b64 %near, %room, %near, %q;
  mov.u64 %begin, %clock64;
MORE:
  setp.ge.u64 %q, %at, %last; @%q bra COPY;
  cp.async.bulk.prefetch.L2.global [%at], %size; add.u64 %at, %at, %piece; bra MORE;
COPY:
  mov.u64 %issued, %clock64;
  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], {COPY};
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%buf], [%near], {COPY}, [%bar];
WAIT: mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0; @!%done bra WAIT;
  mov.u64 %end, %clock64; sub.u64 %end, %end, %begin; sub.u64 %issued, %issued, %begin;
  mul.wide.u32 %w, %block, 16; add.u64 %w, %w, %out; st.global.v2.u64 [%w], {{%issued, %end}};
END:"""


def measure(device: Device, kernel: Kernel, out: int, memory: int, blocks: int, total: int, piece: int,
            there: bool, own: bool) -> dict[str, Any]:
    """Medians of launches that each have memory of their own, unless what they ask for is to be
    there."""
    near = memory + LAUNCHES * blocks * MOST
    issued, ends = [], []
    for i in range(LAUNCHES):
        far = memory + (0 if there else i) * blocks * MOST
        kernel(blocks, 32, out, far, near, total, piece, int(own))
        device.synchronize()
        words = device.read(out, 2 * blocks)
        issued.append(sum(words[::2]) / blocks)
        ends.append(sum(words[1::2]) / blocks)
    return {"value": round(statistics.median(ends[1:])), "unit": "clk", "until all are issued": round(statistics.median(issued[1:]))}


def prefetches(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    kernel = device.load(ptx.kernel(["out", "far", "near", "total", "piece", "own"], "", BODY), shared=COPY + 1024)
    sms = device.sms()
    room = LAUNCHES * sms * MOST + sms * COPY
    memory = device.allocate(room)
    scratch, flush = device.allocate(160 * MIB), device.load(stream("ld.global.cg", False))
    unit = 2 * sms * 1024 * 64
    for blocks in (1, sms):
        yield {"name": f"{blocks} blocks, a copy of L2 alone", **measure(device, kernel, out, memory, blocks, 0, COPY, True, False)}
        for total in (16384,) if quick else (4096, 16384, 65536, MOST):
            for piece in (2048, 16384):
                if piece > total:
                    continue
                for there, own in ((True, False), (False, False), (False, True)):
                    flush(2 * sms, 1024, scratch, out, (4 if quick else 160) * MIB // unit * unit, 1)
                    what = "lines of L2" if there else "device memory"
                    behind = "the copy of the last of it" if own else "a copy of L2"
                    yield {"name": f"{blocks} blocks, {total >> 10} KiB of {what} by {piece >> 10}, {behind}",
                           **measure(device, kernel, out, memory, blocks, total, piece, there, own)}
    device.free(scratch)
    device.free(memory)
