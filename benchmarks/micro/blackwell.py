"""tcgen05: intervals and latencies of MMAs, rates of tensor memory."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ptx
from cuda import Device
from instructions import span

SHARED = 160 * 1024
KINDS = {"mxf4nvf4": ".kind::mxf4nvf4.block_scale.block16", "mxf4": ".kind::mxf4.block_scale.block32",
         "mxf8f6f4": ".kind::mxf8f6f4.block_scale.block32",
         "f8f6f4": ".kind::f8f6f4", "f16": ".kind::f16"}


def setup(group: int) -> str:
    """Zeros in shared memory and in all columns of tensor memory, which one warp allocates;
    mbarrier %bar."""
    meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if group == 2 else "bar.sync 0;"
    zeros = "{" + ", ".join(["%z"] * 32) + "}"
    stores = "".join(f"  tcgen05.st.sync.aligned.32x32b.x32.b32 [%mine+{32 * i}], {zeros};\n" for i in range(16))
    return f"""  .shared .align 8 .b64 bar; .shared .align 4 .b32 slot;
  .reg .b32 %bar, %slot, %tmem, %mine, %z, %s, %e, %phase, %sfa, %sfb, %rank; .reg .b64 %da, %db, %dc;
  .reg .pred %zq, %idle, %done, %other, %bystander;
  mov.u32 %bar, bar; mov.u32 %slot, slot; mov.b32 %z, 0; mov.u32 %phase, 0;
  mov.u32 %rank, %{'cluster_ctarank' if group == 2 else 'ctaid.x'};
  mov.u32 %s, window; shr.u32 %e, %s, 4; cvt.u64.u32 %da, %e;
  or.b64 %da, %da, {1 << 46 | 16 << 32 | 8 << 16:#x}; add.u64 %db, %da, 1024; add.u64 %dc, %da, 4096;
  add.u32 %e, %s, 131072; mad.lo.u32 %s, %thread, 16, %s;
ZERO: st.shared.v4.b32 [%s], {{%z, %z, %z, %z}}; add.u32 %s, %s, 2048; setp.lt.u32 %zq, %s, %e; @%zq bra ZERO;
  fence.proxy.async.shared::cta;
  setp.ne.u32 %other, %warp, 0; @%other bra ALLOCATED;
  tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%slot], 512;
ALLOCATED:
  setp.ne.u32 %idle, %thread, 0; @%idle bra READY;
  mbarrier.init.shared::cta.b64 [%bar], 1; fence.mbarrier_init.release.cluster;
READY:
  tcgen05.fence::before_thread_sync; {meet} tcgen05.fence::after_thread_sync;
  ld.shared.b32 %tmem, [%slot]; shl.b32 %mine, %warp, 21; add.u32 %mine, %mine, %tmem;
{stores}  tcgen05.wait::st.sync.aligned;
  add.u32 %sfa, %tmem, 480; add.u32 %sfb, %tmem, 496;
  setp.ne.u32 %idle, %thread, 0; or.b32 %s, %warp, %rank; setp.ne.u32 %bystander, %s, 0;
  mad.wide.u32 %out, %rank, 512, %out;
  tcgen05.fence::before_thread_sync; {meet} tcgen05.fence::after_thread_sync;"""


def teardown(group: int) -> str:
    meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if group == 2 else "bar.sync 0;"
    return f"""  tcgen05.fence::before_thread_sync; {meet} tcgen05.fence::after_thread_sync;
  @%other bra END;
  tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %tmem, 512;
END:"""


def issued(operations: str, group: int) -> str:
    """One thread issues and commits, and its warp waits; the other warps do nothing."""
    return f"""  @%bystander bra NEXT;
  @%idle bra WAIT;
{operations}  tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.b64 [%bar];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], %phase; @!%done bra WAIT;
  xor.b32 %phase, %phase, 1;
NEXT:"""


def descriptor(kind: str, m: int, n: int) -> int:
    """PTX ISA, "Instruction descriptor": zeros of e4m3 or f16 with sums in f32, or of e2m1."""
    if kind == "mxf8f6f4":
        return n >> 3 << 17 | m >> 7 << 27 | 1 << 23
    if kind.startswith("mx"):
        return n >> 3 << 17 | m >> 7 << 27 | 1 << 7 | 1 << 10 | 1 << 23
    return n >> 3 << 17 | m >> 4 << 24 | 1 << 4


def measure(device: Device, out: int, text: str, group: int, rounds: int, warps: int = 1) -> float:
    """Cycles of a round, between two lengths of the loop."""
    kernel = device.load(text, shared=SHARED)
    spans = []
    for repeats in (rounds, 3 * rounds):
        kernel(group, 128, out, repeats, 0x7FFFFFFF)
        device.synchronize()
        spans.append(span(device.read(out, 2 * warps), warps))
    return (spans[1] - spans[0]) / (2 * rounds)


def rounds_of(device: Device, out: int, operation: Callable[[int], str], group: int, rounds: int) -> tuple[float, float]:
    """Cycles between two operations in flight, and of one with its commit and wait."""
    times = [measure(device, out, ptx.timed(setup(group), issued("".join(map(operation, range(length))), group), [], block=128, cluster=group,
                                            teardown=teardown(group)), group, rounds) for length in (1, 8, 32)]
    return (times[2] - times[1]) / 24, times[0]


def products(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Dependent MMAs on one accumulator, operands in shared memory without swizzle."""
    for kind, spelled in KINDS.items():
        scales = ", [%sfa], [%sfb]" if kind.startswith("mx") else ""
        for group, m, columns in ((1, 128, (64, 128, 256)), (2, 256, (64, 128, 192, 256))):
            for n in columns:
                line = (f"  tcgen05.mma.cta_group::{group}{spelled} [%tmem], %da, %db, {descriptor(kind, m, n):#x}"
                        f"{scales}, 1;\n")
                interval, alone = rounds_of(device, out, lambda i, line=line: line, group, rounds)  # type: ignore[misc]
                yield {"name": f"tcgen05.mma {kind}, pair {group == 2}, {m} x {n}", "value": round(interval, 1),
                       "unit": "clk each", "alone with commit and wait": round(alone, 1)}


def tensor_memory(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    interval, alone = rounds_of(device, out, lambda i: f"  tcgen05.cp.cta_group::1.32x128b.warpx4 [%tmem+{4 * i}], %dc;\n", 1,
                                rounds)
    yield {"name": "tcgen05.cp.32x128b.warpx4", "value": round(interval, 1), "unit": "clk each",
           "alone with commit and wait": round(alone, 1)}
    values = "{" + ", ".join(f"%v{i}" for i in range(32)) + "}"
    registers = "  .reg .b32 %v<32>;"
    zero = "".join(f"  mov.b32 %v{i}, 0;\n" for i in range(32))
    for name, operands in (("ld", f"{values}, [%mine+@]"), ("st", f"[%mine+@], {values}")):
        times = []
        for length in (1, 8):
            body = "".join(f"  tcgen05.{name}.sync.aligned.32x32b.x32.b32 {operands.replace('@', str(32 * i))};\n"
                           for i in range(length)) + f"  tcgen05.wait::{name}.sync.aligned;"
            text = ptx.timed(setup(1) + "\n" + zero, body, [f"%v{i}" for i in range(32)], registers=registers, block=128,
                             teardown=teardown(1))
            times.append(measure(device, out, text, 1, rounds, 4))
        yield {"name": f"tcgen05.{name}.32x32b.x32 by four warps", "value": round(4 * 4096 * 7 / (times[1] - times[0]), 1),
               "unit": "B/clk", "alone with its wait": round(times[0], 1)}
