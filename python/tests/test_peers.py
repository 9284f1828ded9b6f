"""benchmarks/peers without a GPU: operands and references, the table, and the driver with libraries
that are missing, wrong, or fail; and fp4's own programs in the simulator."""

import contextlib
import dataclasses
import io
import json
import math
import os
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET
import zipfile
from typing import Any

try:
    import torch
except ImportError as failure:
    raise unittest.SkipTest("needs torch") from failure

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "peers"))

import layers  # noqa: E402
import measuring  # noqa: E402
import plan_space  # noqa: E402
import problems  # noqa: E402
import run  # noqa: E402
import table  # noqa: E402
from libraries import ALL, deepgemm, thunderkittens  # noqa: E402
from libraries.cublas import Cublas  # noqa: E402
from libraries.cutlass import Cutlass  # noqa: E402
from libraries.humming import Humming  # noqa: E402
from libraries.library import Library, Missing, Prepared  # noqa: E402
from libraries.nvcc import toolkit_headers  # noqa: E402
from libraries.ours import FAST, Ours, program  # noqa: E402
from libraries.thunderkittens import ThunderKittens  # noqa: E402
from libraries.triton_kernels import TritonKernels  # noqa: E402
from problems import Problem, difference, make_operands, reference  # noqa: E402

SMALL = [Problem("bf16_nvfp4", 3, 128, 128), Problem("bf16_mxfp4", 3, 128, 128),
         Problem("e4m3_mxfp4", 3, 128, 128), Problem("fp8", 5, 256, 256),
         Problem("contiguous", 8, 128, 256, 2), Problem("masked", 8, 128, 256, 2, (3, 0)),
         Problem("nvfp4_nvfp4", 3, 128, 128), Problem("mxfp4_mxfp4", 3, 128, 256)]


class Operands(unittest.TestCase):
    def test_bytes_and_roofs_are_those_of_the_formats(self) -> None:
        few = Problem("bf16_nvfp4", 1, 8192, 8192)
        self.assertEqual(few.bytes, 8192 * 8192 * 9 // 16 + 2 * 8192 + 2 * 8192)
        self.assertEqual(few.roof()[1], "memory")
        self.assertAlmostEqual(few.roof()[0], 7.87, places=2)
        many = Problem("fp8", 4096, 4096, 7168)
        self.assertEqual(many.flops, 2 * 4096 * 4096 * 7168)
        self.assertEqual(many.roof()[1], "tensor core")
        self.assertEqual(Problem("masked", 8, 128, 256, 2, (3, 0)).flops, 2 * 3 * 128 * 256)
        both = Problem("nvfp4_nvfp4", 16, 8192, 8192)
        self.assertEqual(both.bytes, (8192 + 16) * 8192 * 9 // 16 + 2 * 16 * 8192)
        self.assertEqual(Problem("mxfp4_mxfp4", 8192, 8192, 8192).roof()[1], "tensor core")

    def test_names_are_unique(self) -> None:
        names = [problem.name for problem in problems.every()]
        self.assertEqual(len(names), len(set(names)))

    def test_random_problems_repeat_and_differ_by_seed(self) -> None:
        found = layers.drawn("3:50")
        self.assertEqual(found, layers.drawn("3:50"))
        self.assertEqual(len({problem.name for problem in found}), 50)
        self.assertNotEqual(found, layers.drawn("4:50"))
        self.assertEqual({problem.kind for problem in found}, set(layers.DRAWN))

    def test_problems_of_the_command_line(self) -> None:
        self.assertEqual(layers.named("fp8:5x256x128"), Problem("fp8", 5, 256, 128))
        for wrong in ("fp8", "fp8:1x2", "masked:8x128x128", "fp8:1x100x128"):
            with self.assertRaises(ValueError):
                layers.named(wrong)
        for wrong in ("3", "a:b", "1:0", "1:1000000"):
            with self.assertRaises(ValueError):
                layers.drawn(wrong)

    def test_candidates_fill_the_rows(self) -> None:
        for rows in (1, 100, 512, 4096):
            found = plan_space.candidates(Problem("bf16_nvfp4", rows, 6144, 4096), "")
            self.assertEqual(len(found), len(set(found)))
            tile = {1: "[8, 128, 128]", 100: "[104, 256, 128]", 512: "[176, 128, 128]",
                    4096: "[256, 128, 128]"}[rows]
            self.assertIn(("1", f"tile_gemm, tile = {tile}"), found)
        self.assertEqual(plan_space.candidates(SMALL[4], ""), [])

    def test_problems_that_nobody_could_multiply(self) -> None:
        for wrong in (("int4", 1, 128, 128), ("fp8", 1, 100, 128), ("fp8", 0, 128, 128),
                      ("contiguous", 3, 128, 128, 2), ("masked", 8, 128, 128, 2),
                      ("masked", 8, 128, 128, 2, (5, 0))):
            with self.assertRaises(ValueError):
                Problem(*wrong)  # type: ignore[arg-type]

    def test_the_reference_is_the_sum_of_gemms(self) -> None:
        for problem in SMALL:
            operands = make_operands(problem, 1, "cpu")
            expected, row, column = reference(operands), 2, 77
            weights = problems.dequantized_weights(operands).double()[column]
            x = problems.dequantized_activations(operands).double()[row]
            if problem.kind == "e4m3_mxfp4":  # the other scales are in x already
                scales = operands.row_scales.double()[row]
                x = x * scales.repeat_interleave(x.numel() // scales.numel())
            value = float((x * weights).sum())
            if operands.tensor_scale is not None:
                value *= float(operands.tensor_scale)
            found = float(expected[row, column])
            self.assertAlmostEqual(found, value, delta=1e-4 * abs(value) + 1e-6)

    def test_codes_become_values(self) -> None:
        operands = make_operands(SMALL[1], 0, "cpu")
        operands.weights[:] = 0xF2  # the even column has code 2, the odd one code 15
        operands.scales[:] = 128  # two
        self.assertEqual(problems.dequantized_weights(operands)[5, :4].tolist(), [2, -12, 2, -12])

    def test_codes_of_activations_become_values(self) -> None:
        operands = make_operands(SMALL[7], 0, "cpu")
        operands.x[:] = 0x2F
        operands.row_scales[:] = 126  # a half
        found = problems.dequantized_activations(operands)
        self.assertEqual((found.shape, found[1, :2].tolist()), ((3, 256), [-3, 0.5]))

    def test_weights_of_w4a8_are_e4m3(self) -> None:
        weights = problems.dequantized_weights(make_operands(SMALL[2], 3, "cpu"))
        self.assertTrue(torch.equal(weights, weights.to(torch.float8_e4m3fn).float()))

    def test_rows_of_no_group_are_not_compared(self) -> None:
        expected = reference(make_operands(SMALL[5], 0, "cpu"))
        self.assertEqual(expected.isnan().any(1).tolist(), [False] * 3 + [True] * 5)
        self.assertLess(difference(expected.nan_to_num(7.0), expected), 1e-6)

    def test_a_wrong_tile_is_a_difference(self) -> None:
        expected = torch.randn(512, 512)
        self.assertLess(difference(expected.bfloat16(), expected), 0.003)
        for wrong in (expected.roll(1, 0), torch.zeros_like(expected), expected * math.nan):
            self.assertEqual(difference(wrong, expected), math.inf)
        one = expected.clone()
        one[400, 300] += 1
        self.assertEqual(difference(one, expected), math.inf)


class Right(Library):
    name = "fp4"

    def cases(self, folder: pathlib.Path, problem: Problem) -> list[str]:
        return ["right"]

    def run(self, folder: pathlib.Path, case: str, sets: Any) -> Prepared:
        results = [torch.empty(s.problem.m, s.problem.n, dtype=torch.bfloat16) for s in sets]
        return Prepared([lambda s=s, r=r: r.copy_(self.product(s)) for s, r in zip(sets, results)],
                        results)

    def product(self, operands: Any) -> Any:
        return reference(operands).nan_to_num(0.0)


class Wrong(Right):
    name = "wrong"

    def product(self, operands: Any) -> Any:
        return reference(operands).roll(1, 1)


class Raises(Right):
    name = "raises"

    def run(self, folder: pathlib.Path, case: str, sets: Any) -> Prepared:
        raise RuntimeError("no kernel image")


class Absent(Right):
    name = "absent"

    def check(self, folder: pathlib.Path) -> None:
        raise Missing("its wheel")


def timer(series: dict[Any, Any]) -> dict[Any, Any]:
    return {key: measuring.Timing(10.0 + i, 9.5, 12.5, 1800.0, 99) for i, key in enumerate(series)}


def report(*libraries: Library, problem: Problem = SMALL[3], timing: Any = timer) -> dict[str, Any]:
    state, ready = run.find(libraries, pathlib.Path("."))
    machine = {"device": "none", "driver": "0", "torch": torch.__version__}
    return {"schema": table.SCHEMA, "machine": machine, "method": run.METHOD,
            "libraries": state,
            "problems": [run.compare(problem, ready, "cpu", timing, lambda size: 2)]}


class Driver(unittest.TestCase):
    def test_a_report_has_times_and_what_failed(self) -> None:
        peer = type("Peer", (Right,), {"name": "peer"})()
        found = report(Right(), peer, Wrong(), Raises(), Absent())
        table.check_schema(json.loads(json.dumps(found)))
        self.assertEqual(found["libraries"]["absent"], "its wheel")
        results = {r["library"]: r for r in found["problems"][0]["results"]}
        self.assertEqual([results["fp4"]["us"], results["peer"]["us"]], [10.0, 11.0])
        self.assertLess(results["fp4"]["error"], 0.003)
        self.assertIn("differs from the GEMM in f32 by inf", results["wrong"]["failed"])
        self.assertIn("no kernel image", results["raises"]["failed"])
        text = table.text(found)
        self.assertIn("| 10.0 | right | peer right | 11.0 | 1.10 |", text)
        self.assertIn("absent is missing: its wheel", text)
        self.assertIn("raises right: RuntimeError: no kernel image", text)

    def test_what_breaks_while_it_is_timed_has_no_time(self) -> None:
        def breaks(series: dict[Any, Any]) -> dict[Any, Any]:
            for launches in series.values():
                launches[0].__defaults__[1].zero_()  # a result, after it was verified
            return timer(series)

        found = report(Right(), timing=breaks)
        self.assertIn("failed", found["problems"][0]["results"][0])
        found = report(Right(), timing=lambda series: dict.fromkeys(series, "Error: capture"))
        self.assertIn("capture", found["problems"][0]["results"][0]["failed"])
        table.check_schema(found)

    def test_a_problem_without_peers_or_without_us(self) -> None:
        self.assertEqual(table.rows(report(Right()))[0][3], "-")
        peer = type("Peer", (Right,), {"name": "peer"})()
        row = table.rows(report(Raises(), peer))[0]
        self.assertEqual(row[1:6], ["-", "-", "peer right", "10.0", "-"])

    def test_the_regret_is_what_another_plan_saves(self) -> None:
        found = report(Right())
        problem = found["problems"][0]
        chosen = problem["results"][0]
        self.assertEqual(table.regrets(found), [])
        other = "split_k 1, tile = [128, 128]"
        problem["results"].append(chosen | {"case": other, "us": chosen["us"] / 1.25})
        self.assertEqual(table.regrets(found), [(table.title(problem), 0.25, other)])
        self.assertIn("mean regret of 1 problem 25.0 %", table.text(found))
        problem["results"][1]["us"] = 2 * chosen["us"]
        self.assertEqual(table.regrets(found)[0][1], 0.0)

    def test_reports_that_are_none(self) -> None:
        good = report(Right())
        for change in ({"schema": 0}, {"problems": [{"results": [{"us": 1.0}]}]},
                       {"problems": [{"results": [{"us": 1.0, "failed": ""}]}]},
                       {"problems": [{"results": [{}]}]}):
            with self.assertRaises(ValueError):
                table.check_schema(good | change)
        with self.assertRaises(ValueError):
            table.check_schema({key: value for key, value in good.items() if key != "machine"})

    def test_the_plot_is_a_drawing_of_all_bars(self) -> None:
        peer = type("Peer", (Right,), {"name": "peer"})()
        drawing = ET.fromstring(table.plot(report(Right(), peer)))
        titles = [title.text for title in drawing.iter("{http://www.w3.org/2000/svg}title")]
        names = [text.split(":")[0] for text in titles if text]
        self.assertEqual(names, ["fp4, us", "peer, us", "roof, us"])

    def test_sources_are_named_and_missing_ones_said(self) -> None:
        self.assertEqual(self.main("prepare", "--source", "nobody=.")[0],
                         "error: no library is named nobody; `list` names them")
        code, text = self.main("prepare", "--libraries", "Humming,DeepGEMM",
                               "--source", "Humming=.", "--source", "DeepGEMM=.")
        self.assertEqual(code, 1)
        self.assertIn("Humming: needs humming_kernels-*.whl", text)
        self.assertIn("DeepGEMM: needs a folder with DeepGEMM/", text)
        self.assertIn("left out, no --source", self.main("prepare", "--libraries", "Humming")[1])

    def main(self, command: str, *options: str) -> tuple[Any, str]:
        out, saved = io.StringIO(), sys.argv
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out):
            sys.argv = ["run.py", command, folder, *options]
            try:
                code: Any = run.main()
            except SystemExit as end:
                code = end.code
            finally:
                sys.argv = saved
        return code, out.getvalue()

    def test_programs_of_a_wheel_can_be_executed(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            with zipfile.ZipFile(folder / "humming_kernels-1-py3-none-any.whl", "w") as wheel:
                wheel.writestr("humming/_native/x86_64/compile", "")
            Humming().prepare(folder, folder, [])
            program = folder / "site" / "humming" / "_native" / "x86_64" / "compile"
            self.assertTrue(os.access(program, os.X_OK))

    def test_sources_of_kernels_are_checkouts(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for library, part in ((Cutlass(), "cutlass/include"), (ThunderKittens(), "checkout"),
                                  (TritonKernels(), "matmul.py")):
                with self.assertRaisesRegex(Missing, part):
                    library.prepare(folder, folder, [])
            (folder / "triton_kernels").mkdir()
            (folder / "triton_kernels" / "matmul.py").touch()
            TritonKernels().prepare(folder, folder / "made", [])
            self.assertTrue((folder / "made" / "site" / "triton_kernels" / "matmul.py").exists())

    def test_nvcc_may_be_a_script_in_another_folder(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            top = pathlib.Path(name, "cuda")
            (top / "include").mkdir(parents=True)
            script = pathlib.Path(name, "nvcc")
            script.write_text(f"#!/bin/sh\necho '#$ TOP={top}/bin/..' >&2\n")
            script.chmod(0o755)
            with self.assertRaisesRegex(Missing, f"cuda.h in {top}/include"):
                toolkit_headers(str(script))
            (top / "bin").mkdir()
            (top / "include" / "cuda.h").touch()
            folders = [top / "include", top / "include" / "cccl"]
            self.assertEqual(toolkit_headers(str(script)), folders)
            script.write_text("#!/bin/sh\n")
            with self.assertRaisesRegex(Missing, "--dryrun' does not name"):
                toolkit_headers(str(script))

    def test_every_library_says_what_it_lacks(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            state, ready = run.find([library() for library in ALL], pathlib.Path(folder))
        if not torch.cuda.is_available():
            self.assertEqual(ready, [])
            self.assertEqual(len(state), len(ALL))


class Layouts(unittest.TestCase):
    def test_scales_that_deepgemm_reads(self) -> None:
        scales = torch.arange(10.0).view(1, 5, 2)
        found = deepgemm._transposed_scales(scales)
        self.assertEqual(found.tolist(), [[[0, 2, 4, 6, 8, 0, 0, 0], [1, 3, 5, 7, 9, 0, 0, 0]]])

    def test_groups_that_deepgemm_reads(self) -> None:
        self.assertEqual(deepgemm._grouped_layout(SMALL[4]).tolist(), [0] * 4 + [1] * 4)
        self.assertEqual(deepgemm._grouped_layout(SMALL[5]).tolist(), [3, 0])

    def test_cublas_without_scales(self) -> None:
        self.assertEqual(Cublas().cases(pathlib.Path("."), SMALL[5]), [])

    def test_thunderkittens_has_whole_tiles(self) -> None:
        def cases(*sizes: Any) -> list[str]:
            return ThunderKittens().cases(pathlib.Path("."), Problem(*sizes))

        bf16, scaled, small = thunderkittens.CASES
        self.assertEqual(cases("fp8", 64, 8192, 8192), [])
        self.assertEqual(cases("fp8", 256, 8192, 8192), [scaled, small])
        self.assertEqual(cases("fp8", 128, 128, 8192), [scaled])
        self.assertEqual(cases("nvfp4_nvfp4", 8192, 8192, 8192), [bf16])
        self.assertEqual(cases("contiguous", 512, 256, 256, 2), [])

    def test_operands_of_results_in_e4m3_are_small(self) -> None:
        for problem in (SMALL[2], SMALL[3]):
            operands = make_operands(problem, 0, "cpu")
            for matrix, before in zip(thunderkittens._small(operands),
                                      (operands.x, problems.e4m3_weights(operands))):
                self.assertTrue(0.35 < float(matrix.float().std()) < 0.71)
                ratio = before.float() / matrix.float()
                large = matrix.float().abs() > 2**-6  # others lose bits
                self.assertEqual(len(ratio[large].unique()), 1)
            product = thunderkittens._small_gemm(operands)
            self.assertLess(difference(product.to(torch.float8_e4m3fn), product), 0.03)
            self.assertGreater(difference(product.to(torch.float8_e4m3fn), product), 0.02)

    def test_clocks(self) -> None:
        self.assertEqual(measuring.clock_of([100, 1000, 0, 0], [1900, 2000, 50, 60]), 1800.0)
        self.assertTrue(math.isnan(measuring.clock_of([0, 0], [0, 0])))

    def test_sets_are_colder_than_the_cache(self) -> None:
        for size in (1, 10**6, 10**7, 10**9):
            count = measuring.sets_of(size)
            self.assertTrue((count - 1) * size >= 120e6 or count == 64, size)


class InTheSimulator(unittest.TestCase):
    """Tests of the kernels that `prepare` compiles, called as a run calls them, with tensors of the
    CPU."""

    def test_gemms_of_every_kind(self) -> None:
        build = pathlib.Path(os.environ.get("FP4_BUILD", ROOT / "build"))
        if not (build / "bin" / "fp4-runner").exists():
            self.skipTest("needs bin/fp4-runner of a build")
        with tempfile.TemporaryDirectory() as name:
            folder, library = pathlib.Path(name), Ours()
            library.prepare(build, folder, SMALL)
            library.check(folder)
            for problem in SMALL:
                sets = [make_operands(problem, seed, "cpu") for seed in range(2)]
                cases = library.cases(folder, problem)
                several = problem.kind in problems.PACKED or problem.kind == "e4m3_mxfp4"
                for case in cases if several else cases[-1:]:
                    prepared = library.run(folder, case, sets)
                    for launch in prepared.launches:
                        launch()
                    run.verify(prepared, sets, lambda function, i, sets=sets: function(sets[i]))

    def test_a_program_that_does_not_compile_is_missing(self) -> None:
        with self.assertRaisesRegex(Missing, "bin/fp4-runner"):
            Ours().prepare(pathlib.Path("/nonexistent"), pathlib.Path("/nonexistent"), [])
        self.assertIn("offsets %4", program(SMALL[5], "1"))
        self.assertIn("{work = #fp4.work<split_k = 2>, "
                      "arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}",
                      program(SMALL[2], "2", FAST))
        self.assertIn("stream_k = [132, 256, 128]",
                      program(SMALL[2], "132x256x128", FAST))
        self.assertEqual(dataclasses.replace(SMALL[3], m=7).name, "fp8_7_256x256")


if __name__ == "__main__":
    unittest.main()
