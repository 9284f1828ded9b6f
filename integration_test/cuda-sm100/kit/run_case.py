#!/usr/bin/env python3
"""Runs cases on device 0 and stores their images.

  run_case.py --image FILE NAME       one case, in a process of its own
  run_case.py --images FOLDER         every case that the device's target has, those of probes too
  run_case.py --facts                 what the device is, as JSON
  run_case.py --ping                  whether a small kernel runs
  run_case.py --list --target T       names of cases
  run_case.py --ptx FOLDER --target T their text, for ptxas

Exit codes: 0 ran, 1 the driver reported an error, 2 wrong arguments, 3 no device.
"""
from __future__ import annotations

import argparse
import ctypes
import json
import pathlib
import shutil
import subprocess
import sys

import catalogue
from case import HEADER, Case
from cuda import Device, Failure, resolve


def tensor_map(device: Device, case: Case, pointer: int) -> "ctypes.Array[ctypes.c_uint64]":
    assert case.map
    return device.encode(case.map.type, pointer, case.map.sizes, case.map.strides, case.map.box, case.map.swizzle)


def run(device: Device, case: Case) -> bytes:
    """The image of a case."""
    source = device.upload(case.contents() or b"\0")
    out = device.upload(bytes([case.before]) * case.size)
    kernel = device.load(case.ptx, case.shared)
    arguments: list[object] = [source, out]
    if case.map:
        arguments.append(tensor_map(device, case, source))
    kernel(case.grid, case.block, *arguments)
    device.synchronize()
    image = device.download(out, case.size)
    device.free(source)
    device.free(out)
    return image


def run_all(device: Device, folder: pathlib.Path, cases: list[Case]) -> int:
    """Ends with the first failure, which ends the context."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        try:
            (folder / f"{case.name}.bin").write_bytes(run(device, case))
        except Failure as failure:
            print(f"FAILED: {case.name}: {failure}", flush=True)
            return 1
    return 0


def facts(device: Device) -> dict[str, object]:
    """For the report; what nvidia-smi adds is there where it is installed."""
    found: dict[str, object] = {"name": device.name(), "target": device.target(), "sms": device.sms(),
                                "driver": device.driver(), "clock_mhz": device.attribute(13) // 1000,
                                "l2_bytes": device.attribute(38), "memory_mhz": device.attribute(36) // 1000}
    query = "driver_version,clocks.sm,clocks.max.sm,power.limit,temperature.gpu,persistence_mode,ecc.mode.current"
    if shutil.which("nvidia-smi"):
        text = subprocess.run(["nvidia-smi", "--id=0", f"--query-gpu={query}", "--format=csv,noheader"], timeout=30,
                              capture_output=True, text=True, check=False).stdout.strip()
        found["nvidia_smi"] = dict(zip(query.split(","), text.split(", ")))
    return found


def ping(device: Device) -> int:
    out = device.upload(bytes(8))
    device.load(HEADER + """.visible .entry k(.param .u64 p_out) {
  .reg .b64 %out; ld.param.u64 %out, [p_out]; st.global.u64 [%out], 4711; ret; }
""")(1, 1, out)
    device.synchronize()
    return int(device.download(out, 8) != (4711).to_bytes(8, "little"))


def write_text(folder: pathlib.Path, target: str, cases: list[Case]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        (folder / f"{case.name}.ptx").write_text(resolve(case.ptx, target))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?")
    parser.add_argument("--image", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--images", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--facts", action="store_true")
    parser.add_argument("--ping", action="store_true")
    parser.add_argument("--list", action="store_true", help="the names")
    parser.add_argument("--ptx", type=pathlib.Path, metavar="FOLDER", help="only write the kernels' text there")
    parser.add_argument("--target", help="with --list and --ptx: of this target")
    parser.add_argument("--small", action="store_true", help="with --images: one case in 32")
    parser.add_argument("--match", default="", help="only cases whose names contain this")
    options = parser.parse_args()
    if options.target:
        chosen = [case for case in catalogue.of_target(options.target) if options.match in case.name]
        if options.ptx:
            write_text(options.ptx, options.target, chosen)
        else:
            print("\n".join(case.name for case in chosen))
        return 0
    try:
        device = Device()
    except (OSError, Failure) as failure:
        print(f"error: no device: {failure}")
        return 3
    if options.facts:
        print(json.dumps(facts(device)))
        return 0
    if options.ping:
        return ping(device)
    if options.images:
        chosen = [case for case in catalogue.of_target(device.target(), True) if options.match in case.name]
        return run_all(device, options.images, chosen[::32] if options.small else chosen)
    found = next((case for case in catalogue.of_target(device.target()) if case.name == options.name), None)
    if not found or not options.image:
        parser.error(f"{device.target()} has no case {options.name!r}" if options.image else "expects --image FILE")
    try:
        options.image.write_bytes(run(device, found))
    except Failure as failure:
        print(f"error: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
