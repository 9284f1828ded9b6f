"""Kernels without arithmetic whose CTAs end after one pass, with cold L2: how the time grows with
the bytes, by threads of a CTA, bytes of a thread and CTAs on an SM."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device

MIB = 1 << 20
SETS = 160 * MIB  # of buffers that are used in turn: more than twice what L2 holds
KINDS = {"no memory": "", "read": "r", "read, write a quarter": "rw"}


def once(kind: str, pieces: int) -> str:
    """A thread reads 32 contiguous bytes `pieces` times, a CTA apart, and stores 8 for each."""
    body = """  .reg .b32 %t, %b, %n, %sink; .reg .b64 %i, %at, %to, %step, %o; .reg .pred %q;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x;
"""
    body += f"  mul.lo.u32 %b, %b, {pieces}; mad.lo.u32 %b, %b, %n, %t;\n"
    body += "  mul.wide.u32 %i, %b, 32; add.u64 %at, %from, %i; mul.wide.u32 %step, %n, 32;\n"
    body += "  mul.wide.u32 %o, %b, 8; add.u64 %to, %into, %o; mov.b32 %sink, 0;\n"
    body += f"  .reg .b32 %x<{8 * pieces}>;\n"
    firsts = range(0, 8 * pieces, 8) if "r" in kind else []
    for x in firsts:
        for half in (0, 4):
            words = ", ".join(f"%x{x + half + i}" for i in range(4))
            body += f"  ld.global.v4.b32 {{{words}}}, [%at+{4 * half}];\n"
        body += "  add.u64 %at, %at, %step;\n"
    for x in firsts:
        body += "".join(f"  xor.b32 %x{x + i % 2}, %x{x + i % 2}, %x{x + i};\n" for i in range(2, 8))
        if "w" in kind:
            body += f"  st.global.v2.b32 [%to], {{%x{x}, %x{x + 1}}}; shr.u64 %o, %step, 2; add.u64 %to, %to, %o;\n"
        else:
            body += f"  xor.b32 %sink, %sink, %x{x}; xor.b32 %sink, %sink, %x{x + 1};\n"
    body += "  setp.eq.u32 %q, %sink, 0x7fffffff; @%q st.global.b32 [%into], %sink;"
    return ptx.kernel(["from", "into"], "", body)


def microseconds(device: Device, kernel: Any, grid: int, threads: int, buffers: list[tuple[int, ...]], quick: bool) -> float:
    """Returns the time of one of the launches that a graph holds, each with another buffer: the
    median of some replays."""
    nodes = 2 if quick else max(20, len(buffers))

    def issue(stream: Any) -> None:
        for node in range(nodes):
            kernel(grid, threads, *buffers[node % len(buffers)], stream=stream)

    replay = device.graph(issue)
    replay()
    device.synchronize()
    times = sorted(device.seconds(replay) for _ in range(1 if quick else 15))
    return times[len(times) // 2] / nodes * 1e6


def ladder(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    sizes = [1, 2] if quick else [1, 2, 4, 8, 16, 32, 128]
    pool = device.allocate((8 if quick else 640) * MIB)
    shapes = [(128, 1, 0), (128, 2, 0), (128, 4, 0), (256, 1, 0), (256, 4, 0), (512, 1, 0), (512, 2, 0), (512, 4, 0),
              (128, 1, 28), (128, 4, 28), (128, 1, 56), (128, 4, 56)]
    for threads, pieces, shared in shapes[:3] if quick else shapes:
        for name, kind in KINDS.items():
            kernel = device.load(once(kind, pieces), shared << 10)
            for size in sizes:
                step = size * MIB * 5 // 4
                count = max(1, min((8 if quick else 640) * MIB // step, max(2, SETS // step + 1)))
                buffers = [(pool + i * step, pool + i * step + size * MIB) for i in range(count)]
                grid = size * MIB // (32 * pieces * threads)
                taken = microseconds(device, kernel, grid, threads, buffers, quick)
                yield {"name": f"{size} MiB, {name}, {threads} threads, {pieces} pieces" +
                               (f", {shared} KiB of shared memory" if shared else ""),
                       "value": round(taken, 3), "unit": "us"}


def replacement(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """CTAs that wait a while, one or some at a time on an SM: what lies between one and the
    next."""
    sms = device.sms()
    body = """  .reg .b64 %begin, %now; .reg .pred %q;
  mov.u64 %begin, %clock64;
WAIT: mov.u64 %now, %clock64; sub.u64 %now, %now, %begin; setp.lt.u64 %q, %now, %cycles; @%q bra WAIT;"""
    for threads, shared in ((128, 200), (512, 200), (1024, 200), (128, 100), (128, 50), (128, 25), (256, 50), (512, 50)):
        kernel = device.load(ptx.kernel(["cycles"], "", body), shared << 10)
        resident = min(228 // (shared + 1), 2048 // threads)
        blocks = 4 if quick else 64
        for cycles in (1000, 3000):
            grid = sms * resident * blocks
            kernel(grid, threads, cycles)
            device.synchronize()
            twice = min(device.seconds(lambda: kernel(2 * grid, threads, cycles)) for _ in range(1 if quick else 3))
            one = min(device.seconds(lambda: kernel(grid, threads, cycles)) for _ in range(1 if quick else 3))
            yield {"name": f"blocks of {threads} threads that wait {cycles} clk, {resident} at a time",
                   "value": round((twice - one) / blocks * 1e9, 1), "unit": "ns each"}


def starts(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Measures when the CTAs of a grid that fits begin, by the global timer, which has its own
    resolution."""
    sms = device.sms()
    body = """  .reg .b64 %begin, %now, %at; .reg .b32 %b, %t; .reg .pred %q;
  mov.u64 %begin, %globaltimer; mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x;
  setp.eq.u32 %q, %t, 0; mul.wide.u32 %at, %b, 8; add.u64 %at, %at, %out; @%q st.global.u64 [%at], %begin;
WAIT: mov.u64 %now, %globaltimer; sub.u64 %now, %now, %begin; setp.lt.u64 %q, %now, 20000; @%q bra WAIT;"""
    kernel = device.load(ptx.kernel(["out"], "", body))
    for threads, resident in ((128, 1), (128, 8), (128, 16), (256, 8), (512, 4), (1024, 2)):
        grid = sms * resident
        medians = []
        for _ in range(2 if quick else 20):
            kernel(grid, threads, out)
            device.synchronize()
            times = sorted(device.read(out, grid))
            medians.append([times[max(0, grid * part // 8 - 1)] - times[0] for part in range(1, 9)])
        middle = [sorted(column)[len(column) // 2] for column in zip(*medians)]
        yield {"name": f"starts of {grid} blocks of {threads} threads: the last", "value": middle[-1], "unit": "ns after the first",
               "every eighth": middle}


def atomics(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Launches whose CTAs each do some atomic operations on one word, or on a word of a line of
    their own."""
    sms = device.sms()
    cases = {"maximum without its result": "red.global.max.u32 [%at], %t;", "maximum": "atom.global.max.u32 %r, [%at], %t;",
             "maximum, then a counter with acq_rel": "atom.global.max.u32 %r, [%at], %t; "
                                                     "atom.acq_rel.gpu.global.inc.u32 %r, [%at+4], 0x7fffffff;"}
    for name, operations in cases.items():
        for where, shift in (("one word", 0), ("words of their own", 7)):
            body = f"""  .reg .b32 %t, %b, %r; .reg .b64 %at, %o; .reg .pred %q;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; shl.b32 %b, %b, {shift}; {'mov.u32 %b, 0;' if not shift else ''}
  cvt.u64.u32 %o, %b; add.u64 %at, %out, %o; setp.ne.u32 %q, %t, 0; @%q bra END; add.u32 %t, %b, 1; mov.u32 %r, 0;
  {operations}
  setp.eq.u32 %q, %r, 0x7ffffff1; @%q st.global.u32 [%at+8], %r;
END:"""
            kernel = device.load(ptx.kernel(["out"], "", body))
            for blocks in (1, 4, 8, 16):
                taken = microseconds(device, kernel, sms * blocks, 64, [(out,)], quick)
                yield {"name": f"{sms * blocks} blocks, {name}, {where}", "value": round(taken, 3), "unit": "us"}
