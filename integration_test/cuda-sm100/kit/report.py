"""report.json, for those who read it with a program, and report.txt, for people."""
from __future__ import annotations

import collections
import json
import os
import pathlib
from collections.abc import Iterator
from dataclasses import asdict

from supervise import SCHEMA, STATUSES, Entry


def write(folder: pathlib.Path, entries: list[Entry], kit: dict[str, object], facts: dict[str, object],
          lost: bool) -> None:
    """Both files, each in one step."""
    whole = {"schema": SCHEMA, "kit": kit, "device": facts, "device_lost": lost,
             "entries": [asdict(entry) for entry in entries]}
    replace(folder / "report.json", json.dumps(whole, indent=1) + "\n")
    replace(folder / "report.txt", "\n".join(lines(entries, kit, facts, lost)) + "\n")


def replace(path: pathlib.Path, text: str) -> None:
    temporary = path.with_suffix(path.suffix + ".new")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def lines(entries: list[Entry], kit: dict[str, object], facts: dict[str, object], lost: bool) -> Iterator[str]:
    yield f"kit {kit.get('revision', '?')}, packed for {', '.join(kit['targets'])}"  # type: ignore[arg-type]
    yield ", ".join(f"{key} {value}" for key, value in facts.items())
    if lost:
        yield "THE DEVICE WAS LOST: what comes after the last entry did not run"
    by_section: dict[str, list[Entry]] = collections.defaultdict(list)
    for entry in entries:
        by_section[entry.section].append(entry)
    for section, listed in by_section.items():
        counts = collections.Counter(entry.status for entry in listed)
        yield ""
        yield f"{section}: " + ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])
        for entry in listed:
            if section == "probes" and entry.status == "answered":
                yield from probe(entry)
            elif section == "micro" and entry.status == "pass":
                yield from measurements(entry)
            elif section == "times" and entry.status == "pass":
                yield f"  {entry.name:<36} {entry.detail}"
            elif section == "times" or entry.status not in ("pass", "answered"):
                yield f"  {entry.status}: {entry.name}: {entry.detail}"


def probe(entry: Entry) -> Iterator[str]:
    yield f"  {'agrees ' if entry.data['agrees'] else 'DIFFERS'} {entry.name}: {entry.data['question']}"
    yield f"          device: {entry.data['device']}"
    if not entry.data["agrees"]:
        yield f"          simulator: {entry.data['simulator']} ({entry.data['where']})"


def measurements(entry: Entry) -> Iterator[str]:
    for row in entry.data["rows"]:
        yield f"  {row['name']:<62} {row['value']:>12} {row['unit']}"
