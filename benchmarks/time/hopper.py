#!/usr/bin/env python3
"""Compares predicted times with those measured on an H200, of every kernel that was measured, in
one table.

  benchmarks/time/hopper.py pack BUILD FOLDER [--only WORD]     compiles the kernels for sm_90a into
      FOLDER, with fp4-run
  FOLDER/hopper.py run FOLDER [--jobs N] [--only WORD,...] [--mix cubin] [--most SECONDS] [--json
      FILE]

  FOLDER/hopper.py measure FOLDER [--only WORD,...] [--seconds N] [--json FILE]   on an H200

The second command needs no GPU and nothing but the folder, on any machine. Each kernel runs with
the plan that was measured, alone, with cold L2, at the clock that SMs had when it was measured.
Points that a rate of fp4/ISA/TimingRates.def was fitted to are marked, and take no part in the
errors. The third measures the same libraries again, verified before, and prints a line for each:
the median, its 20th and 80th percentiles, and the clock that kernels noted.
"""
from __future__ import annotations

import argparse
import csv
import json
import pathlib
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

from predictions import summarize, summarize_short

HERE = pathlib.Path(__file__).resolve().parent
SCALES = {"nvfp4": (16, "f8E4M3FN", 4608), "mxfp4": (32, "f8E8M0FNU", 4352)}
CALIBRATION = {("add", 32): "FirstCtas"}
# An amax and its quantizer are two kernels without PDL, as they were measured.
APART = "stream_blocks, amax = separate"
WEIGHTS = ("weights", "alone", "tall")  # kinds of bf16 activations times prepacked weights
DYNAMIC = WEIGHTS[:2]  # with any number of rows
SCRIPTS = {"form": "forms.sh", "experts": "experts.sh", "tail": "tails.sh"}  # that compile points of these kinds


@dataclass
class Point:
    kind: str  # streaming, mapping, or a kind of gemms_h200.csv or of forms_h200.csv
    name: str
    library: str
    function: str
    measured: float
    kernel: str = ""  # of several; empty: the longest
    shape: list[int] = field(default_factory=list)
    sizes: list[str] = field(default_factory=list)  # NAME=SIZE, in place of a shape
    megahertz: float = 0.0  # 0: as in the table of rates
    results: bool = False  # the time depends on values
    calibrates: str = ""
    predicted: float = 0.0
    bound: str = ""

    def error(self) -> float:
        return self.predicted / self.measured - 1

    def command(self, folder: pathlib.Path, mix: str) -> list[str]:
        what = ["--time", "--no-verify", "--check=off"] if self.results else ["--time-only"]
        if self.megahertz:
            what += ["--clock", f"{self.megahertz / 1e3:g}"]
        if self.kind == "mapping":  # they differ by less than a sample from the whole
            what += ["--sample-after", "0"]
        return [str(folder / "fp4-run"), str(folder / self.library), "--device", "sim", "--function", self.function, "--json",
                "--mix", mix, *what, *self.dynamic()]

    def dynamic(self) -> list[str]:
        """The sizes of this point, as fp4-run takes them."""
        shape = ["--shape", ",".join(map(str, self.shape))] if self.shape else []
        return shape + [word for size in self.sizes for word in ("--dim", size)]


def rows_of(file: pathlib.Path) -> list[dict[str, str]]:
    with open(file, encoding="utf-8") as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def clock_of(row: dict[str, str]) -> float:
    return float(row.get("megahertz") or 0)


# Measured points


def streaming(folder: pathlib.Path) -> list[Point]:
    return [Point("streaming", f"{row['kernel']}, {row['rows']} rows", "elementwise.so" if row["function"] == "add" else "streaming.so",
                  row["function"], float(row["microseconds"]), row["kernel"], [int(row["rows"])], results=True,
                  calibrates=CALIBRATION.get((row["function"], int(row["rows"])), "")) for row in rows_of(folder / "h200.csv")]


def mappings(folder: pathlib.Path) -> list[Point]:
    return [Point("mapping", f"{row['function']}, {row['threads']} threads, {row['blocks']} blocks",
                  f"streaming_{row['threads']}_{row['blocks']}.so", row["function"], float(row["microseconds"]), "quantize", [16384],
                  results=True)
            for row in rows_of(folder / "mappings_h200.csv")]


def products(folder: pathlib.Path) -> list[Point]:
    points = []
    for row in rows_of(folder / "gemms_h200.csv"):
        kind, split = row["kind"], int(row["split"])
        name = f"{row['format']} {row['m']} x {row['n']} x {row['k']}{f', {split} ranges' if split > 1 else ''} {row['tile']}"
        name += f", {row['resident']} resident" if row["resident"] else ""
        name += f" at {row['megahertz']} MHz" if row["megahertz"] else ""
        library = "gemv.so" if kind == "dots" else "_".join([kind, *(row[key] for key in ("format", "m", "n", "k", "split", "tile", "resident"))]) + ".so"
        points.append(Point(kind, name.strip(), library, row["format"] if kind == "dots" else "f", float(row["microseconds"]),
                            "dots" if kind == "dots" else "", [int(row["m"])] if kind in DYNAMIC else [], megahertz=clock_of(row)))
    return points


def forms(folder: pathlib.Path) -> list[Point]:
    """Kernels of the programs of forms.sh, experts.sh and tails.sh, and of other sizes of the same
    libraries."""
    return [Point(row["kind"], ", ".join(filter(None, (row["library"], row["kernel"], row["sizes"]))), f"{row['library']}.so",
                  row["function"], float(row["microseconds"]), row["kernel"], [int(size) for size in row["sizes"].split() if size.isdigit()],
                  [size for size in row["sizes"].split() if "=" in size], clock_of(row)) for row in rows_of(folder / "forms_h200.csv")]


def selected(folder: pathlib.Path, words: str) -> list[Point]:
    """The points whose kind and name contain one of `words`, each once, in the order of the
    words."""
    every = streaming(folder) + products(folder) + mappings(folder) + forms(folder)
    return list({f"{p.kind} {p.name}": p for word in words.split(",") for p in every if word in f"{p.kind} {p.name}"}.values())


# The programs


def weights(row: dict[str, str]) -> str:
    """bf16 activations times prepacked weights."""
    n, k = int(row["n"]), int(row["k"])
    m = "?" if row["kind"] in DYNAMIC else row["m"]
    packed = f"tensor<{n // 128}x{k // 64}x{SCALES[row['format']][2]}xi8, #fp4.weight_layout<wgmma>>"
    return f"""func.func @f(%x: tensor<{m}x{k}xbf16> {{fp4.dims = ["M", "K"]}}, %w: {packed}) -> tensor<{m}x{n}xbf16> {{
  %y = fp4.matmul %x, %w {{work = #fp4.work<split_k = {row['split']}>}}
      : (tensor<{m}x{k}xbf16>, {packed}) -> tensor<{m}x{n}xbf16>
  return %y : tensor<{m}x{n}xbf16>
}}
"""


def product(row: dict[str, str]) -> str:
    """Two operands with scales, of fp4 or of FP8 in blocks of 128."""
    m, n, k = int(row["m"]), int(row["n"]), int(row["k"])

    def operand(name: str, rows: int) -> tuple[str, str]:
        if row["format"] == "fp8_block128":
            size = f"{rows}x{k // 128}" if name == "a" else f"{rows // 128}x{k // 128}"
            data, scale = f"tensor<{rows}x{k}xf8E4M3FN>", f"tensor<{size}xf32>"
        else:
            block, element, _ = SCALES[row["format"]]
            data = f"tensor<{rows}x{k}xf4E2M1FN>"
            scale = f"tensor<{rows}x{k // block}x{element}, #fp4.scale_layout<tiled_128x4>>"
        return f"%{name}: {data}, %s{name}: {scale}", f"{data}, {scale}"

    (a, types_a), (b, types_b) = operand("a", m), operand("b", n)
    split = f" {{work = #fp4.work<split_k = {row['split']}>}}" if int(row["split"]) > 1 else ""
    kinds = [f"!fp4.scaled<{row['format']}, {types}>" for types in (types_a, types_b)]
    return f"""func.func @f({a}, {b}) -> tensor<{m}x{n}xbf16> {{
  %lhs = fp4.scaled %a, %sa : {kinds[0]}
  %rhs = fp4.scaled %b, %sb : {kinds[1]}
  %y = fp4.matmul %lhs, %rhs{split} : ({", ".join(kinds)}) -> tensor<{m}x{n}xbf16>
  return %y : tensor<{m}x{n}xbf16>
}}
"""


def plan_of(row: dict[str, str]) -> list[str]:
    """Split-K with the reduction in a workspace that it had when it was measured."""
    tile = f", tile = [{row['tile'].replace('x', ', ')}]" if row["tile"] else ""
    join = ", cluster = [1, 1]" if int(row["split"]) > 1 and row["kind"] != "alone" else ""
    resident = f", ctas_per_sm = {row['resident']}" if row["resident"] else ""
    return ["--plan", f"tile_gemm{tile}{join}{resident}"] if tile or join else []


def pack(options: argparse.Namespace) -> None:
    build, folder = options.build, options.folder
    folder.mkdir(parents=True, exist_ok=True)
    for file in (build / "bin" / "fp4-run", HERE / "hopper.py", HERE / "predictions.py", *HERE.glob("*h200.csv")):
        shutil.copy(file, folder)
    needed = {point.library for point in selected(HERE, options.only)}

    def emit(program: pathlib.Path, library: str, *rest: str) -> None:
        if library in needed:
            subprocess.run([build / "bin" / "fp4-runner", program, "--target=sm_90a", "--emit=so", "-o", folder / library, *rest], check=True)
            needed.remove(library)

    apart = ["--no-pdl", "--plan", APART]
    emit(HERE.parent / "streaming.mlir", "streaming.so", *apart)
    emit(HERE.parent / "micro" / "elementwise.mlir", "elementwise.so")
    emit(HERE.parent / "gemv.mlir", "gemv.so", "--plan", "gemv, threads = 128, ctas_per_sm = 4")
    for row in rows_of(HERE / "mappings_h200.csv"):
        emit(HERE.parent / "streaming.mlir", f"streaming_{row['threads']}_{row['blocks']}.so",
             *apart[:-1], f"{APART}, threads = {row['threads']}, blocks_per_thread = {row['blocks']}")
    program = folder / "product.mlir"
    for row, point in zip(rows_of(HERE / "gemms_h200.csv"), products(HERE)):
        if row["kind"] == "dots":
            continue
        program.write_text(weights(row) if row["kind"] in WEIGHTS else product(row), encoding="utf-8")
        emit(program, point.library, "--no-pdl", *plan_of(row))
    for kind, script in SCRIPTS.items():
        if any(point.kind == kind for point in selected(HERE, options.only)):
            subprocess.run([HERE.parent / script, "pack", build.resolve(), folder], check=True)


# Measuring


def measure_one(folder: pathlib.Path, point: Point) -> dict[str, object]:
    """The timing of the longest kernel, in us. fp4-run compares with the reference before it
    measures."""
    done = subprocess.run([str(folder / "fp4-run"), str(folder / point.library), "--device", "cuda", "--function", point.function, "--json",
                           "--benchmark", *point.dynamic()], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout)[-400:])
    report = json.loads(done.stdout)["benchmark"]
    entries = [entry for entry in report["entries"] if entry["name"] != "program" and point.kernel in entry["name"]]
    timing = max(entries, key=lambda entry: float(entry["timing"]["median_ms"]))["timing"]
    return {"kind": point.kind, "name": point.name, "before": point.measured, "microseconds": round(1e3 * timing["median_ms"], 3),
            "p20": round(1e3 * timing["p20_ms"], 3), "p80": round(1e3 * timing["p80_ms"], 3), "megahertz": round(timing.get("true_clock_mhz", 0)),
            "by the driver": timing.get("sm_clock_mhz", [])}


def measure(options: argparse.Namespace) -> None:
    """Measures points in the order of the words of --only, until the time is over. A point that
    fails is named and left out."""
    begin, rows = time.monotonic(), []
    for point in selected(options.folder, options.only):
        if time.monotonic() - begin > options.seconds:
            print(f"left out after {options.seconds:g} s: {point.kind} {point.name}", flush=True)
            continue
        try:
            row = measure_one(options.folder, point)
        except RuntimeError as failure:
            print(f"FAILED: {point.kind} {point.name}: {failure}", flush=True)
            continue
        rows.append(row)
        print(f"{row['kind']:<10} {row['name']:<52} {row['microseconds']:>8} us, before {row['before']:>8} us, p20 {row['p20']}, p80 {row['p80']}, "
              f"{row['megahertz']} MHz, by the driver {row['by the driver']}", flush=True)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


# The predictions


def predict(folder: pathlib.Path, point: Point, mix: str, most: float) -> bool:
    """Fills in the prediction; false where it takes too long."""
    try:
        done = subprocess.run(point.command(folder, mix), capture_output=True, text=True, timeout=most)
    except subprocess.TimeoutExpired:
        return False
    if done.returncode:
        raise RuntimeError(f"{' '.join(point.command(folder, mix))}: {done.stderr[-400:]}")
    report = json.loads(done.stdout)
    launches = [time for kernel, time in zip(report["kernels"], report["predicted_times"]) if point.kernel in kernel["module"]]
    if unknown := [launch["unknown"] for launch in launches if not launch["predicted"]]:
        raise RuntimeError(f"no prediction: {unknown[0]}")
    launch = max(launches, key=lambda time: float(time["microseconds"]))
    point.predicted, point.bound = float(launch["microseconds"]), str(launch["bound"])
    return True


def ranks(values: list[float]) -> list[float]:
    """Equal values share the mean of their ranks."""
    return [sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values]


def correlation(a: list[float], b: list[float]) -> float:
    """Spearman's, of ranks."""
    x, y = ranks(a), ranks(b)
    mean = (len(x) - 1) / 2
    products_ = sum((p - mean) * (q - mean) for p, q in zip(x, y))
    return float(products_ / (sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y)) ** 0.5)


def show(points: list[Point]) -> None:
    rest = [p for p in points if not p.calibrates]
    groups = {"calibration": [p for p in points if p.calibrates],
              **{f"validation, {kind}": [p for p in rest if p.kind == kind] for kind in dict.fromkeys(p.kind for p in rest)},
              "validation, all": rest}
    for name, of in groups.items():
        summarize(name, [(p.measured, p.predicted) for p in of])
    summarize_short("validation,", [(p.measured, p.predicted) for p in rest])
    mappings = [p for p in rest if p.kind == "mapping"]
    for function in dict.fromkeys(p.function for p in mappings):
        of = [p for p in mappings if p.function == function]
        best, chosen = min(p.measured for p in of), min(of, key=lambda p: p.predicted)
        print(f"mappings of {function}: rank correlation {correlation([p.measured for p in of], [p.predicted for p in of]):.2f}, "
              f"the one predicted to be best is {100 * (chosen.measured / best - 1):.1f} % slower than the best")


def run(options: argparse.Namespace) -> None:
    points = selected(options.folder, options.only)

    def attempt(point: Point) -> tuple[Point, str]:
        try:
            return point, "" if predict(options.folder, point, options.mix, options.most) else f"left out after {options.most:g} s"
        except RuntimeError as failure:
            return point, f"FAILED: {failure}"

    done = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for point, failure in pool.map(attempt, points):
            if failure:
                print(f"{point.kind:<10} {point.name:<52} {failure}", flush=True)
                continue
            done.append(point)
            print(f"{point.kind:<10} {point.name:<52} measured {point.measured:>7.2f} us  predicted {point.predicted:>7.2f} us  "
                  f"{100 * point.error():+6.1f} %  {f'{point.megahertz:.0f} MHz, ' if point.megahertz else ''}{point.bound}{', calibrates ' + point.calibrates if point.calibrates else ''}", flush=True)
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps([asdict(p) for p in done], indent=1) + "\n", encoding="utf-8")
    show(done)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("build", type=pathlib.Path)
    packing.add_argument("folder", type=pathlib.Path)
    packing.add_argument("--only", default="", help="kernels whose kind and name contain one of these")
    running = commands.add_parser("run")
    running.add_argument("folder", type=pathlib.Path)
    running.add_argument("--jobs", type=int, default=1, help="predictions at a time")
    running.add_argument("--only", default="", help="points whose kind and name contain one of these, in this order")
    running.add_argument("--mix", default="ptx", choices=("ptx", "cubin", "auto"), help="source of the machine instructions")
    running.add_argument("--most", type=float, default=600, help="seconds of one prediction")
    running.add_argument("--json", help="write the points there")
    measuring = commands.add_parser("measure")
    measuring.add_argument("folder", type=pathlib.Path)
    measuring.add_argument("--only", default="", help="points whose kind and name contain one of these, in this order")
    measuring.add_argument("--seconds", type=float, default=600, help="no measurement begins later")
    measuring.add_argument("--json", help="write the measurements there")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    {"pack": pack, "run": run, "measure": measure}[options.command](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
