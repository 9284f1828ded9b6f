"""Launches that find their memory, its translations, their code or their parameters far away."""
from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import ptx
from cuda import Device
from instruction_code import straight, BEGIN, KEEP, REGISTERS
from queued import Queue
from sweeps import SWEEP, CHUNK, MIB, PAGE

PIECE = 16384
CLOCKS = "  mul.wide.u32 %w, %b, 8; add.u64 %w, %w, %out; @!%other st.global.u64 [%w], %t1;"
PLACE = """  .reg .b32 %t, %b; .reg .b64 %at, %w, %t0, %t1; .reg .pred %other;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; setp.ne.u32 %other, %t, 0;
  mul.wide.u32 %at, %b, 1; mul.lo.u64 %at, %at, %apart; add.u64 %at, %at, %from; mov.u64 %t0, %clock64;
"""
# Each CTA of 128 threads reads PIECE bytes, `apart` bytes behind those of the CTA before.
READ = ptx.kernel(["out", "from", "apart"], "  .reg .b32 %x<32>, %sink; .reg .pred %q;", PLACE +
                  "  mul.wide.u32 %w, %t, 16; add.u64 %at, %at, %w; mov.b32 %sink, 0;\n" +
                  "".join(f"  ld.global.cg.v4.b32 {{%x{4 * i}, %x{4 * i + 1}, %x{4 * i + 2}, %x{4 * i + 3}}}, [%at+{2048 * i}];\n"
                          for i in range(8)) + "".join(f"  xor.b32 %sink, %sink, %x{i};\n" for i in range(32)) + """
  setp.eq.u32 %q, %sink, 0x7fffffff; @%q st.global.b32 [%out], %sink;
  bar.sync 0; mov.u64 %t1, %clock64; sub.u64 %t1, %t1, %t0;
""" + CLOCKS)
COPY = ptx.kernel(["out", "from", "apart"], "  .reg .b32 %bar, %buf; .reg .pred %q;", PLACE + f"""
  @%other bra END; mov.u32 %buf, window; add.u32 %bar, %buf, {PIECE};
  mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;
  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], {PIECE};
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%buf], [%at], {PIECE}, [%bar];
WAIT: mbarrier.try_wait.parity.shared.b64 %q, [%bar], 0; @!%q bra WAIT;
  mov.u64 %t1, %clock64; sub.u64 %t1, %t1, %t0;
""" + CLOCKS + "\nEND:")
# Every CTA reads a line of each page.
TOUCH = ptx.kernel(["out", "from", "pages"], "", """
  .reg .b32 %t, %d, %n, %x, %l; .reg .b64 %at, %o; .reg .pred %q;
  mov.u32 %t, %tid.x; mov.u32 %d, %ntid.x; cvt.u32.u64 %n, %pages;
LOOP: setp.ge.u32 %q, %t, %n; @%q bra END;
  mul.wide.u32 %at, %t, 2097152; add.u64 %at, %at, %from; and.b32 %l, %t, 16383; mul.wide.u32 %o, %l, 128; add.u64 %at, %at, %o;
  ld.global.cg.b32 %x, [%at]; setp.eq.u32 %q, %x, 0x7fffffff; @%q st.global.b32 [%out], %x;
  add.u32 %t, %t, %d; bra LOOP;
END:""")


class Before:
    """The work of other launches on the caches before the launch that is timed."""

    def __init__(self, device: Device, out: int, quick: bool) -> None:
        self.device, self.out, self.sms = device, out, device.sms()
        self.pages = 16 if quick else 32768
        self.pool = device.allocate(self.pages * PAGE)
        self.flushed = (4 if quick else 160) * MIB
        self.reads, self.touches = device.load(SWEEP, name="sweep"), device.load(TOUCH)

    def nothing(self) -> None:
        pass

    def flush(self) -> None:
        """L2 with 80 pages at the end of the pool."""
        begin = self.pool + self.pages * PAGE - self.flushed
        self.reads(2 * self.sms, 1024, self.out, begin, self.flushed // CHUNK, 1, 0, 0)

    def touch(self, pages: int) -> None:
        """Reads pages of the second half of the pool, before the part that flush() reads."""
        begin = self.pool + (self.pages * PAGE - self.flushed) // 2 // PAGE * PAGE
        self.touches(self.sms, 1024, self.out, begin, pages)

    def cases(self, quick: bool) -> dict[str, Callable[[], None]]:
        def both(pages: int) -> Callable[[], None]:
            return lambda: (self.touch(pages), self.flush())[0]

        counts = (4,) if quick else (128, 512, 2048, 8192, 16000)
        return {"behind itself": self.nothing, "behind 160 MiB": self.flush,
                **{f"behind a line of each of {n} pages": (lambda n=n: self.touch(n)) for n in counts[-1:]},
                **{f"behind a line of each of {n} pages and 160 MiB": both(n) for n in counts}}


def timed(queue: Queue, work: Callable[[], Any], before: Callable[[], None], quick: bool) -> float:
    """Microseconds between the two events, the median of some."""
    rounds = 1 if quick else 9
    work()
    return statistics.median(queue.run([work] * rounds, [before] * rounds)) * 1e6


def pages(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """CTAs that read 16 KiB each, next to each other or in pages of their own, whose translations
    other launches displaced."""
    before, queue = Before(device, out, quick), Queue(device, quick)
    kernels = {"loads": device.load(READ), "bulk copies": device.load(COPY, shared=PIECE + 64)}
    empty = device.load(ptx.kernel(["out"], "", ""))
    for name, first in before.cases(quick).items():
        nothing = timed(queue, lambda: empty(device.sms(), 128, out), first, quick)
        yield {"name": f"empty kernel {name}, between two events", "value": round(nothing, 2), "unit": "us"}
        for how, kernel in kernels.items():
            for blocks in (4,) if quick else (4, 32, 128, 512):
                for apart in (PIECE, PAGE):
                    taken = timed(queue, lambda: kernel(blocks, 128, out, before.pool, apart), first, quick)
                    clocks = sorted(device.read(out, blocks))
                    yield {"name": f"{blocks} blocks, {how} {apart >> 10} KiB apart, {name}", "value": round(taken - nothing, 2),
                           "unit": "us more than empty", "clk of a block: least, median, most":
                               [clocks[0], clocks[blocks // 2], clocks[-1]]}
    device.free(before.pool)


def parameters(count: int) -> str:
    """A kernel with a parameter of so many bytes, of which it reads the last word."""
    code = ptx.kernel(["out"], "", f"""  .reg .b32 %x; .reg .pred %q; ld.param.u32 %x, [p_more+{count - 4}];
  setp.eq.u32 %q, %x, 0x7fffffff; @%q st.global.u32 [%out], %x;""")
    return code.replace("p_out)", f"p_out, .param .align 64 .b8 p_more[{count}])")


def maps(number: int, use: bool, cluster: int = 1) -> str:
    """A kernel with tensor maps as parameters; one thread of a CTA may copy a box through each."""
    listed = "".join(f", .param .align 64 .b8 p_map{i}[128]" for i in range(number))
    body = """  .reg .b32 %t, %bar, %buf, %zero; .reg .pred %q; .reg .b64 %map; mov.u32 %t, %tid.x; mov.b32 %zero, 0;
  setp.ne.u32 %q, %t, 0; @%q bra END; mov.u32 %buf, window; add.u32 %bar, %buf, 32768;
  mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;
""" + f"  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], {number * 1024};\n"
    for i in range(number):
        body += f"""  mov.b64 %map, p_map{i}; cvta.param.u64 %map, %map;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%buf], [%map, {{%zero, %zero}}], [%bar];
  add.u32 %buf, %buf, 1024;
"""
    body += "WAIT: mbarrier.try_wait.parity.shared.b64 %q, [%bar], 0; @!%q bra WAIT;\nEND:"
    return ptx.kernel(["out"], "", body if use else "", cluster=cluster).replace("p_out)", f"p_out{listed})")


def works(device: Device, out: int, before: Before, quick: bool) -> dict[str, Callable[[], Any]]:
    """Launches of which the caches of code, of parameters and of tensor maps are what differs."""
    sms = device.sms()
    empty, cluster = (device.load(ptx.kernel(["out"], "", "", cluster=c)) for c in (1, 2))
    large = device.load(ptx.kernel(["out"], "", ""), shared=200 * 1024)
    many = device.load(parameters(4000))
    block = (ctypes.c_uint8 * 4000)()
    boxes = [device.tensor_map(before.pool + 1024 * i, 8, 64, 8, 64) for i in range(4)]
    result: dict[str, Callable[[], Any]] = {
        "empty, 1 block": lambda: empty(1, 32, out), "empty": lambda: empty(sms, 128, out),
        "empty, clusters of 2": lambda: cluster(sms, 128, out), "empty, 200 KiB of shared memory": lambda: large(sms, 128, out),
        "4000 bytes of parameters": lambda: many(sms, 128, out, block),
        "empty, clusters of 2 by an attribute": lambda: empty.launch((sms, 1), 128, out, cluster=2)}
    for number in (1, 4):
        for use, group in ((False, 1), (True, 1), (True, 2)):
            kernel = device.load(maps(number, use, group), shared=40 * 1024)
            name = f"{number} tensor maps{', a box by each' if use else ''}{', clusters of 2' if group > 1 else ''}"
            result[name] = lambda kernel=kernel, number=number: kernel(sms, 128, out, *boxes[:number])
    for count in (64,) if quick else (512, 2048, 8192):
        code = device.load(ptx.kernel(["out"], "", REGISTERS + BEGIN + straight(count) + KEEP))
        result[f"{count} instructions"] = lambda code=code: code(sms, 128, out)
    return result


def cold(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Times a launch behind itself, and behind launches that displace its data from L2, or its code
    or translations from their caches; and the time between its launches in a stream while the host
    is ahead."""
    before, queue = Before(device, out, quick), Queue(device, quick)
    codes = [device.load(ptx.kernel(["out"], "", REGISTERS + BEGIN + straight(64 if quick else 8192) + KEEP)) for _ in range(4)]

    def others() -> None:
        for code in codes:
            code(before.sms, 128, out)

    befores: dict[str, Callable[[], None]] = {"behind itself": before.nothing, "behind 160 MiB": before.flush, "behind 32768 other instructions": others,
               "behind both, and 32 GiB": lambda: (others(), before.touch(4 if quick else 16000), before.flush())[0]}
    for name, work in works(device, out, before, quick).items():
        work()
        for first, run in befores.items():
            yield {"name": f"{name}, {first}, between two events", "value": round(timed(queue, work, run, quick), 2), "unit": "us"}
        times = []
        for count in (1, 5, 20, 80):
            times.append(statistics.median(queue.run([lambda c=count: [work() for _ in range(c)]])[0] for _ in range(1 if quick else 5)) * 1e6)
        yield {"name": f"{name}, from one to the next of a stream", "value": round((times[3] - times[2]) / 60, 3), "unit": "us",
               "1, 5, 20 and 80 between two events": [round(t, 2) for t in times]}
        device.synchronize()
        idle = statistics.median(device.seconds(work) for _ in range(1 if quick else 9)) * 1e6
        five = statistics.median(device.seconds(lambda: [work() for _ in range(5)]) for _ in range(1 if quick else 9)) * 1e6
        yield {"name": f"{name}, between two events of an idle stream", "value": round(idle, 2), "unit": "us", "five": round(five, 2)}
    device.free(before.pool)
