#!/usr/bin/env python3
"""Prints what the compiler plans for published problems of B200, and runs its kernels beside other
people's in the simulator.

  benchmarks/blackwell.py plans [--build BUILD] [--only WORD] [--timed SECONDS] [--mix ptx|cubin]
      [--json FILE]
  benchmarks/blackwell.py compile [--build BUILD] [--only WORD] [--runs N] [--most SECONDS]
  benchmarks/blackwell.py structure [--build BUILD] --peer "PLAN [:: COMMAND]" ... [--size M,N]
      [--depths K1,K2]

plans      for every problem: the plan, the time of the static model (1.965 GHz, with 0.5 us of
           launch), and the time of `fp4-runner --time-only` (1.965 GHz, cold L2, the kernel alone)
           where that takes at most SECONDS (default 60; large grids are sampled), with instructions
           as they are estimated from PTX, or as ptxas makes them. All times but the last column are
           predictions.
compile    for every problem the processor time that `fp4-runner --emit=cubin` takes from MLIR to
           machine code, with ptxas, by the plan that is chosen: user and system seconds of both
           processes, the least of N runs (default 3). Another load of the machine makes them up to
           four times as long, so ptxas assembles a fixed kernel between the runs, and the seconds
           are those of a core that takes YARDSTICK for it. Fails where a kernel takes more than
           SECONDS.
structure  COMMAND runs a kernel in `fp4-sim run`; {m}, {n} and {k} in it are the size. Ours has the
           plan PLAN and the same size, and stands alone where there is no COMMAND. Both run at two
           depths: what differs between them, over the k tiles that differ, is the steady state.

Published numbers, all of other people and other clocks: gpu-mode/reference-kernels (speed of light
at 1.5 GHz) and its leaderboards for GEMM, GEMV, dual and grouped GEMMs; DeepGEMM pull request 348;
triton pull request 9697.
"""
from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = {"nvfp4": 16, "mxfp4": 32, "mxfp6_e2m3": 32, "mxfp8_e4m3": 32, "fp8_block128": 128}
SCALE = {"nvfp4": "f8E4M3FN", "fp8_block128": "f32"}  # others have f8E8M0FNU
ELEMENT = {"mxfp6_e2m3": "f6E2M3FN", "mxfp8_e4m3": "f8E4M3FN", "fp8_block128": "f8E4M3FN"}  # others have f4E2M1FN
SMS = 148  # of a B200
CONTEST, DEEPGEMM, TRITON = "gpu-mode", "DeepGEMM #348", "triton #9697"


@dataclass
class Problem:
    """M x N x K, or `groups` of rows with N x K each; `published` microseconds with their
    source."""
    kind: str
    m: int
    n: int
    k: int
    published: float | None
    source: str
    groups: list[int] = field(default_factory=list)
    format: str = "nvfp4"
    result: str = "bf16"
    more: str = ""  # further attributes of the GEMM

    @property
    def name(self) -> str:
        if self.groups and self.kind == "grouped":
            return f"{len(self.groups)} groups, {self.m} rows x {self.n} x {self.k}"
        batch = f", {len(self.groups)} of them" if self.groups else ""
        return f"{self.m // max(1, len(self.groups)) if self.groups else self.m} x {self.n} x {self.k}{batch}"

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k * (2 if self.kind == "dual" else 1)


@dataclass
class Operands:
    """Elements of queries and keys, with scales of blocks of them or none, and of values."""
    keys: str
    values: str
    scale: str = ""
    block: int = 0
    scaled_values: bool = False


#: Formats of attention: those of both products.
OPERANDS = {"bf16": Operands("bf16", "bf16"), "FP8": Operands("f8E4M3FN", "f8E4M3FN"),
            "MXFP8, values FP8": Operands("f8E4M3FN", "f8E4M3FN", "f8E8M0FNU", 32),
            "NVFP4, values FP8": Operands("f4E2M1FN", "f8E4M3FN", "f8E4M3FN", 16),
            "NVFP4": Operands("f4E2M1FN", "f4E2M1FN", "f8E4M3FN", 16, True),
            "MXFP8": Operands("f8E4M3FN", "f8E4M3FN", "f8E8M0FNU", 32, True)}


@dataclass
class Attention:
    """Attention of 16384 tokens in all, and of 2048 elements of all heads, as in papers; a causal
    mask counts half. A maximum may grow by 2^growth before sums are scaled; None: as the compiler
    chooses. With `sms`, so many SMs have their share of the heads: grids of CTAs with different
    work are simulated whole, and these tiles come in rounds of the same length."""
    length: int
    elements: int
    mask: str
    format: str = "bf16"
    growth: int | None = None
    sms: int = 0
    kind: str = "attention"
    published: float | None = None
    source: str = "-"

    @property
    def name(self) -> str:
        growth = "" if self.growth is None else f", growth {self.growth}"
        share = f", the share of {self.sms} SMs" if self.sms else ""
        return f"{16384 // self.length} x {self.length}, heads of {self.elements}{', causal' if self.mask else ''}{growth}{share}"

    @property
    def sizes(self) -> tuple[int, int]:
        """Sequences and heads."""
        batches, heads = 16384 // self.length, 2048 // self.elements
        return (1, round(batches * heads * self.sms / SMS)) if self.sms else (batches, heads)

    @property
    def flops(self) -> float:
        batches, heads = self.sizes
        share = self.sms / SMS if self.sms else 1
        return 4.0 * batches * heads * self.length**2 * self.elements * (0.5 if self.mask else 1) / share

    @property
    def text(self) -> str:
        (batches, heads), form = self.sizes, OPERANDS[self.format]
        matrix = f"{batches}x{self.length}x{heads}x{self.elements}x"
        arguments = {"q": f"tensor<{matrix}{form.keys}>", "k": f"tensor<{matrix}{form.keys}>", "v": f"tensor<{matrix}{form.values}>"}
        if form.scaled_values:
            arguments["v"] = f"tensor<{batches}x{heads}x{self.elements}x{self.length}x{form.values}>"
        scales = {}
        if form.scale:
            layout = f"x{form.scale}, #fp4.scale_layout<tiled_128x4>>"
            scales = dict.fromkeys(("qs", "ks"), f"tensor<{batches * heads * self.length}x{self.elements // form.block}{layout}")
            if form.scaled_values:
                scales["vs"] = f"tensor<{batches * heads * 128}x{self.length // form.block}{layout}"
        names = lambda some: ", ".join(f"%{name}" for name in some)
        clause = f"block_scales({names(scales)} : {', '.join(scales.values())}) " if scales else ""
        order = "" if self.growth is None else f" order <in_blocks = {128 if self.format == 'MXFP8' else 64}, growth = {self.growth}.0>"
        result = f"tensor<{matrix}bf16>"
        return (f"func.func @f({', '.join(f'%{name}: {kind}' for name, kind in (arguments | scales).items())}) -> {result} {{\n"
                f"  %o = fp4.attention {names(arguments)} {clause}scale {self.elements ** -0.5:.9e} {self.mask}{order}\n"
                f"      : {', '.join(arguments.values())} -> {result}\n  return %o : {result}\n}}\n")


def teraflops(problem: Problem, value: float) -> float:
    """Converts TFLOP/s to microseconds."""
    return problem.flops / value / 1e6


def problems() -> list[Problem | Attention]:
    found: list[Problem | Attention] = [Problem("GEMM", 128, n, k, us, CONTEST, result="f16")
             for n, k, us in ((7168, 16384, 18.3), (4096, 7168, 8.29), (7168, 2048, 6.54))]
    found += [Problem("GEMV", batch, n, k, us, CONTEST, [1] * batch if batch > 1 else [], result="f16")
              for n, k, batch, us in ((7168, 16384, 1, 18.4), (4096, 7168, 8, 28.0), (7168, 2048, 4, 12.6))]
    found += [Problem("dual", m, n, k, us, CONTEST, result="f16")
              for m, n, k, us in ((256, 4096, 7168, 12.4), (512, 4096, 7168, 16.4), (256, 3072, 4096, 9.43),
                                  (512, 3072, 7168, 16.3))]
    for rows, n, k, us in (([80, 176, 128, 72, 64, 248, 96, 160], 4096, 7168, 27.9),
                           ([40, 76, 168, 72, 164, 148, 196, 160], 7168, 2048, 19.4), ([192, 320], 3072, 4096, 8.48),
                           ([128, 384], 4096, 1536, 6.43)):
        found.append(Problem("grouped", sum(rows), n, k, us, CONTEST, rows, result="f16"))
    for m, n, k, value in ((128, 2048, 7168, 338), (128, 24576, 1536, 980), (512, 2048, 7168, 1422), (512, 7168, 2048, 1439),
                           (1024, 7168, 2048, 2056), (4096, 4096, 7168, 5332), (8192, 8192, 8192, 5702)):
        problem = Problem("GEMM", m, n, k, 0, DEEPGEMM, format="mxfp4", result="f32")
        problem.published = teraflops(problem, value)  # the better of DeepGEMM and cuBLASLt
        found.append(problem)
    for size, value in ((8192, 5730), (16384, 5562)):
        problem = Problem("GEMM", size, size, size, 0, TRITON)
        problem.published = teraflops(problem, value)
        found.append(problem)
    found += [Problem("GEMM", m, n, k, None, "-", format="fp8_block128")
              for m, n, k in ((64, 4096, 7168), (128, 4096, 7168), (128, 7168, 16384), (4096, 7168, 2048),
                              (4096, 4096, 7168), (8192, 8192, 8192))]
    found += [Problem("grouped", rows * count, n, k, None, "-", [rows] * count, format="fp8_block128")
              for rows, count, n, k in ((4096, 4, 4096, 7168), (192, 4, 4096, 7168))]
    found += [Attention(4096, elements, "", form) for form in OPERANDS for elements in (64, 128)]
    found += [Attention(4096, elements, "causal", form, sms=40) for form in OPERANDS for elements in (64, 128)]
    found += [Attention(4096, elements, "", form, 8) for form in OPERANDS if form != "bf16" for elements in (64, 128)]
    return found


# ---- Programs ------------------------------------------------------------------------------------


def scale_of(p: Problem) -> str:
    return SCALE.get(p.format, "f8E8M0FNU")


def scales(p: Problem, rows: int) -> str:
    if p.format == "fp8_block128":
        return f"tensor<{rows}x{-(-p.k // BLOCK[p.format])}xf32>"
    layout, block = "#fp4.scale_layout<tiled_128x4>", p.k // BLOCK[p.format]
    return f"tensor<{rows}x{block}x{scale_of(p)}, {layout}>"


def tiles(p: Problem, rows: list[int]) -> str:
    """Scales of groups: a list of tiles, each group padded to 128 rows."""
    padded = sum((r + 127) // 128 * 128 for r in rows)
    return f"tensor<{padded * p.k // BLOCK[p.format] // 4}x4x{scale_of(p)}, #fp4.scale_layout<tiled_128x4>>"


def program(p: Problem | Attention, plan: str = "") -> str:
    """One GEMM of quantized operands whose scales are tiled, or of FP8 with scales of blocks; or
    attention."""
    if isinstance(p, Attention):
        return p.text
    count = max(1, len(p.groups))
    has_blocks = p.format == "fp8_block128"
    element = ELEMENT.get(p.format, "f4E2M1FN")
    a, b = f"tensor<{p.m}x{p.k}x{element}>", f"tensor<{p.n * count}x{p.k}x{element}>"
    if has_blocks:
        sa, sb = scales(p, p.m), scales(p, count * -(-p.n // 128))
    else:
        sa, sb = (tiles(p, p.groups), tiles(p, [p.n] * count)) if p.groups else (scales(p, p.m), scales(p, p.n))
    y = f"tensor<{p.m}x{p.n}x{p.result}>"
    attributes = [f"work = #fp4.work<groups = [{', '.join(map(str, p.groups))}]>"] if p.groups else []
    attributes += ["arithmetic = #fp4.matmul_arithmetic<fma>"] if p.kind == "GEMV" else []
    attributes += [p.more] if p.more else []
    attributes += [f"fp4.plan = #fp4.plan<tile_gemm, {plan}>"] if plan else []
    arguments = f"%a: {a}, %sa: {sa}, %b: {b}, %sb: {sb}"
    lhs, rhs = f"!fp4.scaled<{p.format}, {a}, {sa}>", f"!fp4.scaled<{p.format}, {b}, {sb}>"
    lines = f"  %lhs = fp4.scaled %a, %sa : {lhs}\n  %rhs = fp4.scaled %b, %sb : {rhs}\n"
    operands, operand_types = "%lhs, %rhs", f"{lhs}, {rhs}"
    body = ""
    if p.kind == "dual":
        arguments += f", %c: {b}, %sc: {sb}"
        lines += f"  %second = fp4.scaled %c, %sc : {rhs}\n"
        operands, operand_types = operands + " with %second", f"{operand_types}, {rhs}"
        body = f""" epilogue() {{
  ^bb0(%one: f32, %two: f32):
    %zero = arith.constant 0.0 : f32
    %one_ = arith.constant 1.0 : f32
    %minus = arith.subf %zero, %one : f32
    %power = math.exp %minus : f32
    %sum = arith.addf %power, %one_ : f32
    %silu = arith.divf %one, %sum : f32
    %product = arith.mulf %silu, %two : f32
    %narrow = arith.truncf %product : f32 to {p.result}
    fp4.yield %narrow : {p.result}
  }}"""
    results, ends = y, f"  return %y : {y}"
    if p.kind == "codes":
        results, ends = quantized(p, y)
    return (f"func.func @f({arguments}) -> {results} {{\n{lines}  %y = fp4.matmul {operands}{body} {{{', '.join(attributes)}}}\n"
            f"      : ({operand_types}) -> {y}\n{ends}\n}}\n")


def quantized(p: Problem, y: str) -> tuple[str, str]:
    """Types of the codes and tiled scales of the elements, and the lines that make and return
    them."""
    codes = f"tensor<{p.m}x{p.n}xf4E2M1FN>"
    linear = f"{p.m}x{p.n // BLOCK['mxfp4']}xf8E8M0FNU"
    tiled = f"tensor<{linear}, #fp4.scale_layout<tiled_128x4>>"
    return f"({codes}, {tiled})", (
        f"  %q, %r = fp4.quantize %y {{format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}}\n"
        f"      : ({y}) -> ({codes}, tensor<{linear}>)\n"
        f"  %t = fp4.swizzle_scales %r : tensor<{linear}> -> {tiled}\n"
        f"  return %q, %t : {codes}, {tiled}")


# ---- Plans ---------------------------------------------------------------------------------------


@dataclass
class Row:
    problem: Problem | Attention
    plan: str = ""
    static: float | None = None
    timed: float | None = None
    bound: str = ""
    note: str = ""


REMARK = re.compile(r'Remark="([^"]*), predicted ([\d.]+) us at ([\d.]+) GHz(?:, bound by ([^"]*))?"')
PLAN = re.compile(r"fp4\.plan = #fp4\.plan<(\w+), ([^>]*)")


def planned(build: pathlib.Path, source: pathlib.Path, row: Row) -> None:
    """Asks fp4-plan-kernels for a plan and its prediction."""
    found = subprocess.run([build / "bin/fp4-opt", source, "-fp4-set-target=target=sm_100a", "-fp4-plan-kernels",
                            "--remarks-filter-passed=fp4-plan"], capture_output=True, text=True, check=False)
    if found.returncode:
        row.note = found.stderr.strip().splitlines()[0]
        return
    remark, plan = REMARK.search(found.stderr + found.stdout), PLAN.search(found.stdout)
    if remark:
        row.plan, row.static, row.bound = remark[1], float(remark[2]), remark[4] or ""
    elif plan:
        row.plan = f"{plan[1]}, {plan[2]}"[:60]


def timed(build: pathlib.Path, source: pathlib.Path, limit: float, mix: str, sms: int = 0,
          target: str = "sm_100a") -> dict[str, object] | str:
    """The report of `--time-only`, which samples large grids, for the one kernel on `sms` SMs, or
    on all; a line that says why there is none."""
    command = [build / "bin/fp4-runner", source, f"--target={target}", "--device=sim", "--time-only", "--json", "--no-verify",
               "--check=off", "--dist=zeros", "--mix", mix, *([f"--sms={sms}"] if sms else [])]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"not simulated in {limit:.0f} s"
    if found.returncode:
        return found.stderr.strip().splitlines()[0]
    times = json.loads(found.stdout)["predicted_times"]
    for time in times:
        if "unknown" in time:
            return f"no prediction of {time['kernel']}: {', '.join(time['unknown'])}"
    whole = dict(times[-1])
    whole["microseconds"] = sum(time["microseconds"] for time in times)
    whole["launches"] = len(times)
    return whole


def plan_rows(build: pathlib.Path, only: str, limit: float, mix: str) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for problem in problems():
            if only not in f"{problem.kind} {problem.name} {problem.format} {problem.source}":
                continue
            row, source = Row(problem), pathlib.Path(scratch) / "p.mlir"
            source.write_text(program(problem))
            planned(build, source, row)
            found = row.note or timed(build, source, limit, mix, getattr(problem, "sms", 0))
            if isinstance(found, dict):
                row.timed = float(str(found["microseconds"]))
                row.bound = row.bound or str(found["bound"])
            elif not row.note:
                row.note = found
            rows.append(row)
            print(f"{problem.kind} {problem.name}: {row.timed or row.note}", file=sys.stderr)
    return rows


def show(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def print_plans(rows: list[Row]) -> None:
    print("| problem | plan | static model, us (predicted, 1.965 GHz) | timed simulation, us (predicted, 1.965 GHz) "
          "| TFLOP/s (predicted, timed) | published, us | source |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        p = row.problem
        rate = p.flops / row.timed / 1e6 if row.timed else None
        plan = row.plan or row.note
        print(f"| {p.kind} {p.name} {p.format} | {plan}{'; ' + row.bound if row.bound else ''} | {show(row.static)} | "
              f"{show(row.timed)} | {show(rate, 0)} | {show(p.published)} | {p.source} |")


# ---- Compilation ---------------------------------------------------------------------------------


def processor_seconds(command: list[str]) -> float:
    """Returns the seconds of the process and those that it starts."""
    spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = spent()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{shlex.join(command)}\n{done.stderr}")
    return spent() - before


#: Seconds that ptxas 13.0 takes for `yardstick()` on an idle core (EPYC, November 2026): the least
#: of six runs.
YARDSTICK = 0.145


def yardstick() -> str:
    """A kernel of 6000 dependent operations: for ptxas about as much work as a GEMM is for all of
    the compiler."""
    loads = "".join(f"  ld.global.f32 %f{i}, [%a + {4 * i}];\n" for i in range(32))
    sums = "".join(f"  fma.rn.f32 %f{i % 32}, %f{(i + 7) % 32}, %f{(5 * i + 3) % 32}, %f{(i + 11) % 32};\n" for i in range(6000))
    stores = "".join(f"  st.global.f32 [%a + {4 * i}], %f{i};\n" for i in range(32))
    return (".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
            "  .reg .b64 %a;\n  .reg .f32 %f<32>;\n  ld.param.u64 %a, [p];\n" + loads + sums + stores + "  ret;\n}\n")


def seconds_of_idle_core(command: list[str], runs: int, scratch: pathlib.Path) -> float:
    """The least of `runs`, divided by how much longer than YARDSTICK the yardstick takes in the
    same time."""
    kernel = scratch / "yardstick.ptx"
    kernel.write_text(yardstick())
    ptxas = [os.environ.get("FP4_PTXAS") or "ptxas", "-arch=sm_90", str(kernel), "-o", str(scratch / "yardstick.cubin")]
    times = [(processor_seconds(command), processor_seconds(ptxas)) for _ in range(runs)]
    return min(ours for ours, _ in times) * YARDSTICK / min(theirs for _, theirs in times)


def compile_times(options: argparse.Namespace) -> list[dict[str, object]]:
    """Returns of each problem: its name, the kernels that its program has, and the seconds of a
    kernel."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as scratch:
        source, folder = pathlib.Path(scratch) / "p.mlir", pathlib.Path(scratch) / "cubins"
        for problem in problems():
            if options.only not in f"{problem.kind} {problem.name} {problem.format} {problem.source}":
                continue
            source.write_text(program(problem))
            command = [str(options.build / "bin/fp4-runner"), str(source), "--target=sm_100a", "--emit=cubin", "-o", f"{folder}/"]
            shutil.rmtree(folder, ignore_errors=True)
            seconds = seconds_of_idle_core(command, options.runs, pathlib.Path(scratch))
            kernels = len(list(folder.glob("*.cubin")))
            rows.append({"problem": f"{problem.kind} {problem.name}, {problem.format}", "kernels": kernels, "seconds": seconds / kernels})
    return rows


def print_compile_times(rows: list[dict[str, object]], most: float) -> int:
    print("| problem | kernels | seconds of an idle core, a kernel |\n|---|---|---|")
    for row in rows:
        print(f"| {row['problem']} | {row['kernels']} | {row['seconds']:.2f} |")
    slow = [row for row in rows if float(str(row["seconds"])) > most]
    for row in slow:
        print(f"error: {row['problem']} must be compiled in {most} s for a kernel, but takes {row['seconds']:.2f}", file=sys.stderr)
    if not rows:
        print("error: no problem has this name", file=sys.stderr)
    return 1 if slow or not rows else 0


# ---- Structure -----------------------------------------------------------------------------------


@dataclass
class Steady:
    """Per k tile of 256 elements and CTA, in steady state; mbarriers of a CTA. Instructions are
    what the simulator takes ptxas to make of the PTX (lib/Sim/Time/Units.def)."""
    roles: dict[str, float]
    bytes: float
    cycles: float
    operations: dict[str, float]
    barriers: float
    waits: dict[str, float]  # share of the cycles that a role waits at mbarriers, over the deeper run
    shared: int = 0


def timeline_counts(path: pathlib.Path) -> tuple[collections.Counter[str], int]:
    """Asynchronous operations and barrier phases by kind, and mbarriers."""
    events = json.loads(path.read_text())
    events = events if isinstance(events, list) else events["traceEvents"]
    counts = collections.Counter(event["cat"] for event in events if event.get("ph") == "b")
    return counts, len({event["id"] for event in events if event.get("cat") == "mbarrier"})


def role_name(name: str) -> str:
    return name.split(":")[0]


def instructions_of(time: dict[str, object]) -> dict[str, float]:
    """Returns the instructions of all warps of each role, of one CTA."""
    total: dict[str, float] = collections.defaultdict(float)
    for role in time["roles"]:  # type: ignore[attr-defined]
        total[role_name(role["name"])] += role["instructions"] * (role["last_warp"] - role["first_warp"] + 1)
    return dict(total)


def observe(command: list[str], scratch: pathlib.Path, prefix: list[str]) -> tuple[dict[str, object], collections.Counter[str], int]:
    """The report of --time and the timeline of a run."""
    line = [*prefix, "--timeline", str(scratch / "timeline.json"), *command]
    found = subprocess.run(line, capture_output=True, text=True, check=False)
    begin = found.stdout.find("{\n") if "fp4-runner" in prefix[0] else found.stdout.rfind('{"program"')
    if found.returncode or begin < 0:
        sys.exit(f"{shlex.join(line)}\n{found.stdout[-500:]}{found.stderr[-1000:]}")
    counts, barriers = timeline_counts(scratch / "timeline.json")
    return json.loads(found.stdout[begin:])["predicted_times"][-1], counts, barriers


def steady(runs: list[tuple[dict[str, object], "collections.Counter[str]", int]], depths: list[int]) -> Steady:
    (less, less_counts, _), (more, more_counts, barriers) = runs
    if not (less["predicted"] and more["predicted"]):
        sys.exit(f"no prediction: {less.get('unknown')}")
    blocks = 1
    for size in more["grid"]:  # type: ignore[attr-defined]
        blocks *= size
    deeper = (depths[1] - depths[0]) / 256
    before, after = instructions_of(less), instructions_of(more)
    waits: dict[str, float] = {}
    for role in more["roles"]:  # type: ignore[attr-defined]
        waits.setdefault(role_name(role["name"]), role["share"]["mbarrier"])
    return Steady({role: (after[role] - before.get(role, 0)) / deeper for role in after},
                  (more["l2_bytes"] - less["l2_bytes"]) / deeper / blocks,  # type: ignore[operator]
                  (more["cycles"] - less["cycles"]) / deeper,  # type: ignore[operator]
                  {kind: (more_counts[kind] - less_counts[kind]) / deeper / blocks for kind in more_counts}, barriers / blocks, waits)


def ours(build: pathlib.Path, plan: str, size: tuple[int, int], depths: list[int], scratch: pathlib.Path) -> Steady:
    runs = []
    for depth in depths:
        source = scratch / "ours.mlir"
        source.write_text(program(Problem("GEMM", *size, depth, 0, ""), plan))
        runs.append(observe(["--json"], scratch, [str(build / "bin/fp4-runner"), str(source), "--target=sm_100a", "--device=sim",
                                                  "--time", "--check=off", "--no-verify", "--dist=zeros"]))
    return steady(runs, depths)


def theirs(build: pathlib.Path, command: str, size: tuple[int, int], depths: list[int], scratch: pathlib.Path) -> Steady:
    runs = []
    for depth in depths:
        words = shlex.split(command.format(m=size[0], n=size[1], k=depth))
        runs.append(observe(["--json", "--", *words], scratch, [str(build / "bin/fp4-sim"), "run", "--device=b200", "--time",
                                                                "--check=off"]))
    return steady(runs, depths)


def print_structure(rows: list[tuple[str, Steady]]) -> None:
    roles = ["copies", "products", "epilogue", "threads"]
    print("| kernel | " + " | ".join(f"{role}: instructions" for role in roles) + " | L2 bytes | copies | tcgen05.cp | tcgen05.mma "
          "| barrier phases | MMA role: wait at mbarriers, % | cycles (predicted) | mbarriers of a CTA |")
    print("|---" * (len(roles) + 9) + "|")
    for name, row in rows:
        cells = [f"{row.roles.get(role, 0):.1f}" for role in roles] + [f"{row.bytes:.0f}"]
        cells.append(f"{row.operations.get('tma', 0) + row.operations.get('bulk', 0):.2f}")
        cells += [f"{row.operations.get(kind, 0):.2f}" for kind in ("tcgen05.cp", "tcgen05.mma", "mbarrier")]
        cells.append(f"{100 * row.waits.get('products', 0):.0f}")
        print(f"| {name} | " + " | ".join(cells) + f" | {row.cycles:.0f} | {row.barriers:.0f} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=["plans", "compile", "structure"])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--timed", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--mix", default="ptx", choices=["ptx", "cubin"], help="instructions as estimated from PTX, or as ptxas makes them")
    parser.add_argument("--peer", action="append", default=[], metavar="PLAN [:: COMMAND]")
    parser.add_argument("--size", default="256,256", metavar="M,N")
    parser.add_argument("--depths", default="4096,8192", metavar="K1,K2")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--most", type=float, default=float("inf"), metavar="SECONDS")
    options = parser.parse_args()
    if options.table == "compile":
        return print_compile_times(compile_times(options), options.most)
    if options.table == "plans":
        rows = plan_rows(options.build, options.only, options.timed, options.mix)
        print_plans(rows)
        found: list[object] = [asdict(row) for row in rows]
    else:
        m, n = map(int, options.size.split(","))
        depths = [int(k) for k in options.depths.split(",")]
        table = []
        with tempfile.TemporaryDirectory() as scratch:
            for peer in options.peer:
                plan, _, command = (part.strip() for part in peer.partition("::"))
                table.append((f"ours, {plan}", ours(options.build, plan, (m, n), depths, pathlib.Path(scratch))))
                if command:
                    their = theirs(options.build, command, (m, n), depths, pathlib.Path(scratch))
                    table.append((shlex.split(command)[0], their))
        print_structure(table)
        found = [{"kernel": name, **asdict(row)} for name, row in table]
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
