"""Random misuse ends in an exception of the right class with a message, and nothing is harmed."""

import json
import os
import pathlib
import subprocess
import sys
import unittest
from typing import Any

import fp4
from misuse import cases, judge
from misuse_case import Case

CASES = 1000
SEED = int(os.environ.get("FP4_MISUSE_SEED", "20261121"))


class Misuse(unittest.TestCase):
    def test_random_misuse_is_refused(self) -> None:
        """In a process of its own: one that ends tells which case ended it."""
        script = pathlib.Path(__file__).with_name("misuse.py")
        done = subprocess.run([sys.executable, "-W", "ignore", script, str(SEED), str(CASES)],
                              cwd=script.parent, capture_output=True, text=True, timeout=600)
        last = done.stderr[-2000:]
        self.assertEqual(done.returncode, 0, f"the process ended with {done.returncode} in\n{last}")
        *wrong, end = done.stdout.splitlines()
        self.assertEqual(end, "done", last)
        self.assertEqual([json.loads(line) for line in wrong], [],
                         f"run python3 {script.name} {SEED} NUMBER+1 NUMBER for one case")
        self.assertEqual(done.stderr.count("case "), CASES)

    def test_the_judge(self) -> None:
        def fail(error: Exception) -> Any:
            raise error

        self.assertEqual(judge(Case("", lambda: fail(fp4.UsageError("x must be y")))), "")
        for call, why in [(lambda: 3, "accepted: 3"),
                          (lambda: fail(ValueError("x")), "ValueError: x"),
                          (lambda: fail(fp4.DeviceError("x")), "DeviceError: x"),
                          (lambda: fail(fp4.UsageError("")), "the exception has no message")]:
            self.assertEqual(judge(Case("", call)), why)

    def test_cases_repeat(self) -> None:
        first, again = ([case.what for case in cases(SEED, 40)] for _ in range(2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, [case.what for case in cases(SEED + 1, 40)])


if __name__ == "__main__":
    unittest.main()
