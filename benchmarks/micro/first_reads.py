"""Launches of few CTAs: what the first of them wait for, load after load, and how late single SMs
have their share of device memory."""
from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import ptx
from cuda import Device, Kernel
from ladder import MIB

STEPS = 3  # loads of a chain, at most
FIELDS = 8  # of a warp: the cycles of its begin and of each step, and its SM


def chained(steps: int, loads: int, work: int, stores: bool) -> str:
    """Each thread loads `loads` pieces of 16 bytes `steps` times, each time from where the sum of
    the last ones says, which is 0, with `work` dependent fp32 behind each."""
    body = """  .reg .b32 %t, %b, %n, %g, %k, %sm, %lane, %sum, %x<4>, %f; .reg .b64 %at, %step, %to, %i, %wide, %c<4>; .reg .pred %q;
  mov.u64 %c0, %clock64; mov.u64 %c1, %c0; mov.u64 %c2, %c0; mov.u64 %c3, %c0; mov.u32 %sm, %smid;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %g, %nctaid.x; mad.lo.u32 %k, %b, %n, %t; mul.lo.u32 %n, %n, %g;
  mul.wide.u32 %step, %n, 16; mul.wide.u32 %at, %k, 16; add.u64 %at, %at, %from; mul.wide.u32 %to, %k, 16; add.u64 %to, %to, %into; mov.b32 %sum, 0;
"""
    for step in range(steps):
        body += f"  .reg .b32 %y{step}_<{4 * loads}>;\n"
        for load in range(loads):
            words = ", ".join(f"%y{step}_{4 * load + i}" for i in range(4))
            body += f"  ld.volatile.global.v4.b32 {{{words}}}, [%at]; add.u64 %at, %at, %step;\n"
        body += "".join(f"  or.b32 %sum, %sum, %y{step}_{i};\n" for i in range(4 * loads))
        body += "".join("  fma.rn.f32 %sum, %sum, %sum, %sum;\n" for _ in range(work))
        body += f"  setp.eq.u32 %q, %sum, 0x7ffffff1; @%q trap;\n  mov.u64 %c{step + 1}, %clock64; cvt.u64.u32 %wide, %sum; add.u64 %at, %at, %wide;\n"
    if stores:
        body += "  st.global.v4.b32 [%to], {%sum, %sum, %sum, %sum};\n"
    body += f"""  and.b32 %lane, %t, 31; setp.eq.u32 %q, %lane, 0; shr.u32 %k, %k, 5; mul.wide.u32 %i, %k, {8 * FIELDS}; add.u64 %i, %i, %stamps;
  @%q st.global.v2.u64 [%i], {{%c0, %c1}}; @%q st.global.v2.u64 [%i+16], {{%c2, %c3}}; cvt.u64.u32 %wide, %sm; @%q st.global.u64 [%i+32], %wide;
"""
    return ptx.kernel(["from", "into", "stamps"], "", body)


def cold_microseconds(device: Device, kernel: Kernel, grid: int, threads: int, buffers: list[tuple[int, ...]], flush: Any, quick: bool) -> float:
    """Returns the time of one launch of a graph with one for each buffer, none of which L2 has."""
    replay = device.graph(lambda stream: [kernel(grid, threads, *buffer, stream=stream) for buffer in buffers])
    times = []
    for _ in range(1 if quick else 9):
        flush()
        times.append(device.seconds(replay))
    return sorted(times)[len(times) // 2] / len(buffers) * 1e6


def chains(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Microseconds of a launch, and what its warps waited for each load."""
    pool, stamps = device.allocate((700 if not quick else 660) * MIB), device.allocate(2 * MIB)
    sweep = device.load(loaded(4))
    for ctas, threads in ((64, 128),) if quick else ((16, 128), (64, 128), (128, 128), (64, 256), (64, 512), (132, 512), (132, 1024), (264, 512)):
        for steps, loads, work, stores in ((0, 1, 0, False), (1, 1, 0, False), (1, 1, 0, True), (1, 4, 0, False), (1, 1, 256, False), (2, 1, 0, False), (2, 2, 0, False),
                                           (2, 1, 64, True), (3, 1, 0, False), (3, 2, 0, True)):
            kernel = device.load(chained(steps, loads, work, stores))
            size = max(1, ctas * threads * 16 * (steps * loads + 1))
            step = (size + MIB - 1) // MIB * MIB
            buffers = [(pool + i * step, pool + i * step + size - ctas * threads * 16, stamps) for i in range(2 if quick else 32)]
            taken = cold_microseconds(device, kernel, ctas, threads, buffers, lambda: sweep(132, 512, pool + 512 * MIB, MIB, 32768, 2 if quick else 32, stamps + MIB), quick)
            words = device.read(stamps, FIELDS * ctas * threads // 32)
            warps = [words[at:at + FIELDS] for at in range(0, len(words), FIELDS)]
            waits = [sorted(warp[i + 1] - warp[i] for warp in warps) for i in range(steps)]
            yield {"name": f"{steps} times {loads} loads, {work} fp32{', stores' if stores else ''}, {ctas} CTAs of {threads}", "value": round(taken, 3), "unit": "us",
                   "least, median, most": [[wait[0], round(statistics.median(wait)), wait[-1]] for wait in waits]}
    device.free(pool)


def streamed(stages: int, size: int) -> str:
    """One thread of a CTA copies %count times `stages` pieces of `size` bytes, `stages` in flight,
    the next one %stride behind the last."""
    ask = "mbarrier.arrive.expect_tx.shared.b64 _, [%bar+{bar}], {size}; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%bar+{to}], [%at], {size}, [%bar+{bar}]; add.u64 %at, %at, %stride;"
    asks = ["  " + ask.format(bar=8 * i, to=1024 + i * size, size=size) for i in range(stages)]
    turns = [f"W{i}: mbarrier.try_wait.parity.shared.b64 %q, [%bar+{8 * i}], %ph; @!%q bra W{i};\n{asks[i]}" for i in range(stages)]
    lasts = [f"L{i}: mbarrier.try_wait.parity.shared.b64 %q, [%bar+{8 * i}], %ph; @!%q bra L{i};" for i in range(stages)]
    return ptx.kernel(["from", "own", "stride", "count", "stamps"], """  .reg .b64 %at, %t<4>, %i, %all; .reg .b32 %b, %n, %bar, %ph, %sm; .reg .pred %p, %q;
""", "\n".join(["""  mov.u64 %t0, %globaltimer; mov.u64 %t1, %clock64; mov.u32 %b, %ctaid.x; cvt.u32.u64 %n, %count; mov.u32 %bar, window;
  cvt.u64.u32 %i, %b; mul.lo.u64 %i, %i, %own; add.u64 %at, %from, %i; mov.u32 %ph, 0;""",
                   *[f"  mbarrier.init.shared.b64 [%bar+{8 * i}], 1;" for i in range(stages)], "  fence.mbarrier_init.release.cluster;", *asks,
                   "NEXT: sub.u32 %n, %n, 1; setp.eq.u32 %p, %n, 0; @%p bra LAST;", *turns, "  xor.b32 %ph, %ph, 1; bra NEXT;\nLAST:", *lasts,
                   """  mov.u64 %t2, %clock64; mov.u64 %t3, %globaltimer; mov.u32 %sm, %smid; cvt.u64.u32 %all, %sm;
  mul.wide.u32 %i, %b, 64; add.u64 %i, %i, %stamps; st.global.v2.u64 [%i], {%t0, %t3}; st.global.v2.u64 [%i+16], {%t1, %t2}; st.global.u64 [%i+32], %all;
"""]), block=32)


def loaded(loads: int) -> str:
    """The threads of a CTA load %count times `loads` pieces of 16 bytes each, %stride apart."""
    body = """  .reg .b64 %at, %t<4>, %i, %all, %wide; .reg .b32 %b, %n, %k, %t, %w, %sm, %sum; .reg .pred %p, %q;
  mov.u64 %t0, %globaltimer; mov.u64 %t1, %clock64; mov.u32 %b, %ctaid.x; cvt.u32.u64 %n, %count; mov.u32 %t, %tid.x; mov.u32 %w, %ntid.x;
  cvt.u64.u32 %i, %b; mul.lo.u64 %i, %i, %own; add.u64 %at, %from, %i; mul.wide.u32 %i, %t, 16; add.u64 %at, %at, %i; mul.wide.u32 %wide, %w, 16;
  mov.u32 %k, 0; mov.b32 %sum, 0;
"""
    body += f"  .reg .b32 %y<{4 * loads}>;\nNEXT: mov.u64 %i, %at;\n"
    for load in range(loads):
        body += f"  ld.volatile.global.v4.b32 {{%y{4 * load}, %y{4 * load + 1}, %y{4 * load + 2}, %y{4 * load + 3}}}, [%i]; add.u64 %i, %i, %wide;\n"
    body += "".join(f"  or.b32 %sum, %sum, %y{i};\n" for i in range(4 * loads))
    body += """  setp.eq.u32 %q, %sum, 0x7ffffff1; @%q trap; add.u64 %at, %at, %stride; add.u32 %k, %k, 1; setp.lt.u32 %p, %k, %n; @%p bra NEXT;
  bar.sync 0; setp.ne.u32 %q, %t, 0; @%q bra END;
  mov.u64 %t2, %clock64; mov.u64 %t3, %globaltimer; mov.u32 %sm, %smid; cvt.u64.u32 %all, %sm;
  mul.wide.u32 %i, %b, 64; add.u64 %i, %i, %stamps; st.global.v2.u64 [%i], {%t0, %t3}; st.global.v2.u64 [%i+16], {%t1, %t2}; st.global.u64 [%i+32], %all;
END:
"""
    return ptx.kernel(["from", "own", "stride", "count", "stamps"], "", body)


Runs = list[dict[int, tuple[int, int, int]]]  # of each launch, by SM: begin and end in ns, and cycles


def runs_of_words(words: Sequence[int], ctas: int) -> dict[int, tuple[int, int, int]]:
    """The run of a launch by the stamps of its CTAs."""
    first = min(words[8 * cta] for cta in range(ctas))
    return {words[8 * cta + 4]: (words[8 * cta] - first, words[8 * cta + 1] - first, words[8 * cta + 3] - words[8 * cta + 2]) for cta in range(ctas)}


def runs_of(device: Device, kernel: Kernel, ctas: int, threads: int, arguments: tuple[int, int, int], pool: int, step: int, launches: int, stamps: int) -> Runs:
    runs: Runs = []
    for launch in range(launches + 1):
        kernel(ctas, threads, pool + launch % max(1, 2048 * MIB // step) * step if step < 2048 * MIB else pool, *arguments, stamps)
        device.synchronize()
        runs.append(runs_of_words(device.read(stamps, 8 * ctas), ctas))
    return runs[1:]


def summary(runs: Runs) -> dict[str, Any]:
    """The cycles of CTAs: their mean, the deviation of an SM's mean and of what is left, of 1, and
    the last CTA of a launch."""
    mean = statistics.mean(run[sm][2] for run in runs for sm in run)
    of_launch = [statistics.mean(row[2] for row in run.values()) for run in runs]
    sms = {sm for run in runs for sm in run}
    ratios = {sm: [run[sm][2] / of for run, of in zip(runs, of_launch) if sm in run] for sm in sms}
    steady = statistics.pstdev(statistics.mean(ratios[sm]) for sm in sms)
    rest = statistics.mean(statistics.pstdev(ratios[sm]) for sm in sms)
    last = statistics.mean(max(row[2] for row in run.values()) / of for run, of in zip(runs, of_launch))
    first = statistics.mean(min(row[2] for row in run.values()) / of for run, of in zip(runs, of_launch))
    return {"value": round(mean), "unit": "clk", "of SMs": round(steady, 4), "of launches": round(rest, 4), "first": round(first, 3), "last": round(last, 3)}


def shares(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Cycles in which each CTA, one on an SM, reads its share of device memory."""
    pool = device.allocate((256 if quick else 4096) * MIB)
    cases = [(1, 1, 1, 64), (1, 1, 4, 64), (1, 1, 16, 256)] if quick else [
        (ctas, stages, size, 16 * stages * size) for ctas in (1, 16, 64, 132) for stages, size in ((1, 1), (1, 4), (1, 8), (1, 16), (1, 32), (2, 8), (4, 4), (4, 8), (4, 16), (8, 4), (8, 16))]
    for ctas, stages, size, total in cases:
        kernel = device.load(streamed(stages, size << 10), 1024 + stages * (size << 10))
        runs = runs_of(device, kernel, ctas, 1, (total << 10, size << 10, total // size // stages), pool, (ctas * total) << 10, 1 if quick else 14, out)
        name = f"{ctas} CTAs, {stages} of {size} KiB in flight, {total} KiB each"
        yield {"name": name} | summary(runs)
    for ctas, threads, loads, total, apart in [] if quick else [(c, t, n, s, a) for c, t, n, s in ((132, 512, 4, 512), (128, 512, 4, 512), (132, 512, 2, 256), (128, 512, 8, 1024), (64, 512, 4, 512), (128, 1024, 4, 128)) for a in (False, True)]:
        kernel, size = device.load(loaded(loads)), threads * 16 * loads
        own, stride = (size, ctas * size) if apart else (total << 10, size)
        runs = runs_of(device, kernel, ctas, threads, (own, stride, (total << 10) // size), pool, (ctas * total) << 10, 14, out)
        name = f"{ctas} CTAs of {threads}, {loads} loads, {total} KiB each{', in turn' if apart else ''}"
        yield {"name": name} | summary(runs)
    device.free(pool)


def pieces_of(loads: int, piece: int) -> str:
    """CTAs that follow each other take turns in pieces of memory: %group of them share rows of as
    many pieces. The threads of a CTA load %count times `loads` times 16 bytes each."""
    per = piece // 16
    body = """  .reg .b64 %at, %t<4>, %i, %all, %row; .reg .b32 %b, %n, %k, %t, %g, %h, %w, %sm, %sum, %x; .reg .pred %p, %q;
  mov.u64 %t0, %globaltimer; mov.u64 %t1, %clock64; mov.u32 %b, %ctaid.x; cvt.u32.u64 %n, %count; mov.u32 %t, %tid.x; mov.u32 %w, %ntid.x; cvt.u32.u64 %g, %group;
  rem.u32 %h, %b, %g; div.u32 %x, %b, %g; mov.b32 %sum, 0; mov.u32 %k, 0;
"""
    body += f"  mul.wide.u32 %row, %g, {piece}; cvt.u64.u32 %i, %x; mul.lo.u64 %i, %i, %own; add.u64 %at, %from, %i; mul.wide.u32 %i, %h, {piece}; add.u64 %at, %at, %i;\n"
    body += f"  and.b32 %x, %t, {per - 1}; mul.wide.u32 %i, %x, 16; add.u64 %at, %at, %i; shr.u32 %x, %t, {per.bit_length() - 1}; cvt.u64.u32 %i, %x; mul.lo.u64 %i, %i, %row; add.u64 %at, %at, %i;\n"
    body += f"  shr.u32 %x, %w, {per.bit_length() - 1}; cvt.u64.u32 %i, %x; mul.lo.u64 %row, %row, %i;\n  .reg .b32 %y<{4 * loads}>;\nNEXT:\n"
    for load in range(loads):
        body += f"  ld.volatile.global.v4.b32 {{%y{4 * load}, %y{4 * load + 1}, %y{4 * load + 2}, %y{4 * load + 3}}}, [%at]; add.u64 %at, %at, %row;\n"
    body += "".join(f"  or.b32 %sum, %sum, %y{i};\n" for i in range(4 * loads))
    body += """  setp.eq.u32 %q, %sum, 0x7ffffff1; @%q trap; add.u32 %k, %k, 1; setp.lt.u32 %p, %k, %n; @%p bra NEXT;
  bar.sync 0; setp.ne.u32 %q, %t, 0; @%q bra END;
  mov.u64 %t2, %clock64; mov.u64 %t3, %globaltimer; mov.u32 %sm, %smid; cvt.u64.u32 %all, %sm;
  mul.wide.u32 %i, %b, 64; add.u64 %i, %i, %stamps; st.global.v2.u64 [%i], {%t0, %t3}; st.global.v2.u64 [%i+16], {%t1, %t2}; st.global.u64 [%i+32], %all;
END:
"""
    return ptx.kernel(["from", "own", "group", "count", "stamps"], "", body)


def pieces(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Cycles in which each CTA reads its share where CTAs take turns in pieces of memory."""
    pool = device.allocate((64 if quick else 2048) * MIB)
    for piece in (64, 4096) if quick else (64, 128, 256, 512, 2048):
        for group in (1, 8):
            for loads, total in ((4, 64),) if quick else ((2, 128), (4, 128), (4, 512), (8, 512)):
                kernel, ctas = device.load(pieces_of(loads, piece)), 128
                count = (total << 10) // (512 * 16 * loads)
                runs = runs_of(device, kernel, ctas, 512, (group * total << 10, group, count), pool, (ctas * total) << 10, 1 if quick else 10, out)
                yield {"name": f"pieces of {piece} bytes, {group} CTAs in turn, {loads} loads, {total} KiB each of {ctas}"} | summary(runs)
    device.free(pool)


def chase(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """The latency that each SM alone sees, of L2 and of device memory."""
    kernel = device.load(ptx.kernel(["from", "which", "count", "stamps"], """  .reg .b64 %at, %c<2>, %x, %i; .reg .b32 %sm, %k, %n, %w, %h; .reg .pred %q;
""", """  mov.u32 %sm, %smid; cvt.u32.u64 %w, %which; setp.ne.u32 %q, %sm, %w; @%q bra END; cvt.u32.u64 %n, %count;
  mov.u32 %k, 0; mov.u64 %x, 0; mov.u64 %c0, %clock64; mov.u32 %h, 12345;
LOOP: mad.lo.u32 %h, %h, 1664525, 1013904223; shr.u32 %w, %h, 16; mul.wide.u32 %i, %w, 128; add.u64 %at, %from, %i; add.u64 %at, %at, %x; ld.volatile.global.u64 %x, [%at];
  add.u32 %k, %k, 1; setp.lt.u32 %q, %k, %n; @%q bra LOOP;
  add.u64 %c0, %c0, %x; mov.u64 %c1, %clock64; sub.u64 %c1, %c1, %c0; st.global.u64 [%stamps], %c1;
END:
""", block=32))
    pool, count = device.allocate(264 * MIB), 8 if quick else 512
    for name in ("L2", "device memory"):
        each = {}
        for sm in range(device.sms()):
            base = pool + (8 * (sm % 32) * MIB if name != "L2" else 0)
            if name == "L2" and sm == 0:
                kernel(device.sms(), 32, base, sm, count, out)
            kernel(device.sms(), 32, base, sm, count, out)
            device.synchronize()
            each[sm] = device.read(out, 1)[0] / count
        yield {"name": f"a load from {name}, by SM", "value": round(statistics.mean(each.values()), 1), "unit": "clk", "deviation": round(statistics.pstdev(each.values()), 2),
               "least, most": [round(min(each.values()), 1), round(max(each.values()), 1)]}
    device.free(pool)
