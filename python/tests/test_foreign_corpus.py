"""The corpus of published kernels (integration_test/foreign/corpus) judges what it ran."""

import argparse
import contextlib
import importlib
import io
import pathlib
import sys
import tempfile
import unittest
from typing import Any
from unittest import mock

from programs import torch

CORPUS = pathlib.Path(__file__).resolve().parents[2] / "integration_test/foreign/corpus"


def of_corpus(name: str) -> Any:
    """A module of the corpus; benchmarks, which other tests import, have some of the same name."""
    module = sys.modules.get(name)
    if module and CORPUS not in pathlib.Path(module.__file__ or "").parents:
        del sys.modules[name]
    with mock.patch.object(sys, "path", [str(CORPUS), *sys.path]):
        return importlib.import_module(name)


class Verdicts(unittest.TestCase):
    def problem(self, verdict: Any, found: "list[str]", right: bool, policy: str = "eager") -> Any:
        record = of_corpus("records").Record("one", "set", "source", verdict=verdict)
        return of_corpus("running").problem(
            record, {"policy": policy, "found": found, "right": right})

    def test_results_of_a_hazard_are_judged(self) -> None:
        self.assertIsNone(self.problem("lane-race", ["lane-race"], True))
        self.assertEqual(self.problem("lane-race", ["lane-race"], False), "has a wrong result")
        self.assertIsNone(self.problem("lane-race wrong", ["lane-race"], False))
        self.assertIn("right result", self.problem("lane-race wrong", ["lane-race"], True))
        self.assertIsNone(self.problem("deadlock", ["deadlock"], False))  # no result is left

    def test_every_word_must_be_found(self) -> None:
        both = "global-race lane-race"
        self.assertIsNone(self.problem(both, ["global-race", "lane-race"], True))
        self.assertIn("lane-race", self.problem(both, ["global-race"], True))
        self.assertIn("not expected", self.problem("pass", ["lane-race"], True))

    def test_policies_have_words_of_their_own(self) -> None:
        words = {"eager": "deadlock", "lazy": "lapped-wait"}
        self.assertIsNone(self.problem(words, ["lapped-wait"], True, "lazy"))
        self.assertIn("not expected", self.problem(words, ["lapped-wait"], True))

    def test_reports_are_true_false_or_unexplained(self) -> None:
        record = of_corpus("records").Record("one", "set", "source", verdict="lane-race",
                                             false_alarms="tmem-race", reason="its file")
        for found, counts in ((["lane-race"], (1, 0, 0)), (["tmem-race"], (0, 0, 1)),
                              (["lane-race", "error"], (1, 1, 0)), ([], (0, 0, 0))):
            row = of_corpus("table").row("set", [record], [
                {"record": "set/one", "found": found, "right": True, "seconds": 0}])
            self.assertEqual((row["true"], row["unexplained"], row["false"]), counts)
        self.assertIn("not expected", of_corpus("running").problem(
            record, {"policy": "eager", "found": ["lane-race", "tmem-race"], "right": True}))

    def test_what_compares_nothing_is_not_right(self) -> None:
        records, running, table = of_corpus("records"), of_corpus("running"), of_corpus("table")
        said = "::begin one\nKernel 4: FAILED\n::end one passed 1.00\n"
        for fields, right in (({}, True), ({"compares": False}, False),
                              ({"fails": "FAILED"}, False)):
            record = records.Record("one", "set", "source", policies=("eager",), **fields)
            with tempfile.TemporaryDirectory() as folder:
                def start(_: Any, __: str, ___: str, ____: Any, log: Any) -> Any:
                    log.write(said)
                    return mock.Mock(poll=lambda: 0)

                with mock.patch.object(running, "_start", start):
                    options = argparse.Namespace(folder=pathlib.Path(folder))
                    (outcome,) = running.run_python([record], "h200", "eager", options)
            self.assertEqual(outcome["right"], right, fields)
            self.assertEqual(running.problem(record, outcome) is None, "fails" not in fields,
                             fields)
            row = table.row("set", [record], [outcome])
            self.assertEqual((row["right"], row["only"]), (int(right), int(not record.compares)))


class Watching(unittest.TestCase):
    def stopped(self, said: str) -> bool:
        """True if a process that says this and runs is ended."""
        running, records = of_corpus("running"), of_corpus("records")
        process = mock.Mock(poll=mock.Mock(side_effect=[None, *[0] * 9]))
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log.txt"
            log.write_text(said)
            with mock.patch.object(running, "_stop") as stop:
                late = running._watch(process, log, [records.Record("one", "set", "source")])
        self.assertIsNone(late)
        return bool(stop.called)

    def test_a_process_ends_behind_a_report(self) -> None:
        one = "::begin one\n{}\n::end one wrong 1.00\n"
        self.assertTrue(self.stopped(one.format("error: a race [lane-race]")))
        self.assertFalse(self.stopped(one.format("wrong: 3 bytes differ")))
        self.assertFalse(self.stopped("error: of the start\n" + one.format("fine")))


@unittest.skipIf(torch is None, "torch is not installed")
class Differences(unittest.TestCase):
    def test_infinities_are_compared(self) -> None:
        difference = of_corpus("cases").difference
        infinity, nan = float("inf"), float("nan")
        for special in (infinity, -infinity, nan):
            expected = torch.tensor([1.0, special])
            for other in (infinity, -infinity, nan, 2.0):
                same = str(other) == str(special)
                self.assertEqual(difference(torch.tensor([1.0, other]), expected, 0.1) is None,
                                 same, (special, other))


class Preparation(unittest.TestCase):
    def test_what_is_missing_is_said(self) -> None:
        corpus, records = of_corpus("corpus"), of_corpus("records")
        record = records.Record("one", "set", "source")
        for exists in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                options = argparse.Namespace(folder=pathlib.Path(folder))
                python = options.folder / "python/bin/python"
                python.parent.mkdir(parents=True)
                if exists:
                    python.touch()
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    self.assertEqual(corpus.prepared([record], options), [record] * exists)
            self.assertEqual("1 of 1 not prepared" in said.getvalue(), not exists)

    def test_programs_need_nvcc(self) -> None:
        preparing, records = of_corpus("preparing"), of_corpus("records")
        record = records.Record("one", "set", "source", program=records.Program("one.cu", "90a"))
        with (mock.patch.object(preparing.shutil, "which", return_value=None),
              self.assertRaisesRegex(SystemExit, "need nvcc 13")):
            preparing.prepare([record], argparse.Namespace())

    def test_a_set_that_cannot_start_does_not_end_the_run(self) -> None:
        corpus, records = of_corpus("corpus"), of_corpus("records")
        running = of_corpus("running")
        chosen = [records.Record(name, group, "source", policies=("eager",))
                  for group, name in (("broken", "one"), ("good", "two"))]

        def run_python(some: Any, device: str, policy: str, options: Any) -> Any:
            if some[0].group == "broken":
                raise running.NothingRan("nothing of set broken ran")
            yield {"record": some[0].title, "device": device, "policy": policy, "found": [],
                   "right": True, "seconds": 0, "kernels": [], "said": []}

        with tempfile.TemporaryDirectory() as folder:
            options = corpus.parser().parse_args(["run", folder])
            with (mock.patch.object(corpus, "prepared", return_value=chosen),
                  mock.patch.object(running, "run_python", run_python),
                  contextlib.redirect_stdout(io.StringIO()) as said):
                self.assertEqual(corpus.run(chosen, options), 1)
        self.assertIn("nothing of set broken ran", said.getvalue())
        self.assertIn("1 of 2 as expected", said.getvalue())


if __name__ == "__main__":
    unittest.main()
