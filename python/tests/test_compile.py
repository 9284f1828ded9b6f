"""Compiling: phases, kernels, remarks, files, and what is refused."""

import json
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest

import fp4
import numpy as np
from fp4.errors import make_error
from programs import QUANTIZE, ROOT, compiled, matrix, operands, product

LINEAR = ROOT / "examples" / "nvfp4_linear.mlir"

#: An amax and the quantizer that takes it.
PAIR = """
func.func @pair(%x: tensor<64x64xbf16>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<64x64xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x64xbf16>, tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  return %q, %s : tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>
}
"""


class Compile(unittest.TestCase):
    def test_phases_are_text(self) -> None:
        program = compiled()
        self.assertIn("fp4.quantize", program.ir("parsed"))
        self.assertIn("fp4.quantize", program.ir("fused"))
        self.assertIn("gpu.func", program.ir("tiles"))
        self.assertNotIn("fp4.quantize", program.ir("nvvm"))
        self.assertEqual(program.ir("ptx").count("gpu.binary"), len(program.kernels))
        for phase in ("host", "cubin", "", "PTX"):
            with self.assertRaisesRegex(fp4.UsageError, f"unknown phase '{phase}'"):
                program.ir(phase)

    def test_kernels_and_manifest(self) -> None:
        program = compiled()
        self.assertEqual(len(program.kernels), 4)
        for kernel in program.kernels:
            self.assertIn(".target sm_100a", kernel.ptx)
            self.assertEqual(kernel.cubin, b"")
        self.assertEqual(list(program.manifest.functions),
                         ["amax", "linear", "tiled", "dequantize"])
        tiled = program.manifest.functions["tiled"]
        self.assertEqual(str(tiled), "tiled(x: ?x64xbf16, a: f32) -> "
                         "(r0: ?x64xf4E2M1FN, r1: ?x4xf8E4M3FN, tiled_128x4)")
        self.assertEqual(tiled.results[1].type.buffer_shape, (-1, 1, 512))
        self.assertEqual(json.loads(program.manifest.text)["target"], "sm_100a")
        self.assertEqual(program.target, "sm_100a")

    def test_another_target(self) -> None:
        program = fp4.compile(QUANTIZE, target="sm_90a")
        self.assertIn(".target sm_90a", program.kernels[0].ptx)
        self.assertEqual(program(matrix(), function="amax", verify=True).shape, ())

    def test_a_device_of_the_target(self) -> None:
        program = fp4.compile(QUANTIZE, target="sm_90a", device="h200")
        self.assertIn("#fp4.target<sm_90a, device = h200>", program.ir("fused"))
        with self.assertRaisesRegex(fp4.CompileError, "(?s)device 'h200' must be one of target "
                                    "sm_100a, but is one of sm_90a.*devices of sm_100a: b200"):
            fp4.compile(QUANTIZE, target="sm_100a", device="h200")
        find = fp4.compiler.c.library().fp4_find_product
        self.assertEqual(find(b"NVIDIA H200"), b"h200")
        self.assertIsNone(find(b"NVIDIA H20"))

    def test_dims_and_remarks_of_a_file(self) -> None:
        program = fp4.compile(LINEAR, dims={"N": 64, "K": 128}, remarks=True)
        self.assertEqual(program.manifest.functions["nvfp4_linear"].arguments[1].type.shape,
                         (64, 128))
        self.assertIn("the quantizer writes its scales swizzled", "".join(program.remarks))
        self.assertIn("nvfp4_linear.mlir:19:14", program.remarks[0])
        self.assertEqual(compiled().remarks, ())

    def test_launches_overlap_as_asked(self) -> None:
        waits = {"none": [], "chosen": ["pair_quantize_0"],
                 "all": ["pair_amax_0", "pair_quantize_0", "pair_amax_quantize_0"]}
        for pdl, expected in waits.items():
            program = fp4.compile(PAIR, pdl=pdl)
            self.assertEqual([kernel.name for kernel in program.kernels
                              if "griddepcontrol.wait" in kernel.ptx], expected)
        self.assertEqual([kernel.ptx for kernel in fp4.compile(PAIR).kernels],
                         [kernel.ptx for kernel in fp4.compile(PAIR, pdl="chosen").kernels])

    def test_ptxas_makes_cubins(self) -> None:
        with self.assertRaisesRegex(fp4.CompileError, "ptxas must be an executable file"):
            fp4.compile(QUANTIZE, assemble=True, ptxas=pathlib.Path(__file__, "none"))
        try:
            program = fp4.compile(QUANTIZE, assemble=True)
        except fp4.CompileError as error:
            self.assertIn("ptxas", error.message)
            self.skipTest("there is no ptxas on this machine")
        self.assertTrue(all(kernel.cubin.startswith(b"\x7fELF") for kernel in program.kernels))

    def test_errors_are_located(self) -> None:
        with self.assertRaises(fp4.CompileError) as caught:
            fp4.compile("func.func @f(", name="broken.mlir")
        self.assertEqual(caught.exception.location, ("broken.mlir", 1, 13))
        self.assertIn("was not compiled", caught.exception.message)
        wrong = product().replace("scaled<nvfp4", "scaled<mxfp4")
        with self.assertRaises(fp4.CompileError) as caught:
            fp4.compile(wrong)
        location = caught.exception.location
        assert location is not None
        self.assertEqual(location[0], "program.mlir")

    def test_options_that_are_refused(self) -> None:
        for options, kind, message in (
                ({"target": "sm_42"}, fp4.UsageError, "unknown target 'sm_42'"),
                ({"target": 100}, TypeError, "'target' must be a str"),
                ({"pdl": "some"}, fp4.UsageError,
                 "unknown pdl 'some'\nnote: PDL is none, chosen or all"),
                ({"pdl": True}, TypeError, "'pdl' must be a str"),
                ({"overlap": "all"}, fp4.UsageError,
                 "'overlap' is called 'pdl' now\nnote: pass pdl='all'"),
                ({"dims": {"Q": 64}}, fp4.CompileError, "no argument has a dimension called 'Q'"),
                ({"dims": {"M": -3}}, fp4.UsageError, "the size of 'M' must be positive"),
                ({"dims": {"M": 1.5}}, TypeError, "the size of 'M' must be an int, but got float"),
                ({"dims": {3: 64}}, TypeError, "a name in 'dims' must be a str"),
                ({"dims": ["M"]}, TypeError, "'dims' must map names to sizes")):
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                fp4.compile(QUANTIZE, **options)  # type: ignore[arg-type]
        for text, kind, message in (
                (None, TypeError, "'text' must be a str"),
                (b"module {}", TypeError, "'text' must be a str"),
                ("module {}\0", fp4.UsageError, "must not contain a NUL"),
                ("a/f.mlir", fp4.UsageError, r"'a/f.mlir'\nnote: pass pathlib.Path\('a/f.mlir'\)"),
                (ROOT / "none.mlir", fp4.UsageError, "cannot read")):
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                fp4.compile(text)  # type: ignore[arg-type]

    def test_a_library_runs_without_the_compiler(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "quantize.so"
            compiled().save(path)
            self.assertTrue(stat.S_ISREG(path.stat().st_mode))
            program = fp4.load(path)
            self.assertEqual(program(matrix(), function="amax", verify=True),
                             compiled()(matrix(), function="amax"))
            with self.assertRaisesRegex(fp4.UsageError, "cannot write"):
                compiled().save(pathlib.Path(folder) / "none" / "x.so")
            damaged = path.with_name("damaged.so")
            damaged.write_bytes(path.read_bytes()[:5000])
            with self.assertRaisesRegex(fp4.UsageError, "cannot load|damaged"):
                fp4.load(damaged)
            with self.assertRaisesRegex(fp4.UsageError, "cannot read"):
                fp4.load(pathlib.Path(folder) / "none.so")


class Errors(unittest.TestCase):
    def test_each_kind_has_a_class(self) -> None:
        for kind, expected in ((1, fp4.MismatchError), (2, fp4.UsageError), (3, fp4.CompileError),
                               (4, fp4.DeviceError), (5, fp4.SimulationError),
                               (6, fp4.HazardError), (70, fp4.InternalError),
                               (99, fp4.InternalError)):
            error = make_error(kind, "what", "remedy")
            self.assertIs(type(error), expected)
            self.assertIsInstance(error, fp4.Error)
            self.assertEqual((error.message, error.note, error.location), ("what", "remedy", None))
            self.assertEqual(str(error), "what\nnote: remedy")
        self.assertIsInstance(make_error(6, "what", ""), fp4.SimulationError)
        self.assertEqual(str(make_error(5, "what", "")), "what")

    def test_the_kinds_are_those_of_the_c_api(self) -> None:
        header = (ROOT / "include" / "fp4-c" / "Error.h").read_text()
        kinds = {int(value) for value in re.findall(r"FP4_ERROR_[A-Z]+ = (\d+)", header)}
        self.assertEqual(kinds, {type(make_error(kind, "", "")).kind for kind in range(100)})

    def test_a_fence_less_is_a_hazard(self) -> None:
        fence = b"tcgen05.wait::ld.sync.aligned;"
        arguments = operands()
        with tempfile.TemporaryDirectory() as folder:
            path, bad = pathlib.Path(folder) / "good.so", pathlib.Path(folder) / "bad.so"
            compiled(product()).save(path)
            code = path.read_bytes()
            self.assertIn(fence, code)
            bad.write_bytes(code.replace(fence, b" " * len(fence)))
            expected = fp4.load(path)(*arguments)
            for _ in range(2):  # what a call found does not hide it from the next one
                with self.assertRaisesRegex(fp4.HazardError, r"hazards? found\nerror: .*\[tmem-"):
                    fp4.load(bad)(*arguments)
            with fp4.Device("sim", check="off") as device:
                np.testing.assert_array_equal(fp4.load(bad, device)(*arguments), expected)


class Import(unittest.TestCase):
    def run_python(self, code: str, library: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env={"FP4_LIBRARY": library, "PYTHONPATH": str(ROOT / "python")})

    def test_a_missing_library(self) -> None:
        done = self.run_python("import fp4", "/none/libfp4.so")
        self.assertIn("ImportError: FP4_LIBRARY must name libfp4.so or libfp4rt.so, but "
                      "'/none/libfp4.so' is no file", done.stderr)
        self.assertIn("note: build it", done.stderr)
        done = self.run_python("import fp4; fp4.version()", __file__)
        self.assertIn("ImportError: cannot load", done.stderr)

    def test_the_runtime_alone(self) -> None:
        runtime = fp4._library.PATH.with_name("libfp4rt.so")
        if not runtime.is_file():
            self.skipTest("libfp4rt.so is not built")
        done = self.run_python("import fp4; fp4.Device('sim'); fp4.compile('')", str(runtime))
        self.assertIn("is the runtime and has no compiler", done.stderr)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "quantize.so"
            compiled().save(path)
            code = ("import numpy, fp4; x = numpy.full((3, 64), 0x3fc0, numpy.uint16); "
                    f"print(fp4.load({str(path)!r})(x, function='amax', verify=True))")
            self.assertEqual(self.run_python(code, str(runtime)).stdout, "1.5\n")


if __name__ == "__main__":
    unittest.main()
