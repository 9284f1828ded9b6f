#!/usr/bin/env python3
"""Measures what bounds GEMMs of bf16 activations and quantized weights, in the harness that times
them: cold reads of their bytes, and GEMMs alone.

  benchmarks/peers/limits.py reads               bulk copies of the bytes of prepacked NVFP4 weights
  benchmarks/peers/limits.py products [FOLDER]   the wgmma of 1024 x 8192 x 8192 with neither loads
                                                 nor conversions, beside torch.mm, and fp4's GEMM of
                                                 a FOLDER of run.py prepare

Operands of GEMMs are those of the comparison: Gaussian activations in bf16, and dequantized
weights. Every warpgroup multiplies the same few tiles again and again, as often as the GEMM has k
tiles, and stores nothing.
"""
from __future__ import annotations

import argparse
import ctypes
import dataclasses
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import torch
from measuring import Device, Launch, measure, sets_of
from problems import WEIGHTS, Problem, bf16_weights, make_operands

MULTIPROCESSORS, WARPGROUPS = 132, 2
ROW, STEP = 128, 16  # bytes of a swizzled row, and elements of K that an instruction takes
TILE = ROW // 2  # elements of K that such a row has
DESCRIPTOR = 0x4000004000010000  # of rows of 128 bytes in the widest swizzle, in groups of eight
KINDS = {"NVFP4": "bf16_nvfp4", "MXFP4": "bf16_mxfp4"}


def stream() -> Any:
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


# --------------------------------------------------------------------------------------------------
# Reads
# --------------------------------------------------------------------------------------------------

RING = """.version @VERSION@
.target @TARGET@
.address_size 64
.extern .shared .align 1024 .b8 window[];
.visible .entry k(.param .u64 p_from, .param .u64 p_bytes, .param .u64 p_stages, .param .u64 p_count) {
  .reg .b32 %t, %bar, %at, %dst, %size, %stages, %count, %it, %slot, %ph, %done, %x;
  .reg .b64 %from, %d; .reg .pred %q;
  mov.u32 %t, %tid.x; setp.ne.u32 %q, %t, 0; @%q ret;
  ld.param.u64 %from, [p_from]; ld.param.u32 %size, [p_bytes]; ld.param.u32 %stages, [p_stages];
  ld.param.u32 %count, [p_count];
  mov.u32 %bar, window; add.u32 %dst, %bar, 1024; mov.u32 %it, 0;
INIT: mad.lo.u32 %at, %it, 8, %bar; mbarrier.init.shared.b64 [%at], 1;
  add.u32 %it, %it, 1; setp.lt.u32 %q, %it, %stages; @%q bra INIT;
  fence.mbarrier_init.release.cluster;
  mov.u32 %x, %ctaid.x; mul.lo.u32 %x, %x, %count; mul.wide.u32 %d, %x, %size;
  add.u64 %from, %from, %d; cvt.u64.u32 %d, %size;
  mov.u32 %it, 0; mov.u32 %slot, 0; mov.u32 %ph, 1; mov.u32 %done, 0;
NEXT:
  setp.lt.u32 %q, %it, %stages; @%q bra FREE;
  mad.lo.u32 %at, %slot, 8, %bar;
WAIT: mbarrier.try_wait.parity.shared.b64 %q, [%at], %ph; @!%q bra WAIT;
  add.u32 %done, %done, 1; setp.eq.u32 %q, %done, %count; @%q ret;
FREE:
  setp.ge.u32 %q, %it, %count; @%q bra LATER;
  mad.lo.u32 %at, %slot, 8, %bar; mad.lo.u32 %x, %slot, %size, %dst;
  mbarrier.arrive.expect_tx.shared.b64 _, [%at], %size;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%x], [%from], %size, [%at];
  add.u64 %from, %from, %d;
LATER:
  add.u32 %it, %it, 1; add.u32 %slot, %slot, 1; setp.lt.u32 %q, %slot, %stages; @%q bra NEXT;
  mov.u32 %slot, 0; xor.b32 %ph, %ph, 1; bra NEXT;
}
"""


def reads(n: int, k: int) -> dict[str, list[Launch]]:
    """Rings of several shapes over the bytes of prepacked weights: each CTA has a run of its
    own."""
    device, total = Device(), n // 128 * (k // 64) * 4608
    memory = [torch.empty(total, dtype=torch.uint8, device="cuda").random_() for _ in range(sets_of(total))]
    found: dict[str, list[Launch]] = {}
    for blocks, size, stages in ((128, 18432, 8), (128, 18432, 12), (256, 18432, 6), (112, 18432, 12), (128, 9216, 16)):
        count, rest = divmod(total, blocks * size)
        if rest:
            continue
        kernel = device.load(RING, shared=1024 + stages * size)
        found[f"{blocks} blocks, {stages} copies of {size} B"] = [
            (lambda m=m, count=count, kernel=kernel, blocks=blocks, size=size, stages=stages:
             kernel(blocks, 32, m.data_ptr(), size, stages, count, stream=stream())) for m in memory]
    return found


# --------------------------------------------------------------------------------------------------
# GEMMs
# --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Loop:
    """Each warpgroup has `fragments` of 64 x `columns` sums; A is in registers or in shared
    memory."""

    columns: int
    fragments: int
    registers: bool
    stages: int = 5  # k tiles of B
    steps: int = 4  # k tiles of A

    @property
    def name(self) -> str:
        return f"{self.fragments} x m64n{self.columns}, A in {'registers' if self.registers else 'shared memory'}"

    def a_bytes(self) -> int:
        """Bytes of a k tile of A of all warpgroups, in shared memory."""
        return 0 if self.registers else WARPGROUPS * self.fragments * 64 * ROW

    def shared(self) -> int:
        return self.stages * self.columns * ROW + self.steps * self.a_bytes()

    def rounds(self, flops: int) -> int:
        """Rounds of the loop over the k tiles of A, of which an SM has as many as its share of
        `flops`."""
        return round(flops / MULTIPROCESSORS / (2 * WARPGROUPS * self.fragments * 64 * self.columns * TILE * self.steps))

    def sums(self) -> list[str]:
        """The registers of each fragment."""
        half = self.columns // 2
        return [", ".join(f"%d{f * half + i}" for i in range(half)) for f in range(self.fragments)]

    def held(self) -> int:
        """Registers of A: four of each fragment for each instruction."""
        return self.fragments * self.steps * TILE // STEP * 4 if self.registers else 0

    def products(self, step: int) -> str:
        """The MMAs of k tile `step` of A, and the next one of B."""
        text = "  wgmma.fence.sync.aligned;\n"
        for j in range(TILE // STEP):
            text += f"  add.u64 %e, %db, {j * 2};\n"
            for f, sums in enumerate(self.sums()):
                first = ((step * (TILE // STEP) + j) * self.fragments + f) * 4
                a, flags = f"{{%a{first}, %a{first + 1}, %a{first + 2}, %a{first + 3}}}", "1, 1, 0"
                if not self.registers:
                    text += f"  add.u64 %f, %da, {(step * self.a_bytes() + f * 64 * ROW) // 16 + j * 2};\n"
                    a, flags = "%f", "1, 1, 0, 0"
                text += (f"  wgmma.mma_async.sync.aligned.m64n{self.columns}k16.f32.bf16.bf16 {{{sums}}}, {a}, %e, %keep, "
                         f"{flags};\n")
            text += "  setp.eq.u32 %keep, %zero, 0;\n" if step == 0 and j == 0 else ""
        return text + f"""  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 1;
  add.u64 %db, %db, {self.columns * ROW // 16}; add.u32 %stage, %stage, 1; setp.eq.u32 %q, %stage, {self.stages};
  @%q mov.u64 %db, %b0; @%q mov.u32 %stage, 0;
"""

    def fill(self) -> str:
        """Brings the tiles into shared memory, and A into registers."""
        of_b, of_a = self.stages * self.columns * ROW, self.steps * self.a_bytes()
        copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%x], [%from],"
        fill_a = f"  add.u32 %x, %x, {of_b}; {copy} {of_a}, [%bar];" if of_a else ""
        load = "".join(f"  ld.global.b32 %a{i}, [%from+{512 * i}];\n" for i in range(self.held()))
        return f"""  setp.ne.u32 %q, %t, 0; mov.u32 %bar, full; @%q bra FILLED;
  mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], {self.shared()};
  mov.u32 %x, window; ld.param.u64 %from, [p_b];
  {copy} {of_b}, [%bar];
  ld.param.u64 %from, [p_a];
{fill_a}
FILLED: bar.sync 0;
FULL: mbarrier.try_wait.parity.shared.b64 %q, [%bar], 0; @!%q bra FULL;
  ld.param.u64 %from, [p_a]; shr.u32 %warp, %t, 7; mad.wide.u32 %from, %warp, {512 * max(1, self.held())}, %from;
  and.b32 %v, %t, 127; mad.wide.u32 %from, %v, 4, %from;
{load}
  mov.u32 %x, window; shr.u32 %v, %x, 4; cvt.u64.u32 %b0, %v; or.b64 %b0, %b0, {DESCRIPTOR:#x}; mov.u64 %db, %b0;
  add.u32 %x, %x, {of_b}; mad.lo.u32 %x, %warp, {self.fragments * 64 * ROW}, %x;
  shr.u32 %v, %x, 4; cvt.u64.u32 %da, %v; or.b64 %da, %da, {DESCRIPTOR:#x};
"""

    def code(self) -> str:
        """A kernel whose sums begin anew after as many MMAs as K = 8192 has."""
        numbers, threads = self.fragments * self.columns // 2, 128 * WARPGROUPS
        zeros = "".join(f"  mov.f32 %d{i}, 0f00000000;" for i in range(numbers))
        total = "".join(f"  add.f32 %sum, %sum, %d{i};" for i in range(numbers))
        return f""".version @VERSION@
.target @TARGET@
.address_size 64
.extern .shared .align 1024 .b8 window[];
.visible .entry k(.param .u64 p_a, .param .u64 p_b, .param .u64 p_out, .param .u64 p_rounds)
  .maxntid {threads}, 1, 1 .minnctapersm 1 {{
  .shared .align 8 .b64 full;
  .reg .b32 %t, %x, %bar, %v, %stage, %count, %zero, %warp, %since; .reg .b64 %from, %db, %b0, %da, %e, %f, %out;
  .reg .pred %q, %keep; .reg .b32 %a<{max(1, self.held())}>; .reg .f32 %d<{numbers}>, %sum;
  mov.u32 %t, %tid.x; ld.param.u32 %zero, [p_rounds]; shr.u32 %zero, %zero, 31;
{self.fill()}
{zeros}
  mov.u32 %stage, 0; ld.param.u32 %count, [p_rounds]; mov.u32 %since, 0;
LOOP: setp.ne.u32 %keep, %since, 0;
{"".join(self.products(step) for step in range(self.steps))}
  add.u32 %since, %since, 1; setp.eq.u32 %q, %since, {8192 // (TILE * self.steps)}; @%q mov.u32 %since, 0;
  sub.u32 %count, %count, 1; setp.ne.u32 %q, %count, 0; @%q bra LOOP;
  wgmma.wait_group.sync.aligned 0;
  mov.f32 %sum, 0f00000000;
{total}
  ld.param.u64 %out, [p_out]; setp.eq.f32 %q, %sum, 0f7F7FFFFF; @%q st.global.f32 [%out], %sum;
  ret;
}}
"""


LOOPS = (Loop(256, 1, True), Loop(128, 2, True, steps=2), Loop(128, 1, True), Loop(256, 1, False), Loop(128, 2, False, stages=4, steps=2))


def alone(loop: Loop, flops: int, weights: Any, activations: Any) -> list[Launch]:
    device = Device()
    kernel = device.load(loop.code(), shared=loop.shared())
    out = torch.zeros(16, device="cuda")
    return [lambda: kernel(MULTIPROCESSORS, 128 * WARPGROUPS, weights.data_ptr(), activations.data_ptr(), out.data_ptr(),
                           loop.rounds(flops), stream=stream())]


def products(folder: pathlib.Path | None, rows: int) -> dict[str, list[Launch]]:
    from libraries.cublas import Cublas
    from libraries.ours import Ours

    found: dict[str, list[Launch]] = {}
    for name, kind in KINDS.items():
        problem = Problem(kind, rows, 8192, 8192)
        sets = [make_operands(problem, seed) for seed in range(sets_of(make_operands(problem, 0).nbytes))]
        prepared = {"torch.mm": Cublas().run(pathlib.Path(), "bf16", sets)}
        ours = Ours()
        for case in ours.cases(folder / "fp4", problem) if folder else []:
            prepared[f"fp4 {case}"] = ours.run(folder / "fp4", case, sets)
        for label, one in prepared.items():
            found[f"{name}: {label}"] = one.launches
        weights = bf16_weights(sets[0])
        for loop in LOOPS:
            found[f"{name}: {loop.name}"] = alone(loop, problem.flops, weights, sets[0].x)
    x = torch.randn(1 << 22, device="cuda").to(torch.bfloat16)
    found["Gaussian: " + LOOPS[0].name] = alone(LOOPS[0], problem.flops, x, x)
    found["Gaussian: " + LOOPS[3].name] = alone(LOOPS[3], problem.flops, x, x)
    found["zeros: " + LOOPS[0].name] = alone(LOOPS[0], problem.flops, torch.zeros_like(x), torch.zeros_like(x))
    return found


def show(name: str, series: dict[str, list[Launch]], unit: Callable[[float], str], **how: Any) -> None:
    for label, timing in measure(series, **how).items():
        if isinstance(timing, str):
            print(f"{name} | {label} | {timing}", flush=True)
            continue
        print(f"{name} | {label} | {timing.us:.1f} us ({timing.low:.1f} to {timing.high:.1f}) | {timing.mhz:.0f} MHz | "
              f"{unit(timing.us)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("reads", "products"))
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--settle", type=float, default=0, metavar="MS", help="time for which GEMMs run before they are timed, and while")
    parser.add_argument("--rounds", type=int, default=9, metavar="N")
    options = parser.parse_args()
    if options.command == "reads":
        for n, k in WEIGHTS:
            size = n // 128 * (k // 64) * 4608
            show(f"{n} x {k}, {size / 1e6:.1f} MB", reads(n, k), lambda us: f"{size / us / 1e6:.2f} TB/s")
    else:
        flops = Problem("bf16_nvfp4", options.rows, 8192, 8192).flops
        show(f"{options.rows} rows", products(options.folder, options.rows), lambda us: f"{flops / us / 1e6:.0f} TFLOP/s",
             settle=1e3 * options.settle, rounds=options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
