"""python -m fp4.sim: scripts for CUDA with tensors of torch on the CPU (sim_script.py has them)."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from typing import Any

import fp4
from fp4.sim import __main__ as sim
from fp4.sim.triton import limit_points
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

import triton.profiler as proton, triton.profiler.viewer as viewer
from triton._C.libtriton import nvidia
proton.start("profile", hook="triton")
y = torch.rand(8, 16, device="cuda").half()
product = torch.empty(8, 8, device="cuda").half()
with proton.scope("product"):
    nvidia.cublas.CublasLt(y).matmul(y, y, product)
proton.finalize()
viewer.print_tree(*viewer.parse(["time/ms"], "profile.hatchet"))
assert torch.equal(product, (y.float() @ y.float().T).half())
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
        cases = ("launch", "polls", "unwritten", "compiled", "devices", "gradients",
                 "operations")
        done = self.script(*cases)
        self.assertEqual((done.returncode, done.stdout.split("\n")),
                         (0, [*(f"{case} ended" for case in cases), ""]), done.stderr)

    def test_an_access_beyond_a_tensor(self) -> None:
        done = self.script("beyond")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("kernel 'twice'", done.stderr)
        self.assertNotIn("ended", done.stdout)

    def test_an_access_to_a_tensor_that_was_freed(self) -> None:
        done = self.script("freed")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("kernel 'twice'", done.stderr)
        self.assertIn("is no device address", done.stderr)

    def test_two_blocks_that_race(self) -> None:
        done = self.script("race")
        self.assertEqual((done.returncode, done.stdout), (6, "race ended\n"), done.stderr)
        self.assertIn("[global-race]", done.stderr)

    def test_blocks_that_wait_for_each_other(self) -> None:
        done = self.script("livelock")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("livelock: warps repeat loops in which nothing changes", done.stderr)
        self.assertIn("('tensor #", done.stderr)

    def test_what_nobody_has_written(self) -> None:
        script = str(HERE / "sim_script.py")
        done = run("--device=h200", "--check=strict", script, "written")
        self.assertEqual((done.returncode, done.stdout), (0, "written ended\n"), done.stderr)
        done = run("--device=h200", "--check=strict", script, "unwritten")
        self.assertEqual((done.returncode, done.stdout), (6, "unwritten ended\n"), done.stderr)
        self.assertIn("[uninitialized-read]", done.stderr)

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
        for words in ("autotune takes the first 1 of its configurations", "there is no cuBLAS",
                      "there is no CUPTI"):
            self.assertIn(words, done.stderr)


@unittest.skipIf(torch is None, "torch is not installed")
class Cublas(unittest.TestCase):
    """Tests of the stand-in for Triton's CublasLt, against matmuls of what fp4 dequantizes."""

    def setUp(self) -> None:
        from fp4.sim.cublas import CublasLt

        torch.manual_seed(1)
        self.blas = CublasLt()

    def test_plain(self) -> None:
        a, b = torch.randn(5, 8).half(), torch.randn(3, 8).half()
        c, d = torch.empty(5, 3).half(), torch.empty(5, 3).half()
        self.blas.matmul(a, b, c)
        self.assertTrue(torch.equal(c, (a.float() @ b.float().T).half()))
        self.blas.gemm(a, b, c, d, 2.0, -1.0)
        self.assertTrue(torch.equal(d, (2 * (a.float() @ b.float().T) - c.float()).half()))
        for wrong, words in ((lambda: self.blas.matmul(a, b.float(), c), "one dtype"),
                             (lambda: self.blas.matmul(a, b, c[:2]), "a result of")):
            with self.assertRaisesRegex(RuntimeError, words):
                wrong()

    def test_nvfp4(self) -> None:
        import fp4.torch as ft

        a, b = (ft.quantize(torch.randn(rows, 160).bfloat16(), recipe="torchao_1level")
                for rows in (130, 16))
        exact = ft.dequantize(a, torch.float32) @ ft.dequantize(b, torch.float32).T
        d = torch.empty(130, 16)
        data, scales = [x.data.view(torch.uint8) for x in (a, b)], [x.scales.reshape(-1)
                                                                    for x in (a, b)]
        self.blas.block_scaled_matmul_nvfp4(*data, d, *scales)
        self.assertTrue(torch.equal(d, exact))
        with self.assertRaisesRegex(RuntimeError, "expects 3072 scales for 130 x 10, but got 10"):
            self.blas.block_scaled_matmul_nvfp4(*data, d, scales[0][:10], scales[1])

    def test_mxfp8(self) -> None:
        a, b = torch.eye(64)[:3].to(torch.float8_e4m3fn), torch.ones(2, 64).to(torch.float8_e4m3fn)
        scales = torch.full((512,), 127, dtype=torch.uint8)
        scales[16:18], scales[32] = torch.tensor([128, 126]), 255  # row 1: 2 and 1/2; row 2: NaN
        d = torch.empty(3, 2)
        self.blas.block_scaled_matmul_mxfp8(a, b, d, scales, torch.full_like(scales, 129))
        self.assertEqual(d[:2].tolist(), [[4.0, 4.0], [8.0, 8.0]])
        self.assertTrue(d[2].isnan().all())


class Benchmarks(unittest.TestCase):
    def test_sizes_that_run(self) -> None:
        for points, expected in ((0, []), (2, [1, 2]), (9, [1, 2, 3])):
            class Mark:
                def _run(self, bench: Any) -> Any:
                    return bench.x_vals

            limit_points(types.SimpleNamespace(Mark=Mark), points)
            self.assertEqual(Mark()._run(types.SimpleNamespace(x_vals=[1, 2, 3])), expected)


class Arguments(unittest.TestCase):
    @unittest.skipIf(not tool(), "the tool fp4-sim is not installed")
    def test_versions(self) -> None:
        done = run("--version")
        self.assertEqual(done.returncode, 0, done.stderr)
        package, tool = done.stdout.splitlines()
        self.assertEqual(package, f"fp4.sim {fp4.__version__}")
        self.assertRegex(tool, r"^fp4-sim \d+\.\d+\.\d+ \(revision .+\)$")
        missing = run("--version", FP4_SIM="/nowhere")
        self.assertEqual((missing.returncode, missing.stdout), (2, ""))
        self.assertIn("'/nowhere' cannot be executed", missing.stderr)

    def test_errors(self) -> None:
        for arguments, environment, words in (
                (["missing.py"], {}, "there is no script 'missing.py'"),
                ([], {}, "the following arguments are required: script"),
                (["--points=-1", "test_sim.py"], {}, "--points must be at least 0"),
                (["--configs=0", "test_sim.py"], {}, "--configs at least 1"),
                (["--unwritten=report", "test_sim.py"], {}, "(choose from"),
                (["test_sim.py"], {"FP4_SIM": "/nowhere"}, "cannot be executed")):
            with self.subTest(words):
                done = run(*arguments, **environment)
                self.assertEqual(done.returncode, 2)
                self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
