"""Stores: when a bulk store has read its source and when L2 has it, what one SM stores and all
of them do, and what its loads leave it."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import memory
import ptx
from cuda import Device, Failure, Kernel
from ladder import microseconds

KIB, MIB = 1 << 10, 1 << 20

BULK = "cp.async.bulk.global.shared::cta.bulk_group [%a], [%src], %c32;"
TENSOR = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {%x, %y}], [%src];"

PAINT = """  .reg .b32 %p<4>;
  mov.u32 %p0, %ntid.x; shl.b32 %p0, %p0, 2; shl.b32 %p1, %t, 2; add.u32 %p2, %buf, %room32; add.u32 %p1, %p1, %buf;
PAINT:
  setp.ge.u32 %q, %p1, %p2; @%q bra PAINTED;
  mad.lo.u32 %p3, %p1, 0x9E3779B1, %bid; st.shared.b32 [%p1], %p3; add.u32 %p1, %p1, %p0; bra PAINT;
PAINTED:
  fence.proxy.async; bar.sync 0;
"""

START = """  .reg .b32 %t, %buf, %c32, %src, %slot, %slots, %bid, %grid, %x, %y, %it, %cnt, %line, %lines, %box, %first;
  .reg .b64 %a, %base, %off, %map, %w, %begin, %end, %read, %c64; .reg .pred %q, %done;
  mov.u32 %t, %tid.x; mov.u32 %buf, window; mov.u32 %bid, %ctaid.x; mov.u32 %grid, %nctaid.x;
""" + PAINT + """  cvt.u32.u64 %c32, %bytes; mul.wide.u32 %base, %bid, 1; mul.lo.u64 %base, %base, %apart; add.u64 %base, %base, %into;
  cvt.u32.u64 %lines, %span; cvt.u32.u64 %box, %apart;
  mov.u64 %off, 0; mov.u32 %x, 0; mov.u32 %line, 0; mov.u32 %slot, 0; mov.u32 %it, 0; cvt.u32.u64 %cnt, %count;
"""
PARAMETERS = ["out", "into", "bytes", "count", "span", "apart", "room"]


def begin(slots: int) -> str:
    return "  .reg .b32 %room32; cvt.u32.u64 %room32, %room;\n" + START + f"  mov.u32 %slots, {slots};\n"


def step(tensor: bool, row_bytes: int, pitch: int) -> str:
    """Stores the next piece of the CTA. In a matrix, the pieces are boxes of a column each, `pitch`
    bytes of them, and then the next rows; `apart` is the number of rows and `span` that of the sets
    of rows until the first one comes again."""
    if not tensor:
        where = "  add.u64 %a, %base, %off;\n"
        after = "  add.u64 %off, %off, %bytes; setp.ge.u64 %q, %off, %span; selp.b64 %off, 0, %off, %q;\n"
    else:
        where = "  mad.lo.u32 %y, %line, %grid, %bid; mul.lo.u32 %y, %y, %box;\n"
        after = (f"  add.u32 %x, %x, {row_bytes}; setp.ge.u32 %q, %x, {pitch}; selp.b32 %x, 0, %x, %q;\n"
                 "  @%q add.u32 %line, %line, 1; setp.ge.u32 %q, %line, %lines; selp.b32 %line, 0, %line, %q;\n")
    return (where + "  mad.lo.u32 %src, %slot, %c32, %buf;\n  " + (TENSOR if tensor else BULK) + "\n"
            "  cp.async.bulk.commit_group;\n" + after +
            "  add.u32 %slot, %slot, 1; setp.eq.u32 %q, %slot, %slots; selp.b32 %slot, 0, %slot, %q;\n")


def of_map(code: str) -> str:
    """`into` becomes a tensor map."""
    code = code.replace(".param .u64 p_into", ".param .align 64 .b8 p_into[128]")
    return code.replace("ld.param.u64 %into, [p_into];", "mov.b64 %into, p_into;").replace(
        "mov.u64 %off, 0;", "cvta.param.u64 %map, %into; mov.u64 %off, 0;")


def pieces(tensor: bool, in_flight: int, row_bytes: int = 0, pitch: int = 0) -> str:
    """One thread stores `count` pieces of `bytes`, a group each, of which so many may have their
    source unread. Stores the clock before, when the last source was read, and when all are
    written."""
    code = ptx.kernel(PARAMETERS, "", begin(in_flight) + """  setp.ne.u32 %q, %t, 0; @%q bra END;
  mov.u64 %begin, %clock64;
LOOP:
""" + step(tensor, row_bytes, pitch) + f"""  cp.async.bulk.wait_group.read {in_flight - 1};
  add.u32 %it, %it, 1; setp.lt.u32 %q, %it, %cnt; @%q bra LOOP;
  cp.async.bulk.wait_group.read 0; mov.u64 %read, %clock64;
  cp.async.bulk.wait_group 0; mov.u64 %end, %clock64;
  mul.wide.u32 %w, %bid, 24; add.u64 %w, %w, %out;
  st.global.u64 [%w], %begin; st.global.u64 [%w+8], %read; st.global.u64 [%w+16], %end;
END:""")
    return of_map(code) if tensor else code


def drain(tensor: bool, groups: int, read: bool, row_bytes: int = 0, pitch: int = 0) -> str:
    """One thread issues so many groups at once and stores the clock before, then, and when each has
    read its source, or is written. `count` times, of which the last stays."""
    clocks = "".join(f"  cp.async.bulk.wait_group{'.read' if read else ''} {left};\n  mov.u64 %k{groups - 1 - left}, %clock64;\n"
                     for left in reversed(range(groups)))
    kept = "".join(f"  st.global.u64 [%w+{16 + 8 * i}], %k{i};\n" for i in range(groups))
    code = ptx.kernel(PARAMETERS, f"  .reg .b64 %k<{groups}>;", begin(groups) + """  setp.ne.u32 %q, %t, 0; @%q bra END;
LOOP:
  mov.u64 %begin, %clock64;
""" + step(tensor, row_bytes, pitch) * groups + "  mov.u64 %end, %clock64;\n" + clocks + f"""  cp.async.bulk.wait_group 0;
  add.u32 %it, %it, 1; setp.lt.u32 %q, %it, %cnt; @%q bra LOOP;
  mul.wide.u32 %w, %bid, {16 + 8 * groups}; add.u64 %w, %w, %out;
  st.global.u64 [%w], %begin; st.global.u64 [%w+8], %end;
{kept}END:""")
    return of_map(code) if tensor else code


def bursts(groups: int) -> str:
    """One thread issues so many groups at once, waits for them and then for `rest` cycles, over and
    over. Stores the cycles of all bursts without the rests."""
    return ptx.kernel(PARAMETERS + ["rest"], "  .reg .b64 %sum, %until;", begin(groups) + """  setp.ne.u32 %q, %t, 0; @%q bra END;
  mov.u64 %sum, 0;
LOOP:
  mov.u64 %begin, %clock64;
""" + step(False, 0, 0) * groups + """  cp.async.bulk.wait_group.read 0;
  mov.u64 %end, %clock64; sub.u64 %read, %end, %begin; add.u64 %sum, %sum, %read; add.u64 %until, %end, %rest;
REST:
  mov.u64 %end, %clock64; setp.lt.u64 %q, %end, %until; @%q bra REST;
  add.u32 %it, %it, 1; setp.lt.u32 %q, %it, %cnt; @%q bra LOOP;
  mul.wide.u32 %w, %bid, 8; add.u64 %w, %w, %out; st.global.u64 [%w], %sum;
END:""")


def mean(words: Any, blocks: int, each: int, first: int, last: int) -> float:
    return sum(words[each * i + last] - words[each * i + first] for i in range(blocks)) / blocks


class Target:
    """The place of the stores: pieces of a run of each CTA, or boxes of a matrix."""

    def __init__(self, device: Device, at: int, size: int, row_bytes: int = 0, rows: int = 0, swizzle: int = 0) -> None:
        all_rows = MIB  # of 1 KiB: 1 GiB
        self.bytes = size or row_bytes * rows
        self.tensor, self.row_bytes, self.pitch, self.rows = bool(row_bytes), row_bytes, KIB, rows
        self.at: Any = at
        if self.tensor:
            self.at = device.encode(0, at, (self.pitch, all_rows), (self.pitch,), (row_bytes, rows), swizzle)
            self.name = f"boxes of {rows} rows of {row_bytes} B, swizzle {32 << swizzle - 1 if swizzle else 0}"
        else:
            self.name = f"bulk stores of {self.bytes} B"

    def arguments(self, run: int, blocks: int) -> tuple[int, int]:
        """`span` and `apart` so that a CTA stores to `run` bytes again and again."""
        return (max(1, run // (self.rows * self.pitch)), self.rows) if self.tensor else (run, run)


BULK_SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
BOXES = ((128, 128, 3), (128, 128, 0), (64, 128, 2), (64, 128, 0), (32, 128, 1), (32, 128, 0), (128, 32, 3), (64, 256, 2))


def flush(device: Device) -> Any:
    """Reads 128 MiB, so that L2 has nothing else."""
    kernel, scratch = device.load(memory.stream("ld.global.cg", False)), device.allocate(144 * MIB)  # its last step is whole
    return lambda out: kernel(device.sms(), 1024, scratch, out, 128 * MIB, 1)


def latencies(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Measures one CTA alone: one store after the other."""
    into = device.allocate(1024 * MIB)
    clear = flush(device)
    targets = [Target(device, into, size) for size in BULK_SIZES] + [Target(device, into, 0, *box) for box in BOXES]
    for target in targets:
        kernel = device.load(drain(target.tensor, 1, True, target.row_bytes, target.pitch), shared=200 * KIB)
        whole = device.load(drain(target.tensor, 1, False, target.row_bytes, target.pitch), shared=200 * KIB)
        for place, run in (("L2", 128 * KIB), ("device memory", 32 * MIB)):
            values = []
            for code in (kernel, whole):
                span, apart = target.arguments(run, 1)
                if run > MIB and not quick:
                    clear(out)
                for _ in range(2 if run < MIB else 1):
                    code(1, 32, out, target.at, target.bytes, 40, span, apart, target.bytes)
                device.synchronize()
                words = device.read(out, 3)
                values.append((words[2] - words[0], words[1] - words[0]))
                if not any(device.read(into, target.bytes // 8 if not target.tensor else 2)):
                    raise Failure(f"{target.name}: nothing was stored")
            yield {"name": f"{target.name} to {place}: source read", "value": values[0][0], "unit": "clk",
                   "written": values[1][0], "issued": values[0][1]}


def queues(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Groups that are issued at once: when each has read its source, and when it is written."""
    sms = device.sms()
    into = device.allocate(1024 * MIB)
    for target in [Target(device, into, size) for size in (1024, 4096, 16384)] + \
            [Target(device, into, 0, *box) for box in ((128, 128, 3), (64, 128, 2), (32, 128, 0))]:
        groups = 8
        for blocks in (1, sms):
            rows = []
            for read in (True, False):
                kernel = device.load(drain(target.tensor, groups, read, target.row_bytes, target.pitch), shared=200 * KIB)
                span, apart = target.arguments(128 * KIB, blocks)
                for _ in range(2):
                    kernel(blocks, 32, out, target.at, target.bytes, 2 if quick else 20, span, apart, groups * target.bytes)
                device.synchronize()
                words = device.read(out, (2 + groups) * blocks)
                rows.append([round(mean(words, blocks, 2 + groups, 0, 1 + i)) for i in range(1 + groups)])
            yield {"name": f"{groups} {target.name}, {blocks} SM: the last source read", "value": rows[0][-1],
                   "unit": "clk", "issued": rows[0][0], "sources read": rows[0][1:], "written": rows[1][1:]}


def rates(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Bytes that are stored in a clock, by one SM alone and by all."""
    sms = device.sms()
    into = device.allocate(1056 * MIB)
    clear = flush(device)
    cases = [(Target(device, into, size), n) for size, n in
             ((512, 4), (1024, 4), (2048, 4), (4096, 1), (4096, 2), (4096, 4), (4096, 8), (4096, 16), (16384, 1), (16384, 2),
              (16384, 4), (16384, 8), (65536, 2))] + \
            [(Target(device, into, 0, *box), n) for box in BOXES for n in (1, 4)]
    for target, in_flight in cases:
        kernel = device.load(pieces(target.tensor, in_flight, target.row_bytes, target.pitch), shared=200 * KIB)
        for blocks in (1, 2, 8, 33, 66, sms) if (target.bytes, in_flight) == (16384, 4) else (1, sms):
            for place, run in (("L2", 128 * KIB), ("device memory", 8 * MIB if blocks > 1 else 64 * MIB)):
                if target.tensor and place == "device memory" and blocks > 1:
                    run = 4 * MIB
                yield one(device, out, kernel, target, in_flight, blocks, place, run, quick, clear)


def one(device: Device, out: int, kernel: Kernel, target: Target, in_flight: int, blocks: int, place: str, run: int,
        quick: bool, clear: Any) -> dict[str, Any]:
    span, apart = target.arguments(run, blocks)
    count = 32 if quick else max(run, 4 * MIB if blocks > 1 else 2 * MIB) // target.bytes
    if run > MIB and not quick:
        clear(out)
    for _ in range(2 if run < MIB else 1):
        kernel(blocks, 32, out, target.at, target.bytes, count, span, apart, in_flight * target.bytes)
    device.synchronize()
    words = device.read(out, 3 * blocks)
    clocks = mean(words, blocks, 3, 0, 2)
    return {"name": f"{target.name}, {in_flight} in flight, to {place}, {blocks} SM",
            "value": round(target.bytes * count / clocks, 2), "unit": "B/clk/SM",
            "clk each": round(clocks / count, 1), "the last source read before the end": round(mean(words, blocks, 3, 1, 2)),
            "slowest": round(target.bytes * count / max(words[3 * i + 2] - words[3 * i] for i in range(blocks)), 2)}


def of_bursts(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Does L2 take a burst faster than device memory takes lines all the time, if there is a rest
    after each?"""
    sms, size = device.sms(), 16384
    into = device.allocate(1056 * MIB)
    for groups in (2, 8):
        kernel = device.load(bursts(groups), shared=200 * KIB)
        for place, run in (("L2", 128 * KIB), ("device memory", 8 * MIB)):
            for rest in (0, 5000, 20000):
                count = 2 if quick else 8 * MIB // (groups * size)
                for _ in range(2):
                    kernel(sms, 32, out, into, size, count, run, run, groups * size, rest)
                device.synchronize()
                burst = sum(device.read(out, sms)) / sms / count
                yield {"name": f"bursts of {groups} x {size} B to {place}, {rest} clk after each, {sms} SM",
                       "value": round(groups * size / burst, 2), "unit": "B/clk/SM", "clk": round(burst),
                       "with the rests": round(groups * size / (burst + rest), 2)}


THREADS = """  .reg .b32 %t, %bid, %nt, %x, %it, %cnt; .reg .b64 %base, %at, %end, %off, %step, %w, %begin, %lane, %mid; .reg .pred %q;
  mov.u32 %t, %tid.x; mov.u32 %bid, %ctaid.x; mov.u32 %nt, %ntid.x; cvt.u32.u64 %cnt, %count;
  mul.wide.u32 %base, %bid, 1; mul.lo.u64 %base, %base, %span; add.u64 %base, %base, %into;
  mul.wide.u32 %lane, %t, 16; mul.wide.u32 %step, %nt, 16; mov.u64 %off, 0; mov.u32 %it, 0;
  bar.sync 0; mov.u64 %begin, %clock64;
LOOP:
  add.u64 %at, %base, %off; add.u64 %at, %at, %lane;
"""


STEP = """
  setp.ge.u64 %q, %off, %span; selp.b64 %off, 0, %off, %q;
  add.u32 %it, %it, 1; setp.lt.u32 %q, %it, %cnt; @%q bra LOOP;
  mov.u64 %mid, %clock64; membar.gl; bar.sync 0; mov.u64 %end, %clock64;
  setp.ne.u32 %q, %t, 0; @%q bra END;
  mul.wide.u32 %w, %bid, 24; add.u64 %w, %w, %out;
  st.global.u64 [%w], %begin; st.global.u64 [%w+8], %mid; st.global.u64 [%w+16], %end;
END:"""


def times_of_stores(device: Device, out: int, kernel: Kernel, threads: int, into: int, clear: Callable[[int], None],
                    quick: bool) -> Iterator[tuple[str, int, float, int]]:
    """Times a kernel with THREADS and STEP, whose threads store 64 bytes in a pass, with one CTA
    and with one for each SM. Yields the place of the stores, CTAs, bytes a clock and SM, and clocks
    from the last store to the end."""
    for blocks in (1, device.sms()):
        for place, run in (("L2", 128 * KIB), ("device memory", 8 * MIB)):
            count = 4 if quick else max(run, 4 * MIB) // (64 * threads)
            if run > MIB and not quick:
                clear(out)
            for _ in range(2 if run < MIB else 1):
                kernel(blocks, threads, out, into, count, run)
            device.synchronize()
            words = device.read(out, 3 * blocks)
            yield place, blocks, round(64 * threads * count / mean(words, blocks, 3, 0, 2), 2), round(mean(words, blocks, 3, 1, 2))


def of_threads(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """st.global.v4 of all threads of a CTA, whole lines."""
    into = device.allocate(1056 * MIB)
    clear = flush(device)
    four = "".join("  st.global.v4.b32 [%at], {%t, %bid, %nt, %it}; add.u64 %at, %at, %step; add.u64 %off, %off, %step;\n"
                   for _ in range(4))
    kernel = device.load(ptx.kernel(["out", "into", "count", "span"], "", THREADS + four + STEP))
    for threads in (32, 128, 256, 512, 1024):
        for place, blocks, rate, last in times_of_stores(device, out, kernel, threads, into, clear, quick):
            yield {"name": f"st.global.v4 of {threads} threads to {place}, {blocks} SM", "value": rate, "unit": "B/clk/SM",
                   "the last one issued before the end": last}


PARTS = {"two of 16 bytes": [(".v4.b32", "{%t, %bid, %nt, %it}", 16 * i) for i in range(2)],
         "four of 8 bytes": [(".v2.b32", "{%t, %it}", 8 * i) for i in range(4)],
         "one of 16 bytes": [(".v4.b32", "{%t, %bid, %nt, %it}", 0)],
         "one of 8 bytes": [(".v2.b32", "{%t, %it}", 0)]}


def of_parts(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Each thread has a sector, and stores all of it piece by piece or a part of it. The rate is
    that of sectors that are touched, each counted once."""
    into = device.allocate(1056 * MIB)
    clear = flush(device)
    begin = THREADS.replace("%t, 16; mul.wide.u32 %step, %nt, 16", "%t, 32; mul.wide.u32 %step, %nt, 32")
    for name, parts in PARTS.items():
        once = "".join(f"  st.global{kind} [%at+{offset}], {value};\n" for kind, value, offset in parts)
        twice = (once + "  add.u64 %at, %at, %step; add.u64 %off, %off, %step;\n") * 2
        kernel = device.load(ptx.kernel(["out", "into", "count", "span"], "", begin + twice + STEP))
        for threads in (32, 128, 1024):
            for place, blocks, rate, _ in times_of_stores(device, out, kernel, threads, into, clear, quick):
                yield {"name": f"sectors of {threads} threads to {place}, {name}, {blocks} SM", "value": rate, "unit": "B/clk/SM"}


BEHIND = {"": "mov.b32 %r, %t; mov.b32 %it, %bid;",
          ", behind a load of 8 bytes": "mul.wide.u32 %o, %bid, 2048; add.u64 %o, %o, %from; mul.wide.u32 %lane, %t, 8; "
                                        "add.u64 %o, %o, %lane; ld.global.nc.v2.b32 {%r, %it}, [%o];"}


def of_grids(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Launches of a graph whose threads store a sector each and end: whole lines by each
    instruction, or parts of sectors. Warps that load first do not store at the same time."""
    value = "{%r, %it, %r, %it}"
    lines = [(".v4.b32", value, 0, 16), (".v4.b32", value, 16 * 256, 16)]
    halves = [(".v4.b32", value, 0, 32), (".v4.b32", value, 16, 32)]
    cases = {"whole lines": lines, "two of 16 bytes": halves, "two of 16 bytes, the second first": halves[::-1],
             "four of 8 bytes": [(".v2.b32", "{%r, %it}", 8 * i, 32) for i in range(4)], "one of 16 bytes": halves[:1]}
    pool = device.allocate(640 * MIB)
    for name, parts in cases.items():
        for behind, load in BEHIND.items():
            body = """  .reg .b32 %t, %bid, %r, %it; .reg .b64 %at, %o, %lane;
  mov.u32 %t, %tid.x; mov.u32 %bid, %ctaid.x; mul.wide.u32 %at, %bid, 8192; add.u64 %at, %at, %into;
""" + load
            for kind, words, offset, pitch in parts:
                body += f"  mul.wide.u32 %o, %t, {pitch}; add.u64 %o, %o, %at; st.global{kind} [%o+{offset}], {words};\n"
            kernel = device.load(ptx.kernel(["from", "into"], "", body, block=256))
            for size in (8, 32, 128):
                each = size * MIB * 5 // 4
                buffers = [(pool + i * each, pool + i * each + size * MIB // 4) for i in range(640 * MIB // each)]
                taken = microseconds(device, kernel, size * MIB // 8192, 256, buffers, quick)
                yield {"name": f"{size} MiB of sectors, {name}{behind}", "value": round(taken, 3), "unit": "us"}
    device.free(pool)


BESIDE = """  .reg .b32 %t, %buf, %c32, %bar, %barrier, %dst, %src, %slot, %ph, %it, %k, %bid; .reg .b64 %base, %a, %off, %to, %w;
  .reg .b64 %begin, %now, %limit, %done64; .reg .pred %q, %done;
  .reg .b32 %room32;
  mov.u32 %t, %tid.x; mov.u32 %buf, window; mov.u32 %bid, %ctaid.x; cvt.u32.u64 %c32, %bytes; shl.b32 %room32, %c32, 3;
""" + PAINT + """  mad.lo.u32 %bar, %c32, 8, %buf;
  setp.ne.u32 %q, %t, 0; @%q bra READY;
  mov.u32 %it, 0;
INIT:
  mad.lo.u32 %barrier, %it, 8, %bar; mbarrier.init.shared.b64 [%barrier], 1;
  add.u32 %it, %it, 1; setp.lt.u32 %q, %it, 4; @%q bra INIT;
  fence.mbarrier_init.release.cluster; fence.proxy.async;
READY:
  bar.sync 0;
  mul.wide.u32 %w, %bid, 1; mul.lo.u64 %w, %w, %span; add.u64 %base, %w, %from; add.u64 %to, %w, %into;
  mov.u64 %off, 0; mov.u32 %it, 0; mov.u32 %k, 0; mov.u32 %slot, 0; mov.u32 %ph, 0;
  mov.u64 %begin, %clock64; add.u64 %limit, %begin, %cycles;
  mul.wide.u32 %w, %bid, 32; add.u64 %w, %w, %out;
  setp.ge.u32 %q, %t, 32; @%q bra STORES;
  setp.ne.u32 %q, %t, 0; @%q bra END;
  setp.eq.u64 %q, %loads, 0; @%q bra END;
FILL:
  mad.lo.u32 %barrier, %it, 8, %bar; mad.lo.u32 %dst, %it, %c32, %buf;
  mbarrier.arrive.expect_tx.shared.b64 _, [%barrier], %c32; add.u64 %a, %base, %off;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%dst], [%a], %c32, [%barrier];
  add.u64 %off, %off, %bytes; setp.ge.u64 %q, %off, %span; selp.b64 %off, 0, %off, %q;
  add.u32 %it, %it, 1; setp.lt.u32 %q, %it, 4; @%q bra FILL;
LOADED:
  mad.lo.u32 %barrier, %slot, 8, %bar; mad.lo.u32 %dst, %slot, %c32, %buf;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %done, [%barrier], %ph; @!%done bra WAIT;
  add.u32 %k, %k, 1;
  mov.u64 %now, %clock64; setp.ge.u64 %q, %now, %limit; @%q bra SKIP;
  mbarrier.arrive.expect_tx.shared.b64 _, [%barrier], %c32; add.u64 %a, %base, %off;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%dst], [%a], %c32, [%barrier];
  add.u64 %off, %off, %bytes; setp.ge.u64 %q, %off, %span; selp.b64 %off, 0, %off, %q;
  add.u32 %it, %it, 1;
SKIP:
  add.u32 %slot, %slot, 1; setp.eq.u32 %q, %slot, 4; selp.b32 %slot, 0, %slot, %q; @%q xor.b32 %ph, %ph, 1;
  setp.lt.u32 %q, %k, %it; @%q bra LOADED;
  mov.u64 %now, %clock64; sub.u64 %now, %now, %begin; cvt.u64.u32 %done64, %k;
  st.global.u64 [%w], %done64; st.global.u64 [%w+8], %now; bra END;
STORES:
  setp.eq.u64 %q, %stores, 0; @%q bra END;
  setp.eq.u64 %q, %stores, 2; @%q bra THREADS;
  setp.ne.u32 %q, %t, 32; @%q bra END;
  mad.lo.u32 %buf, %c32, 4, %buf;
STORE:
  mad.lo.u32 %src, %slot, %c32, %buf; add.u64 %a, %to, %off;
  cp.async.bulk.global.shared::cta.bulk_group [%a], [%src], %c32; cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 3;
  add.u64 %off, %off, %bytes; setp.ge.u64 %q, %off, %span; selp.b64 %off, 0, %off, %q;
  add.u32 %slot, %slot, 1; setp.eq.u32 %q, %slot, 4; selp.b32 %slot, 0, %slot, %q;
  add.u32 %k, %k, 1; mov.u64 %now, %clock64; setp.lt.u64 %q, %now, %limit; @%q bra STORE;
  cp.async.bulk.wait_group 0;
  mov.u64 %now, %clock64; sub.u64 %now, %now, %begin; cvt.u64.u32 %done64, %k;
  st.global.u64 [%w+16], %done64; st.global.u64 [%w+24], %now; bra END;
THREADS:
  sub.u32 %src, %t, 32; mul.wide.u32 %done64, %src, 16; add.u64 %to, %to, %done64;
THREAD:
""" + "  add.u64 %a, %to, %off; st.global.v4.b32 [%a], {%t, %bid, %k, %k}; add.u64 %off, %off, 2048;\n" * 2 + """
  setp.ge.u64 %q, %off, %span; selp.b64 %off, 0, %off, %q;
  add.u32 %k, %k, 1; mov.u64 %now, %clock64; setp.lt.u64 %q, %now, %limit; @%q bra THREAD;
  membar.gl; mov.u64 %now, %clock64; sub.u64 %now, %now, %begin; cvt.u64.u32 %done64, %k;
  setp.ne.u32 %q, %t, 32; @%q bra END;
  st.global.u64 [%w+16], %done64; st.global.u64 [%w+24], %now;
END:"""


def beside(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """For so many cycles one thread of each SM loads lines that L2 has, 4 pieces in flight, and one
    stores such lines: one of the two, and both."""
    sms, run, cycles = device.sms(), 128 * KIB, 4000 if quick else 300000
    source, into = device.allocate(sms * run), device.allocate(sms * run)
    kernel = device.load(ptx.kernel(["out", "from", "into", "bytes", "span", "cycles", "loads", "stores"], "", BESIDE),
                         shared=200 * KIB)
    for size in (4096, 16384, 24576):
        for blocks in (1, 33, 66, sms):
            got = {}
            for loads, stores in ((1, 0), (0, 1), (1, 1), (0, 2), (1, 2)):
                for _ in range(2):
                    kernel(blocks, 160, out, source, into, size, run // size * size, cycles, loads, stores)
                device.synchronize()
                words, pieces_of = device.read(out, 4 * blocks), {0: size, 2: 4096 if stores == 2 else size}
                got[loads, stores] = [round(sum(words[4 * i + at] * each / max(1, words[4 * i + at + 1]) for i in range(blocks))
                                            / blocks, 2) for at, each in pieces_of.items()]
            for stores, who in ((1, "the copy engine"), (2, "4 warps")):
                yield {"name": f"pieces of {size} B, stores of {who}, {blocks} SM: loaded and stored at a time",
                       "value": got[1, stores][0], "unit": "B/clk/SM", "stored": got[1, stores][1], "loads alone": got[1, 0][0],
                       "stores alone": got[0, stores][1]}
