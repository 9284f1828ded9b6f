"""fp4.dist with two processes on CPUs and gloo; dist_cases.py has the cases."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

import fp4
from programs import torch

if torch is not None:
    import fp4.dist as fd
    import fp4.torch as ft


@unittest.skipIf(torch is None, "torch is not installed")
class TwoProcesses(unittest.TestCase):
    def test_all_cases(self) -> None:
        script = pathlib.Path(__file__).with_name("dist_cases.py")
        with tempfile.TemporaryDirectory() as folder:
            reports = [pathlib.Path(folder, f"report{rank}") for rank in (0, 1)]
            ranks = [subprocess.Popen(
                [sys.executable, script, str(rank), f"{folder}/store", report],
                stderr=subprocess.PIPE, text=True) for rank, report in enumerate(reports)]
            texts = self.ended(ranks)
            for rank, report in enumerate(reports):
                self.assertTrue(report.exists(), texts[rank])
                lines = report.read_text().splitlines()
                self.assertGreater(len(lines), 9)
                for line in lines:
                    name, _, text = line.partition(": ")
                    with self.subTest(name, rank=rank):
                        self.assertEqual(text.replace("\\n", "\n"), "")

    def ended(self, ranks: "list[Any]") -> "list[str]":
        try:
            return [process.communicate(timeout=300)[1] for process in ranks]
        finally:
            for process in ranks:
                process.kill()
                process.communicate()


@unittest.skipIf(torch is None, "torch is not installed")
class OneProcess(unittest.TestCase):
    def test_without_a_process_group(self) -> None:
        x = torch.ones(16, 32, dtype=torch.bfloat16)
        for function, argument in ((fd.quantize, x), (fd.amax, x),
                                   (fd.all_gather, ft.quantize(x))):
            with self.assertRaisesRegex(fp4.UsageError, "must be initialized\nnote: call torch"):
                function(argument)

    def test_traffic(self) -> None:
        found = fd.gather_traffic((4096, 4096), 8)
        self.assertEqual((found.data, found.scales, found.bfloat16),
                         (7 * 4096 * 2048, 7 * 4096 * 256, 7 * 4096 * 8192))
        self.assertAlmostEqual(found.ratio, 32 / 9)
        for shape, ranks in (((4, 5), 2), ((-1, 4), 2), ((4, 4), 0)):
            with self.assertRaises(fp4.UsageError):
                fd.gather_traffic(shape, ranks)

    def test_a_transposed_quantizer(self) -> None:
        x = torch.randn(64, 48).to(torch.bfloat16)
        for format in ("nvfp4", "mxfp4"):
            found = ft.quantize(x, transpose=True, format=format)
            self.assertTrue(found.same(ft.quantize(x.T.contiguous(), format=format)))
        with self.assertRaisesRegex(fp4.UsageError, "must be a multiple of 16 with 'transpose'"):
            ft.quantize(x[:40], transpose=True)
        with self.assertRaisesRegex(fp4.UsageError, "must have one amax"):
            ft.quantize(x, transpose=True, per_row=True)


if __name__ == "__main__":
    unittest.main()
