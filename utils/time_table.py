#!/usr/bin/env python3
"""Writes the table of rates in docs/concepts/time-model.md from include/fp4/ISA/TimingRates.def.

  utils/time_table.py            rewrites the table
  utils/time_table.py --check    exits with 1 where it is out of date
"""
import pathlib
import re
import sys

from written_tables import head, row, with_lines

ROOT = pathlib.Path(__file__).resolve().parent.parent


def table():
    text = (ROOT / "include/fp4/ISA/TimingRates.def").read_text()
    gpus = dict(re.findall(r'GpuModel\{"(\w+)", "[^"]*", "(\w+)"', (ROOT / "lib/ISA/GpuModel.cpp").read_text()))
    known = {}
    pattern = r'^FP4_TIMING_OF\((\w+), (\w+), ([^,]+), (\w+), "([^"]*)"\)'
    for target, name, value, mark, source in re.findall(pattern, text, re.M):
        cell = f"{value} ({mark.lower()}: {source})"
        if target in gpus:  # a product's own rate, beside that of its target
            known[name, gpus[target]] += f"; {target} {cell}"
        else:
            known[name, target] = cell
    targets = list(dict.fromkeys(target for _, target in known))
    lines = head("rate", "unit", *targets, "what")
    rates = re.findall(r'^FP4_TIMING\((\w+), "([^"]*)", "([^"]*)"\)', text, re.M)
    for name, unit, meaning in rates:
        cells = [known.get((name, target), "-") for target in targets]
        lines.append(row(name, unit, *cells, meaning))
    return lines


def main():
    page = ROOT / "docs/concepts/time-model.md"
    text = page.read_text()
    new = with_lines(text, "time_table.py", table())
    if "--check" in sys.argv[1:]:
        stale = "error: the table of rates in docs/concepts/time-model.md is out of date: run utils/time_table.py"
        sys.exit(0 if new == text else stale)
    page.write_text(new)


if __name__ == "__main__":
    main()
