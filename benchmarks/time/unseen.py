#!/usr/bin/env python3
"""Draws programs of all families that nobody has measured, and compares their predicted times with
measured ones.

  benchmarks/time/unseen.py pack BUILD FOLDER [--seed S] [--scale X]   compiles them for sm_90a
  benchmarks/time/unseen.py predict FOLDER [--jobs N]    writes FOLDER/predicted.json
  benchmarks/time/unseen.py measure FOLDER               on a GPU: writes FOLDER/measured.json
  benchmarks/time/unseen.py report FOLDER [--points FILE] [--table FILE] --revision R

Sizes are drawn with equal chances for each power of two, shapes of weights and of heads as models
have them and others, formats, masks and pages. `predict` needs no GPU, and is to run first. A
program is measured when it has run for 0.15 s, because the clock of a GPU falls for so long, and is
predicted at the clock that the model gives it. `report` prints errors by family, the mean of the
others' where one family is left out, and what a correction by the mean error of the other families
would leave; FILE are results for benchmarks/results.
"""
from __future__ import annotations

import argparse
import collections
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from families import attention, cached_attention, norms, programs, rotations
from problems import Problem

Drawn = tuple[str, str, list[str], dict[str, list[Any]]]
STREAMING = pathlib.Path(__file__).resolve().parent.parent / "streaming.mlir"
WARM = 150  # ms


class Dice:
    """Choices of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def size(self, least: int, most: int, step: int = 1) -> int:
        value = math.exp(self.random.uniform(math.log(least), math.log(most)))
        return max(step, round(value / step) * step)

    def one(self, *of: Any) -> Any:
        return self.random.choice(of)


def drawn_attention(dice: Dice) -> Drawn:
    operations, size = 0.0, 0
    while not 3e9 < operations < 2.5e11 or size > 1.2e8:
        elements, heads = dice.one(64, 128, 256), dice.one(4, 8, 12, 16, 20, 32)
        batches, tokens, causal = dice.size(1, 32), dice.size(256, 8192, 64), dice.one(False, True)
        operations = 4 * batches * heads * tokens ** 2 * elements * (0.5 if causal else 1)
        size = batches * tokens * heads * elements
    text, name = (attention.text_of_bytes, ", e4m3") if dice.random.random() < 0.3 else (attention.text, "")
    return (f"{batches} x {tokens}, {heads} heads of {elements}{', causal' * causal}{name}",
            text(batches, tokens, heads, elements, causal), [], {})


def drawn_cache(dice: Dice) -> Drawn:
    cell = None
    while not cell or not 2e6 < cell.bytes < 3e8:
        heads, of_key, elements = dice.one((8, 4, 128), (8, 8, 64), (4, 8, 128), (8, 5, 128), (2, 8, 128), (8, 2, 128), (4, 4, 64), (16, 4, 64))
        form, batches, keys = dice.one("bf16", *cached_attention.FORMATS), dice.size(1, 64), dice.size(512, 65536, 512)
        queries, page = dice.one(1, 1, 1, 2, 4), dice.one(0, 0, 0, 16, 64)
        cell = cached_attention.Cell("drawn", heads * of_key, heads, elements, batches, queries, keys, page, form)
    arrays: dict[str, list[Any]] = {}
    if cell.page:
        count, first = cell.keys // cell.page, 5 if cached_attention.FORMATS.get(cell.format, ("", None))[1] else 3
        pages = list(range(cell.batches * count))
        random.Random(1).shuffle(pages)
        arrays = {f"a{first}": [cell.keys] * cell.batches, f"a{first + 1}": [pages[i * count:(i + 1) * count] for i in range(cell.batches)]}
    name = f"{cell.heads}/{cell.key_heads}x{cell.elements}, {cell.format}, {cell.batches}x{cell.keys}, {cell.queries} queries, pages {cell.page}"
    return name, cell.text(), [], arrays


def drawn_rows(dice: Dice) -> Drawn:
    if dice.random.random() < 0.3:
        kind, tokens = dice.one(*rotations.KINDS), dice.size(32, 16384, 16)
        text = rotations.rotation(kind) if "rope" in kind else rotations.gathering(kind)
        return f"{kind}, {tokens} tokens", text, [f"--shape={tokens}", *rotations.options_of(kind, tokens)], {}
    if dice.random.random() < 0.2:
        kind, rows = dice.one("nvfp4", "mxfp4", "hadamard", "stochastic", "adaptive", "dequantize", "amaxes"), dice.size(32, 16384, 16)
        return f"{kind}, {rows} x 4096", STREAMING.read_text(encoding="utf-8"), [f"--shape={rows}", f"--function={kind}"], {}
    kind = dice.one(*norms.KINDS, "none-token", "none-token_apart", "rms-token")
    rows, columns = dice.size(16, 8192, 8), dice.size(1024, 16384, 512)
    while rows * columns > 6.5e7:
        rows = dice.size(16, 8192, 8)
    amax = {f"a{3 if kind.startswith('add_rms') else 2}": [norms.AMAX]} if kind.endswith("-nvfp4") else {}
    return f"{kind}, {rows} x {columns}", norms.program(kind, columns), [f"--shape={rows}"], amax


def drawn_gemm(dice: Dice, kinds: tuple[str, ...], forms: tuple[str, ...], ranges: str, most: float, least: int = 8) -> Drawn:
    m = n = k = 1 << 20
    while 2 * m * n * k > most or n * k > 1.5e8:
        kind, m, n, k = dice.one(*kinds), dice.size(least, 4096), dice.size(1024, 24576, 256), dice.size(1024, 16384, 512)
        m = m if m < 16 else m // 8 * 8
    form = dice.one(*(form for form in forms if form != programs.FAST or kind == "e4m3_mxfp4"))
    problem = Problem(kind, m, n, k)
    return f"{form}{problem.name}", programs.program(problem, ranges, form), [], {}


def drawn_experts(dice: Dice) -> Drawn:
    n, k = dice.size(1024, 6144, 128), dice.size(1024, 6144, 256)
    count, m = dice.one(8, 16, 32, 64), dice.one(4, 8, 16, 32, 64, 128)
    while count * n * k > 4e8:
        count //= 2
    w = f"tensor<{count * n // 128}x{k // 64}x4352xi8, #fp4.weight_layout<wgmma>>"
    offsets = ", ".join(map(str, [0, *sorted(dice.random.randrange(m + 1) for _ in range(count - 1)), m]))
    text = (f"func.func @f(%x: tensor<{m}x{k}xbf16>, %w: {w}) -> tensor<{m}x{n}xbf16> {{\n"
            f"  %o = arith.constant dense<[{offsets}]> : tensor<{count + 1}xi64>\n"
            f"  %y = fp4.matmul %x, %w offsets %o {{work = #fp4.work<split_k = 1, expected_rows = {max(1, m // count)}, unspecified_rows>}}\n"
            f"      : (tensor<{m}x{k}xbf16>, {w}, tensor<{count + 1}xi64>) -> tensor<{m}x{n}xbf16>\n  return %y : tensor<{m}x{n}xbf16>\n}}\n")
    return f"{n} x {k}, {count} experts of MXFP4, {m} rows", text, [], {}


#: Each family with the number of its points, as families.py has them.
FAMILIES: dict[str, tuple[int, Callable[[Dice], Drawn]]] = {
    "attention": (18, drawn_attention), "attention over caches": (26, drawn_cache), "norms, quantizers, rotations": (40, drawn_rows),
    "experts, linears": (12, drawn_experts),
    "GEMMs of two fp4 operands": (16, lambda dice: drawn_gemm(dice, programs.PACKED, ("", programs.PREPACKED), "fastest", 2.2e11)),
    "FP8 GEMMs": (14, lambda dice: drawn_gemm(dice, ("fp8",), ("",), "fastest", 3e11)),
    "prepacked weights": (24, lambda dice: drawn_gemm(dice, ("bf16_nvfp4", "bf16_mxfp4", "e4m3_mxfp4"), ("", programs.FAST), "1", 2e11, 1))}


# ---- a folder of points --------------------------------------------------------------------------


def compile_point(build: pathlib.Path, folder: pathlib.Path, stem: str, family: str, drawn: Drawn) -> dict[str, Any]:
    import numpy
    name, text, options, arrays = drawn
    (folder / f"{stem}.mlir").write_text(text, encoding="utf-8")
    subprocess.run([build / "bin/fp4-runner", folder / f"{stem}.mlir", "--target=sm_90a", "--emit=so", "-o", folder / f"{stem}.so"], check=True)
    for argument, values in arrays.items():
        array = numpy.array(values)
        array = array.astype(numpy.float32 if array.dtype.kind == "f" else numpy.int32)
        numpy.save(folder / f"{stem}_{argument}.npy", array[0] if array.shape == (1,) and array.dtype == numpy.float32 else array)
        options = [*options, f"--input={argument}={stem}_{argument}.npy"]
    return {"stem": stem, "family": family, "name": name, "options": options}


def pack(options: argparse.Namespace) -> None:
    options.folder.mkdir(parents=True, exist_ok=True)
    dice, rows = Dice(options.seed), []
    for family, (count, draw) in FAMILIES.items():
        for _ in range(round(count * options.scale)):
            rows.append(compile_point(options.build, options.folder, f"p{len(rows):03}", family, draw(dice)))
    shutil.copy(options.build / "bin/fp4-run", options.folder)
    (options.folder / "points.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def run_point(folder: pathlib.Path, point: dict[str, Any], *options: str) -> dict[str, Any]:
    """The report of fp4-run; of a run that fails, why."""
    done = subprocess.run(["./fp4-run", f"./{point['stem']}.so", "--json", *point["options"], *options], cwd=folder, capture_output=True, text=True)
    return json.loads(done.stdout) if not done.returncode else {"failure": (done.stderr or done.stdout)[-300:]}


def predict(options: argparse.Namespace) -> None:
    def one(point: dict[str, Any]) -> dict[str, Any]:
        report = run_point(options.folder, point, "--device=sim", "--gpu=h200", "--time-only", "--mix=cubin")
        kernels = report.get("predicted_times", [])
        if not kernels or not all(kernel["predicted"] for kernel in kernels):
            return point | {"failure": report.get("failure", "no prediction")}
        return point | {"predicted": sum(kernel["power"]["sustained_microseconds"] for kernel in kernels),
                        "megahertz": 1e3 * max(kernels, key=lambda kernel: kernel["microseconds"])["power"]["sustained_gigahertz"]}

    write_each(options, "predicted", one)


def measure(options: argparse.Namespace) -> None:
    def one(point: dict[str, Any]) -> dict[str, Any]:
        report = run_point(options.folder, point, "--device=cuda", "--benchmark", f"--warm={WARM}")
        entries = [entry for entry in report.get("benchmark", {}).get("entries", []) if entry["name"] == "program"]
        if not entries:
            return point | {"failure": report.get("failure", "no time")}
        return point | {"measured": 1e3 * entries[0]["median_ms"], "megahertz": entries[0].get("true_clock_mhz", 0)}

    write_each(options, "measured", one)


def write_each(options: argparse.Namespace, name: str, of_point: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    points, rows = json.loads((options.folder / "points.json").read_text(encoding="utf-8")), []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(of_point, points):
            rows.append(row)
            print(row["family"], "|", row["name"], "|", row.get("failure") or f"{row[name]:.2f} us, {row['megahertz']:.0f} MHz", flush=True)
            (options.folder / f"{name}.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


# ---- the errors ----------------------------------------------------------------------------------


def mean_absolute(errors: Iterable[float]) -> float:
    return statistics.mean(map(abs, errors))


def compared(folder: pathlib.Path) -> list[dict[str, Any]]:
    """The points that have both times."""
    measured, predicted = ({row["stem"]: row for row in json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) if name in row}
                           for name in ("measured", "predicted"))
    return [{"family": row["family"], "name": row["name"], "us": round(row["measured"], 2), "mhz": round(row["megahertz"]),
             "predicted_us": round(predicted[stem]["predicted"], 2), "predicted_mhz": round(predicted[stem]["megahertz"]),
             "error": round(100 * (predicted[stem]["predicted"] / row["measured"] - 1), 1)} for stem, row in measured.items() if stem in predicted]


def of_families(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The errors of each family, and of all. `left_out` is the mean absolute one less what the
    other families foretell: their mean error, taken off this family's predictions."""
    families = collections.defaultdict(list)
    for row in rows:
        families[row["family"]].append(row["error"])
    found = []
    for family, errors in [*families.items(), ("all", [row["error"] for row in rows])]:
        others = [error for other, of in families.items() if other != family for error in of]
        bias = statistics.mean(others) if family != "all" and others else 0
        left_out = {"left_out": round(mean_absolute(100 * ((1 + error / 100) / (1 + bias / 100) - 1) for error in errors), 1)} if bias else {}
        found.append({"kernels": family, "points": len(errors), "mean_absolute": round(mean_absolute(errors), 1),
                      "worst": round(max(errors, key=abs), 1), **left_out, "within": sum(abs(error) <= 15 for error in errors)})
    return found


def write(area: str, titles: dict[str, tuple[str, str | None]], rows: list[dict[str, Any]], file: pathlib.Path, revision: str) -> None:
    """Writes a result of docgen/result_tables.py. `file`: NAME_h200_DATE.json"""
    table = {"area": area, "card": "H200", "device": "NVIDIA H200", "driver": None, "date": file.stem.split("_")[-1],
             "revision": revision, "clock": "own clocks behind 0.15 s of the same program, cold L2", "command": "benchmarks/time/unseen.py",
             "program": "programs drawn by benchmarks/time/unseen.py, which no rate was fitted to",
             "evidence": "measured" if area == "unseen-points" else "predicted",
             "columns": [{"name": name, "title": title, "unit": unit} for name, (title, unit) in titles.items()],
             "key": list(titles)[:2 if area == "unseen-points" else 1], "rows": rows}
    file.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


TIMES: dict[str, tuple[str, str | None]] = {
    "family": ("kernels", None), "name": ("point", None), "us": ("time", "us"), "mhz": ("clock", "MHz"), "predicted_us": ("predicted", "us"),
    "predicted_mhz": ("predicted clock", "MHz"), "error": ("error", "%")}
ERRORS: dict[str, tuple[str, str | None]] = {
    "kernels": ("kernels", None), "points": ("points", None), "mean_absolute": ("mean absolute error", "%"),
    "left_out": ("less the mean of other families", "%"), "worst": ("worst error", "%"), "within": ("points within 15 %", None)}


def report(options: argparse.Namespace) -> None:
    rows = compared(options.folder)
    for row in of_families(rows):
        print(json.dumps(row))
    if options.points:
        write("unseen-points", TIMES, rows, options.points, options.revision)
    if options.table:
        write("time-unseen", ERRORS, of_families(rows), options.table, options.revision)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("pack", "predict", "measure", "report"))
    parser.add_argument("folders", type=pathlib.Path, nargs="+", help="[BUILD] FOLDER")
    parser.add_argument("--seed", type=int, default=20261201)
    parser.add_argument("--scale", type=float, default=1, help="points, of 150")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--points", type=pathlib.Path, help="write all points as a result, NAME_h200_DATE.json")
    parser.add_argument("--table", type=pathlib.Path, help="write the errors of families as a result, NAME_h200_DATE.json")
    parser.add_argument("--revision", help="of the results")
    options = parser.parse_args()
    options.build, options.folder = options.folders[0].absolute(), options.folders[-1]
    {"pack": pack, "predict": predict, "measure": measure, "report": report}[options.action](options)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
