"""Steps of CTAs that load and meet at a barrier, and rings of boxes; CTAs share rows of memory."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ptx
from cuda import Device
from first_reads import MIB, runs_of_words, summary

CTAS, THREADS, IN_TURN = 128, 512, 8
STAMPS = """  mov.u64 %t2, %clock64; mov.u64 %t3, %globaltimer; mov.u32 %sm, %smid; cvt.u64.u32 %all, %sm;
  mul.wide.u32 %i, %b, 64; add.u64 %i, %i, %stamps; st.global.v2.u64 [%i], {%t0, %t3}; st.global.v2.u64 [%i+16], {%t1, %t2}; st.global.u64 [%i+32], %all;
"""


def stepped(loads: int, piece: int, barrier: bool, ahead: int) -> str:
    """%group CTAs take turns in pieces of memory. The loads of a step are asked for `ahead` steps
    before, and a barrier may end each step."""
    per, sets = piece // 16, ahead + 1
    body = """  .reg .b64 %at, %t<4>, %i, %all, %row; .reg .b32 %b, %n, %k, %t, %g, %h, %w, %sm, %sum, %x; .reg .pred %p, %q;
  mov.u64 %t0, %globaltimer; mov.u64 %t1, %clock64; mov.u32 %b, %ctaid.x; cvt.u32.u64 %n, %count; mov.u32 %t, %tid.x; mov.u32 %w, %ntid.x; cvt.u32.u64 %g, %group;
  rem.u32 %h, %b, %g; div.u32 %x, %b, %g; mov.b32 %sum, 0; mov.u32 %k, 0;
"""
    body += f"  mul.wide.u32 %row, %g, {piece}; cvt.u64.u32 %i, %x; mul.lo.u64 %i, %i, %own; add.u64 %at, %from, %i; mul.wide.u32 %i, %h, {piece}; add.u64 %at, %at, %i;\n"
    body += f"  and.b32 %x, %t, {per - 1}; mul.wide.u32 %i, %x, 16; add.u64 %at, %at, %i; shr.u32 %x, %t, {per.bit_length() - 1}; cvt.u64.u32 %i, %x; mul.lo.u64 %i, %i, %row; add.u64 %at, %at, %i;\n"
    body += f"  shr.u32 %x, %w, {per.bit_length() - 1}; cvt.u64.u32 %i, %x; mul.lo.u64 %row, %row, %i;\n" + "".join(f"  .reg .b32 %y{s}_<{4 * loads}>;\n" for s in range(sets))

    def ask(of: int) -> str:
        words = [", ".join(f"%y{of}_{4 * load + i}" for i in range(4)) for load in range(loads)]
        return "".join(f"  ld.volatile.global.v4.b32 {{{word}}}, [%at]; add.u64 %at, %at, %row;\n" for word in words)

    body += "".join(ask(s) for s in range(ahead)) + "NEXT:\n"
    for s in range(sets):
        body += ask((s + ahead) % sets) + "".join(f"  or.b32 %sum, %sum, %y{s}_{i};\n" for i in range(4 * loads))
        body += "  setp.eq.u32 %q, %sum, 0x7ffffff1; @%q trap;\n" + "  bar.sync 0;\n" * barrier
    body += f"  add.u32 %k, %k, {sets}; setp.lt.u32 %p, %k, %n; @%p bra NEXT;\n  bar.sync 0; setp.ne.u32 %q, %t, 0; @%q bra END;\n{STAMPS}END:\n"
    return ptx.kernel(["from", "own", "group", "count", "stamps"], "", body, block=THREADS)


def boxed(stages: int, rows: int, beside: int) -> str:
    """One thread copies boxes of `rows` rows of 128 bytes, `beside` of them beside each other for a
    stage."""
    size = rows * 128 * beside

    def ask(stage: int) -> str:
        to = 1024 + stage * size
        copies = "".join(f" add.u32 %cc, %c0, {64 * box}; cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                         f"[%bar+{to + box * rows * 128}], [%map, {{%cc, %r}}], [%bar+{8 * stage}];" for box in range(beside))
        return f"  mbarrier.arrive.expect_tx.shared.b64 _, [%bar+{8 * stage}], {size};{copies} add.u32 %r, %r, {rows};"

    waits = [f"{name}{i}: mbarrier.try_wait.parity.shared.b64 %q, [%bar+{8 * i}], %ph; @!%q bra {name}{i};" for name in "WL" for i in range(stages)]
    text = ptx.kernel(["first", "own", "group", "count", "stamps"], "  .reg .b64 %map, %t<4>, %i, %all; .reg .b32 %b, %n, %bar, %ph, %sm, %r, %c0, %cc, %g, %x; .reg .pred %p, %q;\n", "\n".join([
        f"""  mov.u64 %t0, %globaltimer; mov.u64 %t1, %clock64; mov.u32 %b, %ctaid.x; cvt.u32.u64 %n, %count; mov.u32 %bar, window; cvt.u32.u64 %g, %group;
  mov.u64 %map, p_map; cvta.param.u64 %map, %map; rem.u32 %c0, %b, %g; mul.lo.u32 %c0, %c0, {64 * beside}; div.u32 %x, %b, %g; cvt.u32.u64 %r, %own; mul.lo.u32 %r, %r, %x;
  cvt.u32.u64 %cc, %first; add.u32 %r, %r, %cc; mov.u32 %ph, 0;""",
        *[f"  mbarrier.init.shared.b64 [%bar+{8 * i}], 1;" for i in range(stages)], "  fence.mbarrier_init.release.cluster; fence.proxy.async;", *[ask(i) for i in range(stages)],
        "NEXT: sub.u32 %n, %n, 1; setp.eq.u32 %p, %n, 0; @%p bra LAST;", *[line for i in range(stages) for line in (waits[i], ask(i))],
        "  xor.b32 %ph, %ph, 1; bra NEXT;\nLAST:", *waits[stages:], STAMPS]), block=32)
    return text.replace("k(", "k(.param .align 64 .b8 p_map[128], ", 1)


def measured(device: Device, launch: Callable[[int, Any], None], stamps: int, quick: bool) -> dict[str, Any]:
    """Cycles of CTAs, and microseconds of a launch of a graph of ten on other memory each."""
    runs = []
    for i in range(2 if quick else 13):
        launch(i, None)
        device.synchronize()
        runs.append(runs_of_words(device.read(stamps, 8 * CTAS), CTAS))
    row = summary(runs[1:])
    replay = device.graph(lambda stream: [launch(i, stream) for i in range(2 if quick else 10)])
    times = sorted(device.seconds(replay) for _ in range(1 if quick else 7))
    return row | {"us": round(times[len(times) // 2] / (2 if quick else 10) * 1e6, 3)}


STEPS = ((4, 256, False, 1, 512), (4, 256, True, 1, 512), (4, 256, True, 0, 512), (2, 256, True, 1, 512), (2, 256, False, 1, 512), (2, 256, True, 1, 128), (2, 256, False, 1, 128),
         (2, 64, True, 1, 128), (2, 128, True, 1, 128), (4, 64, True, 1, 512), (4, 256, True, 1, 2048), (1, 64, True, 1, 128))
BOXES = ((4, 64, 2, 2048), (8, 64, 2, 2048), (4, 64, 2, 512), (8, 64, 1, 512), (2, 64, 2, 512))


def steps(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    size = (128 if quick else 3072) * MIB
    pool = device.allocate(size)
    for stages, rows, beside, total in ((2, 64, 2, 64),) if quick else BOXES:
        kernel = device.load(boxed(stages, rows, beside), 1024 + stages * rows * 128 * beside)
        pitch, own = IN_TURN * 128 * beside, (total << 10) // (128 * beside)
        tensor = device.tensor_map(pool, size // pitch, IN_TURN * 64 * beside, rows, 64)
        each, count = CTAS // IN_TURN * own, own // rows // stages

        def copy(i: int, stream: Any) -> None:
            kernel(CTAS, 1, tensor, i % (size // pitch // each) * each, own, IN_TURN, count, out, stream=stream)

        yield {"name": f"boxes of {rows} rows of 128 bytes, {beside} beside each other, {stages} stages, {total} KiB each"} | measured(device, copy, out, quick)
    for loads, piece, barrier, ahead, total in ((2, 256, True, 1, 64),) if quick else STEPS:
        kernel, whole, count = device.load(stepped(loads, piece, barrier, ahead)), CTAS * total << 10, (total << 10) // (THREADS * 16 * loads)

        def load(i: int, stream: Any) -> None:
            kernel(CTAS, THREADS, pool + i % (size // whole) * whole, IN_TURN * total << 10, IN_TURN, count, out, stream=stream)

        name = f"steps of {loads} loads, pieces of {piece}, {'a barrier each' if barrier else 'no barrier'}, {ahead} ahead, {total} KiB each"
        yield {"name": name} | measured(device, load, out, quick)
    device.free(pool)
