"""triton_kernels, the GEMMs of Triton's repository: bf16 activations and MXFP4 weights in its
layouts for Hopper.

`prepare` takes python/triton_kernels of the release of Triton that a run has; this file calls it as
3.6 has it. Triton compiles it where there is a GPU. Tiles are those of its own heuristics, and
scales are for eight warps: in 3.6 the kernel takes no others."""
from __future__ import annotations

import contextlib
import pathlib
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import torch
from problems import Operands, Problem, make_operands

from .library import Library, Missing, Prepared, check_module

class TritonKernels(Library):
    name = "triton_kernels"
    source = "the folder python/triton_kernels of the release of Triton that is installed"

    def prepare(self, source: pathlib.Path | None, folder: pathlib.Path, problems: Sequence[Problem]) -> None:
        package = source / "triton_kernels" if source else None
        if package is None or not (package / "matmul.py").exists():
            raise Missing(f"{self.source}, with triton_kernels/matmul.py")
        shutil.rmtree(folder / "site", ignore_errors=True)
        shutil.copytree(package, folder / "site" / "triton_kernels", ignore=shutil.ignore_patterns("__pycache__"))

    def check(self, folder: pathlib.Path) -> None:
        check_module(folder / "site", "triton_kernels.matmul", "copies")

    def warm(self, folder: pathlib.Path, problems: Sequence[Problem]) -> None:
        for problem in problems:
            if self.cases(folder, problem):
                operands = make_operands(problem, 0)
                result = torch.empty(problem.m, problem.n, dtype=torch.bfloat16, device="cuda")
                with contextlib.suppress(Exception):  # `run` says what fails
                    _launch(operands, result)()

    def cases(self, folder: pathlib.Path, problem: Problem) -> list[str]:
        return ["W4A16"] if problem.kind == "bf16_mxfp4" else []

    def run(self, folder: pathlib.Path, case: str, sets: Sequence[Operands]) -> Prepared:
        problem = sets[0].problem
        results = [torch.empty(problem.m, problem.n, dtype=torch.bfloat16, device=s.x.device) for s in sets]
        return Prepared([_launch(s, r) for s, r in zip(sets, results)], results)


def _launch(operands: Operands, result: Any) -> Callable[[], None]:
    from triton_kernels.matmul import PrecisionConfig, matmul
    from triton_kernels.tensor import FP4, convert_layout, wrap_torch_tensor
    from triton_kernels.tensor_details import layout

    problem = operands.problem
    values, of_values = layout.make_default_matmul_mxfp4_w_layout(mx_axis=1)
    scales, of_scales = layout.make_default_matmul_mxfp4_w_scale_layout(mx_axis=1)
    # Matrices are K x N with consecutive elements of K, in a batch of one.
    columns, blocks = (t.view(1, problem.n, -1).transpose(1, 2) for t in (operands.weights, operands.scales))
    weights = convert_layout(wrap_torch_tensor(columns, dtype=FP4), values, **of_values)
    config = PrecisionConfig(b_mx_scale=convert_layout(wrap_torch_tensor(blocks), scales, **of_scales),
                             out_dtype=torch.bfloat16)

    def launch() -> None:
        matmul(operands.x, weights, None, precision_config=config, c=result)

    return launch
