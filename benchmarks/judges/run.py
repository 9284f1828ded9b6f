#!/usr/bin/env python3
"""Gives kernels with planted bugs, and their clean twins, to judges, and compares the verdicts.

  benchmarks/judges/run.py                             prints a line for each bug
  benchmarks/judges/run.py --raw FILE                  also keeps what every run said
  benchmarks/judges/run.py --merge FILE --result       adds runs of another machine, and writes
                                                       the file of benchmarks/results

The judges are fp4-sim in both modes (`--sim`, or where the build of this checkout has it) and, on a
machine with a GPU of compute capability 9.0, the GPU alone and the four tools of compute-sanitizer.
The programs are kinds.py's: kernels of integration_test/sim/bugs, which that folder's run.py
launches. Every run is a process of its own, which is killed after `--limit` seconds.

fp4-sim has caught a bug when its report has a name that the file or kinds.py lists; it is judged by
that name alone. compute-sanitizer has caught one when any of its tools reports anything but the
code of a failed call, whatever the name. A report about a clean twin is a false alarm.
"""
import argparse
import concurrent.futures
import contextlib
import dataclasses
import datetime
import functools
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import verdicts
from kinds import KINDS

ROOT = Path(__file__).resolve().parents[2]
BUGS = ROOT / "integration_test/sim/bugs"
DEVICES = {"sm_90a": "h200", "sm_100a": "b200"}
SIMULATED = {"card": "H200", "device": "H200 and B200, simulated", "driver": None}
JUDGES = (*verdicts.MODES, "alone", *verdicts.TOOLS)


def runner():
    """The module that plants a bug and launches a kernel."""
    spec = importlib.util.spec_from_file_location("bugs", BUGS / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclasses.dataclass(frozen=True)
class Job:
    judge: str
    command: tuple
    file: str
    bug: str | None


def text_of(file):
    return (BUGS / f"{file}.ptx").read_text()


def target_of(file):
    return re.search(r"^\.target (\w+)", text_of(file), re.M)[1]


#===--- Judges ------------------------------------------------------------===#


def sanitizer():
    """compute-sanitizer of the PATH or of the toolkit, or None."""
    found = shutil.which("compute-sanitizer")
    places = [*Path("/usr/local").glob("cuda*/bin"), *Path("/usr/local").glob("cuda*/compute-sanitizer")]
    return found or next((str(place / "compute-sanitizer") for place in places
                          if (place / "compute-sanitizer").is_file()), None)


def options_of(tool, path):
    """The options with which a tool sees most: those of newer versions only where it has them."""
    text = subprocess.run([path, "--help"], capture_output=True, text=True).stdout
    wanted = {"memcheck": [("--check-api-memory-access", "no")], "racecheck": [], "synccheck": [],
              "initcheck": [("--initcheck-address-space", "all")]}[tool]
    return [part for name, value in wanted if name in text for part in (name, value)]


@functools.cache
def has_gpu():
    """The GPU, if it runs kernels for sm_90a."""
    smi = shutil.which("nvidia-smi")
    done = smi and subprocess.run([smi, "--query-gpu=compute_cap,name,driver_version", "--format=csv,noheader"],
                                  capture_output=True, text=True)
    if not done or done.returncode or not done.stdout.startswith("9.0"):
        return None
    _, name, driver = (part.strip() for part in done.stdout.splitlines()[0].split(","))
    return {"device": name, "driver": driver, "card": name.split()[1]}


def judges(options):
    """{judge: f(target)}: the command in front of a program, or None if the judge cannot run it."""
    found = {}
    if options.sim.is_file():
        for mode in verdicts.MODES:
            found[mode] = lambda target, mode=mode: (
                str(options.sim), "run", "--json", "--device", DEVICES[target], "--check", mode, "--")
    if has_gpu():
        def hopper(command):
            return lambda target: command if target == "sm_90a" else None
        found["alone"] = hopper(())
        if path := sanitizer():
            for tool in verdicts.TOOLS:
                found[tool] = hopper((path, "--tool", tool, *options_of(tool, path)))
    return {name: command for name, command in found.items() if options.judges is None or name in options.judges}


def jobs(chosen, kinds):
    """One run by each judge of each bug, and of each file as it is."""
    programs = dict.fromkeys([(kind.file, None) for kind in kinds] + [(kind.file, kind.bug) for kind in kinds])
    for judge, command in chosen.items():
        for file, bug in programs:
            if (front := command(target_of(file))) is not None:
                program = (sys.executable, str(BUGS / "run.py"), f"{file}.ptx", *([bug] if bug else []))
                yield Job(judge, (*front, *program), file, bug)


def run(job, limit):
    """Returns the words of a judge about a program, as --raw keeps them."""
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
        child = subprocess.Popen(job.command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            code = child.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        seconds = time.monotonic() - begin
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read())
    return {"judge": job.judge, "file": job.file, "bug": job.bug, "code": code, "seconds": round(seconds, 3),
            "out": texts[0][-20000:], "err": texts[1][:20000]}


def run_all(options, kinds):
    chosen = judges(options)
    print("judges:", ", ".join(chosen) or "none", file=sys.stderr)
    found = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for observation in pool.map(lambda job: run(job, options.limit), jobs(chosen, kinds)):
            found.append(observation)
            if options.raw:  # also when somebody stops it
                options.raw.write_text(json.dumps({"gpu": has_gpu(), "runs": found}, indent=1))
    return found


#===--- Results -----------------------------------------------------------===#


def result_of(rows, gpu):
    columns = [{"name": name, "title": title, "unit": unit} for name, title, unit in verdicts.COLUMNS]
    return {"area": "judges", "card": gpu["card"], "device": gpu["device"], "driver": gpu["driver"],
            "date": datetime.date.today().isoformat(), "revision": None, "clock": None,
            "command": "benchmarks/judges/run.py", "program": verdicts.PROGRAM, "evidence": "measured",
            "columns": columns, "key": ["bug"], "rows": rows}


def write_result(rows, gpu):
    result = result_of(rows, gpu)
    path = ROOT / "benchmarks/results" / f"judges_{gpu['card'].lower()}_{result['date']}.json"
    head = ",\n ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in result.items() if key != "rows")
    lines = ",\n  ".join(json.dumps(values) for values in rows)
    path.write_text(f"{{{head},\n \"rows\": [\n  {lines}]}}\n")
    print(f"{path} is written")


def listed(text):
    names = [name for name in text.split(",") if name]
    if unknown := [name for name in names if name not in JUDGES]:
        raise argparse.ArgumentTypeError(f"there is no judge '{unknown[0]}'")
    return names


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sim", type=Path, default=ROOT / "build/bin/fp4-sim", help="fp4-sim")
    parser.add_argument("--judges", type=listed, help=f"only these of {', '.join(JUDGES)}")
    parser.add_argument("--bugs", help="only programs ('ring lapped') that match this expression")
    parser.add_argument("--limit", type=float, default=20, help="seconds for one run (20)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (1)")
    parser.add_argument("--raw", type=Path, help="keep what every run said in this file")
    parser.add_argument("--merge", type=Path, nargs="*", default=[], help="files of --raw to be added")
    parser.add_argument("--result", action="store_true", help="write the result of benchmarks/results")
    return parser.parse_args()


def main():
    options = arguments()
    kinds = [kind for kind in KINDS if re.search(options.bugs or "", kind.program)]
    if not kinds:
        sys.exit(f"error: no program matches '{options.bugs}'")
    merged = [json.loads(path.read_text()) for path in options.merge]
    runs = [run for other in merged for run in other["runs"]] + run_all(options, kinds)
    if not runs:
        sys.exit("error: no judge runs here\nnote: build fp4-sim or name it with --sim, or take a machine with a GPU of "
                 "compute capability 9.0 and nvidia-smi")
    gpu = next((other["gpu"] for other in merged if other["gpu"]), None) or has_gpu()
    module = runner()
    rows = [verdicts.row(kind, target_of(kind.file), verdicts.expected(kind, module, text_of(kind.file)), runs)
            for kind in kinds]
    for values in rows:
        print(verdicts.line(values))
    if options.result:
        write_result(rows, gpu or SIMULATED)
    return 1 if any(values.get("sim") in ("missed", "hangs") or "sim_false" in values for values in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
