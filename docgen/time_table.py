#!/usr/bin/env python3
"""Writes the table of rates in docs/reference/time-rates.md from include/fp4/ISA/TimingRates.def.

  docgen/time_table.py            rewrites the table
  docgen/time_table.py --check    exits with 1 where it is out of date

Sources of the rates are in the .def alone; the table has a letter for the kind of each.
"""
import pathlib
import re
import sys

from written_tables import head, row, with_lines

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = "docs/reference/time-rates.md"


def table():
    text = "".join((ROOT / f"include/fp4/ISA/TimingRates{part}.def").read_text() for part in ("", "GeForce", "H100"))
    gpus = dict(re.findall(r'GpuModel\{"(\w+)", "[^"]*", "(\w+)"', (ROOT / "lib/ISA/GpuModel.cpp").read_text()))
    known = {}
    pattern = r'^FP4_TIMING_OF\((\w+), (\w+), ([^,]+), (\w+), "[^"]*"\)'
    for target, name, value, mark in re.findall(pattern, text, re.M):
        cell = f"{value}{mark[0].lower()}"
        if target in gpus:  # a GPU's own rate, beside that of its target
            known[name, gpus[target]] += f" ({target} {cell})"
        else:
            known[name, target] = cell
    targets = list(dict.fromkeys(target for _, target in known))
    lines = head("rate", "unit", *targets, "meaning")
    rates = re.findall(r'^FP4_TIMING\((\w+), "([^"]*)", "([^"]*)"\)', text, re.M)
    for name, unit, meaning in rates:
        cells = [known.get((name, target), "-") for target in targets]
        lines.append(row(name, unit, *cells, meaning))
    return lines


def main():
    page = ROOT / PAGE
    text = page.read_text()
    new = with_lines(text, "time_table.py", table())
    if "--check" in sys.argv[1:]:
        stale = f"error: the table of rates in {PAGE} is out of date: run docgen/time_table.py"
        sys.exit(0 if new == text else stale)
    page.write_text(new)


if __name__ == "__main__":
    main()
