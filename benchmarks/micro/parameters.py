"""Reads of parameters: of lines of 64 bytes that no warp of a launch has read, and of lines that
one has."""
from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device

LINE, SIZE = 64, 2048
PASSES = 3
STORE = "  mov.u64 %end, %clock64; sub.u64 %took, %end, %begin;\n  st.global.v2.u64 [%where], {%took, %end}; add.u64 %where, %where, 16;\n"


def reads(lines: int, step: int, chained: bool) -> str:
    """A warp that reads a word of each line, each time at the address that the word before it says
    and PASSES times, or at fixed addresses and once."""
    first = 2 * LINE
    if chained:
        code = "LOOP:\n  mov.u64 %begin, %clock64;\n"
        code += "".join(f"  ld.param.u32 %p, [%at+{first + step * i}]; cvt.u64.u32 %end, %p; add.u64 %at, %at, %end;\n" for i in range(lines))
        code += f"  add.u64 %begin, %begin, %end;\n{STORE}  sub.u32 %count, %count, 1; setp.ne.u32 %more, %count, 0; @%more bra LOOP;\n"
    else:
        code = "  mov.u64 %begin, %clock64;\n"
        code += "".join(f"  ld.param.u32 %p, [p_big+{first + step * i}]; xor.b32 %x, %x, %p; mul.lo.u32 %x, %x, %odd;\n" for i in range(lines))
        code += f"  and.b32 %p, %x, 0; cvt.u64.u32 %end, %p; add.u64 %begin, %begin, %end;\n{STORE}"
    return ptx.kernel(["out", "odds"], "", f"""{ptx.CLOCK}
  .reg .b32 %p, %x, %odd; .reg .b64 %took, %at;
  cvt.u32.u64 %odd, %odds; add.u32 %x, %thread, %odd; mov.b32 %count, %odd;
  mov.u64 %where, %out; mov.u64 %at, p_big;
{code}  cvt.u32.u64 %p, %at; xor.b32 %x, %x, %p; st.global.u32 [%where], %x;
""", block=128).replace("p_odds)", f"p_odds, .param .align {LINE} .b8 p_big[{SIZE}])")


def parameters(device: Device, out: int) -> Iterator[dict[str, Any]]:
    """Clocks of the first time, and of the last one where there are several; medians of launches
    that each have other parameters."""
    big = (ctypes.c_char * SIZE)()
    for chained in (True, False):
        for step in (4, LINE):
            for lines in (1, 2, 4, 8, 16):
                kernel = device.load(reads(lines, step, chained))
                for warps in (1, 4):
                    times = []
                    for launch in range(6):
                        big[0] = bytes([launch])
                        kernel(1, 32 * warps, out, PASSES, big)
                        device.synchronize()
                        words = device.read(out, 2 * PASSES)
                        times.append((words[0], words[2 * PASSES - 2]))
                    first, last = (sorted(of)[2] for of in zip(*times[1:]))
                    yield {"name": f"{lines} words of parameters {step} bytes apart, {'a chain' if chained else 'apart'}, {warps} warps",
                           "value": first, "unit": "clk the first time"} | ({"again": last} if chained else {})
