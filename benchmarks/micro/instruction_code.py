"""The cost of bringing instructions to the schedulers: code that runs straight on, by its
length."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device
from ladder import MIB, SETS, microseconds

REGISTERS = "  .reg .f32 %f<8>; .reg .pred %q, %first;\n"
BEGIN = "".join(f"  mov.f32 %f{i}, 0f3F800000;\n" for i in range(8))
KEEP = "  setp.eq.f32 %q, %f0, 0f40490FDB; @%q st.global.f32 [%out], %f1;\n"
LENGTHS = (128, 256, 512, 768, 1024, 1280, 1536, 2048, 3072, 4096, 8192)


def straight(count: int, which: int = 0) -> str:
    """One machine instruction each, of which a scheduler can issue one a clock from one warp."""
    return "".join(f"  fma.rn.f32 %f{i % 8}, %f{i % 8}, %f{i % 8}, %f{(i + 1 + which) % 8};\n" for i in range(count))


def passes(count: int) -> str:
    """Code that all warps of a CTA run three times together; thread 0 stores the clocks of each
    time."""
    return ptx.kernel(["out"], "", f"""{REGISTERS}  .reg .b64 %t0, %t1, %at; .reg .b32 %pass, %t, %b;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; setp.eq.u32 %first, %t, 0;
{BEGIN}  mul.wide.u32 %at, %b, 64; add.u64 %at, %at, %out; mov.u32 %pass, 0;
AGAIN: .pragma "nounroll";
  bar.sync 0; mov.u64 %t0, %clock64;
{straight(count)}  mov.u64 %t1, %clock64; sub.u64 %t1, %t1, %t0; @%first st.global.u64 [%at], %t1; add.u64 %at, %at, 8;
  add.u32 %pass, %pass, 1; setp.lt.u32 %q, %pass, 3; @%q bra AGAIN;
{KEEP}""")


def fetches(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """The first pass of a launch and later ones: behind a launch of the same code, behind one of
    much other code, which replaces it in the caches of an SM, and behind reads of more than L2
    holds."""
    sms = device.sms()
    other = device.load(passes(1024 if quick else 20000))
    memory = device.allocate((4 if quick else 160) * MIB)
    befores = {"behind itself": lambda: None, "behind other code": lambda: other(sms, 128, out),
               "behind 160 MiB": lambda: device.free(device.allocate((4 if quick else 160) * MIB))}
    for count in (128, 512) if quick else LENGTHS:
        kernel = device.load(passes(count))
        for threads in (32, 128, 512):
            for name, before in list(befores.items())[:1 if threads != 128 else 3]:
                kernel(sms, threads, out)
                kernel(sms, threads, out)
                before()
                device.synchronize()
                kernel(sms, threads, out)
                device.synchronize()
                words = device.read(out, 8 * sms)
                means = [round(sum(words[8 * sm + i] for sm in range(sms)) / sms / count, 3) for i in range(3)]
                yield {"name": f"{count} instructions in a row, {threads} threads, {name}: first pass", "value": means[0],
                       "unit": "clk each", "later passes": means[1:]}
    device.free(memory)


def groups_of_warps(count: int, groups: int, warps: int) -> str:
    """One or two groups of warps with code of their own, which each runs three times; the first
    thread of a group stores the clocks of each time."""
    body = f"""{REGISTERS}  .reg .b64 %t0, %t1, %at; .reg .b32 %pass, %t, %b, %g, %w;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; div.u32 %g, %t, {32 * warps}; rem.u32 %w, %t, {32 * warps};
  setp.eq.u32 %first, %w, 0; mad.lo.u32 %b, %b, {groups}, %g; mul.wide.u32 %at, %b, 32; add.u64 %at, %at, %out;
{BEGIN}  mov.u32 %pass, 0; bar.sync 0;
"""
    body += "".join(f"  setp.eq.u32 %q, %g, {g}; @%q bra G{g};\n" for g in range(groups - 1)) + f"  bra G{groups - 1};\n"
    for g in range(groups):
        body += f"""G{g}: .pragma "nounroll";
  mov.u64 %t0, %clock64;
{straight(count, g)}  mov.u64 %t1, %clock64; sub.u64 %t1, %t1, %t0; @%first st.global.u64 [%at], %t1; add.u64 %at, %at, 8;
  add.u32 %pass, %pass, 1; bar.sync 0; setp.lt.u32 %q, %pass, 3; @%q bra G{g};
  bra END;
"""
    return ptx.kernel(["out"], "", body + "END:\n" + KEEP)


def jumps(blocks: int, apart: int) -> str:
    """One warp runs blocks of 15 instructions and a taken branch, each `apart` behind the one
    before, and all of them three times."""
    body = f"""{REGISTERS}  .reg .b64 %t0, %t1, %at; .reg .b32 %pass, %b; .reg .pred %p;
  mov.u32 %b, %ctaid.x; setp.ne.u32 %p, %b, 0x7fffffff; mul.wide.u32 %at, %b, 32; add.u64 %at, %at, %out;
{BEGIN}  mov.u32 %pass, 0;
AGAIN: .pragma "nounroll";
  mov.u64 %t0, %clock64; @%p bra B0;
"""
    for block in range(blocks):
        following = (block + apart) % blocks
        body += f"B{block}:\n{straight(15, block)}  @%p bra {f'B{following}' if following else 'DONE'};\n"
    return ptx.kernel(["out"], "", body + f"""DONE:
  mov.u64 %t1, %clock64; sub.u64 %t1, %t1, %t0; st.global.u64 [%at], %t1; add.u64 %at, %at, 8;
  add.u32 %pass, %pass, 1; setp.lt.u32 %q, %pass, 3; @%q bra AGAIN;
{KEEP}""")


def fetches_apart(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Warps that run code of their own, of which the first groups are on different schedulers, and
    a warp that jumps. Clocks of an instruction of the first launch behind the same one, and of its
    later passes."""
    sms = device.sms()
    for groups, warps in ((1, 1), (1, 4), (2, 1), (2, 4)):
        for count in (64,) if quick else (512, 1024, 1536, 2048, 3072):
            kernel = device.load(groups_of_warps(count, groups, warps))
            for _ in range(3):
                kernel(sms, 32 * groups * warps, out)
            device.synchronize()
            words = device.read(out, 4 * sms * groups)
            means = [[round(sum(words[4 * (sm * groups + g) + i] for sm in range(sms)) / sms / count, 3) for i in range(3)]
                     for g in range(groups)]
            yield {"name": f"{groups} groups of {warps} warps, {count} instructions each", "value": max(first for first, *_ in means),
                   "unit": "clk each, the slowest group", "passes of each group": means}
    for blocks in (8,) if quick else (32, 64, 256, 512):
        for apart in (1, 5, 37):
            kernel = device.load(jumps(blocks, apart))
            for _ in range(3):
                kernel(sms, 32, out)
            device.synchronize()
            words = device.read(out, 4 * sms)
            means = [round(sum(words[4 * sm + i] for sm in range(sms)) / sms / blocks, 2) for i in range(3)]
            yield {"name": f"{blocks} blocks of 16 instructions, each {apart} behind the one before", "value": means[0],
                   "unit": "clk of a block", "later passes": means[1:]}


def once(count: int, loads: bool) -> str:
    """A thread may read 32 contiguous bytes, executes the code and may store 8 bytes."""
    body = f"""{REGISTERS}{BEGIN}  .reg .b32 %t, %b, %n; .reg .b64 %i, %at, %to;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %b, %b, %n, %t;
"""
    if loads:
        body += "  mul.wide.u32 %i, %b, 32; add.u64 %at, %from, %i; mul.wide.u32 %i, %b, 8; add.u64 %to, %out, %i;\n"
        body += "".join(f"  ld.global.v4.f32 {{{', '.join(f'%f{4 * half + i}' for i in range(4))}}}, [%at+{16 * half}];\n"
                        for half in range(2))
    body += straight(count)
    if loads:
        body += "  st.global.v2.f32 [%to], {%f0, %f1};\n"
    return ptx.kernel(["from", "out"], "", body + KEEP)


def flow(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """CTAs that execute the code once and end, so that warps are at all places of it: clocks of a
    scheduler for each instruction, from launches of eight and of sixteen CTAs for each that
    fits."""
    sms, gigahertz = device.sms(), 1.98
    for count in (128, 512) if quick else LENGTHS:
        kernels = {}
        for threads, resident in ((128, 1), (128, 2), (128, 4), (128, 8), (128, 16), (256, 8), (512, 4)):
            shared = max(0, 220 // resident - 2) << 10
            if shared not in kernels:
                kernels[shared] = device.load(once(count, False), shared)
            kernel = kernels[shared]
            grid = sms * resident * (1 if quick else 8)
            kernel(grid, threads, out, out)
            device.synchronize()
            times = [min(device.seconds(lambda: kernel(turns * grid, threads, out, out)) for _ in range(1 if quick else 3))
                     for turns in (1, 2)]
            issued = count * threads / 32 / 4 * grid / sms
            yield {"name": f"blocks of {threads} threads once through {count} instructions, {resident} at a time",
                   "value": round((times[1] - times[0]) * gigahertz * 1e9 / issued, 3), "unit": "clk each"}


def short(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Short launches with cold L2 that read, execute the code and write a quarter."""
    sizes = [1, 2] if quick else [1, 4, 8]
    room = (8 if quick else 320) * MIB
    pool = device.allocate(room)
    for count in (16, 256) if quick else (16, 256, 512, 1024, 1536, 2048):
        kernel = device.load(once(count, True))
        for threads in (128, 256):
            for size in sizes:
                step = size * MIB * 5 // 4
                number = max(1, min(room // step, max(2, SETS // step + 1)))
                buffers = [(pool + i * step, pool + i * step + size * MIB) for i in range(number)]
                taken = microseconds(device, kernel, size * MIB // (32 * threads), threads, buffers, quick)
                yield {"name": f"{size} MiB, {count} instructions, {threads} threads", "value": round(taken, 3), "unit": "us"}
    device.free(pool)
