#!/usr/bin/env python3
"""Compares predictions for a B200 with the times of github.com/hbarclay/gemm-model, of CUTLASS'
kernels.

  benchmarks/time/gemm_model.py CHECKOUT [--build BUILD] [--only nvfp4|fp8|fp16] [--json FILE]
      [--again FILE] [--all] [--every N]
  benchmarks/time/gemm_model.py CHECKOUT --slopes

CHECKOUT is one of that repository. The repository has 320 times of NVFP4 and 640 each of FP8 and
FP16 GEMMs, of a B200 whose clock was locked at 1.3 GHz, and the two scripts of CUTLASS that were
timed: the CuTe DSL's dense_blockscaled_gemm_persistent and dense_gemm_persistent. The kernels that
are predicted here are made by these scripts, in the simulator; this program runs with a Python that
has torch and nvidia-cutlass-dsl. The repository had 4.3.0.dev0 of the latter, so with a newer one
the compiler is another.

Points: of every problem but the three with a side of 128000, whose operands do not fit here, one
configuration of a format, so that those of all problems together cover all (`configuration`). The
points were chosen before any of them was predicted. `--all` takes all configurations, and `--every
N` every Nth of the points of FP8 and FP16 in order. `--again` reads kernels' times from what
`--json` wrote.

Each time is that of five launches from Python between two events, on operands that L2 does not
have, divided by five. The host takes HOST microseconds for a launch, longer than small kernels
take. HOST is calibrated for each format, from the problem CALIBRATION, which is not among the
points. More time passes between two kernels in a stream than between two in a graph, which a
prediction has: the difference is calibrated on the points of NVFP4 of four fifths of the problems,
for those of the last fifth, and for FP8 and FP16 on all of NVFP4. (Notes on a B300 have 2.05 us in
a stream and 0.56 in a graph, STREAM.)

`--slopes` predicts nothing. The option shows what the times themselves say of each tile: how much
all of a launch, a tile and a k tile add (least squares over the problems), and how long a tile's
stores last of the time that device memory takes for them (WriteHold), with all problems and without
each fifth of them. Then how much longer FP8 and FP16 GEMMs last in the first WARMING microseconds
of the load, and what of the times is left with and without that. Needs numpy.
"""
from __future__ import annotations

import argparse
import csv
import json
import math
import os
import pathlib
import sys
import types
from dataclasses import asdict, dataclass

from predictions import last_launch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GIGAHERTZ = 1.3
FORMATS = ("nvfp4", "fp8", "fp16")
CALIBRATION = (192, 4096, 4096)
LARGEST = 100000
STREAM = 2.05 - 0.56
WARMUPS, ITERATIONS = 2, 5
FOLDS = 5
WARMING = 1000  # us
K_TILE = {"nvfp4": 256, "fp8": 128, "fp16": 64}
FEWEST = 30  # us: the host takes less for a launch
MULTIPROCESSORS = {(2, 1): 148, (2, 2): 132}  # that clusters of this size reach
ALIGNMENT = 512  # bytes, of what CUDA allocates
MEMORY = 7.26  # TB/s, TimingRates.def
SCRIPTS = {"nvfp4": "dense_blockscaled_gemm_persistent", "fp8": "dense_gemm_persistent", "fp16": "dense_gemm_persistent"}


@dataclass
class Point:
    format: str
    m: int
    n: int
    k: int
    tile: tuple[int, int]
    cluster: tuple[int, int]
    measured: float  # us
    kernel: float = 0  # us, predicted, of a launch in a graph
    predicted: float = 0  # us, as it was timed
    bound: str = ""

    @property
    def problem(self) -> tuple[int, int, int]:
        return self.m, self.n, self.k

    @property
    def name(self) -> str:
        return (f"{self.format} {self.m} x {self.n} x {self.k}, {self.tile[0]} x {self.tile[1]}, "
                f"{self.cluster[0]} x {self.cluster[1]}")

    def error(self) -> float:
        return self.predicted / self.measured - 1


# ---- In the simulator: one launch ----------------------------------------------------------------


def make_tensors(point: Point, keep: list[object]) -> list[object]:
    """Operands as the scripts make them, but for what is in them: the time does not depend on
    it."""
    import cutlass
    import torch
    from cutlass.cute.runtime import from_dlpack

    element = {"nvfp4": cutlass.Float4E2M1FN, "fp8": cutlass.Float8E4M3FN, "fp16": cutlass.Float16}[point.format]
    result = cutlass.Float32 if point.format == "nvfp4" else element
    types_of = {cutlass.Float32: torch.float32, cutlass.Float16: torch.float16}

    def allocate(shape: tuple[int, ...], element: torch.dtype) -> torch.Tensor:
        """Aligned as on a GPU: lines that begin within a row would be asked for twice."""
        size = math.prod(shape) * element.itemsize
        data = torch.empty(size + ALIGNMENT, dtype=torch.uint8, device="cuda")
        return data[-data.data_ptr() % ALIGNMENT :][:size].view(element).reshape(shape)

    def tensor(shape: tuple[int, ...], order: tuple[int, ...], kind: object, leading: int) -> object:
        data = allocate(shape, types_of.get(kind, torch.uint8)).permute(order)
        keep.append(data)
        made = from_dlpack(data, assumed_align=16)
        made.element_type = kind
        return made.mark_layout_dynamic(leading_dim=leading)

    def matrix(rows: int, columns: int, kind: object) -> object:
        made = tensor((1, rows, columns), (1, 2, 0), kind, 1)
        if point.format == "nvfp4":
            made.mark_compact_shape_dynamic(mode=1, stride_order=(2, 0, 1), divisibility=32)  # type: ignore[attr-defined]
        return made

    def scales(rows: int) -> object:
        shape = (1, -(-rows // 128), -(-point.k // 64), 32, 4, 4)
        return tensor(shape, (3, 4, 1, 5, 2, 0), cutlass.Float8E8M0FNU, 3)

    a, b, c = (matrix(point.m, point.k, element), matrix(point.n, point.k, element), matrix(point.m, point.n, result))
    return [a, b, scales(point.m), scales(point.n), c] if point.format == "nvfp4" else [a, b, c]


def launch(checkout: str, point: Point) -> None:
    sys.path.insert(0, os.path.join(checkout, "cutlass/CuTeDSL/blackwell"))
    import cutlass
    import cutlass.torch
    from cutlass import cute

    if not hasattr(cute.arch, "ProxyKind"):  # newer versions take the names themselves
        cute.arch.ProxyKind = types.SimpleNamespace(async_shared="async.shared")
        cute.arch.SharedSpace = types.SimpleNamespace(shared_cta="cta")
    script = __import__(SCRIPTS[point.format])
    if point.format == "nvfp4":
        kernel = script.Sm100BlockScaledPersistentDenseGemmKernel(16, point.tile, point.cluster)
    else:
        kernel = script.PersistentDenseGemmKernel(cutlass.Float32, True, point.tile, point.cluster, True)
    keep: list[object] = []
    tensors, stream = make_tensors(point, keep), cutlass.torch.default_stream()
    clusters = cutlass.utils.HardwareInfo().get_max_active_clusters(point.cluster[0] * point.cluster[1])
    cute.compile(kernel, *tensors, clusters, stream)(*tensors, stream)


# ---- Outside -------------------------------------------------------------------------------------


def padded(value: int, kind: str) -> int:
    unit = {"nvfp4": 32, "fp8": 16, "fp16": 8}[kind]
    return -(-value // unit) * unit


def read(checkout: pathlib.Path, kind: str) -> list[Point]:
    with open(checkout / f"results/dsv3_{kind}.csv", encoding="utf-8") as file:
        return [Point(kind, *(int(row[side]) for side in "mnk"), (int(row["mma_m"]), int(row["mma_n"])),
                      (int(row["cluster_m"]), int(row["cluster_n"])), float(row["runtime_us"])) for row in csv.DictReader(file)]


def configuration(kind: str, problem: int, count: int) -> int:
    """Returns the configuration of a problem that is a point."""
    return {"nvfp4": 3 * problem, "fp8": 5 * problem, "fp16": 5 * problem + 8}[kind] % count


def choose(points: list[Point], everything: bool) -> tuple[list[Point], list[Point]]:
    """Calibration and validation."""
    problems = list(dict.fromkeys(p.problem for p in points if max(p.problem) < LARGEST))
    calibration = [p for p in points if p.problem == CALIBRATION][::4]
    chosen = []
    for number, problem in enumerate(p for p in problems if p != CALIBRATION):
        of_problem = [p for p in points if p.problem == problem]
        chosen += of_problem if everything else [of_problem[configuration(points[0].format, number, len(of_problem))]]
    return calibration, chosen


def predict(point: Point, checkout: pathlib.Path, build: pathlib.Path) -> None:
    """The time of the kernel, by a process of its own under the simulator."""
    inputs = [padded(side, point.format) for side in point.problem]
    command = [sys.executable, "-m", "fp4.sim", "--device=b200", "--time-only", f"--clock={GIGAHERTZ}", "--check=off", "--json",
               __file__, str(checkout), "--launch", ":".join(map(str, [point.format, *inputs, *point.tile, *point.cluster]))]
    paths = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    environment = {"FP4_SIM": str(build / "bin/fp4-sim"), "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"}
    try:
        time = last_launch(command, environment)
    except RuntimeError as failure:
        sys.exit(f"{point.name}:\n{failure}")
    point.kernel, point.bound = time["microseconds"], time["bound"]


def as_timed(kernel: float, host: float, stream: float = STREAM) -> float:
    """Returns the time of five launches that the host makes one after the other, between two
    events."""
    end = 0.0
    for number in range(ITERATIONS):
        end = max(end, (number + 1) * host) + kernel + stream
    return end / ITERATIONS


def calibrate(points: list[Point], stream: float = STREAM) -> float:
    """HOST, with which the times of the points are right on average."""
    low, high = 0.0, 100.0
    while high - low > 0.01:
        host = (low + high) / 2
        excess = sum(as_timed(p.kernel, host, stream) / p.measured - 1 for p in points)
        low, high = (low, host) if excess > 0 else (host, high)
    return low


def fit_stream(points: list[Point], calibration: list[Point]) -> float:
    """The time between two kernels with which the points are closest; the host's follows from
    it."""
    def error(stream: float) -> float:
        host = calibrate(calibration, stream)
        return sum(abs(as_timed(p.kernel, host, stream) / p.measured - 1) for p in points)

    return min((step / 20 for step in range(201)), key=error)


def cross_validate(points: list[Point], calibration: list[Point]) -> None:
    """Each fifth of the points is predicted with what the others say of the time between two
    kernels."""
    streams = []
    for fold in range(FOLDS):
        streams.append(fit_stream([p for i, p in enumerate(points) if i % FOLDS != fold], calibration))
        host = calibrate(calibration, streams[-1])
        for point in points[fold::FOLDS]:
            point.predicted = as_timed(point.kernel, host, streams[-1])
    print(f"nvfp4: between two kernels of the stream {min(streams):.2f} to {max(streams):.2f} us more than in a graph")


# ---- What the times say themselves ---------------------------------------------------------------


def slow_part(point: Point) -> float:
    """Microseconds of a launch in the first WARMING of the load: WARMUPS come before those that are
    timed."""
    begin, end = WARMUPS * point.measured, (WARMUPS + ITERATIONS) * point.measured
    return max(0.0, min(end, WARMING) - begin) / ITERATIONS


def least_squares(points: list[Point], warming: bool = False) -> tuple[list[float], float]:
    """Microseconds of a launch, of a tile and of a k tile, for points of one tile and cluster, and,
    if asked for, the part by which they last longer at first. Then the root of the mean square of
    what is left, of 1."""
    import numpy as np

    terms = []
    for p in points:
        clusters = MULTIPROCESSORS[p.cluster] // (p.cluster[0] * p.cluster[1])
        tiles = -(-p.m // p.tile[0]) * -(-p.n // (p.tile[1] * p.cluster[1]))
        waves = -(-tiles // clusters)
        terms.append([1, waves, waves * -(-p.k // K_TILE[p.format])] + [slow_part(p)] * warming)
    weighted = np.array(terms) / np.array([p.measured for p in points])[:, None]
    found = np.linalg.lstsq(weighted, np.ones(len(points)), rcond=None)[0]
    return [float(value) for value in found], float(np.sqrt(np.mean((weighted @ found - 1) ** 2)))


def show_slopes(points: list[Point]) -> None:
    """For NVFP4, whose host hides no launch of more than FEWEST microseconds."""
    print("| tile | cluster | launch, us | tile, clk | k tile of 256, clk | stores of a tile, of device memory's time | without a fifth |")
    print("|---|---|---|---|---|---|---|")
    usable = [p for p in points if p.measured > FEWEST and max(p.problem) < LARGEST]
    for tile, cluster in sorted({(p.tile, p.cluster) for p in usable}):
        chosen = [p for p in usable if (p.tile, p.cluster) == (tile, cluster)]
        alone = MULTIPROCESSORS[cluster] * 128 * tile[1] * 4 / MEMORY / 1e6  # us that device memory takes for a wave's results
        (launch, of_tile, of_step), _ = least_squares(chosen)
        parts = [least_squares([p for i, p in enumerate(chosen) if i % FOLDS != fold])[0][1] / alone for fold in range(FOLDS)]
        print(f"| {tile[0]} x {tile[1]} | {cluster[0]} x {cluster[1]} | {launch:.1f} | {of_tile * GIGAHERTZ * 1e3:.0f} "
              f"| {of_step * GIGAHERTZ * 1e3:.0f} | {of_tile / alone:.2f} | {min(parts):.2f} to {max(parts):.2f} |")


def show_warming(points: list[Point]) -> None:
    """For tiles that the tensor core bounds, of problems whose results and sweeps device memory
    does not bound."""
    usable = [p for p in points if p.tile[0] == 256 and p.tile[1] >= 192 and p.k >= 4096 and p.m < 16384]
    for tile, cluster in sorted({(p.tile, p.cluster) for p in usable}):
        chosen = [p for p in usable if (p.tile, p.cluster) == (tile, cluster)]
        (launch, _, of_step, longer), left = least_squares(chosen, warming=True)
        print(f"| {points[0].format} | {tile[0]} x {tile[1]} | {cluster[0]} x {cluster[1]} | {100 * least_squares(chosen)[1]:.1f} "
              f"| {100 * left:.1f} | {launch:.1f} | {of_step * GIGAHERTZ * 1e3:.0f} | {100 * longer:.0f} |")


def show(points: list[Point], what: str) -> None:
    if points:
        errors = [100 * p.error() for p in points]
        absolute = [abs(e) for e in errors]
        print(f"{what}: {len(points)} points, mean absolute error {sum(absolute) / len(errors):.1f} %, mean {sum(errors) / len(errors):+.1f} %, "
              f"worst {max(errors, key=abs):+.1f} %, {sum(e <= 20 for e in absolute)} within 20 %")


def read_json(file: pathlib.Path) -> list[Point]:
    rows = json.loads(file.read_text(encoding="utf-8"))
    return [Point(**{**row, "tile": tuple(row["tile"]), "cluster": tuple(row["cluster"])}) for row in rows]


def kernels_of(points: list[Point], options: argparse.Namespace, known: dict[str, Point]) -> None:
    """Predicts the points that are not known, and writes all that are."""
    for point in points:
        if point.name in known:
            point.kernel, point.bound = known[point.name].kernel, known[point.name].bound
            continue
        predict(point, options.checkout, options.build)
        known[point.name] = point
        print(f"{point.name}: {point.kernel:.1f} us", file=sys.stderr, flush=True)
        if options.json:
            options.json.write_text(json.dumps([asdict(p) for p in known.values()], indent=0) + "\n", encoding="utf-8")


def compare(kind: str, options: argparse.Namespace, known: dict[str, Point], stream: float) -> tuple[list[Point], list[Point]]:
    """Prints the points of a format, and returns them behind those of the calibration. `stream` is
    for all but NVFP4."""
    calibration, chosen = choose(read(options.checkout, kind), options.all)
    chosen = chosen[::1 if kind == "nvfp4" else options.every]  # that of NVFP4 calibrates the others
    kernels_of(calibration + chosen, options, known)
    if kind == "nvfp4":
        cross_validate(chosen, calibration)
    else:
        host = calibrate(calibration, stream)
        print(f"{kind}: the host takes {host:.1f} us for a launch")
        for point in chosen:
            point.predicted = as_timed(point.kernel, host, stream)
    for point in chosen:
        print(f"{point.name:<46} measured {point.measured:>7.1f} us, predicted {point.predicted:>7.1f} us, "
              f"{100 * point.error():+6.1f} %, bound by {point.bound}")
    show(chosen, f"validation, {kind}")
    return calibration, chosen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", choices=FORMATS)
    parser.add_argument("--all", action="store_true", help="all configurations of a problem")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth of the points of FP8 and FP16, in order")
    parser.add_argument("--json", type=pathlib.Path, help="write the points there")
    parser.add_argument("--again", type=pathlib.Path, help="kernels' times that --json wrote")
    parser.add_argument("--slopes", action="store_true", help="cost of a launch, a tile and a k tile by the times")
    parser.add_argument("--launch", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.launch:
        kind, *numbers = options.launch.split(":")
        m, n, k, *rest = map(int, numbers)
        launch(str(options.checkout), Point(kind, m, n, k, (rest[0], rest[1]), (rest[2], rest[3]), 0))
        return 0
    known: dict[str, Point] = {}
    for file in filter(None, (options.again, options.json)):
        if file.exists():
            known |= {point.name: point for point in read_json(file)}
    if options.slopes:
        show_slopes(read(options.checkout, "nvfp4"))
        print(f"\n| format | tile | cluster | left, % | ... with the first {WARMING} us apart | launch, us | k tile, clk | longer at first, % |")
        print("|---|---|---|---|---|---|---|---|")
        for kind in FORMATS[1:]:
            show_warming(read(options.checkout, kind))
        return 0
    stream = STREAM
    for kind in FORMATS:
        if options.only in (None, kind):
            calibration, found = compare(kind, options, known, stream)
            stream = fit_stream(found, calibration) if kind == "nvfp4" else stream
    return 0


if __name__ == "__main__":
    sys.exit(main())
