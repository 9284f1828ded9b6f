"""Shared memory's neighbours: L2, device memory, the copy engine, mbarriers."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device, Failure, Kernel
from instructions import difference, span

MIB = 1 << 20

STREAM = """  .reg .b32 %t, %b, %d, %g; .reg .b64 %i, %step, %at, %to, %end; .reg .pred %q;
  .reg .b32 %x<16>; .reg .b32 %sink;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %d, %ntid.x; mov.u32 %g, %nctaid.x;
  mad.lo.u32 %t, %b, %d, %t; mul.wide.u32 %i, %t, 16; mul.lo.u32 %g, %g, %d; mul.wide.u32 %step, %g, 16;
  mov.b32 %sink, 0;
AGAIN:
  add.u64 %at, %from, %i; add.u64 %to, %into, %i; add.u64 %end, %from, %size;
LOOP:
"""


def stream(load: str, store: bool) -> str:
    """Every thread moves 16 bytes at a stride of the grid, four at a time, `times` times over."""
    quads = [f"{{%x{4 * i}, %x{4 * i + 1}, %x{4 * i + 2}, %x{4 * i + 3}}}" for i in range(4)]
    body = "".join(f"  {load}.v4.b32 {q}, [%at]; add.u64 %at, %at, %step;\n" for q in quads)
    if store:
        body += "".join(f"  st.global.v4.b32 [%to], {q}; add.u64 %to, %to, %step;\n" for q in quads)
    else:
        body += "".join(f"  xor.b32 %sink, %sink, %x{i};\n" for i in range(16))
    body += """  setp.lt.u64 %q, %at, %end; @%q bra LOOP;
  sub.u64 %times, %times, 1; setp.ne.u64 %q, %times, 0; @%q bra AGAIN;
  setp.eq.u32 %q, %sink, 0x7fffffff; @%q st.global.b32 [%into], %sink;"""
    return ptx.kernel(["from", "into", "size", "times"], "", STREAM + body)


def bandwidth(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Measures the bandwidth of the whole chip, by threads."""
    sms = device.sms()
    cases = [("L2 read", 16 * MIB, "ld.global.cg", False), ("L2 read", 32 * MIB, "ld.global.cg", False),
             ("device memory read", 2048 * MIB, "ld.global.nc", False),
             ("device memory copy", 1024 * MIB, "ld.global.nc", True), ("L2 copy", 8 * MIB, "ld.global.cg", True)]
    for name, size, load, store in cases:
        if quick:
            size = min(size, 4 * MIB)
        for threads, blocks in ((256, 8), (1024, 2)):
            grid = sms * blocks
            unit = grid * threads * 64
            size_here = max(1, size // unit) * unit  # whole steps of the grid
            source, sink = device.allocate(size_here), device.allocate(size_here if store else 64)
            kernel = device.load(stream(load, store))
            times = 1 if size > 64 * MIB else 2 if quick else 50
            kernel(grid, threads, source, sink, size_here, times)
            device.synchronize()
            best = min(device.seconds(lambda: kernel(grid, threads, source, sink, size_here, times))
                       for _ in range(1 if quick else 5))
            yield {"name": f"{name}, {size_here / MIB:.0f} MiB, {blocks} x {threads}",
                   "value": round(size_here * times * (2 if store else 1) / best / 1e12, 3), "unit": "TB/s"}
            device.free(source)
            device.free(sink)


RING = """  .reg .b32 %bar, %buf, %k, %ph, %slot, %m, %o, %c32, %t0, %rows; .reg .b64 %a, %lim; .reg .pred %q, %done;
  mov.u32 %t0, %tid.x; setp.ne.u32 %q, %t0, 0; @%q bra END;
  mov.u32 %buf, window; cvt.u32.u64 %c32, %bytes;
"""


def ring(load: str, cluster: int = 1) -> str:
    """One thread keeps `stages` copies of `bytes` in flight: `count` copies, from its own run of
    memory of `span` bytes, or that of its cluster, over and over. Stores the clock's two readings.
    Barriers lie behind the buffers."""
    meet = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" if cluster > 1 else ""
    return ptx.kernel(["out", "from", "bytes", "stages", "count", "span", "apart"],
                      """  .reg .b32 %stg, %cnt, %it, %barrier, %dst, %bid, %x0, %row; .reg .b64 %t, %begin, %end, %base, %w, %off;
""", RING + f"""
  cvt.u32.u64 %stg, %stages; cvt.u32.u64 %cnt, %count;
  mul.lo.u32 %bar, %stg, %c32; add.u32 %bar, %bar, %buf;
  mov.u32 %it, 0;
INIT:
  mad.lo.u32 %barrier, %it, 8, %bar; mbarrier.init.shared.b64 [%barrier], 1;
  add.u32 %it, %it, 1; setp.lt.u32 %q, %it, %stg; @%q bra INIT;
  fence.mbarrier_init.release.cluster;
  fence.proxy.async; {meet}
  mov.u32 %bid, %ctaid.x; div.u32 %x0, %bid, {cluster}; mul.wide.u32 %base, %x0, 1; mul.lo.u64 %base, %base, %apart; add.u64 %base, %base, %from;
  mov.u64 %off, 0;
  mov.u64 %begin, %clock64;
  mov.u32 %it, 0; mov.u32 %slot, 0; mov.u32 %ph, 0;
FILL:
  mad.lo.u32 %barrier, %it, 8, %bar; mad.lo.u32 %dst, %it, %c32, %buf;
  mbarrier.arrive.expect_tx.shared.b64 _, [%barrier], %c32;
  add.u64 %a, %base, %off; cvt.u32.u64 %row, %off; shr.u32 %row, %row, 7;
{load}
  add.u64 %off, %off, %bytes; setp.ge.u64 %q, %off, %span; selp.b64 %off, 0, %off, %q;
  add.u32 %it, %it, 1; setp.lt.u32 %q, %it, %stg; @%q bra FILL;
  mov.u32 %k, 0;
LOOP:
  mad.lo.u32 %barrier, %slot, 8, %bar; mad.lo.u32 %dst, %slot, %c32, %buf;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %done, [%barrier], %ph;
  @!%done bra WAIT;
  setp.ge.u32 %q, %it, %cnt; @%q bra SKIP;
  mbarrier.arrive.expect_tx.shared.b64 _, [%barrier], %c32;
  add.u64 %a, %base, %off; cvt.u32.u64 %row, %off; shr.u32 %row, %row, 7;
{load}
  add.u64 %off, %off, %bytes; setp.ge.u64 %q, %off, %span; selp.b64 %off, 0, %off, %q;
  add.u32 %it, %it, 1;
SKIP:
  add.u32 %slot, %slot, 1; setp.eq.u32 %q, %slot, %stg; selp.b32 %slot, 0, %slot, %q;
  @%q xor.b32 %ph, %ph, 1;
  add.u32 %k, %k, 1; setp.lt.u32 %q, %k, %cnt; @%q bra LOOP;
  mov.u64 %end, %clock64;
  mul.wide.u32 %w, %bid, 16; add.u64 %w, %w, %out; st.global.v2.u64 [%w], {{%begin, %end}}; {meet}
END:""", cluster=cluster)


BULK = "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%dst], [%a], %c32, [%barrier];"


def copies(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """cp.async.bulk: the latency of one, cold and from L2, and the rate by size and copies in
    flight."""
    sms = device.sms()
    kernel = device.load(ring(BULK), shared=200 * 1024)
    memory = device.allocate(sms * 2 * MIB)
    scratch = device.allocate(80 * MIB)
    flush = device.load(stream("ld.global.cg", False))
    for size in (256, 1024, 4096, 16384, 32768):
        for name in ("device memory", "L2"):
            if name == "device memory":
                flush(sms, 1024, scratch, out, 64 * MIB, 2)
            kernel(1, 32, out, memory, size, 1, 1, size, 0)
            device.synchronize()
            yield {"name": f"latency of a bulk copy of {size} B from {name}", "value": span(device.read(out, 2), 1),
                   "unit": "clk"}
    for size, stages in ((1024, 8), (1024, 32), (2048, 16), (4096, 4), (4096, 8), (4096, 16), (4096, 32),
                         (8192, 8), (16384, 2), (16384, 4), (16384, 8), (32768, 4)):
        for name, run in (("device memory", 2 * MIB), ("L2", 128 << 10)):
            count = run // size * (1 if name == "device memory" else 1 if quick else 64)
            if quick:
                count = min(count, 64)
            kernel(sms, 32, out, memory, size, stages, count, run, run)
            device.synchronize()
            if name == "device memory":
                flush(sms, 1024, scratch, out, 64 * MIB, 2)
                device.synchronize()
            seconds = device.seconds(lambda: kernel(sms, 32, out, memory, size, stages, count, run, run))
            words = device.read(out, 2 * sms)
            spans = sorted(words[2 * i + 1] - words[2 * i] for i in range(sms))
            clocks = sum(spans) / sms
            yield {"name": f"bulk copies of {size} B, {stages} in flight, from {name}",
                   "value": round(size * count / clocks, 2), "unit": "B/clk/SM",
                   "of the fastest, a quarter, half, three quarters, the slowest":
                       [round(size * count / spans[i * (sms - 1) // 4], 2) for i in range(5)],
                   "TB/s": round(size * count * sms / seconds / 1e12, 3)}
    kernel(1, 32, out, memory, 16384, 8, 64 if quick else 2048, 131072, 0)
    device.synchronize()
    yield {"name": "bulk copies of 16384 B, 8 in flight, from L2, one SM alone",
           "value": round(16384 * (64 if quick else 2048) / span(device.read(out, 2), 1), 2), "unit": "B/clk/SM"}


def multicast_ring(cluster: int) -> str:
    """Each CTA copies its part to all. One thread waits for stages and tells all CTAs that they are
    free, another fills those that all CTAs have waited for: otherwise bytes of a round could count
    for the one before. The first stores the clock's readings."""
    tell = "".join(f"  mapa.shared::cluster.u32 %remote, %there, {rank}; "
                   "mbarrier.arrive.shared::cluster.b64 _, [%remote];\n" for rank in range(cluster))
    meet = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;"
    return ptx.kernel(["out", "from", "bytes", "stages", "count", "span", "apart"], "", f"""
  .reg .b32 %t, %buf, %c32, %stg, %cnt, %full, %free, %here, %there, %remote, %i, %k, %slot, %ph, %rank, %part, %at, %to, %bid, %x0;
  .reg .b64 %begin, %end, %base, %off, %of, %start, %w; .reg .b16 %all; .reg .pred %q, %done, %first;
  mov.u32 %t, %tid.x; mov.u32 %buf, window; cvt.u32.u64 %c32, %bytes; cvt.u32.u64 %stg, %stages; cvt.u32.u64 %cnt, %count;
  mad.lo.u32 %full, %stg, %c32, %buf; mad.lo.u32 %free, %stg, 8, %full; mov.b16 %all, {(1 << cluster) - 1};
  mov.u32 %rank, %cluster_ctarank; div.u32 %part, %c32, {cluster}; mul.lo.u32 %at, %rank, %part; cvt.u64.u32 %start, %at;
  mov.u32 %bid, %ctaid.x; div.u32 %x0, %bid, {cluster}; cvt.u64.u32 %base, %x0; mul.lo.u64 %base, %base, %apart;
  add.u64 %base, %base, %from; add.u64 %base, %base, %start;
  setp.ne.u32 %first, %t, 0; @%first bra READY;
  mov.u32 %i, 0;
INIT:
  mad.lo.u32 %here, %i, 8, %full; mbarrier.init.shared.b64 [%here], 1;
  mad.lo.u32 %there, %i, 8, %free; mbarrier.init.shared.b64 [%there], {cluster};
  add.u32 %i, %i, 1; setp.lt.u32 %q, %i, %stg; @%q bra INIT;
  fence.mbarrier_init.release.cluster; fence.proxy.async;
READY:
  {meet}
  mov.u64 %begin, %clock64; mov.u64 %off, 0; mov.u32 %k, 0; mov.u32 %slot, 0; mov.u32 %ph, 0;
  setp.eq.u32 %q, %t, 0; @%q bra FILL;
  setp.ne.u32 %q, %t, 32; @%q bra END;
TAKE:
  mad.lo.u32 %here, %slot, 8, %full; mad.lo.u32 %there, %slot, 8, %free;
FULL: mbarrier.try_wait.parity.shared.b64 %done, [%here], %ph; @!%done bra FULL;
{tell}
  add.u32 %slot, %slot, 1; setp.eq.u32 %q, %slot, %stg; selp.b32 %slot, 0, %slot, %q; @%q xor.b32 %ph, %ph, 1;
  add.u32 %k, %k, 1; setp.lt.u32 %q, %k, %cnt; @%q bra TAKE;
  mov.u64 %end, %clock64;
  mul.wide.u32 %w, %bid, 16; add.u64 %w, %w, %out; st.global.v2.u64 [%w], {{%begin, %end}}; bra END;
FILL:
  mad.lo.u32 %here, %slot, 8, %full; mad.lo.u32 %there, %slot, 8, %free; mad.lo.u32 %to, %slot, %c32, %buf; add.u32 %to, %to, %at;
  setp.lt.u32 %q, %k, %stg; @%q bra EMPTY;
WAIT: mbarrier.try_wait.parity.shared.b64 %done, [%there], %ph; @!%done bra WAIT;
EMPTY:
  mbarrier.arrive.expect_tx.shared.b64 _, [%here], %c32; add.u64 %of, %base, %off;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%to], [%of], %part, [%here], %all;
  add.u64 %off, %off, %bytes; setp.ge.u64 %q, %off, %span; selp.b64 %off, 0, %off, %q;
  add.u32 %slot, %slot, 1; setp.eq.u32 %q, %slot, %stg; selp.b32 %slot, 0, %slot, %q;
  setp.gt.u32 %done, %k, %stg; and.pred %q, %q, %done; @%q xor.b32 %ph, %ph, 1;
  add.u32 %k, %k, 1; setp.lt.u32 %q, %k, %cnt; @%q bra FILL;
END:
  {meet}""", cluster=cluster)


def multicast(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """CTAs of a cluster that all want the same bytes from L2: each copies all of them, or its part
    to all. Clusters of 4 may find room on 124 SMs alone. Then 31 of them run at a time, and no more
    are launched."""
    sms = device.sms()
    run, count = 128 << 10, 64 if quick else 512
    memory = device.allocate(sms * run)
    for cluster in (2, 4):
        for how, code in (("copied by each", ring(BULK, cluster)), ("multicast", multicast_ring(cluster))):
            kernel = device.load(code, shared=200 * 1024)
            for size, stages in ((16384, 8), (32768, 4), (65536, 3)):
                grid = (sms - 8 if cluster > 2 else sms) // cluster * cluster
                for _ in range(2):  # the first brings it into L2
                    kernel(grid, 64, out, memory, size, stages, count, run, run)
                device.synchronize()
                words = device.read(out, 2 * grid)
                clocks = sum(words[2 * i + 1] - words[2 * i] for i in range(grid)) / grid
                yield {"name": f"{size} B for clusters of {cluster}, {how}, {stages} in flight, from L2",
                       "value": round(size * count / clocks, 2), "unit": "B/clk/SM", "sms": grid}


def box_kernel(device: Device) -> Kernel:
    """A ring of cp.async.bulk.tensor from a column of 64 bf16; its offsets are rows of the
    matrix."""
    tensor = "  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%dst], [%map, {0, %row}], [%barrier];"
    code = ring("  { .reg .b32 %zero; mov.b32 %zero, 0;\n" + tensor.replace("{0,", "{%zero,") + "\n  }")
    code = code.replace(".param .u64 p_from", ".param .align 64 .b8 p_from[128]")
    code = code.replace("ld.param.u64 %from, [p_from];",
                        "mov.b64 %from, 0; .reg .b64 %map; mov.b64 %map, p_from; cvta.param.u64 %map, %map;")
    return device.load(code, shared=200 * 1024)


def boxes(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """cp.async.bulk.tensor of rows of 128 bytes, by the number of rows."""
    sms = device.sms()
    rows = 1 << 14
    memory = device.allocate(128 * rows)  # a column of 64 bf16, which stays in L2
    kernel = box_kernel(device)
    for box, stages in ((8, 16), (16, 16), (32, 16), (64, 16), (128, 8), (256, 4)):
        tensor_map = device.tensor_map(memory, rows, 64, box, 64)
        size = 128 * box
        count = 64 if quick else 4096 * 8 // box
        kernel(1, 32, out, tensor_map, size, 1, 1, size, 0)
        kernel(1, 32, out, tensor_map, size, 1, 1, size, 0)
        device.synchronize()
        yield {"name": f"latency of a box of {box} rows of 128 B from L2", "value": span(device.read(out, 2), 1),
               "unit": "clk"}
        kernel(sms, 32, out, tensor_map, size, stages, count, 64 << 10, 0)
        device.synchronize()
        words = device.read(out, 2 * sms)
        clocks = sum(words[2 * i + 1] - words[2 * i] for i in range(sms)) / sms
        yield {"name": f"boxes of {box} rows of 128 B, {stages} in flight, from L2",
               "value": round(size * count / clocks, 2), "unit": "B/clk/SM"}


def barriers(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Measures what a hand-over of one warp or two costs."""
    base = "  .reg .b32 %a, %c, %ph; .reg .pred %q, %odd; .reg .b64 %s;\n  mov.u32 %a, window; add.u32 %c, %a, 8;\n"
    init = base + """  setp.eq.u32 %q, %thread, 0;
  @%q mbarrier.init.shared.b64 [%a], 1; @%q mbarrier.init.shared.b64 [%c], 1;
  fence.mbarrier_init.release.cluster; mov.b32 %ph, 0; setp.ge.u32 %odd, %thread, 32; setp.eq.u32 %first, %lane, 0;
"""
    own = """  @%first mbarrier.arrive.shared.b64 %s, [%a];
W: mbarrier.try_wait.parity.shared.b64 %q, [%a], %ph; @!%q bra W; xor.b32 %ph, %ph, 1;"""
    ping = """  @%odd bra ODD;
  @%first mbarrier.arrive.shared.b64 %s, [%a];
W0: mbarrier.try_wait.parity.shared.b64 %q, [%c], %ph; @!%q bra W0; bra BOTH;
ODD:
W1: mbarrier.try_wait.parity.shared.b64 %q, [%a], %ph; @!%q bra W1;
  @%first mbarrier.arrive.shared.b64 %s, [%c];
BOTH: xor.b32 %ph, %ph, 1;"""
    cases = [("mbarrier arrive and wait, own", init, own, 1, 1),
             ("mbarrier hand-over to another warp", init, ping, 2, 2),
             ("fence.proxy.async after st.shared", base, "  st.volatile.shared.b32 [%a], %a; fence.proxy.async;", 1, 1),
             ("fence.proxy.async", base, "  fence.proxy.async;", 1, 1),
             ("fence.proxy.async.shared::cta after st.shared", base,
              "  st.volatile.shared.b32 [%a], %a; fence.proxy.async.shared::cta;", 1, 1),
             ("fence.proxy.async.shared::cta", base, "  fence.proxy.async.shared::cta;", 1, 1),
             ("bar.sync of 2 warps", base, "  bar.sync 1, 64;", 2, 1),
             ("bar.sync of 4 warps", base, "  bar.sync 1, 128;", 4, 1),
             ("bar.sync of 8 warps", base, "  bar.sync 1, 256;", 8, 1),
             ("bar.sync of 16 warps", base, "  bar.sync 1, 512;", 16, 1),
             ("membar.gl", base, "  membar.gl;", 1, 1)]
    for name, setup, body, warps, parts in cases:
        kernel = device.load(ptx.timed(setup, body, []), shared=1024)
        times = []
        for repeats in (rounds * 8, rounds * 24):
            kernel(1, 32 * warps, out, repeats, 0x7FFFFFFF)
            device.synchronize()
            times.append(span(device.read(out, 2 * warps), warps))
        yield {"name": name, "value": round(difference(times) / (16 * rounds) / parts, 2), "unit": "clk"}


def clock(device: Device, out: int) -> Iterator[dict[str, Any]]:
    """Clocks per nanosecond of an SM that computes."""
    body = "\n".join("  fma.rn.f32 %f, %f, %f, %f;" for _ in range(64))
    setup = "  .reg .f32 %f; .reg .b32 %r; .reg .b64 %n0, %n1; mov.f32 %f, 0f3F800000; mov.u64 %n0, %globaltimer;"
    code = ptx.timed(setup, body, ["%r"])
    code = code.replace("  xor.b32 %sink, %sink, %r;", "  mov.b32 %r, %f; xor.b32 %sink, %sink, %r;\n  mov.u64 %n1, %globaltimer;")
    code = code.replace("  setp.eq.u32 %first, %sink", "  @%first st.global.v2.u64 [%out + 512], {%n0, %n1};\n  setp.eq.u32 %first, %sink")
    kernel = device.load(code)
    kernel(device.sms(), 32, out, 100000, 0x7FFFFFFF)
    device.synchronize()
    words = device.read(out, 66)
    if words[65] == words[64]:
        raise Failure("the global timer stands still")
    yield {"name": "SM clock", "value": round((words[1] - words[0]) / (words[65] - words[64]), 4), "unit": "GHz"}
