"""cp.async of threads: how long an SM takes each, and how far its warps run ahead of it."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device

FORMS = (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16))
LENGTHS = (4, 8, 12)


def burst(cache: str, size: int, loads: int, warps: int) -> str:
    """`loads` of each warp, one behind the other, between two readings of the clock, %rounds times;
    nothing is in flight before."""
    copies = "\n".join(f"  cp.async.{cache}.shared.global [%to+{512 * warps * i}], [%from+{32 * size * warps * i}], {size};"
                       for i in range(loads))
    return ptx.kernel(["out", "source", "rounds"], "", f"""{ptx.CLOCK}
  .reg .b64 %from, %sum;
  .reg .b32 %to;
  mov.u32 %to, window;
  mad.lo.u32 %to, %thread, 16, %to;
  mad.wide.u32 %from, %thread, {size}, %source;
  mov.u64 %sum, 0;
  cvt.u32.u64 %count, %rounds;
ROUND:
  bar.sync 0;
  mov.u64 %begin, %clock64;
{copies}
  mov.u64 %end, %clock64;
  cp.async.wait_all;
  sub.u64 %end, %end, %begin;
  add.u64 %sum, %sum, %end;
  sub.u32 %count, %count, 1;
  setp.ne.u32 %more, %count, 0;
  @%more bra ROUND;
  setp.eq.u32 %first, %lane, 0;
  mul.wide.u32 %where, %warp, 8;
  add.u64 %where, %where, %out;
  @%first st.global.u64 [%where], %sum;
""")


def bursts(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Times copies from L2. `first` is what a warp needs to issue four, and the value what each
    further one adds."""
    source = device.allocate(1 << 20)
    for cache, size in FORMS:
        for warps in (1, 2, 4, 8, 16):
            times = []
            for loads in LENGTHS:
                kernel = device.load(burst(cache, size, loads, warps), shared=96 * 1024)
                for _ in range(2):
                    kernel(1, 32 * warps, out, source, rounds)
                device.synchronize()
                times.append(max(device.read(out, warps)) / rounds)
            yield {"name": f"cp.async.{cache} of {size} bytes a thread, {warps} warps", "unit": "clk of the multiprocessor",
                   "value": round((times[-1] - times[0]) / (LENGTHS[-1] - LENGTHS[0]) / warps, 2), "first": round(times[0], 1)}
    device.free(source)


GROUPS, COPIES, WARPS = 3, 8, 8  # in flight: 96 KiB
REGION = 192 * 1024  # bytes that a CTA reads again and again


def ring(loads: bool) -> str:
    """CTAs read the region of their number modulo %regions, %rounds times; the clocks of each are
    stored."""
    step = 512 * WARPS * COPIES
    each = range(COPIES)
    copies = "\n".join(f"  cp.async.cg.shared.global [%to+{512 * WARPS * i}], [%at+{512 * WARPS * i}], 16;" for i in each)
    if loads:
        copies = "\n".join(f"  ld.global.cg.v4.b32 {{%a{i}, %b{i}, %c{i}, %d{i}}}, [%at+{512 * WARPS * i}];" for i in each)
        copies += "".join(f"\n  xor.b32 %sum, %sum, %{name}{i};" for i in each for name in "abcd")
    return ptx.kernel(["out", "source", "regions", "rounds"], "", f"""{ptx.CLOCK}
  .reg .b64 %from, %at, %last;
  .reg .b32 %to, %base, %limit, %block, %sum, %a<{COPIES}>, %b<{COPIES}>, %c<{COPIES}>, %d<{COPIES}>;
  mov.u32 %block, %ctaid.x;
  mov.u32 %base, window;
  mad.lo.u32 %base, %thread, 16, %base;
  add.u32 %limit, %base, {GROUPS * step};
  mov.b32 %to, %base;
  mov.b32 %sum, 0;
  cvt.u32.u64 %count, %regions;
  rem.u32 %count, %block, %count;
  mul.wide.u32 %from, %count, {REGION};
  add.u64 %from, %from, %source;
  mad.wide.u32 %from, %thread, 16, %from;
  cvt.u32.u64 %count, %rounds;
  bar.sync 0;
  mov.u64 %begin, %clock64;
ROUND:
  mov.u64 %at, %from;
  add.u64 %last, %from, {REGION};
STEP:
{copies}
  cp.async.commit_group;
  cp.async.wait_group {GROUPS - 1};
  add.u32 %to, %to, {step};
  setp.ge.u32 %more, %to, %limit;
  @%more mov.b32 %to, %base;
  add.u64 %at, %at, {step};
  setp.lt.u64 %more, %at, %last;
  @%more bra STEP;
  sub.u32 %count, %count, 1;
  setp.ne.u32 %more, %count, 0;
  @%more bra ROUND;
  cp.async.wait_all;
  mov.u64 %end, %clock64;
  sub.u64 %end, %end, %begin;
  mul.wide.u32 %where, %block, 8;
  add.u64 %where, %where, %out;
  setp.eq.u32 %first, %thread, 0;
  @%first st.global.u64 [%where], %end;
  setp.eq.u32 %first, %sum, 0x7FFFFFFF;
  @%first st.global.u32 [%out], %sum;
""", block=32 * WARPS)


def feed(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Measures what L2 delivers to threads: to one SM, and to all SMs data that each one, several
    or all ask for."""
    all_of_them = device.sms()
    source = device.allocate(all_of_them * REGION)
    rounds = 2 if quick else 20
    for loads in (False, True):
        kernel = device.load(ring(loads), shared=GROUPS * 512 * WARPS * COPIES)
        for blocks, regions in ((1, 1), *((all_of_them, all_of_them // share) for share in (1, 2, 3, 6, 12, 33, all_of_them))):
            for _ in range(2):
                kernel(blocks, 32 * WARPS, out, source, regions, rounds)
            device.synchronize()
            clocks = sorted(device.read(out, blocks))[blocks // 2]
            yield {"name": f"{'ld.global.cg' if loads else 'cp.async'} of 16 bytes a thread, {blocks} blocks, {blocks // regions} of them the same",
                   "unit": "B/clk of a multiprocessor", "value": round(rounds * REGION / clocks, 1)}
    device.free(source)
