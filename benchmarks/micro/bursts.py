"""Loads and stores that one warp, and several, issue in a row, and the steps of a tree in shared
memory."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
from converted_operands import ZEROS, cycles
from cuda import Device

KINDS = {"st.shared.b32": "st.volatile.shared.b32 [%s+{o}], %x{i};", "ld.shared.b32": "ld.volatile.shared.b32 %x{i}, [%s+{o}];",
         "st.shared.v4": "st.volatile.shared.v4.b32 [%s4+{o4}], {{%x{i}, %x{i}, %x{i}, %x{i}}};",
         "ld.shared.v4": "ld.volatile.shared.v4.b32 {{%x{i}, %y{i}, %z{i}, %w{i}}}, [%s4+{o4}];",
         "st.global.b32": "st.volatile.global.b32 [%g+{o}], %x{i};", "st.global.v4": "st.volatile.global.v4.b32 [%g4+{o4}], {{%x{i}, %x{i}, %x{i}, %x{i}}};",
         "ld.global.b32, L1": "ld.global.ca.b32 %x{i}, [%g+{o}];", "ld.global.v4, L1": "ld.global.ca.v4.b32 {{%x{i}, %y{i}, %z{i}, %w{i}}}, [%g4+{o4}];",
         "ld.global.b32, L2": "ld.global.cg.b32 %x{i}, [%g+{o}];", "ld.global.v4, L2": "ld.global.cg.v4.b32 {{%x{i}, %y{i}, %z{i}, %w{i}}}, [%g4+{o4}];",
         "cp.async.16": "cp.async.cg.shared.global [%s4+{o4}], [%g4+{o4}], 16;", "shfl": "shfl.sync.bfly.b32 %x{i}, %x{i}, 4, 31, -1;"}
COUNTS = (4, 12, 28)


def burst(kind: str, count: int) -> tuple[str, str]:
    setup = f"""  .reg .b32 %x<{count}>, %y<{count}>, %z<{count}>, %w<{count}>, %s, %s4, %r, %acc<8>; .reg .b64 %g, %g4, %i, %step;
  add.u64 %step, %magic, 1; and.b64 %step, %step, 0x7fffffff; mov.b32 %r, 0;
  mov.u32 %s, window; mad.lo.u32 %s4, %thread, 16, %s; mad.lo.u32 %s, %thread, 4, %s;
  mul.wide.u32 %i, %thread, 4; add.u64 %g, %out, 65536; add.u64 %g4, %g, %i; add.u64 %g, %g, %i; mul.wide.u32 %i, %thread, 12; add.u64 %g4, %g4, %i;
"""
    setup = ZEROS + setup + "".join(f"  add.u32 %x{i}, %thread, {i}; mov.b32 %y{i}, 0; mov.b32 %z{i}, 0; mov.b32 %w{i}, 0;\n" for i in range(count))
    lines = ["  " + KINDS[kind].format(i=i, o=2048 * (i % 4), o4=8192 * (i % 4)) for i in range(count)]
    if kind.startswith("cp.async"):
        lines.append("  cp.async.wait_all;")
    lines.insert(0, "  add.u64 %g, %g, %step; add.u64 %g4, %g4, %step;")
    if kind.startswith("ld"):
        lines += [f"  mov.b32 %acc{i}, 0;" for i in range(8)]
        lines += [f"  or.b32 %acc{i % 8}, %acc{i % 8}, %x{i};" for i in range(count)]
        lines += [f"  or.b32 %r, %r, %acc{i};" for i in range(8)]
        lines.append("  setp.eq.u32 %more, %r, 0x7ffffff1; @%more trap;")
    return setup, "\n".join(lines)


def bursts(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Clocks of a turn in which each warp issues `count` of them and, of loads, has them all."""
    for kind in KINDS:
        for count in COUNTS:
            if count > 12 and kind.startswith("ld") and "v4" in kind:
                continue  # the registers would not do
            setup, body = burst(kind, count)
            kernel = device.load(ptx.timed(setup, body, [f"%x{i}" for i in range(count)], block=512), shared=40 * 1024)
            for warps in (1, 2, 4, 8, 16):
                yield {"name": f"{count} {kind}, {warps} warps", "value": round(cycles(device, kernel, out, warps, rounds), 1), "unit": "clk a turn"}


def tree(lines: int, senders: int, warps: int) -> tuple[str, str]:
    setup = f"""  .reg .b32 %x<{lines}>, %y<{lines}>, %s, %other; .reg .pred %low, %high;
  mov.u32 %s, window; and.b32 %other, %warp, {senders - 1 if senders > 1 else 0}; mad.lo.u32 %s, %other, {128 * lines}, %s; mad.lo.u32 %s, %lane, 4, %s;
  setp.lt.u32 %low, %warp, {senders}; setp.ge.u32 %high, %warp, {senders}; setp.lt.and.u32 %high, %warp, {2 * senders}, %high;
"""
    setup += "".join(f"  add.u32 %x{i}, %thread, {i}; mov.b32 %y{i}, 0;\n" for i in range(lines))
    body = "  @!%high bra STORED;\n" + "".join(f"  st.volatile.shared.b32 [%s+{128 * i}], %x{i};\n" for i in range(lines)) + "STORED:\n  bar.sync 0;\n  @!%low bra LOADED;\n"
    body += "".join(f"  ld.volatile.shared.b32 %y{i}, [%s+{128 * i}];\n" for i in range(lines)) + "".join(f"  fma.rn.f32 %x{i}, %x{i}, %y0, %y{i};\n" for i in range(lines))
    return setup, body + "LOADED:\n  bar.sync 0;"


def trees(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Clocks of a step in which half of 2 * `senders` warps store lines and the others add them."""
    for lines in (0, 4, 12, 36):
        for senders in (8, 4, 2, 1):
            setup, body = tree(max(lines, 1), senders, 16) if lines else ("", "  bar.sync 0;\n  bar.sync 0;")
            kernel = device.load(ptx.timed(setup, body, [f"%x{i}" for i in range(lines)], block=512), shared=40 * 1024)
            yield {"name": f"{lines} lines of each of {senders} warps to {senders} others, 16 warps", "value": round(cycles(device, kernel, out, 16, rounds), 1), "unit": "clk a step"}
            if not lines:
                break
