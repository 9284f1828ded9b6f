#!/usr/bin/env python3
"""Tables of measurements in documents, generated from dated results in benchmarks/results/*.json.

  docgen/result_tables.py            writes the tables into the documents
  docgen/result_tables.py --check    prints a line per finding, and exits with 1 if there is one

A result is one run of one program on one device. The file of a result is NAME_CARD_DATE.json and has

  area      the table that the rows belong to: "gemm-fp8"
  card      the GPU by its short name: "H200"
  device    the device as its driver names it, or what was simulated
  driver    version of the driver
  date      YYYY-MM-DD
  revision  of this repository
  clock     the regime of clocks: "1980 MHz", "libraries in turns, limited by power"
  command   what prints the rows
  program   what was run, where the command does not say it
  evidence  "measured", or "predicted" by the time model
  columns   [{"name": ..., "title": ..., "unit": ...}]: name in a row, title in a table, unit or null
  key       the columns that tell rows of an area apart
  rows      [{NAME: value}]: a number or text; what is absent was not measured

driver, revision, clock, command and program are null where nobody noted them. A document shows all
results of an area on a card as one table:

  <!-- table: gemm-fp8 H200 -->
  <!-- end of table -->

If two results have a row of one key, the table has the newer one. --check finds files that break
this schema, documents that are not current, and tables of measurements of any other origin outside
notebook/. A table is one of measurements if two of its cells are a number with a unit of UNITS (or s or
x), if its header names such a unit, or if the paragraph in front of it names a unit of time and four
of its cells are bare numbers. `<!-- not measured: REASON -->` in front of a table says that it is none.
"""
import argparse
import datetime
import decimal
import itertools
import json
import pathlib
import re
import subprocess
import sys
import textwrap

from written_tables import head, row

RESULTS = "benchmarks/results"
NOTED = ("driver", "revision", "clock", "command", "program")
FIELDS = {"area": str, "card": str, "device": str, "date": str, "evidence": str, "columns": list, "key": list,
          "rows": list, **dict.fromkeys(NOTED, (str, type(None)))}
UNITS = r"(?:[mun]s|seconds|milliseconds|microseconds|[GT]B/s|TFLOPS|[GT]FLOP/s|[MG]Hz|%)"
CELL = re.compile(rf"[*~+-]*\d[\d,.]*(?: to \d[\d,.]*)? ?(?:{UNITS}|s|x)\**")
HEADER = re.compile(rf"(?<![\w/.`-]){UNITS}(?![\w/`-])")
PARAGRAPH = re.compile(r"(?:\bin|,) (?:[mun]s|seconds)\b|(?:[Mm]icro|[Mm]illi)seconds")
BARE = re.compile(r"[*~]*\d[\d,.]*\**")
BEGIN = re.compile(r"<!-- table: (\S+) (\S+) -->")
END = "<!-- end of table -->"
EXEMPT = re.compile(r"<!-- not measured:(.*)-->")
WRITTEN = re.compile(r"<!-- (\S+/\S+ writes this|end of what it writes) -->")


#===--- Results -----------------------------------------------------------===#


def fields_of(result):
    """Findings about the fields of a result."""
    for name, kind in FIELDS.items():
        if name not in result:
            yield f"has no {name}" + (" (null where nobody noted it)" if name in NOTED else "")
        elif not isinstance(result[name], kind):
            yield f"{name} has another type"
    yield from (f"has a field {name} that no schema knows" for name in result if name not in FIELDS)


def names_of(path, result):
    """Findings about the name of a file, its date and its class of evidence."""
    stem = f"_{result['card'].lower()}_{result['date']}"
    if not path.stem.endswith(stem) or path.stem == stem:
        yield f"the name of the file must end with {stem}.json"
    try:
        datetime.date.fromisoformat(result["date"])
    except ValueError:
        yield f"{result['date']} is no date"
    if result["evidence"] not in ("measured", "predicted"):
        yield f"evidence is {result['evidence']}, and must be measured or predicted"


def rows_of(result):
    """Findings about columns, keys and rows."""
    if any(not isinstance(column, dict) or set(column) != {"name", "title", "unit"} for column in result["columns"]):
        yield "a column has a name, a title and a unit (null where there is none)"
        return
    names = [column["name"] for column in result["columns"]]
    if not result["rows"] or not result["key"]:
        yield "a result has at least one row, and at least one column in its key"
    yield from (f"key {name} is no column" for name in result["key"] if name not in names)
    seen = set()
    for position, values in enumerate(result["rows"]):
        where = f"row {position + 1}"
        yield from (f"{where} has {name}, which is no column" for name in values if name not in names)
        yield from (f"{where} has no {name}, which is part of its key" for name in result["key"] if name not in values)
        yield from (f"{where}: {name} is neither number nor text" for name, value in values.items()
                    if isinstance(value, bool) or not isinstance(value, (int, decimal.Decimal, str)))
        if (key := key_of(result, values)) in seen:
            yield f"{where} has the key of another row"
        seen.add(key)


def key_of(result, values):
    return tuple(values.get(name) for name in result["key"])


def read(root):
    """The results that hold the schema by path, and a finding for each that does not."""
    results, found = {}, []
    for path in sorted((root / RESULTS).glob("*.json")):
        try:
            result = json.loads(path.read_text(), parse_float=decimal.Decimal)
        except ValueError as error:
            found.append(f"{RESULTS}/{path.name}: is no JSON: {error}")
            continue
        wrong = list(fields_of(result)) or [*names_of(path, result), *rows_of(result)]
        found += [f"{RESULTS}/{path.name}: {text}" for text in wrong]
        if not wrong:
            results[path] = result
    return results, found


#===--- Tables ------------------------------------------------------------===#


def merged(results):
    """Columns and {key: (values, path)} of results of one area and card: of each key the newest."""
    columns, rows = {}, {}
    keys = {tuple(result["key"]) for result in results.values()}
    if len(keys) > 1:
        raise ValueError(f"its results have different keys: {sorted(keys)}")
    for path, result in results.items():
        for column in result["columns"]:
            if columns.setdefault(column["name"], column) != column:
                raise ValueError(f"its results have different columns {column['name']}")
        for values in result["rows"]:
            key = key_of(result, values)
            if key not in rows or results[rows[key][1]]["date"] < result["date"]:
                rows[key] = values, path
            elif results[rows[key][1]]["date"] == result["date"]:
                raise ValueError(f"two results of {result['date']} have the row {key}")
    return list(columns.values()), in_order(rows)


def in_order(rows):
    """Rows by their key: numbers ascend, and texts have the order in which they came first."""
    texts = [dict.fromkeys(key[place] for key in rows if isinstance(key[place], str))
             for place in range(len(next(iter(rows), ())))]
    ranks = [{text: rank for rank, text in enumerate(listed)} for listed in texts]
    return dict(sorted(rows.items(), key=lambda item: [
        (1, ranks[place][part]) if isinstance(part, str) else (0, part) for place, part in enumerate(item[0])]))


def cell(value):
    return "-" if value is None else str(value)


def title(column):
    return column["title"] + (f", {column['unit']}" if column["unit"] else "")


def source(path, result, folder):
    """The line below a table that says what one of its results is."""
    noted = [result["device"], result["revision"] and f"revision {result['revision']}", result["clock"]]
    text = f"- {result['date']}, {result['evidence']}: {'; '.join(filter(None, noted))}"
    link = f"[{path.stem}]({'../' * folder}{RESULTS}/{path.name})"
    return textwrap.wrap(f"{text} ({link})", 100, subsequent_indent="  ", break_long_words=False,
                         break_on_hyphens=False)


def table(results, area, card, folder):
    """Lines of the table of an area on a card, for a page that is `folder` folders deep."""
    chosen = {path: result for path, result in sorted(results.items(), key=lambda item: (item[1]["date"], item[0]))
              if (result["area"], result["card"]) == (area, card)}
    if not chosen:
        raise ValueError(f"no file of {RESULTS} has the area {area} on {card}")
    columns, rows = merged(chosen)
    columns = [column for column in columns if any(column["name"] in values for values, _ in rows.values())]
    used = [path for path in chosen if any(path == other for _, other in rows.values())]
    dated = len({chosen[path]["date"] for path in used}) > 1
    lines = head(*map(title, columns), *["date"] * dated)
    for values, path in rows.values():
        lines.append(row(*(cell(values.get(column["name"])) for column in columns), *[chosen[path]["date"]] * dated))
    return [*lines, "", *(line for path in used for line in source(path, chosen[path], folder))]


#===--- Documents ---------------------------------------------------------===#


def written(text, results, folder):
    """The text of a document with its tables as the results have them."""
    def fill(match):
        return "\n".join([match.group(0), *table(results, *match.groups()[:2], folder), END])

    if len(BEGIN.findall(text)) != text.count(END):
        raise ValueError(f"a table has no {END}")
    return BEGIN.sub(fill, re.sub(rf"({BEGIN.pattern})\n.*?{END}", r"\1", text, flags=re.S))


def is_measured(lines, place):
    """Returns true when the table whose line of dashes is lines[place] is one of measurements."""
    rows = list(itertools.takewhile(lambda line: line.startswith("|"), lines[place + 1:]))
    cells = [text.strip() for line in rows for text in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
    front = itertools.dropwhile(lambda line: not line.strip(), reversed(lines[:place - 1]))
    paragraph = " ".join(itertools.takewhile(lambda line: line.strip() and line[0] not in "|#<", front))
    return bool(HEADER.search(lines[place - 1]) or sum(bool(CELL.fullmatch(text)) for text in cells) > 1
                or PARAGRAPH.search(paragraph) and sum(bool(BARE.fullmatch(text)) for text in cells) > 3)


def strays(text):
    """(line number, finding) for tables of measurements that no result has, and markers without a table."""
    inside, exempt = False, None
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if BEGIN.fullmatch(line) or WRITTEN.fullmatch(line) or line == END:
            inside = bool(BEGIN.fullmatch(line)) or "writes this" in line
        elif match := EXEMPT.fullmatch(line.strip()):
            exempt = number
            if not match.group(1).strip():
                yield number, "`not measured` needs a reason"
        elif re.fullmatch(r"\|[-|: ]+\|", line) and number > 1 and lines[number - 2].startswith("|"):
            if exempt is None and not inside and is_measured(lines, number - 1):
                yield number - 1, (f"the table has measurements that no file of {RESULTS} has: transcribe them and write "
                                   "`<!-- table: AREA CARD -->`, or `<!-- not measured: REASON -->`")
            exempt = None
        elif exempt is not None and line.strip() and not line.startswith("|"):
            yield exempt, "no table follows `not measured`"
            exempt = None


def documents(root):
    listed = subprocess.run(["git", "ls-files", "-z", "*.md"], cwd=root, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]


def findings_of(name, text, results):
    try:
        if written(text, results, name.count("/")) != text:
            yield f"{name}: a table is not current: run docgen/result_tables.py"
    except ValueError as error:
        yield f"{name}: {error}"
    if not name.startswith("notebook/"):
        yield from (f"{name}:{number}: {finding}" for number, finding in strays(text))


def check(root):
    results, found = read(root)
    for name in documents(root):
        found += findings_of(name, (root / name).read_text(), results)
    return found


def write(root):
    results, found = read(root)
    for name in documents(root):
        path = root / name
        text = path.read_text()
        try:
            if (new := written(text, results, name.count("/"))) != text:
                path.write_text(new)
                print(f"{name} is written")
        except ValueError as error:
            found.append(f"{name}: {error}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=here, help="another checkout")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    root = options.root.resolve()
    found = check(root) if options.check else write(root)
    print(*(f"error: {text}" for text in found), sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
