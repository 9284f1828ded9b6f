#!/usr/bin/env python3
"""Compares predictions for a B200 with public measurements. Run it under the simulator:

  fp4-sim run --time --device b200 --clock 1.3 --check=off -- \
    benchmarks/time/b200.py CHECKOUT [--only WORD] [--every N] [--json FILE]

CHECKOUT is one of github.com/SemiAnalysisAI/microbench-blackwell (Apache 2.0), which measured a
B200 whose clock was locked at 1.3 GHz. The file cutlass_gemm_mainloop/results.csv has CUTLASS' main
loop of one CTA, K = 131072, by tile and stages. The kernel that is predicted here is
benchmarks/micro/mainloop.py: the same ring of copies and MMAs in PTX, without CUTLASS' epilogue.
umma_latency/lat_results_full.csv has one tcgen05.mma with its commit and wait. The points that
fp4/ISA/TimingRates.def was fitted to are apart: they are the calibration.
"""
from __future__ import annotations

import argparse
import csv
import json
import pathlib
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "micro"))
import blackwell  # noqa: E402
import ptx  # noqa: E402
from cuda import Device  # noqa: E402
from mainloop import APART, Tile, cycles  # noqa: E402

GIGAHERTZ = 1.3
SHARED = 225 * 1024  # bytes that the stages may have, of a CTA's 227 KiB
FEW, MANY = 24, 72  # k tiles
HALF = 63 << 20  # bytes of L2 that keep lines for one SM (L2Reach)
TURN = ("64", "32", "2", "BF16")  # N, K and stages of the tile of 128 rows that gave TmaLatency
KINDS = {"BF16": "f16", "E4M3": "f8f6f4", "MXF8": "mxf8f6f4", "MXF4": "mxf4"}


@dataclass
class Point:
    section: str
    name: str
    measured: float  # clk
    predicted: float
    calibrates: bool

    def error(self) -> float:
        return self.predicted / self.measured - 1


def read(checkout: pathlib.Path, name: str, every: int) -> list[dict[str, str]]:
    with open(checkout / name, encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if all(row.values())][::every]  # without what did not compile


def tile_of(row: dict[str, str]) -> Tile:
    tile = Tile(int(row["TILE_M"]), int(row["TILE_N"]), int(row["TILE_K"]), {"BF16": "bf16", "FP8_E4M3": "e4m3"}[row["dtype"]],
                int(row["STAGES"]))
    return tile if tile.stages else Tile(tile.m, tile.n, tile.k, tile.element, min(SHARED // tile.size(), 64))


def main_loops(device: Device, out: int, rows: list[dict[str, str]]) -> Iterator[Point]:
    """Cycles of a k tile. Operands that L2 kept there are copied again and again here, others once,
    from device memory."""
    for row in rows:
        tile = tile_of(row)
        beyond = (tile.m + tile.n) * tile.bytes() * (int(row["K"]) // tile.k) > HALF
        measured = float(row["time_ms"]) * 1e6 * GIGAHERTZ / (int(row["K"]) / tile.k)
        name = f"{tile.m} x {tile.n} x {tile.k} {tile.element}, {tile.stages} stages"
        yield Point("main loop, from device memory" if beyond else "main loop, from L2", name, measured,
                    cycles(device, out, tile, FEW, MANY, MANY if beyond else APART),
                    tile.m == 128 and (row["TILE_N"], row["TILE_K"], row["STAGES"], row["dtype"]) == TURN)


def latency(device: Device, out: int, kind: str, group: int, m: int, n: int, in_tmem: bool) -> float:
    """Cycles of one MMA with its commit and the wait for it."""
    scales = ", [%sfa], [%sfb]" if kind.startswith("mx") else ""
    a = "[%tmem+256]" if in_tmem else "%da"
    line = (f"  tcgen05.mma.cta_group::{group}{blackwell.KINDS[kind]} [%tmem], {a}, %db, {blackwell.descriptor(kind, m, n):#x}"
            f"{scales}, 1;\n")
    body = f"""  @%bystander bra NEXT;
  @%idle bra NEXT;
  mov.u64 %begin, %clock64;
{line}  tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.b64 [%bar];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], %phase; @!%done bra WAIT;
  mov.u64 %end, %clock64; xor.b32 %phase, %phase, 1;
NEXT:"""
    text = ptx.timed(blackwell.setup(group), body, [], block=128, cluster=group, teardown=blackwell.teardown(group))
    text = text.replace("  mov.u64 %begin, %clock64;\nLOOP:", "LOOP:")
    text = text.replace("  mov.u64 %end, %clock64;\n  setp.eq.u32 %first, %lane, 0;", "  setp.eq.u32 %first, %lane, 0;")
    device.load(text, shared=blackwell.SHARED)(group, 128, out, 3, 0x7FFFFFFF)
    device.synchronize()
    begin, end = device.read(out, 2)
    return float(end - begin)


def latencies(device: Device, out: int, rows: list[dict[str, str]]) -> Iterator[Point]:
    for row in rows:
        if row["Format"] not in KINDS:
            continue
        group, m, n, in_tmem = int(row["CTAGroup"]), int(row["M"]), int(row["N"]), row["ABLayout"] == "TS"
        name = f"{row['Format']} {row['ABLayout']} {m} x {n}, {group} block{'s' if group > 1 else ''}"
        calibrates = not in_tmem and row["Format"] == "BF16" and (group, m, n) in ((1, 128, 256), (2, 256, 256))
        yield Point("product", name, float(row["MedianCycles"]), latency(device, out, KINDS[row["Format"]], group, m, n, in_tmem), calibrates)


def show(points: list[Point], what: str) -> None:
    if points:
        errors = [100 * abs(p.error()) for p in points]
        print(f"{what}: {len(points)} points, mean absolute error {sum(errors) / len(errors):.1f} %, worst {max(errors):.1f} %, "
              f"{sum(e <= 20 for e in errors)} within 20 %")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--only", default="", help="the sections whose names contain this: main loop, product")
    parser.add_argument("--every", type=int, default=1, help="only every N-th point")
    parser.add_argument("--json", help="write the points there")
    options = parser.parse_args()
    device = Device()
    out = device.allocate(1 << 16)
    sections = {"main loop": (main_loops, "cutlass_gemm_mainloop/results.csv"), "product": (latencies, "umma_latency/lat_results_full.csv")}
    points: list[Point] = []
    for section, (predict, file) in sections.items():
        if options.only not in section:
            continue
        for point in predict(device, out, read(options.checkout, file, options.every)):
            points.append(point)
            print(f"{point.name:<40} measured {point.measured:>7.1f} clk, predicted {point.predicted:>7.1f} clk, "
                  f"{100 * point.error():+6.1f} %{', calibration' if point.calibrates else ''}", flush=True)
    show([p for p in points if p.calibrates], "calibration")
    rest = [p for p in points if not p.calibrates]
    for section in dict.fromkeys(p.section for p in rest):
        show([p for p in rest if p.section == section], f"validation, {section}")
    show([p for p in rest if p.section.startswith("main loop")], "validation, main loop, all")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps([asdict(p) for p in points], indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
