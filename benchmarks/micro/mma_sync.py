"""mma.sync beside arithmetic of the same warps, and ends of CTAs that hand on what they stored."""
from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import ptx
from converted_operands import cycles
from cuda import Device, Failure

CHAIN = 16  # products of a turn
ACCUMULATORS, CHAINS = 4, 8  # of products, and of arithmetic
#: Arithmetic on register {i}, which depends on nothing but an earlier one of its chain.
BESIDE = {"fma.f32": "fma.rn.f32 %x{i}, %x{i}, %c0, %c1;", "mad.lo.u32": "mad.lo.u32 %x{i}, %x{i}, %c0, %c1;",
          "mul.bf16x2": "mul.rn.bf16x2 %x{i}, %x{i}, %c0;", "fma.bf16x2": "fma.rn.bf16x2 %x{i}, %x{i}, %c0, %c1;",
          "fma.f16x2": "fma.rn.f16x2 %x{i}, %x{i}, %c0, %c1;", "lop3": "lop3.b32 %x{i}, %x{i}, %c0, %c1, 0x1e;",
          "prmt": "prmt.b32 %x{i}, %x{i}, %c0, %c1;",
          "ex2": "ex2.approx.ftz.f32 %x{i}, %x{i};", "cvt.bf16x2": "cvt.rn.bf16x2.f32 %x{i}, %x{i}, %c0;",
          "shfl": "shfl.sync.bfly.b32 %x{i}, %x{i}, 4, 31, -1;", "movmatrix": "movmatrix.sync.aligned.m8n8.trans.b16 %x{i}, %x{i};",
          "ld.shared": "ld.volatile.shared.b32 %x{i}, [%s+{o}];"}
PAIRS = ("lop3", "mad.lo.u32", "fma.f32", "mul.bf16x2", "prmt", "cvt.bf16x2", "ex2")


def setup() -> str:
    lines = [f"  .reg .b32 %d<{4 * ACCUMULATORS}>, %x<{CHAINS}>, %y<4>, %c<2>, %b<2>, %s;",
             "  mov.u32 %s, window; mad.lo.u32 %s, %lane, 4, %s; mov.b32 %b0, %thread; mov.b32 %b1, %lane;",
             "  add.u32 %c0, %thread, 1; add.u32 %c1, %thread, 2;"]
    lines += [f"  mov.b32 %d{i}, 0;" for i in range(4 * ACCUMULATORS)]
    lines += [f"  add.u32 %x{i}, %thread, {i};" for i in range(CHAINS)]
    lines += [f"  st.volatile.shared.b32 [%s+{128 * i}], %thread;" for i in range(CHAINS)]
    return "\n".join(lines + [f"  add.u32 %y{i}, %thread, {i};" for i in range(4)]) + "\n"


def turn(names: tuple[str, ...], each: int, multiply: bool) -> str:
    lines, number = [], 0
    for i in range(CHAIN):
        d = ", ".join(f"%d{4 * (i % ACCUMULATORS) + j}" for j in range(4))
        if multiply:
            lines.append(f"  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{{d}}}, {{%y0, %y1, %y2, %y3}}, {{%b0, %b1}}, {{{d}}};")
        for _ in range(each):
            lines.append("  " + BESIDE[names[number % len(names)]].format(i=number % CHAINS, o=128 * (number % CHAINS)))
            number += 1
    return "\n".join(lines)


def beside(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Clocks of a product and the arithmetic behind it, and of that arithmetic alone."""
    cases = [((name,), each, True) for name in BESIDE for each in (4, 8)]
    cases += [((one, other), 8, False) for i, one in enumerate(PAIRS) for other in PAIRS[i:]]
    cases += [(("fma.bf16x2", other), 8, False) for other in ("fma.bf16x2", "lop3", "mad.lo.u32", "fma.f32")]
    for names, each, multiply in cases:
        results = [f"%d{i}" for i in range(4 * ACCUMULATORS)] + [f"%x{i}" for i in range(CHAINS)]
        kernel = device.load(ptx.timed(setup(), turn(names, each, multiply), results, block=512), shared=8192)
        for warps in (4, 16):
            yield {"name": f"{'mma.sync, ' if multiply else ''}{each} {' and '.join(dict.fromkeys(names))}, {warps} warps",
                   "value": round(cycles(device, kernel, out, warps, rounds) / CHAIN, 2), "unit": "clk each"}


def merge(warps: int, lines: int) -> str:
    """Each round: every warp stores `lines` lines, and one thread of the CTA counts it behind a
    fence. Stores the clocks of the barrier, of the fence and of the atomic operation."""
    stores = "\n".join(f"  st.global.b32 [%to+{128 * i}], %lane;" for i in range(lines))
    return ptx.kernel(["out", "into", "counter", "rounds"], """  .reg .b64 %at, %to, %where, %c<4>, %fence, %atom, %all, %size;
  .reg .b32 %t, %lane, %warp, %cta, %n, %old, %k; .reg .pred %first, %more;
""", f"""  mov.u32 %t, %tid.x; and.b32 %lane, %t, 31; shr.u32 %warp, %t, 5; mov.u32 %cta, %ctaid.x;
  mad.lo.u32 %k, %cta, {warps}, %warp; mul.wide.u32 %to, %k, {128 * max(lines, 1)}; add.u64 %to, %to, %into;
  mul.wide.u32 %at, %lane, 4; add.u64 %to, %to, %at; mov.u32 %k, %nctaid.x; mul.wide.u32 %size, %k, {warps * 128 * max(lines, 1)};
  setp.eq.u32 %first, %t, 0; cvt.u32.u64 %n, %rounds; mov.u64 %fence, 0; mov.u64 %atom, 0; mov.u64 %all, 0;
LOOP:
  bar.sync 0; mov.u64 %c0, %clock64;
{stores}
  bar.sync 0; @!%first bra BEHIND;
  mov.u64 %c1, %clock64; fence.acq_rel.gpu; mov.u64 %c2, %clock64;
  atom.relaxed.gpu.global.inc.u32 %old, [%counter], 1000000; add.u32 %old, %old, 1; st.shared.b32 [window], %old;
  mov.u64 %c3, %clock64;
  sub.u64 %c0, %c1, %c0; add.u64 %all, %all, %c0; sub.u64 %c1, %c2, %c1; add.u64 %fence, %fence, %c1;
  sub.u64 %c2, %c3, %c2; add.u64 %atom, %atom, %c2;
BEHIND:
  bar.sync 0; add.u64 %to, %to, %size; sub.u32 %n, %n, 1; setp.ne.u32 %more, %n, 0; @%more bra LOOP;
  mul.wide.u32 %where, %cta, 24; add.u64 %where, %where, %out;
  @%first st.global.b64 [%where], %all; @%first st.global.b64 [%where+8], %fence; @%first st.global.b64 [%where+16], %atom;""",
                      block=32 * warps)


def merges(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Clocks of the end of a CTA that stores a part of a result and counts itself."""
    rounds = 4 if quick else 16
    into, counter = device.allocate(256 << 20), device.allocate(4096)
    for lines in (0, 1, 8, 36):
        for warps in (1, 4, 16):
            kernel = device.load(merge(warps, lines), shared=1024)
            for ctas in (1, 16, 128):
                if rounds * ctas * warps * 128 * lines > 256 << 20:
                    raise Failure("the stores do not fit")
                for _ in range(2):  # the second one has its code
                    kernel(ctas, 32 * warps, out, into, counter, rounds)
                    device.synchronize()
                words = device.read(out, 3 * ctas)
                for part, name in enumerate(("stores and barrier", "fence", "atomic operation")):
                    value = statistics.median(words[3 * cta + part] for cta in range(ctas)) / rounds
                    yield {"name": f"{lines} lines of each of {warps} warps, {ctas} CTAs: {name}", "value": round(value, 1), "unit": "clk"}
