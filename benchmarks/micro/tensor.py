"""wgmma: intervals and latencies by N, with A in shared memory and in registers."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device, Kernel
from instructions import span


def group(columns: int, kind: str, registers: bool, length: int, between: str = "") -> str:
    """A loop of groups of `length` MMAs on one accumulator, each waited for behind `between`."""
    d = ", ".join(f"%d{i}" for i in range(columns // 2))
    a = "{%a0, %a1, %a2, %a3}" if registers else "%da"
    types, depth, flags = {"bf16": ("bf16.bf16", 16, "1, 1, 0" if registers else "1, 1, 0, 0"),
                           "e4m3": ("e4m3.e4m3", 32, "1, 1")}[kind]
    product = f"  wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.f32.{types} {{{d}}}, {a}, %db, 1, {flags};\n"
    setup = f"""  .reg .b32 %a<4>, %d<{columns // 2}>; .reg .b64 %da, %db; .reg .b32 %s;
  mov.u32 %s, window; shr.u32 %s, %s, 4; cvt.u64.u32 %da, %s;
  or.b64 %da, %da, 0x4000004000010000; add.u64 %db, %da, 1024;
""" + "".join(f"  mov.b32 %d{i}, 0;\n" for i in range(columns // 2))
    setup += """  .reg .b32 %z; mov.b32 %z, 0; mov.u32 %s, window; .reg .b32 %e; mad.lo.u32 %s, %thread, 4, %s; add.u32 %e, %s, 65536;
  .reg .b32 %n; mov.u32 %n, %ntid.x; mul.lo.u32 %n, %n, 4; .reg .pred %zq;
ZERO: st.shared.b32 [%s], %z; add.u32 %s, %s, %n; setp.lt.u32 %zq, %s, %e; @%zq bra ZERO;
  fence.proxy.async; bar.sync 0; mov.u32 %s, window;
"""
    if registers:  # which ptxas must not know, or it gives each MMA registers of its own and serializes them
        setup += "".join(f"  ld.shared.b32 %a{i}, [%s+{4 * i}];\n" for i in range(4))
    body = "  wgmma.fence.sync.aligned;\n" + product * length
    body += f"  wgmma.commit_group.sync.aligned;\n{between}  wgmma.wait_group.sync.aligned 0;"
    return ptx.timed(setup, body, [f"%d{i}" for i in range(columns // 2)], block=384)


def cycles_of_group(device: Device, kernel: Kernel, out: int, warpgroups: int, rounds: int) -> float:
    """Returns the cycles of a round of a kernel of `group`: its begin and end are in two launches,
    of which one has three times as many."""
    spans = []
    for repeats in (rounds, 3 * rounds):
        kernel(1, 128 * warpgroups, out, repeats, 0x7FFFFFFF)
        device.synchronize()
        spans.append(span(device.read(out, 8 * warpgroups), 4 * warpgroups))
    return (spans[1] - spans[0]) / (2 * rounds)


def products(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    for kind in ("bf16", "e4m3"):
        for registers in (False, True):
            for columns in (8, 16, 32, 64, 96, 128, 192, 256):
                for groups in (1, 2):
                    times = []
                    for length in (1, 4, 16):
                        kernel = device.load(group(columns, kind, registers, length), shared=160 * 1024)
                        times.append(cycles_of_group(device, kernel, out, groups, rounds))
                    yield {"name": f"wgmma m64n{columns} {kind}, A in {'registers' if registers else 'shared memory'}, "
                                   f"{groups} warpgroups",
                           "value": round((times[2] - times[1]) / 12 / groups, 2), "unit": "clk each",
                           "alone with its wait": round(times[0], 1), "group of 4": round(times[1], 1),
                           "group of 16": round(times[2], 1)}


ARITHMETIC = {"lop3": "lop3.b32 {0}, {0}, {1}, %tid4, 0x1e;", "prmt": "prmt.b32 {0}, {0}, {1}, %tid4;",
              "imad": "mad.lo.u32 {0}, {0}, {1}, %tid4;", "fmul2": "mul.bf16x2 {0}, {0}, {1};",
              "ffma": "fma.rn.f32 {0}, {0}, {1}, {0};", "high": "mul.hi.u32 {0}, {0}, {1};",
              "ex2": "ex2.approx.ftz.f32 {0}, {0};", "max": "max.f32 {0}, {0}, {1};", "fadd": "add.f32 {0}, {0}, {1};",
              "cvt": "cvt.rn.bf16x2.f32 {0}, {0}, {1};",
              "wide": "{{ .reg .b64 %part; mul.wide.u32 %part, %tid4, 16; add.u64 %sum{2}, %sum{3}, %part; }}"}  # one IMAD.WIDE
#: A wavefront and four, of which each scheduler has a quarter of the shared memory's turns.
LOADS = {"ld.shared of 128 bytes": "ld.volatile.shared.b32 {0}, [%own];",
         "ld.shared of 512 bytes": "ld.volatile.shared.v4.b32 {{{0}, %w0, %w1, %w2}}, [%wide];"}
COPIES = ["cp.async.cg.shared.global [%wide+65536], [%from], 16;"] * 7 + ["cp.async.commit_group; cp.async.wait_group 3;"]
MIXES = [(name,) for name in ARITHMETIC] + [("lop3", "imad"), ("lop3", "fmul2"), ("imad", "fmul2"), ("lop3", "ffma"),
                                            ("lop3", "imad", "fmul2", "ffma"), ("wide", *3 * ("lop3",)), ("wide", *7 * ("lop3",)),
                                            ("wide", *3 * ("imad",)), ("wide", *3 * ("ffma",)),
                                            ("ex2", "ffma"), ("ex2", "ffma", "fadd"), ("ex2", "ffma", "fadd", "max"), ("cvt", "ffma")]
BESIDE = [(0, False)] + [(n, False) for n in (16, 64, 128, 176, 256)] + [(n, True) for n in (8, 16, 32, 64, 128, 256)]  # 0: no MMAs
OPERATIONS = 128  # of a round of the warps that compute


def group_of(columns: int) -> int:
    """The MMAs of a group: as many as keep the tensor core busy, without too much code."""
    return 4 if columns > 128 else 8 if columns > 64 else 32


def longer(length: int) -> int:
    """The rounds of those that multiply, whose groups have so many MMAs."""
    return max(4, 64 // length)


def busy(columns: int, registers: bool, lines: list[str], length: int) -> str:
    """A warpgroup multiplies, `length` times before it waits, and the warps behind it compute. MMAs
    go on for longer than the arithmetic."""
    code = group(columns or 8, "bf16", registers, length)
    arithmetic = "\n".join("  " + lines[i % len(lines)].format(f"%y{i % 8}", f"%y{(i + 1) % 8}", i // len(lines) % 8, (i // len(lines) + 1) % 8)
                           for i in range(OPERATIONS))
    declared = "  .reg .b32 %y<8>, %tid4; .reg .pred %other; mov.b32 %tid4, %thread; setp.ge.u32 %other, %thread, 128;\n"
    declared += "  .reg .b64 %sum<8>; .reg .b32 %high;\n"
    declared += "".join(f"  add.u32 %y{i}, %thread, {i}; cvt.u64.u32 %sum{i}, %thread;\n" for i in range(8))
    declared += """  .reg .b32 %own, %wide, %w<3>; mov.u32 %own, window; mad.lo.u32 %wide, %thread, 16, %own;
  .reg .b64 %from; mad.wide.u32 %from, %thread, 16, %out;
  mad.lo.u32 %own, %thread, 4, %own;
"""
    loop = f"""{declared}  @!%other mul.lo.u32 %count, %count, {longer(length)};
  @!%other bra {"LOOP" if columns else "DONE"};
ALU:
{arithmetic}
  sub.u32 %count, %count, 1;
  setp.ne.u32 %more, %count, 0;
  @%more bra ALU;
  mov.u64 %end, %clock64;
{chr(10).join(f'  xor.b32 %sink, %sink, %y{i}; mov.b64 {{%y{i}, %high}}, %sum{i}; xor.b32 %sink, %sink, %y{i}; xor.b32 %sink, %sink, %high;' for i in range(8))}
  bra DONE;
"""
    split = code.index("LOOP:")
    code = code[:split] + loop + code[split:]
    last = code.rindex("  setp.eq.u32 %first, %lane, 0;")
    return code[:last] + "DONE:\n  cp.async.wait_all;\n" + code[last:]


def besides(columns: int, registers: bool) -> str:
    return f"beside m64n{columns}, A in {'registers' if registers else 'shared memory'}" if columns else "alone"


def measured(device: Device, kernel: Kernel, out: int, warps: int, repeats: int, length: int) -> dict[str, Any]:
    """Runs a kernel of `busy` whose groups have `length` MMAs; 0: none are beside."""
    kernel(1, 128 + 128 * warps, out, repeats, 0x7FFFFFFF)
    device.synchronize()
    words = device.read(out, 8 + 8 * warps)
    alone = max(words[9 + 2 * w] - words[8 + 2 * w] for w in range(4 * warps))
    products = words[1] - words[0]
    return {"value": round(alone / (repeats * OPERATIONS * warps), 2), "unit": "clk",
            "a product": round(products / (repeats * longer(length) * length), 1) if length else 0, "products went on": products > alone}


def beside(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Warps that compute or load while another warpgroup multiplies: cycles of an instruction of
    each of `warps` a scheduler."""
    lines = {" + ".join(mix): [ARITHMETIC[name] for name in mix] for mix in MIXES} | {name: [line] for name, line in LOADS.items()}
    lines["seven cp.async of 512 bytes and a wait"] = COPIES
    for columns, registers in BESIDE:
        for name, instructions in lines.items():
            length = group_of(columns)
            kernel = device.load(busy(columns, registers, instructions, length), shared=160 * 1024)
            for warps in (1, 2):
                yield {"name": f"{name} {besides(columns, registers)}, {warps} a scheduler"} | measured(device, kernel, out, warps, 10 * rounds, length if columns else 0)


def beside_queued(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Arithmetic beside MMAs that are issued before others are done, so that the queue of the
    tensor core is full and their warps wait for it."""
    mixes = [("ex2",), ("ex2", "ffma", "fadd"), ("ex2", "ffma", "fadd", "max"), ("max",), ("cvt",), ("ffma",), ("max", "ffma"), ("prmt",), ("imad",)]
    for columns, registers in ((128, True), (128, False), (176, False)):
        for length in (8, 32):
            for mix in mixes:
                kernel = device.load(busy(columns, registers, [ARITHMETIC[name] for name in mix], length), shared=160 * 1024)
                for warps in (1, 2):
                    yield {"name": f"{' + '.join(mix)} {besides(columns, registers)}, groups of {length}, {warps} a scheduler"} | measured(
                        device, kernel, out, warps, max(1, 2 * rounds), length)


#: What slopes and masks add: %v differs between threads, %u is uniform and %d is a temporary.
MASKS = {"ffma of 3 registers": "fma.rn.f32 {y}, {y1}, {y3}, {y};", "ffma, fixed": "fma.rn.f32 {y}, {y1}, %v, {y};",
         "ffma, uniform": "fma.rn.f32 {y}, {y1}, %u, {y};", "ffma of |x|, uniform": "abs.f32 %d, {y1}; fma.rn.f32 {y}, %d, %u, {y};",
         "ffma, immediate": "fma.rn.f32 {y}, {y}, 0f3E0296C9, %v;", "fadd, fixed": "sub.rn.f32 {y}, %v, {y};",
         "distance and ffma, uniform": "sub.rn.f32 %d, %v, {y4}; abs.f32 %d, %d; fma.rn.f32 {y}, %d, %u, {y};",
         "max.NaN": "max.NaN.f32 {y}, {y}, {y1};", "max.NaN, a chain": "max.NaN.f32 %y0, %y0, {y1};",
         "comparison and selection": "setp.lt.s32 %is, {y1}, {i}; selp.f32 {y}, {y}, 0fFF800000, %is;"}


def beside_masks(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Lines of slopes and masks alone and beside MMAs. The roles are uniform for ptxas, which then
    keeps %u in a uniform register."""
    declared = "  .reg .b32 %u, %v, %d; .reg .pred %is; mov.u32 %u, %ctaid.x; add.u32 %u, %u, 1065353216; add.u32 %v, %thread, 1065353216;\n"
    for name, line in MASKS.items():
        lines = [line.format(i=i + 3, y=f"%y{i % 8}", **{f"y{j}": f"%y{(i + j) % 8}" for j in (1, 3, 4)}) for i in range(OPERATIONS)]
        for columns, registers in ((0, False), (128, True), (128, False)):
            length = 32 if columns else group_of(columns)
            code = busy(columns, registers, lines, length)
            at = code.index("  .reg .b32 %y<8>")
            code = code[:at] + declared + code[at:].replace("setp.ge.u32 %other, %thread, 128;", "shr.u32 %d, %thread, 7; "
                                                            "shfl.sync.idx.b32 %d, %d, 0, 31, 0xffffffff; setp.ge.u32 %other, %d, 1;", 1)
            kernel = device.load(code, shared=160 * 1024)
            for warps in (1, 2):
                yield {"name": f"{name} {besides(columns, registers)}, {warps} a scheduler"} | measured(device, kernel, out, warps, 5 * rounds, length if columns else 0)


FENCES = {"nothing": "", "fence.proxy.async.shared::cta": "  fence.proxy.async.shared::cta;\n", "fence.proxy.async": "  fence.proxy.async;\n",
          "membar.cta": "  membar.cta;\n", "ld.shared and fence.proxy.async.shared::cta": "  ld.shared.b32 %x, [%s];\n  fence.proxy.async.shared::cta;\n"}
CHAIN = 128  # instructions that each need the one before


def fences(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """A group of four MMAs, a fence and a chain of arithmetic, then the wait. If the fence waits
    for the MMAs, the chain comes behind them, and otherwise beside them."""
    declared = "  { .reg .b32 %x; mov.b32 %x, %thread;\n"
    chain = "".join("  prmt.b32 %x, %x, %lane, %thread;\n" for _ in range(CHAIN))
    for columns in (16, 64, 128, 256):
        for registers in (True, False):
            for name, fence in FENCES.items():
                for what, arithmetic in (("", ""), (" and a chain", chain)):
                    between = declared + fence + arithmetic + "  xor.b32 %sink, %sink, %x; }\n"
                    kernel = device.load(group(columns, "bf16", registers, 4, between), shared=160 * 1024)
                    yield {"name": f"four m64n{columns}, A in {'registers' if registers else 'shared memory'}, {name}{what}",
                           "value": round(cycles_of_group(device, kernel, out, 1, rounds), 1), "unit": "clk"}


def beside_own(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Warpgroups that each issue a group of four MMAs and IMAD.WIDE before they wait for it: cycles
    of a group of all of them."""
    declared = "  .reg .b64 %part, %sum<8>; .reg .b32 %high; mul.wide.u32 %part, %thread, 16;\n"
    declared += "".join(f"  cvt.u64.u32 %sum{i}, %lane;\n" for i in range(8))
    used = "".join(f"  mov.b64 {{%count, %high}}, %sum{i}; xor.b32 %sink, %sink, %count; xor.b32 %sink, %sink, %high;\n" for i in range(8))
    for columns in (64, 256):
        for groups in (1, 2):
            for number in (0, 4, 8, 12, 24, 48):
                between = "".join(f"  add.u64 %sum{i % 8}, %sum{(i + 1) % 8}, %part;\n" for i in range(number))
                code = group(columns, "bf16", False, 4, between)
                begin, end = code.index("LOOP:"), code.rindex("  setp.eq.u32 %first, %lane, 0;")
                kernel = device.load(code[:begin] + declared + code[begin:end] + used + code[end:], shared=160 * 1024)
                yield {"name": f"four m64n{columns} of each of {groups} warpgroups and {number} IMAD.WIDE of each warp",
                       "value": round(cycles_of_group(device, kernel, out, groups, rounds), 1), "unit": "clk"}
