"""DeepGEMM's FP8 kernel with scales of 1 x 128 and 128 x 128 (sm90_fp8_gemm_1d2d), dense and
grouped.

`prepare` takes a folder with DeepGEMM/ and cutlass/, needs nvcc and a C++ compiler, and makes
cubins with the options of DeepGEMM's own compiler at run time. Tiles, stages and clusters are those
that DeepGEMM's heuristics choose (deepgemm_configs.cpp). Launches go through the driver. Scales of
activations are transposed beforehand, as its kernel wants them."""
from __future__ import annotations

import concurrent.futures
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import torch
from driver import Device
from problems import Operands, Problem

from .library import Library, Missing, Prepared
from .nvcc import find_nvcc, toolkit_headers

TYPES = {"fp8": (0, "Normal"), "contiguous": (1, "MGroupedContiguous"), "masked": (2, "MGroupedMasked")}
FIELDS = ("block_m", "block_n", "swizzle_a", "swizzle_b", "swizzle_d", "stages", "copy_threads", "math_threads",
          "cluster", "shares_a", "shared")
OPTIONS = ("-cubin", "-std=c++20", "--diag-suppress=39,161,174,177,186,940",
           "--ptxas-options=--register-usage-level=10", "--gpu-architecture=sm_90a", "-O3",
           "--expt-relaxed-constexpr", "--expt-extended-lambda")
KERNEL = """#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>
using namespace deep_gemm;
static void instantiate() {{
  auto pointer = reinterpret_cast<void *>(&sm90_fp8_gemm_1d2d_impl<
      cute::UMMA::Major::K, 0, {n}, {k}, {groups}, {block_m}, {block_n}, 128, {swizzle_a}, {swizzle_b}, {swizzle_d},
      {stages}, {copy_threads}, {math_threads}, {cluster}, {shares_a}, 132, GemmType::{type}, cutlass::bfloat16_t,
      epilogue::transform::EpilogueIdentity>);
}}
"""
#: Numbers of the driver's enumerations: element types and swizzles of tensor maps.
BYTES, BF16, F32 = 0, 9, 7
SWIZZLES = {0: 0, 16: 0, 32: 1, 64: 2, 128: 3}


class DeepGemm(Library):
    name = "DeepGEMM"
    source = "a folder with DeepGEMM/{csrc,deep_gemm} and cutlass/include"

    def prepare(self, source: pathlib.Path | None, folder: pathlib.Path, problems: Sequence[Problem]) -> None:
        if source is None or not (source / "DeepGEMM" / "deep_gemm").is_dir() or not (source / "cutlass").is_dir():
            raise Missing(self.source)
        nvcc = find_nvcc()
        includes = [f"-I{path}" for path in (source / "DeepGEMM/deep_gemm/include", source / "cutlass/include",
                                             *toolkit_headers(nvcc))]
        chooser = _build_chooser(source / "DeepGEMM", folder, includes)
        known = {p.name: _choose(chooser, p) for p in problems if p.kind in TYPES}
        path = folder / "configs.json"
        before = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(before | known, indent=1))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda p: _compile(nvcc, includes, folder, p, known[p.name]),
                          [p for p in problems if p.kind in TYPES]))

    def check(self, folder: pathlib.Path) -> None:
        if not (folder / "configs.json").exists():
            raise Missing("configs.json and cubins, which prepare makes of DeepGEMM's sources")

    def cases(self, folder: pathlib.Path, problem: Problem) -> list[str]:
        config = json.loads((folder / "configs.json").read_text()).get(problem.name)
        return [f"1D2D {config['block_m']}x{config['block_n']}"] if config else []

    def run(self, folder: pathlib.Path, case: str, sets: Sequence[Operands]) -> Prepared:
        problem = sets[0].problem
        config = json.loads((folder / "configs.json").read_text())[problem.name]
        kernel = _Kernel(folder / f"{problem.name}.cubin", config)
        results = [torch.zeros(problem.m, problem.n, dtype=torch.bfloat16, device=s.x.device) for s in sets]
        return Prepared([kernel.launch(s, r) for s, r in zip(sets, results)], results)


def _build_chooser(source: pathlib.Path, folder: pathlib.Path, includes: Sequence[str]) -> pathlib.Path:
    """deepgemm_configs.cpp, against the four files of heuristics and empty neighbours."""
    copy, heuristics = folder / "heuristics", "csrc/jit_kernels/heuristics"
    for path in (heuristics, "csrc/utils", "c10/core"):
        (copy / path).mkdir(parents=True, exist_ok=True)
    for name in ("common", "config", "sm90", "utils"):
        shutil.copy(source / heuristics / f"{name}.hpp", copy / heuristics)
    for path in (f"{heuristics}/runtime.hpp", "c10/core/ScalarType.h",
                 *(f"csrc/utils/{name}.hpp" for name in ("layout", "system", "math", "exception"))):
        (copy / path).touch()
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise Missing("a C++ compiler")
    program = pathlib.Path(__file__).with_name("deepgemm_configs.cpp")
    _succeed([compiler, "-std=c++20", "-w", f"-I{copy}", *includes, program, "-o", folder / "configs"])
    return folder / "configs"


def _choose(chooser: pathlib.Path, problem: Problem) -> dict[str, int]:
    expected = {"masked": problem.rows // problem.groups, "contiguous": problem.m}.get(problem.kind, 0)
    rows = problem.m // problem.groups if problem.kind == "masked" else problem.m
    numbers = (TYPES[problem.kind][0], rows, problem.n, problem.k, problem.groups, expected)
    found = _succeed([chooser, *map(str, numbers)])
    return dict(zip(FIELDS, map(int, found.split())))


def _compile(nvcc: str, includes: Sequence[str], folder: pathlib.Path, problem: Problem, config: dict[str, int]) -> None:
    text = KERNEL.format(n=problem.n, k=problem.k, groups=problem.groups, type=TYPES[problem.kind][1], **config)
    code = folder / f"{problem.name}.cu"
    if code.with_suffix(".cubin").exists() and code.read_text() == text:
        return
    code.write_text(text)
    _succeed([nvcc, *OPTIONS, *includes, code, "-o", code.with_suffix(".cubin")])


def _succeed(command: Sequence[Any]) -> str:
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode:
        raise Missing(f"a command that succeeds: {' '.join(map(str, command))}: {found.stderr.strip()[-2000:]}")
    return found.stdout


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute with dimensions of a cluster, its value number 4."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("dims", ctypes.c_uint * 16)]


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(_Attribute)), ("count", ctypes.c_uint)]


class _Kernel:
    """The one kernel of a cubin."""

    def __init__(self, cubin: pathlib.Path, config: dict[str, int]) -> None:
        self.device, self.config = Device(), config
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self.device._call("cuModuleLoadData", ctypes.byref(module), cubin.read_bytes())
        self.device._call("cuModuleEnumerateFunctions", ctypes.byref(self.function), 1, module)
        self.device._call("cuFuncSetAttribute", self.function, 8, config["shared"])

    def _map(self, tensor: Any, kind: int, rows: int, columns: int, box: tuple[int, int], swizzle: int) -> Any:
        size = tensor.element_size()
        width = swizzle // size if swizzle else box[1]
        return self.device.encode(kind, tensor.data_ptr(), (columns, rows), (columns * size,), (width, box[0]),
                                  SWIZZLES[swizzle], promotion=3)

    def _maps(self, operands: Operands, transposed: Any, result: Any) -> list[Any]:
        problem, c = operands.problem, self.config
        rows, blocks = operands.x.shape[0], problem.k // 128
        groups = problem.groups if problem.kind == "masked" else 1
        return [self._map(operands.x, BYTES, rows, problem.k, (c["block_m"], 128), c["swizzle_a"]),
                self._map(operands.weights, BYTES, operands.weights.shape[0], problem.k, (c["block_n"], 128),
                          c["swizzle_b"]),
                self._map(result, BF16, rows, problem.n, (c["block_m"], c["block_n"]), c["swizzle_d"]),
                self._map(transposed, F32, blocks * groups, transposed.shape[-1], (1, c["block_m"]), 0)]

    def launch(self, operands: Operands, result: Any) -> Callable[[], None]:
        problem, c = operands.problem, self.config
        groups = problem.groups if problem.kind == "masked" else 1
        rows = problem.m // groups
        transposed = _transposed_scales(operands.row_scales.view(groups, rows, -1))
        layout = _grouped_layout(problem).to(result.device)
        pointers = [ctypes.c_uint64(operands.scales.data_ptr()),
                    ctypes.c_uint64(layout.data_ptr() if problem.groups > 1 else 0)]
        sizes = [ctypes.c_uint(value) for value in (rows, problem.n, problem.k)]
        values = [*pointers, *sizes, *self._maps(operands, transposed, result)]
        arguments = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        attribute = _Attribute(4, 0, (ctypes.c_uint * 16)(c["cluster"], 1, 1))
        config = _Config((ctypes.c_uint * 3)(132, 1, 1), (ctypes.c_uint * 3)(c["copy_threads"] + c["math_threads"], 1, 1),
                         c["shared"], None, ctypes.pointer(attribute), 1 if c["cluster"] > 1 else 0)
        kept = (values, layout, transposed, operands, result, attribute)

        def launch(_: Any = kept) -> None:
            config.stream = torch.cuda.current_stream().cuda_stream
            self.device._call("cuLaunchKernelEx", ctypes.byref(config), self.function, arguments, None)

        return launch


def _transposed_scales(scales: Any) -> Any:
    """G x K/128 x M f32, the rows of a group being a multiple of 16 bytes."""
    groups, rows, blocks = scales.shape
    padded = torch.zeros(groups, blocks, -(-rows // 4) * 4, device=scales.device)
    padded[:, :, :rows] = scales.transpose(1, 2)
    return padded


def _grouped_layout(problem: Problem) -> Any:
    """The group of each row, or the rows of each group."""
    if problem.kind == "masked":
        return torch.tensor(problem.used, dtype=torch.int32)
    return torch.arange(problem.groups, dtype=torch.int32).repeat_interleave(problem.m // problem.groups)
