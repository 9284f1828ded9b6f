"""Functions for all comparisons with measured times: the prediction of a program's last launch, and
a summary of errors."""
from __future__ import annotations

import json
import os
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

REPORT = '{"program"'  # how a report of fp4-sim begins
SHORT, NEAR = 5.0, 0.5  # us: launches under SHORT are asked to be within NEAR


def is_held_out(m: int, n: int, k: int) -> bool:
    """True for the half of the GEMMs of gemm_tiles_h200 and gemm_weight_tiles_h200 that power.py
    fits nothing to, and that families.py draws its points from."""
    return zlib.crc32(f"{m}x{n}x{k}".encode()) % 2 == 1


def last_launch(command: Sequence[Any], environment: Mapping[str, str] | None = None, begin: str = REPORT) -> dict[str, Any]:
    """The prediction of the last kernel that the command launches: fp4-sim, or another that prints
    a report. `begin`: of the report, behind what the program prints; empty where it prints nothing.
    RuntimeError: the command failed, or a rate is missing."""
    found = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})})
    at = found.stdout.rfind(begin) if begin else 0
    if found.returncode or at < 0:
        raise RuntimeError(found.stdout[-1000:] + found.stderr[-2000:])
    times = json.loads(found.stdout[at:])["predicted_times"]
    if not times or not times[-1]["predicted"]:
        raise RuntimeError("no prediction" + (f": {times[-1]['unknown']}" if times else ""))
    return dict(times[-1])


def summarize(name: str, times: Sequence[tuple[float, float]]) -> None:
    """Says how far predictions are from measurements: pairs of the measured and the predicted
    one."""
    errors = [predicted / measured - 1 for measured, predicted in times]
    if errors:
        print(f"{name}: {len(errors)} points, mean absolute error {100 * sum(map(abs, errors)) / len(errors):.1f} %, mean "
              f"{100 * sum(errors) / len(errors):+.1f} %, worst {100 * max(errors, key=abs):+.1f} %, "
              f"{sum(abs(error) <= 0.2 for error in errors)} within 20 %")


def summarize_short(name: str, times: Sequence[tuple[float, float]]) -> None:
    """Prints the summary of launches whose error is asked for in microseconds."""
    short = [(measured, predicted) for measured, predicted in times if measured < SHORT]
    if short:
        print(f"{name} under {SHORT:g} us: {sum(abs(predicted - measured) <= NEAR for measured, predicted in short)} of {len(short)} "
              f"within {NEAR} us")
