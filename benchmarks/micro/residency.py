"""The number of CTAs that an SM runs at a time, by their warps and by the registers of a thread.

Registers lie with the four schedulers, and a warp has its own with one of them. So a CTA whose
warps are no multiple of four can find registers of the SM free and none with a scheduler that has
one warp more. Each CTA notes where and when it runs; the result is the number of CTAs that ran on
one SM at the same time.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device, Kernel

SPIN = 100_000  # ns that a CTA stays
WARPS = (4, 5, 6, 8, 9, 10, 12, 13)
REGISTERS = (40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 152, 168)


def spinning(live: int, threads: int) -> str:
    """Threads that keep `live` words of memory in registers while they wait. Each warp notes its
    SM, its number there, and when it begins and ends."""
    words = "\n".join(f"  ld.volatile.global.u32 %live{i}, [%out+{4 * i}];" for i in range(live))
    sums = "\n".join(f"  xor.b32 %sum, %sum, %live{i};" for i in range(live))
    return ptx.kernel(["out", "ns"], f"""  .reg .b32 %live<{live}>, %sum, %lane, %warp, %sm, %number, %block;
  .reg .b64 %begin, %now, %end, %to; .reg .pred %q;
""", f"""{words}
  mov.u32 %sm, %smid; mov.u32 %number, %warpid;
  mov.u64 %begin, %globaltimer; add.u64 %end, %begin, %ns;
SPIN:
  mov.u64 %now, %globaltimer; setp.lt.u64 %q, %now, %end; @%q bra SPIN;
  mov.b32 %sum, 0;
{sums}
  mov.u32 %lane, %tid.x; shr.u32 %warp, %lane, 5; and.b32 %lane, %lane, 31; mov.u32 %block, %ctaid.x;
  mad.lo.u32 %warp, %block, {threads // 32}, %warp; mul.wide.u32 %to, %warp, 32; add.u64 %to, %to, %out; add.u64 %to, %to, 4096;
  setp.ne.u32 %q, %lane, 0; @%q bra END;
  st.global.v2.u32 [%to], {{%sm, %number}}; st.global.u64 [%to+8], %begin; st.global.u64 [%to+16], %now; st.global.u32 [%to+24], %sum;
END:""", block=threads)


def most_together(runs: list[tuple[int, int]]) -> int:
    """Intervals that have a moment in common."""
    return max(sum(begin <= moment < end for begin, end in runs) for moment, _ in runs)


def count(device: Device, code: Kernel, warps: int, nanoseconds: int) -> dict[str, Any]:
    blocks = 8 * device.sms()
    notes = device.allocate(4096 + 32 * warps * blocks)
    code(blocks, 32 * warps, notes, nanoseconds)
    device.synchronize()
    words = device.read(notes + 4096, 4 * warps * blocks)
    device.free(notes)
    runs: dict[int, list[tuple[int, int]]] = defaultdict(list)
    last = set()
    for block in range(blocks):
        place, begin, end, _ = words[4 * warps * block:4 * warps * block + 4]
        runs[place & 0xFFFFFFFF].append((begin, end))
        last.add((words[4 * (warps * block + warps - 1)] >> 32) % 4)
    return {"value": max(map(most_together, runs.values())), "unit": "blocks", "schedulers of the last warp": sorted(last)}


def residency(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    for warps in WARPS[:2] if quick else WARPS:
        for registers in REGISTERS[:1] if quick else REGISTERS:
            if registers * 32 * warps > 65536:
                continue
            code = device.load(spinning(registers - 15, 32 * warps))
            found, may = code.registers(), code.most_resident(32 * warps)
            yield {"name": f"blocks of {warps} warps with {found} registers", **count(device, code, warps, 100 if quick else SPIN),
                   "by the driver": may}
