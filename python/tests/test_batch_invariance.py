"""The bits of a row beside different numbers of rows: split_k = fixed, and batch_invariant of
layers of torch, promise that they are the same. The tests of `fastest`, which has another factor
for many rows, show that the comparison can fail."""

import importlib.util
import unittest

import fp4
import numpy as np
from programs import matrix

HAS_TORCH = importlib.util.find_spec("torch") is not None

K, N, ROWS = 2048, 256, 300
PROGRAM = f"""
!packed = tensor<{N // 128}x{K // 64}x4352xi8, #fp4.weight_layout<wgmma>>
func.func @weights(%w: tensor<{N}x{K}xbf16>) -> !packed {{
  %q, %s = fp4.quantize %w {{format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}}
      : (tensor<{N}x{K}xbf16>) -> (tensor<{N}x{K}xf4E2M1FN>, tensor<{N}x{K // 32}xf8E8M0FNU>)
  %p = fp4.prepack %q scaled %s {{format = #fp4.format<mxfp4>}}
      : (tensor<{N}x{K}xf4E2M1FN>, tensor<{N}x{K // 32}xf8E8M0FNU>) -> !packed
  return %p : !packed
}}
func.func @product(%x: tensor<?x{K}xbf16>, %p: !packed) -> tensor<?x{N}xf32> {{
  %y = fp4.matmul %x, %p {{work = #fp4.work<split_k = POLICY>}}
      : (tensor<?x{K}xbf16>, !packed) -> tensor<?x{N}xf32>
  return %y : tensor<?x{N}xf32>
}}
"""


def differing(policy: str) -> list[int]:
    """Numbers of rows beside which a row has other bits than beside ROWS rows."""
    program = fp4.compile(PROGRAM.replace("POLICY", policy), target="sm_90a")
    packed = program(matrix(N, K, seed=1), function="weights")
    x = matrix(ROWS, K, seed=2)
    whole = program(x, packed, function="product", verify=True)
    return [rows for rows in (1, 8, 17, 64, 130)
            if not np.array_equal(program(x[:rows], packed, function="product", verify=True),
                                  whole[:rows])]


class BatchInvariance(unittest.TestCase):
    def test_fixed(self) -> None:
        self.assertEqual(differing("fixed"), [])

    def test_fastest(self) -> None:
        self.assertIn(1, differing("fastest"))


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class TorchLayers(unittest.TestCase):
    def differing(self, batch_invariant: bool) -> list[int]:
        """Numbers of rows beside which a layer gives a row other bits than beside ROWS rows."""
        import fp4.torch
        import torch

        torch.manual_seed(5)
        model = torch.nn.Sequential(torch.nn.Linear(K, N, bias=False, dtype=torch.bfloat16))
        # Products that cancel each other leave what the order of the sums rounds.
        model[0].weight.data[:, K // 2:] = model[0].weight.data[:, :K // 2]
        fp4.torch.quantize_(model, format="mxfp4", weight_only=True,
                            batch_invariant=batch_invariant)
        self.assertEqual(model[0].batch_invariant, batch_invariant)
        x = torch.randn(ROWS, K // 2, dtype=torch.bfloat16)
        x = torch.cat((x, -x), 1)
        with torch.no_grad():
            whole = model(x)
            return [rows for rows in (1, 17) if not torch.equal(model(x[:rows]), whole[:rows])]

    def test_invariant(self) -> None:
        self.assertEqual(self.differing(True), [])

    def test_fastest(self) -> None:
        self.assertIn(1, self.differing(False))

    def test_only_weight_only(self) -> None:
        import fp4.torch
        import torch

        model = torch.nn.Sequential(torch.nn.Linear(256, 128, dtype=torch.bfloat16))
        with self.assertRaisesRegex(fp4.UsageError, "'batch_invariant' must be off"):
            fp4.torch.quantize_(model, batch_invariant=True)


if __name__ == "__main__":
    unittest.main()
