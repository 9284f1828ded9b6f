"""The tests of this folder, of python/tests, and the overhead of a call; a table and a count.

    main.py record FOLDER    on a machine with the compiler: keeps every program
    main.py run FOLDER       on a machine with a GPU
    main.py run FOLDER --tests=test_neighbours --json=FILE
                             these alone, with a line of JSON for each part of a test
"""

import argparse
import json
import pathlib
import time
import unittest

import packed


class Rows(unittest.TestResult):
    """Prints a row for each test, and for each of its parts with the time until its end."""

    def __init__(self, file: pathlib.Path | None = None) -> None:
        super().__init__()
        self.rows: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.file = file

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.begin, self.outcome = time.perf_counter(), "passed"

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.row(self.outcome, test.id(), time.perf_counter() - self.begin)

    def row(self, outcome: str, name: str, seconds: float) -> None:
        self.rows.append((outcome, name))
        print(f"{outcome:8} {seconds:7.2f} s  {name}", flush=True)
        if self.file is not None:
            with self.file.open("a") as lines:
                lines.write(json.dumps({"test": name, "outcome": outcome}) + "\n")

    def failed(self, test: unittest.TestCase, error: object) -> None:
        self.outcome = "FAILED"
        text = self._exc_info_to_string(error, test)  # type: ignore[attr-defined]
        self.texts.append(f"{test.id()}\n{text}")

    def addError(self, test, error):  # type: ignore[no-untyped-def]
        self.failed(test, error)
        if not isinstance(test, unittest.TestCase) or type(test).__name__ == "_ErrorHolder":
            self.row("FAILED", test.id(), 0)  # setUpClass or a module

    addFailure = addError

    def addSubTest(self, test, subtest, error):  # type: ignore[no-untyped-def]
        if error is not None:
            self.outcome = "FAILED"
            text = self._exc_info_to_string(error, test)  # type: ignore[attr-defined]
            self.texts.append(f"{subtest.id()}\n{text}")
        seconds = time.perf_counter() - self.begin
        self.row("passed" if error is None else "FAILED", subtest.id(), seconds)

    def addSkip(self, test, reason):  # type: ignore[no-untyped-def]
        self.outcome = "skipped"
        self.texts.append(f"{test.id()} was skipped: {reason}")


TESTS = ["test_streams", "test_graphs", "test_neighbours", "test_memory", "test_packages",
         "test_torch.Cuda", "test_native.Plans"]


def run(folder: pathlib.Path, tests: "list[str]", file: "pathlib.Path | None") -> int:
    import fp4
    import torch

    print(f"fp4 {fp4.version()}, torch {torch.__version__}, {torch.cuda.get_device_name()}")
    rows = Rows(file)
    unittest.defaultTestLoader.loadTestsFromNames(tests).run(rows)
    print("\n".join(rows.texts))
    if tests == TESTS:
        measured(folder, rows)
    outcomes = [outcome for outcome, _ in rows.rows]
    print(f"{outcomes.count('passed')} passed, {outcomes.count('FAILED')} failed, "
          f"{outcomes.count('skipped')} skipped")
    return "FAILED" in outcomes


def measured(folder: pathlib.Path, rows: Rows) -> None:
    import overhead

    name = f"overhead: quantize through Python within {overhead.LIMIT} us of the launch"
    begin = time.perf_counter()
    try:
        medians, above = overhead.measure(folder)
    except Exception as error:
        rows.row("FAILED", f"{name}: {error!r}", time.perf_counter() - begin)
        return
    for what, median in medians.items():
        print(f"{median:9.2f} us  {what}")
    print(f"{above:9.2f} us  quantize through Python above the launch")
    rows.row("passed" if above <= overhead.LIMIT else "FAILED", name, time.perf_counter() - begin)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["record", "run"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tests", default=",".join(TESTS))
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.command == "run":
        packed.replay(folder / "programs")
        return run(folder, options.tests.split(","), options.json)
    packed.record(folder / "programs")
    import operations
    import test_torch  # noqa: F401  (its programs)
    from programs import QUANTIZE, compiled, product

    operations.run_all()
    for text in (QUANTIZE, product(), product(rows="130", dims=""), product(dims="")):
        compiled(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
