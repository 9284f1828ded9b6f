"""Tests of the cost of `import fp4`."""

import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import fp4
from fp4 import _library
from fp4.sim import __main__ as sim
from programs import ROOT

LIMIT = 0.3
MEASURE = """
import sys, time
start, begin = time.perf_counter(), time.process_time()
import fp4
print(time.process_time() - begin, time.perf_counter() - start)
assert not {"torch", "numpy", "ml_dtypes"} & set(sys.modules), sorted(sys.modules)
"""

USE = "import sys; from fp4.sim.tool import main; sys.exit(main())"


class Import(unittest.TestCase):
    def test_it_takes_under_0_3_s_and_imports_no_large_package(self) -> None:
        """Processor time counts: the time that passes is that of a busy machine, too."""
        times = []
        for _ in range(3):
            done = subprocess.run([sys.executable, "-c", MEASURE], check=True, text=True,
                                  stdout=subprocess.PIPE)
            times.append([float(word) for word in done.stdout.split()])
        used, passed = map(min, zip(*times))
        print(f"import fp4: {used:.3f} s of processor time, {passed:.3f} s passed")
        self.assertLess(used, LIMIT)

    def test_all_versions_agree(self) -> None:
        project = (ROOT / "pyproject.toml").read_text()
        self.assertIn(f'\nversion = "{fp4.__version__}"\n', project)
        self.assertEqual(fp4.__version__, fp4.version())

    def fail(self, code: str, **environment: str) -> str:
        """The last error of a program of Python, in one line."""
        done = subprocess.run([sys.executable, "-c", code], text=True, stderr=subprocess.PIPE,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr[done.stderr.index("ImportError: "):]

    def test_a_library_of_another_version_is_refused(self) -> None:
        code = "import fp4; fp4.__version__ = '{}'; fp4.version()"
        subprocess.run([sys.executable, "-c", code.format(fp4.__version__)], check=True)
        said = self.fail(code.format("0.99.0"))
        self.assertIn(f"'{_library.PATH}' must have version 0.99.0 of the package in", said)
        self.assertIn(f"but has {fp4.__version__}\n", said)
        self.assertIn("note: 'pip install fp4-runtime==0.99.0 fp4-compiler==0.99.0'", said)

    def test_a_library_of_another_machine_is_refused(self) -> None:
        image = bytearray(_library.PATH.read_bytes())
        other, number = ("x86_64", 62) if platform.machine() == "aarch64" else ("aarch64", 183)
        image[18:20] = number.to_bytes(2, "little")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "libfp4.so")
            path.write_bytes(image)
            said = self.fail("import fp4; fp4.version()", FP4_LIBRARY=str(path))
        self.assertIn(f"must be for {platform.machine()}, on which this Python runs, but is for "
                      f"{other}\nnote: install the wheels of this machine with 'pip", said)


@unittest.skipIf(shutil.which("sh") is None, "there is no sh on this machine")
class Tool(unittest.TestCase):
    """fp4-sim of another release or machine than the package."""

    def fail(self, content: "str | bytes") -> str:
        with tempfile.TemporaryDirectory() as folder:
            tool = pathlib.Path(folder, "fp4-sim")
            tool.write_bytes(content.encode() if isinstance(content, str) else content)
            tool.chmod(0o755)
            done = subprocess.run([sys.executable, "-c", USE, "--version"], text=True,
                                  capture_output=True,
                                  env={**os.environ, "FP4_SIM": str(tool)})
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_another_version_is_refused(self) -> None:
        program = os.path.realpath("/bin/sh")
        for said, version in (("fp4-sim 0.99.0 (revision unknown)", "0.99.0"), ("fp4-sim", "none")):
            done = subprocess.CompletedProcess([], 0, stdout=said)
            with mock.patch.object(subprocess, "run", return_value=done), \
                    self.assertRaises(fp4.UsageError) as caught:
                sim._check.__wrapped__(program)
            self.assertRegex(str(caught.exception),
                             f"must have version {fp4.__version__} of the package in .*, "
                             f"but has {version}\n")
            self.assertIn(f"'pip install fp4-runtime=={fp4.__version__} "
                          f"fp4-sim=={fp4.__version__}'", str(caught.exception))

    def test_a_program_that_does_not_end_is_refused(self) -> None:
        endless = subprocess.TimeoutExpired("fp4-sim", 60)
        with mock.patch.object(subprocess, "run", side_effect=endless), \
                self.assertRaisesRegex(fp4.UsageError, "must end within 60 seconds"):
            sim._check.__wrapped__(os.path.realpath("/bin/sh"))

    def test_a_script_is_refused(self) -> None:
        said = self.fail("#!/bin/sh\necho 'fp4-sim 0.99.0 (revision unknown)'\n")
        self.assertIn("must be the program fp4-sim, but is a script", said)

    def test_the_path_is_searched_for_a_program(self) -> None:
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            script, program = pathlib.Path(first, "fp4-sim"), pathlib.Path(second, "fp4-sim")
            script.write_text("#!/bin/sh\n")
            script.chmod(0o755)
            with mock.patch.dict(os.environ, PATH=os.pathsep.join((first, second))):
                self.assertIsNone(sim._search())
                program.symlink_to(os.path.realpath("/bin/sh"))
                self.assertEqual(sim._search(), str(program))

    def test_another_machine_is_refused(self) -> None:
        image = bytearray(pathlib.Path("/bin/sh").resolve().read_bytes())
        other, number = ("x86_64", 62) if platform.machine() == "aarch64" else ("aarch64", 183)
        image[18:20] = number.to_bytes(2, "little")
        said = self.fail(bytes(image))
        self.assertIn(f"must be for {platform.machine()}, on which this Python runs, but is for "
                      f"{other}\nnote: install the wheels of this machine", said)


if __name__ == "__main__":
    unittest.main()
