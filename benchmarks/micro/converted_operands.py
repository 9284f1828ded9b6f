"""Products whose A is in registers, behind the conversions that make it: mma.sync and wgmma.

The sections say how long a chain of products takes, alone and with arithmetic that converts the A
of a later product, and what the first product behind a conversion waits for.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
import tensor
from cuda import Device, Kernel
from instructions import span

CHAIN = 16  # products of a turn
REGISTERS = 16  # that the arithmetic makes
#: Arithmetic that makes %y{i}: the pair of a conversion from 4 bits, and one dependent operation.
STEPS = {"and and mul.bf16x2": ["and.b32 %y{i}, %v{i}, %mask{i};", "mul.rn.bf16x2 %y{i}, %y{i}, %scale;"],
         "lop3": ["lop3.b32 %y{i}, %y{i}, %v{i}, %scale, 0x1e;"]}


def cycles(device: Device, kernel: Kernel, out: int, warps: int, rounds: int) -> float:
    """Returns the cycles of a turn of `warps`, from launches of two lengths."""
    spans = []
    for repeats in (rounds, 3 * rounds):
        kernel(1, 32 * warps, out, repeats, 0x7FFFFFFF)
        device.synchronize()
        spans.append(span(device.read(out, 2 * warps), warps))
    return (spans[1] - spans[0]) / (2 * rounds)


def declared(accumulators: int) -> str:
    lines = [f"  .reg .b32 %d<{4 * accumulators}>, %y<{REGISTERS}>, %v<{REGISTERS}>, %mask<{REGISTERS}>, %scale, %b<2>, %s;",
             "  mov.u32 %s, window; mad.lo.u32 %s, %thread, 16, %s; mov.b32 %b0, %thread; mov.b32 %b1, %lane; mov.b32 %scale, %lane;"]
    lines += [f"  mov.b32 %d{i}, 0;" for i in range(4 * accumulators)]
    lines += [f"  add.u32 %y{i}, %thread, {i}; add.u32 %v{i}, %lane, {i}; add.u32 %mask{i}, %thread, {i};" for i in range(REGISTERS)]
    return "\n".join(lines) + "\n"


def product(i: int, accumulators: int) -> str:
    d = ", ".join(f"%d{4 * (i % accumulators) + j}" for j in range(4))
    a = ", ".join(f"%y{(4 * i + j) % REGISTERS}" for j in range(4))
    return f"  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{{d}}}, {{{a}}}, {{%b0, %b1}}, {{{d}}};"


def arithmetic(name: str, count: int, first: int) -> list[str]:
    """`count` instructions that make registers from `first` on."""
    steps = STEPS[name]
    return ["  " + steps[n % len(steps)].format(i=(first + n // len(steps)) % REGISTERS) for n in range(count)]


def mma_turn(accumulators: int, name: str, each: int) -> str:
    """CHAIN products, and behind each one `each` instructions for A of the third one after."""
    lines: list[str] = []
    for i in range(CHAIN):
        lines.append(product(i, accumulators))
        if each:
            lines.append("  add.u32 %v{0}, %v{0}, %lane;".format(i % REGISTERS))
        lines += arithmetic(name, each, 4 * (i + 3))
    return "\n".join(lines)


def kernel_of(device: Device, setup: str, body: str, accumulators: int) -> Kernel:
    results = [f"%d{i}" for i in range(4 * accumulators)] + [f"%y{i}" for i in range(REGISTERS)]
    return device.load(ptx.timed(setup, body, results, block=512), shared=64 * 1024)


def mma_chains(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Chains of mma.sync, each warp with accumulators of its own."""
    for accumulators in (1, 2, 4):
        for name in STEPS:
            for each in (0, 4, 8, 12, 16, 24) if accumulators < 4 else (0, 8):
                kernel = kernel_of(device, declared(accumulators), mma_turn(accumulators, name, each), accumulators)
                for warps in (1, 4, 8, 16):
                    yield {"name": f"mma.sync m16n8k16 on {accumulators} accumulators, {each} {name} each, {warps} warps",
                           "value": round(cycles(device, kernel, out, warps, rounds) / CHAIN, 2), "unit": "clk each"}


BEHIND = {"mma to A": "mov.b32 %y0, %d0;", "mma, lop3 to A": "lop3.b32 %y0, %d0, %v0, %scale, 0x1e;",
          "mma, lop3, mul.bf16x2 to A": "lop3.b32 %y0, %d0, %v0, %scale, 0x1e; mul.rn.bf16x2 %y0, %y0, %scale;",
          "mma, two lop3, mul.bf16x2 to A": "lop3.b32 %y0, %d0, %v0, %scale, 0x1e; lop3.b32 %y0, %y0, %v1, %scale, 0x1e; mul.rn.bf16x2 %y0, %y0, %scale;",
          "mma, movmatrix to A": "movmatrix.sync.aligned.m8n8.trans.b16 %y0, %d0;"}


def mma_latencies(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """A product whose A is what the product before it made, through arithmetic."""
    for name, between in BEHIND.items():
        body = "\n".join(f"{product(0, 1)}\n  {between}" for _ in range(CHAIN))
        kernel = kernel_of(device, declared(1), body, 1)
        yield {"name": name, "value": round(cycles(device, kernel, out, 1, rounds) / CHAIN, 2), "unit": "clk"}


ZEROS = """  .reg .b32 %at, %zero; .reg .pred %zq; mov.b32 %zero, 0; mov.u32 %at, window; mad.lo.u32 %at, %thread, 4, %at;
  .reg .b32 %till, %by; mov.u32 %till, window; add.u32 %till, %till, 32768; mov.u32 %by, %ntid.x; shl.b32 %by, %by, 2;
ZERO: st.shared.b32 [%at], %zero; add.u32 %at, %at, %by; setp.lt.u32 %zq, %at, %till; @%zq bra ZERO;
  bar.sync 0;
"""
#: A turn's way into the ring: a wait for a full barrier, loads, a fence and an arrival, by part.
PARTS = ("wait", "load", "fence", "arrive")


def ring_turn(parts: tuple[str, ...], products: int, each: int) -> str:
    """A k step of a consumer that finds its data there: each warp waits for a barrier of its own,
    which it completes itself behind its loads."""
    lines = []
    if "wait" in parts:
        lines.append("WAIT: mbarrier.try_wait.parity.shared.b64 %ready, [%bar], %phase; @!%ready bra WAIT;")
    if "load" in parts:
        lines += [f"  ld.volatile.shared.v4.b32 {{%v{4 * i}, %v{4 * i + 1}, %v{4 * i + 2}, %v{4 * i + 3}}}, [%s+{4096 * i}];" for i in range(4)]
    if "fence" in parts:
        lines.append("  fence.proxy.async.shared::cta;")
    if "arrive" in parts:
        lines.append("  setp.eq.u32 %ready, %lane, 0; @%ready mbarrier.arrive.shared.b64 %token, [%bar]; xor.b32 %phase, %phase, 1;")
    lines += arithmetic("and and mul.bf16x2", 2 * REGISTERS if each else 0, 0)
    for i in range(products):
        lines.append(product(i, 1))
        lines += arithmetic("and and mul.bf16x2", each, 4 * (i + 3))
    return "\n".join(lines)


def rings(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Turns with more and more of what a consumer of a ring does."""
    setup = declared(1) + ZEROS + """  .shared .align 8 .b64 bars[16]; .reg .b32 %bar, %phase; .reg .pred %ready; .reg .b64 %token;
  mov.u32 %bar, bars; mad.lo.u32 %bar, %warp, 8, %bar; setp.eq.u32 %ready, %lane, 0;
  @%ready mbarrier.init.shared.b64 [%bar], 1; bar.warp.sync -1; @%ready mbarrier.arrive.shared.b64 %token, [%bar]; mov.b32 %phase, 0;
"""
    for products, each in ((0, 0), (16, 0), (16, 8)):
        for parts in (("wait", "arrive"), ("load",), ("load", "fence"), PARTS):
            kernel = kernel_of(device, setup, ring_turn(parts, products, each), 1)
            for warps in (1, 4, 8):
                yield {"name": f"{', '.join(parts)}; {products} products with {each} operations each, {warps} warps",
                       "value": round(cycles(device, kernel, out, warps, rounds), 1), "unit": "clk a turn"}


def wgmma(columns: int, first: int, registers: bool) -> str:
    """Four products of 16 elements of K whose A is registers from `first` on, or shared memory."""
    d = ", ".join(f"%d{i}" for i in range(columns // 2))
    lines = []
    for step in range(4):
        a = "{" + ", ".join(f"%y{first + 4 * step + j}" for j in range(4)) + "}" if registers else "%da"
        lines.append(f"  wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16 {{{d}}}, {a}, %db, 1, 1, 1, {'0' if registers else '0, 0'};")
    return "\n".join(lines)


def conversion(count: int, first: int) -> str:
    """`count` operations that make the 16 registers from `first` on anew."""
    lines = [f"  {'lop3.b32' if n // 16 % 2 else 'prmt.b32'} %y{first + n % 16}, %y{first + n % 16}, %v{n % 16}, %scale{', 0x1e' if n // 16 % 2 else ''};"
             for n in range(count)]
    return "\n".join(lines)


def wgmma_turn(columns: int, count: int, order: str) -> str:
    """Two groups, each with a conversion: `serial` converts, multiplies and waits; `ahead` converts
    the other registers while its products run; `within` converts what no product needs."""
    registers = order != "within"
    fence, commit, wait = "  wgmma.fence.sync.aligned;", "  wgmma.commit_group.sync.aligned;", "  wgmma.wait_group.sync.aligned 0;"
    lines = []
    for turn in range(2):
        mine, other = 16 * turn, 16 * (1 - turn)
        convert = conversion(count, mine if order == "serial" else other)
        group = [fence, wgmma(columns, mine, registers), commit]
        lines += [convert, *group, wait] if order == "serial" else [*group, convert, wait]
    return "\n".join(lines)


def wgmmas(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Groups of four wgmma of which A is made by conversions; cycles of a group."""
    for columns in (8, 16, 32, 64, 128):
        code = tensor.group(columns, "bf16", False, 1)
        setup = f"""  .reg .b32 %d<{columns // 2}>, %y<32>, %v<16>, %scale, %s; .reg .b64 %da, %db; mov.b32 %scale, %lane;
  mov.u32 %s, window; shr.u32 %s, %s, 4; cvt.u64.u32 %da, %s; or.b64 %da, %da, 0x4000004000010000; add.u64 %db, %da, 1024;
""" + ZEROS + "  fence.proxy.async; bar.sync 0;\n"
        assert "0x4000004000010000" in code
        setup += "".join(f"  mov.b32 %d{i}, 0;\n" for i in range(columns // 2))
        setup += "".join(f"  add.u32 %y{i}, %thread, {i}; add.u32 %v{i % 16}, %lane, {i};\n" for i in range(32))
        for order in ("serial", "ahead", "within"):
            for count in (0, 16, 32, 64, 128):
                results = [f"%d{i}" for i in range(columns // 2)] + [f"%y{i}" for i in range(32)]
                kernel = device.load(ptx.timed(setup, wgmma_turn(columns, count, order), results, block=256), shared=64 * 1024)
                for warps in (4, 8):
                    yield {"name": f"four wgmma m64n{columns}k16, {count} operations {order}, {warps // 4} warpgroups",
                           "value": round(cycles(device, kernel, out, warps, rounds) / 2, 1), "unit": "clk a group"}


def conversions(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    for section in (mma_latencies, mma_chains, rings, wgmmas):
        yield from section(device, out, rounds)
