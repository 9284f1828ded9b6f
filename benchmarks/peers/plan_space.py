"""Plans to time beside those that the compiler chooses, so that its regret can be measured.

The compiler's own checks decide which of them are legal: `prepare` passes over the others.
"""
from __future__ import annotations

import math
import pathlib
import re
import sys
from collections.abc import Callable, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "analysis"))

from problems import BLOCK, PACKED, Problem
from programs_of_fp4 import FAST, PREPACKED, is_stream

#: SMs of an H100 or H200.
SMS = 132
#: Most and fewest rows of a tile.
TALLEST, SHORTEST = 256, 64
#: Rows of tiles of FP8 with f32 scales, and the waves that their columns fill.
PROMOTED_ROWS, MOST_WAVES = (64, 128, 256), 4
#: Split-K factors.
FACTORS = (1, 2, 3, 4, 6, 8)
#: Columns of three warpgroups, and the most rows of a CTA with so many k slices.
THREE, ROWS_OF_SLICES = 192, {1: TALLEST, 2: 48, 3: 8}
#: The part by which a likely plan may take longer than the best of all, by the model.
WITHIN = 0.25


def likely(problem: Problem, form: str, most: int, is_legal: Callable[[str, str], bool]) -> list[tuple[str, str]]:
    """At most so many legal ones of `candidates`, those that the model of an H200 expects to take
    the least time, and no more than a quarter longer than the best of them."""
    if problem.kind in PACKED and form != PREPACKED:
        return []
    found: list[tuple[str, str]] = []
    longest = math.inf
    for time, candidate in sorted((_predicted(problem, form, *case), case) for case in candidates(problem, form)):
        if len(found) == most or time > longest:
            break
        if is_legal(*candidate):
            found.append(candidate)
            longest = min(longest, (1 + WITHIN) * time)
    return found


def _predicted(problem: Problem, form: str, ranges: str, plan: str) -> float:
    """Cycles by the port of the compiler's model, with the rates of the compiler."""
    import fit_tiles  # needs numpy, as runs do not

    kind = next(kind for kind, kinds in fit_tiles.KINDS.items()
                if problem.kind in kinds and (kind == "bytes") == (form == FAST))
    rows, columns, depth = map(int, re.findall(r"\d+", plan)[:3])
    sliced = re.search(r"k_slices = (\d)", plan)
    kernel = fit_tiles.Kernel(
        problem.name, form == PREPACKED, BLOCK.get(problem.kind, 0), problem.m, problem.n, problem.k, rows, columns, depth,
        splits=1 if is_stream(ranges) else int(ranges), workers=SMS if is_stream(ranges) else 0,
        slices=int(sliced[1]) if sliced else 1, cycles=0, us=0, card="H200",
        reduced=fit_tiles.REDUCED.get(kind, 128))
    model = fit_tiles.MODELS.get(kind, fit_tiles.OF_WEIGHTS)
    return model.predict(kernel, model.compiled(kind))


def candidates(problem: Problem, form: str) -> list[tuple[str, str]]:
    """(split-K or stream-K as `split_of` takes it, partial plan) of each candidate."""
    if problem.groups > 1:
        return []
    if problem.kind == "fp8":
        return list(_promoted(problem))
    ends = _slices if form in (PREPACKED, FAST) or problem.kind.startswith("bf16") else lambda *_: [""]
    return [(ranges, f"tile_gemm, tile = [{rows}, {columns}, {depth}]{slices}") for rows in _rows(problem.m)
            for columns in _columns(problem, rows) for depth in _depths(problem)
            for ranges in _ranges(problem, rows, columns) for slices in ends(rows, columns, ranges)]


def _promoted(problem: Problem) -> Iterator[tuple[str, str]]:
    """Tiles of FP8 with f32 scales: for each number of rows, factor and waves the fewest columns
    with which the tiles fill so many waves, and 128 columns."""
    for rows in PROMOTED_ROWS:
        if rows > SHORTEST and rows > 2 * problem.m:
            continue
        along = -(-problem.m // rows)
        for split in FACTORS:
            widths = {_up(-(-problem.n // (waves * SMS // (along * split))))
                      for waves in range(1, MOST_WAVES + 1) if waves * SMS >= along * split}
            for columns in sorted(width for width in widths | {128} if width >= 16):
                tiles = along * -(-problem.n // columns)
                if split > 1 and (tiles * split > 2.2 * SMS or problem.k // split < 512):
                    continue
                for depth in (128, 256) if rows == SHORTEST else (128,):
                    yield str(split), f"tile_gemm, tile = [{rows}, {columns}, {depth}]"


def _rows(m: int) -> list[int]:
    """The rows of tiles that fill m rows with as many tiles as their number needs."""
    found = {min(TALLEST, _up(m)), _up(-(-m // 2))} if m <= TALLEST else {TALLEST}
    found |= {_up(-(-m // count)) for count in range(1, m // SHORTEST + 1)}
    return sorted(rows for rows in found if rows <= TALLEST)[-6:]


def _up(rows: int) -> int:
    return -(-rows // 8) * 8


def _columns(problem: Problem, rows: int) -> list[int]:
    return [columns for columns in (128, THREE, 256)
            if (problem.n % columns == 0 or columns == THREE) and rows * columns <= 256 * 128 + (columns == THREE) * 32 * 128]


def _depths(problem: Problem) -> list[int]:
    return [128, 256] if problem.kind == "e4m3_mxfp4" or (problem.kind in BLOCK and problem.m <= 64) else [128]


def _ranges(problem: Problem, rows: int, columns: int) -> Iterator[str]:
    tiles = -(-problem.m // rows) * -(-problem.n // columns)
    if columns == THREE:
        yield "1"
        return
    for split in FACTORS:
        if split == 1 or (tiles * split <= 2.2 * SMS and problem.k // split >= 1024):
            yield str(split)
    if problem.m > 64 and tiles % SMS and tiles < 6 * SMS:
        yield f"{SMS}x{rows}x{columns}"


def _slices(rows: int, columns: int, ranges: str) -> list[str]:
    """The ends of plans with each number of k slices that have warpgroups of their own."""
    if is_stream(ranges) or ranges == "1" or columns != 128:
        return [""]
    return [", k_slices = 1"] + [f", k_slices = {slices}, sliced_k" for slices in (2, 3)
                                 if int(ranges) % slices == 0 and rows <= ROWS_OF_SLICES[slices]]
