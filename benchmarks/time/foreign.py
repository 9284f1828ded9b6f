#!/usr/bin/env python3
"""Compares predictions for an H200 with measured times of kernels of other libraries: Triton,
CUTLASS and DeepGEMM.

  benchmarks/time/foreign.py prepare FOLDER --cutlass CHECKOUT --deepgemm CHECKOUT --triton PYTHON
      --cudart FILE
  FOLDER/foreign.py measure FOLDER [--only WORD] [--json FILE]         on an H200, with Python and a
      driver
  benchmarks/time/foreign.py predict FOLDER MEASURED [--build BUILD] [--only WORD] [--jobs N]
      [--json FILE]

`prepare` needs nvcc, and a Python that has Triton (3.9.0 here) for the kernels of
foreign/triton_kernels.py; this program itself then runs with a Python that has PyTorch, as
benchmarks/peers does. `prepare` compiles kernels of CUTLASS' examples 48, 49, 54 and 67 and
DeepGEMM's FP8 kernel with the tiles that its own heuristics choose. FILE is libcudart.so.13, which
CUTLASS calls. `measure` launches each kernel in a graph, on operands that L2 does not have, after a
tenth of a second of the same, and notes the clock of an SM. `predict` has the simulator execute the
same launch with that clock, one launch with cold L2, and prints a table. MEASURED is what `measure
--json` wrote: foreign_h200.json is such a file. No rate was fitted to any of these kernels.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from predictions import last_launch, summarize, summarize_short

HERE = pathlib.Path(__file__).resolve().parent
for path in (HERE / "foreign", HERE.parent / "micro"):
    sys.path.insert(0, str(path))

ROOT = HERE.parent.parent
CACHE = 160 << 20  # bytes: sets of operands that together are as large do not stay in L2
SETTLE = 0.1  # seconds
NODES, SETS, REPLAYS = 20, 256, 15  # launches of a graph at least; sets of operands at most

PROBE = """.version @VERSION@
.target @TARGET@
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b64 %a, %c, %g;
  ld.param.u64 %a, [out];
  mov.u64 %c, %clock64;
  mov.u64 %g, %globaltimer;
  st.global.v2.u64 [%a], {%c, %g};
  ret;
}
"""


def cases() -> list[Any]:
    from launches import Case
    squares: list[tuple[int, ...]] = [(side,) * 3 for side in (512, 2048, 4096, 8192)]
    shapes: dict[tuple[str, str], list[tuple[int, ...]]] = {
        ("triton", "add"): [(1 << 16,), (1 << 20,), (1 << 24,), (1 << 26,)],
        ("triton", "softmax_1024"): [(256, 1024), (8192, 1024)],
        ("triton", "softmax_4096"): [(1024, 4096), (8192, 4096)],
        ("triton", "softmax_8192"): [(4096, 8192)],
        ("triton", "layer_norm"): [(512, 4096), (4096, 4096), (8192, 8192)],
        ("triton", "matmul_small"): squares[:2],
        ("triton", "matmul"): squares[1:],
        ("triton", "matmul_fp8"): squares[1:],
        ("triton", "attention_64"): [(32, 1024), (32, 4096)],
        ("triton", "attention_128"): [(16, 2048), (32, 4096)],
        ("cutlass", "48_tf32"): squares[1:3],
        ("cutlass", "49_specialized"): squares[:3],
        ("cutlass", "49_pingpong"): squares,
        ("cutlass", "49_cooperative"): squares,
        ("cutlass", "49_stream_k"): squares[1:3],
        ("peer", "54_fp8"): [(256, 256, 256), *squares[1:]],
        ("peer", "67_fp8_blocks"): [(128, 4096, 7168), (1024, 4096, 7168), (4096, 4096, 4096), (8192, 8192, 8192)],
        ("deepgemm", "1d2d"): [(64, 4096, 7168), (128, 7168, 2048), (256, 7168, 16384), (1024, 4096, 7168), (4096, 7168, 2048),
                               (4096, 4096, 7168), (8192, 8192, 8192)],
    }
    return [Case(*kernel, sizes) for kernel, of in shapes.items() for sizes in of]


def selected(words: str) -> list[Any]:
    return [case for case in cases() if any(word in case.name() for word in words.split(","))]


# ---- prepare -------------------------------------------------------------------------------------


def succeed(*command: Any, **options: Any) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"error: {' '.join(map(str, command))} must succeed, but got:\n{(done.stderr or done.stdout)[-3000:]}")
    return str(done.stdout)


def compile_cutlass(folder: pathlib.Path, checkout: pathlib.Path) -> None:
    """Compiles CUTLASS as benchmarks/peers does, with PTX beside the machine code, and CUDA's
    runtime as a library of its own."""
    from libraries.cutlass import OPTIONS
    from libraries.nvcc import compile_kernels
    options = (*OPTIONS, "-cudart=shared", "-gencode", "arch=compute_90a,code=compute_90a")
    for library, source in (("libcutlass.so", HERE / "foreign/cutlass_kernels.cu"),
                            ("libpeer.so", HERE.parent / "peers/libraries/cutlass_kernels.cu")):
        if not (folder / library).exists():  # it takes minutes
            compile_kernels(source, options, [checkout / "include", checkout / "tools/util/include"], folder / library)


def compile_deepgemm(folder: pathlib.Path, checkout: pathlib.Path, cutlass: pathlib.Path) -> None:
    """The kernel, options and tiles of benchmarks/peers, as PTX."""
    from libraries import deepgemm as peer
    from problems import Problem
    toolkit = pathlib.Path(shutil.which("nvcc") or "nvcc").resolve().parent.parent / "include"
    includes = [f"-I{path}" for path in (checkout / "deep_gemm/include", cutlass / "include", toolkit, toolkit / "cccl")]
    chooser, known = peer._build_chooser(checkout, folder, includes), {}
    options = [option for option in peer.OPTIONS if option != "-cubin" and not option.startswith("--ptxas")]
    for case in cases():
        if case.source != "deepgemm":
            continue
        m, n, k = case.sizes
        config = peer._choose(chooser, Problem("fp8", m, n, k))
        code, ptx = folder / f"{case.file()}.cu", folder / f"{case.file()}.ptx"
        code.write_text(peer.KERNEL.format(n=n, k=k, groups=1, type="Normal", **config), encoding="utf-8")
        succeed("nvcc", "-ptx", *options, *includes, code, "-o", ptx)
        entry = ptx.read_text(encoding="utf-8").split(".entry ", 1)[1].split("(", 1)[0].strip()
        known[case.file()] = {**config, "entry": entry}
    (folder / "deepgemm.json").write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def prepare(options: argparse.Namespace) -> None:
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    for file in (pathlib.Path(__file__), HERE / "predictions.py", HERE / "foreign/launches.py", HERE.parent / "micro/cuda.py", options.cudart):
        shutil.copy(file, folder / ("libcudart.so.13" if file == options.cudart else file.name))
    code = "import pathlib, sys, triton_kernels; triton_kernels.compile_all(pathlib.Path(sys.argv[1]))"
    succeed(options.triton, "-c", code, folder, cwd=HERE / "foreign")
    sys.path.insert(0, str(HERE.parent / "peers"))
    compile_deepgemm(folder, options.deepgemm, options.cutlass)
    compile_cutlass(folder, options.cutlass)


# ---- measure -------------------------------------------------------------------------------------


def measure_one(device: Any, folder: pathlib.Path, case: Any) -> dict[str, Any]:
    from launches import LAUNCHERS, Operands
    operands = Operands(device, values=True)
    create = LAUNCHERS[case.source](device, folder, case, operands)
    launches = [create()]
    launches += [create() for _ in range(min(SETS, max(2, CACHE // operands.bytes + 1)) - 1)]
    nodes = max(NODES, len(launches))
    probe, stamps = device.load(PROBE), device.allocate(32)

    def issue(stream: Any, nodes: int) -> None:
        probe(1, 1, stamps, stream=stream)
        for node in range(nodes):
            launches[node % len(launches)](stream)
        probe(1, 1, stamps + 16, stream=stream)

    replay, empty = device.graph(lambda stream: issue(stream, nodes)), device.graph(lambda stream: issue(stream, 0))
    end = time.monotonic() + SETTLE
    while time.monotonic() < end:
        device.seconds(replay)
    times, clocks = [], []
    for _ in range(REPLAYS):
        times.append(device.seconds(replay))
        c0, g0, c1, g1 = device.read(stamps, 4)
        clocks.append(1e3 * (c1 - c0) / (g1 - g0))
    rest = sorted(device.seconds(empty) for _ in range(REPLAYS))[REPLAYS // 2]
    times.sort()
    return {"source": case.source, "kernel": case.kernel, "sizes": list(case.sizes),
            "microseconds": round((times[REPLAYS // 2] - rest) / nodes * 1e6, 3), "megahertz": round(sorted(clocks)[REPLAYS // 2]),
            "least": round((times[0] - rest) / nodes * 1e6, 3), "most": round((times[-1] - rest) / nodes * 1e6, 3)}


def measure(options: argparse.Namespace) -> None:
    """Each in a process of its own, so that memory goes and a failure is of one kernel alone."""
    rows = []
    for case in selected(options.only):
        done = subprocess.run([sys.executable, __file__, "one", str(options.folder), "--only", case.name()], capture_output=True,
                              text=True, check=False)
        if done.returncode:
            print(f"FAILED: {case.name()}: {done.stderr[-400:]}", flush=True)
            continue
        rows.append(json.loads(done.stdout))
        print(f"{case.name():<44} {rows[-1]['microseconds']:>9} us, {rows[-1]['least']} to {rows[-1]['most']}, "
              f"{rows[-1]['megahertz']} MHz", flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")


# ---- predict -------------------------------------------------------------------------------------


def launch_once(options: argparse.Namespace) -> None:
    from cuda import Device
    from launches import LAUNCHERS, Operands
    device = Device()
    case = selected(options.only)[0]
    LAUNCHERS[case.source](device, options.folder, case, Operands(device, values=False))()(None)
    device.synchronize()


def predict_one(options: argparse.Namespace, row: dict[str, Any]) -> None:
    from launches import Case
    case = Case(row["source"], row["kernel"], tuple(row["sizes"]))
    # Two of DeepGEMM's kernels read scales in shared memory that nothing wrote.
    simulator = [options.build / "bin/fp4-sim", "run", "--device=h200", "--time-only", "--check=off", "--unwritten=ignore", "--json",
                 "--mix", options.mix, f"--clock={row['megahertz'] / 1e3}"]
    program = [sys.executable, __file__, "launch", str(options.folder), "--only", case.name()]
    try:
        report = last_launch([*simulator, "--", *program])
    except RuntimeError as failure:
        row["failed"] = str(failure)[-400:]
        return
    row["predicted"], row["bound"] = float(report["microseconds"]), report["bound"]


def show(rows: list[dict[str, Any]]) -> None:
    print("| kernel | sizes | MHz | measured, us | predicted, us | error | bound |\n|---|---|---|---|---|---|---|")
    for row in rows:
        error = row["predicted"] / row["microseconds"] - 1
        print(f"| {row['source']} {row['kernel']} | {' x '.join(map(str, row['sizes']))} | {row['megahertz']} | {row['microseconds']:.2f} "
              f"| {row['predicted']:.2f} | {100 * error:+.1f} % | {row['bound']} |")
    for source in (*dict.fromkeys(row["source"] for row in rows), ""):
        summarize(source or "all", [(row["microseconds"], row["predicted"]) for row in rows if row["source"].startswith(source)])
    summarize_short("all", [(row["microseconds"], row["predicted"]) for row in rows])


def predict(options: argparse.Namespace) -> int:
    rows = [row for row in json.loads(options.measured.read_text(encoding="utf-8"))
            if any(word in f"{row['source']} {row['kernel']}" for word in options.only.split(","))]
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda row: predict_one(options, row), rows))
    for row in rows:
        if "failed" in row:
            print(f"FAILED: {row['source']} {row['kernel']} {row['sizes']}: {row['failed']}")
    show([row for row in rows if "predicted" in row])
    if options.json:
        options.json.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")
    return int(any("failed" in row for row in rows))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prepare", "measure", "predict", "one", "launch"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("measured", type=pathlib.Path, nargs="?", default=HERE / "foreign_h200.json")
    for name in ("cutlass", "deepgemm", "triton", "cudart", "json"):
        parser.add_argument(f"--{name}", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", default="", help="kernels whose names have one of these words, separated by commas")
    parser.add_argument("--mix", default="cubin", choices=["cubin", "ptx"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    if options.what == "one":
        from cuda import Device
        print(json.dumps(measure_one(Device(), options.folder, selected(options.only)[0])))
        return 0
    steps = {"prepare": prepare, "measure": measure, "predict": predict, "launch": launch_once}
    return steps[options.what](options) or 0


if __name__ == "__main__":
    sys.exit(main())
