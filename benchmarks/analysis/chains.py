#!/usr/bin/env python3
"""Writes what norms.py and neighbours.py measured as two dated results: each cell beside a copy and
its bounds, and a summary by chains.

  benchmarks/analysis/chains.py LINES... [--resident FILE...] --revision=COMMIT --driver=VERSION
      [--before=RESULT]

LINES are what those programs or beside.py printed, and --resident what resident.py did. RESULT is
an earlier result, which has the other cells. A cell is at the rate of a copy from AT % of it on.
Else it is at a bound where it takes up to OVER times as long as the longer one of the first two of
these, or as one of the others, without any that is slower than the kernel by more than SLOWER:

  twin      the same loads and stores without arithmetic
  resident  the same kernel where the L2 cache has every row: arithmetic without device memory
  ends      the longer one of both, each with what the other part adds to a wave: to as many rows as
            all SMs have at once, of which the first and the last ones overlap with nothing
  beside    the instructions, accesses to the L2 cache and bytes of device memory of the kernel,
            where no thread waits for device memory (beside.py)
  begin     `beside`, with what waiting adds to one wave
  waits     `beside`, where rows come later by another access to the L2 cache (beside.py)

Others are `both`, where the shorter one of twin and resident has NEAR of the longer one, `no twin`
where the twin is slower than the kernel, or `none`.
"""
import argparse
import collections
import datetime
import json
import pathlib

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"
AT, OVER, SLOWER, NEAR = 95, 1.05, 1.02, 0.85
AFTER = {"bf16": "bf16", "nvfp4": "NVFP4", "mxfp4": "MXFP4", "mxfp8": "MXFP8", "fp8_row": "FP8/row",
         "fp8_block": "FP8/128", "fp8": "FP8", "nvfp4_random": "NVFP4, stochastic"}
NAMES = {"rms_gradient": "gradient of RMSNorm", "layer_gradient": "gradient of LayerNorm", "silu_gradient": "silu gradient",
         "loss": "cross entropy", "loss_gradient": "its gradient"}
BEFORE = {"rms": "RMSNorm", "layer": "LayerNorm", "add_rms": "residual, RMSNorm", "silu": "silu",
          "gelu_tanh": "GELU", "gpt_oss": "gpt-oss", "rope": "rotation", "norm_rope": "norm, rotation", "gather": "gather"}
GROUPS = {"norm, rotation": "norms, rotations", "rotation": "rotations", "into a cache": "caches", "gather": "gathers", "weighted sum": "sums",
          "gradient of RMSNorm": "norm gradients", "gradient of LayerNorm": "norm gradients"}
TITLES = {"chain": "chain", "rows": "rows", "columns": "columns", "us": "time", "copy": "copy", "of_copy": "of a copy",
          "twin": "twin", "resident": "resident", "ends": "ends", "beside": "beside", "begin": "begin", "waits": "waits",
          "verdict": "limit",
          "cells": "cells", "copies": "at a copy", "bound": "bound", "with_ends": "with waits", "others": "others"}
SUMMARY = ("chain", "cells", "copies", "bound", "with_ends", "others")
UNITS = {"us": "us", "copy": "us", "twin": "us", "resident": "us", "ends": "us", "beside": "us", "begin": "us", "waits": "us",
         "of_copy": "%"}
LATER = ("ends", "beside", "begin", "waits")
#: Rows of a cell: fewer are those of a wave.
FEWEST = 4096


def name_of(kind):
    first, _, after = kind.rpartition("-")
    if first == "cache":
        return f"{AFTER[after]} into a cache"
    if first == "combine":
        return f"weighted sum of {after} rows"
    return NAMES.get(kind) or f"{BEFORE[first]} to {AFTER[after]}"


def verdict_of(cell):
    """`copy`, the bound that the cell is at, or why it is at none."""
    if cell["of_copy"] >= AT:
        return "copy"
    bounds = {name: cell[name] for name in ("twin", "resident", *LATER)
              if cell.get(name) and cell[name] <= SLOWER * cell["us"]}
    later = {name: bounds.pop(name) for name in LATER if name in bounds}
    name = max(bounds, key=bounds.get, default=None)
    if name and cell["us"] <= OVER * bounds[name]:
        return name
    return next((name for name, bound in later.items() if cell["us"] <= OVER * bound), None) or reason_of(bounds)


def reason_of(bounds):
    if "twin" not in bounds:
        return "no twin"
    return "both" if "resident" in bounds and min(bounds.values()) >= NEAR * max(bounds.values()) else "none"


def ends_of(twin, resident, wave):
    """The third bound, from microseconds of all rows and a line of a wave."""
    return max(twin + wave["ours"] - wave["twin"], resident + wave["ours"] - wave["resident"])


def key_of(line):
    return line["kind"], line["rows"], line["columns"]


def beside_of(line, waves):
    """The bounds of a line of beside.py; waves are lines of it by kind, rows and columns."""
    if "beside" not in line:
        return {}
    wave = waves.get((line["kind"], line["wave"], line["columns"]))
    begin = {"begin": line["beside"] + max(0, wave["ours"] - wave["beside"])} if wave else {}
    waits = {"waits": line["waits"]} if "waits" in line else {}
    return {"beside": line["beside"], **begin, **waits}


def cells_of(lines, resident):
    """Cells in the order of `lines`."""
    apart = {key_of(line): line for line in resident if "resident" in line}
    waves = {key_of(line): line for line in lines if "beside" in line}
    found = []
    for line in lines:
        if line["rows"] < FEWEST or "ours" not in line:
            continue
        cell = {"chain": name_of(line["kind"]), "rows": line["rows"], "columns": line["columns"], "us": line["ours"],
                "copy": line["copy"], "of_copy": 100 * line["copy"] / line["ours"]}
        cell.update({"twin": line["twin"]} if "twin" in line else {})
        if key_of(line) in apart and "twin" in cell:
            mine = apart[key_of(line)]
            cell["resident"] = mine["resident"]
            wave = apart.get((line["kind"], mine["wave"], line["columns"]))
            cell.update({"ends": ends_of(cell["twin"], cell["resident"], wave)} if wave else {})
        cell.update(beside_of(line, waves))
        found.append(cell)
    return found


def joined(cells, before):
    """The cells of an earlier result, with what was measured again, and others of `cells`. Limits
    that are sums of times of one run are of the run that has the time."""
    key = lambda cell: (cell["chain"], cell["rows"], cell["columns"])
    mine = {key(cell): cell for cell in cells}
    judged = lambda cell: {**cell, "verdict": verdict_of(cell)}
    kept = lambda cell: {name: value for name, value in cell.items() if name not in LATER}
    found = [judged({**kept(cell), **mine.pop(key(cell))}) if key(cell) in mine else cell for cell in before]
    return [*found, *map(judged, mine.values())]


def group_of(chain):
    """Rotations, and chains that copy or add rows by number, have one row in the summary."""
    return next((name for part, name in GROUPS.items() if part in chain), chain)


def summary_of(cells):
    chains = collections.defaultdict(list)
    for cell in cells:
        chains[group_of(cell["chain"])].append(cell)
    rows = []
    for chain, mine in [*chains.items(), ("all", cells)]:
        counts = collections.Counter(cell["verdict"] for cell in mine)
        reached = [counts["copy"], counts["twin"] + counts["resident"] + counts["beside"],
                   counts["ends"] + counts["begin"] + counts["waits"]]
        rows.append(dict(zip(SUMMARY, (chain, len(mine), *reached, len(mine) - sum(reached)))))
    return rows


def write(area, head, rows, key):
    names = [name for name in TITLES if any(name in row for row in rows)]
    rows = [{name: round(row[name], 1) if isinstance(row[name], float) else row[name] for name in names if name in row} for row in rows]
    head = {"area": area, **head, "key": key,
            "columns": [{"name": name, "title": TITLES[name], "unit": UNITS.get(name)} for name in names]}
    text = ",\n ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items())
    path = RESULTS / f"{area.replace('-', '_')}_h200_{head['date']}.json"
    path.write_text(f"{{{text},\n \"rows\": [\n  " + ",\n  ".join(map(json.dumps, rows)) + "]}\n")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", type=pathlib.Path, nargs="+")
    parser.add_argument("--resident", type=pathlib.Path, nargs="+", default=[])
    parser.add_argument("--revision", required=True)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--before", type=pathlib.Path, help="an earlier result, which has the other cells")
    parser.add_argument("--note", default="", help="more about the programs, for the results")
    options = parser.parse_args()
    read = lambda paths: [json.loads(line) for path in paths for line in path.read_text().splitlines() if line.startswith("{")]
    cells = cells_of(read(options.lines), read(options.resident))
    cells = joined(cells, json.loads(options.before.read_text())["rows"] if options.before else [])
    head = {"card": "H200", "device": "NVIDIA H200", "driver": options.driver, "date": datetime.date.today().isoformat(),
            "revision": options.revision, "clock": "1980 MHz, cold L2",
            "command": "norms.py, neighbours.py, resident.py and beside.py (benchmarks/) run FOLDER; benchmarks/analysis/chains.py",
            "program": "cells from 4096 rows on; twin: loads and stores alone; resident: all rows in the L2 cache; "
                       "ends: the longer one, with what the other adds to one wave; beside: instructions, accesses and bytes "
                       "of the kernel, but no thread waits for device memory; begin: this, with what waiting adds to one wave; "
                       "waits: beside, where rows come later by an access to the L2 cache" + options.note,
            "evidence": "measured"}
    for path in (write("chain-cells", head, cells, ["chain", "rows", "columns"]),
                 write("chains", head, summary_of(cells), ["chain"])):
        print(path)


if __name__ == "__main__":
    main()
