#!/usr/bin/env python3
"""Measures what the simulator's table of rates quotes (lib/ISA), on device 0.

  benchmarks/micro/run.py [--json FILE] [--quick] [--only WORD]

Every measurement is a line: a name, a value and its unit. `--quick` shortens all of them, for a
simulator: `fp4-sim run --time --device h200 -- benchmarks/micro/run.py --quick`. A measurement that
fails says so and the others go on; the exit code is then 1.
"""
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import blackwell
import bursts
import cold
import converted_operands
import cp_async
import divisions
import first_reads
import instruction_code
import instructions
import ladder
import launch
import memory
import mixes
import mma_sync
import order
import outside
import pairs
import parameters
import pdl
import power
import prefetches
import registers
import residency
import steps
import stores
import streams
import sweeps
import tensor
import tiles
import turnover
import warp_specialized
import wgmma_queue
from cuda import Device, Failure

Rows = Iterator[dict[str, Any]]


def sections(device: Device, out: int, quick: bool) -> dict[str, Callable[[], Rows]]:
    rounds = 2 if quick else 64
    every = {"clock": lambda: memory.clock(device, out),
            "rates": lambda: instructions.rates(device, out, rounds),
            "shared": lambda: instructions.shared_memory(device, out, rounds),
            "latencies": lambda: instructions.latencies(device, out, rounds),
            "barriers": lambda: memory.barriers(device, out, rounds),
            "copies": lambda: memory.copies(device, out, quick),
            "cp-async": lambda: cp_async.bursts(device, out, rounds), "feed": lambda: cp_async.feed(device, out, quick),
            "tiles": lambda: tiles.tiles(device, out, quick),
            "multicast": lambda: memory.multicast(device, out, quick),
            "prefetches": lambda: prefetches.prefetches(device, out, quick),
            "boxes": lambda: memory.boxes(device, out, quick),
            "outside": lambda: outside.outside(device, out, quick),
            "bandwidth": lambda: memory.bandwidth(device, out, quick),
            "mixes": lambda: mixes.mixes(device, out, quick),
            "sweeps": lambda: sweeps.sweeps(device, out, quick),
            "reach": lambda: sweeps.reach(device, out, quick),
            "translations": lambda: sweeps.translations(device, out, quick),
            "pages": lambda: cold.pages(device, out, quick),
            "first-reads": lambda: first_reads.chains(device, out, quick),
            "parameters": lambda: parameters.parameters(device, out),
            "shares": lambda: first_reads.shares(device, out, quick),
            "pieces": lambda: first_reads.pieces(device, out, quick),
            "chase": lambda: first_reads.chase(device, out, quick),
            "bursts": lambda: bursts.bursts(device, out, rounds),
            "steps": lambda: steps.steps(device, out, quick), "power": lambda: power.power(device, out, quick),
            "trees": lambda: bursts.trees(device, out, rounds),
            "cold": lambda: cold.cold(device, out, quick),
            "launches": lambda: launch.launches(device, out, quick),
            "residency": lambda: residency.residency(device, out, quick),
            "overlap": lambda: pdl.overlap(device, out, quick),
            "ladder": lambda: ladder.ladder(device, out, quick),
            "fetches": lambda: instruction_code.fetches(device, out, quick),
            "fetches-apart": lambda: instruction_code.fetches_apart(device, out, quick),
            "flow": lambda: instruction_code.flow(device, out, quick),
            "divisions": lambda: divisions.divisions(device, out, rounds),
            "streams": lambda: streams.streams(device, out, quick),
            "turnover": lambda: turnover.turnover(device, out, quick),
            "waits": lambda: turnover.waits(device, out, quick),
            "alone": lambda: streams.alone(device, out, quick),
            "order": lambda: order.order(device, out, quick),
            "clocks": lambda: order.clocks(device, out, quick),
            "short": lambda: instruction_code.short(device, out, quick),
            "store-latencies": lambda: stores.latencies(device, out, quick),
            "store-queues": lambda: stores.queues(device, out, quick),
            "store-rates": lambda: stores.rates(device, out, quick),
            "store-threads": lambda: stores.of_threads(device, out, quick),
            "store-parts": lambda: stores.of_parts(device, out, quick),
            "store-grids": lambda: stores.of_grids(device, out, quick),
            "store-bursts": lambda: stores.of_bursts(device, out, quick),
            "store-beside": lambda: stores.beside(device, out, quick),
            "atomics": lambda: ladder.atomics(device, out, quick),
            "starts": lambda: ladder.starts(device, out, quick),
            "replacement": lambda: ladder.replacement(device, out, quick)}
    hopper = {"registers": lambda: registers.registers(device, out, rounds), "tensor": lambda: tensor.products(device, out, rounds),
              "beside": lambda: tensor.beside(device, out, rounds), "beside-own": lambda: tensor.beside_own(device, out, rounds), "beside-queued": lambda: tensor.beside_queued(device, out, rounds),
              "beside-masks": lambda: tensor.beside_masks(device, out, rounds),
              "fence-products": lambda: tensor.fences(device, out, rounds),
              "conversions": lambda: converted_operands.conversions(device, out, rounds),
              "mma-sync": lambda: mma_sync.beside(device, out, rounds), "merges": lambda: mma_sync.merges(device, out, quick),
              "pairs": lambda: pairs.pairs(device, out, rounds), "queue": lambda: wgmma_queue.queue(device, out),
              "warp-specialized": lambda: warp_specialized.warp_specialized(device, out, quick)}
    tcgen05 = {"products": lambda: blackwell.products(device, out, rounds),
               "tmem": lambda: blackwell.tensor_memory(device, out, rounds)}
    return every | {"sm_90a": hopper, "sm_100a": tcgen05, "sm_103a": tcgen05}.get(device.target(), {})


def show(row: dict[str, Any]) -> None:
    more = ", ".join(f"{key} {value}" for key, value in row.items() if key not in ("name", "value", "unit", "section"))
    print(f"{row['name']:<62} {row['value']:>12} {row['unit']}{'; ' + more if more else ''}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write the table there too")
    parser.add_argument("--quick", action="store_true", help="short loops and small memory")
    parser.add_argument("--only", metavar="WORD", help="the sections whose names begin so")
    parser.add_argument("--list", action="store_true", help="the sections that this device has")
    options = parser.parse_args()
    try:
        device = Device()
        out = device.allocate(1 << 20)
    except (OSError, Failure) as failure:
        sys.exit(f"error: no device: {failure}")
    if options.list:
        print("\n".join(sections(device, out, True)))
        return 0
    print(f"{device.name()}, {device.sms()} SMs")
    table, failed = [], False
    for name, section in sections(device, out, options.quick).items():
        if options.only and not name.startswith(options.only):
            continue
        try:
            for row in section():
                row["section"] = name
                table.append(row)
                show(row)
        except Failure as failure:
            failed = True
            print(f"FAILED: {name}: {failure}", flush=True)
            if "ILLEGAL" in str(failure) or "LAUNCH" in str(failure):
                break  # the context is gone
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": device.name(), "rows": table}, file, indent=1)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
