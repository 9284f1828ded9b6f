"""Runs records under fp4-sim and says what was found.

An outcome is {record, device, policy, found, right, seconds, kernels, said}. `found` has a word for
each kind of report: a rule of the hazard checker, deadlock, unwritten, timeout, or error for
everything else that ended a run. `right` is true when the results were compared and hold.
"""
import os
import re
import subprocess
import time
from pathlib import Path

from preparing import extension_of, place_of, python_of, toolkit
from sources import SOURCES, Checkout

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
RULE = re.compile(r"^error: .*\[([a-z-]+)\]$", re.M)
ERROR = re.compile(r"^error: (.*)$", re.M)
LAUNCH = re.compile(r"^fp4-sim: \w*[Ll]aunch\w*: '([^']+)'", re.M)
WORDS = (("deadlock: ", "deadlock"), ("which was never written", "unwritten"),
         ("livelock", "livelock"))
ENDS = {"deadlock", "livelock", "unwritten", "timeout", "error"}  # no result is left to compare


def _words(said):
    """The kinds of reports in what a case wrote."""
    found = set(RULE.findall(said))
    for message in ERROR.findall(said):
        if not re.search(r"\[[a-z-]+\]$", message):
            found.add(next((word for text, word in WORDS if text in message), "error"))
    return sorted(found)


def _brief(said):
    """The lines of what a case wrote that say what is wrong: no trace of launches."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("fp4-sim: ")]
    first = next((place for place, line in enumerate(lines) if line.startswith("error: ")), None)
    wrong = [line[:300] for line in lines if line.startswith("wrong: ")]
    return [*wrong, *(lines[-8:] if first is None else lines[first:first + 12])]


def _outcome(record, device, policy, said, right, seconds, more=()):
    return {"record": record.title, "device": device, "policy": policy,
            "found": sorted({*_words(said), *more}), "right": right, "seconds": round(seconds, 2),
            "kernels": sorted(set(LAUNCH.findall(said))), "said": _brief(said)}


class NothingRan(Exception):
    """A set whose file or packages cannot be imported."""


def problem(record, outcome):
    """Returns what is not as the record says, or None."""
    expected, found = record.words(outcome["policy"]), set(outcome["found"])
    wrong, hazards = "wrong" in expected, expected - {"wrong"}
    if found - hazards:
        return f"reports {', '.join(sorted(found - hazards))}, which is not expected"
    if hazards - found:
        return f"must be reported for {', '.join(sorted(hazards - found))}"
    if record.compares and not found & ENDS and outcome["right"] == wrong:
        return "has a right result, which is not expected" if wrong else "has a wrong result"
    return None


#===--- Programs ----------------------------------------------------------===#


def _simulator(options, device, policy):
    return [str(options.build / "bin/fp4-sim"), "run", f"--device={device}", f"--policy={policy}",
            f"--check={options.check}", "--trace", "--"]


def _verified(record, code, said):
    program = record.program
    said = "\n".join(line for line in said.splitlines() if not line.startswith("fp4-sim: "))
    if program.fails and re.search(program.fails, said):
        return False
    return bool(re.search(program.passes, said)) if program.passes else code == 0


def run_program(record, device, policy, options):
    binary = options.folder / "programs" / record.group / record.name
    log = options.folder / "logs" / f"{record.group}.{record.name}.{device}.{policy}.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    more, began = (), os.times()
    with log.open("w") as file:
        try:
            code = subprocess.run([*_simulator(options, device, policy), binary,
                                   *record.program.arguments.split()], stdout=file, stderr=file,
                                  timeout=record.limit).returncode
        except subprocess.TimeoutExpired:
            code, more = 124, ("timeout",)
    said, ended = log.read_text(errors="replace"), os.times()
    seconds = ended.children_user + ended.children_system - began.children_user - began.children_system
    if code not in (0, 1, 5, 6, 124) and not _words(said):
        more = ("error",)
    right = code in (0, 6) and _verified(record, 0, said)
    return _outcome(record, device, policy, said, right, seconds, more)


#===--- Python ------------------------------------------------------------===#


def environment(options):
    """Variables for packages of kernels: caches below the folder, nothing tuned or fetched."""
    own = options.folder / "caches"
    return {**os.environ, "PYTHONPATH": f"{HERE}:{ROOT / 'python'}",
            "FP4_SIM": str(options.build / "bin/fp4-sim"), "TRITON_CACHE_DIR": str(own / "triton"),
            "TRITON_DEFAULT_FP_FUSION": "1", "TORCHDYNAMO_DISABLE": "1", "QUACK_CACHE_ENABLED": "0",
            **{"FP4_SOURCES_" + name.replace("-", "_"): str(place_of(name, options))
               for name, source in SOURCES.items() if isinstance(source, Checkout)},
            **({"CUDA_HOME": str(home), "CUDA_PATH": str(home)} if (home := toolkit()) else {}),
            "FP4_EXTENSIONS": str(extension_of("", options).parent),
            "HF_HUB_OFFLINE": "1", "GEMS_VENDOR": "nvidia", "FLAGGEMS_CACHE_DIR": str(own / "flag_gems"),
            "OMP_NUM_THREADS": "1", "HOME": str(own), "TMPDIR": str(own)}


def _start(records, device, policy, options, log):
    command = [python_of(options.folder), "-m", "fp4.sim", "--trace", f"--device={device}", f"--policy={policy}",
               f"--check={options.check}", HERE / "worker.py", records[0].group,
               *(f"{record.name}:{record.tolerance}" for record in records)]
    return subprocess.Popen(list(map(str, command)), env=environment(options), stdout=log, stderr=log,
                            cwd=options.folder, start_new_session=True)


def _stop(process):
    os.killpg(process.pid, 9)
    process.wait()


def _is_reported(said, name):
    """True for a case that ended with a report: its process gives no other results that count."""
    return bool(ERROR.search(said.partition(f"::begin {name}\n")[2].partition(f"\n::end {name} ")[0]))


def _watch(process, log, records):
    """Waits for a process, or ends it behind a report; returns the name of the case that took too long, or None."""
    limits = {record.name: record.limit for record in records}
    current, since, rest = None, time.monotonic(), ""
    with log.open(errors="replace") as file:
        while True:
            ended = process.poll() is not None
            rest = (rest + file.read())[-100_000:]
            for kind, name in re.findall(r"^::(begin|end) (\w+)", rest, re.M):
                current, since = (name, time.monotonic()) if kind == "begin" else (None, since)
                if kind == "end" and not ended and _is_reported(log.read_text(errors="replace"), name):
                    _stop(process)
                    ended = True
            rest = rest[rest.rfind("\n") + 1:]
            if ended:
                return None
            if time.monotonic() - since > limits.get(current, 300):
                _stop(process)
                return current or "start"
            time.sleep(0.2)


def _sections(said, records):
    """(record, what was said, verdict or None, seconds) of the cases that began."""
    for record in records:
        part = said.partition(f"::begin {record.name}\n")[2]
        if not part:
            return
        text, ended, rest = part.partition(f"\n::end {record.name} ")
        text = text.partition("\n::begin ")[0]
        verdict, seconds = rest.split()[:2] if ended else (None, 0)
        yield record, text, verdict, float(seconds)


def run_python(records, device, policy, options):
    """Yields the outcomes of cases of one set. A case that is reported ends its process."""
    rest = list(records)
    while rest:
        log = options.folder / "logs" / f"{rest[0].group}.{rest[0].name}.{device}.{policy}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as file:
            process = _start(rest, device, policy, options, file)
            late = _watch(process, log, rest)
        done = 0
        for record, said, verdict, seconds in _sections(log.read_text(errors="replace"), rest):
            more = () if verdict else ("timeout",) if late else ("error",)
            right = verdict == "passed" and record.compares and not (record.fails and re.search(record.fails, said))
            outcome = _outcome(record, device, policy, said, right, seconds, more)
            done += 1
            yield outcome
            if outcome["found"]:
                break
        if not done:
            raise NothingRan(f"nothing of set {rest[0].group} ran on {device}: see {log}")
        rest = rest[done:]
