"""Tests of the cost of `import fp4`."""

import subprocess
import sys
import unittest

import fp4
from programs import ROOT

LIMIT = 0.3
MEASURE = """
import sys, time
start, begin = time.perf_counter(), time.process_time()
import fp4
print(time.process_time() - begin, time.perf_counter() - start)
assert not {"torch", "numpy", "ml_dtypes"} & set(sys.modules), sorted(sys.modules)
"""


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


if __name__ == "__main__":
    unittest.main()
