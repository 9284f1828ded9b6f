"""Boxes of TMA loads that reach beyond the tensor, and what could be loaded instead.

All CTAs load the same rows of a bf16 matrix, 64 columns at a time and four boxes ahead, as CTAs
of a GEMM do that share its activations. Every number is clocks from box to box.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import ptx
from cuda import Device, Kernel

COLUMNS, WRAP = 4096, 2048  # of a row, and after how many a CTA begins again
STAGES, STAGE_BYTES = 4, 256 * 128

REGISTERS = """  .reg .b32 %t, %buf, %bar, %here, %dst, %size, %cnt, %it, %k, %slot, %ph, %x, %y, %turn, %block;
  .reg .b64 %begin, %end, %w; .reg .pred %q, %done;
"""


def box_ring(stages: int = STAGES) -> str:
    """One thread keeps `stages` boxes of `bytes` in flight, from row `row` on. CTA b begins `apart`
    * b columns and `down` * (b modulo 16) rows behind the first CTA. Stores the clock's two
    readings."""
    issue = f"""  mbarrier.arrive.expect_tx.shared.b64 _, [%here], %size;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%dst], [%map, {{%x, %y}}], [%here];
  add.u32 %x, %x, 64; and.b32 %x, %x, {WRAP - 1}; add.u32 %it, %it, 1;
"""
    place = f"  mad.lo.u32 %here, %slot, 8, %bar; mad.lo.u32 %dst, %slot, {STAGE_BYTES}, %buf;\n"
    code = ptx.kernel(["out", "map", "bytes", "row", "apart", "down", "count"], "", REGISTERS + f"""
  mov.u32 %t, %tid.x; setp.ne.u32 %q, %t, 0; @%q bra END;
  mov.u32 %buf, window; add.u32 %bar, %buf, {stages * STAGE_BYTES};
  cvt.u32.u64 %size, %bytes; cvt.u32.u64 %y, %row; cvt.u32.u64 %turn, %apart; cvt.u32.u64 %cnt, %count;
  mov.u32 %it, 0;
INIT:
  mad.lo.u32 %here, %it, 8, %bar; mbarrier.init.shared.b64 [%here], 1;
  add.u32 %it, %it, 1; setp.lt.u32 %q, %it, {stages}; @%q bra INIT;
  fence.mbarrier_init.release.cluster; fence.proxy.async;
  mov.u32 %block, %ctaid.x; mul.lo.u32 %x, %block, %turn; and.b32 %x, %x, {WRAP - 1};
  cvt.u32.u64 %turn, %down; and.b32 %it, %block, 15; mad.lo.u32 %y, %it, %turn, %y;
  mov.u32 %it, 0; mov.u32 %slot, 0; mov.u32 %ph, 0; mov.u32 %k, 0;
  mov.u64 %begin, %clock64;
FILL:
  mov.u32 %slot, %it;
{place}{issue}
  setp.lt.u32 %q, %it, {stages}; @%q bra FILL;
  mov.u32 %slot, 0;
LOOP:
{place}
WAIT: mbarrier.try_wait.parity.shared.b64 %done, [%here], %ph; @!%done bra WAIT;
  setp.ge.u32 %q, %it, %cnt; @%q bra SKIP;
{issue}
SKIP:
  add.u32 %slot, %slot, 1; setp.eq.u32 %q, %slot, {stages}; selp.b32 %slot, 0, %slot, %q;
  @%q xor.b32 %ph, %ph, 1;
  add.u32 %k, %k, 1; setp.lt.u32 %q, %k, %cnt; @%q bra LOOP;
  mov.u64 %end, %clock64;
  mul.wide.u32 %w, %block, 16; add.u64 %w, %w, %out; st.global.v2.u64 [%w], {{%begin, %end}};
END:""")
    code = code.replace(".param .u64 p_map", ".param .align 64 .b8 p_map[128]")
    return code.replace("ld.param.u64 %map, [p_map];", "mov.b64 %map, p_map; cvta.param.u64 %map, %map;")


class Box(NamedTuple):
    """`height` rows from row `first` on, of a tensor of `rows`."""
    height: int
    rows: int
    first: int = 0
    columns: int = COLUMNS  # that exist
    promotion: int = 2
    fill: int = 0
    apart: int = 0
    down: int = 0
    pitch: int = 2 * COLUMNS  # bytes from row to row

    def name(self) -> str:
        text = f"box of {self.height} rows from {self.first} on, {self.rows} exist"
        for what, value, usual in (("columns", self.columns, COLUMNS), ("promotion", self.promotion, 2),
                                   ("fill", self.fill, 0), ("columns from block to block", self.apart, 0), ("rows from block to block", self.down, 0),
                                   ("pitch", self.pitch, 2 * COLUMNS)):
            if value != usual:
                text += f", {what} {value}"
        return text


def cases() -> Iterator[Box]:
    for rows in (1, 2, 4, 8, 15, 16, 17, 24, 32, 48, 63, 64, 65, 72, 96, 112, 127, 128):
        yield Box(rows, rows)  # no more than exist
    for height, some in ((16, (1, 4, 8, 12, 15)), (64, (1, 8, 17, 32, 48, 56, 60, 62, 63)),
                         (128, (1, 8, 17, 32, 64, 65, 96, 112, 120, 124, 126, 127))):
        for rows in some:
            yield Box(height, rows)
    for height, rows in ((8, 1), (24, 17), (72, 65), (128, 121)):
        yield Box(height, rows)  # up to whole eights
    for box in (Box(1, 129, 128), Box(8, 136, 128), Box(128, 129, 128), Box(128, 129, 1), Box(128, 129, 0),
                Box(128, 128, 128), Box(128, 128, 256), Box(128, 128, -127), Box(128, 128, -64), Box(128, 192, 64)):
        yield box  # behind other rows, outside, and before the first
    for columns in (32, 64 * 63 + 32):
        yield Box(128, 128, columns=columns)
        yield Box(128, 64, columns=columns)
    for promotion in (0, 1, 3):
        yield Box(128, 17, promotion=promotion)
    yield Box(128, 17, fill=1)
    for apart in (64, 192, 1024):
        for box in (Box(1, 1), Box(64, 64), Box(128, 1), Box(128, 64), Box(128, 128)):
            yield box._replace(apart=apart)
    for apart, down, pitch in itertools.product((0, 64), (0, 1, 4), (2 * COLUMNS, 2 * COLUMNS + 128, 11520)):
        yield Box(128, 64, apart=apart, down=down, pitch=pitch)
    for lines in (*range(64, 97), 104, 112, 120, 128):
        yield Box(128, 64, pitch=128 * lines)
    for lines in (64, 65, 72, 80, 90, 96):
        for rows, first in ((1, 0), (17, 0), (64, 64), (96, 0), (112, 0), (127, 0), (128, 0), (128, 256)):
            yield Box(128, rows, first, pitch=128 * lines)
    for pitch, height, rows in itertools.product((4096, 5120, 5760, 6144, 7168, 14336), (64, 128, 256), (16, 48, 64)):
        if rows < height:
            yield Box(height, rows, columns=pitch // 2, pitch=pitch)
    for height in (64, 128, 256):
        yield Box(height, 64, columns=2880, pitch=5760, down=2)
    for pitch in (8192 + 16, 8192 + 32, 8192 + 64, 11520 + 64):
        yield Box(128, 64, pitch=pitch)


def measure(device: Device, kernel: Kernel, out: int, memory: int, box: Box, blocks: int, count: int) -> float:
    sizes = (box.columns, box.rows)
    tensor_map = device.encode(9, memory, sizes, (box.pitch,), (64, box.height), 3, box.promotion, box.fill)
    for _ in range(2):  # the first brings it into L2
        kernel(blocks, 32, out, tensor_map, 128 * box.height, box.first & 0xFFFFFFFF, box.apart, box.down, count)
    device.synchronize()
    words = device.read(out, 2 * blocks)
    clocks = sum(words[2 * i + 1] - words[2 * i] for i in range(blocks)) / blocks
    return round(clocks / count, 1)


def outside(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    sms, count = device.sms(), 64 if quick else 2048
    memory = device.allocate(4 * COLUMNS * 256)
    kernel = device.load(box_ring(), shared=STAGES * STAGE_BYTES + 1024)
    for box in cases():
        yield {"name": box.name(), "value": measure(device, kernel, out, memory, box, sms, count), "unit": "clk",
               "one block alone": measure(device, kernel, out, memory, box, 1, count)}
    for stages in (1, 2, 3, 6):
        deeper = device.load(box_ring(stages), shared=stages * STAGE_BYTES + 1024)
        for box in (Box(64, 16), Box(128, 1), Box(128, 64), Box(256, 64), Box(128, 128, 128), Box(256, 128, 128), Box(128, 128)):
            yield {"name": f"{box.name()}, {stages} in flight", "value": measure(device, deeper, out, memory, box, sms, count), "unit": "clk"}
    for box in (Box(128, 64), Box(64, 64), Box(128, 128)):
        for blocks in (4, 16, 33, 66, 99):
            yield {"name": f"{box.name()}, {blocks} blocks",
                   "value": measure(device, kernel, out, memory, box, blocks, count), "unit": "clk"}
