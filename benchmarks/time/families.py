#!/usr/bin/env python3
"""Predicts launches that were measured on an H200 back to back, in microseconds, by family.

  benchmarks/time/families.py BUILD [--only WORD,...] [--points N] [--seed S] [--json FILE]

A family is a group of rows of benchmarks/results: attention, caches, norms, GEMMs by operands, and
so on. Points that were measured again, with the kernels of that day, have that time
(drawn_points_h200). N points (166) are drawn with the seed (63), from each family as many as its
share says, and are simulated at the clock of the table of rates, with `--time-only`. A prediction
is the sum of the times of a program's kernels at the clock that the power limit leaves them.
Kernels of one GEMM that took turns had the clock of their mean power, which one of them does not
tell: their families are "in cycles", that is at the clock that was measured. No rate was fitted to
one of these times; power.py fits rates of power to clocks of other GEMMs. The table has errors for
each family, and FILE all points. The exit code is 1 if a point has no prediction.
"""
from __future__ import annotations

import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE.parent / "results"
for folder in (HERE.parent, HERE.parent / "peers"):
    sys.path.insert(0, str(folder))

import attention  # noqa: E402
import cached_attention  # noqa: E402
import norms  # noqa: E402
import packed_attention  # noqa: E402
import programs_of_fp4 as programs  # noqa: E402
import rotations  # noqa: E402
from predictions import is_held_out, summarize  # noqa: E402
from problems import KINDS, Problem  # noqa: E402


@dataclass
class Point:
    family: str
    name: str
    measured: float  # us
    text: str = field(repr=False)
    options: list[str] = field(default_factory=list)
    arrays: dict[str, list[Any]] = field(default_factory=dict, repr=False)  # int32 or f32 by argument
    megahertz: float = 0.0  # while it was measured; 0: nobody noted it
    gpu: str = "h200"
    longest: bool = False  # measured: of its kernels the longest one alone
    clock: float = 0.0  # GHz that was measured, of kernels that took turns; 0: it was alone
    predicted: float = 0.0
    kernels: list[dict[str, Any]] = field(default_factory=list)


def result(stem: str) -> list[dict[str, Any]]:
    return list(json.loads((RESULTS / f"{stem}.json").read_text(encoding="utf-8"))["rows"])


# ---- attention -----------------------------------------------------------------------------------


def attentions() -> Iterator[Point]:
    for row in result("attention_h200_2026-11-30"):
        elements, causal = int(row["heads"].split(",")[0].split()[-1]), "causal" in row["heads"]
        for length in attention.LENGTHS:
            if f"t{length}" in row:
                us = attention.operations(elements, length, causal) / row[f"t{length}"] / 1e6
                yield Point("attention", f"{row['heads']}, {length} tokens", us, attention.text(
                    attention.TOKENS // length, length, attention.ALL_ELEMENTS // elements, elements, causal))


def packed() -> Iterator[Point]:
    module = packed_attention
    for row in result("packed_attention_h200_2026-11-30"):
        lengths, causal = module.BATCHES[row["sequences"]], row["mask"] == "causal"
        ends = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
        arrays: dict[str, list[Any]] = {"a3": ends + ends[-1:] * (module.MOST + 1 - len(ends))}
        products = sum(4 * length ** 2 * module.HEADS * module.ELEMENTS for length in lengths) * (0.5 if causal else 1)
        for column, slopes in (("ours", False), ("slopes", True)):
            more = {"a4": [2.0 ** (-8 * (i + 1) / module.HEADS) for i in range(module.HEADS)]} if slopes else {}
            yield Point("attention", f"packed, {row['sequences']}, {row['mask']}{', slopes' * slopes}",
                        products / row[column] / 1e6, module.packed_text(causal, slopes), [f"--dim=T={sum(lengths)}"], arrays | more)


def caches() -> Iterator[Point]:
    def key(cell: cached_attention.Cell) -> tuple[str, str, str]:
        size = f"{cell.batches}x{cell.keys}" + (f", {cell.queries} queries" if cell.queries > 1 else "")
        form = cell.format if cell.format == "bf16" else cell.format.upper()
        return f"{cell.heads}/{cell.key_heads}x{cell.elements}", form, size + (f", pages {cell.page}" if cell.page else "")

    known = {key(cell): cell for cell in cached_attention.cells()}
    times = {("bf16", "us"): "cached_attention_h200_2026-11-30", ("FP8", "fp8"): "cached_attention_h200_2026-11-30",
             **{(name.upper(), name): "cached_codes_h200_2026-11-30" for name in ("nvfp4", "mxfp4", "mxfp8")}}
    for (form, column), row in ((place, row) for place, name in times.items() for row in result(name) if place[1] in row):
        cell = known[row["heads"], form, row["size"]]
        arrays: dict[str, list[Any]] = {}
        if cell.page:
            pages = list(range(cell.batches * cell.keys // cell.page))
            random.Random(1).shuffle(pages)
            count, first = cell.keys // cell.page, 5 if cached_attention.FORMATS.get(cell.format, ("", None))[1] else 3
            arrays = {f"a{first}": [cell.keys] * cell.batches,
                      f"a{first + 1}": [pages[i * count:(i + 1) * count] for i in range(cell.batches)]}
        yield Point("attention over caches", f"{row['heads']}, {form}, {row['size']}", row[column], cell.text(), [], arrays)


# ---- rows ----------------------------------------------------------------------------------------

CHAINS = {"RMSNorm to bf16": "rms-bf16", "LayerNorm to bf16": "layer-bf16", "RMSNorm to NVFP4": "rms-nvfp4",
          "residual, RMSNorm to NVFP4": "add_rms-nvfp4", "RMSNorm to FP8 of rows": "rms-fp8_row",
          "residual, RMSNorm to FP8 of rows": "add_rms-fp8_row"}


def all_norms() -> Iterator[Point]:
    for row in result("norms_h200_2026-11-29"):
        kind = CHAINS[row["chain"]]
        for column, rows in (("few", 64), ("many", 4096)):
            amax = {f"a{3 if kind.startswith('add_rms') else 2}": [norms.AMAX]} if "nvfp4" in kind else {}
            yield Point("norms, quantizers, rotations", f"{row['chain']}, {rows} x {row['columns']}", row[column],
                        norms.program(kind, row["columns"]), [f"--shape={rows}"], amax)
    for row in result("token_quantizers_h200_2026-11-28"):
        for column, rows, kind in (("few", 64, "none-token"), ("few_apart", 64, "none-token_apart"), ("many", 4096, "none-token"),
                                   ("many_apart", 4096, "none-token_apart")):
            yield Point("norms, quantizers, rotations", f"{kind}, {rows} x {row['columns']}", row[column], norms.program(kind, row["columns"]),
                        [f"--shape={rows}"])


ROTATIONS = {"rotation to bf16": "rope-bf16", "norm of heads, rotation to bf16": "norm_rope-bf16", "rotation to NVFP4": "rope-nvfp4",
             "norm of heads, rotation to NVFP4": "norm_rope-nvfp4", "the same into a cache": "norm_rope-cache",
             "gather of rows to NVFP4": "gather-nvfp4", "weighted sum of 2 rows": "combine-2", "weighted sum of 8 rows": "combine-8"}


def all_rotations() -> Iterator[Point]:
    for row in result("rotations_h200_2026-11-28"):
        kind = ROTATIONS[row["program"]]
        for column, tokens in (("few", 64), ("many", 4096), ("most", 16384)):
            text = rotations.rotation(kind) if "rope" in kind else rotations.gathering(kind)
            yield Point("norms, quantizers, rotations", f"{row['program']}, {tokens} tokens", row[column], text,
                        [f"--shape={tokens}", *rotations.options_of(kind, tokens)])


# ---- GEMMs ---------------------------------------------------------------------------------------


def tiles(stem: str, kinds: tuple[str, ...], family: str, gpu: str = "h200") -> Iterator[Point]:
    """Kernels of one GEMM with other tiles took turns, so that they had the clock of their mean
    power: predictions are for the measured one."""
    for row in result(stem):
        if row["kind"] not in kinds or (gpu == "h200" and not is_held_out(row["m"], row["n"], row["k"])):
            continue
        problem = Problem(row["kind"], row["m"], row["n"], row["k"])
        form = {"fast_accumulation": programs.FAST, "prepacked": programs.PREPACKED}.get(row["form"], "")
        ranges = f"{row['workers']}x{row['rows']}x{row['columns']}" if row.get("workers") else str(row["splits"])
        plan = f"tile_gemm, tile = [{row['rows']}, {row['columns']}, {row['depth']}]"
        yield Point(family, f"{form}{problem.name}, {ranges}, {plan}", row["us"], programs.program(problem, ranges, form),
                    ["--plan", plan], {}, row["mhz"], gpu, clock=row["mhz"] / 1e3)


def converted() -> Iterator[Point]:
    for stem in ("gemm_fp4_h200_2026-11-26", "gemm_fp4_many_rows_h200_2026-11-29"):
        for row in result(stem):
            n, k = map(int, row["weights"].split(" x "))
            problem = Problem(row["operands"].lower().replace(" x ", "_"), row["rows"], n, k)
            for column, form in (("fp4_us", ""), ("prepacked_us", programs.PREPACKED)):
                yield Point("GEMMs of two fp4 operands", f"{form}{problem.name}", row[column],
                            programs.program(problem, "fastest", form), [], {}, row["mhz"])


def chosen_fp8() -> Iterator[Point]:
    for stem in ("gemm_fp8_h200_2026-11-26", "gemm_fp8_any_k_h200_2026-11-29"):
        for row in result(stem):
            if isinstance(row["rows"], int):
                n, k = map(int, row["weights"].split(" x "))
                problem = Problem("fp8", row["rows"], n, k)
                yield Point("FP8 GEMMs", problem.name, row["fp4_us"], programs.program(problem, "fastest"), [], {}, row["mhz"])


def experts() -> Iterator[Point]:
    for row in result("sliced_k_h200_2026-11-29"):
        n, k = map(int, row["weights"].split(",")[0].split(" x "))
        m, of_experts = row["rows"], "experts" in row["weights"]
        for column, split, plan in (("one", 1, "k_slices = 1"), ("two", 2, f"tile = [{16 if m > 8 and not of_experts else 8}, 128, 256], "
                                                                 "k_slices = 2, sliced_k")):
            size = f"{(32 if of_experts else 1) * n // 128}x{k // 64}x{4352 if of_experts else 4608}"
            w = f"tensor<{size}xi8, #fp4.weight_layout<wgmma>>"
            offsets = ", ".join(str(min(i, m)) for i in range(33))
            lines, more, kind, extra = "", "", "", f"split_k = {split}"
            if of_experts:
                lines, more, kind = f"  %o = arith.constant dense<[{offsets}]> : tensor<33xi64>\n", " offsets %o", ", tensor<33xi64>"
                extra += ", expected_rows = 1, unspecified_rows"
            text = (f"func.func @f(%x: tensor<{m}x{k}xbf16>, %w: {w}) -> tensor<{m}x{n}xbf16> {{\n{lines}"
                    f"  %y = fp4.matmul %x, %w{more} {{work = #fp4.work<{extra}>}}\n"
                    f"      : (tensor<{m}x{k}xbf16>, {w}{kind}) -> tensor<{m}x{n}xbf16>\n  return %y : tensor<{m}x{n}xbf16>\n}}\n")
            plans = ["--plan", f"tile_gemm, {plan}"] if not of_experts or split > 1 else []
            yield Point("experts, linears", f"{row['weights']}, {m} rows, {column}", row[column], text, plans, longest=True)


IN_CYCLES = ", in cycles"
#: Each source of points, and how many of POINTS are of it.
SOURCES: list[tuple[Callable[[], Iterator[Point]], int]] = [
    (attentions, 16), (packed, 8), (caches, 26), (all_norms, 26), (all_rotations, 10), (experts, 10), (converted, 10), (chosen_fp8, 8),
    (lambda: tiles("gemm_tiles_h200_2026-11-29", ("fp8",), "FP8 GEMMs, any tiles" + IN_CYCLES), 14),
    (lambda: tiles("gemm_weight_tiles_h200_2026-11-29", ("bf16_nvfp4", "bf16_mxfp4"), "prepacked weights, any tiles" + IN_CYCLES), 12),
    (lambda: tiles("gemm_weight_tiles_h200_2026-11-29", ("e4m3_mxfp4",), "prepacked weights, any tiles" + IN_CYCLES), 10),
    (lambda: tiles("gemm_tiles_h100_2026-11-27", tuple(KINDS), "H100: GEMMs, any tiles" + IN_CYCLES, "h100"), 16),
]

POINTS = sum(share for _, share in SOURCES)


def drawn(seed: int, points: int) -> list[Point]:
    """Points of all sources."""
    again = {(row["family"], row["name"]): row for row in result("drawn_points_h200_2026-11-30")}
    found = []
    for source, share in SOURCES:
        every = list(source())
        random.Random(seed).shuffle(every)
        found += every[:max(1, round(share * points / POINTS))]
    for point in found:
        if row := again.get((point.family, point.name)):
            point.measured, point.megahertz = row["us"], row["mhz"]
    return found


# ---- predictions ---------------------------------------------------------------------------------


def predict(build: pathlib.Path, point: Point, mix: str, most: float) -> str:
    """Fills in the prediction; the reason where there is none."""
    import numpy
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program.mlir"
        program.write_text(point.text, encoding="utf-8")
        inputs = []
        for name, values in point.arrays.items():
            array = numpy.array(values)
            array = array.astype(numpy.float32 if array.dtype.kind == "f" else numpy.int32)
            numpy.save(program.with_name(name), array[0] if array.shape == (1,) and array.dtype == numpy.float32 else array)
            inputs.append(f"--input={name}={program.with_name(name)}.npy")
        command = [str(build / "bin/fp4-runner"), str(program), "--target=sm_90a", "--device=sim", f"--gpu={point.gpu}", "--time-only", "--json",
                   "--mix", mix, *point.options, *inputs]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=most)
        except subprocess.TimeoutExpired:
            return f"left out after {most:g} s"
    if done.returncode:
        return f"FAILED: {(done.stderr or done.stdout)[-300:]}"
    point.kernels = json.loads(done.stdout)["predicted_times"]
    if not all(kernel["predicted"] for kernel in point.kernels):
        return f"no prediction: {[kernel.get('unknown') for kernel in point.kernels]}"
    times = [time_of(kernel, point.clock) for kernel in point.kernels]
    point.predicted = max(times) if point.longest else sum(times)
    return ""


def time_of(kernel: dict[str, Any], clock: float) -> float:
    """Microseconds of a kernel back to back, or at a clock in GHz. The part that device memory
    bounds takes as long at any clock, as in Power.cpp."""
    if not clock:
        return float(kernel["power"]["sustained_microseconds"])
    launch, kept = kernel["launch_microseconds"], kernel.get("busy", {}).get("device memory", 0) ** 4
    longer = (kernel["gigahertz"] / clock) ** 4
    return float(launch + (kernel["microseconds"] - launch) * ((1 - kept) * longer + kept) ** 0.25)


def by_family(points: list[Point]) -> dict[str, list[tuple[float, float]]]:
    """Measured and predicted times of each family, and of all at the model's own clocks."""
    families = collections.defaultdict(list)
    for source, _ in SOURCES:
        family = next(source()).family
        families[family] = []
    for point in points:
        families[point.family].append((point.measured, point.predicted))
    families["all at own clocks"] = [(point.measured, point.predicted) for point in points if not point.clock]
    return {family: times for family, times in families.items() if times}


def write_table(points: list[Point], of: int, file: pathlib.Path, revision: str) -> None:
    """Writes the errors as a result of docgen/result_tables.py: those of the points that have a
    prediction, `of` so many that were drawn. `file`: NAME_h200_DATE.json"""
    rows = []
    for family, times in by_family(points).items():
        errors = [100 * (predicted / measured - 1) for measured, predicted in times]
        rows.append({"kernels": family, "points": len(errors), "mean_absolute": round(sum(map(abs, errors)) / len(errors), 1),
                     "worst": round(max(errors, key=abs), 1)})
    columns = [("kernels", "kernels", None), ("points", "points", None), ("mean_absolute", "mean absolute error", "%"),
               ("worst", "worst error", "%")]
    table = {"area": "time-families", "card": "H200", "device": "NVIDIA H200", "driver": None, "date": file.stem.split("_")[-1],
             "revision": revision, "clock": f"own clocks of the model, the measured ones in cycles; {len(points)} of {of} points drawn",
             "command": "benchmarks/time/families.py build --table FILE", "program": "errors of predictions against measured times",
             "evidence": "predicted", "columns": [dict(zip(("name", "title", "unit"), column)) for column in columns],
             "key": ["kernels"], "rows": rows}
    file.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--only", default="", help="points whose family and name contain one of these")
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--seed", type=int, default=63)
    parser.add_argument("--mix", default="cubin", choices=("ptx", "cubin", "auto"))
    parser.add_argument("--most", type=float, default=300, help="seconds of one prediction")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path, help="write a result for docgen/result_tables.py, NAME_h200_DATE.json")
    parser.add_argument("--revision", help="of the result")
    options = parser.parse_args()
    points = [point for point in drawn(options.seed, options.points)
              if any(word in f"{point.family} {point.name}" for word in options.only.split(","))]
    done: list[Point] = []

    def attempt(point: Point) -> tuple[Point, str, float]:
        begin = time.monotonic()
        return point, predict(options.build, point, options.mix, options.most), time.monotonic() - begin

    with ThreadPoolExecutor(options.jobs) as pool:
        for point, failure, seconds in pool.map(attempt, points):
            print(f"{point.family} | {point.name} | measured {point.measured:.2f} us | " +
                  (failure or f"predicted {point.predicted:.2f} us, {100 * (point.predicted / point.measured - 1):+.1f} %") +
                  f" | {seconds:.1f} s", flush=True)
            if not failure:
                done.append(point)
            if options.json:
                rows = [{key: value for key, value in asdict(one).items() if key not in ("text", "arrays")} for one in done]
                options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    for family, times in by_family(done).items():
        summarize(family, times)
    if options.table:
        write_table(done, len(points), options.table, options.revision)
    print(f"{len(done)} of {len(points)} points have a prediction")
    return 0 if len(done) == len(points) else 1


if __name__ == "__main__":
    sys.exit(main())
