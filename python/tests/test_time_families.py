"""Predictions of launches by family (benchmarks/time/families.py) count what they leave out."""

import contextlib
import importlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from typing import Any
from unittest import mock

TIME = pathlib.Path(__file__).resolve().parents[2] / "benchmarks/time"
KERNEL = {"microseconds": 10.5, "launch_microseconds": 0.5, "gigahertz": 1.83,
          "power": {"sustained_microseconds": 12.0}}


def families() -> Any:
    with mock.patch.object(sys, "path", [str(TIME), *sys.path]):
        return importlib.import_module("families")


class Families(unittest.TestCase):
    def test_kernels_that_took_turns_are_compared_in_cycles(self) -> None:
        time_of = families().time_of
        self.assertEqual(time_of(KERNEL, 0), 12.0)  # alone: at its own clock
        for clock in (1.2, 1.98):
            cycles = (time_of(KERNEL, clock) - 0.5) * clock
            self.assertAlmostEqual(cycles, 10 * 1.83)

    def test_clocks_come_from_the_row_alone(self) -> None:
        for point in [next(source()) for source, _ in families().SOURCES]:
            self.assertEqual(point.clock > 0, point.family.endswith("in cycles"), point.family)
            if point.clock:
                self.assertEqual(point.clock, point.megahertz / 1e3)

    def run_with(self, failures: "list[str]") -> "tuple[int, str, Any]":
        module, reasons = families(), iter(failures)
        points = [module.Point("attention", str(i), 1.0, "", predicted=1.0)
                  for i in range(len(failures))]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "time_h200_2026-01-01.json"
            with (mock.patch.object(module, "drawn", return_value=points),
                  mock.patch.object(module, "predict", lambda *_: next(reasons)),
                  mock.patch.object(sys, "argv", ["families.py", "build", "--table", str(file)]),
                  contextlib.redirect_stdout(io.StringIO()) as said):
                code = module.main()
            return code, said.getvalue(), json.loads(file.read_text(encoding="utf-8"))

    def test_points_without_a_prediction_are_counted(self) -> None:
        code, said, table = self.run_with(["", "left out after 300 s", "FAILED: x"])
        self.assertEqual(code, 1)
        self.assertIn("1 of 3 points have a prediction", said)
        self.assertIn("1 of 3 points drawn", table["clock"])
        self.assertEqual(self.run_with(["", ""])[0], 0)


if __name__ == "__main__":
    unittest.main()
