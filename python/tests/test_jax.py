"""fp4.jax: functions of emitted libraries in JAX on the CPU, through the simulator.

    pip install jax
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

import fp4
import numpy as np
from programs import QUANTIZE, compiled, matrix, operands, optional, product

jax: Any = optional("jax")
if jax is not None:
    import fp4.jax
    import jax.numpy as jnp

EXPORTED = """
import sys
import fp4.jax, jax, jax.export, numpy as np
library, blob, x, expected = sys.argv[1:]
call = jax.export.deserialize(open(blob, "rb").read()).call
x = jax.numpy.asarray(np.load(x)).view(jax.numpy.bfloat16)
try:
    call(x)
except jax.errors.JaxRuntimeError as error:
    assert "this process has no program" in str(error), error
    assert "fp4.jax.load" in str(error), error
else:
    raise SystemExit("a program that nobody loaded was called")
fp4.jax.load(library, "amax")
assert np.asarray(call(x)) == np.load(expected)
"""


@unittest.skipIf(jax is None, "jax is not installed")
class Jax(unittest.TestCase):
    folder: "tempfile.TemporaryDirectory[str]"

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def library(self, text: str = QUANTIZE) -> pathlib.Path:
        path = pathlib.Path(self.folder.name, f"{abs(hash(text))}.so")
        if not path.exists():
            compiled(text).save(path)
        return path

    def load(self, name: "str | None" = None, text: str = QUANTIZE) -> Any:
        return fp4.jax.load(self.library(text), name)

    def assert_bits(self, got: Any, expected: Any) -> None:
        got, expected = np.asarray(got), np.asarray(expected)
        self.assertEqual((got.shape, got.dtype), (expected.shape, expected.dtype))
        self.assertEqual(got.tobytes(), expected.tobytes())

    def bf16(self, bits: Any) -> Any:
        return jnp.asarray(bits).view(jnp.bfloat16)

    def test_results_are_those_of_a_program(self) -> None:
        x = matrix(5)
        amax = self.load("amax")(self.bf16(x))
        self.assert_bits(amax, compiled()(x, function="amax"))
        got = self.load("linear")(self.bf16(x), amax)
        for one, expected in zip(got, compiled()(x, np.asarray(amax), function="linear")):
            self.assert_bits(one, expected)

    def test_jit_traces_one_computation(self) -> None:
        amax, linear, dequantize = map(self.load, ("amax", "linear", "dequantize"))

        @jax.jit
        def step(x: Any) -> Any:
            a = amax(x * 2)
            q, s = linear(x * 2, a)
            return dequantize(q, s, a) + 1

        x = self.bf16(matrix(7))
        a = compiled()(np.asarray(x * 2), function="amax")
        q, s = compiled()(np.asarray(x * 2), a, function="linear")
        expected = jnp.asarray(compiled()(q, s, a, function="dequantize")) + 1
        self.assert_bits(step(x), expected)
        self.assertEqual(step.lower(x).as_text().count("stablehlo.custom_call @fp4_call"), 3)

    def test_tiled_scales_and_names(self) -> None:
        values = operands()
        expected = compiled(product())(values[0], fp4.tiled(values[1], 130, 4), *values[2:])
        self.assert_bits(self.load(text=product())(*map(jnp.asarray, values)), expected)

    def test_no_rows(self) -> None:
        got = self.load("linear")(self.bf16(matrix(0)), jnp.float32(1))
        self.assertEqual([one.shape for one in got], [(0, 32), (0, 4)])

    @unittest.skipIf(optional("flatbuffers") is None, "jax.export needs flatbuffers")
    def test_an_exported_computation_names_the_library_by_its_bytes(self) -> None:
        import jax.export

        path, x = self.library(), matrix(4)
        allowed = [jax.export.DisabledSafetyCheck.custom_call("fp4_call")]
        blob = jax.export.export(jax.jit(self.load("amax")), disabled_checks=allowed)(
            self.bf16(x)).serialize()
        names = [pathlib.Path(self.folder.name, name) for name in ("blob", "x.npy", "amax.npy")]
        names[0].write_bytes(blob)
        np.save(names[1], x)
        np.save(names[2], compiled()(x, function="amax"))
        done = subprocess.run([sys.executable, "-c", EXPORTED, path, *names], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout)

    def refuses(self, message: str, *arrays: Any, name: str = "linear",
                kind: type = fp4.UsageError) -> None:
        with self.assertRaisesRegex(kind, message):
            jax.jit(self.load(name))(*arrays)

    def test_arrays_that_do_not_fit(self) -> None:
        x, one = self.bf16(matrix(5)), jnp.float32(1)
        self.refuses(r"argument 'x' must be \?x64xbf16", x.astype(jnp.float32), one)
        self.refuses(r"argument 'x' must be \?x64xbf16.*\[5, 32\]", x[:, :32], one)
        self.refuses("'linear' expects 2 arguments, but got 1", x)
        self.refuses("argument 'x' must be an array of JAX", [1.0], one, kind=TypeError)
        with self.assertRaisesRegex(fp4.UsageError, "no function 'other'"):
            self.load("other")

    def test_a_call_that_fails_tells_xla_why(self) -> None:
        amax = self.load("amax")
        wrong = jax.ffi.ffi_call("fp4_call", jax.ShapeDtypeStruct((3,), jnp.float32))
        with self.assertRaisesRegex(jax.errors.JaxRuntimeError,
                                    r"result '.*' must be f32, .* but got float32\[3\]"):
            wrong(self.bf16(matrix(5)), program=amax._key, function="amax").block_until_ready()


if __name__ == "__main__":
    unittest.main()
