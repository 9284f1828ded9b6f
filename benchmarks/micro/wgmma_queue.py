"""wgmma of one and of several warpgroups, and when each of them was issued: how many wait for the
tensor core before their warps do, and whose turn it is."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device

MMAS = 24  # that each warpgroup issues in a row
WORDS = 32  # of a warp in memory


def issues(columns: int, registers: bool) -> str:
    """Each warp reads the clock before its first MMA, behind each of them and behind the wait."""
    d = ", ".join(f"%d{i}" for i in range(columns // 2))
    a, flags = ("{%a0, %a1, %a2, %a3}", "1, 1, 0") if registers else ("%da", "1, 1, 0, 0")
    product = f"  wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16 {{{d}}}, {a}, %db, 1, {flags};\n"
    setup = f"""{ptx.CLOCK}
  .reg .b32 %a<4>, %d<{columns // 2}>, %c<{WORDS}>, %s, %z, %e, %n, %sink, %magic32; .reg .b64 %da, %db; .reg .pred %zq;
  mov.u32 %s, window; shr.u32 %s, %s, 4; cvt.u64.u32 %da, %s;
  or.b64 %da, %da, 0x4000004000010000; add.u64 %db, %da, 1024;
  mov.b32 %z, 0; mov.u32 %s, window; mad.lo.u32 %s, %thread, 4, %s; add.u32 %e, %s, 65536;
  mov.u32 %n, %ntid.x; mul.lo.u32 %n, %n, 4;
ZERO: st.shared.b32 [%s], %z; add.u32 %s, %s, %n; setp.lt.u32 %zq, %s, %e; @%zq bra ZERO;
  fence.proxy.async; bar.sync 0; mov.u32 %s, window;
""" + "".join(f"  mov.b32 %d{i}, 0;\n" for i in range(columns // 2))
    setup += "".join(f"  ld.shared.b32 %a{i}, [%s+{4 * i}];\n" for i in range(4))
    body = "  cvt.u32.u64 %count, %rounds;\nLOOP:\n  bar.sync 0;\n  wgmma.fence.sync.aligned;\n  mov.u32 %c0, %clock;\n"
    body += "".join(f"{product}  mov.u32 %c{i + 1}, %clock;\n" for i in range(MMAS))
    body += f"""  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  mov.u32 %c{MMAS + 1}, %clock;
  sub.u32 %count, %count, 1; setp.ne.u32 %more, %count, 0; @%more bra LOOP;
  mov.b32 %sink, 0; cvt.u32.u64 %magic32, %magic;
"""
    body += "".join(f"  xor.b32 %sink, %sink, %d{i};\n" for i in range(columns // 2))
    body += f"  mul.wide.u32 %where, %warp, {4 * WORDS}; add.u64 %where, %where, %out; setp.eq.u32 %first, %lane, 0;\n"
    body += "".join(f"  @%first st.global.u32 [%where+{4 * i}], %c{i};\n" for i in range(MMAS + 2))
    body += "  setp.eq.u32 %first, %sink, %magic32;\n  @%first st.global.u32 [%out], %sink;\n"
    return ptx.kernel(["out", "rounds", "magic"], "", setup + body, block=384 if columns <= 128 else 256)


def queue(device: Device, out: int) -> Iterator[dict[str, Any]]:
    """Clocks behind each issue since the first warp's begin, and behind the wait, of a warp of each
    warpgroup, the second time."""
    for columns in (64, 128, 256):
        for registers in (False, True):
            kernel = device.load(issues(columns, registers), shared=160 * 1024)
            for groups in (1, 2, 3) if columns <= 128 else (1, 2):
                kernel(1, 128 * groups, out, 2, 0x7FFFFFFF)
                device.synchronize()
                raw = device.read(out, 4 * groups * WORDS // 2)  # words of 64 bits
                words = [word >> shift & 0xFFFFFFFF for word in raw for shift in (0, 32)]
                begins = [words[4 * g * WORDS] for g in range(groups)]
                for g in range(groups):
                    clocks = [(word - min(begins)) & 0xFFFFFFFF for word in words[4 * g * WORDS:4 * g * WORDS + MMAS + 2]]
                    yield {"name": f"m64n{columns}, A in {'registers' if registers else 'shared memory'}, {groups} warpgroups, the {g + 1}.",
                           "value": clocks[-1], "unit": "clk", "issued": " ".join(map(str, clocks[:-1]))}
