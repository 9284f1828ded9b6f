"""The table of a corpus that ran: a row for each set, as a dated result of benchmarks/results."""
import datetime
import json
import os
import re
import subprocess
import sys

import running
from sources import OWN

sys.path.append(str(running.ROOT / "benchmarks"))
import kit  # noqa: E402

COLUMNS = (("set", "set", None), ("kernels", "kernels", None), ("ran", "ran", None), ("right", "right", None), ("only", "ran only", None),
           ("true", "true hazards", None), ("unexplained", "unexplained", None), ("false", "false alarms", None),
           ("seconds", "processor time", "s"))


def row(group, records, outcomes):
    """Numbers of a set. A kernel is a record; it is right when all its runs are, and ran only where
    nothing compares its results. A report is true where the verdict has its word, false where the
    record calls it a false alarm, and else unexplained."""
    mine = {record.title: [o for o in outcomes if o["record"] == record.title] for record in records}
    ran = [record for record in records if mine[record.title]]
    expected = {record.title: record.all_words() for record in records}
    false = {record.title: set(record.false_alarms.split()) for record in records}
    found = {title: {word for o in runs for word in o["found"]} for title, runs in mine.items()}
    return {"set": group, "kernels": len(records), "ran": len(ran),
            "right": sum(record.compares and all(o["right"] for o in mine[record.title]) for record in ran),
            "only": sum(not record.compares for record in ran),
            "true": sum(bool(found[title] & expected[title]) for title in mine),
            "unexplained": sum(bool(found[title] - expected[title] - false[title]) for title in mine),
            "false": sum(bool(found[title] & false[title]) for title in mine),
            "seconds": round(sum(o["seconds"] for runs in mine.values() for o in runs))}


def rows(records, outcomes):
    groups = dict.fromkeys(record.group for record in records)
    made = [row(group, [record for record in records if record.group == group], outcomes) for group in groups]
    return [one for one in made if one["ran"]]


def revision():
    done = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=running.ROOT, capture_output=True, text=True)
    return done.stdout.strip() or None


def result(records, outcomes, options):
    made = rows([record for record in records if record.source != OWN], outcomes)
    total = {name: sum(one[name] for one in made) for name, _, _ in COLUMNS[1:]}
    return {"area": "foreign-kernels", "card": kit.processor()[1], "device": f"{os.cpu_count()} shared cores",
            "driver": None, "date": datetime.date.today().isoformat(), "revision": revision(), "clock": None,
            "command": f"integration_test/foreign/corpus/corpus.py run FOLDER --check={options.check}",
            "program": "the records of integration_test/foreign/corpus/sets", "evidence": "measured",
            "columns": [dict(zip(("name", "title", "unit"), column)) for column in COLUMNS], "key": ["set"],
            "rows": [*made, {"set": "all", **total}]}


def write(records, outcomes, options):
    """Prints the table, and writes the result where --json names a file."""
    made = result(records, [o for o in outcomes if o["check"] == options.check], options)
    for one in made["rows"]:
        print(" ".join(f"{one[name]!s:>{8 if name != 'set' else 24}}" for name, _, _ in COLUMNS))
    if options.json:
        text = json.dumps(made, indent=1)
        options.json.write_text(re.sub(r"\{\s+([^{}]*?)\s+\}", lambda match: "{" + re.sub(r"\s*\n\s*", " ", match.group(1)) + "}", text) + "\n")
