"""wgmma with A in registers, whose weights the same warps convert between groups of four: one
accumulator and two, by the arithmetic between groups and by the length of the loop."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device
from instructions import span

GROUP = 4  # MMAs of a group
GROUPS = 4  # of an accumulator, before the other one


def conversions(of: int, each: int) -> tuple[str, list[str]]:
    """Registers of a group of MMAs, each of `each` instructions (1: only logic, then 16-bit
    products and logic in turn)."""
    lines, names = [], []
    for i in range(4 * GROUP):
        name = f"%a{of % 2}_{i}"
        lines.append(f"  lop3.b32 {name}, %w{i % 8}, %mask, %w{(i + 3) % 8}, 0x6a;")
        for step in range(each - 1):
            lines.append(f"  mul.bf16x2 {name}, {name}, %scale;" if step % 2 == 0 else
                         f"  lop3.b32 {name}, {name}, %mask, %w{(i + step) % 8}, 0xe8;")
        names.append(name)
    return "\n".join(lines) + "\n", names


def loop(columns: int, accumulators: int, each: int, copies: int) -> str:
    """For each group: converts its A, then multiplies; the group before it may still run
    meanwhile."""
    setup = f"""  .reg .b32 %a0_<16>, %a1_<16>, %w<8>, %mask, %scale, %s; .reg .b64 %db;
  .reg .b32 {', '.join(f'%d{x}_<{columns // 2}>' for x in range(accumulators))};
  .reg .b32 %z, %e, %n; .reg .pred %zq;
  mov.u32 %s, window; shr.u32 %s, %s, 4; cvt.u64.u32 %db, %s; or.b64 %db, %db, 0x4000004000010000;
  mov.b32 %z, 0; mov.u32 %s, window; mad.lo.u32 %s, %thread, 4, %s; mov.u32 %e, window; add.u32 %e, %e, 65536;
  mov.u32 %n, %ntid.x; mul.lo.u32 %n, %n, 4;
ZERO: st.shared.b32 [%s], %z; add.u32 %s, %s, %n; setp.lt.u32 %zq, %s, %e; @%zq bra ZERO;
  fence.proxy.async; bar.sync 0; mov.u32 %s, window;
  ld.shared.b32 %mask, [%s+64]; ld.shared.b32 %scale, [%s+68];
"""
    setup += "".join(f"  ld.shared.b32 %w{i}, [%s+{4 * i}];\n" for i in range(8))
    setup += "".join(f"  mov.b32 %d{x}_{i}, 0;\n" for x in range(accumulators) for i in range(columns // 2))
    body = ""
    for index in range(copies * accumulators * GROUPS):
        d = ", ".join(f"%d{index // GROUPS % accumulators}_{i}" for i in range(columns // 2))
        code, names = conversions(index, each)
        body += code + "  wgmma.fence.sync.aligned;\n"
        for k in range(GROUP):
            a = ", ".join(names[4 * k:4 * k + 4])
            body += f"  wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16 {{{d}}}, {{{a}}}, %db, 1, 1, 1, 0;\n"
        last = index % (accumulators * GROUPS) == accumulators * GROUPS - 1
        body += f"  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned {0 if last else 1};\n"
        body += "  xor.b32 %w0, %w0, 1; add.u32 %w3, %w3, 3; add.u32 %w5, %w5, %w0;\n"
    results = [f"%d{x}_{i}" for x in range(accumulators) for i in range(columns // 2)]
    return ptx.timed(setup, body, results, block=256 if columns > 64 else 384)


def pairs(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    for columns in (32, 64, 128):
        for accumulators in (1, 2):
            for each in (1, 2, 4, 6):
                for copies in (1, 3):
                    kernel = device.load(loop(columns, accumulators, each, copies), shared=160 * 1024)
                    for groups in (1, 2):
                        spans = []
                        for repeats in (rounds // 2 + 1, 2 * rounds):
                            kernel(1, 128 * groups, out, repeats, 0x7FFFFFFF)
                            device.synchronize()
                            spans.append(span(device.read(out, 8 * groups), 4 * groups))
                        products = (2 * rounds - rounds // 2 - 1) * copies * accumulators * GROUPS * GROUP * groups
                        yield {"name": f"m64n{columns}, {accumulators} accumulators, {each} instructions a register, {copies} copies, "
                                       f"{groups} warpgroups", "value": round((spans[1] - spans[0]) / products, 2), "unit": "clk a product",
                               "registers": kernel.registers()}
