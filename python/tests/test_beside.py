"""libfp4.so lives beside other copies of LLVM in one process."""

import importlib.util
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterable, Sequence

from fp4 import _library

HERE = pathlib.Path(__file__).resolve().parent


class Beside(unittest.TestCase):
    def test_nothing_but_the_c_api_is_exported(self) -> None:
        nm = shutil.which("nm") or shutil.which("llvm-nm-22")
        if nm is None:
            self.skipTest("there is no nm on this machine")
        listed = subprocess.run([nm, "-D", "--defined-only", _library.PATH], check=True,
                                capture_output=True, text=True).stdout
        names = [line.split()[-1] for line in listed.splitlines()]
        self.assertIn("fp4_executable_call", names)
        self.assertEqual([name for name in names if not name.startswith(("fp4_", "fp4rt_"))], [])

    def use(self, orders: Iterable[Sequence[str]]) -> None:
        """Uses the packages in every order, each time in a new process."""
        if _library.PATH.name != "libfp4.so":
            self.skipTest(f"{_library.PATH.name} has no compiler")
        for order in orders:
            with self.subTest(order), tempfile.TemporaryDirectory() as cache:
                done = subprocess.run(
                    [sys.executable, "-W", "ignore", HERE / "beside_triton.py", *order],
                    env={**os.environ, "TRITON_CACHE_DIR": cache}, cwd=HERE,
                    capture_output=True, text=True, timeout=300)
                self.assertEqual((done.returncode, done.stdout), (0, "all computed\n"),
                                 done.stderr[-4000:])

    def test_torch_and_fp4_in_every_order(self) -> None:
        if importlib.util.find_spec("torch") is None:
            self.skipTest("torch is not installed; the extra 'torch' installs it")
        self.use([("fp4", "torch", "fp4"), ("torch", "fp4", "torch")])

    def test_triton_torch_and_fp4_in_every_order(self) -> None:
        if importlib.util.find_spec("triton") is None:
            self.skipTest("triton is not installed; 'pip install triton' downloads 286 MB and "
                          "takes 1 GB")
        installed = [name for name in ("fp4", "triton", "torch")
                     if importlib.util.find_spec(name) is not None]
        self.use([order + order[:1] for order in itertools.permutations(installed)])


if __name__ == "__main__":
    unittest.main()
