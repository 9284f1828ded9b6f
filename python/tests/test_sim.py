"""python -m fp4.sim: scripts for CUDA with tensors of torch on the CPU (sim_script.py has them)."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

import fp4
from fp4.sim import __main__ as sim
from programs import torch

HERE = pathlib.Path(__file__).resolve().parent
CUTE = """
import cutlass, torch
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack

@cute.kernel
def add(x: cute.Tensor, step: cutlass.Constexpr):
    i, _, _ = cute.arch.thread_idx()
    x[i] = x[i] + step

@cute.jit
def launch(x: cute.Tensor, step: cutlass.Constexpr):
    add(x, step).launch(grid=[1, 1, 1], block=[32, 1, 1])

x = torch.zeros(32, device="cuda")
for step in (1.0, 10.0):  # kernels of one name
    cute.compile(launch, from_dlpack(x), step)(from_dlpack(x))
print(set(x.tolist()))
"""
TRITON = """
import torch, triton, triton.language as tl

@triton.autotune([triton.Config({"BLOCK": block}) for block in (64, 128)], key=["n"])
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

x, y = torch.rand(1000, device="cuda"), torch.rand(1000, device="cuda")
out = torch.empty_like(x)
add[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, y, out, 1000)
assert torch.equal(out, x + y)
print(triton.testing.do_bench(lambda: None) >= 0)
"""


def tool() -> str:
    try:
        return sim.find_tool()
    except fp4.UsageError:
        return ""


def run(*arguments: str, **environment: str) -> Any:
    return subprocess.run([sys.executable, "-m", "fp4.sim", *arguments], cwd=HERE, timeout=300,
                          capture_output=True, text=True, env={**os.environ, **environment})


@unittest.skipIf(torch is None or not tool(), "torch or the tool fp4-sim is not installed")
class Scripts(unittest.TestCase):
    def script(self, *cases: str) -> Any:
        return run("--device=h200", str(HERE / "sim_script.py"), *cases)

    def test_scripts_that_end_well(self) -> None:
        done = self.script("launch", "devices", "gradients")
        self.assertEqual((done.returncode, done.stdout),
                         (0, "launch ended\ndevices ended\ngradients ended\n"), done.stderr)

    def test_an_access_beyond_a_tensor(self) -> None:
        done = self.script("beyond")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("kernel 'twice'", done.stderr)
        self.assertNotIn("ended", done.stdout)

    def test_two_blocks_that_race(self) -> None:
        done = self.script("race")
        self.assertEqual((done.returncode, done.stdout), (6, "race ended\n"), done.stderr)
        self.assertIn("[global-race]", done.stderr)

    def test_a_tensor_of_the_host(self) -> None:
        self.assertEqual(self.script("host").returncode, 5)

    def test_a_module(self) -> None:
        done = run("--device=h200", "-m", "sim_script", "dlpack")
        self.assertEqual((done.returncode, done.stdout), (0, "dlpack ended\n"), done.stderr)

    @unittest.skipIf(importlib.util.find_spec("cutlass") is None, "the CuTe DSL is not installed")
    def test_cute_dsl(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "add.py")
            path.write_text(CUTE)
            done = run(str(path))
        self.assertEqual((done.returncode, done.stdout), (0, "{11.0}\n"), done.stderr)

    @unittest.skipIf(importlib.util.find_spec("triton") is None, "triton is not installed")
    def test_triton(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "add.py")
            path.write_text(TRITON)
            done = run(str(path), TRITON_CACHE_DIR=folder)
        self.assertEqual((done.returncode, done.stdout), (0, "True\n"), done.stderr)
        self.assertIn("autotune takes the first 1 of its configurations", done.stderr)


class Arguments(unittest.TestCase):
    def test_errors(self) -> None:
        for arguments, environment, words in (
                (["missing.py"], {}, "there is no script 'missing.py'"),
                ([], {}, "the following arguments are required: script"),
                (["--points=0", "test_sim.py"], {}, "must be at least 1"),
                (["test_sim.py"], {"FP4_SIM": "/nowhere"}, "cannot be executed")):
            with self.subTest(words):
                done = run(*arguments, **environment)
                self.assertEqual(done.returncode, 2)
                self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
