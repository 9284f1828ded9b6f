#!/usr/bin/env python3
"""Writes what norms.py and neighbours.py measured as two dated results: each cell beside a copy and
its bounds, and a summary by chains.

  benchmarks/analysis/chains.py [--resident=FILE] [--before=RESULT] --revision=COMMIT
                                --driver=VERSION LINES...

LINES are what those programs printed, and --resident what resident.py did. A cell is at the rate of
a copy from AT % of it on. Else it is at its bound where it takes up to OVER times as long as the
longer one of these, without a twin that is slower than the kernel by more than SLOWER:

  twin      the same loads and stores without arithmetic
  resident  the same kernel where the L2 cache has every row: arithmetic without device memory

--before has chains that LINES lack, an earlier result of neighbours.py.
"""
import argparse
import collections
import datetime
import json
import pathlib

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"
AT, OVER, SLOWER = 95, 1.05, 1.02
AFTER = {"bf16": "bf16", "nvfp4": "NVFP4", "mxfp4": "MXFP4", "mxfp8": "MXFP8", "fp8_row": "FP8/row",
         "fp8_block": "FP8/128", "fp8": "FP8", "nvfp4_random": "NVFP4, stochastic"}
BEFORE = {"rms": "RMSNorm", "layer": "LayerNorm", "add_rms": "residual, RMSNorm", "silu": "silu",
          "gelu_tanh": "GELU", "gpt_oss": "gpt-oss", "rope": "rotation", "norm_rope": "norm, rotation", "gather": "gather"}
GROUPS = {"into a cache": "caches", "gather": "gathers", "weighted sum": "sums",
          "gradient of RMSNorm": "norm gradients", "gradient of LayerNorm": "norm gradients"}
LONGER = {"silu(g) * u to": "silu to", "GELU(g) * u to": "GELU to", "gate of gpt-oss": "gpt-oss", "norm of heads, rotation": "norm, rotation",
          "gradient of silu(g) * u": "silu gradient",
          "FP8 of rows": "FP8/row", "FP8 of 128": "FP8/128"}
TITLES = {"chain": "chain", "rows": "rows", "columns": "columns", "us": "time", "copy": "copy", "of_copy": "of a copy",
          "twin": "twin", "resident": "resident", "verdict": "limit", "cells": "cells", "copies": "at a copy",
          "bound": "bound", "others": "others"}
UNITS = {"us": "us", "copy": "us", "twin": "us", "resident": "us", "of_copy": "%"}


def name_of(kind):
    first, _, after = kind.rpartition("-")
    return f"{BEFORE[first]} to {AFTER[after]}"


def shorter(chain):
    """The name here of a chain of neighbours.py's results."""
    for long, short in LONGER.items():
        chain = chain.replace(long, short)
    return chain


def verdict_of(cell):
    """`copy`, the bound that the cell is at, or `none`."""
    if cell["of_copy"] >= AT:
        return "copy"
    bounds = {name: cell[name] for name in ("twin", "resident") if cell.get(name) and cell[name] <= SLOWER * cell["us"]}
    name = max(bounds, key=bounds.get, default=None)
    return name if name and cell["us"] <= OVER * bounds[name] else "none"


def cells_of(lines, resident, before):
    """Cells in their order, those of `lines` first."""
    found = {}
    for line in lines:
        if line["rows"] > 132 and "ours" in line:
            found[name_of(line["kind"]), line["rows"], line["columns"]] = {
                "us": line["ours"], "copy": line["copy"], "of_copy": 100 * line["copy"] / line["ours"], "twin": line["twin"]}
    for line in resident:
        cell = found.get((name_of(line["kind"]), line["rows"], line["columns"]))
        if cell and "resident" in line:
            cell["resident"] = line["resident"]
    measured = {chain for chain, _, _ in found}
    for row in ({**row, "chain": shorter(row["chain"])} for row in before):
        if row["rows"] > 132 and "us" in row and row["chain"] not in measured:
            twin = 100 * row["copy"] / row["twin_of_copy"] if row.get("twin_of_copy") else None
            found.setdefault((row["chain"], row["rows"], row["columns"]), {
                "us": row["us"], "copy": row["copy"], "of_copy": row["of_copy"], **({"twin": twin} if twin else {})})
    return [{"chain": chain, "rows": rows, "columns": columns, **cell, "verdict": verdict_of(cell)}
            for (chain, rows, columns), cell in found.items()]


def group_of(chain):
    """Chains that copy or add rows by number have one row in the summary."""
    return next((name for part, name in GROUPS.items() if part in chain), chain)


def summary_of(cells):
    chains = collections.defaultdict(list)
    for cell in cells:
        chains[group_of(cell["chain"])].append(cell)
    rows = []
    for chain, mine in [*chains.items(), ("all", cells)]:
        counts = collections.Counter(cell["verdict"] for cell in mine)
        rows.append({"chain": chain, "cells": len(mine), "copies": counts["copy"],
                     "bound": counts["twin"] + counts["resident"], "others": counts["none"]})
    return rows


def write(area, head, rows, key):
    names = [name for name in TITLES if any(name in row for row in rows)]
    rows = [{name: round(value, 1) if isinstance(value, float) else value for name, value in row.items()} for row in rows]
    head = {"area": area, **head, "key": key,
            "columns": [{"name": name, "title": TITLES[name], "unit": UNITS.get(name)} for name in names]}
    text = ",\n ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items())
    path = RESULTS / f"{area.replace('-', '_')}_h200_{head['date']}.json"
    path.write_text(f"{{{text},\n \"rows\": [\n  " + ",\n  ".join(map(json.dumps, rows)) + "]}\n")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", type=pathlib.Path, nargs="+")
    parser.add_argument("--resident", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--note", default="", help="more about the programs, for the results")
    options = parser.parse_args()
    read = lambda path: [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")] if path else []
    before = json.loads(options.before.read_text())["rows"] if options.before else []
    cells = cells_of([line for path in options.lines for line in read(path)], read(options.resident), before)
    head = {"card": "H200", "device": "NVIDIA H200", "driver": options.driver, "date": datetime.date.today().isoformat(),
            "revision": options.revision, "clock": "1980 MHz, cold L2",
            "command": "benchmarks/norms.py run FOLDER; benchmarks/neighbours.py run FOLDER; benchmarks/analysis/chains.py",
            "program": "cells from 4096 rows on; twin: loads and stores alone; resident: all rows in the L2 cache" + options.note,
            "evidence": "measured"}
    for path in (write("chain-cells", head, cells, ["chain", "rows", "columns"]),
                 write("chains", head, summary_of(cells), ["chain"])):
        print(path)


if __name__ == "__main__":
    main()
