"""Tiles of a GEMM that cp.async brings step by step, cold and again from L2, of CTAs that share
rows or have their own."""
from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import ptx
from cold import Before
from cuda import Device

ROWS, PIECE, STEPS, AHEAD, THREADS = 64, 128, 8, 3, 128  # a step: ROWS rows of PIECE bytes of each operand
PITCH = STEPS * PIECE  # bytes from a row to the next, all of which one pass reads
TILE = ROWS * PIECE
PASSES = 2  # the second finds in L2 what the first one brought


def copies(at: str, to: str) -> str:
    """Copies the two operands, by all threads: each copies 16 bytes of every 16th row."""
    lines = []
    for operand in "ab":
        for i in range(ROWS * PIECE // (16 * THREADS)):
            row = i * 16 * THREADS // PIECE
            offset = row * PIECE + (TILE if operand == "b" else 0)
            lines.append(f"  add.u64 %from, %{operand}, {row * PITCH}; add.u64 %from, %from, {at};\n"
                         f"  cp.async.cg.shared.global [{to}+{offset}], [%from], 16;")
        lines.append("  cp.async.commit_group;")
    return "\n".join(lines)


def kernel() -> str:
    """A kernel whose CTA b has rows of tile b % down of A and of tile b / divide % across of B.
    Each CTA stores its clock behind each step."""
    prologue = "\n".join(f"  mov.u64 %at, {step * PIECE};\n  add.u32 %next, %to, {2 * TILE * step};\n" + copies("%at", "%next")
                         for step in range(AHEAD))
    return ptx.kernel(["out", "from_a", "from_b", "down", "divide", "across"], "", f"""{ptx.CLOCK}
  .reg .b64 %a, %b, %at, %from;
  .reg .b32 %block, %tile, %to, %next, %part, %size;
  mov.u64 %begin, %clock64;
  mov.u32 %block, %ctaid.x;
  cvt.u32.u64 %size, %down;
  rem.u32 %tile, %block, %size;
  mad.wide.u32 %a, %tile, {ROWS * PITCH}, %from_a;
  cvt.u32.u64 %size, %divide;
  div.u32 %tile, %block, %size;
  cvt.u32.u64 %size, %across;
  rem.u32 %tile, %tile, %size;
  mad.wide.u32 %b, %tile, {ROWS * PITCH}, %from_b;
  shr.u32 %part, %thread, 3;
  mad.wide.u32 %a, %part, {PITCH}, %a;
  mad.wide.u32 %b, %part, {PITCH}, %b;
  and.b32 %part, %thread, 7;
  mad.wide.u32 %a, %part, 16, %a;
  mad.wide.u32 %b, %part, 16, %b;
  mov.u32 %to, window;
  mad.lo.u32 %to, %thread, 16, %to;
  mul.wide.u32 %where, %block, {8 * (PASSES * STEPS + 2)};
  add.u64 %where, %where, %out;
  setp.eq.u32 %first, %thread, 0;
  @%first st.global.u64 [%where], %begin;
{prologue}
  mov.u64 %begin, %clock64;
  @%first st.global.u64 [%where+8], %begin;
  mov.b32 %count, 0;
STEP:
  cp.async.wait_group {2 * (AHEAD - 1)};
  bar.sync 0;
  mov.u64 %begin, %clock64;
  @%first st.global.u64 [%where+16], %begin;
  add.u64 %where, %where, 8;
  add.u32 %next, %count, {AHEAD};
  and.b32 %part, %next, {STEPS - 1};
  mul.wide.u32 %at, %part, {PIECE};
  and.b32 %part, %next, 3;
  mad.lo.u32 %next, %part, {2 * TILE}, %to;
  bar.sync 0;
{copies("%at", "%next")}
  add.u32 %count, %count, 1;
  setp.lt.u32 %more, %count, {PASSES * STEPS};
  @%more bra STEP;
  cp.async.wait_all;
""", block=THREADS)


GRIDS = {"64 blocks, rows of their own": (64, 64, 1, 64), "1 block": (1, 1, 1, 1),
         "64 blocks, rows shared by 8, as in a product": (64, 8, 8, 8), "64 blocks, rows of A shared by 8": (64, 8, 1, 64),
         "64 blocks, rows shared by all": (64, 1, 1, 1)}


def tiles(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """The value is what the steps of the first pass take when a CTA has asked for the first three,
    the median of CTAs."""
    before, words = Before(device, out, quick), PASSES * STEPS + 2
    code = device.load(kernel(), shared=8 * TILE)
    for name, (blocks, down, divide, across) in GRIDS.items():
        runs = []
        for _ in range(1 if quick else 9):
            before.flush()
            code(blocks, THREADS, out, before.pool, before.pool + (8 << 20), down, divide, across)
            device.synchronize()
            clocks = device.read(out, blocks * words)
            each = [[b - a for a, b in zip(clocks[i:], clocks[i + 1:i + words])] for i in range(0, blocks * words, words)]
            runs.append([statistics.median(block[i] for block in each) for i in range(words - 1)])
        steps = [round(statistics.median(run[i] for run in runs)) for i in range(words - 1)]
        yield {"name": f"cp.async, tiles of {name}", "value": sum(steps[1:STEPS + 1]), "unit": "clk of the first pass",
               "until three are asked for": steps[0], "steps": steps[1:]}
    device.free(before.pool)
