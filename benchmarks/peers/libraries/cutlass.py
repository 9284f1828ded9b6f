"""The FP8 kernels of CUTLASS' examples 54, 67 and 68: one scale per tensor, f32 scales of 1 x 128 and 128 x 128, and
groups of the latter (cutlass_kernels.cu). `prepare` takes a folder with cutlass/ and needs nvcc."""
from __future__ import annotations

import ctypes
import pathlib
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import torch
from problems import Operands, Problem

from .cublas import without_scales
from .library import Library, Missing, Prepared, reference

OPTIONS = ("-shared", "-Xcompiler", "-fPIC", "-std=c++17", "-O3", "--expt-relaxed-constexpr", "-w",
           "-gencode", "arch=compute_90a,code=sm_90a", "-lcuda")
CASES = {"fp8": {"67, scales of blocks": 67, "54, per tensor": 54}, "contiguous": {"68, groups": 68}}


class Cutlass(Library):
    name = "CUTLASS"
    source = "a folder with cutlass/include and cutlass/tools/util/include"

    def prepare(self, source: pathlib.Path | None, folder: pathlib.Path, problems: Sequence[Problem]) -> None:
        nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        if source is None or not (source / "cutlass" / "tools" / "util" / "include").is_dir():
            raise Missing(self.source)
        if not pathlib.Path(nvcc).exists():
            raise Missing("nvcc")
        program = pathlib.Path(__file__).with_name("cutlass_kernels.cu")
        command = [nvcc, *OPTIONS, f"-I{source}/cutlass/include", f"-I{source}/cutlass/tools/util/include", program,
                   "-o", folder / "libkernels.so"]
        found = subprocess.run(command, capture_output=True, text=True)
        if found.returncode:
            raise Missing(f"kernels that compile: {found.stderr.strip()[:2000]}")

    def check(self, folder: pathlib.Path) -> None:
        if not (folder / "libkernels.so").exists():
            raise Missing("libkernels.so, which prepare makes of CUTLASS' sources")

    def cases(self, folder: pathlib.Path, problem: Problem) -> list[str]:
        return list(CASES.get(problem.kind, ()))

    def run(self, folder: pathlib.Path, case: str, sets: Sequence[Operands]) -> Prepared:
        problem = sets[0].problem
        kind = CASES[problem.kind][case]
        library = _load(folder / "libkernels.so")
        results = [torch.empty(problem.m, problem.n, dtype=torch.bfloat16, device=s.x.device) for s in sets]
        return Prepared([_launch(library, kind, s, r) for s, r in zip(sets, results)], results,
                        without_scales if kind == 54 else reference)


def _load(path: pathlib.Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    library.peer_create.restype = ctypes.c_void_p
    library.peer_create.argtypes = [ctypes.c_int] * 5 + [ctypes.c_void_p] * 5
    library.peer_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.peer_error.restype = ctypes.c_char_p
    return library


def _launch(library: ctypes.CDLL, kind: int, operands: Operands, result: Any) -> Callable[[], None]:
    problem = operands.problem
    rows = problem.m // problem.groups
    transposed = operands.row_scales.view(problem.groups, rows, -1).transpose(1, 2).contiguous()
    pointers = (operands.x, operands.weights, transposed, operands.scales, result)
    product = library.peer_create(kind, problem.m, problem.n, problem.k, problem.groups,
                                  *(tensor.data_ptr() for tensor in pointers))
    if not product:
        raise RuntimeError(f"CUTLASS cannot multiply these: {library.peer_error().decode()}")

    def launch(_: Any = pointers) -> None:
        if library.peer_run(product, torch.cuda.current_stream().cuda_stream):
            raise RuntimeError(library.peer_error().decode())

    return launch
