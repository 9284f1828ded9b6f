"""The FP8 kernels of CUTLASS' examples 54, 67 and 68: one scale per tensor, f32 scales of 1 x 128
and 128 x 128, and groups of the latter (cutlass_kernels.cu). `prepare` takes a folder with cutlass/
and needs nvcc."""
from __future__ import annotations

import ctypes
import pathlib
from collections.abc import Sequence

import torch
from problems import Operands, Problem, e4m3_weights, reference

from .cublas import without_scales
from .library import Library, Missing, Prepared
from .nvcc import compile_kernels, launch_of, load_kernels

OPTIONS = ("-Xcompiler", "-fPIC", "-std=c++17", "-w")
PER_TENSOR = "54, per tensor"
CASES = {"fp8": {"67, scales of blocks": 67, PER_TENSOR: 54}, "contiguous": {"68, groups": 68},
         "e4m3_mxfp4": {PER_TENSOR: 54}}
ARGUMENTS = [ctypes.c_int] * 5 + [ctypes.c_void_p] * 5


class Cutlass(Library):
    name = "CUTLASS"
    source = "a folder with cutlass/include and cutlass/tools/util/include"

    def prepare(self, source: pathlib.Path | None, folder: pathlib.Path, problems: Sequence[Problem]) -> None:
        if source is None or not (source / "cutlass" / "tools" / "util" / "include").is_dir():
            raise Missing(self.source)
        compile_kernels(pathlib.Path(__file__).with_name("cutlass_kernels.cu"), OPTIONS,
                        [source / "cutlass" / "include", source / "cutlass" / "tools" / "util" / "include"],
                        folder / "libkernels.so")

    def check(self, folder: pathlib.Path) -> None:
        if not (folder / "libkernels.so").exists():
            raise Missing("libkernels.so, which prepare makes of CUTLASS' sources")

    def cases(self, folder: pathlib.Path, problem: Problem) -> list[str]:
        return list(CASES.get(problem.kind, ()))

    def run(self, folder: pathlib.Path, case: str, sets: Sequence[Operands]) -> Prepared:
        problem = sets[0].problem
        kind = CASES[problem.kind][case]
        library = load_kernels(folder / "libkernels.so", ARGUMENTS)
        numbers = kind, problem.m, problem.n, problem.k, problem.groups
        results = [torch.empty(problem.m, problem.n, dtype=torch.bfloat16, device=s.x.device) for s in sets]
        launches = []
        for operands, result in zip(sets, results):
            rows = operands.row_scales.view(problem.groups, problem.m // problem.groups, -1)
            tensors = (operands.x, e4m3_weights(operands), rows.transpose(1, 2).contiguous(), operands.scales, result)
            launches.append(launch_of(library, numbers, tensors))
        return Prepared(launches, results, without_scales if kind == 54 else reference)
