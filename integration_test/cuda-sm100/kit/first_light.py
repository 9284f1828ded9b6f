#!/usr/bin/env python3
"""Runs the kit on device 0 and writes report.json and report.txt.

  first_light.py [--only SECTION ...] [--match WORD] [--again] [--report]

Every case is a process of its own with a time limit. A case that hangs is ended, reported and left behind.
Results stay in report.jsonl: a second start goes on where the first one stopped (--again: from the beginning).

Exit codes: 0 all agree, 1 something differs, fails or hangs (the report says what), 2 wrong arguments or folder,
3 no device that the kit is for, 4 the device was lost on the way (the report has what came before).
"""
from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
import time
from collections.abc import Callable

import report
import sections
from supervise import Log, run

HERE = pathlib.Path(__file__).resolve().parent


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=sections.NAMES, default=sections.NAMES, metavar="SECTION",
                        help=f"of {', '.join(sections.NAMES)}")
    parser.add_argument("--match", default="", metavar="REGEX", help="only cases whose names match")
    parser.add_argument("--again", action="store_true", help="forget what an earlier start has done")
    parser.add_argument("--report", action="store_true", help="only write the report of what is done")
    parser.add_argument("--limit", type=float, default=90, metavar="SECONDS", help="of a case (default 90)")
    return parser.parse_args()


def device_facts() -> dict[str, object] | None:
    outcome = run([sys.executable, "run_case.py", "--facts"], 120, HERE)
    try:
        facts = json.loads(outcome.output.strip().splitlines()[-1])
    except (ValueError, IndexError):
        print(outcome.output)
        return None
    return dict(facts)


def alive() -> bool:
    """Returns true when a small kernel still runs; a driver may take a while to reset a channel."""
    for pause in (0, 10, 30):
        time.sleep(pause)
        if run([sys.executable, "run_case.py", "--ping"], 60, HERE).code == 0:
            return True
    return False


def run_sections(options: argparse.Namespace, log: Log, facts: dict[str, object]) -> bool:
    """False when the device was lost."""
    for name in options.only:
        section: Callable[..., sections.Work] = getattr(sections, name)
        for case, execute in section(HERE, str(facts["target"]), options.limit):
            if not re.search(options.match, case) or log.has(name, case):
                continue
            entry = execute()
            log.add(entry)
            print(f"{entry.status:<9} {name} {case} {entry.detail}"[:200], flush=True)
            if entry.status in ("failed", "hung") and not alive():
                return False
    return True


def main() -> int:
    options = parse()
    path = HERE / "report.jsonl"
    if options.again and not options.report:
        path.unlink(missing_ok=True)
    log = Log(path)
    facts = device_facts()
    if facts is None:
        return 3
    kit = json.loads((HERE / "kit.json").read_text())
    if facts["target"] not in kit["targets"]:
        print(f"error: the kit was packed for {', '.join(kit['targets'])}, but the device is {facts['target']}")
        return 3
    lost = False
    try:
        lost = not options.report and not run_sections(options, log, facts)
    finally:
        report.write(HERE, log.entries, kit, facts, lost)
    print((HERE / "report.txt").read_text())
    return 4 if lost else int(any(entry.status in ("differs", "failed", "hung") for entry in log.entries))


if __name__ == "__main__":
    sys.exit(main())
