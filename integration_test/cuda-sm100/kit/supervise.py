"""Commands in processes of their own, with a time limit; and a log that is never lost."""
from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import time
from dataclasses import asdict, dataclass, field
from typing import Any

SCHEMA = 1
STATUSES = ("pass", "answered", "differs", "failed", "hung", "skipped")


@dataclass
class Entry:
    """The result of one case. `status`: pass; answered (a probe: the device agrees with the simulator or not,
    `detail` says which); differs (bytes or a verification); failed (an error or a crash); hung (ended by the
    time limit); skipped."""
    section: str
    name: str
    status: str
    detail: str = ""
    seconds: float = 0.0
    data: dict[str, Any] = field(default_factory=dict)


@dataclass
class Outcome:
    code: int | None  # None: ended by the time limit
    output: str
    seconds: float


def run(command: list[str], limit: float, folder: pathlib.Path, environment: dict[str, str] | None = None) -> Outcome:
    """Runs a command in its own group of processes, which is ended as a whole after `limit` seconds. A process
    that waits for a driver may outlive its end: it is left behind then."""
    begin = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True, env={**os.environ, **(environment or {})})
    try:
        output, _ = process.communicate(timeout=limit)
        return Outcome(process.returncode, output, time.monotonic() - begin)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    try:
        output, _ = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        output = "(its process does not end either)"
    return Outcome(None, output, time.monotonic() - begin)


def failure_of(outcome: Outcome) -> str:
    """A line about a command that did not end well."""
    lines = [line for line in outcome.output.splitlines() if line.strip()]
    told = [line for line in lines if "error:" in line or "FAILED" in line or "differ" in line]
    last = (told or lines or ["no output"])[-1]
    return f"exit code {outcome.code}: {last[:300]}"


class Log:
    """report.jsonl: a line for each entry, on disk before the next case begins."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.entries: list[Entry] = []
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                self.entries.append(Entry(**json.loads(line)))
            except (ValueError, TypeError):
                continue  # the line that was being written when the machine went down
        self._seen = {(entry.section, entry.name) for entry in self.entries}

    def has(self, section: str, name: str) -> bool:
        return (section, name) in self._seen

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._seen.add((entry.section, entry.name))
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(entry)) + "\n")
            file.flush()
            os.fsync(file.fileno())
