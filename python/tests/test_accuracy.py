"""benchmarks/models/accuracy.py and ranks.py without a model: what is compared, and with what."""

import argparse
import importlib.util
import json
import pathlib
import sys
import tempfile
import threading
import unittest
from typing import Any
from unittest import mock

from programs import ROOT, torch

FOLDERS = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "models"),
           str(ROOT / "benchmarks" / "analysis")]
NAN = float("nan")


def program(name: str) -> Any:
    """A program, whose modules have names that others have too."""
    file = next(path for path in (pathlib.Path(folder, f"{name}.py") for folder in FOLDERS)
                if path.exists())
    spec = importlib.util.spec_from_file_location(f"models_{name}", file)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    with mock.patch.object(sys, "path", [*reversed(FOLDERS), *sys.path]), \
            mock.patch.dict(sys.modules):
        for other in ("run", "host", "ranks", "kit"):
            sys.modules.pop(other, None)
        sys.modules[spec.name] = made
        spec.loader.exec_module(made)
    return made


class Accuracy(unittest.TestCase):
    program: Any

    @classmethod
    def setUpClass(cls) -> None:
        cls.program = program("accuracy")

    def row(self, **changes: Any) -> "dict[str, Any]":
        return {"kind": "weights", "variant": "nvfp4", "perplexity": 20.0, "divergence": 0.1,
                "same": 0.9, **changes}

    def test_scores_of_another_device(self) -> None:
        expected = [self.row()]
        self.program.compare([self.row(perplexity=20.05)], expected)
        for found, words in (([self.row(perplexity=21.0)], "has perplexity 21.0"),
                             ([self.row(divergence=NAN)], "has divergence nan"),
                             ([], "no variant was scored"),
                             ([self.row(variant="mxfp4")], "expected scores lack mxfp4")):
            with self.subTest(words), self.assertRaisesRegex(RuntimeError, words):
                self.program.compare(found, expected)
        with self.assertRaisesRegex(RuntimeError, "and nan on the other device"):
            self.program.compare([self.row()], [self.row(same=NAN)])

    def test_windows_are_as_many_as_were_asked_for(self) -> None:
        self.assertEqual(self.program.chosen(16, None), list(range(16)))
        self.assertEqual(self.program.chosen(16, 4), [0, 4, 8, 12])
        for count in range(1, 17):
            self.assertEqual(len(set(self.program.chosen(16, count))), count)

    def test_more_windows_than_were_prepared(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "text.json").write_text(json.dumps({"windows": 16}))
            options = argparse.Namespace(folder=pathlib.Path(folder), pieces=None, out=None,
                                         expected=None)
            with mock.patch.object(self.program, "measure", return_value=({}, [], 16)) as measure, \
                    mock.patch.object(self.program, "has_compiler", return_value=True), \
                    mock.patch("sys.stderr"):
                for windows in (0, 17):
                    options.windows = windows
                    with self.assertRaises(SystemExit):
                        self.program.run(options, argparse.ArgumentParser())
                measure.assert_not_called()
                options.windows = 16
                self.program.run(options, argparse.ArgumentParser())
                measure.assert_called_once()

    def test_the_processor_of_this_host(self) -> None:
        for text, expected in (("model name\t: AMD EPYC 9654\n", ("AMD EPYC 9654", "EPYC")),
                               ("model name\t: Intel(R) Xeon(R) 8480\n",
                                ("Intel(R) Xeon(R) 8480", "Xeon")),
                               ("model name\t: Some 7\n", ("Some 7", "Some"))):
            with mock.patch.object(pathlib.Path, "read_text", return_value=text):
                self.assertEqual(self.program.kit.processor(), expected)


@unittest.skipIf(torch is None, "torch is not installed")
class Ranks(unittest.TestCase):
    def test_an_exchange_that_is_absent(self) -> None:
        """The command fails behind the rows of the other exchanges."""
        ranks = program("ranks")

        def rows(exchanges: str) -> "list[Any]":
            options = argparse.Namespace(ranks=1, layers=1, exchanges=exchanges)
            one = ranks.Rank(1, options, torch.device("cpu"))
            decoder = mock.Mock()
            decoder.decoder.exchange.name = "gloo"
            decoder.decoder.exchange.reason = "a CPU"
            with mock.patch.multiple(one, prepared=lambda model: (None, {}, {}, {}),
                                     shared=lambda ids: {1: None, 2: None},
                                     ways_of=lambda model: ("",),
                                     checked=lambda *_: (decoder, True), profiled=mock.Mock(),
                                     row=lambda *_: {}):
                found = []
                try:
                    for row in one.measured(None, None):
                        found.append(row)
                except RuntimeError as error:
                    found.append(str(error))
                return found
        row = {"error": None, "equal_bits": "yes"}
        self.assertEqual(rows("collectives"), [row, row])
        self.assertEqual(rows("collectives,peer memory"),
                         [row, row, "there is no peer memory: a CPU"])

    def test_threads_of_one_that_fails(self) -> None:
        from fp4.dist.exchange import Threads
        self.assertEqual(Threads.run(lambda one: one.values(one.rank), 2), [[0, 1], [0, 1]])

        def work(one: Any) -> Any:
            return one.values(1 // one.rank)
        done = threading.Thread(target=lambda: self.assertRaises(
            ZeroDivisionError, Threads.run, work, 2), daemon=True)
        done.start()
        done.join(30)
        self.assertFalse(done.is_alive())


class Tiles(unittest.TestCase):
    def test_preparation_of_tiles_that_ctas_share(self) -> None:
        """A kernel before adds the same cycles, whether CTAs share tiles or not."""
        tiles = program("fit_tiles")
        rate = dict.fromkeys(("launch", "wide", "convert", "convertRow", "multiplyRow", "shared",
                              "memoryBytes", "epilogueRow", "share", "shareRow", "workspace",
                              "workspaceRow", "cluster", "clusterRow", "overlapped", "ahead"), 1.0)
        for workers in (0, 132):
            with self.subTest(workers=workers):
                plain, converted = (tiles.predict_weights(
                    tiles.Kernel("x", is_converted, 16, 64, 4096, 4096, 64, 128, 0, 1, workers, 1,
                                 1.0, 1.0, "H200"), rate) for is_converted in (False, True))
                self.assertEqual(converted - plain, tiles.PREPARATION)


if __name__ == "__main__":
    unittest.main()
