"""ThunderKittens' GEMMs for Hopper (kernels/gemm of its checkout, thunderkittens_kernels.cu): bf16,
FP8 with results in e4m3, and FP8 with a scale for each row of both operands and results in f32. The
library has no kernel of FP8 with results in bf16. `prepare` takes a checkout and needs nvcc.

Tiles are 128 x 256 or 128 x 128 and have no borders, so rows are multiples of 128. Results in e4m3
are those of operands that are divided by powers of two, because the results of the others do not
fit."""
from __future__ import annotations

import ctypes
import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import torch
from problems import PACKED, Operands, Problem, bf16_activations, bf16_weights, e4m3_weights, reference

from .cublas import without_scales
from .library import Library, Missing, Prepared
from .nvcc import compile_kernels, launch_of, load_kernels

OPTIONS = ("-Xcompiler", "-fPIC,-fno-strict-aliasing,-Wno-psabi", "-std=c++20", "--use_fast_math",
           "--expt-extended-lambda", "-DKITTENS_HOPPER", "-w")
ARGUMENTS = [ctypes.c_int] * 4 + [ctypes.c_void_p] * 5
KERNELS = ("bf16_h100/bf16_h100_gemm.cu", "fp8_h100/fp8_h100_gemm.cu", "fp8_h100_scaled/fp8_h100_gemm_scaled.cu")


@dataclasses.dataclass(frozen=True)
class Kernel:
    number: int
    tile: tuple[int, int, int]
    result: Any


CASES = {"bf16": Kernel(0, (128, 256, 64), torch.bfloat16),
         "fp8, scales of rows, f32 results": Kernel(2, (128, 128, 128), torch.float32),
         "fp8 per tensor, e4m3 results": Kernel(1, (128, 256, 128), torch.float8_e4m3fn)}
BF16, SCALED, E4M3 = CASES
#: The error of rounding to e4m3 is 0.024 to 0.027.
E4M3_ROUNDING = 0.03


class ThunderKittens(Library):
    name = "ThunderKittens"
    source = "a checkout, with include, prototype and kernels/gemm"

    def prepare(self, source: pathlib.Path | None, folder: pathlib.Path, problems: Sequence[Problem]) -> None:
        if source is None or not all((source / "kernels" / "gemm" / path).exists() for path in KERNELS):
            raise Missing(self.source)
        compile_kernels(pathlib.Path(__file__).with_name("thunderkittens_kernels.cu"), OPTIONS,
                        [source, source / "include", source / "prototype"], folder / "libkernels.so")

    def check(self, folder: pathlib.Path) -> None:
        if not (folder / "libkernels.so").exists():
            raise Missing("libkernels.so, which prepare makes of ThunderKittens' sources")

    def cases(self, folder: pathlib.Path, problem: Problem) -> list[str]:
        if problem.kind in PACKED or problem.kind.startswith("bf16"):
            found = [BF16]
        else:
            found = [SCALED, E4M3] if problem.kind in ("fp8", "e4m3_mxfp4") else []
        sizes = problem.m, problem.n, problem.k
        return [case for case in found if not any(size % tile for size, tile in zip(sizes, CASES[case].tile))]

    def run(self, folder: pathlib.Path, case: str, sets: Sequence[Operands]) -> Prepared:
        problem, kernel = sets[0].problem, CASES[case]
        library = load_kernels(folder / "libkernels.so", ARGUMENTS)
        results = [torch.empty(problem.m, problem.n, dtype=kernel.result, device=s.x.device) for s in sets]
        numbers = kernel.number, problem.m, problem.n, problem.k
        launches = [launch_of(library, numbers, _tensors(case, s, r)) for s, r in zip(sets, results)]
        if case == E4M3:
            return Prepared(launches, results, _small_gemm, E4M3_ROUNDING)
        return Prepared(launches, results, without_scales if problem.kind == "fp8" else reference)


def _tensors(case: str, operands: Operands, result: Any) -> tuple[Any, ...]:
    """Returns the two operands, the result, and the scales of rows of the two, which only one
    kernel reads."""
    problem = operands.problem
    row_scales, column_scales = (torch.ones(size, device=result.device) for size in (problem.m, problem.n))
    if case == BF16:
        return bf16_activations(operands), bf16_weights(operands).t().contiguous(), result, row_scales, column_scales
    if case == E4M3:
        return *_small(operands), result, row_scales, column_scales
    if problem.kind == "e4m3_mxfp4":
        row_scales = operands.row_scales.flatten().contiguous()
    return operands.x, e4m3_weights(operands), result, row_scales, column_scales


def _small(operands: Operands) -> tuple[Any, Any]:
    """Returns the two operands, divided so that elements have a standard deviation of 0.35 to
    0.71."""
    return _divided(operands.x), _divided(e4m3_weights(operands))


def _divided(matrix: Any) -> Any:
    values = matrix.float()
    return (values * 2.0 ** -round(math.log2(2 * float(values.std())))).to(torch.float8_e4m3fn)


def _small_gemm(operands: Operands) -> Any:
    x, weights = _small(operands)
    return x.float() @ weights.float().t()
