#!/usr/bin/env python3
"""Runs every test of a build tree and prints one line "N passed, N failed".

Three kinds of test, each test case counted once:
  unit     the GoogleTest binaries in BUILD/unittests
  lit      the lit suite in BUILD/test (IR, diagnostics, PTX, tools), in several parts
  script   executables in test/scripts: each is one test, run with BUILD as its argument, and the
           cases of the JUnit file that it may write into BUILD/test-reports are tests too
`--filter lint` runs the checks of the sources alone, for which no build is needed. Exit code 0 when
at least one test ran and none failed.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

# Tasks of a minute and more start first, and short ones end the run, so that no core waits for the
# last one.
LONGEST = ("script aarch64.sh", "script python.sh", "script sweep_quantize.sh", "script cuda.sh",
           "script first_light.sh", "unit FP4CompilerTests", "lit")
LIT_PARTS = 4  # for each job
ROOT = pathlib.Path(__file__).resolve().parent.parent


def read_junit(path):
    """(passed, skipped, [failure text]) of a JUnit XML file."""
    passed, skipped, failures = 0, 0, []
    for case in ET.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        problem = case.find("failure") if case.find("failure") is not None else case.find("error")
        if problem is not None:
            text = (problem.text or problem.get("message") or "").strip()
            failures.append(f"{name}\n{text[-4000:]}")
        elif case.find("skipped") is not None or case.get("status") == "notrun":
            skipped += 1
        else:
            passed += 1
    return passed, skipped, failures


def run(command, log, **kwargs):
    with open(log, "w") as out:
        return subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, **kwargs).returncode


def run_unit(binary, reports):
    xml = reports / f"{binary.name}.xml"
    xml.unlink(missing_ok=True)
    log = reports / f"{binary.name}.log"
    code = run([str(binary), f"--gtest_output=xml:{xml}"], log)
    if not xml.exists():
        return 0, 0, [f"{binary.name} ended with {code} before its report\n"
                      f"{log.read_text()[-4000:]}"]
    passed, skipped, failures = read_junit(xml)
    if code and not failures:
        failures.append(f"{binary.name} exited with {code}\n{log.read_text()[-4000:]}")
    return passed, skipped, failures


def run_lit(build, reports, part, parts, pattern):
    """Runs the tests whose number is `part` modulo `parts`. Names in order have the numbers, which
    an earlier run does not change."""
    xml = reports / f"lit{part}.xml"
    xml.unlink(missing_ok=True)
    log = reports / f"lit{part}.log"
    command = ["lit-22", "-s", "-j1", "--order=lexical", f"--num-shards={parts}",
               f"--run-shard={part}", "--skip-test-time-recording", f"--xunit-xml-output={xml}",
               str(build / "test")]
    if pattern:
        command += [f"--filter={pattern}", "--allow-empty-runs"]
    code = run(command, log)
    if code == 0 and not xml.exists():  # the filter names tests of other kinds, or few of lit
        return 0, 0, []
    if not xml.exists():
        return 0, 0, [f"lit ended with {code} before its report\n{log.read_text()[-4000:]}"]
    return read_junit(xml)


def run_script(script, build, reports):
    xml = reports / f"{script.name}.xml"
    xml.unlink(missing_ok=True)
    log = reports / f"{script.name}.log"
    code = run([str(script), str(build)], log, cwd=ROOT)
    passed, skipped, failures = read_junit(xml) if xml.exists() else (0, 0, [])
    if code == 77:  # the automake convention: the script said why it cannot run here
        return passed, skipped + 1, failures
    if code:
        failures.append(f"{script.name} exited with {code}\n{log.read_text()[-4000:]}")
    return passed + (code == 0), skipped, failures


class Tally:
    """Counts what passed, and prints a line for each part of the suite that ended."""

    def __init__(self):
        self.passed, self.skipped, self.failures = 0, 0, []

    def add(self, label, seconds, result):
        passed, skipped, failures = result
        self.passed += passed
        self.skipped += skipped
        self.failures.extend(failures)
        note = f", {skipped} skipped" if skipped else ""
        print(f"{label:40} {passed:6} passed {len(failures):4} failed{note}"
              f"  {seconds:6.1f} s", flush=True)

    def summarize(self):
        for failure in self.failures:
            print(f"\nFAILED {failure}")
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        print(f"\n{self.passed} passed, {len(self.failures)} failed{skipped}")


def timed(function, *arguments):
    """(seconds that the call took, its result)."""
    begin = time.time()
    result = function(*arguments)
    return time.time() - begin, result


def find_tasks(build, reports, jobs, pattern):
    """(label, function, arguments) of each test whose name contains `pattern`, longest first."""
    tasks = []
    for binary in sorted((build / "unittests").glob("*")):
        if binary.is_file() and os.access(binary, os.X_OK) and pattern in binary.name:
            tasks.append((f"unit {binary.name}", run_unit, (binary, reports)))
    for script in sorted((ROOT / "test" / "scripts").glob("*.sh")):
        if pattern in script.name:
            tasks.append((f"script {script.name}", run_script, (script, build, reports)))
    if (build / "test" / "lit.site.cfg.py").exists():
        parts = jobs if pattern else LIT_PARTS * jobs
        tasks += [(f"lit {part} of {parts}", run_lit, (build, reports, part, parts, pattern))
                  for part in range(1, parts + 1)]
    return sorted(tasks, key=lambda task: not task[0].startswith(LONGEST))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--filter", default="", help="only tests whose name contains this")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    build = pathlib.Path(args.build).resolve()
    # In a sanitizer build undefined behaviour fails the test that shows it. Debian's libMLIR is not
    # instrumented: a container that crosses its border is not what it seems.
    os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    os.environ.setdefault("ASAN_OPTIONS", "detect_container_overflow=0:allow_user_poisoning=0")
    reports = build / "test-reports"
    reports.mkdir(parents=True, exist_ok=True)

    tally = Tally()
    tasks = find_tasks(build, reports, args.jobs, args.filter)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        futures = {pool.submit(timed, function, *arguments): label
                   for label, function, arguments in tasks}
        for future in concurrent.futures.as_completed(futures):
            tally.add(futures[future], *future.result())
    tally.summarize()
    return 1 if tally.failures or tally.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
