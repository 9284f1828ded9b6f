#!/usr/bin/env python3
"""Writes the results of random layers (`benchmarks/peers/run.py run --random --json`) as two dated
results: each problem with the fastest case of fp4 and the best peer, and a summary by operands.

  benchmarks/analysis/random_layers.py DATE COMMAND REPORT.json... [--limits RESULT.json...]
      [--own-clocks REPORT.json...] [--earlier RESULT.json]

A ratio is the time of the best peer by that of fp4. Cases whose names have " old " are left out,
and those with one scale for each tensor where fp4 has scales of blocks. The reports are of one
card. Limits have a row for each layer whose limit is known, and name it: what the same kernel takes
without a part that it cannot leave out, or what the MMAs of its waves of tiles take alone. Reports
of own clocks are those of `--settle`, where power gives each library its own clock. With an earlier
result of layers the reports are of those whose kernels have changed since: the summary is of its
layers, each as it was measured last.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import re
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "results"
NAMES = {"bf16_nvfp4": "bf16 x NVFP4", "bf16_mxfp4": "bf16 x MXFP4", "e4m3_mxfp4": "e4m3 x MXFP4",
         "nvfp4_nvfp4": "NVFP4 x NVFP4", "mxfp4_mxfp4": "MXFP4 x MXFP4", "fp8": "FP8 with f32 scales"}
KEY = ("operands", "weights", "rows")
LEAST = 0.97  # a problem below is one that a peer wins
TITLES = {"operands": "operands", "problems": "layers", "mean": "geometric mean", "worst": "worst", "best": "best",
          "won": "at least 0.97", "weights": "N x K", "rows": "rows", "fp4_us": "fp4", "peer_us": "best peer",
          "peer": "peer", "ratio": "ratio", "limited": "below, at a limit", "limit": "limit",
          "own_clock": "ratio at own clocks", "won_own": "in turns or at own clocks"}


def fastest(results: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    return min((result for result in results if "us" in result), key=lambda result: result["us"], default=None)


def rows_of(report: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each problem that fp4 and a peer ran."""
    rows = []
    for problem in report["problems"]:
        other = "per tensor" if problem["kind"] == "fp8" else " old "
        cases = [result for result in problem["results"] if other not in f" {result['case']}"]
        ours = fastest(result for result in cases if result["library"] == "fp4")
        peer = fastest(result for result in cases if result["library"] != "fp4")
        if ours and peer:
            rows.append({"operands": NAMES[problem["kind"]], "weights": f"{problem['n']} x {problem['k']}",
                         "rows": problem["m"], "fp4_us": round(ours["us"], 1), "peer_us": round(peer["us"], 1),
                         "peer": peer["library"], "ratio": round(peer["us"] / ours["us"], 2)})
    return rows


def is_won(row: dict[str, Any]) -> bool:
    return bool(row["peer_us"] / row["fp4_us"] >= LEAST)


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)


def add_limits(rows: Sequence[dict[str, Any]], paths: Sequence[pathlib.Path]) -> None:
    """Names the limit of each row that has one and is below LEAST: power where it reaches that with
    a clock of its own."""
    limits = {key_of(row): row["limit"] for path in paths for row in json.loads(path.read_text())["rows"]}
    for row in rows:
        limit = "power" if row.get("own_clock", 0) >= LEAST else limits.get(key_of(row))
        if limit and not is_won(row):
            row["limit"] = limit


def add_own_clocks(rows: Sequence[dict[str, Any]], paths: Sequence[pathlib.Path]) -> None:
    """Adds the ratio of each row that was measured with clocks of its own, too."""
    own = {key_of(row): row for path in paths for row in rows_of(json.loads(path.read_text()))}
    for row in rows:
        if settled := own.get(key_of(row)):
            row["own_clock"] = round(settled["peer_us"] / settled["fp4_us"], 3)


def joined(path: pathlib.Path, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The layers of an earlier result, those of `rows` in place of their own. Raises ValueError."""
    newer, older = {key_of(row): row for row in rows}, json.loads(path.read_text())["rows"]
    if others := newer.keys() - {key_of(row) for row in older}:
        raise ValueError(f"{path.name} must have all layers of the reports, but lacks {sorted(others)[0]}")
    return [newer.get(key_of(row), row) for row in older]


def summary_of(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each kind of operands, and one for all."""
    found = []
    for name in [*NAMES.values(), "all"]:
        those = [row for row in rows if name in ("all", row["operands"])]
        ratios = [row["peer_us"] / row["fp4_us"] for row in those]
        if ratios:
            found.append({"operands": name, "problems": len(ratios), "won": sum(map(is_won, those)),
                          "won_own": sum(is_won(row) or row.get("own_clock", 0) >= LEAST for row in those),
                          "limited": sum(bool(row.get("limit")) for row in those),
                          "mean": round(statistics.geometric_mean(ratios), 2), "worst": round(min(ratios), 2),
                          "best": round(max(ratios), 2)})
    return found


def write(area: str, head: dict[str, Any], rows: Sequence[dict[str, Any]], key: Sequence[str]) -> pathlib.Path:
    names = dict.fromkeys(name for row in rows for name in row)
    columns = [{"name": name, "title": TITLES[name], "unit": "us" if name.endswith("_us") else None} for name in names]
    text = ",\n ".join(f"{json.dumps(name)}: {json.dumps(value)}"
                       for name, value in ({"area": area} | head | {"columns": columns, "key": list(key)}).items())
    path = ROOT / f"{area.replace('-', '_')}_{head['card'].lower()}_{head['date']}.json"
    path.write_text(f"{{{text},\n \"rows\": [\n  " + ",\n  ".join(map(json.dumps, rows)) + "]}\n")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("date", metavar="YYYY-MM-DD")
    parser.add_argument("command")
    parser.add_argument("reports", type=pathlib.Path, nargs="+")
    parser.add_argument("--limits", type=pathlib.Path, nargs="+", default=[], metavar="RESULT.json")
    parser.add_argument("--own-clocks", type=pathlib.Path, nargs="+", default=[], metavar="REPORT.json")
    parser.add_argument("--earlier", type=pathlib.Path, metavar="RESULT.json")
    options = parser.parse_args()
    reports = [json.loads(report.read_text()) for report in options.reports]
    machine = reports[0]["machine"]
    head = {"card": re.search(r"H\d+", machine["device"])[0], "device": machine["device"],
            "driver": machine["driver"], "date": options.date, "revision": None,
            "clock": "libraries in turns, limited by power", "command": options.command, "program": None,
            "evidence": "measured"}
    rows = [row for report in reports for row in rows_of(report)]
    add_own_clocks(rows, options.own_clocks)
    add_limits(rows, options.limits)
    layers = joined(options.earlier, rows) if options.earlier else rows
    print(write("gemm-random-layers", head, rows, KEY))
    print(write("gemm-random", head, summary_of(layers), ("operands",)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
