"""fp4.torch.merge_linears and WeightOnlyGate: bits of the layers that become one, gated units, and
what is refused."""

import unittest
from typing import Any

import fp4
from programs import torch
from test_torch_ops import matrix

if torch is not None:
    import fp4.torch as ft

K = 320


def layer(rows: int, seed: int, bias: bool = False, columns: int = K, **options: Any) -> Any:
    torch.manual_seed(seed)
    source = torch.nn.Linear(columns, rows, bias, dtype=torch.bfloat16)
    with torch.no_grad():
        source.weight.mul_(seed + 1)  # scales of the tensors differ
    return ft.WeightOnlyLinear.from_linear(source, **options)


def strict() -> Any:
    return ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True)


@unittest.skipIf(torch is None, "torch is not installed")
class Merged(unittest.TestCase):
    def check(self, *layers: Any) -> Any:
        """The merged layer has the bits of the layers, codes, scales and results."""
        merged = ft.merge_linears(*layers)
        self.assertEqual(merged.out_features, sum(one.out_features for one in layers))
        wide = ft.dequantize(merged.unpack(), torch.float32)
        parts = [ft.dequantize(one.unpack(), torch.float32) for one in layers]
        self.assertTrue(torch.equal(wide, torch.cat(parts)))
        with torch.no_grad():
            for count in (1, 9, 130):
                x = matrix(count, layers[0].in_features)
                expected = torch.cat([one(x) for one in layers], -1)
                self.assertTrue(torch.equal(merged(x), expected), count)
        return merged

    def test_layers_with_scales_of_their_own(self) -> None:
        """K is cut alike: the same sums, each multiplied by the scale of its layer."""
        merged = self.check(layer(256, 0), layer(128, 1), layer(128, 2))
        self.assertEqual(merged.alpha.shape, (512,))
        self.assertEqual(len(merged.alpha.unique()), 3)
        with strict(), torch.no_grad():
            merged(matrix(3, K))

    def test_layers_of_any_sizes(self) -> None:
        """Tiles of 128 rows that two layers share are packed anew."""
        self.check(layer(72, 0), layer(200, 1), layer(40, 2))
        self.check(layer(72, 0, format="mxfp4"), layer(56, 1, format="mxfp4"))
        self.check(layer(128, 0, columns=100), layer(33, 1, columns=100))

    def test_biases(self) -> None:
        merged = self.check(layer(128, 0, True), layer(128, 1, True))
        self.assertEqual(merged.bias.shape, (256,))

    def test_one_scale_stays_one(self) -> None:
        self.assertEqual(ft.merge_linears(layer(128, 1), layer(128, 1)).alpha.dim(), 0)
        self.assertIsNone(ft.merge_linears(layer(128, 1, format="mxfp4"),
                                           layer(128, 1, format="mxfp4")).alpha)

    def test_batch_invariant(self) -> None:
        merged = self.check(*(layer(128, seed, batch_invariant=True) for seed in range(2)))
        self.assertTrue(merged.batch_invariant)

    def test_refusals(self) -> None:
        one = layer(128, 0)
        for others, text in (
                ((), "at least one layer"),
                ((one, torch.nn.Linear(K, 128)), "layer 1 must be a WeightOnlyLinear, but is a Li"),
                ((one, layer(128, 1, columns=K + 64)), "layer 1 must have 'in_features' 320, as"),
                ((one, one, layer(128, 1, format="mxfp4")), "layer 2 must have 'format' nvfp4"),
                ((one, layer(128, 1, True)), "layer 1 must have 'bias' None, as layer 0 has, but"),
                ((one, layer(128, 1, batch_invariant=True)), "must have 'batch_invariant' False"),
                ((one, layer(128, 1, recipe="torchao_1level")), "must have 'alpha' True")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.merge_linears(*others)


@unittest.skipIf(torch is None, "torch is not installed")
class Gate(unittest.TestCase):
    def test_equals_plain_torch(self) -> None:
        """One rounding of the result to bfloat16 is all that differs from float32."""
        for rows, options in ((128, {}), (200, {"format": "mxfp4"}), (72, {"columns": 100})):
            with self.subTest(rows=rows, **options), torch.no_grad():
                gate, up = layer(rows, 1, **options), layer(rows, 2, **options)
                unit = ft.WeightOnlyGate(gate, up)
                weights = [ft.dequantize(one.unpack(), torch.float32)[:, :gate.in_features]
                           for one in (gate, up)]
                for count in (1, 12, 130):
                    x = matrix(count, gate.in_features)
                    sums = [x.float() @ weight.T for weight in weights]
                    expected = torch.nn.functional.silu(sums[0]) * sums[1]
                    torch.testing.assert_close(unit(x).float(), expected, rtol=2**-8, atol=1e-4)

    def test_gelu_equals_plain_torch(self) -> None:
        """Large sums too, where the sigmoid is 0 or 1 and the cube is far above it."""
        gate, up = layer(128, 1), layer(128, 2)
        unit = ft.WeightOnlyGate(gate, up, "gelu_tanh")
        weights = [ft.dequantize(one.unpack(), torch.float32)[:, :K] for one in (gate, up)]
        with torch.no_grad():
            for factor in (1.0, 100.0):
                x = matrix(12, K) * factor
                sums = [x.float() @ weight.T for weight in weights]
                expected = torch.nn.functional.gelu(sums[0], approximate="tanh") * sums[1]
                torch.testing.assert_close(unit(x).float(), expected, rtol=2**-7, atol=1e-4)
            self.assertFalse(torch.equal(unit(x), ft.WeightOnlyGate(gate, up)(x)))

    def test_has_the_bits_of_the_reference_model(self) -> None:
        for activation in ("silu", "gelu_tanh"):
            unit = ft.WeightOnlyGate(layer(128, 1), layer(128, 2), activation)
            with strict(), torch.no_grad():
                for count in (1, 9, 20, 70):
                    unit(matrix(count, K))

    def test_rows_do_not_change_each_other(self) -> None:
        unit, x = ft.WeightOnlyGate(layer(128, 1), layer(128, 2)), matrix(130, K)
        with torch.no_grad():
            self.assertTrue(torch.equal(unit(x)[:1], unit(x[:1])))
            self.assertEqual(unit(x.view(10, 13, K)).shape, (10, 13, 128))
            self.assertEqual(unit(x[:0]).shape, (0, 128))

    def test_operator(self) -> None:
        gate, up = layer(128, 1), layer(128, 2)
        torch.library.opcheck(torch.ops.fp4.weight_gate.default,
                              (matrix(3, K), gate.packed, up.packed, gate.alpha, up.alpha, 128))

    def test_refusals(self) -> None:
        one, half = layer(128, 1), layer(128, 1, format="mxfp4")
        for gate, up, text in (
                (one, layer(256, 2), "'up' must have the 128 out_features of 'gate', but has 256"),
                (one, half, "layer 1 must have 'format' nvfp4"),
                (layer(128, 1, True), one, "'gate' must have no bias"),
                (one, torch.nn.Linear(K, 128), "'up' must be a WeightOnlyLinear, but is a Linear")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.WeightOnlyGate(gate, up)
        with self.assertRaisesRegex(fp4.UsageError, "'activation' must be silu or gelu_tanh, but"):
            ft.WeightOnlyGate(one, one, "gpt_oss")
        with self.assertRaisesRegex(fp4.UsageError, "'input' must have 320 columns, but got"):
            ft.WeightOnlyGate(one, one)(matrix(2, K + 64))
        with self.assertRaisesRegex(fp4.UsageError, "'x' must be bfloat16 beside weights of mxfp4"):
            ft.WeightOnlyGate(half, half)(matrix(2, K).half())
        with self.assertRaisesRegex(fp4.UsageError, "'up' must have the shape of 'gate'"):
            torch.ops.fp4.weight_gate(matrix(2, K), one.packed, half.packed, None, None, 128)


if __name__ == "__main__":
    unittest.main()
