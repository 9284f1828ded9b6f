#!/usr/bin/env python3
"""Makes the C++ wrong, one line at a time: a test must notice.

  validation/mutate_cpp.py --check             every mutant still applies (CI; no build)
  validation/mutate_cpp.py --list --area=isa   the mutants
  validation/mutate_cpp.py --id=isa-k-step     builds and judges one; --area judges an area, neither
                                               all
  validation/mutate_cpp.py --narrow            leaves the whole suite out: "alive" is what it would
                                               judge
  validation/mutate_cpp.py --table             what has been found so far, as in
                                               notebook/evidence.md

validation/mutants/AREA.txt hold the mutants, made by hand:

  @ FILE               the mutants below change this file
  ? TEST...            and these tests ought to notice first: BINARY, BINARY:GTEST_FILTER, lit:PATH,
                       script:NAME
  = ID: WHAT           a mutant, and what becomes wrong
  - LINE               one or more neighbouring lines of the file, but for blanks at both ends and
                       comments,
  + LINE               that become these
  ! REASON             why it survives, if it does

The script puts a mutant into the source tree, builds what its tests need, and runs the tests; if
they pass, it runs the whole suite. The mutant is killed when a test fails. The file is restored in
any case; after a power cut the next call restores it. Only one call at a time works in a build tree
(a lock); several trees share the work with --part=I/N and --results. Results are kept and not
computed again while the mutant is the same; --again runs the survivors once more. Exit code 1 if a
mutant survives without a reason, does not apply or does not compile.
"""
import argparse
import collections
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MUTANTS = ROOT / "validation" / "mutants"
TOOLS = ("fp4-opt", "fp4-runner", "fp4-run", "fp4-sim", "fp4-cts")
SECONDS = {"build": 1800, "narrow": 150, "suite": 3600}


def code_of(line):
    """The line without the comment behind it."""
    return re.sub(r"(?:^|\s+)//.*", "", line)


def bare(line):
    return code_of(line).strip()


class Mutant:
    """One entry of validation/mutants."""

    def __init__(self, area, path, tests, name, what):
        self.area, self.path, self.tests, self.id, self.what = area, path, tests, name, what
        self.old, self.new, self.excuse = [], [], ""

    def key(self):
        """Changes with the mutant."""
        text = "\n".join([self.path, *self.old, "", *self.new])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def apply(self, text):
        """The mutated text of the file; raises ValueError."""
        lines = text.split("\n")
        stripped, wanted = list(map(bare, lines)), list(map(bare, self.old))
        places = [i for i in range(len(lines) - len(wanted) + 1)
                  if stripped[i:i + len(wanted)] == wanted]
        if len(places) != 1:
            raise ValueError(f"{self.id}: its lines must be in {self.path} once, but are "
                             f"{len(places)} times: {self.old[0]}")
        first, last = places[0], places[0] + len(wanted)
        indent = lines[first][:len(lines[first]) - len(lines[first].lstrip())]
        changed = [indent + bare(line) for line in self.new] or [indent]
        for number, line in enumerate(lines[first:last]):  # comments stay: checks read their labels
            changed[min(number, len(changed) - 1)] += line[len(code_of(line)):]
        mutated = "\n".join([*lines[:first], *changed, *lines[last:]])
        if list(map(bare, self.new)) == wanted:
            raise ValueError(f"{self.id}: changes nothing")
        return mutated


def read_area(path):
    """The mutants of a file of validation/mutants; raises ValueError."""
    mutants, source, tests = [], "", []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        kind, rest = line[:1], line[2:]
        if kind in ("", "#"):
            continue
        if kind == "@":
            source = rest.strip()
        elif kind == "?":
            tests = rest.split()
        elif kind == "=":
            name, _, what = rest.partition(": ")
            mutants.append(Mutant(path.stem, source, tests, name, what))
        elif kind == "-" and mutants:
            mutants[-1].old.append(rest)
        elif kind == "+" and mutants:
            mutants[-1].new.append(rest)
        elif kind == "!" and mutants:
            mutants[-1].excuse = rest
        else:
            raise ValueError(f"{path.name}:{number}: expects a line of @, ?, =, -, + or !")
    return mutants


def read_mutants():
    return [mutant for path in sorted(MUTANTS.glob("*.txt")) for mutant in read_area(path)]


#===--- The tree ----------------------------------------------------------===#


class Tree:
    """A source tree with its build. The journal holds the original of the file that is mutated."""

    def __init__(self, build):
        self.build = build.resolve()
        self.journal = self.build / "mutated-source.json"

    def original(self, path):
        """The text of a file without the mutant that may be in it at this moment."""
        if self.journal.exists():
            saved = json.loads(self.journal.read_text())
            if saved["path"] == path:
                return saved["text"]
        return (ROOT / path).read_text()

    def restore(self):
        if self.journal.exists():
            saved = json.loads(self.journal.read_text())
            (ROOT / saved["path"]).write_text(saved["text"])
            self.journal.unlink()

    @contextlib.contextmanager
    def alone(self):
        """Nobody else mutates this tree; what was left mutated is restored."""
        with open(self.build / "mutation.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                sys.exit(f"error: another run mutates {ROOT}; wait for it, or use a tree of its own")
            self.restore()
            yield

    @contextlib.contextmanager
    def mutated(self, mutant):
        text = (ROOT / mutant.path).read_text()
        changed = mutant.apply(text)
        self.journal.write_text(json.dumps({"path": mutant.path, "text": text}))
        try:
            (ROOT / mutant.path).write_text(changed)
            yield
        finally:
            self.restore()

    def run(self, step, command):
        """(exit code, output); a code of None after a timeout, whose processes are ended."""
        process = subprocess.Popen([str(word) for word in command], cwd=ROOT, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            output, _ = process.communicate(timeout=SECONDS[step])
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def make(self, targets):
        """Returns the errors of the compiler, or None when it succeeds."""
        code, output = self.run("build", ["ninja", "-C", self.build, *targets])
        return None if code == 0 else output


#===--- Tests -------------------------------------------------------------===#


def test_files(path):
    folder = ROOT / "test" / path
    return [folder] if folder.is_file() else sorted(
        file for file in folder.rglob("*") if file.suffix in (".mlir", ".test", ".ptx"))


def targets_of(test):
    """The targets of the build that a test needs."""
    kind, _, rest = test.partition(":")
    if kind not in ("lit", "script"):
        return [kind]
    files = test_files(rest) if kind == "lit" else [ROOT / "test" / "scripts" / f"{rest}.sh"]
    text = "\n".join(file.read_text() for file in files)
    tools = [tool for tool in TOOLS if re.search(rf"(?<![\w-]){tool}(?![\w-])", text)]
    return tools + ["FP4Plugin"] * ("%plugin" in text) or ["all"]


def killer_of(tree, test):
    """The first failure of a test, or None."""
    kind, _, rest = test.partition(":")
    if kind == "script":
        command = [ROOT / "test" / "scripts" / f"{rest}.sh", tree.build]
    elif kind == "lit":
        command = ["lit-22", "-s", "--no-progress-bar", tree.build / "test" / rest]
    else:
        command = [tree.build / "unittests" / kind, "--gtest_fail_fast", "--gtest_brief=1",
                   f"--gtest_filter={rest or '*'}"]
    code, output = tree.run("narrow", command)
    if code == 0 and re.search(r"\] 0 tests|Discovered Tests: 0", output):
        raise RuntimeError(f"'{test}' names no test: {shlex.join(map(str, command))}")
    if code == 0 and kind == "lit" and not re.search(r"^ *Passed *:", output, re.M):
        raise RuntimeError(f"'{test}' is not supported here: {shlex.join(map(str, command))}")
    if code == 0:
        return None
    if code is None:
        return f"{test}: timeout"
    failed = re.search(r"FAIL(?:ED)?\s*(?:\]|:)\s*([^\n(,]+)", output)
    return f"{test}: {failed.group(1).strip() if failed else f'exit code {code}'}"


def suite_killer(tree):
    code, output = tree.run("suite", [sys.executable, ROOT / "utils" / "run_tests.py",
                                      "--build", tree.build])
    if code == 0:
        return None
    failed = re.search(r"^FAILED (.+)", output, re.M)
    return "suite: " + (failed.group(1) if failed else "timeout")


def check_baseline(tree, tests, passed):
    """Tests that fail as they are would kill everything."""
    for test in tests:
        if test in passed:
            continue
        if errors := tree.make(targets_of(test)):
            raise RuntimeError(f"'{test}' does not build without a mutant: {errors[-2000:]}")
        if killer := killer_of(tree, test):
            raise RuntimeError(f"fails without a mutant: {killer}")
        passed.add(test)


def judge(tree, mutant, narrow):
    """(outcome, by whom): killed, alive (of the narrow tests), survived, or invalid."""
    with tree.mutated(mutant):
        if errors := tree.make(sorted({target for test in mutant.tests for target in targets_of(test)})):
            return "invalid", errors[-2000:]
        for test in mutant.tests:
            if killer := killer_of(tree, test):
                return "killed", killer
        if narrow:
            return "alive", ""
        if errors := tree.make(["all"]):
            return "invalid", errors[-2000:]
        killer = suite_killer(tree)
        return ("killed", killer) if killer else ("survived", "")


#===--- Results -----------------------------------------------------------===#


class Results:
    """A line of JSON per judgement; the last one of a mutant counts."""

    def __init__(self, path):
        self.path, self.found = path, {}
        for line in path.read_text().splitlines() if path.exists() else []:
            entry = json.loads(line)
            self.found[entry["id"]] = entry

    def of(self, mutant):
        entry = self.found.get(mutant.id)
        return entry if entry and entry["key"] == mutant.key() else None

    def add(self, mutant, outcome, by, seconds):
        entry = {"id": mutant.id, "key": mutant.key(), "outcome": outcome, "by": by,
                 "seconds": round(seconds, 1)}
        self.found[mutant.id] = entry
        with open(self.path, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(json.dumps(entry) + "\n")


def table(mutants, results):
    """The table of notebook/evidence.md, and what is behind its last column."""
    counts = collections.defaultdict(collections.Counter)
    survivors = []
    for mutant in mutants:
        entry = results.of(mutant)
        outcome = entry["outcome"] if entry else "not run"
        for row in (mutant.area, "together"):
            counts[row]["mutants"] += 1
            counts[row][outcome] += 1
        if outcome in ("alive", "survived"):
            survivors.append(f"{outcome}: {mutant.id}: {mutant.what}"
                             + (f" ({mutant.excuse})" if mutant.excuse else ""))
    columns = ["mutants", "killed", "survived", "alive", "invalid", "not run"]
    print("| area | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for row, count in counts.items():
        if row != "together":
            print(f"| {row} | " + " | ".join(str(count[column]) for column in columns) + " |")
    print("| together | " + " | ".join(str(counts["together"][column]) for column in columns) + " |")
    print(*survivors, sep="\n")


#===--- Command line ------------------------------------------------------===#


def problems(mutants, tree):
    """Returns what keeps the list from being run, as text."""
    binaries = set(re.findall(r"fp4_add_unittest\(([\w-]+)", "\n".join(
        path.read_text() for folder in ("unittests", "tools")
        for path in (ROOT / folder).rglob("CMakeLists.txt"))))
    ids = collections.Counter(mutant.id for mutant in mutants)
    yield from (f"{name}: is the name of {count} mutants" for name, count in ids.items() if count > 1)
    for mutant in mutants:
        try:
            mutant.apply(tree.original(mutant.path))
        except (ValueError, IndexError, OSError) as error:
            yield str(error) if mutant.old else f"{mutant.id}: has no original line"
        if not mutant.tests:
            yield f"{mutant.id}: names no test"
        for test in mutant.tests:
            kind, _, rest = test.partition(":")
            known = (kind in binaries if kind not in ("lit", "script") else
                     test_files(rest) if kind == "lit" else
                     (ROOT / "test" / "scripts" / f"{rest}.sh").exists())
            if not known:
                yield f"{mutant.id}: there is no test '{test}'"


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build tree")
    parser.add_argument("--area", action="append", help="only these areas")
    parser.add_argument("--id", action="append", help="only these mutants")
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    parser.add_argument("--check", action="store_true", help="only see that every mutant applies")
    parser.add_argument("--table", action="store_true", help="print what was found and stop")
    parser.add_argument("--narrow", action="store_true", help="leave the whole suite out")
    parser.add_argument("--again", action="store_true", help="also those that have survived before")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no mutant after so long")
    parser.add_argument("--part", default="1/1", help="I/N: every Nth mutant from the Ith on")
    parser.add_argument("--results", type=pathlib.Path, help="default: BUILD/mutation.jsonl")
    options = parser.parse_args()
    options.results = options.results or options.build / "mutation.jsonl"
    return options


def run_all(tree, mutants, results, options):
    end, passed = time.time() + 60 * options.minutes, set()
    if not options.narrow and (killer := tree.make(["all"]) or suite_killer(tree)):
        raise RuntimeError(f"fails without a mutant: {killer}")
    for mutant in mutants:
        if time.time() > end:
            break
        entry = results.of(mutant)
        again = ("invalid", "alive") if not options.narrow else ("invalid",)
        if entry and entry["outcome"] not in again and not (
                options.again and entry["outcome"] in ("alive", "survived")):
            continue
        check_baseline(tree, mutant.tests, passed)
        start = time.time()
        outcome, by = judge(tree, mutant, options.narrow)
        results.add(mutant, outcome, by, time.time() - start)
        print(f"{mutant.id}: {outcome} {by} ({time.time() - start:.0f} s)", flush=True)


def main():
    options = parse()
    tree, mutants = Tree(options.build), read_mutants()
    wrong = list(problems(mutants, tree))
    print(*(f"error: {line}" for line in wrong), sep="\n", end="\n" if wrong else "")
    if options.check or wrong:
        print(f"{len(mutants)} mutants, {len(wrong)} of them stale")
        return 1 if wrong else 0
    mutants = [mutant for mutant in mutants if (not options.area or mutant.area in options.area)
               and (not options.id or mutant.id in options.id)]
    first, step = map(int, options.part.split("/"))
    mutants = mutants[first - 1::step]
    if options.list:
        for mutant in mutants:
            print(f"{mutant.id} ({mutant.path}): {mutant.what}; {' '.join(mutant.tests)}")
        return 0
    results = Results(options.results)
    if not options.table:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        with tree.alone():
            run_all(tree, mutants, results, options)
    table(mutants, results)
    bad = [mutant for mutant in mutants if (entry := results.of(mutant)) and (
        entry["outcome"] == "invalid" or entry["outcome"] == "survived" and not mutant.excuse)]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
