"""A linear layer of any M, N and K, built without MLIR text: one program, several shapes."""

import unittest

import fp4
from programs import compiled, matrix


def linear() -> str:
    builder = fp4.Builder()
    f = builder.function("linear")
    x, w = f.argument("x", ("M", "K")), f.argument("w", ("N", "K"))
    qx = f.quantize(x, "nvfp4", amax=f.amax(x), layout="tiled_128x4")
    qw = f.swizzle_scales(f.quantize(w, "nvfp4", amax=f.amax(w)))
    f.returns(y=f.matmul(qx, qw, alpha=f.matmul_alpha(qx, qw)))
    return str(builder)


class AnySizes(unittest.TestCase):
    def test_one_program_has_every_shape(self) -> None:
        program = compiled(linear())
        for m, n, k in ((5, 24, 32), (70, 8, 96), (130, 136, 64)):
            y = program(matrix(m, k, seed=m), matrix(n, k, seed=n), verify=True)
            self.assertEqual(y.shape, (m, n))

    def test_sizes_that_do_not_fit(self) -> None:
        program = compiled(linear())
        with self.assertRaisesRegex(fp4.UsageError, "columns of operand 'input' of the quantize .*"
                                    "must be 96, but got 80"):
            program(matrix(5, 80), matrix(24, 80))
        with self.assertRaisesRegex(fp4.UsageError, "rows of operand 'rhs' of the matmul .*"
                                    "must be 16, but got 12"):
            program(matrix(5, 96), matrix(12, 96))


if __name__ == "__main__":
    unittest.main()
