"""The cache of compiled programs on disk, fp4.torch.prepare, and python -m fp4 cache."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import fp4
from fp4 import __main__, _cache, _library
from programs import torch

if torch is not None:
    import fp4.torch
    from fp4.torch import execution, planned, preparation, programs

LAYER = """
import sys, fp4.torch, torch
from fp4.torch import programs
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 128, dtype=torch.bfloat16))
fp4.torch.quantize_(model, weight_only=True)
fp4.torch.prepare(model)
with torch.no_grad():
    y = model(torch.ones(2, 64, dtype=torch.bfloat16))
print(programs.compilations(), y.view(torch.int16).sum().item())
"""


def forget() -> None:
    """Drops the programs of this process."""
    execution._programs.clear()
    for module in [module for name, module in sys.modules.items() if name.startswith("fp4.torch.")]:
        for value in vars(module).values():
            if hasattr(value, "cache_clear") and value.__module__ == module.__name__:
                value.cache_clear()


def run(folder: str, **environment: str) -> "tuple[str, str]":
    found = subprocess.run([sys.executable, "-c", LAYER], capture_output=True, text=True,
                           env={**os.environ, "FP4_CACHE": folder, **environment})
    assert found.returncode == 0, found.stderr
    return found.stdout.strip(), found.stderr


def tool(*arguments: str) -> "tuple[int, str]":
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = __main__.main(["cache", *arguments])
    return code, said.getvalue()


@unittest.skipIf(torch is None, "torch is not installed")
class Cache(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        patch = mock.patch.dict(os.environ, {"FP4_CACHE": folder.name})
        patch.start()
        self.addCleanup(patch.stop)
        forget()
        self.addCleanup(forget)
        self.x = torch.arange(256.0).view(4, 64)

    def amax(self) -> Any:
        forget()
        with planned.held():
            return torch.ops.fp4.amax(self.x, False).item()

    def entry(self) -> pathlib.Path:
        self.assertEqual(self.amax(), 255)
        [path] = self.folder.glob("*/*.fp4")
        return path

    @contextlib.contextmanager
    def compiles(self, count: int) -> Iterator[None]:
        before = programs.compilations()
        yield
        self.assertEqual(programs.compilations() - before, count)

    def test_a_program_is_compiled_once(self) -> None:
        with self.compiles(1):
            path = self.entry()
        with self.compiles(0), warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(self.amax(), 255)
            forget()
            with fp4.torch.simulator(verify=True):
                self.assertEqual(torch.ops.fp4.amax(self.x, False), 255)
        self.assertEqual(path.parent.stat().st_mode & 0o777, 0o700)
        with mock.patch.dict(os.environ, {"FP4_CACHE": "0"}), self.compiles(1):
            self.assertEqual(self.amax(), 255)

    def test_functions_of_compat_call_what_is_kept(self) -> None:
        from fp4.compat import flashinfer

        x = torch.randn(4, 64, dtype=torch.bfloat16)
        scale = torch.ones(1)
        expected = flashinfer.silu_and_mul_nvfp4_quantize(x, scale)
        forget()
        with self.compiles(0):
            found = flashinfer.silu_and_mul_nvfp4_quantize(x, scale)
        self.assertTrue(all(torch.equal(*map(lambda y: y.view(torch.uint8), pair))
                            for pair in zip(found, expected)))

    def test_damaged_entries_are_told_and_compiled_again(self) -> None:
        path = self.entry()
        whole = path.read_bytes()
        middle = len(whole) // 2
        for damaged, reason in (
                (whole[:-1], "its end is missing"), (b"", "has 0 bytes"), (whole[100:], "its end"),
                (whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1:], "its digest")):
            with self.subTest(reason):
                path.write_bytes(damaged)
                with self.assertWarnsRegex(fp4.CacheWarning, reason), self.compiles(1):
                    self.assertEqual(self.amax(), 255)
                self.assertEqual(_cache.read(path).key.target, "sm_100a")
                with self.compiles(0):
                    self.assertEqual(self.amax(), 255)

    def test_entries_of_others_are_told_and_compiled_again(self) -> None:
        path = self.entry()
        with planned.held():
            torch.ops.fp4.amax(self.x, True)
        [other] = [one for one in self.folder.glob("*/*.fp4") if one != path]
        path.write_bytes(other.read_bytes())
        with self.assertWarnsRegex(fp4.CacheWarning, "of another program or target"), \
                self.compiles(1):
            self.assertEqual(self.amax(), 255)
        if hasattr(os, "geteuid"):
            os.chown(path, 4711, -1) if os.geteuid() == 0 else self.skipTest("not root")
            with self.assertWarnsRegex(fp4.CacheWarning, "belongs to the user 4711"):
                self.assertEqual(self.amax(), 255)

    def test_another_compiler_has_entries_of_its_own(self) -> None:
        self.entry()
        with mock.patch.object(_cache, "compiler", lambda: "another"), self.compiles(1):
            self.assertEqual(self.amax(), 255)
        self.assertEqual(len(list(self.folder.glob("*/*.fp4"))), 2)
        self.assertIn("of another compiler", tool("list")[1])
        self.assertRegex(tool("prune")[1], "removed 1 entries")
        with self.compiles(0):
            self.assertEqual(self.amax(), 255)

    def test_processes_that_write_at_the_same_time(self) -> None:
        command = [sys.executable, "-c", LAYER]
        work = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        results = {process.communicate()[0].split()[1] for process in work}
        self.assertEqual([process.returncode for process in work], [0, 0, 0])
        self.assertEqual(len(results), 1)
        self.assertTrue(all(isinstance(item, _cache.Entry) for item in _cache.entries()))
        self.assertEqual(list(self.folder.glob("*/tmp-*")), [])
        self.assertEqual(run(str(self.folder))[0].split()[0], "0")

    def test_a_folder_that_cannot_be_written(self) -> None:
        file = self.folder / "file"
        file.write_text("")
        _cache._tell_once.cache_clear()
        with mock.patch.dict(os.environ, {"FP4_CACHE": str(file)}):
            with self.assertWarnsRegex(fp4.CacheWarning,
                                       f"nothing is kept in the cache '{file}': .*\nnote: name a "
                                       "folder that can be written with .FP4_CACHE, or set it"):
                self.assertEqual(self.amax(), 255)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertEqual(self.amax(), 255)
        with mock.patch.object(fp4.Compiled, "save", side_effect=fp4.CompileError("no linker")), \
                self.assertWarnsRegex(fp4.CacheWarning, "nothing is kept .*: no linker"):
            self.assertEqual(self.amax(), 255)

    def test_the_tool(self) -> None:
        path = self.entry()
        code, said = tool("list")
        self.assertEqual(code, 0)
        self.assertRegex(said, rf"{path.stem[:12]}  sm_100a +ptx .*@amax\(%x: tensor<\?x64xf32>")
        self.assertRegex(said, "1 entries in ")
        path.with_name("0" * 32 + ".fp4").write_bytes(b"no entry")
        self.assertRegex(tool("list")[1], "000000000000  damaged: it has 8 bytes")
        left = path.parent / "tmp-killed"
        left.mkdir()
        (left / "half.fp4").write_bytes(b"half")
        self.assertRegex(tool("prune")[1], "removed 1 entries")
        self.assertTrue(left.exists())  # somebody may write it
        os.utime(left, (time.time() - 7200,) * 2)
        self.assertRegex(tool("prune")[1], "removed 0 entries")
        self.assertFalse(left.exists())
        os.utime(path, (time.time() - 40 * 86400,) * 2)
        self.assertRegex(tool("prune", "--unused-for=50")[1], "removed 0 entries")
        self.assertRegex(tool("prune")[1], "removed 1 entries")
        self.assertRegex(tool("prune", "--all")[1], "removed 0 entries")
        with mock.patch.dict(os.environ, {"FP4_CACHE": "0"}):
            self.assertEqual(tool("list"), (0, "the cache is off ($FP4_CACHE)\n"))

    def use_runner(self) -> None:
        """Names fp4-runner, which lies beside fp4-sim in a build, to the tool."""
        sim = os.environ.get("FP4_SIM")
        runner = pathlib.Path(sim or ".").with_name("fp4-runner")
        if not sim or not runner.exists():
            self.skipTest("FP4_SIM names no tool of a build")
        patch = mock.patch.dict(os.environ, {"FP4_RUNNER": str(runner)})
        patch.start()
        self.addCleanup(patch.stop)

    def test_plans_of_a_search_stay_in_the_cache(self) -> None:
        self.use_runner()
        path, before = self.entry(), _cache.read(self.entry())
        code, said = tool("tune", path.stem[:12], "--dim=M=4", "--tune-limit=4")
        self.assertEqual(code, 0)
        self.assertRegex(said, r"predicted .* times as fast")
        after = _cache.read(path)
        self.assertEqual(after.key, before.key)
        self.assertNotEqual(after.library, before.library)
        self.assertRegex(tool("list")[1], r"tuned @amax")
        with self.compiles(0):
            self.assertEqual(self.amax(), 255)
        there = self.folder / "there"
        tool("export", str(there))
        self.assertEqual(_cache.read(there / path.parent.name / path.name).library, after.library)

    def test_tuning_says_what_is_missing(self) -> None:
        self.use_runner()
        path = self.entry()
        library = path.read_bytes()
        for arguments, environment, said in (
                (("0" * 12,), {}, "must be the begin of the name of one entry of this compiler"),
                ((path.stem, "--dim=N=4"), {}, "fp4-runner --tune ended with 2"),
                ((path.stem,), {"FP4_RUNNER": "/nowhere"}, "'/nowhere', which cannot be executed")):
            with mock.patch.dict(os.environ, environment), self.subTest(said), \
                    contextlib.redirect_stderr(io.StringIO()) as error:
                self.assertEqual(tool("tune", *arguments)[0], 2)
            self.assertIn(said, error.getvalue())
        self.assertEqual(path.read_bytes(), library)

    def test_what_is_exported_runs_without_a_compiler(self) -> None:
        runtime = _library.PATH.with_name("libfp4rt.so")
        if not runtime.is_file() or runtime == _library.PATH:
            self.skipTest("there is one library only")
        expected = run(str(self.folder))[0].split()[1]
        there = self.folder / "there"
        self.assertRegex(tool("export", str(there))[1], r"copied \d+ entries")
        found, said = run(str(there), FP4_LIBRARY=str(runtime))
        self.assertEqual(found.split(), ["0", expected])
        self.assertEqual(said, "")


@unittest.skipIf(torch is None, "torch is not installed")
class Prepare(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(1)
        forget()
        self.addCleanup(forget)

    def test_the_first_call_of_each_layer_compiles_nothing(self) -> None:
        def linear() -> Any:
            return torch.nn.Linear(64, 128, dtype=torch.bfloat16)

        model = torch.nn.ModuleDict({
            "first": fp4.torch.WeightOnlyLinear.from_linear(linear()),
            "second": fp4.torch.WeightOnlyLinear.from_linear(linear()),
            "quantized": fp4.torch.QuantizedLinear.from_linear(linear()),
            "experts": fp4.torch.WeightOnlyExperts.from_stack(
                torch.randn(2, 128, 64, dtype=torch.bfloat16))})
        forget()
        prepared = fp4.torch.prepare(model)
        self.assertEqual((prepared.programs, prepared.compiled), (5, 5))
        self.assertEqual(fp4.torch.prepare(model).compiled, 0)
        before = programs.compilations()
        for rows in (1, 3, 17):
            x = torch.randn(rows, 64, dtype=torch.bfloat16)
            for name, layer in model.items():
                with torch.no_grad():
                    layer(x, *([torch.tensor([0, 1, rows])] if name == "experts" else []))
        self.assertEqual(programs.compilations(), before)

    def test_layers_of_a_gpu_run_for_each_range_of_rows(self) -> None:
        model = torch.nn.Sequential(
            fp4.torch.WeightOnlyLinear.from_linear(torch.nn.Linear(64, 128, dtype=torch.bfloat16)),
            fp4.torch.WeightOnlyExperts.from_stack(torch.randn(2, 128, 128, dtype=torch.bfloat16)))
        seen: list[Any] = []
        for layer in model:
            layer.register_forward_hook(lambda layer, inputs, y: seen.append(tuple(y.shape)))
        with mock.patch.object(preparation, "_ROWS", (1, 9)):
            preparation._load(model, (), {"0", "1"}, torch.bfloat16)
            self.assertEqual(seen, [(1, 128), (9, 128)] * 2)
            preparation._load(model, (), {"1"}, torch.bfloat16)
        self.assertEqual(len(seen), 6)

    def test_operations_outside_layers_are_found_by_a_call(self) -> None:
        class Model(torch.nn.Module):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                ids = fp4.torch.route(x, 2)[1]
                return fp4.torch.quantize(x).data, ids, fp4.torch.rms_norm(x)

        x = torch.randn(4, 64, dtype=torch.bfloat16)
        prepared = fp4.torch.prepare(Model(), x)
        self.assertGreaterEqual(prepared.compiled, 4)
        before = programs.compilations()
        Model()(x)
        self.assertEqual(programs.compilations(), before)

    def test_a_layer_that_cannot_run_is_named(self) -> None:
        model = torch.nn.Sequential(fp4.torch.WeightOnlyLinear.from_linear(
            torch.nn.Linear(64, 128, dtype=torch.bfloat16)))
        with self.assertRaisesRegex(fp4.UsageError, "layer '0': 'input' must be bfloat16"):
            fp4.torch.prepare(model, dtype=torch.float64)
        with mock.patch.object(execution, "_program", side_effect=fp4.CompileError("no kernel")), \
                self.assertRaisesRegex(fp4.CompileError, "layer '0': no kernel"):
            fp4.torch.prepare(model)

    def test_a_graph_that_is_captured_before(self) -> None:
        with mock.patch.object(torch.cuda, "is_current_stream_capturing", lambda: True), \
                self.assertRaisesRegex(fp4.UsageError, "must be ready before a graph is captured"):
            execution.ready(programs.amax, (64, "bf16", False, False), torch.device("cuda"), "")


if __name__ == "__main__":
    unittest.main()
