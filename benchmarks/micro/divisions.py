"""Divisions in fp32 that are rounded correctly, by the values of the lanes: the quick way is
straight code, and operands that it cannot handle take a subroutine that ptxas puts behind the
kernel."""
from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device
from instructions import span

COUNT = 16  # divisions of a round
INFINITE, NORMAL = float("inf"), 3.0
LANES = {"quick": lambda lane: (1.5, NORMAL), "one lane over infinity": lambda lane: (-200.0, INFINITE if lane == 5 else NORMAL),
         "half of the lanes over infinity": lambda lane: (-200.0, INFINITE if lane % 2 else NORMAL),
         "all lanes over infinity": lambda lane: (-200.0, INFINITE),
         "half of the lanes have a subnormal quotient": lambda lane: (-2.0, 2.0**127 if lane % 2 else NORMAL),
         "all lanes have a subnormal quotient": lambda lane: (-2.0, 2.0**127),
         **{f"{name}, all lanes": lambda lane, pair=pair: pair for name, pair in {
             "0 and subnormal / 3": (0.0, 3.0), "2^-90 / 3": (2.0**-90, 3.0), "2^-105 / 3": (2.0**-105, 3.0), "2^-120 / 3": (2.0**-120, 3.0),
             "2^90 / 3": (2.0**90, 3.0), "2^120 / 3": (2.0**120, 3.0), "1 / 2^-90": (1.5, 2.0**-90), "1 / 2^-120": (1.5, 2.0**-120),
             "1 / 2^90": (1.5, 2.0**90), "1 / 2^120": (1.5, 2.0**120), "1 / 2^125": (1.5, 2.0**125), "1 / 2^126": (1.5, 2.0**126),
             "2^60 / 2^125": (2.0**60, 2.0**125), "2^60 / 2^127": (2.0**60, 2.0**127)}.items()},
         "a third over infinity, a third subnormal": lambda lane: (-2.0, (INFINITE, 2.0**127, NORMAL)[lane % 3])}
KINDS = {"div.rn.f32": "div.rn.f32 {q}, {n}, {d};", "div.full.f32": "div.full.f32 {q}, {n}, {d};",
         "div.approx.f32": "div.approx.f32 {q}, {n}, {d};"}


def program(line: str) -> str:
    """Each round divides numerators whose last bit changes, so that no division is the same as one
    before."""
    setup = f"""  .reg .f32 %n<{COUNT}>, %d, %first_n; .reg .f32 %q<{COUNT}>; .reg .b32 %bits; .reg .b64 %o;
  mul.wide.u32 %o, %lane, 8; add.u64 %o, %o, %values; ld.global.v2.f32 {{%first_n, %d}}, [%o];
"""
    setup += "".join(f"  mov.b32 %bits, %first_n; add.u32 %bits, %bits, {2 * i}; mov.b32 %n{i}, %bits;\n" for i in range(COUNT))
    body = ""
    for i in range(COUNT):
        body += f"  mov.b32 %bits, %n{i}; xor.b32 %bits, %bits, %magic32; mov.b32 %n{i}, %bits;\n"
        body += "  " + line.format(q=f"%q{i}", n=f"%n{i}", d="%d") + f"\n  mov.b32 %bits, %q{i}; xor.b32 %sink, %sink, %bits;\n"
    return ptx.timed(setup, body, [], ["values"])


def divisions(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    for kind, line in KINDS.items():
        kernel = device.load(program(line))
        for name, values in LANES.items():
            if kind != "div.rn.f32" and name != "quick":
                continue
            table = device.upload(b"".join(struct.pack("<2f", *values(lane)) for lane in range(32)))
            for warps in (1, 2, 4, 8):
                spans = []
                for repeats in (rounds, 3 * rounds):
                    kernel(1, 128 * warps, out, repeats, 1, table)
                    device.synchronize()
                    spans.append(span(device.read(out, 8 * warps), 4 * warps))
                yield {"name": f"{kind}, {name}, {warps} warps a scheduler", "unit": "clk of a warp's division",
                       "value": round((spans[1] - spans[0]) / (2 * rounds * COUNT), 2),
                       "of a scheduler": round((spans[1] - spans[0]) / (2 * rounds * COUNT * warps), 2)}
