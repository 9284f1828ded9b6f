#!/usr/bin/env python3
"""Kernels of published projects in the simulator, each with its own check or one against torch.

  corpus.py list [--filter REGEX]             the records, and what each must give
  corpus.py prepare FOLDER [--filter REGEX]   fetches sources and packages, and builds programs
  corpus.py run FOLDER [--filter REGEX]       runs what is prepared; ends with "N of N as expected"
  corpus.py table FOLDER [--json FILE]        the table of what ran in FOLDER

Nothing that is fetched is stored in this repository. `prepare` needs git, pip and, for programs,
nvcc 13; no GPU. --sources FOLDER names checkouts that are there already, by the names of sources.py.
`run` keeps outcomes in FOLDER/outcomes, so that several runs make one table.
"""
import argparse
import datetime
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import preparing  # noqa: E402
import running  # noqa: E402
import table  # noqa: E402
from records import all_records  # noqa: E402
from sources import SOURCES  # noqa: E402


def parser():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = made.add_subparsers(dest="command", required=True)
    for name in ("list", "prepare", "run", "table"):
        command = commands.add_parser(name)
        command.add_argument("--filter", default="", metavar="REGEX", help="of SET/NAME")
        if name == "list":
            continue
        command.add_argument("--json", type=pathlib.Path, metavar="FILE", help="a dated result")
        command.add_argument("folder", type=lambda text: pathlib.Path(text).resolve())
        command.add_argument("--build", type=lambda text: pathlib.Path(text).resolve(), default=running.ROOT / "build")
        command.add_argument("--sources", type=lambda text: pathlib.Path(text).resolve(), help="folder with checkouts")
        command.add_argument("--check", default="default", choices=("default", "strict"))
        command.add_argument("--devices", help="of those of a record")
        command.add_argument("--policies", help="of those of a record")
        command.add_argument("--missing", action="store_true", help="run only what has no outcome")
        command.add_argument("-v", "--verbose", action="store_true", help="print what was said of each failure")
    return made


def _verdict(record):
    return " ".join(sorted(record.all_words())) or "pass"


def show(records):
    for record in records:
        print(f"{record.title:36} {','.join(record.devices):16} {_verdict(record):20} "
              f"{SOURCES[record.source].version}; {record.against}"
              + (f", {record.tolerance:g}" if record.tolerance else ""))
        if record.reason:
            print(f"{'':36} {record.reason}")
    print(f"{len(records)} kernels in {len({record.group for record in records})} sets")


class Outcomes:
    """Outcomes of a folder by (record, device, policy, check). Each set has a file, which is written
    after each outcome: several processes may run different sets.
    """

    def __init__(self, folder):
        self.folder = folder / "outcomes"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sets = {path.stem: json.loads(path.read_text()) for path in self.folder.glob("*.json")}

    @staticmethod
    def key(title, device, policy, check):
        return f"{title} {device} {policy} {check}"

    def has(self, record, device, policy, check):
        return self.key(record.title, device, policy, check) in self.sets.get(record.group, {})

    def add(self, outcome, check):
        group = outcome["record"].partition("/")[0]
        key = self.key(outcome["record"], outcome["device"], outcome["policy"], check)
        self.sets.setdefault(group, {})[key] = {**outcome, "check": check,
                                                "date": datetime.date.today().isoformat()}
        (self.folder / f"{group}.json").write_text(json.dumps(self.sets[group], indent=1))

    def all(self):
        return [outcome for known in self.sets.values() for outcome in known.values()]


def prepared(records, options):
    """The records that can run. Says how many cannot."""
    python = preparing.python_of(options.folder).exists()
    ready = [record for record in records
             if (preparing.binary_of(record, options).exists() if record.program else python)
             and (not record.extension or preparing.extension_of(record.group, options).exists())]
    if missing := len(records) - len(ready):
        print(f"{missing} of {len(records)} not prepared: run 'corpus.py prepare' first")
    return ready


def planned(records, options, outcomes):
    """{(set, device, policy): records} that run."""
    found = {}
    for record in prepared(records, options):
        for device, policy in record.runs():
            if device not in (options.devices or device).split(",") or policy not in (options.policies or policy).split(","):
                continue
            if options.missing and outcomes.has(record, device, policy, options.check):
                continue
            found.setdefault((record.group, device, policy), []).append(record)
    return found


def outcomes_of(records, device, policy, options):
    programs = [record for record in records if record.program]
    yield from (running.run_program(record, device, policy, options) for record in programs)
    if others := [record for record in records if not record.program]:
        yield from running.run_python(others, device, policy, options)


def is_as_expected(record, outcome, options):
    wrong = running.problem(record, outcome)
    if wrong:
        print(f"  {record.title}, {outcome['device']}, {outcome['policy']}: {wrong}", flush=True)
        if options.verbose:
            print(*(f"    {line[:300]}" for line in outcome["said"]), sep="\n")
    return not wrong


def run(records, options):
    outcomes, total, good = Outcomes(options.folder), 0, 0
    named = {record.title: record for record in records}
    for (group, device, policy), chosen in planned(records, options, outcomes).items():
        right, seconds = 0, 0
        try:
            for outcome in outcomes_of(chosen, device, policy, options):
                outcomes.add(outcome, options.check)
                seconds += outcome["seconds"]
                right += is_as_expected(named[outcome["record"]], outcome, options)
        except running.NothingRan as error:
            print(f"  {error}", flush=True)
        total, good = total + len(chosen), good + right
        print(f"{group}, {device}, {policy}: {right} of {len(chosen)} as expected, {seconds:.0f} s", flush=True)
    print(f"{good} of {total} as expected")
    return 0 if good == total and total else 1


def main():
    options = parser().parse_args()
    records = [record for record in all_records() if re.search(options.filter, record.title)]
    if options.command == "list":
        show(records)
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.command == "prepare":
        return 1 if preparing.prepare(records, options) else 0
    code = run(records, options) if options.command == "run" else 0
    if options.command == "table" or options.json:
        table.write(records, Outcomes(options.folder).all(), options)
    return code


if __name__ == "__main__":
    sys.exit(main())
