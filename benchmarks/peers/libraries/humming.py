"""Humming (vllm-project/humming): GEMMs of quantized weights, compiled at run time with NVRTC.

`prepare` takes the wheels of humming-kernels and of what it needs and the machine lacks; nothing is
compiled then. Tiles are those of its own heuristics, of which only that of a problem's rows is
compiled: a layer that is not told its rows compiles the tiles of all numbers of rows. The layers
quantize no activations here: e4m3 ones come with scales."""
from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import torch
from problems import Operands, Problem, make_operands

from .library import Library, Missing, Prepared, check_module

WEIGHTS = {"nvfp4": {"dtype": "float4e2m1", "scale_dtype": "float8e4m3", "group_size": 16, "scale_2_type": "tensor"},
           "mxfp4": {"dtype": "float4e2m1", "scale_dtype": "float8e8m0", "group_size": 32}}
#: Seconds that `warm` takes at most.
WARM_SECONDS = 40


class Humming(Library):
    name = "Humming"
    source = "a folder with the wheel of humming-kernels"

    def prepare(self, source: pathlib.Path | None, folder: pathlib.Path, problems: Sequence[Problem]) -> None:
        wheels = sorted(source.glob("*.whl")) if source else []
        if not any(wheel.name.startswith("humming_kernels") for wheel in wheels):
            raise Missing("humming_kernels-*.whl")
        shutil.rmtree(folder / "site", ignore_errors=True)
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder / "site")
        for path in folder.glob("site/**/_native/**/*"):  # zipfile forgets that programs can be executed
            path.chmod(0o755)

    def check(self, folder: pathlib.Path) -> None:
        check_module(folder / "site", "humming.layer", "unpacks")

    def warm(self, folder: pathlib.Path, problems: Sequence[Problem]) -> None:
        asked = [_request(p) for p in problems if self.cases(folder, p)]
        pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
        concurrent.futures.wait([pool.submit(_compile, *request) for request in asked], WARM_SECONDS)
        pool.shutdown(wait=False, cancel_futures=True)  # `run` compiles what is left

    def cases(self, folder: pathlib.Path, problem: Problem) -> list[str]:
        return {"bf16_nvfp4": ["W4A16"], "bf16_mxfp4": ["W4A16"], "e4m3_mxfp4": ["W4A8"]}.get(problem.kind, [])

    def run(self, folder: pathlib.Path, case: str, sets: Sequence[Operands]) -> Prepared:
        problem = sets[0].problem
        results = [torch.empty(problem.m, problem.n, dtype=torch.bfloat16, device=s.x.device) for s in sets]
        return Prepared([_launch(_layer(s), s, r) for s, r in zip(sets, results)], results)


def _request(problem: Problem) -> tuple[str, str]:
    """Returns the layer and the tile of the problem's rows, for which a kernel is compiled."""
    layer = _layer(make_operands(problem, 0))
    return layer.humming_config.to_str(), _tile(layer, problem.m)


def _compile(layer: str, tile: str) -> None:
    """A failure repeats in `run`, which reports it."""
    from humming.kernel.humming import HummingKernel

    with contextlib.suppress(Exception):
        HummingKernel.prepare_kernels(layer, None, tile, 0)


def _tile(layer: Any, rows: int) -> str:
    """The entry of the heuristics' list that a call with so many rows takes: the list has the tiles
    of 1, 2, 4 and multiples of 8 rows, each for the rows up to its own."""
    from humming.tune import get_heuristics_config

    listed = rows if rows in (1, 2, 4) else -(-rows // 8) * 8
    return json.dumps(get_heuristics_config(layer.humming_config, listed, device=0), default=lambda number: number.item())


def _layer(operands: Operands) -> Any:
    from humming.layer import HummingLayer

    problem = operands.problem
    format = problem.kind.split("_")[1]
    inputs = {"dtype": "float8e4m3"} if problem.kind.startswith("e4m3") else None
    layer = HummingLayer(problem.n, problem.k, dict(WEIGHTS[format]), inputs, torch_dtype=torch.bfloat16).cuda()
    scales = torch.float8_e4m3fn if format == "nvfp4" else torch.float8_e8m0fnu
    tensors = {"weight": operands.weights.view(torch.int32), "weight_scale": operands.scales.view(scales)}
    if operands.tensor_scale is not None:
        tensors["weight_scale_2"] = operands.tensor_scale.view(1)
    layer.load_from_tensors(tensors)
    layer.transform()
    return layer


def _launch(layer: Any, operands: Operands, result: Any) -> Callable[[], None]:
    tile = _tile(layer, operands.problem.m)
    if operands.row_scales is None:
        return lambda: layer(operands.x, outputs=result, tuning_config=tile)
    rows = operands.row_scales.shape[0]
    storage = torch.zeros(-(-rows // 4) * 4, 1, device=result.device)  # as its own quantizer allocates them
    storage[:rows] = operands.row_scales
    return lambda: layer(operands.x, outputs=result, input_scale=storage[:rows], tuning_config=tile)
