"""Device memory at full load, by the part of the bytes that is written: what switching between
reads and writes costs."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device
from ladder import microseconds

PIECES, THREADS, BLOCKS = 32, 512, 2  # of 16 bytes, of a thread in a step; of a CTA; on an SM
AT_ONCE = 8  # pieces that are read before the first is used
POOL = 640 << 20
READS = (32, 28, 24, 20, 16, 12, 8, 4, 2, 1, 0)


def mix(reads: int) -> str:
    """In each step a thread reads `reads` pieces, a grid apart, and writes the others of its
    PIECES; they alternate as far as they can, and what is written depends on all that was read
    before."""
    body = f"""  .reg .b32 %t, %b, %d, %g, %count, %s<4>, %x<{4 * AT_ONCE}>; .reg .b64 %i, %step, %at, %to; .reg .pred %q;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %d, %ntid.x; mov.u32 %g, %nctaid.x;
  mad.lo.u32 %t, %b, %d, %t; mul.wide.u32 %i, %t, 16; mul.lo.u32 %g, %g, %d; mul.wide.u32 %step, %g, 16;
  add.u64 %at, %from, %i; add.u64 %to, %into, %i; cvt.u32.u64 %count, %steps;
  mov.b32 %s0, %t; mov.b32 %s1, %t; mov.b32 %s2, %t; mov.b32 %s3, %t;
LOOP:
"""
    for first in range(0, PIECES, AT_ONCE):
        here = (first + AT_ONCE) * reads // PIECES - first * reads // PIECES
        for i in range(here):
            quad = ", ".join(f"%x{4 * i + word}" for word in range(4))
            body += f"  ld.global.nc.v4.b32 {{{quad}}}, [%at]; add.u64 %at, %at, %step;\n"
        body += "".join(f"  xor.b32 %s{x % 4}, %s{x % 4}, %x{x};\n" for x in range(4 * here))
        body += "  st.global.v4.b32 [%to], {%s0, %s1, %s2, %s3}; add.u64 %to, %to, %step;\n" * (AT_ONCE - here)
    body += """  sub.u32 %count, %count, 1; setp.ne.u32 %q, %count, 0; @%q bra LOOP;
  xor.b32 %s0, %s0, %s1; xor.b32 %s2, %s2, %s3; xor.b32 %s0, %s0, %s2;
  setp.eq.u32 %q, %s0, 0x7fffffff; @%q st.global.b32 [%into], %s0;"""
    return ptx.kernel(["from", "into", "steps"], "", body, block=THREADS)


def mixes(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Launches of a graph that read and write other buffers than those before. The rate is of what
    a launch takes longer than a shorter one."""
    grid = device.sms() * BLOCKS
    unit = grid * THREADS * 16 * PIECES  # 66 MiB of an H200
    lengths = (1, 2) if quick else (1, 2, 8)
    pool = device.allocate(max(lengths) * unit if quick else POOL)
    for reads in READS:
        kernel = device.load(mix(reads))
        times = []
        for steps in lengths:
            count = 1 if quick else POOL // (steps * unit)
            buffers = [(at, at + steps * unit * reads // PIECES, steps) for at in (pool + i * steps * unit for i in range(count))]
            times.append(microseconds(device, kernel, grid, THREADS, buffers, quick))
        rate = (lengths[-1] - lengths[-2]) * unit / (times[-1] - times[-2]) / 1e6
        yield {"name": f"{100 * (PIECES - reads) / PIECES:g} % writes", "value": round(rate, 3), "unit": "TB/s",
               "us of " + ", ".join(f"{steps * unit >> 20} MiB" for steps in lengths): [round(time, 2) for time in times]}
    device.free(pool)
