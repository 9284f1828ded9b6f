#!/usr/bin/env python3
"""Writes how much longer the plans that the compiler chose take than the fastest ones measured, as
a dated result.

  benchmarks/analysis/regrets.py AREA DATE COMMAND SEED@REVISION=REPORT.json...

The reports are those of `benchmarks/peers/run.py run --json`, prepared with `--space MOST --device
h200` by the compiler of REVISION: each case of fp4 is the plan chosen for the target, that for the
device where it is another one, or a plan of the space. Regret is the time of the chosen plan by
that of the fastest, less one.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import re
import statistics
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "results"
NAMES = {"bf16_nvfp4": "bf16 x NVFP4", "bf16_mxfp4": "bf16 x MXFP4", "e4m3_mxfp4": "e4m3 x MXFP4",
         "nvfp4_nvfp4": "NVFP4 x NVFP4", "mxfp4_mxfp4": "MXFP4 x MXFP4", "fp8": "FP8 with f32 scales"}
#: What a label has before its split-K factor, and what the operands are called with it.
FORMS = {"fast_accumulation, ": ", fast accumulation", "prepacked, ": "", "": ""}
COLUMNS = {"seed": "seed", "revision": "revision of the plans", "operands": "operands", "weights": "N x K",
           "rows": "rows", "chosen_us": "chosen", "best_us": "best", "best": "best plan", "plans": "plans", "regret": "regret", "device_us": "chosen for h200",
           "device_regret": "regret of that"}
UNITS = {"chosen_us": "us", "best_us": "us", "device_us": "us", "regret": "%", "device_regret": "%"}
KEY = ("seed", "operands", "weights", "rows")


def rows_of(seed: str, revision: str, report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each form of each problem that has plans beside the chosen ones."""
    for problem in report["problems"]:
        forms: dict[str, dict[str, float]] = {}
        for result in problem["results"]:
            if result["library"] == "fp4" and "us" in result:
                form = next(form for form in FORMS if result["case"].startswith(form))
                forms.setdefault(form, {})[result["case"].removeprefix(form)] = result["us"]
        for form, times in forms.items():
            if any(is_of_space(case) for case in times):
                yield row_of(seed, problem, form, times) | {"revision": revision}


def is_of_space(case: str) -> bool:
    return " = " in case


def row_of(seed: str, problem: dict[str, Any], form: str, times: dict[str, float]) -> dict[str, Any]:
    chosen = next(us for case, us in times.items() if not is_of_space(case) and " for " not in case)
    device = next((us for case, us in times.items() if " for " in case), chosen)
    best = min(times, key=lambda case: times[case])
    name = re.sub(r"tile_gemm, ", "", best) if is_of_space(best) else "the chosen one"
    return {"seed": seed, "operands": NAMES[problem["kind"]] + FORMS[form], "weights": f"{problem['n']} x {problem['k']}",
            "rows": problem["m"], "chosen_us": round(chosen, 2), "best_us": round(times[best], 2), "best": name,
            "plans": len(times), "regret": percent(chosen, times[best]), "device_us": round(device, 2),
            "device_regret": percent(device, times[best])}


def percent(time: float, least: float) -> float:
    return round(100 * (time / least - 1), 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("area", "date", "command"):
        parser.add_argument(name)
    parser.add_argument("reports", nargs="+", metavar="SEED@REVISION=REPORT.json")
    options = parser.parse_args()
    reports = {tuple(plans.split("@", 1)): json.loads(pathlib.Path(path).read_text())
               for plans, path in (report.split("=", 1) for report in options.reports)}
    machine = next(iter(reports.values()))["machine"]
    rows = [{name: row[name] for name in COLUMNS}
            for (seed, revision), report in reports.items() for row in rows_of(seed, revision, report)]
    card = re.search(r"H\d+", machine["device"])[0]  # type: ignore[index]
    head = {"area": options.area, "card": card, "device": machine["device"], "driver": machine["driver"],
            "date": options.date, "revision": list(reports)[-1][1], "clock": "kernels in turns, limited by power",
            "command": options.command, "program": None, "evidence": "measured",
            "columns": [{"name": name, "title": title, "unit": UNITS.get(name)} for name, title in COLUMNS.items()],
            "key": list(KEY)}
    text = ",\n ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items())
    path = ROOT / f"{options.area.replace('-', '_')}_{card.lower()}_{options.date}.json"
    path.write_text(f"{{{text},\n \"rows\": [\n  " + ",\n  ".join(map(json.dumps, rows)) + "]}\n")
    for of, title in (("regret", "for the target"), ("device_regret", "for the device")):
        found = [row[of] for row in rows]
        print(f"{title}: {statistics.mean(found):.2f} % in the mean of {len(found)} kernels, {max(found):.1f} % at worst")
    for row in sorted(rows, key=lambda row: -row["device_regret"])[:8]:
        print(row)
    print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
