#!/usr/bin/env python3
"""Mutates the synchronization of every kind of kernel that the compiler emits
(validation/kernel_kinds.py, validation/mutate.py).

  validation/mutate_all.py                 all kinds; a row of the table for each (eager, lazy,
                                      random; what is alive then runs in up to 1000 orders, or for
                                      120 seconds)
  validation/mutate_all.py --only=hadamard those whose name contains the text
  validation/mutate_all.py --limit=8       a fixed sample of each
  validation/mutate_all.py --list          the names, and how many mutants each has
  validation/mutate_all.py --record=FILE   keeps what each kind came to, and leaves out those that
                                           are there
  validation/mutate_all.py --record=FILE --document=notebook/evidence.md
                                      writes the table of what was recorded into the document
  validation/mutate_all.py --record=FILE --document=notebook/evidence.md --add
                                      adds the kinds that were recorded and that the table does not
                                          have

Prints a row of the table as soon as a kind has been run. Exit code 1 when a mutant survives that is
not equivalent or redundant, when a kind that synchronizes has no mutant, or does not compile.
"""
import collections
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy

import kernel_kinds
import mutate

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "docgen"))
from written_tables import head, lines_of, row, write

#: The schedules of the table in notebook/evidence.md; the orders and seconds below are the table's
#: too.
SCHEDULES = [("eager", 1), ("lazy", 1), ("random", 1)]
COLUMNS = ("kind of kernel", "target", "mutants", "killed", "equivalent", "redundant", "unreached",
           "survived")


def compiled(kind, scratch, options):
    source = scratch / "program.mlir"
    source.write_text(kind.larger or kind.text)
    shape = [f"--shape={kind.shape}"] if kind.shape and not kind.rows else []
    return mutate.compile_program(options.build / "bin", scratch, source,
                                  [*shape, *kind.options, f"--target={kind.target}"])


def offsets_runs(kind, scratch):
    """Arguments of fp4-run: once with offsets that are right, and once with those that decrease, of
    which the kernel is to tell."""
    for name, (offsets, error) in kind.offsets.items():
        path = scratch / f"{name}.npy"
        numpy.save(path, numpy.array(offsets, dtype=numpy.int64))
        fails = ["--no-verify", f"--expect-error={error}"] if error else []
        yield [f"--input=o={path}", *fails]


def shape_runs(kind, scratch):
    """Arguments of fp4-run: once for each number of rows, or for each tensor of offsets."""
    if kind.offsets:
        return list(offsets_runs(kind, scratch))
    if kind.rows:
        return [[f"--shape={rows}"] for rows in kind.rows]
    return [[f"--shape={str(kind.shape).split(',')[0]}"] if kind.shape else []]


def runs_of(kind, scratch):
    """Returns the runs for each distribution of the operands that matters."""
    dists = [[f"--dist={dist}"] for dist in kind.dists] or [[]]
    return [[*run, *dist] for dist in dists for run in shape_runs(kind, scratch)]


def synchronizes(library):
    return any(re.search(r"\b(bar|barrier|mbarrier|fence|wgmma|tcgen05|cp\.async)\.", text)
               for text in mutate.kernels(library))


def judge(kind, options):
    with tempfile.TemporaryDirectory(prefix="fp4-mutate-") as folder:
        scratch = pathlib.Path(folder)
        library = compiled(kind, scratch, options)
        if options.list:
            return len(list(mutate.mutants(mutate.kernels(library))))
        options.runs, options.explored = runs_of(kind, scratch), kind.explored
        result = mutate.tally(library, options)
        if not result.chosen and synchronizes(library):
            raise RuntimeError("has no mutant, but synchronizes")
        return result


def revision():
    command = ["git", "-C", mutate.ROOT, "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"


def entry(kind, result, seconds, options):
    """Returns the record of a kind."""
    counts = (len(result.chosen), result.killed(), len(result.equivalent), len(result.redundant),
              len(result.unreached), len(result.survivors))
    alive = [[mutant.what, mutant.source, fate] for mutant, fate in result.fates()
             if fate in mutate.ALIVE[1:]]
    return {"name": kind.name, "target": kind.target, "counts": counts, "alive": alive,
            "seconds": round(seconds, 1), "revision": options.revision,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")}


def records(path):
    lines = path.read_text().splitlines() if path and path.exists() else []
    return {(record["name"], record["target"]): record for record in map(json.loads, lines)}


def table(recorded, kinds):
    """The rows of all kinds that ran, sums, and what is alive by sort."""
    ran = [recorded[key] for key in dict.fromkeys(kinds) if key in recorded]
    lines = head(*COLUMNS)
    lines += [row(record["name"], record["target"], *record["counts"]) for record in ran]
    sums = [sum(column) for column in zip(*(record["counts"] for record in ran))]
    lines.append(row(f"{len(ran)} of {len(kinds)} kinds", "", *sums))
    alive = collections.Counter((what, fate) for record in ran
                                for what, _, fate in record["alive"])
    lines += ["", *head("what was alive", *COLUMNS[-3:])]
    lines += [row(what, *(alive[what, fate] for fate in mutate.ALIVE[1:]))
              for what in sorted({what for what, _ in alive})]
    days = sorted({record["date"] for record in ran})
    when = [f"{day}, revisions {', '.join(sorted({r['revision'] for r in ran if r['date'] == day}))}" for day in days]
    seconds = sum(record["seconds"] for record in ran)
    return lines + ["", f"({'; '.join(when)}; {seconds / 60:.0f} minutes.)"]


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def with_added(lines, recorded, kinds):
    """The table of a document with the kinds that it has not: rows, both sums, and what they are
    of."""
    end = next(i for i, line in enumerate(lines) if re.match(r"\| \d+ of \d+ kinds \|", line))
    names = {tuple(cells(line)[:2]) for line in lines[2:end]}
    added = [recorded[key] for key in dict.fromkeys(kinds) if key in recorded and key not in names]
    if not added:
        return lines
    notes = lines[len(lines) - lines[::-1].index(""):]
    rows = lines[:end] + [row(record["name"], record["target"], *record["counts"]) for record in added]
    sums = [sum(column) for column in zip(*(map(int, cells(line)[2:]) for line in rows[2:]))]
    alive = {cells(line)[0]: collections.Counter(dict(zip(mutate.ALIVE[1:], map(int, cells(line)[1:]))))
             for line in lines[end + 4:] if line.startswith("|")}
    for what, _, fate in (mutant for record in added for mutant in record["alive"]):
        alive.setdefault(what, collections.Counter())[fate] += 1
    days = sorted({f"{r['date']}, revision {r['revision']}" for r in added})
    rows += [row(f"{len(rows) - 2} of {len(set(kinds))} kinds", "", *sums), *lines[end + 1:end + 4]]
    rows += [row(what, *(counts[fate] for fate in mutate.ALIVE[1:])) for what, counts in sorted(alive.items())]
    return rows + ["", *notes, f"Added: {len(added)} kinds ({'; '.join(days)})."]


def run(kind, options):
    """Returns True if all mutants of a kind are accounted for."""
    start = time.monotonic()
    try:
        result = judge(kind, options)
    except (RuntimeError, subprocess.CalledProcessError) as failure:
        print(f"{kind.name}, {kind.target}: {failure}", flush=True)
        return False
    if options.list:
        print(f"{kind.name}, {kind.target}: {result}", flush=True)
        return True
    result.print(options)
    made = entry(kind, result, time.monotonic() - start, options)
    print(row(kind.name, kind.target, *made["counts"]), flush=True)
    if options.record:
        with options.record.open("a") as file:
            print(json.dumps(made), file=file)
    return not result.survivors


def main():
    arguments = mutate.parser(__doc__)
    arguments.set_defaults(schedules=SCHEDULES, max_orders=1000, seconds=120)
    arguments.add_argument("--only", default="", help="kinds whose name contains this text")
    arguments.add_argument("--list", action="store_true", help="print the kinds")
    arguments.add_argument("--record", type=pathlib.Path, help="file of what each kind came to")
    arguments.add_argument("--document", type=pathlib.Path, help="text that gets the table")
    arguments.add_argument("--add", action="store_true", help="keep the rows that the document has")
    arguments.add_argument("--revision", default=revision(), help="the revision of the sources that is recorded")
    options = arguments.parse_args()
    kinds = list(kernel_kinds.kinds())
    if options.document:
        known = [(kind.name, kind.target) for kind in kinds]
        written = lines_of(options.document, "mutate_all.py")
        ran = (with_added(written, records(options.record), known) if options.add
               else table(records(options.record), known))
        write(options.document, "mutate_all.py", ran)
        return 0
    done = records(options.record)
    chosen = [kind for kind in kinds if options.only in f"{kind.name}, {kind.target}"]
    print(*head(*COLUMNS), sep="\n", flush=True)
    failed = [kind for kind in chosen
              if (kind.name, kind.target) not in done and not run(kind, options)]
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
