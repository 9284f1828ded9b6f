"""fp4.testing in a pytest of its own: wrong programs fail with the places of what is wrong."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import fp4
from fp4._library import find_library
from fp4.testing import github_annotations, run
from programs import compiled, product

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUGS = ROOT / "integration_test" / "sim" / "bugs"
TESTS = '''
import sys
import pathlib
import fp4
import pytest
sys.path.insert(0, {tests!r})
from programs import operands

FOLDER = pathlib.Path({folder!r})

def test_good(fp4_sim):
    fp4.load(FOLDER / "good.so", fp4_sim)(*operands())

def test_bad(fp4_sim):
    fp4.load(FOLDER / "bad.so", fp4_sim)(*operands())

def test_program(fp4_sim_run):
    done = fp4_sim_run([sys.executable, {bugs!r}, "ring.ptx"], device="h200")
    assert "every launch has ended" in done.stdout

def test_program_with_a_race(fp4_sim_run):
    fp4_sim_run([sys.executable, {bugs!r}, "union.ptx", "unordered"], device="h200")

def test_other_failures():
    assert 1 == 2

@pytest.fixture
def raced(fp4_sim_run):
    return fp4_sim_run([sys.executable, {bugs!r}, "union.ptx", "unordered"], device="h200")

def test_with_a_fixture(raced):
    assert raced
'''


class Plugin(unittest.TestCase):
    def pytest(self, folder: str, *options: str, **environment: str) -> str:
        wait = b"tcgen05.wait::ld.sync.aligned;"
        good = pathlib.Path(folder) / "good.so"
        compiled(product()).save(good)
        code = good.read_bytes()
        self.assertIn(wait, code)
        (good.parent / "bad.so").write_bytes(code.replace(wait, b" " * len(wait)))
        text = TESTS.format(tests=str(ROOT / "python" / "tests"), folder=folder,
                            bugs=str(BUGS / "run.py"))
        (good.parent / "test_it.py").write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"),
                       "FP4_LIBRARY": str(find_library().resolve()), **environment}
        command = [sys.executable, "-m", "pytest", "-p", "fp4.testing", "-q",
                   "-p", "no:cacheprovider", "--rootdir", folder, *options, folder]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stdout

    def test_hazards_are_failures(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            out = self.pytest(folder, "--fp4-sim=eager,lazy", GITHUB_ACTIONS="")
        self.assertIn("4 failed, 3 passed, 1 error", out)  # two policies of good and of bad
        self.assertIn("test_bad[lazy]", out)
        self.assertRegex(out, r"test_it\.py:14: (HazardError|SimulationError)")
        place = r"error: \S+\.ptx:\d+:\d+"
        self.assertRegex(out, rf"test_it\.py:21: HazardError\n{place}: .*\[shared-race\]")
        self.assertIn("assert 1 == 2", out)
        self.assertNotIn("_library.py", out)  # no traceback of the bindings
        self.assertNotIn("::error", out)

    def test_annotations_of_github(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            out = self.pytest(folder, "--fp4-sim=eager", GITHUB_ACTIONS="true")
        place = r"file=\S+\.ptx,line=\d+,col=\d+"
        races = re.findall(rf"(?m)^::error {place},title=shared-race::error: ", out)
        self.assertEqual(len(races), 2, out)  # of a test, and of a fixture
        self.assertNotIn("assert 1 == 2::", out)

    def test_the_source_has_the_annotation(self) -> None:
        text = ("error: a.ptx:4:3 (k/a:b.cu:7:9): kernel 'k': 100% wrong [shared-race]\nnote: x\n"
                "error: b.ptx:1:2: kernel 'k': again [lane-race]\n")
        self.assertEqual(github_annotations(text)[1],
                         "::error file=b.ptx,line=1,col=2,title=lane-race::"
                         "error: b.ptx:1:2: kernel 'k': again [lane-race]")
        here = f"error: a.ptx:4:3 ({pathlib.Path.cwd()}/k/a.cu:7:9): 100% [shared-race]\nnote: x"
        self.assertRegex(github_annotations(here)[0], r"^::error file=k/a\.cu,line=7,col=9,"
                                               r"title=shared-race::.*100%25.*%0Anote: x$")
        fault = "error: launch: deadlock: nothing\n  kernel 'k', warp 0, at c.ptx:7:1 waits"
        self.assertRegex(github_annotations(fault)[0],
                         "^::error file=c.ptx,line=7,col=1,title=deadlock::")
        self.assertEqual(github_annotations("no report"), [])

    def test_a_program_that_fails_by_itself(self) -> None:
        with self.assertRaises(subprocess.CalledProcessError):
            run(["false"])
        for code in (fp4.SimulationError.kind, fp4.HazardError.kind):
            with self.subTest(code=code), \
                    self.assertRaises(subprocess.CalledProcessError) as caught:
                run(["sh", "-c", f"echo 'my own words are above' >&2; exit {code}"])
            self.assertEqual(caught.exception.returncode, code)
        with self.assertRaisesRegex(fp4.SimulationError, "deadlock"):
            run([sys.executable, BUGS / "run.py", "bare-expect.ptx", "no-arrival"], device="h200")
        with self.assertRaises(fp4.UsageError):
            fp4.Device("sim", policy="never")


if __name__ == "__main__":
    unittest.main()
