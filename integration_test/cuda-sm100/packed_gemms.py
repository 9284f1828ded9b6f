"""One product of every kind that a target has, for the kit: problems of benchmarks/blackwell.py, some of them published."""
from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator
from dataclasses import replace

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from blackwell import Problem, program  # pylint: disable=wrong-import-position

WIDE, HALF = "pair, tile = [256, 256, 256]", "pair, tile = [128, 128, 256]"
GROUPS = [80, 176, 128, 72, 64, 248, 96, 160]
# Names, problems and plans; no plan: the one that the compiler chooses.
Listed = list[tuple[str, Problem, str]]


def of(kind: str, m: int, n: int, k: int, **more: object) -> Problem:
    return Problem(kind, m, n, k, None, "-", **more)  # type: ignore[arg-type]


FEW_ROWS: Listed = [("gemv", of("GEMV", 1, 7168, 16384), ""),
                    ("gemv_batch", of("GEMV", 8, 4096, 7168, groups=[1] * 8), "")]
BLOCKS: Listed = [
    ("fp8_scales", of("GEMM", 128, 4096, 7168, format="fp8_block128"), ""),
    ("fp8_scales_large", of("GEMM", 4096, 4096, 7168, format="fp8_block128"), ""),
    ("fp8_scales_groups", of("grouped", 768, 4096, 7168, groups=[192] * 4, format="fp8_block128"), "")]
DENSE: Listed = [("nvfp4", of("GEMM", 128, 4096, 7168), ""), ("nvfp4_large", of("GEMM", 4096, 4096, 7168), ""),
                 ("mxfp4", of("GEMM", 1024, 7168, 2048, format="mxfp4"), "")]
BYTES: Listed = [("mxfp8", of("GEMM", 2048, 4096, 4096, format="mxfp8_e4m3"), "")]
SIX: Listed = [("mxfp6", of("GEMM", 2048, 4096, 4096, format="mxfp6_e2m3"), "")]
TENSOR: Listed = [
    ("nvfp4_8192", of("GEMM", 8192, 8192, 8192), WIDE),
    ("half_pair", of("GEMM", 128, 7168, 16384), HALF),
    ("dual", of("dual", 512, 4096, 7168, result="f16"), ""),
    ("groups", of("grouped", sum(GROUPS), 4096, 7168, groups=GROUPS, result="f16"), ""),
    ("stream_k", of("GEMM", 1280, 2048, 16384, more="work = #fp4.work<stream_k = [74, 256, 128]>"), ""),
    ("codes", of("codes", 2048, 4096, 4096, result="f32"), "")]
SPLIT: Listed = [("split_k", of("GEMM", 128, 2048, 7168, more="work = #fp4.work<split_k = 4>"), "")]
PRODUCTS: dict[str, Listed] = {
    "sm_100a": DENSE + TENSOR + SPLIT + BLOCKS + BYTES + SIX + FEW_ROWS,
    "sm_103a": DENSE + TENSOR + SPLIT + BLOCKS + BYTES + SIX + FEW_ROWS,
    "sm_120a": DENSE + SPLIT + BYTES + SIX + FEW_ROWS,
    "sm_90a": DENSE + BLOCKS + BYTES + FEW_ROWS,
}


def shrunk(problem: Problem) -> Problem:
    """A problem of this kind with so few elements that a simulator computes and verifies it at once."""
    rows = [40, 0, 100] if problem.kind == "grouped" else problem.groups[:2]
    m, n, k = sum(rows) if rows else min(problem.m, 256), 256, 512
    if problem.format == "mxfp6_e2m3":  # the one that first_light.sh times: it runs thousands of times
        m, n, k = 64, 128, 128
    more = problem.more.replace("74, 256, 128", "3, 256, 128").replace("split_k = 4", "split_k = 2")
    return replace(problem, m=m, n=n, k=k, groups=rows, more=more)


def products(target: str, small: bool) -> Iterator[tuple[str, str]]:
    """Names and programs."""
    for name, problem, plan in PRODUCTS.get(target, []):
        problem = shrunk(problem) if small else problem
        yield f"{name}_{problem.m}x{problem.n}x{problem.k}", program(problem, plan)
