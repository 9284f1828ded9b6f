"""cuBLAS and cuBLASLt, through PyTorch: bf16 GEMMs of operands that were dequantized beforehand,
FP8 GEMMs with one scale for each operand, and with scales of blocks where PyTorch has them."""
from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from problems import Operands, Problem, bf16_activations, bf16_weights, e4m3_weights, reference

from .library import Library, Missing, Prepared


#: Without and with `use_fast_accum`: sums are promoted to f32 now and then, or are the tensor
#: core's to the end.
PER_TENSOR = ["fp8 per tensor", "fp8 per tensor, fast accumulation"]


class Cublas(Library):
    name = "cuBLAS"

    def check(self, folder: pathlib.Path) -> None:
        if not torch.cuda.is_available():
            raise Missing("a GPU that PyTorch sees")

    def cases(self, folder: pathlib.Path, problem: Problem) -> list[str]:
        return {"bf16_nvfp4": ["bf16"], "bf16_mxfp4": ["bf16"], "e4m3_mxfp4": PER_TENSOR, "nvfp4_nvfp4": ["bf16"],
                "mxfp4_mxfp4": ["bf16"], "fp8": ["fp8 blocks", *PER_TENSOR]}.get(problem.kind, [])

    def run(self, folder: pathlib.Path, case: str, sets: Sequence[Operands]) -> Prepared:
        multiply = {"bf16": _bf16, "fp8 blocks": _blocks, PER_TENSOR[0]: _per_tensor,
                    PER_TENSOR[1]: functools.partial(_per_tensor, fast=True)}[case]
        problem = sets[0].problem
        results = [torch.empty(problem.m, problem.n, dtype=torch.bfloat16, device=s.x.device) for s in sets]
        launches = [multiply(s, result) for s, result in zip(sets, results)]
        return Prepared(launches, results, without_scales if case in PER_TENSOR else reference)


def without_scales(operands: Operands) -> Any:
    """The GEMM of operands with unit scales, as the scale of a tensor would be applied to all of
    it."""
    ones = {name: torch.ones_like(getattr(operands, name)) for name in ("row_scales", "scales")
            if getattr(operands, name).dtype == torch.float32}
    return reference(dataclasses.replace(operands, **ones))


def _bf16(operands: Operands, result: Any) -> Callable[[], None]:
    x, transposed = bf16_activations(operands), bf16_weights(operands).t()
    return lambda: torch.mm(x, transposed, out=result)


def _per_tensor(operands: Operands, result: Any, fast: bool = False) -> Callable[[], None]:
    x, one = operands.x, torch.ones((), device=operands.x.device)
    transposed = e4m3_weights(operands).t()
    return lambda: torch._scaled_mm(x, transposed, scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                                    use_fast_accum=fast, out=result)


def _blocks(operands: Operands, result: Any) -> Callable[[], None]:
    """cuBLASLt wants scales of 1 x 128 with consecutive rows, and those of 128 x 128 with
    consecutive blocks of K, four of which are aligned."""
    from torch.nn.functional import ScalingType

    rows, columns = operands.scales.shape
    storage = torch.zeros(rows, -(-columns // 4) * 4, device=operands.scales.device)
    storage[:, :columns] = operands.scales
    row_scales, scales = operands.row_scales.t().contiguous().t(), storage[:, :columns].t()
    weights, activations = operands.weights.t(), operands.x
    recipes = [ScalingType.BlockWise1x128.value], [ScalingType.BlockWise128x128.value]
    multiply = torch.ops.aten._scaled_mm_v2.out

    def launch() -> None:
        multiply(activations, weights, [row_scales], recipes[0], [], [scales], recipes[1], [], None, torch.bfloat16,
                 [], False, out=result)

    return launch
