"""Plans to time beside those that the compiler chooses, so that its regret can be measured.

The compiler's own checks decide which of them are legal: `prepare` passes over the others.
"""
from __future__ import annotations

from collections.abc import Iterator

from problems import BLOCK, Problem

#: SMs of an H100 or H200.
SMS = 132
#: Most and fewest rows of a tile.
TALLEST, SHORTEST = 256, 64
#: Rows of tiles of FP8 with f32 scales, and the waves that their columns fill.
PROMOTED_ROWS, MOST_WAVES = (64, 128, 256), 4
#: Split-K factors.
FACTORS = (1, 2, 3, 4, 6, 8)


def candidates(problem: Problem) -> list[tuple[str, str]]:
    """(split-K or stream-K as `split_of` takes it, partial plan) of each candidate."""
    if problem.groups > 1:
        return []
    if problem.kind == "fp8":
        return list(_promoted(problem))
    return [(ranges, f"tile_gemm, tile = [{rows}, {columns}, {depth}]") for rows in _rows(problem.m)
            for columns in _columns(problem, rows) for depth in _depths(problem)
            for ranges in _ranges(problem, rows, columns)]


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
    return [columns for columns in (128, 256) if problem.n % columns == 0 and rows * columns <= 256 * 128]


def _depths(problem: Problem) -> list[int]:
    return [128, 256] if problem.kind == "e4m3_mxfp4" or (problem.kind in BLOCK and problem.m <= 64) else [128]


def _ranges(problem: Problem, rows: int, columns: int) -> Iterator[str]:
    tiles = -(-problem.m // rows) * (problem.n // columns)
    for split in FACTORS:
        if split == 1 or (tiles * split <= 2.2 * SMS and problem.k // split >= 1024):
            yield str(split)
    if problem.m > 64 and tiles % SMS and tiles < 6 * SMS:
        yield f"{SMS}x{rows}x{columns}"
