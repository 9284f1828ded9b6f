"""The contents that L2 keeps: sweeps over more and more memory, one after the other, and chases of
one thread."""
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import memory
import ptx
from cuda import Device
from queued import queued

MIB = 1 << 20
CHUNK = 2048  # bytes that a warp reads at a time
SWEEPS = 8

# Thread t of warp w reads chunk (i * factor + shift) mod chunks for i = w, w + warps, ...; with
# `apart` a CTA reads all of them, and begins that many chunks behind the CTA before.
SWEEP = ptx.kernel(["out", "from", "chunks", "factor", "shift", "apart"], "", """
  .reg .b32 %t, %b, %d, %g, %i, %j, %n, %step, %f, %s, %ap, %sink, %x<16>; .reg .b64 %at, %w; .reg .pred %q;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %d, %ntid.x; mov.u32 %g, %nctaid.x; mov.b32 %sink, 0;
  cvt.u32.u64 %n, %chunks; cvt.u32.u64 %f, %factor; cvt.u32.u64 %s, %shift; cvt.u32.u64 %ap, %apart;
  shr.u32 %step, %d, 5; shr.u32 %i, %t, 5; and.b32 %t, %t, 31; mul.wide.u32 %w, %t, 16; add.u64 %from, %from, %w;
  mad.lo.u32 %s, %b, %ap, %s; setp.ne.u32 %q, %ap, 0; @%q bra LOOP;
  mad.lo.u32 %i, %b, %step, %i; mul.lo.u32 %step, %step, %g;
LOOP:
  setp.ge.u32 %q, %i, %n; @%q bra END;
  mad.lo.u32 %j, %i, %f, %s; rem.u32 %j, %j, %n; mul.wide.u32 %at, %j, 2048; add.u64 %at, %at, %from;
  ld.global.cg.v4.b32 {%x0, %x1, %x2, %x3}, [%at]; ld.global.cg.v4.b32 {%x4, %x5, %x6, %x7}, [%at+512];
  ld.global.cg.v4.b32 {%x8, %x9, %x10, %x11}, [%at+1024]; ld.global.cg.v4.b32 {%x12, %x13, %x14, %x15}, [%at+1536];
""" + "".join(f"  xor.b32 %sink, %sink, %x{i};\n" for i in range(16)) + """
  add.u32 %i, %i, %step; bra LOOP;
END:
  setp.eq.u32 %q, %sink, 0x7fffffff; @%q st.global.b32 [%out], %sink;""").replace(".entry k(", ".entry sweep(")


def coprime(near: int, count: int) -> int:
    while math.gcd(near, count) > 1:
        near += 1
    return near


def orders(count: int, sms: int) -> dict[str, list[tuple[int, int, int]]]:
    """(factor, shift, apart) of each sweep."""
    factors = [coprime(f, count) for f in (1, 4099, 2503, 6007, 3301, 7001, 1709, 5303)]
    return {"in one order": [(1, 0, 0)] * SWEEPS,
            "in one order, by other SMs each time": [(1, count * i * 3 // 8 % count, 0) for i in range(SWEEPS)],
            "in other orders each time": [(f, 0, 0) for f in factors],
            "all by each multiprocessor": [(1, 0, count // sms)] * SWEEPS}


def sweeps(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """TB/s of each of eight sweeps in a row; `ncu -k sweep --metrics dram__bytes_read.sum` says
    what missed."""
    sms = device.sms()
    kernel, bulk = device.load(SWEEP, name="sweep"), device.load(
        memory.ring(memory.BULK).replace(".entry k(", ".entry sweep("), shared=200 * 1024, name="sweep")
    sizes = (2, 4) if quick else (20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 72, 80, 96, 120)
    pool = device.allocate(sizes[-1] * MIB)
    for size in sizes:
        count = size * MIB // CHUNK
        for name, order in orders(count, sms).items():
            works = [lambda o=o: kernel(sms * 2, 1024, out, pool, count, *o) for o in order]
            moved = size * MIB * (sms * 2 if order[0][2] else 1)
            yield row(f"{size} MiB {name}", moved, queued(device, works, quick, lambda: kernel(sms * 2, 1024, out, pool, 0, 1, 0, 0)))
        run = size * MIB // sms // 4096 * 4096
        stages = min(32, run // 4096)
        works = [lambda: bulk(sms, 32, out, pool, 4096, stages, run // 4096, run, run)] * SWEEPS
        yield row(f"{run * sms / MIB:.2f} MiB by bulk copies of 4 KiB", run * sms,
                  queued(device, works, quick, lambda: bulk(sms, 32, out, pool, 128, 1, 1, 128, run)))
    device.free(pool)


def row(name: str, moved: int, seconds: list[float]) -> dict[str, Any]:
    rates = [round(moved / max(s, 1e-9) / 1e12, 2) for s in seconds]
    return {"name": f"sweeps over {name}: the last four", "value": round(sum(rates[-4:]) / 4, 2), "unit": "TB/s", "each": rates}


CHASE = """
  .reg .b32 %i, %n, %s, %j, %m, %c0, %c1, %dl, %o; .reg .b64 %at, %to, %t0, %t1, %st, %v; .reg .pred %q, %w;
  cvt.u32.u64 %n, %count; cvt.u32.u64 %s, %step; cvt.u32.u64 %m, %mask; mov.u32 %j, 0; mov.u32 %i, 0; mov.u32 %o, 0;
  mov.u64 %t0, %clock64; mov.u32 %c0, %clock;
AGAIN:
  mul.wide.u32 %at, %j, 1; mul.lo.u64 %at, %at, %stride; mul.lo.u32 %dl, %j, 0x9E3779B1; shr.u32 %dl, %dl, 8; and.b32 %dl, %dl, %m;
  cvt.u64.u32 %st, %dl; add.u64 %at, %at, %st; add.u64 %at, %at, %from;
@LOAD@
  mov.u32 %c1, %clock; sub.u32 %dl, %c1, %c0; mov.u32 %c0, %c1; and.b32 %o, %i, 8191; mul.wide.u32 %to, %o, 4; add.u64 %to, %to, %out;
  st.global.b32 [%to+16], %dl;
  add.u32 %j, %j, %s; setp.ge.u32 %q, %j, %n; @%q sub.u32 %j, %j, %n;
  add.u32 %i, %i, 1; cvt.u64.u32 %st, %i; setp.eq.u64 %w, %st, %mark; @%w mov.u64 %t0, %clock64;
  setp.lt.u64 %q, %st, %steps; @%q bra AGAIN;
  mov.u64 %t1, %clock64; sub.u64 %t1, %t1, %t0; st.global.u64 [%out], %t1;"""
LOADS = {"load": "  ld.volatile.global.b32 %dl, [%at]; add.u32 %j, %j, %dl;",  # what it reads is 0
         "bulk copy": """  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 128;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%buf], [%at], 128, [%bar];
WAIT: mbarrier.try_wait.parity.shared.b64 %q, [%bar], %ph; @!%q bra WAIT; xor.b32 %ph, %ph, 1;"""}


def chaser(device: Device, how: str) -> Any:
    """One thread reads `steps` lines one after the other, `stride` apart and 128-byte lines under
    `mask` within; the clocks from step `mark` on, and those of each of the last 8192."""
    setup = "" if how == "load" else """
  .reg .b32 %bar, %buf, %ph; mov.u32 %buf, window; add.u32 %bar, %buf, 128; mov.b32 %ph, 0;
  mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;"""
    body = setup + CHASE.replace("@LOAD@", LOADS[how])
    return device.load(ptx.kernel(["out", "from", "count", "stride", "mask", "step", "mark", "steps"], "", body), shared=1024)


def chased(device: Device, out: int, kernel: Any, memory_: int, count: int, stride: int, mask: int) -> dict[str, Any]:
    """All lines twice: the mean of the second time, and parts of its last 8192."""
    kernel(1, 1, out, memory_, count, stride, mask, coprime(int(count * 0.618) or 1, count), count, 2 * count)
    device.synchronize()
    total = device.read(out, 1)[0]
    last = min(count, 8192)
    words = device.read(out + 16, 4096)
    every = [word >> 32 * half & 0xFFFFFFFF for word in words for half in (0, 1)]
    of_last = sorted(every[i % 8192] for i in range(2 * count - last, 2 * count))
    return {"value": round(total / count, 1), "unit": "clk",
            "least, twentieths 1, 5, 10, 15, 19, most": [of_last[min(last - 1, last * p // 20)] for p in (0, 1, 5, 10, 15, 19, 20)]}


def reach(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """One thread that reads all lines of a buffer again."""
    sizes = (1, 2) if quick else (4, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 64)
    pool = device.allocate(sizes[-1] * MIB)
    kernel = chaser(device, "load")
    for size in sizes:
        yield {"name": f"latency of a load, {size} MiB again", **chased(device, out, kernel, pool, size * MIB // 128, 128, 0)}
    device.free(pool)


PAGE = 2 * MIB


def translations(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """One thread that reads a line of each page of 2 MiB again: what L2 has, but maybe no
    translations."""
    counts = (4, 16) if quick else tuple(1 << i for i in range(1, 16))
    pool = device.allocate(counts[-1] * PAGE)
    for how in LOADS:
        kernel = chaser(device, how)
        for count in counts:
            yield {"name": f"latency of a {how}, a line of each of {count} pages of 2 MiB again",
                   **chased(device, out, kernel, pool, count, PAGE, PAGE - 128)}
    device.free(pool)
