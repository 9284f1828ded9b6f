"""The order in which a scheduler takes its warps, and the clocks: CTAs that read 32 bytes a thread,
compute and end."""
from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import ptx
import streams
from cuda import Device, Kernel
from ladder import MIB

FIELDS = 6  # of a warp: begin, asked, has data, end, SM, warp slot


def stamped(kind: str, count: int) -> str:
    """Each warp says when it began, had asked, had what it asked for, and had computed."""
    body = """  .reg .b32 %t, %b, %n, %lane, %w, %sm, %slot; .reg .b64 %i, %at, %to, %o, %t0, %t1, %t2, %t3, %x64; .reg .b32 %x<8>, %y<8>; .reg .pred %q;
  mov.u64 %t0, %clock64; mov.u32 %sm, %smid; mov.u32 %slot, %warpid;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %b, %b, %n, %t;
  mul.wide.u32 %i, %b, 32; add.u64 %at, %from, %i; mul.wide.u32 %o, %b, 8; add.u64 %to, %into, %o;
  ld.volatile.global.v4.b32 {%x0, %x1, %x2, %x3}, [%at]; ld.volatile.global.v4.b32 {%x4, %x5, %x6, %x7}, [%at+16];
  mov.u64 %t1, %clock64;
"""
    body += "".join(f"  xor.b32 %x{i}, %x{i}, %x7;\n" for i in range(7))
    body += "  mov.b64 %x64, {%x3, %x6}; setp.eq.u64 %q, %x64, 0x7ffffff1ffff; @%q trap;\n  mov.u64 %t2, %clock64;\n"
    body += streams.work(kind, count, 0)
    body += "".join(f"  xor.b32 %x{i % 2}, %x{i % 2}, %x{i};\n" for i in range(2, 8))
    body += "  setp.eq.u32 %q, %x0, 0x7ffffff1; @%q trap;\n  mov.u64 %t3, %clock64; st.global.v2.b32 [%to], {%x0, %x1};\n"
    body += f"""  and.b32 %lane, %t, 31; setp.eq.u32 %q, %lane, 0; shr.u32 %w, %b, 5; mul.wide.u32 %i, %w, {8 * FIELDS}; add.u64 %i, %i, %stamps;
  @%q st.global.v2.u64 [%i], {{%t0, %t1}}; @%q st.global.v2.u64 [%i+16], {{%t2, %t3}};
  cvt.u64.u32 %t0, %sm; cvt.u64.u32 %t1, %slot; @%q st.global.v2.u64 [%i+32], {{%t0, %t1}};
"""
    return ptx.kernel(["from", "into", "stamps"], "", body)


def stamps_of(device: Device, kernel: Kernel, threads: int, pool: int, size: int, stamps: int) -> list[tuple[int, ...]]:
    """The fields of every warp, of the second of two launches that read `size` bytes."""
    for _ in range(2):
        kernel(size // (32 * threads), threads, pool, pool + size, stamps)
    device.synchronize()
    words = device.read(stamps, FIELDS * (size // 1024))
    return [tuple(words[at:at + FIELDS]) for at in range(0, len(words), FIELDS)]


def mean(rows: list[tuple[int, ...]], first: int, last: int) -> float:
    return round(statistics.mean(row[last] - row[first] for row in rows), 1)


def nobody_computes(rows: list[tuple[int, ...]]) -> float:
    """The part of time in which no warp of a scheduler computes."""
    busy = depth = last = 0
    for at, step in sorted([(row[2], 1) for row in rows] + [(row[3], -1) for row in rows]):
        busy += at - last if depth else 0
        depth, last = depth + step, at
    return 1 - busy / (max(row[3] for row in rows) - min(row[0] for row in rows))


def order(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    size = (2 if quick else 64) * MIB
    pool, warps = device.allocate(size * 5 // 4), size // 1024
    stamps = device.allocate(8 * FIELDS * warps)
    for kind, count in [("fp32", 64)] if quick else (("fp32", 0), ("fp32", 256), ("fp32 and integer in turn", 256), ("two fp32, one integer", 256), ("fp32", 512)):
        for shared in (0, 27):
            kernel = device.load(stamped(kind, count), shared << 10)
            by = defaultdict(list)
            for w, f in enumerate(stamps_of(device, kernel, 128, pool, size, stamps)):
                by[f[4], f[5] % 4].append((f[0], f[1], f[2], f[3], f[5], w))
            first = sorted(by)[len(by) // 2]
            mine = sorted(by[first])
            begin = mine[0][0]
            middle = [row for rows in by.values() for row in sorted(rows)[len(rows) // 4:3 * len(rows) // 4]]
            idle = [nobody_computes(rows) for rows in by.values()]
            yield {"name": f"{count} of {kind}, {kernel.most_resident(128)} warps a scheduler", "value": round(statistics.mean(
                (max(r[3] for r in rows) - min(r[0] for r in rows)) / len(rows) for rows in by.values()), 1), "unit": "clk a warp",
                "to ask": mean(middle, 0, 1), "to have": mean(middle, 1, 2), "to compute": mean(middle, 2, 3), "nobody computes": round(statistics.mean(idle), 3),
                "of some": [[r[0] - begin, r[1] - begin, r[2] - begin, r[3] - begin, r[4]] for r in mine[:8]]}
    device.free(pool)
    device.free(stamps)


STAMP = """  .reg .b32 %sm; .reg .b64 %c, %g, %i;
  mov.u32 %sm, %smid; mul.wide.u32 %i, %sm, 16; add.u64 %i, %i, %to; mov.u64 %c, %clock64; mov.u64 %g, %globaltimer;
  st.global.v2.u64 [%i], {%c, %g};
"""


def clocks(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """The clock of SMs under such kernels: between two readings of it and of the timer around 200
    launches."""
    size, sms = (2 if quick else 128) * MIB, device.sms()
    pool = device.allocate(size * 5 // 4)
    stamp = device.load(ptx.kernel(["to"], "", STAMP))
    for kind, count, loads in (("fp32", 0, True), ("fp32", 192, True), ("fp32", 256, True), ("fp32", 512, True),
                               ("fp32 and integer in turn", 256, True), ("two fp32, one integer", 256, True), ("fp32", 256, False)):
        kernel = device.load(streams.once(kind, count, 1, True, loads))

        def issue(stream: Any) -> None:
            stamp(4 * sms, 512, out, stream=stream)
            for _ in range(2 if quick else 200):
                kernel(size // 4096, 128, pool, pool + size, stream=stream)
            stamp(4 * sms, 512, out + 65536, stream=stream)

        replay = device.graph(issue)
        for turn in range(2):
            replay()
            device.synchronize()
            before, after = device.read(out, 2 * sms), device.read(out + 65536, 2 * sms)
        rates = [(after[2 * i] - before[2 * i]) / max(1, after[2 * i + 1] - before[2 * i + 1]) for i in range(sms)]
        yield {"name": f"{count} of {kind}{'' if loads else ' without memory'}", "value": round(statistics.median(rates), 4), "unit": "GHz",
               "us of a launch": round((after[1] - before[1]) / (2 if quick else 200) / 1e3, 2)}
    device.free(pool)
