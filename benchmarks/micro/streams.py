"""Kernels that read 128 MiB, compute and write a quarter, as quantizers do: by the instructions of
32 bytes, their pipes, the bytes that a thread has asked for when it begins to compute, and the
warps of an SM."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device
from ladder import MIB, microseconds

SIZE = 128 * MIB
# Instructions of a quantizer on each pipe, in an order that gives each its share: fp32, and the
# integer pipe. ptxas leaves out a tenth of the last kind where there are loads.
KINDS = {"fp32": ("fma.rn.f32 {x}, {x}, 0f3F800001, {y};",),
         "two fp32, one integer": ("add.rn.f32 {x}, {x}, {y};", "xor.b32 {x}, {x}, 0x00154321;", "mul.rn.f32 {x}, {x}, 0f3F800001;"),
         "fp32 and integer in turn": ("add.rn.f32 {x}, {x}, {y};", "xor.b32 {x}, {x}, 0x00154321;")}


def work(kind: str, count: int, first: int) -> str:
    """Instructions in eight chains."""
    lines = KINDS[kind]
    return "".join("  " + lines[i % len(lines)].format(x=f"%x{first + i % 8}", y=f"%x{first + (i + 1) % 8}") + "\n" for i in range(count))


def once(kind: str, count: int, pieces: int, early: bool, loads: bool = True) -> str:
    """A thread reads 32 contiguous bytes `pieces` times, a CTA apart, computes with each and stores
    8. `early`: it reads all of them before it computes; otherwise one after the other."""
    body = f"""  .reg .b32 %t, %b, %n; .reg .b64 %i, %at, %to, %step, %o; .reg .b32 %x<{8 * pieces}>; .reg .pred %q;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x;
  mul.lo.u32 %b, %b, {pieces}; mad.lo.u32 %b, %b, %n, %t;
  mul.wide.u32 %i, %b, 32; add.u64 %at, %from, %i; mul.wide.u32 %step, %n, 32; mul.wide.u32 %o, %b, 8; add.u64 %to, %into, %o;
"""

    def load(x: int) -> str:
        if not loads:
            return "".join(f"  add.u32 %x{x + i}, %t, {1065353216 + 4096 * x + i};\n" for i in range(8))
        return "".join(f"  ld.global.v4.b32 {{{', '.join(f'%x{x + half + i}' for i in range(4))}}}, [%at+{4 * half}];\n"
                       for half in (0, 4)) + "  add.u64 %at, %at, %step;\n"

    firsts = range(0, 8 * pieces, 8)
    body += "".join(load(x) for x in firsts) if early else ""
    for x in firsts:
        body += ("" if early else load(x)) + work(kind, count, x)
        body += "".join(f"  xor.b32 %x{x + i % 2}, %x{x + i % 2}, %x{x + i};\n" for i in range(2, 8))
        if loads:
            body += f"  st.global.v2.b32 [%to], {{%x{x}, %x{x + 1}}}; shr.u64 %o, %step, 2; add.u64 %to, %to, %o;\n"
        else:
            body += f"  setp.eq.u32 %q, %x{x}, 0x7ffffff1; @%q st.global.b32 [%into], %x{x + 1};\n"
    return ptx.kernel(["from", "into"], "", body)


def streams(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    size = 4 * MIB if quick else SIZE
    pool = device.allocate(size * 5 // 4)
    shapes = [(128, 1, True, 0), (256, 1, True, 0), (128, 2, True, 0), (128, 2, False, 0), (256, 2, False, 0)]
    shapes += [(128, 1, True, shared) for shared in (18, 27)]  # CTAs of an SM: 12 and 8
    for kind in KINDS:
        for count in (64,) if quick else (0, 128, 192, 224, 256):
            if count == 0 and kind != "fp32":
                continue
            for threads, pieces, early, shared in shapes:
                kernel = device.load(once(kind, count, pieces, early), shared << 10)
                grid = size // (32 * pieces * threads)
                taken = microseconds(device, kernel, grid, threads, [(pool, pool + size)], quick)
                resident = kernel.most_resident(threads) * threads // 32
                yield {"name": f"{count} of {kind}, {threads} threads, {pieces} pieces, {'all' if early else 'one'} in flight, {resident} warps",
                       "value": round(taken, 2), "unit": "us"}
    device.free(pool)


def alone(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Runs the code without memory: cycles of a scheduler for each instruction of CTAs that execute
    the code once and end."""
    sms, gigahertz = device.sms(), 1.98
    for kind in KINDS:
        for count in (64,) if quick else (192, 256):
            for threads, pieces in ((128, 1), (256, 1), (128, 2)):
                kernel = device.load(once(kind, count, pieces, True, False))
                grid = (8 if quick else 4096 // (threads // 128)) * sms // 4
                kernel(grid, threads, out, out)
                device.synchronize()
                times = [min(device.seconds(lambda: kernel(turns * grid, threads, out, out)) for _ in range(1 if quick else 3)) for turns in (1, 2)]
                issued = (count + 6) * pieces * threads / 32 / 4 * grid / sms
                yield {"name": f"{count} of {kind} without memory, {threads} threads, {pieces} pieces",
                       "value": round((times[1] - times[0]) * gigahertz * 1e9 / issued, 3), "unit": "clk each"}
