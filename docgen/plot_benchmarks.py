#!/usr/bin/env python3
"""Draws every table of measurements in the documents as a bar chart, and a page with all of them.

  docgen/plot_benchmarks.py OUT      # the page of plots in OUT, and OUT/plots/*.svg

A table is one of measurements if its header has a unit of UNITS: "median us", "best, TFLOP/s". A column
without a unit has that of the column before it ("NVFP4, us: 1 range | 2 | 4"); ratios and everything
that is no number are labels, or are left out. The numbers are those of the tables and of nothing else.
docgen/build_site.py calls this; it needs no package.
"""
import argparse
import html
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("docs/performance/*.md", "docs/concepts/*.md", "docs/guides/models.md", "docs/guides/python.md",
           "docs/reference/simulator.md")
UNITS = ("TFLOP/s", "TB/s", "GB/s", "us", "ms", "seconds", "bytes received", "M warp instructions/s",
         "thousand products/s", "G multiply-adds/s", "nats")
NO_UNIT = re.compile(r"ratio|against|of copy|of twin|difference|by$|source|cosine|least|ranks|nearest|result|hazards| / |date|Hz$|%$")
NUMBER = re.compile(r"\**(\d[\d,]*(?:\.\d+)?)(?![\w.])")
COLORS = ("#2a6fb0", "#d9822b", "#4c9f50", "#a4479e", "#777777", "#b9a52c", "#3aa6a6", "#c44e52")


class Table:
    """A table of measurements: per unit the columns that have it, and the rows."""

    def __init__(self, source, heading, anchor, header, rows):
        self.source, self.heading, self.anchor, self.rows = source, heading, anchor, rows
        units = units_of(header)
        self.header = header
        self.labels = [i for i, unit in enumerate(units) if unit is None and not NO_UNIT.search(header[i])]
        self.columns = {unit: [i for i, other in enumerate(units) if other == unit]
                        for unit in dict.fromkeys(filter(None, units))}

    def label(self, row):
        return ", ".join(plain(row[i]) for i in self.labels if plain(row[i])) or plain(row[0])

    def bars(self, unit):
        """(label, [(column, value)]) of each row that has a number."""
        found = [(self.label(row), [(self.header[i], number(row[i])) for i in self.columns[unit]]) for row in self.rows]
        return [(label, values) for label, values in found if any(value is not None for _, value in values)]


def units_of(header):
    """The unit of each column; None for labels and ratios."""
    units, last = [], None
    for position, cell in enumerate(header):
        found = next((unit for unit in UNITS if re.search(rf"(?<![\w/]){re.escape(unit)}(?![\w/])", cell)), None)
        if NO_UNIT.search(cell):
            found = None
        elif found is None and last is not None and position > 0:
            found = last
        units.append(found)
        last = found if found is not None else last
    return units


def plain(cell):
    return re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", lambda match: match.group(1) or "", cell).strip()


def number(cell):
    match = NUMBER.match(cell.strip())
    return float(match.group(1).replace(",", "")) if match else None


def anchor_of(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def tables(name, text):
    """The tables of measurements of a document, in order."""
    title, heading, lines, found = "", "", text.splitlines(), []
    for position, line in enumerate(lines):
        if line.startswith("#"):
            heading = line.lstrip("# ")
            title = heading if line.startswith("# ") else title
        if not (re.fullmatch(r"\|[-|: ]+\|", line) and position and lines[position - 1].startswith("|")):
            continue
        header, rows = cells(lines[position - 1]), []
        for row in lines[position + 1:]:
            if not row.startswith("|"):
                break
            rows.append((cells(row) + [""] * len(header))[:len(header)])
        table = Table(name, heading if heading == title else f"{title}: {heading}", anchor_of(heading), header, rows)
        if any(table.bars(unit) for unit in table.columns):
            found.append(table)
    return found


def draw(table, unit):
    """An SVG of horizontal bars; a logarithmic axis where the values differ more than 50 times."""
    groups = table.bars(unit)
    values = [value for _, bars in groups for _, value in bars if value]
    low, high = (min(values), max(values)) if values else (1.0, 1.0)
    logarithmic = high > 50 * low
    names = list(dict.fromkeys(name for _, bars in groups for name, _ in bars))
    out, y = [], 24 + 16 * (len(names) if len(names) > 1 else 0)
    for position, name in enumerate(names if len(names) > 1 else []):
        out.append(f'<rect x="8" y="{8 + 16 * position}" width="10" height="10" fill="{color(position)}"/>'
                   f'<text x="24" y="{17 + 16 * position}">{html.escape(plain(name))}</text>')
    for label, bars in groups:
        out.append(f'<text x="300" y="{y + 6 * len(bars) + 3}" text-anchor="end">{html.escape(label[:48])}</text>')
        for name, value in bars:
            if value is not None:
                length = width(value, low, high, logarithmic)
                out.append(f'<rect x="308" y="{y}" width="{length:.1f}" height="10" fill="{color(names.index(name))}">'
                           f'<title>{html.escape(plain(name))}: {value:g} {unit}</title></rect>'
                           f'<text x="{312 + length:.1f}" y="{y + 9}">{value:,g}</text>')
            y += 12
        y += 6
    scale = "logarithmic" if logarithmic else "linear from 0"
    out.append(f'<text x="308" y="{y + 12}">{unit}, {scale}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="860" height="{y + 24}" font-family="sans-serif" '
            f'font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(out) + "\n</svg>\n")


def color(position):
    return COLORS[position % len(COLORS)]


def width(value, low, high, logarithmic):
    """Returns the width of a bar: 440 for the largest value."""
    if not logarithmic:
        return 440 * value / high
    return 20 + 420 * math.log(max(value, low) / low) / math.log(high / low)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the checkout whose documents are read")
    options = parser.parse_args()
    plots = options.out / "plots"
    plots.mkdir(parents=True, exist_ok=True)
    page = ["# Plots of the benchmarks", "",
            "Every table of measurements in the documents, drawn by docgen/plot_benchmarks.py when this site is",
            "built. The text beside a table says what was measured, where and how; predictions are tables of",
            "predictions here too.", ""]
    count = 0
    for path in (path for source in SOURCES for path in sorted(options.root.glob(source))):
        name = path.relative_to(options.root).as_posix()
        for table in tables(name, path.read_text(encoding="utf-8")):
            page += [f"## {table.heading}", "", f"[The table](../{name}#{table.anchor})", ""]
            for unit in table.columns:
                if table.bars(unit):
                    count += 1
                    (plots / f"{count:02}.svg").write_text(draw(table, unit), encoding="utf-8")
                    page += [f"![{plain(table.heading)}, {unit}](plots/{count:02}.svg)", ""]
    if not count:
        sys.exit("error: no document has a table of measurements")
    (options.out / "Plots.md").write_text("\n".join(page), encoding="utf-8")
    print(f"{count} plots of {sum(line.startswith('## ') for line in page)} tables")


if __name__ == "__main__":
    main()
