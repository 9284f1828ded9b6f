"""Kernels that read 128 MiB, compute and write a quarter, by the bytes that an SM has in flight and
by how many CTAs have them: what a launch loses where few CTAs follow each other."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import order
import streams
from cuda import Device
from ladder import MIB, microseconds

SHAPES = [(threads, pieces) for threads in (128, 256, 512, 1024) for pieces in (1, 2, 4)]
WAITING = [(128, 1), (128, 2), (128, 4), (512, 1), (256, 4), (512, 2), (1024, 1), (512, 3), (256, 8), (512, 4), (1024, 2)]  # threads, CTAs
KINDS = [("fp32", 0), ("fp32 and integer in turn", 64), ("fp32 and integer in turn", 144)]
FLIGHTS = (16, 32, 48, 64)  # KiB


def cases(quick: bool) -> Iterator[tuple[str, int, int, int, bool, int]]:
    """Kind, instructions of 32 bytes, threads, pieces of a thread, whether it asks for all of them
    at once, CTAs at a time."""
    for kind, count in KINDS[:1] if quick else KINDS:
        for flight in FLIGHTS:
            for threads, pieces in SHAPES:
                for early in (True, False) if pieces == 2 else (True,):
                    of_block = 32 * threads * (pieces if early else 1)
                    resident = flight * 1024 // of_block
                    if resident * of_block == flight * 1024 and resident * threads <= 2048:
                        yield kind, count, threads, pieces, early, resident


def shared_of(resident: int) -> int:
    """The fewest KiB of shared memory with which no more CTAs fit an SM, so that L1 keeps the
    rest."""
    return 228 // (resident + 1) if resident < 16 else 0


def turnover(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    size = 4 * MIB if quick else streams.SIZE
    pool = device.allocate(size * 5 // 4)
    for kind, count, threads, pieces, early, resident in cases(quick):
        kernel = device.load(streams.once(kind, count, pieces, early), shared_of(resident) << 10)
        grid = size // (32 * pieces * threads)
        taken = microseconds(device, kernel, grid, threads, [(pool, pool + size)], quick)
        fits, flight = kernel.most_resident(threads), 32 * threads * (pieces if early else 1) / 1024
        yield {"name": f"{count} of {kind}, {threads} threads, {pieces} pieces, {'all' if early else 'one'} in flight, {fits} blocks, {flight * fits:g} KiB",
               "value": round(taken, 2), "unit": "us"}
    device.free(pool)


def waits(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Measures how long warps wait for the KiB that each asks for, in the middle of a launch, and
    how long the last warp of a CTA does."""
    size = (2 if quick else 64) * MIB
    pool, warps = device.allocate(size * 5 // 4), size // 1024
    stamps = device.allocate(8 * order.FIELDS * warps)
    kernel = order.stamped("fp32", 0)
    for threads, resident in WAITING[:2] if quick else WAITING:
        loaded = device.load(kernel, shared_of(resident) << 10)
        rows, of_block = order.stamps_of(device, loaded, threads, pool, size, stamps), threads // 32
        blocks = [rows[at:at + of_block] for at in range(0, warps, of_block)][warps // of_block // 4:3 * warps // of_block // 4]
        each = sorted(row[2] - row[1] for block in blocks for row in block)
        last = sorted(max(row[2] for row in block) - min(row[1] for row in block) for block in blocks)
        asked = sorted(max(row[1] for row in block) - min(row[1] for row in block) for block in blocks)
        yield {"name": f"waits of warps, {threads} threads, {loaded.most_resident(threads)} blocks", "value": round(sum(each) / len(each)),
               "unit": "clk", "of 10, 50, 90 and 99 %": [each[len(each) * part // 100] for part in (10, 50, 90, 99)],
               "the last of a block": round(sum(last) / len(last)), "to ask": round(sum(asked) / len(asked))}
    device.free(stamps)
    device.free(pool)
