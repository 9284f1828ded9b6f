#!/usr/bin/env python3
"""CUTLASS' persistent NVFP4 GEMM of the CuTe DSL and ours, with the same tile and cluster, in one
run of the simulator.

  benchmarks/time/cutlass_beside.py FOLDER [--build BUILD] [--shape M,N,K ...] [--tile
      M,N,CLUSTER_M,CLUSTER_N ...]
                                    [--result bf16|f16|f32] [--clock GHZ] [--json FILE] [--rows
                                        FILE]

FOLDER has the script dense_blockscaled_gemm_persistent; in CUTLASS' repository it is
blackwell/kernel/blockscaled_gemm among the examples of the CuTe DSL (checkout 7107b05). The program
runs with a Python that has torch and nvidia-cutlass-dsl. For every shape and tile it predicts their
kernel, and ours with that tile, cluster and TMA stores, and prints the time, what bounds it, and
what the warps of each role wait for. All times are predictions for a B200; nothing runs on a GPU.
`--rows` has the rows that `--json` wrote before.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass

from predictions import last_launch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = "dense_blockscaled_gemm_persistent"
TILES = ("256,256,2,1", "256,192,2,1", "256,128,2,1")
PEAK = 32768  # FLOP of a clock and SM
MULTIPROCESSORS = 148


@dataclass
class Case:
    """One shape with one tile, as `--launch` takes it."""
    shape: tuple[int, int, int]
    tile: tuple[int, int]
    cluster: tuple[int, int]
    result: str
    clock: float

    @property
    def flops(self) -> float:
        return 2.0 * self.shape[0] * self.shape[1] * self.shape[2]

    def text(self) -> str:
        return ":".join([",".join(map(str, [*self.shape, *self.tile, *self.cluster])), self.result, str(self.clock)])


def read_case(text: str) -> Case:
    numbers, result, clock = text.split(":")
    m, n, k, tile_m, tile_n, cluster_m, cluster_n = map(int, numbers.split(","))
    return Case((m, n, k), (tile_m, tile_n), (cluster_m, cluster_n), result, float(clock))


# ---- In the simulator: their launch --------------------------------------------------------------


def launch(folder: str, case: Case) -> None:
    """Compiles their kernel by their own function, and launches it once. The time does not depend
    on what operands hold."""
    sys.path.insert(0, folder)
    import cutlass
    import torch
    from cutlass import cute
    from cutlass.cute.runtime import make_ptr

    script = __import__(SCRIPT)
    m, n, k = case.shape
    result, width = {"bf16": (cutlass.BFloat16, 2), "f16": (cutlass.Float16, 2), "f32": (cutlass.Float32, 4)}[case.result]
    element, scale = cutlass.Float4E2M1FN, cutlass.Float8E4M3FN
    kernel = script.Sm100BlockScaledPersistentDenseGemmKernel(16, case.tile, case.cluster)
    stream = cutlass.torch.default_stream()
    clusters = cutlass.utils.HardwareInfo().get_max_active_clusters(case.cluster[0] * case.cluster[1])
    compiled = script.scaled_mm(kernel, element, element, result, scale, "k", "k", "n", clusters, stream)

    def scales(rows: int) -> int:
        return -(-rows // 128) * 128 * (-(-k // 64) * 4)

    sizes = [m * k // 2, n * k // 2, scales(m), scales(n), m * n * width]
    keep = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes]
    pointers = [make_ptr(kind, data.data_ptr(), cute.AddressSpace.gmem, assumed_align=32)
                for kind, data in zip([element, element, scale, scale, result], keep)]
    compiled(*pointers, (m, n, k, 1), stream)


# ---- Outside -------------------------------------------------------------------------------------


def report(command: list[str], begin: str, environment: dict[str, str]) -> dict[str, object]:
    """The prediction of the last kernel that the command launches. `begin`: of the report, behind
    what a script prints."""
    try:
        return last_launch(command, environment, begin)
    except RuntimeError as failure:
        sys.exit(f"{' '.join(command)}\n{failure}")


def theirs(folder: pathlib.Path, build: pathlib.Path, case: Case) -> dict[str, object]:
    paths = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "fp4.sim", "--device=b200", "--time-only", f"--clock={case.clock}", "--check=off", "--json",
               __file__, str(folder), "--launch", case.text()]
    return report(command, '{"program"', {"FP4_SIM": str(build / "bin/fp4-sim"), "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"})


def ours(build: pathlib.Path, case: Case, plan: str) -> dict[str, object]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import blackwell

    problem = blackwell.Problem("GEMM", *case.shape, None, "", result=case.result)
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as source:
        source.write(blackwell.program(problem, plan))
        source.flush()
        return report([str(build / "bin/fp4-runner"), source.name, "--target=sm_100a", "--device=sim", "--time-only", "--json",
                       "--no-verify", "--check=off", "--dist=zeros", f"--clock={case.clock}"], "", {})


def plan_of(case: Case) -> str:
    pair = "pair, " if case.tile[0] == 256 else ""
    cluster = "" if case.cluster == ((2, 1) if pair else (1, 1)) else f", cluster = [{case.cluster[0]}, {case.cluster[1]}]"
    return f"{pair}tile = [{case.tile[0]}, {case.tile[1]}, 256]{cluster}, store = tma"


def waits(time: dict[str, object]) -> list[str]:
    """Returns for each role what its warps do for at least a twentieth of the time, the longest
    first."""
    least, found = 0.05, []
    for role in time["roles"]:  # type: ignore[attr-defined]
        parts = sorted(((share, what) for what, share in role["share"].items() if share >= least), reverse=True)
        found.append(f"{role['name']}: " + ", ".join(f"{what} {100 * share:.0f} %" for share, what in parts))
    return found


def row_of(kernel: str, case: Case, time: dict[str, object]) -> dict[str, object]:
    us = float(str(time["microseconds"]))
    share = case.flops / (us * 1e3 * case.clock * PEAK * MULTIPROCESSORS)
    return {"kernel": kernel, **asdict(case), "microseconds": us, "teraflops": case.flops / us / 1e6, "share": share,
            "bound": time["bound"], "waits": waits(time)}


def show(rows: list[dict[str, object]]) -> None:
    print("| NVFP4 GEMM | kernel | predicted, us | predicted, TFLOP/s | of the peak, predicted | bound |")
    print("|---" * 6 + "|")
    for row in rows:
        shape = " x ".join(map(str, row["shape"]))  # type: ignore[call-overload]
        print(f"| {shape}, {row['result']} | {row['kernel']} | {row['microseconds']:.1f} | {row['teraflops']:.0f} | "
              f"{100 * float(str(row['share'])):.1f} % | {row['bound']} |")
    for row in rows:
        print(f"\n{' x '.join(map(str, row['shape']))}, {row['kernel']}:")  # type: ignore[call-overload]
        for line in row["waits"]:  # type: ignore[attr-defined]
            print(f"  {line}")


def rows_of(case: Case, options: argparse.Namespace) -> list[dict[str, object]]:
    what = f"{case.tile[0]} x {case.tile[1]}, cluster {case.cluster[0]} x {case.cluster[1]}"
    return [row_of(f"CUTLASS, {what}", case, theirs(options.folder, options.build, case)),
            row_of(f"ours, {what}", case, ours(options.build, case, plan_of(case)))]


def numbers_of(names: str) -> Callable[[str], str]:
    """An option's type: as many positive integers as there are names."""

    def check(text: str) -> str:
        parts = text.split(",")
        if len(parts) != len(names.split(",")) or not all(part.isdigit() and int(part) > 0 for part in parts):
            raise argparse.ArgumentTypeError(f"expects {names}, positive integers, but got '{text}'")
        return text

    return check


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--shape", action="append", metavar="M,N,K", type=numbers_of("M,N,K"), help="default 4096,4096,4096; may be given several times")
    parser.add_argument("--tile", action="append", metavar="M,N,CLUSTER_M,CLUSTER_N",
                        type=numbers_of("M,N,CLUSTER_M,CLUSTER_N"), help=f"default {' and '.join(TILES)}")
    parser.add_argument("--result", choices=("bf16", "f16", "f32"), default="bf16")
    parser.add_argument("--clock", type=float, default=1.965, metavar="GHZ")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows there")
    parser.add_argument("--rows", type=pathlib.Path, help="rows that --json wrote, printed before the new ones")
    parser.add_argument("--launch", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.launch:
        launch(str(options.folder), read_case(options.launch))
        return 0
    if not (options.folder / f"{SCRIPT}.py").is_file():
        sys.exit(f"error: FOLDER must have {SCRIPT}.py, but '{options.folder}' has none")
    rows = json.loads(options.rows.read_text(encoding="utf-8")) if options.rows else []
    for shape in options.shape or ["4096,4096,4096"]:
        for tile in options.tile or TILES:
            rows += rows_of(read_case(f"{shape},{tile}:{options.result}:{options.clock}"), options)
            print(f"{shape} {tile}: {rows[-2]['microseconds']:.1f} and {rows[-1]['microseconds']:.1f} us", file=sys.stderr)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
