#!/usr/bin/env python3
"""Compares clocks that GEMMs had under load with those that the rates of power of Hopper leave
(PowerIdle and those behind it in fp4/ISA/TimingRates.def).

  benchmarks/time/power.py

Kernels of one GEMM that took turns (gemm_tiles_h200, gemm_weight_tiles_h200) have about one clock:
that of the mean of their powers. The work of a kernel follows from its tile, and its cycles from
its measured time and clock. The program prints errors of the clock by operands, of an H100, and of
kernels of other libraries, each alone. No rate was fitted to them but VoltageSlope and
VoltageLeast, to half of the groups of an H200 and with other rates.
"""
from __future__ import annotations

import collections
import json
import math
import pathlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from predictions import is_held_out, summarize

HERE = pathlib.Path(__file__).resolve().parent
BOOST, LIMIT, SMS, LIMITED = 1.98, 700.0, 132, 1.7
#: Kernels of a group, which is half a second of turns: the clocks of fewer have not fallen yet, by
#: up to 13 %.
LEAST = 10
TABLE = HERE.parent.parent / "include/fp4/ISA"
#: Bytes of an element of activations, and of weights, with their scales.
BYTES = {"bf16": 2.0, "e4m3": 1.0, "nvfp4": 0.5625, "mxfp4": 0.53125, "fp8": 1.03}
#: Instructions of a thread for each element of weights that it converts to 16 bits, or to 8 bits
#: with scales applied elsewhere, for each sum that such scales are applied to, and for each that is
#: promoted: means of the simulator's counts in ptxas' code of ten of these GEMMs. The other figure
#: is the traffic of shared memory there, over the reads of MMAs.
CONVERTING, CONVERTING_BYTES, SCALING, PROMOTING = 3.5, 1.4, 0.9, 5.6
CONVERTED_SHARED = 1.6
Rates = dict[str, float]


@dataclass(frozen=True)
class Kernel:
    """A launch: its clock in GHz as it was measured, the shares of an SM that it uses, and the
    bytes that it moves in each cycle, by rates of power."""

    clock: float
    shares: dict[str, float]
    bytes: dict[str, float]


def kernel_of(us: float, megahertz: float, shares: dict[str, float], amounts: dict[str, float]) -> Kernel:
    """The kernel that takes so long, by what all SMs do: cycles of one SM, and bytes."""
    cycles = us * megahertz
    return Kernel(megahertz / 1e3, {rate: value / (SMS * cycles) for rate, value in shares.items()},
                  {rate: value / cycles for rate, value in amounts.items()})


def tile_kernel(row: dict[str, object]) -> Kernel:
    """A row of gemm_tiles or gemm_weight_tiles."""
    kind, fast = str(row["kind"]), bool(row["form"])
    m, n, k, rows, columns = (int(str(row[name])) for name in ("m", "n", "k", "rows", "columns"))
    tiles = -(-m // rows) * -(-n // columns)
    a, b = (kind.split("_") * 2)[:2]
    size = 1 if a in ("fp8", "e4m3") else 2  # bytes of an element that is multiplied
    l2 = tiles * k * (rows * BYTES[a] + columns * BYTES[b]) + 2 * m * n
    if kind == "fp8":  # both operands in shared memory, and sums of 128 elements of K are promoted
        shared, threads = tiles * rows / 64 * k * (64 + columns), PROMOTING * tiles * rows * columns * k / 128
    else:  # weights are converted to registers, 64 columns of a warpgroup
        shared = CONVERTED_SHARED * tiles * columns / 64 * k * size * rows
        threads = CONVERTING * tiles * columns * k
        if kind == "e4m3_mxfp4" and not fast:  # scales of blocks are applied to sums
            threads = tiles * columns * k * (CONVERTING_BYTES + SCALING * rows / 32)
    tensor = 2 * tiles * rows * columns * k / (8192 if size == 1 else 4096)
    memory = m * k * BYTES[a] + n * k * BYTES[b] + 2 * m * n
    return kernel_of(float(str(row["us"])), float(str(row["mhz"])),
                     {"PowerTensor": tensor, "PowerShared": (shared + l2) / 128, "PowerIssue": threads / 32 / 4},
                     {"EnergyL2": l2, "EnergyMemory": memory})


def foreign_kernels(words: Sequence[str]) -> dict[str, Kernel]:
    """Square GEMMs of other libraries by their tiles, as foreign.py has them."""
    tiles = {"triton matmul": (128, 256, 2), "triton matmul_fp8": (128, 256, 1), "cutlass 48_tf32": (128, 128, 4)}
    tiles |= {f"cutlass 49_{name}": (128, 128, 2) for name in ("specialized", "pingpong", "cooperative", "stream_k")}
    found = {}
    for row in json.loads((HERE / "foreign_h200.json").read_text()):
        name = f"{row['source']} {row['kernel']}"
        if name in tiles and any(word in name for word in words) and row["megahertz"] < 1e3 * LIMITED:
            rows, columns, size = tiles[name]
            side = row["sizes"][0]
            count = math.ceil(side / rows) * math.ceil(side / columns)
            l2 = count * side * size * (rows + columns) + 2 * side ** 2
            shared = count * rows / 64 * side * size * (64 + columns) + l2
            found[f"{name} {side}"] = kernel_of(
                row["microseconds"], row["megahertz"],
                {"PowerHalf" if "49_" in name else "PowerTensor": 2 * count * rows * columns * side / (8192 / size), "PowerShared": shared / 128},
                {"EnergyL2": l2, "EnergyMemory": 2 * size * side ** 2 + 2 * side ** 2})
    return found


class Group:
    """Kernels that took turns, and the means of what they do."""

    def __init__(self, operands: str, kernels: Sequence[Kernel]) -> None:
        self.operands, self.clock = operands, sum(kernel.clock for kernel in kernels) / len(kernels)
        self.shares, self.bytes = ({rate: sum(getattr(kernel, name)[rate] for kernel in kernels) / len(kernels)
                                    for rate in getattr(kernels[0], name)} for name in ("shares", "bytes"))

    def predicted(self, rates: Rates) -> float:
        """The clock that the mean of the powers leaves, and that of the tensor cores' use, as in
        Power.cpp."""
        of_cycles = sum(share * rates[rate] for rate, share in self.shares.items()) / BOOST
        of_bytes = self.bytes["EnergyL2"] * rates["EnergyL2"] / 1e3
        most = rates["TensorGigahertz"] - sum(self.shares.get(rate, 0) * rates[fall] for rate, fall in
                                              (("PowerTensor", "BusyFall"), ("PowerHalf", "BusyFallHalf")))
        low, high = 0.3, most
        for _ in range(22):
            clock = (low + high) / 2
            volts = max(rates["VoltageLeast"], 1 - rates["VoltageSlope"] * (BOOST - clock))
            over = rates["PowerIdle"] + clock * (of_cycles * volts ** 2 + of_bytes) > LIMIT
            low, high = (low, clock) if over else (clock, high)
        return low


def rates_of(*targets: str) -> Rates:
    """The rates of a target, and in their place those of a product of it."""
    text = "".join((TABLE / f"TimingRates{part}.def").read_text() for part in ("", "H100"))
    return {name: float(value) for target in targets for name, value in re.findall(rf"^FP4_TIMING_OF\({target}, (\w+), ([\d.]+),", text, re.M)}


def groups(*stems: str, held_out: bool = False) -> list[Group]:
    """The groups whose clock power limits, and that are held out or not."""
    found = collections.defaultdict(list)
    for stem in stems:
        for row in json.loads((HERE.parent / f"results/{stem}.json").read_text())["rows"]:
            if is_held_out(row["m"], row["n"], row["k"]) == held_out:
                found[row["kind"], row["m"], row["n"], row["k"]].append(tile_kernel(row))
    every = [Group(key[0], kernels) for key, kernels in found.items() if len(kernels) >= LEAST]
    return [group for group in every if group.clock < LIMITED]


def show(name: str, of: Sequence[Group], rates: Rates) -> None:
    summarize(f"clock, {name}", [(group.clock, group.predicted(rates)) for group in of])


def main() -> None:
    rates, h100 = rates_of("sm_90a"), rates_of("sm_90a", "h100")
    for held_out in (False, True):
        of = groups("gemm_tiles_h200_2026-11-29", "gemm_weight_tiles_h200_2026-11-29", held_out=held_out)
        for operands in dict.fromkeys(group.operands for group in of):
            show(f"{operands}{', held out' * held_out}", [group for group in of if group.operands == operands], rates)
        show(f"all{', held out' * held_out}", of, rates)
    other = [group for held_out in (False, True) for group in groups("gemm_tiles_h100_2026-11-27", held_out=held_out)]
    for operands in dict.fromkeys(group.operands for group in other):
        show(f"H100, {operands}", [group for group in other if group.operands == operands], h100)
    show("H100, all", other, h100)
    for name, kernel in foreign_kernels(["49_", "triton matmul", "48_"]).items():
        show(name, [Group("", [kernel])], rates)


if __name__ == "__main__":
    main()
